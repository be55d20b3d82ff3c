"""PyPI through pip and npm through npm: which artifact a name means, and the bytes of a pinned one.

No registry is named here and no URL is built: what the two clients are configured for on this host applies, so
proxies, mirrors and private indexes work. No project code runs: pip is asked for the file alone (see
``pip_client``), npm is told to ignore scripts.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from packaging.tags import compatible_tags, cpython_tags
from packaging.utils import InvalidSdistFilename, InvalidWheelFilename, parse_sdist_filename, parse_wheel_filename
from packaging.version import InvalidVersion, Version

from referee.adapters.sources import pip_client, unpack
from referee.adapters.sources.programs import Outcome, run
from referee.errors import InternalError, NothingMatched, SourceUnreachable, UsageError

_PYPI_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")
_NPM_NAME = re.compile(r"(@[a-z0-9~-][a-z0-9._~-]*/)?[A-Za-z0-9~-][A-Za-z0-9._~-]*")
_VERSION = re.compile(r"[0-9A-Za-z][0-9A-Za-z.+!_-]*")
_NPM_MISSING = ("E404", "ETARGET", "ENOVERSIONS", "ENOENT")


@dataclass(frozen=True)
class Artifact:
    """One file of a registry: the package's own name, its version, the file's name."""

    package: str
    version: str
    filename: str


def checked_name(registry: str, name: str) -> str:
    """The name as it is, once it is certain that the client takes it for a name and nothing else.

    Raises:
        UsageError: it is no package name.
    """
    if not (_PYPI_NAME if registry == "pypi" else _NPM_NAME).fullmatch(name):
        raise UsageError(f"{name!r} is no {registry} package name")
    return name


def checked_version(version: str) -> str:
    """The version (npm: or a tag such as ``latest``) as it is. Raises UsageError: it is none."""
    if not _VERSION.fullmatch(version):
        raise UsageError(f"{version!r} is no version")
    return version


# -- PyPI ------------------------------------------------------------------------------------------------------


def pypi_choose(name: str, version: str | None, *, sdist: bool, scratch: Path) -> Artifact:
    """The artifact that pip would take in the machine: the newest release, its best wheel, else its sdist.

    Args:
        name: the project's name.
        version: the wanted version; None for the newest that is neither a pre-release nor yanked.
        sdist: take the source distribution even where a wheel fits.
        scratch: an empty directory.

    Raises:
        NothingMatched: the index has no such project, version or kind of file.
        SourceUnreachable: an index did not answer.
    """
    answer = _pip("list", checked_name("pypi", name), "", scratch)
    releases: dict[Version, list[Mapping[str, Any]]] = {}
    for entry in answer["files"]:
        try:
            releases.setdefault(Version(str(entry["version"])), []).append(entry)
        except InvalidVersion:
            continue
    if not releases:
        _raise_if_unreachable(name, answer)
        raise NothingMatched(f"the Python package index has nothing named {name!r} for the machine's Python 3.11")
    chosen = _newest(releases) if version is None else _same(releases, version)
    if chosen is None:
        raise NothingMatched(
            f"{name} {version or ''} is not in the Python package index".replace("  ", " "),
            todo=f"the newest is {max(releases)}",
        )
    files = [str(entry["filename"]) for entry in releases[chosen]]
    filename = _best_file(files, sdist=sdist)
    if filename is None:
        wanted = "source distribution" if sdist else "file that fits the machine"
        raise NothingMatched(f"{name} {chosen} has no {wanted}")
    return Artifact(name, str(chosen), filename)


def _newest(releases: Mapping[Version, list[Mapping[str, Any]]]) -> Version | None:
    whole = [version for version, files in releases.items() if not all(file["yanked"] for file in files)]
    final = [version for version in whole if not version.is_prerelease]
    return max(final or whole, default=None)


def _same(releases: Mapping[Version, list[Mapping[str, Any]]], version: str) -> Version | None:
    try:
        wanted = Version(checked_version(version))
    except InvalidVersion as exc:
        raise UsageError(f"{version!r} is no version of a Python package") from exc
    return wanted if wanted in releases else None


@cache
def _tag_ranks() -> dict[Any, int]:
    tags = [
        *cpython_tags((3, 11), abis=["cp311"], platforms=pip_client.PLATFORMS),
        *compatible_tags((3, 11), interpreter="cp311", platforms=pip_client.PLATFORMS),
    ]
    return {tag: rank for rank, tag in reversed(list(enumerate(tags)))}


def _best_file(files: list[str], *, sdist: bool) -> str | None:
    ranks = _tag_ranks()
    wheels: list[tuple[int, str]] = []
    sdists: list[str] = []
    for filename in files:
        try:
            fitting = [ranks[tag] for tag in parse_wheel_filename(filename)[3] if tag in ranks]
            wheels += [(min(fitting), filename)] if fitting else []
        except InvalidWheelFilename:
            sdists += [filename] if _is_sdist(filename) else []
    if wheels and not sdist:
        return min(wheels)[1]
    return min(sdists, key=lambda filename: (not filename.endswith(".tar.gz"), filename), default=None)


def _is_sdist(filename: str) -> bool:
    try:
        parse_sdist_filename(filename)
    except (InvalidSdistFilename, InvalidVersion):
        return filename.endswith(".tar.bz2")
    return True


def pypi_download(artifact: Artifact, scratch: Path) -> Path:
    """Download one file of a project; nothing of it runs.

    Raises:
        SourceUnreachable: no index answered, or none has the file any more.
    """
    answer = _pip("get", checked_name("pypi", artifact.package), artifact.filename, scratch)
    if answer["file"] is None:
        _raise_if_unreachable(artifact.package, answer)
        raise SourceUnreachable(f"the Python package index has no {artifact.filename} any more")
    return Path(str(answer["file"]))


def _pip(mode: str, project: str, filename: str, scratch: Path) -> dict[str, Any]:
    result = scratch / "answer.json"
    arguments = [str(result), mode, project, filename, str(scratch), *pip_client.target_options()]
    outcome: Outcome | None = None
    for python in _pythons():
        outcome = run([python, pip_client.__file__, *arguments], cwd=scratch)
        if result.is_file():
            try:
                answer: dict[str, Any] = json.loads(result.read_text(encoding="utf-8"))
            except ValueError:  # cut off: the disk is full, or it was killed
                break
            result.unlink()
            return answer
        if "No module named 'pip'" not in outcome.stderr:
            break
    said = outcome.last_words() if outcome is not None else "no Python was found"
    raise SourceUnreachable(f"pip could not be asked for {project}: {said}", todo="install pip beside the referee")


def _pythons() -> Iterator[str]:
    yield sys.executable
    other = shutil.which("python3")
    if other is not None and other != sys.executable:
        yield other


def _raise_if_unreachable(name: str, answer: Mapping[str, Any]) -> None:
    if answer["troubles"]:
        raise SourceUnreachable(
            f"the Python package index could not be reached for {name}: {answer['troubles'][-1]}",
            todo="check the network and pip's index configuration (`pip config list`)",
        )


# -- npm -------------------------------------------------------------------------------------------------------


def npm_download(name: str, version: str | None, scratch: Path) -> tuple[Artifact, Path]:
    """Download a package's tarball with ``npm pack``; no lifecycle script runs.

    Args:
        name: the package's name, with its scope.
        version: a version, or None for the one tagged latest.
        scratch: an empty directory.

    Raises:
        NothingMatched: the registry has no such package or version.
        SourceUnreachable: the registry did not answer, or npm is not installed.
    """
    spec = f"{checked_name('npm', name)}@{checked_version(version or 'latest')}"
    argv = [
        _npm(),
        "pack",
        spec,
        "--ignore-scripts",
        "--json",
        "--no-update-notifier",
        "--pack-destination",
        str(scratch),
    ]
    outcome = run(argv, cwd=scratch, environment={"NO_COLOR": "1"})
    packed = sorted(scratch.glob("*.tgz"))
    if outcome.status != 0 or len(packed) != 1:
        said = outcome.stderr + outcome.stdout
        if any(code in said for code in _NPM_MISSING):
            raise NothingMatched(f"the npm registry has no {spec}")
        raise SourceUnreachable(
            f"the npm registry could not be reached for {spec}: {_npm_reason(said) or outcome.last_words()}",
            todo="check the network and npm's registry configuration (`npm config list`)",
        )
    return _npm_artifact(packed[0]), packed[0]


def _npm() -> str:
    beside = Path(sys.executable).parent / "npm"
    return shutil.which("npm") or (str(beside) if beside.is_file() else "npm")


def _npm_reason(said: str) -> str | None:
    codes = re.findall(r"\b(E[A-Z_]{4,}|ENOTFOUND|EAI_AGAIN)\b", said)
    return codes[0] if codes else None


def _npm_artifact(tarball: Path) -> Artifact:
    manifest = npm_manifest(tarball)
    name, version = manifest.get("name"), manifest.get("version")
    if not isinstance(name, str) or not isinstance(version, str):
        raise UsageError(f"the package.json in {tarball.name} names no package and version")
    flat = name.removeprefix("@").replace("/", "-")
    return Artifact(name, version, f"{flat}-{version}.tgz")


def npm_manifest(tarball: Path) -> dict[str, Any]:
    """The ``package.json`` of a package tarball. Raises UsageError: there is none, or it is no JSON object."""
    with unpack.open_tar(tarball) as archive:
        for member in unpack.members(archive):
            if member.isreg() and member.name.count("/") == 1 and member.name.endswith("/package.json"):
                value = json.loads(read_member(archive, member))
                if isinstance(value, dict):
                    return value
    raise UsageError(f"{tarball.name} holds no package.json")


def read_member(archive: tarfile.TarFile, member: tarfile.TarInfo, cap: int = 4 << 20) -> bytes:
    """At most ``cap`` bytes of a regular member."""
    file = archive.extractfile(member)
    if file is None:
        raise InternalError(f"{member.name} was taken for a regular file")
    with file:
        return file.read(cap)
