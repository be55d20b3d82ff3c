"""Keys of OpenRouter: its interface for provisioning (management) keys.

``POST /keys`` makes a key with a limit in US dollars and tells its secret this once; ``GET``, ``PATCH`` and
``DELETE /keys/HASH`` read, disable and delete it; ``GET /keys`` lists, at most 100 at a time.
"""

from __future__ import annotations

import math
import urllib.parse
from collections.abc import Collection
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from referee.adapters.keys.broker_api import BrokerApi, BrokerFault, as_asked
from referee.adapters.keys.brokered import Held, Made, Settle
from referee.core.spending import Broker, Dialect, usd

HOME = "https://openrouter.ai/api"

_NOT_FOUND = 404
_REFUSED = {401, 403}
#: More keys than that are no laboratory's; a listing that never ends must end.
_MOST_PAGES = 200


class OpenRouter:
    """OpenRouter's keys (``brokered.KeyService``)."""

    broker: Broker = "openrouter"
    who = "OpenRouter"
    dialects: Collection[Dialect] = frozenset({"openai-chat", "openai-responses", "anthropic-messages"})
    settle = Settle(at_least=3.0, at_most=15.0, every=1.5)

    def __init__(self, credential: tuple[str, str], *, base_url: str = "", ca_bundle: Path | None = None) -> None:
        """``credential``: name and value of the provisioning key. ``base_url``: without a version at its end."""
        self.credential = credential
        self.serves_at = (base_url or HOME).rstrip("/").removesuffix("/v1")
        self._api = BrokerApi(self.who, f"{self.serves_at}/v1", credential[1], ca_bundle)

    def create(self, name: str, model: str, *, cap_usd: float, ends_at: float, wish: str) -> Made:  # noqa: ARG002
        """Make a key whose limit is never reset, counts the account's own provider keys too, and expires."""
        body = {
            "name": name,
            "limit": cap_usd,
            "limit_reset": None,
            "include_byok_in_limit": True,
            "expires_at": datetime.fromtimestamp(math.ceil(ends_at), UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        }
        answer = self._api.ask("POST", "/keys", body)
        secret, data = answer.get("key"), _data(answer)
        key, limit = data.get("hash"), data.get("limit")
        if not isinstance(secret, str) or not secret or not isinstance(key, str) or not key:
            raise BrokerFault("OpenRouter made a key and did not tell it")
        if not as_asked(limit, cap_usd) or data.get("limit_reset"):
            self.delete(key)
            raise BrokerFault(f"OpenRouter made a key with the limit {limit!r} instead of {usd(cap_usd)}")
        return Made(key, secret)

    def would_be(self, wish: str) -> None:  # noqa: ARG002 — the seam's
        """None: OpenRouter chooses the secret."""
        return

    def named(self, prefix: str) -> list[Held]:
        """Every key whose name begins with ``prefix``, disabled ones too."""
        found: dict[str, Held] = {}
        offset = 0
        for _ in range(_MOST_PAGES):
            page = self._api.ask("GET", f"/keys?include_disabled=true&offset={offset}").get("data")
            if not isinstance(page, list):
                raise BrokerFault("OpenRouter answered GET /keys without a list of keys")
            for one in page:
                if isinstance(one, dict) and isinstance(one.get("hash"), str):
                    found[one["hash"]] = Held(one["hash"], str(one.get("name", "")))
            if not page:
                break
            offset += len(page)
        return [held for held in found.values() if held.name.startswith(prefix)]

    def block(self, key: str) -> None:
        """Disable it."""
        self._api.ask("PATCH", _path(key), {"disabled": True})

    def spent(self, key: str) -> float | None:
        """Its usage, with that of the account's own provider keys; None once it is gone."""
        try:
            data = _data(self._api.ask("GET", _path(key)))
        except BrokerFault as exc:
            if exc.status == _NOT_FOUND:
                return None
            raise
        usage, own = data.get("usage"), data.get("byok_usage") or 0
        if not isinstance(usage, int | float) or not isinstance(own, int | float):
            raise BrokerFault("OpenRouter does not tell what the key spent")
        return float(usage) + float(own)

    def delete(self, key: str) -> None:
        """Delete it."""
        try:
            self._api.ask("DELETE", _path(key))
        except BrokerFault as exc:
            if exc.status != _NOT_FOUND:
                raise

    def refuses(self, secret: str) -> bool:
        """Whether reading its own state with the key is refused."""
        return self._api.status_for("/key", secret) in _REFUSED


def _path(key: str) -> str:
    return "/keys/" + urllib.parse.quote(key, safe="")


def _data(answer: dict[str, Any]) -> dict[str, Any]:
    data = answer.get("data")
    return data if isinstance(data, dict) else {}
