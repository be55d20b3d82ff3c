"""What a credential must be so that a request can carry it."""

from __future__ import annotations


def fits_a_head(value: str) -> bool:
    """Whether the head of a request can hold the value: no line break, no letter beyond ASCII."""
    return value.isascii() and value.isprintable()
