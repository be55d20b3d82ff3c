"""Credentials in a stream: taken out while it is written, however it is cut, wrapped and coloured."""

from __future__ import annotations

import base64
import json
import random
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from referee.core.redaction import Redactor
from referee.core.sieve import HELD_MOST, Sieve, shown_free

TOKEN = "rk-run-" + "7fQz2LmX9sKd4VbN8wTj3HcR6yGp1ZaE5uUo"
UPSTREAM = "sk-proj-Xy12Zw34Vu56Ts78Rq90Po11Nm22Lk33Ji44"
REDACTOR = Redactor({"RUN_KEY": TOKEN, "UPSTREAM_KEY": UPSTREAM})


def through(*pieces: bytes) -> tuple[bytes, Sieve]:
    sieve = Sieve(REDACTOR)
    out = b"".join(sieve.feed(piece) for piece in pieces)
    return out + sieve.end(), sieve


def coloured(text: str) -> str:
    return "".join(f"\x1b[{31 + at % 7}m{character}\x1b[0m" for at, character in enumerate(text))


def boxed(text: str, width: int = 11) -> str:
    rows = [text[at : at + width] for at in range(0, len(text), width)]
    return "\r\n".join(f"│ {row:<{width}} │" for row in rows)


SPELT = {
    "plain": TOKEN,
    "after a name": f"OPENAI_API_KEY={TOKEN}",
    "JSON": json.dumps({"key": TOKEN}),
    "escaped": "".join(f"\\u{ord(one):04x}" for one in TOKEN),
    "percent": "".join(f"%{ord(one):02X}" for one in TOKEN),
    "base64": base64.b64encode(f"x{TOKEN}y".encode()).decode(),
    "hex": TOKEN.encode().hex(),
    "reversed": TOKEN[::-1],
    "upper case": TOKEN.upper(),
    "one a line": "\r\n".join(TOKEN),
    "wrapped": "\r\n".join(TOKEN[at : at + 9] for at in range(0, len(TOKEN), 9)),
    "boxed": boxed(TOKEN),
    "coloured": coloured(TOKEN),
    "moved about": "".join(f"\x1b[{3 + at};{7 + at}H{one}" for at, one in enumerate(TOKEN)),
    "character sets": "".join(f"\x1b(B{one}" for one in TOKEN),
    "escape before each": "".join(f"\x1b{one}" for one in TOKEN),
    "in a window's title": f"\x1b]0;{TOKEN}\x07",
    "strings strewn in": "".join(f"{one}\x1b]2;abc\x07" for one in TOKEN),
    "quoted apart": '"'.join(TOKEN),
    "URL": "https://host/?key=" + quote(TOKEN),
    "cut to a part": TOKEN[9:30],
    "the other one": UPSTREAM,
}


@pytest.mark.parametrize("cut", [1, 3, 16, 4096])
@pytest.mark.parametrize("spelling", SPELT)
def test_no_spelling_gets_through_however_it_is_read(spelling: str, cut: int) -> None:
    text = f"line one\r\n{SPELT[spelling]}\r\nline three\r\n".encode()
    out, sieve = through(*(text[at : at + cut] for at in range(0, len(text), cut)))
    assert shown_free([out], REDACTOR)
    assert not shown_free([text], REDACTOR), "the proof must be able to fail"
    assert b"[redacted:" in out
    if not sieve.unclear:
        assert out.startswith(b"line one\r\n")
        assert out.endswith(b"line three\r\n")
    assert not sieve.unclear


GONE_OVER = {
    "bold of old printers": "".join(f"{one}\b{one}" for one in TOKEN),
    "gone over by another": "".join(f"Z\b{one}" for one in TOKEN),
    "gone over by blanks": "".join(f"{one}ZZ\b\b  \b\b" for one in TOKEN),
    "coloured too": "".join(f"{one}\x1b[1m\b\x1b[0m{one}" for one in TOKEN),
}


