"""What the harness observes beside the re-run, and in which order (methodology §5, edition 2).

``benchmarks.bringup`` observes, ``scoring`` reads commands and judges; here both meet: what is worth asking of a
command is read from its shape, and what was seen is kept as facts and evidence, so that it can be judged again.
"""

from __future__ import annotations

import contextlib
import posixpath
from collections.abc import Callable
from functools import partial
from pathlib import Path

from referee.benchmarks.bringup.challenge import challenge
from referee.benchmarks.bringup.control import control
from referee.benchmarks.bringup.descent import is_mended_or_built
from referee.benchmarks.bringup.listeners import Watch, listening
from referee.benchmarks.bringup.rerun import rerun
from referee.benchmarks.bringup.restore import Standing, hooks, restore
from referee.benchmarks.bringup.scripts import read_scripts, script_text
from referee.core.records import AskedFacts, ListenerFacts, ObservedFacts, RerunFacts
from referee.core.report import Report, Verification
from referee.core.scripts import SCRIPTS_NAME, Scripts, scripts_bytes
from referee.errors import EngineUnavailable, EnvironmentUnavailable, MachineFault
from referee.protocols import Machine
from referee.runner.traces import Traces
from referee.scoring.challenges import RULES, challenges
from referee.scoring.command_parts import MOST_SCRIPTS, parts
from referee.scoring.corroboration import corroborate
from referee.scoring.stand_ins import placed

#: Seconds for the command on a fresh machine, and with each chosen input: what it took, thrice, and a little more; for
#: a slow one half as much again.
_LEAST, _TIMES, _MOST, _SLOWER = 15.0, 3.0, 120.0, 1.5
_CHALLENGE_SECONDS = 240.0


