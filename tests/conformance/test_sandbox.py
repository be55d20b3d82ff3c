"""What every sandbox promises while it runs: sessions, commands, files, inputs, environment."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import tarfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from referee.errors import ReportRejected
from referee.protocols import TRUSTED_PATH, Machine, Sandbox, Session

Make = Callable[..., Machine]
Drain = Callable[..., bytes]


def start(machine: Machine, script: str, *, environment: dict[str, str] | None = None, cwd: str = "/work") -> Session:
    """Start a shell script on a terminal of 80 by 24."""
    argv = ["/bin/sh", "-c", script]
    return machine.session(argv, environment=environment or {}, cwd=cwd, columns=80, rows=24)


def run(machine: Machine, script: str, *, timeout: float = 60) -> tuple[int | None, str]:
    """Run a shell script without a terminal."""
    done = machine.execute(["/bin/sh", "-c", script], timeout=timeout)
    return done.exit_status, done.output.decode(errors="replace")


def tar_of(files: dict[str, bytes]) -> io.BytesIO:
    """An uncompressed tar of regular files that belong to someone else than root."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode, entry.uid, entry.gid = len(data), 0o755, 1234, 1234
            archive.addfile(entry, io.BytesIO(data))
    stream.seek(0)
    return stream


# --- the environment


def test_environment_names_what_a_machine_will_be(sandbox: Sandbox) -> None:
    facts = sandbox.environment()
    assert facts.security_boundary == (facts.sandbox != "overlay")
    assert ":" in facts.image_digest
    assert facts.engine
    assert facts.image
    assert facts.architecture
    assert sandbox.environment() == facts


def test_package_manifest_is_json_that_the_environment_vouches_for(sandbox: Sandbox) -> None:
    manifest = sandbox.packages_manifest()
    assert (manifest is None) == (sandbox.environment().packages_digest is None)
    assert manifest is None or json.loads(manifest)


# --- sessions


@pytest.mark.parametrize("status", [0, 1, 42, 255])
def test_session_keeps_the_exit_status(shared: Machine, drain: Drain, status: int) -> None:
    session = start(shared, f"echo out; exit {status}")
    assert drain(session).replace(b"\r\n", b"\n") == b"out\n"
    assert session.exit_status(10) == status
    assert session.exit_status(0) == status
    session.close()


def test_session_of_a_killed_command_says_so_as_a_shell_would(shared: Machine, drain: Drain) -> None:
    session = start(shared, "kill -9 $$")
    drain(session)
    assert session.exit_status(10) == 137
    session.close()


def test_session_of_a_missing_command_ends_with_a_status(shared: Machine, drain: Drain) -> None:
    session = shared.session(["/no/such/command"], environment={}, cwd="/", columns=80, rows=24)
    drain(session)
    assert session.exit_status(10) in {126, 127}
    session.close()


def test_exit_status_is_none_while_the_command_runs(shared: Machine, drain: Drain) -> None:
    session = start(shared, "read line; exit 3")
    assert session.exit_status(0.1) is None
    session.write(b"\n")
    drain(session)
    assert session.exit_status(10) == 3
    session.close()


def test_silence_is_none_and_the_end_is_empty(shared: Machine) -> None:
    session = start(shared, "read line")
    assert session.read(100, 0.1) is None
    session.write(b"\n")
    deadline = time.monotonic() + 20
    last: bytes | None = None
    while last != b"" and time.monotonic() < deadline:
        last = session.read(100, 0.2)
    assert last == b""
    assert session.read(100, 0.1) == b""
    session.close()


def test_raw_bytes_arrive_unchanged(shared: Machine, drain: Drain) -> None:
    everything = bytes(range(256)) * 64
    shared.put(tar_of({"bytes.bin": everything}), "/work")
    session = start(shared, "stty raw -echo; cat /work/bytes.bin")
    assert drain(session) == everything
    session.close()


def test_invalid_utf8_is_not_touched(shared: Machine, drain: Drain) -> None:
    session = start(shared, r"printf '\377\376\303(\200'")
    assert drain(session) == b"\xff\xfe\xc3(\x80"
    session.close()


def test_read_never_gives_more_than_asked(shared: Machine) -> None:
    session = start(shared, "printf 0123456789")
    seen = b""
    deadline = time.monotonic() + 20
    while (data := session.read(3, 0.2)) != b"" and time.monotonic() < deadline:
        assert data is None or len(data) <= 3
        seen += data or b""
    assert seen == b"0123456789"
    session.close()


