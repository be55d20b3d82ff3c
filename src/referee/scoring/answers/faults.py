"""Whose fault a signal is: one table, read from the top, the first row that fits decides (bake-off §10).

What follows from the blame: ``INFRA`` is retried, then excluded; ``ACCOUNT`` and ``CONFIG`` are excluded and stop the
target at once; ``CASE`` is excluded and counted apart; ``MODEL`` is graded. HTTP 402 is never the model's.

The names are stable: rows carry them as ``infra_class``. Beside those of the table there are ``timeout``, ``dns``,
``connect``, ``reset``, ``protocol``, ``too_long``, ``killed``, ``withheld``, ``no_answer`` of the transport, and, given
by the readers of shapes, ``refusal``, ``content_filter``, ``malformed_function_call``, ``reasoning_only`` (the
model's) and ``stream_broken``, ``stream_error``, ``error_in_200``, ``not_json``, ``empty_body``, ``pending``,
``cli_error``, ``cli_missing`` (ours), ``reader_failed``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from referee.core.bakeoff import Blame, Fault
from referee.scoring.answers.documents import as_dict, as_list, as_text, clean
from referee.scoring.answers.waiting import retry_after_seconds, wait_in_body

#: Stands for a signal without HTTP status: what an agent CLI prints.
PRINTED = 0

_REQUEST = range(400, 500)
_LOOKED_AT = 4000  # characters of a message
_WORDS = re.IGNORECASE | re.DOTALL


@dataclass(frozen=True, slots=True)
class Signal:
    """What a server or CLI said when it gave no answer.

    Args:
        status: HTTP status, that of an error inside an answer, or ``PRINTED``.
        codes: error codes and types, lower case.
        text: the server's message.
        raw: all of it, for the two exact snippets.
        moderated: whether it carries the metadata of a moderation.
        retry_after: seconds to wait, if told.
    """

    status: int
    codes: frozenset[str] = frozenset()
    text: str = ""
    raw: str = ""
    moderated: bool = False
    retry_after: float | None = None


class _Row(NamedTuple):
    name: str
    blame: Blame
    statuses: range | tuple[int, ...]
    sentence: str
    codes: frozenset[str] = frozenset()
    words: re.Pattern[str] | None = None
    snippet: str | None = None
    only_moderated: bool = False
    only_with_wait: bool = False


def _words(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, _WORDS)


_ANY = range(1000)
_INFRA, _ACCOUNT, _CONFIG, _CASE, _MODEL = Blame.INFRA, Blame.ACCOUNT, Blame.CONFIG, Blame.CASE, Blame.MODEL

_DEGRADED = "DEGRADED function cannot be invoked"
_NOT_FOR_ACCOUNT = "Not found for account"
_QUOTA_CODES = frozenset({"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"})
_QUOTA = _words(r"insufficient_quota|quota exceeded\. check your plan|exceeded your current quota.{0,80}billing")
_LIMITS = _words(r"usage limits?.{0,300}regain access|credit balance is too low")
_PRINTED_LIMITS = _words(
    r"usage limit reached|(?:hit|reached) your (?:(?!rate\b)\w+ ){0,2}limit|out of (?:extra )?usage"  # a rate passes
)
_NOT_PROVISIONED = _words(
    r"endpoint (?:is |has been |was )?(?:currently )?(?:disabled|paused|suspended|scaled to zero|not provisioned)"
    r"|(?:function|model|endpoint) (?:is )?(?:disabled|unprovisioned|not provisioned)|reached its end of life"
)
_CONTEXT = _words(
    r"(?:maximum|max|available)? ?context[ _](?:length|window|size)|prompt is too long|exceed_context_size"
    r"|input (?:is|was) too long|exceeds? the maximum number of tokens|longer than the maximum model length"
)
_FILTERED = _words(
    r"content[ _-]?(?:filter|management|policy|moderation)|safety[ _]system|usage polic|responsibleaipolicy"
    r"|inappropriate content|violat\w+ .{0,80}polic|flagged as potentially"
)
_LOGIN = _words(r"/login|log ?in|api[ _]key|auth method")
_UNKNOWN_MODEL = _words(
    r"model.{0,200}(?:not found|does not exist|not exist|unknown|not available|no access|not supported)"
    r"|(?:unknown|invalid|no such) model|not a valid model|^model: "
)

TABLE: tuple[_Row, ...] = (
    # two exact snippets of hosted functions, whatever stands around them
    _Row("endpoint_degraded", _INFRA, _ANY, "The endpoint is degraded", snippet=_DEGRADED),
    _Row("endpoint_unavailable", _CONFIG, (404,), "The account has no such endpoint", snippet=_NOT_FOR_ACCOUNT),
    _Row("endpoint_unavailable", _CONFIG, _ANY, "The account has no such endpoint", snippet=f"404 {_NOT_FOR_ACCOUNT}"),
    # money
    _Row(
        *("budget_in_flight", _INFRA, (402,), "Credit is held by requests under way"),
        codes=frozenset({"in_flight_budget", "in_flight_budget_exhausted"}),
        words=_words(r"in[ _-]?flight"),
        only_with_wait=True,
    ),
    _Row("payment_required", _ACCOUNT, (402,), "The account has no credit left"),
    _Row(
        *("insufficient_quota", _ACCOUNT, (PRINTED, 400, 403, 429), "The account's quota is used up"),
        codes=_QUOTA_CODES,
        words=_words(r"\binsufficient_quota\b"),  # proxies keep the code in their message alone
    ),
    _Row("insufficient_quota", _ACCOUNT, (PRINTED,), "The account's quota is used up", words=_QUOTA),
    _Row("usage_limit", _ACCOUNT, (PRINTED, 400, 403, 429), "The account's usage limit is reached", words=_LIMITS),
    _Row("usage_limit", _ACCOUNT, (PRINTED,), "The account's usage limit is reached", words=_PRINTED_LIMITS),
    # the way and the other side
    _Row("rate_limited", _INFRA, (429,), "The server limits the rate"),
    _Row("timeout", _INFRA, (408,), "The server gave up waiting"),
    _Row("conflict", _INFRA, (409,), "The server met a conflict"),
    _Row("overloaded", _INFRA, (529,), "The server is overloaded"),
    _Row("server_error", _INFRA, range(500, 600), "The server failed"),
    # our side of the account and the request
    _Row("unauthorized", _CONFIG, (401,), "The credential is not accepted"),
    _Row("moderation", _CASE, (403,), "The case was stopped by moderation", only_moderated=True),
    _Row("endpoint_unavailable", _CONFIG, _REQUEST, "The endpoint is not in service", words=_NOT_PROVISIONED),
    _Row("endpoint_unavailable", _CONFIG, (410,), "The endpoint is gone"),
    _Row("forbidden", _CONFIG, (403,), "The account may not do this"),
    # the case
    _Row("too_large", _CASE, (413,), "The case is too large for the server"),
    _Row("context_length", _CASE, (400, 422), "The case is too long", codes=frozenset({"context_length_exceeded"})),
    _Row("context_length", _CASE, (PRINTED, 400, 422), "The case is too long for the model", words=_CONTEXT),
    # the model
    _Row(
        *("malformed_function_call", _MODEL, (400, 422), "The model wrote a call that the server could not read"),
        codes=frozenset({"tool_use_failed", "malformed_function_call"}),
        words=_words(r"\b(?:tool_use_failed|malformed_function_call)\b"),
    ),
    _Row(
        *("content_filter", _MODEL, (400, 422), "A content filter stopped the answer"),
        codes=frozenset({"content_filter", "content_policy_violation", "data_inspection_failed", "invalid_prompt"}),
    ),
    _Row("content_filter", _MODEL, (PRINTED, 400, 422), "A content filter stopped the answer", words=_FILTERED),
    _Row("output_limit", _MODEL, (PRINTED,), "The answer was too long", words=_words(r"output token maximum")),
    # the rest of what our request may be
    _Row("unknown_model", _CONFIG, (400, 404, 422), "There is no such model", codes=frozenset({"model_not_found"})),
    _Row("unknown_model", _CONFIG, (400, 404, 422), "There is no such model", words=_UNKNOWN_MODEL),
    _Row("not_found", _CONFIG, (404,), "There is nothing at this address"),
    _Row("request_rejected", _CONFIG, _REQUEST, "The server rejects the request"),
    _Row("redirected", _CONFIG, range(300, 400), "The server points to another address, which is not followed"),
)

#: What agent CLIs print of the way. A server that says the same speaks of its own inside, and is not asked here.
_OF_THE_WAY: tuple[_Row, ...] = (
    _Row("unauthorized", _CONFIG, (PRINTED,), "The CLI is not logged in", words=_LOGIN),
    _Row("timeout", _INFRA, (PRINTED,), "The CLI's request timed out", words=_words(r"timed? ?-?out|deadline")),
    _Row("dns", _INFRA, (PRINTED,), "The CLI found no address", words=_words(r"enotfound|eai_again|getaddrinfo")),
    _Row("reset", _INFRA, (PRINTED,), "The CLI lost its connection", words=_words(r"econnreset|socket hang up|reset")),
    _Row("connect", _INFRA, (PRINTED,), "The CLI did not reach it", words=_words(r"econnrefused|connection|fetch fai")),
)

#: Error codes and types that stand for an HTTP status, where an error comes without one.
STATUS_OF_CODE: dict[str, int] = {
    "overloaded_error": 529,
    "overloaded": 529,
    "api_error": 500,
    "server_error": 500,
    "internal_error": 500,
    "internal_server_error": 500,
    "internal": 500,
    "unavailable": 503,
    "service_unavailable": 503,
    "timeout_error": 504,
    "deadline_exceeded": 504,
    "timeout": 408,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "rate_limited": 429,
    "too_many_requests": 429,
    "resource_exhausted": 429,
    "insufficient_quota": 429,
    "billing_error": 402,
    "payment_required": 402,
    "insufficient_credits": 402,
    "authentication_error": 401,
    "unauthenticated": 401,
    "unauthorized": 401,
    "invalid_api_key": 401,
    "permission_error": 403,
    "permission_denied": 403,
    "not_found_error": 404,
    "not_found": 404,
    "model_not_found": 404,
    "request_too_large": 413,
    "invalid_request_error": 400,
    "invalid_argument": 400,
    "failed_precondition": 400,
    "bad_request": 400,
    "badrequesterror": 400,
    "context_length_exceeded": 400,
    "exceed_context_size_error": 400,
    "content_filter": 400,
    "content_policy_violation": 400,
    "data_inspection_failed": 400,
    "invalid_prompt": 400,
    "tool_use_failed": 400,
    "malformed_function_call": 400,
}

#: How a transport can break: stable name and sentence; always INFRA.
_BROKE: dict[str, tuple[str, str]] = {
    "timeout": ("timeout", "No whole answer came within the deadline"),
    "dns": ("dns", "The host's name could not be resolved"),
    "connect": ("connect", "No connection came about"),
    "reset": ("reset", "The connection was cut"),
    "protocol": ("protocol", "The other side broke the transport's protocol"),
    "too-long": ("too_long", "The answer went beyond the lane's cap"),
    "killed": ("killed", "The CLI was killed"),
    "withheld": ("withheld", "The answer carried a credential, so it was not kept"),
}


def of_transport(broke: str, detail: str, retry_after: float | None = None) -> Fault:
    """The fault of a transport that broke."""
    name, sentence = _BROKE.get(broke, ("protocol", "The transport broke in an unknown way"))
    return infra(name, sentence, detail, retry_after=retry_after)


def of_signal(
    signal: Signal,
    *,
    where: str = "",
    otherwise: tuple[str, str] | None = None,
    excerpt: str | None = None,
    by_cli: bool = False,
) -> Fault:
    """The fault that the table gives for a signal.

    Args:
        signal: what was said.
        where: in which place it stood, for the sentence.
        otherwise: name and sentence of the INFRA fault where no row fits.
        excerpt: what the sentence quotes, where that is not the whole text.
        by_cli: an agent CLI printed it.
    """
    said_of_it = signal.text if excerpt is None else excerpt
    for row in (*TABLE, *_OF_THE_WAY) if by_cli else TABLE:
        if _fits(row, signal):
            said = where or (f"HTTP {signal.status}" if signal.status else "")
            return Fault(
                blame=row.blame,
                name=row.name,
                sentence=_sentence(f"{row.sentence} ({said})" if said else row.sentence, said_of_it),
                retry_after=signal.retry_after,
            )
    name, sentence = otherwise or ("no_answer", f"The server gave no answer (HTTP {signal.status})")
    return infra(name, sentence, said_of_it, retry_after=signal.retry_after)


def of_response(status: int, headers: Mapping[str, str], document: Any, raw: str) -> Fault:
    """The fault of an HTTP response that is no 2xx: the outer status counts."""
    return of_signal(signal_of(document, raw, status=status, headers=headers))


def of_inner_error(error: Any, headers: Mapping[str, str], *, where: str, name: str) -> Fault:
    """The fault of an error inside an answer of HTTP 200 or a stream: by its inner code, else INFRA by ``name``."""
    signal = signal_of({"error": error}, as_text(error), status=None, headers=headers)
    return of_signal(signal, where=where, otherwise=(name, f"An error came in place of an answer ({where})"))


def of_no_answer(document: Mapping[str, Any], headers: Mapping[str, str], sentence: str) -> Fault:
    """The fault of a document of HTTP 200 without an answer in it: by the code that stands there instead, if any."""
    signal = signal_of(document, "", status=None, headers=headers)
    return of_signal(signal, where="error inside HTTP 200", otherwise=("error_in_200", sentence))


def infra(name: str, sentence: str, detail: str = "", *, retry_after: float | None = None) -> Fault:
    """A fault of the way."""
    return Fault(blame=Blame.INFRA, name=name, sentence=_sentence(sentence, detail), retry_after=retry_after)


def of_model(name: str, sentence: str, detail: str = "") -> Fault:
    """A fault of the model: graded."""
    return Fault(blame=Blame.MODEL, name=name, sentence=_sentence(sentence, detail))


def signal_of(document: Any, raw: str, *, status: int | None, headers: Mapping[str, str]) -> Signal:
    """What an error's document says, in any of the forms that servers use; ``raw`` where it has none of them."""
    body = as_dict(as_list(document)[0]) if as_list(document) else as_dict(document)
    error = body.get("error")
    error = as_list(error)[0] if as_list(error) else error
    parts = [part for part in (as_dict(error), body) if part]
    messages: list[Any] = [error] if isinstance(error, str) else []
    codes: dict[str, None] = {}  # in the order in which they tell: a type is the least
    inner = _status_in(error)
    moderated = False
    wait = retry_after_seconds(headers)
    for part in parts:
        metadata = as_dict(part.get("metadata"))
        messages += [part.get(key) for key in ("message", "detail", "title")]
        messages += [metadata.get(key) for key in ("raw", "reason")]
        moderated = moderated or bool(metadata.get("reasons")) or "flagged_input" in metadata
        wait = wait_in_body(part) if wait is None else wait
        for key in ("code", "status", "status_code", "error_type", "type"):
            value = part.get(key)
            if isinstance(value, str):
                codes[value.strip().casefold()] = None
            inner = _status_in(value) if inner is None else inner
    if inner is None:
        inner = next((STATUS_OF_CODE[code] for code in codes if code in STATUS_OF_CODE), None)
    inside = {str(as_dict(part.get("innererror")).get("code")).casefold() for part in parts if "innererror" in part}
    text = " ".join(_message_of(message) for message in messages if message)
    return Signal(
        status=status if status is not None else inner or PRINTED,
        codes=frozenset(codes) | inside,
        text=text[:_LOOKED_AT] or clean(raw[:_LOOKED_AT]),
        raw=raw or text,
        moderated=moderated,
        retry_after=wait,
    )


