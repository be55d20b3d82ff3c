"""Gold trust: cases whose gold is in doubt leave the ranking until a person has looked, and never silently (§3)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Literal

from referee.core.canonical import digest_of
from referee.core.cases import Case, Suite
from referee.core.records import GoldReviewed
from referee.core.tallies import CaseTally
from referee.scoring.bakeoff.summary import GoldCase
from referee.scoring.toolcalls.answers import NO_CALL

#: So many targets that fail a case in the same way put its gold in doubt.
ALIKE = 2
#: Giving no call where one was expected is no answer that could rival the gold: it is never a *shared* wrong answer.
NO_ANSWER = digest_of("wrong", NO_CALL)


def gold_cases(
    suite: Suite, cases: Iterable[CaseTally], reviews: Sequence[GoldReviewed], *, protocol: str
) -> tuple[GoldCase, ...]:
    """Every case that is suspect or was reviewed, by id.

    Suspect: two or more targets gave the same normalised wrong call or calls in all their valid attempts. No call, or
    an answer without a readable form, is no answer to share. Lane-limited targets count too: a lane that fails does not
    make an answer that did come less telling. The latest review decides; a gold that a person found wrong is out of the
    ranking even where no two targets agreed.
    """
    groups = _groups(cases)
    latest = _latest(reviews, suite, protocol)
    found = []
    for case_id in sorted((groups.keys() | latest.keys()) & suite.by_id.keys()):
        case, review = suite.by_id[case_id], latest.get(case_id)
        alike = groups.get(case_id, ())
        verdict: Literal["unreviewed", "stands", "wrong", "amended"] = "unreviewed"
        if review is not None:
            verdict = ("stands" if review.stands else "wrong") if _of(review, suite) else "amended"
        arm = suite.arm_of[case.arm]
        found.append(
            GoldCase(
                case=case_id,
                arm=case.arm,
                category=case.category,
                headline=arm.headline and arm.ranked,
                suspect=bool(alike),
                groups=alike,
                review=verdict,
                reviewed_at=review.at if review else None,
                reviewed_by=review.by if review else None,
                review_note=review.note if review else None,
                ranks=arm.ranked and case.known_objection is None and _ranks(verdict, suspect=bool(alike)),
            )
        )
    return tuple(found)


def left_alone(cases: Iterable[CaseTally]) -> tuple[str, ...]:
    """The cases at which two or more targets gave no call in all their valid attempts though one is expected, by id.

    No reason to doubt the gold, and none to keep quiet about: a person may look.
    """
    silent = Counter(tally.case for tally in cases if tally.wrong == NO_ANSWER and tally.valid and not tally.passes)
    return tuple(sorted(case for case, targets in silent.items() if targets >= ALIKE))


def _ranks(verdict: str, *, suspect: bool) -> bool:
    """Whether trust in the gold lets a case rank."""
    return verdict == "stands" or (verdict != "wrong" and not suspect)


def _groups(cases: Iterable[CaseTally]) -> dict[str, tuple[tuple[str, tuple[str, ...]], ...]]:
    """By case: each wrong answer that enough targets gave, with their names."""
    answers: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for tally in cases:
        if tally.wrong is not None and tally.wrong != NO_ANSWER and tally.valid and not tally.passes:
            answers[tally.case][tally.wrong].append(tally.target)
    alike = {
        case: tuple((wrong, tuple(sorted(names))) for wrong, names in sorted(by_wrong.items()) if len(names) >= ALIKE)
        for case, by_wrong in answers.items()
    }
    return {case: found for case, found in alike.items() if found}


def reviewed_digest(suite: Suite, case: Case) -> str:
    """What a review is about: the case with its gold, the tools and the fixed prompt that go with it."""
    return digest_of(
        "reviewed-case",
        {
            "case": case.model_dump(mode="json"),
            "tools": [tool.model_dump(mode="json") for tool in suite.tools(case)],
            "prompt": None if case.prompt is None else suite.prompts[case.prompt],
        },
    )


def _latest(reviews: Sequence[GoldReviewed], suite: Suite, protocol: str) -> dict[str, GoldReviewed]:
    """By case the latest review of it as it stands, or, where there is none, of it as it was.

    Of two at the same moment it is the one that finds the gold wrong.
    """
    ours = [review for review in reviews if review.protocol == protocol and review.case in suite.by_id]
    order = sorted(ours, key=lambda r: (_of(r, suite), r.at, not r.stands, r.note, r.by))
    return {review.case: review for review in order}


def _of(review: GoldReviewed, suite: Suite) -> bool:
    """Whether it is about the case as it stands."""
    return review.case_digest in {None, reviewed_digest(suite, suite.by_id[review.case])}
