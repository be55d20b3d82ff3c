"""A Docker machine is what a fresh Debian workstation is: apt, pip, npm and compilers really work inside."""

from __future__ import annotations

import time
import uuid
from pathlib import Path

import docker
import pytest

from referee.adapters.docker import image
from referee.adapters.docker.sandbox import DockerSandbox
from referee.core.records import Limits
from referee.protocols import MachineSpec

pytestmark = [pytest.mark.engine, pytest.mark.registry, pytest.mark.slow]

LIMITS = Limits(memory_bytes=2**31, cpus=2.0, pids=500, disk_bytes=4_000_000_000, nofile=4096)

DOES = {
    "apt package": """
        apt-get -q update && apt-get -q install -y --no-install-recommends jq && echo '[1]' | jq -e '.[0]'
    """,
    "wheel": """
        python3 -m venv v && v/bin/pip install -q segno==1.6.6 && v/bin/segno x --output x.png && file x.png | grep PNG
    """,
    "C extension from source": """
        python3 -m venv v && v/bin/pip install -q --no-binary markupsafe markupsafe==2.1.5 &&
        v/bin/python -c 'import markupsafe._speedups'
    """,
    "native module with node-gyp": """
        npm init -y >/dev/null && npm install --silent bufferutil@4.0.8 --build-from-source &&
        test -f node_modules/bufferutil/build/Release/bufferutil.node && node -e 'require("bufferutil").mask'
    """,
    "service": """
        apt-get -q update && apt-get -q install -y --no-install-recommends redis-server &&
        (redis-cli ping || (redis-server --daemonize yes && sleep 1 && redis-cli ping))
    """,
    "another user": """
        useradd -m worker && su worker -c 'id -un' && sudo -u worker id -un
    """,
}


@pytest.mark.parametrize("what", list(DOES))
def test_a_fresh_workstation_can_have(what: str) -> None:
    roots = Path("/etc/ssl/certs/ca-certificates.crt")
    machine = DockerSandbox().create(
        MachineSpec(
            run=f"workstation-{uuid.uuid4().hex[:12]}",
            workspace="tests",
            deadline=time.time() + 900,
            limits=LIMITS,
            ca_bundle=roots if roots.exists() else None,
        )
    )
    try:
        done = machine.execute(["/bin/sh", "-e", "-c", DOES[what]], cwd="/work", timeout=400)
    finally:
        machine.destroy()
    assert done.exit_status == 0, done.output.decode(errors="replace")[-3000:]


def test_the_display_variant_starts_a_display() -> None:
    client = docker.APIClient(version="auto", timeout=600)
    roots = Path("/etc/ssl/certs/ca-certificates.crt")
    said: list[str] = []
    bundle = roots if roots.exists() else None
    image.build(client, image="referee-env", variant="display", ca_bundle=bundle, say=said.append)
    client.close()
    sandbox = DockerSandbox(variant="display")
    assert sandbox.environment().packages_digest != DockerSandbox().environment().packages_digest
    machine = sandbox.create(
        MachineSpec(
            run=f"display-{uuid.uuid4().hex[:12]}", workspace="tests", deadline=time.time() + 300, limits=LIMITS
        )
    )
    script = """
        Xvfb :99 -screen 0 640x480x24 & sleep 2; export DISPLAY=:99; xdpyinfo | grep dimensions
        ffmpeg -v error -xerror -f lavfi -i testsrc=duration=1:size=64x64 -y /work/v.mp4
        ffmpeg -v error -xerror -nostdin -i /work/v.mp4 -f null -
    """
    try:
        done = machine.execute(["/bin/sh", "-e", "-c", script], timeout=120)
    finally:
        machine.destroy()
    assert done.exit_status == 0, done.output
    assert b"640x480" in done.output
