"""A workspace: the directory that holds one evaluator's configuration, records and evidence.

Precedence of a setting: command line, then ``referee.toml``, then the default. The environment says only where the
workspace is (``REFEREE_WORKSPACE``) and, where ``ca_bundle`` is not set, which certificates the host trusts
(``SSL_CERT_FILE``). What affects a score lives in the workspace, never in a user's home.
"""

from __future__ import annotations

import difflib
import json
import os
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from referee.adapters.catalog.setting_types import OptionalAddress, ServerAddress, VariableName
from referee.core import toml_text
from referee.core.budgets import PUBLISHED_SECONDS, Tier
from referee.core.records import Limits
from referee.core.spending import CAP_USD, Broker, Dialect
from referee.errors import ConfigError, UsageError

CONFIG_NAME = "referee.toml"
DEFAULT_DIRECTORY = "referee-workspace"
GIB = 1024**3


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Budgets(_Section):
    """Seconds per tier. Other values than the methodology's are recorded and make a run unpublishable."""

    standard: int = Field(default=PUBLISHED_SECONDS["standard"], gt=0)
    heavy: int = Field(default=PUBLISHED_SECONDS["heavy"], gt=0)
    gpu: int = Field(default=PUBLISHED_SECONDS["gpu"], gt=0)

    def seconds(self) -> dict[Tier, int]:
        """The budgets as ``core.budgets`` wants them."""
        return {"standard": self.standard, "heavy": self.heavy, "gpu": self.gpu}


class MachineLimits(_Section):
    """Limits of one machine."""

    memory_bytes: int = Field(default=4 * GIB, ge=64 * 1024**2)
    cpus: float = Field(default=2.0, gt=0)
    pids: int = Field(default=1024, ge=16)
    disk_bytes: int = Field(default=20 * GIB, ge=64 * 1024**2)
    nofile: int = Field(default=4096, ge=256)

    def limits(self) -> Limits:
        """The limits as records keep them."""
        return Limits(**self.model_dump())


class Recording(_Section):
    """Caps of one recording: reaching one stops the run and is announced in the record."""

    max_bytes: int = Field(default=256 * 1024**2, ge=1024)
    max_events: int = Field(default=2_000_000, ge=10)
    columns: int = Field(default=120, ge=20, le=500)
    rows: int = Field(default=32, ge=5, le=200)


class Environment(_Section):
    """Which environment machines are made from.

    ``sandbox``: ``auto`` takes Docker where an engine answers, else ``overlay``. ``image``: the tag built by
    ``referee env build``; ``variant`` adds further language toolchains. ``base``: the digest of a registry image to
    build from; empty means Debian's packages by mmdebstrap.
    """

    sandbox: Literal["auto", "docker", "overlay"] = "auto"
    variant: str = "default"
    image: str = "referee-env"
    base: str = ""


class Network(_Section):
    """What a machine cannot reach: the blocked networks, and services of the host unless ``host_reachable``.

    Set ``host_reachable`` where a mirror or proxy runs on the host itself.
    """

    blocked: tuple[str, ...] = ("169.254.0.0/16", "fe80::/10", "fd00:ec2::254/128")
    host_reachable: bool = False


class Keys(_Section):
    """Who makes the one key of each run, and its limit (methodology §4).

    ``retry_seconds`` after a key could not be made or a model did not answer the attempt is tried again, each further
    time after twice as long, ``retries`` times in a row at most.

    ``broker``: ``gateway`` (the metering gateway of this installation), ``openrouter`` or ``litellm``. ``key_env``
    names the variable that holds the broker's own credential (a provisioning or master key); the gateway needs none,
    its upstreams have theirs. ``cap_usd`` other than the methodology's is recorded and makes a run unpublishable.
    """

    broker: Broker = "gateway"
    cap_usd: float = Field(default=CAP_USD, gt=0)
    base_url: OptionalAddress = ""
    key_env: VariableName = ""
    bodies: bool = False
    retry_seconds: float = Field(default=30.0, gt=0)
    retries: int = Field(default=6, ge=0, le=100)


