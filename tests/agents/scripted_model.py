"""A model server that plays a script, real enough for real agent CLIs: four surfaces, JSON and streams.

::

    with scripted_model(Play(commands=["python3 square.py 12"], final="It runs."), key="upstream-key") as model:
        model.url                  # "http://127.0.0.1:PORT": no version; the surfaces' paths follow
        ...
    model.count                    # requests of the play; model.sides: titles, model lists, counted tokens
    model.asked[0].credential      # what the client sent as its key; any other than the key is answered 401
    model.total.output             # tokens that it told

``python -m tests.agents.scripted_model [--address A] [--port P] [--forever COMMAND] [--final TEXT] [COMMAND …]`` serves
until it is killed and prints its URL; the key it demands is read from the environment (``SCRIPTED_KEY``).
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Self
from urllib.parse import unquote

from aiohttp import web

from tests.agents.scripted_dialects import READ, SAY_JSON, SAY_STREAM, error
from tests.agents.scripted_play import Failure, Play, answer, is_side_request, side_answer
from tests.agents.scripted_turns import Answer, Counted, Dialect, Json, Turn
from tests.loopback import beside_the_test, listen, port_of


@dataclass(frozen=True)
class Asked:
    """One request as it came.

    Args:
        credential: the key, without its scheme; empty for none.
        turn: what it says; None where it is no question to a model.
        side: not part of the play.
        step: of the play.
        status: what it was answered; 0 where the connection was broken or left hanging.
        told: the usage that it was told.
    """

    method: str
    path: str
    headers: dict[str, str]
    raw: bytes = field(repr=False)
    credential: str = field(repr=False)
    turn: Turn | None
    side: bool
    step: int | None
    status: int
    told: Counted | None
    at: float


@dataclass
class ScriptedModel:
    """The server. ``key``: the only credential that it takes, on every surface; None takes any."""

    play: Play = field(default_factory=Play)
    key: str | None = "sk-upstream-of-the-tests-0123456789abcdef"
    model: str = "scripted-1"
    keep: bool = True
    asked: list[Asked] = field(default_factory=list)
    count: int = 0
    sides: int = 0
    refused: int = 0
    under_way: int = 0
    most_under_way: int = 0
    address: str = "127.0.0.1"
    port: int = 0
    _runner: web.AppRunner | None = None

    @property
    def url(self) -> str:
        """Where it listens, without a version."""
        return f"http://{self.address}:{self.port}"

    @property
    def total(self) -> Counted:
        """All tokens that it told, side requests included."""
        told = [asked.told for asked in self.asked if asked.told]
        return Counted(
            sum(one.input for one in told),
            sum(one.output for one in told),
            sum(one.cached for one in told),
            sum(one.written for one in told),
        )

    @property
    def played(self) -> list[Asked]:
        """The requests of the play."""
        return [asked for asked in self.asked if asked.turn is not None and not asked.side]

    async def __aenter__(self) -> Self:
        """Listen; the port is chosen where it is 0."""
        self._runner = await listen(self._serve, address=self.address, port=self.port)
        self.port = port_of(self._runner)
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stop listening."""
        if self._runner is not None:
            await self._runner.cleanup()

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        raw = await request.read()
        headers = {name.lower(): value for name, value in request.headers.items()}
        path = unquote(request.path)
        dialect = dialect_of(path)
        got = Asked(
            request.method, path, headers, raw, _credential(request), None, True, None, 200, None, time.time()
        )  # fmt: skip
        if self.key is not None and got.credential != self.key and path != "/":
            self.refused += 1
            self._note(got, status=401)
            said = error(dialect, 401, "Incorrect API key provided")
            return web.json_response(said, status=401, headers={"request-id": "req_scripted"})
        if dialect is None or request.method != "POST":
            return self._elsewhere(got)
        try:
            turn = READ[dialect](json.loads(raw))
        except (ValueError, KeyError, TypeError, AttributeError) as exc:
            self._note(got, status=400)
            return web.json_response(error(dialect, 400, f"cannot read this request: {exc!r}"), status=400)
        if dialect == "gemini":
            model = path.rpartition("/models/")[2].partition(":")[0]
            turn = replace(turn, model=model, stream=path.endswith(":streamGenerateContent"))
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        try:
            return await self._say(request, replace(got, turn=turn), turn)
        except ConnectionError:  # who asked went away
            return web.Response()
        finally:
            self.under_way -= 1

    async def _say(self, request: web.Request, got: Asked, turn: Turn) -> web.StreamResponse:
        if is_side_request(turn):
            self.sides += 1
            said = side_answer(turn, len(got.raw))
            if self.play.always is not None:  # an outage spares nobody
                return await self._fail(request, got, turn, said, self.play.always)
            self._note(got, told=said.usage)
            return await self._send(request, turn, said, pace=0.0)
        self.count += 1
        failure = self.play.always or self.play.failures.get(self.count)
        if self.play.delay:
            await asyncio.sleep(self.play.delay)
        said, step = answer(turn, self.play, len(got.raw))
        if failure is not None:
            return await self._fail(request, got, turn, said, failure)
        self._note(got, side=False, step=step, told=said.usage)
        return await self._send(request, turn, said, pace=self.play.pace)

    async def _send(self, request: web.Request, turn: Turn, said: Answer, *, pace: float) -> web.StreamResponse:
        if not turn.stream:
            return web.json_response(SAY_JSON[turn.dialect](turn, said))
        response = web.StreamResponse(headers={"content-type": "text/event-stream", "cache-control": "no-cache"})
        await response.prepare(request)
        for frame in SAY_STREAM[turn.dialect](turn, said):
            await response.write(frame.encode())
            if pace:
                await asyncio.sleep(pace)
        await response.write_eof()
        return response

    async def _fail(
        self, request: web.Request, got: Asked, turn: Turn, said: Answer, failure: Failure
    ) -> web.StreamResponse:
        if failure == "hang":
            self._note(got, side=False, status=0)
            await asyncio.Event().wait()
        if failure != "broken":
            self._note(got, side=False, status=int(failure))
            headers = {"retry-after": "1"} if failure in {"429", "503"} else {}
            body = error(turn.dialect, int(failure), f"scripted failure {failure}")
            return web.json_response(body, status=int(failure), headers=headers)
        self._note(got, side=False, status=0)
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        if not turn.stream:
            response = web.StreamResponse(headers={"content-type": "application/json"})
        await response.prepare(request)
        frames = list(SAY_STREAM[turn.dialect](turn, said)) if turn.stream else ['{"id": "chatcmpl-half", "cho']
        for frame in frames[: max(1, len(frames) // 2)]:
            await response.write(frame.encode())
        await asyncio.sleep(0.05)  # what was said is on its way before the connection dies
        if request.transport is not None:
            request.transport.abort()
        return response

    def _elsewhere(self, got: Asked) -> web.Response:
        """What is no question to a model: lists of models, counted tokens, telemetry."""
        self.sides += 1
        end = got.path.rpartition("/")[2]
        said: Json | None = None
        if end == "count_tokens":
            said = {"input_tokens": max(len(got.raw) // 4, 1)}
        elif end.endswith(":countTokens"):
            said = {"totalTokens": max(len(got.raw) // 4, 1)}
        elif end == "models":
            one = {"id": self.model, "object": "model", "created": 1767225600, "owned_by": "scripted"}
            listed = {"name": f"models/{self.model}", "supportedGenerationMethods": ["generateContent"]}
            said = {"object": "list", "data": [one], "models": [listed] if "v1beta" in got.path else []}
        elif "/models/" in got.path and got.method == "GET":
            said = {"id": end, "object": "model", "name": f"models/{end}", "displayName": end, "type": "model"}
        elif got.path == "/":
            said = {}
        status = 404 if said is None else 200
        self._note(got, status=status)
        body = error(dialect_of(got.path), 404, f"no such path: {got.path}") if said is None else said
        return web.json_response(body, status=status)

    def _note(
        self, got: Asked, *, side: bool = True, status: int = 200, step: int | None = None, told: Counted | None = None
    ) -> None:
        if self.keep:
            self.asked.append(replace(got, side=side, status=status, step=step, told=told))


def dialect_of(path: str) -> Dialect | None:
    """The surface of a path; None for what is no question to a model."""
    if path.endswith("/chat/completions"):
        return "openai-chat"
    if path.endswith("/responses"):
        return "openai-responses"
    if path.endswith("/messages"):
        return "anthropic-messages"
    if path.endswith((":generateContent", ":streamGenerateContent")):
        return "gemini"
    return None


def _credential(request: web.Request) -> str:
    bearer = request.headers.get("authorization", "").removeprefix("Bearer ")
    named = request.headers.get("x-api-key") or request.headers.get("x-goog-api-key")
    return bearer or named or request.query.get("key", "")


@contextlib.contextmanager
def scripted_model(play: Play | None = None, **settings: object) -> Iterator[ScriptedModel]:
    """The server in a thread with a loop of its own, while the block runs."""
    server = ScriptedModel(play=play or Play(), **settings)  # type: ignore[arg-type]
    with beside_the_test(server):
        yield server


async def _forever(server: ScriptedModel) -> None:
    async with server:
        print(server.url, flush=True)  # noqa: T201 — who started it reads this line
        await asyncio.Event().wait()


def main() -> None:
    """Serve until killed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--address", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--forever")
    parser.add_argument("--final", default=Play.final)
    parser.add_argument("commands", nargs="*")
    given = parser.parse_args()
    play = Play(commands=given.commands, final=given.final, forever=given.forever)
    key = os.environ.get("SCRIPTED_KEY")
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_forever(ScriptedModel(play, key, keep=False, address=given.address, port=given.port)))


if __name__ == "__main__":
    main()
    sys.exit(0)
