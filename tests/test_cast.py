"""Cast, transcript and served copy: the same to the byte however the input was cut, and never a crash."""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterable
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from referee.core import sequences, transcript
from referee.core.cast import cast
from referee.core.sequences import SequenceFilter
from referee.core.served import ServedText, served_cast
from referee.core.timing import Header, Playback
from referee.core.transcript import PlainText
from referee.errors import Finding

HEADER = Header(columns=80, rows=24, started_us=1_700_000_000_123_456, term="xterm-256color")

#: What terminal output is made of, and what is made to break readers of it.
FRAGMENTS = [
    b"text ", b"\n", b"\r\n", b"\r", b"\r\r\n", b"\b", b"\b \b", b"\t", b"\x00", b"\x07", b"\x0b", b"\x18", b"\x7f",
    b"\x1b", b"\x1b[", b"\x1b[31m", b"\x1b[0m", b"\x1b[2K", b"\x1b[?1049h", b"\x1b[?1000;1006h", b"\x1b[8;9999;9999t",
    b"\x1b[6n", b"\x1b[1;2", b"\x1b]", b"\x1b]0;title\x07", b"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", b"\x1b]52;c;",
    b"\x1bP", b"\x1bPq#0;2\x1b\\", b"\x1b_G", b"\x1b^", b"\x1bX", b"\x1b\\", b"\x1b(0", b"\x1b7", b"\x1bc", b"\x1b  ",
    "\x9b31m".encode(), "\x9d0;t\x9c".encode(), "\x90q\x9c".encode(), "\x85".encode(), "\x9f".encode(),
    "é".encode(), "日本".encode(), "👩‍👩‍👧".encode(), "⚠️".encode(), b"\xc3", b"\xe2\x82", b"\xff",
    b"\xf0\x9f", b"\x9b", b"\x80",
]  # fmt: skip
OUTPUT = st.lists(st.sampled_from(FRAGMENTS) | st.binary(max_size=8), max_size=40).map(b"".join)


def cut(data: bytes, at: Iterable[int]) -> list[bytes]:
    places = sorted({0, len(data), *(place % (len(data) + 1) for place in at)})
    return [data[a:b] for a, b in pairwise(places)]


def timed(*lines: str, header: Header = HEADER) -> bytes:
    return header.line() + "".join(f"{line}\n" for line in lines).encode()


def events_of(made: bytes) -> list[list[object]]:
    return [json.loads(line) for line in made.decode().splitlines()[1:]]


def plain(data: bytes) -> str:
    text = PlainText()
    return text.feed(data) + text.finish()


def served(text: str) -> str:
    return ServedText().feed(text)


# --- the cast -------------------------------------------------------------------------------------


def test_golden_cast() -> None:
    family = "👩‍👩‍👧".encode()
    raw = b"$ " + family[:5] + family[5:] + "日".encode()[:1] + "日".encode()[1:] + b"\xff\r\n" + "é".encode()[:1]
    timing = timed("1500 o 7", "1000000 o 14", "2000000 r 100x30", "2500001 m half way", "61000002 o 6", "61000003 x 3")
    made = b"".join(cast([raw], [timing])).decode()
    assert made.splitlines() == [
        '{"version": 2, "width": 80, "height": 24, "timestamp": 1700000000, "env": {"TERM": "xterm-256color"}}',
        '[0.001500, "o", "$ 👩"]',
        '[1.000000, "o", "\u200d👩\u200d👧"]',
        '[2.000000, "r", "100x30"]',
        '[2.500001, "m", "half way"]',
        '[61.000002, "o", "日\ufffd\\r\\n"]',
        '[61.000003, "o", "\ufffd"]',
    ]


@given(OUTPUT, st.lists(st.integers(0, 500)), st.lists(st.integers(0, 500)), st.lists(st.integers(0, 500)))
def test_derived_bytes_do_not_depend_on_chunks(
    data: bytes, events: list[int], raw_cuts: list[int], timing_cuts: list[int]
) -> None:
    timing = timed(*(f"{at * 1000} o {len(part)}" for at, part in enumerate(cut(data, events))))
    for derive in (cast, transcript.transcript):
        whole = b"".join(derive([data], [timing]))
        assert b"".join(derive(cut(data, raw_cuts), cut(timing, timing_cuts))) == whole


