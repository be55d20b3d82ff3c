#!/usr/bin/env bash
# All tests, in three processes side by side: those of the bake-off need no machine and keep one core busy, the others wait
# for machines most of the time. Every workspace has a label of its own, so none sees another's machines. What the first two
# say is shown when the last is done; a failure of any is a failure.
set -uo pipefail
cd "$(dirname "$0")/.."
mkdir -p build
apart=(tests/bakeoff tests/agents tests/cheats tests/corroboration tests/hostile tests/keys tests/replay)

beside() { # NAME DIRECTORIES...
  .venv/bin/pytest "${@:2}" -o cache_dir="build/.pytest_cache_$1" >"build/tests-$1.log" 2>&1
}

beside bakeoff "${apart[0]}" &
bakeoff=$!
beside agents "${apart[@]:1}" &
agents=$!
trap 'kill "$bakeoff" "$agents" 2>/dev/null' INT TERM HUP
.venv/bin/pytest "${apart[@]/#/--ignore=}"
others=$?
wait "$bakeoff"
bakeoff=$?
wait "$agents"
agents=$?
for name in bakeoff agents; do
  printf '\n--- run beside them: %s ---\n' "$name"
  cat "build/tests-$name.log"
done
[ "$others" -eq 0 ] && [ "$bakeoff" -eq 0 ] && [ "$agents" -eq 0 ]
