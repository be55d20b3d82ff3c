"""Keys that another service makes: written down, made with a limit, deleted, and the deletion confirmed by reading.

``openrouter`` and ``litellm`` say how their service is asked; what must hold of every such key is here.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

from referee.adapters.keys.broker_api import BrokerFault
from referee.adapters.keys.ledger import Entry, Ledger
from referee.adapters.keys.workspace_secret import derive, where_it_stands, workspace_secret
from referee.core.redaction import SHORTEST
from referee.core.spending import Broker, Dialect, SpendingFacts
from referee.errors import ConfigError, KeyUnavailable
from referee.protocols import Access, Issued, ModelNeed

#: A deletion is tried so often, with these waits between, seconds.
WAITS = (0.0, 0.5, 2.0)

RUN_KEY = "run-key"


@dataclass(frozen=True)
class Made:
    """A key that was made: its id with the service, and the secret."""

    key: str
    secret: str = field(repr=False)


@dataclass(frozen=True)
class Held:
    """A key that the service has: its id and its name."""

    key: str
    name: str


@dataclass(frozen=True)
class Settle:
    """How long a service may take to count what was spent, seconds.

    The last figure is read ``at_least`` so long after the key was blocked and when two readings agree, but not after
    ``at_most``.
    """

    at_least: float
    at_most: float
    every: float


class KeyService(Protocol):
    """A service that makes keys. Every method raises ``BrokerFault`` where the service does not do its part."""

    @property
    def broker(self) -> Broker:
        """Its name in records."""

    @property
    def who(self) -> str:
        """Its name in sentences."""

    @property
    def dialects(self) -> Collection[Dialect]:
        """The surfaces on which its keys are of use."""

    @property
    def settle(self) -> Settle:
        """How long it may take to count."""

    @property
    def credential(self) -> tuple[str, str]:
        """Name and value of its own credential."""

    @property
    def serves_at(self) -> str:
        """Where its keys are used, without a version at the end."""

    def create(self, name: str, model: str, *, cap_usd: float, ends_at: float, wish: str) -> Made:
        """Make a key of that name and limit. ``wish``: 64 hexadecimal digits to make the secret of, where it may be."""

    def would_be(self, wish: str) -> Made | None:
        """The key that ``create`` makes of a wish; None where the service chooses the secret itself."""

    def named(self, prefix: str) -> list[Held]:
        """Every key whose name begins with ``prefix``."""

    def block(self, key: str) -> None:
        """Make a key useless, so that what it spent no longer grows."""

    def spent(self, key: str) -> float | None:
        """What a key spent until now, US dollars; None: there is no such key any more."""

    def delete(self, key: str) -> None:
        """Delete a key. That it is not there is no fault."""

    def refuses(self, secret: str) -> bool:
        """Whether a call with the key itself is refused."""


class BrokeredKeys:
    """One key a run from a service (``protocols.Keys``)."""

    def __init__(
        self,
        service: KeyService,
        directory: Path,
        *,
        settle: Settle | None = None,
        waits: Sequence[float] = WAITS,
    ) -> None:
        """Open a broker on the workspace's ``keys/``.

        Args:
            service: who makes the keys.
            directory: the workspace's ``keys/``.
            settle: how long what was spent may take to be counted; None is the service's own answer.
            waits: before each try of a deletion, seconds.

        Raises:
            OSError: the workspace's secret can neither be read nor made.
        """
        self._service = service
        self._ledger = Ledger(directory)
        self._secret = workspace_secret(directory)
        # Two laboratories with one account do not sweep each other's keys, nor a copy of a workspace the original's.
        self._prefix = f"referee-{derive(self._secret, 'workspace', where_it_stands(directory))[:12]}-"
        self._settle = settle or service.settle
        self._waits = waits
        self._made: dict[str, Made] = {}

    @property
    def broker(self) -> Broker:
        """Its name in records."""
        return self._service.broker

    def check(self, need: ModelNeed, *, cap_usd: float | None = None) -> None:  # noqa: ARG002 — its prices are its own
        """Whether the service serves the surface.

        Raises:
            ConfigError: it does not.
        """
        if need.dialect not in self._service.dialects:
            raise ConfigError(
                f"{self._service.who} does not serve the surface {need.dialect}",
                todo="use the broker `gateway` for this agent ([keys] in referee.toml)",
            )

    def ask(self, need: ModelNeed, *, after: str | None = None) -> None:
        """Nothing is asked: a service that is down or refuses its credential makes no key, and says so then."""

    def reach(self, address: str) -> tuple[str, int] | None:
        """The service's own port, where it listens on this host at ``address``; None where it is elsewhere."""
        parts = urlsplit(self._service.serves_at)
        if parts.hostname != address:
            return None
        return address, parts.port or (443 if parts.scheme == "https" else 80)

    def issue(self, run: str, need: ModelNeed, *, cap_usd: float, ends_at: float) -> Issued:
        """Make the key of ``run``: written down as intended, made, its id written down.

        Raises:
            KeyUnavailable: it could not be made; what may have been made is deleted, now or by the next sweep.
        """
        try:
            self.check(need)
            entry = self._ledger.intend(run, self.broker, self._prefix + run, need, cap_usd=cap_usd, ends_at=ends_at)
        except ConfigError as exc:
            raise KeyUnavailable(f"no key was made for the run {run}: {exc.message}", todo=exc.todo) from exc
        except OSError as exc:
            raise KeyUnavailable(
                f"no key was made for the run {run}, because it could not be written down: {exc}",
                todo="see that keys/ of the workspace can be written",
            ) from exc
        try:
            made = self._service.create(
                entry.name, need.model, cap_usd=cap_usd, ends_at=ends_at, wish=derive(self._secret, "key", run)
            )
            self._made[run] = made
            self._ledger.issued(entry, made.key)
        except (BrokerFault, OSError) as exc:
            self._give_up(entry)
            told = exc.sentence if isinstance(exc, BrokerFault) else f"its id could not be written down: {exc}"
            raise KeyUnavailable(
                f"the key of the run {run} could not be made: {told}",
                todo="the run was not started and can be tried again; a shared key is never used instead",
            ) from exc
        except BaseException:
            self._give_up(entry)
            raise
        access = Access(base_url=self._service.serves_at, model=need.model, secret=made.secret)
        return Issued(key=entry.name, access=access, secrets=self._secrets_of(made))

    def close(self, run: str) -> SpendingFacts | None:
        """Delete the key of ``run``, confirm it, say what it spent; the same answer again when it is asked again."""
        return self._close(run, self._settle)

    def exchanges(self, run: str) -> None:  # noqa: ARG002 — the seam's
        """None: the calls go to the service without passing here."""
        return

    def secrets(self, run: str) -> Mapping[str, str] | None:
        """The run's key and the service's own credential; after its harness died only where the key was derived, and
        never that of another broker.
        """
        made, entry = self._made.get(run), self._ledger.find(run)
        if made is None and entry is not None and entry.broker == self.broker:
            made = self._service.would_be(derive(self._secret, "key", run))
        return self._secrets_of(made) if made is not None else None

    def sweep(self, running: Collection[str]) -> list[str]:
        """Delete the keys of runs that are over or whose harness is dead, by the ledger and by name at the service."""
        told: list[str] = [
            f"the file keys/live/{name} cannot be read: its key is looked for by name only"
            for name in self._ledger.unreadable()
        ]
        try:
            # Asked before the ledger is read: whatever is listed was written down as intended before.
            held = self._service.named(self._prefix)
        except BrokerFault as exc:
            told.append(f"{self._service.who} could not be asked for keys that were left behind: {exc.sentence}")
            held = []
        at_once = Settle(0.0, self._settle.at_most, self._settle.every)
        seen_to = set(running)
        for entry in self._ledger.live():
            if entry.broker != self.broker or entry.run in running or not entry.left_behind():
                continue
            seen_to.add(entry.run)
            spending = self._close(entry.run, at_once)
            if spending is not None:
                told.append(f"the key {entry.name} of the run {entry.run}, which is not running: {spending.how}")
        return told + self._sweep_unknown(held, seen_to)

    def stop(self) -> None:
        """Delete the keys that this process made and has not closed."""
        for run in list(self._made):
            entry = self._ledger.find(run)
            if entry is not None and entry.state != "closed":
                self.close(run)

    def _sweep_unknown(self, held: Iterable[Held], seen_to: Collection[str]) -> list[str]:
        """Delete what the service has under this workspace's name and no ledger knows as in use.

        ``seen_to``: runs that are under way, or whose key was seen to just now.
        """
        told = []
        for key in held:
            run = key.name.removeprefix(self._prefix)
            entry = self._ledger.find(run)
            if run in seen_to or (entry is not None and not entry.left_behind()):
                continue
            try:
                if self._service.spent(key.key) is not None:
                    self._delete(key.key)
                    told.append(f"the key {key.name}, which belongs to no running run: deleted, and read as gone")
            except BrokerFault as exc:
                told.append(
                    f"the key {key.name}, which belongs to no running run, could not be deleted: {exc.sentence}"
                )
        return told

    def _secrets_of(self, made: Made) -> dict[str, str]:
        name, value = self._service.credential
        # A shorter one could not be told from text; it is in no machine, so nothing of a run can hold it.
        return {RUN_KEY: made.secret, **({name: value} if len(value) >= SHORTEST else {})}

    def _give_up(self, entry: Entry) -> None:
        """No key for this run: delete what may have been made, now if the service answers, else by a sweep."""
        try:
            entry = self._ledger.closing(self._ledger.find(entry.run) or entry)
        except OSError:
            return  # Its owner is this process; when that ends the sweep finds it.
        self._close(entry.run, Settle(0.0, 0.0, 0.0))

    def _close(self, run: str, settle: Settle) -> SpendingFacts | None:
        entry = self._ledger.find(run)
        if entry is None or entry.state == "closed":
            return entry.spending if entry is not None else None
        try:
            spending = self._end(self._ledger.closing(entry), settle)
            self._ledger.closed(entry, spending)
        except BrokerFault as exc:
            return _facts(entry, None, deleted=False, how=f"not deleted: {exc.sentence}; the next sweep tries again")
        except Exception as exc:  # noqa: BLE001 — never raises (protocols.Keys): the sweep tries again
            told = f"{type(exc).__name__}: {exc}"
            return _facts(
                entry, None, deleted=False, how=f"not known to be deleted: {told}; the next sweep tries again"
            )
        return spending

    def _end(self, entry: Entry, settle: Settle) -> SpendingFacts:
        keys = [entry.key] if entry.key is not None else self._found(entry)
        spent: float | None = 0.0
        hows = []
        for key in keys:
            figure, how = self._end_one(entry, key, settle)
            spent = None if figure is None or spent is None else spent + figure
            hows.append(how)
        if not keys:
            hows.append(f"{self._service.who} has no key of that name: it was never made, or is gone")
        return _facts(entry, spent, deleted=True, how="; ".join(dict.fromkeys(hows)))

    def _found(self, entry: Entry) -> list[str]:
        """The ids of a key whose making was never confirmed."""
        would_be = self._service.would_be(derive(self._secret, "key", entry.run))
        named = {held.key for held in self._service.named(entry.name) if held.name == entry.name}
        if would_be is not None and self._service.spent(would_be.key) is not None:
            named.add(would_be.key)
        return sorted(named)

    def _end_one(self, entry: Entry, key: str, settle: Settle) -> tuple[float | None, str]:
        """Block, read what was spent, delete, confirm."""
        how = ""
        try:
            figure = self._last_figure(key, settle)
        except BrokerFault as exc:
            figure, how = None, f"what it spent could not be read ({exc.sentence}); "
        self._delete(key)
        how += f"{self._service.who} was told to delete it, and reading it afterwards found it gone"
        made = self._made.get(entry.run)
        if made is not None and made.key == key and self._service.refuses(made.secret):
            how += "; a call with the key itself was refused"
        return figure, how

    def _last_figure(self, key: str, settle: Settle) -> float | None:
        """What the key spent, read when the service has counted it; blocked first, so that it grows no more."""
        if self._service.spent(key) is None:
            return None
        self._service.block(key)
        begun = time.monotonic()
        figure = self._service.spent(key)
        while (passed := time.monotonic() - begun) < settle.at_most:
            before = figure
            try:
                time.sleep(settle.every)
            except KeyboardInterrupt:  # Then without the last cent: the deletion must not wait.
                break
            figure = self._service.spent(key)
            if figure == before and passed + settle.every >= settle.at_least:
                break
        return figure

    def _delete(self, key: str) -> None:
        fault: BrokerFault | None = None
        for wait in self._waits:
            time.sleep(wait)
            try:
                self._service.delete(key)
                if self._service.spent(key) is None:
                    return
                fault = BrokerFault(f"{self._service.who} said that it deleted the key, and still has it")
            except BrokerFault as exc:
                fault = exc
        raise fault or BrokerFault(f"{self._service.who} did not delete the key")


def _facts(entry: Entry, spent: float | None, *, deleted: bool, how: str) -> SpendingFacts:
    return SpendingFacts(
        broker=entry.broker,
        key=entry.name,
        model=entry.model,
        cap_usd=entry.cap_usd,
        spent_usd=spent,
        capped=spent is not None and spent >= entry.cap_usd,
        deleted=deleted,
        how=how,
    )
