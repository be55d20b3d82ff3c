"""Does the steps of a recorded session again on another machine, one by one, and notes what came of each.

As in the session, standard input is empty and nothing is answered. Where the harness kept one shell, one shell is kept
here, with its directory, exports, functions and jobs; where it did not, what a command left running in the background
goes on all the same. There is no terminal: what a program shows only on one is not compared.
"""

from __future__ import annotations

import io
import posixpath
import tarfile
import time
from collections.abc import Callable

from referee.core.sessions.steps import Step, StepDone, Told
from referee.errors import ReportRejected
from referee.protocols import PROJECT, TRUSTED_PATH, Machine

#: A command whose limit in the session is not known gets so many seconds; one that was stopped at an unknown time less.
LIMIT = 600.0
LIMIT_OF_STOPPED = 120.0
#: Seconds beyond the session's own limit: this machine may be slower.
MARGIN = 10.0
#: Bytes of a step's output that are kept from its beginning and from its end, and of a failed one's beside its status.
HEAD = TAIL = 30_000
KEPT_TAIL = 2_000
#: A file that is changed in one place may have so many bytes.
MAX_FILE = 32_000_000

_PLACE = "/opt/replay"
_BASH = ("/bin/bash", "--noprofile", "--norc", "-c")
_FRESH = f"""
cd "$1" || exit 126
exec "/bin/$2" {_PLACE}/step >{_PLACE}/out 2>&1 </dev/null
"""
_FROM_PLACE = f"""
cd "$1" || exit 126
trap 'pwd -P >{_PLACE}/cwd' EXIT
exec >{_PLACE}/out 2>&1 </dev/null
eval "$(<{_PLACE}/step)"
"""
_BACKGROUND = f"""
cd "$1" || exit 126
cp {_PLACE}/step {_PLACE}/step.$2
setsid --fork /bin/bash {_PLACE}/step.$2 >{_PLACE}/out.$2 2>&1 </dev/null
: >{_PLACE}/out
"""
_KEEPER = f"""
cd "$1" || exit 126
rm -f {_PLACE}/in {_PLACE}/pid; mkfifo {_PLACE}/in
setsid --fork /bin/bash --noprofile --norc -c '
echo $$ >{_PLACE}/pid
exec 3<>{_PLACE}/in
while read -r -u 3 __replay_go; do
  eval "$(<{_PLACE}/step)" >{_PLACE}/out 2>&1 </dev/null 3<&-
  echo $? >{_PLACE}/status.new; mv {_PLACE}/status.new {_PLACE}/status
done' >/dev/null 2>&1 </dev/null
while [ ! -s {_PLACE}/pid ]; do sleep 0.02; done
"""
_KEPT = f"""
rm -f {_PLACE}/status
echo go >{_PLACE}/in
while [ ! -e {_PLACE}/status ] && kill -0 "$(cat {_PLACE}/pid)" 2>/dev/null; do sleep 0.05; done
exit "$(cat {_PLACE}/status 2>/dev/null || echo 0)"
"""
_INTERRUPT = f"""
pkill -INT -P "$(cat {_PLACE}/pid)"
for _ in 1 2 3 4 5 6 7 8 9 10; do [ -e {_PLACE}/status ] && exit 0; sleep 0.3; done
pkill -KILL -P "$(cat {_PLACE}/pid)"; sleep 0.5
[ -e {_PLACE}/status ]
"""
_SHOW = f"""
size=$(stat -c %s {_PLACE}/out 2>/dev/null || echo 0)
echo "$size"
head -c {HEAD} {_PLACE}/out 2>/dev/null
if [ "$size" -gt {HEAD + TAIL} ]; then printf '\\n[… left out …]\\n'; tail -c {TAIL} {_PLACE}/out
else tail -c +{HEAD + 1} {_PLACE}/out 2>/dev/null; fi
rm -f {_PLACE}/out
"""


class StoppedHere(Exception):
    """A step that cannot be done again, and why in one sentence."""


