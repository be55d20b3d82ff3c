"""The examples of a README in one language: tried together, reduced to what runs, made steady."""

from __future__ import annotations

import ast
import json
import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import announce, blocks, commands
from .blocks import Typed
from .documents import Document
from .ecosystems.plan import Plan
from .payload.verify import snapshot
from .payload.verify_compare import verdict
from .terminal import Result, say
from .workshop import Workshop

#: Kinds of failure by which an example itself is incomplete: it says nothing about the software.
_INCOMPLETE = frozenset({
    "NameError", "FileNotFoundError", "SyntaxError", "Blocked", "ReferenceError", "ENOENT", "IndentationError",
    "gaierror", "ConnectionError", "URLError", "ConnectError", "ENOTFOUND", "EAI_AGAIN", "MaxRetryError",
    "ERR_MODULE_NOT_FOUND", "MODULE_NOT_FOUND", "ModuleNotFoundError", "SSLError", "ProxyError", "HTTPError",
})  # fmt: skip
_MOST_EXAMPLES = 40
#: The words before a block that shows what an example prints.
_SHOWN = re.compile(
    r"\b(outputs?|prints?|printed|results?( in)?|returns?|yields|gives|produces|displays?)\b[^.]{0,40}:?\s*$",
    re.IGNORECASE,
)


@dataclass
class Tried:
    """What came of the README."""

    statements: int = 0
    matched: int = 0
    uses: bool = False
    failed: list[str] = field(default_factory=list)
    #: Those of ``failed`` that the software itself raised or reported: errors, whatever else ran.
    faults: list[str] = field(default_factory=list)
    #: What the README shows and what came instead, in words.
    differs: list[str] = field(default_factory=list)
    commands: int = 0
    servers: int = 0
    others: list[str] = field(default_factory=list)
    crashed: bool = False
    #: The software itself failed at as many documented statements as worked, or more.
    broken: bool = False