def test_session_is_a_terminal_of_the_asked_size(shared: Machine, drain: Drain) -> None:
    session = shared.session(
        ["/bin/sh", "-c", 'test -t 0 && test -t 1 && test -t 2 && stty size && tty && test -n "$TERM"'],
        environment={},
        cwd="/",
        columns=101,
        rows=33,
    )
    out = drain(session).split()
    assert out[:2] == [b"33", b"101"]
    assert out[2].startswith(b"/dev/")
    assert session.exit_status(10) == 0
    session.close()


def test_resize_reaches_the_process(shared: Machine, drain: Drain) -> None:
    session = start(shared, "trap 'stty size; exit 7' WINCH; echo ready; while :; do sleep 0.05; done")
    drain(session, until=b"ready")
    session.resize(132, 50)
    assert drain(session).split()[-2:] == [b"50", b"132"]
    assert session.exit_status(10) == 7
    session.close()


def test_what_is_typed_reaches_the_process(shared: Machine, drain: Drain) -> None:
    session = start(shared, "stty -echo; echo ready; read line; echo got:$line")
    drain(session, until=b"ready")
    session.write("grüße\n".encode())
    assert "got:grüße".encode() in drain(session)
    session.close()


def test_interrupt_key_reaches_the_process(shared: Machine, drain: Drain) -> None:
    session = start(shared, "trap 'exit 9' INT; echo ready; while :; do sleep 0.05; done")
    drain(session, until=b"ready")
    session.write(b"\x03")
    drain(session)
    assert session.exit_status(10) == 9
    session.close()


def test_environment_and_directory_are_the_asked_ones(shared: Machine, drain: Drain) -> None:
    session = start(shared, 'echo "$GREETING|$(pwd)|$HOME|$(id -u)"', environment={"GREETING": "a b"}, cwd="/usr")
    assert drain(session).strip() == b"a b|/usr|/root|0"
    session.close()


# --- commands without a terminal


@pytest.mark.parametrize("status", [0, 3, 255])
def test_execute_keeps_the_exit_status(shared: Machine, status: int) -> None:
    done = shared.execute(["/bin/sh", "-c", f"echo out; echo err >&2; exit {status}"], timeout=30)
    assert done.exit_status == status
    assert sorted(done.output.split()) == [b"err", b"out"]
    assert (done.timed_out, done.truncated) == (False, False)


def test_execute_of_a_missing_command_has_a_status(shared: Machine) -> None:
    assert shared.execute(["/no/such/command"], timeout=30).exit_status in {126, 127}


def test_execute_has_no_terminal_and_nothing_to_read(shared: Machine) -> None:
    assert run(shared, "test -t 0 || test -t 1 || cat")[0] == 0


def test_execute_takes_environment_and_directory(shared: Machine) -> None:
    done = shared.execute(["/bin/sh", "-c", "echo $A; pwd"], timeout=30, environment={"A": "1"}, cwd="/usr")
    assert done.output == b"1\n/usr\n"


def test_execute_times_out_and_kills_the_group(shared: Machine) -> None:
    done = shared.execute(["/bin/sh", "-c", "echo begun; sleep 987 & sleep 987"], timeout=1.0)
    assert (done.exit_status, done.timed_out) == (None, True)
    assert b"begun" in done.output
    deadline = time.monotonic() + 10
    alive = "x"
    while alive and time.monotonic() < deadline:
        alive = run(shared, "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' ' | grep -o 'sleep 98[7]'")[1]
    assert not alive


def test_a_command_that_is_to_stop_gets_a_line_and_ends_by_itself(shared: Machine) -> None:
    stop = threading.Event()
    threading.Timer(0.5, stop.set).start()
    done = shared.execute(["/bin/bash", "-c", "read -r -t 60 line; echo $?"], timeout=90, stop=stop)
    assert (done.exit_status, done.output, done.timed_out) == (0, b"0\n", False)
    deaf = shared.execute(["/bin/bash", "-c", "sleep 1; echo ended"], timeout=90, stop=stop)
    assert (deaf.exit_status, deaf.output) == (0, b"ended\n")
    gone = shared.execute(["/bin/bash", "-c", "echo gone"], timeout=90, stop=threading.Event())
    assert (gone.exit_status, gone.output) == (0, b"gone\n")
    late = shared.execute(["/bin/bash", "-c", "sleep 60"], timeout=1, stop=threading.Event())
    assert (late.exit_status, late.timed_out) == (None, True)


def test_execute_truncates_and_says_so(shared: Machine) -> None:
    done = shared.execute(["/bin/sh", "-c", "head -c 3000000 /dev/zero"], timeout=60, max_output=1000)
    assert (done.exit_status, len(done.output), done.truncated) == (0, 1000, True)


