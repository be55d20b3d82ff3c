"""The files that a command runs, as far as their texts are known: scripts, tasks, and what it wrote itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from tree_sitter import Node

from referee.scoring.by_itself import ALSO, also, in_its_place, modules_first, sources
from referee.scoring.shell_grammar import functions, parsed
from referee.scoring.shell_words import Step, bare, interpreter_of, is_interpreter, script_place, task_of


class RunFiles:
    """What stands in the files of one command.

    Args:
        scripts: texts of files, by the word that names each.
        roles: gives the roles of the steps of shell text; None where it cannot be read.
    """

    def __init__(self, scripts: Mapping[str, str], roles: Callable[[str], list[str] | None]) -> None:
        self._scripts = scripts
        self._roles = roles
        self._written: dict[str, str] = {}

    def wrote(self, places: tuple[str, ...], text: str | None) -> None:
        """The command wrote into these files; ``text`` is None where it cannot be told what."""
        self._written.update(dict.fromkeys(places, text) if text is not None else {})

    def read_in(self, step: Step, sets: list[tuple[str, str]]) -> Step:
        """The step; where it runs a script whose text is known, with that text.

        Args:
            step: a step.
            sets: variables that the command has set so far.
        """
        words = bare(step.words)
        said_by = self._by_itself(words, modules_first(step.words, sets))
        if said_by is not None:
            return said_by
        if len(words) > 1 and words[1] in self._written and is_interpreter(words[0]):
            return Step((words[0],), stdin=self._written[words[1]])
        task = self._scripts.get(task_of(words) or "")
        if task is not None:
            return replace(step, words=("sh",), stdin=task, scripted=True)
        place = script_place(words)
        text = self._scripts.get(place) if place is not None else None
        if text is None:
            return step
        interpreter = words[0] if place != words[0] else interpreter_of(text)
        if interpreter is None or not is_interpreter(interpreter):
            return step
        return replace(step, words=(interpreter,), stdin=text, scripted=True)

    def functions_of(self, words: list[str]) -> list[tuple[Node, Node]]:
        """The functions of a file that a command reads into the running shell: their names' nodes and their bodies."""
        root = parsed(self._scripts.get(ALSO + words[1], "")) if sources(tuple(words)) else None
        return [] if root is None else list(functions(root))

    def named(self) -> dict[str, str]:
        """The texts of the files that commands name, without those that stand in front of what they seem to run."""
        return {word: one for word, one in self._scripts.items() if not word.startswith(ALSO)}

    def _by_itself(self, words: tuple[str, ...], modules: tuple[str, ...]) -> Step | None:
        """What stands in front of the command's program and says the result by itself."""
        for word in also(words, modules):
            text = self._scripts.get(ALSO + word)
            found = None if text is None or sources(words) else in_its_place(words, word, text, self._roles)
            if found is not None:
                return found
        return None
