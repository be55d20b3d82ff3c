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
from referee.errors import EngineUnavailable

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


def keeper_command(blocked: Sequence[str], seconds: int, *, host_reachable: bool) -> list[str]:
    """What a keeper runs: block, say so, wait.

    The gateway stays the way out, but its own address, where services of the host listen, is blocked like a network,
    unless ``host_reachable``. A machine without IPv6 has nothing to block there, so only a failure of an IPv4 route
    stops the keeper.
    """
    lines = []
    if not host_reachable:
        lines.append(f"set -- $({BUSYBOX} ip route show default)")
        lines.append(f'[ -z "$3" ] || {BUSYBOX} ip route add unreachable "$3/32" || exit 1')
    for network in blocked:
        parsed = ipaddress.ip_network(network)
        if parsed.version == 4:  # noqa: PLR2004 — IPv4
            lines.append(f"{BUSYBOX} ip route add unreachable {parsed} || exit 1")
        else:
            lines.append(
                f"if [ -e /proc/net/if_inet6 ] && [ -s /proc/net/if_inet6 ]; then "
                f"{BUSYBOX} ip -6 route add unreachable {parsed} || exit 1; fi"
            )
    lines += [f'echo "{SEALED} $(ulimit -Hn)"', f"exec {BUSYBOX} sleep {seconds}"]
    return [BUSYBOX, "sh", "-c", "\n".join(lines)]
