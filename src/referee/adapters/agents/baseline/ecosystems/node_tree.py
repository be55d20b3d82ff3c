"""A Node project's source tree: its own package manager, its build, its tests, its start script."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import look
from .counts import DIRECTIVE
from .node_package import bins, prepare
from .plan import Plan, Server, Tests, Tool

if TYPE_CHECKING:
    from ..workshop import Workshop

_STARTS = ("start", "serve", "preview", "dev")


def plan(shop: Workshop) -> Plan | None:
    """The way of a tree with package.json."""
    root = shop.project
    if shop.mission.kind != "repository" or not (root / "package.json").is_file():
        return None
    try:
        manifest: dict[str, Any] = json.loads((root / "package.json").read_text(encoding="utf-8"))
    except ValueError:
        return None
    manager, install = manager_of(root, manifest)
    tools = [Tool("node", ("nodejs",)), Tool("npm", ("npm",))]
    scripts = manifest.get("scripts") or {}
    steps = [install]
    if manager in {"yarn", "pnpm"}:
        steps.insert(0, f"command -v {manager} || npm install -g {manager}{'@9' if manager == 'pnpm' else ''}")
    if "build" in scripts:
        steps.append(f"{manager} run build")
    name = str(manifest.get("name") or shop.mission.name)
    default = {"main": "index.js"} if (root / "index.js").is_file() else {}
    steps += links({**default, **manifest}, name)
    paths = look.routes(root, ".js", ".ts", ".mjs", ".cjs")
    return Plan(
        ecosystem=f"Node project ({manager})",
        confidence=62 + 10 * bool(lock_of(root)),
        tools=tuple(tools),
        prepare=prepare,
        install=tuple(steps),
        paths=("node_modules/.bin",),
        programs=tuple(bins(manifest, name)),
        packages=(name,),
        languages=frozenset({"shell", "javascript"}),
        tests=tuple(tests_of(manager, scripts)),
        servers=tuple(Server(f"{manager} run {script}", paths) for script in _STARTS if script in scripts),
    )


def links(manifest: dict[str, Any], name: str) -> list[str]:
    """Make the project's own name and commands known, as npm does for a package that is installed elsewhere."""
    if not re.fullmatch(r"(@[\w.-]+/)?[\w.-]+", name):
        return []
    lines = []
    if any(manifest.get(key) for key in ("main", "exports", "module")):
        up = "../.." if name.startswith("@") else ".."
        lines.append(f"mkdir -p $(dirname node_modules/{name}) && ln -sfn {up} node_modules/{name}")
    declared = manifest.get("bin")
    targets = {name.rsplit("/", 1)[-1]: declared} if isinstance(declared, str) else declared or {}
    for command, target in targets.items() if isinstance(targets, dict) else ():
        file = str(target).removeprefix("./")
        if re.fullmatch(r"[\w.-]+", command) and re.fullmatch(r"[\w./@-]+", file):
            link = f"ln -sf ../../{file} node_modules/.bin/{command}"
            lines.append(f"test ! -e {file} || (mkdir -p node_modules/.bin && chmod +x {file} && {link})")
    return lines


def lock_of(root: Path) -> str:
    """The lock file in the root; empty when there is none."""
    names = ("pnpm-lock.yaml", "yarn.lock", "package-lock.json", "npm-shrinkwrap.json")
    return next((name for name in names if (root / name).is_file()), "")


def manager_of(root: Path, manifest: dict[str, Any]) -> tuple[str, str]:
    """The package manager by lock file, else by the manifest's word, and its install line."""
    declared = str(manifest.get("packageManager") or "").split("@")[0]
    lock = lock_of(root)
    if lock.startswith("pnpm") or (not lock and declared == "pnpm"):
        return "pnpm", "pnpm install --frozen-lockfile" if lock else "pnpm install"
    if lock.startswith("yarn") or (not lock and declared == "yarn"):
        return "yarn", "yarn install --frozen-lockfile" if lock else "yarn install"
    return "npm", "npm ci" if lock else "npm install"


def tests_of(manager: str, scripts: dict[str, str]) -> list[Tests]:
    """The test script, unless it is the placeholder that npm writes."""
    line = scripts.get("test", "")
    if not line or "no test specified" in line:
        return []
    return [Tests(f"CI=1 {manager} test", passed)]


def passed(output: str) -> int | None:
    """Passed tests of jest, mocha, vitest, tap, ava, node:test; None when the output does not tell."""
    if re.search(rf"\b[1-9]\d* (failing|failed)\b|^# fail [1-9]|^not ok \d+\b(?!{DIRECTIVE})", output, re.MULTILINE):
        return None
    for pattern in (r"Tests:\s+(?:\d+ \w+, )*(\d+) passed", r"(\d+) passing", r"Tests\s+(\d+) passed",
                    r"^# pass\s+(\d+)",
                    r"(\d+) tests? passed", r"(\d+) passed", r"^ℹ pass (\d+)", r"(\d+) assertions?"):  # fmt: skip
        found = re.findall(pattern, output, re.MULTILINE)
        if found:
            return sum(int(count) for count in found)
    return len(re.findall(rf"^ok \d+\b(?!{DIRECTIVE})", output, re.MULTILINE)) or None
