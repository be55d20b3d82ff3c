"""The seams, on one screen. Everything foreign comes in through one of these.

``runner.attempt`` speaks only to these; ``cli.wiring`` alone chooses who answers. Both sandboxes pass the suite
in ``tests/conformance/``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import BinaryIO, Literal, Protocol

from referee.core.bakeoff import Retry, Sampling, Surface
from referee.core.records import EnvironmentRef, EvidenceRef, Limits, QuietFacts, Record
from referee.core.spending import Broker, Dialect, SpendingFacts

#: Where things stand inside every machine.
WORK = "/work"
PROJECT = "/work/project"
SUBJECT = "/work/subject"
MISSION = "/work/mission.json"
REPORT = "/work/report.json"
AGENT_HOME = "/opt/agent"
TRUSTED_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True)
class Completed:
    """A finished command without a terminal: its status, and at most the asked bytes of its merged output.

    ``exit_status`` is None when ``timed_out``: the command's process group was killed.
    """

    exit_status: int | None
    output: bytes
    timed_out: bool
    truncated: bool


@dataclass(frozen=True)
class MachineSpec:
    """What one machine is to be.

    ``deadline`` is Unix seconds, for the reaper; ``inputs`` maps a host path to the path at which it
    appears read-only inside. ``gateway`` is the one address and port of the host that the machine may reach, for its
    model; None for none. The sandbox labels the machine with run, workspace, deadline and harness process.
    """

    run: str
    workspace: str
    deadline: float
    limits: Limits
    environment: Mapping[str, str] = field(default_factory=dict)
    inputs: Mapping[Path, str] = field(default_factory=dict)
    ca_bundle: Path | None = None
    gateway: tuple[str, int] | None = None


class Session(Protocol):
    """One command on a terminal inside a machine, seen from the host as a raw byte stream."""

    def read(self, size: int, timeout: float) -> bytes | None:
        """Up to ``size`` bytes; ``b""`` at the end of the stream; None when ``timeout`` seconds were silent."""

    def write(self, data: bytes) -> None:
        """Type ``data`` on the terminal."""

    def resize(self, columns: int, rows: int) -> None:
        """Change the terminal's size."""

    def exit_status(self, timeout: float) -> int | None:
        """The command's exit status; None while it still runs after ``timeout`` seconds."""

    def close(self) -> None:
        """Let go of the stream. The command may still run: ending it is ``Machine.quiet``."""


class Machine(Protocol):
    """One disposable machine. Each method raises ``errors.MachineFault`` for a fault of the machine."""

    run: str

    def session(
        self, argv: Sequence[str], *, environment: Mapping[str, str], cwd: str, columns: int, rows: int
    ) -> Session:
        """Start ``argv`` on a new terminal."""

    def execute(
        self,
        argv: Sequence[str],
        *,
        timeout: float,
        environment: Mapping[str, str] | None = None,
        cwd: str = "/",
        max_output: int = 1_000_000,
        stop: Event | None = None,
    ) -> Completed:
        """Run ``argv`` without a terminal (stdin closed), as root, and wait.

        With ``stop`` its stdin is open, and gets one line as soon as that is set: the command is to end by itself then.
        """

    def put(self, tar: BinaryIO, at: str) -> None:
        """Unpack an uncompressed tar stream below the directory ``at``; owner root."""

    def read_file(self, path: str, *, max_bytes: int) -> bytes | None:
        """The bytes of a regular file; None when nothing stands there. Works after ``quiet``.

        Raises:
            ReportRejected: it is no regular file (a symlink is not followed) or larger than ``max_bytes``.
        """

    def take(self, path: str) -> AbstractContextManager[BinaryIO]:
        """The directory ``path`` as an uncompressed tar stream (its members below the directory's base name).

        Works after ``quiet``. Raises ``MachineFault`` when nothing stands there or it is no directory.
        """

    def quiet(self) -> QuietFacts:
        """End every process of the agent, also what it daemonised, and confirm that none lives.

        The file system stays; ``execute`` and ``session`` work again afterwards.
        """

    def trouble(self) -> str | None:
        """None while the machine is sound; else "memory", "disk" or a sentence (asked while the agent works)."""

    def facts(self) -> dict[str, object]:
        """What to keep of the machine in the record (ids, limits in force, usage)."""

    def destroy(self) -> None:
        """Remove the machine and all that belongs to it. Never raises; may be called twice."""


class Sandbox(Protocol):
    """A maker of machines."""

    def environment(self) -> EnvironmentRef:
        """What a machine made now will be, without making one.

        Raises ``EngineUnavailable`` or ``EnvironmentUnavailable``.
        """

    def packages_manifest(self) -> bytes | None:
        """The environment's package manifest (canonical JSON), or None where there is none."""

    def gateway_address(self) -> str:
        """The address of this host on which a service can listen so that machines, and nobody else, reach it."""

    def create(self, spec: MachineSpec) -> Machine:
        """Make and start a machine."""

    def reap(self) -> list[str]:
        """Remove every machine (container, volume, network, process, mount) whose harness is dead or whose
        deadline has long passed; one sentence for each thing found and removed.
        """


