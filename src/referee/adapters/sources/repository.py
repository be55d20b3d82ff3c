"""Repositories: a pinned git commit, or a local tree or archive pinned by its digest."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from referee.adapters.sources import git, survey
from referee.adapters.sources.cache import Cache
from referee.adapters.sources.tree import copy_tree, file_sha256, size_of, tree_sha256, walk
from referee.adapters.sources.unpack import unpack
from referee.errors import DigestMismatch, SourceUnreachable, UsageError
from referee.protocols import PROJECT, Placement

#: How many submodules or LFS pointers are named; the count is always whole.
_NAMED = 100


class RepositorySource:
    """Fetches ``repository`` subjects: the pinned commit only, never the history.

    Args:
        cache: directory for fetched trees, by pin; it can be deleted without loss.
    """

    def __init__(self, cache: Path) -> None:
        self._cache = Cache(cache / "repository")

    def fetch(self, pin: Mapping[str, object]) -> Placement:
        """Fetch, check against the pin and place: ``project/`` holds the tree.

        A git commit keeps a ``.git`` with that one commit and its origin; a local tree or archive has none.

        Args:
            pin: ``name``, and either ``url`` and ``commit`` (and ``sha256`` of the tree, if it is to be checked
                too) or an absolute ``path`` and ``sha256``.

        Raises:
            SourceUnreachable: the host did not answer, or the commit or path is not there.
            DigestMismatch: what was fetched is not what is pinned.
            UsageError: the pin is incomplete, or the tree or archive cannot be used.
        """
        url, commit, path, sha256 = (_text(pin, key) for key in ("url", "commit", "path", "sha256"))
        if url is not None and commit is not None:
            work = self._of_commit(url, commit)
            if sha256 is not None:
                _compare(tree_sha256(work / "project"), sha256, f"the tree of {url} at {commit}")
        elif path is not None and sha256 is not None:
            work = self._of_path(Path(path), sha256)
        else:
            raise UsageError("the pin of a repository needs url and commit, or path and sha256")
        return _placement(work, pin)

    def resolve(self, url: str, commit: str | None = None) -> dict[str, object]:
        """Pin a repository at ``commit``, by default the one that its default branch stands at now.

        Returns:
            ``url``, ``commit`` and the tree's ``sha256``.
        """
        if commit is None:
            with self._cache.scratch() as scratch:
                commit = git.head_commit(url, Path(scratch))
        work = self._of_commit(url, commit)
        return {"url": url, "commit": commit, "sha256": tree_sha256(work / "project")}

    def resolve_path(self, path: Path) -> dict[str, object]:
        """Pin a local tree or archive as it is now: absolute ``path`` and ``sha256``."""
        if path.is_dir():
            return {"path": str(path.resolve()), "sha256": tree_sha256(path)}
        if not path.is_file():
            raise SourceUnreachable(f"{path} does not exist")
        return {"path": str(path.resolve()), "sha256": file_sha256(path)}

    def _of_commit(self, url: str, commit: str) -> Path:
        def build(work: Path) -> None:
            (work / "subject").mkdir()
            git.fetch_commit(url, commit, work / "project")

        git.checked_url(url)  # also where the commit is in the cache already
        return self._cache.find(commit) or self._cache.publish(commit, build)

    def _of_path(self, path: Path, sha256: str) -> Path:
        if not path.exists():
            raise SourceUnreachable(f"{path} does not exist")
        is_tree = path.is_dir()
        _compare(tree_sha256(path) if is_tree else file_sha256(path), sha256, str(path))

        def build(work: Path) -> None:
            project = work / "project"
            (work / "subject").mkdir()
            if is_tree:
                copy_tree(path, project)
            else:
                unpack(path, project)
            # As git does at a checkout: a submodule that is not fetched is an empty directory.
            for module in survey.gitmodules(project):
                _make_inside(project, module["path"])

        key = f"{'tree' if is_tree else 'archive'}-{sha256}"
        work = self._cache.find(key) or self._cache.publish(key, build)
        if is_tree:
            _compare(tree_sha256(work / "project"), sha256, f"{path} (changed while it was copied)")
        return work


def _make_inside(project: Path, relative: str) -> None:
    place = project / relative
    if not place.parent.resolve().is_relative_to(project.resolve()):
        raise UsageError(f"the submodule path {relative!r} leaves the project through a link")
    if not place.is_symlink() and not place.exists():
        place.mkdir(parents=True)


def _compare(found: str, pinned: str, what: str) -> None:
    if found != pinned:
        raise DigestMismatch(
            f"{what} has the digest sha256:{found}, pinned is sha256:{pinned}",
            todo="check what changed, then pin the subject anew",
        )


def _placement(work: Path, pin: Mapping[str, object]) -> Placement:
    project = work / "project"
    files = [(path.decode("utf-8", errors="replace"), status.st_size) for path, status in walk(project)]
    pointers = sorted(
        name for name, size in files if not (project / name).is_symlink() and _is_pointer(project / name, size)
    )
    modules = _submodules(project)
    readme = survey.find_readme(project)
    size = size_of(project)
    facts: dict[str, object] = {
        "name": pin.get("name"),
        "kind": "repository",
        "ecosystem": None,
        "package": None,
        "version": None,
        "artifact": None,
        "url": pin.get("url"),
        "commit": pin.get("commit"),
        "readme": f"{PROJECT}/{readme.name}" if readme is not None else None,
        "licence": survey.licence_of_tree(project),
        "languages": survey.languages(files),
        "size_bytes": size,
        "submodules": modules[:_NAMED],
        "submodules_count": len(modules),
        "lfs_pointers": pointers[:_NAMED],
        "lfs_pointers_count": len(pointers),
    }
    return Placement(root=work, facts=facts, size_bytes=size)


def _is_pointer(path: Path, size: int) -> bool:
    return path.is_file() and survey.is_lfs_pointer(path, size)


def _submodules(project: Path) -> list[dict[str, str]]:
    links = git.gitlinks(project) if (project / ".git").is_dir() and shutil.which("git") else {}
    modules = survey.gitmodules(project)
    for module in modules:
        if module["path"] in links:
            module["commit"] = links[module["path"]]
    named = {module["path"] for module in modules}
    return modules + [{"path": path, "commit": commit} for path, commit in links.items() if path not in named]


def _text(pin: Mapping[str, object], key: str) -> str | None:
    value = pin.get(key)
    if value is not None and not isinstance(value, str):
        raise UsageError(f"the pin's {key} must be text")
    return value
