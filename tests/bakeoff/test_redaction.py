"""Credentials in every spelling that an answer can carry, and ordinary answers that must stay as they are."""

from __future__ import annotations

import base64
import html
import json
import random
import string
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from referee.core.redaction import Redactor
from referee.errors import UsageError

VALUE = "sk-" + "proj-Zq7+/LkT0wXv9Yb2Rn4Df6Gh8Js1Mc3Pa5"
RAW = VALUE.encode()
MARKER = b"[redacted:API_KEY]"


def _escaped(text: str) -> str:
    return "".join(f"\\u{ord(char):04X}" for char in text)


SPELLINGS = {
    "plain": RAW,
    "json": json.dumps(VALUE).encode(),
    "every character as an escape": _escaped(VALUE).encode(),
    "some characters as escapes": (VALUE[:7] + _escaped(VALUE[7:12]) + VALUE[12:]).encode(),
    "escapes inside a JSON string in JSON": json.dumps({"arguments": '{"key": "' + _escaped(VALUE) + '"}'}).encode(),
    "slashes escaped": VALUE.replace("/", "\\/").encode(),
    "hex escapes of a shell": "".join(f"\\x{ord(char):02x}" for char in VALUE).encode(),
    "URL": quote(VALUE, safe="").encode(),
    "URL, every character": "".join(f"%{ord(char):02x}" for char in VALUE).encode(),
    "HTML": html.escape(VALUE).encode(),
    "hex": RAW.hex().encode(),
    "HEX": RAW.hex().upper().encode(),
    "hex in groups": RAW.hex(" ", 2).encode(),
    "reversed": RAW[::-1],
    "base64": base64.b64encode(RAW),
    "base64 in JSON": base64.b64encode(b"x>" + RAW + b"?").replace(b"/", b"\\/"),
    "Basic": base64.b64encode(b"u:" + RAW),
    "base64 shifted by one": base64.b64encode(b"x" + RAW + b"yz"),
    "base64 shifted by two": base64.urlsafe_b64encode(b"xy" + RAW),
    "base64 over lines": base64.encodebytes(b"a longer text before it, then " + RAW + b" and a longer one after it"),
    "base64 in a URL": quote(base64.b64encode(b"a" + RAW), safe="").encode(),
    "over two lines": RAW[:20] + b"\n" + RAW[20:],
    "over two lines, escaped": RAW[:20] + b"\\r\\n" + RAW[20:],
    "spaced": " ".join(VALUE).encode(),
    "invisible space inside": (VALUE[:20] + "\u200b" + VALUE[20:]).encode(),
    "invisible space as an escape": (VALUE[:20] + "\\u200b" + VALUE[20:]).encode(),
    "NUL before and after": b"\0KEY=" + RAW + b"\0",
    "after a backslash": b"C:\\" + RAW,
    "shortened": (VALUE[:24] + "…").encode(),
    "only its end": b"sk-***" + RAW[-18:],
    "only its middle": b"sk-..." + RAW[9:27] + b"...",
    "HTML, every character": "".join(f"&#{ord(char)};" for char in VALUE).encode(),
    "HTML, every character, hexadecimal": "".join(f"&#x{ord(char):X};" for char in VALUE).encode(),
    "URL in a URL": "".join(f"%25{ord(char):02x}" for char in VALUE).encode(),
    "no-break spaces inside": "\u00a0".join(VALUE).encode(),
    "no-break spaces as escapes": "\\u00a0".join(VALUE).encode(),
    "soft hyphens inside": "\u00ad".join(VALUE).encode(),
    "soft hyphens as escapes": "\\u00AD".join(VALUE).encode(),
    "lone surrogates as escapes": "\\ud83d".join(VALUE).encode(),
    "hex with colons": RAW.hex(":").encode(),
    "upper case": VALUE.upper().encode(),
    "escapes with braces": "".join(f"\\u{{{ord(char):x}}}" for char in VALUE).encode(),
    "octal escapes": "".join(f"\\{ord(char):03o}" for char in VALUE).encode(),
    "terminal codes inside": "\x1b[1;31m".join(VALUE).encode(),
    "hyphens inside": "-".join(VALUE).encode(),
}


