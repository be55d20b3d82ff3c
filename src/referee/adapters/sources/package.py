"""Packages: a pinned artifact of PyPI or npm and its README, beside an empty project."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from referee.adapters.sources.artifacts import ArtifactFacts, read_artifact
from referee.adapters.sources.cache import Cache
from referee.adapters.sources.registries import Artifact, npm_download, pypi_choose, pypi_download
from referee.adapters.sources.tree import file_sha256
from referee.errors import DigestMismatch, NothingMatched, SourceUnreachable, UsageError
from referee.protocols import SUBJECT, Placement


class PackageSource:
    """Fetches ``package`` subjects through pip and npm as they are configured on this host.

    Args:
        cache: directory for fetched artifacts, by digest; it can be deleted without loss.
    """

    def __init__(self, cache: Path) -> None:
        self._cache = Cache(cache / "package")

    def fetch(self, pin: Mapping[str, object]) -> Placement:
        """Fetch, check against the pin and place: ``subject/`` holds the artifact and its README.

        Args:
            pin: ``name``, ``registry`` (``pypi`` or ``npm``), ``package``, ``version``, ``artifact``, ``sha256``.

        Raises:
            SourceUnreachable: the registry did not answer, or no longer has the artifact.
            DigestMismatch: the artifact is not the pinned one; the message names both digests.
            UsageError: the pin is incomplete, or the artifact is no archive.
        """
        artifact = Artifact(_text(pin, "package"), _text(pin, "version"), _text(pin, "artifact"))
        sha256, registry = _text(pin, "sha256"), _text(pin, "registry")
        if Path(artifact.filename).name != artifact.filename or artifact.filename.startswith("."):
            raise UsageError(f"{artifact.filename!r} is no name of an artifact")
        work = self._cache.find(f"{sha256}-{artifact.filename}")
        if work is not None and not _is_file_of(work / "subject" / artifact.filename, sha256):
            work = None
        if work is None:
            work = self._download(registry, artifact, sha256)
        facts = read_artifact(work / "subject" / artifact.filename)
        return _placement(work, pin, registry, artifact, facts)

    def resolve(self, registry: str, package: str, version: str | None, *, sdist: bool) -> dict[str, object]:
        """Pin a package: choose its artifact for the machine, download it and take its digest.

        Args:
            registry: ``pypi`` or ``npm``.
            package: its name there.
            version: a version, or None for the newest release.
            sdist: PyPI only: the source distribution even where a wheel fits.

        Returns:
            ``registry``, ``package``, ``version``, ``artifact``, ``sha256``: with a ``name``, what ``fetch`` takes.

        Raises:
            NothingMatched: there is no such package or version.
            SourceUnreachable: the registry did not answer.
        """
        with self._cache.scratch() as directory:
            scratch = Path(directory)
            if registry == "pypi":
                artifact = pypi_choose(package, version, sdist=sdist, scratch=scratch)
                file = pypi_download(artifact, scratch)
            else:
                artifact, file = npm_download(package, version, scratch)
            sha256 = file_sha256(file)
            self._keep(file, artifact, sha256)
        return {
            "registry": registry,
            "package": artifact.package,
            "version": artifact.version,
            "artifact": artifact.filename,
            "sha256": sha256,
        }

    def _download(self, registry: str, artifact: Artifact, sha256: str) -> Path:
        with self._cache.scratch() as directory:
            scratch = Path(directory)
            file = pypi_download(artifact, scratch) if registry == "pypi" else _npm_pinned(artifact, scratch)
            found = file_sha256(file)
            if found != sha256:
                raise DigestMismatch(
                    f"{artifact.filename} has the digest sha256:{found}, pinned is sha256:{sha256}",
                    todo="the registry serves other bytes than when the subject was pinned: check them, then pin anew",
                )
            return self._keep(file, artifact, sha256)

    def _keep(self, file: Path, artifact: Artifact, sha256: str) -> Path:
        def build(work: Path) -> None:
            (work / "project").mkdir()
            subject = work / "subject"
            subject.mkdir()
            shutil.copyfile(file, subject / artifact.filename)
            facts = read_artifact(subject / artifact.filename)
            if facts.readme is not None:
                (subject / facts.readme[0]).write_bytes(facts.readme[1])

        return self._cache.publish(f"{sha256}-{artifact.filename}", build)


def _npm_pinned(artifact: Artifact, scratch: Path) -> Path:
    try:
        return npm_download(artifact.package, artifact.version, scratch)[1]
    except NothingMatched as exc:
        raise SourceUnreachable(f"{exc.message} any more") from exc


def _placement(
    work: Path, pin: Mapping[str, object], registry: str, artifact: Artifact, facts: ArtifactFacts
) -> Placement:
    size = (work / "subject" / artifact.filename).stat().st_size
    return Placement(
        root=work,
        facts={
            "name": pin.get("name", artifact.package),
            "kind": "package",
            "ecosystem": registry,
            "package": artifact.package,
            "version": artifact.version,
            "artifact": f"{SUBJECT}/{artifact.filename}",
            "readme": f"{SUBJECT}/{facts.readme[0]}" if facts.readme is not None else None,
            "licence": facts.licence,
            "languages": facts.languages,
            "size_bytes": size,
        },
        size_bytes=size,
    )


def _is_file_of(path: Path, sha256: str) -> bool:
    return path.is_file() and file_sha256(path) == sha256


def _text(pin: Mapping[str, object], key: str) -> str:
    value = pin.get(key)
    if not isinstance(value, str) or not value:
        raise UsageError(f"the pin of a package needs {key}")
    return value
