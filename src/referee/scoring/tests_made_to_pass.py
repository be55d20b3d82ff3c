"""Test runs that are told to pass: collect only, pass with no tests, leave tests out."""

from __future__ import annotations

#: Options that make a runner succeed without running its tests, whatever the runner.
_ANY = {
    *("--collect-only", "--co", "--passWithNoTests", "--pass-with-no-tests", "--listTests", "--list-tests", "--no-run"),
    *("--exit-zero", "--suppress-no-test-exit-code", "-DskipTests", "-Dmaven.test.skip=true", "-DskipITs"),
    *("--if-present", "--setup-only", "--setup-plan", "--dry-run", "--list"),
}
#: Options that leave tests out, by runner.
_DESELECTS: dict[str, tuple[str, ...]] = {
    "pytest": ("--deselect", "-k", "-m", "--ignore", "--ignore-glob"),
    "py.test": ("--deselect", "-k", "-m", "--ignore", "--ignore-glob"),
    "jest": ("-t", "--testNamePattern", "--testPathIgnorePatterns"),
    "vitest": ("-t", "--testNamePattern", "--exclude"),
    "mocha": ("-g", "--grep", "-f", "--fgrep", "-i", "--invert", "--ignore"),
    "ctest": ("-N", "-E", "-R", "-LE"),
    "cargo": ("--skip",),
    "go": ("-run", "-skip", "-list"),
    "gradle": ("-x", "--exclude-task"),
    "gradlew": ("-x", "--exclude-task"),
    "rspec": ("-e", "--example", "-t", "--tag"),
    "phpunit": ("--filter", "--exclude-group"),
}
_RUNNERS = {
    *(
        *_DESELECTS,
        "npm",
        "pnpm",
        "yarn",
        "npx",
        "mvn",
        "mvnw",
        "tox",
        "nox",
        "unittest",
        "ava",
        "tap",
        "nose2",
        "flake8",
    ),
    *("bun", "deno", "make", "pylint"),
}
_LAUNCHERS = {"npx", "uv", "poetry", "pipenv", "hatch", "coverage", "bundle", "yarn", "pnpm", "npm"}


def made_to_pass(words: tuple[str, ...]) -> bool:
    """Whether a test run's options make it succeed without running all of its tests."""
    names = _runner_names(words)
    if not names & _RUNNERS:
        return False
    options = words[1:]
    if any(word.split("=", 1)[0] in _ANY or word in _ANY for word in options):
        return True
    for name in names:
        left_out = _DESELECTS.get(name, ())
        if any(_is(word, option) for word in _after(words, name) for option in left_out):
            return True
    return False


#: The same, known since harnesses observe beside the re-run.
_ANY_LATER = {
    *("--notest", "-Dmaven.test.failure.ignore=true", "-Dmaven.test.failure.ignore", "-DtestFailureIgnore=true"),
    *("--ignore-errors", "--just-print", "--lf", "--last-failed", "--sw", "--stepwise", "--nf", "--changedSince"),
    *("--onlyChanged", "--only-changed", "--changed", "--noconftest", "--pass-when-no-tests"),
}
_LATER: dict[str, tuple[str, ...]] = {
    "make": ("-n", "-i", "-t", "-q"),
    "unittest": ("-k",),
    "ava": ("-m", "--match"),
    **dict.fromkeys(("node", "nodejs"), ("--test-name-pattern", "--test-skip-pattern", "--test-only")),
    "jest": ("-o", "--testPathIgnorePatterns", "--selectProjects", "--ignoreProjects", "--filter"),
    "tap": ("--grep", "-g", "--only"),
}
#: The same for runners of JavaScript, where a task of package.json hands options on to whichever it runs.
_HANDED_ON = (
    *("-t", "--testNamePattern", "--testPathIgnorePatterns", "--modulePathIgnorePatterns", "--exclude", "--match"),
    *("-g", "--grep", "-f", "--fgrep", "-i", "--invert", "--only", "--test-name-pattern", "--test-skip-pattern"),
)
_TASK_RUNNERS = {"npm": False, "yarn": True, "pnpm": True, "bun": True}
#: Options in a variable that Node reads, and that leave tests out.
_NODE_OPTIONS = ("--test-name-pattern", "--test-skip-pattern", "--test-only")
#: Configuration of pytest that is given on the command line and chooses its tests.
_CHOOSES = ("python_files", "python_functions", "python_classes", "testpaths", "norecursedirs", "addopts", "collect_")


