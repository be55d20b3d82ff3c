#!/usr/bin/env bash
# The tests, in processes side by side.
#   test.sh       all: those of the bake-off need no machine and keep one core busy, the others wait for machines most of
#                 the time. Every workspace has a label of its own, so none sees another's machines; but what dead or
#                 late owners left is reaped by whoever starts first, so the tests marked `alone` run before the others.
#   test.sh fast  those that need no engine, registry or browser: their files are dealt out to as many processes as there
#                 are cores and one more, which works while others wait.
# What all but the last process say is shown when that is done; a failure of any is a failure.
set -uo pipefail
cd "$(dirname "$0")/.."
mkdir -p build
unset PYTHONDONTWRITEBYTECODE # without bytecode every start compiles the referee and the tests anew

names=() shares=() options=() failed=0
share() { # NAME PATHS_OR_OPTIONS...
  names+=("$1")
  shares+=("${*:2}")
}

if [ "${1:-}" = fast ]; then
  options=(-m "not slow and not engine and not registry and not browser")
  mapfile -t files < <(find tests -name 'test_*.py' | sort)
  processes=$(($(nproc) + 1))
  for ((process = 0; process < processes; process++)); do
    dealt=()
    for ((at = process; at < ${#files[@]}; at += processes)); do dealt+=("${files[at]}"); done
    share "fast-$process" "${dealt[@]}"
  done
else
  mapfile -t files < <(grep -rl "pytest\.mark\.alone" tests --include='test_*.py' | sort)
  .venv/bin/pytest "${files[@]}" -m alone -o cache_dir=build/.pytest_cache_alone || failed=1
  options=(-m "not alone")
  apart=(tests/bakeoff tests/agents tests/cheats tests/corroboration tests/hostile tests/keys tests/replay)
  share bakeoff "${apart[0]}"
  share agents "${apart[@]:1}"
  share others "${apart[@]/#/--ignore=}"
fi

tests() { # NUMBER
  # shellcheck disable=SC2086 — a share is a list of words, none with a blank
  .venv/bin/pytest ${shares[$1]} "${options[@]}" -o cache_dir="build/.pytest_cache_${names[$1]}"
}

last=$((${#shares[@]} - 1))
beside=()
for ((number = 0; number < last; number++)); do
  tests "$number" >"build/tests-${names[number]}.log" 2>&1 &
  beside+=($!)
done
trap 'kill "${beside[@]}" 2>/dev/null' INT TERM HUP
tests "$last" || failed=1
for number in "${!beside[@]}"; do
  wait "${beside[number]}" || failed=1
  printf '\n--- run beside them: %s ---\n' "${names[number]}"
  cat "build/tests-${names[number]}.log"
done
[ "$failed" -eq 0 ]
