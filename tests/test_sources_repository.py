"""Repositories: one commit over real git transports, local trees by a digest that is written down."""

from __future__ import annotations

import functools
import hashlib
import http.server
import os
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from referee.adapters.sources import tree
from referee.adapters.sources.repository import RepositorySource
from referee.errors import DigestMismatch, SourceUnreachable, UsageError

POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:" + "0" * 64 + "\nsize 123\n"


def git(*arguments: str, cwd: Path) -> str:
    identity = {
        "GIT_AUTHOR_NAME": "a",
        "GIT_AUTHOR_EMAIL": "a@b",
        "GIT_COMMITTER_NAME": "a",
        "GIT_COMMITTER_EMAIL": "a@b",
    }
    done = subprocess.run(
        ["git", "-c", "protocol.file.allow=always", "-c", "init.defaultBranch=main", *arguments],
        cwd=cwd,
        env={**os.environ, **identity},
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout.strip()


class Origin:
    """A bare repository with three commits; the second is the pinned one and no branch or tag names it."""

    def __init__(self, root: Path) -> None:
        work, library = root / "work", root / "library"
        self.bare = root / "served" / "origin.git"
        for directory in (work, library):
            directory.mkdir(parents=True)
            git("init", "-q", cwd=directory)
        (library / "lib.txt").write_text("lib\n")
        git("add", ".", cwd=library)
        git("commit", "-qm", "library", cwd=library)
        self.commits = []
        for number in (1, 2, 3):
            (work / "README.md").write_text(f"# version {number}\n")
            if number == 2:
                (work / "main.py").write_text("print('hello')\n")
                (work / "data.bin").write_text(POINTER)
                (work / "run").write_text("#!/bin/sh\n")
                (work / "run").chmod(0o755)
                git("submodule", "add", "-q", library.as_uri(), "third_party/library", cwd=work)
            git("add", ".", cwd=work)
            git("commit", "-qm", f"commit {number}", cwd=work)
            self.commits.append(git("rev-parse", "HEAD", cwd=work))
        git("tag", "v3", cwd=work)
        self.library_commit = git("rev-parse", "HEAD", cwd=library)
        self.bare.parent.mkdir()
        git("clone", "-q", "--bare", str(work), str(self.bare), cwd=root)
        git("update-server-info", cwd=self.bare)


@pytest.fixture(scope="module")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Origin:
    return Origin(tmp_path_factory.mktemp("origin"))


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def daemon(origin: Origin) -> Iterator[str]:
    port = free_port()
    process = subprocess.Popen(
        [
            *("git", "daemon", "--export-all", "--reuseaddr", "--listen=127.0.0.1", f"--port={port}"),
            *(f"--base-path={origin.bare.parent}", str(origin.bare.parent)),
        ],
        start_new_session=True,
        stderr=subprocess.DEVNULL,
    )
    try:
        for _ in range(200):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        yield f"git://127.0.0.1:{port}/origin.git"
    finally:
        os.killpg(process.pid, 15)
        process.wait()


@pytest.fixture
def dumb_http(origin: Origin, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A server of plain files: it can give neither one commit by name nor a shallow history."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    handler = functools.partial(QuietFiles, directory=str(origin.bare.parent))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/origin.git"
        server.shutdown()


class QuietFiles(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 — the base class names it so
        pass


def check_placed(origin: Origin, url: str, cache: Path) -> None:
    commit = origin.commits[1]
    placement = RepositorySource(cache).fetch({"name": "thing", "url": url, "commit": commit})
    project = placement.root / "project"
    assert (project / "README.md").read_text() == "# version 2\n"
    assert git("rev-parse", "HEAD", cwd=project) == commit
    assert git("rev-list", "--all", "HEAD", cwd=project) == commit
    assert git("for-each-ref", cwd=project) == ""
    assert git("status", "--porcelain", cwd=project) == ""
    assert git("remote", "get-url", "origin", cwd=project) == url
    with pytest.raises(subprocess.CalledProcessError):
        git("cat-file", "-e", origin.commits[0], cwd=project)
    facts = placement.facts
    library = {"path": "third_party/library", "commit": origin.library_commit}
    assert facts["submodules"] == [library | {"url": (origin.bare.parents[1] / "library").as_uri()}]
    assert list((project / "third_party/library").iterdir()) == []
    assert facts["lfs_pointers"] == ["data.bin"]
    assert facts["languages"] == ["Python"]
    assert facts["readme"] == "/work/project/README.md"
    assert placement.size_bytes == sum(
        path.stat().st_size for path in project.rglob("*") if path.is_file() and ".git" not in path.parts
    )


def test_one_commit_from_a_file_url(origin: Origin, tmp_path: Path) -> None:
    check_placed(origin, origin.bare.as_uri(), tmp_path)


def test_one_commit_from_a_git_daemon(origin: Origin, daemon: str, tmp_path: Path) -> None:
    check_placed(origin, daemon, tmp_path)


def test_one_commit_from_a_server_that_refuses_to_give_one(origin: Origin, dumb_http: str, tmp_path: Path) -> None:
    check_placed(origin, dumb_http, tmp_path)


def test_a_new_pin_is_the_default_branch_now_and_carries_the_trees_digest(origin: Origin, tmp_path: Path) -> None:
    source = RepositorySource(tmp_path)
    pin = source.resolve(origin.bare.as_uri())
    assert pin["commit"] == origin.commits[2]
    source.fetch(pin)
    with pytest.raises(DigestMismatch, match="f" * 64):
        source.fetch(pin | {"sha256": "f" * 64})


def test_hooks_and_settings_of_the_user_are_not_used(
    origin: Origin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hooks, marker, home = tmp_path / "hooks", tmp_path / "ran", tmp_path / "home"
    for directory in (hooks, home):
        directory.mkdir()
    (hooks / "post-checkout").write_text(f"#!/bin/sh\ntouch {marker}\n")
    (hooks / "post-checkout").chmod(0o755)
    (home / ".gitconfig").write_text(f"[core]\n\thooksPath = {hooks}\n")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "nowhere"))
    pin = {"name": "x", "url": origin.bare.as_uri(), "commit": origin.commits[0]}
    RepositorySource(tmp_path / "cache").fetch(pin)
    assert not marker.exists()


@pytest.mark.parametrize("scheme", ["git", "http"])
def test_a_host_that_does_not_answer_is_said_in_one_sentence(scheme: str, tmp_path: Path) -> None:
    url = f"{scheme}://127.0.0.1:{free_port()}/x.git"
    with pytest.raises(SourceUnreachable, match="could not be fetched") as caught:
        RepositorySource(tmp_path).fetch({"name": "x", "url": url, "commit": "a" * 40})
    assert "\n" not in caught.value.message
    assert url in caught.value.message
    assert caught.value.exit_code == 4
    assert list((tmp_path / "repository").iterdir()) == []


def test_a_commit_that_is_not_there_is_said_to_be_missing(origin: Origin, tmp_path: Path) -> None:
    pin = {"name": "x", "url": origin.bare.as_uri(), "commit": "a" * 40}
    with pytest.raises(SourceUnreachable, match="has no commit aaaa"):
        RepositorySource(tmp_path).fetch(pin)


@pytest.mark.parametrize("url", ["ext::sh -c 'touch /tmp/evil'", "--upload-pack=evil", "host:path", "https://a b"])
def test_what_is_no_url_is_refused(url: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        RepositorySource(tmp_path).fetch({"name": "x", "url": url, "commit": "a" * 40})


@pytest.mark.parametrize(
    "url",
    ["https://user:hush@host/x.git", "https://hush@host/x.git", "http://:hush@host/x", "ssh://git:hush@host/x.git"],
)
def test_credentials_in_a_url_are_refused_and_not_repeated(url: str, origin: Origin, tmp_path: Path) -> None:
    source = RepositorySource(tmp_path)
    pin = {"name": "x", "url": origin.bare.as_uri(), "commit": origin.commits[1]}
    source.fetch(pin)
    with pytest.raises(UsageError, match="holds a user name or password") as caught:
        source.resolve(url)
    assert "hush" not in caught.value.message + caught.value.todo
    with pytest.raises(UsageError, match="holds a user name or password"):
        source.fetch({**pin, "url": url})  # its commit is in the cache


def test_the_user_of_an_ssh_url_is_no_secret(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        with pytest.raises(SourceUnreachable):
            RepositorySource(tmp_path).resolve(f"ssh://git@127.0.0.1:{free.getsockname()[1]}/x.git")


def test_a_cached_copy_that_changed_is_fetched_again(origin: Origin, tmp_path: Path) -> None:
    pin = {"name": "x", "url": origin.bare.as_uri(), "commit": origin.commits[1]}
    first = RepositorySource(tmp_path).fetch(pin)
    readme = first.root / "project" / "README.md"
    readme.write_text("tampered\n")
    (first.root / "project" / ".git" / "config").write_text("[core]\n\tpager = evil\n")
    again = RepositorySource(tmp_path).fetch(pin)
    assert (again.root / "project" / "README.md").read_text() == "# version 2\n"
    assert "evil" not in (again.root / "project" / ".git" / "config").read_text()


def test_many_may_fetch_into_one_cache_at_once(origin: Origin, tmp_path: Path) -> None:
    pin = {"name": "x", "url": origin.bare.as_uri(), "commit": origin.commits[1]}
    with ThreadPoolExecutor(6) as workers:
        roots = list(workers.map(lambda _: RepositorySource(tmp_path).fetch(pin).root, range(6)))
    assert len(set(roots)) == 1
    assert [path.name for path in (tmp_path / "repository").iterdir()] == [origin.commits[1]]


def test_what_a_killed_fetch_left_is_swept_after_a_day(origin: Origin, tmp_path: Path) -> None:
    cache = tmp_path / "repository"
    for name, age in ((".incoming-old", 90_000), (".scratch-old", 90_000), (".incoming-new", 60)):
        (cache / name / "work").mkdir(parents=True)
        os.utime(cache / name, (time.time() - age, time.time() - age))
    RepositorySource(tmp_path).fetch({"name": "x", "url": origin.bare.as_uri(), "commit": origin.commits[0]})
    assert sorted(path.name for path in cache.iterdir()) == sorted([".incoming-new", origin.commits[0]])


def make_tree(root: Path) -> Path:
    (root / "src").mkdir(parents=True)
    (root / "README.rst").write_text("thing\n")
    (root / "src" / "a.c").write_text("int main(void){return 0;}\n")
    (root / "run").write_text("#!/bin/sh\n")
    (root / "run").chmod(0o755)
    (root / "link").symlink_to("src/a.c")
    return root


def test_the_digest_of_a_tree_is_as_written_down(tmp_path: Path) -> None:
    root = make_tree(tmp_path / "tree")

    def line(kind: str, content: bytes, path: str) -> bytes:
        return f"{kind} {hashlib.sha256(content).hexdigest()} {path}\0".encode()

    expected = hashlib.sha256(
        b"referee/tree/1\n"
        + line("file", b"thing\n", "README.rst")
        + line("link", b"src/a.c", "link")
        + line("exec", b"#!/bin/sh\n", "run")
        + line("file", b"int main(void){return 0;}\n", "src/a.c")
    )
    assert tree.tree_sha256(root) == expected.hexdigest()


def test_the_digest_of_a_tree_sees_what_matters_and_no_more(tmp_path: Path) -> None:
    root = make_tree(tmp_path / "tree")
    before = tree.tree_sha256(root)
    (root / "empty").mkdir()
    (root / ".git").mkdir()
    (root / ".git" / "HEAD").write_text("x")
    (root / "src" / "__pycache__").mkdir()
    (root / "src" / "__pycache__" / "a.pyc").write_text("x")
    os.utime(root / "run", (0, 0))
    assert tree.tree_sha256(root) == before
    seen = {before}
    (root / "run").chmod(0o644)
    seen.add(tree.tree_sha256(root))
    (root / "link").unlink()
    (root / "link").symlink_to("run")
    seen.add(tree.tree_sha256(root))
    (root / "src" / "a.c").rename(root / "src" / "b.c")
    seen.add(tree.tree_sha256(root))
    assert len(seen) == 4


def test_a_local_tree_is_copied_without_its_history(tmp_path: Path) -> None:
    root = make_tree(tmp_path / "tree")
    (root / ".gitmodules").write_text('[submodule "x"]\n\tpath = third/x\n\turl = ../x.git\n')
    git("init", "-q", cwd=root)
    source = RepositorySource(tmp_path / "cache")
    placement = source.fetch({"name": "thing", **source.resolve_path(root)})
    project = placement.root / "project"
    assert not (project / ".git").exists()
    assert (project / "third" / "x").is_dir()
    assert placement.facts["submodules"] == [{"path": "third/x", "url": "../x.git"}]
    assert (project / "run").stat().st_mode & 0o777 == 0o755
    assert (project / "link").readlink() == Path("src/a.c")


def test_a_submodule_path_cannot_leave_the_project(tmp_path: Path) -> None:
    root = tmp_path / "tree"
    root.mkdir()
    (root / ".gitmodules").write_text(
        '[submodule "x"]\n\tpath = ../../../evil\n[submodule "y"]\n\tpath = link/evil\n'
        '[submodule "z"]\n\tpath = /evil\n'
    )
    (root / "link").symlink_to(tmp_path)
    source = RepositorySource(tmp_path / "cache")
    with pytest.raises(UsageError, match="leaves the project through a link"):
        source.fetch({"name": "thing", **source.resolve_path(root)})
    assert not (tmp_path / "evil").exists()


def test_a_tree_that_changed_since_it_was_pinned_is_refused(tmp_path: Path) -> None:
    root = make_tree(tmp_path / "tree")
    source = RepositorySource(tmp_path / "cache")
    pin = {"name": "thing", **source.resolve_path(root)}
    source.fetch(pin)
    (root / "README.rst").write_text("other\n")
    with pytest.raises(DigestMismatch) as caught:
        source.fetch(pin)
    assert str(pin["sha256"]) in caught.value.message
    assert tree.tree_sha256(root) in caught.value.message
    shutil.rmtree(root)
    with pytest.raises(SourceUnreachable, match="does not exist"):
        source.fetch(pin)


def test_a_device_in_a_tree_is_refused(tmp_path: Path) -> None:
    root = make_tree(tmp_path / "tree")
    os.mkfifo(root / "pipe")
    with pytest.raises(UsageError, match="neither a file, a link nor a directory"):
        RepositorySource(tmp_path / "cache").resolve_path(root)