class Redo:
    """Does steps again on a machine where the subject has been placed.

    Args:
        machine: a pristine one.
        told: the recorded steps.
        deadline: monotonic time at which all must be done.
        write: called with each step's bytes of the log ``replay.txt``.
    """

    def __init__(self, machine: Machine, told: Told, *, deadline: float, write: Callable[[bytes], None]) -> None:
        self._machine = machine
        self._told = told
        self._deadline = deadline
        self._write = write
        self._at = PROJECT
        self._shell = False

    def do(self, number: int) -> StepDone:
        """Do step ``number`` (from 1).

        Raises:
            StoppedHere: it cannot be done again.
            MachineFault: the machine failed.
        """
        step = self._told.steps[number - 1]
        if time.monotonic() >= self._deadline:
            raise StoppedHere("the time limit of the run was reached")
        began = time.monotonic()
        if step.kind != "command":
            self._change(step)
            self._write(f"--- {number} {step.kind} {step.path}\n".encode())
            return StepDone(number=number, status=None, seconds=round(time.monotonic() - began, 3), bytes=0)
        self._write(f"--- {number} {step.cwd or self._at}\n$ {step.text}\n".encode("utf-8", "replace"))
        status = self._command(number, step)
        seconds = round(time.monotonic() - began, 3)
        size, output = self._shown()
        ended = f"status {status}" if status is not None else "stopped at its limit"
        self._write(
            output + (b"" if output.endswith(b"\n") or not output else b"\n") + f"[{ended}, {seconds} s]\n".encode()
        )
        tail = "" if status == 0 else output[-KEPT_TAIL:].decode("utf-8", "replace")
        return StepDone(number=number, status=status, stopped=status is None, seconds=seconds, bytes=size, tail=tail)

    def _command(self, number: int, step: Step) -> int | None:
        self._place({"step": step.text.encode("utf-8", "replace")})
        limit = LIMIT if step.seconds is None else step.seconds + (0 if step.stopped else MARGIN)
        if step.stopped and step.seconds is None:
            limit = LIMIT_OF_STOPPED
        limit = max(1.0, min(limit, self._deadline - time.monotonic()))
        environment = _environment(step)
        cwd = step.cwd or self._at
        if step.background:
            status = self._bash(_BACKGROUND, cwd, str(number), limit=limit, environment=environment)
        elif self._told.processes == "kept":
            status = self._in_kept_shell(cwd, limit, environment)
        elif self._told.processes == "place":
            status = self._bash(_FROM_PLACE, cwd, limit=limit, environment=environment)
        else:
            status = self._bash(_FRESH, cwd, self._told.interpreter, limit=limit, environment=environment)
        if self._told.processes == "place":
            self._at = step.then_cwd or self._stands(cwd)
        return status

    def _in_kept_shell(self, cwd: str, limit: float, environment: dict[str, str]) -> int | None:
        alive = self._shell and self._bash(f'kill -0 "$(cat {_PLACE}/pid)"', limit=20) == 0
        if not alive:
            self._bash(_KEEPER, cwd, limit=20, environment=environment)
            self._shell = True
        status = self._bash(_KEPT, limit=limit)
        if status is None and self._bash(_INTERRUPT, limit=20) != 0:
            raise StoppedHere("the shell that the session kept could not be brought back from a command")
        return status

    def _bash(
        self, script: str, *arguments: str, limit: float, environment: dict[str, str] | None = None
    ) -> int | None:
        done = self._machine.execute(
            (*_BASH, script, "replay", *arguments),
            timeout=limit,
            environment=environment or _environment(None),
            cwd="/",
            max_output=10_000,
        )
        return done.exit_status

    def _stands(self, before: str) -> str:
        data = self._machine.read_file(f"{_PLACE}/cwd", max_bytes=10_000)
        return data.decode("utf-8", "replace").rstrip("\n") or before if data else before

    def _shown(self) -> tuple[int, bytes]:
        done = self._machine.execute(
            (*_BASH, _SHOW), timeout=60, environment=_environment(None), cwd="/", max_output=HEAD + TAIL + 1_000
        )
        first, _, output = done.output.partition(b"\n")
        return (int(first) if first.isdigit() else 0), output

    def _change(self, step: Step) -> None:
        path = posixpath.join(step.cwd or self._at, step.path or "")
        data = step.text.encode("utf-8", "surrogateescape")
        if step.kind == "replace":
            data = self._replaced(path, step)
        if step.kind == "remove":
            done = self._bash('rm -f -- "$1"', path, limit=60)
        else:
            self._place({"data": data})
            done = self._bash(f'mkdir -p -- "$(dirname -- "$1")" && cat {_PLACE}/data >"$1"', path, limit=60)
        if done != 0:
            raise StoppedHere(f"the file {path} could not be written")

    def _replaced(self, path: str, step: Step) -> bytes:
        try:
            found = self._machine.read_file(path, max_bytes=MAX_FILE)
        except ReportRejected as exc:
            raise StoppedHere(f"the change of {path} cannot be made again: {exc.message}") from exc
        old = (step.old or "").encode("utf-8", "surrogateescape")
        if found is None:
            raise StoppedHere(f"the file {path}, which the session changed, is not there")
        if old not in found:
            raise StoppedHere(f"the file {path} does not hold the text that the session changed")
        return found.replace(old, step.text.encode("utf-8", "surrogateescape"), -1 if step.every else 1)

    def _place(self, files: dict[str, bytes]) -> None:
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w") as tar:
            for name, data in files.items():
                entry = tarfile.TarInfo(name)
                entry.size = len(data)
                tar.addfile(entry, io.BytesIO(data))
        buffer.seek(0)
        self._machine.put(buffer, _PLACE)


def _environment(step: Step | None) -> dict[str, str]:
    given = (step.environment or {}) if step is not None else {}
    return {"PATH": TRUSTED_PATH, "HOME": "/root", "LANG": "C.UTF-8", "TERM": "dumb", "PAGER": "cat", **given}
