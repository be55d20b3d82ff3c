"""How long a server asks to wait: ``Retry-After`` in its forms, without looking at a clock."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_tz
from typing import Any

from referee.scoring.answers.documents import as_dict, as_list, as_text


def retry_after_seconds(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait as the headers ask, or None where they do not.

    An HTTP date counts from the response's own ``date`` header: the server's clock, not ours. A date gone by is 0.
    """
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    raw = headers.get("retry-after")
    if raw is None:
        return None
    seconds = _number(raw)
    if seconds is not None:
        return seconds
    until, now = _instant(raw), _instant(headers.get("date"))
    return None if until is None or now is None else max(0.0, until - now)


def wait_in_body(error: Mapping[str, Any]) -> float | None:
    """Seconds to wait as an error's document asks: a router's copy of the headers, or Google's ``retryDelay``."""
    copied = as_dict(as_dict(error.get("metadata")).get("headers"))
    wait = retry_after_seconds({name.casefold(): value for name, value in copied.items()}) if copied else None
    for detail in as_list(error.get("details")):
        delay = as_text(as_dict(detail).get("retryDelay"))
        if wait is None and delay.endswith("s"):
            wait = _number(delay[:-1])
    return wait


def _number(raw: str | None) -> float | None:
    try:
        value = float(raw) if isinstance(raw, str) and raw.isascii() else math.nan
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0 else None


def _instant(raw: str | None) -> float | None:
    """Seconds since 1970 of an HTTP date."""
    try:
        parts = parsedate_tz(raw) if isinstance(raw, str) and raw else None
        if parts is None:
            return None
        year, month, day, hour, minute, second = parts[:6]
        offset = parts[9] or 0
        return datetime(year, month, day, hour, minute, second, tzinfo=UTC).timestamp() - offset
    except (ValueError, OverflowError, TypeError, IndexError):
        return None
