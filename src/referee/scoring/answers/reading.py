"""The way of one answer: transport, status, document, shape, parts, reading."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from referee.core.answers import Reading
from referee.core.bakeoff import Fault, Shape
from referee.scoring.answers import chat, envelope, faults, messages, ollama, responses, streams
from referee.scoring.answers.documents import UnusableError, as_list, decode, load_body, load_body_or_none
from referee.scoring.answers.parts import Parts, settle
from referee.scoring.answers.waiting import retry_after_seconds

_SHAPES: dict[Shape, Callable[[Mapping[str, Any], Mapping[str, str]], Parts | Fault]] = {
    "openai-chat": chat.parts_of,
    "openai-responses": responses.parts_of,
    "anthropic-messages": messages.parts_of,
    "ollama": ollama.parts_of,
}
_ERROR, _SUCCESS, _ACCEPTED = 400, range(200, 300), 202
#: What 400, 403, 404 and 422 are where nothing is said: with half a body it is not known that nothing was.
_TOLD_BY_BODY = frozenset({"request_rejected", "forbidden", "not_found"})


def read(
    said_status: int | None,
    headers: Mapping[str, str],
    body: bytes,
    *,
    broke: str | None,
    detail: str,
    streamed: bool,
    shape: Shape,
    inlined: bool,
) -> Reading:
    """Read one answer. Never raises, whatever the bytes.

    Args:
        said_status: HTTP status, or the exit status of a CLI; None when no whole head came.
        headers: lower-case names.
        body: as received; of a CLI its standard output.
        broke: None, or how the transport failed.
        detail: one sentence on ``broke``; of a CLI what it said on its standard error may stand here too.
        streamed: whether the body is a stream of events.
        shape: how the surface answers.
        inlined: whether the schemas stood in the prompt and an envelope is expected.

    Returns:
        The reading. Names of functions stand as the server said them; ``input_tokens`` includes cached ones.
    """
    try:
        found = take(
            *(said_status, headers, body),
            broke=broke,
            detail=detail,
            streamed=streamed,
            shape=shape,
        )
        return settle(found, inlined=inlined) if isinstance(found, Parts) else _faulty(found)
    except UnusableError as exc:
        return Reading(well_formed=False, broken=exc.name, broken_detail=exc.detail)
    except Exception as exc:  # noqa: BLE001 - the last net: one answer that trips the reader must not end a run
        return _faulty(faults.infra("reader_failed", "The referee could not read this answer", type(exc).__name__))


def read_message(message: Mapping[str, Any], inlined: bool) -> Reading:
    """Read one message of a chat completion by itself, for golden vectors.

    A ``finish_reason`` in it is taken for that of its choice. Whether the answer is empty is not asked: a message
    without calls is one without calls.
    """
    parts = chat.of_message(message)
    finish = message.get("finish_reason")
    parts.finish = finish if isinstance(finish, str) else None
    return settle(parts, inlined=inlined, whole=False)


def take(
    said_status: int | None,
    headers: Mapping[str, str],
    body: bytes,
    *,
    broke: str | None,
    detail: str,
    streamed: bool,
    shape: Shape,
) -> Parts | Fault:
    """Take an answer apart, or find whose fault it is that there is none.

    Raises:
        UnusableError: the answer is nested too deeply to be one: the model's.
    """
    if shape == "cli-envelope":
        return envelope.parts_of(said_status, body, broke=broke, detail=detail)
    text, sound = decode(body)
    fault = _fault_of_status(said_status, headers, text, broke=broke, detail=detail)
    document = fault or _document(text, headers, streamed=streamed, shape=shape)
    if isinstance(document, Fault):
        return document
    parts = _SHAPES[shape](document, headers)
    if not sound and isinstance(parts, Parts):
        parts.flags.append("not-utf-8")
    return parts


def _fault_of_status(
    status: int | None, headers: Mapping[str, str], text: str, *, broke: str | None, detail: str
) -> Fault | None:
    """The fault of an answer that is none by its transport or its status.

    Where both are bad the status says more, but for those whose meaning stood in the body that did not come.
    """
    if status is not None and (status >= _ERROR or (broke is None and status not in _SUCCESS)):
        fault = faults.of_response(status, headers, load_body_or_none(text), text)
        cut = broke is not None and broke != "withheld"
        if not cut or fault.name not in _TOLD_BY_BODY:
            return fault
    if broke is not None:
        return faults.of_transport(broke, detail, retry_after_seconds(headers))
    if status is None:
        return faults.infra("no_answer", "No answer came", detail)
    if status == _ACCEPTED:
        return faults.infra("pending", "The server put the request off (HTTP 202)")
    if not text or text.isspace():
        return faults.infra("empty_body", f"The answer of HTTP {status} has no body")
    return None


def _document(text: str, headers: Mapping[str, str], *, streamed: bool, shape: Shape) -> dict[str, Any] | Fault:
    """The whole document of an answer, streamed or not; or the error that came in its place."""
    if _is_stream(text, headers, streamed=streamed, shape=shape):
        return streams.assemble(text, shape, headers)
    try:
        document = load_body(text)
    except ValueError:
        return faults.infra("not_json", "The answer of HTTP 200 is not JSON", text[:200])
    if as_list(document):
        document = document[0]
    if not isinstance(document, dict):
        return faults.infra("not_json", "The answer of HTTP 200 is no JSON object")
    error = document.get("error")
    if error:
        return faults.of_inner_error(error, headers, where="error inside HTTP 200", name="error_in_200")
    if document.get("object") == "error" or document.get("type") == "error":
        flat = {key: value for key, value in document.items() if value != "error"}
        return faults.of_inner_error(flat, headers, where="error inside HTTP 200", name="error_in_200")
    return document


def _is_stream(text: str, headers: Mapping[str, str], *, streamed: bool, shape: Shape) -> bool:
    """Whether it is a stream, as asked for; a server that ignores that answers with a document, or the reverse."""
    if shape == "ollama":
        return streamed or "ndjson" in headers.get("content-type", "")
    if text.lstrip().startswith(("{", "[")):
        return False
    return streamed or "event-stream" in headers.get("content-type", "")


def _faulty(fault: Fault) -> Reading:
    return Reading(well_formed=False, fault=fault, broken=None)
