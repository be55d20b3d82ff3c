"""Errors of the client: those that the proxy tells apart, and any other that it names."""

from __future__ import annotations


class PrismaError(Exception):
    """Root."""


class DataError(PrismaError):
    """The database refused."""


class UniqueViolationError(DataError):
    """There is such a row."""


class RecordNotFoundError(DataError):
    """There is no such row."""


class ClientNotConnectedError(PrismaError):
    """There is no connection."""


def __getattr__(name: str) -> type[PrismaError]:
    if not name.endswith("Error"):
        raise AttributeError(name)
    return type(name, (PrismaError,), {})
