"""README -> a verification plan: tried out with the table of troubles at hand, reduced to what runs."""

from __future__ import annotations

import ast
import json
import re
import shlex
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import blocks, commands
from .blocks import Typed
from .commands import Command
from .documents import Document
from .ecosystems.plan import Plan
from .payload.verify import COUNTS, snapshot
from .terminal import Result, say
from .workshop import Workshop

#: Kinds of failure by which an example itself is incomplete: it says nothing about the software.
_INCOMPLETE = frozenset({
    "NameError", "FileNotFoundError", "SyntaxError", "Blocked", "ReferenceError", "ENOENT", "IndentationError",
    "gaierror", "ConnectionError", "URLError", "ConnectError", "ENOTFOUND", "EAI_AGAIN", "MaxRetryError",
    "ERR_MODULE_NOT_FOUND", "MODULE_NOT_FOUND", "ModuleNotFoundError", "SSLError", "ProxyError", "HTTPError",
})  # fmt: skip
_MOST_EXAMPLES = 40
_MOST_PATHS = 5


@dataclass
class Tried:
    """What came of the README."""

    statements: int = 0
    matched: int = 0
    uses: bool = False
    failed: list[str] = field(default_factory=list)
    commands: int = 0
    servers: int = 0
    others: list[str] = field(default_factory=list)
    crashed: bool = False


