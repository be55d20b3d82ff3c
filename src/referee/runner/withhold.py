"""Keeps the run's key out of everything that a run leaves; what cannot be shown free of it is withheld.

Three times: what comes out of the machine is redacted before it is written (the recording by its sieve, the rest by
``ScreenedMachine``), what lies in the spool is redacted once more, and then every byte is read and proven. A file of
which that cannot be shown is deleted, never sealed, and the run is repeated (methodology §11).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from threading import Event
from typing import BinaryIO

from referee.adapters.recorder import CAST_NAME, RAW_NAME, TIMING_NAME, TRANSCRIPT_NAME, chunks
from referee.core.failure import FAILURES, Cause
from referee.core.records import AttemptEnded, QuietFacts
from referee.core.redaction import Redactor
from referee.core.sieve import Sieve, shown_free, sifted
from referee.protocols import Completed, Machine, Session
from referee.runner.seal import facts_bytes

#: What is written before the run has a key, from what never saw it.
_BEFORE_THE_KEY = frozenset({"mission.json", "subject.toml", "packages.json", "lock.json"})
#: One recording: its parts are kept or withheld together. They are never rewritten.
_RECORDING = frozenset({RAW_NAME, TIMING_NAME, CAST_NAME, TRANSCRIPT_NAME})


class Screen:
    """What one run's evidence must be free of.

    Args:
        secrets: the values, by name.

    Raises:
        UsageError: one of them is too short to be told from ordinary text.
    """

    def __init__(self, secrets: Mapping[str, str]) -> None:
        self._redactor = Redactor(secrets)
        self.sieve = Sieve(self._redactor)
        self._unclear: list[str] = []

    def machine(self, machine: Machine) -> Machine:
        """The machine, whose words come out redacted."""
        return ScreenedMachine(machine, self)

    def document(self, data: bytes, name: str) -> bytes:
        """``data`` without the values; a document keeps its form. Where that cannot be done, it is noted."""
        clean = self._redactor.redact(data)
        if clean != data and clean == self._redactor.withheld:
            self._unclear.append(name)
        return clean

    def printed(self, data: bytes, name: str) -> bytes:
        """The same of what a command printed."""
        sieve = Sieve(self._redactor)
        clean = b"".join(sifted([data], sieve))
        if sieve.unclear:
            self._unclear.append(name)
        return clean

    def value(self, value: dict[str, object]) -> dict[str, object]:
        """A JSON value without the values."""
        clean: dict[str, object] = self._redactor.redact_value(value)
        return clean

    def withhold(self, directory: Path) -> tuple[str, ...]:
        """Redact what can be, prove every file, delete those of which that cannot be shown.

        Returns:
            The names of what is withheld, and of what came out of the machine and could not be redacted.
        """
        gone = set(self._unclear)
        files = {path.name: path for path in sorted(directory.iterdir()) if path.is_file()}
        for name, path in files.items():
            if name not in _RECORDING and not self._redact_file(path):
                gone.add(name)
            if not shown_free(chunks(path), self._redactor):
                gone.add(name)
        if self.sieve.unclear or gone & _RECORDING:
            gone |= _RECORDING & files.keys()
        for name in gone & files.keys():
            files[name].unlink()
        return tuple(sorted(gone))

    def _redact_file(self, path: Path) -> bool:
        """Cut the values out of a file; False where their places cannot be told."""
        data = path.read_bytes()
        clean = self._redactor.redact(data)
        if clean == data:
            return True
        if clean != self._redactor.withheld:
            beside = path.with_name(f".{path.name}.clean")
            beside.write_bytes(clean)
            beside.replace(path)  # never in place: what a dead run had sealed already shares its bytes with the store
        return clean != self._redactor.withheld

    def ended(self, ended: AttemptEnded) -> AttemptEnded:
        """The record of an attempt's end without the values."""
        if self._redactor.empty:
            return ended
        clean = AttemptEnded.model_validate(self._redactor.redact_value(ended.model_dump()))
        if not self._redactor.holds(facts_bytes(clean)):
            return clean
        return clean.model_copy(
            update={
                "cause": Cause.CREDENTIAL_IN_EVIDENCE,
                "detail": FAILURES[Cause.CREDENTIAL_IN_EVIDENCE].sentence,
                "report_rejected": None,
                "rerun": None,
                "observed": None,
                "network": None,
                "machine": {},
            }
        )


def withhold_all(directory: Path) -> tuple[str, ...]:
    """Of a run whose key is not known: delete all that may hold it; return the names."""
    left = sorted(path for path in directory.glob("*") if path.is_file() and path.name not in _BEFORE_THE_KEY)
    for path in left:
        path.unlink()
    return tuple(path.name for path in left)


class ScreenedMachine:
    """A machine (``protocols.Machine``) that never says a value: the recorder's sieve sees to its sessions."""

    def __init__(self, machine: Machine, screen: Screen) -> None:
        self.run = machine.run
        self._machine = machine
        self._screen = screen

    def session(
        self, argv: Sequence[str], *, environment: Mapping[str, str], cwd: str, columns: int, rows: int
    ) -> Session:
        """As it is: it is recorded through the sieve."""
        return self._machine.session(argv, environment=environment, cwd=cwd, columns=columns, rows=rows)

    def execute(
        self,
        argv: Sequence[str],
        *,
        timeout: float,
        environment: Mapping[str, str] | None = None,
        cwd: str = "/",
        max_output: int = 1_000_000,
        stop: Event | None = None,
    ) -> Completed:
        """Run a command; what it printed comes redacted."""
        done = self._machine.execute(
            argv, timeout=timeout, environment=environment, cwd=cwd, max_output=max_output, stop=stop
        )
        clean = self._screen.printed(done.output, "what a command of the harness printed")
        return Completed(done.exit_status, clean, done.timed_out, done.truncated)

    def put(self, tar: BinaryIO, at: str) -> None:
        """As it is."""
        self._machine.put(tar, at)

    def read_file(self, path: str, *, max_bytes: int) -> bytes | None:
        """A file's bytes, redacted; JSON stays JSON."""
        data = self._machine.read_file(path, max_bytes=max_bytes)
        return None if data is None else self._screen.document(data, Path(path).name)

    def take(self, path: str) -> AbstractContextManager[BinaryIO]:
        """As it is: a directory that is taken out is no evidence."""
        return self._machine.take(path)

    def quiet(self) -> QuietFacts:
        """As it is."""
        return self._machine.quiet()

    def trouble(self) -> str | None:
        """As it is."""
        return self._machine.trouble()

    def facts(self) -> dict[str, object]:
        """What to keep of the machine, redacted."""
        return self._screen.value(self._machine.facts())

    def destroy(self) -> None:
        """As it is."""
        self._machine.destroy()
