"""Stands in for the generated client of the LiteLLM proxy's database, whose engine cannot be installed here.

The proxy reaches PostgreSQL through a client that is generated for its schema and needs a compiled engine from a host
that is no package registry. This module answers the same calls with SQL. The proxy, its schema, its own SQL and the
database are the real ones; only the translation of the client's calls is not.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import json
import os
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Self

import psycopg  # type: ignore[import-not-found]  # this runs among the proxy's own packages
from psycopg.types.json import Jsonb  # type: ignore[import-not-found]
from pydantic import BaseModel, ConfigDict

from . import errors
from .fields import Json

__all__ = ["Json", "Prisma", "errors"]

_COMPARE = {"gt": ">", "gte": ">=", "lt": "<", "lte": "<=", "equals": "=", "not": "IS DISTINCT FROM"}


class Row(BaseModel):
    """One row, by attribute."""

    model_config = ConfigDict(extra="allow", arbitrary_types_allowed=True, protected_namespaces=())


class Table:
    """One table: the client's calls as SQL."""

    def __init__(self, prisma: Prisma, name: str) -> None:
        self._prisma = prisma
        self._name = name

    @property
    def _columns(self) -> dict[str, tuple[str, bool, bool]]:
        return self._prisma.columns[self._name]

    async def find_unique(self, where: Mapping[str, Any], include: Mapping[str, Any] | None = None) -> Row | None:
        found = await self.find_many(where=where, include=include, take=1)
        return found[0] if found else None

    async def find_first(self, where: Mapping[str, Any] | None = None, **more: Any) -> Row | None:
        found = await self.find_many(where=where, **(more | {"take": 1}))
        return found[0] if found else None

    async def find_many(
        self,
        where: Mapping[str, Any] | None = None,
        *,
        take: int | None = None,
        skip: int | None = None,
        order: Any = None,
        include: Mapping[str, Any] | None = None,
        **_more: Any,
    ) -> list[Row]:
        values: list[Any] = []
        sql = f'SELECT * FROM "{self._name}" WHERE {self._where(where or {}, values)}'
        terms = [(name, way) for one in _listed(order) for name, way in one.items() if name in self._columns]
        if terms:
            ways = {name: way["sort"] if isinstance(way, Mapping) else way for name, way in terms}
            sql += " ORDER BY " + ", ".join(f'"{name}" {way}' for name, way in ways.items())
        sql += f" LIMIT {int(take)}" if take is not None else ""
        sql += f" OFFSET {int(skip)}" if skip is not None else ""
        return [Row(**record, **dict.fromkeys(include or {})) for record in await self._prisma.rows(sql, values)]

    async def count(self, where: Mapping[str, Any] | None = None, **_more: Any) -> int:
        values: list[Any] = []
        sql = f'SELECT count(*) AS n FROM "{self._name}" WHERE {self._where(where or {}, values)}'
        return int((await self._prisma.rows(sql, values))[0]["n"])

    async def create(self, data: Mapping[str, Any], include: Mapping[str, Any] | None = None) -> Row:
        given = self._with_defaults(data)
        values = [self._value(name, value) for name, value in given.items()]
        names = ", ".join(f'"{name}"' for name in given)
        marks = ", ".join(f"${number}" for number in range(1, len(values) + 1))
        try:
            made = await self._prisma.rows(f'INSERT INTO "{self._name}" ({names}) VALUES ({marks}) RETURNING *', values)
        except psycopg.errors.UniqueViolation as exc:
            raise errors.UniqueViolationError(str(exc)) from exc
        return Row(**made[0], **dict.fromkeys(include or {}))

    async def create_many(self, data: Sequence[Mapping[str, Any]], *, skip_duplicates: bool = False) -> int:
        made = 0
        for one in data:
            try:
                await self.create(one)
            except errors.UniqueViolationError:
                if not skip_duplicates:
                    raise
                continue
            made += 1
        return made

    async def update(self, where: Mapping[str, Any], data: Mapping[str, Any], **more: Any) -> Row | None:
        changed = await self._update(where, data)
        return Row(**changed[0], **dict.fromkeys(more.get("include") or {})) if changed else None

    async def update_many(self, where: Mapping[str, Any], data: Mapping[str, Any]) -> int:
        return len(await self._update(where, data))

    async def upsert(self, where: Mapping[str, Any], data: Mapping[str, Any], **more: Any) -> Row:
        if await self.find_unique(where=where) is None:
            return await self.create(data["create"], **more)
        changed = await self.update(where=where, data=data["update"], **more)
        if changed is None:
            raise errors.RecordNotFoundError(self._name)
        return changed

    async def delete(self, where: Mapping[str, Any], **_more: Any) -> Row | None:
        values: list[Any] = []
        sql = f'DELETE FROM "{self._name}" WHERE {self._where(where, values)} RETURNING *'
        gone = await self._prisma.rows(sql, values)
        return Row(**gone[0]) if gone else None

    async def delete_many(self, where: Mapping[str, Any] | None = None) -> int:
        values: list[Any] = []
        sql = f'DELETE FROM "{self._name}" WHERE {self._where(where or {}, values)} RETURNING 1 AS gone'
        return len(await self._prisma.rows(sql, values))

    async def group_by(self, *_by: Any, **_more: Any) -> list[dict[str, Any]]:
        return []

    async def _update(self, where: Mapping[str, Any], data: Mapping[str, Any]) -> list[dict[str, Any]]:
        values: list[Any] = []
        terms = []
        for name, value in data.items():
            if isinstance(value, Mapping) and set(value) == {"increment"}:
                values.append(value["increment"])
                terms.append(f'"{name}" = COALESCE("{name}", 0) + ${len(values)}')
            else:
                values.append(self._value(name, value["set"] if _is_set(value) else value))
                terms.append(f'"{name}" = ${len(values)}')
        condition = self._where(where, values)
        return await self._prisma.rows(
            f'UPDATE "{self._name}" SET {", ".join(terms)} WHERE {condition} RETURNING *', values
        )

    def _where(self, where: Mapping[str, Any], values: list[Any]) -> str:
        terms = []
        for name, value in where.items():
            if name in {"AND", "OR", "NOT"}:
                inner = [f"({self._where(one, values)})" for one in _listed(value)]
                joined = (" OR " if name == "OR" else " AND ").join(inner) or "TRUE"
                terms.append(f"NOT ({joined})" if name == "NOT" else f"({joined})")
            elif name not in self._columns and isinstance(value, Mapping):
                terms.append(self._where(value, values))  # a compound key
            elif isinstance(value, Mapping):
                terms += [self._compare(name, how, one, values) for how, one in value.items() if how != "mode"]
            elif value is None:
                terms.append(f'"{name}" IS NULL')
            else:
                values.append(self._value(name, value))
                terms.append(f'"{name}" = ${len(values)}')
        return " AND ".join(terms) or "TRUE"

    def _compare(self, name: str, how: str, value: Any, values: list[Any]) -> str:
        if how in {"in", "not_in", "notIn"}:
            values.append(list(value))
            return f'{"NOT " if how != "in" else ""}("{name}" = ANY(${len(values)}))'
        if how in {"contains", "startswith", "endswith"}:
            values.append(f"{'' if how == 'startswith' else '%'}{value}{'' if how == 'endswith' else '%'}")
            return f'"{name}" ILIKE ${len(values)}'
        if how == "not" and isinstance(value, Mapping):
            return f"NOT ({self._where({name: value}, values)})"
        if value is None:
            return f'"{name}" IS {"NOT " if how == "not" else ""}NULL'
        values.append(self._value(name, value))
        return f'"{name}" {_COMPARE[how]} ${len(values)}'

    def _with_defaults(self, data: Mapping[str, Any]) -> dict[str, Any]:
        """What the client itself fills in: ids, and when a row was changed."""
        given = {name: value["set"] if _is_set(value) else value for name, value in data.items()}
        for name, (kind, needed, defaulted) in self._columns.items():
            if name not in given and needed and not defaulted:
                given[name] = str(uuid.uuid4()) if kind == "text" else dt.datetime.now(dt.UTC)
        return given

    def _value(self, name: str, value: Any) -> Any:
        kind = self._columns[name][0]
        if kind == "jsonb" and value is not None:
            return Jsonb(
                value.data if isinstance(value, Json) else json.loads(value) if isinstance(value, str) else value
            )
        if kind.startswith("timestamp") and isinstance(value, str):
            value = dt.datetime.fromisoformat(value)
        if isinstance(value, dt.datetime) and value.tzinfo is not None:
            return value.astimezone(dt.UTC).replace(tzinfo=None)
        return value