def made_to_pass_later(words: tuple[str, ...], sets: list[tuple[str, str]]) -> bool:
    """What ``made_to_pass`` does not look at: more options, options in variables, configuration on the command line.

    Args:
        words: a step's words, without what wraps it.
        sets: variables that the command sets.
    """
    names = _runner_names(words)
    if not names & (_RUNNERS | set(_LATER)):
        return False
    in_a_variable = (value for name, value in sets if name == "NODE_OPTIONS")
    if any(_is(word, option) for word in _handed_on(words) for option in _HANDED_ON) or any(
        option in value for value in in_a_variable for option in _NODE_OPTIONS
    ):
        return True
    added = tuple(word for name, value in sets if name == "PYTEST_ADDOPTS" for word in value.split())
    if added and made_to_pass(("pytest", *added)):
        return True
    if any(word.split("=", 1)[0] in _ANY_LATER or word in _ANY_LATER for word in (*words[1:], *added)):
        return True
    if any(_is(word, option) for name in names for word in words[1:] for option in _LATER.get(name, ())):
        return True
    pytest = names & {"pytest", "py.test"}
    return bool(pytest) and any(
        word.removeprefix("-o").removeprefix("--override-ini=").startswith(_CHOOSES) for word in (*words[1:], *added)
    )


#: Options that only a run of tests has, whoever hands them on to it.
_OF_TESTS = {
    *("--collect-only", "--passWithNoTests", "--pass-with-no-tests", "--listTests", "--suppress-no-test-exit-code"),
    *("--pass-when-no-tests", "--noconftest", "--last-failed", "--onlyChanged", "--changedSince", "--deselect"),
}
#: What starts a program of the project, whose options are its own.
_STARTERS = {"npx", "bunx", "bun", "deno", "yarn", "pnpm"}


def options_of_tests(words: tuple[str, ...], *, tests: bool, alone: bool) -> tuple[str, ...]:
    """The words of a step in which an option that leaves tests out can matter; none where it cannot.

    A build without its tests, beside something that works, claims no tests. That some packages of a repository of many
    have no such script says nothing of the others.

    Args:
        words: the step's words, without what wraps it.
        tests: whether it runs tests.
        alone: whether nothing else in the command works.
    """
    if tests:
        many = {"--workspaces", "-ws", "--recursive", "-r"} & set(words)
        return tuple(word for word in words if not (many and word == "--if-present"))
    of_tests = tuple(word for word in words[1:] if word in _OF_TESTS)
    if not alone or words[:1] == () or words[0].rsplit("/", 1)[-1] in _STARTERS:
        return (*words[:1], *of_tests)
    return (*words[: words.index("--")], *of_tests) if "--" in words else words


def _handed_on(words: tuple[str, ...]) -> tuple[str, ...]:
    """The words that a task of package.json hands on to what it runs."""
    name = words[0].rsplit("/", 1)[-1]
    if name not in _TASK_RUNNERS:
        return ()
    if "--" in words:
        return words[words.index("--") + 1 :]
    tests = next((i for i, word in enumerate(words) if word.split(":", 1)[0] in {"test", "t"}), len(words))
    return words[tests + 1 :] if _TASK_RUNNERS[name] else ()


def _runner_names(words: tuple[str, ...]) -> set[str]:
    """The runner itself: the command, a module of ``python -m``, or what a launcher starts."""
    if not words:
        return set()
    first = words[0].rsplit("/", 1)[-1]
    names = {first}
    if first.startswith("python") and "-m" in words[:-1]:
        names.add(words[words.index("-m") + 1])
    if first in _LAUNCHERS or first.startswith("python"):
        names |= {word.rsplit("/", 1)[-1] for word in words[1:] if not word.startswith("-")} & set(_DESELECTS)
    return names


def _after(words: tuple[str, ...], runner: str) -> tuple[str, ...]:
    for index, word in enumerate(words):
        if word.rsplit("/", 1)[-1] == runner:
            return words[index + 1 :]
    return ()


def _is(word: str, option: str) -> bool:
    if word == option or word.startswith(f"{option}="):
        return True
    glued = len(option) == 2 and option in {"-k", "-m"}  # noqa: PLR2004 — a short option, its value glued on
    return glued and word.startswith(option) and not word.startswith("--")
