"""The standard output of an agent CLI: the final text is found in it, whatever it is wrapped in.

The exit status can be 0 on an API error: the result's own error flag and text are read. The envelope itself is looked
for in the final text (``intext.read_envelope``).
"""

from __future__ import annotations

import json
import re

from referee.core.bakeoff import Blame, Fault
from referee.scoring.answers import faults
from referee.scoring.answers.cli_events import Final, final_of, is_of_events
from referee.scoring.answers.documents import clean, decode
from referee.scoring.answers.faults import PRINTED, STATUS_OF_CODE, Signal
from referee.scoring.answers.intext import objects_in
from referee.scoring.answers.parts import Parts

_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)")
_STATUS = re.compile(
    r"(?:API Error|API error|status(?: ?code)?|HTTP(?:/[\d.]+)?|http|code|Error|error)\W{0,4}(?P<status>[45]\d\d)\b"
    r"|\((?P<bracketed>[45]\d\d)\)"
    r"|(?P<before>[45]\d\d) (?:Too Many Requests|Unauthorized|Forbidden|Payment Required|Internal Server|Bad Gateway"
    r"|Service Unavailable|Gateway Time|Bad Request|Not Found|status)"
)
_CODE = re.compile(r"[A-Za-z]+(?:_[A-Za-z]+)+|UNAVAILABLE|INTERNAL|UNAUTHENTICATED")
#: How CLIs begin what is no answer of a model. Anchored: prose that speaks of errors is not meant.
_ERROR_TEXT = re.compile(
    r"\[?\s*API Error\b|(?:stream )?error: |ERROR:? |Credit balance is too low|Invalid API key\b"
    r"|Claude (?:AI |Code )?usage limit reached|You've (?:hit|reached) your |Please run /login|Not logged in"
    r"|Error: (?=.{0,80}(?:\b[45]\d\d\b|fetch failed|E[A-Z]{6,}|timed out|API key|quota|limit))"
    r"|(?:HTTP(?:/[\d.]+)?|Error) [45]\d\d(?=:|\s*\Z| (?:Too Many|Unauthorized|Forbidden|Payment R|Internal S|Bad [RG]"
    r"|Service U|Gateway T))"
    r"|(?:[45]\d\d (?:Too Many Requests|Unauthorized|Forbidden|Payment Required|Internal Server Error|Bad Gateway"
    r"|Bad Request|Service Unavailable|Gateway Time-?[Oo]ut)|Too [Mm]any [Rr]equests)(?=\s*(?:[^\w\s]|\Z|\n|[Pp]lease))"
    r"|Usage limit reached"
    r"|Request timed out|Connection error|Your account does not have access|Quota exceeded|Rate limit"
)
#: How a system says that a program is not there or is none; that it had no room for a process passes.
_NOT_EXECUTABLE = re.compile(r"No such file|Permission denied|Exec format|Not a directory|Is a directory")
_LOOKED_AT = 4000
_KILLED = {130, 134, 137, 139, 143}
_MISSING = {126, 127}


def parts_of(status: int | None, body: bytes, *, broke: str | None, detail: str) -> Parts | Fault:
    """Take the standard output of a CLI apart."""
    if broke == "connect" and _NOT_EXECUTABLE.search(detail):
        return Fault(blame=Blame.CONFIG, name="cli_missing", sentence=f"The CLI could not be started: {detail}.")
    if broke is not None:
        return faults.of_transport(broke, detail)
    text, sound = decode(body)
    text = _ESCAPES.sub("", text).replace("\r\n", "\n").strip()
    final = final_of(text)
    if final.error is not None and _ERROR_TEXT.match(text) and not is_of_events(text):
        final.error = text  # a document behind such words does not say all
    if status != 0:
        return _of_exit(status, final.error or final.text or detail, detail)
    if fault := _of_output(text, final, detail):
        return fault
    parts = _parts(final)
    if not sound:
        parts.flags.append("not-utf-8")
    return parts


def _of_output(text: str, final: Final, detail: str) -> Fault | None:
    """The fault that exit status 0 hides."""
    if not text:
        said = _ERROR_TEXT.search(detail)
        return fault_of_text(detail) if said else faults.infra("empty_body", "The CLI printed nothing", detail)
    if final.error is not None:
        return fault_of_text(final.error)
    if not final.ended:
        return faults.infra("stream_broken", "The CLI's events ended before its turn did")
    if _ERROR_TEXT.match(final.text) and '"tool_calls"' not in final.text:
        return fault_of_text(final.text)
    return None


def fault_of_text(text: str) -> Fault:
    """Whose fault it is by what a CLI printed of an error, at its beginning or end: a status, a code or its words."""
    if len(text) > 2 * _LOOKED_AT:
        text = f"{text[:_LOOKED_AT]}\n{text[-_LOOKED_AT:]}"
    documents = [
        value for value, _ in objects_in(text) if isinstance(value, dict) and ("error" in value or "code" in value)
    ]
    signal = faults.signal_of(documents[-1] if documents else None, text, status=None, headers={})
    status = signal.status or _status_in(text)
    codes = signal.codes | {word.casefold() for word in _CODE.findall(text)}
    if not status:
        status = next((STATUS_OF_CODE[code] for code in sorted(codes) if code in STATUS_OF_CODE), PRINTED)
    found = Signal(status, codes, clean(f"{signal.text}\n{text}"), raw=text, moderated=signal.moderated)
    return faults.of_signal(
        found,
        excerpt=signal.text,
        where=f"printed by the CLI, status {status}" if status else "printed by the CLI",
        otherwise=("cli_error", "The CLI reports an error"),
        by_cli=True,
    )


def _of_exit(status: int | None, text: str, detail: str) -> Fault:
    if status is None:
        return faults.infra("no_answer", "The CLI gave no exit status", detail)
    if status in _MISSING:
        return Fault(
            blame=Blame.CONFIG,
            name="cli_missing",
            sentence=f"The CLI could not be started (exit status {status}).",
        )
    if status < 0 or status in _KILLED:
        return faults.infra("killed", f"The CLI was killed (exit status {status})", detail)
    fault = fault_of_text(text if text == detail else f"{text} {detail}")
    if fault.name == "cli_error":
        return faults.infra("cli_error", f"The CLI failed with exit status {status}", text)
    return fault


def _status_in(text: str) -> int:
    match = _STATUS.search(text)
    return int(match["status"] or match["bracketed"] or match["before"]) if match else PRINTED


def _parts(final: Final) -> Parts:
    parts = Parts(text=clean(final.text), stops_by_call=False)
    if final.structured is not None and not final.text.strip():
        parts.text = clean(json.dumps(final.structured, ensure_ascii=False))
    parts.finish = final.finish
    parts.model = clean(final.model) if final.model else None
    parts.provenance = tuple(clean(fact) for fact in final.provenance)
    parts.input_tokens = final.input_tokens
    parts.cached_tokens = final.cached_tokens
    parts.output_tokens = final.output_tokens
    parts.flags.extend(final.flags)
    return parts
