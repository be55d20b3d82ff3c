"""``baseline``: the built-in agent that works without a model.

Its program is the package ``baseline`` beside this file. It runs inside the machine and never imports the
referee; what it needs of third-party Python (a Markdown and a reStructuredText parser, pure Python) is
copied beside it from this installation, so that nothing is installed into the machine.
"""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

from referee.adapters.agents.bundled_agent import BundledAgent
from referee.errors import InternalError

#: Importable packages copied beside the agent, with the distribution that owns each.
CARRIED = {"markdown_it": "markdown-it-py", "mdurl": "mdurl", "docutils": "docutils"}

_START = '"""Starts the agent."""\nfrom baseline.__main__ import main\n\nmain()\n'


def baseline_agent(cache: Path) -> BundledAgent:
    """No model, deterministic: the floor of every board and the free check for maintainers.

    Args:
        cache: directory for prepared copies, by digest; can be deleted without loss.
    """
    return BundledAgent("baseline", contents=_contents, program="lib", cache=cache)


def _contents() -> dict[str, bytes]:
    files = {"lib/__main__.py": _START.encode()}
    files |= _python_files(Path(__file__).with_name("baseline"), "lib/baseline")
    for package in CARRIED:
        files |= _python_files(_package_directory(package), f"lib/{package}")
    return dict(sorted(files.items()))


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
