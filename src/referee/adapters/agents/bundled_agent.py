"""A program of this installation as an agent: published as a read-only directory for ``/opt/agent``."""

from __future__ import annotations

import functools
import hashlib
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal

import referee
from referee.core.canonical import digest_of
from referee.protocols import AGENT_HOME, Access, AgentStart, ModelNeed, PlacedFile


class BundledAgent:
    """A built-in agent, started with the machine's own Python. No model takes part.

    Args:
        name: its name on records and boards.
        contents: the files that the machine will see, by their paths below ``/opt/agent``; asked once.
        program: which of these paths is started: a file, or a directory that holds a ``__main__.py``.
        cache: directory for prepared copies, by digest; can be deleted without loss.
    """

    tier: Literal["standard"] = "standard"

    def __init__(self, name: str, *, contents: Callable[[], Mapping[str, bytes]], program: str, cache: Path) -> None:
        self.name = name
        self.version = referee.__version__
        self._contents = functools.cache(contents)
        self._program = program
        self._cache = cache

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
        """Tagged digest over every file that the machine will see."""
        listing = {name: hashlib.sha256(data).hexdigest() for name, data in self._contents().items()}
        return digest_of("agent", {"name": self.name, "files": listing})

    def prepare(self) -> AgentStart:
        """Publish the agent's directory in the cache (once per digest) and say how to start it."""
        home = self._cache / "agents" / f"{self.name}-{self.digest().rsplit(':', 1)[1][:32]}"
        if not home.is_dir():
            self._publish(home)
        argv = ("/usr/bin/python3", "-I", "-B", "-u", f"{AGENT_HOME}/{self._program}")
        return AgentStart(argv=argv, environment={}, inputs={home: AGENT_HOME})

    def _publish(self, home: Path) -> None:
        home.parent.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix="draft-", dir=home.parent))
        try:
            for name, data in self._contents().items():
                file = draft / name
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(data)
                file.chmod(0o644)
            draft.chmod(0o755)
            draft.rename(home)
        except OSError:
            if not home.is_dir():  # another harness may have published the same digest meanwhile
                raise
        finally:
            if draft.exists():
                shutil.rmtree(draft)
