"""What OpenRouter publishes beside its models: the credit that is left, and the market of a model."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from referee.adapters.lanes.http import Http
from referee.errors import CouldNotVerify
from referee.protocols import Said

_SECONDS = 20.0
_REFUSED = {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}


class Purse:
    """Reads the remaining credit before each metered call.

    A key of its own limit says what is left of that; the account's credit may only be read with a management key, which
    in turn may ask no model. So both are tried, the smaller counts, and one that is refused is not asked again.
    """

    def __init__(self) -> None:
        self._account_refused = False

    async def remaining(self, http: Http) -> float:
        """What may still be spent, US dollars.

        Raises:
            CouldNotVerify: neither can be read: the call is not made (bake-off §4).
        """
        left = [_limit_left(await http.call("GET", "/key", None, _SECONDS))]
        if not self._account_refused:
            said = await http.call("GET", "/credits", None, _SECONDS)
            self._account_refused = said.status in _REFUSED
            left.append(_account_left(said))
        known = [value for value in left if value is not None]
        if not known:
            raise CouldNotVerify(
                f"the remaining credit cannot be read from {http.base_url}",
                todo="give the key a limit of its own, so that the provider says what is left of it",
            )
        return min(known)


async def market(http: Http, model: str) -> Mapping[str, bytes]:
    """Prices, uptime and throughput of each provider of the model, raw; empty when they do not come."""
    said = await http.call("GET", f"/models/{model}/endpoints", None, _SECONDS)
    if said.broke is not None or said.status != HTTPStatus.OK:
        return {}
    return {"openrouter-endpoints": said.body}


def _limit_left(said: Said) -> float | None:
    return _number(_data(said).get("limit_remaining"))


def _account_left(said: Said) -> float | None:
    data = _data(said)
    total, used = _number(data.get("total_credits")), _number(data.get("total_usage"))
    return None if total is None or used is None else total - used


def _data(said: Said) -> Mapping[str, Any]:
    if said.broke is not None or said.status != HTTPStatus.OK:
        return {}
    try:
        data = json.loads(said.body)["data"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return {}
    return data if isinstance(data, dict) else {}


def _number(value: object) -> float | None:
    """A finite number; anything else is unknown, and unknown credit is no credit."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) else None
