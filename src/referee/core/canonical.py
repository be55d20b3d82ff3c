r"""Canonical JSON and tagged digests: the one form in which facts are hashed.

Canonical form, written down so that a stranger can rebuild it: UTF-8 without BOM, object keys sorted by
Unicode code point, no white space between tokens, strings escaped only where JSON demands it (``"``, ``\\``
and control characters), integers in full, other numbers as the shortest decimal that reads back as the
same IEEE 754 double (Python's ``repr``), no NaN or infinity, no duplicate keys, no lone surrogates.

A digest says what it digests: ``<tag>:sha256:<hex>`` is SHA-256 over ``referee/<tag>/1\n`` followed by the
canonical bytes, so that a record can never be passed off as a report. The bytes of evidence are the one
exception: ``sha256:<hex>`` over the plain bytes, so that ``sha256sum`` checks them.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from referee.errors import UsageError

#: A value that holds itself ends as one that is nested too deeply.
_ENCODER = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False, check_circular=False
)


def canonical_bytes(value: Any) -> bytes:
    """The canonical JSON of ``value``.

    Raises:
        UsageError: the value has no canonical form (NaN, infinity, a lone surrogate, an unknown type).
    """
    try:
        return _ENCODER.encode(value).encode("utf-8")
    except (ValueError, TypeError, RecursionError) as exc:
        raise UsageError(f"the value has no canonical JSON form: {exc}") from exc


def strict_loads(data: bytes | str) -> Any:
    """Read JSON strictly: UTF-8, no duplicate keys, no NaN or infinity.

    Raises:
        UsageError: one sentence naming the breach and, where known, its place.
    """
    try:
        text = data.decode("utf-8") if isinstance(data, bytes) else data
    except UnicodeDecodeError as exc:
        raise UsageError(f"not UTF-8: byte {exc.start} cannot be decoded") from exc
    try:
        return json.loads(text, object_pairs_hook=_no_duplicates, parse_constant=_no_constant)
    except json.JSONDecodeError as exc:
        raise UsageError(f"not JSON: {exc.msg} at line {exc.lineno}, column {exc.colno}") from exc
    except RecursionError as exc:
        raise UsageError("not usable JSON: nested too deeply") from exc
    except ValueError as exc:
        raise UsageError(f"not usable JSON: {exc}") from exc


def digest_of(tag: str, value: Any) -> str:
    """Tagged digest of a JSON value: ``<tag>:sha256:<hex>``."""
    return digest_of_canonical(tag, canonical_bytes(value))


def digest_of_canonical(tag: str, data: bytes) -> str:
    """The tagged digest of a JSON value whose canonical bytes are at hand."""
    return f"{tag}:sha256:{_framed(tag, data)}"


def _framed(tag: str, data: bytes) -> str:
    return hashlib.sha256(f"referee/{tag}/1\n".encode() + data).hexdigest()


def digest_of_bytes(data: bytes) -> str:
    """Digest of evidence bytes: ``sha256:<hex>``, the hex that ``sha256sum`` prints."""
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    seen: dict[str, Any] = {}
    for key, value in pairs:
        if key in seen:
            raise UsageError(f"not usable JSON: the key {key!r} stands twice in one object")
        seen[key] = value
    return seen


def _no_constant(name: str) -> Any:
    raise UsageError(f"not usable JSON: {name} is no JSON number")
