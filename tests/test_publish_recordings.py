"""How recordings and logs are shown: in parts, from both ends, and said to be unreadable where they are."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from referee.publish.cast import serve
from tests.publish_workspace import Try, Written
from tests.read_pages import build, read


def test_a_long_recording_is_cut_between_events_and_nothing_is_lost() -> None:
    header = b'{"version": 2, "width": 80, "height": 24}\n'
    lines = [header, *(f'[{n}.5, "o", "line {n}\\r\\n"]\n'.encode() for n in range(100)), b'[100.0, "r", "100x30"]\n']
    lines += [f'[{101 + n}.0, "o", "more {n}\\r\\n"]\n'.encode() for n in range(20)]
    whole = serve(lines, part_characters=500)
    assert whole.whole
    assert len(whole.parts) > 3
    texts: list[str] = []
    for part in whole.parts:
        first, *events = [json.loads(line) for line in part.text.splitlines()]
        assert first["version"] == 2
        assert events[0][0] == 0 or part.number == 1
        texts += [event[2] for event in events]
    assert [text for text in texts if text.startswith("line")] == [f"line {n}\r\n" for n in range(100)]
    assert json.loads(whole.parts[-1].text.splitlines()[0])["width"] == 100
    cut = serve(lines, part_characters=500, max_parts=2)
    assert not cut.whole
    assert cut.parts == whole.parts[:2]


@pytest.mark.parametrize("cast", [b'{"version": 2, "width": 60000, "height": 60000}\n[0, "o", "x"]\n', b"", b"\xff"])
def test_a_recording_that_is_none_is_named_and_stops_no_build(tmp_path: Path, cast: bytes) -> None:
    written = Written(tmp_path)
    written.write((Try("r-1", "square", cast=cast),))
    build(written)
    assert "The recording cannot be shown here" in read(written, "runs/r-1.html").text


def test_a_long_log_is_shown_from_both_ends_and_says_what_is_left_out(tmp_path: Path) -> None:
    printed = b"".join(b"\x1b[32mline %d\x1b[0m\r\n" % n for n in range(20_000))
    written = Written(tmp_path)
    written.write((Try("r-1", "square", printed=printed),))
    build(written)
    text = read(written, "runs/r-1.html").text
    assert "line 0 line 1 " in text
    assert "line 19998 line 19999" in text
    assert re.search(r"[\d.]+ kB are left out here; the file has them all", text)
    assert "x1b" not in text.split("What it printed")[1].split("A report is a claim")[0]
