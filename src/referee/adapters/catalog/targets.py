"""Targets of a bake-off: ``targets/NAME.toml`` of a workspace, then those that come with the referee."""

from __future__ import annotations

import ipaddress
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pydantic import ValidationError

from referee.adapters.catalog.workspace import one_sentence
from referee.core import toml_text
from referee.core.bakeoff import Guards, Target
from referee.errors import ConfigError, NothingMatched

SCHEMA = "referee.target/1"

#: The referee's own targets; ``examples`` below it are to be copied, not loaded.
BUNDLED = Path(__file__).resolve().parents[2] / "bundled" / "targets"

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,119}")
#: Upper-case words joined by underscores: a key of a provider that is made of capitals and digits has none.
#: A short one of letters alone is none either.
_VARIABLE = re.compile(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)+|[A-Z]{2,16}")
#: How the keys of providers begin.
_KEY = re.compile(r"(sk-|sk_|nvapi-|hf_|gsk_|xai-|AIza|ya29\.|pplx-|r8_|Bearer |eyJ)\S{12,}")
#: Keys of a request that are no business of a model's settings.
_CREDENTIAL_FIELD = re.compile(r"(?i)(api[_-]?key|authorization|password|secret|access[_-]?token|bearer)")

#: What a lane or the frozen protocol says in every request: a target may not say otherwise.
RESERVED = frozenset(
    {
        *("model", "messages", "input", "instructions", "system", "tools", "tool_choice", "functions", "function_call"),
        *(
            "temperature",
            "seed",
            "max_tokens",
            "max_completion_tokens",
            "max_output_tokens",
            "stream",
            "stream_options",
        ),
        *("n", "stop", "response_format", "store"),
    }
)
_RESERVED_OPTIONS = frozenset({"temperature", "seed", "num_predict", "num_ctx", "stop"})

#: Channels with a budget gate (bake-off §4): nobody has to remember to ask for it.
METERED = frozenset({"metered-api", "router"})

#: Channels by which a model is hosted by oneself already.
SELF_HOSTED = frozenset({"local", "own-infrastructure"})

_HTTP = {"openai-chat", "openai-responses", "anthropic-messages", "ollama"}


def load_target(name: str, directory: Path) -> Target:
    """The target of that name: ``directory/NAME.toml``, else the one that comes with the referee.

    Raises:
        NothingMatched: there is no such target.
        ConfigError: the file has no name of a target, is no TOML, breaks the schema, or says what a target may not say.
    """
    file = directory / f"{name}.toml"
    bundled = BUNDLED / f"{name}.toml"
    known = _NAME.fullmatch(name) is not None
    if known and file.is_file():
        if bundled.is_file():
            raise ConfigError(f"{file}: the name {name} belongs to a target of the referee", todo="choose another name")
        return read_target(name, str(file), file.read_bytes())
    if known and bundled.is_file():
        return read_target(name, bundled.name, bundled.read_bytes())
    if name in list_targets(directory):
        raise _misnamed(name)
    raise NothingMatched(
        f"there is no target named {name!r}", todo=f"known targets: {', '.join(list_targets(directory))}"
    )


def list_targets(directory: Path) -> tuple[str, ...]:
    """The names of all targets that can be loaded, sorted."""
    return tuple(sorted({path.stem for place in (directory, BUNDLED) for path in place.glob("*.toml")}))


def _misnamed(name: str) -> ConfigError:
    return ConfigError(
        f"{name!r} is no name of a target",
        todo="use letters without accents, digits, dots, hyphens and underscores, a letter or digit first",
    )