def test_execute_does_not_wait_for_what_a_command_left_behind(shared: Machine) -> None:
    done = shared.execute(["/bin/sh", "-c", "sleep 400 & echo left"], timeout=60)
    assert (done.exit_status, done.timed_out, done.output) == (0, False, b"left\n")


# --- files


def test_put_unpacks_and_root_owns(shared: Machine) -> None:
    assert run(shared, "mkdir -p /work/place")[0] == 0
    shared.put(tar_of({"a.txt": b"alpha", "deep/er/b.sh": b"#!/bin/sh\necho beta\n"}), "/work/place")
    assert run(shared, "cat /work/place/a.txt; /work/place/deep/er/b.sh")[1] == "alphabeta\n"
    assert run(shared, "stat -c %u:%g:%a /work/place/a.txt")[1] == "0:0:755\n"


def test_read_file_gives_the_bytes(shared: Machine) -> None:
    data = bytes(range(256)) * 10
    shared.put(tar_of({"whole.bin": data, "empty": b""}), "/work")
    assert shared.read_file("/work/whole.bin", max_bytes=len(data)) == data
    assert shared.read_file("/work/empty", max_bytes=1) == b""


def test_read_file_of_nothing_is_none(shared: Machine) -> None:
    assert shared.read_file("/work/nothing", max_bytes=10) is None
    assert shared.read_file("/work/no/such/dir/file", max_bytes=10) is None


@pytest.mark.parametrize(
    "make_it",
    [
        "ln -s /etc/passwd /work/odd",
        "ln -s /no/where /work/odd",
        "ln -s odd /work/odd",
        "mkdir /work/odd",
        "mkfifo /work/odd",
        "ln -s /dev/zero /work/odd",
    ],
    ids=["symlink", "dangling", "loop", "directory", "fifo", "symlink to device"],
)
def test_read_file_rejects_what_is_no_regular_file(shared: Machine, make_it: str) -> None:
    status, output = run(shared, f"rm -rf /work/odd; {make_it}")
    assert status == 0, output
    with pytest.raises(ReportRejected):
        shared.read_file("/work/odd", max_bytes=1_000_000)


def test_read_file_below_a_file_is_none(shared: Machine) -> None:
    assert run(shared, "rm -rf /work/odd; touch /work/odd")[0] == 0
    assert shared.read_file("/work/odd/report.json", max_bytes=1000) is None


@pytest.mark.parametrize(
    "leads",
    [
        "ln -s /work/odd /work/odd",
        "for i in $(seq 60); do ln -sfn /work/l$((i + 1)) /work/l$i; done; ln -s /work/l1 /work/odd",
        "python3 -c \"import os; os.symlink('/' + 'a' * 300, '/work/odd')\"",
        "python3 -c \"import os; os.symlink('/' + 'a/' * 2000, '/work/odd')\"",
        "ln -s /proc/self/fd /work/odd",
        "mkfifo /work/odd",
    ],
    ids=["circle", "long chain", "long name", "long path", "its reader", "pipe"],
)
def test_a_path_that_leads_nowhere_is_no_fault_of_the_machine(shared: Machine, leads: str) -> None:
    status, output = run(shared, f"rm -rf /work/odd; {leads}")
    assert status == 0, output
    with contextlib.suppress(ReportRejected):  # the agent's doing too, and as good an answer
        assert shared.read_file("/work/odd/report.json", max_bytes=1000) is None


def test_read_file_rejects_a_device(shared: Machine) -> None:
    with pytest.raises(ReportRejected):
        shared.read_file("/dev/zero", max_bytes=1000)


def test_read_file_rejects_a_sparse_giant_unread(shared: Machine) -> None:
    assert run(shared, "truncate -s 200M /work/giant")[0] == 0
    with pytest.raises(ReportRejected):
        shared.read_file("/work/giant", max_bytes=1_000_000)


# --- inputs, isolation, environment


def test_inputs_appear_and_cannot_be_written(make: Make, tmp_path: Path) -> None:
    tree, single = tmp_path / "tree", tmp_path / "single.txt"
    tree.mkdir()
    (tree / "inner.txt").write_text("inner")
    single.write_text("single")
    machine = make(inputs={tree: "/opt/agent", single: "/opt/other/single.txt"})
    assert run(machine, "cat /opt/agent/inner.txt /opt/other/single.txt")[1] == "innersingle"
    attack = "echo x > /opt/agent/inner.txt; echo x > /opt/agent/new; rm -f /opt/agent/inner.txt; "
    attack += "mount -o remount,rw /opt/agent; echo x > /opt/agent/new; echo x > /opt/other/single.txt; true"
    run(machine, f"({attack}) 2>/dev/null")
    machine.quiet()
    assert run(machine, "cat /opt/agent/inner.txt")[1] == "inner"
    assert sorted(path.name for path in tree.iterdir()) == ["inner.txt"]
    assert ((tree / "inner.txt").read_text(), single.read_text()) == ("inner", "single")


