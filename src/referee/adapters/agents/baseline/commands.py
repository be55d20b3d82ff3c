"""What a documented shell line is for, and whether it can be followed on this machine."""

from __future__ import annotations

import difflib
import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path

from .blocks import VERBS

#: Runs another package manager's or platform's world.
_ELSEWHERE = frozenset(
    """
    brew choco scoop winget conda mamba docker docker-compose podman kubectl helm dnf yum pacman zypper apk emerge
    pkg snap flatpak nix nix-env port systemctl service ssh scp heroku vercel netlify gcloud aws az open xdg-open
    start code vim vi nano emacs less more man top htop watch exit sudoedit deactivate pyenv nvm asdf rbenv
    nix-shell code-insiders bun bunx deno rustup rm bumpver twine gh volta fnm
    """.split()  # noqa: SIM905 — a word list reads better as words
)
_PLACEHOLDER = re.compile(
    r"<[A-Za-z][\w \-./|]*>|\bpath/to\b|/path\b|\bYOUR[_-]?\w*|\byour[-_]\w+|(?<!\./)\.\.\.|…|\[options?\]|\[[A-Z_]+\]|"
    r"(?<!\S)\[-{1,2}[A-Za-z]|"  # the synopsis of a help text: no shell runs a word that begins so
    r"\{\{?\w+\}?\}|~/(?!\.)|\bxxx+\b|\bexample\.(com|org)\b|\buser@|\bhost:",
)
#: What a reader who only wants to see it run does not do.
_NEVER = re.compile(
    r"(?:npm|yarn|pnpm|bun|poetry|cargo|gem|uv|hatch|pdm|flit|lerna|changeset)\s+(?:run\s+)?"
    r"(?:publish|unpublish|login|logout|adduser|owner|deploy\w*|release|version|eject|uninstall|remove|unlink)\b"
)
#: What sets a project up by a tool of its own.
_SETTERS = frozenset(
    {("uv", "sync"), ("uv", "venv"), ("uv", "lock"), ("poetry", "install"), ("poetry", "shell"), ("poetry", "lock"),
     ("pdm", "install"), ("pdm", "sync"), ("pipenv", "shell"), ("pipenv", "sync"), ("rye", "sync"), ("hatch", "env"),
     ("hatch", "shell"), ("npm", "ci"), ("corepack", "enable")}
)  # fmt: skip
_LOCAL = re.compile(
    r"(?:https?://|(?<![\w/@.:])(?=(?:localhost|127\.0\.0\.1):\d))(?:localhost|127\.0\.0\.1|0\.0\.0\.0|\[::1\])"
    r"(?::(\d+))?(/[^\s'\"`)>\]]*)?"
)


@dataclass
class Command:
    """One documented command line.

    ``purpose``: install, own (the subject's program), run, probe (asks a local server), directory, skip.
    """

    line: str
    purpose: str
    order: int
    title: str
    installs: list[str] = field(default_factory=list)
    expected: str = ""


def lines_of(text: str) -> list[tuple[str, str]]:
    """The commands of a shell block with what is shown to come out: (command, output)."""
    raw = text.splitlines()
    prompted = any(re.match(r"\s*(\$|%|❯|➜) \S", line) for line in raw)
    found: list[tuple[str, str]] = []
    current = ""
    for line in raw:
        stripped = line.strip()
        if current:
            current = f"{current}\n{re.sub(r'^> ?', '', stripped) if prompted else line}"
        elif prompted:
            match = re.match(r"\s*(?:\([\w.-]+\) ?)?(?:\$|%|❯|➜) (.*)", line)
            if not match:
                if found:
                    found[-1] = (found[-1][0], found[-1][1] + line + "\n")
                continue
            current = match.group(1)
        elif not stripped or stripped.startswith("#"):
            continue
        else:
            current = re.sub(r"^> (?=\w)", "", stripped)
        if _open(current):
            continue
        found.append((current.strip(), ""))
        current = ""
    return found


