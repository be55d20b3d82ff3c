"""Files of the agent's own that stand in front of what a command seems to run, and say the result by themselves.

``python3`` may be a shell script, ``pytest`` a module beside the tests, ``npx jest`` a file that no package brought.
Such a text is read in the command's place only where it surely says and does no more; a wrapper that starts the real
thing stays what it is called (methodology §5).
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Collection, Iterable

from referee.scoring.shell_words import UNKNOWN, Step, interpreter_of, is_interpreter, script_place
from referee.scoring.snippets import node_role, one_liner_role, python_role

#: How these texts are named beside those of scripts that a command names: earlier records have none of them.
ALSO = "also:"
_OTHERS = {"node": "//", "nodejs": "//", "bun": "//", "deno": "//", "perl": "#", "ruby": "#", "php": "//"}
_LAUNCHERS = {"npx": 0, "bunx": 0, "npm": 1, "pnpm": 1, "yarn": 0}
_SOURCES = {"source", "."}
_FLAG_OF_CODE = {"perl": "-e", "ruby": "-e", "php": "-r"}
_LOADED_FIRST = re.compile(r"(?:^|\s)(?:--require|-r|--import|--loader|--experimental-loader)[= ](\S+)")
#: Options of node that the next word belongs to.
_NODE_VALUES = {
    *("--require", "-r", "--import", "--loader", "--experimental-loader", "-e", "--eval", "-pe", "-p", "--print"),
    *("-C", "--conditions", "--input-type", "--stack-trace-limit", "--title", "--icu-data-dir", "--openssl-config"),
}
#: Where a project, the machine's packages and what was installed for the project lie.
_PLACES = ("/usr/", "/lib", "/work/project/", "/work/subject/")
_STATEMENT = re.compile(r"(?<=[;)])\s*\n|;\s*\n?")


def also(words: tuple[str, ...], modules: Iterable[str] = ()) -> tuple[str, ...]:
    """The files that would be run in front of what a command names, as words.

    Args:
        words: the command, without what wraps it.
        modules: where Python is told to look for modules first.
    """
    if not words:
        return ()
    name = words[0].rsplit("/", 1)[-1]
    found: list[str] = []
    if name in _SOURCES:
        found += words[1:2]
    elif script_place(words) != words[0]:
        found.append(words[0])
        if "-m" in words[:-1] and is_interpreter(name):
            module = words[words.index("-m") + 1].replace(".", "/")
            for there in ("", *(f"{one}/" for one in modules)):
                found += [f"{there}{module}/__main__.py", f"{there}{module}.py"]
        place = script_place(words)
        if place is not None and name in _OTHERS:
            found.append(place)
    elif name in _LAUNCHERS:
        rest = [word for word in words[1:] if not word.startswith("-")]
        rest = rest[1:] if rest[:1] in (["exec"], ["run"], ["x"]) or _LAUNCHERS[name] else rest
        found += [f"node_modules/.bin/{word}" for word in rest[:1]]
    return tuple(word for word in found if word and UNKNOWN not in word)


def loads_a_shim(words: tuple[str, ...], given: Iterable[tuple[str, ...]]) -> bool:
    """Whether a step has a file loaded first, or run instead, that is no part of the project and of no package.

    ``hash -p``, ``enable -f``, ``BASH_ENV`` and a shell's own file of settings have no other use here; a library or a
    module that is loaded first counts by an absolute path outside of the project and of the machine's own places.

    Args:
        words: the step's words, without what wraps it.
        given: the variables that the command sets, by name and value.
    """
    name = words[0].rsplit("/", 1)[-1] if words else ""
    options = set(words[1:])
    if (name == "hash" and "-p" in options) or (name == "enable" and "-f" in options):
        return True
    if name in {"bash", "sh"} and {"--rcfile", "--init-file"} & set(_own_options(words, {"-o", "-O"})):
        return True
    values = {one[0]: one[-1] for one in given}
    first = re.split(r"[\s:]+", values.get("LD_PRELOAD", ""))
    own = _own_options(words, _NODE_VALUES) if name in {"node", "nodejs"} else ()
    spelt = [values.get("NODE_OPTIONS", ""), " ".join(own)]
    first += [place.removeprefix("file://") for text in spelt for place in _LOADED_FIRST.findall(text)]
    return bool(values.get("BASH_ENV")) or any(one.startswith("/") and not one.startswith(_PLACES) for one in first)


def _own_options(words: tuple[str, ...], values: Collection[str]) -> tuple[str, ...]:
    """An interpreter's options, those of ``values`` with the next word; what its program is given is not among them."""
    end = 1
    while end < len(words) and words[end].startswith("-") and words[end] not in {"-", "--"}:
        end += 2 if words[end] in values else 1
    return words[1:end]


def modules_first(words: Iterable[str], sets: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """The directories of ``PYTHONPATH``, set before a step or in its own words."""
    told = [value for name, value in sets if name == "PYTHONPATH"]
    told += [word.partition("=")[2] for word in words if word.startswith("PYTHONPATH=")]
    return tuple(dict.fromkeys(one.rstrip("/") for value in told for one in value.split(":") if one.strip("/")))


def sources(words: tuple[str, ...]) -> bool:
    """Whether a command reads a file into the running shell."""
    return words[:1] in {("source",), (".",)} and len(words) > 1


def speaks(roles: Iterable[str]) -> bool:
    """Whether steps of these roles say something and do no more."""
    found = set(roles)
    return bool(found & {"says", "shows"}) and found <= {"says", "shows", "setup", "probes", "asks"}


def in_its_place(words: tuple[str, ...], word: str, text: str, roles: Callable[[str], list[str] | None]) -> Step | None:
    """The step that such a file comes to; None where it may do more than say something.

    Args:
        words: the command.
        word: the file, one of ``also``.
        text: what it holds.
        roles: gives the roles of the steps of shell text; None where it cannot be read.
    """
    name = words[0].rsplit("/", 1)[-1]
    first = interpreter_of(text) or ("python3" if word.endswith(".py") else name if word != words[0] else "sh")
    if not is_interpreter(first) and first.rsplit("/", 1)[-1] not in _OTHERS:
        first = "sh"
    language = first.rsplit("/", 1)[-1]
    step = None
    if language in _OTHERS:
        step = _constants(language, text)
    elif language.startswith(("python", "pypy")):
        only = python_role(text) in {"says", "shows"} and _imports_the_languages_own(text)
        step = Step((language,), stdin=text, scripted=True) if only else None
    else:
        found = roles(text)
        if found is not None and (speaks(found) or not found):
            step = Step(("sh",), stdin=text if found else ":", scripted=True)
    return step


def _constants(language: str, text: str) -> Step | None:
    """A program that prints constants and nothing else."""
    comment = _OTHERS[language]
    lines = [line for line in text.removeprefix("<?php").splitlines() if line.strip()]
    lines = [line for line in lines if not line.lstrip().startswith((comment, "#!"))]
    if any(word in line for line in lines for word in ("require", "import ")):
        return None
    statements = [one for one in _STATEMENT.split("\n".join(lines)) if one.strip(" \n;")]
    judge = one_liner_role if language in _FLAG_OF_CODE else node_role
    if not all(judge(one) == "says" for one in statements):
        return None
    flag = _FLAG_OF_CODE.get(language, "-e")
    return Step((language, flag, statements[0] if statements else "process.exit(0)"), scripted=True)


def _imports_the_languages_own(text: str) -> bool:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    used: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            used |= {alias.name.split(".", 1)[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            used.add("." if node.level else (node.module or "").split(".", 1)[0])
    return used <= frozenset(sys.stdlib_module_names)