def test_work_is_seen_nowhere_else(make: Make) -> None:
    mark = f"referee-mark-{time.time_ns()}"
    places = [f"{place}/{mark}" for place in ("/work", "/root", "/tmp", "/var/tmp", "/etc", "/usr/local/bin", "/opt")]
    writable = [place for place in places if run(first := make(), f"echo x > {place}")[0] == 0 and first]
    assert f"/work/{mark}" in writable
    assert f"/tmp/{mark}" in writable
    second = make()
    assert run(second, f"ls -d {' '.join(places)} 2>/dev/null")[1] == ""
    assert not [place for place in places if os.path.exists(place)]  # noqa: PTH110 — a home may be closed to us


def test_homes_and_engine_of_the_host_are_not_there(make: Make) -> None:
    machine = make()
    assert run(machine, "ls -A /root /home /work /tmp 2>&1 | grep -v -e ':$' -e '^$'")[1].strip().split() in (
        [],
        [".bashrc", ".profile"],
    )
    assert run(machine, "ls /run/docker.sock /var/run/docker.sock 2>/dev/null")[1] == ""


def test_host_processes_are_not_seen(shared: Machine) -> None:
    seen = run(shared, "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' '")[1]
    assert "pytest" not in seen


def test_environment_is_clean_and_the_path_trusted(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOST_SECRET", "must not be seen")
    machine = make(environment={"PIP_DEFAULT_TIMEOUT": "77"})
    out = run(machine, "env")[1].splitlines()
    assert f"PATH={TRUSTED_PATH}" in out
    assert "HOME=/root" in out
    assert "PIP_DEFAULT_TIMEOUT=77" in out
    assert not [line for line in out if "HOST_SECRET" in line]


def test_ca_bundle_is_there_and_announced(make: Make, bundle: Path) -> None:
    machine = make(ca_bundle=bundle)
    python, node = ("SSL_CERT_FILE", "PIP_CERT", "REQUESTS_CA_BUNDLE"), ("NODE_EXTRA_CA_CERTS", "NPM_CONFIG_CAFILE")
    for name in (*python, *node, "GIT_SSL_CAINFO", "CURL_CA_BUNDLE", "CARGO_HTTP_CAINFO"):
        assert run(machine, f'cat "${name}"')[1] == "# conformance bundle\n", name


def test_devices_a_program_expects(shared: Machine) -> None:
    script = "head -c 4 /dev/urandom | wc -c; echo x > /dev/null; head -c 2 /dev/zero | wc -c; test -w /dev/shm"
    status, output = run(shared, script)
    assert (status, output.split()) == (0, ["4", "2"])


def test_names_resolve_and_loopback_answers(shared: Machine) -> None:
    script = "import socket,threading\ns=socket.create_server(('127.0.0.1',0))\n"
    script += "c=socket.create_connection(s.getsockname())\nprint(socket.gethostbyname('localhost'))"
    done = shared.execute(["python3", "-c", script], timeout=30)
    assert (done.exit_status, done.output) == (0, b"127.0.0.1\n")


def test_facts_name_the_limits_in_force(shared: Machine) -> None:
    facts = shared.facts()
    assert json.loads(json.dumps(facts)) == facts
    assert facts


@pytest.mark.slow
@pytest.mark.registry
@pytest.mark.parametrize("tool", ["apt-get", "pip", "npm"])
def test_package_tools_really_install(make: Make, candidate: object, tool: str) -> None:
    lacks: frozenset[str] = getattr(candidate, "lacks", frozenset())
    if tool in lacks:
        pytest.skip(f"this host's machines lack {tool}")
    roots = Path("/etc/ssl/certs/ca-certificates.crt")
    machine = make(ca_bundle=roots if roots.exists() else None)
    script = {
        "apt-get": "apt-get update -q && apt-get install -y -q --no-install-recommends sl && test -x /usr/games/sl",
        "pip": "cd /work && python3 -m venv v && v/bin/pip install -q six==1.16.0 && v/bin/python -c 'import six'",
        "npm": "cd /work && npm install --silent is-odd@3.0.1 && node -e 'process.exit(require(\"is-odd\")(3)-1)'",
    }[tool]
    status, output = run(machine, script, timeout=280)
    assert status == 0, output[-3000:]
    assert shutil.which("sl") is None