@dataclass(frozen=True)
class Placement:
    """A subject, fetched and checked on the host: a directory that is unpacked at ``/work``.

    ``root`` holds ``project/`` (the tree to bring up; empty for a package) and ``subject/`` (for a package: the
    pinned artifact and its README). ``facts`` goes into the mission: kind, name, version, artifact file,
    licence, size, submodules and LFS pointers found.
    """

    root: Path
    facts: dict[str, object]
    size_bytes: int


class Source(Protocol):
    """One way to fetch a pinned subject."""

    def fetch(self, pin: Mapping[str, object]) -> Placement:
        """Fetch, check against the pin, unpack.

        Raises ``SourceUnreachable``, ``DigestMismatch`` or ``UsageError``.
        """


@dataclass(frozen=True)
class ModelNeed:
    """What an agent asks of a key: its model, the surface it speaks, the workspace's upstream that serves it."""

    model: str
    dialect: Dialect
    upstream: str


@dataclass(frozen=True)
class Access:
    """The way of one run to its model. The secret is the run's own and dies with it.

    ``base_url`` ends with the host and port, or with the broker's own prefix, and never with a version: each harness
    adds the path of its surface (``/v1/chat/completions``, ``/v1/responses``, ``/v1/messages``,
    ``/v1beta/models/…``).
    """

    base_url: str
    model: str
    secret: str = field(repr=False)


@dataclass(frozen=True)
class PlacedFile:
    """A file that is put into the machine before the agent starts."""

    data: bytes = field(repr=False)
    mode: int = 0o644


@dataclass(frozen=True)
class AgentStart:
    """How an agent is started inside the machine: its command, its environment, its read-only inputs.

    ``tree_digest`` is the digest of the installation among the inputs; None where nothing is installed.
    """

    argv: tuple[str, ...]
    environment: Mapping[str, str]
    inputs: Mapping[Path, str]
    tree_digest: str | None = None


class Agent(Protocol):
    """What bring-up ranks."""

    @property
    def name(self) -> str:
        """Its name on boards."""

    @property
    def version(self) -> str:
        """Its pinned version."""

    @property
    def tier(self) -> Literal["standard", "stronger"]:
        """Whether it is the standard agent or a stronger one (methodology §9)."""

    def digest(self) -> str:
        """Tagged digest of the agent's code and configuration."""

    @property
    def harness(self) -> str | None:
        """The name of its harness; None where it speaks to no model."""

    @property
    def need(self) -> ModelNeed | None:
        """The model it speaks to; None for none: then the run has no key."""

    def prepare(self) -> AgentStart:
        """Make the agent's files ready on the host (cached by digest).

        Raises ``MachineFault`` or ``AgentUnavailable``.
        """

    def placed(self, access: Access, mission: Mapping[str, object]) -> Mapping[str, PlacedFile]:
        """What to place before it starts, by absolute path: its configuration, its task, the key. Not in its argv."""


@dataclass(frozen=True)
class Issued:
    """A key that was made for one run: how the agent uses it, and what must be found nowhere afterwards."""

    key: str
    access: Access
    secrets: Mapping[str, str] = field(repr=False)


class Keys(Protocol):
    """A broker of keys: one run, one key, one cap (methodology §4)."""

    @property
    def broker(self) -> Broker:
        """Its name in records."""

    def check(self, need: ModelNeed, *, cap_usd: float | None = None) -> object:
        """Whether the settings let a key for ``need`` come about, asked before anything is spent; nothing is sent.

        ``cap_usd``: the limit that it is to have, where that is to be looked at too.

        Raises:
            ConfigError: they do not: trying again would not help.
        """

    def ask(self, need: ModelNeed, *, after: str | None = None) -> None:
        """Whether who serves the model is there and takes our credential, asked without a question to a model.

        ``after``: a run, the end of whose calls may tell it too.

        Raises:
            ConfigError: the credential is refused: trying again would not help.
            KeyUnavailable: nobody is there.
        """

    def reach(self, address: str) -> tuple[str, int] | None:
        """The address and port of this host that a machine must reach, for ``MachineSpec.gateway``; None for none.

        A broker that serves machines itself listens from now on at ``address``.
        """

    def issue(self, run: str, need: ModelNeed, *, cap_usd: float, ends_at: float) -> Issued:
        """Make the key of ``run``.

        Args:
            run: whose key it is.
            need: what it is for.
            cap_usd: its limit.
            ends_at: Unix seconds after which it is of no use to anybody.

        Raises:
            KeyUnavailable: it could not be made: the run is not started.
        """

    def close(self, run: str) -> SpendingFacts | None:
        """Delete the key of ``run``, confirm it, and say what it spent. None: it never had one. May be called twice.

        Never raises: a key that could not be deleted is said so (``deleted`` false), and ``sweep`` tries again.
        """

    def exchanges(self, run: str) -> bytes | None:
        """The metadata of the calls of ``run``, one JSON line each; None where the broker does not see them."""

    def secrets(self, run: str) -> Mapping[str, str] | None:
        """What of ``run``'s key must be found nowhere, also after its harness died; None where that is not known."""

    def sweep(self, running: Collection[str]) -> list[str]:
        """Delete every key that belongs to no running run of this workspace; one sentence for each."""

    def stop(self) -> None:
        """Let go of sockets and threads; keys of this process are deleted."""


