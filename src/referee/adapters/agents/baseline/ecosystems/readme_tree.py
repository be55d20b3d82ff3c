"""A tree without a manifest that any other module knows: its README alone says what to do."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from .plan import Plan, Tests
from .python_tests import passed

if TYPE_CHECKING:
    from ..workshop import Workshop


def plan(shop: Workshop) -> Plan | None:
    """The last resort: nothing to install beyond what the README's own lines do."""
    root = shop.project
    if shop.mission.kind != "repository":
        return None
    scripts = (
        sorted(path.name for path in root.iterdir() if path.suffix in {".py", ".sh", ".pl"}) if root.is_dir() else []
    )
    if shop.mission.readme is None and not scripts:
        return None
    named = [name for name in scripts if re.fullmatch(r"test_\w+\.py|\w+_test\.py", name)]
    return Plan(
        ecosystem="README only",
        confidence=12,
        languages=frozenset({"shell"}),
        tests=(Tests("python3 -m unittest", passed),) if named else (),
        check='test -n "$(ls -A)"',
    )
