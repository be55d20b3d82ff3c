"""``referee verify`` against a forger who chains changes anew: record and evidence must tell the same."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from referee.core.canonical import canonical_bytes, digest_of
from referee.core.challenge_input import challenge_input
from referee.core.failure import Cause
from referee.core.records import (
    AttemptEnded,
    AttemptPlanned,
    ChallengeFacts,
    EvidenceRef,
    Lock,
    ObservedFacts,
    RerunFacts,
)
from referee.core.timing import Header
from referee.errors import Finding
from referee.runner.agreement import _is_replaced
from referee.runner.seal import facts_bytes, lock_bytes
from referee.runner.verify import verify
from referee.scoring.challenges import challenges
from tests.test_verify import MISSION, RAW, Shop, attempt, lock, open_shop, report

RUN = "r-forged"
HEAD = Header(120, 32, 1_790_000_000_000_000, "xterm").line()


def forge(shop: Shop, true: AttemptEnded, *, locked: Lock | None = None, **changed: Any) -> None:
    """A run of its own whose records and manifest are consistent among themselves."""
    planned = AttemptPlanned(run=RUN, at="2026-11-30T00:00:00.000Z", lock=locked or lock())
    said = true.model_copy(update={"run": RUN, **changed})
    given: tuple[EvidenceRef, ...] = changed.get("evidence", true.evidence)
    refs = (
        *(one for one in given if one.name not in {"lock.json", "facts.json"}),
        shop.evidence.keep("lock.json", lock_bytes(planned)),
        shop.evidence.keep("facts.json", facts_bytes(said)),
    )
    files = sorted(({"bytes": one.bytes, "digest": one.digest, "name": one.name} for one in refs), key=_name)
    manifest = canonical_bytes({"schema": "referee.evidence/1", "run": RUN, "files": files})
    digest = shop.evidence.keep("manifest.json", manifest).digest
    shop.records.append(planned)
    shop.records.append(said.model_copy(update={"evidence": refs, "evidence_digest": digest}))


def _name(file: dict[str, Any]) -> str:
    return str(file["name"])


def swapped(shop: Shop, true: AttemptEnded, **files: bytes) -> tuple[EvidenceRef, ...]:
    """The evidence with other bytes under some names (``_`` for the dot); what is derived of them is left out."""
    new = {name.replace("_", "."): data for name, data in files.items()}
    kept = [one for one in true.evidence if one.name not in {*new, "session.cast", "transcript.txt"}]
    return (*kept, *(shop.evidence.keep(name, data) for name, data in new.items()))


def without(true: AttemptEnded, *names: str) -> tuple[EvidenceRef, ...]:
    return tuple(one for one in true.evidence if one.name not in names)


def said_by(shop: Shop) -> str:
    with pytest.raises(Finding) as caught:
        verify(shop.records, shop.evidence, shop.scores)
    return caught.value.message


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return open_shop(tmp_path / "w")


@pytest.fixture
def true(shop: Shop) -> AttemptEnded:
    return attempt(shop, "r-true", report_bytes=report())


@pytest.mark.parametrize(
    ("timing", "said"),
    [
        (b"100 o 12\n250 o 11\n300 x 0\n300 e deadline\n", "ended at the time limit, the record says that the agent"),
        (b"100 o 12\n250 o 11\n300 x 0\n300 e size_cap\n", "was cut short (size_cap), the record calls it a complete"),
        (b"100 o 12\n250 o 11\n300 x 3\n300 e ended\n", "tells the exit status 3, its record 0"),
        (b"100 o 23\n300 x 0\n300 e ended\n", "has 2 events, its record says 3"),
        (b"100 o 12\n250 o 11\n300 x 0\n", "calls its recording complete, raw bytes and times do not bear that out"),
        (b"100 o 12\n250 o 10\n300 x 0\n300 e ended\n", "calls its recording complete"),
        (b"100 o 12\nnonsense\n", "session.timing: Line 3 of the timing file is no event"),
    ],
)
def test_a_record_that_tells_another_recording_is_named(
    shop: Shop, true: AttemptEnded, timing: bytes, said: str
) -> None:
    forge(shop, true, evidence=swapped(shop, true, session_raw=RAW, session_timing=HEAD + timing))
    assert said in said_by(shop)


def test_a_timeout_that_the_recording_does_not_show_is_named(shop: Shop, true: AttemptEnded) -> None:
    forge(shop, true, cause=Cause.DEADLINE)
    assert "says that the time limit ended it, its recording does not" in said_by(shop)


@pytest.mark.parametrize("name", ["subject.toml", "mission.json"])
def test_a_measurement_without_what_its_lock_is_checked_by_is_named(shop: Shop, true: AttemptEnded, name: str) -> None:
    forge(shop, true, evidence=without(true, name))
    assert f"its evidence has no {name}" in said_by(shop)


def test_a_measurement_without_its_package_manifest_is_named(shop: Shop, true: AttemptEnded) -> None:
    environment = lock().environment.model_copy(update={"packages_digest": "sha256:" + "0" * 64})
    forge(shop, true, locked=lock().model_copy(update={"environment": environment}))
    assert "its evidence has no packages.json" in said_by(shop)


def test_another_budget_than_the_agent_was_told_is_named(shop: Shop, true: AttemptEnded) -> None:
    told = {**MISSION, "seconds": 7200}
    locked = lock().model_copy(update={"mission_digest": digest_of("mission", told)})
    forge(shop, true, locked=locked, evidence=swapped(shop, true, mission_json=json.dumps(told).encode()))
    assert "was told a limit of 7200 s, the record says 5400" in said_by(shop)


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({"sandbox": "overlay"}, "calls the overlay sandbox a security boundary"),
        ({"security_boundary": False}, "is not marked unpublishable"),
    ],
)
def test_a_sandbox_made_better_than_it_is_is_named(
    shop: Shop, true: AttemptEnded, environment: dict[str, Any], said: str
) -> None:
    better = lock().environment.model_copy(update=environment)
    forge(shop, true, locked=lock().model_copy(update={"environment": better}))
    assert said in said_by(shop)


def test_a_record_file_that_was_taken_away_leaves_a_number_missing(shop: Shop, true: AttemptEnded) -> None:
    forge(shop, true, locked=lock().model_copy(update={"index": 3}))
    assert "attempt 2 at segno by baseline is not in the records, though attempt 3 is" in said_by(shop)
    assert verify(shop.records, shop.evidence, shop.scores, [RUN]).runs == 1


@pytest.mark.parametrize(
    "changed",
    [
        {"rerun": None},
        {"quiet": None},
        {"detail": "another sentence"},
        {"cause": Cause.HARNESS_DIED},
        {"spent_usd": 2.5},
    ],
    ids=["rerun", "quiet", "detail", "cause", "spent"],
)
def test_a_last_line_that_was_changed_alone_is_named(tmp_path: Path, changed: dict[str, Any]) -> None:
    shop = open_shop(tmp_path / "w")
    true = attempt(shop, RUN, report_bytes=report())
    shop.records.close()
    shop.scores.mkdir(exist_ok=True)
    (file,) = (shop.root / "records").glob("*.jsonl")
    first, last = file.read_bytes().splitlines(keepends=True)
    line = json.loads(last)
    line["body"] |= json.loads(true.model_copy(update=changed).model_dump_json())
    file.write_bytes(first + canonical_bytes(line) + b"\n")
    assert "what was sealed as facts.json" in said_by(open_shop(shop.root))


def test_a_lock_that_was_changed_alone_is_named(shop: Shop, true: AttemptEnded) -> None:
    other = lock().model_copy(update={"harness_version": "9.9.9"})
    shop.records.append(AttemptPlanned(run="r-other", at="2026-11-30T00:00:00.000Z", lock=other))
    shop.records.append(true.model_copy(update={"run": "r-other"}))
    assert "r-other" in said_by(shop)


COMMAND = "python3 square.py 12"


def observed(**changed: Any) -> ObservedFacts:
    """A challenge as it must be for the forged run, and a control, with something changed."""
    one = {
        "original": "12",
        "replaced_by": challenge_input(RUN, "12", 0),
        "command": COMMAND.replace("12", challenge_input(RUN, "12", 0)),
        "exit_status": 0,
        "timed_out": False,
        "output": None,
    }
    control = {"kind": "no-project", "command": COMMAND, "exit_status": 1, "timed_out": False, "output": None}
    facts = {"challenges": [one | changed.pop("challenge", {})], "control": control | changed.pop("control", {})}
    facts |= changed
    return ObservedFacts.model_validate_json(json.dumps(facts))


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"challenge": {"replaced_by": "13", "command": "python3 square.py 13"}}, "does not follow from the run's id"),
        ({"challenge": {"command": "echo done"}}, "does not follow from the run's id"),
        ({"control": {"command": "false"}}, "its negative control ran another command"),
        ({"asked": {"rules": 2, "number": 2}}, "of 2 challenges its record tells 1, and not why"),
        ({"asked": {"rules": 2, "number": 1}}, "its command does not get 1 challenges, which its record tells"),
        ({"asked": {"rules": 2, "number": 0, "left": "no time"}}, "of 0 challenges its record tells 1, and not why"),
        ({"control": {"output": "control.txt"}}, "its evidence has no control.txt, which its record names"),
    ],
)
def test_what_was_observed_beside_the_re_run_must_agree(
    shop: Shop, true: AttemptEnded, changed: dict[str, Any], said: str
) -> None:
    again = RerunFacts(command=COMMAND, exit_status=0, timed_out=False, seconds=1.0, output=None)
    forge(shop, true, rerun=again, observed=observed(**changed))
    assert said in said_by(shop)


@pytest.mark.parametrize(
    "asked", [{}, {"asked": {"rules": 2, "number": 2, "left": "no time"}}, {"asked": {"rules": 0, "number": 1}}]
)
def test_challenges_that_follow_from_the_run_agree(shop: Shop, true: AttemptEnded, asked: dict[str, Any]) -> None:
    again = RerunFacts(command=COMMAND, exit_status=0, timed_out=False, seconds=1.0, output=None)
    forge(shop, true, rerun=again, observed=observed(**asked))
    verify(shop.records, shop.evidence, shop.scores, [RUN])


@pytest.mark.parametrize(
    "command", ['n=12; python3 square.py "$n"', "for n in 12; do python3 square.py $n; done | cat"]
)
def test_a_variable_that_gave_way_agrees(shop: Shop, true: AttemptEnded, command: str) -> None:
    again = RerunFacts(command=command, exit_status=0, timed_out=False, seconds=1.0, output=None)
    first, second = challenges(command, RUN)
    made = [
        ChallengeFacts(**asdict(one), exit_status=0, timed_out=False, output=None, could_not_run=None)
        for one in (first, second)
    ]
    forge(shop, true, rerun=again, observed=ObservedFacts(challenges=tuple(made)))
    verify(shop.records, shop.evidence, shop.scores, [RUN])


def test_a_variable_that_did_not_give_way_is_named(shop: Shop, true: AttemptEnded) -> None:
    command = 'n=12; python3 square.py "$n"'
    one = challenges(command, RUN)[0]
    other = f'n=12; echo "{one.replaced_by}"'
    again = RerunFacts(command=command, exit_status=0, timed_out=False, seconds=1.0, output=None)
    made = ChallengeFacts(**asdict(one) | {"command": other}, exit_status=0, timed_out=False, output=None)
    forge(shop, true, rerun=again, observed=ObservedFacts(challenges=(made,)))
    assert "does not follow from the run's id" in said_by(shop)


@pytest.mark.parametrize(
    ("ran", "agrees"),
    [
        ("square 18 && true", True),
        ("square 18 && count all", True),
        ("square 18 && cat", True),
        ("square 18 && echo 144", False),
        ("square 18 && count none", False),
    ],
)
def test_only_commands_behind_the_replaced_input_may_be_left_out(ran: str, *, agrees: bool) -> None:
    one = ChallengeFacts(original="12", replaced_by="18", command=ran, exit_status=0, timed_out=False, output=None)
    assert _is_replaced("square 12 && count all", one) is agrees
