"""A Dockerfile as a description: its RUN lines are carried out on this machine, its CMD starts the program.

Only for bases that this machine can stand in for: Debian and its kin, and the language images built on it. Alpine's
package names are translated where the translation is plain.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from . import dockerfile_syntax as syntax
from . import look
from .dockerfile_syntax import Instruction, Stage
from .java import JDK
from .php import COMPOSER, PHP
from .plan import Plan, Server, Tool
from .ruby import BUNDLE, RUBY
from .rust import CARGO

if TYPE_CHECKING:
    from ..workshop import Workshop

_C = Tool("cc", ("build-essential",))
#: What the image of that name would have brought.
_BASES: dict[str, tuple[Tool, ...]] = {
    "debian": (), "ubuntu": (), "buildpack-deps": (_C,), "minideb": (), "scratch": (), "static": (), "base": (),
    "alpine": (), "busybox": (), "gcc": (_C,), "base-debian12": (), "static-debian12": (), "cc-debian12": (),
    "python": (), "node": (), "uv": (), "python3-debian12": (),
    "golang": (Tool("go", ("golang-go",)),), "rust": (Tool("cargo", CARGO),), "ruby": (RUBY, BUNDLE),
    "php": (PHP,), "composer": (PHP, COMPOSER), "perl": (Tool("perl", ("perl",)),),
    "openjdk": (JDK,), "eclipse-temurin": (JDK,), "amazoncorretto": (JDK,), "java17-debian12": (JDK,),
    "maven": (JDK, Tool("mvn", ("maven",))), "gradle": (JDK, Tool("gradle", ("gradle",))),
    "nginx": (Tool("nginx", ("nginx-light", "nginx")),), "httpd": (Tool("apache2", ("apache2",)),),
}  # fmt: skip
_APK = {
    "build-base": "build-essential", "musl-dev": "", "libc-dev": "", "libc6-compat": "", "linux-headers": "",
    "libffi-dev": "libffi-dev", "openssl-dev": "libssl-dev", "zlib-dev": "zlib1g-dev", "postgresql-dev": "libpq-dev",
    "python3": "python3", "py3-pip": "python3-pip", "openjdk17-jre": "default-jre-headless", "tini": "tini",
    "jpeg-dev": "libjpeg-dev", "libxml2-dev": "libxml2-dev", "sqlite-dev": "libsqlite3-dev",
    "nodejs": "", "npm": "", "shadow": "", "su-exec": "gosu", "go": "golang-go", "ncurses-dev": "libncurses-dev",
}  # fmt: skip
_SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def plan(shop: Workshop) -> Plan | None:
    """A plan for a tree that a Dockerfile describes; None when its base is no kin of this machine."""
    path = look.first(shop.project, "Dockerfile", "docker/Dockerfile", "Containerfile", ".docker/Dockerfile")
    stages = syntax.stages(look.text(path)) if path else []
    if not stages:
        return None
    wanted = syntax.needed(stages)
    names = {stage.name for stage in stages} | {str(index) for index in range(len(stages))}
    tools: list[Tool] = []
    for stage in wanted:
        if stage.base.lower() in names:
            continue
        family = family_of(stage.base)
        if family not in _BASES:
            return None
        tools += [tool for tool in _BASES[family] if tool not in tools]
    carried = carry_out(wanted, shop.project, names)
    start = carried.start()
    run = tuple(value for value in (start,) if value)
    return Plan(
        ecosystem="dockerfile",
        confidence=_confidence(shop, wanted),
        tools=tuple(tools),
        prepare=carried.keep,
        install=tuple(carried.steps) or ("true",),
        servers=tuple(Server(value, carried.paths() or ("/",)) for value in run) if carried.ports else (),
        invocations=() if carried.ports else run,
        instead=dict.fromkeys(("docker run", "docker compose up", "docker-compose up"), start) if start else {},
        environment={"PIP_BREAK_SYSTEM_PACKAGES": "1", "DEBIAN_FRONTEND": "noninteractive"},
    )


def _confidence(shop: Workshop, wanted: list[Stage]) -> int:
    """Above any manifest where the README knows no other way than Docker."""
    readme = look.text(shop.mission.readme) if shop.mission.readme else ""
    verbs = "pip3?|npm|npx|yarn|pnpm|python3?|uv|poetry|cargo|go|make|cmake|mvn|gradle|bundle|composer"
    others = rf"^\s*(?:\$ )?(?:(?:{verbs})\b|\./)"
    docker = re.search(r"\bdocker(?: (?:run|build|compose)|-compose)\b", readme)
    if docker and not re.search(others, readme, re.MULTILINE):
        return 75
    return 38 if any(family_of(stage.base) == "alpine" for stage in wanted) else 45


def family_of(base: str) -> str:
    """The bare name of an image: ``docker.io/library/python:3.12-slim`` -> ``python`` (``-alpine`` -> its language)."""
    return base.rsplit("/", 1)[-1].partition("@")[0].partition(":")[0].lower()


@dataclass
class Carried:
    """What the stages come to on this machine."""

    project: Path
    stage_names: set[str]
    steps: list[str] = field(default_factory=list)
    env: dict[str, str] = field(default_factory=dict)
    args: dict[str, str] = field(default_factory=dict)
    directory: str = "/"
    ports: list[int] = field(default_factory=list)
    entrypoint: Instruction | None = None
    command: Instruction | None = None
    health: str = ""

    @property
    def values(self) -> dict[str, str]:
        """What a variable stands for at this point."""
        return {"PATH": _SYSTEM_PATH, "HOME": "/root", **self.args, **self.env}

    def keep(self, shop: Workshop) -> None:
        """Set the environment for the steps; the start command carries its own."""
        for name, value in {**self.args, **self.env}.items():
            if name == "PATH":
                known = {*shop.paths, *_SYSTEM_PATH.split(":")}
                shop.paths += [entry for entry in value.split(":") if entry not in known]
            else:
                shop.env[name] = value

    def paths(self) -> tuple[str, ...]:
        """The path that the health check asks for, then the root."""
        asked = re.search(r"https?://(?:localhost|127\.0\.0\.1|0\.0\.0\.0)(?::\d+)?(/[^\s'\"|;)]*)", self.health)
        return tuple(dict.fromkeys([*([asked.group(1)] if asked else []), "/"]))

    def start(self) -> str:
        """The shell line that starts the program as the image would; empty when it says none."""
        entry, command = self.entrypoint, self.command
        words: list[str] = []
        if entry is not None:
            words = entry.argv if entry.argv is not None else ["/bin/sh", "-c", entry.value]
        if command is not None and (entry is None or entry.argv is not None):
            words = [*words, *(command.argv if command.argv is not None else ["/bin/sh", "-c", command.value])]
        if words[-3:-1] == ["/bin/sh", "-c"] and len(words) == 3:  # noqa: PLR2004 — the shell form, as the image runs it
            line = words[-1] if not re.search(r"[;&|]", words[-1]) else shlex.join(words)
        else:
            line = shlex.join(words)
        if not line or re.fullmatch(r"(?:/bin/)?(?:ba|a|da)?sh", line):
            return ""
        shown = {k: v for k, v in self.env.items() if k != "PATH"}
        settings = [f"{name}={shlex.quote(value)}" for name, value in shown.items()]
        if "PATH" in self.env:
            settings.append(f"PATH={shlex.quote(self.env['PATH'])}")
        return f"cd {shlex.quote(self.directory)} && {' '.join([*settings, line])}"


def carry_out(wanted: list[Stage], project: Path, names: set[str]) -> Carried:
    """Translate the instructions of the needed stages, in order."""
    made = Carried(project, names)
    handlers = {
        "RUN": _run, "COPY": _copy, "ADD": _copy, "WORKDIR": _workdir, "ENV": _env, "ARG": _arg, "EXPOSE": _expose,
        "CMD": _start, "ENTRYPOINT": _start, "HEALTHCHECK": _health,
    }  # fmt: skip
    for stage in wanted:
        if stage.base.lower() not in names:
            made.directory, made.entrypoint, made.command, made.ports = "/", None, None, []
        for instruction in stage.instructions:
            handler = handlers.get(instruction.name)
            if handler is not None:
                handler(made, instruction)
    return made


def _env(made: Carried, instruction: Instruction) -> None:
    for name, value in syntax.pairs(instruction.value):
        made.env[name] = syntax.expand(value, made.values)


def _arg(made: Carried, instruction: Instruction) -> None:
    for name, value in syntax.pairs(instruction.value):
        made.args.setdefault(name, syntax.expand(value, made.values))


def _workdir(made: Carried, instruction: Instruction) -> None:
    value = syntax.expand(instruction.value.strip("\"'"), made.values)
    made.directory = value if value.startswith("/") else f"{made.directory.rstrip('/')}/{value}"
    made.steps.append(f"mkdir -p {shlex.quote(made.directory)}")


def _expose(made: Carried, instruction: Instruction) -> None:
    words = syntax.expand(instruction.value, made.values).split()
    made.ports += [int(m.group(1)) for word in words if (m := re.match(r"(\d+)(?:/tcp)?$", word))]


def _start(made: Carried, instruction: Instruction) -> None:
    if instruction.name == "ENTRYPOINT":
        made.entrypoint, made.command = instruction, None
    else:
        made.command = instruction


def _health(made: Carried, instruction: Instruction) -> None:
    made.health = instruction.value


def _run(made: Carried, instruction: Instruction) -> None:
    if instruction.heredocs:
        end, body = instruction.heredocs[0]
        head = re.sub(r"<<-?['\"]?\w+['\"]?", "", instruction.value).strip() or "sh -e"
        line = f"{head} <<'{end}'\n{body}{end}"
    elif instruction.argv is not None:
        line = shlex.join(instruction.argv)
    else:
        line = for_debian(instruction.value)
    if not line.strip():
        return
    bound = [value for key, value in instruction.flags if key == "mount" and "type=bind" in value]
    for mount in bound:
        said = dict(part.partition("=")[::2] for part in mount.split(","))
        source, target = said.get("source", said.get("src", ".")), said.get("target", said.get("dst", ""))
        if target and not said.get("from"):
            _copy(made, Instruction("COPY", f"{source} {target}"))
    made.steps.append(f"cd {shlex.quote(made.directory)} && {line}")


def for_debian(line: str) -> str:
    """A RUN line for this machine: package lists stay, Alpine's installer and its user tools are translated."""
    lists = r"(?:/var/(?:lib/apt/lists|cache/apt|cache/apk)\S*\s*)+"
    line = re.sub(rf"(?:&&|;)?\s*rm -rf? (?:-\S+ )*{lists}(?=&&|;|$)", " ", line)
    line = re.sub(r"(?:&&|;)?\s*apt(?:-get)? (?:auto)?clean(?: -y)?\s*(?=&&|;|$)", " ", line)
    line = re.sub(r"\bapk (?:-\S+ )*(?:update|upgrade|del)\b[^&;|]*", "true ", line)
    line = re.sub(r"\bapk (?:-\S+ )*add\b([^&;|]*)", _apk, line)
    group = r"(getent group \1 || groupadd \1) "
    line = re.sub(r"\b(?:addgroup|groupadd)\b[^&;|]*?(?<=\s)(\w[\w-]*)\s*(?=&&|;|$)", group, line)
    user = r"(id -u \1 || useradd -m \1 || useradd -m -g \1 \1) "
    line = re.sub(r"\b(?:adduser|useradd)\b[^&;|]*?(?<=\s)(\w[\w-]*)\s*(?=&&|;|$)", user, line)
    return re.sub(r"^\s*(?:&&|;)\s*", "", line).strip()


