"""How many tests really passed, by what a test runner printed. Zero or None is no proof.

Each function takes plain output (no escape sequences) and returns the number of tests that passed, or None when the
output says nothing about it. A count is read from the runner's own summary where it has one, else from one line for
each passed test; a skipped test is not a passed one.
"""

from __future__ import annotations

import re
from collections.abc import Callable

Count = Callable[[str], int | None]

_FLAGS = re.MULTILINE
#: The rest of a line of the Test Anything Protocol that says that its test did not count, in capitals or not.
DIRECTIVE = r"[^\n]*# ?(?i:skip|todo)"


def _sum(pattern: str, text: str, *, flags: int = _FLAGS) -> int | None:
    """The sum of the first groups of all matches; None without a match."""
    found = [int(match.group(1).replace(",", "")) for match in re.finditer(pattern, text, flags)]
    return sum(found) if found else None


def _lines(pattern: str, text: str) -> int | None:
    """How many matches there are; None without any."""
    return len(re.findall(pattern, text, _FLAGS)) or None


def _less(total: int, *fewer: str | None) -> int:
    return max(0, total - sum(int(value or 0) for value in fewer))


def cargo(text: str) -> int | None:
    """``cargo test`` (every test binary has its own result line) or ``cargo nextest``."""
    counted = _sum(r"^test result: \w+\. (\d+) passed", text)
    return counted if counted is not None else _sum(r"^\s*Summary \[.*?\] +\d+ tests? run: (\d+) passed", text)


def go(text: str) -> int | None:
    """``go test -v`` (one line for each test and subtest) or ``go test -json``."""
    events = _lines(r'^\{(?=.*"Action":"pass")(?=.*"Test":").*\}$', text)
    return events or _lines(r"^\s*--- PASS: ", text) or (0 if re.search(r"\[no test", text) else None)


def surefire(text: str) -> int | None:
    """Maven's Surefire and Failsafe: the summaries of all modules, else the lines of the single classes."""
    row = re.compile(r"Tests run: (\d+), Failures: (\d+), Errors: (\d+)(?:, Skipped: (\d+))?([^\n]*)")
    found = row.findall(text)
    if not found:
        return 0 if "No tests to run" in text else None
    summaries = [entry for entry in found if "Time elapsed" not in entry[4] and " in " not in entry[4]]
    return sum(_less(int(total), *fewer) for total, *fewer, _ in summaries or found)


def junit_xml(text: str) -> int | None:
    """Opening tags of JUnit result files (``<testsuite tests="3" failures="0">``), as Gradle and others write them."""
    total: int | None = None
    for tag in re.findall(r"<testsuite\s[^>]*>", text):
        said = dict(re.findall(r'(\w+)="(\d+)"', tag))
        if "tests" in said:
            fewer = (said.get(name) for name in ("failures", "errors", "skipped"))
            total = (total or 0) + _less(int(said["tests"]), *fewer)
    return total


def junit_console(text: str) -> int | None:
    """JUnit's own console launchers: ``OK (5 tests)`` of JUnit 4, ``5 tests successful`` of the JUnit Platform."""
    counted = _sum(r"^\[\s*(\d+) tests successful", text)
    if counted is not None:
        return counted
    counted = _sum(r"^OK \((\d+) tests?\)", text)
    if counted is not None:
        return counted
    match = re.search(r"^Tests run: (\d+),\s+Failures: (\d+)", text, _FLAGS)
    return _less(int(match[1]), match[2]) if match else None


def ctest(text: str) -> int | None:
    """CTest's closing line."""
    match = re.search(r"^\d+% tests passed, (\d+) tests? failed out of (\d+)", text, _FLAGS)
    if not match:
        return 0 if "No tests were found" in text else None
    skipped = len(re.findall(r"^\s*\d+/\d+ Test +#\d+: .*\*\*\*(?:Skipped|Not Run)", text, _FLAGS))
    return _less(int(match[2]), match[1], str(skipped if "***Skipped" in text else 0))


def meson(text: str) -> int | None:
    """``meson test``."""
    return _sum(r"^Ok: +(\d+)", text)


def automake(text: str) -> int | None:
    """``make check`` of automake: the summaries of all directories, else one ``PASS:`` line for each test."""
    counted = _sum(r"^# PASS: +(\d+)", text)
    if counted is not None:
        return counted
    return _lines(r"^PASS: ", text) or _sum(r"^All (\d+) tests passed", text)


def tap(text: str) -> int | None:
    """The Test Anything Protocol, as it is or summed up by ``prove`` and Perl's harness."""
    summary = re.search(r"^Files=\d+, Tests=(\d+)", text, _FLAGS)
    if summary and re.search(r"^(Result: PASS|All tests successful)", text, _FLAGS):
        return int(summary[1])
    passed = len(re.findall(rf"^\s*ok \d+\b(?!{DIRECTIVE})", text, _FLAGS))
    planned = re.search(r"^1\.\.\d+", text, _FLAGS)
    return passed if passed or planned else None


def rspec(text: str) -> int | None:
    """RSpec's closing line."""
    match = re.search(r"^(\d+) examples?, (\d+) failures?(?:, (\d+) pending)?", text, _FLAGS)
    return _less(int(match[1]), match[2], match[3]) if match else None


