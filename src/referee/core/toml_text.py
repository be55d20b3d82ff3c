"""TOML as text from anywhere: whatever is wrong with it is one kind of error."""

from __future__ import annotations

import tomllib
from typing import Any


def loads(text: str) -> dict[str, Any]:
    """The table that ``text`` is.

    Raises:
        TOMLDecodeError: it is no TOML, or is nested more deeply than can be read.
    """
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise tomllib.TOMLDecodeError("nested too deeply") from None
