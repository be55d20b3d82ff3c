"""The environment image: built from one Dockerfile through the engine, with its package manifest inside.

Built with the engine's own builder and no client beside it. The host's CA bundle is a file of the context that
only the stage `fetch` sees; see docs/decisions/0010.
"""

from __future__ import annotations

import contextlib
import io
import re
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import docker

from referee.adapters.docker.apt import SUITE, AptMirror, host_mirror
from referee.adapters.docker.debian_base import base_image
from referee.adapters.docker.engine import ENGINE_ERRORS, inspect_image, labels_of, open_archive
from referee.adapters.docker.owner import OWNER_LABEL, ROLE_LABEL, this_process
from referee.core.canonical import digest_of, digest_of_bytes
from referee.errors import EnvironmentUnavailable, UsageError

#: Label: tagged digest of everything the image was built from. Another one means that the image is stale.
ENVIRONMENT_LABEL = "referee.environment"
#: Label: digest of the package manifest inside.
PACKAGES_LABEL = "referee.packages"
VARIANT_LABEL = "referee.variant"
MANIFEST = "/etc/referee/packages.json"
MAX_MANIFEST_BYTES = 8_000_000
INTERNAL_STAGES = {"system", "fetch"}


@dataclass(frozen=True)
class ImageFacts:
    """One environment image as the engine holds it.

    ``image_id`` is the digest of its configuration and so of its content; ``repo_digests`` are the registry's names
    for it, empty when it was built here. ``current``: it was built from what this installation would build from.
    """

    tag: str
    variant: str
    image_id: str
    repo_digests: tuple[str, ...]
    packages_digest: str | None
    size_bytes: int
    architecture: str
    created: str
    current: bool


def variants() -> tuple[str, ...]:
    """The names of the published stages."""
    return tuple(name for name, _, _ in _stages(_dockerfile()) if name not in INTERNAL_STAGES)


def inspect(client: docker.APIClient, tag: str, *, variant: str, base: str = "") -> ImageFacts | None:
    """The facts of an image; None when the engine holds none of this name."""
    seen = inspect_image(client, tag)
    if seen is None:
        return None
    labels = labels_of(seen)
    return ImageFacts(
        tag=tag,
        variant=labels.get(VARIANT_LABEL, ""),
        image_id=str(seen["Id"]),
        repo_digests=tuple(seen.get("RepoDigests") or ()),
        packages_digest=labels.get(PACKAGES_LABEL),
        size_bytes=int(seen.get("Size", 0)),
        architecture=str(seen.get("Architecture", "")),
        created=str(seen.get("Created", "")),
        current=labels.get(ENVIRONMENT_LABEL) == environment_digest(variant, base, host_mirror()),
    )


def read_manifest(client: docker.APIClient, image: str) -> bytes | None:
    """The package manifest of an image, read without starting it; None when it has none."""
    labels = {OWNER_LABEL: this_process(), ROLE_LABEL: "reader"}
    container = client.create_container(image, command=["/bin/true"], labels=labels)["Id"]
    try:
        opened = open_archive(client, container, MANIFEST)
        if opened is None:
            return None
        facts, response = opened
        with response:
            if not facts.regular or facts.size > MAX_MANIFEST_BYTES:
                return None
            with tarfile.open(fileobj=io.BytesIO(response.content)) as tar:
                member = tar.next()
                data = tar.extractfile(member) if member else None
                return data.read() if data else None
    finally:
        client.remove_container(container, force=True, v=True)


def build(
    client: docker.APIClient,
    *,
    image: str,
    variant: str,
    base: str = "",
    ca_bundle: Path | None = None,
    rebuild: bool = False,
    say: Callable[[str], None],
) -> ImageFacts:
    """Build ``image:variant``, unless the engine holds a current one; with ``rebuild`` from the ground.

    Raises:
        UsageError: there is no such variant.
        EnvironmentUnavailable: a step failed; the message holds its last words.
    """
    if variant not in variants():
        raise UsageError(f"there is no variant {variant!r}", todo=f"choose one of: {', '.join(variants())}")
    tag = f"{image}:{variant}"
    mirror = host_mirror()
    held = inspect(client, tag, variant=variant, base=base)
    if held and held.current and not rebuild:
        say(f"{tag} is up to date")
        return held
    identity = digest_of("base", {"suite": SUITE, "sources": mirror.sources, "settings": mirror.configuration})
    base_name = base_image(client, pinned=base, mirror=mirror, identity=identity.rsplit(":", 1)[1], say=say)
    say(f"building {tag} upon {base_name}")
    built = _run_build(
        client,
        _context(variant, mirror, ca_bundle),
        target=variant,
        nocache=rebuild,
        buildargs={"BASE": base_name, "APT_BUILD_OPTIONS": mirror.build_options},
        labels={ENVIRONMENT_LABEL: environment_digest(variant, base, mirror), VARIANT_LABEL: variant},
        say=say,
    )
    manifest = read_manifest(client, built)
    if manifest is None:
        raise EnvironmentUnavailable("the built image holds no package manifest")
    labelled = _tar({"Dockerfile": f"FROM {built}\n".encode()})
    _run_build(client, labelled, tag=tag, labels={PACKAGES_LABEL: digest_of_bytes(manifest)}, say=lambda _: None)
    made = inspect(client, tag, variant=variant, base=base)
    if made is None:
        raise EnvironmentUnavailable(f"the engine does not hold {tag} after building it")
    if held and held.image_id != made.image_id:
        with contextlib.suppress(*ENGINE_ERRORS):  # it stays as long as a machine is made from it
            client.remove_image(held.image_id)
    say(f"built {tag}: {made.image_id}")
    return made


