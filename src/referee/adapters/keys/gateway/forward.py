"""The way to the upstream: the request written anew with the real key, the answer's head filtered.

It speaks to the configured address and to nothing else: no redirect is followed; no proxy, netrc or cookie is taken
from the surroundings. Of the client's head only what a surface needs goes on; of the upstream's only what a client
needs comes back: neither side learns of the other's keys, accounts or limits.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import quote

import aiohttp
from aiohttp import web
from yarl import URL

from referee import __version__
from referee.adapters.keys.gateway.asked import Asked
from referee.adapters.keys.gateway.dialects import Route
from referee.adapters.keys.gateway.upstream import Upstream
from referee.core.redaction import Redactor
from referee.core.spending import Dialect
from referee.tls import tls_context

#: The largest whole answer that is passed on.
MOST_ANSWER = 64 * 2**20
#: Seconds without a byte from the upstream after which it counts as broken; a long thought takes minutes.
PATIENCE_SECONDS = 600.0
CONNECT_SECONDS = 30.0

_WORD = re.compile(r"[a-z0-9-]{1,60}", re.ASCII)
#: Of Anthropic's betas those that change neither what is paid nor what is counted, by how their names begin. Not those
#: of the provider's own context management and tools, of a larger context, of another speed: these have other prices.
_BETAS = (
    "claude-code-",
    "effort-",
    "extended-cache-ttl-",
    "fine-grained-tool-streaming-",
    "interleaved-thinking-",
    "mid-conversation-system-",
    "prompt-caching-",
    "redact-thinking-",
    "structured-outputs-",
    "thinking-token-count-",
    "token-counting-",
)
_DOWN = frozenset({"content-type", "retry-after", "retry-after-ms", "x-should-retry", "x-request-id", "request-id"})
#: What of a query goes on, to the letter.
_QUERY = frozenset({("alt", "sse"), ("alt", "json"), ("beta", "true")})
_LONGEST_VALUE = 1000
#: How errors name accounts, and quote a part of a key: its ends with stars or dots between.
_ACCOUNT = re.compile(
    rb"\b(?:org|proj|user|acct|workspace|wrkspc|project)[-_][0-9A-Za-z]{6,64}\b"
    rb"|\b[0-9A-Za-z][\w-]{0,64}(?:\*{3,256}|\.{3,8})[\w-]{1,64}"
)


class NoAnswer(Exception):
    """No whole answer came: how (``broke``), whether anything of the request had been sent, one sentence."""

    def __init__(self, broke: str, sentence: str, *, sent: bool) -> None:
        super().__init__(sentence)
        self.broke = broke
        self.sentence = sentence
        self.sent = sent


@dataclass(frozen=True)
class Head:
    """What a request of the gateway's own has instead of a client's head and query."""

    headers: Mapping[str, str]
    query: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Forwarded:
    """The head of an upstream's answer, and the way to its body."""

    status: int
    headers: Mapping[str, str]
    _response: aiohttp.ClientResponse
    _secret: bytes

    async def whole(self) -> bytes:
        """The body.

        Raises:
            NoAnswer: it broke off or is too long.
        """
        parts: list[bytes] = []
        size = 0
        async for part in self.chunks():
            parts.append(part)
            size += len(part)
            if size > MOST_ANSWER:
                raise NoAnswer("protocol", "its answer is too long", sent=True)
        return b"".join(parts)

    async def chunks(self) -> AsyncIterator[bytes]:
        """The body as it comes, without our credential should the upstream repeat it: what may be its beginning waits.

        Raises:
            NoAnswer: it broke off.
        """
        secret, held = self._secret, b""
        try:
            async for chunk in self._response.content.iter_any():
                clean = (held + chunk).replace(secret, b"[redacted]") if secret else chunk
                cut = len(clean) - _begun(clean, secret)
                held = clean[cut:]
                if cut:
                    yield clean[:cut]
            if held:
                yield held
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as exc:
            raise _no_answer(exc, sent=True) from exc


