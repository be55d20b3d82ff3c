"""A pinned distribution of PyPI: into an empty project's virtual environment, then its README."""

from __future__ import annotations

import re
import tarfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

from .plan import Plan, Server, Tests, Tool
from .python_tests import passed

if TYPE_CHECKING:
    from ..workshop import Workshop

_PYTHON = ".venv/bin/python"
#: Where the source distribution of this very version is unpacked.
SOURCE = Path("/work/tools/source")
#: Pages of a documentation that show how to begin, by words of their names, the likeliest first.
_BEGIN = ("quickstart", "quick_start", "quick-start", "getting", "first", "tutorial", "intro", "usage", "guide",
          "example", "overview", "basic", "index", "api")  # fmt: skip


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
            Tests(
                f"{shop.project}/{_PYTHON} {shop.verify}/verify_doctests.py {' '.join(modules[:2])}",
                passed,
                0.1,
                work=False,
            ),
        ),
        exercises=(f"{shop.project}/{_PYTHON} {shop.verify}/verify_roundtrip.py {' '.join(modules[:2])}",),
        source=from_source,
        pages=pages,
        servers=tuple(
            Server(f"{shop.project}/{_PYTHON} {shop.verify}/verify_app.py {module} 18765") for module in modules[:1]
        ),
        invocations=tuple(_invocations(programs)),
    )


def import_names(modules: list[str], name: str) -> str:
    """The import that proves the install: the module named like the distribution, else the first."""
    for module in modules:
        if re.sub(r"[_.]", "", module.lower()) == name.lower().replace("_", ""):
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
        modules = sorted(listed[0].split(), key=lambda name: name.startswith("_")) if listed else []
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
    tops = {name.split("/")[0] for name in names if name.count("/") == 1 and name.endswith("/__init__.py")}
    for name in names:
        parts = name.split("/")
        plain = len(parts) == 2 and re.fullmatch(r"[a-z]\w*\.py", parts[1]) and parts[0].isidentifier()  # noqa: PLR2004
        if plain and parts[0] not in tops and parts[0] not in {"tests", "test", "docs", "examples", "scripts"}:
            namespace[f"{parts[0]}.{parts[1][:-3]}"] = 1  # a namespace without an __init__.py
    spaced = [name for name in namespace if name.split(".")[0] not in found]
    ordered = sorted(found, key=lambda name: (name.startswith("_"), -found[name]))
    return ordered + spaced


def _invocations(programs: list[str]) -> list[str]:
    """Real uses of a command about which nothing else is known: sample input by argument, by standard input, none."""
    lines = []
    for program in programs[:2]:
        lines += [f"echo '{{}} world' | {program}", f"{program} {{}}", program]
    return lines


def from_source(shop: Workshop) -> tuple[Path | None, tuple[Tests, ...]]:
    """The README and the tests of the source distribution of this very version."""
    mission = shop.mission
    archive = mission.artifact
    if archive is None:
        return None, ()
    place = SOURCE
    if archive.suffix == ".whl":
        options = f"-q --no-deps --no-binary {mission.package} -d /work/tools/sdist"
        got = f"mkdir -p /work/tools/sdist && {_PYTHON} -m pip download {options}"
        if not shop.run(f"{got} '{mission.package}=={mission.version}'", timeout=180).ok:
            return None, ()
        found = sorted(Path("/work/tools/sdist").glob("*.tar.gz"))
        if not found:
            return None, ()
        archive = found[0]
    if not shop.run(f"mkdir -p {place} && tar -xf {archive} -C {place} --strip-components=1", timeout=60).ok:
        return None, ()
    readme = next((p for p in sorted(place.iterdir()) if p.name.lower().startswith("readme") and p.is_file()), None)
    return readme, source_tests(shop, place)


