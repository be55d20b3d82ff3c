"""What each run may have spent from an account, written down before it is spent.

``records/spend-<token>.jsonl`` is a chained file of one run and one account. A line says how much that run may have
spent at most, and is durable before the call that could make it true is begun. So a run that is killed at any moment
leaves an upper bound behind: what was under way counts as if it had cost what it could. A run that comes to its end
writes what it did spend.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path

from pydantic import ValidationError

from referee.adapters.store.exclusive import create_exclusively, write_whole
from referee.core.bakeoff import SpendBound
from referee.core.chain import forge, genesis, read_chain
from referee.errors import CouldNotVerify, Finding
from referee.regular_files import open_regular

PREFIX = "spend"
_FULL_DISK = "see that the disk of the workspace has room and can be written, then run again: it fills the gaps"


class SpendLog:
    """One run's spending from one account. Safe for several threads; its file is made by the first line."""

    def __init__(self, root: Path, *, run: str, account: str) -> None:
        self._root = root
        self._run = run
        self._account = account
        self._mutex = threading.Lock()
        self._descriptor: int | None = None
        self._seq = 0
        self._prev = ""
        self._bound = 0.0
        self._refused = ""

    def at_most(self, usd: float) -> None:
        """Make durable that so much may be spent; nothing is written where that stands there already.

        Raises:
            CouldNotVerify: the disk refused: from then on every bound is refused.
        """
        with self._mutex:
            if self._refused:
                raise CouldNotVerify(self._refused, todo=_FULL_DISK)
            if usd > self._bound:
                self._append(usd, final=False)
                self._bound = usd

    def close(self, spent: float | None) -> None:
        """Let go of the file; write what was spent, where that is known. Raises ``CouldNotVerify``."""
        with self._mutex:
            if self._descriptor is None:
                return
            try:
                if spent is not None and not self._refused:
                    self._append(spent, final=True)
            finally:
                os.close(self._descriptor)
                self._descriptor = None
                self._refused = "the log of what is spent was closed"

    def _append(self, usd: float, *, final: bool) -> None:
        try:
            if self._descriptor is None:
                self._descriptor, name = create_exclusively(self._root, PREFIX, ".jsonl")
                self._prev = genesis(name)
            body = SpendBound(run=self._run, account=self._account, usd=usd, final=final).model_dump(mode="json")
            line, digest = forge(body, seq=self._seq, prev=self._prev)
            write_whole(self._descriptor, line)
            os.fdatasync(self._descriptor)
        except BaseException as exc:  # how much of the line stands there is not known: nothing may follow it
            why = exc.strerror if isinstance(exc, OSError) else type(exc).__name__
            self._refused = f"what is spent could not be written down: {why}"
            if isinstance(exc, OSError):
                raise CouldNotVerify(self._refused, todo=_FULL_DISK) from exc
            raise
        self._seq, self._prev = self._seq + 1, digest


def bounds(root: Path, account: str) -> dict[str, float]:
    """What each run has spent from an account, US dollars: at most where the run did not come to its end.

    Raises:
        Finding: a file does not hold.
    """
    return {run: usd for (whose, run), usd in every_bound(root).items() if whose == account}


def every_bound(root: Path) -> dict[tuple[str, str], float]:
    """The same of every account: by account and run. Raises ``Finding``."""
    found: dict[tuple[str, str], float] = {}
    for path in sorted(root.glob(f"{PREFIX}-*.jsonl")):
        lines = read_bounds(path)
        if lines:
            key = (lines[0].account, lines[0].run)
            found[key] = found.get(key, 0.0) + lines[-1].usd  # bounds only rise, but for the final one
    return found


def read_bounds(path: Path) -> list[SpendBound]:
    """The whole lines of one file; a torn last one was never acted upon.

    Raises:
        Finding: a line does not continue the chain, or is no bound of the same run and account.
    """
    try:
        with os.fdopen(open_regular(path), "rb") as file:
            links, _ = read_chain(file.read(), file_name=path.name)
        lines = [SpendBound.model_validate(link.body) for link in links]
    except OSError as exc:
        raise Finding(f"{path.name} cannot be read: {exc.strerror}") from exc
    except ValidationError as exc:
        raise Finding(f"{path.name}: a line does not say what may have been spent") from exc
    for number, line in enumerate(lines, 1):
        if (line.run, line.account) != (lines[0].run, lines[0].account) or (line.final and number < len(lines)):
            raise Finding(f"{path.name}, line {number}: does not belong to the run and account of the first")
    return lines
