"""A credential: read once by the name of its environment variable, held in one object, shown nowhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn

from referee.errors import UsageError


class Credential:
    """One secret in memory. It prints as its name only and cannot be pickled or copied into a file by accident."""

    __slots__ = ("_value", "name")

    def __init__(self, name: str, value: str) -> None:
        self.name = name
        self._value = value

    def reveal(self) -> str:
        """The secret itself: for the header of a request and for redaction, for nothing else."""
        return self._value

    def __repr__(self) -> str:
        return f"<credential {self.name}>"

    __str__ = __repr__

    def __reduce__(self) -> NoReturn:
        raise TypeError("a credential is not written down")


def read_credential(name: str, environ: Mapping[str, str]) -> Credential:
    """The credential in the environment variable ``name``.

    Raises:
        UsageError: it is missing, empty or cannot stand in a header: a run fails closed (bake-off §11).
    """
    value = environ.get(name, "")
    if not value:
        raise UsageError(
            f"the environment variable {name} is not set", todo=f"put the lane's credential into {name}, then try again"
        )
    if not value.isascii() or not value.isprintable() or " " in value:
        raise UsageError(
            f"the environment variable {name} holds something that cannot be sent as a credential",
            todo="look for white space, a line's end or quotation marks around it",
        )
    return Credential(name, value)
