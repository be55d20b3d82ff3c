"""The HTTP part that all lanes share: one request out, bytes back, and every failure said instead of raised.

It speaks to the target's base URL and to nothing else: no redirect is followed, no proxy, netrc or cookie is taken from
the surroundings, so no environment variable can carry a credential elsewhere (bake-off §11). The deadline covers the
whole call, from the name's look-up to the last byte; a body has a cap, so an endless answer ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import aiohttp
from aiohttp.http_exceptions import ContentEncodingError
from yarl import URL

from referee import __version__
from referee.adapters.lanes.credential import Credential
from referee.protocols import Said
from referee.tls import tls_context

#: Most bytes of one answer; the largest sound one is a few hundred kilobytes.
MOST_BYTES = 8 * 2**20
#: Of an answer that breaks the cap this much is kept: enough to see what it was.
KEPT_OF_TOO_LONG = 256 * 2**10
#: The start of a header's value that is kept.
_LONGEST_HEADER = 200

#: Response headers that a reader or a person looking for a cause may need; no other is kept.
KEPT_HEADERS = frozenset(
    {
        *("content-type", "content-length", "date", "retry-after", "retry-after-ms", "x-should-retry"),
        *(
            "x-request-id",
            "request-id",
            "cf-ray",
            "nvcf-reqid",
            "nvcf-status",
            "x-generation-id",
            "openai-processing-ms",
        ),
    }
)
_KEPT_PREFIXES = ("x-ratelimit-", "ratelimit", "anthropic-ratelimit-")


@dataclass(frozen=True)
class Auth:
    """How a credential is sent: the header's name and what stands before the secret."""

    header: str = "authorization"
    before: str = "Bearer "


#: What all but Anthropic take.
BEARER = Auth()


