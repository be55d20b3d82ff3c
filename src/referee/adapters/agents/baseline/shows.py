"""Whether an output shows that work was done: not silence, usage, a banner, a question, an echo."""

from __future__ import annotations

import re
import shlex

from . import commands

#: A line that only names a program, its version, its makers.
_BANNER = re.compile(
    r"^\W*$|^\W*(welcome to|powered by|copyright|\(c\)|©|https?://)|^[\w .-]{0,30}\bv?\d+\.\d+[\w.]*\W*$", re.IGNORECASE
)
#: A line by which a program refuses, whatever its status.
_REFUSES = re.compile(
    r"\b(not found|no such|unknown|unrecognized|invalid|missing|required|cannot|can't|unable|not installed|"
    r"nothing to do|try .{0,30}help|error)\b",
    re.IGNORECASE,
)
#: Code on the command line: it runs an interpreter, not the project, unless it names it.
ONE_LINER = re.compile(r"\b(python3?|node|perl|ruby|php|bash|sh) (-\w+ )*-[cepr] ")


def hollow(output: str) -> bool:
    """Whether an output says nothing about work done: empty, usage, a question, a name and version alone."""
    said = [line.strip() for line in output.splitlines() if line.strip()]
    if not said or re.match(r"\W*(usage|options|help|commands)\b", said[0], re.IGNORECASE):
        return True
    if re.search(r"^\s*usage:", "\n".join(said[:8]), re.IGNORECASE | re.MULTILINE):
        return True
    told = [line for line in said if not _BANNER.search(line)]
    if all(re.search(r"[?:>]$|\((y|yes)/n\w*\)|\[y/n\]", line, re.IGNORECASE) for line in told):
        return True  # questions to a person, or nothing beside the banner
    return len(told) == 1 and bool(_REFUSES.search(told[0]))


def altered(line: str) -> str:
    """The same line with another value in the place of its last one (no option, no subcommand); empty without one."""
    if re.search(r"[|<>`$\n]|&&", line):
        quoted = re.search(r"\b(?:echo|printf) +(['\"]?)([\w][^'\"|]*)\1", line)
        return line[: quoted.start(2)] + "zebra " + line[quoted.start(2) :] if quoted else ""
    words = commands.words_of(line)
    if len(words) < 2:  # noqa: PLR2004 — the program alone
        return ""
    for place in range(len(words) - 1, 0, -1):
        word = words[place]
        if word.startswith("-") and "=" not in word:
            continue
        number = re.fullmatch(r"-?\d+", word)
        # At both ends: a program may look at the first words of a text only, or at its last.
        free = not word.startswith("-")
        words[place] = str(int(word) + 1) if number else f"zebra-{word}-zebra" if free else f"{word}-zebra"
        return shlex.join(words)
    return ""


def echoes(first: str, second: str, line: str, other: str) -> bool:
    """Whether two outputs are the same but for the words of their own command lines."""
    one, two = set(commands.words_of(line)), set(commands.words_of(other))
    for word in sorted(two - one, key=len, reverse=True):
        second = second.replace(word, "")
    for word in sorted(one - two, key=len, reverse=True):
        first = first.replace(word, "")
    return first.split() == second.split()
