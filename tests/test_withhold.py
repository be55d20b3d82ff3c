"""What lies in a run's spool directory: redacted where it can be, proven, deleted where it cannot be shown free."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from referee.core.failure import Cause
from referee.core.records import RerunFacts
from referee.core.redaction import Redactor
from referee.core.sieve import shown_free
from referee.protocols import Completed
from referee.runner.withhold import Screen, ScreenedMachine, withhold_all
from tests.test_store_records import ended

TOKEN = "sk-run-" + "9d3b1f70c2a84e56917fb0d8e2c4a6b8f1e3d5c7a9b0c2d4"
SECRETS = {"run-key": TOKEN}
WIDE = "".join(chr(ord(one) + 0xFEE0) for one in TOKEN)


def spool(directory: Path, **files: str) -> Path:
    directory.mkdir(exist_ok=True)
    for name, text in files.items():
        (directory / name.replace("__", ".")).write_text(text)
    return directory


def names(directory: Path) -> set[str]:
    return {path.name for path in directory.iterdir()}


def test_what_can_be_cut_out_is_and_json_stays_json(tmp_path: Path) -> None:
    report = json.dumps({"final_state": f"the key is {TOKEN}", "nested": json.dumps({"k": TOKEN})})
    log = json.dumps({"phase": "agent", "error": f"MachineFault: said {TOKEN[:20]}"}) + "\n"
    directory = spool(
        tmp_path / "r", report__json=report, harness__jsonl=log, session__raw="plain\r\n", mission__json="{}"
    )
    assert Screen(SECRETS).withhold(directory) == ()
    assert json.loads((directory / "report.json").read_text())["final_state"] == "the key is [redacted:run-key]"
    assert json.loads((directory / "harness.jsonl").read_text())["error"] == "MachineFault: said [redacted:run-key]"
    assert all(shown_free([path.read_bytes()], Redactor(SECRETS)) for path in directory.iterdir())


def test_a_file_that_cannot_be_shown_free_is_deleted_and_the_others_stay(tmp_path: Path) -> None:
    directory = spool(tmp_path / "r", rerun__txt="fine", report__json="{}", session__raw="fine", session__timing="1")
    (directory / "control.txt").write_text(f"x\x08{TOKEN[:9]}\x1b]0;a\x07{TOKEN[9:]} {WIDE}")
    gone = Screen(SECRETS).withhold(directory)
    assert gone == ("control.txt",)
    assert names(directory) == {"rerun.txt", "report.json", "session.raw", "session.timing"}
    assert all(shown_free([path.read_bytes()], Redactor(SECRETS)) for path in directory.iterdir())


@pytest.mark.parametrize("where", ["session.raw", "transcript.txt"])
def test_a_recording_is_kept_or_withheld_as_a_whole(tmp_path: Path, where: str) -> None:
    parts = {"session__raw": "a", "session__timing": "b", "session__cast": "c", "transcript__txt": "d"}
    directory = spool(tmp_path / "r", **parts, report__json="{}")
    (directory / where).write_text(f"seen: {TOKEN}")
    assert Screen(SECRETS).withhold(directory) == ("session.cast", "session.raw", "session.timing", "transcript.txt")
    assert names(directory) == {"report.json"}


def test_what_a_sieve_could_not_place_withholds_the_recording(tmp_path: Path) -> None:
    screen = Screen(SECRETS)
    assert WIDE.encode() not in screen.sieve.feed(f"{WIDE}\r\n".encode()) + screen.sieve.end()
    directory = spool(tmp_path / "r", session__raw="so far", session__timing="t")
    assert screen.withhold(directory) == ("session.raw", "session.timing")


def test_what_a_dead_run_had_sealed_is_not_written_to(tmp_path: Path) -> None:
    directory = spool(tmp_path / "r", harness__jsonl=f"error {TOKEN}\n")
    (tmp_path / "blob").hardlink_to(directory / "harness.jsonl")
    Screen(SECRETS).withhold(directory)
    assert (directory / "harness.jsonl").read_text() == "error [redacted:run-key]\n"
    assert (tmp_path / "blob").read_text() == f"error {TOKEN}\n"
    assert names(directory) == {"harness.jsonl"}


def test_of_a_run_whose_key_is_not_known_only_what_never_saw_it_stays(tmp_path: Path) -> None:
    directory = spool(
        tmp_path / "r", session__raw="a", harness__jsonl="b", mission__json="{}", lock__json="{}", subject__toml=""
    )
    assert withhold_all(directory) == ("harness.jsonl", "session.raw")
    assert names(directory) == {"mission.json", "lock.json", "subject.toml"}


def test_the_record_itself_is_redacted(tmp_path: Path) -> None:
    again = RerunFacts(command=f"echo {TOKEN}", exit_status=0, timed_out=False, seconds=1.0, output="rerun.txt")
    end = ended("r-1").model_copy(update={"rerun": again, "detail": f"said {TOKEN[:30]}", "machine": {"k": [TOKEN]}})
    clean = Screen(SECRETS).ended(end)
    assert clean.rerun is not None
    assert clean.rerun.command == "echo [redacted:run-key]"
    assert clean.detail == "said [redacted:run-key]"
    assert clean.machine == {"k": ["[redacted:run-key]"]}


def test_a_record_that_cannot_be_redacted_keeps_no_word_of_the_machine() -> None:
    end = ended("r-1").model_copy(update={"machine": {"a": WIDE}, "report_rejected": WIDE})
    clean = Screen(SECRETS).ended(end)
    assert shown_free([clean.model_dump_json().encode()], Redactor(SECRETS))
    assert clean.cause in {None, Cause.CREDENTIAL_IN_EVIDENCE}
    half = TOKEN[:12]
    split = ended("r-1").model_copy(update={"detail": half, "report_rejected": None, "machine": {"b": TOKEN[12:]}})
    assert shown_free([Screen(SECRETS).ended(split).model_dump_json().encode()], Redactor(SECRETS))


class Machine:
    """As much of a machine as is asked: every answer holds the key."""

    run = "r-1"

    def execute(self, *_: object, **__: object) -> Completed:
        return Completed(0, f"key {TOKEN}\n".encode() * 3_000, timed_out=False, truncated=False)

    def read_file(self, path: str, *, max_bytes: int) -> bytes | None:
        return {"/a": json.dumps({"k": TOKEN}).encode(), "/b": WIDE.encode()}.get(path)

    def facts(self) -> dict[str, object]:
        return {"said": [TOKEN]}


def test_nothing_that_a_machine_says_holds_the_key(tmp_path: Path) -> None:
    screen = Screen(SECRETS)
    machine = ScreenedMachine(Machine(), screen)  # type: ignore[arg-type]
    assert machine.execute(("x",), timeout=1).output == b"key [redacted:run-key]\n" * 3_000
    assert machine.read_file("/a", max_bytes=9) == b'{"k": "[redacted:run-key]"}'
    assert machine.read_file("/none", max_bytes=9) is None
    assert machine.facts() == {"said": ["[redacted:run-key]"]}
    assert screen.withhold(spool(tmp_path / "r", report__json="{}")) == ()
    assert machine.read_file("/b", max_bytes=9) == b"[redacted:run-key]"
    assert screen.withhold(tmp_path / "r") == ("b",), "what could not be placed is told"
