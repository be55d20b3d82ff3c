"""git, as a client for one commit: no history, no hooks, no settings of this host's user, no prompt."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from referee.adapters.sources.programs import Outcome, run
from referee.errors import DigestMismatch, NothingMatched, SourceUnreachable, UsageError

_COMMIT = re.compile(r"[0-9a-f]{40}")
_URL = re.compile(r"(https|http|ssh|git|file)://[^\s\x00-\x1f]+")

# Proxies and CA bundles come from the environment, which stays; the user's and the system's configuration,
# which may hold hooks, filters and aliases, does not.
_ENVIRONMENT = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "true",
    "GIT_ALLOW_PROTOCOL": "https:http:ssh:git:file",
    "GIT_LFS_SKIP_SMUDGE": "1",
    "LC_ALL": "C",
}
# Set where the referee itself is started by a hook of some repository.
_OF_ANOTHER_REPOSITORY = (
    *("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES"),
    *("GIT_CONFIG_PARAMETERS", "GIT_CONFIG_COUNT", "GIT_NAMESPACE", "GIT_CEILING_DIRECTORIES", "GIT_TEMPLATE_DIR"),
)
_SETTINGS = ("core.hooksPath=/dev/null", "core.fsmonitor=false", "core.logAllRefUpdates=false", "gc.auto=0")
_SETTINGS_MORE = ("core.autocrlf=false", "core.symlinks=true", "init.defaultBranch=main", "advice.detachedHead=false")


def git(arguments: list[str], cwd: Path) -> Outcome:
    """Run one git command in ``cwd`` with nothing of the host's configuration."""
    ssh = {"GIT_SSH_COMMAND": os.environ.get("GIT_SSH_COMMAND", "ssh -o BatchMode=yes")}
    settings = [part for setting in (*_SETTINGS, *_SETTINGS_MORE) for part in ("-c", setting)]
    return run(["git", *settings, *arguments], cwd=cwd, environment=_ENVIRONMENT | ssh, without=_OF_ANOTHER_REPOSITORY)


def checked_url(url: str) -> str:
    """The URL as it is.

    Raises:
        UsageError: it is none that a subject may be fetched from, or it carries credentials: it will stand in the
            subject's file, in records, in the mission and in the machine's ``.git/config``.
    """
    if not _URL.fullmatch(url):
        raise UsageError(f"{url!r} is no https, http, ssh, git or file URL")
    authority = url.partition("://")[2].partition("/")[0]
    user, at, _ = authority.rpartition("@")
    if at and (":" in user or not url.startswith("ssh:")):
        raise UsageError(
            "the URL holds a user name or password, which would stand in the records and in the machine",
            todo="name the repository without credentials, or pin a local copy by its path",
        )
    return url


def head_commit(url: str, scratch: Path) -> str:
    """The commit that the default branch stands at.

    Raises:
        SourceUnreachable: the host does not answer or the repository is not there.
        NothingMatched: the repository is empty.
    """
    outcome = git(["ls-remote", "--", checked_url(url), "HEAD"], scratch)
    if outcome.status != 0:
        raise _unreachable(url, outcome)
    commit = outcome.stdout.split()[0] if outcome.stdout.split() else ""
    if not _COMMIT.fullmatch(commit):
        raise NothingMatched(f"the repository {url} has no commit")
    return commit


def fetch_commit(url: str, commit: str, into: Path) -> None:
    """Check the commit out at ``into``, with a ``.git`` that holds this one commit and nothing before it.

    Asks for the commit by its name; where the server refuses that, fetches its branches and tags aside and takes
    the one commit from there.

    Raises:
        SourceUnreachable: the host does not answer, or has no such commit.
        DigestMismatch: what was checked out is not that commit.
    """
    if not _COMMIT.fullmatch(commit):
        raise UsageError(f"{commit!r} is no commit: 40 hexadecimal digits in lower case")
    into.mkdir(exist_ok=True)
    _must(git(["init", "--quiet", "--template="], into), url)
    fetch = ["fetch", "--quiet", "--depth", "1", "--no-tags", "--no-recurse-submodules"]
    outcome = git([*fetch, "--", checked_url(url), commit], into)
    if outcome.status != 0:
        if not _refused(outcome):
            raise _unreachable(url, outcome)
        _fetch_from_aside(url, commit, into, fetch)
    _must(git(["checkout", "--quiet", "--detach", commit], into), url)
    head = git(["rev-parse", "HEAD"], into).stdout.strip()
    if head != commit:
        raise DigestMismatch(f"{url} gave the commit {head or 'none'}, pinned is {commit}")
    _must(git(["remote", "add", "--no-tags", "origin", url], into), url)
    (into / ".git" / "FETCH_HEAD").unlink(missing_ok=True)


def _fetch_from_aside(url: str, commit: str, into: Path, fetch: list[str]) -> None:
    aside = into / ".git" / "aside"
    aside.mkdir()
    _must(git(["init", "--quiet", "--bare", "--template="], aside), url)
    refs = ["+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*"]
    _must(git(["fetch", "--quiet", "--no-recurse-submodules", "--", url, *refs], aside), url)
    if git(["cat-file", "-e", f"{commit}^{{commit}}"], aside).status != 0:
        raise SourceUnreachable(f"the repository {url} has no commit {commit}")
    _must(git(["config", "uploadpack.allowAnySHA1InWant", "true"], aside), url)
    _must(git([*fetch, "--", aside.as_uri(), commit], into), url)
    shutil.rmtree(aside)


def gitlinks(tree: Path) -> dict[str, str]:
    """The commits at which submodules are pinned, by path."""
    outcome = git(["ls-tree", "-r", "-z", "HEAD"], tree)
    links: dict[str, str] = {}
    for entry in outcome.stdout.split("\0"):
        head, _, path = entry.partition("\t")
        if head.startswith("160000 "):
            links[path] = head.split()[2]
    return links


def _refused(outcome: Outcome) -> bool:
    said = outcome.stderr.lower()
    refusals = ("not our ref", "unadvertised object", "couldn't find remote ref", "does not support shallow")
    return any(refusal in said for refusal in refusals)


def _must(outcome: Outcome, url: str) -> None:
    if outcome.status != 0:
        raise _unreachable(url, outcome)


def _unreachable(url: str, outcome: Outcome) -> SourceUnreachable:
    said = [line for line in outcome.stderr.splitlines() if line.startswith(("fatal:", "error:"))]
    reason = said[0].split(":", 1)[1].strip() if said else outcome.last_words()
    return SourceUnreachable(
        f"the repository {url} could not be fetched: {reason[:300]}",
        todo="check the URL and the network, then try again",
    )
