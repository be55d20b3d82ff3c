"""README -> a verification plan: examples, commands and servers, tried out with the table of troubles at hand."""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import announce, commands
from .blocks import VERBS
from .commands import Command
from .debian import install
from .examples import Examples, mismatch
from .payload.verify import COUNTS, snapshot
from .payload.verify_compare import verdict
from .shows import ONE_LINER, altered, hollow
from .terminal import Result, say
from .workshop import Workshop

_MOST_PATHS = 5
#: What stands before the name of a file that a command makes.
_OUT = r"(-o|>|--out\S*|--dest\S*|\.\w+ .*--file)"
#: What a command prints that did not do its work, whatever its status.
_HOLLOW = re.compile(
    r"urlopen error|Name or service not known|Temporary failure in name resolution|getaddrinfo|ENOTFOUND|"
    r"Network is unreachable|Could not resolve host|Traceback \(most recent call last\)|Segmentation fault|"
    r"not running in a TTY"
)


@dataclass
class Quickstart(Examples):
    """Builds the steps of ``verify/plan.json`` from a README."""

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
                stand_in = next((to for first, to in self.plan.instead.items() if line.startswith(first)), "")
                if made.purpose == "skip" and stand_in:
                    made.line, made.purpose = stand_in, "own"
                found.append(made)
        return found if any(made.purpose in {"own", "run"} for made in found) else [*found, *self._inline(found)]

    def _inline(self, shown: list[Command]) -> list[Command]:
        """Where no block shows a command: those set as code in the prose."""
        programs = frozenset(self.plan.programs)
        found: list[Command] = []
        for span in dict.fromkeys(self.document.spans):
            words = commands.words_of(span)
            if len(words) > 1 and (words[0] in VERBS | programs or words[0].startswith("./")) and len(found) < 12:  # noqa: PLR2004
                found.append(commands.read_command(span, len(shown) + len(found), "", programs, self.own))
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
        return [name for name in names if not commands.names_itself(name, self.own)]

    def run_commands(self) -> None:
        """Follow the documented commands in order and keep those that work; a server among them becomes a server."""
        here = ""
        count = 0
        self._start()
        for command in self.commands():
            if self.shop.mission.left() < 40 or count > 14:  # noqa: PLR2004 — enough shown
                return
            if command.purpose == "directory":
                here = self._moved(here, commands.words_of(command.line)[1])
                continue
            if command.purpose not in {"own", "run"} or self._needs_other(command):
                continue
            if commands.installs_itself(command.line, self.own):
                continue  # another package manager's build of it would stand before the one that was brought up
            if self.tried.servers > 1 and self.served(command):
                continue
            self._spell(command, here)
            self._sources(command)
            count += 1
            self._one(command, here)
            here = self._moved(here, commands.moves(command.line))

    def _spell(self, command: Command, here: str) -> None:
        """Where the README names a file of the tree wrongly, run the one that it must mean."""
        wrong = commands.misspelt(command.line, self.cwd / here) if self.shop.mission.kind == "repository" else None
        if wrong:
            said, meant = wrong
            trouble = self.shop.draft.met(
                f"misspelt:{said}", f"the README names {said}, which is not there", f"ran {meant}"
            )
            command.line = command.line.replace(said, meant)
            trouble.fixed = (self.cwd / here / meant).is_file()

    def _moved(self, here: str, target: str) -> str:
        """Where the reader's shell stands after a line that changed its directory."""
        there = Path(os.path.normpath(Path(here) / target))
        inside = not str(there).startswith("..") and (self.cwd / there).is_dir()
        return (str(there) if str(there) != "." else "") if target and inside else here

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
                or any(step.get("name") == name.removeprefix("./") for step in self.steps)
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
            elif kind != "python" and not re.search(rf"{_OUT}[ =]{re.escape(word)}", command.line):
                self.add_sample(name.removeprefix("./"))
        self._start_missing()

    def _start_missing(self) -> None:
        for step in self.steps:
            if step["kind"] == "file" and not (self.cwd / step["name"]).exists():
                (self.cwd / step["name"]).parent.mkdir(parents=True, exist_ok=True)
                announce.write(self.cwd / step["name"], step["text"])

    def _one(self, command: Command, here: str) -> None:
        result = self.shop.work(
            command.line, cwd=self.cwd / here, timeout=self.shop.mission.slice(0.05, least=60), must=False,
            serving=True, example=True,
        )  # fmt: skip
        if result.ports:
            if self.server(result.command, self.paths(""), port=result.ports[0], cwd=here):
                self.tried.commands += 1
            return
        if _HOLLOW.search(result.output) and not result.ports:
            self.tried.failed.append(f"`{command.line[:80]}` ended with status {result.code}, but it reports a failure")
            self._blame(command, result)
            return
        if result.code is None and not result.waiting and self.shop.display and self._desktop(result.command, here):
            return
        if not result.ok:
            self._lost(command, result)
            return
        if self._contradicted(command, result, here):
            return
        tests = re.search(r"\b(tests?|pytest|unittest|check)\b", result.command) and COUNTS.search(result.output)
        step = {"kind": "tests" if tests else "command", "line": result.command, "cwd": here, "seconds": 600}
        repository = self.shop.mission.kind == "repository"
        used = command.purpose == "own" or (
            repository and commands.verifies(result.command, frozenset(self.plan.programs))
        )
        documented = bool(command.expected.strip()) and verdict(command.expected, result.output) == "same"
        if documented:
            step["documented"] = command.expected
        if used and not trivial(result.command) and (documented or self._shows(result, here)):
            self.tried.commands += 1
            self.tried.matched += documented
        self.steps.append(step)

    def _lost(self, command: Command, result: Result) -> None:
        """A documented command that failed: a fault of the software unless it worked on a file of ours."""
        if result.code is not None and (command.purpose == "own" or self.shop.mission.kind == "repository"):
            self.tried.failed.append(f"`{command.line[:80]}`: {result.last_lines(1)[:120]}")
            self._blame(command, result)

    def _blame(self, command: Command, result: Result) -> None:
        """Call the last failure the software's own: not for want of a file, a host, a terminal or an argument."""
        said = result.output
        ends = bool(re.search(r"Traceback \(most recent|\b(panic|fatal|exception)\b", said, re.IGNORECASE))
        wants = re.search(
            r"getaddrinfo|ENOTFOUND|resolve|unreachable|No such file|not found|FileNotFound|ENOENT|EOF|TTY|terminal|"
            r"No module named|Cannot find module",
            said,
        )
        asked = command.purpose == "own" or self.shop.mission.kind == "repository"
        if asked and ends and not wants and result.code not in {0, 2, 126, 127} and not self._ours(command.line):
            self.tried.faults.append(self.tried.failed[-1])

    def _names_own(self, line: str) -> bool:
        """Whether a line names the project's own modules or programs."""
        return bool({*self.own, *self.plan.programs} & set(re.findall(r"[\w-]+", line)))

    def _ours(self, line: str) -> bool:
        """Whether a line works on a file of ours, so that what the README shows cannot come."""
        samples = {step["name"] for step in self.steps if step["kind"] == "sample"} | set(self.shop.made)
        return any(name and name in line for name in samples)

    def _contradicted(self, command: Command, result: Result, here: str) -> bool:
        """Whether another output came than the README shows, twice: a finding that stays, no success."""
        said = command.expected
        if not said.strip() or self._ours(result.command) or verdict(said, result.output) != "differs":
            return False
        line = self.shop.as_user(result.command)
        again = self.shop.run(line, cwd=self.cwd / here, timeout=60, show=False)
        if again.output != result.output:
            return False
        self.tried.differs.append(f"`{command.line[:80]}`: {mismatch(said, result.output)}")
        return True

    def _shows(self, result: Result, here: str) -> bool:
        """Whether what came of a command shows that it worked: files, test counts, or an output that its words steer.

        Silence, usage, a bare banner and the same words whatever is asked show nothing.
        """
        if self.made_files() or COUNTS.search(result.output):
            return True
        if hollow(result.output) or (ONE_LINER.search(result.command) and not self._names_own(result.command)):
            return False
        other = altered(result.command)
        if not other:  # nothing to steer: of a tree's own scripts the output itself is the result
            return self.shop.mission.kind == "repository"
        seen = self.shop.run(self.shop.as_user(other), cwd=self.cwd / here, timeout=60)
        return seen.code != result.code or seen.output != result.output

    def _desktop(self, line: str, cwd: str) -> bool:
        """A command that stays up where there is a display: an application with a window."""
        install(self.shop, "x11-utils")
        step = {"kind": "stays", "line": line, "cwd": cwd}
        if not self._holds([step]):
            return False
        self.steps.append(step)
        self.tried.others.append("its window stayed up on a virtual display")
        return True

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
        made = [name for name in found if found[name] != self.stood.get(name)]
        return [name for name in made if name not in self.given and not name.startswith(("src/", "sample."))]

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
                {
                    "name": name, "start": SERVICES[name].start, "probe": SERVICES[name].probe,
                    "port": SERVICES[name].port,
                }
                for name in shop.services
            ],
        }  # fmt: skip
        announce.write(shop.verify / "plan.json", json.dumps(value, indent=1))


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
            announce.write(shop.verify / entry.name, entry.read_text(encoding="utf-8"))
    say(f"# the verification will stand in {shop.verify}")