@dataclass
class Examples:
    """The blocks of a README by kind, the place where they run, and the steps that came of them."""

    shop: Workshop
    plan: Plan
    document: Document
    steps: list[dict[str, Any]] = field(default_factory=list)
    given: list[str] = field(default_factory=list)
    tried: Tried = field(default_factory=Tried)
    #: Examples that turned out to be servers: the line that starts each, and the paths to ask for.
    serving: list[tuple[str, list[str]]] = field(default_factory=list)
    #: What the document is, in words.
    called: str = "the README"
    #: Files that stood in the tree before an invocation.
    stood: dict[str, tuple[float, int]] = field(default_factory=dict)
    #: Statements, by example and number, whose output was another one each time: what the README shows of them is one
    #: of many, so they match nothing and differ from nothing.
    changing: set[tuple[str, int]] = field(default_factory=set)

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

    def fresh(self) -> None:
        """An empty place for the examples of a package."""
        if self.shop.mission.kind == "package":
            self.shop.run(f"rm -rf {self.cwd} && mkdir -p {self.cwd}", cwd=self.shop.project, timeout=60, show=False)
            if self.shop.unprivileged:
                self.shop.run(f"chown -R runner {self.shop.project}", timeout=60, show=False)
        else:
            self.stood = snapshot(str(self.cwd), {})

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
                "typed": typed.kind == "typescript",
                "expected": self._shown_after(typed),
            }
            for number, typed in enumerate([typed for typed in self.typed if typed.kind in kinds][:_MOST_EXAMPLES])
        ]
        if not listed:
            return
        paths = [path for _, path in commands.local_paths(self.document.prose + "".join(t.text for t in self.typed))]
        self._modules(language, listed)
        self.changing = set()
        trial: dict[str, Any] = {}
        for _ in range(8):
            trial = self._trial(language, listed, paths)
            if not self._judge(listed, trial) or self.shop.mission.left() < 30:  # noqa: PLR2004
                break
        if self.tried.differs:  # what changes from run to run is no finding
            before = set(self.tried.differs)
            again = self._trial(language, listed, paths)
            self.changing = _changing(trial, again)
            self._judge(listed, again)
            self.tried.differs = [found for found in self.tried.differs if found in before]
        if language == "javascript":
            self._converge(listed, paths)
        live = [snippet for snippet in listed if not snippet.get("drop")]
        if live and self.tried.uses:
            self._steady(language, listed, paths)
            line = self._line(language)
            self.steps.append(
                {"kind": "command", "line": line, "title": f"{self.called}'s {language} examples", "seconds": 300}
            )
        for snippet in listed:
            if snippet.get("serves"):
                line = f"{self._line(language)} --serve {snippet['id']}"
                self.serving.append((line, self.paths(str(snippet["text"]))))

    def _shown_after(self, typed: Typed) -> str:
        """The output that the README shows for a whole example: the block right behind it, where its words say so."""
        after = next((other for other in self.typed if other.block.order == typed.block.order + 1), None)
        if after is None or after.kind not in {"text", "data", "other"} or typed.kind == "pycon":
            return ""
        return after.text if _SHOWN.search(after.block.before[-80:]) else ""

    def _converge(self, listed: list[dict[str, Any]], paths: list[str]) -> None:
        """Leave out what fails only because something before it was left out; an example that never settles goes."""
        for last in (False, False, True):
            if not any(snippet.get("skip") for snippet in listed if not snippet.get("drop")):
                return
            earlier = self.tried
            trial = self._trial("javascript", listed, paths)
            failing = [snippet for snippet in listed if (trial.get(snippet["id"]) or {}).get("failed")]
            for snippet in failing if last else ():
                snippet["drop"] = True
                trial.pop(snippet["id"])
            self._judge(listed, trial)
            self.tried.failed = earlier.failed  # what fails only now follows from what was left out
            self.tried.faults = earlier.faults
            self.tried.broken = earlier.broken
            self.tried.differs = [found for found in self.tried.differs if found in earlier.differs]
            if not failing:
                return

    def _modules(self, language: str, listed: list[dict[str, Any]]) -> None:
        """Examples that the README tells to save under a name are saved under it."""
        suffix = {"python": ".py", "javascript": r"\.(?:js|mjs|cjs)"}[language]
        for typed in self.typed:
            if typed.kind not in {"python", "javascript"}:
                continue
            named = re.findall(rf"(?<![\w/.])([a-z_][\w.-]*{suffix})\b", typed.block.before[-160:])
            named = [name for name in named if not {name, name.rpartition(".")[0]} & {"node", *self.own}]
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
        announce.write(self.shop.verify / f"{language}.json", json.dumps(value, indent=1))

    def _start(self) -> None:
        self.fresh()
        for step in self.steps:
            if step["kind"] == "file":
                target = self.cwd / step["name"]
                target.parent.mkdir(parents=True, exist_ok=True)
                if not target.exists() or self.shop.mission.kind == "package":
                    announce.write(target, step["text"])

    def _trial(self, language: str, listed: list[dict[str, Any]], paths: list[str]) -> dict[str, Any]:
        self._start()
        self._save(language, listed, paths)
        out = self.shop.verify / f"{language}-trial.json"
        announce.remove(out)
        limit = self.shop.mission.slice(0.12, least=120)
        line = f"{self._line(language)} --trial {out}"
        result = self.shop.work(line, cwd=self.cwd, timeout=limit, must=False, example=True)
        self.tried.crashed = self.tried.crashed or result.crashed
        try:
            value: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return value

    def _judge(  # noqa: C901 — one question after the other
        self, listed: list[dict[str, Any]], trial: dict[str, Any]
    ) -> bool:
        """Mark what failed as skipped; True when it must be tried again (the interpreter died on an example)."""
        again = False
        tried = Tried()
        inside = used = 0
        answered = False
        for snippet in listed:
            if snippet.get("drop"):
                continue
            seen = trial.get(snippet["id"])
            if seen and seen.get("stuck"):
                stuck = [int(key) for key, failure in seen["failed"].items() if failure["kind"] == "Blocked"]
                held = [*snippet.get("held", []), *stuck]
                more = range(held[-1], held[-1] + 100) if len(held) > 1 else ()  # what follows waits for a person too
                snippet["held"] = held
                snippet["skip"] = sorted({*snippet.get("skip", []), *stuck, *more})
                again = True
                continue
            if seen is None or not seen.get("done"):
                again = again or seen is not None
                snippet["drop"] = snippet["drop"] if snippet.get("drop") else seen is not None or not trial
                continue
            skip = [int(key) for key in seen["failed"] if key.lstrip("-").isdigit()]
            snippet["skip"] = sorted({*snippet.get("skip", []), *skip})
            snippet["restless"] = bool(snippet.get("restless") or seen.get("restless"))
            snippet["matched"], snippet["answered"] = seen["matched"], seen.get("answered", [])
            self.given += [name for name in seen["samples"] if name not in self.given]
            tried.servers += len(seen.get("answered", []))
            if not seen["ran"]:
                snippet["drop"] = True
            wrong = [
                entry
                for entry in seen.get("differs", [])
                if verdict(entry[1], entry[2]) == "differs" and (snippet["id"], entry[0]) not in self.changing
            ]
            tried.differs += [mismatch(said, came) for _, said, came in wrong]
            if len(wrong) <= len(seen["matched"]):  # else this example did not do what is documented
                tried.statements += max(0, len(seen["ran"]) - len(wrong))
                used += len(seen.get("used") or [])
                used += sum(1 for key in seen.get("doubted") or () if (snippet["id"], key) in self.changing)
                answered = answered or bool(seen.get("answered"))
            tried.matched += len(seen["matched"])
            for failure in seen["failed"].values():
                if failure.get("ports"):
                    snippet["serves"] = True
                elif failure["kind"] not in _INCOMPLETE:
                    inside += bool(failure.get("inside"))
                    tried.failed.append(f"{failure['text'][:160]}")
                    if failure.get("inside"):
                        tried.faults.append(tried.failed[-1])
        tried.broken = inside > 0 and inside >= used
        tried.uses = (used > 0 or answered) and len(tried.differs) <= tried.matched
        tried.commands, tried.crashed, tried.others = self.tried.commands, self.tried.crashed, self.tried.others
        self.tried = tried
        return again

    def _steady(self, language: str, listed: list[dict[str, Any]], paths: list[str]) -> None:
        """Run the kept examples twice; what is not the same each time only says that it ran.

        Where the trial tells what each statement said, only those statements are muted, else the whole example.
        """
        out = self.shop.verify / f"{language}-steady.json"
        for whole in (False, True):
            seen: list[dict[str, str]] = []
            said: list[dict[str, Any]] = []
            for _ in range(2):
                self._start()
                self._save(language, listed, paths)
                announce.remove(out)
                line = self._line(language) + (f" --trial {out}" if language == "javascript" else "")
                result = self.shop.run(self.shop.as_user(line), cwd=self.cwd, timeout=300, show=False)
                seen.append(_by_example(result))
                said.append(_said(out))
            unsteady = False
            for snippet in listed:
                number = str(snippet["id"])
                first, second = (run.get(number, "") for run in seen)
                if first == second:
                    continue
                mute = _differing(*(run.get(number, {}) for run in said))
                if mute and not whole:
                    snippet["mute"], unsteady = mute, True
                    continue
                snippet["quiet"] = True
                matched = snippet.get("matched") or []
                snippet["matched"] = [] if first.count("as documented") != second.count("as documented") else matched
            if not unsteady:
                break
        self._save(language, listed, paths)

    def paths(self, text: str) -> list[str]:
        """Documented paths of a server: addresses in the README, routes in the example."""
        found = [path for _, path in commands.local_paths(self.document.prose + "\n".join(t.text for t in self.typed))]
        source = text or "".join(t.text for t in self.typed)
        routes = re.findall(r"@\w+\.(?:route|get|api_route|view)\(\s*['\"](/[^'\"]*)['\"]", source)
        routes += re.findall(
            r"\b(?:add_route|add_url_rule|add_api_route|Route|route_config)\(\s*['\"](/[^'\"]*)['\"]", source
        )
        found += [re.sub(r"<(?:int|float):?\w*>|\{\w*(?:id|count|n)\w*(?::int)?\}", "7", route) for route in routes]
        filled = [re.sub(r"<[\w:]*>|\{[\w:]*\}|:\w+", "sample", path) for path in found]
        return list(dict.fromkeys(filled))[:6]


def _changing(first: dict[str, Any], second: dict[str, Any]) -> set[tuple[str, int]]:
    """The statements of which the README shows one output, and two runs gave two others."""
    came = [
        {(number, entry[0]): entry[2] for number, seen in run.items() for entry in seen.get("differs", [])}
        for run in (first, second)
    ]
    return {key for key in came[0].keys() & came[1].keys() if came[0][key] != came[1][key]}


def mismatch(said: str, came: str) -> str:
    """The sentence on an output that is not the documented one."""
    shown, printed = (" / ".join(text.split("\n"))[:120] for text in (said.strip(), came.strip()))
    return f"the README shows `{shown}`, what came is `{printed or 'nothing'}`"


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


def _said(path: Path) -> dict[str, dict[str, str]]:
    """What each statement of each example said, as the trial wrote it down; empty where it does not."""
    try:
        trials = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return {number: trial.get("said") or {} for number, trial in trials.items()}


def _differing(first: dict[str, str], second: dict[str, str]) -> list[int]:
    """The statements that said one thing in one run and another in the other."""
    keys = {*first, *second} - {"-1"}
    return sorted(int(key) for key in keys if first.get(key) != second.get(key))
