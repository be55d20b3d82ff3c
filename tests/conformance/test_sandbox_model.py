"""What every sandbox promises for a model's sake: one way to its gateway, directories taken out, no secret shown."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import secrets
import socket
import stat
import tarfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Self

import pytest

from referee.adapters.sources.unpack import put
from referee.adapters.sources.within import Within
from referee.errors import MachineFault, UsageError
from referee.protocols import Machine, Sandbox

Make = Callable[..., Machine]

ASK = """
import errno, socket, sys
for port in sys.argv[2:]:
    try:
        print(socket.create_connection((sys.argv[1], int(port)), 5).recv(9).decode())
    except OSError as exc:
        print(errno.errorcode.get(exc.errno, str(exc)))
"""


def run(machine: Machine, script: str) -> tuple[int | None, str]:
    """Run a shell script without a terminal."""
    done = machine.execute(["/bin/sh", "-c", script], timeout=60)
    return done.exit_status, done.output.decode(errors="replace")


# --- the way to the gateway


@pytest.fixture(scope="module")
def services(sandbox: Sandbox) -> Iterator[tuple[str, int, int]]:
    """Two services of this host at the gateway's address: address, port, other port."""
    address = sandbox.gateway_address()
    made = [socket.create_server((address, 0)) for _ in range(2)]

    def answer(service: socket.socket) -> None:
        while True:
            try:
                connection, _ = service.accept()
            except OSError:
                return
            with connection:
                connection.sendall(b"served")

    for service in made:
        threading.Thread(target=answer, args=(service,), daemon=True).start()
    yield address, made[0].getsockname()[1], made[1].getsockname()[1]
    for service in made:
        service.shutdown(socket.SHUT_RDWR)
        service.close()


def ask(machine: Machine, address: str, *ports: int) -> list[str]:
    """What each port answers inside."""
    argv = ["python3", "-c", ASK, address, *(str(port) for port in ports)]
    return machine.execute(argv, timeout=60).output.decode().split("\n")[:-1]


def test_only_the_gateway_is_reached(make: Make, services: tuple[str, int, int], candidate: Any) -> None:
    address, port, other = services
    machine = make(gateway=(address, port))
    unreachable = "EHOSTUNREACH" if "host network" not in candidate.lacks else "served"
    assert ask(machine, address, port, other) == ["served", unreachable]
    machine.quiet()
    assert ask(machine, address, port, other) == ["served", unreachable], "not the same after the machine's restart"


def test_without_a_gateway_nothing_of_the_host_is_reached(
    make: Make, services: tuple[str, int, int], candidate: Any
) -> None:
    if "host network" in candidate.lacks:
        pytest.skip("these machines share the host's network")
    address, port, other = services
    assert ask(make(), address, port, other) == ["EHOSTUNREACH", "EHOSTUNREACH"]


def test_the_gateway_takes_no_other_protocol_through(
    make: Make, services: tuple[str, int, int], candidate: Any
) -> None:
    if "host network" in candidate.lacks:
        pytest.skip("these machines share the host's network")
    address, port, _ = services
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listener:
        listener.bind((address, port))
        listener.settimeout(2)
        script = f"import socket; socket.socket(type=socket.SOCK_DGRAM).sendto(b'x', ({address!r}, {port}))"
        done = make(gateway=(address, port)).execute(["python3", "-c", script], timeout=30)
        assert done.exit_status != 0
        assert b"No route to host" in done.output
        with pytest.raises(TimeoutError):
            listener.recv(10)


# --- directories taken out

TREE = """
mkdir -p /work/out/tree/deep/er /work/out/tree/empty && cd /work/out/tree &&
head -c 300000 /dev/urandom > bytes.bin && printf '' > nothing && printf run > program && chmod 755 program &&
printf secret > private && chmod 600 private && ln -s program link && ln -s /etc/passwd outside && ln program hard &&
printf x > 'a name with spaces' && printf x > "$(printf 'gr\\303\\274n')" && printf y > "$(printf 'bad\\377name')" &&
printf deep > deep/er/file && chmod 700 deep && chmod 750 deep/er &&
python3 -c "import os; open('l' * 200, 'w').write('long'); os.makedirs('d' * 120 + '/' + 'e' * 120)" &&
{ chown 1234:4321 nothing 2>/dev/null || grep -qv 4294967295 /proc/self/uid_map; } && sha256sum bytes.bin
"""


