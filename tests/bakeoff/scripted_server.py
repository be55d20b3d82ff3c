"""A real HTTP server on loopback that plays every shape and error of the tables of reading, on four surfaces.

What it plays is chosen by the model's name (``ok``, ``402``, ``slow`` …; what follows an ``@`` is ignored, so that two
targets can play the same), by a path in front (``/play/402/v1``), or by ``server.script``. It keeps what it got.

::

    with serving() as server:            # in a thread of its own
        server.url                       # "http://127.0.0.1:PORT": give lanes f"{server.url}/v1", Ollama's server.url
        server.script = lambda got: "402" if server.count > 9 else None
        server.calls = lambda got: [("get_weather", {"city": "Berlin"})]
        server.got[-1].headers["authorization"]

``python -m tests.bakeoff.scripted_server`` serves it until it is killed, and prints its URL.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from aiohttp import web

from tests.bakeoff import scripted_shapes as shapes
from tests.bakeoff.scripted_plays import PLAYS, Got, first_tool, unknown
from tests.bakeoff.scripted_shapes import Spoken, SurfaceName
from tests.loopback import beside_the_test, listen, port_of

SURFACES: dict[str, SurfaceName] = {
    "/chat/completions": "openai-chat",
    "/responses": "openai-responses",
    "/messages": "anthropic-messages",
    "/api/chat": "ollama",
}


@dataclass
class ScriptedServer:
    """The server: ``script`` chooses what to play for a request (None: by path or model), ``calls`` what to call."""

    script: Callable[[Got], str | None] = lambda got: None
    calls: Callable[[Got], Sequence[Spoken]] = first_tool
    delay: float = 0.0
    keep: bool = True
    models: list[str] = field(default_factory=list)  # further models of the catalogue, beside what can be played
    credit: tuple[float, float] = (100.0, 12.5)  # the account's: total, used
    key_limit: float | None = None  # what is left of the key's own limit
    listed: dict[str, Any] = field(default_factory=dict)  # stands in every entry of the catalogue
    ollama: dict[str, Any] = field(default_factory=dict)  # replaces parts of what /api/show says
    allocated: int | None = None  # the context that /api/ps reports; None for none
    closed: bool = False  # the catalogue sends strangers away
    refuses: dict[str, int] = field(default_factory=dict)  # last part of a path to the status that it answers
    got: list[Got] = field(default_factory=list)
    count: int = 0
    under_way: int = 0
    most_under_way: int = 0
    port: int = 0
    _runner: web.AppRunner | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def __aenter__(self) -> Self:
        self._runner = await listen(self._serve)
        self.port = port_of(self._runner)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        raw = await request.read()
        body = json.loads(raw) if raw else {}
        path = request.path
        play = str(body.get("model", "ok")).split("@")[0]
        if path.startswith("/play/"):
            play, _, rest = path.removeprefix("/play/").partition("/")
            path = f"/{rest}"
        surface = next((name for end, name in SURFACES.items() if path.endswith(end)), None)
        headers = {name.lower(): value for name, value in request.headers.items()}
        got = Got(request.method, path, headers, raw, body, play, surface, time.monotonic())
        self.count += 1
        if self.keep:
            self.got.append(got)
        if surface is None:
            return self._catalogue(got)
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        try:
            if self.delay:
                await asyncio.sleep(self.delay)
            chosen = self.script(got) or play
            return await PLAYS.get(chosen, unknown)(self, request, got)
        except ConnectionError:  # who asked went away
            return web.Response()
        finally:
            self.under_way -= 1

    def _catalogue(self, got: Got) -> web.Response:
        if got.play in FORBIDDEN_TO_LOOK and got.path != "/api/show":
            status, message = FORBIDDEN_TO_LOOK[got.play]
            return web.json_response(shapes.error("openai-chat", status, message), status=status)
        end = got.path.rpartition("/")[2]
        if self.closed and not got.credential:
            return web.json_response(shapes.error("openai-chat", 401, "who are you?"), status=401)
        if end in self.refuses:
            return web.json_response(shapes.error("openai-chat", self.refuses[end], "no"), status=self.refuses[end])
        names = [*PLAYS, *(f"{name}@eu" for name in ("ok", "402", "503")), *self.models]
        details = {"parameter_size": "3.2B", "quantization_level": "Q4_K_M", "family": "llama", "format": "gguf"}
        price = {"prompt": "0.000001", "completion": "0.000002"}
        way = {"provider_name": "Scripted", "pricing": price, "uptime_last_30m": 99.5, "quantization": "fp8"}
        info = {"general.architecture": "llama", "llama.context_length": 131072, "general.parameter_count": 3212749888}
        said: dict[str, dict[str, Any]] = {
            "endpoints": {"data": {"id": got.path, "endpoints": [way]}},
            "models": {"object": "list", "data": [{"id": name, "object": "model"} | self.listed for name in names]},
            "credits": {"data": {"total_credits": self.credit[0], "total_usage": self.credit[1]}},
            "key": {"data": {"label": "scripted", "limit_remaining": self.key_limit}},
            "version": {"version": "0.13.0"},
            "ps": {"models": [{"name": f"{n}:latest"} | self._allocated() for n in names]},
            "tags": {"models": [{"name": f"{n}:latest", "digest": "a" * 64, "details": details} for n in names]},
            "show": {"details": details, "model_info": info, "capabilities": ["completion", "tools"]} | self.ollama,
        }
        if end in said:
            return web.json_response(said[end])
        return web.json_response(shapes.error("openai-chat", 404, f"no such path: {got.path}"), status=404)

    def _allocated(self) -> dict[str, int]:
        return {} if self.allocated is None else {"context_length": self.allocated}


#: Played on ``/models``, ``/credits`` and the like, with the path in front.
FORBIDDEN_TO_LOOK = {"401": (401, "invalid credential"), "503": (503, "down"), "404-models": (404, "no catalogue here")}


@contextlib.contextmanager
def serving(**settings: Any) -> Iterator[ScriptedServer]:
    """The server in a thread with a loop of its own, while the block runs."""
    with beside_the_test(ScriptedServer(**settings)) as server:
        yield server


async def _forever() -> None:
    async with ScriptedServer(keep=False) as server:
        print(server.url, flush=True)  # noqa: T201 — who started it reads this line
        await asyncio.Event().wait()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_forever())
    sys.exit(0)