@pytest.mark.parametrize("cut", [1, 7, 4096])
@pytest.mark.parametrize("way", GONE_OVER)
def test_letters_that_are_gone_over_with_steps_back_do_not_get_through(way: str, cut: int) -> None:
    text = f"line one\r\n{GONE_OVER[way]}\r\nline three\r\n".encode()
    out, _ = through(*(text[at : at + cut] for at in range(0, len(text), cut)))
    assert not shown_free([text], REDACTOR)
    assert not shown_free([text[at : at + cut] for at in range(0, len(text), cut)], REDACTOR)
    if "blanks" not in way:  # what else was let through a letter at a time is for the proof to find
        assert shown_free([out], REDACTOR)
    assert out.endswith(b"line three\r\n")


@pytest.mark.parametrize("back", ["\x1b[D", "\x1b[1D", "\x1b[0D", "\x1b[0001D"])
def test_letters_that_are_gone_over_after_the_cursor_was_sent_back_are_seen_and_withheld(back: str) -> None:
    text = "".join(f"x{back}{one}" for one in TOKEN).encode()
    out, sieve = through(text)
    assert not shown_free([text], REDACTOR)
    assert not shown_free([text[at : at + 7] for at in range(0, len(text), 7)], REDACTOR)
    assert sieve.unclear
    assert shown_free([out], REDACTOR)


def test_a_cursor_that_is_sent_back_by_many_places_takes_neither_time_nor_memory() -> None:
    """A few bytes stand for a thousand steps: what is printed for hours must be looked at in seconds."""
    text = b"a\x1b[999D" * 150_000 + b"\r\nabc\x1b[9999999D" + TOKEN.encode()
    assert not shown_free([text], REDACTOR)
    assert shown_free([text[: -len(TOKEN)]], REDACTOR)


def test_a_progress_bar_that_steps_back_comes_out_as_it_is() -> None:
    text = b"working |\b/\b-\b\\\b done 10%\b\b\b20%\r\n"
    assert through(text)[0] == text


OTHER_ALPHABETS = {
    "base32": base64.b32encode(b"x" + TOKEN.encode()),
    "base85": base64.b85encode(b"xyz" + TOKEN.encode()),
    "ascii85": base64.a85encode(b"say: " + TOKEN.encode()),
    "numbers": b" ".join(b"%d" % byte for byte in TOKEN.encode()),
    "a list of numbers": str(list(TOKEN.encode())).encode(),
}


@pytest.mark.parametrize("alphabet", OTHER_ALPHABETS)
def test_other_alphabets_do_not_get_through(alphabet: str) -> None:
    out, sieve = through(b"line one\r\n", OTHER_ALPHABETS[alphabet], b"\r\n")
    assert not shown_free([OTHER_ALPHABETS[alphabet]], REDACTOR)
    assert shown_free([out], REDACTOR)
    assert not sieve.unclear


@settings(max_examples=200, deadline=None)
@given(st.lists(st.binary(max_size=60), max_size=12))
def test_what_holds_nothing_comes_out_as_it_is(pieces: list[bytes]) -> None:
    out, sieve = through(*pieces)
    assert out == b"".join(pieces)
    assert not sieve.unclear


NOISE = [
    *("\x1b[31m", "\r\n", " ", "abc", "0", "\\", "%", "&#", "\x1b]0;", "\x07", "é", "│", "\x1b", '{"k": "', '"}'),
    *("sk-", TOKEN[:3], TOKEN[5:10], "\x08", "%25", "\\u00", "x" * 50),
]


def mixed(chance: random.Random) -> bytes:
    """Noise, spellings of values and parts of them, one after the other."""
    parts = []
    for _ in range(chance.randint(1, 8)):
        kind = chance.random()
        if kind < 0.45:
            parts.append("".join(chance.choice(NOISE) for _ in range(chance.randint(0, 12))))
        elif kind < 0.75:
            parts.append(SPELT[chance.choice(list(SPELT))])
        else:
            value, apart = chance.choice([TOKEN, UPSTREAM]), chance.choice(["", "\r\n", "\x1b[0m", " ", '"', "\x08"])
            begin = chance.randint(0, len(value))
            parts.append(apart.join(value[begin : chance.randint(begin, len(value))]))
    return "".join(parts).encode()


