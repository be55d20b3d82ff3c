"""Which ports and sockets a machine listens on, and which process stands behind each (methodology §5, edition 2).

Read from the kernel's own tables. The reader has no right to look into every process, so for each owner of a
listening socket it becomes that owner.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Self

from referee.benchmarks.bringup.trusted import look
from referee.core.listening import merged, read_listening
from referee.core.records import ListenerFacts
from referee.errors import MachineFault
from referee.protocols import Machine

#: More listening ports than these are not told.
MOST = 200
_SECONDS = 30.0
#: A running command is looked at without a break, for a stand-in may live briefly: so many rounds in one look.
_ROUNDS = 15
_PAUSE = 0.01

_FIND = """
for p in /proc/[0-9]*; do
  for socket in $($B stat -L -c '%i:%F' $p/fd/* 2>/dev/null | $B sed -n 's/:socket$//p' | $B sort -u); do
    case " $* " in *" $socket "*) echo "socket $socket ${p#/proc/}";; esac
  done
done
"""
_TELL = """
hex() { $B od -An -v -tx1 | $B tr -d ' \\n'; }
for pid in $*; do
  echo "exe $pid $($B readlink /proc/$pid/exe 2>/dev/null | hex)"
  echo "cwd $pid $($B readlink /proc/$pid/cwd 2>/dev/null | hex)"
  echo "argv $pid $($B head -c 4000 /proc/$pid/cmdline 2>/dev/null | hex)"
done
"""
# What stops the look comes on standard input, which no other owner's process is given.
# The pid file of start-stop-daemon is a place that nobody can write: it must never find the tool running already.
_SCRIPT = """
as_owner() {
  owner=$1; shift
  if [ "$owner" = 0:0 ]; then $B sh -c "$@"
  elif [ -n "$B" ]; then $B start-stop-daemon -S -q -p /proc/none -c $owner -x $B -- sh -c "$@"
  else start-stop-daemon -S -q -p /proc/none -c $owner -x /bin/sh -- -c "$@"
  fi
}
pause() {
  if [ -n "$B" ]; then read -t 0.05 -r told; else /bin/bash -c 'read -t 0.05 -r told'; fi
}
FIND="B=$B$1" TELL="B=$B$2" rounds=$3 before=none tables=
for table in tcp tcp6 udp udp6 unix; do
  if [ -r /proc/net/$table ]; then tables="$tables /proc/net/$table"; fi
done
# Listening, a bound datagram socket that speaks to nobody alone, and a Unix socket that accepts.
rows() {
  $B awk '{ v = FILENAME ~ /6$/ ? 6 : 4; u = FILENAME ~ /udp/ }
    FILENAME ~ /unix$/ { if ($4 == "00010000" && NF > 7) { p = $8; for (i = 9; i <= NF; i++) p = p " " $i
      print "unix", $7, p } next }
    $4 == (u ? "07" : "0A") { print "row", (u ? "u" : "") v, $2, $8, $10 }' $tables 2>/dev/null
}
tell_all() {
  echo "$rows"
  sockets=$(echo "$rows" | $B awk '{print $1 == "unix" ? $2 : $5}' | $B sort -u)
  uids=" $(echo "$rows" | $B awk '{print $1 == "unix" ? "any" : $4}' | $B sort -u | $B tr '\\n' ' ')"
  for owner in $($B stat -c '%u:%g' /proc/[0-9]* 2>/dev/null | $B sort -u); do
    case "$uids" in *" ${owner%:*} "*|*" any "*) ;; *) continue;; esac
    found=$(as_owner $owner "$FIND" sh $sockets <&-)
    [ -n "$found" ] || continue
    echo "$found"
    as_owner $owner "$TELL" sh $(echo "$found" | $B awk '{print $3}' | $B sort -u) <&-
  done
}
while :; do
  rows=$(rows)
  if [ "$rows" != "$before" ] && [ -n "$rows" ]; then tell_all; fi
  before=$rows
  rounds=$((rounds - 1))
  [ $rounds -gt 0 ] || exit 0
  if pause; then rounds=1; fi
done
"""


def listening(machine: Machine, *, rounds: int = 1, stop: threading.Event | None = None) -> tuple[ListenerFacts, ...]:
    """The machine's listening TCP and bound UDP ports and listening Unix sockets, with the process behind each.

    The tables are read ``rounds`` times, twenty times a second, or once more after ``stop`` is set; whatever listened
    in one of them is told. More than one round needs a ``stop``. Sockets that no process of the machine holds are left
    out: an overlay machine shares its host's network.

    Raises:
        MachineFault: the machine could not be asked.
    """
    done = look(machine, _SCRIPT, _FIND, _TELL, str(rounds), timeout=_SECONDS, stop=stop)
    return read_listening(done.output.decode("ascii", "replace"))[:MOST]


class Watch:
    """Looks again and again at the ports of a machine while a command runs in it.

    ``found`` is None when not one look succeeded.

    Args:
        machine: the machine.
        seen: called with what each look found, while it is there.
    """

    def __init__(self, machine: Machine, seen: Callable[[tuple[ListenerFacts, ...]], None]) -> None:
        self._machine = machine
        self._seen = seen
        self._stop = threading.Event()
        self._looks: list[tuple[ListenerFacts, ...]] = []
        self._thread = threading.Thread(target=self._watch, name="referee-listeners", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(_SECONDS * 2)

    @property
    def found(self) -> tuple[ListenerFacts, ...] | None:
        """Everything that was seen to listen, each once."""
        return merged(self._looks)[:MOST] if self._looks else None

    def _keep(self, now: tuple[ListenerFacts, ...]) -> None:
        self._looks = [merged([*self._looks, now])[: 10 * MOST]]

    def _watch(self) -> None:
        while True:
            try:
                self._keep(now := listening(self._machine, rounds=_ROUNDS, stop=self._stop))
                self._seen(now)
            except MachineFault:
                pass  # the command may have taken all processes of the machine; the next look may succeed
            except Exception:  # noqa: BLE001 — a look beside the re-run must never end the re-run
                return
            if self._stop.wait(_PAUSE):
                return