def _open(line: str) -> bool:
    if line.rstrip().endswith("\\"):
        return True
    here = re.search(r"<<-?\s*['\"]?(\w+)", line)
    if here:
        return not re.search(rf"^\s*{here.group(1)}\s*$", line, re.MULTILINE)
    try:
        shlex.split(line, comments=True)
    except ValueError:
        return line.count("\n") < 30  # noqa: PLR2004 — an apostrophe in a comment must not swallow a README
    return False


def words_of(line: str) -> list[str]:
    """The words of a line; empty when it is no shell."""
    try:
        return shlex.split(line, comments=True)
    except ValueError:
        return []


def read_command(  # noqa: C901 — one question after the other
    line: str, order: int, title: str, programs: frozenset[str], own: frozenset[str]
) -> Command:
    """Say what a line is for. ``own``: the names under which the subject is installed."""
    line = re.sub(r"^sudo (-\w+ )*", "", re.sub(r"\s+#\s.*$", "", line)).strip()
    line = re.sub(r"(?:\.{0,2}/)?(?:path/to|path|some)/(?:\w+/)*(?=[\w-]+\.\w{1,5}\b)", "", line)
    line = re.sub(r"\bmkdir (?=[\w./])", "mkdir -p ", line)  # our own install may have made it before
    words = words_of(line)
    made = Command(line, "skip", order, title)
    while words and (words[0] == "env" or re.fullmatch(r"[A-Za-z_]\w*=.*", words[0])):
        words = words[1:]
    if not words or (_PLACEHOLDER.search(line) and "git clone" not in line):
        return made
    head = words[0]
    if _NEVER.match(" ".join(words)) or line.endswith(":"):  # what ends so announces something: it is output
        return made
    if tuple(words[:2]) in _SETTERS:
        made.purpose = "install"  # the plan's own steps stand in for it
        return made
    if installs := _installs(words):
        made.purpose, made.installs = "install", [name for name in installs if _plain(name) not in own]
        if installs and not made.installs and any("[" in name for name in installs):
            made.installs = installs
        return made
    rewritten = rewrite(words, programs, own)
    if rewritten:
        made.line = rewritten
        words, head = words_of(rewritten), words_of(rewritten)[0]
    if head in {"curl", "http", "wget"}:
        made.purpose = "probe" if _LOCAL.search(line) or re.search(r"(^|\s):\d{2,5}", line) else "skip"
    elif head == "cd" and len(words) > 1:
        made.purpose = "run" if re.search(r"&&|;", line) else "directory"
    elif runs_one_of(made.line, programs) or (
        head in {"python", "python3", "py"} and "-m" in words[:3] and set(words[1:4]) & own
    ):
        made.purpose = "own"
    elif head in _ELSEWHERE or (head == "git" and words[1:2] != ["init"]):
        made.purpose = "skip"
    elif head in VERBS or head.startswith("./"):
        made.purpose = "run"
    return made


def moves(line: str) -> str:
    """The directory in which a line leaves its shell, relative to where it began; empty for the same place."""
    here = ""
    for part in re.split(r"&&|;|\n", line):
        words = words_of(part)
        if words[:1] == ["cd"] and len(words) == 2 and not words[1].startswith(("/", "~", "$", "-")):  # noqa: PLR2004
            here = f"{here}/{words[1]}".lstrip("/")
    return here if "(" not in line else ""


def misspelt(line: str, place: Path) -> tuple[str, str] | None:
    """A program file that a line names and that is not there, with the one beside it that it must mean."""
    for word in words_of(line):
        path = place / word
        if not re.fullmatch(r"(\./)?[\w./-]+\.(py|js|mjs|cjs|ts|sh|rb|pl|php)", word) or path.exists():
            continue
        beside = sorted(entry.name for entry in path.parent.glob(f"*{path.suffix}")) if path.parent.is_dir() else []
        near = difflib.get_close_matches(path.name, beside, n=2, cutoff=0.7)
        if len(near) == 1:
            return word, word.removesuffix(path.name) + near[0]
    return None


