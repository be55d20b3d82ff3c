"""One call of an agent, from its head to its settlement.

Looked at (is it this key's model? can its cost be bounded?), held by its upper estimate, sent, passed back, settled,
noted: exactly once, whatever ends it. What the upstream did not count is settled at the upper estimate, since it may
have been charged; only where nothing was sent, or the upstream itself says that it did nothing, it costs nothing.
"""

from __future__ import annotations

import asyncio
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from time import perf_counter
from types import SimpleNamespace

import aiohttp
from aiohttp import web

from referee.adapters.keys.gateway import asked as asking
from referee.adapters.keys.gateway.account import MOST_AT_ONCE, Account
from referee.adapters.keys.gateway.arriving import body_of
from referee.adapters.keys.gateway.asked import Asked
from referee.adapters.keys.gateway.bodies import BodyLog
from referee.adapters.keys.gateway.dialects import Route, dialect_near, error_body, models_body, route_of
from referee.adapters.keys.gateway.forward import Forwarded, Forwarder, NoAnswer, kept_headers
from referee.adapters.keys.gateway.metering import MOST_READ, NOTHING, Events, Metered, read_answer, read_failure
from referee.adapters.keys.gateway.statuses import MAYBE_CHARGED, OF_OUR_ACCOUNT
from referee.adapters.keys.gateway.unfit import Unfit
from referee.core.spending import Dialect, Exchange, upper_usd, usd

#: A larger one is read while no other such of the run is, so that the loop has time for other runs in between.
LARGE_REQUEST = 2**18
#: Seconds for which a refusal waits, once a run has had very many.
PESTERED_SECONDS = 0.25
#: An upstream that is silent for so many seconds when its client gives up, or the run ends, may be at fault.
SILENT_SECONDS = 20.0
#: What the metadata keeps of a name that the agent chose.
_LONGEST_NAME = 200
#: The agent let go, or its key was closed, before it had its answer (nginx's word for it).
GONE = 499
_SWAMPED = "this key has made very many calls"
_TOO_MANY = "too many calls of this key are under way"


@dataclass
class _So:
    """What is known of the exchange so far."""

    dialect: Dialect | None = None
    path: str = ""
    model: str = ""
    streamed: bool = False
    status: int = GONE
    upstream_status: int | None = None
    refused: str | None = None
    broke: str | None = None
    metered: Metered | None = None
    upper: float = 0.0
    cost: float = 0.0
    first_byte_ms: float | None = None


