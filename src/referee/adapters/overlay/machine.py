"""One disposable machine over the host's root (``protocols.Machine``)."""

from __future__ import annotations

import contextlib
import io
import os
import select
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Self

from referee.adapters.overlay.cgroups import Cgroup
from referee.adapters.overlay.disk import DiskWatch
from referee.adapters.overlay.layers import HOSTNAME
from referee.adapters.overlay.namespace import Namespace
from referee.adapters.overlay.owner import remove_machine
from referee.adapters.overlay.session import OverlaySession, StatusPipe
from referee.core.records import QuietFacts
from referee.disk_use import allocated_bytes
from referee.errors import MachineFault, ReportRejected
from referee.protocols import TRUSTED_PATH, Completed, MachineSpec
from referee.trust import CA_BUNDLE, announced

_CHUNK = 65536
#: After a command has ended, what still stands in its pipe is taken; a process it left behind may write on for ever.
_REST_BYTES = 1 << 20
_UNPACK_SECONDS = 600.0
_TAKE_SILENCE = 60.0
#: How often a command that runs is asked whether it is to be stopped, seconds.
_STOP_EVERY = 0.01
_UNPACK = 'mkdir -p -- "$1" && exec tar --extract --no-same-owner --preserve-permissions --directory="$1" --file=-'