@given(OUTPUT, st.lists(st.integers(0, 500)))
def test_cast_text_does_not_depend_on_events_and_loses_nothing(data: bytes, events: list[int]) -> None:
    timing = timed(*(f"{at * 1000} o {len(part)}" for at, part in enumerate(cut(data, events))))
    texts = [data for _, _, data in events_of(b"".join(cast([data], [timing])))]
    assert "".join(map(str, texts)) == data.decode("utf-8", "replace")


@given(OUTPUT, st.lists(st.integers(0, 500)))
def test_transcript_does_not_depend_on_events(data: bytes, events: list[int]) -> None:
    timing = timed(*(f"{at * 1000} o {len(part)}" for at, part in enumerate(cut(data, events))))
    assert b"".join(transcript.transcript([data], [timing])).decode() == plain(data)


def test_every_event_is_one_line_for_every_reader() -> None:
    data = "a\x85b\u2028c\u2029d\x0ce\x1cf".encode()
    made = b"".join(cast([data], [timed(f"7 o {len(data)}")]))
    assert len(made.decode().splitlines()) == 2
    assert events_of(made)[0][2] == data.decode()


def test_large_event_is_derived_in_pieces_and_comes_out_whole() -> None:
    data = ("zwölf Boxkämpfer " * 20_000).encode()
    made = events_of(b"".join(cast([data], [timed(f"5 o {len(data)}")])))
    assert len(made) > 1
    assert {time for time, _, _ in made} == {0.000005}
    assert "".join(str(text) for _, _, text in made) == data.decode()


# --- the timing file ------------------------------------------------------------------------------


def walk(raw: bytes, timing: bytes) -> Playback:
    playback = Playback([raw], [timing])
    for _ in playback:
        pass
    return playback


def test_torn_tail_is_told() -> None:
    coverage = walk(b"0123456789", timed("10 o 4", "20 o 3") + b"30 o").coverage
    assert (coverage.covered_bytes, coverage.untimed_bytes, coverage.torn_bytes) == (7, 3, 4)
    assert coverage.ended is None
    assert not coverage.whole


def test_missing_bytes_are_told() -> None:
    coverage = walk(b"01234", timed("10 o 4", "20 o 3", "30 x 0", "31 e ended")).coverage
    assert (coverage.covered_bytes, coverage.missing_bytes, coverage.exit_status) == (5, 2, 0)
    assert not coverage.whole


def test_closed_recording_is_whole() -> None:
    coverage = walk(b"0123456", timed("10 o 4", "20 o 3", "30 x 0", "31 e ended")).coverage
    assert coverage.whole
    assert coverage.events == 3


@pytest.mark.parametrize(
    "timing",
    [
        b"",
        b"referee-timing 1 columns=80 rows=24 started_us=1 term=dumb",
        b"referee-timing 9 columns=80 rows=24 started_us=1 term=dumb\n",
        b"referee-timing 1 columns=60000 rows=60000 started_us=1 term=dumb\n",
        timed("5 o 1", "4 o 1"),
        timed("5 o -1"),
        timed("nan o 1"),
        timed("5 r 501x24"),
        timed("5 r 0x24"),
        timed("5 x 0", "6 e ended", "7 o 1"),
        timed("5 q 1"),
        timed("5 m " + "x" * 5_000),
    ],
)
def test_unusable_timing_is_a_finding(timing: bytes) -> None:
    for derive in (cast, transcript.transcript):
        with pytest.raises(Finding):
            list(derive([b"xx"], [timing]))


@given(st.binary(max_size=200), st.binary(max_size=200))
def test_any_timing_is_read_or_a_finding(raw: bytes, tail: bytes) -> None:
    try:
        made = b"".join(cast([raw], [HEADER.line() + tail]))
    except Finding:
        return
    assert made.startswith(b'{"version": 2')