class Batch:
    """Calls that are made together when it is left."""

    def __init__(self, prisma: Prisma) -> None:
        self._prisma = prisma
        self._calls: list[Any] = []

    def __getattr__(self, name: str) -> Any:
        table, calls = getattr(self._prisma, name), self._calls

        class Later:
            def __getattr__(self, method: str) -> Any:
                return lambda *args, **named: calls.append((getattr(table, method), args, named))

        return Later()

    async def commit(self) -> None:
        for call, args, named in self._calls:
            await call(*args, **named)
        self._calls.clear()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: object, *_rest: object) -> None:
        if kind is None:
            await self.commit()


class Prisma:
    """The client. It reads the schema from the database itself."""

    def __init__(self, **_settings: Any) -> None:
        self._connection: psycopg.AsyncConnection[Any] | None = None
        self._lock = asyncio.Lock()
        self.columns: dict[str, dict[str, tuple[str, bool, bool]]] = {}
        self._names: dict[str, str] = {}

    def is_connected(self) -> bool:
        return self._connection is not None

    async def connect(self, *_args: Any, **_named: Any) -> None:
        self._connection = await psycopg.AsyncConnection.connect(
            os.environ["DATABASE_URL"].partition("?")[0], autocommit=True, cursor_factory=psycopg.AsyncRawCursor
        )
        rows = await self.rows(
            "SELECT table_name, column_name, data_type, is_nullable, column_default FROM information_schema.columns "
            "WHERE table_schema = 'public'",
            [],
        )
        for row in rows:
            facts = (row["data_type"], row["is_nullable"] == "NO", row["column_default"] is not None)
            self.columns.setdefault(row["table_name"], {})[row["column_name"]] = facts
        self._names = {name.lower(): name for name in self.columns}

    async def disconnect(self, *_args: Any, **_named: Any) -> None:
        if self._connection is not None:
            await self._connection.close()
        self._connection = None

    async def rows(self, sql: str, values: Sequence[Any]) -> list[dict[str, Any]]:
        """Run one statement."""
        if self._connection is None:
            raise errors.ClientNotConnectedError("connect() first")
        async with self._lock, self._connection.cursor() as cursor:
            await cursor.execute(sql, list(values))
            if cursor.description is None:
                return []
            names = [column.name for column in cursor.description]
            return [dict(zip(names, map(_aware, row), strict=True)) for row in await cursor.fetchall()]

    async def query_raw(self, query: str, *args: Any, **_named: Any) -> list[dict[str, Any]]:
        return [{name: _iso(value) for name, value in row.items()} for row in await self.rows(query, args)]

    async def query_first(self, query: str, *args: Any, **_named: Any) -> dict[str, Any] | None:
        found = await self.query_raw(query, *args)
        return found[0] if found else None

    async def execute_raw(self, query: str, *args: Any, **_named: Any) -> int:
        return len(await self.rows(query, args))

    def batch_(self) -> Batch:
        return Batch(self)

    @contextlib.asynccontextmanager
    async def tx(self, **_settings: Any) -> AsyncIterator[Prisma]:
        yield self

    def __getattr__(self, name: str) -> Table:
        known = self.__dict__.get("_names", {})
        if name not in known:
            raise AttributeError(name)
        return Table(self, known[name])


def _listed(value: Any) -> list[Any]:
    return [] if value is None else list(value) if isinstance(value, list | tuple) else [value]


def _is_set(value: Any) -> bool:
    return isinstance(value, Mapping) and set(value) == {"set"}


def _aware(value: Any) -> Any:
    if isinstance(value, dt.datetime) and value.tzinfo is None:
        return value.replace(tzinfo=dt.UTC)
    return value


def _iso(value: Any) -> Any:
    return value.isoformat() if isinstance(value, dt.datetime) else value
