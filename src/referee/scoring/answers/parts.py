"""What one answer holds, whatever its shape, and how that becomes a reading.

A call is there when it is present, whatever the finish reason says. The finish reason only tells why there is none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from referee.core.answers import GivenCall, Reading
from referee.core.bakeoff import Fault
from referee.scoring.answers import faults
from referee.scoring.answers.arguments import read_arguments
from referee.scoring.answers.documents import as_count, clean
from referee.scoring.answers.intext import Spoken, calls_shown, read_envelope

_LEAK = re.compile(r"<\|\w*|\|>|<\uff5c|\uff5c>|</?(?:tool_call|function|think)\b")
_NOT_FORM = {"repaired", "unwrapped"}
CUT = {
    "length",
    "max_tokens",
    "max_output_tokens",
    "max_new_tokens",
    "model_length",
    "model_context_window_exceeded",
    "pause_turn",
}
_FILTERED = {
    *("content_filter", "content_filtered", "safety", "prohibited_content", "blocklist", "spii", "recitation"),
    *("sensitive", "guardrail_intervened", "image_safety"),
}
_MALFORMED = re.compile(r"malformed_function_call|malformed_tool_call|unexpected_tool_call|tool_use_failed")
#: What stands around reasoning; the last two are Gemini's and Mistral's.
_THOUGHTS = (
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
    ("[THINK]", "[/THINK]"),
)
_OPEN_THOUGHTS = tuple(opening for opening, _ in _THOUGHTS)
_STOPPED = {"stop", "end_turn"}
_CALLED = {"tool_calls", "tool_use", "function_call"}


@dataclass(slots=True)
class Parts:
    """One answer taken apart.

    Args:
        calls: those that can be read.
        text: what was said beside them.
        reasoned: reasoning was given.
        refusal: what the refusal channel says; None where it says nothing.
        finish, native_finish: the finish reason, and that of the upstream provider where a router adds it.
        broken, broken_detail: the first format failure.
        stops_by_call: whether the surface has a finish reason of its own for calls.
    """

    calls: list[GivenCall] = field(default_factory=list)
    text: str = ""
    reasoned: bool = False
    refusal: str | None = None
    finish: str | None = None
    native_finish: str | None = None
    broken: str | None = None
    broken_detail: str = ""
    flags: list[str] = field(default_factory=list)
    model: str | None = None
    provenance: tuple[str, ...] = ()
    input_tokens: int | None = None
    cached_tokens: int | None = None
    output_tokens: int | None = None
    stops_by_call: bool = True

    def add_call(self, name: Any, raw: Any) -> None:
        """Add a call by its name and its arguments as given, or note why it is none."""
        if not isinstance(name, str) or not name.strip():
            self.break_("no-function", "a call is given without the name of a function")
            return
        arguments, flags, broken, detail = read_arguments(raw)
        if arguments is None:
            self.break_(broken or "arguments", detail)
            return
        if not name.isidentifier() and _LEAK.search(name):
            flags = (*flags, "template-leak")
        self.calls.append(GivenCall(clean(name), arguments, flags))

    def break_(self, name: str, detail: str) -> None:
        """Note a format failure; the first one counts."""
        if self.broken is None:
            self.broken, self.broken_detail = name, detail

    def count(self, usage: Mapping[str, Any], given: str, taken: str) -> None:
        """Take the numbers of tokens from a usage object by its names for input and output."""
        self.input_tokens = as_count(usage.get(given))
        self.output_tokens = as_count(usage.get(taken))


def is_models_own(reason: str | None) -> bool:
    """Whether a finish reason tells of the model's own fault: a call that is malformed, an answer that is filtered."""
    if reason is None:
        return False
    said = reason.casefold()
    return said in _FILTERED or _MALFORMED.search(said) is not None