@pytest.mark.parametrize("name", SPELLINGS)
def test_every_spelling_is_found_and_replaced(name: str) -> None:
    redactor = Redactor({"API_KEY": VALUE, "OTHER": "another-value-altogether"})
    said = b'{"error": {"message": "no such key: ' + SPELLINGS[name] + b' (see the manual)"}}'
    done = redactor.redact(said)
    assert MARKER in done
    assert not redactor.holds(done)
    assert done.startswith(b'{"error": {"message": "no such key: ')
    assert done.endswith(b' (see the manual)"}}')


@pytest.mark.parametrize("step", [1, 2, 7, 30])
def test_a_value_cut_over_the_events_of_a_stream_is_found(step: int) -> None:
    redactor = Redactor({"API_KEY": VALUE})
    text = f"the key is {VALUE}, as you asked"
    pieces = [text[at : at + step] for at in range(0, len(text), step)]
    events = [
        b"data: " + json.dumps({"id": "c1", "choices": [{"index": 0, "delta": {"content": piece}}]}).encode()
        for piece in pieces
    ]
    body = b"\n\n".join([*events, b"data: [DONE]", b""])
    done = redactor.redact_stream(body)
    said = "".join(
        json.loads(line[6:])["choices"][0]["delta"]["content"]
        for line in done.split(b"\n")
        if line.startswith(b"data: {")
    )
    assert said.count(MARKER.decode()) == 1
    assert VALUE[:20] not in said
    assert VALUE[-16:] not in said
    assert said.startswith("the key ")
    assert done.endswith(b"data: [DONE]\n\n")
    assert redactor.redact_stream(done) == done


def test_arguments_cut_over_the_events_of_two_calls_are_told_apart() -> None:
    redactor = Redactor({"API_KEY": VALUE})
    lines = []
    for number, char in enumerate('{"key": "' + VALUE + '"}'):
        call = {"index": 0, "function": {"arguments": char}}
        other = {"index": 1, "function": {"arguments": str(number % 10)}}
        lines.append(json.dumps({"message": {"tool_calls": [call, other]}}).encode())
    done = redactor.redact_stream(b"\n".join(lines))
    first, second = (
        "".join(json.loads(line)["message"]["tool_calls"][at]["function"]["arguments"] for line in done.split(b"\n"))
        for at in (0, 1)
    )
    assert first == '{"key": "[redacted:API_KEY]"}'
    assert second == "".join(str(number % 10) for number in range(len(VALUE) + 11))


def test_a_text_without_a_value_is_the_same_object() -> None:
    redactor = Redactor({"API_KEY": VALUE})
    body = json.dumps({"choices": [{"message": {"content": "Grüße aus Köln: 100 % \\u0041 \n"}}]}).encode()
    assert redactor.redact(body) is body
    assert redactor.redact_stream(body) is body


