"""What each remedy of the table does. None: it could do nothing here, the next diagnosis is looked at."""

from __future__ import annotations

import re
import shlex
import socket
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from . import debian, remedies_native, remedies_node, remedies_python
from .services import BY_PORT, SERVICES, Service
from .terminal import Result
from .workshop import Applied, Remedy

if TYPE_CHECKING:
    from .workshop import Workshop

_USER = "runner"


def retry(_shop: Workshop, _match: re.Match[str], _result: Result, _argument: str) -> Applied:
    """Wait a moment and try again."""
    time.sleep(5)
    return Applied("waited and tried again")


def give_up(shop: Workshop, match: re.Match[str], result: Result, _argument: str) -> None:
    """Remember what cannot be helped."""
    lines = [text.strip() for text in result.output.splitlines() if match.re.search(text)] or [match.group(0)]
    told = [text for text in lines if re.match(r"(?:[\w.]*(?:Error|Exception|Failure)|curl|fatal|npm)\b|error\b", text)]
    line = (told or lines)[-1]  # the message, not a line of code in the traceback above it
    shop.stops[f"give_up:{match.group(0)[:60]}"] = line.strip()[:200]


def apt(shop: Workshop, _match: re.Match[str], _result: Result, argument: str) -> Applied | None:
    """Install a package that the table names."""
    return Applied(f"installed Debian's {argument}") if debian.install(shop, *argument.split()) else None


def apt_named(shop: Workshop, match: re.Match[str], result: Result, argument: str) -> Applied | None:
    """Install what the message itself says to install; a tool of the X Window System needs a display besides."""
    packages = [name for name in match.group("packages").split() if debian.known(shop, name)]
    applied = _first(shop, packages, every=True)
    if applied and not shop.display:
        line = f"apt-cache depends {' '.join(packages)} | grep -qE 'Depends: (libx11-6|libxcb1|libxmu6)'"
        shown = display(shop, match, result, argument) if shop.run(line, timeout=30, show=False).ok else None
        applied.how += f" and {shown.how}" if shown else ""
    return applied


def _first(shop: Workshop, packages: Sequence[str], *, every: bool = False) -> Applied | None:
    if every and packages:
        names = " ".join(packages)
        return Applied(f"installed Debian's {names}") if debian.install(shop, *packages) else None
    for package in packages[:3]:
        if debian.install(shop, package):
            return Applied(f"installed Debian's {package}")
    return None


def header(shop: Workshop, match: re.Match[str], _result: Result, _argument: str) -> Applied | None:
    """Install the package that ships a header."""
    return _first(shop, debian.packages_with_header(shop, match.group("header")))


def library(shop: Workshop, match: re.Match[str], _result: Result, _argument: str) -> Applied | None:
    """Install the package that ships a library for the linker."""
    return _first(shop, debian.packages_with_library(shop, match.group("library")))


def shared_object(shop: Workshop, match: re.Match[str], _result: Result, _argument: str) -> Applied | None:
    """Install the package that ships a shared object."""
    name = match.group("file")
    file = name if ".so" in name else f"lib{name.removeprefix('lib')}.so"
    return _first(shop, debian.packages_with_shared_object(shop, file))


def pkgconfig(shop: Workshop, match: re.Match[str], _result: Result, _argument: str) -> Applied | None:
    """Install the package that ships a pkg-config description."""
    name = next(value for value in match.groups("") if value)
    return _first(shop, debian.packages_with_pkgconfig(shop, name))


def cmake(shop: Workshop, match: re.Match[str], _result: Result, _argument: str) -> Applied | None:
    """Install the package that ships a CMake description."""
    name = next(value for value in match.groups("") if value)
    return _first(shop, debian.packages_with_cmake(shop, name))


def perl(shop: Workshop, match: re.Match[str], _result: Result, _argument: str) -> Applied | None:
    """Install the package that ships a Perl module."""
    return _first(shop, debian.packages_with_perl_module(shop, match.group("perl")))


def program(shop: Workshop, match: re.Match[str], result: Result, _argument: str) -> Applied | None:
    """Install the package that ships a command."""
    name = next((value for key, value in match.groupdict("").items() if value), "")
    if re.search(rf"(?<=\s){re.escape(name)}(?=\s|$)", result.command) and not re.search(
        rf"(?:^|[|&;(]\s*|\b(?:sudo|env|exec) ){re.escape(name)}(?=\s|$)", result.command
    ):
        return None  # the command's own argument, which the program did not find
    if name.lower() in _WORDS or shop.run(f"command -v {name}", timeout=20, show=False).ok:
        return None
    packages = [p for p in debian.packages_with_program(shop, name) if p == name or name in p or len(p) > len(name)]
    applied = _beside_it(shop, name, packages) or _first(shop, packages[:1]) or _first(shop, packages[1:])
    if applied and "/postgresql-" in f"/{applied.how.rsplit(' ', 1)[-1]}":
        _expose(shop)
    return applied


