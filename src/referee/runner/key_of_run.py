"""The one key of one run: made before the machine, deleted on every way out (methodology §4).

A key that cannot be made means that the attempt is not started; a shared key is never used instead. An agent that
speaks to no model has none, and then nothing of this costs anything.
"""

from __future__ import annotations

import contextlib
import io
import tarfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from referee.core.spending import Exchange, SpendingFacts
from referee.core.spending_sums import credential_refused
from referee.errors import ConfigError, KeyUnavailable
from referee.protocols import Agent, Issued, Keys, Machine, Sandbox

if TYPE_CHECKING:
    from referee.core.sieve import Sieve
    from referee.runner.withhold import Screen

EXCHANGES_NAME = "exchanges.jsonl"

#: A key outlives its run's budget by this at most, seconds: the machine is made and the agent ended in this time.
_KEY_GRACE_SECONDS = 900.0


class KeyOfRun:
    """The key of one run, from its making to its end; ``screen`` keeps it out of all that the run leaves."""

    def __init__(self, run: str, agent: Agent, keys: Keys | None) -> None:
        self.gateway: tuple[str, int] | None = None
        self.screen: Screen | None = None
        #: The run ended because its upstream took our credential no more; known once the key is closed.
        self.credential_refused = False
        self._run = run
        self._agent = agent
        self._keys = keys
        self._issued: Issued | None = None

    def issue(self, sandbox: Sandbox, *, cap_usd: float, seconds: float) -> None:
        """Make the key. ``seconds``: the agent's budget.

        Raises:
            KeyUnavailable: it could not be made.
        """
        from referee.runner.withhold import Screen  # noqa: PLC0415 — only a run with a key needs it

        need = self._agent.need
        if need is None or self._keys is None:
            raise KeyUnavailable(f"nobody makes keys for the agent {self._agent.name}")
        try:
            self._keys.ask(need)
        except ConfigError as exc:
            raise KeyUnavailable(exc.message, todo=exc.todo) from exc
        self.gateway = self._keys.reach(sandbox.gateway_address())
        ends_at = time.time() + seconds + _KEY_GRACE_SECONDS
        self._issued = self._keys.issue(self._run, need, cap_usd=cap_usd, ends_at=ends_at)
        self.screen = Screen(self._issued.secrets)

    def screened(self, machine: Machine) -> Machine:
        """The machine, out of which the key never comes."""
        return machine if self.screen is None else self.screen.machine(machine)

    @property
    def sieve(self) -> Sieve | None:
        """What the session is recorded through."""
        return None if self.screen is None else self.screen.sieve

    @contextlib.contextmanager
    def placed_tar(self, mission: Mapping[str, object]) -> Iterator[BinaryIO]:
        """What the agent needs to reach its model, as a tar stream to be unpacked at ``/``: owner root."""
        if self._issued is None:
            raise KeyUnavailable(f"the run {self._run} has no key")
        with io.BytesIO() as stream:
            with tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as tar:
                for path, file in sorted(self._agent.placed(self._issued.access, mission).items()):
                    entry = tarfile.TarInfo(path.lstrip("/"))
                    entry.size, entry.mode = len(file.data), file.mode
                    entry.uname = entry.gname = "root"
                    entry.mtime = int(time.time())
                    tar.addfile(entry, io.BytesIO(file.data))
            stream.seek(0)
            yield stream

    def close(self) -> SpendingFacts | None:
        """Delete the key; may be called twice."""
        if self._keys is None:
            return None
        spending = self._keys.close(self._run)
        if spending is not None and spending.ended_by_upstream:
            log = [Exchange.model_validate_json(line) for line in (self._keys.exchanges(self._run) or b"").splitlines()]
            self.credential_refused = credential_refused(log)
        return spending

    def keep_exchanges(self, directory: Path) -> None:
        """Keep what the key did as ``exchanges.jsonl``.

        Raises:
            OSError: it could not be written; what the key spent is known all the same.
        """
        exchanges = None if self._keys is None else self._keys.exchanges(self._run)
        if exchanges is None:
            return
        kept = directory / EXCHANGES_NAME
        try:
            kept.write_bytes(exchanges)
        except OSError:
            kept.unlink(missing_ok=True)  # half a log would tell of other calls than the record
            raise
