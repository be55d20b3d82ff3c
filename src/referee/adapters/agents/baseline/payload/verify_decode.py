"""Decodes every file it is given with a real decoder; a file that is there but cannot be decoded is a failure.

A header says nothing: images are fully loaded, sound and video fully decoded with an empty error stream and a
duration above zero, JSON is strict (no NaN, no duplicate keys), archives are tested member by member.
"""

from __future__ import annotations

import csv
import gzip
import html.parser
import json
import os
import sqlite3
import subprocess
import sys
import tarfile
import wave
import zipfile
from xml.etree import ElementTree as ET

_LOAD = "import sys;from PIL import Image;i=Image.open(sys.argv[1]);i.load();print(i.format,'%dx%d'%i.size,'pixels')"
_IMAGES = {".png", ".jpg", ".jpeg", ".gif", ".bmp", ".tif", ".tiff", ".webp", ".ico", ".ppm", ".pbm", ".xpm"}
_MEDIA = {".mp3", ".ogg", ".flac", ".m4a", ".aac", ".opus", ".aiff", ".mp4", ".mkv", ".webm", ".avi", ".mov", ".mpg"}
_PILLOWS = ("/work/tools/bin/python", "/work/project/.venv/bin/python", "python3", sys.executable)


class Undecodable(Exception):
    """The file could not be decoded."""


def decode(path: str) -> str | None:
    """What a decoder says about ``path``; None where no decoder is known.

    Raises:
        Undecodable: there is a decoder for this kind, and it failed.
    """
    extension = os.path.splitext(path)[1].lower()
    try:
        return _by_extension(path, extension)
    except Undecodable:
        raise
    except Exception as exc:
        raise Undecodable(f"{type(exc).__name__}: {exc}") from exc


def _by_extension(path: str, extension: str) -> str | None:
    if extension in _IMAGES:
        return _image(path)
    if extension in _MEDIA:
        return _media(path)
    single = {
        ".json": _json, ".svg": _xml, ".xml": _xml, ".xhtml": _xml, ".wav": _wav, ".csv": _csv, ".html": _html,
        ".htm": _html, ".pdf": _pdf, ".zip": _zip, ".whl": _zip, ".xlsx": _zip, ".docx": _zip, ".pptx": _zip,
        ".epub": _zip, ".odt": _zip, ".tar": _tar, ".tgz": _tar, ".gz": _gz, ".db": _sqlite, ".sqlite": _sqlite,
        ".sqlite3": _sqlite, ".svgz": _gz,
    }.get(extension)  # fmt: skip
    if single:
        return single(path)
    if extension in {".js", ".mjs", ".cjs"}:
        return _tool(["node", "--check", path], "JavaScript that parses")
    if extension in {".txt", ".md", ".rst", ".yaml", ".yml", ".toml", ".css", ".tex", ".ini", ".py", ".dot", ".ts"}:
        return _text(path)
    return None


def _image(path: str) -> str:
    said = "no decoder for images is installed"
    for python in _PILLOWS:
        try:
            done = subprocess.run([python, "-c", _LOAD, path], capture_output=True, text=True, check=False, timeout=60)
        except OSError:
            continue
        if done.returncode == 0:
            return done.stdout.strip()
        said = (done.stderr.strip().splitlines() or [said])[-1]
        if "No module named" not in said:
            break
    raise Undecodable(said)


def _media(path: str) -> str:
    words = ["ffmpeg", "-v", "error", "-xerror", "-nostdin", "-progress", "pipe:1", "-i", path, "-f", "null", "-"]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=300)
    if done.returncode != 0 or done.stderr.strip():
        raise Undecodable((done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1])
    micro = [line.split("=")[1] for line in done.stdout.splitlines() if line.startswith("out_time_us=")]
    seconds = int(micro[-1]) / 1e6 if micro and micro[-1].lstrip("-").isdigit() else 0.0
    if seconds <= 0:
        raise Undecodable("it decodes to no time at all")
    return f"{seconds:.1f} s of media decoded with no error"


def _wav(path: str) -> str:
    with wave.open(path, "rb") as sound:
        data = sound.readframes(sound.getnframes())
        frames = len(data) // (sound.getsampwidth() * sound.getnchannels())
        if frames == 0 or frames != sound.getnframes():
            raise Undecodable(f"{frames} frames read, {sound.getnframes()} announced")
        return f"{frames} frames at {sound.getframerate()} Hz"


def _no_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
    keys = [key for key, _ in pairs]
    if len(keys) != len(set(keys)):
        raise Undecodable("a key stands twice")
    return dict(pairs)


def _no_constant(name: str) -> object:
    raise Undecodable(f"{name} is no JSON")


def _json(path: str) -> str:
    with open(path, encoding="utf-8") as stream:
        value = json.load(stream, object_pairs_hook=_no_duplicates, parse_constant=_no_constant)
    size = len(value) if isinstance(value, (list, dict)) else 1
    return f"JSON {type(value).__name__} with {size} entries"


def _xml(path: str) -> str:
    root = ET.parse(path).getroot()
    return f"XML <{root.tag.rsplit('}', 1)[-1]}> with {sum(1 for _ in root.iter())} elements"


def _html(path: str) -> str:
    tags: list[str] = []

    class Counter(html.parser.HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            tags.append(tag)

    with open(path, encoding="utf-8") as stream:
        Counter().feed(stream.read())
    if not tags:
        raise Undecodable("it has no element")
    return f"HTML with {len(tags)} elements"


def _csv(path: str) -> str:
    with open(path, encoding="utf-8", newline="") as stream:
        rows = list(csv.reader(stream, strict=True))
    return f"CSV with {len(rows)} rows"


def _pdf(path: str) -> str:
    words = _tool(["pdftotext", path, "-"], "")
    return f"PDF with {len(words.split())} words of text"


def _zip(path: str) -> str:
    with zipfile.ZipFile(path) as archive:
        bad = archive.testzip()
        if bad:
            raise Undecodable(f"member {bad} is damaged")
        return f"archive with {len(archive.namelist())} sound members"


def _tar(path: str) -> str:
    with tarfile.open(path) as archive:
        count = 0
        for member in archive:
            stream = archive.extractfile(member) if member.isfile() else None
            if stream:
                stream.read()
            count += 1
    return f"archive with {count} members read"


def _gz(path: str) -> str:
    with gzip.open(path) as stream:
        return f"gzip of {len(stream.read())} bytes"


def _sqlite(path: str) -> str:
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as connection:
        answer = connection.execute("pragma integrity_check").fetchone()[0]
        if answer != "ok":
            raise Undecodable(str(answer))
        tables = connection.execute("select count(*) from sqlite_master where type = 'table'").fetchone()[0]
    return f"SQLite database, sound, {tables} tables"


def _text(path: str) -> str:
    with open(path, encoding="utf-8") as stream:
        lines = stream.read().splitlines()
    if not any(line.strip() for line in lines):
        raise Undecodable("it is empty")
    return f"text of {len(lines)} lines, the first: {next(line for line in lines if line.strip())[:80]}"


def _tool(words: list[str], says: str) -> str:
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    if done.returncode != 0:
        raise Undecodable((done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1])
    return says or done.stdout


def main(paths: list[str]) -> int:
    """Decode each path; the number of failures decides the exit status."""
    failures = 0
    for path in paths:
        try:
            said = decode(path)
        except Undecodable as exc:
            failures += 1
            sys.stdout.write(f"NOT decoded {path}: {exc}\n")
        else:
            if said is not None:
                sys.stdout.write(f"decoded {path}: {said}\n")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
