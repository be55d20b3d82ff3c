"""Whether the model answers anybody: asked by the gateway itself when a call of a run failed.

A call can be made to fail by what it says: too large, not liked, let go after a while. What the gateway asks, nobody in
the machine writes; so only a probe that fails too shows that the upstream was at fault (decision 0123). A probe costs a
few tokens of the house's money, and stands in the log of the run's calls.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import UTC, datetime
from time import monotonic, perf_counter
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from referee.adapters.keys.gateway import asked as asking
from referee.adapters.keys.gateway.dialects import route_of
from referee.adapters.keys.gateway.forward import Forwarder, Head, NoAnswer
from referee.adapters.keys.gateway.metering import read_answer, read_failure
from referee.core.spending import Dialect, Exchange

if TYPE_CHECKING:
    from referee.adapters.keys.gateway.account import Account

#: Seconds between two probes of one run, and within which an upstream must answer so little.
BETWEEN_SECONDS = 20.0
PATIENCE_SECONDS = 20.0
#: Probes of one run: more tell nothing new.
MOST_PROBES = 200
_OUTPUT_TOKENS = 16

_TURN = [{"role": "user", "content": "ping"}]
_QUESTIONS: dict[Dialect, dict[str, Any]] = {
    "openai-chat": {"messages": _TURN},
    "openai-responses": {"input": "ping"},
    "anthropic-messages": {"messages": _TURN},
    "gemini": {"contents": [{"role": "user", "parts": [{"text": "ping"}]}]},
}
_PATHS: dict[Dialect, str] = {
    "openai-chat": "/v1/chat/completions",
    "openai-responses": "/v1/responses",
    "anthropic-messages": "/v1/messages",
    "gemini": "/v1beta/models/MODEL:generateContent",
}


class Prober:
    """The probes of one run: never two at once, each some time after the one before."""

    def __init__(self, ask: Callable[[Dialect], Awaitable[None]]) -> None:
        self._ask = ask
        self._wanted: Dialect | None = None
        self._task: asyncio.Task[None] | None = None
        self._last = -BETWEEN_SECONDS
        self._made = 0
        self._hurry = asyncio.Event()

    @property
    def busy(self) -> bool:
        """Whether a probe is wanted or under way."""
        return self._task is not None and not self._task.done()

    def suspect(self, dialect: Dialect) -> None:
        """A call failed: a probe begins, now or as soon as one may."""
        self._wanted = dialect
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._work())

    async def finish(self) -> None:
        """Make the probe that is still wanted, at once: no call follows."""
        self._hurry.set()
        if self._task is not None:
            await asyncio.wait([self._task], timeout=2 * PATIENCE_SECONDS)
            self._task.cancel()

    async def _work(self) -> None:
        while self._wanted is not None and self._made < MOST_PROBES:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._hurry.wait(), max(0.0, self._last + BETWEEN_SECONDS - monotonic()))
            dialect, self._wanted = self._wanted, None
            self._last = monotonic()
            self._made += 1
            await self._ask(dialect)


async def probe(account: Account, forwarder: Forwarder, dialect: Dialect) -> None:
    """Ask the run's model for next to nothing, and note what came."""
    model, host = account.need.model, account.upstream.host
    document = {"model": model, **_QUESTIONS[dialect]}
    if dialect == "gemini":
        del document["model"]
    asked = asking.bounded(document, dialect, model, streamed=False, most=_OUTPUT_TOKENS, host=host)
    route = route_of("POST", _PATHS[dialect])
    if route is None:
        raise LookupError(dialect)
    head = Head({"anthropic-version": "2023-06-01"} if dialect == "anthropic-messages" else {})
    at, begun = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"), perf_counter()
    status: int | None = None
    broke: str | None = None
    body = b""
    try:
        async with (
            asyncio.timeout(PATIENCE_SECONDS),
            forwarder.send(account.upstream, route, asked, head, SimpleNamespace(yes=False)) as answer,
        ):
            status = answer.status
            body = await answer.whole()
    except NoAnswer as exc:
        broke = exc.broke
    except TimeoutError:
        broke = "timeout"
    if status is not None and 300 <= status < 400:  # noqa: PLR2004 — HTTP's redirects
        broke = "protocol"
    elif broke is None and read_failure(body) and status == 200:  # noqa: PLR2004 — HTTP's success
        broke = "error"
    metered = read_answer(dialect, body)
    usage = metered.usage if metered is not None else None
    account.note(
        Exchange(
            at=at,
            dialect=dialect,
            path=_PATHS[dialect],
            model=model,
            streamed=False,
            status=status or 504,
            upstream_status=status,
            refused=None,
            broke=broke,
            usage=usage,
            upper_usd=0.0,
            cost_usd=account.tariff.cost_usd(usage) if usage is not None else 0.0,
            first_byte_ms=None,
            latency_ms=round((perf_counter() - begun) * 1000, 3),
            price=account.tariff.of(usage) if usage is not None else None,
            probe=True,
        )
    )
