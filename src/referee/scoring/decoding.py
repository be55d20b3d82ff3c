"""Decoders that succeed on broken or cut-off data: an exit status of 0 from them decodes nothing (methodology §5)."""

from __future__ import annotations

import ast
import re

from referee.scoring.shell_words import Step, bare

#: Levels at which ffmpeg does not say that it met broken data.
_SILENT = {"quiet", "panic", "fatal", "-8", "0", "8"}
_BROKEN = re.compile(
    rb"error|invalid|corrupt|truncat|broken|missing|partial file|moov atom|overread|concealing|mismatch", re.IGNORECASE
)
_NOT_JSON = re.compile(rb"(?<![\w\".-])(?:NaN|-?Infinity)(?![\w\"])")
#: What reads the pixels of a picture, beside what only looks at its structure.
_PIXELS = {
    *("load", "convert", "getdata", "getpixel", "tobytes", "resize", "thumbnail", "save", "histogram", "rotate"),
    *(
        "crop",
        "split",
        "getextrema",
        "getcolors",
        "transpose",
        "point",
        "filter",
        "quantize",
        "show",
        "asarray",
        "array",
    ),
}


def accepts_broken(step: Step) -> bool:
    """Whether a step decodes by something that accepts broken data, and hides what it says of it."""
    words = bare(step.words)
    if _is_ffmpeg(words) and "-xerror" not in words:
        level = _after(words, "-v") or _after(words, "-loglevel") or ""
        return level.split("+")[-1].split("=")[-1] in _SILENT or "/dev/null" in step.writes
    return any(_verifies_only(code) for code in (step.stdin, *words[1:]) if code and ".verify(" in code)


def met_broken(steps: list[Step], output: bytes) -> bool:
    """Whether a decoder that ends well on broken data said in the output that it met some."""
    commands = [bare(step.words) for step in steps]
    if any(_is_ffmpeg(words) and "-xerror" not in words for words in commands) and _BROKEN.search(output):
        return True
    return any(_reads_json(words, step.stdin) for words, step in zip(commands, steps, strict=True)) and (
        _NOT_JSON.search(output) is not None
    )


def _is_ffmpeg(words: tuple[str, ...]) -> bool:
    """Whether it decodes to nowhere, which is how a file is checked."""
    named = words[:1] and words[0].rsplit("/", 1)[-1] in {"ffmpeg", "avconv"}
    return bool(named) and _after(words, "-f") == "null"


def _reads_json(words: tuple[str, ...], stdin: str | None) -> bool:
    if not words:
        return False
    name = words[0].rsplit("/", 1)[-1]
    code = " ".join((*words[1:], stdin or ""))
    return name == "jq" or (name.startswith("python") and ("json.tool" in words or "json.load" in code))


def _verifies_only(code: str) -> bool:
    """Python that calls Pillow's ``verify``, which reads no pixel, and nothing that reads them."""
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    attributes = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    imports = {
        (node.module if isinstance(node, ast.ImportFrom) else alias.name) or ""
        for node in ast.walk(tree)
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for alias in node.names
    }
    pillow = any(name.split(".")[0] == "PIL" for name in imports)
    return pillow and "verify" in attributes and not attributes & _PIXELS


def _after(words: tuple[str, ...], option: str) -> str | None:
    return next((words[at + 1] for at, word in enumerate(words[:-1]) if word == option), None)
