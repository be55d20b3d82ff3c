#!/bin/sh
# Make sure that a Docker Engine answers; may be called again and again.
#
#   scripts/engine.sh           install and start one where that is possible
#   scripts/engine.sh --check   only look
#
# Exit status: 0 an engine answers; 3 none does and none can be had here, so that machines are made by the overlay
# sandbox (no security boundary, never publishable); 1 an engine is installed but does not start.
set -eu

log=${REFEREE_ENGINE_LOG:-/var/log/referee-dockerd.log}
wait_seconds=60

say() {
  printf 'engine: %s\n' "$*" >&2
}

answers() {
  # The engine's own word, asked through its socket or DOCKER_HOST; needs no client beside curl or docker.
  if command -v docker >/dev/null 2>&1; then
    docker version --format '{{.Server.Version}}' >/dev/null 2>&1
  elif [ -z "${DOCKER_HOST:-}" ] && [ -S /var/run/docker.sock ] && command -v curl >/dev/null 2>&1; then
    [ "$(curl -s --max-time 5 --unix-socket /var/run/docker.sock http://engine/_ping 2>/dev/null)" = OK ]
  else
    return 1
  fi
}

fall_back() {
  say "$1: machines will be made by the overlay sandbox, which is no security boundary"
  exit 3
}

install() {
  # One unreachable source of a third party fails the whole refresh; what counts is whether the install succeeds.
  DEBIAN_FRONTEND=noninteractive apt-get update -qq >"$log.apt" 2>&1 || true
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >>"$log.apt" 2>&1
}

if answers; then
  # The environment image is made from Debian's packages where no registry has its base.
  if [ "${1:-}" != --check ] && ! command -v mmdebstrap >/dev/null 2>&1 &&
    [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null 2>&1; then
    say "installing Debian's mmdebstrap"
    install mmdebstrap || say "mmdebstrap cannot be installed ($log.apt says why)"
  fi
  say "a Docker Engine answers"
  exit 0
fi
[ "${1:-}" = --check ] && fall_back "no Docker Engine answers"
[ -z "${DOCKER_HOST:-}" ] || fall_back "no Docker Engine answers at DOCKER_HOST"
[ "$(id -u)" -eq 0 ] || fall_back "no Docker Engine answers, and only root can install one"

if ! command -v dockerd >/dev/null 2>&1 || ! command -v mmdebstrap >/dev/null 2>&1; then
  command -v apt-get >/dev/null 2>&1 || fall_back "no Docker Engine answers, and there is no apt to install one"
  say "no Docker Engine answers: installing Debian's docker.io and mmdebstrap"
  install docker.io iptables mmdebstrap || fall_back "docker.io cannot be installed ($log.apt says why)"
fi

if [ -d /run/systemd/system ] && systemctl start docker >/dev/null 2>&1; then
  say "started the service docker"
elif answers; then
  : # the package's own script has started it
else
  say "starting dockerd in the background, its log is $log"
  # A stale process id of an engine that died with its machine keeps a new one from starting.
  if [ -f /var/run/docker.pid ] && ! kill -0 "$(cat /var/run/docker.pid)" 2>/dev/null; then
    rm -f /var/run/docker.pid
  fi
  ulimit -n "$(ulimit -Hn)"
  setsid nohup dockerd >"$log" 2>&1 </dev/null &
fi

waited=0
until answers; do
  if [ "$waited" -ge "$wait_seconds" ]; then
    say "dockerd does not answer after $wait_seconds seconds; the end of $log:"
    tail -n 5 "$log" >&2 2>/dev/null || true
    exit 1
  fi
  sleep 1
  waited=$((waited + 1))
done
say "a Docker Engine answers"
