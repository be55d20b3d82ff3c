"""A pinned package of npm: into an empty project, then its README."""

from __future__ import annotations

import json
import re
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import announce
from .plan import Plan, Tests, Tool

if TYPE_CHECKING:
    from ..workshop import Workshop


#: A source file larger than this many bytes is not searched for examples.
_LARGEST = 2_000_000
_MOST = 40


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
        source=from_comments,
        pages=pages,
        invocations=tuple(_invocations(programs)),
    )


def prepare(shop: Workshop) -> None:
    """The parsers with which the verification reads examples, apart from the project's packages."""
    line = f"mkdir -p {shop.verify} && cd {shop.verify} && npm init -y >/dev/null && npm install --silent acorn@8"
    if not shop.run(f"{line} sucrase@3", timeout=180).ok:
        shop.run(line, timeout=180)  # then examples with types or JSX stay unread


def from_comments(shop: Workshop) -> tuple[Path | None, tuple[Tests, ...]]:
    """The ``@example`` parts of the package's own documentation comments, as a README of their own."""
    root = shop.project / "node_modules" / (shop.mission.package or shop.mission.name)
    found: list[str] = []
    manifest = read_manifest(shop.mission.artifact) if shop.mission.artifact else {}
    first = [root / str(manifest.get(key)) for key in ("main", "module", "types") if isinstance(manifest.get(key), str)]
    others = sorted(root.glob("*.js")) + sorted(root.glob("*.d.ts")) + sorted(root.glob("[dlst]*/**/*.[jt]s"))
    for path in [*first, *others[:300]]:
        if len(found) >= _MOST:
            break
        if not path.is_file() or path.name.endswith((".min.js", ".test.js")) or path.stat().st_size > _LARGEST:
            continue
        for comment in re.findall(r"/\*\*(.*?)\*/", path.read_text(encoding="utf-8", errors="replace"), re.DOTALL):
            lines = [re.sub(r"^\s*\* ?", "", line) for line in comment.splitlines()]
            text = "\n".join(lines)
            shown = text.split("@example")[1:] or re.findall(r"^```\w*\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
            for part in shown:
                code = re.split(r"^@\w+", part, maxsplit=1, flags=re.MULTILINE)[0]
                code = re.sub(r"^```\w*\s*$|<caption>.*</caption>", "", code, flags=re.MULTILINE).strip()
                if code and code not in found:
                    found.append(code)
    if not found:
        return None, ()
    target = shop.verify / "examples.md"
    text = "".join(f"## Example {number + 1}\n\n```js\n{code}\n```\n\n" for number, code in enumerate(found[:_MOST]))
    announce.write(target, "# Examples in comments\n\n" + text)
    return target, ()


def pages(shop: Workshop) -> list[Path]:
    """The package's own pages beside its README, those that show how to begin first."""
    root = shop.project / "node_modules" / (shop.mission.package or shop.mission.name)
    found = [path for path in sorted(root.rglob("*.md")) if "node_modules" not in path.relative_to(root).parts]
    left_out = re.compile(
        r"^(readme|change|history|licen|contribut|security|code_of|migrat|upgrad|release)", re.IGNORECASE
    )
    first = re.compile(r"start|usage|guide|intro|example|api|index", re.IGNORECASE)
    kept = [path for path in found if not left_out.match(path.name) and "```" in path.read_text("utf-8", "replace")]
    return sorted(kept, key=lambda path: not first.search(path.name))[:4]


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
