"""What tells the pinned project, and what does not, in what an agent left on its machine (methodology §5, edition 2).

What is seen becomes facts and evidence; what follows from it, scoring says.
"""

from __future__ import annotations

import contextlib
import posixpath
from pathlib import Path
from typing import Any

from referee.benchmarks.bringup.installed import installed
from referee.benchmarks.bringup.origin import module_names, of_the_project, packages, promises
from referee.benchmarks.bringup.scripts import program, script_text
from referee.core.records import CompiledFacts, ListenerFacts
from referee.core.report import Report, Verification
from referee.errors import MachineFault
from referee.protocols import Machine
from referee.scoring.serving import imported
from referee.scoring.shell_words import bare
from referee.scoring.stand_ins import inline, is_runtime

#: Of a reported result so many lines are looked for in the documentation.
_LINES = 40
#: So many names that a script brings in are looked at.
_NAMES = 60


class Traces:
    """What was looked at so far.

    Args:
        pinned: the placement's root on the host.
    """

    def __init__(self, pinned: Path) -> None:
        self._pinned = pinned
        self._compiled: dict[str, bool | None] = {}
        self.known: dict[str, tuple[str, ...]] = {}

    def script(self, machine: Machine, place: str, text: str) -> None:
        """A script of the agent's own behind a port: which of the names in it are the project's.

        A file beside it is, where it brings the project itself.
        """
        if place in self.known:
            return
        ours = module_names(self._pinned)
        found = set()
        for name in sorted(imported(text))[:_NAMES]:
            beside = _beside(place, name)
            near = None if name in ours or beside is None else script_text(machine, beside, pinned=self._pinned)
            if name in ours or (near is not None and imported(near) & ours):
                found.add(name)
        self.known[place] = tuple(sorted(found))

    def listener(self, machine: Machine, one: ListenerFacts) -> None:
        """A process behind a port: code on its command line, and its program where that is compiled."""
        text = inline(bare(one.argv))
        if text is not None:
            self.script(machine, text, text)
        place = one.executable
        if place is not None and place not in self._compiled and not is_runtime(place):
            data = program(machine, place)
            self._compiled[place] = None if data is None else of_the_project(data, self._pinned)

    def program(self, place: str, data: bytes) -> bool:
        """A compiled program that the command runs; whether it surely does not come from the project's sources."""
        self._compiled[place] = of_the_project(data, self._pinned)
        return self._compiled[place] is False

    def promised(self, report: Report | None) -> tuple[tuple[str, str, str], ...]:
        """Where the pinned documentation says what the report says was returned."""
        claim = None if report is None else report.verified_how
        lines = claim.returned.splitlines() if isinstance(claim, Verification) else []
        return promises([line for line in lines if line.strip()][:_LINES], self._pinned)

    def facts(self, machine: Machine, names: tuple[str, ...], *, borne_out: bool) -> dict[str, Any]:
        """What is written down when the command has run again.

        Args:
            machine: the attempt's machine.
            names: what the project is called.
            borne_out: the re-run bears the report out: only then it matters which copies are installed, and the whole
                machine is walked for them.
        """
        told = {place: own for place, own in self._compiled.copy().items() if own is not None}
        facts: dict[str, Any] = {
            "compiled": tuple(CompiledFacts(place=place, of_the_project=told[place]) for place in sorted(told))
        }
        if borne_out:
            with contextlib.suppress(MachineFault):
                facts["installed"] = installed(machine, names, packages(self._pinned))
        return facts


def _beside(place: str, name: str) -> str | None:
    """The file beside a script that a name stands for; None where it can stand for none."""
    if not place.startswith("/") or "\n" in place or name.startswith("/"):
        return None
    folder = posixpath.dirname(place)
    if name.startswith("./"):
        path = posixpath.normpath(posixpath.join(folder, name))
        return path if path.endswith((".js", ".mjs", ".cjs")) else f"{path}.js"
    return f"{folder}/{name}.py" if name.isidentifier() else None
