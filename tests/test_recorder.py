"""The recorder on real pseudo-terminals: what was printed is kept to the byte, and every end is named."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from referee.adapters.recorder import (
    Caps,
    Control,
    HostPtySession,
    Recorded,
    RecordingFiles,
    derive,
    record,
)
from referee.core.timing import Coverage, Event
from referee.errors import MachineFault, UsageError

FAR = 60.0


@contextmanager
def running(*argv: str) -> Iterator[HostPtySession]:
    session = HostPtySession(argv)
    try:
        yield session
    finally:
        session.end()
        session.close()


def record_shell(
    script: str,
    directory: Path,
    *,
    caps: Caps | None = None,
    seconds: float = FAR,
    watch: Callable[[], str | None] | None = None,
    on_output: Callable[[bytes], None] | None = None,
    control: Control | None = None,
) -> Recorded:
    with running("sh", "-c", script) as session:
        return record(
            session,
            directory=directory,
            columns=80,
            rows=24,
            caps=caps or Caps(),
            deadline=time.monotonic() + seconds,
            watch=watch,
            on_output=on_output,
            control=control,
        )


def events(directory: Path) -> list[Event]:
    seen: list[Event] = []
    for event, _ in RecordingFiles.of(directory).playback():
        if not seen or seen[-1] != event:
            seen.append(event)
    return seen


def coverage(directory: Path) -> Coverage:
    return RecordingFiles.of(directory).coverage()


class Scripted:
    """A session that hands out prepared answers; an exception in place of an answer is raised."""

    def __init__(self, *answers: bytes | Exception | None, status: int | None = 0) -> None:
        self.answers = list(answers)
        self.status = status
        self.sizes: list[tuple[int, int]] = []

    def read(self, size: int, timeout: float) -> bytes | None:
        answer = self.answers.pop(0) if self.answers else b""
        if isinstance(answer, Exception):
            raise answer
        if answer is None:
            time.sleep(min(timeout, 0.01))
        return answer

    def write(self, data: bytes) -> None:
        raise AssertionError("the recorder types nothing")

    def resize(self, columns: int, rows: int) -> None:
        self.sizes.append((columns, rows))

    def exit_status(self, timeout: float) -> int | None:
        if self.status is None:
            time.sleep(min(timeout, 0.01))
        return self.status

    def close(self) -> None:
        """Nothing is held."""


def record_scripted(session: Scripted, directory: Path, caps: Caps | None = None, seconds: float = FAR) -> Recorded:
    return record(
        session, directory=directory, columns=80, rows=24, caps=caps or Caps(), deadline=time.monotonic() + seconds
    )


# --- what is kept -------------------------------------------------------------------------------


def test_output_times_and_exit_status_are_kept(tmp_path: Path) -> None:
    recorded = record_shell("printf 'one\\n'; sleep 0.2; printf 'two\\n'; exit 3", tmp_path)
    assert recorded.raw.read_bytes() == b"one\r\ntwo\r\n"
    assert recorded.end == "ended"
    assert recorded.exit_status == 3
    assert recorded.complete
    kept = events(tmp_path)
    assert [event.kind for event in kept] == ["o", "o", "x", "e"]
    assert kept[1].at - kept[0].at >= 150_000
    assert kept[2].text == "3"
    covered = coverage(tmp_path)
    assert covered.whole
    assert covered.covered_bytes == recorded.bytes == 10
    assert covered.events == recorded.events == 3
    facts = recorded.facts()
    assert (facts.bytes, facts.events, facts.exit_status, facts.complete) == (10, 3, 3, True)
    assert facts.caps_reached == ()
    assert facts.write_error is None


def test_bytes_that_are_no_text_are_kept_as_they_are(tmp_path: Path) -> None:
    data = bytes(range(256)) * 40
    source = tmp_path / "data"
    source.write_bytes(data)
    recorded = record_shell(f"stty raw; cat {source}", tmp_path)
    assert recorded.raw.read_bytes() == data


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.binary(min_size=1, max_size=50), max_size=30))
def test_raw_is_the_concatenation_of_the_reads(tmp_path_factory: pytest.TempPathFactory, reads: list[bytes]) -> None:
    directory = tmp_path_factory.mktemp("recording")
    recorded = record_scripted(Scripted(*reads), directory)
    assert recorded.raw.read_bytes() == b"".join(reads)
    assert coverage(directory).whole


def test_character_split_over_reads(tmp_path: Path) -> None:
    family = "👩‍👩‍👧 日本".encode()
    recorded = record_scripted(Scripted(*(family[at : at + 1] for at in range(len(family)))), tmp_path)
    derived = derive(RecordingFiles.of(tmp_path), tmp_path)
    assert recorded.raw.read_bytes() == family
    assert derived.transcript.read_text("utf-8") == "👩‍👩‍👧 日本\n"
    assert "\ufffd" not in derived.cast.read_text("utf-8")


def test_reads_within_a_millisecond_are_one_event(tmp_path: Path) -> None:
    recorded = record_scripted(Scripted(*[b"x"] * 2_000), tmp_path)
    assert recorded.bytes == 2_000
    assert recorded.events < 1_000


def test_output_is_handed_on(tmp_path: Path) -> None:
    seen: list[bytes] = []
    recorded = record_shell("printf hello", tmp_path, on_output=seen.append)
    assert b"".join(seen) == recorded.raw.read_bytes() == b"hello"


def test_resize_and_marker(tmp_path: Path) -> None:
    control = Control()

    def after_first(data: bytes) -> None:
        if b"ready" in data:
            control.resize(100, 30)
            control.mark("resized\nhere")

    script = "stty size; trap 'stty size; exit 0' WINCH; echo ready; while :; do sleep 0.1; done"
    recorded = record_shell(script, tmp_path, on_output=after_first, control=control, seconds=20)
    assert recorded.exit_status == 0
    assert recorded.raw.read_bytes() == b"24 80\r\nready\r\n30 100\r\n"
    asked = [(event.kind, event.text) for event in events(tmp_path) if event.kind in "rm"]
    assert asked == [("r", "100x30"), ("m", "resized here")]
    assert recorded.caps_reached == ()


def test_resize_beyond_the_largest_is_cut_and_announced(tmp_path: Path) -> None:
    control = Control()
    control.resize(60_000, 60_000)
    session = Scripted(b"a", b"b")
    recorded = record(
        session, directory=tmp_path, columns=80, rows=24, caps=Caps(), deadline=time.monotonic() + FAR, control=control
    )
    assert session.sizes == [(500, 200)]
    assert recorded.caps_reached == ("resize",)
    assert recorded.complete


def test_terminal_beyond_the_largest_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        record(Scripted(), directory=tmp_path, columns=501, rows=24, caps=Caps(), deadline=time.monotonic() + FAR)


# --- how it ends --------------------------------------------------------------------------------


def test_size_cap_stops_and_is_announced(tmp_path: Path) -> None:
    recorded = record_shell("yes", tmp_path, caps=Caps(max_bytes=100_001))
    assert recorded.end == "size_cap"
    assert recorded.caps_reached == ("size",)
    assert recorded.raw.stat().st_size == recorded.bytes == 100_001
    assert not recorded.complete
    assert recorded.exit_status is None
    assert coverage(tmp_path).ended == "size_cap"
    assert coverage(tmp_path).whole


def test_exactly_the_cap_is_no_cap(tmp_path: Path) -> None:
    recorded = record_shell("printf 12345", tmp_path, caps=Caps(max_bytes=5))
    assert recorded.end == "ended"
    assert recorded.caps_reached == ()


def test_event_cap_stops_and_is_announced(tmp_path: Path) -> None:
    recorded = record_shell("while :; do echo x; sleep 0.01; done", tmp_path, caps=Caps(max_events=5))
    assert recorded.end == "event_cap"
    assert recorded.caps_reached == ("events",)
    assert coverage(tmp_path).events == recorded.events == 5
    assert not recorded.complete


@pytest.mark.parametrize("script", ["sleep 60", "yes", "exec >/dev/null 2>&1 </dev/null; sleep 60"])
def test_deadline_stops(tmp_path: Path, script: str) -> None:
    recorded = record_shell(script, tmp_path, seconds=0.3)
    assert recorded.end == "deadline"
    assert recorded.caps_reached == ("duration",)
    assert recorded.exit_status is None
    assert recorded.complete
    assert coverage(tmp_path).ended == "deadline"


@pytest.mark.parametrize("script", ["sleep 60", "yes", "exec >/dev/null 2>&1 </dev/null; sleep 60"])
def test_watch_stops_busy_or_silent(tmp_path: Path, script: str) -> None:
    recorded = record_shell(script, tmp_path, watch=lambda: "memory")
    assert recorded.end == "watch"
    assert recorded.detail == "memory"
    assert recorded.exit_status is None


def test_command_that_closes_its_terminal_is_waited_for(tmp_path: Path) -> None:
    recorded = record_shell("echo hi; exec >/dev/null 2>&1 </dev/null; sleep 0.4; exit 7", tmp_path)
    assert recorded.end == "ended"
    assert recorded.exit_status == 7


@pytest.mark.parametrize("left_behind", ["sleep 50", "yes"])
def test_terminal_held_open_by_what_the_command_left_behind(tmp_path: Path, left_behind: str) -> None:
    recorded = record_shell(f"(trap '' HUP; exec {left_behind}) & sleep 0.1; echo done; exit 5", tmp_path, seconds=40)
    assert recorded.end == "ended"
    assert recorded.exit_status == 5
    assert recorded.complete
    assert b"done" in recorded.raw.read_bytes()
    assert coverage(tmp_path).exit_status == 5


def test_command_ended_by_a_signal(tmp_path: Path) -> None:
    recorded = record_shell("kill -9 $$", tmp_path)
    assert recorded.exit_status == 137


def test_command_that_cannot_be_started(tmp_path: Path) -> None:
    with running("/nonexistent/program") as session:
        recorded = record(
            session, directory=tmp_path, columns=80, rows=24, caps=Caps(), deadline=time.monotonic() + FAR
        )
    assert recorded.exit_status == 127
    assert b"No such file" in recorded.raw.read_bytes()


@pytest.mark.parametrize("fault", [ConnectionResetError("reset"), MachineFault("The engine has gone.")])
def test_broken_stream_is_told(tmp_path: Path, fault: Exception) -> None:
    recorded = record_scripted(Scripted(b"before", fault), tmp_path)
    assert recorded.end == "stream_lost"
    assert str(fault) in recorded.detail
    assert recorded.raw.read_bytes() == b"before"
    assert not recorded.complete


def test_engine_that_gives_no_status_does_not_change_the_deadline(tmp_path: Path) -> None:
    class Mute(Scripted):
        def exit_status(self, timeout: float) -> int | None:
            raise MachineFault("The engine is busy.")

    recorded = record_scripted(Mute(*[None] * 10_000), tmp_path, seconds=0.2)
    assert recorded.end == "deadline"


def test_command_that_ended_just_in_time_has_ended(tmp_path: Path) -> None:
    recorded = record_scripted(Scripted(*[None] * 10_000, status=4), tmp_path, seconds=0.2)
    assert recorded.end == "ended"
    assert recorded.exit_status == 4


@pytest.mark.parametrize("fault", [KeyboardInterrupt(), MachineFault("The watch itself failed.")])
def test_what_callbacks_raise_leaves_the_files_readable(tmp_path: Path, fault: BaseException) -> None:
    def raise_fault(_: bytes) -> None:
        raise fault

    with pytest.raises(type(fault)):
        record_shell("echo seen; sleep 60", tmp_path, on_output=raise_fault)
    assert (tmp_path / "session.raw").read_bytes() == b"seen\r\n"
    kept = coverage(tmp_path)
    assert kept.covered_bytes == 6
    assert kept.ended is None


def test_an_earlier_recording_is_never_overwritten(tmp_path: Path) -> None:
    record_shell("echo first", tmp_path)
    recorded = record_shell("echo second", tmp_path)
    assert recorded.end == "write_error"
    assert (tmp_path / "session.raw").read_bytes() == b"first\r\n"
