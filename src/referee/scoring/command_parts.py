"""What the harness must know of a verification command before it runs it again: does it run tests, does it bring the
project itself, which files does it run, which ports does it speak to.

Read from the command's shape alone, as the audit is.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise

from referee.core.records import InstalledFacts
from referee.scoring.by_itself import ALSO, also, modules_first
from referee.scoring.own_tests import files_told
from referee.scoring.roles import fetches, role
from referee.scoring.shell import Script, take_apart
from referee.scoring.shell_grammar import MAX_BYTES
from referee.scoring.shell_words import UNKNOWN, Step, bare, npm_directory, script_place, task_of

#: Where a re-run begins (``benchmarks.bringup.rerun``).
HOME = "/root"
#: At most so many words that may name a file are looked at.
MOST_SCRIPTS = 60

#: Programs that do nothing but run tests, by name or as ``python -m NAME``.
_RUNNERS = {
    *("pytest", "py.test", "unittest", "nose2", "nosetests", "trial", "tox", "nox", "jest", "vitest", "mocha", "ava"),
    *("tap", "jasmine", "karma", "rspec", "phpunit", "ctest", "prove", "bats", "twisted.trial", "doctest"),
}
#: Programs of which one word makes a test run.
_TASKS: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(("npm", "pnpm", "yarn", "bun"), frozenset({"test", "t", "tst"})),
    **dict.fromkeys(("make", "gmake", "just", "task", "ninja", "meson"), frozenset({"test", "check", "tests"})),
    **dict.fromkeys(("mvn", "mvnw", "gradle", "gradlew", "sbt"), frozenset({"test", "verify", "check"})),
    **dict.fromkeys(("cargo", "go", "deno", "mix", "dotnet", "swift", "stack", "cabal"), frozenset({"test"})),
    **dict.fromkeys(("rake", "hatch", "pdm", "poe"), frozenset({"test", "spec", "tests"})),
}
#: Programs that start another one, whose name comes later among their words.
_LAUNCHERS = {"npx", "uv", "poetry", "pipenv", "hatch", "pdm", "coverage", "bundle", "yarn", "pnpm", "npm", "bunx"}
#: Options of Gradle whose value is left out.
_WITHOUT = {"-x", "--exclude-task"}
_TEST_SCRIPT = re.compile(r"(?:^|/)(?:run_?tests?|tests?|test_\w+|\w+_test)\.(?:py|js|mjs|cjs|ts|sh|rb|php|pl)$")
_PORT = re.compile(
    r"(?:localhost|127\.0\.0\.1|0\.0\.0\.0|\[::1?\]|\bhost\.docker\.internal):(\d{2,5})\b"
    r"|(?:--?(?:port|p|bind|listen|http-port)[= ]|\bPORT=)(?:[\w.\[\]:]*:)?(\d{2,5})\b"
)
_EXACT = re.compile(r"[\w\])](?:===?|@)(?:npm:)?v?(\d[\w.+!*-]*)$")
#: A word that may be a file which a variable comes to; its text is kept under a name of its own.
_FILE = re.compile(r"(?:~|\.{0,2})?/?[\w./+-]*[\w+-]\.\w{1,5}|(?:~|\.{0,2})/[\w./+-]+")
HELD = "held:"
_LONGEST_VERSION = 200
#: Words in versions that are written in two ways.
_SPELT = {"alpha": "a", "beta": "b", "c": "rc", "pre": "rc", "preview": "rc", "rev": "post", "r": "post"}
#: So much of a commit's digest tells it.
_SHORT_COMMIT = 7
_BARE_PORT = re.compile(r"\b(?:nc|ncat|netcat|telnet)\s[^;&|\n]{0,80}?\s(\d{2,5})\b")


@dataclass(frozen=True)
class Named:
    """A file that a command runs: the word that names it, and where it would be found.

    ``npm:NAME`` and ``make:NAME`` stand for a script of ``package.json`` and a target (``shell_words.task_of``).
    ``key`` is how its text is kept: of a file that stands in front of what a command names, under a name of its own.
    """

    word: str
    cwd: str
    program: bool
    key: str = ""


@dataclass(frozen=True)
class Parts:
    """What was read of a command."""

    tests: bool
    scripts: tuple[Named, ...]
    search: tuple[str, ...]


def parts(command: str, scripts: Mapping[str, str] | None = None) -> Parts:
    """Read a command.

    Args:
        command: the exact command of ``verified_how``.
        scripts: texts of files that it runs, by the word that names each, as far as they are known.
    """
    script = take_apart(command, role, scripts)
    return Parts(
        tests=any(runs_tests(step) for step in script.steps),
        scripts=_named(script),
        search=_search(script),
    )


def runs_tests(step: Step) -> bool:
    """Whether a step runs tests."""
    words = bare(step.words)
    if not words or role(step) in {"asks", "says", "probes", "shows"}:
        return False
    name = words[0].rsplit("/", 1)[-1]
    without = _WITHOUT if name in {"gradle", "gradlew"} else ()
    rest = [word for before, word in pairwise(words) if not word.startswith("-") and before not in without]
    if name in _RUNNERS or (name in _TASKS and any(_is_task(word, _TASKS[name]) for word in rest)):
        return True
    if name.startswith(("python", "pypy")) and _python_tests(words, rest):
        return True
    if name in _LAUNCHERS:
        return any(word.rsplit("/", 1)[-1] in _RUNNERS for word in rest) or "test" in rest[:2]
    place = script_place(words)
    return (name == "node" and "--test" in words) or (place is not None and _TEST_SCRIPT.search(place) is not None)


def ports(command: str) -> frozenset[int]:
    """The ports that a command names."""
    read = command[:MAX_BYTES]
    found = [match.group(1) or match.group(2) for match in _PORT.finditer(read)]
    found += [match.group(1) for match in _BARE_PORT.finditer(read)]
    return frozenset(int(one) for one in found)


def brings(
    command: str, names: Iterable[str], scripts: Mapping[str, str] | None = None, *, version: str | None = None
) -> bool:
    """Whether the command itself fetches the project: then it works on a machine without it, and rightly so.

    Args:
        command: the command.
        names: what the project is called: its subject's name, its registry name, its address.
        scripts: texts of the agent's own files that it runs, where those stood on that machine too.
        version: the pinned version of a package: a command that names another one fetches something else. One that
            names none may find the pinned one installed, so it brings the project.
    """
    known = [_plain(name) for name in names if len(_plain(name)) > 1]
    for step in take_apart(command, role, scripts).steps:
        if not fetches(step):
            continue
        fetched = [word for word in step.words[1:] if any(name in _plain(word) for name in known)]
        if any(version is None or not _another(word, version) for word in fetched):
            return True
    return False


def brings_pinned(
    command: str,
    names: Iterable[str],
    scripts: Mapping[str, str] | None,
    *,
    version: str | None,
    commit: str | None,
    installed: Iterable[InstalledFacts],
) -> bool:
    """Whether the command fetches the very project that is pinned, as far as the machine showed it.

    A package that names no version is the pinned one where that stood installed when the command had run. What a
    registry has under a repository's name is another copy of it, unless what stood installed came from a checkout.

    Args:
        command: the command.
        names: what the project is called.
        scripts: texts of the agent's own files that it runs.
        version: the pinned version of a package.
        commit: the pinned commit of a repository.
        installed: packages of the project's name.
    """
    names = tuple(names)
    if not brings(command, names, scripts, version=version):
        return False
    if version is not None:
        known = [_plain(name) for name in names if len(_plain(name)) > 1]
        words = (word for step in take_apart(command, role, scripts).steps for word in step.words)
        exact = any(_EXACT.search(word) and any(name in _plain(word) for name in known) for word in words)
        return exact or any(same_version(one.version, version) for one in installed)
    texts = (command, *(scripts or {}).values())
    checked_out = commit is not None and any(commit[:_SHORT_COMMIT] in text for text in texts)
    return checked_out or any(one.local for one in installed)


def same_version(one: str, other: str) -> bool:
    """Whether two versions are the same: ``1.0`` and ``v1.0.0`` are, ``2024.07.04`` and ``2024.7.4``, ``1.0-rc.1`` and
    ``1.0rc1``. A build's own mark (``2.0+cpu``) says nothing, where either has none.
    """
    ones, others = _version_parts(one), _version_parts(other)
    marks = "+" in one and "+" in other
    return ones == others if not marks else (ones, one.partition("+")[2]) == (others, other.partition("+")[2])


def _version_parts(version: str) -> list[str]:
    """Numbers and words of a version, as registries spell them: without zeros in front and at the end."""
    text = version[:_LONGEST_VERSION].strip().lower().removeprefix("v").partition("+")[0]
    found = [_SPELT.get(part, part.lstrip("0") or "0") for part in re.findall(r"\d+|[a-z]+", text)]
    at = next((i for i, part in enumerate(found) if not part.isdigit()), len(found))
    release = found[:at]
    while len(release) > 1 and release[-1] == "0":
        release.pop()
    return [*release, *found[at:]]


def _another(word: str, version: str) -> bool:
    """Whether a requirement names another version than the pinned one (``flask==3``, ``left-pad@2.0.0``)."""
    found = _EXACT.search(word)
    named = found.group(1).rstrip(".*") if found else version
    return version != named and not version.startswith(f"{named}.")


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def _is_task(word: str, tasks: frozenset[str]) -> bool:
    return word in tasks or word.split(":", 1)[0] in tasks


def _python_tests(words: tuple[str, ...], rest: list[str]) -> bool:
    if "-m" in words[:-1]:
        return _module_tests(words[words.index("-m") + 1 :])
    return bool(rest) and rest[0].endswith(("setup.py", "manage.py")) and "test" in rest[1:]


def _module_tests(rest: tuple[str, ...]) -> bool:
    name = rest[0]
    if name in {"coverage", "uv", "poetry"}:
        return any(word in _RUNNERS for word in rest[1:])
    return name in _RUNNERS or name.split(".", 1)[0] in {"test", "tests"} or ".tests" in name


def _search(script: Script) -> tuple[str, ...]:
    """Directories that the command puts before the trusted search path."""
    found: list[str] = []
    for name, value in script.sets:
        if name == "PATH":
            found += [part for part in value.split(":") if part.startswith("/") and UNKNOWN not in part]
    return tuple(dict.fromkeys(found))


def _named(script: Script) -> tuple[Named, ...]:
    cwd = HOME
    found: dict[str, Named] = {}
    for step in script.steps:
        words = bare(step.words)
        if words[:1] in {("cd",), ("pushd",)} and len(words) > 1 and UNKNOWN not in words[1]:
            cwd = posixpath.normpath(posixpath.join(cwd, words[1].replace("~", HOME, 1)))
            continue
        in_front = (*also(words, modules_first(step.words, script.sets)), *files_told(words))
        task = task_of(words)
        at = posixpath.normpath(posixpath.join(cwd, npm_directory(words) or "")) if task is not None else cwd
        if task == "npm:test" and words[0].rsplit("/", 1)[-1] == "npm" and f"{at}/".startswith("/work/project/"):
            task = None  # there the pinned one stands when it runs
        plain = (script_place(words), words[0] if words else None, task)
        named = [(word, word) for word in plain if word and word not in in_front]
        for word, key in (*named, *((word, ALSO + word) for word in in_front)):
            if UNKNOWN not in word and key not in found and len(found) < MOST_SCRIPTS:
                program = word == words[0] and "/" not in word
                found[key] = Named(word, at if word == task else cwd, program=program, key=key)
    for word in script.mentioned:
        if _FILE.fullmatch(word) and word not in found and len(found) < MOST_SCRIPTS:
            found[HELD + word] = Named(word, cwd, program=False, key=HELD + word)
    return tuple(found.values())
