"""Makes a small, valid sample file for a name that a documented example opens: the kind follows the extension."""

from __future__ import annotations

import json
import math
import os
import sqlite3
import struct
import subprocess
import sys
import wave
import zipfile
import zlib

TEXT = "The quick brown fox jumps over the lazy dog 2468.\nA second line of plain words.\n"
_DRAW = (
    "import sys;from PIL import Image,ImageDraw,ImageFont;"
    "i=Image.new('RGB',(640,160),'white');"
    "ImageDraw.Draw(i).text((24,48),'HELLO WORLD 2468',fill='black',font=ImageFont.load_default(size=56));"
    "i.save(sys.argv[1])"
)
_IMAGES = {".png", ".jpg", ".jpeg", ".gif", ".bmp", ".tif", ".tiff", ".webp", ".ico"}
_SOUND = {".mp3", ".ogg", ".flac", ".m4a", ".aac", ".opus", ".aiff"}
_VIDEO = {".mp4", ".mkv", ".webm", ".avi", ".mov", ".flv", ".mpg", ".mpeg"}
PLAIN = {
    ".json": json.dumps({"name": "sample", "values": [1, 2, 3], "posts": [{"id": 1, "title": "a title"}]}, indent=1),
    ".csv": "name,age,city\nAda,36,London\nGrace,45,New York\n",
    ".tsv": "name\tage\nAda\t36\nGrace\t45\n",
    ".yaml": "name: sample\nvalues: [1, 2, 3]\n",
    ".toml": 'name = "sample"\nvalues = [1, 2, 3]\n[table]\nkey = "value"\n',
    ".ini": "[section]\nkey = value\n",
    ".xml": '<?xml version="1.0"?>\n<root><item id="1">one</item><item id="2">two</item></root>\n',
    ".html": "<!doctype html><html><head><title>Sample</title></head><body><h1>Hi</h1><p>A text.</p></body></html>\n",
    ".md": "# Sample\n\nSome *emphasis* and a [link](https://example.org).\n\n- one\n- two\n",
    ".rst": "Sample\n======\n\nSome *emphasis*.\n",
    ".svg": '<svg xmlns="http://www.w3.org/2000/svg" width="20" height="20"><rect width="10" height="10"/></svg>\n',
    ".js": "const answer = 40 + 2;\nconsole.log('answer', answer);\n",
    ".mjs": "export const answer = 42;\n",
    ".cjs": "module.exports = { answer: 42 };\n",
    ".ts": "const answer: number = 42;\nconsole.log(answer);\n",
    ".jsx": "export const A = () => <p>hi</p>;\n",
    ".css": "body { color: #333333; margin: 0 auto; }\n",
    ".scss": "$c: #333;\nbody { color: $c; }\n",
    ".less": "@c: #333;\nbody { color: @c; }\n",
    ".py": "def answer():\n    return 42\n\n\nif __name__ == '__main__':\n    print(answer())\n",
    ".sql": "SELECT 1;\n",
    ".ics": "BEGIN:VCALENDAR\nVERSION:2.0\nPRODID:-//sample//EN\nEND:VCALENDAR\n",
    ".log": "2024-01-01 00:00:00 INFO started\n",
    ".dot": "digraph G { a -> b; b -> c; }\n",
    ".po": 'msgid ""\nmsgstr ""\n\nmsgid "hello"\nmsgstr "hallo"\n',
}
PLAIN.update({".yml": PLAIN[".yaml"], ".htm": PLAIN[".html"], ".markdown": PLAIN[".md"], ".cfg": PLAIN[".ini"]})
PLAIN.update({".gv": PLAIN[".dot"], ".jsonl": '{"id": 1}\n{"id": 2}\n', ".conf": PLAIN[".ini"]})


def make(path: str) -> bool:
    """Create a sample at ``path`` (relative names only); False when the kind is not known."""
    if os.path.isabs(path) or ".." in path.split(os.sep) or os.path.exists(path):
        return False
    extension = os.path.splitext(path)[1].lower()
    parent = os.path.dirname(path)
    if parent:
        os.makedirs(parent, exist_ok=True)
    if extension in PLAIN:
        return _text(path, PLAIN[extension])
    if extension in {".txt", ".text", ".dat", ".in"}:
        return _text(path, TEXT)
    if extension == ".wav":
        return _wav(path)
    if extension in _SOUND | _VIDEO:
        return _ffmpeg(path, video=extension in _VIDEO)
    if extension in _IMAGES:
        return _image(path)
    if extension == ".pdf":
        return _pdf(path)
    if extension == ".zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("sample.txt", TEXT)
        return True
    if extension in {".db", ".sqlite", ".sqlite3"}:
        with sqlite3.connect(path) as connection:
            connection.execute("create table sample (id integer primary key, name text)")
            connection.execute("insert into sample (name) values ('Ada')")
        return True
    return False


def _text(path: str, text: str) -> bool:
    with open(path, "w", encoding="utf-8") as stream:
        stream.write(text)
    return True


def _pdf(path: str) -> bool:
    """One page with one sentence, in the plainest PDF."""
    words = b"BT /F1 24 Tf 72 700 Td (The quick brown fox) Tj ET"
    parts = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R"
        b" /Resources << /Font << /F1 5 0 R >> >> >>",
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(words), words),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    body = b"%PDF-1.4\n"
    places = []
    for number, part in enumerate(parts, 1):
        places.append(len(body))
        body += b"%d 0 obj\n%s\nendobj\n" % (number, part)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    end = b"xref\n0 6\n0000000000 65535 f \n%strailer\n<< /Size 6 /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n"
    with open(path, "wb") as stream:
        stream.write(body + end % (table, len(body)))
    return True


def _wav(path: str, seconds: int = 31, rate: int = 8000) -> bool:
    with wave.open(path, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(rate)
        step = 2 * math.pi * 440 / rate
        sound.writeframes(b"".join(struct.pack("<h", int(9000 * math.sin(step * i))) for i in range(seconds * rate)))
    return True


def _ffmpeg(path: str, *, video: bool) -> bool:
    source = ["-f", "lavfi", "-i", "sine=frequency=440:duration=31"]
    if video:
        source = ["-f", "lavfi", "-i", "testsrc=size=160x120:rate=10:duration=12", *source, "-shortest"]
    try:
        done = subprocess.run(["ffmpeg", "-v", "error", "-nostdin", "-y", *source, path], check=False, timeout=60)
    except OSError:
        return False
    return done.returncode == 0


def _image(path: str) -> bool:
    for python in (sys.executable, "/work/tools/bin/python", "python3"):
        try:
            if (
                subprocess.run([python, "-c", _DRAW, path], check=False, capture_output=True, timeout=60).returncode
                == 0
            ):
                return True
        except OSError:
            continue
    if path.lower().endswith(".png"):
        with open(path, "wb") as stream:
            stream.write(_png(64, 64))
        return True
    return False


def _png(width: int, height: int) -> bytes:
    rows = b"".join(
        b"\0" + b"".join(bytes((x * 4 % 256, y * 4 % 256, 128)) for x in range(width)) for y in range(height)
    )

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