def _beside_it(shop: Workshop, name: str, packages: list[str]) -> Applied | None:
    """A program written in Python goes into the project's own environment, where it can import the project."""
    python = shop.project / ".venv/bin/python"
    if not packages or not python.exists():
        return None
    if not shop.run(f"apt-cache depends {packages[0]} | grep -q 'Depends: python3'", timeout=30, show=False).ok:
        return None
    if not shop.run(f"{python} -m pip install -q {name}", timeout=300).ok or not (python.parent / name).exists():
        return None
    return Applied(f"installed {name} with pip")


#: Words before "not found" that are no program.
_WORDS = frozenset(
    """
    module package file files command error key page object name route version user item node it this that which
    attribute method class function type value path resource directory dependency dependencies import a the not
    was is library header config host token tag branch commit test tests
    """.split()  # noqa: SIM905 — a word list reads better as words
)


def _expose(shop: Workshop) -> None:
    """Debian keeps a server's tools out of PATH: put them there."""
    found = shop.run("ls -d /usr/lib/postgresql/*/bin | sort -V | tail -n 1", timeout=20, show=False)
    if found.ok and found.output.strip() not in shop.paths:
        shop.paths.append(found.output.strip())


def service(shop: Workshop, match: re.Match[str], _result: Result, _argument: str) -> Applied | None:
    """Install and start the service that listens on the refused port."""
    name = BY_PORT.get(int(match.group("port")))
    return _serve(shop, SERVICES[name]) if name else None


def service_named(shop: Workshop, _match: re.Match[str], _result: Result, argument: str) -> Applied | None:
    """Install and start the service that the table names."""
    return _serve(shop, SERVICES[argument])


def _serve(shop: Workshop, wanted: Service) -> Applied | None:
    if wanted.name in shop.services:
        return None
    if not debian.install(shop, *wanted.packages):
        return None
    shop.run(wanted.start, timeout=90)
    for _ in range(40):
        if shop.run(wanted.probe, timeout=5, show=False).ok:
            break
        time.sleep(0.5)
    else:
        return None
    if wanted.once:
        shop.run(wanted.once, timeout=30)
    shop.services.append(wanted.name)
    return Applied(f"installed Debian's {wanted.packages[0]} and started {wanted.name} on port {wanted.port}")


def unprivileged(shop: Workshop, _match: re.Match[str], _result: Result, _argument: str) -> Applied | None:
    """Run the examples as an ordinary user."""
    if shop.unprivileged:
        return None
    line = f"id {_USER} >/dev/null 2>&1 || useradd -m {_USER}; chown -R {_USER} {shop.project}; chmod a+rx /work"
    if not shop.run(line, timeout=120).ok:
        return None
    shop.unprivileged = True
    return Applied(f"created the user {_USER} and ran it as that user", command=_result.command)


def display(shop: Workshop, _match: re.Match[str], _result: Result, _argument: str) -> Applied | None:
    """Start a virtual display."""
    if shop.display:
        return None
    if not shop.run("command -v Xvfb", timeout=20, show=False).ok and not debian.install(shop, "xvfb"):
        return None
    if not shop.run("command -v xwininfo", timeout=20, show=False).ok:
        debian.install(shop, "x11-utils")  # tells which windows are shown
    shop.run(
        "touch /root/.Xauthority; (setsid Xvfb :99 -screen 0 1280x800x24 -nolisten tcp >/dev/null 2>&1 &)", timeout=20
    )
    time.sleep(2)
    shop.display = True
    shop.keep("DISPLAY", ":99")
    return Applied("started a virtual display (Xvfb)")


