"""The facts that are appended, and never rewritten: what was planned, what was seen.

A record holds facts only. What follows from them (score, corroboration status, verdict) is derived by
``referee.scoring`` and can be deleted without loss.
"""

from __future__ import annotations

from typing import Any, Literal

from referee.core.budgets import Tier
from referee.core.facts import Fact
from referee.core.failure import Cause
from referee.core.spending import SpendingFacts


class Limits(Fact):
    """What one machine may use; bytes and counts. ``memory_bytes`` is also the kill limit."""

    memory_bytes: int
    cpus: float
    pids: int
    disk_bytes: int
    nofile: int


class SubjectRef(Fact):
    """The subject as it was pinned when the attempt was planned."""

    name: str
    kind: Literal["repository", "package"]
    pin: str
    file_digest: str


class AgentRef(Fact):
    """The agent as it was configured: ``digest`` covers its code and its configuration.

    ``harness`` and ``model`` are those of an agent that speaks to a model; ``tree_digest`` is that of its installation
    as it stood at ``/opt/agent``, ``cap_usd`` the spending cap of the run's key.
    """

    name: str
    version: str
    digest: str
    tier: Literal["standard", "stronger"] = "standard"
    harness: str | None = None
    model: str | None = None
    tree_digest: str | None = None
    cap_usd: float | None = None


class EnvironmentRef(Fact):
    """The machine's environment: which engine, which image, which packages."""

    sandbox: Literal["docker", "overlay"]
    engine: str
    image: str
    image_digest: str
    packages_digest: str | None
    security_boundary: bool
    architecture: str


class BudgetRef(Fact):
    """The one budget of the run and the rule that chose it."""

    tier: Tier
    seconds: int
    why: str


class Lock(Fact):
    """Everything an attempt depends on, resolved before anything is spent."""

    edition: int
    subject: SubjectRef
    agent: AgentRef
    index: int
    budget: BudgetRef
    environment: EnvironmentRef
    limits: Limits
    instructions_digest: str
    mission_digest: str
    harness_version: str
    not_publishable: tuple[str, ...] = ()


class EvidenceRef(Fact):
    """One file of evidence: its name within the run, its digest (``sha256:<hex>``) and its size."""

    name: str
    digest: str
    bytes: int


class RecordingFacts(Fact):
    """What the recorder saw: totals, and each cap that was reached — announced, never silent."""

    complete: bool
    bytes: int
    events: int
    seconds: float
    exit_status: int | None
    caps_reached: tuple[str, ...] = ()
    write_error: str | None = None


class QuietFacts(Fact):
    """How it was confirmed that the agent's whole process tree is dead before anything was judged."""

    confirmed: bool
    how: str
    survivors_ended: int


class RerunFacts(Fact):
    """The harness's own run of the report's command, warm: same machine, fresh login shell, trusted PATH.

    ``output`` names the evidence file with the bytes it printed; ``could_not_run`` says why there is none.
    """

    command: str
    exit_status: int | None
    timed_out: bool
    seconds: float
    output: str | None
    could_not_run: str | None = None


class ListenerFacts(Fact):
    """One listening port or socket of the machine and the process behind it, as its kernel tells.

    ``over``: None for TCP. A Unix socket has port 0, and its path as address. ``argv`` is cut to 4,000 characters;
    ``executable`` and ``cwd`` are links of ``/proc``, None where they are gone.
    """

    port: int
    address: str
    pid: int | None
    executable: str | None
    argv: tuple[str, ...]
    cwd: str | None
    over: Literal["udp", "unix"] | None = None


class RestoredFacts(Fact):
    """What was put back before a command was believed: for a test run the project's own test files, as pinned.

    Args:
        restored: files that steer tests and differed from the pinned tree, or were gone.
        removed: files that neither the pinned tree nor a package has and that steer test runs (``conftest.py``, runner
            configuration) or every start of Python (``sitecustomize.py``, ``*.pth``), moved away.
        changed: other pinned files that the agent changed or took away, and that stay so; at most 500. None where they
            could not be compared, and in records of harnesses that did not.
        could_not: why nothing could be looked at; then nothing was put back.
    """

    restored: tuple[str, ...]
    removed: tuple[str, ...]
    changed: tuple[str, ...] | None = None
    could_not: str | None = None