class Call:
    """One request of one key."""

    def __init__(
        self, request: web.BaseRequest, account: Account, forwarder: Forwarder, bodies: BodyLog | None
    ) -> None:
        self._request = request
        self._account = account
        self._forwarder = forwarder
        self._bodies = bodies
        self._begun = perf_counter()
        self._at = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        self._so = _So()
        self._held = False
        self._sent = SimpleNamespace(yes=False)
        self._settled = False
        self._asked: Asked | None = None
        self._answer = bytearray()
        self._events: Events | None = None
        self._heard_at: float | None = None

    async def serve(self) -> web.StreamResponse:
        """Answer the request and note the exchange."""
        task = asyncio.current_task()
        busy = len(self._account.under_way) >= MOST_AT_ONCE
        if task is not None:
            self._account.under_way.add(task)
        try:
            return await self._try() if not busy else self._refuse(Unfit(_TOO_MANY, "busy", 429))
        except Unfit as exc:
            if self._account.pestered and not busy:
                await asyncio.sleep(PESTERED_SECONDS)
            return self._refuse(exc)
        except (ConnectionError, aiohttp.ClientError) as exc:
            self._let_go()
            raise ConnectionResetError from exc
        except asyncio.CancelledError:
            self._let_go()
            raise
        except Exception as exc:  # noqa: BLE001 — a fault of ours is told in the record; the gateway serves on
            if self._asked is not None:  # before, it is what the client sent that could not be read
                self._account.broken = f"a call could not be forwarded: {type(exc).__name__}"
            self._so.status = 500
            return _json(500, self._said(500, "gateway", "the gateway itself failed"))
        finally:
            try:
                self._settle()
                self._note()
            finally:
                if task is not None:
                    self._account.under_way.discard(task)

    def _let_go(self) -> None:
        """The client gave up, or the run is over: whether the upstream had been silent for long."""
        self._so.status = GONE
        silent = self._heard_at is not None and perf_counter() - self._heard_at >= SILENT_SECONDS
        if silent and self._sent.yes and self._so.broke is None:
            self._so.broke = "timeout"

    async def _try(self) -> web.StreamResponse:
        path = self._request.rel_url.raw_path
        route = route_of(self._request.method, path)
        so, account = self._so, self._account
        known = route is not None and route.model in {None, account.need.model}
        so.path = path if known else self._shown(path)
        near = dialect_near(path, self._request.headers)
        so.dialect = near if route is None or route.dialect is None else route.dialect
        if route is None:
            raise Unfit(f"{self._request.method} is not served at this path", "path", 404)
        if account.swamped:
            raise Unfit(_SWAMPED, "busy", 429)
        if route.kind == "models":
            return self._models(route)
        if so.dialect != account.need.dialect:
            raise Unfit("this key is for another surface, that of the agent's program", "path", 404)
        self._asked = asked = await self._read(route, so.dialect)
        so.streamed = asked.streamed
        if route.kind == "answer":
            await self._hold(asked)
        else:
            so.metered = NOTHING
        return await self._send(route, asked)

    async def _hold(self, asked: Asked) -> None:
        """Set the most that the call can cost aside."""
        account, so = self._account, self._so
        most = account.seen.most_tokens(asked)
        so.upper = upper_usd(most, asked.max_output_tokens, account.tariff.dearest)
        if not await account.hold(so.upper):
            left = f"this call might exceed what is left of the run's {usd(account.cap_usd)}, so it was not sent"
            raise Unfit(left, "cap", 402)
        self._held = True

    def _models(self, route: Route) -> web.StreamResponse:
        """The list of models is the gateway's own: it costs nothing and tells nothing of the upstream."""
        so, need = self._so, self._account.need
        if route.model is not None and route.model != need.model:
            raise self._other_model()
        so.metered, so.status, so.model = NOTHING, 200, need.model
        most = self._account.upstream.max_output_tokens
        return _json(200, models_body(route.dialect, need.model, most, one=route.model is not None))

    def _other_model(self) -> Unfit:
        # Said without its name: programs print it, and what is printed is served of agents that are shown by a letter.
        return Unfit("this key is for another model, the one of the agent's file", "model", 404)

    async def _read(self, route: Route, dialect: Dialect) -> Asked:
        """The request, bounded.

        Raises:
            Unfit: it is not to be sent.
        """
        body = await body_of(self._request)
        async with self._account.reading if len(body) > LARGE_REQUEST else nullcontext():
            if len(body) > LARGE_REQUEST:
                await asyncio.sleep(0)
            return self._looked_at(route, dialect, body)

    def _looked_at(self, route: Route, dialect: Dialect, body: bytes) -> Asked:
        document = asking.read_object(body)
        upstream, need = self._account.upstream, self._account.need
        model = asking.named_model(document, route.model)
        if model != need.model:
            self._so.model = self._shown(model)
            raise self._other_model()
        self._so.model = model
        if route.kind == "count":
            return asking.counting(document, dialect, model)
        most = upstream.max_output_tokens
        return asking.bounded(document, dialect, model, streamed=route.streams, most=most, host=upstream.host)

    async def _send(self, route: Route, asked: Asked) -> web.StreamResponse:
        so = self._so
        self._heard_at = perf_counter()
        try:
            async with self._forwarder.send(self._account.upstream, route, asked, self._request, self._sent) as answer:
                so.upstream_status = answer.status
                self._heard_at = perf_counter()
                if asked.streamed and answer.status < 300:  # noqa: PLR2004 — HTTP's success
                    return await self._stream(answer, asked)
                body = await answer.whole()
        except NoAnswer as exc:
            return await self._no_answer(exc)
        return self._whole(answer, body)

    def _whole(self, answer: Forwarded, body: bytes) -> web.StreamResponse:
        so = self._so
        if 300 <= answer.status < 400:  # noqa: PLR2004 — HTTP's redirects
            so.broke, so.status, so.metered = "protocol", 502, NOTHING
            self._settle()
            return _json(502, self._said(502, "upstream", "the upstream sent the call elsewhere; it was not followed"))
        if answer.status >= 400:  # noqa: PLR2004 — HTTP's errors
            if answer.status in OF_OUR_ACCOUNT:
                body = self._said(answer.status, "upstream", OF_OUR_ACCOUNT[answer.status])
            if answer.status not in MAYBE_CHARGED:
                so.metered = NOTHING
        elif so.metered is None and so.dialect is not None:
            so.metered = read_answer(so.dialect, body)
            so.broke = "error" if read_failure(body) else None
        body = self._forwarder.clean(self._account.upstream, body, error=answer.status >= 400)  # noqa: PLR2004
        so.status = answer.status
        self._keep(body)
        self._settle()
        so.first_byte_ms = self._elapsed()
        headers = kept_headers(answer.headers)
        return web.Response(status=answer.status, body=body, headers=headers)

    async def _stream(self, answer: Forwarded, asked: Asked) -> web.StreamResponse:
        """Pass a stream on, chunk by chunk as it comes."""
        so, dialect = self._so, self._so.dialect
        so.status = answer.status
        response = web.StreamResponse(status=answer.status, headers=kept_headers(answer.headers))
        response.headers["cache-control"] = "no-store"
        events = None
        if dialect is not None and "event-stream" in answer.headers.get("content-type", ""):
            events = self._events = Events(dialect, strip_usage=asked.strip_usage)
        await response.prepare(self._request)
        gathered = bytearray()
        rest = b""
        try:
            async for chunk in answer.chunks():
                self._heard_at = perf_counter()
                if events is None and len(gathered) < MOST_READ:
                    gathered += chunk
                await self._pass(response, chunk if events is None else events.through(chunk))
            if events is not None:
                rest, so.metered = events.end(), events.metered(ended=True)
            elif dialect is not None:
                so.metered = read_answer(dialect, bytes(gathered))
        except NoAnswer as exc:
            so.broke = exc.broke
        finally:
            # Clients hang up once they have the last event, which tells all, and do not wait for the stream's end.
            if events is not None and so.metered is None:
                so.metered = events.metered(ended=False)
            self._settle()
        if so.broke is not None:
            # The head is gone already: only a connection that ends too early says that the answer is not whole.
            if self._request.transport is not None:
                self._request.transport.close()
            return response
        await self._pass(response, rest)
        await response.write_eof()
        return response

    async def _pass(self, response: web.StreamResponse, data: bytes) -> None:
        if not data:
            return
        if self._so.first_byte_ms is None:
            self._so.first_byte_ms = self._elapsed()
        self._keep(data)
        await response.write(data)

    async def _no_answer(self, exc: NoAnswer) -> web.StreamResponse:
        so = self._so
        so.broke = exc.broke
        so.status = 504 if exc.broke == "timeout" else 502
        if not exc.sent:
            so.metered = NOTHING
        self._settle()
        return _json(so.status, self._said(so.status, "upstream", f"the upstream failed: {exc.sentence}"))

    def _refuse(self, why: Unfit) -> web.StreamResponse:
        so = self._so
        so.status, so.refused, so.metered = why.status, why.refused, None
        response = _json(why.status, self._said(why.status, why.refused, why.sentence))
        if why.refused == "busy":
            response.headers["retry-after"] = "1"
        else:
            response.headers["x-should-retry"] = "false"
        if not self._request.content.at_eof():
            response.force_close()  # what was not read of it is not read any more
        return response

    def _said(self, status: int, code: str, sentence: str) -> bytes:
        return error_body(self._near(), status, code, sentence)

    def _near(self) -> Dialect:
        return self._so.dialect or dialect_near(self._request.rel_url.raw_path, self._request.headers)

    def _settle(self) -> None:
        if self._settled:
            return
        self._settled = True
        if not self._held:
            if self._so.refused is None:  # the agent let go while it waited
                self._so.metered, self._so.upper = self._so.metered or NOTHING, 0.0
            return
        so, account = self._so, self._account
        metered = so.metered
        if metered is None and so.upstream_status is None and so.broke is None and not self._sent.yes:
            metered = so.metered = NOTHING
        cost = so.upper
        if metered is NOTHING:
            cost = 0.0
        elif metered is not None:
            cost = account.tariff.cost_usd(metered.usage)
            if self._asked is not None:
                account.seen.counted(self._asked, metered.usage.input)
        so.cost = account.settle(so.upper, cost)

    def _note(self) -> None:
        so = self._so
        if so.broke is None and self._events is not None and self._events.failed:
            so.broke = "error"
        usage = so.metered.usage if so.metered is not None and so.refused is None else None
        if so.metered is NOTHING and so.refused is None:
            self._account.cost_nothing()
        self._account.note(
            Exchange(
                at=self._at,
                dialect=so.dialect,
                path=so.path,
                model=so.model,
                streamed=so.streamed,
                status=so.status,
                upstream_status=so.upstream_status,
                refused=so.refused,
                broke=so.broke,
                usage=usage,
                upper_usd=so.upper,
                cost_usd=so.cost,
                first_byte_ms=so.first_byte_ms,
                latency_ms=self._elapsed(),
                price=self._account.tariff.of(usage) if usage is not None and so.metered is not NOTHING else None,
            )
        )
        if self._bodies is not None and self._asked is not None and so.refused is None:
            with suppress(OSError):  # bodies are an extra; what they cost stands in the metadata
                self._bodies.keep(self._account, self._at, self._asked.body, bytes(self._answer))

    def _keep(self, data: bytes) -> None:
        if self._bodies is not None:
            self._answer += data[: max(0, self._bodies.most - len(self._answer))]

    def _shown(self, name: str) -> str:
        """A name that the agent chose, as it is noted: half characters of JSON are in no UTF-8."""
        whole = name.encode("utf-8", "replace").decode()
        return self._account.redactor.redact_text(whole)[:_LONGEST_NAME]

    def _elapsed(self) -> float:
        return round((perf_counter() - self._begun) * 1000, 3)


def _json(status: int, body: bytes) -> web.Response:
    return web.Response(status=status, body=body, content_type="application/json")
