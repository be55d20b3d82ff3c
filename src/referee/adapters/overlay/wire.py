"""Messages between the harness and a machine's first process: a length, JSON, and file descriptors beside it.

Standard library only: the machine's first process imports this without any installed package.
"""

from __future__ import annotations

import array
import json
import os
import socket
import struct
from collections.abc import Sequence
from typing import Any

_LENGTH = struct.Struct("!I")
_MAX_FDS = 8


def send(sock: socket.socket, message: dict[str, Any], fds: Sequence[int] = ()) -> None:
    """Send one message, with file descriptors that the other side receives as its own."""
    body = json.dumps(message).encode()
    data = _LENGTH.pack(len(body)) + body
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
    sent = sock.sendmsg([data], rights)
    if sent < len(data):
        sock.sendall(data[sent:])


def receive(sock: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    """One message and its file descriptors (close-on-exec); None when the other side has gone.

    Raises:
        OSError: the socket failed or its timeout passed.
    """
    fds: list[int] = []
    head = _exactly(sock, _LENGTH.size, fds)
    if head is None:
        return None
    body = _exactly(sock, _LENGTH.unpack(head)[0], fds)
    if body is None:
        for fd in fds:
            os.close(fd)
        return None
    message: dict[str, Any] = json.loads(body)
    return message, fds


def _exactly(sock: socket.socket, size: int, fds: list[int]) -> bytes | None:
    data = bytearray()
    room = socket.CMSG_SPACE(_MAX_FDS * array.array("i").itemsize)
    while len(data) < size:
        part, rights, _, _ = sock.recvmsg(size - len(data), room, socket.MSG_CMSG_CLOEXEC)
        for level, kind, payload in rights:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                numbers = array.array("i")
                numbers.frombytes(payload[: len(payload) - len(payload) % numbers.itemsize])
                fds.extend(numbers)
        if not part:
            return None
        data += part
    return bytes(data)
