"""Commands as a hint names them: with the workspace, wherever they would not find it by themselves."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from referee.adapters.catalog.workspace import Workspace, find_root

_COMMAND = re.compile(r"`(referee [^`]*)`")
_GIVEN = ("-w", "--workspace")


def command(line: str, workspace: Workspace) -> str:
    """``referee LINE`` as it is to be typed here: with ``-w DIR`` where the workspace is not reached without."""
    root = workspace.root
    reached = find_root(Path.cwd()).resolve() == root.resolve()
    return f"referee {line}{'' if reached else f' -w {shlex.quote(str(root))}'}"


def with_workspace(todo: str, argv: Sequence[str]) -> str:
    """What to do, its commands between backticks with the ``-w DIR`` that the command line ``argv`` was given."""
    given = next((there for word, there in pairwise(argv) if word in _GIVEN), None)
    given = given or next((word.partition("=")[2] for word in argv if word.startswith("--workspace=")), None)
    if given is None:
        return todo
    return _COMMAND.sub(lambda found: f"`{found[1]} -w {shlex.quote(given)}`", todo)
