#!/usr/bin/env bash
# All tests, in two processes side by side: those of the bake-off need no machine and keep one core busy, the others wait
# for machines most of the time. What the first says is shown when the others are done; either's failure is a failure.
set -uo pipefail
cd "$(dirname "$0")/.."
pytest=(.venv/bin/pytest "$@")
mkdir -p build
log=build/tests-of-the-bake-off.log

"${pytest[@]}" tests/bakeoff -o cache_dir=build/.pytest_cache_bakeoff >"$log" 2>&1 &
bakeoff=$!
trap 'kill "$bakeoff" 2>/dev/null' INT TERM HUP
"${pytest[@]}" --ignore=tests/bakeoff
others=$?
wait "$bakeoff"
bakeoff=$?
echo
echo "--- tests/bakeoff, run beside them ---"
cat "$log"
[ "$others" -eq 0 ] && [ "$bakeoff" -eq 0 ]
