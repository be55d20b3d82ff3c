"""What is kept of an answer: all of it, without any credential; or a note that it carried one, and no more.

An answer is redacted as it stands. Then everything that the reader joins out of it is looked into: a server can cut a
credential so that it is in no piece and yet in the whole. Where it is found there, the body is withheld, and the
attempt is excluded: by the kept bytes, so whoever reads them again comes to the same verdict.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

from referee.adapters.store.answers import KeptAnswer
from referee.core.answers import Reading
from referee.core.bakeoff import Surface
from referee.core.redaction import Redactor
from referee.errors import InternalError, RefereeError
from referee.protocols import LaneFacts, Said
from referee.runner.bakeoff.verdict import read_kept

#: How a body that had to be withheld broke, for the reader.
WITHHELD = "withheld"


def keep(said: Said, redactor: Redactor, surface: Surface) -> tuple[KeptAnswer, Reading]:
    """An answer as it is kept, and its reading: no credential is left in either.

    Args:
        said: as it came.
        redactor: of the run's credentials.
        surface: how the lane's answers are read.
    """
    kept = KeptAnswer(
        said.status, said.headers, said.body, said.broke, said.detail, said.streamed, round(said.latency_ms, 3)
    )
    reading = read_kept(kept, surface)
    if not _carries(kept, reading, redactor):
        return kept, reading
    kept = _redacted(kept, redactor)
    reading = read_kept(kept, surface)
    if kept.body == redactor.withheld or _carries(kept, reading, redactor):
        kept = _withheld(kept, redactor)
        reading = read_kept(kept, surface)
    return kept, reading


def without_credentials(facts: LaneFacts, redactor: Redactor) -> LaneFacts:
    """What a start-up check found, without any credential: servers quote them there too."""
    return LaneFacts(
        model=redactor.redact_text(facts.model),
        verified={name: redactor.redact_text(value) for name, value in facts.verified.items()},
        said={name: redactor.redact(data) for name, data in facts.said.items()},
        pins={name: redactor.redact_text(value) for name, value in facts.pins.items()},
    )


@contextlib.contextmanager
def without_secrets(redactor: Redactor) -> Iterator[None]:
    """No error leaves this block with a credential in its words."""
    try:
        yield
    except RefereeError as exc:
        message, todo = redactor.redact_text(exc.message), redactor.redact_text(exc.todo)
        raise type(exc)(message, todo=todo) from None
    except (OSError, asyncio.CancelledError, KeyboardInterrupt):
        raise
    except Exception as exc:  # noqa: BLE001 — whatever it says may quote an answer
        raise InternalError(redactor.redact_text(f"{type(exc).__name__}: {exc}")) from None


def _carries(kept: KeptAnswer, reading: Reading, redactor: Redactor) -> bool:
    """Whether a credential stands in an answer, or in what the reader makes of it."""
    if redactor.empty:
        return False
    head = "\n".join((kept.detail, *kept.headers, *kept.headers.values()))
    # What stands in the body as it was read is looked at with it.
    apart = [text for text in _texts(reading) if text not in kept.body]
    if redactor.holds_any([kept.body, head.encode("utf-8", "surrogatepass"), *apart]):
        return True
    # Nobody joins the pieces of reasoning, or of a stream that breaks off; and yet they stand there in order.
    cut = kept.streamed or b"\n" in kept.body or b"\r" in kept.body or kept.body.count(b'"text"') > 1
    return cut and redactor.holds_pieces(kept.body)


def _texts(reading: Reading) -> Iterator[bytes]:
    """What a row or a message may quote; what may be pieces of one value is joined."""
    sentence = reading.fault.sentence if reading.fault is not None else ""
    for text in (reading.text, reading.broken_detail, sentence, reading.finish, reading.model, *reading.provenance):
        if text:
            yield text.encode("utf-8", "surrogatepass")
    if reading.calls:
        values: list[str] = []
        names: list[str] = []
        for call in reading.calls:
            names.append(call.name)
            _gather(call.arguments, names, values)
        yield "".join(values).encode("utf-8", "surrogatepass")
        yield "".join(names).encode("utf-8", "surrogatepass")


def _gather(value: Any, names: list[str], values: list[str]) -> None:
    """The texts and the names of members of a JSON value, in order; the reader bounds how deep it nests."""
    if isinstance(value, str):
        values.append(value)
    elif isinstance(value, dict):
        for name, one in value.items():
            names.append(name)
            _gather(one, names, values)
    elif isinstance(value, list):
        for one in value:
            _gather(one, names, values)


def _redacted(kept: KeptAnswer, redactor: Redactor) -> KeptAnswer:
    body = redactor.redact_stream(kept.body)
    headers: Mapping[str, str] = redactor.redact_value(dict(kept.headers))
    detail = redactor.redact_text(kept.detail)
    return KeptAnswer(kept.status, headers, body, kept.broke, detail, kept.streamed, kept.latency_ms)


def _withheld(kept: KeptAnswer, redactor: Redactor) -> KeptAnswer:
    """The answer without its body; a header or detail that is still suspect goes with it."""
    lines = {name: value for name, value in kept.headers.items() if name in _PLAIN_HEADERS}
    return KeptAnswer(
        kept.status,
        redactor.redact_value(lines),
        redactor.withheld,
        kept.broke or WITHHELD,
        "" if kept.broke is None else redactor.redact_text(kept.detail),
        kept.streamed,
        kept.latency_ms,
    )


#: What a reader needs of the headers of an answer that is withheld.
_PLAIN_HEADERS = frozenset({"content-type", "retry-after", "retry-after-ms", "x-should-retry"})