class Http:
    """One client session of one lane, made on the loop that first uses it."""

    def __init__(
        self,
        base_url: str,
        credential: Credential | None,
        *,
        auth: Auth,
        headers: Mapping[str, str] | None = None,
        ca_bundle: Path | None = None,
    ) -> None:
        self.base_url = base_url.rstrip("/")
        self._credential = credential
        self._auth = auth
        self._headers = {"user-agent": f"referee/{__version__}", "accept-encoding": "identity", **(headers or {})}
        self._ca_bundle = ca_bundle
        self._session: aiohttp.ClientSession | None = None
        self._urls: dict[str, URL] = {}

    async def call(
        self,
        method: str,
        path: str,
        body: bytes | None,
        deadline_seconds: float,
        *,
        streamed: bool = False,
        anonymous: bool = False,
        most_bytes: int = MOST_BYTES,
    ) -> Said:
        """One request and what came of it; raises nothing for what the other side does.

        Args:
            method: of HTTP.
            path: below the base URL, with its leading slash.
            body: JSON, or None.
            deadline_seconds: for the whole call.
            streamed: whether a stream of events was asked for; the first byte is then the body's, not the head's.
            anonymous: leave the credential at home.
            most_bytes: the cap of the body.
        """
        headers = {} if body is None else {"content-type": "application/json"}
        if self._credential is not None and not anonymous:
            headers[self._auth.header] = f"{self._auth.before}{self._credential.reveal()}"
        told = _Told(streamed=streamed, begun=perf_counter())
        try:
            async with asyncio.timeout(deadline_seconds):
                # A redirect is an answer like any other: it is not followed, the credential stays here.
                sending = self._open().request(
                    method, self._url(path), data=body, headers=headers, allow_redirects=False
                )
                async with sending as response:
                    await told.hear(response, most_bytes)
        except TimeoutError:
            return told.broken("timeout", f"no whole answer within {deadline_seconds:g} s")
        except aiohttp.ClientError as exc:
            return told.broken(*_failure(exc, self.base_url))
        except (OSError, EOFError) as exc:
            return told.broken("reset", f"the connection failed ({_name(exc)})")
        except (ValueError, AssertionError) as exc:
            return told.broken("protocol", f"what came back is no HTTP ({_name(exc)})")
        if told.too_long:
            return told.broken("too-long", f"the answer is longer than {most_bytes} bytes and was cut")
        return told.said()

    async def close(self) -> None:
        """Let go of the connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _url(self, path: str) -> URL:
        found = self._urls.get(path)
        if found is None:
            found = self._urls[path] = URL(f"{self.base_url}{path}", encoded=True)
        return found

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            # How many calls are under way is the runner's to bound, not the pool's.
            # Authorities are read only where a certificate will be shown: it takes 20 ms.
            plain = self.base_url.startswith("http://")
            tls = True if plain else tls_context(self._ca_bundle)
            connector = aiohttp.TCPConnector(limit=0, ttl_dns_cache=300, ssl=tls)
            self._session = aiohttp.ClientSession(
                connector=connector,
                headers=self._headers,
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(total=None),
                trust_env=False,
            )
        return self._session


class _Told:
    """What is known of an answer so far: a call that breaks still says how far it came."""

    def __init__(self, *, streamed: bool, begun: float) -> None:
        self._streamed = streamed
        self._begun = begun
        self._status: int | None = None
        self._headers: dict[str, str] = {}
        self._parts: list[bytes] = []
        self._first: float | None = None
        self.too_long = False

    async def hear(self, response: aiohttp.ClientResponse, most_bytes: int) -> None:
        """Take head and body, at most ``most_bytes`` of it."""
        self._status = response.status
        self._headers = kept_headers(response.headers)
        if not self._streamed:
            self._first = perf_counter()
        length = response.content_length
        bounded = length is not None and length <= most_bytes and "content-encoding" not in response.headers
        if bounded and not self._streamed:
            self._parts.append(await response.content.read())
            return
        size = 0
        async for chunk in response.content.iter_any():
            if self._first is None:
                self._first = perf_counter()
            self._parts.append(chunk)
            size += len(chunk)
            if size > most_bytes:
                self.too_long = True
                response.close()
                return

    def said(self) -> Said:
        return self._make(None, "")

    def broken(self, broke: str, detail: str) -> Said:
        return self._make(broke, detail)

    def _make(self, broke: str | None, detail: str) -> Said:
        body = b"".join(self._parts)
        return Said(
            status=self._status,
            headers=self._headers,
            body=body[:KEPT_OF_TOO_LONG] if self.too_long else body,
            broke=broke,
            detail=detail,
            streamed=self._streamed,
            first_byte_ms=None if self._first is None else (self._first - self._begun) * 1000,
            latency_ms=(perf_counter() - self._begun) * 1000,
        )


def kept_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """The allow-listed headers, names in lower case, each value cut to a bounded length."""
    kept = {}
    for name, value in headers.items():
        low = name.lower()
        if low in KEPT_HEADERS or low.startswith(_KEPT_PREFIXES):
            kept[low] = value[:_LONGEST_HEADER]
    return kept


#: How the transport failed, most special first.
_FAILURES: tuple[tuple[type[aiohttp.ClientError], str, str], ...] = (
    (aiohttp.ClientConnectorDNSError, "dns", "the name {name} cannot be looked up"),
    (aiohttp.ClientConnectorCertificateError, "connect", "the certificate of {host} is not trusted"),
    (aiohttp.ClientSSLError, "connect", "no TLS connection to {host} comes about"),
    (aiohttp.ClientConnectorError, "connect", "no connection to {host} comes about"),
    (aiohttp.ServerDisconnectedError, "reset", "{host} ended the connection"),
    (aiohttp.ClientOSError, "reset", "the connection to {host} was reset"),
    (aiohttp.ClientPayloadError, "reset", "{host} ended the connection in the middle of its answer"),
    (aiohttp.ClientError, "protocol", "what {host} says is no valid HTTP"),
)


def _failure(exc: aiohttp.ClientError, base_url: str) -> tuple[str, str]:
    """How the transport failed, in our own words: an error's text may quote what the other side sent."""
    broke, words = next((broke, words) for kind, broke, words in _FAILURES if isinstance(exc, kind))
    if isinstance(exc.__cause__, ContentEncodingError):
        broke, words = "protocol", "the body from {host} cannot be unpacked"
    where = URL(base_url)
    return broke, words.format(host=where.authority, name=where.host)


def _name(exc: BaseException) -> str:
    return type(exc).__name__
