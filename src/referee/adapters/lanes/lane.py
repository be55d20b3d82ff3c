"""The HTTP lane: one class for four surfaces, each of which is a dialect — a path, a way to ask, a way to check."""

from __future__ import annotations

import asyncio
import json
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from referee.adapters.lanes import openrouter
from referee.adapters.lanes.credential import Credential
from referee.adapters.lanes.http import BEARER, Auth, Http
from referee.adapters.lanes.patience import ONCE
from referee.adapters.lanes.surfaces import surface_of
from referee.core.bakeoff import Retry, Surface, Target
from referee.errors import UsageError
from referee.protocols import Ask, LaneFacts, Said

_ENCODER = json.JSONEncoder(separators=(",", ":"))
#: A case is asked k times and retried: so many questions keep their bytes.
_REMEMBERED = 256

#: Starts a server on the running loop; returns its base URL and how to stop it.
Starter = Callable[[], Awaitable[tuple[str, Callable[[], Awaitable[None]]]]]


@dataclass(frozen=True)
class Dialect:
    """One surface.

    Args:
        path: where questions go, below the base URL.
        body: a question as the surface's request.
        check: what can be found out before the first question.
        auth: how the credential is sent.
        headers: what the surface wants beside it.
    """

    path: str
    body: Callable[[Target, Ask], dict[str, Any]]
    check: Callable[[Http, Target, Retry], Awaitable[LaneFacts]]
    auth: Auth = BEARER
    headers: Mapping[str, str] = field(default_factory=dict)


class HttpLane:
    """The way to one model over HTTP. All calls happen on one loop; nothing is read into answers."""

    def __init__(
        self,
        target: Target,
        dialect: Dialect,
        credential: Credential | None,
        *,
        ca_bundle: Path | None = None,
        starter: Starter | None = None,
    ) -> None:
        self._target = target
        self._dialect = dialect
        self._credential = credential
        self._ca_bundle = ca_bundle
        self._starter = starter
        self._stop: Callable[[], Awaitable[None]] | None = None
        self._http: Http | None = None
        self._surface = surface_of(target)
        self._asked: OrderedDict[int, tuple[Ask, bytes]] = OrderedDict()
        self._purse = openrouter.Purse()
        self._opening = asyncio.Lock()

    @property
    def surface(self) -> Surface:
        """What it is and what it leaves uncontrolled."""
        return self._surface

    @property
    def secrets(self) -> Mapping[str, str]:
        """The credential, by the name of its environment variable: for redaction, never for a file."""
        return {} if self._credential is None else {self._credential.name: self._credential.reveal()}

    async def check(self, retry: Retry | None = None) -> LaneFacts:
        """Endpoint, credential, model and pins, before the first question (bake-off §5, §11).

        Raises:
            CouldNotVerify: the endpoint does not answer or does not have what the target pins.
        """
        return await self._dialect.check(await self._open(), self._target, retry or ONCE)

    async def ask(self, question: Ask, deadline_seconds: float) -> Said:
        """Put one question, once. Never raises for what the other side does."""
        http = self._http or await self._open()
        body = self._bytes(question)
        return await http.call("POST", self._dialect.path, body, deadline_seconds, streamed=self._target.stream)

    async def credit_usd(self) -> float | None:
        """Remaining credit where the provider publishes it, US dollars; None where the runner keeps the ledger.

        Raises:
            CouldNotVerify: it should be readable and is not.
        """
        if self._target.credit != "openrouter":
            return None
        return await self._purse.remaining(await self._open())

    async def market(self) -> Mapping[str, bytes]:
        """What the provider publishes of the model: raw, by name; empty where nothing is or nothing came."""
        if self._target.market != "openrouter":
            return {}
        return await openrouter.market(await self._open(), self._target.model)

    async def close(self) -> None:
        """Let go of the connections, and of the embedded server."""
        if self._http is not None:
            await self._http.close()
            self._http = None
        if self._stop is not None:
            await self._stop()
            self._stop = None

    async def _open(self) -> Http:
        async with self._opening:  # many first questions at once start one server
            return self._http or await self._begin()

    async def _begin(self) -> Http:
        base_url = self._target.base_url
        if self._starter is not None:
            base_url, self._stop = await self._starter()
        if base_url is None:
            raise UsageError(f"the target {self._target.name} has no base_url")
        self._http = Http(
            base_url,
            self._credential,
            auth=self._dialect.auth,
            headers=self._dialect.headers,
            ca_bundle=self._ca_bundle,
        )
        return self._http

    def _bytes(self, question: Ask) -> bytes:
        """The request's bytes, written once a question. Known by identity: the pair keeps the question alive."""
        key = id(question)
        known = self._asked.get(key)
        if known is not None:
            self._asked.move_to_end(key)
            return known[1]
        body = write_json(self._dialect.body(self._target, question))
        self._asked[key] = (question, body)
        if len(self._asked) > _REMEMBERED:
            self._asked.popitem(last=False)
        return body


def write_json(value: Any) -> bytes:
    """JSON in ASCII: whatever stands in a case, a lone surrogate too, can be sent."""
    return _ENCODER.encode(value).encode()
