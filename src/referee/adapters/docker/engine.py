"""The way to the engine: a connection, and the few calls for which the SDK has no fitting method."""

from __future__ import annotations

import base64
import io
import json
from dataclasses import dataclass
from typing import Any, BinaryIO

import docker
import requests
from docker.errors import APIError, DockerException, ImageNotFound, NotFound
from docker.utils import kwargs_from_env
from urllib3.exceptions import HTTPError

from referee.errors import EngineUnavailable, MachineFault

#: What the SDK and its transport raise when the engine refuses or does not answer.
ENGINE_ERRORS = (DockerException, requests.exceptions.RequestException, OSError)

START_AN_ENGINE = "start Docker Engine (scripts/engine.sh does it on Debian), or use the overlay sandbox"
JOIN_THE_GROUP = (
    "let the user into the group docker (`sudo usermod -aG docker NAME`, then log in again; its members are as good as "
    "root), or use the overlay sandbox"
)


def connect(*, timeout: int = 60, version: str = "auto") -> docker.APIClient:
    """A client for the engine that ``DOCKER_HOST`` names, by default the local one.

    Args:
        timeout: seconds for each call.
        version: that of the engine's interface, where another client has asked for it: then nothing is asked here.

    Raises:
        EngineUnavailable: no engine answers, or this user may not speak to it.
    """
    try:
        environment = kwargs_from_env()
        return docker.APIClient(version=version, timeout=timeout, **environment)
    except ENGINE_ERRORS as exc:
        if _denied(exc):
            raise EngineUnavailable("the socket of Docker Engine is denied to this user", todo=JOIN_THE_GROUP) from exc
        raise EngineUnavailable("no Docker Engine answers", todo=START_AN_ENGINE) from exc


def _denied(exc: BaseException) -> bool:
    """Whether the system refused the way to the engine: the SDK and its transport wrap that several times."""
    inner = [*exc.args, exc.__cause__, exc.__context__]
    return isinstance(exc, PermissionError) or any(_denied(one) for one in inner if isinstance(one, BaseException))


def fault(exc: BaseException, doing: str) -> MachineFault:
    """One sentence for an engine's refusal."""
    said = exc.explanation if isinstance(exc, APIError) and exc.explanation else str(exc)
    return MachineFault(f"the engine failed while {doing}: {str(said).strip()}")


@dataclass(frozen=True)
class PathFacts:
    """What stands at a path inside a container: its size and Go's file mode bits."""

    size: int
    mode: int

    @property
    def regular(self) -> bool:
        """Whether it is a regular file: no directory, link, pipe, socket, device."""
        irregular = 1 << 31 | 1 << 27 | 1 << 26 | 1 << 25 | 1 << 24 | 1 << 21 | 1 << 19
        return not self.mode & irregular

    @property
    def directory(self) -> bool:
        """Whether it is a directory; a link to one is none."""
        return bool(self.mode & 1 << 31)


class Taken(io.RawIOBase):
    """The bytes of an engine's answer, whose failures are the machine's."""

    def __init__(self, response: requests.Response, path: str) -> None:
        self._raw = response.raw
        self._path = path

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill ``buffer`` as far as something is there.

        Raises:
            MachineFault: the engine's answer broke off.
        """
        try:
            data = self._raw.read(len(buffer))
        except (HTTPError, OSError) as exc:
            raise fault(exc, f"giving out {self._path}") from exc
        buffer[: len(data)] = data
        return len(data)


def open_archive(client: docker.APIClient, container: str, path: str) -> tuple[PathFacts, requests.Response] | None:
    """The facts of ``path`` and a tar stream of it, not yet read; None when nothing stands there.

    The facts come in a header ahead of the stream, so that a huge file can be refused unread.
    """
    raw: Any = client  # get_archive() cannot be closed unread, so the call is made below it
    url = raw._url("/containers/{0}/archive", container)  # noqa: SLF001
    plain = {"Accept-Encoding": "identity"}
    response: requests.Response = raw.get(url, params={"path": path}, headers=plain, stream=True, timeout=raw.timeout)
    try:
        raw._raise_for_status(response)  # noqa: SLF001
    except NotFound:
        response.close()
        return None
    header = json.loads(base64.b64decode(response.headers["x-docker-container-path-stat"]))
    return PathFacts(size=int(header["size"]), mode=int(header["mode"])), response


def put_archive(client: docker.APIClient, container: str, path: str, tar: BinaryIO | bytes) -> None:
    """Unpack a tar stream in a container; every entry belongs to the container's user, here root."""
    raw: Any = client  # put_archive() knows no copyUIDGID, so the call is made below it
    url = raw._url("/containers/{0}/archive", container)  # noqa: SLF001
    with raw.put(url, params={"path": path, "copyUIDGID": "1"}, data=tar, timeout=None) as response:
        raw._raise_for_status(response)  # noqa: SLF001


def inspect_image(client: docker.APIClient, name: str) -> dict[str, Any] | None:
    """What the engine says of an image; None when it holds none of this name."""
    raw: Any = client
    try:
        return dict(raw.inspect_image(name))
    except ImageNotFound:
        return None


def labels_of(inspected: dict[str, Any]) -> dict[str, str]:
    """The labels of an inspected image or container."""
    return dict(inspected.get("Config", {}).get("Labels") or {})
