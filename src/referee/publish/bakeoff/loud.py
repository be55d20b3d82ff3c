"""What terminal and page say first of a board: which cases it is over, and which have left it."""

from __future__ import annotations

from referee.publish.bakeoff import figures
from referee.publish.bakeoff.who import label
from referee.publish.words import count
from referee.scoring.bakeoff.figures import Rate
from referee.scoring.bakeoff.summary import Board, Summary


def left(board: Board, summary: Summary) -> str:
    """That cases left a board, why, and the rates with them: what no reader may overlook (§3). Empty: none did."""
    if not board.waiting and not board.wrong:
        return ""
    waiting, wrong = len(board.waiting), len(board.wrong)
    of, verb = f"of {count(board.of, 'case')}", "left the ranking"
    them = "it" if waiting + wrong == 1 else "them"
    reasons = (
        (waiting, f"until {'it is' if waiting == 1 else 'they are'} reviewed"),
        (wrong, f"because {'its gold was' if wrong == 1 else 'their golds were'} found wrong"),
    )
    (first, why), *more = [(number, reason) for number, reason in reasons if number]
    said = ", ".join((f"{first} {of} {verb} {why}", *(f"{number} {reason}" for number, reason in more)))
    rates = [(row.about, row.with_flagged) for row in board.rows]
    rates += [(row.about, row.with_flagged) for row in summary.lane_limited if row.about.subset == board.subset]
    shown = [f"{label(about)} {figures.percent(rate.value)}" for about, rate in rates if rate is not None]
    return f"{said}; with {them}: {', '.join(shown)}." if shown else f"{said}."


def scope(board: Board) -> str:
    """Which cases a board is over; of none, why.

    ``The whole suite: 45 cases of the arm suite``, or, where cases left the ranking (§3), ``The whole suite without 31
    doubted cases: 14 of 45 cases of the arm suite``.
    """
    name = "The whole suite" if board.subset is None else f"The registered subset {board.subset}"
    if not board.cases:
        out = board.of > 0
        return f"{name}: {'every answered case left the ranking' if out else 'no target that may rank has answers yet'}"
    cases = "1 case" if board.cases == 1 else f"{figures.count(board.cases)} cases"
    if less := without(board):
        name, cases = f"{name} without {less}", f"{figures.count(board.cases)} of {count(board.of, 'case')}"
    return f"{name}: {cases} of the {'arm' if len(board.arms) == 1 else 'arms'} {', '.join(board.arms)}"


def without(board: Board) -> str:
    """What a board's rates leave out: ``31 doubted cases and 2 with a wrong gold``. Empty: nothing."""
    doubted, wrong = len(board.waiting), len(board.wrong)
    if not doubted:
        return f"{count(wrong, 'case')} with a wrong gold" if wrong else ""
    return f"{count(doubted, 'doubted case')}{f' and {wrong} with a wrong gold' * bool(wrong)}"


def counted(rate: Rate) -> str:
    """A rate and its number of cases; where flagged cases were all there were, that none is left."""
    return "no case is left" if rate.value is None else f"{figures.rate(rate)}, n = {rate.n}"


def with_all(ranking: Rate, with_flagged: Rate | None) -> str | None:
    """The rate with the cases that left the ranking, to stand beside the one without; None where it is the same one."""
    if with_flagged is None or (with_flagged.value, with_flagged.n) == (ranking.value, ranking.n):
        return None
    return f"with all cases {counted(with_flagged)}"
