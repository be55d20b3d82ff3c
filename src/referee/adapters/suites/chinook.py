"""The pinned database behind the grounded cases: opened read-only, believed by its SHA-256 only."""

from __future__ import annotations

import hashlib
import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from referee.errors import ConfigError, DigestMismatch, Finding, NothingMatched

_STEP = re.compile(r"([^.\[\]]+)|\[(\d*)\]")


class Database:
    """An open database, and what is asked of it."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def table(self, sql: str) -> str:
        """The result of ``sql`` as a plain table, one line a row; an absent value is NULL."""
        heads, rows = self._ask(sql)
        return "\n".join(" | ".join("NULL" if cell is None else str(cell) for cell in row) for row in (heads, *rows))

    def values(self, sql: str) -> dict[str, Any]:
        """The values that ``sql`` computes, by the path of the argument that each column is named after.

        A path that ends in ``[]``, or has it inside, stands for one value a row (``lines[].price`` → ``lines[0].price``
        …); any other must have the same value in every row.
        """
        heads, rows = self._ask(sql)
        if not rows:
            raise Finding(f"the query gives no row: {sql}")
        found: dict[str, Any] = {}
        for column, path in enumerate(heads):
            for number, row in enumerate(rows):
                place = path.replace("[]", f"[{number}]")
                if found.setdefault(place, row[column]) != row[column]:
                    raise Finding(f"the query gives two values for {path}: {sql}")
        return found

    def _ask(self, sql: str) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
        try:
            with closing(self._connection.execute(sql)) as cursor:
                return tuple(column[0] for column in cursor.description or ()), cursor.fetchall()
        except sqlite3.Error as exc:
            raise ConfigError(f"the database refuses a query: {exc}: {sql}") from exc


@contextmanager
def open_database(path: Path, sha256: str) -> Iterator[Database]:
    """Open the database file ``path`` for reading, once its bytes are the pinned ones.

    Raises:
        NothingMatched: there is no such file.
        DigestMismatch: its bytes are not the pinned ones.
    """
    try:
        with path.open("rb") as file:
            seen = hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError as exc:
        raise NothingMatched(f"there is no file {path}", todo="name the SQLite file of the Chinook database") from exc
    except OSError as exc:
        raise ConfigError(f"{path} cannot be read: {exc.strerror}") from exc
    if seen != sha256:
        raise DigestMismatch(
            f"{path} is not the pinned database: its SHA-256 is {seen}, not {sha256}",
            todo="take the SQLite file of the release that the suite's sources name",
        )
    connection = sqlite3.connect(f"file:{quote(str(path.resolve()))}?mode=ro&immutable=1", uri=True)
    try:
        yield Database(connection)
    finally:
        connection.close()


def at(place: str, gold: Mapping[str, Any] | Sequence[Any]) -> Any:
    """What stands at a path such as ``lines[0].price`` in a gold; ``eq`` is looked through.

    Raises:
        Finding: nothing stands there.
    """
    value: Any = gold
    for key, index in _STEP.findall(place):
        try:
            value = value[key] if key else value[int(index)]
        except (KeyError, IndexError, TypeError) as exc:
            raise Finding(f"the gold has nothing at {place}") from exc
    return value["eq"] if isinstance(value, Mapping) and set(value) == {"eq"} else value