class Observer:
    """Observes one attempt; ``facts`` is what came of it so far.

    Args:
        run: the run's id.
        pinned: the placement's root on the host.
        directory: where evidence is written.
        fresh: makes a machine like the attempt's, where nothing was placed and no agent has worked.
        names: what the project is called.
    """

    def __init__(
        self, run: str, pinned: Path, directory: Path, fresh: Callable[[], Machine], *, names: tuple[str, ...]
    ) -> None:
        self._run = run
        self._pinned = pinned
        self._directory = directory
        self._fresh = fresh
        self._named: dict[str, str] = {}
        self._placed: dict[str, str | bytes] = {}
        self._names = names
        self._traces = Traces(pinned)
        self._promised: tuple[tuple[str, str, str], ...] = ()
        self._asked: set[str] = set()
        self._behind: dict[str, str | None] = {}
        self.facts = ObservedFacts()

    def at_the_end(self, machine: Machine) -> None:
        """While the agent's processes still live: what listens, and the scripts behind it."""
        try:
            found = listening(machine)
        except MachineFault:
            return
        self._note(listening=found)
        self._read_behind(machine, found)
        self._keep()

    def rerun(self, machine: Machine, report: Report | None, *, timeout: float) -> RerunFacts | None:
        """Run the reported command again, in a machine made ready for it, and watch what listens meanwhile.

        Args:
            machine: the attempt's machine, quiet.
            report: the agent's report.
            timeout: seconds after which the command is stopped.
        """
        command = _command(report)
        if command is None:
            return None
        with Watch(machine, lambda found: self._read_behind(machine, found)) as watch:
            self._ready(machine, command)  # meanwhile the watch begins
            done = rerun(machine, report, directory=self._directory, timeout=timeout)
        if watch.found is not None:
            self._note(listening_in_rerun=watch.found)
        self._note(**self._traces.facts(machine, self._names, borne_out=self.bears_out(report, done)))
        self._read_started(machine, command)
        self._promised = self._traces.promised(report)
        self._keep()
        return done

    def bears_out(self, report: Report | None, again: RerunFacts | None) -> bool:
        """Whether the re-run bears the report out so far: only then is more asked of its command."""
        if again is None or again.output is None:
            return False
        output = (self._directory / again.output).read_bytes()
        return corroborate(report, again, output).status == "corroborated"

    def has_inputs(self, report: Report | None) -> bool:
        """Whether the reported command has inputs in whose place others can be put."""
        command = _command(report)
        return command is not None and bool(challenges(command, self._run))

    def challenge(self, machine: Machine, report: Report | None, again: RerunFacts | None) -> None:
        """Run the command with inputs that the harness chose, where it has inputs."""
        command = _command(report)
        if command is None or again is None:
            return
        asked = [(one.original, one.replaced_by, one.command) for one in challenges(command, self._run)]
        if asked:
            limit = _seconds(again)
            most = max(_CHALLENGE_SECONDS, 2 * limit)
            seen, left = challenge(machine, asked, directory=self._directory, timeout=limit, seconds=most)
            self._note(challenges=seen, asked=AskedFacts(rules=RULES, number=len(asked), left=left))

    def control(self, fresh: Machine, again: RerunFacts) -> None:
        """Run the command where nothing of the project is."""
        done = control(fresh, again.command, directory=self._directory, timeout=_seconds(again), scripts=self._placed)
        self._note(control=done)

    def _ready(self, machine: Machine, command: str) -> None:
        """Read the agent's scripts that the command runs; put back what steers it."""
        standing = Standing(self._pinned, tests=parts(command, self._named).tests)
        while self._read_scripts(machine, command, standing):
            pass  # each may name others
        if parts(command, self._named).tests is not standing.tests:
            standing = Standing(self._pinned, tests=not standing.tests)
        self._note(restored=restore(machine, standing, before=self._hooks))

    def _hooks(self) -> frozenset[tuple[str, str]]:
        """What such a machine itself brings to every start of Python; a fault there tells nothing of the attempt's."""
        with contextlib.suppress(MachineFault, EngineUnavailable, EnvironmentUnavailable):
            fresh = self._fresh()
            try:
                return hooks(fresh)
            finally:
                fresh.destroy()
        return frozenset()

    def _read_scripts(self, machine: Machine, command: str, standing: Standing) -> bool:
        """Read scripts that the command is known to name so far; whether any was new."""
        read = parts(command, self._named)
        wanted = [one for one in read.scripts if one.key not in self._asked][: MOST_SCRIPTS - len(self._asked)]
        self._asked |= {one.key for one in wanted}
        places = dict.fromkeys((one.word, one.cwd, one.program) for one in wanted)
        found = {}
        if wanted:
            asked = partial(standing.ask_beside, machine)
            found = read_scripts(machine, places, search=read.search, pinned=self._pinned, asked=asked)
        texts = {word: one for word, one in found.items() if one.program is None}
        self._named |= {one.key: texts[one.word].text for one in wanted if one.word in texts}
        self._placed |= {one.place: one.text for one in texts.values() if one.place is not None}
        for one in found.values():
            if one.program is not None and one.place is not None and self._traces.program(one.place, one.program):
                self._placed[one.place] = one.program
        return bool(found)

    def _read_behind(self, machine: Machine, listeners: tuple[ListenerFacts, ...]) -> None:
        for one in listeners:
            place = placed(one)
            if place is not None and place not in self._behind:
                text = script_text(machine, place, pinned=self._pinned)
                own = text is not None and not is_mended_or_built(place, text, self._pinned)
                self._behind[place] = text if own else None
                if own and text is not None:
                    self._traces.script(machine, place, text)
            self._traces.listener(machine, one)

    def _read_started(self, machine: Machine, command: str) -> None:
        """Scripts that the command runs: one may serve too briefly to be seen behind its port."""
        for one in parts(command, {}).scripts:
            text = self._named.get(one.key)
            place = posixpath.normpath(posixpath.join(one.cwd, one.word))
            if text is not None and not one.program and one.key == one.word and place not in self._behind:
                own = not is_mended_or_built(place, text, self._pinned)
                self._behind[place] = text if own else None
                if own:
                    self._traces.script(machine, place, text)

    def _keep(self) -> None:
        # A look that is late may still add to these.
        behind = {place: text for place, text in self._behind.copy().items() if text is not None}
        known = self._traces.known.copy()
        if behind or self._named or known or self._promised:
            data = scripts_bytes(Scripts(named=self._named, behind=behind, known=known, promised=self._promised))
            (self._directory / SCRIPTS_NAME).write_bytes(data)

    def _note(self, **facts: object) -> None:
        self.facts = self.facts.model_copy(update=facts)


def has_command(report: Report | None) -> bool:
    """Whether the report names a command that can be run again."""
    return _command(report) is not None


def _command(report: Report | None) -> str | None:
    claim = None if report is None else report.verified_how
    return claim.command if isinstance(claim, Verification) else None


def _seconds(again: RerunFacts) -> float:
    return max(min(_MOST, _LEAST + _TIMES * again.seconds), _SLOWER * again.seconds)
