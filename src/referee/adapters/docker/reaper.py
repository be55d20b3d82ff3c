"""Removes what dead harnesses left with the engine."""

from __future__ import annotations

import time
from typing import Any

from docker.errors import APIError

from referee.adapters.docker.machine import remove
from referee.adapters.docker.network import NETWORK
from referee.adapters.docker.owner import OWNER_LABEL, ROLE_LABEL, RUN_LABEL, why_stale

#: What a container of ours is called in a sentence, by its role.
NAMES = {"machine": "the machine", "keeper": "the network keeper", "reader": "the manifest reader"}


def reap(client: Any) -> list[str]:
    """Containers first, then volumes that lost theirs, then networks of ours that are not the shared one."""
    now = time.time()
    done = []
    for container in client.containers(all=True, filters={"label": OWNER_LABEL}):
        labels = container.get("Labels") or {}
        why = why_stale(labels, now)
        if why is not None:
            name = NAMES.get(labels.get(ROLE_LABEL, ""), "the container")
            gone = remove(client, container["Id"])
            outcome = "removed" if gone else "could not remove"
            done.append(f"{outcome} {name} {container['Id'][:12]} of {_run(labels)}: {why}")
    found = client.volumes(filters={"label": OWNER_LABEL, "dangling": True})
    for volume in found.get("Volumes") or ():
        labels = volume.get("Labels") or {}
        why = why_stale(labels, now)
        if why is not None and _removed(client.remove_volume, volume["Name"]):
            done.append(f"removed the volume {volume['Name'][:12]} of {_run(labels)}: {why}")
    # The shared network belongs to no run and is used again; the engine refuses to remove one that is in use.
    others = [net for net in client.networks(filters={"label": ROLE_LABEL}) if net["Name"] != NETWORK]
    done += [
        f"removed the network {net['Name']}, which no machine uses"
        for net in others
        if _removed(client.remove_network, net["Id"])
    ]
    return done


def _run(labels: dict[str, str]) -> str:
    return f"run {labels[RUN_LABEL]}" if labels.get(RUN_LABEL) else "no run"


def _removed(call: Any, name: str) -> bool:
    try:
        call(name)
    except APIError:
        return False
    return True
