"""The ways in which the shape of a command lets a failure get lost (methodology §5): each notes a trap by its name."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from referee.scoring.shell_words import Mode, Step

#: Says what a step is: see ``shell.take_apart``.
Judge = Callable[[Step], str]

#: What behind ``||`` does not turn a failure into a success: another try, a failure of its own, a status put by.
_HONEST_AFTER = {"works", "hides", "fails", "keeps", "setup"}


class LostFailures:
    """Looks at steps that stand together.

    Args:
        trap: takes the name of each way that was found.
        role: what a step is.
    """

    def __init__(self, trap: Callable[[str], None], role: Judge) -> None:
        self._trap = trap
        self._role = role

    def behind_others(self, groups: Sequence[Sequence[Step]]) -> None:
        """Statements one after the other without ``set -e``: only the last one's status is left."""
        if any(step.words == ("break",) for steps in groups for step in steps):
            return  # a loop that waits: its last command only lets time pass
        masked = False
        for steps in reversed(groups):
            roles = [self._role(step) for step in steps if not step.background]
            if "works" in roles:
                if masked:
                    self._trap("masks_failure")
                return
            if roles and all(role == "says" for role in roles):
                masked = True
            elif "keeps" not in roles and roles:
                # Something that can fail by itself (kill, cd): the status is its own, what came before is judged
                # by its output alone.
                return

    def by_fallback(self, before: Sequence[Step], after: Sequence[Step]) -> None:
        """What stands behind ``||``."""
        works = self._works(before)
        if works and after and all(self._role(step) in {"says", "keeps"} for step in after):
            self._trap("masks_failure")
        elif works and after and not any(self._role(step) in _HONEST_AFTER for step in after):
            self._trap("accepts_failure")

    def in_pipe(self, parts: Sequence[Sequence[Step]], mode: Mode) -> None:
        """A pipe's status is its last part's, unless ``pipefail`` is set."""
        earlier = [step for part in parts[:-1] for step in part]
        if not mode.pipefail and any(self._role(step) in {"works", "hides", "fails"} for step in earlier):
            self._trap("pipe_without_pipefail")

    def by_negation(self, steps: Sequence[Step]) -> None:
        """Steps behind ``!``."""
        if steps:
            self._trap("negates_failure")

    def in_condition(self, condition: Sequence[Step], branches: Sequence[Step]) -> None:
        """A failure that is asked for with ``if`` has to lead to one."""
        if self._works(condition) and not any(self._role(step) == "fails" for step in branches):
            self._trap("masks_failure")

    def in_words(self, step: Step, inside: Sequence[Step]) -> None:
        """What runs inside the words of a command that cannot fail."""
        if self._role(step) == "says" and self._works(inside):
            self._trap("masks_failure")

    def _works(self, steps: Sequence[Step]) -> bool:
        return any(self._role(step) == "works" for step in steps)
