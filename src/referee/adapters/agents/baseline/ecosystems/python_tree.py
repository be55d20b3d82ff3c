"""A Python project's source tree: a virtual environment, the project itself, its tests."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import look
from .plan import Plan, Server, Tests, Tool
from .python_tests import passed

if TYPE_CHECKING:
    from ..workshop import Workshop

_PYTHON = ".venv/bin/python"


def plan(shop: Workshop) -> Plan | None:
    """The way of a tree with pyproject.toml, setup.py, setup.cfg or requirements."""
    root = shop.project
    if shop.mission.kind != "repository":
        return None
    manifest = next((name for name in ("pyproject.toml", "setup.py", "setup.cfg") if (root / name).is_file()), "")
    requirements = next(
        (n for n in ("requirements.txt", "requirements/base.txt", "requirements.in") if (root / n).is_file()), ""
    )
    if not manifest and not requirements:
        return None
    project = read_pyproject(root)
    steps = ["python3 -m venv .venv"]
    if requirements:
        steps.append(f"{_PYTHON} -m pip install -r {requirements}")
    declared = (project.get("project") or {}).get("dependencies") or []
    classic = any((root / name).is_file() for name in ("setup.py", "setup.cfg"))
    buildable = classic or "build-system" in project
    if not buildable and declared:  # an application that is run in place: only what it needs is installed
        steps.append(f"{_PYTHON} -m pip install " + " ".join(f"'{word}'" for word in declared if "'" not in word))
    if buildable:
        steps.append(f"{_PYTHON} -m pip install .{_extras(project)}")
    modules = modules_in(root)
    check = f'{_PYTHON} -c "import {modules[0]}"' if modules and buildable else ""
    return Plan(
        ecosystem="Python project",
        confidence=62 + 10 * bool(manifest) - 25 * (root / "package.json").is_file() * (not manifest),
        tools=(Tool("python3", ("python3",)),),
        install=tuple(steps),
        paths=(".venv/bin",),
        programs=programs_of(root, project),
        packages=tuple(modules),
        languages=frozenset({"shell", "python"}),
        check=check,
        tests=test_suites(root, project),
        servers=servers(root),
    )


def read_pyproject(root: Path) -> dict[str, Any]:
    """pyproject.toml; empty when it is missing or broken."""
    try:
        return tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def programs_of(root: Path, project: dict[str, Any]) -> tuple[str, ...]:
    """The commands that the project declares, in whichever of the three ways."""
    poetry = (project.get("tool") or {}).get("poetry") or {}
    names = [*((project.get("project") or {}).get("scripts") or ()), *(poetry.get("scripts") or ())]
    for file in ("setup.cfg", "setup.py"):
        path = root / file
        text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
        after = text.partition("console_scripts")[2][:2000]
        names += re.findall(r"^[\s\[:='\"(]*([\w.-]+)\s*=\s*[\w.]+:\w+", after.replace(",", "\n"), re.MULTILINE)
    return tuple(dict.fromkeys(names))


def _extras(project: dict[str, Any]) -> str:
    optional = (project.get("project") or {}).get("optional-dependencies") or {}
    wanted = [name for name in ("test", "tests", "testing", "dev") if name in optional]
    return f"[{wanted[0]}]" if wanted else ""


def modules_in(root: Path) -> list[str]:
    """Import names of a tree: packages and modules in src/ or in the root."""
    found: list[str] = []
    left_out = {"tests", "test", "docs", "doc", "examples", "example", "setup", "conftest", "scripts", "tools",
                "noxfile", "tasks", "benchmarks", "versioneer", "fabfile", "build", "verify"}  # fmt: skip
    for base in (root / "src", root / "lib", root):
        if not base.is_dir():
            continue
        for entry in sorted(base.iterdir()):
            name = entry.stem if entry.suffix == ".py" else entry.name
            package = entry.is_dir() and (entry / "__init__.py").is_file()
            if name.isidentifier() and name not in left_out and (package or entry.suffix == ".py"):
                found.append(name)
        if found:
            break
    return sorted(found, key=lambda name: (name.lower() != root.name.lower(), not (root / name).is_dir()))


def test_suites(root: Path, project: dict[str, Any]) -> tuple[Tests, ...]:
    """Pytest over the tests that are there, with what they need."""
    folder = next((name for name in ("tests", "test", "testing") if (root / name).is_dir()), "")
    inside = (
        ""
        if folder
        else next(
            (str(p.relative_to(root)) for p in sorted(root.glob("**/test_*.py"))[:1] if ".venv" not in p.parts), ""
        )
    )
    if not folder and not inside:
        return ()
    groups = project.get("dependency-groups") or {}
    names = [name for name in ("test", "tests", "testing", "dev") if name in groups]
    needed = [word for word in groups.get(names[0], []) if isinstance(word, str)] if names else _developers(project)
    settings = (project.get("tool") or {}).get("pytest") or {}
    if "--cov" in str((settings.get("ini_options") or {}).get("addopts", "")) or _asks_coverage(root):
        needed.append("pytest-cov")
    for name in ("requirements-dev.txt", "requirements-test.txt", "requirements/test.txt", "requirements/tests.txt",
                 "dev-requirements.txt", "test-requirements.txt", "requirements_dev.txt",
                 "tests/requirements.txt"):  # fmt: skip
        if (root / name).is_file():
            needed.append(f"-r {name}")
            break
    quoted = " ".join(word if word.startswith("-r ") else f"'{word}'" for word in needed)
    line = (
        f"({_PYTHON} -m pip install -q pytest {quoted} || {_PYTHON} -m pip install -q pytest) && "
        f"{_PYTHON} -m pytest -q -p no:cacheprovider {folder or inside}"
    )
    return (Tests(line, passed), Tests(f"{_PYTHON} -m unittest discover", passed))


def _developers(project: dict[str, Any]) -> list[str]:
    """What Poetry, PDM or Hatch install for those who develop the project; names without their versions."""
    tool = project.get("tool") or {}
    poetry = tool.get("poetry") or {}
    groups = [(poetry.get("group") or {}).get(name, {}).get("dependencies") for name in ("test", "tests", "dev")]
    needed = [name for group in [*groups, poetry.get("dev-dependencies")] for name in group or ()]
    for words in ((tool.get("pdm") or {}).get("dev-dependencies") or {}).values():
        needed += [word for word in words if isinstance(word, str) and not word.startswith("-e")]
    for environment in ((tool.get("hatch") or {}).get("envs") or {}).values():
        needed += environment.get("dependencies") or [] if isinstance(environment, dict) else []
    return [word for word in dict.fromkeys(needed) if word != "python" and "'" not in word]


def _asks_coverage(root: Path) -> bool:
    return any(
        "--cov" in path.read_text(encoding="utf-8", errors="replace")
        for path in (root / "pytest.ini", root / "setup.cfg", root / "tox.ini")
        if path.is_file()
    )


def servers(root: Path) -> tuple[Server, ...]:
    """Ways to start a web application by what its files show."""
    found = []
    paths = look.routes(root, ".py")
    if (root / "manage.py").is_file():
        line = f"{_PYTHON} manage.py migrate --noinput; {_PYTHON} manage.py runserver 127.0.0.1:8765 --noreload"
        found.append(Server(line, paths))
    deeper = [f"{folder}/{name}" for folder in ("app", "src", "api") for name in ("main.py", "app.py", "__init__.py")]
    for name in ("app.py", "main.py", "server.py", "run.py", "wsgi.py", "application.py", *deeper):
        path = root / name
        if not path.is_file():
            continue
        text = path.read_text(encoding="utf-8", errors="replace")
        module = name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        app = re.search(r"^(\w+)\s*=\s*(Flask|FastAPI|Starlette|Quart|Litestar|Sanic)\(", text, re.MULTILINE)
        if app and app.group(2) == "Flask":
            found.append(Server(f"{_PYTHON} -m flask --app {module}:{app.group(1)} run --port 8765", paths))
        elif app:
            line = f"({_PYTHON} -c 'import uvicorn' || {_PYTHON} -m pip install -q uvicorn) && "
            found.append(Server(f"{line}exec {_PYTHON} -m uvicorn {module}:{app.group(1)} --port 8765", paths))
        elif "__main__" in text:
            found.append(Server(f"{_PYTHON} {name}", paths))
    return tuple(found)