class PriceSetting(_Section):
    """An explicit price, US dollars per million tokens."""

    input: float = Field(ge=0)
    output: float = Field(ge=0)
    cached_input: float | None = Field(default=None, ge=0)
    cache_write: float | None = Field(default=None, ge=0)
    per_request: float = Field(default=0.0, ge=0)


class UpstreamSetting(_Section):
    """Where the gateway sends what agents ask: ``[upstreams.NAME]``.

    ``base_url`` ends with the provider's version (``https://HOST/v1``). ``key_env`` is the NAME of a variable.
    ``provider`` is the provider's id in the price list, where the address alone does not tell it. ``prices`` are by
    model and stand before the price list.
    """

    base_url: ServerAddress
    key_env: VariableName | None = None
    dialects: tuple[Dialect, ...] = ("openai-chat",)
    provider: str | None = None
    prices: dict[str, PriceSetting] = {}
    max_output_tokens: int = Field(default=32_000, gt=0)


class Config(_Section):
    """``referee.toml``, every key optional."""

    ca_bundle: str | None = None
    edition: Literal[1, 2] = 2
    host_disk_floor_bytes: int = Field(default=2 * GIB, ge=0)
    budgets: Budgets = Budgets()
    machine: MachineLimits = MachineLimits()
    recording: Recording = Recording()
    environment: Environment = Environment()
    network: Network = Network()
    keys: Keys = Keys()
    upstreams: dict[str, UpstreamSetting] = {}


@dataclass(frozen=True)
class Workspace:
    """One workspace: its root and its configuration."""

    root: Path
    config: Config

    @property
    def records(self) -> Path:
        """Append-only record files."""
        return self.root / "records"

    @property
    def evidence(self) -> Path:
        """Content-addressed blobs."""
        return self.root / "evidence"

    @property
    def subjects(self) -> Path:
        """The workspace's own subjects."""
        return self.root / "subjects"

    @property
    def protocols(self) -> Path:
        """Bake-off protocols, one directory each: ``protocol.toml``, ``cases.json``, ``subsets.toml``."""
        return self.root / "protocols"

    @property
    def targets(self) -> Path:
        """Targets of bake-offs, one TOML file each."""
        return self.root / "targets"

    @property
    def answers(self) -> Path:
        """Evidence logs of bake-off runners: raw, redacted answers, found by offset and digest."""
        return self.root / "answers"

    @property
    def scores(self) -> Path:
        """Derived judgements: can be deleted without loss."""
        return self.root / "scores"

    @property
    def site(self) -> Path:
        """Built pages."""
        return self.root / "site"

    @property
    def spool(self) -> Path:
        """Evidence of attempts under way, one directory a run."""
        return self.root / "spool"

    @property
    def agents(self) -> Path:
        """Agents, one TOML file each."""
        return self.root / "agents"

    @property
    def keys(self) -> Path:
        """What is known of keys that were issued: ids and states, never a secret that is still alive."""
        return self.root / "keys"

    @property
    def cache(self) -> Path:
        """Fetched subjects and prepared agents, by digest: can be deleted without loss."""
        return self.root / "cache"

    def ca_bundle(self) -> Path | None:
        """The CA bundle to mount: ``ca_bundle`` of the configuration, else ``SSL_CERT_FILE``, else None.

        Raises:
            ConfigError: the named file does not exist.
        """
        named = self.config.ca_bundle or os.environ.get("SSL_CERT_FILE", "")
        if not named:
            return None
        path = (self.root / named).resolve()
        if not path.is_file():
            where = f"ca_bundle in {CONFIG_NAME}" if self.config.ca_bundle else "SSL_CERT_FILE in the environment"
            raise ConfigError(f"the CA bundle {named} does not exist", todo=f"correct {where}")
        return path


