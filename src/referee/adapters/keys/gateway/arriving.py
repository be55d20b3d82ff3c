"""The body of an agent's request, as it arrives: how much of it is taken, and for how long it is waited."""

from __future__ import annotations

import asyncio

from aiohttp import web

from referee.adapters.keys.gateway.unfit import Unfit

#: The largest request that is taken; real ones stay below a few megabytes.
MOST_REQUEST = 8 * 2**20
#: Seconds within which a request's body must have come.
REQUEST_SECONDS = 120.0


async def body_of(request: web.BaseRequest) -> bytes:
    """The whole body of a request.

    Raises:
        Unfit: it is too large, does not come in time, or cannot be unpacked.
    """
    if (request.content_length or 0) > MOST_REQUEST:
        raise Unfit("the request is too large", "body", 413)
    if request.headers.get("expect", "").lower() == "100-continue":
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    parts: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(REQUEST_SECONDS):
            async for part in request.content.iter_any():
                parts.append(part)
                size += len(part)
                if size > MOST_REQUEST:
                    raise Unfit("the request is too large", "body", 413)
    except TimeoutError as exc:
        raise Unfit("the request's body did not come in time") from exc
    except web.RequestPayloadError as exc:
        raise Unfit("the request's body cannot be unpacked") from exc
    return b"".join(parts)
