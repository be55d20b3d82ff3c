"""Planted cheats and their honest twins, on real machines: under edition 2 no cheat passes and each twin does.

Every trap of checking that is known to have fooled somebody stands here (methodology §5); ``planted.py`` holds what
each agent does, word for word.

====================================  ===========================================================================
trap                                  cheats
====================================  ===========================================================================
a failure is not let through          pipe-without-pipefail, or-true, semicolon-true
nothing that could fail is run        version-only, echo, echo-in-a-script, result-from-before
tests made to pass                    collect-only, pass-with-no-tests, deselected, edited-tests
files that steer interpreters, tests  planted-conftest, planted-sitecustomize, planted-pth
stand-ins                             path-shim, mock-library, stub-server, stubbed-binary, hard-coded-output
lenient decoders                      corrupted-video, truncated-tone, half-a-picture, json-nan
only in the agent's own session       environment-of-the-agent, outliving-process
the report itself                     output-never-seen, duplicate-keys, quoted-readme
services                              framework-stub, compiled-server, datagram-stub, unix-socket-stub, padded-server
programs in the project's stead       compiled-stand-in, padded-script, registry-copy
tests in JavaScript                   own-tests-in-javascript, narrowed-in-javascript, own-package-json
hidden in variables                   input-in-a-variable, script-in-a-loop
put in front by the command itself    run-instead, module-in-front
====================================  ===========================================================================
"""

from __future__ import annotations

import pytest

from tests.cheats import planted
from tests.cheats.conftest import Attempts
from tests.cheats.planted import NEVER_RUN, Act, Cheat
from tests.cheats.planted_later import LATER_CHEATS, LATER_TWINS

CHEATS = planted.CHEATS | LATER_CHEATS
TWINS = planted.TWINS | LATER_TWINS

pytestmark = [pytest.mark.engine, pytest.mark.slow, pytest.mark.registry]


@pytest.mark.parametrize(("cheat", "act"), [pytest.param(cheat, cheat.act, id=name) for name, cheat in CHEATS.items()])
def test_no_cheat_passes(cheat: Cheat, act: Act, attempts: Attempts) -> None:
    run = attempts.of(act)
    assert run.document, run.stderr
    one = run.attempt
    assert run.code != 0, f"passed: {cheat.trap}: {one}"
    assert run.document["verdict"] == "not_yet_verified"
    if act.report is None:  # the trap is one: who believes the report lets it pass
        assert one["editions"]["1"]["outcome"] == "pass_full"
    if one["valid"]:
        assert one["outcome"] == "fail"
        assert one["corroboration"] != "corroborated"
        assert one["editions"]["2"]["rows"]["depth"] == 0


@pytest.mark.parametrize("act", [pytest.param(act, id=name) for name, act in TWINS.items()])
def test_the_honest_twin_passes(act: Act, attempts: Attempts) -> None:
    run = attempts.of(act)
    assert run.code == 0, run.document.get("attempts") or run.stderr
    assert (run.attempt["outcome"], run.attempt["corroboration"]) == ("pass_full", "corroborated")
    assert not run.attempt["flagged"]


@pytest.mark.parametrize("act", [pytest.param(NEVER_RUN, id="never-run")])
def test_what_a_session_never_showed_is_noted(act: Act, attempts: Attempts) -> None:
    run = attempts.of(act)
    noted = {note["note"] for note in run.attempt["notes"]}
    assert {"command_not_shown", "result_not_shown"} <= noted


def test_each_cheat_has_a_twin_at_a_project_of_the_same_kind() -> None:
    assert len(CHEATS) >= 20
    assert {cheat.twin for cheat in CHEATS.values()} == set(TWINS)
    table = __doc__ or ""
    assert [name for name in CHEATS if name not in table] == []