def find_root(start: Path, explicit: Path | None = None, *, reads: bool = False) -> Path:
    """The workspace's root: the explicit one, else ``REFEREE_WORKSPACE``, else the nearest directory above
    ``start`` with a ``referee.toml``, else ``start/referee-workspace``.

    ``reads``: nothing is written there, so one that is named and is not there is a slip.

    Raises:
        UsageError: such a slip.
    """
    named = explicit or (Path(os.environ["REFEREE_WORKSPACE"]) if os.environ.get("REFEREE_WORKSPACE") else None)
    if named is not None:
        if reads and not named.exists():
            where = "--workspace" if explicit else "REFEREE_WORKSPACE"
            raise UsageError(f"the workspace {named} does not exist", todo=f"correct {where}")
        return named.absolute()
    for directory in (start.absolute(), *start.absolute().parents):
        if (directory / CONFIG_NAME).is_file():
            return directory
    return start.absolute() / DEFAULT_DIRECTORY


@contextmanager
def making(root: Path) -> Iterator[None]:
    """What is done inside makes the workspace's directory where it is not there yet.

    Raises:
        UsageError: no directory can be made in that place, such as below ``/proc``.
    """
    try:
        yield
    except FileNotFoundError as exc:
        if root.exists():
            raise
        raise UsageError(
            f"the workspace {root} cannot be made: its directory cannot be created there",
            todo="name another with --workspace",
        ) from exc


def open_workspace(root: Path) -> Workspace:
    """Read the workspace's configuration; the directory need not exist yet.

    Raises:
        ConfigError: ``referee.toml`` is no TOML, or a key or value is not as it must be.
    """
    file = root / CONFIG_NAME
    if root.exists() and not root.is_dir():
        raise ConfigError(f"the workspace {root} is no directory")
    if not file.exists():
        return Workspace(root, Config())
    return Workspace(root, parse_config(file))


def parse_config(file: Path) -> Config:
    """Read one ``referee.toml``."""
    try:
        data = toml_text.loads(file.read_text(encoding="utf-8"))
        return Config.model_validate(data)
    except (OSError, UnicodeDecodeError) as exc:
        raise ConfigError(f"{file} cannot be read: {exc}") from exc
    except tomllib.TOMLDecodeError as exc:
        raise ConfigError(f"{file} is no TOML: {exc}") from exc
    except ValidationError as exc:
        raise ConfigError(f"{file}: {one_sentence(exc, Config)}") from exc


def one_sentence(exc: ValidationError, schema: type[BaseModel]) -> str:
    """The first breach of a schema: its place, what is wrong there and, where that is plain, what to do."""
    first = exc.errors(include_url=False, include_input=False)[0]
    place = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        return f"unknown key `{place}`; {_instead(str(first['loc'][-1]), _keys_at(schema, first['loc'][:-1]))}"
    if first["type"] == "missing":
        only = _only_value(schema, first["loc"])
        return f"`{place}` is missing; add {f'`{place} = {json.dumps(only)}`' if only is not None else 'it'}"
    return f"{place}: {first['msg']}" if place else str(first["msg"])


def _instead(unknown: str, known: list[str]) -> str:
    """What to write instead of an unknown key."""
    near = difflib.get_close_matches(unknown, known, n=1)
    if near:
        return f"did you mean `{near[0]}`?"
    return f"known there: {', '.join(known)}" if known else "leave it out"


def _keys_at(schema: type[BaseModel], path: tuple[int | str, ...]) -> list[str]:
    """The keys that a schema knows at a place; none where the place cannot be told."""
    models = [schema]
    for part in path:
        fields = [(name, field) for model in models for name, field in model.model_fields.items()]
        into = [field.annotation for name, field in fields if part in {name, field.alias}]
        # An index of a list, the user's own name in a table, or the tag of a union: the same models stay in question.
        models = [found for kind in into for found in _models_in(kind)] or models
    return sorted({field.alias or name for model in models for name, field in model.model_fields.items()})


def _only_value(schema: type[BaseModel], path: tuple[int | str, ...]) -> Any:
    """The one value that a key of a schema's first level may have, such as that of ``schema``; None: there are more."""
    fields = (field for name, field in schema.model_fields.items() if path == (field.alias or name,))
    kinds = [field.annotation for field in fields if get_origin(field.annotation) is Literal]
    values = [value for kind in kinds for value in get_args(kind)]
    return values[0] if len(values) == 1 else None


def _models_in(kind: Any) -> list[type[BaseModel]]:
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return [kind]
    return [found for inner in get_args(kind) for found in _models_in(inner)]
