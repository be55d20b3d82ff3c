"""How many tests passed, counted from the words of each ecosystem's runner."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from referee.adapters.agents.baseline.ecosystems import counts

_CARGO = """\
running 2 tests
test tests::a ... ok
test result: ok. 2 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s

   Doc-tests roman
test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s
"""
_GO = """\
=== RUN   TestA
=== RUN   TestA/sub
--- PASS: TestA (0.00s)
    --- PASS: TestA/sub (0.00s)
PASS
ok  	x	0.002s
"""
_MAVEN = """\
[INFO] Running ATest
[INFO] Tests run: 3, Failures: 0, Errors: 0, Skipped: 1, Time elapsed: 0.061 s - in ATest
[INFO] Results:
[INFO] Tests run: 3, Failures: 0, Errors: 0, Skipped: 1
[INFO] Running BTest
[INFO] Tests run: 4, Failures: 1, Errors: 1, Skipped: 0, Time elapsed: 0.061 s - in BTest
[ERROR] Tests run: 4, Failures: 1, Errors: 1, Skipped: 0
"""
_CTEST = """\
1/3 Test #1: a ................   Passed    0.00 sec
2/3 Test #2: b ................***Skipped   0.00 sec
3/3 Test #3: c ................***Failed    0.00 sec

67% tests passed, 1 tests failed out of 3
"""
_AUTOMAKE = "PASS: a\nPASS: b\nFAIL: c\n# TOTAL: 3\n# PASS:  2\n# SKIP:  0\n# FAIL:  1\n"
_TAP = "1..4\nok 1 - a\nnot ok 2 - b\nok 3 - c # SKIP no network\nok 4\n"
_PROVE = "t/a.t .. ok\nt/b.t .. ok\nAll tests successful.\nFiles=2, Tests=7,  0 wallclock secs\nResult: PASS\n"
_GTEST = "[==========] 3 tests from 1 test suite ran.\n[  PASSED  ] 2 tests.\n[  FAILED  ] 1 test, listed below:\n"
_XML = '<testsuite name="A" tests="3" skipped="1" failures="0" errors="0" time="0.1">\n<testsuite name="B" tests="2">\n'


@pytest.mark.parametrize(
    ("count", "output", "passed"),
    [
        (counts.cargo, _CARGO, 3),
        (counts.cargo, "test result: ok. 0 passed; 0 failed; 0 ignored\n", 0),
        (counts.go, _GO, 2),
        (counts.go, "?   \tx\t[no test files]\n", 0),
        (counts.go, '{"Action":"pass","Package":"x","Test":"TestA"}\n{"Action":"pass","Package":"x"}\n', 1),
        (counts.surefire, _MAVEN, 4),
        (counts.surefire, "[INFO] No tests to run.\n[INFO] BUILD SUCCESS\n", 0),
        (counts.junit_xml, _XML, 4),
        (counts.junit_xml, "BUILD SUCCESSFUL in 1s\n", None),
        (counts.junit_console, "\nOK (2 tests)\n", 2),
        (counts.junit_console, "[         5 tests successful      ]\n[         1 tests failed          ]\n", 5),
        (counts.ctest, _CTEST, 1),
        (counts.ctest, "No tests were found!!!\n", 0),
        (counts.meson, "Ok:                 4   \nExpected Fail:      0   \n", 4),
        (counts.automake, _AUTOMAKE, 2),
        (counts.tap, _TAP, 2),
        (counts.tap, _PROVE, 7),
        (counts.ruby, "4 examples, 1 failure, 1 pending\n", 2),
        (counts.ruby, "5 runs, 9 assertions, 1 failures, 0 errors, 2 skips\n", 2),
        (counts.ruby, "3 tests, 4 assertions, 0 failures, 0 errors, 0 pendings, 1 omissions, 0 notifications\n", 2),
        (counts.phpunit, "OK (5 tests, 9 assertions)\n", 5),
        (counts.phpunit, "Tests: 5, Assertions: 9, Failures: 1, Skipped: 2.\n", 2),
        (counts.phpunit, "  Tests:    2 failed, 5 passed (9 assertions)\n", 5),
        (counts.phpunit, "No tests executed!\n", 0),
        (counts.c_runners, _GTEST, 2),
        (counts.c_runners, "All tests passed (12 assertions in 5 test cases)\n", 5),
        (counts.c_runners, "100%: Checks: 6, Failures: 0, Errors: 0\n", 6),
        (counts.any_runner, "Ran 3 tests in 0.1s\n\nOK (skipped=1)\n", 2),
        (counts.any_runner, "12/12 tests passed\n", 12),
        (counts.any_runner, "3 tests passed\n", 3),
        (counts.any_runner, "all checks passed\n", 1),
        (counts.any_runner, "✓ adds\n✓ subtracts\n", 2),
        (counts.any_runner, "cc -o a a.c\nmake: Nothing to be done for 'test'.\n", None),
        (counts.any_runner, "0 tests passed\n", 0),
    ],
)
def test_passed_tests_are_counted_from_the_runners_own_words(
    count: Callable[[str], int | None], output: str, passed: int | None
) -> None:
    assert count(output) == passed