@pytest.mark.slow
def test_mixtures_of_noise_and_values_never_get_through() -> None:
    unclear = 0
    for seed in range(500):
        chance = random.Random(seed)
        left, pieces = mixed(chance), []
        while left:
            cut = chance.choice([1, 2, 5, 17, 200, 4096])
            pieces.append(left[:cut])
            left = left[cut:]
        out, sieve = through(*pieces)
        assert sieve.unclear or shown_free([out], REDACTOR), seed
        unclear += sieve.unclear
    assert unclear < 10, "withholding is the exception"


def test_text_with_sequences_comes_out_as_it_is() -> None:
    chance = random.Random(4)
    words = [
        "npm",
        "\x1b[31m",
        "100%",
        "\\x",
        "&#",
        "é",
        "│",
        "\r\n",
        "a" * 30,
        "0f3c9a",
        "sk-",
        "\x1b]0;t\x07",
        "\x1b",
    ]
    text = " ".join(chance.choice(words) for _ in range(20_000)).encode()
    cuts = sorted(chance.sample(range(len(text)), 2_000))
    out, _ = through(*(text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)))
    assert out == text


def test_a_beginning_is_held_back_until_it_is_known() -> None:
    sieve = Sieve(REDACTOR)
    assert sieve.feed(b"key: " + TOKEN[:20].encode()) == b"key: "
    assert sieve.feed(TOKEN[20:].encode()) == b""
    assert sieve.feed(b"\r\nafter") == b"[redacted:RUN_KEY]\r\nafter"


def test_a_beginning_that_comes_to_nothing_is_written() -> None:
    sieve = Sieve(REDACTOR)
    assert sieve.feed(TOKEN[:9].encode()) == b""
    assert sieve.feed(b" is no key\n") == TOKEN[:9].encode() + b" is no key\n"
    sieve.feed(TOKEN[:9].encode())
    assert sieve.end() == TOKEN[:9].encode()


def test_a_value_strewn_over_more_than_is_held_is_masked() -> None:
    noise = b"\x1b[1;1H" * (HELD_MOST // 6 + 9)
    parts = [TOKEN[at : at + 8].encode() for at in range(0, len(TOKEN), 8)]
    out, sieve = through(*(piece for part in parts for piece in (part, noise)))
    assert shown_free([out], REDACTOR)
    assert not sieve.unclear
    assert out.count(b"\x1b[1;1H") == len(parts) * (HELD_MOST // 6 + 9), "only the characters of the value are gone"


@pytest.mark.slow
def test_a_loop_that_prints_the_key_leaves_its_other_words() -> None:
    text = "".join(f"line {number} KEY={TOKEN}\r\n" for number in range(5_000)).encode()
    out, sieve = through(*(text[at : at + 65_536] for at in range(0, len(text), 65_536)))
    assert not sieve.unclear
    assert out == text.replace(TOKEN.encode(), b"[redacted:RUN_KEY]")


def test_the_proof_finds_what_lies_far_apart_over_chunks() -> None:
    chunks = [one.encode() + b"\n" * 200_000 for one in TOKEN]
    assert not shown_free(chunks, REDACTOR)
    assert shown_free([b"\n" * 200_000, TOKEN[:10].encode()], REDACTOR)


def test_nothing_is_looked_for_without_values() -> None:
    nothing = Redactor({})
    sieve = Sieve(nothing)
    assert sieve.feed(TOKEN.encode()) == TOKEN.encode()
    assert shown_free([TOKEN.encode()], nothing)


def test_a_short_value_is_found_as_it_is_written() -> None:
    short = Redactor({"SHORT": "k9-Xy.7z_Q"})
    sieve = Sieve(short)
    out = b"".join(sieve.feed(bytes((byte,))) for byte in b"key k9-Xy.7z_Q end\n") + sieve.end()
    assert out == b"key [redacted:SHORT] end\n"
    assert not shown_free([b"k9-Xy.", b"7z_Q"], short)