def environment_digest(variant: str, base: str, mirror: AptMirror) -> str:
    """Tagged digest of all that decides what the image becomes, except the state of the package archives."""
    files = {name: digest_of_bytes(data) for name, data in _files(variant, mirror, b"").items()}
    return digest_of("environment", {"variant": variant, "base": base or f"mmdebstrap/{SUITE}", "files": files})


def _run_build(client: docker.APIClient, context: bytes, *, say: Callable[[str], None], **arguments: Any) -> str:
    """Send a context to the engine's builder, pass on its steps, return the image's id."""
    found = ""
    tail: list[str] = []
    try:
        events: Iterator[dict[str, Any]] = client.build(
            fileobj=io.BytesIO(context),
            custom_context=True,
            rm=True,
            forcerm=True,
            decode=True,
            timeout=3600,
            **arguments,
        )
        for event in events:
            if "error" in event:
                last = next((line for line in reversed(tail) if line.strip()), "")
                raise EnvironmentUnavailable(
                    f"the environment image could not be built: {str(event['error']).strip()}",
                    todo=f"its last words were: {last}" if last else "",
                )
            if "aux" in event and "ID" in event["aux"]:
                found = str(event["aux"]["ID"])
            text = str(event.get("stream", ""))
            tail = [*tail[-20:], *text.splitlines()]
            if text.startswith("Step "):
                say(_shortened(text))
    except ENGINE_ERRORS as exc:
        raise EnvironmentUnavailable(f"the environment image could not be built: {exc}") from exc
    return found


def _shortened(step: str, width: int = 96) -> str:
    line = " ".join(step.split())
    return line if len(line) <= width else f"{line[: width - 1]}…"


def _context(variant: str, mirror: AptMirror, ca_bundle: Path | None) -> bytes:
    return _tar(_files(variant, mirror, ca_bundle.read_bytes() if ca_bundle else b""))


def _files(variant: str, mirror: AptMirror, ca_bundle: bytes) -> dict[str, bytes]:
    source = resources.files("referee.adapters.docker") / "context"
    return {
        "Dockerfile": _needed(_dockerfile(), variant).encode(),
        "manifest.py": (source / "manifest.py").read_bytes(),
        "fetch/node.sh": (source / "fetch" / "node.sh").read_bytes(),
        "fetch/ca-bundle.pem": ca_bundle,
        "apt/mirror.sources": mirror.sources.encode(),
        "apt/mirror.conf": mirror.configuration.encode(),
    }


def _tar(files: dict[str, bytes]) -> bytes:
    """A tar that depends on nothing but the files' names and bytes."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, data in sorted(files.items()):
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(data), 0o644
            tar.addfile(member, io.BytesIO(data))
    return buffer.getvalue()


def _dockerfile() -> str:
    return (resources.files("referee.adapters.docker") / "context" / "Dockerfile").read_text(encoding="utf-8")


def _stages(dockerfile: str) -> list[tuple[str, set[str], str]]:
    """Each stage: its name, the stages it is made from, its text."""
    _, *parts = re.split(r"(?m)^(?=FROM )", dockerfile)
    found = []
    for part in parts:
        head = re.match(r"FROM (\S+) AS (\S+)", part)
        if head:
            sources = {head[1], *re.findall(r"(?m)^COPY --from=(\S+)", part)}
            found.append((head[2], sources, part))
    return found


def _needed(dockerfile: str, target: str) -> str:
    """The Dockerfile without the stages that ``target`` does not rest upon: the engine's builder runs all before it."""
    head = re.split(r"(?m)^FROM ", dockerfile, maxsplit=1)[0]
    wanted, kept = {target}, []
    for name, sources, text in reversed(_stages(dockerfile)):
        if name in wanted:
            wanted |= sources
            kept.append(text)
    return head + "".join(reversed(kept))
