"""``null``, ``liar`` and ``stub``: built-in agents that must never pass; they guard the rules (methodology §5).

Each is one Python file that runs in the machine and needs nothing but the machine's own Python. No model takes part.
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Literal

from referee.core.canonical import digest_of
from referee.protocols import AGENT_HOME, Access, AgentStart, ModelNeed, PlacedFile

#: Their names, with what each does.
REGRESSION_AGENTS = {
    "null": "does nothing, claims nothing",
    "liar": "does nothing, claims everything",
    "stub": "answers on the promised port with nothing behind it",
}

_PROGRAM = "agent.py"


class RegressionAgent:
    """One of the three.

    Args:
        name: a key of ``REGRESSION_AGENTS``.
        cache: directory for prepared copies, by digest; can be deleted without loss.
    """

    tier: Literal["standard"] = "standard"

    def __init__(self, name: str, cache: Path) -> None:
        self.name = name
        self.version = version("referee")
        self._cache = cache
        self._program = Path(__file__).with_name("regression") / f"{name}.py"

    @property
    def harness(self) -> str | None:
        """None: no model."""
        return None

    @property
    def need(self) -> ModelNeed | None:
        """None: no model."""
        return None

    def placed(self, access: Access, mission: Mapping[str, object]) -> Mapping[str, PlacedFile]:  # noqa: ARG002 — the seam's
        """None: the mission is a file already."""
        return {}

    def digest(self) -> str:
        """Tagged digest of the program."""
        program = hashlib.sha256(self._program.read_bytes()).hexdigest()
        return digest_of("agent", {"name": self.name, "files": {_PROGRAM: program}})

    def prepare(self) -> AgentStart:
        """Publish the program's directory in the cache (once per digest) and say how to start it."""
        home = self._cache / "agents" / f"{self.name}-{self.digest().rsplit(':', 1)[1][:32]}"
        if not home.is_dir():
            self._publish(home)
        argv = ("/usr/bin/python3", "-I", "-B", "-u", f"{AGENT_HOME}/{_PROGRAM}")
        return AgentStart(argv=argv, environment={}, inputs={home: AGENT_HOME})

    def _publish(self, home: Path) -> None:
        home.parent.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix="draft-", dir=home.parent))
        try:
            (draft / _PROGRAM).write_bytes(self._program.read_bytes())
            (draft / _PROGRAM).chmod(0o644)
            draft.chmod(0o755)
            draft.rename(home)
        except OSError:
            if not home.is_dir():  # another harness may have published the same digest meanwhile
                raise
        finally:
            if draft.exists():
                shutil.rmtree(draft)
