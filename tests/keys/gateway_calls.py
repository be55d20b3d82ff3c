"""A gateway on loopback and calls to it, as an agent's client makes them."""

from __future__ import annotations

import contextlib
import http.client
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from referee.adapters.keys.gateway import GatewayKeys, Upstream
from referee.core.spending import Dialect, Exchange, Price, SpendingFacts
from referee.protocols import Issued, ModelNeed
from tests.keys.scripted_upstream import KEY, MODEL, Reply, ScriptedUpstream, scripted_upstream

EVERY: tuple[Dialect, ...] = ("openai-chat", "openai-responses", "anthropic-messages", "gemini")
#: One dollar for a million tokens of either kind: a token is a microdollar.
PRICE = Price(input=1.0, output=1.0, cached_input=0.1, cache_write=1.25, source="this test")
RUN = "20261130T120000-abcdef"


@dataclass(frozen=True)
class Answer:
    """What the client was answered."""

    status: int
    headers: dict[str, str]
    body: bytes

    def document(self) -> Any:
        return json.loads(self.body)


@dataclass
class Gate:
    """One key of one run, open at a gateway."""

    keys: GatewayKeys
    issued: Issued
    upstream: ScriptedUpstream
    directory: Path
    run: str = RUN
    facts: SpendingFacts | None = field(default=None)

    @property
    def token(self) -> str:
        return self.issued.access.secret

    @property
    def host(self) -> str:
        return self.issued.access.base_url.removeprefix("http://")

    def connect(self, timeout: float = 60) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(self.host, timeout=timeout)

    def call(
        self, path: str, document: Any = None, *, method: str = "POST", headers: dict[str, str] | None = None
    ) -> Answer:
        """One request on a connection of its own; the token goes as a bearer where no headers are given."""
        return self.send(method, path, None if document is None else json.dumps(document).encode(), headers)

    def send(self, method: str, path: str, body: bytes | None, headers: dict[str, str] | None = None) -> Answer:
        with contextlib.closing(self.connect()) as connection:
            connection.request(method, path, body, self.bearer() if headers is None else headers)
            answer = connection.getresponse()
            return Answer(answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read())

    def bearer(self) -> dict[str, str]:
        return {"authorization": f"Bearer {self.token}", "content-type": "application/json"}

    def chat(self, text: str = "hello", **members: Any) -> Answer:
        return self.call("/v1/chat/completions", question(text, **members))

    def close(self) -> SpendingFacts:
        facts = self.keys.close(self.run)
        assert facts is not None
        return facts

    def exchanges(self) -> list[Exchange]:
        """All calls of the agent."""
        return [one for one in self.log() if not one.probe]

    def log(self) -> list[Exchange]:
        """All lines; the key is closed first, so that the last one is written down."""
        self.close()
        lines = self.keys.exchanges(self.run)
        assert lines is not None
        return [Exchange.model_validate_json(line) for line in lines.splitlines()]


def question(text: str = "hello", **members: Any) -> dict[str, Any]:
    """A request of chat completions."""
    return {"model": MODEL, "max_tokens": 100, "messages": [{"role": "user", "content": text}], **members}


@contextlib.contextmanager
def gate(
    directory: Path,
    reply: Reply,
    *,
    dialect: Dialect = "openai-chat",
    cap_usd: float = 3.0,
    price: Price = PRICE,
    most_output: int = 32_000,
    seconds: float = 600.0,
    patience: float | None = None,
    bodies: bool = False,
    base_url: str | None = None,
    secret: str = KEY,
) -> Iterator[Gate]:
    """A gateway with one key and one upstream, while the block runs."""
    with scripted_upstream(reply) as scripted:
        version = "/v1beta" if dialect == "gemini" else "/v1"
        upstream = Upstream(
            "here",
            base_url or scripted.url + version,
            secret,
            EVERY,
            prices={MODEL: price},
            max_output_tokens=most_output,
        )
        keys = GatewayKeys(directory / "keys", {"here": upstream}, bodies=bodies, patience_seconds=patience)
        try:
            keys.reach("127.0.0.1")
            need = ModelNeed(MODEL, dialect, "here")
            issued = keys.issue(RUN, need, cap_usd=cap_usd, ends_at=time.time() + seconds)
            yield Gate(keys, issued, scripted, directory)
        finally:
            keys.stop()
