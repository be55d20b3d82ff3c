"""The results of a built site, made again from its runs alone: boards, verdicts, and that no run lacks or counts twice.

Nothing here reads what it compares with: each run was judged anew from its served evidence before (``verify_public``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from referee.errors import Finding
from referee.publish.mapping import BUILT_IN, REGRESSION
from referee.scoring.boards import Entry, Row, SubjectResult, board, by_edition, spread, under_review
from referee.scoring.bringup import Edition, Outcome
from referee.scoring.verdicts import AgentTier, deciding, speaking, verdict

_TODO = "get the site again from where it is published, and compare"


@dataclass(frozen=True)
class Shown:
    """One run as its served lock and evidence give it; ``outcome`` and ``total`` are None where it is no measurement.

    ``agent`` is the name under which the site shows it, ``locked`` the one in its lock, ``never`` why it can never be
    published.
    """

    run: str
    at: str
    subject: str
    pin: str
    agent: str
    locked: str
    digest: str
    agent_tier: AgentTier
    index: int
    edition: Edition
    open: bool
    outcome: Outcome | None
    total: float | None
    never: tuple[str, ...]

    @property
    def valid(self) -> bool:
        """Whether it is a complete attempt."""
        return self.outcome is not None

    @property
    def regression(self) -> bool:
        """Whether its agent is a test of the rules."""
        return _base(self.agent) in REGRESSION

    def entry(self) -> Entry:
        """The run as the board needs it."""
        return Entry(
            agent=self.agent,
            subject=self.subject,
            outcome=self.outcome,
            total=self.total,
            publishable=not self.never,
            regression=self.regression,
            edition=self.edition,
        )


def current(runs: Sequence[Shown]) -> set[str]:
    """The runs at their subject's latest pin."""
    pins = {one.subject: one.pin for one in sorted(runs, key=lambda one: (one.at, one.run))}
    return {one.run for one in runs if one.pin == pins[one.subject]}


def check_runs(runs: Sequence[Shown], *, names: str | None) -> None:
    """No run stands twice, none lacks below another, and each name stands for one configuration.

    Args:
        runs: every run of the site.
        names: the digest of the mapping that the site quotes; without one, letters stand for names in the locks.

    Raises:
        Finding: the first thing that does not hold.
    """
    if len({one.run for one in runs}) < len(runs):
        raise Finding("index.json lists a run twice", todo=_TODO)
    digests: dict[str, str] = {}
    numbers: dict[tuple[str, str], set[int]] = {}
    for one in runs:
        lettered = one.agent.startswith("Agent ")
        if _base(one.agent) != one.locked and not (lettered and names is None):
            raise Finding(f"run {one.run}: its lock names another agent than {one.agent}", todo=_TODO)
        if digests.setdefault(one.agent, one.digest) != one.digest:
            raise Finding(f"run {one.run}: {one.agent} has another configuration than in other runs", todo=_TODO)
        # Of agents under letters it is not public which of them share a name, and with it their numbers.
        who = _base(one.agent) if _base(one.agent) in BUILT_IN else ""
        numbers.setdefault((one.subject, who), set()).add(one.index)
    for (subject, who), made in numbers.items():
        missing = next((number for number in range(1, max(made)) if number not in made), None)
        if missing is not None:
            by = f" by {who}" if who else ""
            raise Finding(
                f"attempt {missing} at {subject}{by} is not in the site, though attempt {max(made)} is",
                todo="ask for it: every attempt counts and is published",
            )


def check_boards(runs: Sequence[Shown], document: Mapping[str, Any]) -> int:
    """Every board of ``board.json``, one an edition, is what these runs give; the number of its lines.

    Raises:
        Finding: it is not.
    """
    told: dict[Any, Any] = {document.get("edition"): document["standings"]}
    for other in document.get("other_editions", ()):
        told[other["edition"]] = other["standings"]
    apart = by_edition([one.entry() for one in runs])
    if list(told) != list(apart) and (apart or list(told) != [None]):
        raise Finding(
            "board.json has not the boards of the editions that the runs of the site were made under", todo=_TODO
        )
    lines = 0
    for edition, entries in apart.items():
        rows = board(entries)
        own = [one for one in runs if one.edition == edition]
        wanted = {row.agent: _line(row, rows, [one for one in own if one.agent == row.agent]) for row in rows}
        shown = {line["agent"]["label"]: {key: line[key] for key in _KEYS} for line in told[edition]}
        order = [(row.regression, row.score) for row in rows]
        if shown != wanted or [(line["regression_agent"], line["score"]) for line in told[edition]] != order:
            differing = [agent for agent, line in wanted.items() if shown.get(agent) != line]
            where = f": the line of {differing[0]}" if differing else ""
            raise Finding(f"board.json is not what the runs of the site give (edition {edition}){where}", todo=_TODO)
        lines += len(rows)
    return lines


