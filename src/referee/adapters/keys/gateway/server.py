"""The gateway's server: one event loop in a thread of its own, listening only where machines reach it.

A machine runs untrusted code and can call the gateway as it likes: connections are bounded per peer and in all, heads
and bodies by size and time, and without a live token no body is read.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import logging
import threading
import time
from collections import Counter
from collections.abc import Coroutine
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from aiohttp import web

from referee.adapters.keys.gateway.account import Account
from referee.adapters.keys.gateway.bodies import BodyLog
from referee.adapters.keys.gateway.call import Call
from referee.adapters.keys.gateway.dialects import dialect_near, error_body
from referee.adapters.keys.gateway.forward import PATIENCE_SECONDS, Forwarder
from referee.adapters.keys.gateway.probe import Prober, probe

T = TypeVar("T")

#: Open connections, of one peer and of all.
MOST_OF_ONE_PEER = 256
MOST_CONNECTIONS = 2048
#: Seconds for which an idle connection is kept.
KEEPALIVE_SECONDS = 75.0
#: Seconds that the loop gets to do what it is asked from outside.
_ANSWER_SECONDS = 30.0
#: The same where an upstream is asked a last time.
_PROBE_SECONDS = 45.0

#: aiohttp's own words on bad requests quote them; nothing of a request may stand in a log.
_SILENT = logging.Logger("referee.gateway")  # noqa: LOG001 — outside the tree of loggers: nobody can turn it on
_SILENT.setLevel(logging.CRITICAL + 1)


class GatewayServer:
    """The thread, its loop and what lives on it.

    Args:
        ca_bundle: authorities for upstreams; None for the system's.
        bodies: where bodies are kept; None for nowhere.
        patience_seconds: silence of an upstream after which a call is broken.
    """

    def __init__(
        self, ca_bundle: Path | None, bodies: BodyLog | None, *, patience_seconds: float = PATIENCE_SECONDS
    ) -> None:
        self._ca_bundle = ca_bundle
        self._bodies = bodies
        self._patience = patience_seconds
        self._accounts: dict[str, Account] = {}
        self._servers: dict[str, tuple[asyncio.Server, int]] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._peers: Counter[str] = Counter()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._work, name="referee-gateway", daemon=True)
        self._thread.start()
        try:
            self._call(self._open())
        except BaseException:
            self._end_loop()
            raise

    @property
    def alive(self) -> bool:
        """Whether its thread works."""
        return self._thread.is_alive() and not self._loop.is_closed()

    def listen(self, address: str) -> int:
        """Listen at ``address`` from now on; the port.

        Raises:
            OSError: it cannot.
        """
        return self._call(self._listen(address))

    def admit(self, token: str, account: Account) -> None:
        """From now on ``token`` opens ``account``, until its end."""
        self._call(self._admit(token, account))

    def close(self, token: str, account: Account) -> None:
        """``token`` is dead at once, whatever the loop does; its calls under way are cut and settled when this returns.

        Raises:
            TimeoutError: the loop did not cut them.
        """
        self._accounts.pop(token, None)  # its time may be over: then its calls are cut already
        account.closed = True
        self._call(self._close(token, account))
        if account.prober is not None and account.prober.busy:
            with contextlib.suppress(TimeoutError):
                self._call(account.prober.finish(), _PROBE_SECONDS)
        account.note_the_rest()

    def stop(self) -> None:
        """Let go of everything. May be called twice."""
        if self._loop.is_closed():
            return
        if self._thread.is_alive():
            self._call(self._shut())
        self._end_loop()

    def _work(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    def _end_loop(self) -> None:
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(_ANSWER_SECONDS)
        if not self._thread.is_alive():
            self._loop.close()

    def _call(self, work: Coroutine[Any, Any, T], seconds: float = _ANSWER_SECONDS) -> T:
        if not self.alive:
            work.close()
            raise TimeoutError("the gateway's thread is dead")
        waiting = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return waiting.result(seconds)
        except concurrent.futures.TimeoutError:
            waiting.cancel()
            raise

    async def _open(self) -> None:
        self._forwarder = Forwarder(self._ca_bundle, patience_seconds=self._patience)
        self._web = web.Server(self._answer, handler_cancellation=True)

    async def _listen(self, address: str) -> int:
        found = self._servers.get(address)
        if found is None:
            server = await self._loop.create_server(self._protocol, address, 0, backlog=512)
            port: int = server.sockets[0].getsockname()[1]
            found = self._servers[address] = (server, port)
        return found[1]

    def _protocol(self) -> asyncio.Protocol:
        return _Bounded(self._web, self._loop, self._peers)

    async def _admit(self, token: str, account: Account) -> None:
        account.prober = Prober(partial(probe, account, self._forwarder))
        self._accounts[token] = account
        left = max(0.0, account.ends_at - time.time())
        self._timers[token] = self._loop.call_later(left, self._expire, token)

    def _expire(self, token: str) -> None:
        """Its time is over: the token is dead; what it spent can still be asked."""
        account = self._accounts.pop(token, None)
        if account is not None:
            account.closed = True
            for task in account.under_way:
                task.cancel()

    async def _close(self, token: str, account: Account) -> None:
        timer = self._timers.pop(token, None)
        if timer is not None:
            timer.cancel()
        tasks = list(account.under_way)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=_ANSWER_SECONDS / 2)

    async def _shut(self) -> None:
        for server, _ in self._servers.values():
            server.close()
        for token in list(self._accounts):
            account = self._accounts.pop(token)
            account.closed = True
            await self._close(token, account)
        self._web.pre_shutdown()  # idle connections end now, not when their patience does
        await self._web.shutdown(1.0)
        await self._forwarder.close()

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        account = self._account(request)
        if account is not None:
            return await Call(request, account, self._forwarder, self._bodies).serve()
        dialect = dialect_near(request.rel_url.raw_path, request.headers)
        said = error_body(dialect, 401, "invalid_api_key", "this key is not valid, or not valid any more")
        # The clients of two surfaces look for this word, and would try a dead token for minutes without it.
        response = web.Response(
            status=401, body=said, content_type="application/json", headers={"x-should-retry": "false"}
        )
        response.force_close()
        return response

    def _account(self, request: web.BaseRequest) -> Account | None:
        """Whose token the request holds, wherever its surface puts it."""
        headers = request.headers
        bearer = headers.get("authorization", "")
        given = [bearer[7:].strip()] if bearer[:7].lower() == "bearer " else []
        given += [headers[name] for name in ("x-api-key", "x-goog-api-key", "api-key") if name in headers]
        if request.rel_url.raw_query_string:
            given += request.query.getall("key", [])
        for token in given:
            account = self._accounts.get(token)
            if account is not None:
                return account
        return None


class _Bounded(web.RequestHandler):
    """A connection that is closed at once where its peer, or all peers together, have too many."""

    def __init__(self, manager: web.Server, loop: asyncio.AbstractEventLoop, peers: Counter[str]) -> None:
        super().__init__(
            manager,
            loop=loop,
            access_log=_SILENT,
            logger=_SILENT,
            keepalive_timeout=KEEPALIVE_SECONDS,
            lingering_time=1.0,
            max_line_size=16_384,
            max_field_size=16_384,
        )
        self._peers = peers
        self._peer: str | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Count it, or close it."""
        name = transport.get_extra_info("peername")
        peer = str(name[0]) if name else ""
        if self._peers[peer] >= MOST_OF_ONE_PEER or self._peers.total() >= MOST_CONNECTIONS:
            transport.close()
            return
        self._peer = peer
        self._peers[peer] += 1
        super().connection_made(transport)

    def connection_lost(self, exc: BaseException | None) -> None:
        """Count it no more."""
        if self._peer is not None:
            self._peers[self._peer] -= 1
            self._peer = None
        super().connection_lost(exc)