def runs_one_of(line: str, programs: frozenset[str]) -> bool:
    """Whether a part of the line runs one of the programs, by name, by path (``./build/NAME``) or by two words."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;()")
    lexer.whitespace_split = True
    parts: list[list[str]] = [[]]
    try:
        for word in lexer:
            if word and set(word) <= set("|&;()"):
                parts.append([])
            elif parts[-1] or not (word == "env" or re.fullmatch(r"[A-Za-z_]\w*=.*", word)):
                parts[-1].append(word)
    except ValueError:
        return False
    heads = [(part[0], part[0].rpartition("/")[2], " ".join(part[:2])) for part in parts if part]
    return any(programs & set(names) for names in heads)


#: Lines that prepare, show or copy: that they succeed says nothing about the software.
_PREPARES = frozenset(
    {
        "cd",
        "mkdir",
        "echo",
        "cat",
        "export",
        "source",
        "cp",
        "mv",
        "ln",
        "ls",
        "chmod",
        "touch",
        "tar",
        "unzip",
        "git",
        "curl",
        "wget",
        "printf",
        "tail",
        "head",
        "env",
        "which",
    }
)


#: Tools whose work, but for these targets, is to install or to build.
_BUILDERS = frozenset(
    {"npm", "yarn", "pnpm", "pip", "pip3", "poetry", "make", "cmake", "ninja", "meson", "mvn", "./mvnw", "gradle",
     "./gradlew", "cargo", "go", "composer", "bundle", "gem", "javac", "gcc", "corepack", "uv", "pdm"}
)  # fmt: skip
_WORKS = re.compile(r"^(test|tests|check|run|start|serve|dev|preview|exec|verify|demo|example)(?![a-z])|^t$")
_SETS_UP = re.compile(r"^\./(?:[\w-]*/)*(setup|install|configure|bootstrap|autogen|deploy)\b")


def verifies(line: str, programs: frozenset[str]) -> bool:
    """Whether a line really uses the software: its own program, its scripts, its tests, but no install or build."""
    for part in re.split(r"&&|\|\|?|;|\n", line):
        words = [word for word in words_of(part) if not re.fullmatch(r"\w+=\S*", word)]
        if not words or (words[0] in _PREPARES and words[0] not in programs):
            continue
        if words[0] in _BUILDERS:
            targets = [word for word in words[1:] if word != "run" or words[0] not in {"npm", "yarn", "pnpm"}]
            if not any(_WORKS.search(target) for target in targets):
                continue
        if words[0] in VERBS | programs or (words[0].startswith("./") and not _SETS_UP.search(words[0])):
            return "venv" not in words and not {"-m", "pip"} <= set(words)
    return False


def _plain(name: str) -> str:
    bare = name if not name.startswith("@") else name[1:]
    prefix = "@" if name.startswith("@") else ""
    return (prefix + re.split(r"[\[<>=!~@;]", bare)[0]).lower().replace("_", "-")


def _installs(words: list[str]) -> list[str]:
    """The names that an install line of pip, npm or apt installs."""
    tools = [
        (("pip", "install"), ("pip3", "install"), ("-m", "pip", "install"), ("uv", "add"), ("uv", "pip", "install"),
         ("poetry", "add"), ("pipx", "install"), ("pdm", "add"), ("pipenv", "install"), ("uv", "tool", "install")),
        (("npm", "install"), ("npm", "i"), ("npm", "add"), ("yarn", "add"), ("pnpm", "add"), ("pnpm", "install"),
         ("yarn", "global", "add"), ("pnpm", "i"), ("bun", "add"), ("bun", "install")),
        (("apt-get", "install"), ("apt", "install")),
    ]  # fmt: skip
    for kinds, mark in zip(tools, ("pip:", "npm:", "apt:"), strict=True):
        for kind in kinds:
            start = next((i for i in range(min(3, len(words))) if tuple(words[i : i + len(kind)]) == kind), None)
            if start is None:
                continue
            rest = words[start + len(kind) :]
            names = [w for w in rest if not w.startswith("-") and re.match(r"^@?[A-Za-z0-9]", w) and "://" not in w]
            names = [w for w in names if not w.endswith((".txt", ".whl", ".gz", ".git")) and w not in {"&&", "."}]
            return [mark + name if mark == "apt:" else name for name in names] or ["."]
    return []


_INSTALLERS = re.compile(
    r"(?:^|\s)(?:apt(?:-get)?|aptitude|dnf|yum|zypper|pacman|apk|brew|port|conda|mamba|snap|flatpak|nix-env|"
    r"choco|scoop|winget|pip3?|pipx|uv|poetry|pdm|pipenv|easy_install|gem|cargo|npm|pnpm|yarn)"
    r"(?:\s+(?:install|add|-S\w*|-i\w*|tool|pip|global|i|cask))+(?=\s)"
)
_DISTRO = re.compile(r"^(?:python3?-|py3?\d*-|node-|ruby-|golang-|rust-|lib)|(?:-(?:bin|cli|tools?|utils|dev))$")


def names_itself(name: str, own: frozenset[str]) -> bool:
    """Whether a package's name is the subject's own, as another package manager spells it."""
    bare = _plain(name.rpartition(":")[2].rpartition("/")[2])
    spelt = {bare, _DISTRO.sub("", bare), _DISTRO.sub("", _DISTRO.sub("", bare))}
    return bool(spelt & {_plain(one) for one in own})


def installs_itself(line: str, own: frozenset[str]) -> bool:
    """Whether a part of a line installs the subject itself, by whichever package manager."""
    for part in re.split(r"&&|\|\|?|;|\n", line):
        found = _INSTALLERS.search(part)
        if found and any(names_itself(word, own) for word in part[found.end() :].split() if not word.startswith("-")):
            return True
    return False


#: What a project's own environment brings beside its programs.
_INSIDE = frozenset({"python", "python3", "pytest", "flask", "uvicorn", "gunicorn", "fastapi", "django-admin"})


def rewrite(words: list[str], programs: frozenset[str], own: frozenset[str]) -> str:
    """``npx NAME``, ``npm create NAME@latest -- …``, ``uvx NAME``, ``pipx run NAME`` -> the installed program."""
    starts = (
        ("npx",), ("npm", "exec"), ("pnpm", "dlx"), ("pnpm", "exec"), ("yarn", "dlx"), ("yarn",), ("pnpm",), ("bunx",),
        ("uvx",), ("pipx", "run"), ("uv", "run"), ("poetry", "run"), ("pdm", "run"), ("pipenv", "run"),
    )  # fmt: skip
    for start in starts:
        if tuple(words[: len(start)]) != start:
            continue
        rest = words[len(start) :]
        while rest and rest[0] in {"-y", "--yes", "--", "-p", "--no-install", "--no", "-q"}:
            rest = rest[1:]
        if not rest:
            return ""
        name = _plain(rest[0])
        if name in programs:
            return shlex.join([name, *rest[1:]])
        if name in own and programs:
            return shlex.join([min(programs, key=lambda p: (p not in name, len(p), p)), *rest[1:]])
        if start[0] in {"uv", "poetry", "pdm", "pipenv"} and (rest[0] in _INSIDE or rest[0].endswith(".py")):
            return shlex.join(rest if rest[0] in _INSIDE else ["python", *rest])
    if words[0] in {"npm", "yarn", "pnpm", "bun"} and words[1:2] and words[1] in {"create", "init"} and words[2:]:
        name = "create-" + _plain(words[2])
        if name in programs:
            return shlex.join([name, *[word for word in words[3:] if word != "--"]])
    return ""


def local_paths(text: str) -> list[tuple[int | None, str]]:
    """The (port, path) of every documented local address, in order, each once."""
    found: list[tuple[int | None, str]] = []
    for match in _LOCAL.finditer(text):
        entry = (int(match.group(1)) if match.group(1) else None, (match.group(2) or "/").rstrip(".,;:"))
        if entry not in found and not _PLACEHOLDER.search(entry[1]):
            found.append(entry)
    return found