def _message_of(value: Any) -> str:
    """A message: text, an object that holds one, or a list of validation errors."""
    if isinstance(value, list):
        return " ".join(as_text(as_dict(item).get("msg")) for item in value)
    return as_text(value) or as_text(as_dict(value).get("message"))


def _status_in(value: Any) -> int | None:
    if isinstance(value, str) and len(value) == len("500") and value.isdecimal():
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool) and 400 <= value <= 599:  # noqa: PLR2004 - HTTP errors
        return value
    return None


def _fits(row: _Row, signal: Signal) -> bool:
    if signal.status not in row.statuses:
        return False
    if (row.only_moderated and not signal.moderated) or (row.only_with_wait and signal.retry_after is None):
        return False
    if row.snippet is not None:
        return row.snippet in signal.raw or row.snippet in signal.text
    if row.codes or row.words is not None:
        by_words = row.words is not None and row.words.search(signal.text) is not None
        return by_words or not row.codes.isdisjoint(signal.codes)
    return True


def _sentence(sentence: str, detail: str) -> str:
    """One sentence with an excerpt of what was said; cut between words only, so that no half of anything is kept."""
    words = "".join(mark if mark.isprintable() else " " for mark in clean(detail[:_LOOKED_AT])).split()
    if len(detail) >= _LOOKED_AT:  # the last word may be half a word
        words = words[:-1]
    excerpt = ""
    for word in words:
        if len(excerpt) + len(word) >= 200:  # noqa: PLR2004 - enough to know it again
            excerpt += " …"
            break
        excerpt = f"{excerpt} {word}" if excerpt else word
    return f"{sentence}: {excerpt}" if excerpt else f"{sentence}."
