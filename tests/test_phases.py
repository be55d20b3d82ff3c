"""The timeline of a run has the phases that took place, in words; the terminal says the same ones while they last."""

from __future__ import annotations

import ast
import io
import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from referee.adapters.store.evidence import LocalEvidence
from referee.cli.progress import Progress
from referee.core.failure import Cause
from referee.core.records import (
    AskedFacts,
    AttemptEnded,
    AttemptFound,
    ControlFacts,
    ObservedFacts,
    RerunFacts,
)
from referee.publish.attachments import Attachments
from referee.publish.words import PHASES
from referee.runner import attempt

#: Every phase that an attempt can go through, as a harness wrote them that entered each of them in any case.
LOG = b"".join(
    json.dumps({"phase": name, "began": n, "seconds": 0.0}).encode() + b"\n"
    for n, name in enumerate(PHASES)
    if name != "install"
)
AGAIN = RerunFacts(command="square 12", exit_status=0, timed_out=False, seconds=0.2, output="rerun.txt")
CONTROL = ControlFacts(kind="no-project", command="square 12", exit_status=1, timed_out=False, output=None)
OF_THE_REPORT = ("rerun", "challenge", "control")


def told(root: Path, *files: str, log: bytes | None = LOG, found: bool = False, **facts: Any) -> list[str]:
    """The phases shown of a run with these files of evidence and facts of its record."""
    evidence = LocalEvidence(root / "evidence")
    refs = [evidence.keep(name, b"printed\n") for name in files]
    if log is not None:
        refs.append(evidence.keep("harness.jsonl", log))
    common: dict[str, Any] = {"run": "r-1", "at": "2026-11-30T00:00:00.000Z", "detail": ""}
    common |= {"evidence": tuple(refs), "evidence_digest": "sha256:" + "0" * 64}
    end: AttemptEnded | AttemptFound
    if found:
        end = AttemptFound(**common, cause=Cause.HARNESS_DIED, reaped=())
    else:
        values: dict[str, Any] = {"rerun": None, "recording": None, "quiet": None, "report_rejected": None}
        values |= {"cause": None, "spent_usd": 0.0, "phases": dict.fromkeys(PHASES, 0.0), "machine": {}}
        end = AttemptEnded(**common, **{**values, **facts})
    names = {words: name for name, words in PHASES.items()}
    return [names[step.text] for step in Attachments(end, evidence).steps()]


def test_nothing_is_told_of_a_report_that_was_not_there(tmp_path: Path) -> None:
    shown = told(tmp_path, observed=ObservedFacts(listening=()))
    assert not {*OF_THE_REPORT} & {*shown}
    assert {"machine", "agent", "listening", "quiet", "report", "destroy", "network", "seal"} <= {*shown}


def test_a_record_without_a_log_tells_no_more(tmp_path: Path) -> None:
    assert not {*OF_THE_REPORT} & {*told(tmp_path, log=None)}
    assert "rerun" in told(tmp_path, log=None, rerun=AGAIN)


@pytest.mark.parametrize(
    ("files", "facts", "shown"),
    [
        ((), {"rerun": AGAIN}, ["rerun"]),
        (("rerun.txt", "control.txt"), {"rerun": AGAIN}, ["rerun", "control"]),
        (("rerun.txt", "challenge-1.txt"), {"rerun": AGAIN}, ["rerun", "challenge"]),
        ((), {"rerun": AGAIN, "observed": ObservedFacts(control=CONTROL)}, ["rerun", "control"]),
        (
            (),
            {"rerun": AGAIN, "observed": ObservedFacts(asked=AskedFacts(rules=1, number=2, left="no time"))},
            ["rerun", "challenge"],
        ),
        (("rerun.txt",), {"found": True}, ["rerun"]),
        ((), {"found": True}, []),
    ],
)
def test_what_evidence_or_record_know_is_told(
    tmp_path: Path, files: tuple[str, ...], facts: dict[str, Any], shown: list[str]
) -> None:
    assert [name for name in told(tmp_path, *files, **facts) if name in OF_THE_REPORT] == shown


def test_ports_that_could_not_be_looked_at_were_not(tmp_path: Path) -> None:
    assert "listening" not in told(tmp_path, observed=ObservedFacts())


def test_a_phase_that_failed_took_place(tmp_path: Path) -> None:
    failed = b'{"phase": "control", "began": 1.0, "seconds": 2.0, "error": "MachineFault: gone"}\n'
    assert told(tmp_path, log=failed) == ["control"]


def test_every_phase_has_words_and_the_terminal_says_them() -> None:
    names: set[str] = set()
    for module in ("attempt", "conclude", "agent_check", "replay"):
        tree = ast.parse((Path(attempt.__file__).parent / f"{module}.py").read_text("utf-8"))
        for call in ast.walk(tree):
            if isinstance(call, ast.Call) and ast.unparse(call.func).rpartition(".")[2] in {"phase", "tell"}:
                names |= {str(one.value) for one in call.args if isinstance(one, ast.Constant)}
    assert {"listening", "challenge", "control", "network", "seal", "install"} <= names
    out = io.StringIO()
    progress = Progress(Console(file=out, width=40))
    for name in sorted(names):
        progress.tell(name)
    said = [line.strip() for line in out.getvalue().splitlines()]
    assert said == [PHASES[name] for name in sorted(names)]
    assert all(" " in words for words in PHASES.values())