@dataclass
class Quickstart:
    """Builds the steps of ``verify/plan.json`` from a README."""

    shop: Workshop
    plan: Plan
    document: Document
    steps: list[dict[str, Any]] = field(default_factory=list)
    given: list[str] = field(default_factory=list)
    tried: Tried = field(default_factory=Tried)

    def __post_init__(self) -> None:
        """Sort the blocks by kind."""
        package = self.shop.mission.kind == "package"
        default = "javascript" if "javascript" in self.plan.languages else "python"
        programs = frozenset(self.plan.programs)
        kept = [block for block in self.document.blocks if not blocks.excluded(block, package=package)]
        self.typed: list[Typed] = [blocks.classify(block, programs, default) for block in kept]
        self.own = frozenset(
            {(self.shop.mission.package or self.shop.mission.name).lower().replace("_", "-"), *self.plan.packages}
        )

    @property
    def cwd(self) -> Path:
        """Where examples run: the tree itself, or for a package an empty place."""
        return self.shop.project if self.shop.mission.kind == "repository" else self.shop.verify / "scratch"

    def commands(self) -> list[Command]:
        """All documented shell lines, in order."""
        found = []
        for typed in self.typed:
            if typed.kind != "shell":
                continue
            title = typed.block.headings[-1] if typed.block.headings else ""
            for line, expected in commands.lines_of(typed.text):
                made = commands.read_command(line, typed.block.order, title, frozenset(self.plan.programs), self.own)
                made.expected = expected
                found.append(made)
        return found

    def documented_installs(self) -> list[str]:
        """Further packages that the README itself tells the reader to install, each once."""
        names: list[str] = []
        for command in self.commands():
            for name in command.installs:
                if command.purpose == "install" and name not in names and name != ".":
                    names.append(name)
        for span in self.document.spans:
            words = commands.words_of(span)
            if words[:1] and words[0] in {"pip", "npm", "yarn", "pnpm", "apt", "apt-get"}:
                made = commands.read_command(span, 0, "", frozenset(), self.own)
                names += [name for name in made.installs if name not in names and name != "."]
        return names

    def fresh(self) -> None:
        """An empty place for the examples of a package."""
        if self.shop.mission.kind == "package":
            shutil.rmtree(self.cwd, ignore_errors=True)
            self.cwd.mkdir(parents=True)
            if self.shop.unprivileged:
                self.shop.run(f"chown -R runner {self.shop.project}", timeout=60, show=False)

    # -- examples in a language ------------------------------------------------------------------------------------

    def examples(self, language: str) -> None:
        """Try the blocks of one language ("python" or "javascript") and keep what runs as a step."""
        kinds = {"python": {"python", "pycon"}, "javascript": {"javascript", "typescript"}}[language]
        listed = [
            {
                "id": str(number + 1),
                "title": " / ".join(typed.block.headings[-2:])[:100],
                "kind": "pycon" if typed.kind == "pycon" else "plain",
                "text": typed.text,
                "order": typed.block.order,
            }
            for number, typed in enumerate([typed for typed in self.typed if typed.kind in kinds][:_MOST_EXAMPLES])
        ]
        if not listed:
            return
        paths = [path for _, path in commands.local_paths(self.document.prose + "".join(t.text for t in self.typed))]
        self._modules(language, listed)
        for _ in range(5):
            trial = self._trial(language, listed, paths)
            if not self._judge(listed, trial) or self.shop.mission.left() < 30:  # noqa: PLR2004
                break
        live = [snippet for snippet in listed if not snippet.get("drop")]
        if live and self.tried.uses:
            self._steady(language, listed, paths)
            line = self._line(language)
            self.steps.append(
                {"kind": "command", "line": line, "title": f"the README's {language} examples", "seconds": 300}
            )
        for snippet in listed:
            if snippet.get("serves"):
                line = f"{self._line(language)} --serve {snippet['id']}"
                self.server(line, self.paths(str(snippet["text"])))

    def _modules(self, language: str, listed: list[dict[str, Any]]) -> None:
        """Examples that the README tells to save under a name are saved under it."""
        suffix = {"python": ".py", "javascript": r"\.(?:js|mjs|cjs)"}[language]
        for typed in self.typed:
            if typed.kind not in {"python", "javascript"}:
                continue
            named = re.findall(rf"(?<![\w/])([a-z_][\w-]*{suffix})\b", typed.block.before[-160:])
            named = [name for name in named if name.split(".")[0] not in {"node", *self.own}]
            first = re.match(rf"\s*(?:#|//)\s*([A-Za-z_][\w-]*{suffix})\s*$", typed.text.splitlines()[0])
            name = first.group(1) if first else named[-1] if named else ""
            if name and name not in self.given:
                self.add_file(name, typed.text)
        if language == "python":
            self._imported(listed)

    def _imported(self, listed: list[dict[str, Any]]) -> None:
        """``from my_module import f`` where an earlier example defines f: that example is my_module."""
        defined: dict[str, str] = {}
        for snippet in listed:
            try:
                tree = ast.parse(str(snippet["text"]))
            except (SyntaxError, ValueError):
                continue
            for node in tree.body:
                if isinstance(node, ast.ImportFrom) and node.module and "." not in node.module and not node.level:
                    for alias in node.names:
                        if alias.name in defined and f"{node.module}.py" not in self.given:
                            self.add_file(f"{node.module}.py", defined[alias.name])
                elif isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)):
                    defined[node.name] = str(snippet["text"])

    def add_file(self, name: str, text: str) -> None:
        """A file that the README shows."""
        self.given.append(name)
        self.steps.append({"kind": "file", "name": name, "text": text})

    def add_sample(self, name: str) -> None:
        """A small file of ours for a name that an example takes for granted."""
        line = (
            f"cd {self.cwd} && python3 -c 'import sys; sys.path.insert(0, sys.argv[1]); import verify_samples as s; "
            f"sys.exit(not s.make(sys.argv[2]))' {self.shop.verify} {shlex.quote(name)}"
        )
        if self.shop.run(line, timeout=90, show=False).ok:
            say(f"# made a sample {name}")
            self.given.append(name)
            self.steps.append({"kind": "sample", "name": name})

    def _line(self, language: str) -> str:
        verify = self.shop.verify
        if language == "python":
            python = self.shop.project / ".venv/bin/python"
            return f"{python} {verify}/verify_snippets.py {verify}/python.json"
        return f"node {verify}/verify_snippets.mjs {verify}/javascript.json"

    def _save(self, language: str, listed: list[dict[str, Any]], paths: list[str]) -> None:
        value = {"package": list(self.plan.packages), "paths": paths, "snippets": listed}
        (self.shop.verify / f"{language}.json").write_text(json.dumps(value, indent=1), encoding="utf-8")

    def _start(self) -> None:
        self.fresh()
        for step in self.steps:
            if step["kind"] == "file":
                target = self.cwd / step["name"]
                target.parent.mkdir(parents=True, exist_ok=True)
                if not target.exists() or self.shop.mission.kind == "package":
                    target.write_text(step["text"], encoding="utf-8")

    def _trial(self, language: str, listed: list[dict[str, Any]], paths: list[str]) -> dict[str, Any]:
        self._start()
        self._save(language, listed, paths)
        out = self.shop.verify / f"{language}-trial.json"
        out.unlink(missing_ok=True)
        limit = self.shop.mission.slice(0.12, least=120)
        line = f"{self._line(language)} --trial {out}"
        result = self.shop.work(line, cwd=self.cwd, timeout=limit, must=False, example=True)
        self.tried.crashed = self.tried.crashed or result.crashed
        try:
            value: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return value

    def _judge(self, listed: list[dict[str, Any]], trial: dict[str, Any]) -> bool:
        """Mark what failed as skipped; True when it must be tried again (the interpreter died on an example)."""
        again = False
        tried = Tried()
        for snippet in listed:
            if snippet.get("drop"):
                continue
            seen = trial.get(snippet["id"])
            if seen is None or not seen.get("done"):
                again = again or seen is not None
                snippet["drop"] = snippet["drop"] if snippet.get("drop") else seen is not None or not trial
                continue
            skip = [int(key) for key in seen["failed"] if key.lstrip("-").isdigit()]
            snippet["skip"] = sorted({*snippet.get("skip", []), *skip})
            snippet["matched"], snippet["answered"] = seen["matched"], seen.get("answered", [])
            self.given += [name for name in seen["samples"] if name not in self.given]
            tried.servers += len(seen.get("answered", []))
            if not seen["ran"]:
                snippet["drop"] = True
            tried.statements += len(seen["ran"])
            tried.matched += len(seen["matched"])
            for failure in seen["failed"].values():
                if failure.get("ports"):
                    snippet["serves"] = True
                elif failure["kind"] not in _INCOMPLETE:
                    tried.failed.append(f"{failure['text'][:160]}")
        tried.uses = any(seen.get("used") or seen.get("answered") for seen in trial.values())
        tried.commands, tried.crashed, tried.others = self.tried.commands, self.tried.crashed, self.tried.others
        self.tried = tried
        return again

    def _steady(self, language: str, listed: list[dict[str, Any]], paths: list[str]) -> None:
        """Run the kept examples twice; those whose output is not the same each time only say that they ran."""
        seen: list[dict[str, str]] = []
        for _ in range(2):
            self._start()
            self._save(language, listed, paths)
            line = self.shop.as_user(self._line(language))
            result = self.shop.run(line, cwd=self.cwd, timeout=300, show=False)
            seen.append(_by_example(result))
        for snippet in listed:
            first, second = (run.get(str(snippet["id"]), "") for run in seen)
            if first != second:
                snippet["quiet"] = True
                matched = snippet.get("matched") or []
                snippet["matched"] = [] if first.count("as documented") != second.count("as documented") else matched
        self._save(language, listed, paths)

    # -- commands and servers --------------------------------------------------------------------------------------

    def run_commands(self) -> None:
        """Follow the documented commands in order and keep those that work; a server among them becomes a server."""
        here = ""
        count = 0
        self._start()
        for command in self.commands():
            if self.shop.mission.left() < 40 or count > 14:  # noqa: PLR2004 — enough shown
                return
            if command.purpose == "directory":
                target = commands.words_of(command.line)[1]
                if (self.cwd / here / target).is_dir():
                    here = str(Path(here) / target)
                continue
            if command.purpose not in {"own", "run"} or self._needs_other(command):
                continue
            if self.tried.servers > 1 and self.served(command):
                continue
            self._sources(command)
            count += 1
            self._one(command, here)

    def served(self, command: Command) -> bool:
        """Whether the same program has been seen to be a server: two of its forms are shown, that is enough."""
        head = commands.words_of(command.line)[0]
        return any(step["kind"] == "server" and step["line"].split()[0] == head for step in self.steps)

    def _needs_other(self, command: Command) -> bool:
        """Whether a line is bookkeeping for this run: already done, or nothing to see."""
        words = commands.words_of(command.line)
        if trivial(command.line):
            return True
        if self.shop.mission.kind == "package" and words[0] in {"npm", "npx", "yarn", "pnpm"}:
            return True  # would fetch and run something else than the pinned artifact
        known = any(step.get("line") == command.line for step in self.steps)
        return (
            known
            or (words[0] in {"source", "export", "cat", "echo", "ls"} and command.purpose != "own")
            or "venv" in words
            or words[:2] == ["git", "init"]
        )

    def _sources(self, command: Command) -> None:
        """A file that a command names and that is not there: the example before it, or a sample of ours."""
        for word in commands.words_of(command.line):
            word = word.split("=", 1)[1] if re.match(r"(--)?[\w-]+=", word) else word  # noqa: PLW2901
            name = word.split(":")[0] + ".py" if re.fullmatch(r"[a-z_]\w*:[a-z_]\w*", word) else word
            if (
                not re.fullmatch(r"(\./)?[\w./-]+\.[A-Za-z0-9]{1,5}", name)
                or (self.cwd / name).exists()
                or name in self.given
            ):
                continue
            suffix = Path(name).suffix
            kind = {
                ".py": "python",
                ".js": "javascript",
                ".mjs": "javascript",
                ".cjs": "javascript",
                ".json": "data",
            }.get(suffix)
            before = [t for t in self.typed if t.kind == kind and t.block.order < command.order]
            if before and kind:
                self.add_file(name.removeprefix("./"), before[-1].text)
            elif kind != "python" and not re.search(rf"(-o|>|--output|--out\S*)[ =]{re.escape(word)}", command.line):
                self.add_sample(name.removeprefix("./"))
        self._start_missing()

    def _start_missing(self) -> None:
        for step in self.steps:
            if step["kind"] == "file" and not (self.cwd / step["name"]).exists():
                (self.cwd / step["name"]).parent.mkdir(parents=True, exist_ok=True)
                (self.cwd / step["name"]).write_text(step["text"], encoding="utf-8")

    def _one(self, command: Command, here: str) -> None:
        result = self.shop.work(
            command.line, cwd=self.cwd / here, timeout=self.shop.mission.slice(0.05, least=60), must=False,
            serving=True, example=True,
        )  # fmt: skip
        if result.ports:
            if self.server(result.command, self.paths(""), port=result.ports[0], cwd=here):
                self.tried.commands += 1
            return
        if not result.ok:
            stayed = result.code is None
            if not stayed and (command.purpose == "own" or self.shop.mission.kind == "repository"):
                self.tried.failed.append(f"`{command.line[:80]}`: {result.last_lines(1)[:120]}")
            return
        tests = re.search(r"\b(tests?|pytest|unittest|check)\b", result.command) and COUNTS.search(result.output)
        step = {"kind": "tests" if tests else "command", "line": result.command, "cwd": here, "seconds": 600}
        repository = self.shop.mission.kind == "repository"
        used = command.purpose == "own" or (
            repository and commands.verifies(result.command, frozenset(self.plan.programs))
        )
        if used and not trivial(result.command):
            self.tried.commands += 1
        self.steps.append(step)

    def paths(self, text: str) -> list[str]:
        """Documented paths of a server: addresses in the README, routes in the example."""
        found = [path for _, path in commands.local_paths(self.document.prose + "\n".join(t.text for t in self.typed))]
        source = text or "".join(t.text for t in self.typed)
        routes = re.findall(r"@\w+\.(?:route|get|api_route|view)\(\s*['\"](/[^'\"]*)['\"]", source)
        found += [re.sub(r"<(?:int|float):?\w*>|\{\w*(?:id|count|n)\w*(?::int)?\}", "7", route) for route in routes]
        filled = [re.sub(r"<[\w:]*>|\{[\w:]*\}|:\w+", "sample", path) for path in found]
        return list(dict.fromkeys(filled))[:6]

    def server(
        self, line: str, paths: list[str], *, port: int | None = None, cwd: str = "", documented: bool = True
    ) -> bool:
        """Try a server: start it, ask for the documented paths (else ``/``), keep those that answer with 200."""
        step: dict[str, Any] = {"kind": "server", "line": line, "paths": [], "port": port, "cwd": cwd}
        step["title"] = line.replace(str(self.shop.verify) + "/", "verify/")
        answered: list[str] = []
        for path in list(dict.fromkeys([*paths, "/"]))[:_MOST_PATHS]:
            if path == "/" and answered:
                break
            if self._holds([{**step, "paths": [*answered, path]}]):
                answered.append(path)
        if not answered and self._static(step):
            answered = ["/"]
        if answered:
            self.steps.append({**step, "paths": answered})
            self.tried.servers += 1
            return True
        if documented:
            self.tried.failed.append(f"`{line[-80:]}` answered on none of {', '.join([*paths, '/'][:4])}")
        return False

    def _static(self, step: dict[str, Any]) -> bool:
        """A server of files has nothing to show in an empty place: give it a page of ours."""
        name = str(Path(step["cwd"]) / "index.html")
        if self.shop.mission.kind != "package" or name in self.given:
            return False
        self.add_sample(name)
        if name in self.given and self._holds([{**step, "paths": ["/"]}]):
            return True
        self.steps = [other for other in self.steps if other.get("name") != name]
        return False

    def _holds(self, extra: list[dict[str, Any]]) -> bool:
        files = [step for step in self.steps if step["kind"] in {"file", "sample"}]
        self.write([*files, *extra])
        return self.shop.run(verify_line(self.shop), timeout=180).ok

    def made_files(self) -> list[str]:
        """Files that stand in the examples' place and that are not ours."""
        found = snapshot(str(self.cwd), {"scratch": self.shop.mission.kind == "package"})
        return [name for name in found if name not in self.given and not name.startswith(("src/", "sample."))]

    def keep(self, line: str, says: str, *, kind: str = "command", seconds: int = 120) -> bool:
        """A command that verified something becomes a step; ``says``: what it showed, in words."""
        self.steps.append({"kind": kind, "line": line, "seconds": seconds})
        self.tried.others.append(says)
        return True

    def write(self, steps: list[dict[str, Any]]) -> None:
        """Write ``verify/plan.json``."""
        from .services import SERVICES  # noqa: PLC0415

        shop = self.shop
        value = {
            "env": {**shop.lasting, **self.plan.environment}, "path": shop.paths, "cwd": str(self.cwd),
            "scratch": shop.mission.kind == "package", "user": "runner" if shop.unprivileged else None,
            "display": shop.display, "given": [*self.given, *shop.made],
            "steps": [*({"kind": "file", "name": name, "text": text} for name, text in shop.made.items()), *steps],
            "services": [
                {"name": name, "start": SERVICES[name].start, "probe": SERVICES[name].probe} for name in shop.services
            ],
        }  # fmt: skip
        (shop.verify / "plan.json").write_text(json.dumps(value, indent=1), encoding="utf-8")


def verify_line(shop: Workshop) -> str:
    """The one command that verifies everything again."""
    return f"cd {shop.project} && /usr/bin/python3 verify/verify.py"


def trivial(line: str) -> bool:
    """Whether a command only tells about itself."""
    words = commands.words_of(line)
    return len(words) > 1 and any(
        word in {"--help", "-h", "--version", "-V", "-v", "help", "version"} for word in words[1:]
    )


def place_payload(shop: Workshop) -> None:
    """Copy the programs of the verification into the project, where they outlive the agent."""
    source = Path(__file__).parent / "payload"
    shop.verify.mkdir(parents=True, exist_ok=True)
    for entry in sorted(source.iterdir()):
        if entry.suffix in {".py", ".mjs"} and entry.name != "__init__.py":
            shutil.copyfile(entry, shop.verify / entry.name)
    say(f"# the verification will stand in {shop.verify}")


def _by_example(result: Result) -> dict[str, str]:
    """The output of each example."""
    found: dict[str, str] = {}
    current = ""
    for line in result.output.splitlines():
        match = re.match(r"\[example (\w+)\]", line)
        if match:
            current = match.group(1)
        found[current] = found.get(current, "") + line + "\n"
    return found