def source_tests(shop: Workshop, place: Path) -> tuple[Tests, ...]:
    """The tests of an unpacked source distribution, set apart from its code so that they test what was installed.

    ``CI=true`` is what test tools ask for before they drop limits of time and chance.
    """
    folder = next((name for name in ("tests", "test", "testing") if _holds_tests(place / name)), None)
    if folder is None:
        return _tests_inside(shop, place)
    apart = shop.verify / "tests-of-source"
    python = f"{shop.project}/{_PYTHON}"
    named = any((place / folder).glob("**/test_*.py")) or any((place / folder).glob("**/*_test.py"))
    files = folder if named else f"{folder}/*.py"
    settings = "conftest.py pytest.ini setup.cfg tox.ini pyproject.toml *.md *.rst"
    copy = f"mkdir -p {apart} && cp -r {place}/{folder} {apart}/ && cd {place} && cp {settings} {apart}/ 2>/dev/null"
    extras = (
        f'for e in test tests testing; do grep -qs "^Provides-Extra: $e$" PKG-INFO && '
        f"{python} -m pip install -q '{shop.mission.artifact}['$e']'; done"
    )
    shop.run(f"{copy}; {python} -m pip install -q pytest; {extras}; true", timeout=300)
    return (Tests(f"cd {apart} && CI=true {python} -m pytest -q {files}", passed),)


def _holds_tests(folder: Path) -> bool:
    return any(re.search(r"^\s*(async )?def test|TestCase", path.read_text("utf-8", "replace"), re.MULTILINE)
               for path in sorted(folder.glob("**/*test*.py"))[:20])  # fmt: skip


def _tests_inside(shop: Workshop, place: Path) -> tuple[Tests, ...]:
    """Tests that are part of the package itself: run as installed."""
    modules, _ = contents(shop.mission.artifact) if shop.mission.artifact else ([], [])
    installed = sorted(shop.project.glob(".venv/lib/python3*/site-packages"))
    for module in modules[:2]:
        for name in ("tests", "test", "_tests", "testing"):
            inside = module.replace(".", "/") + "/" + name
            if installed and _holds_tests(installed[0] / inside):
                return _as_installed(shop, place, f"{module}.{name}")
    alone = sorted(path.name for path in place.glob("test*.py") if "def test" in path.read_text("utf-8", "replace"))
    if not alone:
        return ()
    apart = shop.verify / "tests-of-source"
    python = f"{shop.project}/{_PYTHON}"
    files = " ".join(alone)
    shop.run(f"mkdir -p {apart} && cd {place} && cp {files} {apart}/ && {python} -m pip install -q pytest", timeout=300)
    return (Tests(f"cd {apart} && CI=true {python} -m pytest -q {files}", passed),)


def _as_installed(shop: Workshop, place: Path, module: str) -> tuple[Tests, ...]:
    """The tests of an installed module, with the settings of the sources where they have some, else without."""
    apart = shop.verify / "tests-of-source"
    python = f"{shop.project}/{_PYTHON}"
    shop.run(f"mkdir -p {apart} && {python} -m pip install -q pytest", timeout=300)
    line = f"cd {apart} && CI=true {python} -m pytest -q -p no:cacheprovider --pyargs {module}"
    settings = [
        name for name, mark in (("pytest.ini", "[pytest]"), ("pyproject.toml", "[tool.pytest"), ("tox.ini", "[pytest]"),
                                ("setup.cfg", "[tool:pytest]"))
        if (place / name).is_file() and mark in (place / name).read_text("utf-8", "replace")
    ]  # fmt: skip
    if not settings:
        return (Tests(line, passed),)
    shop.run(f"cp {place / settings[0]} {apart}/", timeout=20)
    return (Tests(f"{line} -c {settings[0]}", passed), Tests(line, passed))


def pages(_shop: Workshop) -> list[Path]:
    """Pages of the documentation in the unpacked sources that show how to begin; at most four."""
    found: list[tuple[int, int, Path]] = []
    for folder in ("docs", "doc", "documentation", "sites/docs", "site", "website"):
        for path in sorted((SOURCE / folder).glob("**/*")):
            if path.suffix not in {".rst", ".md", ".txt"} or not path.is_file():
                continue
            ranks = [rank for rank, word in enumerate(_BEGIN) if word in path.stem.lower()]
            if ranks and re.search(r">>> |import ", path.read_text("utf-8", "replace")):
                found.append((ranks[0], len(path.parts), path))
    return [path for _, _, path in sorted(found)[:4]]
