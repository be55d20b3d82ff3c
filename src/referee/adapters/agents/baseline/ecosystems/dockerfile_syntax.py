"""Reads a Dockerfile: instructions with continuation lines, comments, flags, JSON form and here-documents."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

_HEREDOC = re.compile(r"<<(-?)(['\"]?)([A-Za-z_]\w*)\2")
_VARIABLE = re.compile(r"\\(\$)|\$(?:(\w+)|\{(\w+)(?:(:?[-+])([^{}]*))?\})")


@dataclass(frozen=True)
class Instruction:
    """One instruction: its name in capitals, flags (``--from=x`` -> ``from``), text, here-documents in order."""

    name: str
    value: str
    flags: tuple[tuple[str, str], ...] = ()
    heredocs: tuple[tuple[str, str], ...] = ()

    def flag(self, name: str) -> str:
        """The value of a flag; empty when it is not given."""
        return next((value for key, value in self.flags if key == name), "")

    @property
    def argv(self) -> list[str] | None:
        """The words of the JSON form; None in the shell form."""
        if not self.value.startswith("["):
            return None
        try:
            words = json.loads(self.value)
        except json.JSONDecodeError:
            return None
        return [str(word) for word in words] if isinstance(words, list) else None


@dataclass
class Stage:
    """``FROM base AS name`` and what follows it."""

    base: str
    name: str
    instructions: list[Instruction] = field(default_factory=list)


def instructions(text: str) -> list[Instruction]:
    """All instructions of a Dockerfile, in order."""
    escape = "\\"
    directive = re.match(r"(?:#\s*\w+\s*=[^\n]*\n)*?#\s*escape\s*=\s*(\S)", text, re.IGNORECASE)
    if directive:
        escape = directive.group(1)
    lines = text.replace("\r\n", "\n").split("\n")
    found: list[Instruction] = []
    at = 0
    while at < len(lines):
        logical, at = _logical(lines, at, escape)
        if not logical:
            continue
        name, _, rest = logical.partition(" ")
        documents: list[tuple[str, str]] = []
        if name.upper() in {"RUN", "COPY", "ADD"}:
            for strip, _, end in _HEREDOC.findall(rest):
                body, at = _body(lines, at, end, strip=bool(strip))
                documents.append((end, body))
        flags, value = _flags(rest.strip())
        found.append(Instruction(name.upper(), value, flags, tuple(documents)))
    return found


def _logical(lines: list[str], at: int, escape: str) -> tuple[str, int]:
    """One instruction's line with its continuations joined; comment and empty lines between them are left out."""
    parts: list[str] = []
    while at < len(lines):
        line = lines[at]
        at += 1
        if line.lstrip().startswith("#") or (not line.strip() and parts):
            continue
        stripped = line.rstrip()
        if stripped.endswith(escape):
            parts.append(stripped[: -len(escape)].strip())
            continue
        parts.append(stripped.strip())
        break
    return " ".join(part for part in parts if part), at


def _body(lines: list[str], at: int, end: str, *, strip: bool) -> tuple[str, int]:
    body: list[str] = []
    while at < len(lines):
        line = lines[at].lstrip("\t") if strip else lines[at]
        at += 1
        if line.strip() == end:
            break
        body.append(line)
    return "\n".join(body) + "\n", at


def _flags(rest: str) -> tuple[tuple[tuple[str, str], ...], str]:
    flags: list[tuple[str, str]] = []
    while match := re.match(r"--([a-z][\w-]*)(?:=(\S*))?(?:\s+|$)", rest):
        flags.append((match.group(1), match.group(2) or ""))
        rest = rest[match.end() :]
    return tuple(flags), rest


def expand(text: str, values: Mapping[str, str]) -> str:
    """Replace ``$NAME``, ``${NAME}``, ``${NAME:-word}`` and ``${NAME:+word}``; unknown names become empty."""

    def value(match: re.Match[str]) -> str:
        if match.group(1):
            return "$"
        name = match.group(2) or match.group(3)
        known = values.get(name, "")
        kind, word = match.group(4) or "", match.group(5) or ""
        if kind.endswith("-"):
            return known or expand(word, values)
        if kind.endswith("+"):
            return expand(word, values) if known else ""
        return known

    return _VARIABLE.sub(value, text)


def pairs(value: str) -> list[tuple[str, str]]:
    """The settings of an ``ENV``, ``ARG`` or ``LABEL`` line; the old form ``ENV NAME some words`` too."""
    if re.match(r"\w+\s+[^=\s]", value) and not re.match(r"\w+=", value):
        name, _, rest = value.partition(" ")
        return [(name, rest.strip())]
    found = []
    for name, word in re.findall(r"([\w.-]+)=((?:\"(?:\\.|[^\"])*\"|'[^']*'|\\.|[^\s\"'\\])*)", value):
        bare = re.sub(r"\"((?:\\.|[^\"])*)\"|'([^']*)'", lambda m: m.group(1) or m.group(2) or "", word)
        found.append((name, re.sub(r"\\([\s\"\\])", r"\1", bare)))
    return found


def stages(text: str) -> list[Stage]:
    """The build stages, with the arguments before the first ``FROM`` filled into the bases."""
    defaults: dict[str, str] = {}
    found: list[Stage] = []
    for instruction in instructions(text):
        if instruction.name == "FROM":
            words = expand(instruction.value, defaults).split()
            named = len(words) > 2 and words[1].lower() == "as"  # noqa: PLR2004 — FROM base AS name
            found.append(Stage(words[0] if words else "", words[2].lower() if named else str(len(found))))
        elif not found:
            if instruction.name == "ARG":
                defaults.update((n, expand(v, defaults)) for n, v in pairs(instruction.value))
        else:
            known = instruction.name == "ARG" and instruction.value in defaults
            argument = Instruction("ARG", f"{instruction.value}={defaults.get(instruction.value, '')}")
            found[-1].instructions.append(argument if known else instruction)
    return found


def needed(all_stages: list[Stage]) -> list[Stage]:
    """The stages that the last one is made from, in order, and itself."""
    by_name = {stage.name: stage for stage in all_stages}
    by_name.update({str(index): stage for index, stage in enumerate(all_stages)})
    wanted: list[Stage] = []
    waiting = all_stages[-1:]
    while waiting:
        stage = waiting.pop()
        if any(stage is known for known in wanted):
            continue
        wanted.append(stage)
        sources = [stage.base.lower(), *(entry.flag("from").lower() for entry in stage.instructions)]
        waiting += [by_name[name] for name in sources if name in by_name and by_name[name] is not stage]
    return [stage for stage in all_stages if any(stage is entry for entry in wanted)]
