"""The ecosystems that ``baseline`` knows, each a module with ``plan(shop) -> Plan | None``."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from .plan import Plan, Server, Tests, Tool

if TYPE_CHECKING:
    from ..workshop import Workshop

__all__ = ["MODULES", "Plan", "Server", "Tests", "Tool", "plans"]

#: Module names in this package; the order breaks ties of confidence.
MODULES: tuple[str, ...] = (
    "python_package", "node_package", "python_tree", "node_tree",
    "rust", "go", "java", "ruby", "php", "perl", "meson", "cmake", "autotools", "make", "java_plain", "dockerfile",
)  # fmt: skip


def plans(shop: Workshop) -> list[Plan]:
    """All plans for the subject, the surest first."""
    found = []
    for name in MODULES:
        made: Plan | None = import_module(f".{name}", __name__).plan(shop)
        if made is not None and made.confidence > 0:
            found.append(made)
    return sorted(found, key=lambda made: -made.confidence)
