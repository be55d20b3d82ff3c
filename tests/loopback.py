"""Servers of the tests on loopback: listening on every path, and running in a thread beside the test."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from typing import TypeVar

from aiohttp import web
from aiohttp.typedefs import Handler

T = TypeVar("T")

#: Conversations grow: what a client may send at once.
MAX_BODY = 64 * 2**20


async def listen(handler: Handler, *, address: str = "127.0.0.1", port: int = 0) -> web.AppRunner:
    """Have ``handler`` answer every path; a handler whose client went away is cancelled."""
    app = web.Application(client_max_size=MAX_BODY)
    app.router.add_route("*", "/{tail:.*}", handler)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.2, handler_cancellation=True)
    await runner.setup()
    await web.TCPSite(runner, address, port).start()
    return runner


def port_of(runner: web.BaseRunner) -> int:
    """The port that was given or chosen."""
    return int(runner.addresses[0][1])


@contextlib.contextmanager
def beside_the_test(server: AbstractAsyncContextManager[T]) -> Iterator[T]:
    """``server`` is entered in a thread with a loop of its own, and left with all that still runs."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        given = asyncio.run_coroutine_threadsafe(server.__aenter__(), loop).result(10)
        try:
            yield given
        finally:
            asyncio.run_coroutine_threadsafe(server.__aexit__(None, None, None), loop).result(10)
    finally:
        asyncio.run_coroutine_threadsafe(_end_the_rest(), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()


async def _end_the_rest() -> None:
    rest = asyncio.all_tasks() - {asyncio.current_task()}
    for task in rest:
        task.cancel()
    await asyncio.gather(*rest, return_exceptions=True)
