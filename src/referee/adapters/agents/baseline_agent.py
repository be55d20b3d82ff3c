"""``baseline``: the built-in agent, made ready as a read-only directory for ``/opt/agent``.

The agent's program is the package ``baseline`` beside this file. It runs inside the machine and never imports the
referee; what it needs of third-party Python (a Markdown and a reStructuredText parser, pure Python) is
copied beside it from this installation, so that nothing is installed into the machine.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Mapping
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from referee.core.canonical import digest_of
from referee.errors import InternalError
from referee.protocols import AGENT_HOME, Access, AgentStart, ModelNeed, PlacedFile

#: Importable packages copied beside the agent, with the distribution that owns each.
CARRIED = {"markdown_it": "markdown-it-py", "mdurl": "mdurl", "docutils": "docutils"}

_START = '"""Starts the agent."""\nfrom baseline.__main__ import main\n\nmain()\n'


class BaselineAgent:
    """No model, deterministic: the floor of every board and the free check for maintainers.

    Args:
        cache: directory for prepared copies, by digest; can be deleted without loss.
    """

    name = "baseline"
    tier: Literal["standard"] = "standard"

    def __init__(self, cache: Path) -> None:
        self._cache = cache
        self._files: dict[str, bytes] | None = None
        self.version = version("referee")

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
        home = self._cache / "agents" / f"baseline-{self.digest().rsplit(':', 1)[1][:32]}"
        if not home.is_dir():
            self._publish(home)
        return AgentStart(
            argv=("/usr/bin/python3", "-I", "-B", "-u", f"{AGENT_HOME}/lib"),
            environment={},
            inputs={home: AGENT_HOME},
        )

    def _publish(self, home: Path) -> None:
        home.parent.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix="draft-", dir=home.parent))
        try:
            for name, data in self._contents().items():
                file = draft / name
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(data)
            draft.chmod(0o755)
            draft.rename(home)
        except OSError:
            if not home.is_dir():  # another harness may have published the same digest meanwhile
                raise
        finally:
            if draft.exists():
                shutil.rmtree(draft)

    def _contents(self) -> dict[str, bytes]:
        if self._files is None:
            files = {"lib/__main__.py": _START.encode()}
            files |= _python_files(Path(__file__).with_name("baseline"), "lib/baseline")
            for package in CARRIED:
                files |= _python_files(_package_directory(package), f"lib/{package}")
            self._files = dict(sorted(files.items()))
        return self._files


def _package_directory(package: str) -> Path:
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise InternalError(f"the package {package} of this installation cannot be found")
    return Path(next(iter(spec.submodule_search_locations)))


def _python_files(directory: Path, prefix: str) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for parent, folders, names in os.walk(directory):
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        for name in names:
            if not name.endswith((".pyc", ".pyi")):
                file = Path(parent) / name
                found[f"{prefix}/{file.relative_to(directory).as_posix()}"] = file.read_bytes()
    return found
