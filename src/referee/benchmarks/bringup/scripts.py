"""The agent's own scripts that a verification runs, read before it runs: neither the project's nor a package's."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from referee.benchmarks.bringup.descent import descends
from referee.benchmarks.bringup.tasks import TASKS, task_text
from referee.benchmarks.bringup.trusted import look
from referee.errors import MachineFault, ReportRejected
from referee.protocols import PROJECT, SUBJECT, TRUSTED_PATH, Machine

#: Longer files are no scripts that an audit reads, bytes.
MOST_BYTES = 65_536
_PACKAGES = {"site-packages", "dist-packages", "node_modules", "gems"}

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
    case $word in /*) at=$word;; *) at=$cwd/$word;; esac
  fi
  at=$($B readlink -f "$at" 2>/dev/null)
  if [ -n "$at" ] && [ -f "$at" ] && ! owned "$at"; then
    echo "at $(printf %s "$word" | hex) $(printf %s "$at" | hex)"
  fi
done
"""


@dataclass(frozen=True)
class Own:
    """A script of the agent's own. ``place``: where it stands, where it could stand without the project; else None."""

    text: str
    place: str | None = None


def read_scripts(
    machine: Machine, named: Iterable[tuple[str, str, bool]], *, search: Iterable[str], pinned: Path
) -> dict[str, Own]:
    """The scripts of the agent's own that a command runs, by the word that names each in it.

    Args:
        machine: the attempt's machine, quiet.
        named: word, working directory, and whether it is looked for along the search path.
        search: directories that the command puts before the trusted search path.
        pinned: the placement's root on the host: a file that stands there alike is the project's own.
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
        done = look(machine, _RESOLVE, ":".join((*search, TRUSTED_PATH)), *wanted)
    except MachineFault:
        return found
    for line in done.output.decode("ascii", "replace").splitlines():
        match line.split():
            case ["at", word, place]:
                text = script_text(machine, _text(place), pinned=pinned)
                if text is not None:
                    alone = not descends(_text(place), text, pinned)
                    found[_text(word)] = Own(text, _text(place) if alone else None)
    return found


def script_text(machine: Machine, place: str, *, pinned: Path) -> str | None:
    """The text of one script of the agent's own; None for what is the project's, a package's, or no text."""
    if _PACKAGES & set(PurePosixPath(place).parts):
        return None
    try:
        data = machine.read_file(place, max_bytes=MOST_BYTES)
    except (ReportRejected, MachineFault):
        return None
    if data is None or b"\0" in data or _is_pinned(place, data, pinned):
        return None
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return None


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
