"""Keys that the gateway itself makes: a token a run, alive only in this process.

Everything durable is without secrets: the ledger says which runs had a key, the journal what they spent. After a crash
the token is dead with its process; what it was can be derived again, to redact what the run left.
"""

from __future__ import annotations

import hashlib
import math
import threading
from collections.abc import Collection, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from referee.adapters.keys.gateway.journal import Journal
from referee.adapters.keys.gateway.prices import Tariff, tariff_of
from referee.adapters.keys.gateway.upstream import Upstream
from referee.adapters.keys.head_values import fits_a_head
from referee.adapters.keys.ledger import Entry, Ledger
from referee.adapters.keys.workspace_secret import derive, workspace_secret
from referee.core.redaction import Redactor
from referee.core.spending import Broker, Exchange, SpendingFacts, upper_usd, usd
from referee.core.spending_sums import credential_refused
from referee.errors import ConfigError, CouldNotVerify, KeyUnavailable
from referee.protocols import Access, Issued, ModelNeed

if TYPE_CHECKING:
    from referee.adapters.keys.gateway.account import Account
    from referee.adapters.keys.gateway.server import GatewayServer

#: The name of the run's token among what must be found nowhere.
RUN_KEY = "run-key"
_TOKEN_DIGITS = 48
#: No request of an agent with its instructions and tools is smaller, bytes.
LEAST_REQUEST = 1_000
_PURPOSE = "gateway run token"

_CLOSED_HERE = "the gateway of this process has taken the token off its list: it answers it with 401"
_CLOSED_BY_DEATH = "the token was known only to a process that is gone"


