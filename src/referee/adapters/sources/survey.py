"""What a tree or an artifact is, seen without running it: licence, README, languages, submodules, LFS pointers."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath

from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression

_LANGUAGES = {
    "Python": (".py", ".pyx", ".pyi"),
    "JavaScript": (".js", ".mjs", ".cjs", ".jsx"),
    "TypeScript": (".ts", ".mts", ".cts", ".tsx"),
    "C": (".c", ".h"),
    "C++": (".cc", ".cpp", ".cxx", ".hpp", ".hh"),
    "Rust": (".rs",),
    "Go": (".go",),
    "Java": (".java",),
    "Kotlin": (".kt", ".kts"),
    "C#": (".cs",),
    "Ruby": (".rb",),
    "PHP": (".php",),
    "Shell": (".sh", ".bash"),
    "Swift": (".swift",),
    "Scala": (".scala",),
    "Vue": (".vue",),
    "Svelte": (".svelte",),
    "Elixir": (".ex", ".exs"),
    "Lua": (".lua",),
    "Perl": (".pl", ".pm"),
    "R": (".r",),
    "Dart": (".dart",),
    "Zig": (".zig",),
    "Haskell": (".hs",),
    "HTML": (".html", ".htm"),
    "CSS": (".css", ".scss"),
}
_BY_EXTENSION = {extension: language for language, extensions in _LANGUAGES.items() for extension in extensions}
_SHARE_THAT_COUNTS = 0.01

#: Classifiers that name exactly one licence; "BSD License" and the like name several and are no answer.
_CLASSIFIERS = {
    "License :: OSI Approved :: MIT License": "MIT",
    "License :: OSI Approved :: MIT No Attribution License (MIT-0)": "MIT-0",
    "License :: OSI Approved :: ISC License (ISCL)": "ISC",
    "License :: OSI Approved :: Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "License :: OSI Approved :: The Unlicense (Unlicense)": "Unlicense",
    "License :: OSI Approved :: Boost Software License 1.0 (BSL-1.0)": "BSL-1.0",
    "License :: OSI Approved :: GNU General Public License v2 (GPLv2)": "GPL-2.0-only",
    "License :: OSI Approved :: GNU General Public License v3 (GPLv3)": "GPL-3.0-only",
    "License :: OSI Approved :: GNU General Public License v2 or later (GPLv2+)": "GPL-2.0-or-later",
    "License :: OSI Approved :: GNU General Public License v3 or later (GPLv3+)": "GPL-3.0-or-later",
    "License :: OSI Approved :: GNU Affero General Public License v3": "AGPL-3.0-only",
}

#: Names in full that stand in metadata where an SPDX identifier should: each means exactly one licence.
_NAMES = {
    "apache 2": "Apache-2.0",
    "apache 2.0": "Apache-2.0",
    "apache license 2.0": "Apache-2.0",
    "apache license version 2.0": "Apache-2.0",
    "apache software license 2.0": "Apache-2.0",
    "bsd 2-clause license": "BSD-2-Clause",
    "bsd 3-clause license": "BSD-3-Clause",
    "isc license": "ISC",
    "mit license": "MIT",
    "mozilla public license 2.0": "MPL-2.0",
    "the mit license": "MIT",
}

_SPDX_LINE = re.compile(r"^\W*SPDX-License-Identifier:\s*([^\n]*[^\s*/])", re.MULTILINE)

#: For each licence, pieces of its text that must all stand in the file, and pieces that must not.
_TEXTS: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = (
    ("Apache-2.0", ("apache license", "version 2.0, january 2004", "terms and conditions for use, reproduction"), ()),
    ("MPL-2.0", ("mozilla public license version 2.0", '1.1. "contributor"'), ()),
    (
        "MIT",
        (
            "permission is hereby granted, free of charge, to any person obtaining a copy",
            "the above copyright notice and this permission notice shall be included in all",
            'the software is provided "as is"',
        ),
        ("except as contained in this notice", "shall be used for good"),
    ),
    (
        "ISC",
        (
            "permission to use, copy, modify, and/or distribute this software for any purpose with or without fee",
            "provided that the above copyright notice and this permission notice appear in all copies",
        ),
        (),
    ),
    (
        "BSD-3-Clause",
        (
            "redistributions of source code must retain the above copyright",
            "redistributions in binary form must reproduce the above copyright",
            "may be used to endorse or promote products derived from this software",
        ),
        ("all advertising materials", "patent"),
    ),
    (
        "BSD-2-Clause",
        (
            "redistributions of source code must retain the above copyright",
            "redistributions in binary form must reproduce the above copyright",
        ),
        ("endorse or promote", "all advertising materials", "patent"),
    ),
    ("Unlicense", ("this is free and unencumbered software released into the public domain",), ()),
)

LICENCE_FILE = re.compile(r"(licen[cs]e|copying)([._-](md|txt|rst|mit|apache|bsd))?", re.IGNORECASE)
README_FILE = re.compile(r"readme(\.(md|markdown|rst|txt))?", re.IGNORECASE)

_LFS_HEAD = b"version https://git-lfs.github.com/spec/v1\n"
_LONGEST_POINTER = 1024
_LONGEST_TEXT = 1_000_000


def spdx(expression: str | None) -> str | None:
    """The SPDX expression in its canonical writing, or that of a name in full; None when it is neither."""
    if not expression or len(expression) > 200:  # noqa: PLR2004 — a whole licence text stands in some fields
        return None
    named = _NAMES.get(" ".join(expression.lower().replace(",", " ").split()))
    if named is not None:
        return named
    try:
        return str(canonicalize_license_expression(expression))
    except InvalidLicenseExpression:
        return None


def licence_of_classifiers(classifiers: Iterable[str]) -> str | None:
    """The licence that the classifiers name; None unless they name exactly one."""
    named = {line for line in classifiers if line.startswith("License :: ") and line != "License :: OSI Approved"}
    return _CLASSIFIERS.get(named.pop()) if len(named) == 1 else None


def licence_of_text(text: str) -> str | None:
    """The licence whose text this is; None when it is none of those known by their words, or more than one."""
    identifiers = set(_SPDX_LINE.findall(text[:2000]))
    if identifiers:
        return spdx(identifiers.pop()) if len(identifiers) == 1 else None
    flat = " ".join(
        text.lower().replace("\u201c", '"').replace("\u201d", '"').replace("``", '"').replace("''", '"').split()
    )
    found = [
        name
        for name, needed, forbidden in _TEXTS
        if all(piece in flat for piece in needed) and not any(piece in flat for piece in forbidden)
    ]
    return found[0] if len(found) == 1 else None


def licence_of_texts(texts: Mapping[str, str]) -> str | None:
    """The licence of a project by its licence files; None when they disagree or one is not known."""
    found = {licence_of_text(text) for text in texts.values()}
    return found.pop() if len(found) == 1 else None


def languages(files: Iterable[tuple[str, int]]) -> list[str]:
    """Languages by file extension, by their share of bytes; a share under one per cent does not count.

    Args:
        files: path and size in bytes of each file.
    """
    sizes: dict[str, int] = {}
    for path, size in files:
        language = _BY_EXTENSION.get(PurePosixPath(path).suffix.lower())
        if language is not None and "node_modules" not in path:
            sizes[language] = sizes.get(language, 0) + size
    total = sum(sizes.values())
    counted = [name for name, size in sizes.items() if size >= total * _SHARE_THAT_COUNTS and size > 0]
    return sorted(counted, key=lambda name: (-sizes[name], name))


def readme_rank(name: str) -> tuple[int, str]:
    """Order among several README files: Markdown, reStructuredText, plain text, no suffix."""
    order = {".md": 0, ".markdown": 0, ".rst": 1, ".txt": 2}
    return order.get(PurePosixPath(name).suffix.lower(), 3), name


def find_readme(root: Path) -> Path | None:
    """The README at the top of a tree; None when there is none."""
    return min(_files_at_top(root, README_FILE), key=lambda path: readme_rank(path.name), default=None)


def _files_at_top(root: Path, pattern: re.Pattern[str]) -> list[Path]:
    top = root.resolve()
    found = (path for path in sorted(root.iterdir()) if pattern.fullmatch(path.name))
    # A link may name a file elsewhere in the tree, never one of the host's.
    return [path for path in found if path.is_file() and path.resolve().is_relative_to(top)]


def licence_of_tree(root: Path) -> str | None:
    """The licence of a tree: by the files at its top, else by what its manifests name."""
    texts = {path.name: _head(path) for path in _files_at_top(root, LICENCE_FILE)}
    return licence_of_texts(texts) or _licence_of_manifests(root)


def _licence_of_manifests(root: Path) -> str | None:
    named = set()
    for path in _files_at_top(root, re.compile(r"package\.json|composer\.json|Cargo\.toml|pyproject\.toml")):
        try:
            text = _head(path)
            manifest = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
            table = manifest.get({"Cargo.toml": "package", "pyproject.toml": "project"}.get(path.name, ""), manifest)
            value = table.get("license")
        except (ValueError, AttributeError, RecursionError):
            continue
        if isinstance(value, dict):
            value = value.get("text")
        if isinstance(value, str):
            named.add(spdx(value))
    return named.pop() if len(named) == 1 else None


def _head(path: Path) -> str:
    with path.open(encoding="utf-8", errors="replace") as file:
        return file.read(_LONGEST_TEXT)


def gitmodules(root: Path) -> list[dict[str, str]]:
    """The submodules that ``.gitmodules`` names: ``path`` and ``url`` of each."""
    file = root / ".gitmodules"
    if not file.is_file() or file.is_symlink():
        return []
    found: list[dict[str, str]] = []
    for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
        if line.strip().startswith("[submodule "):
            found.append({})
        key, equals, value = line.partition("=")
        if equals and found and key.strip() in {"path", "url"}:
            found[-1][key.strip()] = value.strip().strip('"')
    return [entry for entry in found if _stays_inside(entry.get("path", ""))]


def _stays_inside(path: str) -> bool:
    parts = PurePosixPath(path).parts
    return bool(parts) and not path.startswith("/") and ".." not in parts and ".git" not in parts


def is_lfs_pointer(path: Path, size: int) -> bool:
    """Whether a regular file is a Git LFS pointer instead of the content."""
    if not len(_LFS_HEAD) < size <= _LONGEST_POINTER:
        return False
    with path.open("rb") as file:
        return file.read(len(_LFS_HEAD)) == _LFS_HEAD
