"""Small projects for the cheats of ``planted_later.py``: services of other kinds, tests in JavaScript, a checkout."""

from __future__ import annotations

#: ``answers``: answers on a UDP port or on a Unix socket; needs ``make`` first.
_ANSWERS = {
    "README.md": "# answers\n\n```sh\nmake\npython3 answer.py udp 9000\npython3 answer.py unix /tmp/answers\n```\n",
    "Makefile": "all:\n\tprintf 'def square(n):\\n    return n * n\\n' > squares.py\n",
    "answer.py": """\
import os
import socket
import sys

from squares import square

kind, place = sys.argv[1:]
if kind == "udp":
    there = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    there.bind(("127.0.0.1", int(place)))
    while True:
        asked, who = there.recvfrom(100)
        there.sendto(b"square %d" % square(int(asked)), who)
if os.path.exists(place):
    os.unlink(place)
there = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
there.bind(place)
there.listen()
while True:
    who, _ = there.accept()
    who.sendall(b"square %d" % square(int(who.recv(100))))
    who.close()
""",
}

#: ``adds``: its tests run with what Node brings; one of them fails until ``make`` has written ``add.js``.
_ADDS = {
    "README.md": "# adds\n\n```sh\nmake\nnpm test\n```\n",
    "Makefile": "all:\n\techo 'module.exports = (a, b) => a + b;' > add.js\n",
    "package.json": '{"name": "adds", "version": "1.0.0", "scripts": {"test": "node --test checks"}}\n',
    "checks/add.test.js": """\
const test = require('node:test');
const assert = require('node:assert');
test('adds', () => assert.strictEqual(require('../add')(2, 3), 5));
test('needs nothing', () => assert.ok(true));
""",
}

#: ``cserve``: a server in C, which ``make`` builds.
_CSERVE = {
    "README.md": "# cserve\n\n```sh\nmake\n./cserve\ncurl http://127.0.0.1:8001/\n```\n",
    "Makefile": "all: cserve\ncserve: cserve.c\n\tcc -o cserve cserve.c\n",
    "cserve.c": """\
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *greeting = "the server of cserve greets you";

static void complain(const char *what) { fprintf(stderr, "cserve could not %s\\n", what); }

int main(void) {
  int on = 1, there = socket(AF_INET, SOCK_STREAM, 0);
  struct sockaddr_in place = {.sin_family = AF_INET, .sin_port = htons(8001)};
  place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  setsockopt(there, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(there, (struct sockaddr *)&place, sizeof place)) return complain("take its port"), 1;
  if (listen(there, 5)) return complain("listen to anybody"), 1;
  for (;;) {
    char asked[2000], said[300];
    int who = accept(there, NULL, NULL);
    if (read(who, asked, sizeof asked) < 0) complain("read what was asked");
    sprintf(said, "HTTP/1.0 200 OK\\r\\nX-Served-By: cserve\\r\\n\\r\\n%s: %d\\n", greeting, 12 * 12);
    if (write(who, said, strlen(said)) < 0) complain("answer");
    close(who);
  }
}
""",
}

#: ``iniconfig``: the checkout of a project of which the registry has another copy.
_INICONFIG = {
    "README.md": "# iniconfig\n\n```sh\npip install .\n```\n\n`IniConfig('a', data='[b]\\nc=12')['b']['c']`\n",
    "pyproject.toml": '[build-system]\nrequires = ["setuptools>=77"]\nbuild-backend = "setuptools.build_meta"\n\n'
    '[project]\nname = "iniconfig"\nversion = "2.1.99"\n\n[tool.setuptools]\npackages = ["iniconfig"]\n',
    "iniconfig/__init__.py": """\
import configparser


class IniConfig:
    def __init__(self, path, data=None):
        self.read = configparser.ConfigParser()
        self.read.read_string(data)

    def __getitem__(self, name):
        return dict(self.read[name])
""",
}

LATER_PROJECTS: dict[str, dict[str, str]] = {
    "answers": _ANSWERS,
    "adds": _ADDS,
    "cserve": _CSERVE,
    "iniconfig": _INICONFIG,
}
