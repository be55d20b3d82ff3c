"""The board as it is shown: what ``scoring.boards`` computed, each figure beside the runs behind it."""

from __future__ import annotations

from collections.abc import Sequence

from referee.core.records import AttemptEnded
from referee.publish.mapping import REGRESSION, agent_key
from referee.publish.views import BoardView, RunView, SetView, StandingView
from referee.scoring.boards import Entry, Row, board, by_edition
from referee.scoring.money import Bill, add_up


def entry(run: RunView) -> Entry:
    """One attempt as the board needs it."""
    return Entry(
        agent=agent_key(run.planned.lock.agent),
        subject=run.subject,
        outcome=run.outcome,
        total=run.total,
        publishable=not run.never,
        regression=run.planned.lock.agent.name in REGRESSION,
        edition=run.edition,
    )


def boards(runs: Sequence[RunView]) -> tuple[BoardView, ...]:
    """A board for each edition that these runs were planned under, the newest first (methodology §14)."""
    return tuple(
        BoardView(edition, tuple(standings([run for run in runs if run.edition == edition])))
        for edition in by_edition([entry(run) for run in runs])
    )


def standings(runs: Sequence[RunView]) -> list[StandingView]:
    """The lines of the board over these runs of one edition, best first, agents without a score at the bottom."""
    rows = board([entry(run) for run in runs])
    return [_standing(row, runs, rank=_rank(row, rows)) for row in rows]


def _rank(row: Row, rows: Sequence[Row]) -> int | None:
    """Equal scores share a rank; no score, no rank; an agent that must not pass holds none and takes none."""
    if row.score is None or row.regression:
        return None
    return 1 + sum(1 for other in rows if not other.regression and (other.score or 0.0) > row.score)


def _standing(row: Row, runs: Sequence[RunView], *, rank: int | None) -> StandingView:
    own = [run for run in runs if agent_key(run.planned.lock.agent) == row.agent]
    sets = []
    for subject, result in row.results.items():
        made = [(run, run.total) for run in own if run.subject == subject and run.valid and run.total is not None]
        sets.append(
            SetView(
                subject=subject,
                totals=tuple((run, total) for run, total in made if not run.never),
                aside=tuple((run, total) for run, total in made if run.never),
                median=result.middle if result.totals else None,
                spread=result.spread.percent,
                unstable=result.spread.unstable,
                excluded=result.excluded,
            )
        )
    return StandingView(
        rank=rank,
        regression=row.regression,
        agent=own[0].agent,
        score=row.score,
        subjects_counted=sum(1 for one in sets if one.excluded is None),
        passed=row.passed,
        attempts=row.counted,
        invalid=row.invalid,
        aside=tuple(run for one in sets for run, _ in one.aside),
        pass_rate=row.pass_rate,
        sets=tuple(sets),
        spent=add_up([bill for run in own if (bill := _bill(run)) is not None]),
    )


def _bill(run: RunView) -> Bill | None:
    ended = run.ended
    if not isinstance(ended, AttemptEnded) or ended.spending is None:
        return None
    return Bill(ended.spending.spent_usd, counted=run.valid and not run.never, capped=ended.spending.capped)
