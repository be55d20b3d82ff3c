"""What pages and terminals show, as plain values: every figure in them was computed by ``referee.scoring``."""

from __future__ import annotations

from dataclasses import dataclass

from referee.core.branding import Mask
from referee.core.records import AttemptEnded, AttemptFound, AttemptPlanned, Correction
from referee.core.report import Report
from referee.core.sessions.steps import Told
from referee.scoring.bringup import Edition, Outcome
from referee.scoring.money import Spent
from referee.scoring.verdicts import AgentTier


@dataclass(frozen=True)
class AgentView:
    """An agent as it is shown here; ``neutral`` is its name on pages, ``digest`` leads to its exact configuration."""

    label: str
    neutral: str
    digest: str
    tier: str
    version: str | None


@dataclass(frozen=True)
class RowView:
    """One row of a score: points of ``out_of``."""

    name: str
    label: str
    points: float
    out_of: float


@dataclass(frozen=True)
class ScoreView:
    """One edition's score of a run; ``counting`` marks the edition under which the run was planned."""

    edition: int
    rows: tuple[RowView, ...]
    total: float
    outcome: str
    counting: bool


@dataclass(frozen=True)
class FileView:
    """One file of evidence. ``there`` is false when its bytes are not in the store, or not for the public.

    ``original``: what is served is a neutral copy; the salted fingerprint of the file that stays in the store.
    """

    name: str
    what: str
    digest: str
    bytes: int | None
    there: bool
    original: str | None = None


@dataclass(frozen=True)
class StepView:
    """One step of the timeline. ``began`` and ``took`` are seconds since the attempt began, None where unknown."""

    text: str
    began: float | None = None
    took: float | None = None
    fault: str | None = None


@dataclass(frozen=True)
class LogView:
    """A log as the page shows it; ``left_out`` bytes between head and tail stand only in the evidence."""

    head: str
    tail: str
    left_out: int


@dataclass(frozen=True)
class PackageView:
    """One package of the environment's manifest."""

    name: str
    version: str


@dataclass(frozen=True)
class ReplayView:
    """One replay of a run on a pristine machine: what it says (``scoring.cold``), why, and the evidence of it."""

    replay: str
    at: str
    status: str
    reason: str
    commands: int
    ran: int
    command: str | None
    image_digest: str
    files: tuple[FileView, ...]
    manifest: FileView | None


@dataclass(frozen=True)
class RunView:
    """One attempt, from its records and its judgement.

    ``state`` is ``ended``, ``found`` (its harness had died) or ``open`` (planned, no end recorded yet). ``current`` is
    false for an attempt at another pin than the subject's latest: it is shown and enters nothing. ``outcome``,
    ``scores`` and ``corroboration`` are empty where the attempt is no measurement. ``never`` says in a few words what
    in its plan keeps it from ever being published. ``edition`` is the one of its plan. ``neutral``: it is shown by its
    public face; ``masks`` says what was masked, ``withheld`` which files are not served at all.
    """

    run: str
    state: str
    current: bool
    planned: AttemptPlanned
    ended: AttemptEnded | AttemptFound | None
    agent: AgentView
    valid: bool
    reason: str | None
    outcome: Outcome | None
    total: float | None
    scores: tuple[ScoreView, ...]
    corroboration: str | None
    corroboration_why: tuple[str, ...]
    flagged: bool
    files: tuple[FileView, ...]
    manifest: FileView | None
    corrections: tuple[Correction, ...]
    objections: tuple[str, ...]
    never: tuple[str, ...]
    edition: Edition = 2
    replays: tuple[ReplayView, ...] = ()
    withheld: tuple[FileView, ...] = ()
    masks: tuple[Mask, ...] = ()
    neutral: bool = False

    @property
    def cold(self) -> ReplayView | None:
        """The replay that counts: the last that came to a result, else the last; None where there is none."""
        decided = [one for one in self.replays if one.status != "could_not_be_replayed"]
        return next(reversed(decided or self.replays), None)

    @property
    def subject(self) -> str:
        """The subject's name."""
        return self.planned.lock.subject.name

    @property
    def agent_tier(self) -> AgentTier:
        """Whether the standard agent or a stronger one made it."""
        return self.planned.lock.agent.tier

    @property
    def cause(self) -> str | None:
        """What cut the attempt short, by the failure table; None when the agent came to its own end."""
        return None if self.ended is None or self.ended.cause is None else self.ended.cause.value


@dataclass(frozen=True)
class DetailView:
    """What the run's own page adds, read from its evidence; ``told``: the steps that the recording tells, if any."""

    report: Report | None
    report_rejected: str | None
    steps: tuple[StepView, ...]
    log: LogView | None
    rerun_output: LogView | None
    instructions: str | None
    packages: tuple[PackageView, ...]
    told: Told


@dataclass(frozen=True, kw_only=True)
class VerdictView:
    """The verdict on a subject under one edition, from the attempts that were planned under it and no others.

    ``aside`` are its valid attempts that can never be published. The verdict leaves them out, or, where
    ``rests_on_aside``, there are no others and it rests on them alone.
    """

    edition: Edition
    verdict: str
    by: RunView | None
    counted: int
    invalid: int
    under_review: bool
    unstable: tuple[str, ...] = ()
    aside: tuple[RunView, ...] = ()
    rests_on_aside: bool = False


@dataclass(frozen=True, kw_only=True)
class SubjectView(VerdictView):
    """One subject: its verdict and every attempt that any agent made at it.

    Its own verdict is that of the edition that speaks for it; ``others`` are those of other editions, newest first.
    """

    name: str
    kind: str
    pin: str
    licence: str | None
    summary: str | None
    repository: str | None
    runs: tuple[RunView, ...]
    earlier: int
    others: tuple[VerdictView, ...] = ()


@dataclass(frozen=True)
class SetView:
    """All counted attempts of one agent at one subject. ``excluded`` says why the set is out of the board score.

    ``aside`` are totals that are shown and counted nowhere: their attempts can never be published.
    """

    subject: str
    totals: tuple[tuple[RunView, float], ...]
    aside: tuple[tuple[RunView, float], ...]
    median: float | None
    spread: float | None
    unstable: bool
    excluded: str | None


@dataclass(frozen=True)
class StandingView:
    """One agent's line on the board; ``regression``: an agent that must not pass, shown apart and never ranked."""

    rank: int | None
    agent: AgentView
    score: float | None
    subjects_counted: int
    passed: int
    attempts: int
    invalid: int
    aside: tuple[RunView, ...]
    pass_rate: float | None
    sets: tuple[SetView, ...]
    spent: Spent | None = None
    regression: bool = False


@dataclass(frozen=True)
class BoardView:
    """The board of one edition: figures of different editions never share a line or a rank."""

    edition: Edition
    standings: tuple[StandingView, ...]


@dataclass(frozen=True)
class SiteView:
    """Everything; ``boards`` the newest edition's first."""

    subjects: tuple[SubjectView, ...]
    boards: tuple[BoardView, ...]
    runs: tuple[RunView, ...]
    names_digest: str | None = None