def taken(machine: Machine, path: str) -> tuple[dict[str, tarfile.TarInfo], dict[str, bytes]]:
    """Members and contents of what ``take`` gives, by name."""
    members: dict[str, tarfile.TarInfo] = {}
    contents: dict[str, bytes] = {}
    with (
        machine.take(path) as stream,
        tarfile.open(fileobj=stream, mode="r|", encoding="utf-8", errors="surrogateescape") as tar,
    ):
        for member in tar:
            members[member.name.rstrip("/")] = member
            file = tar.extractfile(member) if member.isreg() else None
            if file is not None:
                contents[member.name] = file.read()
    return members, contents


@pytest.mark.parametrize("when", ["alive", "after quiet"])
def test_take_gives_the_same_bytes_links_and_modes(make: Make, when: str) -> None:
    machine = make()
    status, said = run(machine, TREE)
    assert status == 0, said
    if when == "after quiet":
        assert machine.quiet().confirmed
    members, contents = taken(machine, "/work/out/tree")
    assert hashlib.sha256(contents["tree/bytes.bin"]).hexdigest() == said.split()[0]
    modes = {name: stat.S_IMODE(member.mode) for name, member in members.items()}
    assert (modes["tree/program"], modes["tree/private"], modes["tree/deep"], modes["tree/deep/er"]) == (
        0o755,
        0o600,
        0o700,
        0o750,
    )
    assert members["tree/link"].issym()
    assert members["tree/link"].linkname == "program"
    assert members["tree/outside"].linkname == "/etc/passwd"
    first, second = sorted(("tree/hard", "tree/program"))
    assert members[second].islnk()
    assert (members[second].linkname, contents[first]) == (first, b"run")
    assert members["tree"].isdir()
    assert members["tree/empty"].isdir()
    assert (contents["tree/nothing"], contents["tree/deep/er/file"]) == (b"", b"deep")
    assert contents["tree/a name with spaces"] == contents["tree/grün"] == b"x"
    assert contents[os.fsdecode(b"tree/bad\xffname")] == b"y"
    assert contents["tree/" + "l" * 200] == b"long"
    assert members[f"tree/{'d' * 120}/{'e' * 120}"].isdir()
    assert members["tree/deep/er/file"].uid == 0
    assert all(name == "tree" or name.startswith("tree/") for name in members)


def test_take_goes_into_another_machine_unchanged(make: Make) -> None:
    first, second = make(), make()
    assert run(first, TREE)[0] == 0
    with first.take("/work/out/tree") as stream:
        second.put(stream, "/work/in")
    script = "find . ! -type l -printf '%p %y %m\\n' | sort; find . -type l -printf '%p %l\\n' | sort; "
    script += "find . -type f -print0 | sort -z | xargs -0 sha256sum; stat -c %h program"
    assert run(second, f"cd /work/in/tree && {script}") == run(first, f"cd /work/out/tree && {script}")


@pytest.mark.parametrize("path", ["/work/none", "/work/none/deeper", "/work/file", "/work/link", "/work/file/x", "/"])
def test_take_refuses_what_is_no_directory(shared: Machine, path: str) -> None:
    run(shared, "echo x > /work/file; ln -sfn /etc /work/link")
    with pytest.raises(MachineFault), shared.take(path) as stream:
        stream.read()
    assert run(shared, "echo sound") == (0, "sound\n")


def test_take_may_be_left_in_the_middle(shared: Machine) -> None:
    run(shared, "mkdir -p /work/big && head -c 50000000 /dev/zero > /work/big/zeros")
    for _ in range(3):
        with shared.take("/work/big/") as stream:
            assert len(stream.read(1000)) == 1000
    assert len(taken(shared, "/work/big")[1]["big/zeros"]) == 50_000_000
    assert run(shared, "rm -rf /work/big; echo sound") == (0, "sound\n")


HOSTILE = """
mkdir -p /work/trap && cd /work/trap && ln -s / root && ln -s ../../../../../../tmp up && ln -s /etc etc &&
mkfifo pipe && printf '#!/bin/sh\\n' > suid && chmod 6755 suid && ln -s loop loop && mkdir -p ..dots/... &&
printf x > '..dots/.../..x' && printf x > "$(printf 'new\\nline')" &&
python3 -c "import socket; socket.socket(socket.AF_UNIX).bind('socket')"
{ cp /bin/true /bin/tar && printf '#!/bin/sh\\necho hacked > /work/hacked\\nexec /bin/false\\n' > /bin/tar; } || true
"""