class ControlFacts(Fact):
    """The negative control: the same command where nothing of the project stands. It must not succeed alike.

    ``kind``: ``no-project`` (a fresh machine without the project). ``output`` names the evidence file. ``placed``: the
    agent's own scripts that stood there, beside the project's empty directories; None for a bare machine.
    """

    kind: Literal["no-project"]
    command: str
    exit_status: int | None
    timed_out: bool
    output: str | None
    could_not_run: str | None = None
    placed: tuple[str, ...] | None = None


class ChallengeFacts(Fact):
    """One challenge: the verified command with one literal replaced by an input that the harness chose."""

    original: str
    replaced_by: str
    command: str
    exit_status: int | None
    timed_out: bool
    output: str | None
    could_not_run: str | None = None


class AskedFacts(Fact):
    """How many challenges a command was to get by which rules, and why some were not made."""

    rules: int
    number: int
    left: str | None = None


class CompiledFacts(Fact):
    """A compiled program of the agent's making that the command runs, or that listens.

    ``of_the_project``: texts that stand in the pinned sources were found in it.
    """

    place: str
    of_the_project: bool


class InstalledFacts(Fact):
    """One installed package of the project's name. ``local``: from a file, a directory or a repository's address."""

    place: str
    version: str
    local: bool


class ObservedFacts(Fact):
    """What the harness saw beside the re-run (methodology §5, edition 2); None where it was not looked for.

    Args:
        listening: ports that the agent's own processes listened on when its session ended.
        listening_in_rerun: ports that were listened on while the report's command ran again.
        restored: None where there was no command to run again, or the machine could not be asked.
        control, challenges: as their classes say.
        compiled: programs of which could be told whether they come from the project's sources.
        installed: packages of the project's name that stood on the machine when the command had run again.
    """

    listening: tuple[ListenerFacts, ...] | None = None
    listening_in_rerun: tuple[ListenerFacts, ...] | None = None
    restored: RestoredFacts | None = None
    control: ControlFacts | None = None
    challenges: tuple[ChallengeFacts, ...] | None = None
    asked: AskedFacts | None = None
    compiled: tuple[CompiledFacts, ...] | None = None
    installed: tuple[InstalledFacts, ...] | None = None


class NetworkFacts(Fact):
    """Whether a fresh machine reached the subject's package registry, asked when an attempt claimed no pass.

    ``reachable`` is what tells a project that does not install from a network of ours that was down.
    """

    asked: str
    reachable: bool
    said: str


class AttemptPlanned(Fact):
    """Appended before the machine is made."""

    kind: Literal["attempt-planned"] = "attempt-planned"
    run: str
    at: str
    lock: Lock


class AttemptEnded(Fact):
    """Appended when all evidence is durable. ``cause`` is None when the agent came to its own end."""

    kind: Literal["attempt-ended"] = "attempt-ended"
    run: str
    at: str
    cause: Cause | None
    detail: str
    evidence: tuple[EvidenceRef, ...]
    evidence_digest: str
    recording: RecordingFacts | None
    quiet: QuietFacts | None
    report_rejected: str | None
    rerun: RerunFacts | None
    network: NetworkFacts | None = None
    spent_usd: float
    spending: SpendingFacts | None = None
    observed: ObservedFacts | None = None
    phases: dict[str, float]
    machine: dict[str, Any]


class Replayed(Fact):
    """Appended when a run's recorded commands were replayed on a pristine machine: cold corroboration (methodology §5).

    Args:
        run: the run whose commands were replayed; ``replay`` the id of this replay.
        environment: the machine it was done on.
        commands: how many were recorded, and how many ran here.
        stopped_at: number (from 1) of the command that could not be replayed; None when all were.
        rerun: the report's command, run after them.
        network: whether a fresh machine reached the package registry, asked when the report's command did not succeed.
    """

    kind: Literal["replayed"] = "replayed"
    run: str
    replay: str
    at: str
    environment: EnvironmentRef
    commands: int
    ran: int
    stopped_at: int | None
    detail: str
    rerun: RerunFacts | None
    network: NetworkFacts | None = None
    evidence: tuple[EvidenceRef, ...]
    evidence_digest: str


