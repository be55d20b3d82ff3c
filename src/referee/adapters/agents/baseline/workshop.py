"""The bench everything is done on: run a command, or work one through the table of troubles."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from . import debian, terminal, troubles
from .mission import Mission
from .report import Draft, Trouble
from .terminal import Result, say

TRUSTED_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#: At most so many fixes for one command.
FIXES = 14
_SHORT = 90
_QUIET = {
    "DEBIAN_FRONTEND": "noninteractive",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "PIP_NO_INPUT": "1",
    "PIP_ROOT_USER_ACTION": "ignore",
    "PIP_PROGRESS_BAR": "off",
    "NPM_CONFIG_FUND": "false",
    "NPM_CONFIG_AUDIT": "false",
    "NPM_CONFIG_UPDATE_NOTIFIER": "false",
    "NPM_CONFIG_YES": "true",
    "NO_UPDATE_NOTIFIER": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "NO_COLOR": "1",
    "PAGER": "cat",
    "TERM": "dumb",
    "HOME": "/root",
}


@dataclass
class Applied:
    """A remedy that was carried out: how, in words; ``command`` replaces the failed one when given."""

    how: str
    command: str | None = None


#: A remedy: the shop, the match on the output, the failed command, the argument after the colon in the table.
Remedy = Callable[["Workshop", re.Match[str], Result, str], "Applied | None"]


@dataclass
class Workshop:
    """Mission, draft, environment, and what has been tried so far."""

    mission: Mission
    draft: Draft
    env: dict[str, str] = field(default_factory=dict)
    paths: list[str] = field(default_factory=list)
    services: list[str] = field(default_factory=list)
    display: bool = False
    unprivileged: bool = False
    #: Environment that the verification must set too, because a fresh shell has none of ours.
    lasting: dict[str, str] = field(default_factory=dict)
    tried: set[str] = field(default_factory=set)
    #: Names that the README itself tells the reader to install (lower case).
    documented: set[str] = field(default_factory=set)
    prose: str = ""
    #: Whether the command being worked on must succeed (an install, not an optional example).
    strict: bool = True
    #: Shell lines that the README shows, in order: a failed line's documented variant is tried.
    variants: list[str] = field(default_factory=list)
    #: Files of ours that a program needed as its input, by name below the examples' place.
    made: dict[str, str] = field(default_factory=dict)
    #: Diagnoses that nothing here can help, by key: errors that stay when nothing is verified in the end.
    stops: dict[str, str] = field(default_factory=dict)

    @property
    def project(self) -> Path:
        """The tree to bring up, or the empty project of a package."""
        return self.mission.project

    @property
    def verify(self) -> Path:
        """Where the verification lives, for anyone to run again."""
        return self.project / "verify"

    def environment(self) -> dict[str, str]:
        """The environment of every command: the machine's own, made quiet, with the project's paths first."""
        merged = {**os.environ, **_QUIET, **self.env, **self.lasting}
        merged["PATH"] = ":".join([*self.paths, TRUSTED_PATH])
        return merged

    def keep(self, name: str, value: str) -> None:
        """Set a variable now and in the verification."""
        self.lasting[name] = value

    def run(
        self,
        command: str,
        *,
        cwd: Path | None = None,
        timeout: float | None = None,
        show: bool = True,
        serving: bool = False,
    ) -> Result:
        """Run a shell line; no fixing. ``serving``: see ``terminal.run``."""
        limit = self.mission.slice(0.25) if timeout is None else max(1.0, min(timeout, self.mission.left()))
        return terminal.run(
            command, cwd=cwd or self.project, env=self.environment(), timeout=limit, show=show, serving=serving
        )

    def as_user(self, command: str) -> str:
        """The command, run as the ordinary user where something refused root."""
        if not self.unprivileged or command.startswith("runuser "):
            return command
        return f"runuser -u runner -- env HOME=/home/runner bash -c {shlex.quote(command)}"

    def quietly(self, command: str, *, timeout: float = 120) -> Result:
        """Run a look-up whose output only we read; the command itself is shown."""
        say(f"$ {command}")
        return self.run(command, timeout=timeout, show=False)

    def work(
        self,
        command: str,
        *,
        cwd: Path | None = None,
        timeout: float | None = None,
        must: bool = True,
        good: Callable[[Result], bool] | None = None,
        serving: bool = False,
        example: bool = False,
    ) -> Result:
        """Run a shell line and work through what it meets, each remedy at most once.

        ``must``: a failure that no remedy explains is written down as an error that stays. ``good`` decides success
        (default: status 0, or serving when that was asked). ``example``: it is run as the ordinary user once
        something refused root.
        """
        success = good or (lambda result: result.ok or bool(result.ports))
        open_errors: list[Trouble] = []

        def once(line: str) -> Result:
            done = self.run(self.as_user(line) if example else line, cwd=cwd, timeout=timeout, serving=serving)
            return replace(done, command=line)

        result = once(command)
        for _ in range(FIXES):
            if success(result) or self.mission.left() < 5:  # noqa: PLR2004 — no time to fix anything
                break
            self.strict = must
            applied, trouble = self._remedy(result)
            if applied is None:
                applied, trouble = self._variant(result)
            if applied is None:
                break
            if trouble is not None:
                open_errors.append(trouble)
            say(f"# {trouble.what if trouble else 'a tool of its developers'} -> {applied.how}")
            command = applied.command or command
            result = once(command)
            self._settle(open_errors, result, done=success(result))
        self._settle(open_errors, result, done=success(result))
        if result.waiting and not must:
            # What waits all the same asks nothing: a worker, a watcher. The diagnosis was wrong, there was no error.
            self.draft.errors = [error for error in self.draft.errors if error.key != "prompt" or error.fixed]
        if must and not success(result):
            self.draft.met(f"left:{command}", failure_sentence(command, result))
        return result

    def _remedy(self, result: Result) -> tuple[Applied | None, Trouble | None]:
        from .remedies import REMEDIES  # noqa: PLC0415 — remedies use the workshop's types

        for diagnosis in troubles.diagnose(result):
            if diagnosis.key in self.tried:
                continue
            self.tried.add(diagnosis.key)
            if diagnosis.remedy == "stop":
                self.stops[diagnosis.key] = diagnosis.what
                if self.strict:
                    return None, None
                continue
            say(f"# diagnosis: {diagnosis.what}")
            name, _, argument = diagnosis.remedy.partition(":")
            applied = REMEDIES[name](self, diagnosis.match, result, argument)
            if applied is not None and not self.strict and troubles.for_developers(diagnosis):
                return applied, None  # nothing went wrong: the README shows it to those who have such tools
            if applied is not None:
                return applied, self.draft.met(diagnosis.key, diagnosis.what, applied.how)
        return None, None

    def _variant(self, result: Result) -> tuple[Applied | None, Trouble | None]:
        """The same line with more arguments, as the README shows it for those for whom the plain one fails.

        An experiment of ours that fails is no error of the project's, and no variant of the README's fixes it.
        """
        if not self.strict and result.command not in self.variants:
            return None, None
        for line in self.variants:
            key = f"variant:{line}"
            if line.startswith(result.command + " ") and key not in self.tried:
                self.tried.add(key)
                trouble = self.draft.met(f"left:{result.command}", failure_sentence(result.command, result))
                trouble.how = f"used the README's variant `{line}`"
                return Applied(trouble.how, line), trouble
        return None, None

    def _settle(self, open_errors: list[Trouble], result: Result, *, done: bool) -> None:
        """An error is fixed when the command runs, or fails by something else now."""
        now = {diagnosis.key for diagnosis in troubles.diagnose(result)} if not done else set()
        for trouble in open_errors:
            trouble.fixed = trouble.key not in now

    def need(self, command: str, packages: tuple[str, ...]) -> bool:
        """Make sure a command is there, installing the first Debian package of ``packages`` that can be."""
        if self.run(f"command -v {command}", timeout=20, show=False).ok:
            return True
        say(f"# {command} is not there")
        error = self.draft.met(f"command:{command}", f"the command {command} is missing")
        for package in packages or tuple(debian.packages_with_program(self, command)):
            if debian.install(self, package):
                error.fixed, error.how = True, f"installed Debian's {package}"
                return True
        return False

    @contextmanager
    def extra_env(self, values: dict[str, str]) -> Iterator[None]:
        """Variables for a while."""
        before = dict(self.env)
        self.env.update(values)
        try:
            yield
        finally:
            self.env = before


def failure_sentence(command: str, result: Result) -> str:
    """What a failed command did, from what was observed."""
    short = command if len(command) < _SHORT else command[: _SHORT - 3] + "..."
    if result.waiting:
        return f"`{short}` waited for an answer: {result.last_lines(1)}"
    if result.code is None:
        return f"`{short}` did not end within {result.seconds:.0f} s"
    if result.crashed:
        return f"`{short}` was ended by a fatal signal (status {result.code})"
    return f"`{short}` failed with status {result.code}: {result.last_lines(2)}"
