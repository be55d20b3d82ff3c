"""What one simple command of a verification is worth: does it work, say, ask, probe, show, or set up?

``works`` is the default: only what is known to prove nothing is anything else.
"""

from __future__ import annotations

import re
from itertools import pairwise

from referee.scoring.shell_words import LAST_STATUS, UNKNOWN, Step, bare
from referee.scoring.snippets import node_role, one_liner_role, python_role

_SAYS = {
    *("expr", "bc", "dc", "let", "factor", "cal"),
    *("echo", "printf", "true", ":", "sleep", "date", "pwd", "whoami", "id", "uname", "hostname", "env", "printenv"),
    *(
        "seq",
        "yes",
        "rm",
        "clear",
        "history",
        "banner",
        "figlet",
        "alias",
        "shopt",
        "ulimit",
        "umask",
        "trap",
        "logger",
    ),
}
_SETS_UP = {
    *("cd", "export", "set", "unset", "source", ".", "mkdir", "touch", "kill", "pkill", "killall", "wait", "disown"),
    *("chmod", "chown", "cp", "mv", "ln", "pushd", "popd", "read", "local", "declare", "typeset", "readonly", "shift"),
    *(
        "apt",
        "apt-get",
        "apk",
        "dnf",
        "yum",
        "deactivate",
        "nvm",
        "hash",
        "jobs",
        "fg",
        "bg",
        "tee",
        "break",
        "continue",
    ),
}
_PROBES = {
    *("ls", "stat", "file", "find", "du", "df", "test", "[", "[[", "which", "type", "whereis", "readlink", "realpath"),
    *("ffprobe", "mediainfo", "exiftool", "identify", "pgrep", "ps", "pidof", "ss", "netstat", "lsof", "tree", "dpkg"),
    *("ldconfig", "dpkg-query", "systemctl", "service", "command", "basename", "dirname", "nm", "ldd", "rpm"),
}
_SHOWS = {
    *("cat", "head", "tail", "less", "more", "grep", "egrep", "fgrep", "rg", "wc", "sort", "uniq", "cut", "tr", "sed"),
    *("awk", "gawk", "mawk", "jq", "xxd", "od", "hexdump", "strings", "tac", "nl", "column", "fold", "bat", "rev"),
    *("diff", "cmp", "md5sum", "sha1sum", "sha256sum", "sha512sum", "cksum", "base64"),
}
_INSTALLERS = {
    "pip": {"install", "download"},
    "pip3": {"install", "download"},
    "npm": {"install", "i", "ci", "add"},
    "pnpm": {"install", "i", "add"},
    "yarn": {"install", "add"},
    "gem": {"install"},
    "bundle": {"install"},
    "composer": {"install", "require"},
    "cargo": {"fetch", "add", "install"},
}
_LISTERS = {
    "pip": {"show", "list", "freeze", "check", "index"},
    "pip3": {"show", "list", "freeze", "check", "index"},
    "npm": {"ls", "list", "ll", "view", "info", "outdated"},
    "pnpm": {"ls", "list", "why"},
    "yarn": {"list", "why", "info"},
    "gem": {"list", "specification"},
    "git": {"status", "log", "show", "rev-parse", "describe", "diff"},
}
_ASKS_ANYWHERE = {"--version", "--help", "-version", "--usage"}
_ASKS_ALONE = {*_ASKS_ANYWHERE, "-V", "-v", "-h", "-?", "version", "help", "/?", "-help"}
_NODE_PRINTS = {"-p", "-pe", "--print"}
_ZERO = {"0", "00"}
#: Short options of curl that a value follows, glued on or not.
_CURL_VALUES = "AbcCdDeEFhHKmoPQrtTuUwxXyYz"
_ONE_LINERS = {"perl", "ruby", "php", "lua", "luajit", "raku"}
_FIXED = {
    **dict.fromkeys(_SAYS, "says"),
    **dict.fromkeys(_SETS_UP, "setup"),
    **dict.fromkeys(_PROBES, "probes"),
    **dict.fromkeys(_SHOWS, "shows"),
    "false": "fails",
}


def role(step: Step) -> str:
    """The role of one step.

    ``works``: its failure tells something. ``says``: it cannot fail. ``asks``: for help or a version. ``probes``:
    whether something is there. ``shows``: what a file holds. ``setup``: makes ready. ``fails``: always fails.
    ``keeps``: hands on the exit status before it. ``hides``: works, and swallows its own failure.
    """
    words = bare(step.words)
    if not words:
        return "setup"
    name = words[0].rsplit("/", 1)[-1]
    fixed = _FIXED.get(name)
    if fixed is not None:
        return "says" if words == ("cat",) and step.stdin is not None else fixed
    if name in {"exit", "return"}:
        return _exit_role(words)
    if _asks(words):
        return "asks"
    found = _program(name, words, step.stdin)
    # A program of its own may rightly catch what fails in a corner of it.
    return "works" if step.scripted and found == "hides" else found


