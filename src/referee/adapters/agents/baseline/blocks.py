"""What a block of a README is: by its label, else by a prompt, a known verb, or a parser that accepts it."""

from __future__ import annotations

import ast
import json
import re
import textwrap
from dataclasses import dataclass

from .documents import Block

_LABELS = {
    "python": "python", "py": "python", "python3": "python", "py3": "python", "pycon": "pycon", "doctest": "pycon",
    "ipython": "pycon", "python-console": "pycon", "pytb": "text",
    "bash": "shell", "sh": "shell", "shell": "shell", "console": "shell", "shell-session": "shell", "zsh": "shell",
    "shellsession": "shell", "terminal": "shell", "commandline": "shell", "cli": "shell", "bash-session": "shell",
    "js": "javascript", "javascript": "javascript", "node": "javascript", "mjs": "javascript", "cjs": "javascript",
    "jsx": "javascript", "ts": "typescript", "typescript": "typescript", "tsx": "typescript", "mts": "typescript",
    "es6": "javascript",
    "json": "data", "json5": "data", "jsonc": "data", "yaml": "data", "yml": "data", "toml": "data", "ini": "data",
    "xml": "data", "html": "data", "css": "data", "diff": "other", "dockerfile": "data", "sql": "data",
    "powershell": "other", "ps1": "other", "batch": "other", "cmd": "other", "bat": "other", "fish": "other",
    "rust": "rust", "rs": "rust", "go": "go", "golang": "go", "ruby": "ruby", "rb": "ruby", "php": "php",
    "java": "java", "kotlin": "other", "c": "c", "cpp": "cpp", "c++": "cpp", "make": "other", "makefile": "other",
}  # fmt: skip
#: First words of a shell line.
VERBS = frozenset(
    """
    pip pip3 pipx uv uvx poetry pdm conda python python3 py npm npx yarn pnpm bun bunx node deno git cd mkdir make
    cmake ninja meson ./configure ./bootstrap ./autogen.sh cargo rustc rustup go java javac mvn ./mvnw gradle
    ./gradlew ruby gem bundle rake rails php composer docker docker-compose podman curl wget cp mv echo cat export
    sudo apt apt-get brew choco source touch tox nox pytest flask uvicorn gunicorn hypercorn django-admin
    streamlit celery rq http ls chmod printf tail head tar unzip sh bash env corepack ctest autoreconf perl
    prove phpunit rspec
    printf head tail wc jq
    """.split()  # noqa: SIM905 — a word list reads better as words
)
_EXCLUDED = re.compile(
    r"\b(uninstall\w*|remov(e|ing)|contribut\w*|licen[sc]e\w*|windows|macos|mac os|os x|homebrew|chocolatey|scoop|"
    r"nix|arch linux|fedora|conda|anaconda|freebsd|changelog|change log|release notes|releases?|releasing|"
    r"migrat\w*|upgrad\w*|sponsor\w*|backers|benchmark\w*|troubleshoot\w*|credits|acknowledg\w*|security policy|"
    r"code of conduct|deprecat\w*|alternatives|comparison|breaking changes|known issues|limitations|"
    r"browsers?|cdn|deno|bun|jsr|react native|docker( compose)?|kubernetes|helm|vs ?code|editor\w*|vim|emacs)\b",
    re.IGNORECASE,
)
#: The same of a section that stands beside the title and not below it, where a word may be the project's own name.
_AT_THE_TOP = re.compile(
    r"\b(uninstall\w*|contribut\w*|windows|macos|mac os|os x|homebrew|chocolatey|scoop|freebsd|arch linux|fedora|"
    r"changelog|change log|release notes)\b",
    re.IGNORECASE,
)
_DEVELOPERS = re.compile(
    r"\b(develop(ment|ing|er)\w*|hacking|building from source|running (the )?tests|tests?|testing)\b", re.IGNORECASE
)


@dataclass(frozen=True)
class Typed:
    """A block with what it is: ``kind`` is shell, python, pycon, javascript, data, text, other, or a language."""

    block: Block
    kind: str
    text: str


def excluded(block: Block, *, package: bool) -> bool:
    """Whether a block stands in a section that a newcomer on this machine does not follow."""
    if any(_EXCLUDED.search(title) for title in block.headings[1:]):
        return True
    if not block.titled and any(_AT_THE_TOP.search(title) for title in block.headings[:1]):
        return True
    return package and any(_DEVELOPERS.search(title) for title in block.headings[1:])


def classify(block: Block, programs: frozenset[str], default: str) -> Typed:
    """Say what a block is. ``programs``: commands the subject provides; ``default``: the subject's own language."""
    text = textwrap.dedent(block.text)
    label = _LABELS.get(block.language, "unlabelled" if block.language in {"", "text", "plain", "txt", "none"} else "")
    if re.search(r"^\s*>>> ", text, re.MULTILINE) and label in {"", "unlabelled", "python", "pycon", "text"}:
        return Typed(block, "pycon", _doctest_only(text))
    if re.search(r"^In \[\d+\]: ", text, re.MULTILINE):
        return Typed(block, "python", _ipython(text))
    if label == "pycon":
        return Typed(block, "python", text)
    if label == "typescript":
        return Typed(block, "typescript", text)
    if label == "python" and re.match(r"\$ |pip3? install ", text):
        return Typed(block, "shell", text)
    if label and label != "unlabelled":
        return Typed(block, label, text)
    return Typed(block, _guess(text, programs, default), text)


def _doctest_only(text: str) -> str:
    return text if text.endswith("\n") else text + "\n"


def _ipython(text: str) -> str:
    kept = []
    for line in text.splitlines():
        if re.match(r"In \[\d+\]: ", line):
            kept.append(re.sub(r"^In \[\d+\]: ", "", line))
        elif re.match(r"\s+\.\.\.+: ?", line):
            kept.append(re.sub(r"^\s+\.\.\.+: ?", "", line))
    return "\n".join(kept) + "\n"


def _guess(text: str, programs: frozenset[str], default: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines:
        return "text"
    if re.match(r"\s*(\$|%|❯|➜) \S", lines[0]):
        return "shell"
    words = [line.strip().lstrip("#$> ").split(" ")[0] for line in lines]
    commands = sum(1 for word in words if word in VERBS or word in programs)
    if (
        words[0] in VERBS | programs
        and (commands * 2 >= len(lines) or len(lines) == 1)
        and not lines[0].rstrip().endswith(("{", ";"))
    ):
        return "shell"
    if _is_json(text):
        return "data"
    if default != "javascript" and is_python(text):
        return "python"
    if re.search(
        r"\brequire\(|^import .* from ['\"]|^(const|let|var) \w|=>|\bfunction\b|;\s*(//.*)?$", text, re.MULTILINE
    ):
        return "javascript" if not text.lstrip().startswith("<") else "data"
    return "shell" if commands and commands == len(lines) else "text"


def _is_json(text: str) -> bool:
    if text.lstrip()[:1] not in {"{", "["}:
        return False
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def is_python(text: str) -> bool:
    """Whether Python's own parser accepts it and it does something (a lone name or string does not)."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return False
    return any(
        isinstance(node, (ast.Import, ast.ImportFrom, ast.Call, ast.FunctionDef, ast.ClassDef, ast.Assign))
        for node in ast.walk(tree)
    )
