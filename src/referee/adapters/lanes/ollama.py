"""Ollama's own API: quantisation, context and parameter count are verified there, the digest is the revision (§4)."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from referee.adapters.lanes.catalogue import entries_of, fetch, find_model, loads_object
from referee.adapters.lanes.http import Http
from referee.adapters.lanes.lane import Dialect, write_json
from referee.adapters.lanes.patience import ONCE
from referee.core.bakeoff import Retry, Target
from referee.errors import CouldNotVerify
from referee.protocols import Ask, LaneFacts

#: Loading a large model into memory takes minutes.
_LOAD_SECONDS = 600.0
#: So many digits of a digest name it.
_SHORTEST_DIGEST = 12


def ollama_body(target: Target, question: Ask) -> dict[str, Any]:
    """One question as a native chat request; the pinned context is asked for, as the default cuts prompts silently."""
    sampling = question.sampling
    options: dict[str, Any] = {"num_predict": sampling.max_tokens}
    if target.takes_sampling:
        options["temperature"] = sampling.temperature
        if sampling.seed is not None:
            options["seed"] = sampling.seed
    if target.context is not None:
        options["num_ctx"] = target.context
    extra = dict(target.extra_body)
    more = extra.pop("options", {})
    body: dict[str, Any] = {
        "model": target.model,
        "messages": [{"role": role, "content": content} for role, content in question.messages],
        "stream": target.stream,
        "options": more | options,
    }
    if question.tools:
        body["tools"] = [
            {
                "type": "function",
                "function": {"name": tool.name, "description": tool.description, "parameters": tool.parameters},
            }
            for tool in question.tools
        ]
    return body | {key: value for key, value in extra.items() if key not in body}


async def check_ollama(http: Http, target: Target, retry: Retry = ONCE) -> LaneFacts:
    """Compare what is served with the target's pins.

    Raises:
        CouldNotVerify: no answer, the model is not there or takes no tools, a pin does not hold.
    """
    tags = await fetch(http, target, "/api/tags", retry=retry)
    entries = entries_of(tags, target) if tags.status == HTTPStatus.OK else {}
    name = target.model if target.model in entries or ":" in target.model else f"{target.model}:latest"
    entry = find_model(target.model_copy(update={"model": name}), entries, http.base_url)
    show = await fetch(http, target, "/api/show", write_json({"model": target.model}), retry=retry)
    shown = _object(loads_object(show, target, "/api/show")) if show.status == HTTPStatus.OK else {}
    kept = {"tags": tags.body, "show": show.body}
    capabilities = shown.get("capabilities")
    if isinstance(capabilities, list) and "tools" not in capabilities:
        raise CouldNotVerify(
            f"Ollama says that the model {target.model} of the target {target.name} takes no tools",
            todo="choose a model whose capabilities name tools",
        )
    details = {**_object(entry.get("details")), **_object(shown.get("details"))}
    verified = {
        "model": f"served as {name}",
        "credential": "none is sent" if target.key_env is None else "not verified: the first answer will tell",
        "quantisation": _same(target, "quantisation", target.quantisation, details.get("quantization_level")),
        "parameters": _same(target, "parameters", target.parameters, details.get("parameter_size")),
        "revision": _revision(target, entry.get("digest")),
        "context": _longest(target, _object(shown.get("model_info"))),
    }
    version = await http.call("GET", "/api/version", None, 10.0)
    if version.status == HTTPStatus.OK and version.broke is None:
        kept["version"] = version.body
    if target.context is not None:
        verified["context"] += await _loaded(http, target, name, kept, retry)
    pins = {
        "quantisation": details.get("quantization_level"),
        "parameters": details.get("parameter_size"),
        "revision": entry.get("digest"),
        "context": None if target.context is None else str(target.context),
    }
    return LaneFacts(name, verified, kept, {what: found for what, found in pins.items() if isinstance(found, str)})


def _object(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _same(target: Target, what: str, pinned: str | None, found: object) -> str:
    if not isinstance(found, str) or not found:
        if pinned is None:
            return "neither pinned nor reported"
        raise CouldNotVerify(
            f"Ollama does not report the {what} of {target.model}, which the target {target.name} pins to {pinned}",
            todo="update the server, or remove the pin: it is then named as uncontrolled",
        )
    if pinned is None:
        return f"{found} is served; the target pins none"
    if found.casefold() != pinned.casefold():
        raise CouldNotVerify(
            f"the {what} of {target.model} is {found}, not {pinned} as the target {target.name} pins it",
            todo="pull the pinned model, or correct the pin",
        )
    return f"{found}, as pinned"


def _revision(target: Target, digest: object) -> str:
    pinned = target.revision.removeprefix("sha256:") if target.revision else None
    found = digest.removeprefix("sha256:") if isinstance(digest, str) else None
    if pinned is not None and (found is None or len(pinned) < _SHORTEST_DIGEST or not found.startswith(pinned)):
        raise CouldNotVerify(
            f"the digest of {target.model} is {found or 'not reported'}, not {pinned} as {target.name} pins it",
            todo=f"pull the pinned model, or correct the pin (at least {_SHORTEST_DIGEST} digits)",
        )
    if found is None:
        return "neither pinned nor reported"
    return f"{found}{', as pinned' if pinned else ' is served; the target pins none'}"


def _longest(target: Target, info: Mapping[str, Any]) -> str:
    longest = info.get(f"{info.get('general.architecture')}.context_length")
    if target.context is None:
        return "the target pins none: the server's default holds"
    if isinstance(longest, int) and longest < target.context:
        raise CouldNotVerify(
            f"the model {target.model} takes {longest} tokens, fewer than {target.name} pins ({target.context})",
            todo="pin a context that the model has",
        )
    return f"{target.context} tokens are asked for with every question"


async def _loaded(http: Http, target: Target, name: str, kept: dict[str, bytes], retry: Retry) -> str:
    """Load the model with the pinned context and read back what was allocated."""
    body = write_json({"model": target.model, "messages": [], "options": {"num_ctx": target.context}, "stream": False})
    await fetch(http, target, "/api/chat", body, _LOAD_SECONDS, retry=retry)
    said = await fetch(http, target, "/api/ps", retry=retry)
    if said.status != HTTPStatus.OK:
        return "; the server does not report what it allocates"
    kept["ps"] = said.body
    found = entries_of(said, target).get(name, {}).get("context_length")
    if not isinstance(found, int):
        return "; the server does not report what it allocates"
    if found != target.context:
        raise CouldNotVerify(
            f"Ollama allocates a context of {found} tokens for {target.model}, not of {target.context}",
            todo="look for a limit of the server, or correct the pin",
        )
    return ", and allocated"


OLLAMA = Dialect("/api/chat", ollama_body, check_ollama)
