"""Words, figures, the display rule for dashes, and the gate's objections."""

from __future__ import annotations

from pathlib import Path

import pytest

from referee.core.records import AttemptEnded, AttemptPlanned
from referee.core.spending import usd
from referee.publish import words
from referee.publish.gate import objections
from referee.publish.names import AgentNames
from tests.publish_workspace import Try, Written, lock_of


@pytest.mark.parametrize(
    ("typed", "shown"),
    [
        ("It runs — mostly.", "It runs, mostly."),
        ("It runs\u2014mostly", "It runs, mostly"),
        ("It runs - mostly", "It runs, mostly"),
        ("It runs -- mostly", "It runs, mostly"),
        ("It runs —", "It runs."),
        ("It runs. —", "It runs."),
        ("Done: — all of it", "Done: all of it"),
        ("— It runs", "It runs"),
        ("a well-known command with --version and -v", "a well-known command with --version and -v"),
        ("pages 3\u20135 printed", "pages 3-5 printed"),
        ("no dash at all", "no dash at all"),
        ("", ""),
    ],
)
def test_a_dash_is_shown_as_comma_or_full_stop(typed: str, shown: str) -> None:
    assert words.undashed(typed) == shown


def test_words_and_their_order_never_change() -> None:
    typed = "first — second \u2013 third, fourth -- fifth ― sixth—"
    letters = [word.strip(".,") for word in words.undashed(typed).split()]
    assert letters == ["first", "second", "third", "fourth", "fifth", "sixth"]


def test_dashes_with_nothing_but_space_between_them_are_one() -> None:
    assert words.undashed("so — \u2013 it runs ― \u2014") == "so, it runs."
    assert words.undashed(" — \u2013 it runs") == "it runs"
    assert "—" not in words.undashed("so - — it runs")


@pytest.mark.parametrize("piece", [" ", "a — ", "— ", "\u2014a", " - ", "3\u20133", "a - "])
def test_a_sentence_of_any_length_is_shown_at_once(piece: str) -> None:
    shown = words.undashed(piece * (900_000 // len(piece)))
    assert "\u2014" not in shown


def test_what_would_steer_a_terminal_or_turn_text_around_is_made_visible() -> None:
    assert words.visible("a\x1b]0;t\x07b\u202ec\u200bd\ne\tf") == "a\\x1b]0;t\\x07b\\u202ec\\u200bd\ne\tf"


@pytest.mark.parametrize(
    ("value", "said"),
    [(0.214, "0.21 s"), (38.06, "38.1 s"), (300, "5 min"), (725, "12 min 5 s"), (7205, "2 h 0 min 5 s")],
)
def test_durations(value: float, said: str) -> None:
    assert words.seconds(value) == said


def test_absence_is_said_in_words() -> None:
    assert words.seconds(None) == "not recorded"
    assert words.size(None) == "not recorded"


def test_sizes_and_money() -> None:
    assert words.size(999) == "999 bytes"
    assert words.size(1_500_000) == "1.5 MB"
    assert words.binary(4 * 1024**3) == "4 GiB"
    assert words.binary(64 * 1024**2) == "64 MiB"
    assert words.money(0.0) == "0.00 USD"
    assert words.money(0.0042) == "0.0042 USD"
    assert words.money(0.0000012) == "0.0000012 USD"
    assert [usd(amount) for amount in (3.0, 0.000001, 0.5, 2_000_000.0)] == [
        "3 USD",
        "0.000001 USD",
        "0.5 USD",
        "2000000 USD",
    ]


@pytest.mark.parametrize(
    ("one", "objection"),
    [
        (Try("r-1", "s", sandbox="overlay"), "overlay: no security boundary, never publishable"),
        (Try("r-1", "s", seconds=60), "its budget was 60 s; the published standard budget is 5400 s"),
        (Try("r-1", "s", cap_usd=0.01), "its key's cap was 0.01 USD; the published cap is 3 USD"),
        (Try("r-1", "s", edition=1), "it was planned under edition 1, which scores the report without corroboration"),
        (Try("r-1", "s", harness="0.2.0+local"), "the harness was modified locally (version 0.2.0+local)"),
        (Try("r-1", "s", complete=False), "its recording is not complete (size reached)"),
    ],
)
def test_the_gate_names_each_objection(one: Try, objection: str, made: Written) -> None:
    planned, ended = _records(one, made)
    assert objections(planned, ended, invalid=None, flagged=False) == [objection]


@pytest.mark.parametrize("cap", [None, 3.0])
def test_the_gate_has_nothing_against_a_sound_run(cap: float | None, made: Written) -> None:
    planned, ended = _records(Try("r-1", "s", cap_usd=cap), made)
    assert objections(planned, ended, invalid=None, flagged=False) == []


def test_the_gate_repeats_no_objection_that_the_plan_had_recorded(made: Written) -> None:
    planned, ended = _records(Try("r-1", "s", sandbox="overlay", seconds=60, cap_usd=9.0), made)
    noted = (
        "the sandbox is no security boundary",
        "the budget is 60 s, the methodology's …",
        "the key's cap is 9 USD, the methodology's …",
        "the moon is wrong",
    )
    planned = planned.model_copy(update={"lock": planned.lock.model_copy(update={"not_publishable": noted})})
    found = objections(planned, ended, invalid=None, flagged=False)
    assert len(found) == 4
    assert found[-1] == "the moon is wrong"


def test_the_gate_wants_an_end_a_recording_and_a_person(made: Written) -> None:
    planned, ended = _records(Try("r-1", "s"), made)
    assert objections(planned, None, invalid=None, flagged=False) == ["no end of the attempt is recorded"]
    unrecorded = ended.model_copy(update={"recording": None})
    assert objections(planned, unrecorded, invalid="its recording is gone", flagged=True) == [
        "it has no complete recording",
        "the attempt is invalid: its recording is gone",
        "its report was contradicted and a person has not looked at it",
    ]


def test_agents_are_neutral_in_the_order_of_their_first_attempt() -> None:
    agents = [lock_of(Try("r", "s", agent=f"maker-{number}")).agent for number in range(28)]
    names = AgentNames([*agents, lock_of(Try("r", "s")).agent, agents[0]], neutral=True)
    assert [names.view(agent).label for agent in (agents[0], agents[1], agents[27])] == [
        "Agent A",
        "Agent B",
        "Agent AB",
    ]
    assert names.view(lock_of(Try("r", "s")).agent).label == "baseline"
    assert names.view(agents[0]).version is None


def test_agents_that_share_a_name_are_told_apart() -> None:
    first = lock_of(Try("r", "s")).agent
    second = first.model_copy(update={"digest": "agent:sha256:" + "0a" * 32})
    names = AgentNames([first, second, first], neutral=True)
    assert (names.view(first).label, names.view(second).label) == ("baseline (efefefef)", "baseline (0a0a0a0a)")


@pytest.fixture
def made(tmp_path: Path) -> Written:
    return Written(tmp_path)


def _records(one: Try, made: Written) -> tuple[AttemptPlanned, AttemptEnded]:
    made.write((one,))
    planned, ended = made.records.read()
    assert isinstance(planned, AttemptPlanned)
    assert isinstance(ended, AttemptEnded)
    return planned, ended
