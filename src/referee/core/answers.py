"""An answer after it was read by its shape: which calls were given, and in what form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from referee.core.bakeoff import Fault


@dataclass(frozen=True, slots=True)
class GivenCall:
    """One call that the model gave: the name as it was sent to the model, the arguments as an object.

    ``flags`` say what the reader had to do or saw: ``repaired``, ``duplicate-keys``, ``unwrapped``, ``template-leak``.
    """

    name: str
    arguments: dict[str, Any]
    flags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Reading:
    """One answer, read.

    Args:
        calls: the calls of the first choice, in order.
        text: what was said beside them, reasoning left out.
        well_formed: the answer had the form of its surface and nothing was repaired.
        broken: None, or the format failure (``arguments``, ``truncated``, ``empty``, ``envelope``, ``no-function``, …):
            such an answer is graded as failed and never passes as an abstention.
        broken_detail: one sentence on it.
        fault: None, or why the answer is no answer of the model (or a refusal that is one: ``Blame.MODEL``).
        flags: of the whole answer, those of its calls included: ``content_fallback``, ``stop-with-calls``, ….
        model: the model as the server names it.
        provenance: what else names the serving backend (system fingerprint, provider), as ``key=value`` pairs.
    """

    calls: tuple[GivenCall, ...] = ()
    text: str = ""
    well_formed: bool = True
    broken: str | None = None
    broken_detail: str = ""
    fault: Fault | None = None
    flags: tuple[str, ...] = ()
    finish: str | None = None
    model: str | None = None
    provenance: tuple[str, ...] = ()
    input_tokens: int | None = None
    cached_tokens: int | None = None
    output_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Grade:
    """What the deterministic grader says of an answer.

    Args:
        passed: None when the attempt is excluded.
        well_formed: None when the attempt is excluded.
        reason: one sentence that a person understands; of a pass too.
        flags: what is to be counted apart (``repaired``, ``duplicate-call``, ``content_fallback`` …).
        wrong: the normalised wrong answer as canonical text (calls, or that there was none); None for a pass, for a
            format failure and for an excluded attempt.
        fault: why the attempt is excluded, or the model's own fault.
    """

    passed: bool | None
    well_formed: bool | None
    reason: str
    flags: tuple[str, ...] = ()
    wrong: str | None = None
    fault: Fault | None = None
