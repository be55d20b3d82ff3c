"""Words of a shell command: what is written out, what wraps a command, what is handed to another shell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from tree_sitter import Node

#: Stands in a word for the part that only a running shell would know.
UNKNOWN = "\ufffd"

#: The one value of a running shell that stays written as it is.
LAST_STATUS = "$?"

_SHELLS = {"bash", "sh", "dash", "zsh", "ksh", "ash"}
_INTERPRETERS = ("python", "pypy", "node", "ruby", "perl", "php", "bun", "deno")
_VERBATIM = {"string_content", "heredoc_body"}
_NAMES = {"simple_expansion", "expansion"}
_ESCAPES = ('\\"', "\\$", "\\`", "\\\\")


@dataclass(frozen=True)
class Step:
    """One simple command: its words as far as they are written out, what is fed to it, where it writes.

    ``substituted``: it stands inside ``$(...)`` of another command, so its exit status is lost there. ``scripted``: its
    text was read from a file of the machine.
    """

    words: tuple[str, ...]
    stdin: str | None = None
    writes: tuple[str, ...] = ()
    background: bool = False
    substituted: bool = False
    scripted: bool = False


@dataclass(frozen=True)
class Mode:
    """What ``set`` has switched on at this point."""

    errexit: bool = False
    pipefail: bool = False


def literal(node: Node, values: Mapping[str, str]) -> str:
    """A word as the shell would see it; what is not written out is ``UNKNOWN``.

    Args:
        node: the word in the grammar's tree.
        values: variables whose values are written out in the same command.
    """
    text = text_of(node)
    result = UNKNOWN
    if node.type == "raw_string":
        result = text[1:-1]
    elif node.type == "ansi_c_string":
        result = text[2:-1].replace("\\n", "\n").replace("\\'", "'")
    elif node.type in {"word", "number", "variable_name"}:
        result = _unescaped(text)
    elif node.type in _VERBATIM:
        result = text
    elif node.type in _NAMES:
        result = LAST_STATUS if text == LAST_STATUS else values.get(text.strip("${}"), UNKNOWN)
    elif node.type == "string":
        result = _quoted(node, values)
    elif node.type in {"concatenation", "command_name"}:
        result = "".join(literal(child, values) for child in node.named_children)
    return result


def _quoted(node: Node, values: Mapping[str, str]) -> str:
    """A double-quoted string; the grammar leaves line ends between its parts, so they come from the text."""
    out: list[str] = []
    data, at = node.text or b"", 1
    for child in node.named_children:
        out.append(data[at : child.start_byte - node.start_byte].decode("utf-8", "replace"))
        out.append(literal(child, values))
        at = child.end_byte - node.start_byte
    out.append(data[at:-1].decode("utf-8", "replace"))
    joined = "".join(out)
    for escaped in _ESCAPES:
        joined = joined.replace(escaped, escaped[1])
    return joined


def nested_shell(step: Step) -> tuple[str, Mode | None] | None:
    """The shell text that a step hands to another shell (``bash -c``, ``sh <<EOF``, ``eval``, ``su -c``), or None.

    The mode is None where the other shell is this one (``eval``).
    """
    words = bare(step.words)
    if not words:
        return None
    name = words[0].rsplit("/", 1)[-1]
    if name == "eval":
        return " ".join(words[1:]), None
    if name in {"su", "runuser"} and "-c" in words[:-1]:
        return words[words.index("-c") + 1], Mode()
    return _shell_text(words, step.stdin) if name in _SHELLS else None


def is_interpreter(word: str) -> bool:
    """Whether a command reads its program from a file or from standard input: Python or a shell."""
    name = word.rsplit("/", 1)[-1]
    return name in _SHELLS or name.startswith(("python", "pypy"))


def script_place(words: tuple[str, ...]) -> str | None:
    """The file that a command reads its program from: itself, or what an interpreter is given. None: none is named."""
    if not words:
        return None
    name = words[0].rsplit("/", 1)[-1]
    if not (name in _SHELLS or name.startswith(_INTERPRETERS)):
        return words[0]
    skip = False
    for word in words[1:]:
        if skip:
            skip = False
        elif not word.startswith("-"):
            return None if UNKNOWN in word else word
        elif word in {"-", "-m"} or (not word.startswith("--") and word[-1:] in {"c", "e", "p", "r"}):
            return None
        else:
            skip = word in {"-W", "-X", "-o", "-O", "--require", "--import"}
    return None


def task_of(words: tuple[str, ...]) -> str | None:
    """``npm:NAME`` or ``make:NAME`` for a command that runs a script of ``package.json`` or a target; else None."""
    if not words:
        return None
    name = words[0].rsplit("/", 1)[-1]
    rest = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
    if name in {"make", "gmake"} and "-C" not in words and "-f" not in words:
        return f"make:{rest[0]}" if rest else "make:"
    elsewhere = npm_directory(words) if name == "npm" else None
    if elsewhere is not None:
        rest = [word for word in rest if word != elsewhere]
    if (
        name not in {"npm", "pnpm", "yarn", "bun"}
        or not rest
        or (name != "npm" and {"--prefix", "-C", "--cwd"} & set(words))
    ):
        return None
    return _script_of(name, rest, elsewhere)


def _script_of(name: str, rest: list[str], elsewhere: str | None) -> str | None:
    run = rest[1:2] if rest[0] in {"run", "run-script"} else rest[:1]
    if name == "npm" and run and run[0] in {"test", "t", "tst"}:
        return "npm:test"
    if elsewhere is not None or not run:
        return None  # which directory it is of was not always looked at
    if rest[0] in {"run", "run-script", "start", "stop", "restart"} or name in {"yarn", "pnpm", "bun"}:
        return f"npm:{run[0]}"
    return None


def npm_directory(words: tuple[str, ...]) -> str | None:
    """The directory that ``npm`` is told to work in; None where it is told none."""
    for word, following in zip(words, (*words[1:], ""), strict=True):
        if word in {"--prefix", "-C"}:
            return following
        if word.startswith("--prefix="):
            return word.removeprefix("--prefix=")
    return None


def _shell_text(words: tuple[str, ...], stdin: str | None) -> tuple[str, Mode | None] | None:
    mode = Mode()
    text = stdin
    for index, word in enumerate(words[1:], start=1):
        if word.startswith("-") and not word.startswith("--"):
            mode = Mode(mode.errexit or "e" in word, mode.pipefail)
            if "c" in word:
                text = words[index + 1] if index + 1 < len(words) else None
                break
        elif word == "pipefail" and words[index - 1].endswith("o"):
            mode = Mode(mode.errexit, pipefail=True)
        elif not word.startswith("-") and not words[index - 1].endswith("o"):
            return None

    return None if text is None else (text, mode)


_WRAPPERS: dict[str, int] = {
    "env": 0,
    "command": 0,
    "exec": 0,
    "builtin": 0,
    "nohup": 0,
    "time": 0,
    "timeout": 1,
    "nice": 0,
    "ionice": 0,
    "stdbuf": 0,
    "setsid": 0,
    "sudo": 0,
    "xvfb-run": 0,
    "unbuffer": 0,
    "busybox": 0,
    "xargs": 0,
}
_TAKES_VALUE = {"-u", "-n", "-s", "-k", "-c", "--signal", "--kill-after", "--server-args", "-I", "-g", "-C", "-o", "-e"}


def bare(words: tuple[str, ...]) -> tuple[str, ...]:
    """The words without what only wraps a command (``env A=1 timeout 5 ...``): the command itself."""
    rest = list(words)
    while rest:
        name = rest[0].rsplit("/", 1)[-1]
        if name not in _WRAPPERS or (name == "command" and rest[1:2] in (["-v"], ["-V"])):
            return tuple(rest)
        operands = _WRAPPERS[name]
        rest.pop(0)
        while rest and (rest[0].startswith("-") or (name in {"env", "sudo"} and "=" in rest[0]) or operands):
            option = rest.pop(0)
            if not option.startswith("-") and "=" not in option:
                operands -= 1
            elif option in _TAKES_VALUE and rest:
                rest.pop(0)
    return ()


def text_of(node: Node) -> str:
    """The text of a node."""
    return (node.text or b"").decode("utf-8", "replace")


def _unescaped(text: str) -> str:
    out: list[str] = []
    escaped = False
    for character in text:
        if character == "\\" and not escaped:
            escaped = True
            continue
        out.append("" if escaped and character == "\n" else character)
        escaped = False
    return "".join(out)


def interpreter_of(text: str) -> str | None:
    """The program that the first line of a script names (``#!``); None where it names none."""
    first = text.split("\n", 1)[0]
    words = first[2:].split() if first.startswith("#!") else []
    if words and words[0].rsplit("/", 1)[-1] == "env":
        words = [word for word in words[1:] if not word.startswith("-")]
    return words[0] if words else None


def switched(steps: list[Step], mode: Mode) -> Mode:
    """The mode after what ``set`` switched in these steps."""
    for step in steps:
        if step.words[:1] == ("set",) and not step.substituted:
            for index, word in enumerate(step.words[1:], start=1):
                if word.startswith("-") and "e" in word:
                    mode = replace(mode, errexit=True)
                if word.startswith("+") and "e" in word:
                    mode = replace(mode, errexit=False)
                if word == "pipefail":
                    mode = replace(mode, pipefail=step.words[index - 1].startswith("-"))
    return mode


def said(steps: list[Step]) -> str | None:
    """The text that a part of a command prints, where it is written out there."""
    if len(steps) != 1:
        return None
    words = bare(steps[0].words)
    if words[:1] in {("echo",), ("printf",)}:
        text = " ".join(word for word in words[1:] if not word.startswith("-"))
        return None if UNKNOWN in text else text.replace("\\n", "\n")
    return steps[0].stdin if words == ("cat",) else None