def read_target(name: str, where: str, data: bytes) -> Target:
    """One target's file, checked.

    Args:
        name: what the file is called, and what must stand in it.
        where: the file as messages name it.
        data: its bytes.

    Raises:
        ConfigError: one sentence on the first breach; never with the value of a credential.
    """
    if not _NAME.fullmatch(name):
        raise _misnamed(name)
    try:
        body = toml_text.loads(data.decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as exc:
        raise ConfigError(f"{where} is no TOML: {exc}") from exc
    if body.pop("schema", None) != SCHEMA:
        raise ConfigError(f"{where}: the first line must be schema = {SCHEMA!r}", todo="add or correct it")
    if "name" in body and body["name"] != name:
        raise ConfigError(f"{where}: the file is called {name} and its name another", todo="make the two the same")
    _refuse_credentials(where, body)
    _refuse_guards(where, body)
    try:
        target = Target.model_validate({"name": name, **_self_hosted(body), **body})
    except ValidationError as exc:
        raise ConfigError(f"{where}: {one_sentence(exc, Target)}") from exc
    if (place := toml_text.beyond_json(body)) is not None:
        raise ConfigError(
            f"{where}: {place} is a date, a time or no finite number, which can neither be sent nor recorded",
            todo="write it as text in quotation marks, or as a number",
        )
    for sentence, todo in _objections(target):
        raise ConfigError(f"{where}: {sentence}", todo=todo)
    return target


def _self_hosted(body: dict[str, Any]) -> dict[str, Any]:
    """What runs on one's own machines can be hosted there: the file need not say it."""
    channel = body.get("channel")
    return {"self_host": "feasible"} if isinstance(channel, str) and channel in SELF_HOSTED else {}


def _refuse_credentials(where: str, body: dict[str, Any]) -> None:
    """Only names of environment variables stand in files (bake-off §4). The value is never quoted."""
    name = body.get("key_env")
    if name is not None and not (isinstance(name, str) and _VARIABLE.fullmatch(name)):
        raise ConfigError(
            f"{where}: key_env is no name of an environment variable as one is taken here: capitals, with underscores "
            "between words, such as PROVIDER_API_KEY",
            todo="put the credential into a variable of the environment and its name here; if it stood here, renew it",
        )
    for path, value in _strings(body):
        if _KEY.match(value):
            raise ConfigError(
                f"{where}: {path} looks like a credential",
                todo="put it into a variable of the environment, name that in key_env, and renew the credential",
            )


def _refuse_guards(where: str, body: dict[str, Any]) -> None:
    foreign = sorted(set(body) & set(Guards.model_fields) - set(Target.model_fields))
    if foreign:
        raise ConfigError(
            f"{where}: {foreign[0]} is a guard of the protocol, which no target can change", todo="take it out"
        )


def _strings(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _strings(item, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item, path)


def _objections(target: Target) -> Iterator[tuple[str, str]]:
    """What the schema cannot say, each as a sentence and what to do."""
    yield from _about_lane(target)
    yield from _about_endpoint(target)
    yield from _about_extra_body(target)
    yield from _about_money(target)


def _about_lane(target: Target) -> Iterator[tuple[str, str]]:
    if not target.model.strip():
        yield "model is empty", "name the model exactly as the endpoint's catalogue does"
    if target.context is not None and target.context < 1:
        yield (
            f"context is {target.context}, which no model can be served with",
            "pin a number of tokens, or take it out",
        )
    if (target.lane == "cli") != (target.channel == "agent-cli"):
        yield "the lane cli and the channel agent-cli belong together", "correct one of the two"
    if (target.lane == "keyword-baseline") != (target.channel == "embedded"):
        yield "the channel embedded belongs to the lane keyword-baseline and to no other", "correct one of the two"
    if (target.lane == "keyword-baseline") != (target.sovereignty == "none"):
        yield "only what is no model has the sovereignty none", "name the model's sovereignty class"
    if (target.lane == "cli") != (target.cli is not None):
        yield "a lane of the kind cli, and no other, has a table [cli]", "add or remove it"
    for name in target.cli.inherit if target.cli else ():
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            yield (
                f"cli.inherit lists {name!r}, which is no name of a variable",
                "name each variable, without a wildcard",
            )


def _about_endpoint(target: Target) -> Iterator[tuple[str, str]]:
    if target.lane == "keyword-baseline":
        if target.base_url is not None:
            yield f"a target of the lane {target.lane} has no endpoint", "take base_url out"
        if target.key_env is not None:
            yield "the embedded target needs no credential", "take key_env out"
        return
    if not target.base_url:
        if target.lane != "cli":  # a program has an endpoint of its own where none is given
            yield "base_url is missing", "say where the endpoint is, such as https://host/v1"
        return
    try:
        url = urlsplit(target.base_url)
        host, _ = url.hostname, url.port
    except ValueError:
        host, url = None, urlsplit("")
    if url.scheme not in {"http", "https"} or not host:
        yield "base_url is no address of the form https://host/path", "correct it"
    elif url.username is not None or url.password is not None or url.query or url.fragment:
        yield "base_url holds more than an address", "take user, password, query and fragment out; name key_env instead"
    elif url.scheme == "http" and target.key_env is not None and not _near(host):
        yield f"base_url would send a credential to {host} without encryption", "use https"


def _near(host: str) -> bool:
    """Whether a host is this machine or inside a private network, by its very name."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host == "localhost" or "." not in host or host.endswith((".local", ".internal", ".lan", ".localhost"))
    return address.is_loopback or address.is_private


def _about_extra_body(target: Target) -> Iterator[tuple[str, str]]:
    taken = RESERVED & set(target.extra_body)
    if taken:
        yield f"extra_body may not set {min(taken)}: the lane and the frozen protocol do", "take it out"
    if target.extra_body and target.lane not in _HTTP:
        yield f"a target of the lane {target.lane} has no extra_body", "take it out"
    options = target.extra_body.get("options", {})
    if target.lane == "ollama" and not isinstance(options, dict):
        yield "extra_body.options is no table", "correct it"
    elif target.lane == "ollama" and _RESERVED_OPTIONS & set(options):
        taken = _RESERVED_OPTIONS & set(options)
        yield (
            f"extra_body.options may not set {min(taken)}",
            "pin the context with `context`; leave the rest to the protocol",
        )
    for path, _ in _strings(target.extra_body):
        if _CREDENTIAL_FIELD.search(path):
            yield f"extra_body.{path} names a credential", "name its environment variable in key_env instead"


def _lacking_money(target: Target) -> Iterator[tuple[str, str]]:
    """Everything that the budget gate needs and the file does not say, at once, each with how it is said."""
    gated = target.channel in METERED or target.credit is not None
    if gated and not target.metered:
        what = f"of the channel {target.channel}" if target.channel in METERED else "with a credit"
        yield f"a target {what} is metered", "metered = true (so that the budget gate holds)"
    if not gated and not target.metered:
        return
    ledger = target.credit != "openrouter"
    if target.credit is None:
        yield (
            "a metered target needs a way to know what is left to spend",
            'credit = "ledger" (or "openrouter" where that is asked)',
        )
    if ledger and target.credit_usd is None:
        yield "the ledger needs the credit that it begins with", "credit_usd = 10.0"
    if ledger and target.price is None and target.price_model is None:
        yield (
            "the ledger needs a price",
            "a [price] with input and output, or a price_model",
        )


def _about_money(target: Target) -> Iterator[tuple[str, str]]:
    lacks = list(_lacking_money(target))
    if lacks:
        free = "; what costs nothing is of the channel hosted-free-tier" if target.channel in METERED else ""
        yield ", and ".join(what for what, _ in lacks), f"say {' and '.join(how for _, how in lacks)}{free}"
    if target.credit == "openrouter" and (target.key_env is None or target.lane != "openai-chat"):
        yield "credit is read from openrouter through the lane openai-chat and with a key_env", "correct the target"
    if target.market == "openrouter" and target.lane != "openai-chat":
        yield "the market is read from openrouter through the lane openai-chat", "correct the target"
