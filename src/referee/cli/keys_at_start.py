"""Keys at the start of a command: who makes them, and what earlier runs left."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress

from referee.cli.wiring import Stores, make_keys
from referee.errors import ConfigError, CouldNotVerify, KeyUnavailable
from referee.protocols import Agent, Keys


def keys_at_start(
    stores: Stores, agents: Sequence[Agent], say: Callable[[str], None], *, cap_usd: float | None = None
) -> Keys | None:
    """Who makes keys: for agents with a model, and where an earlier run may have left a key; else None.

    ``cap_usd``: the limit of their keys; None for the workspace's.

    Raises:
        ConfigError: an agent needs a key, and the settings do not let one come about, or its upstream refuses ours.
        CouldNotVerify: it needs one, and the workspace's secret cannot be used, or nobody is at its upstream's address.
    """
    needs = [agent.need for agent in agents if agent.need is not None]
    needed = bool(needs)
    if not needed and not _keys_left(stores):
        return None
    try:
        keys = make_keys(stores.workspace, os.environ)
        for need in needs:
            keys.check(need, cap_usd=cap_usd if cap_usd is not None else stores.workspace.config.keys.cap_usd)
        for need in needs:
            keys.ask(need)
    except (ConfigError, CouldNotVerify) as exc:
        if needed:
            raise
        say(f"note: keys of earlier runs are not looked after: {exc.message}")
        return None
    return keys


def sweep_keys(stores: Stores, keys: Keys | None) -> list[str]:
    """Delete every key that belongs to no running attempt; one sentence for each."""
    if keys is None:
        return []
    return keys.sweep([planned.run for planned in stores.records.attempts_under_way()])


def stop_where_refused(keys: Keys | None, agent: Agent, run: str) -> None:
    """After a run whose model or key failed: end the series where waiting cannot help.

    Raises:
        ConfigError: the upstream refuses our credential.
    """
    if keys is not None and agent.need is not None:
        with suppress(KeyUnavailable):
            keys.ask(agent.need, after=run)


def _keys_left(stores: Stores) -> bool:
    """Whether a key of this workspace is not known to be deleted, or a dead run had one: both cheap to see."""
    if any((stores.workspace.keys / "live").glob("*.json")):
        return True
    if not any(stores.workspace.spool.glob("r-*")):
        return False
    return any(planned.lock.agent.cap_usd is not None for planned in stores.records.open_attempts())
