"""The image that the environment is built upon: a pinned one of a registry, else made of Debian's own packages."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import docker

from referee.adapters.docker.apt import SUITE, AptMirror
from referee.adapters.docker.engine import ENGINE_ERRORS, inspect_image
from referee.errors import ConfigError, EnvironmentUnavailable

#: Time stamps of the base's files are clamped to the day of the release, so that two builds of the same packages agree.
SOURCE_DATE_EPOCH = "1686355200"
BASE_TAG = "referee-env-base"


def base_image(
    client: docker.APIClient, *, pinned: str, mirror: AptMirror, identity: str, say: Callable[[str], None]
) -> str:
    """The name of a base image that the engine holds.

    ``pinned`` is a registry reference with a digest, or empty. ``identity`` names what a self-made base is made
    from: an image that was made from the same is taken again.

    Raises:
        ConfigError: ``pinned`` has no digest.
        EnvironmentUnavailable: neither way is open.
    """
    if pinned:
        if "@sha256:" not in pinned:
            raise ConfigError(
                f"environment.base {pinned!r} is not pinned", todo="name it by its digest: NAME@sha256:HEX"
            )
        if inspect_image(client, pinned) or _pull(client, pinned, say):
            return pinned
    tag = f"{BASE_TAG}:{identity[:12]}"
    if inspect_image(client, tag) is None:
        _make(client, tag, mirror, say)
    return tag


def _pull(client: docker.APIClient, pinned: str, say: Callable[[str], None]) -> bool:
    say(f"pulling {pinned}")
    try:
        for event in client.pull(pinned, stream=True, decode=True):
            if "error" in event:
                say(f"it cannot be pulled ({event['error']}): building a base from Debian's packages instead")
                return False
    except ENGINE_ERRORS as exc:
        say(f"it cannot be pulled ({exc}): building a base from Debian's packages instead")
        return False
    return True


def _make(client: docker.APIClient, tag: str, mirror: AptMirror, say: Callable[[str], None]) -> None:
    """Let mmdebstrap make a minimal root file system, and import it."""
    if shutil.which("mmdebstrap") is None:
        raise EnvironmentUnavailable(
            "there is no base image and no mmdebstrap to make one",
            todo="install Debian's package mmdebstrap, or name environment.base in referee.toml",
        )
    if os.geteuid() != 0:
        raise EnvironmentUnavailable(
            "a base image is made from Debian's packages by root only",
            todo="run `referee env build` once as root, or name environment.base in referee.toml",
        )
    say("making the base from Debian's packages with mmdebstrap")
    with tempfile.TemporaryDirectory(prefix="referee-base-") as directory:
        target = Path(directory) / "base.tar"
        argv = ["mmdebstrap", "--mode=root", "--variant=minbase", "--quiet"]
        argv += [f"--aptopt={line}" for line in mirror.configuration.splitlines()]
        argv += [SUITE, str(target), *(["-"] if mirror.sources else [])]
        made = subprocess.run(
            argv,
            input=mirror.sources,
            env={**os.environ, "SOURCE_DATE_EPOCH": SOURCE_DATE_EPOCH},
            capture_output=True,
            text=True,
            check=False,
        )
        if made.returncode != 0:
            last = (made.stderr.strip().splitlines() or ["it said nothing"])[-1]
            raise EnvironmentUnavailable(
                f"mmdebstrap could not make the base: {last}", todo="check that apt works on this host"
            )
        say("importing the base")
        repository, _, version = tag.partition(":")
        client.import_image(src=str(target), repository=repository, tag=version, changes=['CMD ["/bin/bash"]'])