class GatewayKeys:
    """``protocols.Keys`` by the metering gateway.

    Args:
        directory: the workspace's ``keys``.
        upstreams: where calls go, by name.
        bodies: keep redacted bodies in ``keys/bodies`` too.
        ca_bundle: authorities for upstreams; None for the system's.
        patience_seconds: silence of an upstream after which a call is broken; None for the usual.
    """

    def __init__(
        self,
        directory: Path,
        upstreams: Mapping[str, Upstream],
        *,
        bodies: bool = False,
        ca_bundle: Path | None = None,
        patience_seconds: float | None = None,
    ) -> None:
        self._directory = directory
        self._upstreams = dict(upstreams)
        self._bodies = bodies
        self._ca_bundle = ca_bundle
        self._patience = patience_seconds
        self._ledger = Ledger(directory)
        self._journal = Journal(directory)
        self._lock = threading.RLock()
        self._server: GatewayServer | None = None
        self._reached: tuple[str, int] | None = None
        self._accounts: dict[str, tuple[str, Account, Entry]] = {}
        self._closed: dict[str, SpendingFacts] = {}
        self._closing: dict[str, threading.Lock] = {}

    @property
    def broker(self) -> Broker:
        """Its name in records."""
        return "gateway"

    def check(self, need: ModelNeed, *, cap_usd: float | None = None) -> Tariff:
        """Whether a key for ``need`` can come about, asked before anything is spent; its prices.

        Raises:
            ConfigError: the upstream is not configured, does not speak the surface, lacks its credential, the model's
                price is not known, or the cap can hold no call.
            CouldNotVerify: the workspace's secret can neither be read nor made.
        """
        upstream = self._upstreams.get(need.upstream)
        if upstream is None:
            raise ConfigError(
                f"the upstream {need.upstream} is not configured",
                todo=f"add [upstreams.{need.upstream}] to referee.toml",
            )
        if upstream.unset is not None:
            raise ConfigError(
                f"the variable {upstream.unset} with the credential of the upstream {need.upstream} is not set",
                todo=f"set {upstream.unset} in the environment of this command",
            )
        if upstream.secret is not None and not fits_a_head(upstream.secret):
            raise ConfigError(
                f"the variable {upstream.variable or 'with the credential'} of the upstream {need.upstream} holds a "
                "line break or another character that no request can carry",
                todo=f"set {upstream.variable or 'it'} to the key alone",
            )
        if need.dialect not in upstream.dialects:
            raise ConfigError(
                f"the upstream {need.upstream} is not said to speak {need.dialect}",
                todo=f'add "{need.dialect}" to dialects in [upstreams.{need.upstream}] if it does',
            )
        own = upstream.prices.get(need.model)
        if need.dialect == "anthropic-messages" and own is not None and own.input > 0 and own.cache_write is None:
            raise ConfigError(
                f"the price of the model {need.model} at the upstream {need.upstream} does not say what input that is "
                "written to a cache costs, and agents of this surface have theirs written there",
                todo=f'add cache_write to [upstreams.{need.upstream}.prices."{need.model}"], US dollars per million '
                "tokens",
            )
        tariff = tariff_of(upstream, need.model)
        least = upper_usd(LEAST_REQUEST, upstream.max_output_tokens, tariff.dearest)
        if cap_usd is not None and cap_usd < least:
            least = math.ceil(least * 10_000) / 10_000
            raise ConfigError(
                f"the cap of {usd(cap_usd)} can hold no call of the model {need.model}: one may cost {usd(least)}, "
                f"with an answer of {upstream.max_output_tokens} tokens",
                todo=f"set cap_usd in [keys] of referee.toml to {least:g} or more, or lower max_output_tokens in "
                f"[upstreams.{need.upstream}]",
            )
        self._see_the_secret()
        return tariff

    def _see_the_secret(self) -> None:
        """No waiting mends it, so it is looked at before anything is spent."""
        try:
            workspace_secret(self._directory)
        except (OSError, ValueError) as exc:
            raise CouldNotVerify(
                f"the workspace's secret for keys cannot be used: {exc}", todo=f"see to {self._directory / 'secret'}"
            ) from exc

    def ask(self, need: ModelNeed, *, after: str | None = None) -> None:
        """Whether the upstream is there and takes its credential.

        Raises:
            ConfigError: it refuses its credential, now or at the end of the run ``after``.
            KeyUnavailable: nobody is at its address.
        """
        from referee.adapters.keys.gateway.knock import knock, refused  # noqa: PLC0415 — only where a model is used

        upstream = self._upstreams[need.upstream]
        if after is not None and credential_refused(self._journal.exchanges(after)):
            raise refused(upstream, 401)
        knock(upstream, need.dialect, self._ca_bundle)

    def reach(self, address: str) -> tuple[str, int] | None:
        """Listen at ``address``.

        Raises:
            KeyUnavailable: that cannot be.
        """
        with self._lock:
            try:
                port = self._serving().listen(address)
            except (OSError, TimeoutError) as exc:
                raise KeyUnavailable(
                    f"the gateway cannot listen at {address}: {exc}",
                    todo="see whether the sandbox's network is there, then try again",
                ) from exc
            self._reached = (address, port)
            return self._reached

    def issue(self, run: str, need: ModelNeed, *, cap_usd: float, ends_at: float) -> Issued:
        """Make the token of ``run`` and open its account.

        Raises:
            KeyUnavailable: it could not be made.
        """
        from referee.adapters.keys.gateway.account import Account  # noqa: PLC0415 — only runs with a model pay for it

        with self._lock:
            if self._reached is None:
                raise KeyUnavailable("the gateway does not listen yet", todo="call reach() with the sandbox's address")
            entry: Entry | None = None
            try:
                tariff = self.check(need)
                token = self._token(run)
                entry = self._ledger.intend(run, "gateway", _name(token), need, cap_usd=cap_usd, ends_at=ends_at)
                self._journal.begin(run)
                account = Account(
                    run=run,
                    key=_name(token),
                    need=need,
                    upstream=self._upstreams[need.upstream],
                    tariff=tariff,
                    cap_usd=cap_usd,
                    ends_at=ends_at,
                    redactor=Redactor({**self._upstreams[need.upstream].secrets(), RUN_KEY: token}),
                    write=partial(self._journal.write, run),
                )
                entry = self._ledger.issued(entry, _name(token))
                self._serving().admit(token, account)
            except (ConfigError, CouldNotVerify) as exc:
                raise KeyUnavailable(exc.message, todo=exc.todo) from exc
            except (OSError, ValueError, TimeoutError) as exc:
                self._never_made(entry)
                raise KeyUnavailable(f"the key of {run} could not be made: {exc}", todo="try again later") from exc
            self._accounts[run] = (token, account, entry)
            address, port = self._reached
            host = f"[{address}]" if ":" in address else address
            access = Access(base_url=f"http://{host}:{port}", model=need.model, secret=token)
            return Issued(key=_name(token), access=access, secrets=self._secrets(token))

    def close(self, run: str) -> SpendingFacts | None:
        """Take the token off the list, cut its calls under way, and say what the run spent."""
        with self._lock:
            closing = self._closing.setdefault(run, threading.Lock())
        with closing:
            return self._close(run)

    def _close(self, run: str) -> SpendingFacts | None:
        """``close``, of one run once at a time; while the upstream is asked a last time other runs go on."""
        with self._lock:
            known = self._closed.get(run)
            if known is not None:
                return known
            issued, server = self._accounts.get(run), self._server
            if issued is None or server is None:
                return self._left(run)
        token, account, entry = issued
        how = _CLOSED_HERE
        try:
            server.close(token, account)
        except TimeoutError as exc:
            account.broken = account.broken or f"the gateway's thread did not answer: {exc}"
            how = f"{_CLOSED_HERE}; its calls under way were not cut in time" if server.alive else "the thread is dead"
        with self._lock:
            self._accounts.pop(run, None)
            self._journal.end(run)
            facts = account.facts(deleted=True, how=how)
            self._closed[run] = facts
            self._write_closed(entry, facts)
            return facts

    def exchanges(self, run: str) -> bytes | None:
        """The metadata of the run's calls, one JSON line each."""
        return self._journal.read(run)

    def secrets(self, run: str) -> Mapping[str, str] | None:
        """The run's token and the real keys, as far as this process knows them; None where no key was ever issued, or
        another broker issued it.
        """
        entry = self._ledger.find(run)
        if not (self._directory / "secret").exists() or (entry is not None and entry.broker != self.broker):
            return None
        try:
            return self._secrets(self._token(run))
        except (OSError, ValueError):
            return None

    def sweep(self, running: Collection[str]) -> list[str]:
        """Close every key of this process whose run is over; say of keys of dead processes that they are gone."""
        said = []
        with self._lock:
            over = sorted(set(self._accounts) - set(running))
        for run in over:
            self.close(run)
            said.append(f"the gateway's key of {run} was closed: its run is over")
        with self._lock:
            for entry in self._ledger.live():
                theirs = entry.broker == "gateway" and entry.run not in self._accounts and entry.run not in running
                if theirs and entry.left_behind():
                    self._write_closed(entry, self._dead(entry))
                    said.append(f"the gateway's key of {entry.run} died with its process")
        return said

    def stop(self) -> None:
        """Close every key and let go of the thread. May be called twice."""
        with self._lock:
            left = list(self._accounts)
        for run in left:
            self.close(run)
        with self._lock:
            server, self._server, self._reached = self._server, None, None
            if server is not None:
                server.stop()

    def _serving(self) -> GatewayServer:
        if self._server is None:
            from referee.adapters.keys.gateway.bodies import BodyLog  # noqa: PLC0415 — aiohttp, where a model is used
            from referee.adapters.keys.gateway.forward import PATIENCE_SECONDS  # noqa: PLC0415
            from referee.adapters.keys.gateway.server import GatewayServer  # noqa: PLC0415

            bodies = BodyLog(self._directory / "bodies") if self._bodies else None
            patience = self._patience if self._patience is not None else PATIENCE_SECONDS
            self._server = GatewayServer(self._ca_bundle, bodies, patience_seconds=patience)
        return self._server

    def _token(self, run: str) -> str:
        return "sk-run-" + derive(workspace_secret(self._directory), _PURPOSE, run)[:_TOKEN_DIGITS]

    def _secrets(self, token: str) -> dict[str, str]:
        found = {RUN_KEY: token}
        for upstream in self._upstreams.values():
            found |= upstream.secrets()
        return found

    def _left(self, run: str) -> SpendingFacts | None:
        """What a key spent that this process did not issue, or does not hold any more."""
        entry = self._ledger.find(run)
        if entry is None or entry.broker != "gateway":
            return None
        if entry.spending is not None:
            return entry.spending
        facts = self._dead(entry)
        if facts.deleted:
            self._write_closed(entry, facts)
        return facts

    def _dead(self, entry: Entry) -> SpendingFacts:
        from referee.adapters.keys.gateway.account import facts_of  # noqa: PLC0415 — as above

        gone = entry.left_behind()
        found: list[Exchange] = self._journal.exchanges(entry.run)
        return facts_of(
            found,
            key=entry.name,
            model=entry.model,
            cap_usd=entry.cap_usd,
            broken=None,
            price=None,
            deleted=gone,
            how=f"{_CLOSED_BY_DEATH}; calls that were under way then are not counted" if gone else "its process lives",
        )

    def _never_made(self, entry: Entry | None) -> None:
        if entry is not None:
            self._journal.end(entry.run)
            facts = self._dead(entry)
            self._write_closed(entry, facts.model_copy(update={"deleted": True, "how": "it was never made"}))

    def _write_closed(self, entry: Entry, facts: SpendingFacts) -> None:
        if not facts.deleted:
            return
        try:
            self._ledger.closed(entry, facts)
        except OSError:
            return  # the next sweep finds the entry and closes it then


def _name(token: str) -> str:
    """What the key is called in records: tells two keys apart and leads back to none."""
    return "gateway-" + hashlib.sha256(f"referee gateway key\n{token}".encode()).hexdigest()[:16]
