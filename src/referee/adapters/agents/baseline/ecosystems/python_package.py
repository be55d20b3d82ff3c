"""A pinned distribution of PyPI: into an empty project's virtual environment, then its README."""

from __future__ import annotations

import re
import tarfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

from .plan import Plan, Tests, Tool
from .python_tests import passed

if TYPE_CHECKING:
    from ..workshop import Workshop

_PYTHON = ".venv/bin/python"


def plan(shop: Workshop) -> Plan | None:
    """The way of a package, when the mission is one of PyPI."""
    mission = shop.mission
    if mission.kind != "package" or mission.ecosystem != "pypi" or mission.artifact is None:
        return None
    modules, programs = contents(mission.artifact)
    name = (mission.package or mission.name).replace("-", "_").replace(".", "_")
    modules = modules or [name.lower()]
    return Plan(
        ecosystem="Python package",
        confidence=100,
        tools=(Tool("python3", ("python3",)),),
        install=(
            "python3 -m venv .venv",
            f"{_PYTHON} -m pip install {mission.artifact}",
        ),
        paths=(".venv/bin",),
        programs=tuple(programs),
        packages=tuple(modules),
        languages=frozenset({"shell", "python"}),
        check=f'{_PYTHON} -c "import {import_names(modules, name)}"',
        tests=(
            Tests(f"{shop.project}/{_PYTHON} {shop.verify}/verify_doctests.py {' '.join(modules[:2])}", passed, 0.1),
            *source_tests(shop),
        ),
        invocations=tuple(_invocations(programs)),
    )


def import_names(modules: list[str], name: str) -> str:
    """The import that proves the install: the module named like the distribution, else the first."""
    for module in modules:
        if module.lower().replace("_", "") == name.lower().replace("_", ""):
            return module
    return modules[0]


def contents(artifact: Path) -> tuple[list[str], list[str]]:
    """Import names and console scripts that a wheel or a source distribution brings, read without running it."""
    names, texts = _listing(artifact)
    if artifact.suffix == ".whl":
        modules = _top(names)
    else:
        inner = [name.split("/", 1)[1] for name in names if "/" in name]
        listed = [text for name, text in texts.items() if name.endswith("top_level.txt")]
        modules = listed[0].split() if listed else []
        modules = modules or _top([name.removeprefix("src/").removeprefix("lib/") for name in inner])
        modules = [module for module in modules if module not in {"tests", "test", "docs", "examples", "setup"}]
    programs: list[str] = []
    for name, text in texts.items():
        if name.endswith("entry_points.txt"):
            section = re.search(r"\[console_scripts\]([^\[]*)", text)
            programs = re.findall(r"^\s*([\w.-]+)\s*=", section.group(1), re.MULTILINE) if section else programs
    programs += [Path(name).name for name in names if re.search(r"\.data/scripts/[^/]+$", name)]
    return modules, programs


def _listing(artifact: Path) -> tuple[list[str], dict[str, str]]:
    wanted = ("top_level.txt", "entry_points.txt")
    texts: dict[str, str] = {}
    if artifact.suffix in {".whl", ".zip"}:
        with zipfile.ZipFile(artifact) as archive:
            names = archive.namelist()
            for name in names:
                if name.endswith(wanted):
                    texts[name] = archive.read(name).decode("utf-8", "replace")
        return names, texts
    with tarfile.open(artifact) as tar:
        names = tar.getnames()
        for member in tar.getmembers():
            stream = tar.extractfile(member) if member.isfile() and member.name.endswith(wanted) else None
            if stream:
                texts[member.name] = stream.read().decode("utf-8", "replace")
    return names, texts


def _top(names: list[str]) -> list[str]:
    found: dict[str, int] = {}
    namespace: dict[str, int] = {}
    for name in names:
        parts = name.split("/")
        if ".dist-info" in parts[0] or ".data" in parts[0] or ".egg-info" in parts[0]:
            continue
        if len(parts) == 1 and re.fullmatch(r"\w+(\.[\w-]+)?\.(py|so|pyd)|\w+\.abi3\.so", name):
            module = name.split(".")[0]
            if module not in {"setup", "conftest"}:
                found[module] = found.get(module, 0) + 1
        elif len(parts) > 1 and parts[1] == "__init__.py" and parts[0].isidentifier():
            found[parts[0]] = found.get(parts[0], 0) + 10
        elif len(parts) > 2 and parts[2] == "__init__.py" and all(part.isidentifier() for part in parts[:2]):  # noqa: PLR2004
            namespace[".".join(parts[:2])] = namespace.get(".".join(parts[:2]), 0) + 1
    left_out = {"tests", "test", "docs", "examples", "example", "scripts", "bench", "benchmarks"}
    found = {name: count for name, count in found.items() if name not in left_out} or found
    spaced = [name for name in namespace if name.split(".")[0] not in found and name.split(".")[0] not in left_out]
    ordered = sorted(found, key=lambda name: (name.startswith("_"), -found[name]))
    return ordered + spaced


def _invocations(programs: list[str]) -> list[str]:
    """Real uses of a command about which nothing else is known: sample input by argument, by standard input, none."""
    lines = []
    for program in programs[:2]:
        lines += [f"echo 'hello world' | {program}", f"{program} hello", program]
    return lines


def source_tests(shop: Workshop) -> tuple[Tests, ...]:
    """The tests inside a pinned source distribution, run against the installed package."""
    artifact = shop.mission.artifact
    if artifact is None or artifact.suffix == ".whl":
        return ()
    names, _ = _listing(artifact)
    folder = next((d for d in ("tests", "test") if any(name.split("/")[1:2] == [d] for name in names)), None)
    if folder is None:
        return ()
    python = f"{shop.project}/{_PYTHON}"
    line = (
        f"mkdir -p {shop.verify}/source && tar -xf {artifact} -C {shop.verify}/source --strip-components=1 && "
        f"cd {shop.verify}/source && ({python} -m pytest --version >/dev/null 2>&1 || {python} -m pip install -q pytest) "
        f"&& {python} -m pytest -q -x {folder}"
    )
    return (Tests(line, passed),)


