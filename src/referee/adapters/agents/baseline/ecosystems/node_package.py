"""A pinned package of npm: into an empty project, then its README."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .plan import Plan, Tool

if TYPE_CHECKING:
    from ..workshop import Workshop


def plan(shop: Workshop) -> Plan | None:
    """The way of a package, when the mission is one of npm."""
    mission = shop.mission
    if mission.kind != "package" or mission.ecosystem != "npm" or mission.artifact is None:
        return None
    manifest = read_manifest(mission.artifact)
    name = str(manifest.get("name") or mission.package or mission.name)
    programs = bins(manifest, name)
    library = any(manifest.get(key) for key in ("main", "exports", "module")) or not programs
    return Plan(
        ecosystem="Node package",
        confidence=100,
        tools=(Tool("node", ("nodejs",)), Tool("npm", ("npm",))),
        prepare=prepare,
        install=("npm init -y", f"npm install {mission.artifact}"),
        paths=("node_modules/.bin",),
        programs=tuple(programs),
        packages=(name,),
        languages=frozenset({"shell", "javascript"}),
        check=f"node -e \"import('{name}').then(m => console.log(Object.keys(m).slice(0, 8)))\""
        if library and not programs
        else f"test -d node_modules/{name}",
        invocations=tuple(_invocations(programs)),
    )


def prepare(shop: Workshop) -> None:
    """The parser with which the verification splits examples into statements, apart from the project's packages."""
    shop.run(
        f"mkdir -p {shop.verify} && cd {shop.verify} && npm init -y >/dev/null && npm install --silent acorn@8",
        timeout=180,
    )


def read_manifest(artifact: Path) -> dict[str, Any]:
    """package.json of a packed package; empty when there is none."""
    with tarfile.open(artifact) as tar:
        for member in tar:
            parts = member.name.split("/")
            if len(parts) == 2 and parts[1] == "package.json":  # noqa: PLR2004 — package/package.json
                stream = tar.extractfile(member)
                value: dict[str, Any] = json.loads(stream.read()) if stream else {}
                return value
    return {}


def bins(manifest: dict[str, Any], name: str) -> list[str]:
    """The commands that a package provides."""
    declared = manifest.get("bin")
    if isinstance(declared, str):
        return [name.rsplit("/", 1)[-1]]
    return sorted(declared) if isinstance(declared, dict) else []


def _invocations(programs: list[str]) -> list[str]:
    lines = []
    for program in programs[:2]:
        lines += [f"echo '{{}} world' | {program}", f"{program} {{}}", program]
    return lines
