"""A machine's first process: makes the namespaces, mounts the root, then starts what the harness asks for.

It runs as a program of its own (``launch``) with the standard library only. As PID 1 of its namespace it reaps
orphans; when the harness lets go of the socket — also by ``kill -9`` — it ends, and the kernel with it every
process of the machine.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import resource
import select
import signal
import socket
import stat
import struct
import sys
import termios
from pathlib import Path
from typing import Any

from referee.adapters.overlay import kernel, tree, wire

_STATUS = struct.Struct("!i")
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
_LINKS = {
    "ptmx": "pts/ptmx",
    "fd": "/proc/self/fd",
    "stdin": "/proc/self/fd/0",
    "stdout": "/proc/self/fd/1",
    "stderr": "/proc/self/fd/2",
}
#: How the kernel says that nothing stands at a path, whatever links lead to it.
_LEADS_NOWHERE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG)
_PROTECTED = ("sys", "sysrq-trigger", "irq", "bus")
_LIMITS = {
    "nofile": resource.RLIMIT_NOFILE,
    "nproc": resource.RLIMIT_NPROC,
    "data": resource.RLIMIT_DATA,
    "fsize": resource.RLIMIT_FSIZE,
    "core": resource.RLIMIT_CORE,
}


def launch(fd: int) -> None:
    """Take the configuration from the socket ``fd``, make the namespaces, fork the first process, wait for it."""
    sock = socket.socket(fileno=fd)
    received = wire.receive(sock)
    if received is None:
        return
    config = received[0]
    try:
        _leave_host(config)
        pid = os.fork()
    except OSError as exc:
        wire.send(sock, {"error": f"namespaces: {exc}"})
        return
    if pid == 0:
        _first_process(sock, config)
        os._exit(0)
    wire.send(sock, {"pid": pid})
    sock.close()
    os.waitpid(pid, 0)


def _leave_host(config: dict[str, Any]) -> None:
    with contextlib.suppress(OSError):
        # The machine's own first process must not be the one that an exhausted memory limit ends.
        _write("/proc/self/oom_score_adj", "-1000")
    uid, gid = os.getuid(), os.getgid()
    flags = kernel.CLONE_NEWNS | kernel.CLONE_NEWPID | kernel.CLONE_NEWIPC | kernel.CLONE_NEWUTS
    flags |= kernel.CLONE_NEWCGROUP
    if config["rootless"]:
        kernel.unshare(flags | kernel.CLONE_NEWUSER)
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"0 {uid} 1")
        _write("/proc/self/gid_map", f"0 {gid} 1")
    else:
        kernel.unshare(flags)


def _first_process(sock: socket.socket, config: dict[str, Any]) -> None:
    try:
        kernel.die_with_parent()
        os.umask(0o022)
        _mount_root(config)
        kernel.set_hostname(config["hostname"])
        serve = _Server(sock, config)
    except OSError as exc:
        wire.send(sock, {"error": f"mounts: {exc}"})
        return
    wire.send(sock, {"ready": True})
    with contextlib.suppress(OSError):
        serve.forever()


def _mount_root(config: dict[str, Any]) -> None:
    kernel.mount("none", "/", None, kernel.MS_REC | kernel.MS_PRIVATE)
    os.chdir(config["directory"])
    root = f"{config['directory']}/root"
    for layer in config["layers"]:
        if not layer["lower"]:
            _bind(layer["upper"], root)
            continue
        options = f"lowerdir={layer['lower']},upperdir={layer['upper']},workdir={layer['work']}"
        options += ",userxattr" if config["rootless"] else ""
        target = root + layer["at"].rstrip("/")
        _mount_overlay(target, options)
    kernel.mount("proc", f"{root}/proc", "proc", kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC)
    for name in _PROTECTED:
        if os.path.lexists(f"{root}/proc/{name}"):
            _bind(f"{root}/proc/{name}", f"{root}/proc/{name}")
            kernel.make_read_only(f"{root}/proc/{name}")
    _mount_devices(root, rootless=config["rootless"])
    _bind("/sys", f"{root}/sys", recursive=config["rootless"])
    kernel.make_read_only(f"{root}/sys")
    inputs = sorted(config["inputs"].items(), key=lambda item: item[1])
    for source, at in inputs:
        target = root + at
        _make_place(source, target)
        _bind(source, target, recursive=config["rootless"])
    for _, at in inputs:
        kernel.make_read_only(root + at)
    kernel.enter_root(root)


def _mount_overlay(target: str, options: str) -> None:
    # "volatile" leaves out flushing to disk: the machine is disposable, and package managers flush a lot.
    try:
        kernel.mount("overlay", target, "overlay", kernel.MS_NODEV, options + ",volatile")
    except OSError as exc:
        if exc.errno != errno.EINVAL:
            raise
        kernel.mount("overlay", target, "overlay", kernel.MS_NODEV, options)


def _mount_devices(root: str, *, rootless: bool) -> None:
    quiet = kernel.MS_NOSUID | kernel.MS_NOEXEC
    kernel.mount("tmpfs", f"{root}/dev", "tmpfs", quiet, "mode=755,size=1m")
    for name in _DEVICES:
        _write(f"{root}/dev/{name}", "")
        _bind(f"/dev/{name}", f"{root}/dev/{name}")
    for name, to in _LINKS.items():
        Path(f"{root}/dev/{name}").symlink_to(to)
    for name in ("pts", "shm", "mqueue"):
        Path(f"{root}/dev/{name}").mkdir()
    # Group 5 is "tty" on Debian; a rootless machine has no group but its root.
    options = "newinstance,ptmxmode=0666,mode=0620" + ("" if rootless else ",gid=5")
    kernel.mount("devpts", f"{root}/dev/pts", "devpts", quiet, options)
    shared = f"{root}/dev/shm"  # noqa: S108 — the machine's own
    kernel.mount("tmpfs", shared, "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, "mode=1777,size=256m")
    kernel.mount("mqueue", f"{root}/dev/mqueue", "mqueue", quiet | kernel.MS_NODEV)


def _make_place(source: str, target: str) -> None:
    place = Path(target)
    if Path(source).is_dir():
        place.mkdir(parents=True, exist_ok=True)
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    if not os.path.lexists(target):
        place.touch()


def _bind(source: str, target: str, *, recursive: bool = False) -> None:
    kernel.mount(source, target, None, kernel.MS_BIND | (kernel.MS_REC if recursive else 0))


def _write(path: str, text: str) -> None:
    Path(path).write_text(text, encoding="ascii")


class _Server:
    """Answers the harness and reaps, in one thread."""

    def __init__(self, sock: socket.socket, config: dict[str, Any]) -> None:
        self._sock = sock
        self._limits: dict[str, int] = config["rlimits"]
        self._statuses: dict[int, int] = {}
        self._wake, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    def forever(self) -> None:
        """Serve until the harness has gone."""
        poll = select.poll()
        poll.register(self._sock, select.POLLIN)
        poll.register(self._wake, select.POLLIN)
        while True:
            ready = {fd for fd, _ in poll.poll()}
            if self._wake in ready:
                with contextlib.suppress(BlockingIOError):
                    os.read(self._wake, 4096)
                self._reap()
            if self._sock.fileno() in ready:
                received = wire.receive(self._sock)
                if received is None:
                    return
                self._answer(received[0])

    def _answer(self, request: dict[str, Any]) -> None:
        fds: list[int] = []
        try:
            reply = {
                "spawn": self._spawn,
                "kill": _kill,
                "open": _open,
                "take": self._take,
                "count": _count,
            }[request["op"]](request, fds)
        except OSError as exc:
            reply = {"error": str(exc)}
        wire.send(self._sock, reply, fds)
        for fd in fds:
            os.close(fd)

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            writer = self._statuses.pop(pid, None)
            if writer is not None:
                code = os.waitstatus_to_exitcode(status)
                with contextlib.suppress(BrokenPipeError):
                    # The harness may have let go of the session before its command ended.
                    os.write(writer, _STATUS.pack(code if code >= 0 else 128 - code))
                os.close(writer)

    def _spawn(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Start a program; the reply carries its output (or terminal), its status pipe and, if asked, its input."""
        mine: list[int] = []
        try:
            if request["terminal"]:
                master, slave = os.openpty()
                size = struct.pack("HHHH", request["rows"], request["columns"], 0, 0)
                fcntl.ioctl(slave, termios.TIOCSWINSZ, size)
                fds.append(master)
                stdin = stdout = slave
                mine.append(slave)
            else:
                out, stdout = os.pipe2(os.O_CLOEXEC)
                fds.append(out)
                mine.append(stdout)
                stdin = os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC)
                mine.append(stdin)
            status, writer = os.pipe2(os.O_CLOEXEC)
            fds.append(status)
            if request["feed"]:
                stdin, feed = os.pipe2(os.O_CLOEXEC)
                mine.append(stdin)
                fds.append(feed)
            try:
                pid = os.fork()
            except OSError:
                os.close(writer)
                raise
            if pid == 0:
                _become(request, stdin, stdout, self._limits)
            self._statuses[pid] = writer
            return {"pid": pid}
        finally:
            for fd in mine:
                os.close(fd)

    def _take(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Write a directory as a tar stream, in a child of this process: no program of the machine has a part in it."""
        look = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            directory = os.open(request["path"], look)
        except OSError as exc:
            if exc.errno not in _LEADS_NOWHERE:
                raise
            return {"missing": True}
        out, tar = os.pipe2(os.O_CLOEXEC)
        status, writer = os.pipe2(os.O_CLOEXEC)
        fds += [out, status]
        try:
            pid = os.fork()
            if pid == 0:
                _write_tree(directory, request["name"], tar)
            self._statuses[pid] = writer
        except OSError:
            os.close(writer)
            raise
        finally:
            os.close(directory)
            os.close(tar)
        return {}


def _write_tree(directory: int, name: str, out: int) -> None:
    """In the forked child: the tree, and a status of 0 when it is whole. Never returns."""
    status = 1
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        kernel.give_up_privileges()
        with os.fdopen(out, "wb") as stream:
            tree.write_tree(directory, name, stream)
        status = 0
    finally:
        os._exit(status)


def _become(request: dict[str, Any], stdin: int, stdout: int, limits: dict[str, int]) -> None:
    """In the forked child: turn into the asked program. Never returns."""
    status = 127
    try:
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGINT, signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        os.setsid()
        if request["terminal"]:
            fcntl.ioctl(stdin, termios.TIOCSCTTY, 0)
        for target, source in enumerate((stdin, stdout, stdout)):
            os.dup2(source, target)
        with contextlib.suppress(OSError):
            _write("/proc/self/oom_score_adj", "0")
        for name, value in limits.items():
            resource.setrlimit(_LIMITS[name], (value, value))
        kernel.give_up_privileges()
        os.chdir(request["cwd"])
        os.execvpe(request["argv"][0], request["argv"], request["environment"])  # noqa: S606 — starting programs is its task
    except PermissionError as exc:
        status = 126
        os.write(2, f"cannot start {request['argv'][0]}: {exc}\n".encode(errors="replace"))
    except BaseException as exc:  # noqa: BLE001 — a forked child must not unwind into the server
        os.write(2, f"cannot start {request['argv'][0]}: {exc}\n".encode(errors="replace"))
    finally:
        os._exit(status)


def _kill(request: dict[str, Any], _fds: list[int]) -> dict[str, Any]:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(request["pid"], signal.SIGKILL)
    return {}


def _open(request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
    """A handle on a path as it stands in the machine, not opened: nothing is followed, read or waited for."""
    try:
        fd = os.open(request["path"], os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as exc:
        if exc.errno not in _LEADS_NOWHERE:
            raise
        return {"missing": True}
    fds.append(fd)
    return {"regular": stat.S_ISREG(os.fstat(fd).st_mode)}


def _count(_request: dict[str, Any], _fds: list[int]) -> dict[str, Any]:
    return {"processes": sum(1 for path in Path("/proc").iterdir() if path.name.isdigit()) - 1}


def main() -> None:
    """Entry of the program: its one argument is the number of the inherited socket."""
    launch(int(sys.argv[1]))