class AttemptFound(Fact):
    """Appended by a later start that found an attempt whose harness had died: invalid, evidence so far kept."""

    kind: Literal["attempt-found"] = "attempt-found"
    run: str
    at: str
    cause: Cause
    detail: str
    evidence: tuple[EvidenceRef, ...]
    evidence_digest: str
    reaped: tuple[str, ...]


class Correction(Fact):
    """Appended by a person: a note on an earlier record, which itself is never rewritten."""

    kind: Literal["correction"] = "correction"
    run: str
    at: str
    note: str


class ProtocolFrozen(Fact):
    """Appended when a bake-off's protocol is frozen, before its first row (bake-off §1).

    ``digest`` covers every file by name and bytes; ``files`` are kept as evidence, so that a later change can be named
    to the line. ``decision`` is the number of the decision that a renewed freeze carries out.
    """

    kind: Literal["protocol-frozen"] = "protocol-frozen"
    protocol: str
    at: str
    digest: str
    files: tuple[EvidenceRef, ...]
    by: str
    decision: int | None = None


class DecisionLogged(Fact):
    """One entry of the decision log: numbered in order of assignment, dated, with its reason (bake-off §1).

    ``decided_on`` is the day of the decision; an entry that is logged on a later day says so by ``late``.
    """

    kind: Literal["decision-logged"] = "decision-logged"
    protocol: str
    number: int
    at: str
    decided_on: str
    late: bool
    amends: bool
    text: str
    reason: str
    by: str


class GoldReviewed(Fact):
    """A person's review of a gold-suspect case: it stands, or it is wrong. Both rates stay visible (bake-off §3).

    ``case_digest`` is that of what was reviewed (``scoring.bakeoff.gold.reviewed_digest``): the review says nothing of
    an amended case of the same id. None holds for whatever stands there.
    """

    kind: Literal["gold-reviewed"] = "gold-reviewed"
    protocol: str
    case: str
    at: str
    stands: bool
    note: str
    by: str
    case_digest: str | None = None


class MarketSnapshot(Fact):
    """What the market said of a target when a block of runs began: kept, never a verdict (bake-off §13)."""

    kind: Literal["market-snapshot"] = "market-snapshot"
    run: str
    protocol: str
    target: str
    at: str
    source: str
    said: EvidenceRef | None
    detail: str


class ShardHead(Fact):
    """How far a shard reached: its base name, its rows, and the digest of its last whole line."""

    shard: str
    rows: int
    head: str


class ShardAnnounced(Fact):
    """Appended when a run has opened a shard, before its first row: a shard that is gone is missed (bake-off §11).

    ``answers`` is the run's evidence log. ``after`` are the earlier shards of this target under this frozen protocol,
    as far as they reached: what they hold was not run again, and what was taken out of them since is missed as well.
    """

    kind: Literal["shard-announced"] = "shard-announced"
    run: str
    protocol: str
    protocol_digest: str
    target: str
    at: str
    shard: str
    answers: str
    after: tuple[ShardHead, ...]


class ShardSealed(Fact):
    """Appended when a shard was closed: lines that are cut off later are missed."""

    kind: Literal["shard-sealed"] = "shard-sealed"
    run: str
    protocol: str
    target: str
    at: str
    end: ShardHead


Record = AttemptPlanned | AttemptEnded | AttemptFound | Replayed | Correction

#: What stands in ``bakeoff-<token>.jsonl``; the rows themselves stand in shards (``core.bakeoff.Row``).
BakeoffRecord = ProtocolFrozen | DecisionLogged | GoldReviewed | MarketSnapshot | ShardAnnounced | ShardSealed
