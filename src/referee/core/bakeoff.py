"""The facts of a bake-off: protocol, targets, what a lane leaves uncontrolled, and the row of one attempt."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import Field

from referee.core.cases import Category, Grading, Identifier
from referee.core.facts import Fact

# --- what is ranked --------------------------------------------------------------------------------------------------

LaneKind = Literal["openai-chat", "openai-responses", "anthropic-messages", "ollama", "cli", "keyword-baseline"]

#: What kind of way it is, in the words of the methodology's table of lanes (§4).
Channel = Literal[
    "hosted-free-tier", "router", "hub-inference", "own-infrastructure", "local", "agent-cli", "metered-api", "embedded"
]

#: The four classes that stand on every row (§5); ``none`` for what is no model.
Sovereignty = Literal["eu-origin", "eu-hostable-open-weight", "chinese-open-weight", "us-closed", "none"]

#: How an answer is read: one for each surface of the table of shapes.
Shape = Literal["openai-chat", "openai-responses", "anthropic-messages", "ollama", "cli-envelope"]


class Surface(Fact):
    """What a lane is and what it leaves uncontrolled: stands on every row (by digest) and on every page (in words).

    Args:
        channel: kind of way.
        shape: how its answers are read.
        tool_channel: ``native`` tool calls, or ``inlined`` (schemas in the prompt, an envelope comes back).
        uncontrolled: one phrase for each thing that the lane does not control.
        readable_as: what its rows may be read as.
        latency_admissible: whether a latency verdict may be derived (own infrastructure only, §7 and §13).
        pins_sampling: whether temperature and seed can be set.
    """

    channel: Channel
    shape: Shape
    tool_channel: Literal["native", "inlined"]
    uncontrolled: tuple[str, ...]
    readable_as: str
    latency_admissible: bool
    pins_sampling: bool


class Price(Fact):
    """An explicit price, US dollars for a million tokens."""

    input: float = Field(ge=0, allow_inf_nan=False)
    output: float = Field(ge=0, allow_inf_nan=False)
    cached_input: float | None = Field(default=None, ge=0, allow_inf_nan=False)


class Cli(Fact):
    """How an agent CLI is reached: which program at which version, and the environment variables it may inherit."""

    program: Literal["claude", "codex", "cursor", "gemini", "opencode"]
    version: str
    executable: str | None = None
    inherit: tuple[str, ...] = ()


class Target(Fact):
    """What the bake-off ranks: one model through one lane, pinned. One TOML file.

    ``key_env`` is the *name* of an environment variable, never a secret. ``deadline_seconds``, ``concurrency`` and
    ``per_minute`` tighten the protocol's values, never loosen them. ``takes_sampling`` is false where the model refuses
    a temperature or a seed: neither is sent, and its surface says so.
    """

    name: Identifier
    model: str
    lane: LaneKind
    channel: Channel
    sovereignty: Sovereignty
    base_url: str | None = None
    key_env: str | None = None
    self_host: Literal["feasible", "costly", "not-feasible"] = "not-feasible"
    precision: str | None = None
    quantisation: str | None = None
    context: int | None = None
    parameters: str | None = None
    revision: str | None = None
    metered: bool = False
    price: Price | None = None
    price_model: str | None = None
    credit: Literal["openrouter", "ledger"] | None = None
    credit_usd: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    market: Literal["openrouter"] | None = None
    concurrency: int | None = Field(default=None, ge=1, le=1024)
    per_minute: float | None = Field(default=None, gt=0)
    deadline_seconds: float | None = Field(default=None, gt=0)
    stream: bool = False
    takes_sampling: bool = True
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    extra_body: dict[str, Any] = Field(default_factory=dict)
    cli: Cli | None = None


# --- the protocol ----------------------------------------------------------------------------------------------------

#: Repeats of a case; at most so many that the set of those that passed fits into one number of DuckDB (127 bits).
Repeats = Annotated[int, Field(ge=1, le=100)]


class Sampling(Fact):
    """How answers are drawn (§2, §7). ``require_call`` sets ``tool_choice="required"`` where a call is expected."""

    temperature: float = 0.0
    seed: int | None = 42
    max_tokens: int = Field(default=4096, ge=1)
    require_call: bool = True


class Retry(Fact):
    """Retries of infrastructure errors in one attempt: ``tries`` in all, waits in seconds. ``Retry-After`` wins."""

    tries: int = Field(default=4, ge=1, le=20)
    first_seconds: float = Field(default=1.0, ge=0)
    factor: float = Field(default=2.0, ge=1)
    most_seconds: float = Field(default=60.0, ge=0)


class Guards(Fact):
    """Guards of a run (§4, §11). A target or a command line may tighten them, never loosen them."""

    breaker: int = Field(default=8, ge=1, le=8)
    infra_share: float = Field(default=0.5, gt=0, le=0.5)
    credit_floor_usd: float = Field(default=3.0, ge=3.0)
    concurrency: int = Field(default=8, ge=1, le=1024)
    deadline_seconds: float = Field(default=120.0, gt=0)
    cli_deadline_seconds: float = Field(default=300.0, gt=0)


class Bootstrap(Fact):
    """The second interval (§12). All targets are drawn with the one seed, so that they share their draws."""

    iterations: int = Field(default=10_000, ge=100)
    seed: int = Field(default=20260101, ge=0, lt=2**32)


class Subset(Fact):
    """A registered part of the suite, balanced over categories, marked on its rows."""

    name: Identifier
    why: str
    cases: tuple[Identifier, ...] = Field(min_length=1)
    repeats: Repeats


class Comparison(Fact):
    """A pre-registered paired comparison of two targets. ``matched_lanes``: the same model through two lanes."""

    a: Identifier
    b: Identifier
    why: str
    matched_lanes: bool = False
    registered_after_one_side_was_public: bool = False


class Planned(Fact):
    """One target of the protocol: the whole suite, or a registered subset."""

    target: Identifier
    subset: Identifier | None = None


class Protocol(Fact):
    """A frozen plan of a bake-off: ``protocol.toml``."""

    name: Identifier
    title: str
    question: str
    suite: Identifier
    repeats: Repeats = 3
    arm_repeats: dict[Identifier, Repeats] = Field(default_factory=dict)
    targets: tuple[Planned, ...] = Field(min_length=1)
    sampling: Sampling = Sampling()
    retry: Retry = Retry()
    guards: Guards = Guards()
    bootstrap: Bootstrap = Bootstrap()
    comparisons: tuple[Comparison, ...] = ()
    rules: tuple[str, ...] = ()


# --- what a signal means ---------------------------------------------------------------------------------------------


class Blame(StrEnum):
    """Whose fault a signal is: what follows from it is one table (``scoring.answers.faults``)."""

    INFRA = "infra"  # retried, then excluded
    ACCOUNT = "account"  # excluded, stops the target at once
    CONFIG = "config"  # excluded, stops the target at once
    CASE = "case"  # excluded, counted apart
    MODEL = "model"  # graded


class Fault(Fact):
    """Why an answer is not graded as it stands: whose fault, a stable name, a sentence, seconds to wait if told."""

    blame: Blame
    name: str
    sentence: str
    retry_after: float | None = None


# --- the row ---------------------------------------------------------------------------------------------------------


class AnswerRef(Fact):
    """Where the raw, redacted answer lies: file name of the runner's evidence log, offset, length, SHA-256."""

    log: str
    offset: int
    length: int
    digest: str


