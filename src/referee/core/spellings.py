"""How a credential may be spelt in an answer, and the canonical view in which every spelling looks the same.

The canonical view of bytes: escapes, percent codes and character references resolved, everything but ASCII letters
and digits left out, letters in lower case. Separators, line ends, quotation marks, invisible characters, terminal codes
and a change of case do not show in it, so a value is found whatever is strewn into it.
"""

from __future__ import annotations

import base64
import binascii
import html
import json
import re
import string
import unicodedata
from collections.abc import Iterator
from urllib.parse import quote

_KEPT = (string.ascii_letters + string.digits).encode()
#: Stands between texts that are looked at in one go; no UTF-8 holds it, and no value runs over it.
BARRIER = b"\xff"
_DROPPED = bytes(byte for byte in range(255) if byte not in _KEPT)
_FOLDED = bytes.maketrans(string.ascii_uppercase.encode(), string.ascii_lowercase.encode())

_TERMINAL = rb"\x1b\[[0-9;?]*[A-Za-z]"
#: An escape of a character: JSON's, JavaScript's, C's, Python's, a shell's; encoded once or more often.
_ESCAPED = (
    rb"(?:u\{0*([0-9A-Fa-f]{1,6})\}|u([0-9A-Fa-f]{4})|U00([0-9A-Fa-f]{6})|x([0-9A-Fa-f]{2})|([01][0-7]{2})|[nrtbf])"
)
#: Of a longer run of backslashes only the last ones belong to an escape: a run of any length takes linear time.
_ESCAPE = rb"\\{1,16}" + _ESCAPED
_PLAIN_AFTER = frozenset({b"", b'"', b"/", b"'", b" "})
_LINE_ENDS = frozenset({b"n", b"r", b"t", b"b", b"f"})
_LATIN = frozenset({b"8", b"9", b"a", b"b", b"c", b"d", b"e", b"f", b"A", b"B", b"C", b"D", b"E", b"F"})
#: A percent code, encoded once or more often; a character reference of HTML.
_CODE = rb"%(?:25)*([0-9A-Fa-f]{2})|&#[xX]0*([0-9A-Fa-f]{1,6});?|&#0*([0-9]{1,7});?"
_ESCAPE_AFTER, _CODES, _TERMINALS = re.compile(_ESCAPED), re.compile(_CODE), re.compile(_TERMINAL)
_UNIT = re.compile(
    b"|".join((_ESCAPE, _CODE, rb"(" + _TERMINAL + rb"|[ \t\r\n\x00\x0b\x0c]+)", rb"\\{1,16}(/)", rb"(.)")), re.DOTALL
)
#: How UTF-8 begins the full-width and the mathematical letters, which compatibility makes plain ones.
_COMPATIBLE = (b"\xef\xbc", b"\xef\xbd", b"\xf0\x9d")

_MEMBER = re.compile(rb'"([A-Za-z_]\w*+)"\s*+:\s*+"((?:[^"\\]++|\\.)*+)"', re.DOTALL)


def canonical(data: bytes) -> bytes:
    """``data`` without anything but letters and digits, in lower case; nothing is resolved."""
    return data.translate(_FOLDED, _DROPPED)


def views(data: bytes) -> Iterator[bytes]:
    """The canonical views of ``data``: escapes resolved, and, where there are any, codes of URLs and HTML too."""
    if b"\\" in data and data.count(b"\\") != data.count(b'\\"'):
        data = _unescaped(data)
    if b"\x1b" in data:
        data = _TERMINALS.sub(b"", data)
    if (b"\xef" in data or b"\xf0" in data) and any(mark in data for mark in _COMPATIBLE):
        text = data.decode("utf-8", "surrogateescape")
        data = unicodedata.normalize("NFKC", text).encode("utf-8", "surrogateescape")
    yield canonical(data)
    if b"%" in data or (b"&" in data and b"&#" in data):
        yield canonical(_CODES.sub(_of_code, data))


