"""A lane of kind ``cli``: one call is one process in a fresh, empty home that is removed when it has ended."""

from __future__ import annotations

import asyncio
import hashlib
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

from referee.adapters.lanes.cli.homes import Homes, furnish
from referee.adapters.lanes.cli.process import Ended, run
from referee.adapters.lanes.cli.programs import PROGRAMS, Prepared, Program, Setup
from referee.adapters.lanes.credential import Credential, read_credential
from referee.core.bakeoff import Cli, Retry, Surface, Target
from referee.errors import ConfigError, CouldNotVerify, InternalError
from referee.protocols import Ask, LaneFacts, Said

_VERSION_SECONDS = 60.0
_VERSION = re.compile(r"\d+(?:\.\d+)+[\w.+-]*")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"

#: Variables of these names would lead a program, and its credential, elsewhere (bake-off §11).
_REDIRECTS = re.compile(r"_(?:URL|URI|BASE|ENDPOINT|HOST|PROXY)$|_BASE_", re.IGNORECASE)

#: Inherited variables that are no secret, whatever they look like.
_PLAIN = frozenset({"PATH", "LANG", "LC_ALL", "TZ", "TERM", "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS"})
#: Which other inherited values are redacted like the credential: those whose variable is named like one, and those that
#: look like one. Any other (a region, a project, a model) may stand in an answer, whose grade it must not change.
_SECRET_NAME = re.compile(
    r"KEY|TOKEN|SECRET|PASS|PWD|CREDENTIAL|AUTH|COOKIE|SESSION|PRIVATE|SIGNATURE|(?:^|_)(?:PAT|PIN|JWT|DSN)(?:_|$)",
    re.IGNORECASE,
)
_SECRET_VALUE = re.compile(
    r"(?=[A-Za-z]*\d)(?=\d*[A-Za-z])[A-Za-z0-9]{16}"
    r"|[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"
    r"|://[^/\s:@]*:[^/\s@]+@"
)

#: Characters of a program's error output in ``Said.detail``, and of its end that are looked at for them. More is kept
#: than is looked at, so that the cut never leaves half a credential to be shown.
_LONGEST_DETAIL = 1_500
_LOOKED_AT = 4_000

_UNCONTROLLED = (
    "the program's own prompt and context: up to tens of thousands of cached tokens, the day's date among them",
    "the host's configuration of the program outside its home; its user configuration is an empty directory",
    "temperature and seed",
    "retries and routing inside the program",
    "serving backend: precision, quantisation, revision",
)


