#!/usr/bin/env bash
# Installs what the bake-off's tests run over loopback, pinned and hashed, each in a place of its own below build/servers:
#   engine   llama.cpp's server, which serves a model made on the spot      (scripts/engine.lock)
#   gateway  litellm's proxy with mock responses                            (scripts/gateway.lock)
#   agents   Codex, Claude Code, Gemini CLI and opencode from npm           (scripts/agents/)
# Usage: scripts/servers.sh [engine|gateway|agents ...]   without names: all. A part that stands is left as it is.
set -euo pipefail
cd "$(dirname "$0")/.."
root=build/servers
python=${PYTHON:-python3}
[ ! -x .venv/bin/python ] || python=.venv/bin/python

# A part stands when its stamp bears the digest of its lock: an installation that was cut off is made anew.
standing() { [ -f "$root/$1/.installed" ] && [ "$(cat "$root/$1/.installed")" = "$2" ]; }
digest() { cat "$@" | sha256sum | cut -d' ' -f1; }

install_python() { # NAME
  "$python" -m venv "$root/$1"
  "$root/$1/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes --only-binary :all: \
    -r "scripts/$1.lock"
}

install_agents() {
  if ! command -v npm >/dev/null; then
    echo "servers: npm is missing, so the agent CLIs cannot be installed" >&2
    return 1
  fi
  mkdir -p "$root/agents"
  cp scripts/agents/package.json scripts/agents/package-lock.json "$root/agents/"
  # No script of a package runs here: the programs are taken from their platform packages as they are.
  (cd "$root/agents" && npm ci --ignore-scripts --no-audit --no-fund --omit-lockfile-registry-resolved=true \
    --loglevel=error >/dev/null)
}

[ $# -gt 0 ] || set -- engine gateway agents
for part in "$@"; do
  case $part in
    engine | gateway) files=("scripts/$part.lock") ;;
    agents) files=(scripts/agents/package.json scripts/agents/package-lock.json) ;;
    *) echo "servers: there is no part $part; choose engine, gateway or agents" >&2 && exit 2 ;;
  esac
  lock=$(digest "${files[@]}")
  if standing "$part" "$lock"; then
    echo "servers: $part stands"
    continue
  fi
  begun=$SECONDS
  echo "servers: installing $part"
  rm -rf "${root:?}/$part"
  mkdir -p "$root"
  if [ "$part" = agents ]; then install_agents; else install_python "$part"; fi
  printf '%s' "$lock" >"$root/$part/.installed"
  echo "servers: $part installed in $((SECONDS - begun)) s"
done
