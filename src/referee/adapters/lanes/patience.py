"""Looks at an endpoint before the first question, as patiently as the protocol lays down for calls (§10, §11)."""

from __future__ import annotations

import asyncio
from http import HTTPStatus

from referee.adapters.lanes.http import Http
from referee.adapters.lanes.surfaces import SHAPES
from referee.core.bakeoff import Blame, Retry, Target
from referee.protocols import Said
from referee.scoring.answers import read

#: Who gives no protocol looks once.
ONCE = Retry(tries=1)
#: A server that asks for a longer wait before the first question is not waited for, seconds.
_LONGEST_WAIT = 120.0
#: Nobody is there: a run fails closed at once.
_UNSENT = {"dns", "connect"}


async def look(http: Http, target: Target, path: str, body: bytes | None, seconds: float, *, retry: Retry) -> Said:
    """One look, again after an infrastructure error as often as the protocol allows; the last answer counts.

    Args:
        http: the client.
        target: whose surface the answer speaks.
        path: below the base URL.
        body: JSON to post, or None to get.
        seconds: deadline of each try.
        retry: tries and waits; a server's ``Retry-After`` wins.
    """
    tries = 0
    while True:
        said = await http.call("GET" if body is None else "POST", path, body, seconds)
        tries += 1
        wait = _wait(said, target, tries, retry, looked_up=body is None)
        if wait is None:
            return said
        await asyncio.sleep(wait)


def _wait(said: Said, target: Target, tries: int, retry: Retry, *, looked_up: bool) -> float | None:
    """Seconds until the next try; None where there is none."""
    if tries >= retry.tries or said.broke in _UNSENT:
        return None
    if looked_up and said.broke is None and said.status == HTTPStatus.OK:
        return None  # a catalogue is no answer of a model: it is not read as one
    fault = read(
        said.status,
        said.headers,
        said.body,
        broke=said.broke,
        detail=said.detail,
        streamed=False,
        shape=SHAPES[target.lane],
        inlined=False,
    ).fault
    if fault is None or fault.blame is not Blame.INFRA:
        return None
    if fault.retry_after is not None:
        return None if fault.retry_after > _LONGEST_WAIT else fault.retry_after
    return min(retry.most_seconds, retry.first_seconds * retry.factor ** (tries - 1))
