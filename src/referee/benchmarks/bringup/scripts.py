"""The agent's own scripts that a verification runs, read before it runs: neither the project's nor a package's."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from referee.benchmarks.bringup.descent import descends
from referee.benchmarks.bringup.tasks import TASKS, task_text
from referee.benchmarks.bringup.trusted import Answer, Question, ask, look
from referee.errors import MachineFault, ReportRejected
from referee.protocols import PROJECT, SUBJECT, TRUSTED_PATH, Machine

#: Of longer files the beginning is read, bytes.
MOST_BYTES = 65_536
#: Compiled programs that are larger are not looked into, bytes.
MOST_PROGRAM = 32_000_000
#: Where installers of Python and Ruby put what belongs to a package.
_PLACES = re.compile(
    r"/lib/python3(?:\.\d+)?/(?:site|dist)-packages/|/lib/pypy3[\d.]*/site-packages/"
    r"|/gems/[\w.-]+-\d[\w.]*/(?:bin|exe|lib|libexec)/"
)
#: How files that are no scripts begin: programs of the machine, archives, bytecode.
_COMPILED = (b"\x7fELF", b"PK\x03\x04", b"\xca\xfe\xba\xbe", b"\0asm", b"!<arch>")
#: How Python's own bytecode goes on behind its version.
_BYTECODE = b"\r\n"
_HEAD = '$B head -c "$2" "$1"'

# For each file: where it stands when links are followed, unless a Debian package put it there as it is.
_RESOLVE = """
search=$1; shift
hex() { $B od -An -v -tx1 | $B tr -d ' \\n'; }
owned() {
  for name in "$1" "${1#/usr}"; do
    for list in $($B grep -lxF -- "$name" /var/lib/dpkg/info/*.list 2>/dev/null); do
      sums=${list%.list}.md5sums
      sum=$($B md5sum "$1" 2>/dev/null | $B cut -d ' ' -f 1)
      $B grep -qxF -e "$sum  ${1#/}" -e "$sum  ${name#/}" "$sums" 2>/dev/null && return 0
    done
  done
  return 1
}
while [ $# -ge 3 ]; do
  cwd=$1 word=$2 program=$3; shift 3
  at=
  if [ "$program" = 1 ]; then
    IFS=:
    for directory in $search; do
      if [ -z "$at" ] && [ -f "$directory/$word" ] && [ -x "$directory/$word" ]; then at=$directory/$word; fi
    done
    unset IFS
  else
    case $word in /*) at=$word;; "~/"*) at=/root/${word#"~/"};; *) at=$cwd/$word;; esac
  fi
  at=$($B readlink -f "$at" 2>/dev/null)
  if [ -n "$at" ] && [ -f "$at" ] && ! owned "$at"; then
    echo "at $(printf %s "$word" | hex) $(printf %s "$at" | hex)"
  fi
done
"""


@dataclass(frozen=True)
class Own:
    """A script of the agent's own. ``place``: where it stands, where it could stand without the project; else None.

    A compiled program has no text, but ``program``, its bytes, and always a place.
    """

    text: str
    place: str | None = None
    program: bytes | None = None


def read_scripts(
    machine: Machine,
    named: Iterable[tuple[str, str, bool]],
    *,
    search: Iterable[str],
    pinned: Path,
    asked: Callable[[Question], Answer] | None = None,
) -> dict[str, Own]:
    """The scripts of the agent's own that a command runs, by the word that names each in it.

    Args:
        machine: the attempt's machine, quiet.
        named: word, working directory, and whether it is looked for along the search path.
        search: directories that the command puts before the trusted search path.
        pinned: the placement's root on the host: a file that stands there alike is the project's own.
        asked: asks the machine where scripts stand; None asks it that alone.
    """
    every = list(named)
    tasks = {word: cwd for word, cwd, _ in every if word.startswith(TASKS)}
    found = {
        word: Own(text) for word, cwd in tasks.items() if (text := task_text(machine, word, cwd, pinned)) is not None
    }
    wanted = [
        part for word, cwd, program in every for part in (cwd, word, "1" if program else "0") if word not in tasks
    ]
    if not wanted:
        return found
    try:
        where = Question(_RESOLVE, (":".join((*search, TRUSTED_PATH)), *wanted))
        done = ask(machine, where) if asked is None else asked(where)
    except MachineFault:
        return found
    for line in done.output.decode("ascii", "replace").splitlines():
        match line.split():
            case ["at", word, place]:
                text = script_text(machine, _text(place), pinned=pinned)
                if text is not None:
                    alone = not descends(_text(place), text, pinned)
                    found[_text(word)] = Own(text, _text(place) if alone else None)
                elif (data := program(machine, _text(place))) is not None:
                    found[_text(word)] = Own("", _text(place), data)
    return found


def script_text(machine: Machine, place: str, *, pinned: Path) -> str | None:
    """The text of one script of the agent's own; None for what is the project's, a package's, or compiled.

    Of a longer file only the beginning is read; bytes that are no text stand for themselves nowhere.
    """
    if _of_a_package(machine, place):
        return None
    data = _beginning(machine, place)
    if data is None or _is_compiled(data) or _is_pinned(place, data, pinned):
        return None
    return data.replace(b"\0", b"").decode("utf-8", "replace")


def program(machine: Machine, place: str) -> bytes | None:
    """The bytes of a compiled program that no package brought; None for anything else, and for a larger one."""
    if _of_a_package(machine, place):
        return None
    try:
        data = machine.read_file(place, max_bytes=MOST_PROGRAM)
    except (MachineFault, ReportRejected):
        return None
    return data if data is not None and _is_compiled(data) else None


def _is_compiled(data: bytes) -> bool:
    return data.startswith(_COMPILED) or data[2:4] == _BYTECODE


def _beginning(machine: Machine, place: str) -> bytes | None:
    try:
        return machine.read_file(place, max_bytes=MOST_BYTES)
    except MachineFault:
        return None
    except ReportRejected:
        pass
    try:
        done = look(machine, _HEAD, place, str(MOST_BYTES))
    except MachineFault:
        return None
    return done.output[: done.output.rfind(b"\n") + 1] or None


def _of_a_package(machine: Machine, place: str) -> bool:
    """Whether an installed package brought a file, as its place tells: no directory of the agent's naming alone."""
    path = PurePosixPath(place)
    if _PLACES.search(place):
        return True
    if "node_modules" not in path.parts[:-2]:
        return False
    # The last one that a package can stand in: what is called so at the end may be a file.
    at = len(path.parts) - 3 - path.parts[:-2][::-1].index("node_modules")
    name = path.parts[at + 1 : at + (3 if path.parts[at + 1].startswith("@") else 2)]
    try:
        return (
            machine.read_file("/".join(("", *path.parts[1 : at + 1], *name, "package.json")), max_bytes=1) is not None
        )
    except ReportRejected:
        return True  # it is there, and longer
    except MachineFault:
        return False


def _is_pinned(place: str, data: bytes, pinned: Path) -> bool:
    for inside, folder in ((PROJECT, "project"), (SUBJECT, "subject")):
        if place.startswith(f"{inside}/"):
            own = pinned / folder / place.removeprefix(f"{inside}/")
            try:
                return own.resolve().is_relative_to(pinned.resolve()) and own.read_bytes() == data
            except OSError:
                return False
    return False


def _text(value: str) -> str:
    try:
        return bytes.fromhex(value).decode("utf-8", "replace")
    except ValueError:
        return ""