def ruby_unit(text: str) -> int | None:
    """Minitest and test-unit, one closing line for each run."""
    minitest = re.findall(
        r"^(\d+) (?:runs|tests), \d+ assertions, (\d+) failures, (\d+) errors(?:, (\d+) (?:skips|pendings))?"
        r"(?:, (\d+) omissions)?",
        text,
        _FLAGS,
    )
    return sum(_less(int(total), *fewer) for total, *fewer in minitest) if minitest else None


def ruby(text: str) -> int | None:
    """Any of Ruby's runners."""
    return best(text, rspec, ruby_unit)


def phpunit(text: str) -> int | None:
    """PHPUnit or Pest."""
    counted = _sum(r"^OK \((\d+) tests?, ", text)
    if counted is not None:
        return counted
    counted = _sum(r"^\s*Tests:\s+(?:\d+ \w+, )*(\d+) passed", text)
    if counted is not None:
        return counted
    match = re.search(r"^Tests: (\d+), Assertions: \d+([^\n]*)", text, _FLAGS)
    if not match:
        return 0 if "No tests executed" in text else None
    worse = re.findall(r"(?:Failures|Errors|Skipped|Incomplete|Risky): (\d+)", match[2])
    return _less(int(match[1]), *worse)


def dotnet(text: str) -> int | None:
    """``dotnet test``: one closing line for each assembly."""
    return _sum(r"Passed:\s+(\d+)", text)


def c_runners(text: str) -> int | None:
    """Frameworks of C and C++ that print their own summary: GoogleTest, Catch2, doctest, Check, Unity, Boost, Qt."""
    for pattern in (
        r"^\[ +PASSED +\] (\d+) test",
        r"^All tests passed \([\d,]+ assertions? in ([\d,]+) test cases?\)",
        r"^(?:\[doctest\] )?test cases: +\d+ \| +(\d+) passed",
        r"^Totals: (\d+) passed",
        r"^Running (\d+) test cases?\.\.\.[\s\S]*\*\*\* No errors detected",
    ):
        counted = _sum(pattern, text)
        if counted is not None:
            return counted
    for pattern in (
        r"^\d+%: Checks: (\d+), Failures: (\d+), Errors: (\d+)",
        r"^(\d+) Tests (\d+) Failures (\d+) Ignored",
        r"^\s*tests\s+\d+\s+\d+\s+(\d+)\s+\d+\s+(\d+)\s+\d+",
        r"^(\d+) tests?, (\d+) failures?$",
    ):
        rows = re.findall(pattern, text, _FLAGS)
        if rows:
            return sum(_less(int(row[0]), *row[1:]) for row in rows)
    return None


def other_runners(text: str) -> int | None:
    """Runners that a Makefile or a script may call: pytest, unittest, Jest, Mocha, Node's own."""
    for pattern in (
        r"^=+ .*?(\d+) passed",
        r"^Tests: .*?(\d+) passed",
        r"^ +(\d+) passing",
        r"^(?:#|\u2139) pass (\d+)",
    ):
        counted = _sum(pattern, text)
        if counted is not None:
            return counted
    match = re.search(r"^Ran (\d+) tests? in [^\n]*\n+(OK|FAILED)([^\n]*)", text, _FLAGS)
    if match:
        return _less(int(match[1]), *re.findall(r"(?:failures|errors|skipped)=(\d+)", match[3]))
    return None


def plain_words(text: str) -> int | None:
    """Home-made summaries (``12 tests passed``, ``12/12 passed``, ``passed: 12``) and one line for each passed test.

    A sentence without a number (``all tests passed``) counts as one.
    """
    for pattern in (
        r"\b(\d+) ?/ ?\d+ (?:tests? |checks? |cases? |assertions? )?(?:passed|ok|OK|succeeded)\b",
        r"\b(\d+) (?:unit )?(?:tests?|checks?|cases?|specs?|assertions?)[^\n\d]{0,20} "
        r"(?:passed|ok|OK|succeeded|successful)\b",
        r"\b[Pp]ass(?:ed)?[:=] *(\d+)\b",
        r"\b(\d+) pass(?:ed|es)?\b",
    ):
        counted = _sum(pattern, text)
        if counted is not None:
            return counted
    counted = _lines(r"^\s*(?:\[?\s*(?:PASS(?:ED)?|OK|ok)\s*\]?[: ]|✓|✔)\s*\S", text)
    counted = counted or _lines(r"\S[ .:]+(?:\[ ?)?(?:PASS(?:ED)?|OK|ok|passed)(?: ?\])?\.?$", text)
    sentence = re.search(r"^\W*all (?:tests?|checks?) (?:have )?pass(?:ed)?\b", text, _FLAGS | re.IGNORECASE)
    return counted or (1 if sentence else None)


def best(text: str, *counts: Count) -> int | None:
    """The first of ``counts`` that can tell; a zero counts only when no other finds more."""
    zero: int | None = None
    for count in counts:
        found = count(text)
        if found:
            return found
        zero = found if zero is None else zero
    return zero


def any_runner(text: str) -> int | None:
    """Whatever runner stands behind ``make test`` or a script; exact ones first, home-made summaries last."""
    exact = (
        cargo, ctest, meson, surefire, phpunit, rspec, ruby_unit, automake, c_runners, junit_console, other_runners, go,
        tap, dotnet,
    )  # fmt: skip
    return best(text, *exact, plain_words)
