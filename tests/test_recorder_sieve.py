"""Recording a session with a key: no plaintext on the disk at any moment, times that fit, nothing else altered."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from referee.adapters.recorder import Caps, HostPtySession, Recorded, RecordingFiles, derive, record
from referee.core.redaction import Redactor
from referee.core.sieve import Sieve, shown_free
from tests.test_recorder import Scripted

TOKEN = "sk-run-" + "4f0c9be1d27a83356e10f4b2c8d97a5e6b3f1c08a7d2e945"
REDACTOR = Redactor({"run-key": TOKEN})
MARK = b"[redacted:run-key]"


def recorded(
    session: Scripted | HostPtySession, directory: Path, *, caps: Caps | None = None, seconds: float = 60.0
) -> Recorded:
    seen: list[bytes] = []
    done = record(
        session,
        directory=directory,
        columns=80,
        rows=24,
        caps=caps or Caps(),
        deadline=time.monotonic() + seconds,
        on_output=seen.append,
        sieve=Sieve(REDACTOR),
    )
    assert shown_free(seen, REDACTOR), "what is shown live is redacted too"
    return done


def test_a_key_split_over_reads_is_never_written_and_the_files_fit(tmp_path: Path) -> None:
    token = TOKEN.encode()
    done = recorded(Scripted(b"before ", token[:5], None, token[5:30], None, token[30:] + b" after\r\n"), tmp_path)
    assert (tmp_path / "session.raw").read_bytes() == b"before " + MARK + b" after\r\n"
    files = RecordingFiles.of(tmp_path)
    assert files.coverage().whole
    assert done.bytes == len(b"before " + MARK + b" after\r\n")
    derive(files, tmp_path)
    assert (tmp_path / "transcript.txt").read_bytes() == b"before " + MARK + b" after\n"


@pytest.mark.parametrize("last", [b"the end is sk-run-4f0c9be1", b"prompt: 4f0c", TOKEN.encode()])
def test_what_is_held_back_at_the_end_is_written_before_the_end(tmp_path: Path, last: bytes) -> None:
    recorded(Scripted(b"one\r\n", last), tmp_path)
    raw = (tmp_path / "session.raw").read_bytes()
    assert raw == b"one\r\n" + (MARK if last == TOKEN.encode() else last)
    assert RecordingFiles.of(tmp_path).coverage().whole
    last_lines = (tmp_path / "session.timing").read_bytes().splitlines()[-3:]
    assert [line.split()[1] for line in last_lines] == [b"o", b"x", b"e"]


def test_what_is_held_back_at_the_deadline_is_written(tmp_path: Path) -> None:
    class Silent(Scripted):
        def read(self, size: int, timeout: float) -> bytes | None:
            if self.answers:
                return super().read(size, timeout)
            time.sleep(min(timeout, 0.01))
            return None

    done = recorded(Silent(b"key: sk-run-4f0c9be1", status=None), tmp_path, seconds=0.3)
    assert done.end == "deadline"
    assert (tmp_path / "session.raw").read_bytes() == b"key: sk-run-4f0c9be1"
    assert RecordingFiles.of(tmp_path).coverage().whole


def test_the_size_cap_counts_what_is_written(tmp_path: Path) -> None:
    done = recorded(Scripted(TOKEN.encode() + b"\n", b"x" * 100), tmp_path, caps=Caps(max_bytes=30))
    assert done.caps_reached == ("size",)
    assert (tmp_path / "session.raw").read_bytes() == MARK + b"\n" + b"x" * (30 - len(MARK) - 1)


def test_a_terminal_that_prints_it_letter_by_letter(tmp_path: Path) -> None:
    script = (
        f"import sys, time\nfor c in '{TOKEN}': sys.stdout.write(c + '\\x1b[0m'); sys.stdout.flush(); time.sleep(0.01)"
    )
    session = HostPtySession([sys.executable, "-c", script])
    try:
        recorded(session, tmp_path)
    finally:
        session.end()
        session.close()
    raw = (tmp_path / "session.raw").read_bytes()
    assert MARK in raw
    assert shown_free([raw], REDACTOR)


#: Records a session that prints the key for ever.
RECORDS = """
import sys, time
from pathlib import Path
from referee.adapters.recorder import Caps, HostPtySession, record
from referee.core.redaction import Redactor
from referee.core.sieve import Sieve
token = sys.stdin.read()
prints = 'while read -r key < "$0"; do echo "key $key"; printf %s "$key"; done'
session = HostPtySession(["sh", "-c", prints, sys.argv[2]])
record(session, directory=Path(sys.argv[1]), columns=80, rows=24, caps=Caps(), deadline=time.monotonic() + 60,
       sieve=Sieve(Redactor({"run-key": token})))
"""


def test_a_kill_leaves_no_plaintext(tmp_path: Path) -> None:
    key, directory = tmp_path / "key", tmp_path / "spool"
    key.write_text(TOKEN + "\n")
    directory.mkdir()
    process = subprocess.Popen(
        [sys.executable, "-c", RECORDS, str(directory), str(key)], stdin=subprocess.PIPE, start_new_session=True
    )
    assert process.stdin is not None
    process.stdin.write(TOKEN.encode())
    process.stdin.close()
    raw = directory / "session.raw"
    deadline = time.monotonic() + 30
    while not (raw.exists() and raw.stat().st_size > 20_000):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    data = raw.read_bytes()
    assert data.count(MARK) > 100
    assert shown_free([data], REDACTOR)
    assert RecordingFiles.of(directory).coverage().missing_bytes == 0