# --- the transcript -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("printed", "expected"),
    [
        (b"one\r\ntwo\r\n", "one\ntwo\n"),
        (b"no end", "no end\n"),
        (b"", ""),
        (b"\r\n\r\n", "\n\n"),
        (b"a\tb\r\n", "a\tb\n"),
        (b"\x1b[1;31mred\x1b[0m \x1b]0;title\x07plain\r\n", "red plain\n"),
        (b"\x1b]8;;https://example.org\x1b\\link\x1b]8;;\x1b\\\n", "link\n"),
        (b"\x1bPq#0;2;0\n#1~~\x1b\\after\n", "after\n"),
        (b"\x1b_Gf=100;AAAA\x1b\\a\x1b^pm\x1b\\b\x1bXsos\x1b\\c\n", "abc\n"),
        ("\x9b31mred\x9b0m\x9dtitle\x9cx\x85\n".encode(), "redx\n"),
        (b"\x1b(0qqq\x1b(B\x0e\x0f\x07\n", "qqq\n"),
        # Every state of a progress line is kept, repeats are not; nothing is hidden by what came after.
        (b" 10%\r 50%\r 50%\r100%\r\nok\r\n", " 10%\n 50%\n100%\nok\n"),
        (b"ERROR\rfine \n", "ERROR\nfine \n"),
        (b"same\rsame\r\nsame\r\n", "same\nsame\n"),
        (b"abc\r\x1b[K\r\n", "abc\n"),
        (b"\rstart\n", "start\n"),
        # Backspace within a line: overstrike, rub-out, never into the line before.
        (b"N\bNA\bAM\bM\n", "NAM\n"),
        (b"abc\b\bX\n", "aXc\n"),
        (b"top\n\b\b\bx\n", "top\nx\n"),
        # What is no text.
        (b"\xff\xc3(\xe2\x82\n", "\ufffd\ufffd(\ufffd\n"),
        ("日本 👩‍👩‍👧 ⚠️\n".encode(), "日本 👩‍👩‍👧 ⚠️\n"),
        # A control string that never ends hides no more than its line.
        (b"a\x1b]0;hidden\nseen\n", "a\nseen\n"),
        (b"a\x1b_hidden\r\nseen\n", "a\nseen\n"),
    ],
)
def test_transcript_rules(printed: bytes, expected: str) -> None:
    assert plain(printed) == expected


def test_unterminated_dcs_is_given_up() -> None:
    shown = plain(b"\x1bP" + b"x" * (sequences.MAX_STRING + 5) + b" and on\n")
    assert shown == "xxxxx and on\n"


@given(OUTPUT, st.lists(st.integers(0, 500)))
def test_transcript_holds_no_control_and_does_not_depend_on_chunks(data: bytes, cuts: list[int]) -> None:
    text = PlainText()
    made = "".join(text.feed(part) for part in cut(data, cuts)) + text.finish()
    assert made == plain(data)
    assert not any(character < " " and character not in "\t\n" for character in made)
    assert not any("\x7f" <= character <= "\x9f" for character in made)
    assert made == "" or made.endswith("\n")


@settings(max_examples=300)
@given(st.lists(st.sampled_from(["a", "bc", "\b", "\r", "\n", "def"]), max_size=60), st.lists(st.integers(0, 200)))
def test_overlong_lines_do_not_depend_on_chunks(parts: list[str], cuts: list[int]) -> None:
    data = "".join(parts).encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(transcript, "BLOCK", 4)
        text = PlainText()
        made = "".join(text.feed(part) for part in cut(data, cuts)) + text.finish()
        assert made == plain(data)


def test_overlong_line_is_kept_whole() -> None:
    length = 3 * transcript.BLOCK + 7
    assert plain(b"y" * length) == "y" * length + "\n"


# --- the served copy ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "harmless",
    ["text\r\n", "\x1b[1;38;5;200mx\x1b[0m", "\x1b[38:2::1:2:3m", "\x1b[2J\x1b[H", "\x1b[?1049h\x1b[?25l",
     "\x1b(0q\x1b(B", "\x1b[2;10r", "\x1b7\x1b8",
     "\x1b[3A", "日本 👩‍👩‍👧", "a\tb\b", "\x1b[999;999H", "\x1b[!p", "\x1bM", "\x1b[K"],
)  # fmt: skip
def test_served_keeps_what_draws(harmless: str) -> None:
    assert served(harmless) == harmless


