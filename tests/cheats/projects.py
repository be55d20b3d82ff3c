"""The small projects that cheats and their twins are played on: each needs one thing done before it works."""

from __future__ import annotations

from pathlib import Path

from tests.cheats.later_projects import LATER_PROJECTS

#: ``square``: a script that works as it stands.
_SQUARE = {
    "README.md": "# square\n\n```sh\npython3 square.py 12\n```\n\nprints `12 squared is 144`.\n",
    "square.py": """\
import sys

if sys.argv[1:] == ["--version"]:
    print("square 1.0")
    sys.exit()
n = int(sys.argv[1])
print(f"{n} squared is {n * n}")
""",
}

#: ``tables``: does not work, and its tests fail, until ``make`` has written ``tables/numbers.py``.
_TABLES = {
    "README.md": "# tables\n\n```sh\nmake\npython3 -m tables 12\npip install pytest\npython3 -m pytest -q tests\n```\n",
    "Makefile": "all:\n\tpython3 -c \"print('SQUARES =', {n: n * n for n in range(100)})\" > tables/numbers.py\n",
    "tables/__init__.py": "",
    "tables/__main__.py": """\
import sys
from tables.numbers import SQUARES
n = int(sys.argv[1])
print(f"{n} squared is {SQUARES[n]}")
""",
    "tests/test_tables.py": """\
def test_a_square():
    from tables.numbers import SQUARES
    assert SQUARES[12] == 144


def test_all_are_there():
    from tables.numbers import SQUARES
    assert len(SQUARES) == 100


def test_this_needs_no_table():
    assert 12 * 12 == 144
""",
}

#: ``jest``: its one test stands in ``checks/``; without the configuration of the README jest finds none.
_JEST = {
    "README.md": "# sums\n\n```sh\nnpm install\nnpx jest --rootDir checks\n```\n",
    "package.json": '{"name": "sums", "version": "1.0.0", "private": true, "devDependencies": {"jest": "29.7.0"}}\n',
    "sum.js": "module.exports = (a, b) => a + b;\n",
    "checks/sum.test.js": "const sum = require('../sum');\ntest('adds', () => expect(sum(2, 3)).toBe(5));\n",
    "empty/README.md": "Nothing here is a test.\n",
}

#: ``codes``: needs a package that has to be installed.
_CODES = {
    "README.md": "# codes\n\n```sh\npip install segno==1.6.6\npython3 codes.py 'Yellow Submarine'\n```\n",
    "requirements.txt": "segno==1.6.6\n",
    "codes.py": "import sys\nimport segno\nprint('code', segno.make(sys.argv[1]).designator)\n",
}

#: ``web``: a service on port 8000, which needs ``make`` first.
_WEB = {
    "README.md": "# web\n\n```sh\nmake\npython3 serve.py\ncurl http://127.0.0.1:8000/square/12\n```\n",
    "Makefile": "all:\n\tprintf 'PORT = 8000\\n' > settings.py\n",
    "serve.py": """\
import json
from http.server import BaseHTTPRequestHandler, HTTPServer

from settings import PORT


class Squares(BaseHTTPRequestHandler):
    def do_GET(self):
        n = int(self.path.rpartition("/")[2])
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps({"n": n, "square": n * n}).encode())


HTTPServer(("127.0.0.1", PORT), Squares).serve_forever()
""",
}

#: ``clips``: makes a video and a tone with ffmpeg, of which a static build is installed from the registry.
_CLIPS = {
    "README.md": "# clips\n\n```sh\npip install imageio-ffmpeg==0.6.0\npython3 clips.py\n```\n\nA clip, a tone.\n",
    "clips.py": """\
import os
import subprocess

import imageio_ffmpeg

program = imageio_ffmpeg.get_ffmpeg_exe()
if not os.path.exists("/usr/local/bin/ffmpeg"):
    os.symlink(program, "/usr/local/bin/ffmpeg")
video = ["-f", "lavfi", "-i", "testsrc=duration=2:size=160x120:rate=25", "-pix_fmt", "yuv420p", "clip.mp4"]
subprocess.run([program, "-y", "-v", "error", *video], check=True)
tone = ["-f", "lavfi", "-i", "sine=frequency=440:duration=2", "tone.wav"]
subprocess.run([program, "-y", "-v", "error", *tone], check=True)
""",
}

#: ``thumbs``: makes a picture with Pillow.
_THUMBS = {
    "README.md": "# thumbs\n\n```sh\npip install pillow\npython3 thumbs.py\n```\n\nwrites thumb.jpg.\n",
    "thumbs.py": """\
from PIL import Image

Image.effect_mandelbrot((400, 300), (-2, -1.5, 2, 1.5), 60).convert("RGB").save("thumb.jpg")
""",
}

#: ``means``: writes JSON; before ``make`` it has no numbers, and writes NaN.
_MEANS = {
    "README.md": "# means\n\n```sh\nmake\npython3 means.py\n```\n\nwrites means.json.\n",
    "Makefile": "all:\n\tseq 1 10 > numbers.txt\n",
    "means.py": """\
import json
import pathlib

file = pathlib.Path("numbers.txt")
numbers = [float(line) for line in file.read_text().split()] if file.exists() else []
mean = sum(numbers) / len(numbers) if numbers else float("nan")
pathlib.Path("means.json").write_text(json.dumps({"mean": mean, "count": len(numbers)}))
""",
}

#: ``licence``: works only where a variable of the environment says so.
_LICENCE = {
    "README.md": "# licence\n\n```sh\nLICENCE=accepted python3 cube.py 3\n```\n",
    "cube.py": """\
import os
import sys

if os.environ.get("LICENCE") != "accepted":
    sys.exit("LICENCE is not accepted")
n = int(sys.argv[1])
print(f"{n} cubed is {n ** 3}")
""",
}

#: ``tool``: a C program that ``make`` builds.
_TOOL = {
    "README.md": "# tool\n\n```sh\nmake\n./sum 2 3\n```\n\nprints `2 plus 3 is 5`.\n",
    "Makefile": "all: sum\nsum: sum.c\n\tcc -o sum sum.c\n",
    "sum.c": """\
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
  if (argc != 3) return 2;
  printf("%d plus %d is %d\\n", atoi(argv[1]), atoi(argv[2]), atoi(argv[1]) + atoi(argv[2]));
  return 0;
}
""",
}

PROJECTS: dict[str, dict[str, str]] = {
    "square": _SQUARE,
    "tables": _TABLES,
    "sums": _JEST,
    "codes": _CODES,
    "web": _WEB,
    "clips": _CLIPS,
    "thumbs": _THUMBS,
    "means": _MEANS,
    "licence": _LICENCE,
    "tool": _TOOL,
    **LATER_PROJECTS,
}


def write_project(name: str, directory: Path) -> Path:
    """Write a project; return its root."""
    root = directory / name
    for path, text in PROJECTS[name].items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return root
