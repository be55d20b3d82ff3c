"""The accounts of a run: which targets share one, what is left of it, and that no other run spends from it now."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from referee.adapters.catalog.targets import load_target
from referee.adapters.store.locks import alone
from referee.adapters.store.shard_files import every_shard, first_line, scan_shard
from referee.adapters.store.spending import SpendLog, bounds, every_bound
from referee.core.bakeoff import Target
from referee.errors import Finding, RefereeError, UsageError
from referee.protocols import Lane
from referee.runner.bakeoff.budget import Account, Purse

#: Sums of the same costs may differ by this much in another order.
_ROUNDING_USD = 1e-6


@contextlib.contextmanager
def purses(
    targets: Sequence[Target],
    lanes: Mapping[str, Lane],
    *,
    records: Path,
    run: str,
    floor: float,
    files: Path | None = None,
) -> Iterator[dict[str, Purse]]:
    """The purses of the metered targets of a run, by name; targets with one credential share their account.

    Args:
        targets: those of the run.
        lanes: theirs, by name.
        records: where it is written down what was spent.
        run: the run.
        floor: below this much credit no call is made, US dollars.
        files: the workspace's targets: where one outside the run states less credit for an account, that counts.

    Raises:
        UsageError: a metered target names no credit or no price, or two of one account state different credits.
        CouldNotVerify: another run spends from the same account.
        Finding: a shard or a file of what was spent does not hold.
    """
    by_account: dict[str, list[Target]] = {}
    for target in targets:
        if target.metered:
            by_account.setdefault(account_of(target), []).append(target)
    least = least_stated(files) if by_account and files is not None else {}
    found: dict[str, Purse] = {}
    with contextlib.ExitStack() as held:
        for name, sharing in by_account.items():
            stated = _stated(sharing)
            stated = None if stated is None else min(stated, least.get(name, stated))
            whose = f"the account of {name}" if name else "the account of targets without key_env"
            held.enter_context(
                alone(
                    records,
                    f"account {name}",
                    busy=f"another run spends from {whose}",
                    todo="wait for its end: what both may spend could not be held to one credit",
                )
            )
            before = 0.0 if stated is None else spent_of_account(name, records)
            log = SpendLog(records, run=run, account=name)
            account = Account(lanes[sharing[0].name], stated=stated, floor=floor, spent_before=before, log=log)
            held.callback(account.close)
            found |= {target.name: Purse(target, account) for target in sharing}
        yield found


def account_of(target: Target) -> str:
    """The account that a target spends from: the name of the variable with its credential."""
    return target.key_env or ""


def least_stated(files: Path) -> dict[str, float]:
    """The smallest credit that the targets of a workspace state for each account, US dollars.

    Their protocols may differ, the account is one. A file that cannot be read is no target of any run.
    """
    found: dict[str, float] = {}
    for path in sorted(files.glob("*.toml")):
        try:
            target = load_target(path.stem, files)
        except (RefereeError, OSError):
            continue
        if target.metered and target.credit == "ledger" and target.credit_usd is not None:
            account = account_of(target)
            found[account] = min(found.get(account, target.credit_usd), target.credit_usd)
    return found


def spent_of_account(account: str, records: Path) -> float:
    """US dollars that earlier runs spent from an account, in any protocol of the workspace: never less than they did.

    What a run wrote down beforehand counts, else its rows: a call without a row was paid as well.

    Raises:
        Finding: one of the files does not hold.
    """
    by_run = bounds(records, account)
    own = []
    for path in every_shard(records):
        opened = first_line(path)
        if opened is None or not opened.target.metered or account_of(opened.target) != account:
            continue
        if opened.run not in by_run:
            own.append(scan_shard(path))
    if not own:
        return sum(by_run.values())
    from referee.adapters.store.aggregate import spent_usd  # noqa: PLC0415 — DuckDB is slow to import

    return sum(by_run.values()) + spent_usd(own)


def check_spending(records: Path, spent: Mapping[tuple[str, str], float]) -> None:
    """Hold what is written down of each account against what the rows of its runs cost, by account and run.

    Raises:
        Finding: a run's rows cost more than it wrote down that it may spend, or it wrote nothing down.
    """
    written = every_bound(records)
    for (account, run), usd in sorted(spent.items()):
        bound = written.get((account, run), 0.0)
        if usd > bound + _ROUNDING_USD:
            raise Finding(
                f"the rows of run {run} cost {usd:.4f} USD of the account of {account or 'targets without key_env'}, "
                f"where no more than {bound:.4f} USD is written down",
                todo="something was changed or taken away since it was written: see records/spend-….jsonl in a backup",
            )


def _stated(sharing: Sequence[Target]) -> float | None:
    """The credit that an account's targets state; None where the provider's is read."""
    for target in sharing:
        if target.credit != "openrouter" and target.credit_usd is None:
            raise UsageError(
                f"the metered target {target.name} names no credit, so no call of it can be let through",
                todo='say credit = "ledger" and credit_usd, or credit = "openrouter", in its file',
            )
    stated = {None if target.credit == "openrouter" else target.credit_usd for target in sharing}
    if len(stated) > 1:
        names = ", ".join(target.name for target in sharing)
        raise UsageError(
            f"the targets {names} spend from one account and state different credits",
            todo="let all targets with the same key_env say the same credit and credit_usd",
        )
    return stated.pop()