class CliLane:
    """The way to a model through an agent CLI.

    Args:
        target: what is measured; its ``cli`` names program and version.
        spool: where the homes of calls are made and removed.
        environ: the environment from which the credential and the named variables are taken, once.

    Raises:
        ConfigError: the target's settings cannot be used.
        UsageError: the credential is missing.
    """

    def __init__(self, target: Target, *, spool: Path, environ: Mapping[str, str]) -> None:
        cli = _checked(target)
        self._target = target
        self._cli = cli
        self._program: Program = PROGRAMS[cli.program]
        self._executable = shutil.which(cli.executable or self._program.executable, path=environ.get("PATH"))
        self._credential: Credential | None = None
        if target.key_env is not None:
            self._credential = read_credential(target.key_env, environ)
        self._inherited = _inherited(cli, environ)
        self._homes = Homes(spool)

    @property
    def surface(self) -> Surface:
        """What an agent CLI leaves uncontrolled (bake-off §4)."""
        return Surface(
            channel=self._target.channel,
            shape="cli-envelope",
            tool_channel="inlined",
            uncontrolled=_UNCONTROLLED,
            readable_as="model plus harness; tokens/s not measurable",
            latency_admissible=False,
            pins_sampling=False,
        )

    @property
    def secrets(self) -> Mapping[str, str]:
        """The credential, and the values of inherited variables that may be one."""
        held = {name: value for name, value in self._inherited.items() if value and _may_be_secret(name, value)}
        if self._credential is not None:
            held[self._credential.name] = self._credential.reveal()
        return held

    async def check(self, retry: Retry | None = None) -> LaneFacts:  # noqa: ARG002 — nothing is asked over a network
        """See that the program is there at the pinned version; it lists no models, so the name is taken as pinned.

        Raises:
            CouldNotVerify: it is not there, does not start, or is another version.
        """
        executable = self._found()
        place = await asyncio.to_thread(self._homes.place, "")
        try:
            ended = await run(
                [executable, "--version"],
                stdin=None,
                environment=self._environment(place, Prepared(()), secret=False),
                cwd=place / "work",
                deadline_seconds=_VERSION_SECONDS,
            )
        except OSError as exc:
            raise CouldNotVerify(f"{self._cli.program} cannot be started: {exc.strerror}") from exc
        finally:
            await asyncio.to_thread(shutil.rmtree, place, ignore_errors=True)
        found = _VERSION.search(ended.output.decode("utf-8", "replace"))
        if ended.status != 0 or found is None:
            raise CouldNotVerify(
                f"{self._cli.program} does not say its version: {self._why(ended)}",
                todo=f"run `{self._cli.executable or self._program.executable} --version` by hand",
            )
        if found[0] != self._cli.version:
            raise CouldNotVerify(
                f"{self._cli.program} is version {found[0]}, the target {self._target.name} pins {self._cli.version}",
                todo="install the pinned version, or pin the installed one in a target of another name",
            )
        digest = await asyncio.to_thread(_digest, Path(executable))
        verified = {
            "program": f"{self._cli.program} {found[0]}",
            "executable": digest,
            "home": "fresh and empty for every call",
            "environment": " ".join(sorted(self._environment(Path("/"), self._prepared(Path("/"))))),
            "catalogue": "none: the program takes the model by name",
        }
        # All of it is the same at every start, or it is another harness.
        pins = {name: verified[name] for name in ("program", "executable", "home", "environment")}
        return LaneFacts(self._target.model, verified, {"version": ended.output}, pins)

    async def ask(self, question: Ask, deadline_seconds: float) -> Said:
        """One process, one answer: exit status as status, standard output as body, the end of its errors as detail."""
        if question.tools:
            raise InternalError("an agent CLI has no tool channel: the schemas belong into the message")
        prompt = "\n\n".join(text for _, text in question.messages)
        executable = self._executable or self._program.executable
        place = await asyncio.to_thread(self._homes.place, prompt)
        try:
            prepared = self._prepared(place / "home")
            await asyncio.to_thread(furnish, place / "home", prepared.files)
            by_argument = self._program.prompt == "argument"
            ended = await run(
                [executable, *prepared.arguments, *([prompt] if by_argument else [])],
                stdin=None if by_argument else place / "prompt",
                environment=self._environment(place, prepared),
                cwd=place / "work",
                deadline_seconds=deadline_seconds,
            )
        except OSError as exc:
            detail = f"{self._cli.program} cannot be started: {exc.strerror}"
            return Said(None, {}, b"", "connect", detail, streamed=False, first_byte_ms=None, latency_ms=0.0)
        finally:
            await asyncio.to_thread(shutil.rmtree, place, ignore_errors=True)
        return self._said(ended, deadline_seconds)

    async def credit_usd(self) -> float | None:
        """None: a program publishes no credit."""
        return None

    async def market(self) -> Mapping[str, bytes]:
        """Nothing: a program publishes no prices."""
        return {}

    async def close(self) -> None:
        """End what left its group and still lives in one of this lane's homes, and remove the homes."""
        await asyncio.to_thread(self._homes.close)

    def _found(self) -> str:
        if not Path("/proc/self/stat").exists():
            raise CouldNotVerify(
                "agent CLIs are measured on Linux only: elsewhere it cannot be seen that a call's processes are dead"
            )
        if self._executable is None:
            name = self._cli.executable or self._program.executable
            raise CouldNotVerify(
                f"the program {name} of the target {self._target.name} is not there",
                todo=f"install {self._cli.program} {self._cli.version}, or name it in the target's [cli] executable",
            )
        return self._executable

    def _key_name(self) -> str | None:
        if self._credential is None:
            return None
        known = self._program.keys
        return self._credential.name if not known or self._credential.name in known else known[0]

    def _prepared(self, home: Path) -> Prepared:
        return self._program.prepare(Setup(self._target.model, self._target.base_url, self._key_name(), home))

    def _environment(self, place: Path, prepared: Prepared, *, secret: bool = True) -> dict[str, str]:
        """All variables that the program gets: named here, in its row, or by the target; nothing else."""
        home = place / "home"
        where = [] if self._executable is None else [str(Path(self._executable).parent)]
        environment = {
            "PATH": ":".join([*where, _SYSTEM_PATH]),
            **self._inherited,
            "HOME": str(home),
            "TMPDIR": str(place / "tmp"),
            "XDG_CACHE_HOME": str(home / ".cache"),
            "XDG_CONFIG_HOME": str(home / ".config"),
            "XDG_DATA_HOME": str(home / ".local/share"),
            "XDG_STATE_HOME": str(home / ".local/state"),
            "NO_COLOR": "1",
            **prepared.environment,
        }
        environment.setdefault("LANG", "C.UTF-8")
        name = self._key_name()
        if secret and name is not None and self._credential is not None:
            environment[name] = self._credential.reveal()
        return environment

    def _said(self, ended: Ended, deadline_seconds: float) -> Said:
        broke = {"itself": None, "deadline": "timeout", "too-long": "too-long"}[ended.by]
        detail = self._why(ended)
        if ended.by == "deadline":
            detail = f"no end within {deadline_seconds:g} s, its process group was ended; {detail}"
        elif ended.status is not None and ended.status < 0:
            broke, detail = "killed", f"ended by signal {-ended.status}; {detail}"
        if ended.alive:
            detail = f"{len(ended.alive)} of its processes could not be ended; {detail}"
        return Said(
            status=None if broke else ended.status,
            headers={"content-type": self._program.output, "x-program": self._cli.program},
            body=ended.output,
            broke=broke,
            detail=detail,
            streamed=False,
            first_byte_ms=ended.first_byte_ms,
            latency_ms=ended.latency_ms,
        )

    def _why(self, ended: Ended) -> str:
        """The end of the error output on one line, without any credential."""
        text = ended.errors.decode("utf-8", "replace")
        for name, value in self.secrets.items():
            text = text.replace(value, f"[{name}]")
        return " ".join(text[-_LOOKED_AT:].split())[-_LONGEST_DETAIL:]


