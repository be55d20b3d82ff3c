"""The one network of all machines: no way in, none from machine to machine, and blocked networks unreachable.

A machine lives in the network namespace of a small *keeper* container beside it. The keeper alone may set routes
(``NET_ADMIN``); it makes the blocked networks unreachable before the machine starts, and keeps them so while the
machine is killed and started again. The agent can neither change the routes nor reach the keeper's processes.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from typing import Any

from docker.errors import APIError
from docker.types import IPAMConfig, IPAMPool

from referee.adapters.docker.owner import ROLE_LABEL
from referee.errors import EngineUnavailable, UsageError

NETWORK = "referee-machines"
#: Where a free range for the machines' network is looked for: None is the engine's own choice, which avoids what the
#: host's routes know; where its pools have run out, small ones at the end of a private range.
CANDIDATES: tuple[str | None, ...] = (
    None,
    *(f"172.31.{third}.0/24" for third in range(240, 256)),
    *(f"10.213.{third}.0/24" for third in range(16)),
)
#: The static program of the image by which a keeper and a machine's main process live; no agent can alter it.
BUSYBOX = "/usr/local/lib/referee/busybox"
TRUSTED_TOOLS = "/usr/local/lib/referee"
#: The image's own ip, for rules that tell ports apart; busybox's cannot. Only keepers run it, from the pristine image.
IPROUTE = "/usr/sbin/ip"
#: Whether any interface has an IPv6 address; a file of /proc has no size to ask for.
HAS_IPV6 = f'[ -n "$({BUSYBOX} cat /proc/net/if_inet6 2>/dev/null)" ]'
#: The table and the priority of the one hole, ahead of the main table (32766), where the blocked networks stand.
HOLE_TABLE = 100
HOLE_PRIORITY = 100
#: A keeper's word that the routes are set; after it stands the limit on open files that this engine can give.
SEALED = "sealed"


def machines_network(client: Any) -> str:
    """The id of the machines' network, made when it is not there. Two harnesses may ask at once.

    Raises:
        EngineUnavailable: the engine has no free address range for it.
    """
    found = _existing(client)
    if found:
        return found
    said = ""
    for subnet in CANDIDATES:
        try:
            client.create_network(
                NETWORK,
                driver="bridge",
                check_duplicate=True,
                options={"com.docker.network.bridge.enable_icc": "false"},
                ipam=IPAMConfig(pool_configs=[IPAMPool(subnet=subnet)]) if subnet else None,
                labels={ROLE_LABEL: "network"},
            )
        except APIError as exc:
            said = str(exc.explanation)
            if found := _existing(client):
                return found
            continue
        return _settle(client)
    raise EngineUnavailable(
        f"the engine cannot make the machines' network: {said}", todo="remove unused ones with `docker network prune`"
    )


def _existing(client: Any) -> str | None:
    """The oldest network of our name: the same answer for every harness."""
    found = [net for net in client.networks(names=[NETWORK]) if net["Name"] == NETWORK]
    return min(found, key=lambda net: (net["Created"], net["Id"]))["Id"] if found else None


def _settle(client: Any) -> str:
    """After making one: if another harness made one at the same moment, the older stays."""
    found = sorted(
        (net for net in client.networks(names=[NETWORK]) if net["Name"] == NETWORK),
        key=lambda net: (net["Created"], net["Id"]),
    )
    for younger in found[1:]:
        try:
            client.remove_network(younger["Id"])
        except APIError:
            continue
    return str(found[0]["Id"])


def keeper_command(
    blocked: Sequence[str], seconds: int, *, host_reachable: bool, gateway: tuple[str, int] | None = None
) -> list[str]:
    """What a keeper runs: block, open the one hole, say so, wait.

    The gateway stays the way out, but its own address, where services of the host listen, is blocked like a network,
    unless ``host_reachable``. A machine without IPv6 has nothing to block there, so only a failure of an IPv4 route
    stops the keeper.
    """
    lines = []
    if not host_reachable:
        lines.append(f"set -- $({BUSYBOX} ip route show default)")
        lines.append(f'[ -z "$3" ] || {BUSYBOX} ip route add unreachable "$3/32" || exit 1')
        lines.append(f"set -- $({BUSYBOX} ip -6 route show default 2>/dev/null)")
        lines.append(f'[ "$1 $2" != "default via" ] || {BUSYBOX} ip -6 route add unreachable "$3/128" || exit 1')
    for network in blocked:
        parsed = ipaddress.ip_network(network)
        if parsed.version == 4:  # noqa: PLR2004 — IPv4
            lines.append(f"{BUSYBOX} ip route add unreachable {parsed} || exit 1")
        else:
            block = f"{BUSYBOX} ip -6 route add unreachable {parsed} || exit 1"
            if parsed.is_link_local:
                block += f"; for p in tcp udp; do {_without_neighbours(parsed)} || exit 1; done"
            lines.append(f"if {HAS_IPV6}; then {block}; fi")
    if gateway is not None:
        lines += _hole(*gateway)
    lines += [f'echo "{SEALED} $(ulimit -Hn)"', f"exec {BUSYBOX} sleep {seconds}"]
    return [BUSYBOX, "sh", "-c", "\n".join(lines)]


def _without_neighbours(network: ipaddress.IPv6Network) -> str:
    """Blocks ``$p`` to ``network``, where each interface has a narrower route, by which neighbours are found."""
    return f"{IPROUTE} -6 rule add to {network} ipproto $p unreachable priority {HOLE_PRIORITY + 1}"


def _hole(address: str, port: int) -> list[str]:
    """The one address and port of the host that a machine may reach: a rule that comes before the main table's routes.

    For TCP to that port alone the table of the hole is asked; what stands there goes by the way out, or directly where
    the address is that of the way out itself.

    Raises:
        UsageError: it is no address and port.
    """
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError as exc:
        raise UsageError(f"{address} is no IP address, so no machine can be given a way to it") from exc
    if not 0 < port < 1 << 16:
        raise UsageError(f"{port} is no port, so no machine can be given a way to it")
    four = parsed.version == 4  # noqa: PLR2004 — IPv4
    ip, whole = (f"{IPROUTE} -4", f"{parsed}/32") if four else (f"{IPROUTE} -6", f"{parsed}/128")
    return [
        f"set -- $({ip} route show default)",
        '[ -n "$3" ] && [ -n "$5" ] || { echo "there is no way out to the gateway"; exit 1; }',
        f'way="via $3 dev $5 onlink"; [ "$3" != "{parsed}" ] || way="dev $5"',
        f"{ip} route add {whole} $way table {HOLE_TABLE} || exit 1",
        f"{ip} rule add to {whole} ipproto tcp dport {port} lookup {HOLE_TABLE} priority {HOLE_PRIORITY} || exit 1",
    ]
