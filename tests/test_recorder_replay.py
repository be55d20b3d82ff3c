"""Replaying a recording: at its pace, harmless to the viewer's terminal, the end told."""

from __future__ import annotations

import io
import subprocess
import sys
import time
from pathlib import Path

import pytest

from referee.adapters.recorder import Caps, HostPtySession, RecordingFiles, record
from referee.cli.replay import LEAVE_ALTERNATE, RESET, Pace, print_end, print_plain, replay
from referee.core.timing import Coverage, Header
from referee.errors import Finding, UsageError

PLAY = """
import sys
from pathlib import Path
from referee.adapters.recorder import RecordingFiles
from referee.cli.replay import Pace, play_files
play_files(RecordingFiles.of(Path(sys.argv[1])), Pace(speed=1000.0), plain="--plain" in sys.argv)
"""


class Watch:
    """A clock that moves only when someone sleeps."""

    def __init__(self) -> None:
        self.now = 100.0
        self.slept: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.slept.append(round(seconds, 6))
        self.now += seconds

    def clock(self) -> float:
        return self.now


def recording(directory: Path, *parts: tuple[int, bytes], tail: tuple[str, ...] = ()) -> RecordingFiles:
    """A recording of ``parts``: microseconds and bytes."""
    header = Header(columns=80, rows=24, started_us=1, term="xterm")
    lines = [f"{at} o {len(data)}\n" for at, data in parts] + [f"{line}\n" for line in tail]
    (directory / "session.raw").write_bytes(b"".join(data for _, data in parts))
    (directory / "session.timing").write_bytes(header.line() + "".join(lines).encode())
    return RecordingFiles.of(directory)


def replayed(files: RecordingFiles, pace: Pace) -> tuple[str, list[float]]:
    out, watch = io.BytesIO(), Watch()
    replay(files, out, pace, sleep=watch.sleep, clock=watch.clock)
    return out.getvalue().decode(), watch.slept


@pytest.mark.parametrize(
    ("pace", "slept"),
    [
        (Pace(), [1.0, 10.0, 0.5]),
        (Pace(speed=2.0), [0.5, 5.0, 0.25]),
        (Pace(idle_limit=2.0), [1.0, 2.0, 0.5]),
        (Pace(speed=4.0, idle_limit=2.0), [0.25, 0.5, 0.125]),
    ],
)
def test_pace(tmp_path: Path, pace: Pace, slept: list[float]) -> None:
    files = recording(tmp_path, (1_000_000, b"a"), (11_000_000, b"b"), (11_500_000, b"c"))
    before = files.timing.read_bytes()
    text, waited = replayed(files, pace)
    assert text == "abc" + RESET + "\r\n"
    assert waited == slept
    assert files.timing.read_bytes() == before


@pytest.mark.parametrize("speed", [0.0, -1.0, float("nan"), float("inf")])
def test_impossible_speed_is_refused(speed: float) -> None:
    with pytest.raises(UsageError):
        Pace(speed=speed)


@pytest.mark.parametrize("limit", [-1.0, float("nan"), float("inf")])
def test_impossible_idle_limit_is_refused(limit: float) -> None:
    with pytest.raises(UsageError):
        Pace(idle_limit=limit)


def test_what_could_harm_the_viewer_is_left_out(tmp_path: Path) -> None:
    files = recording(tmp_path, (0, b"a\x1b]52;c;"), (5, b"aGk=\x07b\x1b[6n\x1b[?1000h"), (9, "c\x9b6n日".encode()))
    text, _ = replayed(files, Pace())
    assert text == "abc日" + RESET + "\r\n"


def test_alternate_screen_is_left_only_when_it_was_entered(tmp_path: Path) -> None:
    inside, _ = replayed(recording(tmp_path, (0, b"\x1b[?1049hfull")), Pace())
    assert inside.endswith("full" + LEAVE_ALTERNATE + RESET + "\r\n")
    left, _ = replayed(recording(tmp_path, (0, b"\x1b[?1049hfull\x1b[?1049l")), Pace())
    assert left.endswith("\x1b[?1049l" + RESET + "\r\n")
    assert left.count(LEAVE_ALTERNATE) == 1


def test_interrupted_replay_resets_the_terminal(tmp_path: Path) -> None:
    files = recording(tmp_path, (0, b"\x1b[?25l\x1b[31mred"), (9_000_000, b"never"))
    out = io.BytesIO()

    def interrupt(_: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        replay(files, out, Pace(), sleep=interrupt)
    assert out.getvalue().decode().endswith("red" + RESET + "\r\n")


def test_plain_prints_the_transcript(tmp_path: Path) -> None:
    out = io.BytesIO()
    coverage = print_plain(recording(tmp_path, (0, b"\x1b[31mred\x1b[0m\r\n"), tail=("9 x 4", "9 e ended")), out)
    assert out.getvalue() == b"red\n"
    assert coverage.exit_status == 4


@pytest.mark.parametrize(
    ("coverage", "told"),
    [
        (Coverage(exit_status=3, last_us=1_500_000, ended="ended"), "exit status 3 after 1.5 s\n"),
        (Coverage(last_us=2_000_000, ended="deadline"), "no exit status: the time limit was reached, at 2.0 s\n"),
        (Coverage(ended="size_cap"), "no exit status: the recording ended with: size_cap, at 0.0 s\n"),
        (
            Coverage(untimed_bytes=7),
            (
                "no exit status: the recording was cut short, at 0.0 s\n"
                "7 more bytes stand in the raw file, their times were lost\n"
            ),
        ),
    ],
)
def test_end_is_told(coverage: Coverage, told: str) -> None:
    out = io.StringIO()
    print_end(coverage, out)
    assert out.getvalue() == told


def test_unusable_timing_still_resets_nothing_before_it_is_told(tmp_path: Path) -> None:
    files = recording(tmp_path, (0, b"x"))
    files.timing.write_bytes(b"no header\n")
    out = io.BytesIO()
    with pytest.raises(Finding):
        replay(files, out, Pace())
    assert out.getvalue() == b""


def record_of(argv: list[str], directory: Path) -> bytes:
    session = HostPtySession(argv)
    try:
        recorded = record(
            session, directory=directory, columns=80, rows=24, caps=Caps(), deadline=time.monotonic() + 60
        )
    finally:
        session.end()
        session.close()
    assert recorded.exit_status == 0
    return recorded.raw.read_bytes()


def test_on_a_terminal_it_replays_and_elsewhere_it_prints(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    record_of(["printf", r"\033[31mred\033[0m\n\033]0;title\007"], first)
    command = [sys.executable, "-c", PLAY, str(first)]
    shown = record_of(command, second)
    assert b"\x1b[31mred\x1b[0m" in shown
    assert b"title" not in shown
    assert RESET.encode() in shown
    assert b"exit status 0 after" in shown
    piped = subprocess.run(command, capture_output=True, check=True)
    assert piped.stdout == b"red\n"
    assert piped.stderr.startswith(b"exit status 0 after")


def test_reader_that_goes_away_is_no_error(tmp_path: Path) -> None:
    files = recording(tmp_path, *((at, b"line\r\n" * 10_000) for at in range(20)))
    assert files.raw.stat().st_size > 1_000_000
    command = f"'{sys.executable}' -c \"$0\" '{tmp_path}' | head -n 1"
    done = subprocess.run(["bash", "-o", "pipefail", "-c", command, PLAY], capture_output=True, check=True)
    assert done.stdout == b"line\n"
    assert done.stderr == b""
