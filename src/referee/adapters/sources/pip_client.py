"""Run by a Python that has pip: find a project's files and download one of them with pip's own session and finder.

``pip download`` prepares metadata, which for a source distribution means running the project's build code on
this host. This asks pip for no more than the file: its configuration, indexes, mirrors, proxies, certificates and
credentials apply, nothing is built, no dependency is followed and no constraint file is read.

Usage: ``python pip_client.py RESULT list|get PROJECT FILE DIRECTORY [pip options]``. RESULT is a file to which one
JSON object is written: ``files`` (list) or ``file`` (get), and ``troubles`` (what stood in the way).
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

#: The interpreter of the published environment: CPython 3.11 on glibc 2.36, x86-64 (newest tag first).
PLATFORMS = (
    *(f"manylinux_2_{minor}_x86_64" for minor in range(36, 4, -1)),
    *("manylinux2014_x86_64", "manylinux2010_x86_64", "manylinux1_x86_64", "linux_x86_64"),
)

#: Statuses that say nothing about whether the project exists.
_NO_ANSWER = frozenset({401, 403, 407, 429})
_SERVER_FAULT = 500


def target_options() -> list[str]:
    """Pip options that name the machine's interpreter instead of this host's."""
    options = ["--python-version", "3.11", "--implementation", "cp", "--abi", "cp311"]
    return options + [option for platform in PLATFORMS for option in ("--platform", platform)]


def _watch(session: Any, troubles: list[str]) -> None:
    # The finder logs an index that does not answer and goes on; here that must not look like an empty index.
    request = session.request

    def watched(*args: Any, **kwargs: Any) -> Any:
        try:
            response = request(*args, **kwargs)
        except Exception as exc:
            troubles.append(f"{type(exc).__name__}")
            raise
        if response.status_code in _NO_ANSWER or response.status_code >= _SERVER_FAULT:
            troubles.append(f"HTTP status {response.status_code}")
        return response

    session.request = watched


def _download(session: Any, link: Any, directory: Path, troubles: list[str]) -> str | None:
    # Bytes as they are on the server: a transport encoding must not change what the digest is taken of.
    headers = {"Accept-Encoding": "identity"}
    try:
        response = session.get(link.url.split("#", 1)[0], headers=headers, stream=True)
        response.raise_for_status()
        path = directory / link.filename
        with path.open("xb") as file:
            for chunk in response.raw.stream(1 << 20, decode_content=False):
                file.write(chunk)
    except Exception as exc:  # noqa: BLE001 — whatever pip's transport raises, the caller hears that there is no file
        troubles.append(f"{type(exc).__name__}")
        return None
    return str(path)


def _describe(candidate: Any) -> dict[str, object]:
    link = candidate.link
    return {
        "filename": unquote(Path(urlsplit(link.url).path).name),
        "version": str(candidate.version),
        "yanked": link.is_yanked,
        "requires_python": link.requires_python,
    }


def _command(result: Path, mode: str, project: str, wanted: str, directory: Path) -> Any:
    download: Any = importlib.import_module("pip._internal.commands.download")
    cmdoptions: Any = importlib.import_module("pip._internal.cli.cmdoptions")

    class Fetch(download.DownloadCommand):  # type: ignore[misc] # pip's class is known only at run time
        def run(self, options: Any, _args: list[str]) -> int:
            troubles: list[str] = []
            session = self.get_default_session(options)
            _watch(session, troubles)
            finder = self._build_package_finder(
                options=options,
                session=session,
                target_python=cmdoptions.make_target_python(options),
                ignore_requires_python=mode == "get",
            )
            candidates = finder.find_all_candidates(project)
            answer: dict[str, object] = {"troubles": troubles}
            if mode == "list":
                answer["files"] = [_describe(candidate) for candidate in candidates]
            else:
                links = [one.link for one in candidates if _describe(one)["filename"] == wanted]
                answer["found"] = bool(links)
                answer["file"] = _download(session, links[0], directory, troubles) if links else None
            result.write_text(json.dumps(answer), encoding="utf-8")
            return 0

    # The name makes pip read the [download] section of its configuration.
    return Fetch("download", "fetch one file")


def main(argv: list[str]) -> int:
    """Parse the usage line of this file's docstring and do it; pip's own exit status."""
    # Started as a file, its own directory would stand first among those that pip's imports are looked for in.
    here = Path(__file__).resolve().parent
    sys.path[:] = [entry for entry in sys.path if Path(entry).resolve() != here]
    result, mode, project, wanted, directory, *options = argv
    command = _command(Path(result), mode, project, wanted, Path(directory))
    status: int = command.main(["--quiet", *options])
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