def role_later(step: Step) -> str:
    """The role of one step, with what is known since harnesses observe beside the re-run: what asks a service for no
    more than its headers probes, however that is spelt.
    """
    found = role(step)
    return "probes" if found == "works" and _headers_only(bare(step.words)) else found


def _headers_only(words: tuple[str, ...]) -> bool:
    name = words[0].rsplit("/", 1)[-1]
    if name == "wget":
        return "--spider" in words
    if name != "curl":
        return False
    named = next((value for option, value in pairwise(words) if option in {"-X", "--request"}), "")
    clusters = (re.match(rf"-[^-{_CURL_VALUES}]*", word) for word in words[1:] if not word.startswith("--"))
    return named == "HEAD" or "-XHEAD" in words or any(one is not None and "I" in one[0] for one in clusters)


#: Programs that fetch what they run, and the words that make others do it.
_FETCHERS = {"npx", "bunx", "uvx", "pipx", "git", "docker", "podman", "curl", "wget", "apt", "apt-get", "apk", "brew"}
_FETCHING = {"dlx", "exec", "create", "init", "tool", "x", "run", "go"}


def fetches(step: Step) -> bool:
    """Whether a step may fetch a program or a project: an installer, a launcher that downloads, a clone."""
    words = bare(step.words)
    if not words:
        return False
    name = words[0].rsplit("/", 1)[-1]
    if name.startswith("python") and words[1:2] == ("-m",) and len(words) > 2:  # noqa: PLR2004 — -m and a module
        name, words = words[2], words[2:]
    actions = [word for word in words[1:] if not word.startswith("-")][:2]
    installers = _INSTALLERS.get(name, set())
    if name in _FETCHERS or any(action in installers for action in actions):
        return True
    return name in {"npm", "pnpm", "yarn", "uv", "bun", "go", "deno", "cargo"} and bool(_FETCHING & set(actions))


def _program(name: str, words: tuple[str, ...], stdin: str | None) -> str:
    if name.startswith(("python", "pypy")):
        return _python(words, stdin)
    if name in {"node", "nodejs", "bun", "deno"}:
        return _node(words)
    if name in _ONE_LINERS:
        return next((one_liner_role(code) for flag, code in pairwise(words) if flag in {"-e", "-r", "-E"}), "works")
    return _tool(name, words)


def _exit_role(words: tuple[str, ...]) -> str:
    if len(words) == 1 or words[1] == LAST_STATUS:
        return "keeps"
    if UNKNOWN in words[1]:
        return "setup"  # a status that was put by: its own, and most likely that of what works
    return "says" if words[1] in _ZERO else "fails"


def _asks(words: tuple[str, ...]) -> bool:
    rest = words[1:]
    if rest[:1] == ("-m",):
        rest = rest[2:]
    if len(rest) == 1:
        return rest[0] in _ASKS_ALONE
    return bool(rest) and (rest[0] in _ASKS_ANYWHERE or rest[-1] in _ASKS_ANYWHERE)


def _python(words: tuple[str, ...], stdin: str | None) -> str:
    code: str | None = None
    for index, word in enumerate(words[1:], start=1):
        if word == "-m":
            return _tool(words[index + 1], words[index + 1 :]) if index + 1 < len(words) else "works"
        if word.startswith("-") and not word.startswith("--") and word.endswith("c") and word != "-":
            code = words[index + 1] if index + 1 < len(words) else None
            break
        if not word.startswith("-"):
            return "works"
    else:
        code = stdin
    return "works" if code is None else python_role(code)


def _node(words: tuple[str, ...]) -> str:
    for flag in ("-e", "-p", "-pe", "--eval", "--print", "eval"):
        if flag in words[:-1]:
            code = words[words.index(flag) + 1]
            return node_role(f"console.log({code})" if flag in _NODE_PRINTS else code)
    return "works"


def _tool(name: str, words: tuple[str, ...]) -> str:
    action = next((word for word in words[1:] if not word.startswith("-")), "")
    if action in _INSTALLERS.get(name, set()):
        return "setup"
    if action in _LISTERS.get(name, set()):
        return "probes"
    if name in {"pip", "npm"} and not action:
        return "asks"
    if name == "curl":
        return _curl(words)
    if name in {"nc", "ncat", "netcat"} and any(word.startswith("-") and "z" in word for word in words[1:]):
        return "probes"
    return "works"


def _curl(words: tuple[str, ...]) -> str:
    if any(word.lower().startswith("file:") for word in words):
        return "shows"
    return "probes" if "-I" in words or "--head" in words else "works"
