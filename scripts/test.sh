#!/usr/bin/env bash
# The tests, in processes side by side.
#   test.sh       all: those of the bake-off need no machine and keep one core busy, the others wait for machines most of
#                 the time. Every workspace has a label of its own, so none sees another's machines; but what dead or
#                 late owners left is reaped by whoever starts first, so the tests marked `alone` run before the others.
#   test.sh fast  those that need no engine, registry or browser: their files are dealt out to as many processes as there
#                 are cores and one more, which works while others wait.
# The last process is seen at work; what the others say is shown when it is done. A failure of any is a failure. An
# interrupt, a polite kill and a closed terminal end them all: by an interrupt first, so that tests close what they opened.
set -uo pipefail
cd "$(dirname "$0")/.."
mkdir -p build
unset PYTHONDONTWRITEBYTECODE # without bytecode every start compiles the referee and the tests anew

names=() shares=() options=() running=() failed=0
share() { # NAME PATHS_OR_OPTIONS...
  names+=("$1")
  shares+=("${*:2}")
}

begin() { # NAME ARGUMENTS... : pytest in the background, as the leader of a group of its own
  set -m # a group can be ended with all that tests have started, and a job of one does not ignore interrupts
  .venv/bin/pytest "${@:2}" -o cache_dir="build/.pytest_cache_$1" </dev/null &
  set +m
  running+=($!)
}

ended() { # NUMBER : waits for one of them
  wait "${running[$1]}" || failed=1
  unset "running[$1]" # another may get its number now
}

tell() { # SIGNAL : to every group that is left; false when there is none
  local group left=1
  for group in "${running[@]}"; do kill "-$1" -- "-$group" 2>/dev/null && left=0; done
  return "$left"
}

end() { # STATUS
  trap 'tell KILL; exit '"$1" INT TERM HUP # asked again: no more patience
  tell INT
  for ((tenth = 0; tenth < 100; tenth++)); do
    tell 0 || exit "$1"
    sleep 0.1 &
    wait $!
  done
  tell KILL
  exit "$1"
}
trap 'end 130' INT
trap 'end 143' TERM
trap 'end 129' HUP

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
  begin alone "${files[@]}" -m alone
  ended 0
  running=()
  options=(-m "not alone")
  apart=(tests/bakeoff tests/agents tests/cheats tests/corroboration tests/hostile tests/keys tests/replay)
  share bakeoff "${apart[0]}"
  share agents "${apart[@]:1}"
  share others "${apart[@]/#/--ignore=}"
fi

last=$((${#shares[@]} - 1))
for ((number = 0; number < last; number++)); do
  # shellcheck disable=SC2086 — a share is a list of words, none with a blank
  begin "${names[number]}" ${shares[number]} "${options[@]}" >"build/tests-${names[number]}.log" 2>&1
done
# shellcheck disable=SC2086
begin "${names[last]}" ${shares[last]} "${options[@]}"
ended "$last"
for ((number = 0; number < last; number++)); do
  ended "$number"
  printf '\n--- run beside them: %s ---\n' "${names[number]}"
  cat "build/tests-${names[number]}.log"
done
[ "$failed" -eq 0 ]
