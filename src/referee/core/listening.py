"""The kernel's tables of listening sockets, as a machine tells them in lines of plain ASCII."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from typing import Literal

from referee.core.records import ListenerFacts

_IPV4_DIGITS = 8
_IPV6_DIGITS = 32
_MOST_ARGV = 4_000

_Over = Literal["udp", "unix"] | None
_Socket = tuple[int, str, str, int]


def read_listening(text: str) -> tuple[ListenerFacts, ...]:
    """The listeners that some process holds, in order of port and address.

    Args:
        text: lines ``row VERSION ADDRESS:PORT UID INODE`` (hexadecimal as in ``/proc/net/tcp``; a ``u`` before the
            version for UDP), ``unix INODE PATH``, ``socket INODE PID``, and ``exe|cwd|argv PID HEX``. Other lines are
            passed over.
    """
    rows: list[tuple[str, int, str, _Over]] = []
    holders: dict[str, list[int]] = {}
    told: dict[tuple[str, str], bytes] = {}
    for line in text.splitlines():
        match line.split():
            case ["row", version, local, _, inode]:
                place = _place(local, version.removeprefix("u"))
                if place is not None:
                    rows.append((*place, inode, "udp" if version.startswith("u") else None))
            case ["unix", inode, *_]:
                rows.append((line.split(None, 2)[-1], 0, inode, "unix"))
            case ["socket", inode, pid] if pid.isdigit():
                holders.setdefault(inode, []).append(int(pid))
            case [("exe" | "cwd" | "argv") as name, pid, value]:
                told[name, pid] = _bytes(value)
    found: dict[tuple[int, str, int, str], ListenerFacts] = {}
    for address, port, inode, over in rows:
        for holder in sorted(set(holders.get(inode, ()))):
            found[port, address, holder, over or ""] = ListenerFacts(
                port=port,
                address=address,
                pid=holder,
                executable=_link(told.get(("exe", str(holder)))),
                argv=_argv(told.get(("argv", str(holder)), b"")),
                cwd=_link(told.get(("cwd", str(holder)))),
                over=over,
            )
    return tuple(found[key] for key in sorted(found))


def merged(looks: Iterable[tuple[ListenerFacts, ...]]) -> tuple[ListenerFacts, ...]:
    """What was seen in several looks, each once, in order of port, address and process.

    A process that was seen dying tells less than it did before: then what it told before stands.
    """
    every: dict[tuple[_Socket, tuple[str, ...]], ListenerFacts] = {}
    for look in looks:
        for one in look:
            every.setdefault((_socket(one), one.argv), one)
    told = {_socket(one) for one in every.values() if one.argv}
    kept = [one for one in every.values() if one.argv or _socket(one) not in told]
    return tuple(sorted(kept, key=lambda one: (*_socket(one), one.argv)))


def _socket(one: ListenerFacts) -> _Socket:
    return one.port, one.address, one.over or "", one.pid or 0


def _place(local: str, version: str) -> tuple[str, int] | None:
    address, _, port = local.partition(":")
    try:
        number = int(port, 16)
        if version == "4" and len(address) == _IPV4_DIGITS:
            return str(ipaddress.IPv4Address(bytes.fromhex(address)[::-1])), number
        if version == "6" and len(address) == _IPV6_DIGITS:
            raw = bytes.fromhex(address)
            return str(ipaddress.IPv6Address(b"".join(raw[at : at + 4][::-1] for at in range(0, 16, 4)))), number
    except ValueError:
        pass
    return None


def _bytes(value: str) -> bytes:
    try:
        return bytes.fromhex(value)
    except ValueError:
        return b""


def _link(value: bytes | None) -> str | None:
    text = _text(value or b"").rstrip("\n")
    return text or None


def _argv(value: bytes) -> tuple[str, ...]:
    return tuple(_text(value[:_MOST_ARGV]).removesuffix("\0").split("\0")) if value else ()


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace")