class Forwarder:
    """One client session for all runs; made on the gateway's loop."""

    def __init__(self, ca_bundle: Path | None, *, patience_seconds: float = PATIENCE_SECONDS) -> None:
        trace = aiohttp.TraceConfig()
        trace.on_request_headers_sent.append(_mark_sent)
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ttl_dns_cache=300, ssl=tls_context(ca_bundle)),
            headers={"user-agent": f"referee/{__version__}", "accept-encoding": "identity"},
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS, sock_read=patience_seconds),
            trust_env=False,
            trace_configs=[trace],
            read_bufsize=2**18,
        )
        self._redactors: dict[str, Redactor] = {}

    @asynccontextmanager
    async def send(
        self, upstream: Upstream, route: Route, asked: Asked, request: web.BaseRequest | Head, sent: SimpleNamespace
    ) -> AsyncIterator[Forwarded]:
        """Send the request and wait for the head of its answer.

        Args:
            upstream: where to.
            route: what is asked for.
            asked: the request as it was bounded.
            request: the client's, for the parts of its head and query that go on.
            sent: gets ``yes = True`` once anything was sent.

        Raises:
            NoAnswer: none came.
        """
        url = upstream.base_url.rstrip("/") + route.below.format(model=quote(asked.model, safe=""))
        query = "&".join(f"{name}={value}" for name, value in dict(request.query).items() if (name, value) in _QUERY)
        headers = _kept_up(request.headers)
        headers |= {"content-type": "application/json", **credential(upstream, route.dialect)}
        headers["accept"] = "text/event-stream" if asked.streamed else "application/json"
        try:
            response = await self._session.post(
                URL(f"{url}?{query}" if query else url, encoded=True),
                data=asked.body,
                headers=headers,
                allow_redirects=False,
                trace_request_ctx=sent,
            )
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError, AssertionError) as exc:
            raise _no_answer(exc, sent=sent.yes) from exc
        secret = next(iter(upstream.secrets().values()), "").encode()
        try:
            yield Forwarded(response.status, response.headers, response, secret)
        finally:
            # A body that was read to its end gave the connection back already; any other ends with it.
            response.close()

    def clean(self, upstream: Upstream, body: bytes, *, error: bool) -> bytes:
        """A body without the upstream's credential, however it is spelt; an error without names of our account too."""
        if error:
            body = _ACCOUNT.sub(b"[redacted]", body)
        redactor = self._redactors.get(upstream.name)
        if redactor is None:
            redactor = self._redactors[upstream.name] = Redactor(upstream.secrets())
        return redactor.redact(body)

    async def close(self) -> None:
        """Let go of the connections."""
        await self._session.close()


def _begun(data: bytes, secret: bytes) -> int:
    """How many of the last bytes of ``data`` are the first of ``secret``."""
    return next((size for size in range(min(len(data), len(secret) - 1), 0, -1) if data.endswith(secret[:size])), 0)


def kept_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """What of the upstream's head the client gets."""
    return {name: headers[name][:_LONGEST_VALUE] for name in _DOWN if name in headers}


def _kept_up(headers: Mapping[str, str]) -> dict[str, str]:
    """What of the client's head the upstream gets."""
    version = headers.get("anthropic-version", "")
    kept = {"anthropic-version": version} if _WORD.fullmatch(version) else {}
    named = [one.strip() for one in headers.get("anthropic-beta", "")[:_LONGEST_VALUE].split(",")]
    betas = [one for one in named if one.startswith(_BETAS) and _WORD.fullmatch(one)]
    return {**kept, "anthropic-beta": ",".join(betas)} if betas else kept


def credential(upstream: Upstream, dialect: Dialect | None) -> dict[str, str]:
    """The real key where the surface looks for it."""
    secret = upstream.secret
    if secret is None:
        return {}
    if dialect == "gemini":
        return {"x-goog-api-key": secret}
    if dialect == "anthropic-messages":
        named = {"x-api-key": secret}
        # Anthropic itself takes only this one; others that speak its surface may look for the usual one.
        return named if upstream.host.endswith("anthropic.com") else {**named, "authorization": f"Bearer {secret}"}
    return {"authorization": f"Bearer {secret}"}


async def _mark_sent(_session: object, context: SimpleNamespace, _params: object) -> None:
    context.trace_request_ctx.yes = True


def _no_answer(exc: BaseException, *, sent: bool) -> NoAnswer:
    """How the transport failed, in our own words: an error's text may quote addresses or what was sent."""
    if isinstance(exc, TimeoutError):
        return NoAnswer("timeout", "it did not answer in time", sent=sent)
    if isinstance(exc, aiohttp.ClientConnectorError):
        return NoAnswer("connect", "no connection to it comes about", sent=False)
    if isinstance(exc, aiohttp.ClientPayloadError | aiohttp.ServerDisconnectedError | aiohttp.ClientOSError | OSError):
        return NoAnswer("reset", "it ended the connection before its answer was whole", sent=sent)
    return NoAnswer("protocol", "what it says is no valid HTTP", sent=sent)