@pytest.mark.parametrize(
    "harmful",
    ["\x1b]0;t\x07", "\x1b]1;t\x1b\\", "\x1b]2;t\x07", "\x1b]52;c;aGk=\x07", "\x1b]8;;http://x\x07", "\x1bPq~\x1b\\",
     "\x1b_Gx\x1b\\", "\x1b^x\x1b\\", "\x1bXx\x1b\\", "\x9b31m", "\x9dx\x9c", "\x90x\x9c", "\x85", "\x1b[8;9999;9999t",
     "\x1b[6n", "\x1b[c", "\x1b[>c", "\x1b[=c", "\x1bZ", "\x1b[5i", "\x1b[?1000h", "\x1b[?2004h", "\x1b[?1004h",
     "\x1b[99999b", "\x1b[>4;2m", "\x1b[?u", "\x1b[>1u", "\x1b[x", "\x1b[?6$p", "\x05", "\x07", "\x00",
     "\x1b[1;2;3;4;5T",     "\x1b[>q", "\x1b[18t", "\x1b]1337;File=:AA\x07", "\x1b]777;notify\x07", "\x1b[0;1q"],
)  # fmt: skip
def test_served_drops_what_reaches_beyond(harmful: str) -> None:
    assert served(f"a{harmful}b") == "ab"


def test_served_keeps_the_drawing_part_of_a_mode_list() -> None:
    assert served("\x1b[?1049;1000;25h") == "\x1b[?1049;25h"


@given(OUTPUT, st.lists(st.integers(0, 500)))
def test_served_does_not_depend_on_chunks_and_is_settled(data: bytes, cuts: list[int]) -> None:
    text = data.decode("utf-8", "replace")
    whole = served(text)
    server = ServedText()
    places = sorted({0, len(text), *(place % (len(text) + 1) for place in cuts)})
    assert "".join(server.feed(text[a:b]) for a, b in pairwise(places)) == whole
    assert served(whole) == whole
    assert not any("\x80" <= character <= "\x9f" for character in whole)


@given(OUTPUT)
def test_served_copy_shows_the_same_text(data: bytes) -> None:
    """Stripping what is left of the served copy gives what stripping the original gives."""
    text = data.decode("utf-8", "replace")
    strip = SequenceFilter().feed
    controls = {ord(control): None for control in map(chr, (*range(32), 127))}
    assert SequenceFilter().feed(served(text)).translate(controls) == strip(text).translate(controls)


def test_served_cast_keeps_times_and_state_over_events() -> None:
    lines = [
        b'{"version": 2, "width": 80, "height": 24, "timestamp": 5, "title": "<b>", "env": {"TERM": "x", "K": "v"}}\n',
        b'[0.100000, "o", "a\\u001b]0;ti"]\n',
        b'[0.200000, "o", "tle\\u0007b"]\n',
        b'[0.300000, "r", "100x30"]\n',
        b'[0.400000, "m", "x\\u001b[31m"]\n',
        b'[0.500000, "i", "typed"]\n',
    ]
    assert b"".join(served_cast(lines)).decode().splitlines() == [
        '{"version": 2, "width": 80, "height": 24, "timestamp": 5, "env": {"TERM": "x"}}',
        '[0.100000, "o", "a"]',
        '[0.200000, "o", "b"]',
        '[0.300000, "r", "100x30"]',
        '[0.400000, "m", "x [31m"]',
    ]


@pytest.mark.parametrize(
    "lines",
    [
        [b'{"version": 3}\n'],
        [b'{"version": 2, "width": 60000, "height": 60000}\n'],
        [b'{"version": 2, "width": true, "height": 1}\n'],
        [b"[]\n"],
        [b"{\n"],
        [b'{"version": 2, "width": 80, "height": 24}\n', b'[NaN, "o", "x"]\n'],
        [b'{"version": 2, "width": 80, "height": 24}\n', b'[1e999, "o", "x"]\n'],
        [b'{"version": 2, "width": 80, "height": 24}\n', b'[-1, "o", "x"]\n'],
        [b'{"version": 2, "width": 80, "height": 24}\n', b'["1", "o", "x"]\n'],
        [b'{"version": 2, "width": 80, "height": 24}\n', b'[1, "r", "9999x9999"]\n'],
        [b'{"version": 2, "width": 80, "height": 24}\n', b'[1, "r", "x"]\n'],
        [b'{"version": 2, "width": 80, "height": 24}\n', b'[1, "o"]\n'],
        [b'{"version": 2, "width": 80, "height": 24}\n', b"[" * 100_000],
    ],
)
def test_served_cast_refuses_bombs_and_what_is_no_cast(lines: list[bytes]) -> None:
    with pytest.raises(Finding):
        list(served_cast(lines))


