"""Which copies of a package stand installed on a machine, and whether each came from a file or a registry."""

from __future__ import annotations

import json
import re
from collections.abc import Container, Iterable

from referee.benchmarks.bringup.trusted import look
from referee.core.records import InstalledFacts
from referee.protocols import Machine

_MOST = 40
# Debian's own packages are the machine's. A package of Python leaves a directory that tells its version, and where it
# came from when that was no registry; one of Node its own package.json, and a link or a line where it was a file. A
# global one and those of other tools than npm have no such line, whatever they came from: 6c and 72 are told alone.
_FIND = """
hex() { $B od -An -v -tx1 | $B tr -d ' \\n'; }
node() {
  for name; do
    [ -f "$at/$name/package.json" ] || continue
    local=; [ ! -L "$at/$name" ] || local=6c
    told=$($B grep -sF -A 3 "\\"node_modules/$name\\": {" "$at/.package-lock.json" | $B grep '"resolved": "')
    case "$told" in
      *'"resolved": "file:'*|*'"resolved": "git'*) local=6c;;
      *'"resolved": "http'*) local=${local:-72};;
    esac
    echo "node $(printf %s "$at/$name" | hex) $($B head -c 100000 "$at/$name/package.json" | hex) $local"
  done
}
$B find / \\( -path /proc -o -path /sys -o -path /work/subject -o -path /opt/agent \\) -prune -o \\
  -type d \\( -name '*.dist-info' -o -name '*.egg-info' -o -name node_modules \\) -print 2>/dev/null |
$B awk -v names=" $names " '{ n = $0; sub(/.*\\//, "", n)
  if (n == "node_modules") { if (many < 2000) nodes[++many] = $0; next }
  sub(/-[0-9].*/, "", n); sub(/\\.(egg|dist)-info$/, "", n)
  gsub(/[_.]+/, "-", n); if (index(names, " " tolower(n) " ")) print }
  END { for (i = 1; i <= many; i++) print nodes[i] }' | while IFS= read -r at; do
  case "$at" in
    */node_modules) node "$@"; continue;;
    /usr/lib/python3/*) continue;;
  esac
  [ -f "$at/METADATA" ] || [ -f "$at/PKG-INFO" ] || continue
  local=6c
  [ ! -f "$at/METADATA" ] || [ -s "$at/direct_url.json" ] || local=
  version=$($B cat "$at/METADATA" "$at/PKG-INFO" 2>/dev/null | $B sed -n 's/^Version: *//p' | $B head -n 1)
  echo "python $(printf %s "$at" | hex) $(printf %s "$version" | hex) $local"
done
"""


def installed(
    machine: Machine, names: Iterable[str], pinned: Container[tuple[str, str]] = ()
) -> tuple[InstalledFacts, ...]:
    """The installed packages of Python and Node that are called so.

    Args:
        machine: the attempt's machine.
        names: what the project is called.
        pinned: names and versions of the packages of Node in the pinned tree: where it is not told whether a copy came
            from a file, one of these may have been packed from it.

    Raises:
        MachineFault: the machine could not be asked.
    """
    every = [name for name in dict.fromkeys(names) if re.fullmatch(r"(?:@[\w.-]+/)?[\w.-]+", name)]
    plain = [re.sub(r"[-_.]+", "-", name).lower() for name in every]
    if not every:
        return ()
    script = f"names='{' '.join(plain)}'\n{_FIND}"
    done = look(machine, script, *every, timeout=60)
    found = []
    for line in done.output.decode("ascii", "replace").splitlines():
        match line.split():
            case ["python", place, version, *more]:
                found.append(InstalledFacts(place=_text(place), version=_text(version).strip(), local=bool(more)))
            case ["node", place, package, *more]:
                told = _version(_text(package))
                if told is not None:
                    at = _text(place)
                    name = at.rpartition("/node_modules/")[2]
                    local = more == ["6c"] or (not more and (name, told) in pinned)
                    found.append(InstalledFacts(place=at, version=told, local=local))
    return tuple(sorted(found, key=lambda one: one.place)[:_MOST])


def _version(package: str) -> str | None:
    try:
        document = json.loads(package)
    except (ValueError, RecursionError):
        return None
    version = document.get("version") if isinstance(document, dict) else None
    return version if isinstance(version, str) else None


def _text(value: str) -> str:
    try:
        return bytes.fromhex(value).decode("utf-8", "replace")
    except ValueError:
        return ""
