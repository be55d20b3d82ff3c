"""Uses a library that reads and writes files, by what its names promise: reads a sample, writes it, for decoding.

For modules whose README shows nothing: a function or class method called ``from_EXT``, ``read_EXT`` or ``load_EXT``
for a known kind is given a sample of that kind; what it returns is written by its ``export``, ``save`` or ``write``.
The files that come out are decoded by the verification. Status 0 when at least one was written.
"""

from __future__ import annotations

import importlib
import inspect
import os
import re
import sys
from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))
_KINDS = {
    "wav", "mp3", "ogg", "flac", "png", "jpg", "jpeg", "gif", "csv", "json", "yaml", "toml", "xml", "html",
    "svg", "mp4",
}  # fmt: skip
_WRITERS = ("export", "save", "write", "to_file", "dump")


def readers(module: Any) -> list[tuple[str, str, Any]]:
    """(qualified name, kind, callable) of everything that by its name reads a known kind of file."""
    found = []
    owners = [(module.__name__, module)]
    owners += [(f"{module.__name__}.{name}", cls) for name, cls in sorted(vars(module).items()) if inspect.isclass(cls)]
    for title, owner in owners:
        for name in sorted(dir(owner)):
            match = re.fullmatch(r"(?:from|read|load|open)_(\w+)", name)
            if not match or match.group(1) not in _KINDS:
                continue
            call = getattr(owner, name)
            if callable(call):
                found.append((f"{title}.{name}", match.group(1), call))
    return found


def main(names: list[str]) -> int:
    """Try every reader of the modules; say what was read and written."""
    sys.path = [entry for entry in sys.path if os.path.abspath(entry or ".") != HERE]
    sys.path.append(HERE)
    samples = importlib.import_module("verify_samples")
    written = failed = 0
    for name in names:
        for title, kind, call in readers(importlib.import_module(name)):
            sample = f"sample.{kind}"
            if not os.path.exists(sample) and not samples.make(sample):
                sys.stdout.write(f"no sample of kind {kind}: ffmpeg not found\n")
                failed += 1
                continue
            try:
                value = call(sample)
                writer = next((w for w in _WRITERS if callable(getattr(value, w, None))), None)
                if writer is None:
                    continue
                target = f"written-{title.rsplit('.', 2)[-2].lower()}.{kind}"
                words = {"format": kind} if "format" in inspect.signature(getattr(value, writer)).parameters else {}
                out = getattr(value, writer)(target, **words)
                if hasattr(out, "close"):
                    out.close()
            except Exception as exc:
                failed += 1
                sys.stdout.write(f"{title}({sample!r}) failed: {type(exc).__name__}: {exc}\n")
                continue
            if os.path.exists(target):
                written += 1
                sys.stdout.write(f"{title}({sample!r}).{writer}({target!r}) wrote a file\n")
    return 0 if written and not failed else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