class OverlayMachine:
    """A machine: upper layers on disk that stay, and namespaces that ``quiet`` replaces."""

    def __init__(
        self,
        *,
        state: Path,
        name: str,
        spec: MachineSpec,
        layers: list[dict[str, str]],
        rlimits: dict[str, int],
        cgroup: Cgroup | None,
        rootless: bool,
    ) -> None:
        self.run = spec.run
        self._state = state
        self._name = name
        self._directory = state / name
        self._layers = layers
        self._rlimits = rlimits
        self._cgroup = cgroup
        self._rootless = rootless
        self._limits = spec.limits
        self._lives = 0
        self._destroyed = False
        self._lock = threading.Lock()
        self._inputs = {str(source.resolve()): at for source, at in spec.inputs.items()}
        self._environment = {"PATH": TRUSTED_PATH, "HOME": "/root", "LANG": "C.UTF-8"}
        if spec.ca_bundle is not None:
            self._inputs[str(spec.ca_bundle.resolve())] = CA_BUNDLE
        self._environment |= {**announced(spec.ca_bundle), **spec.environment}
        self._namespace = self._live()
        uppers = [self._directory / layer["upper"] for layer in layers]
        self._disk = DiskWatch(uppers, spec.limits.disk_bytes)

    def _live(self) -> Namespace:
        """New namespaces over the same upper layers."""
        self._lives += 1
        mounts = []
        for number, layer in enumerate(self._layers):
            # A work directory per life: the kernel refuses one that an earlier "volatile" mount left behind.
            work = f"{self._name}.work-{self._lives}-{number}"
            (self._directory / work).mkdir()
            mounts.append(layer | {"work": work})
        config: dict[str, Any] = {
            "directory": str(self._directory),
            "layers": mounts,
            "inputs": self._inputs,
            "rlimits": self._rlimits,
            "rootless": self._rootless,
            "hostname": HOSTNAME,
        }
        return Namespace(config, self._cgroup)

    def session(
        self, argv: Sequence[str], *, environment: Mapping[str, str], cwd: str, columns: int, rows: int
    ) -> OverlaySession:
        """Start ``argv`` on a new terminal."""
        wanted = {"TERM": "xterm-256color"} | dict(environment)
        size = {"columns": columns, "rows": rows}
        _, fds = self._spawn(argv, wanted, cwd, terminal=True, feed=False, **size)
        return OverlaySession(*fds)

    def execute(
        self,
        argv: Sequence[str],
        *,
        timeout: float,
        environment: Mapping[str, str] | None = None,
        cwd: str = "/",
        max_output: int = 1_000_000,
        stop: threading.Event | None = None,
    ) -> Completed:
        """Run ``argv`` without a terminal and wait; a command that takes too long is killed with its group."""
        pid, (out, status, *feed) = self._spawn(argv, environment or {}, cwd, terminal=False, feed=stop is not None)
        with _Collector(out, status, max_output) as collector:
            ended = collector.collect(timeout) if stop is None else collector.collect_until(stop, feed[0], timeout)
            if not ended:
                with contextlib.suppress(MachineFault):
                    self._namespace.ask({"op": "kill", "pid": pid})
                collector.collect(1.0)
            code = collector.status.wait(0) if ended else None
            return Completed(code, bytes(collector.output), timed_out=not ended, truncated=collector.truncated)

    def put(self, tar: BinaryIO, at: str) -> None:
        """Unpack an uncompressed tar stream below ``at`` (made where missing); owner root."""
        argv = ["/bin/sh", "-c", _UNPACK, "sh", at]
        _, (out, status, feed) = self._spawn(argv, {}, "/", terminal=False, feed=True)
        with _Collector(out, status, _CHUNK) as collector:
            try:
                collector.feed(feed, tar, _UNPACK_SECONDS)
            finally:
                os.close(feed)
            if not collector.collect(_UNPACK_SECONDS) or collector.status.wait(0) != 0:
                said = bytes(collector.output).decode(errors="replace").strip()[-500:]
                raise MachineFault(f"files could not be placed at {at} in the machine: {said or 'no reason given'}")

    def read_file(self, path: str, *, max_bytes: int) -> bytes | None:
        """The bytes of a regular file, or None where nothing stands."""
        answer, fds = self._namespace.ask({"op": "open", "path": path})
        if answer.get("missing"):
            return None
        handle = fds[0]
        try:
            if not answer["regular"]:
                raise ReportRejected(f"{path} is no regular file", todo="Write a plain file, no link or device.")
            size = os.fstat(handle).st_size
            if size > max_bytes:
                raise ReportRejected(f"{path} has {size} bytes, more than the {max_bytes} that are read")
            # Opening the handle itself again: the file that was looked at is the file that is read.
            with open(f"/proc/self/fd/{handle}", "rb") as stream:  # noqa: PTH123 — a handle, no path
                data = stream.read(max_bytes + 1)
        except OSError as exc:
            raise MachineFault(f"{path} of the machine cannot be read: {exc}") from exc
        finally:
            os.close(handle)
        if len(data) > max_bytes:
            raise ReportRejected(f"{path} has more than the {max_bytes} bytes that are read")
        return data

    @contextlib.contextmanager
    def take(self, path: str) -> Iterator[BinaryIO]:
        """The directory ``path`` as an uncompressed tar stream; no program of the machine has a part in it."""
        self._sound()
        name = path.rstrip("/").rpartition("/")[2]
        if not name:
            raise MachineFault(f"{path} names no directory that can be taken out of the machine")
        answer, fds = self._namespace.ask({"op": "take", "path": path.rstrip("/"), "name": name})
        if answer.get("missing"):
            raise MachineFault(f"there is no directory {path} in the machine")
        with io.BufferedReader(_Taken(path, *fds), _CHUNK) as stream:
            yield stream

    def quiet(self) -> QuietFacts:
        """End the machine's namespaces with every process in them, and make new ones over the same files."""
        with self._lock:
            self._sound()
            confirmed, count = self._namespace.end()
            how = "the PID namespace was ended by its first process and waited for; "
            how += "no process of the machine was found on the host afterwards"
            if not confirmed:
                return QuietFacts(confirmed=False, how="a process of the machine would not end", survivors_ended=count)
            self._namespace = self._live()
            return QuietFacts(confirmed=True, how=how, survivors_ended=count)

    def trouble(self) -> str | None:
        """None, "memory", "disk", or a sentence."""
        if self._disk.exceeded:
            return "disk"
        if self._destroyed or not self._namespace.alive():
            # While the machine lives, what the kernel ended for memory is for the project to work through.
            memory = not self._destroyed and self._cgroup is not None and self._cgroup.killed_for_memory()
            return "memory" if memory else "the machine's first process has ended"
        return None

    def facts(self) -> dict[str, object]:
        """The machine's name, mode, limits in force and what it used."""
        in_force = {"disk": "watched", "nofile": "rlimit"}
        in_force |= {"memory": "rlimit (data, for each process)"} if "data" in self._rlimits else {}
        in_force |= {"pids": "rlimit"} if "nproc" in self._rlimits else {}
        in_force |= self._cgroup.in_force if self._cgroup else {}
        written = 0 if self._destroyed else allocated_bytes([self._directory / one["upper"] for one in self._layers])
        usage: dict[str, object] = {"disk_bytes": max(written, self._disk.largest)}
        return {
            "machine": self._name,
            "mode": "rootless" if self._rootless else "root",
            "namespaces_made": self._lives,
            "limits": self._limits.model_dump(),
            "limits_in_force": {name: in_force.get(name, "none") for name in self._limit_names()},
            "usage": usage | (self._cgroup.usage() if self._cgroup else {}),
        }

    @staticmethod
    def _limit_names() -> tuple[str, ...]:
        return ("memory", "cpus", "pids", "disk", "nofile")

    def destroy(self) -> None:
        """End and remove everything; quiet about what it cannot do, which the next ``reap`` finds."""
        with self._lock, contextlib.suppress(OSError, MachineFault):
            if self._destroyed:
                return
            self._destroyed = True
            self._disk.stop()
            confirmed, _ = self._namespace.end()
            remove_machine(self._state, self._name, search=not confirmed)

    def _sound(self) -> None:
        if self._destroyed:
            raise MachineFault("the machine has been destroyed")

    def _spawn(
        self, argv: Sequence[str], environment: Mapping[str, str], cwd: str, *, terminal: bool, feed: bool, **size: int
    ) -> tuple[int, list[int]]:
        self._sound()
        request: dict[str, Any] = {
            "op": "spawn",
            "argv": list(argv),
            "environment": self._environment | dict(environment),
            "cwd": cwd,
            "terminal": terminal,
            "feed": feed,
        }
        answer, fds = self._namespace.ask(request | size)
        return int(answer["pid"]), fds