def check_subjects(runs: Sequence[Shown], told: Sequence[Mapping[str, Any]]) -> int:
    """Every verdict that ``index.json`` says is what these runs give; how many there are.

    Args:
        runs: the runs at their subject's latest pin.
        told: its list of subjects.

    Raises:
        Finding: a verdict is another, or a subject lacks.
    """
    subjects = sorted({one.subject for one in runs})
    if [one["subject"] for one in told] != subjects:
        raise Finding("index.json does not list the subjects that the runs of the site are of", todo=_TODO)
    measured = by_edition([one.entry() for one in runs if not one.open])
    review = {edition: under_review(entries) for edition, entries in measured.items()}
    for document in told:
        name = str(document["subject"])
        of_subject = [one for one in runs if one.subject == name]
        tested = [one for one in of_subject if not one.regression]
        some = tested or of_subject
        speaks = speaking([(one.edition, one.valid) for one in some])
        editions = sorted({one.edition for one in some}, reverse=True)
        verdicts = {
            edition: _verdict(
                edition, [one for one in tested if one.edition == edition], name in review.get(edition, ())
            )
            for edition in editions
        }
        others = [said for edition, said in verdicts.items() if edition != speaks]
        wanted = {**verdicts[speaks], "other_editions": others}
        if {key: document.get(key) for key in wanted} != wanted:
            raise Finding(f"the verdict on {name} is not what the runs of the site give", todo=_TODO)
    return len(told)


_KEYS = (
    *("rank", "regression_agent", "score", "subjects_counted", "passed", "attempts_counted", "attempts_invalid"),
    *("attempts_never_publishable", "pass_rate", "subjects"),
)


def _line(row: Row, rows: Sequence[Row], own: Sequence[Shown]) -> dict[str, Any]:
    better = sum(1 for other in rows if not other.regression and (other.score or 0.0) > (row.score or 0.0))
    sets = [
        _set(subject, result, [one for one in own if one.subject == subject]) for subject, result in row.results.items()
    ]
    return {
        "rank": None if row.score is None or row.regression else 1 + better,
        "regression_agent": row.regression,
        "score": row.score,
        "subjects_counted": sum(1 for one in sets if one["excluded"] is None),
        "passed": row.passed,
        "attempts_counted": row.counted,
        "attempts_invalid": row.invalid,
        "attempts_never_publishable": row.set_aside,
        "pass_rate": row.pass_rate,
        "subjects": sets,
    }


def _set(subject: str, result: SubjectResult, own: Iterable[Shown]) -> dict[str, Any]:
    valid = [one for one in own if one.valid]
    return {
        "subject": subject,
        "totals": [{"run": one.run, "total": one.total} for one in valid if not one.never],
        "never_publishable": [
            {"run": one.run, "total": one.total, "why": list(one.never)} for one in valid if one.never
        ],
        "median": result.middle if result.totals else None,
        "spread": result.spread.percent,
        "unstable": result.spread.unstable,
        "excluded": result.excluded,
    }


def _verdict(edition: Edition, tested: Sequence[Shown], under: bool) -> dict[str, Any]:
    aside = [one for one in tested if one.valid and one.never]
    deciders = deciding([one for one in tested if not one.never], aside)
    counted = [one for one in deciders if one.valid]
    said = verdict(deciders).value
    wanted = {"runs": "pass_full", "runs_with_mocks": "pass_mock"}.get(said)
    passed = [one for one in counted if one.outcome == wanted]
    by = passed[0] if passed else max(counted, key=lambda one: one.total or 0.0, default=None)
    totals: dict[str, list[float]] = {}
    for one in counted:
        totals.setdefault(one.agent, []).append(one.total or 0.0)
    return {
        "edition": edition,
        "verdict": said,
        "decided_by": None if by is None else by.run,
        "attempts_counted": len(counted),
        "attempts_invalid": sum(1 for one in tested if not one.valid and not one.open),
        "attempts_never_publishable": len(aside),
        "rests_on_never_publishable": bool(aside) and deciders is aside,
        "under_review": under,
        "unstable_for": [agent for agent, made in totals.items() if spread(made).unstable],
    }


def _base(label: str) -> str:
    """An agent's name without the mark that tells two of one name apart."""
    return label.partition(" (")[0]