def _checked(target: Target) -> Cli:
    where = f"the target {target.name}"
    if target.cli is None:
        raise ConfigError(f"{where} has the lane cli and no [cli] table", todo="name program and version there")
    if target.channel != "agent-cli":
        raise ConfigError(f"{where} has the lane cli, so its channel is agent-cli, not {target.channel}")
    if target.extra_body:
        raise ConfigError(f"{where} has extra_body, which no agent CLI can send")
    program = PROGRAMS[target.cli.program]
    if target.base_url is not None and not program.own_endpoint:
        raise ConfigError(f"{where} has a base_url, which {target.cli.program} cannot be given")
    if program.own_endpoint and not program.keys and target.base_url is None and "/" not in target.model:
        raise ConfigError(f"{where}: {target.cli.program} takes a model as provider/model where no base_url is given")
    return target.cli


def _inherited(cli: Cli, environ: Mapping[str, str]) -> dict[str, str]:
    own = {"HOME", "TMPDIR", "NO_COLOR"}
    rows = PROGRAMS[cli.program].prepare(Setup("m", "http://localhost", "KEY", Path("/"))).environment
    for name in cli.inherit:
        if not _VARIABLE.fullmatch(name):
            raise ConfigError(f"[cli] inherit names variables one by one: {name!r} is no name of one")
        if name in own or name in rows or name.startswith("XDG_"):
            raise ConfigError(f"[cli] inherit may not name {name}: every call gets its own")
        if _REDIRECTS.search(name):
            raise ConfigError(
                f"[cli] inherit may not name {name}: a variable must not lead a credential elsewhere",
                todo="give the target a base_url",
            )
    return {name: environ[name] for name in cli.inherit if name in environ}


def _may_be_secret(name: str, value: str) -> bool:
    if name in _PLAIN:
        return False
    return _SECRET_NAME.search(name) is not None or _SECRET_VALUE.search(value) is not None


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"