def settle(parts: Parts, *, inlined: bool, whole: bool = True) -> Reading:
    """Make a reading of an answer's parts.

    Args:
        parts: the answer taken apart.
        inlined: the schemas stood in the prompt, so that calls are given as an envelope in the text.
        whole: the parts are a whole answer; else an empty one is not called empty.
    """
    flags = parts.flags
    text = _without_reasoning(parts)
    finish = parts.finish.casefold() if parts.finish is not None else ""
    fault: Fault | None = None
    if not parts.calls and parts.broken is None:
        fault = _of_finish(parts, text, finish)
        if fault is None:
            _look_into(parts, text, finish, inlined=inlined, whole=whole)
        elif fault.name in {"reasoning_only", "malformed_function_call"}:
            parts.break_(fault.name, fault.sentence)
    if parts.calls:
        if parts.stops_by_call and finish in _STOPPED:
            flags.append("stop-with-calls")
        elif finish in CUT:
            flags.append("length-with-calls")
        if parts.refusal is not None:
            flags.append("refusal-with-calls")
        for call in parts.calls:
            flags.extend(call.flags)
    elif finish in _CALLED and parts.broken is None:
        flags.append("finish-without-calls")
    return Reading(
        calls=tuple(parts.calls),
        text=text,
        well_formed=parts.broken is None
        and (fault is None or fault.name == "refusal")
        and (not flags or ("content_fallback" not in flags and _NOT_FORM.isdisjoint(flags))),
        broken=parts.broken,
        broken_detail=parts.broken_detail,
        fault=fault,
        flags=tuple(dict.fromkeys(flags)) if flags else (),
        finish=clean(parts.finish) if parts.finish is not None else None,
        model=parts.model,
        provenance=parts.provenance,
        input_tokens=parts.input_tokens,
        cached_tokens=parts.cached_tokens,
        output_tokens=parts.output_tokens,
    )


def _without_reasoning(parts: Parts) -> str:
    """The text without reasoning that a server left in it: ``<think>…</think>`` and its kin at its front."""
    text = parts.text
    front = text.lstrip()
    if "think>" not in text and not front.startswith(_OPEN_THOUGHTS):
        return text
    for opening, closing in _THOUGHTS:
        end = front.find(closing)
        # Templates that write the opening themselves leave only the closing of these.
        begun = opening.startswith("<think") and end >= 0 and opening not in front[:end]
        if front.startswith(opening) or begun:
            parts.reasoned = True
            parts.flags.append("inline-reasoning")
            return front[end + len(closing) :].lstrip() if end >= 0 else ""
    return text


def _of_finish(parts: Parts, text: str, finish: str) -> Fault | None:
    """The model's own fault where it gave no call, by the refusal channel and the finish reasons."""
    native = parts.native_finish.casefold() if parts.native_finish is not None else ""
    if not finish and not native and parts.refusal is None:
        return None
    if _MALFORMED.search(finish) or _MALFORMED.search(native):
        return faults.of_model("malformed_function_call", "The model wrote a call that its server could not read", text)
    if parts.refusal is not None or "refusal" in (finish, native):
        return faults.of_model("refusal", "The model refused", parts.refusal or text)
    if finish in _FILTERED or native in _FILTERED:
        return faults.of_model("content_filter", "A content filter stopped the answer", text)
    if finish in CUT and parts.reasoned and (not text or text.isspace()):
        return faults.of_model(
            "reasoning_only", "The model reasoned until its tokens were used up and answered nothing"
        )
    return None


def _look_into(parts: Parts, text: str, finish: str, *, inlined: bool, whole: bool) -> None:
    """Look into the text of an answer without calls of its own."""
    if not text or text.isspace():
        if "content_fallback" in parts.flags:
            return
        if whole and finish in CUT:
            parts.break_("truncated", "the answer was cut before anything was said")
        elif whole:
            only = "only reasoning was given" if parts.reasoned else "the answer is empty"
            parts.break_("empty", only)
        return
    if inlined:
        _take(parts, read_envelope(text))
        if finish in CUT and parts.broken == "envelope":
            parts.broken, parts.broken_detail = "truncated", "the answer was cut before its envelope was whole"
        return
    shown = calls_shown(text)
    if shown == "call":
        parts.flags.append("content_fallback")
    elif shown == "attempt":
        parts.break_("attempted-call", "a call was attempted in the text and cannot be read")
    if finish in CUT:
        parts.break_("truncated", "the answer was cut off")


def _take(parts: Parts, spoken: Spoken) -> None:
    if spoken.broken is not None:
        parts.break_(spoken.broken, spoken.detail)
        return
    if spoken.repaired:
        parts.flags.append("repaired")
    if spoken.doubled:
        parts.flags.append("duplicate-keys")
    for name, raw in spoken.calls:
        parts.add_call(name, raw)
