"""What steers a project's test runs: its test files, its runners' configuration, hooks of the interpreter."""

from __future__ import annotations

import configparser
import json
import os
import re
import tomllib
from pathlib import Path, PurePosixPath
from typing import Any

from referee.benchmarks.bringup.reached import makefile_parts, test_scripts

#: Directories in which no test file of the project itself stands.
PRUNED = frozenset({".git", "node_modules", ".venv", "venv", ".tox", ".nox", "__pycache__", ".hg", ".eggs"})
_FOLDERS = frozenset({"test", "tests", "testing", "__tests__", "spec", "specs", "t", "__snapshots__", "__mocks__"})
_TEST_FILE = re.compile(
    r"test_.*\.py|.*_tests?\.py|.*[._-](?:test|spec)\.[cm]?[jt]sx?|.*_test\.go|.*_(?:spec|test)\.rb|.*Tests?\.(?:java|kt|php|cs)"
)
#: Configuration that is nothing but a runner's.
_CONFIGURES = re.compile(
    r"conftest\.py|\.?pytest\.(?:ini|toml)|noxfile\.py|(?:jest|vitest|karma|ava|cypress|playwright)\.(?:config|conf)\.[cm]?[jt]s(?:on)?|"
    r"vitest\.workspace\.[cm]?[jt]s(?:on)?|\.taprc|"
    r"\.mocharc\.\w+|\.rspec|phpunit\.xml(?:\.dist)?|CTestCustom\.cmake|\.coveragerc|runtests?\.\w+"
)
#: Files that steer tests and that a project must have brought itself.
_NEW = re.compile(
    r"conftest\.py|\.?pytest\.(?:ini|toml)|sitecustomize\.py|usercustomize\.py|(?:jest|vitest|karma|ava)\.(?:config|conf)\.[cm]?[jt]s(?:on)?|"
    r"vitest\.workspace\.[cm]?[jt]s(?:on)?|\.taprc|"
    r"\.mocharc\.\w+|\.rspec|phpunit\.xml"
)
_SHARED = frozenset({"pyproject.toml", "setup.cfg", "tox.ini", "package.json", "Makefile", "makefile", "GNUmakefile"})
_PACKAGE_KEYS = ("jest", "vitest", "mocha", "ava", "tap", "nyc", "c8")
#: More files or bytes of a pinned tree than these are not compared.
_MOST_FILES = 50_000
_MOST_FILE_BYTES = 20_000_000


def pinned_files(project: Path) -> dict[str, Path]:
    """The regular files of a pinned tree, by their path below it; nothing where there is no tree."""
    found: dict[str, Path] = {}
    for folder, folders, names in os.walk(project):
        folders[:] = sorted(set(folders) - PRUNED)
        for name in sorted(names):
            path = Path(folder, name)
            if path.is_symlink() or not path.is_file() or path.stat().st_size > _MOST_FILE_BYTES:
                continue
            found[path.relative_to(project).as_posix()] = path
            if len(found) >= _MOST_FILES:
                return found
    return found


def steers(name: str, *, new: bool = False) -> bool:
    """Whether a file as a whole steers tests.

    Args:
        name: its path below the project.
        new: the project does not have it; a new test file of the agent's own takes nothing away, so it does not count.
    """
    path = PurePosixPath(name)
    if new:
        return _NEW.fullmatch(path.name) is not None
    if path.name in _SHARED:
        return False
    return (
        bool(_FOLDERS & set(path.parts[:-1]))
        or _TEST_FILE.fullmatch(path.name) is not None
        or _CONFIGURES.fullmatch(path.name) is not None
    )


def steers_by_parts(name: str) -> bool:
    """Whether a file holds configuration of tests among other things."""
    return PurePosixPath(name).name in _SHARED


def parts_on_tests(name: str, data: bytes) -> dict[str, Any]:
    """The parts of such a file that steer tests; what cannot be read is a part of its own."""
    text = data.decode("utf-8", "replace")
    base = PurePosixPath(name).name
    try:
        if base == "package.json":
            return _of_package(json.loads(text))
        if base == "pyproject.toml":
            return _of_pyproject(tomllib.loads(text))
        if base in {"setup.cfg", "tox.ini"}:
            return _of_ini(text)
    except (ValueError, configparser.Error, RecursionError):
        return {"unreadable": text}
    return dict(makefile_parts(text))


def merged_package_json(now: bytes, pinned: bytes) -> bytes:
    """``package.json`` as it stands, with the pinned one's parts that steer tests: what was installed stays so."""
    try:
        wanted = _of_package(json.loads(pinned))
        document = json.loads(now)
    except (ValueError, RecursionError):
        return pinned
    if not isinstance(document, dict):
        return pinned
    for key in _PACKAGE_KEYS:
        document.pop(key, None)
    scripts = document.get("scripts")
    own = wanted.pop("scripts", {})
    scripts = scripts if isinstance(scripts, dict) else {}
    kept = {name: text for name, text in scripts.items() if name not in test_scripts(scripts)}
    document |= wanted
    document["scripts"] = kept | own
    return json.dumps(document, indent=2, ensure_ascii=False).encode() + b"\n"


def _of_package(document: Any) -> dict[str, Any]:
    if not isinstance(document, dict):
        return {}
    parts = {key: document[key] for key in _PACKAGE_KEYS if key in document}
    scripts = document.get("scripts")
    own = {name: scripts[name] for name in test_scripts(scripts)} if isinstance(scripts, dict) else {}
    return parts | ({"scripts": own} if own else {})


def _of_pyproject(document: dict[str, Any]) -> dict[str, Any]:
    tools = document.get("tool")
    wanted = ("pytest", "tox", "nox", "hatch", "pdm", "poe", "taskipy", "coverage")
    parts = {name: tools[name] for name in wanted if name in tools} if isinstance(tools, dict) else {}
    for name in ("hatch", "pdm"):
        if name in parts:
            parts[name] = {key: parts[name][key] for key in ("envs", "scripts") if key in parts[name]}
    return {name: value for name, value in parts.items() if value}


def _of_ini(text: str) -> dict[str, Any]:
    read = configparser.RawConfigParser(strict=False)
    read.read_string(text)
    return {
        name: dict(read.items(name))
        for name in read.sections()
        if name in {"pytest", "tool:pytest", "tox", "nosetests", "unittest"} or name.startswith("testenv")
    }