def _apk(match: re.Match[str]) -> str:
    names: list[str] = []
    words = iter(match.group(1).split())
    for word in words:
        if word in {"-t", "--virtual"}:
            next(words, None)
        elif not word.startswith(("-", ".", "$")):
            bare = re.split(r"[=<>~@]", word)[0]
            names.append(_APK.get(bare, bare))
    kept = " ".join(dict.fromkeys(name for name in names if name))
    return f"apt-get update -qq && apt-get install -y -qq --no-install-recommends {kept} " if kept else "true "


def _copy(made: Carried, instruction: Instruction) -> None:
    if instruction.heredocs:
        target = _target(made, instruction.value.split()[-1])
        end, body = instruction.heredocs[0]
        made.steps.append(f"mkdir -p $(dirname {target}) && cat > {target} <<'{end}'\n{body}{end}")
        return
    words = instruction.argv or syntax.expand(instruction.value, made.values).split()
    if len(words) < 2:  # noqa: PLR2004 — a source and a target
        return
    source_stage = instruction.flag("from").lower()
    if source_stage and source_stage not in made.stage_names:
        made.steps += [_foreign(word) for word in words[:-1]]
        return
    target = _target(made, words[-1])
    base = "/" if source_stage else f"{made.project}/"
    into = words[-1].endswith(("/", ".")) or len(words) > 2  # noqa: PLR2004 — several sources
    for word in words[:-1]:
        source = base + word.lstrip("/") if word.strip("./") else base
        add = instruction.name == "ADD"
        made.steps.append(_copied(source.rstrip("/") or "/", target.rstrip("/") or "/", word, into=into, add=add))


