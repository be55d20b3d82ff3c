"""What a package's artifact says of itself: README, licence, languages. Read, never run."""

from __future__ import annotations

import json
import tarfile
import zipfile
from dataclasses import dataclass, field
from email.message import Message
from email.parser import BytesParser
from pathlib import Path, PurePosixPath

from referee.adapters.sources import survey, unpack
from referee.adapters.sources.registries import read_member
from referee.errors import UsageError

_CAP = 4 << 20
_CONTENT_TYPES = {"text/markdown": "README.md", "text/x-rst": "README.rst", "text/plain": "README.txt"}


@dataclass
class Contents:
    """The files of an artifact that tell what it is, and the names and sizes of all."""

    metadata: bytes | None = None
    manifest: bytes | None = None
    readmes: dict[str, bytes] = field(default_factory=dict)
    licences: dict[str, str] = field(default_factory=dict)
    files: list[tuple[str, int]] = field(default_factory=list)


@dataclass(frozen=True)
class ArtifactFacts:
    """README (its file name and bytes), licence (SPDX or None) and languages of an artifact."""

    readme: tuple[str, bytes] | None
    licence: str | None
    languages: list[str]


def read_artifact(path: Path) -> ArtifactFacts:
    """Read a wheel, a source distribution or an npm tarball.

    Raises:
        UsageError: the file is no archive, or a broken one.
    """
    contents = _read_zip(path) if unpack.is_zip(path) else _read_tar(path)
    metadata = BytesParser().parsebytes(contents.metadata) if contents.metadata is not None else None
    manifest = _json_object(contents.manifest)
    return ArtifactFacts(
        readme=(_readme_of_metadata(metadata) if metadata is not None else None) or _readme_of_files(contents.readmes),
        licence=_licence(metadata, manifest) or survey.licence_of_texts(contents.licences),
        languages=survey.languages(contents.files),
    )


def _read_zip(path: Path) -> Contents:
    contents = Contents()
    try:
        with zipfile.ZipFile(path) as archive:
            for entry in archive.infolist():
                if not entry.is_dir():
                    contents.files.append((entry.filename, entry.file_size))
                    if _tells(entry.filename):
                        with archive.open(entry) as file:
                            _take(contents, entry.filename, file.read(_CAP))
    except (zipfile.BadZipFile, OSError, RuntimeError, NotImplementedError) as exc:
        raise UsageError(f"{path.name} cannot be read: {exc}") from exc
    return contents


def _read_tar(path: Path) -> Contents:
    contents = Contents()
    with unpack.open_tar(path) as archive:
        for member in unpack.members(archive):
            if member.isreg():
                contents.files.append((member.name, member.size))
                if _tells(member.name):
                    _take(contents, member.name, _bytes_of(archive, member))
    return contents


def _bytes_of(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    return read_member(archive, member, _CAP)


def _tells(name: str) -> bool:
    parts = PurePosixPath(name).parts
    if len(parts) in {2, 3} and parts[0].endswith(".dist-info"):
        return parts[1] in {"METADATA", "licenses"} or bool(survey.LICENCE_FILE.fullmatch(parts[1]))
    if len(parts) != 2:  # noqa: PLR2004 — directory and file: the top of a source distribution or an npm tarball
        return False
    last = parts[1]
    return last in {"PKG-INFO", "package.json"} or any(
        pattern.fullmatch(last) for pattern in (survey.README_FILE, survey.LICENCE_FILE)
    )


def _take(contents: Contents, name: str, data: bytes) -> None:
    last = PurePosixPath(name).name
    if last in {"METADATA", "PKG-INFO"}:
        contents.metadata = data
    elif last == "package.json":
        contents.manifest = data
    elif survey.README_FILE.fullmatch(last):
        contents.readmes[last] = data
    elif survey.LICENCE_FILE.fullmatch(last):
        contents.licences[name] = data.decode("utf-8", errors="replace")


def _json_object(data: bytes | None) -> dict[str, object]:
    try:
        value = json.loads(data) if data is not None else {}
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _readme_of_metadata(metadata: Message) -> tuple[str, bytes] | None:
    body = metadata.get_payload(decode=True)
    text = body if isinstance(body, bytes) and body.strip() else _folded(metadata.get("Description"))
    if not text.strip() or text.strip() == b"UNKNOWN":
        return None
    content_type = str(metadata.get("Description-Content-Type") or "").split(";")[0].strip().lower()
    # Without a content type the index renders reStructuredText; so does this.
    return _CONTENT_TYPES.get(content_type, "README.rst"), text


def _folded(description: object) -> bytes:
    """A description kept in a header: each further line is indented by eight blanks, or by seven and a bar."""
    lines = str(description or "").splitlines()
    rest = [line[8:] if line[:8] in {" " * 8, " " * 7 + "|"} else line for line in lines[1:]]
    return "\n".join(lines[:1] + rest).encode("utf-8", errors="replace")


def _readme_of_files(readmes: dict[str, bytes]) -> tuple[str, bytes] | None:
    if not readmes:
        return None
    name = min(readmes, key=survey.readme_rank)
    suffix = {0: ".md", 1: ".rst"}.get(survey.readme_rank(name)[0], ".txt")
    return f"README{suffix}", readmes[name]


def _licence(metadata: Message | None, manifest: dict[str, object]) -> str | None:
    if metadata is not None:
        return (
            survey.spdx(metadata.get("License-Expression"))
            or survey.licence_of_classifiers(metadata.get_all("Classifier") or [])
            or survey.spdx(metadata.get("License"))
        )
    named = manifest.get("license")
    return survey.spdx(named) if isinstance(named, str) else None
