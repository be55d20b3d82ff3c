"""What a row says of an answer: the same few lines for the run and for whoever computes it again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from referee.adapters.store.answers import KeptAnswer
from referee.core.answers import Grade, Reading
from referee.core.bakeoff import Blame, Surface
from referee.core.canonical import digest_of
from referee.core.cases import Case, Grading, Tool
from referee.scoring.answers import read
from referee.scoring.toolcalls import judge

#: The runner's own flag: it follows from other cases' answers, not from this one's.
SUSPECT = "suspect_model_output"


def read_kept(kept: KeptAnswer, surface: Surface) -> Reading:
    """One try, read by its surface."""
    return read(
        kept.status,
        kept.headers,
        kept.body,
        broke=kept.broke,
        detail=kept.detail,
        streamed=kept.streamed,
        shape=surface.shape,
        inlined=surface.tool_channel == "inlined",
    )


def verdict(
    case: Case, tools: tuple[Tool, ...], reading: Reading, *, grading: Grading, sent: Mapping[str, str]
) -> dict[str, Any]:
    """The members of a row that follow from the answer alone."""
    grade: Grade = judge(case, tools, reading, grading=grading, sent=sent)
    fault = grade.fault
    excluded = grade.passed is None
    return {
        "passed": grade.passed,
        "well_formed": grade.well_formed,
        "blame": None if fault is None else fault.blame.value,
        "infra_class": fault.name if fault is not None and (excluded or fault.blame is not Blame.MODEL) else None,
        "reason": grade.reason,
        "flags": list(dict.fromkeys((*grade.flags, *reading.flags))),
        "wrong": None if grade.wrong is None else digest_of("wrong", grade.wrong),
        "model_served": reading.model,
        "input_tokens": reading.input_tokens,
        "output_tokens": reading.output_tokens,
    }
