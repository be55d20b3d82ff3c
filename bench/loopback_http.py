"""The HTTP/1.1 of the benchmarks' servers, straight on an asyncio protocol: as little work a request as can be."""

from __future__ import annotations

import asyncio
import re
from abc import abstractmethod
from collections.abc import Callable

LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)


class Connection(asyncio.Protocol):
    """One kept-alive connection: takes whole requests off what came, one after the other, and has them answered."""

    def __init__(self) -> None:
        self.waiting = b""
        self.transport: asyncio.Transport | None = None

    @abstractmethod
    def asked(self, head: bytes, body: bytes) -> None:
        """Answer one request, now or later."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep where to answer."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        """Take whole requests off what came."""
        self.waiting += data
        while (end := self.waiting.find(b"\r\n\r\n")) >= 0:
            head = self.waiting[:end]
            found = LENGTH.search(head)
            whole = end + 4 + (int(found.group(1)) if found else 0)
            if len(self.waiting) < whole:
                return
            body, self.waiting = self.waiting[end + 4 : whole], self.waiting[whole:]
            self.asked(head, body)

    def write(self, data: bytes) -> None:
        """Send these bytes, where somebody still listens."""
        if self.transport is not None and not self.transport.is_closing():
            self.transport.write(data)

    def send(self, body: bytes) -> None:
        """Answer with JSON."""
        head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
        self.write(head.encode() + body)


async def serve(connection: Callable[[], Connection]) -> None:
    """Listen on a free port of loopback, print it, and serve until killed."""
    server = await asyncio.get_running_loop().create_server(connection, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()