def units(data: bytes) -> tuple[bytes, list[tuple[int, int]]]:
    """``data`` resolved and without blanks, and for each byte of that where in ``data`` it comes from."""
    resolved = bytearray()
    places: list[tuple[int, int]] = []
    for found in _UNIT.finditer(data):
        brace, short, wide, narrow, octal, percent, hexadecimal, decimal, skipped, slash, plain = found.groups()
        if skipped is not None:
            continue
        if plain is not None or slash is not None:
            what = plain or slash
        else:
            what = _resolved(brace or short or wide or narrow or percent or hexadecimal, octal, decimal)
        resolved += what
        places += [found.span()] * len(what)
    return bytes(resolved), places


def pieces(body: bytes) -> list[bytes]:
    """The texts of JSON members of one name, joined in the order of the body: what a stream may have cut."""
    joined: dict[bytes, list[bytes]] = {}
    for name, text in _MEMBER.findall(body):
        joined.setdefault(name, []).append(text)
    return [b"".join(texts) for texts in joined.values() if len(texts) > 1]


def _unescaped(data: bytes) -> bytes:
    """``data`` with escapes resolved. Cut at the backslashes: most that follows one is told by its first bytes."""
    first, *rest = data.split(b"\\")
    out = [first]
    for part in rest:
        begin = part[:1]
        if begin in _PLAIN_AFTER:
            out.append(part)
        elif begin in _LINE_ENDS:
            out.append(part[1:])
        elif begin == b"u" and part[1:3] == b"00" and part[3:4] in _LATIN:
            out.append(part[5:])
        elif found := _ESCAPE_AFTER.match(part):
            out += [_resolved(found[1] or found[2] or found[3] or found[4], found[5], None), part[found.end() :]]
        else:
            out.append(part)
    return b"".join(out)


def _of_code(found: re.Match[bytes]) -> bytes:
    percent, hexadecimal, decimal = found.groups()
    return _resolved(percent or hexadecimal, None, decimal)


def _resolved(hexadecimal: bytes | None, octal: bytes | None, decimal: bytes | None) -> bytes:
    """The character of a code, as far as it may belong to a value; nothing where it is strewn in."""
    if hexadecimal is not None:
        code = int(hexadecimal, 16)
    elif octal is not None:
        code = int(octal, 8)
    elif decimal is not None:
        code = int(decimal)
    else:
        return b""  # the end of a line
    if code > 0x7F:  # noqa: PLR2004 — beyond ASCII
        plain = unicodedata.normalize("NFKC", chr(code)) if code <= 0x10FFFF else ""  # noqa: PLR2004 — of Unicode
        return plain.encode() if plain.isascii() else b""
    return bytes((code,)) if code > 0x20 or code == 0x1B else b""  # noqa: PLR2004 — blanks; escape


def encoded(value: str) -> Iterator[bytes]:
    """The encodings in which ``value`` is looked for as it stands: needed where it is too short for the rest."""
    raw = value.encode("utf-8", "surrogatepass")
    yield raw
    escaped = json.dumps(value)[1:-1]
    yield escaped.encode()
    yield json.dumps(escaped)[1:-1].encode()
    yield json.dumps(value, ensure_ascii=False)[1:-1].encode("utf-8", "surrogatepass")
    yield html.escape(value).encode("utf-8", "surrogatepass")
    yield quote(raw, safe="").encode()
    yield quote(raw).encode()
    yield binascii.hexlify(raw).upper()
    yield from transformed(raw)


def transformed(raw: bytes) -> Iterator[bytes]:
    """The encodings of ``raw`` that share no characters with it: reversed, hex, base64 and its like at every shift."""
    yield raw[::-1]
    yield binascii.hexlify(raw)
    for shift in range(3):
        # Of the characters at both ends some bits belong to the neighbours: these are left out.
        first, last = -(-shift * 8 // 6), (shift + len(raw)) * 8 // 6
        shifted = bytes(shift) + raw
        yield base64.b64encode(shifted)[first:last]
        yield base64.urlsafe_b64encode(shifted)[first:last]
    for shift in range(5):
        first, last = -(-shift * 8 // 5), (shift + len(raw)) * 8 // 5
        yield base64.b32encode(bytes(shift) + raw)[first:last]
    for shift in range(4):
        # Of these only whole groups of four bytes stand for themselves.
        whole = raw[shift : shift + (len(raw) - shift) // 4 * 4]
        yield base64.b85encode(whole)
        yield base64.a85encode(whole)
    yield b" ".join(b"%d" % byte for byte in raw)