def free_port() -> int:
    """A TCP port nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def other_port(shop: Workshop, _match: re.Match[str], result: Result, _argument: str) -> Applied | None:
    """Choose another port: in the command, by its own option, else by the variable PORT."""
    numbers = re.findall(r"(?::|[Pp]ort[ =:]+|, )(\d{2,5})\b", result.output)
    port = next((p for p in range(18080, 18200) if _free(p)), free_port())
    for taken in dict.fromkeys(numbers):
        if re.search(rf"\b{taken}\b", result.command):
            return Applied(f"port {taken} is taken: used {port}", re.sub(rf"\b{taken}\b", str(port), result.command))
    wanted = next(iter(numbers), "3000")
    if "verify_snippets" in result.command:
        shop.keep("VERIFY_PORTS", f"{wanted}={port}")
        return Applied(f"port {wanted} is taken: the example listens on {port}")
    words = result.command.split()
    usage = shop.run(f"{words[0]} --help", timeout=30, show=False).output
    option = re.search(r"--port\b", usage)
    if option and "--port" not in result.command:
        return Applied(f"port {wanted} is taken: used --port {port}", f"{result.command} --port {port}")
    shop.keep("PORT", str(port))
    return Applied(f"port {wanted} is taken: set PORT={port}")


def _free(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0


def env(shop: Workshop, _match: re.Match[str], _result: Result, argument: str) -> Applied:
    """Set a variable that the table names."""
    name, _, value = argument.partition("=")
    shop.keep(name, value)
    return Applied(f"set {name}={value}")


def env_file(shop: Workshop, _match: re.Match[str], _result: Result, _argument: str) -> Applied | None:
    """Make the environment file from its documented example."""
    for name in (".env.example", ".env.sample", ".env.dist", ".env.template", "env.example", ".env.default"):
        for source in sorted(shop.project.glob(f"**/{name}"))[:5]:
            target = source.with_name(".env")
            if not target.exists() and "node_modules" not in source.parts:
                shop.run(f"cp {shlex.quote(str(source))} {shlex.quote(str(target))}", timeout=60, show=False)
                return Applied(f"copied {name} to .env")
    return None


def less_parallel(shop: Workshop, _match: re.Match[str], result: Result, _argument: str) -> Applied | None:
    """Build with one job and less memory."""
    if shop.env.get("MAKEFLAGS") == "-j1":
        return None
    shop.env.update(
        {"MAKEFLAGS": "-j1", "CMAKE_BUILD_PARALLEL_LEVEL": "1", "CARGO_BUILD_JOBS": "1", "MAX_JOBS": "1",
         "GOMAXPROCS": "1", "NPY_NUM_BUILD_JOBS": "1", "CFLAGS": "-O1 -g0"}
    )  # fmt: skip
    command = re.sub(r"(?<=\s)-j\s?(\d+|\$\(nproc\)|`nproc`)?(?=\s|$)", "-j1", result.command)
    return Applied("built with one job at a time", command)


def executable(shop: Workshop, match: re.Match[str], result: Result, _argument: str) -> Applied | None:
    """Make the script that may not be run executable."""
    found = re.search(r"(?:bash|sh): (?:line \d+: )?(\S+): Permission denied", result.output)
    if not found or match.start() < 0:
        return None
    return Applied("made it executable") if shop.run(f"chmod +x {found.group(1)}", timeout=20).ok else None


def prompt(shop: Workshop, _match: re.Match[str], result: Result, _argument: str) -> Applied | None:
    """Answer no question: say yes by option or by environment."""
    if "CI" not in shop.lasting:
        shop.keep("CI", "1")
        return Applied("set CI=1 so that it asks nothing")
    if " --yes" not in result.command:
        return Applied("used --yes", f"{result.command} --yes")
    return None


def option(_shop: Workshop, match: re.Match[str], result: Result, _argument: str) -> Applied | None:
    """Use the option that its own message names."""
    name = match.group("option")
    return None if name in result.command else Applied(f"used {name}", f"{result.command} {name}")


def crash(shop: Workshop, _match: re.Match[str], result: Result, _argument: str) -> None:
    """A pinned native part that crashes cannot be helped."""
    shop.draft.note(f"`{result.command[:100]}` was ended by a fatal signal (status {result.code})")


REMEDIES: dict[str, Remedy] = {
    "retry": retry, "give_up": give_up, "apt": apt, "apt_named": apt_named, "header": header, "library": library,
    "shared_object": shared_object, "pkgconfig": pkgconfig, "cmake": cmake, "perl": perl, "program": program,
    "service": service, "service_named": service_named, "unprivileged": unprivileged, "display": display,
    "other_port": other_port, "env": env, "env_file": env_file, "less_parallel": less_parallel,
    "executable": executable, "prompt": prompt, "option": option, "crash": crash,
    **remedies_python.REMEDIES, **remedies_node.REMEDIES, **remedies_native.NATIVE_REMEDIES,
}  # fmt: skip