class KeptEvidence(Protocol):
    """Evidence that is only read."""

    def open(self, digest: str) -> BinaryIO:
        """Open a blob for reading. Raises ``Finding`` when it is not there."""

    def path(self, digest: str) -> Path:
        """Where the blob lies."""


class Evidence(KeptEvidence, Protocol):
    """The content-addressed store of bytes."""

    def keep(self, name: str, source: Path | bytes, *, given_up: bool = False) -> EvidenceRef:
        """Store bytes durably; return their reference. Storing the same bytes twice is one blob.

        ``given_up``: nobody writes to the file ``source`` any more, so it need not be copied; its name stays.
        """


class Records(Protocol):
    """The append-only record files of a workspace."""

    def append(self, record: Record) -> str:
        """Append durably to this process's own file; return the record's digest."""

    def read(self) -> list[Record]:
        """All whole records of all files, in order of file name and line."""


@dataclass(frozen=True)
class WireTool:
    """A tool as it is sent: ``name`` may have had characters replaced that the lane does not take."""

    name: str
    description: str
    parameters: Mapping[str, object]


@dataclass(frozen=True)
class Ask:
    """One question as it is put to a lane, the same for every model.

    On an inlined lane ``tools`` is empty: the schemas stand in the messages. ``require_call`` asks for
    ``tool_choice="required"``; it is never set on an abstain case.
    """

    messages: tuple[tuple[str, str], ...]
    tools: tuple[WireTool, ...]
    require_call: bool
    sampling: Sampling


@dataclass(frozen=True)
class Said:
    """What came back, as bytes: nothing is read into it here (``scoring.answers`` reads).

    Args:
        status: HTTP status, or the exit status of a CLI; None when no whole head came.
        headers: lower-case names; only what a reader may need (``retry-after``, ``content-type``, rate limits, ids).
        body: the body as received, at most the lane's cap; for a CLI its standard output.
        broke: None, or how the transport failed: ``timeout``, ``dns``, ``connect``, ``reset``, ``protocol``,
            ``too-long``, ``killed``.
        detail: one sentence on ``broke``, without any credential.
        streamed: whether the body is a stream of events.
        first_byte_ms, latency_ms: since the request was begun; None when no byte came.
    """

    status: int | None
    headers: Mapping[str, str]
    body: bytes
    broke: str | None
    detail: str
    streamed: bool
    first_byte_ms: float | None
    latency_ms: float


@dataclass(frozen=True)
class LaneFacts:
    """What the start-up check found.

    Args:
        model: as the live catalogue names it.
        verified: what was looked at and what came of it, in words: a finding of this one start.
        said: the raw answers.
        pins: what of it pins the thing that is measured (quantisation, context, digest, version): stands on every row,
            and another value is another source. Nothing that the next start may find otherwise belongs here.
    """

    model: str
    verified: Mapping[str, str]
    said: Mapping[str, bytes]
    pins: Mapping[str, str] = field(default_factory=dict)


class Lane(Protocol):
    """The way to one model. All calls of one run happen on one event loop."""

    @property
    def surface(self) -> Surface:
        """What it is and what it leaves uncontrolled."""

    @property
    def secrets(self) -> Mapping[str, str]:
        """The credentials that it holds in memory, by name: for redaction, never for a file."""

    async def check(self, retry: Retry | None = None) -> LaneFacts:
        """Fail closed before the first attempt: endpoint there, model in its live catalogue, pins verified.

        Args:
            retry: patience with infrastructure errors on the way; None looks once.

        Raises:
            CouldNotVerify: the endpoint does not answer or does not have what the target pins.
        """

    async def ask(self, question: Ask, deadline_seconds: float) -> Said:
        """Put one question, once: no retry here. Never raises for what the other side does."""

    async def credit_usd(self) -> float | None:
        """Remaining credit of a metered lane, US dollars; None where the provider publishes none.

        Raises:
            CouldNotVerify: it should be readable and is not.
        """

    async def market(self) -> Mapping[str, bytes]:
        """What the provider publishes of prices, uptime and throughput, raw, by name; empty where nothing is."""

    async def close(self) -> None:
        """Let go of connections, processes and directories."""
