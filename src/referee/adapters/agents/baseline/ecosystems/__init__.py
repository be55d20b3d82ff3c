"""The ecosystems that ``baseline`` knows, each a module with ``plan(shop) -> Plan | None``."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from ..terminal import say
from .plan import Plan, Server, Tests, Tool

if TYPE_CHECKING:
    from ..workshop import Workshop

__all__ = ["MODULES", "Plan", "Server", "Tests", "Tool", "plans"]

#: Module names in this package; the order breaks ties of confidence.
MODULES: tuple[str, ...] = (
    "python_package", "node_package", "python_tree", "node_tree",
    "rust", "go", "java", "ruby", "php", "perl", "meson", "cmake", "autotools", "make", "java_plain", "dockerfile",
    "readme_tree",
)  # fmt: skip

#: From this confidence on, a manifest says how the tree is built.
MANIFEST = 40


def plans(shop: Workshop) -> list[Plan]:
    """All plans for the subject, the surest first.

    A manifest of another shape than its ecosystem's own (a ``package.json`` that is a list) takes away that ecosystem's
    plan and no other: a tree may hold manifests that nobody builds by.
    """
    found = []
    for name in MODULES:
        ecosystem = import_module(f".{name}", __name__)
        try:
            made: Plan | None = ecosystem.plan(shop)
        except Exception as exc:  # noqa: BLE001 — what a project wrote may be wrong in any way
            say(
                f"# no plan by {name}: what the tree holds for it cannot be read: {type(exc).__name__}: {str(exc)[:99]}"
            )
            shop.draft.note(f"what the tree holds for {name.replace('_', ' ')} cannot be read")
            continue
        if made is not None and made.confidence > 0:
            found.append(made)
    found.sort(key=lambda made: -made.confidence)
    if found and found[0].confidence >= MANIFEST:
        # Else a tree whose build failed would count as installed, because its README needs no install.
        found = [made for made in found if made.ecosystem != "README only"]
    return found
