"""Virtual keys of a LiteLLM proxy: ``/key/generate``, ``/key/info``, ``/key/block``, ``/key/delete``, ``/key/list``.

The proxy takes the secret that it is given, so it is derived: a later start knows what to look for in what a dead run
left. The id of a key is the SHA-256 of its secret, which the proxy takes wherever it takes the key.
"""

from __future__ import annotations

import hashlib
import math
import time
import urllib.parse
from collections.abc import Collection
from pathlib import Path
from typing import Any

from referee.adapters.keys.broker_api import BrokerApi, BrokerFault, as_asked
from referee.adapters.keys.brokered import Held, Made, Settle
from referee.core.spending import Broker, Dialect, usd

_NOT_FOUND = 404
_REFUSED = {400, 401, 403}
_PAGE = 100
_MOST_PAGES = 200


class LiteLLM:
    """Keys of a laboratory's own LiteLLM proxy (``brokered.KeyService``)."""

    broker: Broker = "litellm"
    who = "the LiteLLM proxy"
    dialects: Collection[Dialect] = frozenset({"openai-chat", "openai-responses", "anthropic-messages", "gemini"})
    # It writes what was spent every 10 to 15 s.
    settle = Settle(at_least=16.0, at_most=30.0, every=2.0)

    def __init__(self, credential: tuple[str, str], *, base_url: str, ca_bundle: Path | None = None) -> None:
        """``credential``: name and value of the master key. ``base_url``: the proxy's, without a version."""
        self.credential = credential
        self.serves_at = base_url.rstrip("/").removesuffix("/v1")
        self._api = BrokerApi(self.who, self.serves_at, credential[1], ca_bundle)

    def create(self, name: str, model: str, *, cap_usd: float, ends_at: float, wish: str) -> Made:
        """Make a key for one model, with a budget that is never reset, that can do nothing but call it."""
        wished = self.would_be(wish)
        body = {
            "key": wished.secret,
            "key_alias": name,
            "models": [model],
            "max_budget": cap_usd,
            "duration": f"{max(1, math.ceil(ends_at - time.time()))}s",
            "key_type": "llm_api",
            "metadata": {"made_by": "referee"},
        }
        answer = self._api.ask("POST", "/key/generate", body)
        budget = answer.get("max_budget")
        if answer.get("key") != wished.secret:
            self.delete(wished.key)
            raise BrokerFault("the LiteLLM proxy made another key than the one it was given")
        if not as_asked(budget, cap_usd) or answer.get("budget_duration"):
            self.delete(wished.key)
            raise BrokerFault(f"the LiteLLM proxy made a key with the budget {budget!r} instead of {usd(cap_usd)}")
        return wished

    def would_be(self, wish: str) -> Made:
        """The key of that wish."""
        secret = f"sk-{wish}"
        return Made(hashlib.sha256(secret.encode()).hexdigest(), secret)

    def named(self, prefix: str) -> list[Held]:
        """Every key whose alias begins with ``prefix``."""
        found: dict[str, Held] = {}
        for page in range(1, _MOST_PAGES + 1):
            answer = self._api.ask("GET", f"/key/list?return_full_object=true&size={_PAGE}&page={page}")
            keys = answer.get("keys")
            if not isinstance(keys, list):
                raise BrokerFault("the LiteLLM proxy answered GET /key/list without a list of keys")
            for one in keys:
                if isinstance(one, dict) and isinstance(one.get("token"), str):
                    found[one["token"]] = Held(one["token"], str(one.get("key_alias") or ""))
            pages = answer.get("total_pages")
            if not keys or (isinstance(pages, int) and page >= pages):
                break
        return [held for held in found.values() if held.name.startswith(prefix)]

    def block(self, key: str) -> None:
        """Block it."""
        self._api.ask("POST", "/key/block", {"key": key})

    def spent(self, key: str) -> float | None:
        """Its spend; None once it is gone. Newer proxies still tell of a deleted key, and say that it is deleted."""
        try:
            info = self._api.ask("GET", "/key/info?" + urllib.parse.urlencode({"key": key})).get("info")
        except BrokerFault as exc:
            if exc.status == _NOT_FOUND:
                return None
            raise
        if not isinstance(info, dict):
            raise BrokerFault("the LiteLLM proxy answered GET /key/info without the key's state")
        if info.get("status") == "deleted" or info.get("deleted_at"):
            return None
        return _spend(info)

    def delete(self, key: str) -> None:
        """Delete it."""
        try:
            self._api.ask("POST", "/key/delete", {"keys": [key]})
        except BrokerFault as exc:
            if exc.status != _NOT_FOUND:
                raise

    def refuses(self, secret: str) -> bool:
        """Whether asking for the models with the key is refused."""
        return self._api.status_for("/v1/models", secret) in _REFUSED


def _spend(info: dict[str, Any]) -> float:
    spend = info.get("spend")
    if not isinstance(spend, int | float):
        raise BrokerFault("the LiteLLM proxy does not tell what the key spent")
    return float(spend)
