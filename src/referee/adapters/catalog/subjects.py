"""Subjects: one pinned project, one TOML file, in the workspace's ``subjects/`` or bundled with the package."""

from __future__ import annotations

import difflib
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator

from referee.adapters.catalog.workspace import one_sentence
from referee.core import toml_text
from referee.core.budgets import Tier
from referee.core.canonical import digest_of
from referee.core.records import SubjectRef
from referee.errors import ConfigError, NothingMatched

SCHEMA = "referee.subject/1"
BUNDLED = Path(__file__).resolve().parents[2] / "bundled" / "subjects"

#: What `make demo` measures: one from PyPI, one from npm, one local tree; all easy.
DEMO_SUBJECTS = ("segno", "ms", "env-example")

#: Licences that methodology §3 calls permissive, as SPDX identifiers.
PERMISSIVE = frozenset(
    {
        *("0BSD", "Apache-2.0", "BSD-1-Clause", "BSD-2-Clause", "BSD-3-Clause", "BSL-1.0", "HPND", "ISC", "MIT"),
        *("MIT-0", "MIT-CMU", "PSF-2.0", "PostgreSQL", "Python-2.0", "UPL-1.0", "Unlicense", "Zlib"),
    }
)

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,99}")
_FILE_NAME = r"^[A-Za-z0-9][A-Za-z0-9._+!-]{0,199}$"
_URL = r"^(https|http|ssh|git|file)://[^\s]+$"
_PACKAGE = r"^(@[a-z0-9~-][a-z0-9._~-]*/)?[A-Za-z0-9~-][A-Za-z0-9._~-]*$"
_VERSION = r"^[0-9A-Za-z][0-9A-Za-z.+!_-]*$"

Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class PackagePin(_Section):
    """One artifact of one version in a package registry."""

    registry: Literal["pypi", "npm"]
    name: str = Field(pattern=_PACKAGE)
    version: str = Field(pattern=_VERSION)
    artifact: str = Field(pattern=_FILE_NAME)
    sha256: Sha256


class RepositoryPin(_Section):
    """A git commit, or a local tree or archive.

    ``sha256`` is the digest of an archive's bytes, or of a tree in the form that ``adapters.sources.tree`` writes
    down. A local path must carry it; for a commit it is a second check beside the commit's own name.
    """

    url: str | None = Field(default=None, pattern=_URL)
    commit: str | None = Field(default=None, pattern=r"^[0-9a-f]{40}$")
    path: str | None = Field(default=None, min_length=1)
    sha256: Sha256 | None = None

    @model_validator(mode="after")
    def _one_way(self) -> RepositoryPin:
        if (self.url is None) == (self.path is None):
            raise ValueError("name either url and commit, or path and sha256")
        if self.url is not None and self.commit is None:
            raise ValueError("a url needs the commit it is pinned to")
        if self.path is not None and self.commit is not None:
            raise ValueError("a path is pinned by sha256, not by commit")
        if self.path is not None and self.sha256 is None:
            raise ValueError("a path needs the sha256 it is pinned to")
        return self


class Facts(_Section):
    """What was seen when the subject was pinned. None means: not known.

    A cycle needs a permissive ``licence`` (SPDX), a ``readme`` and ``languages`` (methodology §3); ``size_bytes``
    chooses the tier (§4). ``languages`` stand in order of their share, largest first.
    """

    licence: str | None = None
    readme: bool | None = None
    size_bytes: int | None = Field(default=None, ge=0)
    languages: tuple[str, ...] = Field(default=(), strict=False)


class SubjectFile(_Section):
    """The content of a subject's TOML file."""

    schema_: Literal["referee.subject/1"] = Field(alias="schema")
    name: str
    kind: Literal["package", "repository"]
    summary: str = Field(min_length=1, max_length=300)
    tier: Tier | None = None
    display: bool = False
    gpu: bool = False
    package: PackagePin | None = None
    repository: RepositoryPin | None = None
    facts: Facts = Facts()

    @model_validator(mode="after")
    def _pinned_by_its_kind(self) -> SubjectFile:
        if not _NAME.fullmatch(self.name):
            raise ValueError(
                f"the name {self.name!r} must be of a-z, 0-9, '.', '_' and '-', and begin with one of a-z0-9"
            )
        if "\n" in self.summary:
            raise ValueError("the summary must be one line")
        other = "repository" if self.kind == "package" else "package"
        if getattr(self, self.kind) is None:
            raise ValueError(f"kind {self.kind!r} needs a table [{self.kind}]")
        if getattr(self, other) is not None:
            raise ValueError(f"kind {self.kind!r} has no table [{other}]")
        return self


