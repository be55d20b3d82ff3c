"""Proof: the verification is run from fresh login shells until two runs agree; what they agree on is reported."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from . import debian
from .quickstart import Quickstart, verify_line
from .report import RETURNED_BYTES
from .terminal import Result, say
from .workshop import Workshop

#: Seconds that must be left for a proof to be worth beginning.
ENOUGH = 20
#: Makes an image decoder of ours ready, apart from the project.
PILLOW = (
    "test -x /work/tools/bin/python || python3 -m venv /work/tools; /work/tools/bin/python -m pip install -q pillow"
)
#: A file of such a name that no decoder accepts is a failure; a text may be in a dialect of its own.
_MUST_DECODE = frozenset(
    [
        ".png",
        ".jpg",
        ".jpeg",
        ".gif",
        ".bmp",
        ".webp",
        ".tif",
        ".tiff",
        ".pdf",
        ".wav",
        ".mp3",
        ".mp4",
        ".ogg",
        ".flac",
        ".svg",
        ".zip",
        ".xlsx",
        ".docx",
        ".sqlite",
        ".db",
    ]
)


def prove(shop: Workshop, quickstart: Quickstart) -> str:
    """Run the verification from a fresh login shell until two runs agree; the lines on which they agree, or nothing."""
    steps = quickstart.steps
    for _ in range(6):
        if shop.mission.left() < ENOUGH or not steps:
            return ""
        quickstart.write(steps)
        runs = [_from_fresh_shell(shop) for _ in range(2)]
        bad = next((run for run in runs if not run.ok), None)
        if bad is None:
            lines = _mute(steps, runs)
            if lines is not None:
                return lines
            continue
        if _decoders(shop, bad):
            continue
        steps = _without_failed(shop, quickstart, steps, bad)
        quickstart.steps = steps
        if not [step for step in steps if step["kind"] not in {"file", "sample"}]:
            shop.draft.note(f"the verification did not hold: {bad.last_lines(2)}")
            return ""
    return ""


def _from_fresh_shell(shop: Workshop) -> Result:
    line = f"env -i HOME=/root TERM=xterm bash -lc '{_trust()}{verify_line(shop)}'"
    return shop.run(line, timeout=900)


def _trust() -> str:
    """Certificates and language as the machine announces them to every shell."""
    ends = ("_CERT", "_CA_CERTS", "CAINFO", "CAFILE", "CERT_FILE", "CA_BUNDLE")
    kept = [name for name in os.environ if name.endswith(ends)]
    kept += [name for name in ("LANG", "LC_ALL") if name in os.environ]
    return "".join(f"export {name}={os.environ[name]}; " for name in kept)


def _mute(steps: list[dict[str, Any]], runs: list[Result]) -> str | None:
    """The stable lines; None after steps whose output changed were reduced to what did not (proved again then)."""
    first, second = (run.output.splitlines() for run in runs)
    if first == second:
        return _shorten(first)
    others = set(second)
    changed = False
    for number, section in _sections(steps, first).items():
        step = steps[number]
        for line in section:
            get = re.match(r"GET (\S+) ->", line)
            if line in others:
                continue
            if get and get.group(1) not in step.get("volatile", []):
                step.setdefault("volatile", []).append(get.group(1))
                changed = True
            elif not get:
                changed = _reduce(step, section, others) or changed
    if changed:
        return None
    return _shorten([line for line in first if line in others])


def _sections(steps: list[dict[str, Any]], lines: list[str]) -> dict[int, list[str]]:
    """What each step printed, by its number."""
    found: dict[int, list[str]] = {}
    current = -1
    for line in lines:
        if line.startswith(("$ ", "wrote ")):
            heads = [
                i
                for i, step in enumerate(steps)
                if line.startswith(f"$ {(step.get('title') or step.get('line', ''))}"[:60])
            ]
            current = next((i for i in heads if i > current), current)
        elif current >= 0:
            found.setdefault(current, []).append(line)
    return found


def _reduce(step: dict[str, Any], section: list[str], others: set[str]) -> bool:
    """Keep the lines of a command that came both times; when that was done already, keep none."""
    if step.get("quiet"):
        return False
    stable = [line for line in dict.fromkeys(section) if line in others and len(line.strip()) > 1]
    if "stable" in step or not stable or step["kind"] not in {"command", "tests"}:
        step.pop("stable", None)
        step["quiet"] = True
    else:
        step["stable"] = stable[:100]
    return True


def _shorten(lines: list[str]) -> str:
    """Whole lines up to the limit, the last line (the verdict) always among them."""
    said = [line for line in lines if line.strip()]
    kept: list[str] = []
    room = RETURNED_BYTES - len(said[-1].encode()) - 1 if said else 0
    for line in said[:-1]:
        room -= len(line.encode()) + 1
        if room < 0:
            break
        kept.append(line)
    return "\n".join([*kept, *said[-1:]])


def _decoders(shop: Workshop, bad: Result) -> bool:
    """Install the decoders that the verification lacks (ours, not the project's); True when there is something new."""
    wanted = (
        ("No module named 'PIL'|no decoder for images", "pillow"), ("directory: 'pdftotext'", "poppler-utils"),
        ("directory: 'ffmpeg'", "ffmpeg"),
    )  # fmt: skip
    new = False
    for pattern, package in wanted:
        if not re.search(pattern, bad.output) or f"decoder:{package}" in shop.tried:
            continue
        shop.tried.add(f"decoder:{package}")
        got = shop.run(PILLOW, timeout=180).ok if package == "pillow" else debian.install(shop, package)
        new = got or new
    return new


def _without_failed(
    shop: Workshop, quickstart: Quickstart, steps: list[dict[str, Any]], bad: Result
) -> list[dict[str, Any]]:
    """Drop the step that did not hold, named in the verifier's last words."""
    said = next((line for line in bad.output.splitlines() if line.startswith("NOT verified:")), "")
    for step in steps:
        if step.get("line") and f"`{step['line']}`" in said:
            return [other for other in steps if other is not step]
    if "file that was made" in said:
        broken = re.findall(r"^NOT decoded (.+?): ", bad.output, re.MULTILINE)
        say(f"# not decodable: {', '.join(broken)}")
        if any(Path(name).suffix.lower() in _MUST_DECODE for name in broken):
            return []
        quickstart.given += broken
        shop.draft.note(f"made but not readable as what its name says: {', '.join(broken)[:120]}")
        return steps
    return [step for step in steps if step["kind"] != "server"] if "GET" in said or "server" in said else steps[:-1]
