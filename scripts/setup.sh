#!/usr/bin/env bash
# Makes the virtual environment: setup.sh DIRECTORY. On a Debian machine without python3-venv it installs it, as root.
set -euo pipefail
venv=${1:-.venv}
python=${PYTHON:-python3}

if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
  echo "referee needs Python 3.11 or newer; set PYTHON to one" >&2
  exit 2
fi
if ! "$python" -c 'import venv, ensurepip' 2>/dev/null; then
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "setup: installing python3-venv" >&2
    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq python3-venv >/dev/null
  else
    echo "this Python has no venv module: install python3-venv" >&2
    exit 2
  fi
fi
[ -x "$venv/bin/python" ] || { echo "setup: making $venv" >&2; "$python" -m venv "$venv"; }
echo "setup: installing dependencies (pinned, with hashes)" >&2
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
