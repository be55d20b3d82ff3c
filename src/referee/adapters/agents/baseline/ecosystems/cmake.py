"""C and C++ with CMake: configured and built outside the sources, tested with CTest."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from . import counts, look
from .plan import Plan, Server, Tests, Tool

if TYPE_CHECKING:
    from ..workshop import Workshop

SERVES = (
    r"\blisten\s*\(|\bbind\s*\([^)]*sockaddr|mg_http_listen|httplib::Server|crow::SimpleApp|asio::ip::tcp::acceptor"
)
SOURCES = (".c", ".cc", ".cpp", ".cxx", ".h", ".hpp")


def plan(shop: Workshop) -> Plan | None:
    """A plan for a tree with a ``CMakeLists.txt``."""
    project = shop.project
    top = look.text(project / "CMakeLists.txt")
    if not top:
        return None
    lists = "\n".join(look.text(path) for path in look.files(project, "CMakeLists.txt", ".cmake"))
    directory = build_directory(project)
    programs = programs_of(lists)
    options = "".join(f" -D{name}=ON" for name in test_options(top))
    presets = (project / "CMakePresets.json").is_file() and "binaryDir" in look.text(project / "CMakePresets.json")
    build = f"cmake -S . -B {directory}{options}"
    serves = bool(programs) and look.matches(look.files(project, *SOURCES), SERVES)
    tests: list[Tests] = []
    if re.search(r"enable_testing|include\s*\(\s*CTest|add_test|discover_tests", lists, re.IGNORECASE):
        tests.append(Tests(f"ctest --test-dir {directory} --output-on-failure", counts.ctest))
        tests.append(Tests(f"cmake --build {directory} --target check", counts.any_runner))
    return Plan(
        ecosystem="cmake",
        confidence=64 if not presets else 62,
        tools=(
            Tool("cmake", ("cmake",)),
            Tool("c++", ("build-essential",)),
            *((Tool("gfortran", ("gfortran",)),) if re.search(r"LANGUAGES[^)]*\bFortran\b", top) else ()),
            *((Tool("nasm", ("nasm",)),) if re.search(r"ASM_NASM", lists) else ()),
        ),
        install=(build, f"cmake --build {directory} -j2"),
        paths=(directory, f"{directory}/bin", f"{directory}/src"),
        programs=programs,
        tests=tuple(tests),
        servers=tuple(Server(name) for name in programs[:2]) if serves else (),
        invocations=() if serves else programs[:2],
        environment={"CTEST_PARALLEL_LEVEL": "2"},
    )


def build_directory(project: Path) -> str:
    """``build``, as most documentation says, unless the tree itself has a directory of that name."""
    taken = project / "build"
    return "build" if not taken.exists() or (taken / "CMakeCache.txt").is_file() else "_build"


def programs_of(lists: str) -> tuple[str, ...]:
    """Names of the programs that the lists build, tests and examples last."""
    names = dict.fromkeys(re.findall(r"^\s*add_executable\s*\(\s*([\w.+-]+)", lists, re.MULTILINE | re.IGNORECASE))
    project = re.search(r"^\s*project\s*\(\s*\"?([\w.+-]+)", lists, re.MULTILINE | re.IGNORECASE)
    if project and re.search(r"add_executable\s*\(\s*\$\{(?:CMAKE_)?PROJECT_NAME\}", lists, re.IGNORECASE):
        names = dict.fromkeys([project.group(1), *names])
    aside = re.compile(r"test|bench|example|fuzz", re.IGNORECASE)
    return tuple(sorted(names, key=lambda name: bool(aside.search(name))))[:20]


def test_options(top: str) -> list[str]:
    """Options of the project that switch its tests on and are off by default."""
    pattern = r"^\s*option\s*\(\s*(\w*TEST(?:S|ING)?\w*)\s+(?:\"[^\"]*\"\s+)?(?:OFF|FALSE|NO|0)?\s*\)"
    return [name for name in re.findall(pattern, top, re.MULTILINE | re.IGNORECASE) if "BENCH" not in name.upper()]