class _Taken(io.RawIOBase):
    """A directory's tar stream, which ends as an error unless its writer says that it is whole."""

    def __init__(self, path: str, out: int, status: int) -> None:
        self._path = path
        self._out = out
        self._status = StatusPipe(status)

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill ``buffer`` as far as something is there.

        Raises:
            MachineFault: the stream is not whole, or does not go on.
        """
        poll = select.poll()
        poll.register(self._out, select.POLLIN)
        if not poll.poll(_TAKE_SILENCE * 1000):
            raise MachineFault(f"the machine stopped giving out {self._path}")
        data = os.read(self._out, len(buffer))
        if not data and self._status.wait(_TAKE_SILENCE) != 0:
            raise MachineFault(f"{self._path} could not be read whole in the machine")
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        """Let go; a writer that is not done ends with it."""
        if not self.closed:
            os.close(self._out)
            self._status.close()
        super().close()


class _Collector:
    """Takes the output of a program until it ends, keeping at most ``limit`` bytes."""

    def __init__(self, out: int, status: int, limit: int) -> None:
        os.set_blocking(out, False)
        self._out = out
        self._open = True
        self.status = StatusPipe(status)
        self._limit = limit
        self.output = bytearray()
        self.truncated = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._out)
        self.status.close()

    def collect(self, seconds: float) -> bool:
        """Take output until the program ends (True) or ``seconds`` have passed (False)."""
        deadline = time.monotonic() + seconds
        poll = select.poll()
        poll.register(self.status, select.POLLIN)
        if self._open:
            poll.register(self._out, select.POLLIN)
        while (left := deadline - time.monotonic()) > 0:
            ready = {fd for fd, _ in poll.poll(left * 1000)}
            if self.status.fileno() in ready:
                taken = 0
                while self._open and taken < _REST_BYTES and (size := self._take()):
                    taken += size
                return True
            if self._out in ready:
                self._take()
                if not self._open:
                    poll.unregister(self._out)
        return False

    def collect_until(self, stop: threading.Event, feed: int, seconds: float) -> bool:
        """The same, and once ``stop`` is set, write a line to the program's input ``feed``, which is closed then."""
        deadline = time.monotonic() + seconds
        try:
            while not stop.is_set() and time.monotonic() < deadline:
                if self.collect(_STOP_EVERY):
                    return True
            with contextlib.suppress(OSError):  # it has ended by itself
                os.write(feed, b"\n")
        finally:
            os.close(feed)
        return self.collect(max(0.0, deadline - time.monotonic()))

    def feed(self, feed: int, stream: BinaryIO, seconds: float) -> None:
        """Write ``stream`` to the program's input as it takes it; stops early when the program ends."""
        os.set_blocking(feed, False)
        deadline = time.monotonic() + seconds
        poll = select.poll()
        poll.register(feed, select.POLLOUT)
        poll.register(self._out, select.POLLIN)
        while chunk := stream.read(_CHUNK):
            rest = memoryview(chunk)
            while rest:
                if time.monotonic() > deadline:
                    raise MachineFault("the machine takes files too slowly")
                if self._out in {fd for fd, _ in poll.poll(1000)} and not self._take() and not self._open:
                    poll.unregister(self._out)
                try:
                    rest = rest[os.write(feed, rest) :]
                except BlockingIOError:
                    continue
                except BrokenPipeError:
                    return

    def _take(self) -> int:
        try:
            data = os.read(self._out, _CHUNK)
        except BlockingIOError:
            return 0
        self._open = bool(data)
        room = self._limit - len(self.output)
        self.output += data[:room]
        self.truncated = self.truncated or len(data) > room
        return len(data)
