"""One disposable machine: a hardened container, and the keeper of its network beside it."""

from __future__ import annotations

import contextlib
import io
import tarfile
import threading
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, BinaryIO

import requests
from docker.errors import NotFound
from requests import Response

from referee.adapters.docker.command import run_command
from referee.adapters.docker.disk import DiskWatch
from referee.adapters.docker.engine import ENGINE_ERRORS, Taken, connect, fault, open_archive, put_archive
from referee.adapters.docker.host import alive_in, belongs_to
from referee.adapters.docker.session import DockerSession
from referee.core.records import QuietFacts
from referee.errors import MachineFault, RefereeError, ReportRejected
from referee.protocols import WORK, Completed

#: Processes of a machine at rest: init and the main process.
AT_REST = 2
#: How the engine says that a path leads nowhere: a file stands above it, or a link to a name that nothing can have.
_LEADS_NOWHERE = ("not a directory", "file name too long", "too many levels of symbolic links")
#: How long the kernel may take to end a machine's processes.
DEATH_SECONDS = 60


class DockerMachine:
    """A running machine (``protocols.Machine``); made by ``DockerSandbox.create``."""

    def __init__(
        self, client: Any, *, run: str, container: str, keeper: str, disk: DiskWatch | None, facts: dict[str, object]
    ) -> None:
        self.run = run
        self._client = client
        self._container = container
        self._keeper = keeper
        self._disk = disk
        self._facts = facts
        self._used: dict[str, object] = {}
        self._stopped = False
        self._here = False
        self._destroyed = False
        self._lock = threading.Lock()

    def session(
        self, argv: Sequence[str], *, environment: Mapping[str, str], cwd: str, columns: int, rows: int
    ) -> DockerSession:
        """Start ``argv`` on a new terminal."""
        self._wake()
        return DockerSession(
            self._client, self._container, argv, environment=environment, cwd=cwd, columns=columns, rows=rows
        )

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
        """Run ``argv`` without a terminal, as root, and wait."""
        self._wake()
        return run_command(
            self._client,
            self._container,
            argv,
            timeout=timeout,
            environment=environment,
            cwd=cwd,
            max_output=max_output,
            stop=stop,
        )

    def put(self, tar: BinaryIO, at: str) -> None:
        """Unpack an uncompressed tar stream below ``at``, which is made when it is not there; owner root."""
        try:
            if at not in {"/", WORK}:
                self._make_directory(at)
            put_archive(self._client, self._container, at, tar)
        except ENGINE_ERRORS as exc:
            raise fault(exc, f"placing files at {at}") from exc

    def _make_directory(self, path: str) -> None:
        opened = open_archive(self._client, self._container, path)
        if opened is not None:
            opened[1].close()
            return
        member = tarfile.TarInfo(path.strip("/"))
        member.type, member.mode = tarfile.DIRTYPE, 0o755
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w") as directory:
            directory.addfile(member)
        put_archive(self._client, self._container, "/", buffer.getvalue())

    def read_file(self, path: str, *, max_bytes: int) -> bytes | None:
        """The bytes of a regular file; None when nothing stands there."""
        try:
            opened = open_archive(self._client, self._container, path)
        except ENGINE_ERRORS as exc:
            if "too many links" in str(exc):  # links in a circle, which the engine reports as an error of its own
                raise ReportRejected(f"{path} is no regular file") from exc
            if any(words in str(exc) for words in _LEADS_NOWHERE):
                return None
            raise fault(exc, f"reading {path}") from exc
        if opened is None:
            return None
        facts, response = opened
        with response:
            if not facts.regular:
                raise ReportRejected(f"{path} is no regular file")
            if facts.size > max_bytes:
                raise ReportRejected(f"{path} has {facts.size} bytes, more than {max_bytes}")
            try:
                return _only_file(response, path, max_bytes)
            except (*ENGINE_ERRORS, tarfile.TarError) as exc:
                raise fault(exc, f"reading {path}") from exc

    @contextlib.contextmanager
    def take(self, path: str) -> Iterator[BinaryIO]:
        """The directory ``path`` as an uncompressed tar stream, made by the engine."""
        path = path.rstrip("/")
        try:
            opened = open_archive(self._client, self._container, path or "/")
        except ENGINE_ERRORS as exc:
            raise fault(exc, f"taking {path}") from exc
        if opened is None:
            raise MachineFault(f"there is no directory {path} in the machine")
        facts, response = opened
        with response:
            if not facts.directory or not path:
                raise MachineFault(f"{path or '/'} of the machine is no directory that can be taken out")
            with io.BufferedReader(Taken(response, path), 65536) as stream:
                yield stream

    def quiet(self) -> QuietFacts:
        """Kill the machine's init: the kernel then ends every process of its namespace, whatever it does.

        Nothing less is a confirmation: a process of the agent can ignore signals, leave its session, or hide its
        code in the machine's own two processes. Where the engine runs on this host, the host's process table is then
        searched all the same. The next ``execute`` or ``session`` starts the machine anew, from programs that the agent
        could not alter, in the same sealed network.
        """
        with self._lock:
            try:
                before = 0
                if not self._stopped:
                    used = _usage(self._client, self._container)
                    before = _whole(used.get("processes"))
                    self._used = self._used or used  # the agent's own time; a re-run counts anew
                    self._here = self._on_this_host()
                    with contextlib.suppress(*ENGINE_ERRORS):  # it may have ended by itself
                        self._client.kill(self._container, signal="SIGKILL")
                    with contextlib.suppress(requests.exceptions.Timeout):  # what it then says of the machine counts
                        self._client.wait(self._container, timeout=DEATH_SECONDS)
                state = self._client.inspect_container(self._container)["State"]
            except ENGINE_ERRORS as exc:
                raise fault(exc, "ending the machine's processes") from exc
            dead = not state["Running"] and not state.get("Paused") and state.get("Pid", 0) == 0
            self._stopped = dead
        left = alive_in(self._container) if dead and self._here else set()
        return QuietFacts(
            confirmed=dead and not left,
            how=_how_quiet(state, left, searched=self._here),
            survivors_ended=max(0, before - AT_REST),
        )

    def _on_this_host(self) -> bool:
        """Whether the machine's processes can be seen in this host's process table."""
        pid = self._client.inspect_container(self._container)["State"].get("Pid", 0)
        return pid > 0 and belongs_to(pid, self._container)

    def _wake(self) -> None:
        with self._lock:
            if not self._stopped:
                return
            try:
                self._client.start(self._container)
            except ENGINE_ERRORS as exc:
                raise fault(exc, "starting the machine again") from exc
            self._stopped = False

    def trouble(self) -> str | None:
        """None while the machine is sound; else "memory", "disk" or a sentence."""
        if self._disk is not None and self._disk.exceeded:
            return "disk"
        with self._lock:
            if self._stopped or self._destroyed:
                return None
            try:
                return _state_of_trouble(self._client.inspect_container(self._container)["State"])
            except NotFound:
                return "the machine was removed from outside"
            except ENGINE_ERRORS as exc:
                return fault(exc, "asking for the machine's state").message

    def facts(self) -> dict[str, object]:
        """Ids, fences in force, and what was used."""
        used = dict(self._used)
        with contextlib.suppress(*ENGINE_ERRORS, KeyError, TypeError):
            state = self._client.inspect_container(self._container)["State"]
            used["oom_killed"] = bool(state.get("OOMKilled"))
        if self._disk is not None and self._disk.size:
            used["disk_bytes"] = self._disk.size
        return {**self._facts, "used": used}

    def destroy(self) -> None:
        """Remove container, keeper and their volume. Never raises; may be called twice."""
        if self._destroyed:
            return
        self._destroyed = True
        if self._disk is not None:
            self._disk.stop()
        keeper = {"client": None, "container": self._keeper, "version": self._client.api_version}
        other = threading.Thread(target=remove, kwargs=keeper, name="referee-destroy")
        other.start()
        remove(self._client, self._container)
        other.join()
        with contextlib.suppress(*ENGINE_ERRORS):
            self._client.close()