def test_a_hostile_tree_names_nothing_outside_itself(make: Make, tmp_path: Path) -> None:
    machine = make()
    assert run(machine, HOSTILE)[0] == 0
    assert machine.quiet().confirmed
    members, _ = taken(machine, "/work/trap")
    assert machine.read_file("/work/hacked", max_bytes=10) is None, "a program of the machine had a part in it"
    assert {"trap/root", "trap/up", "trap/suid", "trap/..dots/.../..x", "trap/new\nline"} <= set(members)
    for name, member in members.items():
        assert not name.startswith("/")
        assert ".." not in name.split("/")
        assert not member.islnk() or member.linkname in members
        above = [name.rsplit("/", depth)[0] for depth in range(1, name.count("/") + 1)]
        assert all(members[one].isdir() for one in above), "an entry stands below a link"
    with machine.take("/work/trap") as stream:
        whole = io.BytesIO(stream.read())
    refused = []
    (tmp_path / "in").mkdir()
    together = Within(tmp_path / "in", "of a machine")
    with tarfile.open(fileobj=whole) as tar:
        for one in tar:
            try:
                put(tar, one, together)
            except UsageError:
                refused.append(one.name)
    top = together.finish()
    assert sorted(refused) == ["trap/etc", "trap/pipe", "trap/root", "trap/up"]
    assert [path.name for path in tmp_path.iterdir()] == ["in"]
    links = [path for path in tmp_path.rglob("*") if path.is_symlink()]
    assert [str(path.readlink()) for path in links] == ["loop"]
    assert not (top / "suid").stat().st_mode & (stat.S_ISUID | stat.S_ISGID)


def test_take_follows_nothing_that_changes_under_it(make: Make, drain: Callable[..., bytes]) -> None:
    machine = make()
    swap = "cd /work && mkdir -p t/a && echo in > t/a/f && mkdir -p /work/other && echo outside > /work/other/f; "
    swap += "while :; do mv t/a t/b; ln -s /work/other t/a; rm t/a; mv t/b t/a; echo swapped; done"
    session = machine.session(["/bin/sh", "-c", swap], environment={}, cwd="/", columns=80, rows=24)
    drain(session, until=b"swapped")
    for _ in range(15):
        try:
            contents = taken(machine, "/work/t")[1]
        except (MachineFault, tarfile.TarError):
            continue
        assert b"outside\n" not in contents.values()
    machine.quiet()
    session.close()


# --- what is shown of a machine


class Watch:
    """Reads the command line of every process of the host, over and over, until it is left."""

    def __init__(self) -> None:
        self.seen: set[bytes] = set()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.is_set():
            for process in os.scandir("/proc"):
                if process.name.isdigit():
                    with contextlib.suppress(OSError), open(f"{process.path}/cmdline", "rb") as file:  # noqa: PTH123 — speed
                        self.seen.add(file.read())


USE = """
: $1
printf '%s %s\n' "$(sha256sum < /run/key | cut -d' ' -f1)" "$(printf %s "$MODEL_KEY" | sha256sum | cut -d' ' -f1)"
sleep 900
"""


def test_neither_a_placed_key_nor_one_of_the_environment_is_shown(
    make: Make, drain: Callable[..., bytes], candidate: Any
) -> None:
    placed, given, marker = (f"{word}-{secrets.token_hex(16)}" for word in ("placed", "given", "marker"))
    with Watch() as watch:
        machine = make()
        machine.put(tar_of("key", placed.encode(), 0o600), "/run")
        argv = ["/bin/sh", "-c", USE, "sh", marker]
        session = machine.session(argv, environment={"MODEL_KEY": given}, cwd="/", columns=200, rows=24)
        sums = " ".join(hashlib.sha256(key.encode()).hexdigest() for key in (placed, given))
        assert sums.encode() in drain(session, until=sums.encode()), "the keys are not there at all"
        assert run(machine, "stat -c '%a %U' /run/key") == (0, "600 root\n")
        machine.execute(["/bin/sh", "-c", "true", marker], environment={"MODEL_KEY": given}, timeout=20)
        shown = candidate.shown(machine.run) + json.dumps(machine.facts())
    arguments = b"\n".join(watch.seen)
    assert marker.encode() in arguments, "the search finds nothing at all"
    assert marker in shown or "host network" in candidate.lacks
    for secret in (placed, given):
        assert secret not in shown
        assert secret.encode() not in arguments
    machine.quiet()
    session.close()


def tar_of(name: str, data: bytes, mode: int) -> io.BytesIO:
    """A tar of one file."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as tar:
        member = tarfile.TarInfo(name)
        member.size, member.mode = len(data), mode
        tar.addfile(member, io.BytesIO(data))
    stream.seek(0)
    return stream