@given(OUTPUT)
def test_every_derived_cast_can_be_served(data: bytes) -> None:
    made = b"".join(cast([data], [timed(f"7 o {len(data)}")])).splitlines(keepends=True)
    shown = b"".join(served_cast(made))
    assert "".join(str(text) for _, _, text in events_of(shown)) == served(data.decode("utf-8", "replace"))


# --- rebuilt from the written format ------------------------------------------------------------


def strip_by_the_book(text: str) -> str:
    """``docs/recording.md``, transcript, rule 2, one character at a time."""
    out: list[str] = []
    at = 0
    while at < len(text):
        character = text[at]
        two = text[at : at + 2]
        string = {"\x1b]": "]", "\x1bP": "P", "\x1bX": "X", "\x1b^": "^", "\x1b_": "_"}.get(two)
        string = string or {"\x90": "P", "\x98": "X", "\x9d": "]", "\x9e": "^", "\x9f": "_"}.get(character)
        if string:
            at += 2 if character == "\x1b" else 1
            while at < len(text):
                end = text[at]
                if end == "\x1b" or (end in "\r\n" and string != "P"):
                    break
                at += 1
                if end in "\x9c\x18\x1a" or (end == "\x07" and string == "]"):
                    break
        elif two == "\x1b[" or character == "\x9b":
            at += 2 if character == "\x1b" else 1
            at = run_of(text, at, "0123456789:;<=>?", 256)
            at = run_of(text, at, " !\"#$%&'()*+,-./", 16)
            at += at < len(text) and "@" <= text[at] <= "~"
        elif character == "\x1b":
            at = run_of(text, at + 1, " !\"#$%&'()*+,-./", 16)
            at += at < len(text) and "0" <= text[at] <= "~"
        else:
            if not "\x80" <= character <= "\x9f":
                out.append(character)
            at += 1
    return "".join(out)


def run_of(text: str, at: int, members: str, most: int) -> int:
    end = at
    while end < len(text) and end - at < most and text[end] in members:
        end += 1
    return end


def transcript_by_the_book(data: bytes) -> str:
    text = strip_by_the_book(data.decode("utf-8", "replace"))
    text = "".join({"\x0b": "\n", "\x0c": "\n"}.get(character, character) for character in text)
    text = "".join(
        character for character in text if character in "\b\t\n\r" or (character >= " " and character != "\x7f")
    )
    if not text.strip("\r") and "\n" not in text:
        return ""
    rows = text.split("\n")
    if not rows[-1].strip("\r"):
        rows.pop()
    lines: list[str] = []
    for row in rows:
        states: list[str] = []
        for state in row.rstrip("\r").split("\r"):
            cells: list[str] = []
            place = 0
            for character in state:
                if character == "\b":
                    place = max(0, place - 1)
                else:
                    cells[place : place + 1] = character
                    place += 1
            shown = "".join(cells)
            if shown and (not states or states[-1] != shown):
                states.append(shown)
        lines.extend(states or [""])
    return "".join(f"{line}\n" for line in lines)


@settings(max_examples=300)
@given(OUTPUT)
def test_transcript_is_what_the_written_rules_say(data: bytes) -> None:
    assert plain(data) == transcript_by_the_book(data)


@given(OUTPUT, st.lists(st.integers(0, 500)))
def test_cast_is_what_the_written_rules_say(data: bytes, places: list[int]) -> None:
    timing = timed(*(f"{at * 250_001} o {len(part)}" for at, part in enumerate(cut(data, places))))
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    expected = [
        b'{"version": 2, "width": 80, "height": 24, "timestamp": 1700000000, "env": {"TERM": "xterm-256color"}}'
    ]
    last = 0
    for at, part in enumerate(cut(data, places)):
        last = at * 250_001
        expected.append(by_the_book(last, decoder.decode(part)))
    expected.append(by_the_book(last, decoder.decode(b"", final=True)))
    assert b"".join(cast([data], [timing])) == b"".join(line + b"\n" for line in expected if line)


def by_the_book(at: int, text: str) -> bytes:
    if not text:
        return b""
    quoted = json.dumps(text, ensure_ascii=False)
    for code in (*range(0x80, 0xA0), 0x2028, 0x2029):
        quoted = quoted.replace(chr(code), f"\\u{code:04x}")
    return f'[{at / 1e6:.6f}, "o", {quoted}]'.encode()
