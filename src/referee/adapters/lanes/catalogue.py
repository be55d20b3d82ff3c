"""The live catalogue of an endpoint: names are pinned against it, never against hearsay (bake-off §5)."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any

from referee.adapters.lanes.http import Http
from referee.adapters.lanes.patience import ONCE, look
from referee.adapters.lanes.tool_choice import PROBES, probe_tool_choice
from referee.core.bakeoff import Retry, Target
from referee.errors import CouldNotVerify
from referee.protocols import LaneFacts, Said

_PINS = ("precision", "quantisation", "context", "parameters", "revision")
CHECK_SECONDS = 30.0
_NO_CATALOGUE = {HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED, HTTPStatus.NOT_IMPLEMENTED}
_REFUSED = {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}
#: Kinds of way whose model names may end in a route, which catalogues do not list (``name:provider``).
_ROUTED = {"router", "hub-inference"}
#: So few models are listed whole; so many letters of a name tell something.
_FEW, _TELLING = 5, 4


async def check_listed(http: Http, target: Target, retry: Retry = ONCE) -> LaneFacts:
    """Look for the model in ``/models``; see whether the credential is accepted.

    A server without a catalogue is no fault: what could not be verified is said in the facts.

    Raises:
        CouldNotVerify: no answer, the credential is refused, the model is not listed, a pin does not hold.
    """
    path = "/models?limit=1000" if target.lane == "anthropic-messages" else "/models"
    said = await fetch(http, target, path, retry=retry)
    kept = {"models": said.body}
    verified: dict[str, str] = {}
    pins: dict[str, str] = {}
    if said.status in _NO_CATALOGUE:
        verified["model"] = f"not verified: {http.base_url} publishes no catalogue (HTTP {said.status})"
        verified["credential"] = _no_word(target)
    else:
        entry = find_model(target, entries_of(said, target), http.base_url)
        verified["model"] = entry["_as"]
        served = _context(target, entry)
        if served is not None:
            verified["context"] = f"{served} tokens are served{'' if target.context else '; the target pins none'}"
            pins["context"] = str(served)
        verified["credential"] = await _credential(http, target, retry)
    stated = [pin for pin in _PINS if getattr(target, pin) is not None and pin not in verified]
    if stated:
        verified["pins"] = f"stated by the target, not verified through this API: {', '.join(stated)}"
    if target.channel == "local" and target.lane in PROBES:
        verified |= await probe_tool_choice(http, target, retry)
    return LaneFacts(target.model, verified, kept, pins)


async def fetch(
    http: Http,
    target: Target,
    path: str,
    body: bytes | None = None,
    seconds: float = CHECK_SECONDS,
    *,
    retry: Retry = ONCE,
) -> Said:
    """One look at the endpoint, with the credential.

    Raises:
        CouldNotVerify: it does not answer, refuses the credential or is in trouble.
    """
    said = await look(http, target, path, body, seconds, retry=retry)
    if said.broke is not None:
        raise CouldNotVerify(
            f"the endpoint {http.base_url} of the target {target.name} does not answer: {said.detail}",
            todo="look whether the server runs and whether base_url is right",
        )
    if said.status in _REFUSED:
        raise CouldNotVerify(
            f"the endpoint {http.base_url} refuses the credential of the target {target.name} (HTTP {said.status})",
            todo=f"look what stands in {target.key_env}" if target.key_env else "name a key_env in the target's file",
        )
    if said.status is not None and said.status in _NO_CATALOGUE:
        return said
    if said.status != HTTPStatus.OK:
        raise CouldNotVerify(
            f"the endpoint {http.base_url} of the target {target.name} answers HTTP {said.status} to {path}",
            todo="try again later, or correct base_url",
        )
    return said


def loads_object(said: Said, target: Target, what: str) -> Any:
    """The JSON of a catalogue's answer.

    Raises:
        CouldNotVerify: it is none.
    """
    try:
        return json.loads(said.body)
    except (ValueError, RecursionError) as exc:
        raise CouldNotVerify(
            f"the endpoint of the target {target.name} answers {what} with something that is no JSON",
            todo="look whether base_url leads to the API",
        ) from exc


def entries_of(said: Said, target: Target) -> dict[str, Mapping[str, Any]]:
    """The catalogue's entries by name: a list, or a list in ``data`` or ``models``."""
    whole = loads_object(said, target, "/models")
    rows = whole if isinstance(whole, list) else None
    if isinstance(whole, dict):
        rows = next((whole[key] for key in ("data", "models") if isinstance(whole.get(key), list)), None)
    if rows is None:
        raise CouldNotVerify(
            f"the endpoint of the target {target.name} answers /models without a list of models",
            todo="look whether base_url leads to the API",
        )
    named = [row for row in rows if isinstance(row, dict)]
    return {name: row for row in named if isinstance(name := row.get("id") or row.get("name"), str)}


def find_model(target: Target, entries: Mapping[str, Mapping[str, Any]], where: str) -> dict[str, Any]:
    """The catalogue's entry of the target's model, by exact name, with ``_as``: how it is listed.

    Raises:
        CouldNotVerify: it is not listed; the nearest names are offered.
    """
    if target.model in entries:
        return {**entries[target.model], "_as": f"listed by {where} under exactly this name"}
    stem, _, route = target.model.rpartition(":")
    if target.channel in _ROUTED and stem in entries:
        return {
            **entries[stem],
            "_as": f"{stem} is listed by {where}; `{route}` names a route, which no catalogue lists",
        }
    near = _nearest(target.model, entries)
    if near:
        hint = f"nearest names there: {', '.join(near)}"
    elif len(entries) <= _FEW:
        hint = f"it lists: {', '.join(sorted(entries)) or 'none'}"
    else:
        hint = f"it lists {len(entries)} models, none of a name like it"
    raise CouldNotVerify(
        f"the model {target.model} of the target {target.name} is not in the live catalogue of {where}",
        todo=f"take the exact name from the catalogue ({hint})",
    )


def _nearest(wanted: str, names: Iterable[str]) -> list[str]:
    """Names that one may have meant: the same in another case, with more or less around it, or a slip away."""
    low = wanted.casefold()
    folded = {name.casefold(): name for name in names}
    around = [one for one in folded if low in one or (len(one) >= _TELLING and one in low)] if len(low) > 1 else []
    close = difflib.get_close_matches(low, around or folded, n=3, cutoff=0.0 if around else 0.6)
    return [folded[one] for one in close]


def _context(target: Target, entry: Mapping[str, Any]) -> int | None:
    served = entry.get("max_model_len")  # how vLLM names the context that is really served
    if not isinstance(served, int):
        return None
    if target.context is not None and served != target.context:
        raise CouldNotVerify(
            f"the server of the target {target.name} serves a context of {served} tokens, not of {target.context}",
            todo="start the server with the pinned context, or correct the pin",
        )
    return served


def _no_word(target: Target) -> str:
    return "none is sent" if target.key_env is None else "not verified: the first answer will tell"


async def _credential(http: Http, target: Target, retry: Retry) -> str:
    """Whether the credential counts: a catalogue that anybody may read says nothing about it."""
    if target.key_env is None:
        return "none is sent"
    if "openrouter" in {target.credit, target.market}:
        said = await fetch(http, target, "/key", retry=retry)
        if said.status == HTTPStatus.OK:  # the answer is not kept: it tells of the account
            return "accepted (/key)"
    stranger = await http.call("GET", "/models", None, CHECK_SECONDS, anonymous=True)
    if stranger.status in _REFUSED:
        return "accepted: the catalogue is refused without it"
    return "not verified: the catalogue is public; the first answer will tell"
