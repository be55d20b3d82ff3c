"""What a project's test task is made of: the other scripts and targets that it runs, the variables that it names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

_TEST_SCRIPT = re.compile(r"(?:pre|post)?(?:test|check)(?::.*)?")
#: Programs that run other scripts of ``package.json`` by their names.
_RUNS_SCRIPTS = re.compile(
    r"(?<![\w-])(?:npm|pnpm|yarn|bun|run-s|run-p|npm-run-all2?|concurrently|wireit|turbo|lerna|nx)(?![\w-])"
)
#: Scripts that make what is tested: an agent may have to mend them.
_BUILDS = re.compile(r"(?:pre|post)?(?:build|compile|clean|prepare|install|bundle|generate|lint|format|transpile)\b.*")
_WORD = re.compile(r"[\w@:./*-]+")

_TARGET = re.compile(r"([A-Za-z0-9_.][\w ./-]*?)\s*::?(?!=)(.*)")
_VARIABLE = re.compile(r"(?:export\s+|override\s+)*([A-Za-z_.][\w.-]*)\s*(?:[:?+!]|::)?=\s*(.*)")
_REFERENCE = re.compile(r"\$[({]([\w.-]+)[)}]")
_MAKES = re.compile(r"(?:\$[({]MAKE[)}]|\bg?make)\s+([^;&|\n]*)")
_TESTS = ("test", "tests", "check")
#: Variables that change how every recipe runs.
_ALWAYS = ("SHELL", ".SHELLFLAGS", "MAKEFLAGS")
#: Which of its interpreters a machine has is not the project's to say.
_PYTHON = re.compile(r"(?<![\w/.-])python[\d.]*(?![\w/-])")


def test_scripts(scripts: Mapping[str, object]) -> set[str]:
    """The scripts of ``package.json`` that a test run goes through, builds left out."""
    reached: set[str] = set()
    ahead = [name for name in scripts if _TEST_SCRIPT.fullmatch(name)]
    while ahead:
        name = ahead.pop()
        if name in reached or name not in scripts:
            continue
        reached.add(name)
        ahead += (f"pre{name}", f"post{name}")
        text = str(scripts[name])
        if _RUNS_SCRIPTS.search(text):
            ahead += [one for one in _called(scripts, _WORD.findall(text)) if not _BUILDS.fullmatch(one)]
    return reached


def _called(scripts: Mapping[str, object], words: Iterable[str]) -> list[str]:
    fronts = tuple(word.rstrip("*") for word in words if word.endswith(":*"))
    named = set(words)
    return [name for name in scripts if name in named or (fronts and name.startswith(fronts))]


def makefile_parts(text: str) -> dict[str, str]:
    """The parts of a Makefile that decide what ``make test`` runs.

    A target without a recipe is what it needs; those of one with a recipe are what is built for it, and none of it.
    """
    targets, values, included = _read(text)
    parts = {f"include {line}": line for line in included}
    ahead = [name for name in _TESTS if name in targets]
    wanted = list(_ALWAYS) if ahead else []
    seen: set[str] = set()
    while ahead:
        name = ahead.pop()
        if name in seen or name not in targets:
            continue
        seen.add(name)
        heads, recipe = targets[name]
        whole = "\n".join((*heads, *recipe))
        parts[name] = whole
        ahead += [word for said in _MAKES.findall(whole) for word in said.split()]
        if not recipe:
            ahead += " ".join(heads).split()
        wanted += _REFERENCE.findall(whole)
    while wanted:
        name = wanted.pop()
        if name in values and f"{name} =" not in parts:
            parts[f"{name} ="] = _PYTHON.sub("python", "\n".join(values[name]))
            wanted += _REFERENCE.findall(parts[f"{name} ="])
    return parts if seen else {}


def _read(text: str) -> tuple[dict[str, tuple[list[str], list[str]]], dict[str, list[str]], list[str]]:
    """Each target's needs and recipe, each variable's values, and what is included."""
    targets: dict[str, tuple[list[str], list[str]]] = {}
    values: dict[str, list[str]] = {}
    included: list[str] = []
    current: list[str] = []
    for line in text.replace("\\\n", " ").splitlines():
        if line.startswith("\t"):
            for name in current:
                targets[name][1].append(line.strip())
            continue
        bare = line.split("#", 1)[0].strip()
        if not bare:
            continue
        if variable := _VARIABLE.fullmatch(bare):
            values.setdefault(variable.group(1), []).append(variable.group(2).strip())
        elif bare.split()[0] in {"include", "-include", "sinclude"}:
            included.append(bare)
        elif target := _TARGET.fullmatch(bare):
            current = target.group(1).split()
            needs, _, inline = target.group(2).partition(";")
            for name in current:
                heads, recipe = targets.setdefault(name, ([], []))
                heads.append(needs.strip())
                recipe += [inline.strip()] if inline.strip() else []
    return targets, values, included