def _copied(source: str, target: str, word: str, *, into: bool, add: bool) -> str:
    if "://" in word:
        room, file = (target, f"{target}/{word.rsplit('/', 1)[-1]}") if into else (f"$(dirname {target})", target)
        return f"mkdir -p {room} && curl -fsSL {shlex.quote(word)} -o {file}"
    if source == target:
        return "true"
    if add and re.search(r"\.(?:tar|tgz|tar\.\w+)$", word):
        return f"mkdir -p {target} && tar -xf {source} -C {target}"
    quoted = source if re.fullmatch(r"[\w./*?+@-]+", source) else shlex.quote(source)
    room = target if into else f"$(dirname {target})"
    whole, one = f'mkdir -p {target} && cp -a "$s/." {target}/', f'mkdir -p {room} && cp -a "$s" {target}'
    return f'for s in {quoted}; do if [ -d "$s" ]; then {whole}; else {one}; fi || exit 1; done'


def _target(made: Carried, word: str) -> str:
    value = syntax.expand(word, made.values)
    if not value.startswith("/"):
        value = f"{made.directory.rstrip('/')}/{re.sub(r'^[.]/?', '', value)}"
    return value if re.fullmatch(r"[\w./+@-]+", value) else shlex.quote(value)


def _foreign(word: str) -> str:
    """A program out of an image that is no stage: had from the Python index or Debian, or missed by its name."""
    name = word.rstrip("/").rsplit("/", 1)[-1]
    package = "uv" if name == "uvx" else name
    return f"command -v {shlex.quote(name)} >/dev/null || python3 -m pip install -q {shlex.quote(package)}"