@dataclass(frozen=True)
class Subject:
    """A subject as it was read: its file, the exact bytes of it, its content, and the content's digest."""

    file: Path
    file_bytes: bytes
    content: SubjectFile
    digest: str

    @property
    def name(self) -> str:
        """The subject's name."""
        return self.content.name

    @property
    def kind(self) -> Literal["package", "repository"]:
        """The source kind."""
        return self.content.kind

    @property
    def bundled(self) -> bool:
        """Whether it came with the package."""
        return self.file.parent == BUNDLED

    def pin(self) -> dict[str, object]:
        """What ``protocols.Source.fetch`` takes: plain values, a local path made absolute."""
        content = self.content
        pin: dict[str, object] = {"kind": content.kind, "name": content.name, "display": content.display}
        if content.package is not None:
            package = content.package
            pin |= {"registry": package.registry, "package": package.name, "version": package.version}
            pin |= {"artifact": package.artifact, "sha256": package.sha256}
        if content.repository is not None:
            repository = content.repository
            pin |= repository.model_dump(exclude_none=True)
            if repository.path is not None:
                pin["path"] = str((self.file.parent / repository.path).resolve())
        return pin

    def pin_text(self) -> str:
        """The pin in one line, for records and pages."""
        if self.content.package is not None:
            package = self.content.package
            separator = "==" if package.registry == "pypi" else "@"
            return f"{package.registry}:{package.name}{separator}{package.version} sha256:{package.sha256}"
        repository = self.content.repository
        if repository is None:  # the schema refuses it
            raise ConfigError(f"{self.file}: the subject has no pin")
        if repository.url is not None:
            return f"{repository.url}@{repository.commit}"
        return f"local sha256:{repository.sha256}"

    def ref(self) -> SubjectRef:
        """The subject as records keep it."""
        return SubjectRef(name=self.name, kind=self.kind, pin=self.pin_text(), file_digest=self.digest)

    def cycle_objections(self) -> list[str]:
        """Why the subject may not enter a cycle's pool (methodology §3); empty when it may."""
        facts = self.content.facts
        objections = []
        if facts.licence is None:
            objections.append("its licence is not known")
        elif not _permissive(facts.licence):
            objections.append(f"its licence {facts.licence} is not permissive")
        if not facts.readme:
            objections.append("it has no README" if facts.readme is False else "its README is not known")
        if not facts.languages:
            objections.append("its languages are not known")
        if facts.size_bytes is None:
            objections.append("its size is not known")
        return objections


def _permissive(expression: str) -> bool:
    """Whether an SPDX expression leaves a permissive choice: one of the OR alternatives, all of its AND parts."""
    flat = expression.replace("(", " ").replace(")", " ")
    return any(all(part.strip() in PERMISSIVE for part in way.split(" AND ")) for way in flat.split(" OR "))


def load_subject(path: Path) -> Subject:
    """Read and check one subject file.

    Raises:
        ConfigError: one sentence naming the file and its first breach; broken TOML is named with its line.
    """
    try:
        data = path.read_bytes()
    except OSError as exc:
        raise ConfigError(f"{path} cannot be read: {exc.strerror}") from exc
    return parse_subject(data, path)


def parse_subject(data: bytes, path: Path) -> Subject:
    """Check the bytes of a subject file that stands, or is about to stand, at ``path``; raises as ``load_subject``."""
    try:
        raw: dict[str, Any] = toml_text.loads(data.decode("utf-8"))
        content = SubjectFile.model_validate(raw)
    except UnicodeDecodeError as exc:
        raise ConfigError(f"{path} is not UTF-8: byte {exc.start} cannot be decoded") from exc
    except tomllib.TOMLDecodeError as exc:
        raise ConfigError(f"{path} is no TOML: {exc}") from exc
    except ValidationError as exc:
        raise ConfigError(f"{path}: {_breach(exc)}") from exc
    return Subject(path, data, content, digest_of("subject", raw))


def _breach(exc: ValidationError) -> str:
    first = exc.errors(include_url=False, include_input=False)[0]
    place = ".".join(str(part) for part in first["loc"])
    if place.endswith("sha256"):
        return f"{place}: a digest is 64 hexadecimal digits in lower case"
    if place.endswith("commit"):
        return f"{place}: a commit is 40 hexadecimal digits in lower case"
    return one_sentence(exc, SubjectFile).replace("Value error, ", "")


def find_subject(name_or_path: str, workspace_dir: Path) -> Subject:
    """The subject of that name in the workspace ``workspace_dir``, else the bundled one; or the file at a path.

    Raises:
        NothingMatched: there is none; ``todo`` names the closest.
        ConfigError: its file cannot be used.
    """
    if name_or_path.endswith(".toml"):
        path = Path(name_or_path)
        if not path.is_file():
            raise NothingMatched(f"the subject file {name_or_path} does not exist")
        return load_subject(path.absolute())
    if _NAME.fullmatch(name_or_path):
        for directory in (workspace_dir / "subjects", BUNDLED):
            path = directory / f"{name_or_path}.toml"
            if path.is_file():
                return _named_as_its_file(load_subject(path))
    raise _no_such_subject(name_or_path, workspace_dir)


def _no_such_subject(name: str, workspace_dir: Path) -> NothingMatched:
    known = sorted(_files(workspace_dir))
    close = difflib.get_close_matches(name.lower(), known, n=3, cutoff=0.5)
    todo = f"did you mean {' or '.join(close)}?" if close else "`referee subject list` names those there are"
    return NothingMatched(f"no subject is named {name!r}", todo=todo)


def _named_as_its_file(subject: Subject) -> Subject:
    if subject.file.name != f"{subject.name}.toml":
        raise ConfigError(
            f"{subject.file}: the subject's name is {subject.name!r}, its file must be {subject.name}.toml"
        )
    return subject


def _files(workspace_dir: Path) -> dict[str, Path]:
    files: dict[str, Path] = {}
    for directory in (BUNDLED, workspace_dir / "subjects"):
        if directory.is_dir():
            files |= {path.stem: path for path in directory.glob("*.toml")}
    return files


def list_subjects(workspace_dir: Path) -> list[Subject]:
    """Every subject, by name; the workspace's file stands before a bundled one of the same name.

    Raises:
        ConfigError: a file cannot be used.
    """
    return [_named_as_its_file(load_subject(path)) for _, path in sorted(_files(workspace_dir).items())]
