"""A request that is not sent, and the reading of its parts: what is not of the shape that a surface has is refused."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any


class Unfit(Exception):
    """A request that is not sent: one sentence, our word for the reason (``Exchange.refused``), the status."""

    def __init__(self, sentence: str, refused: str = "body", status: int = 400) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.refused = refused
        self.status = status


def object_of(value: Any, what: str) -> dict[str, Any]:
    """``value``, if it is a JSON object.

    Raises:
        Unfit: it is none.
    """
    if not isinstance(value, dict):
        raise Unfit(f"{what} is no JSON object")
    return value


def list_of(value: Any, what: str) -> list[Any]:
    """``value``, if it is a JSON list.

    Raises:
        Unfit: it is none.
    """
    if not isinstance(value, list):
        raise Unfit(f"{what} is no list")
    return value


def text_of(value: Any, what: str) -> str:
    """``value``, if it is a text.

    Raises:
        Unfit: it is none.
    """
    if not isinstance(value, str):
        raise Unfit(f"{what} is no text")
    return value


def picked(value: dict[str, Any], names: Collection[str]) -> dict[str, Any]:
    """The members of ``value`` that have one of these names and say anything."""
    return {name: one for name, one in value.items() if name in names and one is not None}
