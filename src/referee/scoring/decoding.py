"""Decoders that succeed on broken or cut-off data: an exit status of 0 from them decodes nothing (methodology §5)."""

from __future__ import annotations

import ast
import re
from itertools import pairwise

from referee.scoring.shell_words import Step, bare

_BROKEN = re.compile(
    rb"error|invalid|corrupt|truncat|broken|missing|partial file|moov atom|overread|concealing|mismatch", re.IGNORECASE
)
#: A value that JSON does not have, as it is written in it and as Python shows it.
_NOT_JSON = re.compile(rb"(?:^|[:\[,(])[ \t]*-?(?:NaN|Infinity|nan|inf)[ \t]*(?:$|[,\])}])", re.MULTILINE)
#: Subtitles and data are nothing to decode.
_COPIES = re.compile(r"-(?:c|codec|[av]codec)(?::(?![sd])\S+)? copy")
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
    """Whether a step checks a file by something that accepts broken data.

    ``ffmpeg`` to the null muxer ends with 0 on a corrupted or cut-off file, unless ``-xerror`` is given; of a stream
    that it copies it decodes nothing; Pillow's ``verify`` reads no pixel.
    """
    words = bare(step.words)
    if _is_ffmpeg(words) and _after(words, "-f") == "null" and "-xerror" not in words:
        return True
    if _is_ffmpeg(words) and _goes_nowhere(words) and any(_COPIES.fullmatch(" ".join(two)) for two in pairwise(words)):
        return True
    return any(_verifies_only(code) for code in (step.stdin, *words[1:]) if code and ".verify(" in code)


def met_broken(steps: list[Step], output: bytes) -> bool:
    """Whether a decoder that ends well on broken data said in the output that it met some."""
    commands = [bare(step.words) for step in steps]
    decodes = any(_is_ffmpeg(words) and "-xerror" not in words and _goes_nowhere(words) for words in commands)
    if decodes and _BROKEN.search(output):
        return True
    return any(_reads_json(words, step.stdin) for words, step in zip(commands, steps, strict=True)) and (
        _NOT_JSON.search(output) is not None
    )


def _is_ffmpeg(words: tuple[str, ...]) -> bool:
    return bool(words) and words[0].rsplit("/", 1)[-1] in {"ffmpeg", "avconv"}


def _goes_nowhere(words: tuple[str, ...]) -> bool:
    """Whether it decodes to check, not to make a file."""
    return _after(words, "-f") in {"null", "framemd5", "framecrc", "md5", "crc", "hash"}


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