@pytest.mark.parametrize("length", [13, 24, 31, 32, 64])
def test_a_part_counts_from_half_a_value_on_or_from_sixteen_characters(length: int) -> None:
    """Wherever the part stands: the search looks only at every so many characters."""
    value = "".join(random.Random(length).sample((string.ascii_lowercase + string.digits) * 2, length))
    redactor = Redactor({"K": value})
    least = min(16, max(12, (length + 1) // 2))
    for at in range(length - least + 1):
        part = value[at : at + least].encode()
        for pad in (0, 1, 2, 3, 5, 8, 11, 12, 13, 380, 381, 382, 383, 384, 385):
            assert redactor.redact(b"." * 3 + b"#" * pad + b"\xff" * pad + part) == (
                b"." * 3 + b"#" * pad + b"\xff" * pad + b"[redacted:K]"
            )
        # One character less is no find, but for what chance puts beside it.
        assert not redactor.holds(b"<" + part[1:] + b"\xff")


def test_a_value_is_cut_out_wherever_it_stands_in_a_long_text() -> None:
    redactor = Redactor({"API_KEY": VALUE})
    for before in [*range(4096 - 50, 4096 + 20), 8192 - 7, 100_000]:
        text = b"x" * before + b" " + RAW + b" " + b"y" * 9000
        assert redactor.redact(text) == b"x" * before + b" [redacted:API_KEY] " + b"y" * 9000


def test_a_text_full_of_a_value_is_withheld_instead_of_searched_through() -> None:
    redactor = Redactor({"API_KEY": VALUE})
    assert redactor.redact((RAW + b" " * 4000) * 200) == b"[redacted:API_KEY]"


def test_a_value_spelt_over_the_form_of_a_document_is_withheld() -> None:
    redactor = Redactor({"API_KEY": VALUE})
    assert redactor.redact(json.dumps(list(VALUE)).encode()) == b"[redacted:API_KEY]"


SHORT = "Pa$$-w0rd!"


@pytest.mark.parametrize(
    "spelt",
    [
        SHORT,
        json.dumps("<" + SHORT),
        _escaped(SHORT),
        quote(SHORT, safe=""),
        SHORT.encode().hex(),
        base64.b64encode(b"u:" + SHORT.encode()).decode(),
        SHORT[::-1],
        SHORT[:4] + "\n" + SHORT[4:],
    ],
)
def test_a_short_value_is_found_as_a_whole_only(spelt: str) -> None:
    redactor = Redactor({"API_KEY": SHORT})
    done = redactor.redact_text(f"it was ({spelt}), was it not?")
    assert "[redacted:API_KEY]" in done
    assert not redactor.holds(done.encode())
    assert done.startswith("it was (")
    assert redactor.redact_text("a pa w0rd, Pa$$-w0rd?") == "a pa w0rd, Pa$$-w0rd?"


def test_without_credentials_nothing_is_touched() -> None:
    body = b"\xff\xfe anything \x00"
    assert Redactor({}).redact(body) is body
    assert Redactor({}).redact_text("x") == "x"


@pytest.mark.parametrize("value", ["", "short", "seven77", "  seven77\n"])
def test_a_value_too_short_to_be_told_from_text_is_refused(value: str) -> None:
    with pytest.raises(UsageError, match=r"the credential API_KEY has fewer than 8 characters") as refused:
        Redactor({"API_KEY": value})
    assert value.strip() == "" or value.strip() not in refused.value.message


def test_parts_of_a_key_file_are_credentials_too() -> None:
    key = json.dumps({"type": "service", "private_key": "MIIEvQIBADANBgkqhkiG", "client": {"id": "1234567890abcdefgh"}})
    redactor = Redactor({"FILE": key})
    assert redactor.redact_text("it was MIIEvQIBADANBgkqhkiG") == "it was [redacted:FILE]"
    assert redactor.redact_text("it was 1234567890abcdefgh") == "it was [redacted:FILE]"
    assert redactor.redact_text("a service") == "a service"


def test_what_all_key_files_and_tokens_have_in_common_is_no_credential() -> None:
    head, claims = ("eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9", "eyJpc3MiOiJodHRwczovL2lzc3Vlci5leGFtcGxlIiwic3ViIjoieiJ9")
    token = f"{head}.{claims}.4Qm9Xv2LtB7cRw8ZkPs0Yd5JhN1uGf6E"
    file = json.dumps(
        {"auth_uri": "https://accounts.example/o/auth", "client_email": "somebody@cloud.accounts.example"}
    )
    file = file[:-1] + ', "private_key": "4Qm9Xv2LtB7cRw8ZkPs0Yd5JhN1uGf6E"}'
    for value in (token, file):
        redactor = Redactor({"K": value})
        for public in (head, claims[:24], "https://accounts.example/o/auth", "cloud.accounts.example"):
            assert not redactor.holds(f"see {public} for more".encode())
        assert redactor.redact_text("is 4Qm9Xv2LtB7cRw8ZkPs0Yd5JhN1uGf6E.") == "is [redacted:K]."
    assert "VyLmV4YW1" not in Redactor({"K": token}).redact_text(token)


def test_values_are_redacted_in_keys_and_at_any_depth() -> None:
    redactor = Redactor({"API_KEY": VALUE})
    assert redactor.redact_value({VALUE: [1, None, {"a": f"x{VALUE}y"}]}) == {
        "[redacted:API_KEY]": [1, None, {"a": "x[redacted:API_KEY]y"}]
    }


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32), st.binary(max_size=60), st.binary(max_size=60))
def test_any_mixture_of_spellings_is_found(seed: int, before: bytes, after: bytes) -> None:
    chance = random.Random(seed)
    value = "".join(chance.choice(string.ascii_letters + string.digits + "-_+/=.") for _ in range(24))
    spelt = "".join(
        chance.choice([char, char, f"\\u{ord(char):04x}", f"%{ord(char):02X}", f"\\x{ord(char):02x}", f"{char}\n"])
        for char in value
    )
    redactor = Redactor({"K": value})
    done = redactor.redact(before + b"|" + spelt.encode() + b"|" + after)
    assert not redactor.holds(done)
    assert b"[redacted:K]" in done
    assert value.encode() not in done
