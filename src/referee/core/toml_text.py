"""TOML as text from anywhere: whatever is wrong with it is one kind of error."""

from __future__ import annotations

import math
import tomllib
from typing import Any

#: Levels of tables and arrays; whatever walks through a file goes down once for each.
_DEEPEST = 100


def loads(text: str) -> dict[str, Any]:
    """The table that ``text`` is.

    Raises:
        TOMLDecodeError: it is no TOML, or is nested more deeply than can be read.
    """
    try:
        table = tomllib.loads(text)
    except RecursionError:
        raise tomllib.TOMLDecodeError("nested too deeply") from None
    level: list[Any] = [table]
    for _ in range(_DEEPEST):
        inner = (one for each in level for one in (each.values() if isinstance(each, dict) else each))
        level = [one for one in inner if isinstance(one, dict | list)]
        if not level:
            return table
    raise tomllib.TOMLDecodeError("nested too deeply")  # a dotted key goes as deep as it is long


def beyond_json(value: Any, path: str = "") -> str | None:
    """Where the first value stands that TOML has and JSON has not (a date, a time, ``inf``, ``nan``), or None."""
    if isinstance(value, dict):
        members = ((f"{path}.{key}" if path else str(key), one) for key, one in value.items())
    elif isinstance(value, list):
        members = ((f"{path}[{at}]", one) for at, one in enumerate(value))
    else:
        known = isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value))
        return None if known else path
    return next((found for place, one in members if (found := beyond_json(one, place)) is not None), None)
