"""Rust: cargo builds it, the built programs are on PATH, ``cargo test`` counts."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import counts, look
from .plan import Plan, Server, Tests, Tool

if TYPE_CHECKING:
    from ..workshop import Workshop

#: Debian keeps a current toolchain for its browsers under another name; the plain one is years older.
CARGO = ("cargo-web", "cargo-mozilla", "cargo")
_SERVES = (
    r"TcpListener::bind|HttpServer::new|axum::serve|axum::Server|rocket::build|#\[launch\]|warp::serve|"
    r"Server::bind|tiny_http::Server|poem::Server|salvo::Server"
)


def plan(shop: Workshop) -> Plan | None:
    """A plan for a tree with a ``Cargo.toml``."""
    manifest = shop.project / "Cargo.toml"
    if not manifest.is_file():
        return None
    programs = programs_of(shop.project)
    locked = (shop.project / "Cargo.lock").is_file()
    sources = look.files(shop.project, ".rs")
    serves = bool(programs) and look.matches(sources, _SERVES)
    return Plan(
        ecosystem="rust",
        confidence=70 if locked or programs else 62,
        tools=(Tool("cargo", CARGO), Tool("cc", ("build-essential",))),
        install=("cargo build --workspace",) if _workspace(manifest) else ("cargo build",),
        paths=("target/debug", "target/release"),
        programs=(*programs, "cargo run"),
        packages=_packages(shop.project),
        tests=(Tests("cargo test --workspace" if _workspace(manifest) else "cargo test", counts.cargo, 0.4),),
        servers=tuple(Server(f"target/debug/{name}") for name in programs[:2]) if serves else (),
        invocations=tuple(f"target/debug/{name}" for name in programs[:2]) if not serves else (),
        environment={"CARGO_TERM_COLOR": "never", "CARGO_TERM_PROGRESS_WHEN": "never", "CARGO_NET_RETRY": "1"},
    )


def manifest_of(path: Path) -> dict[str, Any]:
    """A parsed ``Cargo.toml``; empty when it cannot be read."""
    try:
        return tomllib.loads(look.text(path))
    except tomllib.TOMLDecodeError:
        return {}


def members(project: Path) -> list[Path]:
    """The directories of all packages of the workspace, the root first."""
    root = manifest_of(project / "Cargo.toml")
    found = [project]
    for pattern in (root.get("workspace") or {}).get("members") or ():
        found += [path for path in sorted(project.glob(str(pattern))) if (path / "Cargo.toml").is_file()]
    return found[:60]


def _workspace(manifest: Path) -> bool:
    return "workspace" in manifest_of(manifest)


def _packages(project: Path) -> tuple[str, ...]:
    names = [(manifest_of(path / "Cargo.toml").get("package") or {}).get("name") for path in members(project)]
    return tuple(str(name) for name in names if name)


def programs_of(project: Path) -> tuple[str, ...]:
    """Names of the programs that the packages build."""
    names: list[str] = []
    for path in members(project):
        manifest = manifest_of(path / "Cargo.toml")
        package = (manifest.get("package") or {}).get("name")
        names += [str(entry["name"]) for entry in manifest.get("bin") or () if "name" in entry]
        if package and (path / "src/main.rs").is_file() and not manifest.get("bin"):
            names.append(str(package))
        names += [entry.stem for entry in sorted((path / "src/bin").glob("*.rs"))]
    return tuple(dict.fromkeys(names))


def dependencies(project: Path) -> dict[str, str]:
    """Registry dependencies of all packages: crate name -> version requirement (path and git ones left out)."""
    found: dict[str, str] = {}
    for path in members(project):
        manifest = manifest_of(path / "Cargo.toml")
        tables = [manifest.get(name) or {} for name in ("dependencies", "dev-dependencies", "build-dependencies")]
        tables.append((manifest.get("workspace") or {}).get("dependencies") or {})
        for name, wanted in (pair for table in tables for pair in table.items()):
            if isinstance(wanted, str):
                found[name] = wanted
            elif isinstance(wanted, dict) and "version" in wanted and not {"path", "git"} & set(wanted):
                found[str(wanted.get("package") or name)] = str(wanted["version"])
    return {name: spec for name, spec in found.items() if re.fullmatch(r"[A-Za-z0-9_-]+", name)}