def _how_quiet(state: Mapping[str, Any], left: Collection[int], *, searched: bool) -> str:
    """The confirmation in words, or what stands against it."""
    if left:
        return f"the engine reports the machine as ended, and {len(left)} processes of it live on this host"
    if state["Running"] or state.get("Paused") or state.get("Pid", 0):
        return f"the engine still reports the machine as {state.get('Status', 'running')}"
    said = "the machine's process namespace was killed through its init and the engine confirms that it is empty"
    return f"{said}; no process of its control group was found on this host afterwards" if searched else said


def _state_of_trouble(state: Mapping[str, Any]) -> str | None:
    """A machine that still runs is sound: what was killed for memory inside is for the project to work through."""
    if state["Running"]:
        return None
    if state.get("OOMKilled"):
        return "memory"
    return f"the machine stopped by itself with status {state.get('ExitCode')}"


def remove(client: Any, container: str, *, tries: int = 20, version: str = "auto") -> bool:
    """Remove a container with its anonymous volumes, running or not; True when it is gone. Never raises.

    ``client`` None: over a connection of its own, for a thread beside another, by the interface's ``version``.
    """
    own = None
    for attempt in range(tries):
        try:
            if client is None:
                client = own = connect(version=version)
            client.remove_container(container, force=True, v=True)
        except NotFound:
            break
        except (*ENGINE_ERRORS, RefereeError):
            time.sleep(0.05 * (attempt + 1))  # another removal is under way, or the engine is busy
            continue
        break
    else:
        return False
    if own is not None:
        with contextlib.suppress(*ENGINE_ERRORS):
            own.close()
    return True


def _usage(client: Any, container: str) -> dict[str, object]:
    """Peak memory, CPU seconds and tasks (processes and threads), from one reading of the engine's counters.

    Not from a listing: under a fork bomb the host's ``ps`` takes minutes, and so long the bomb would live on. Empty
    where the engine does not tell.
    """
    url = client._url("/containers/{0}/stats", container)  # noqa: SLF001 — the SDK waits for two readings
    try:
        answer: dict[str, Any] = client.get(url, params={"stream": "false", "one-shot": "true"}, timeout=5).json()
        memory = answer.get("memory_stats", {})
        found = {
            "memory_peak_bytes": memory.get("max_usage") or memory.get("usage"),
            "cpu_seconds": answer.get("cpu_stats", {}).get("cpu_usage", {}).get("total_usage", 0) / 1e9,
            "processes": answer.get("pids_stats", {}).get("current"),
        }
    except (*ENGINE_ERRORS, AttributeError, TypeError, ValueError):
        return {}
    return {name: value for name, value in found.items() if value is not None}


def _whole(value: object) -> int:
    return value if isinstance(value, int) else 0


def _only_file(response: Response, path: str, max_bytes: int) -> bytes:
    """The one regular file of an engine's archive; it may have changed since its header was made."""
    archive = bytearray()
    for piece in response.iter_content(65536):
        archive += piece
        if len(archive) > max_bytes + 65536:
            break
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        member = tar.next()
        if member is None or not member.isreg():
            raise ReportRejected(f"{path} is no regular file")
        if member.size > max_bytes:
            raise ReportRejected(f"{path} has {member.size} bytes, more than {max_bytes}")
        data = tar.extractfile(member)
        if data is None:
            raise MachineFault(f"{path} could not be read from the engine's archive")
        return data.read()