class ShardOpened(Fact):
    """The first line of a shard: everything that its rows have in common.

    ``identities`` is the exact list of (case, k) that the target owes; rows carry its digest and its count.
    """

    kind: Literal["shard-opened"] = "shard-opened"
    run: str
    at: str
    protocol: str
    protocol_digest: str
    suite: str
    suite_digest: str
    grading: Grading
    target: Target
    target_digest: str
    surface: Surface
    surface_digest: str
    subset: str | None
    identities: tuple[tuple[str, int], ...]
    identities_digest: str
    harness_version: str
    environment: dict[str, Any]


class Row(Fact):
    """One graded attempt: (target, case, k). Facts first, then the verdict of the deterministic grader on them.

    ``passed`` is None when the attempt is excluded (``infra_class`` says why). ``wrong`` is the digest of the
    normalised wrong answer, by which gold trust finds targets that fail in the same way (§3).
    """

    kind: Literal["row"] = "row"
    run: str
    started_at: str
    target: str
    target_digest: str
    lane: str
    surface_digest: str
    sovereignty: Sovereignty
    protocol_digest: str
    suite_digest: str
    subset: str | None
    expected: int
    identities_digest: str
    case_id: str
    category: Category
    arm: str
    language: str
    k_idx: int
    passed: bool | None
    well_formed: bool | None
    blame: Blame | None
    infra_class: str | None
    reason: str
    flags: tuple[str, ...]
    wrong: str | None
    http_status: int | None
    tries: int
    latency_ms: float
    model_served: str | None
    provenance: str
    input_tokens: int | None
    output_tokens: int | None
    spent_usd: float | None = Field(ge=0, allow_inf_nan=False)
    harness_version: str
    answer: AnswerRef | None


class ShardClosed(Fact):
    """The last line of a shard whose runner came to its end: how it ended, and what it did not run."""

    kind: Literal["shard-closed"] = "shard-closed"
    run: str
    at: str
    rows: int
    ended: Literal["complete", "breaker", "account", "config", "budget", "interrupted", "internal"]
    detail: str


class SpendBound(Fact):
    """How much a run may have spent from an account so far, US dollars: what is under way counts at its upper estimate.

    ``account`` is the name of the environment variable with the account's credential. ``final`` marks the last line of
    a run that came to its end: what it did spend.
    """

    kind: Literal["spend-bound"] = "spend-bound"
    run: str
    account: str
    usd: float = Field(ge=0, allow_inf_nan=False)
    final: bool
