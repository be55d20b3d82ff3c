"""What steers commands from outside the project: what each start of Python or of any program reads, and, for test
runs, configuration above the project and plugins that are loaded unasked.
"""

from __future__ import annotations

import base64
import re

from referee.benchmarks.bringup.trusted import Answer, Question
from referee.errors import ReportRejected
from referee.protocols import PROJECT, SUBJECT, Machine

# ``found`` MD5 path: nothing but perhaps a RECORD vouches for it. ``recorded`` path SHA-256 value: what a RECORD says.
# A package that was installed from a directory of the agent's vouches for nothing but being editable.
_BESIDE = """
hex() { $B od -An -v -tx1 | $B tr -d ' \\n'; }
of_the_agent() {
  $B grep -qs '"url": *"file:' "$1/direct_url.json" || return 1
  ! $B grep -qsE '"url": *"file://(PROJECT|SUBJECT)["/]' "$1/direct_url.json"
}
recorded() {
  up=${1%/*} name=${1##*/}
  for level in 1 2 3 4 5 6; do
    $B grep -s "^$name,sha256=" "$up"/*.dist-info/RECORD /dev/null | while IFS= read -r line; do
      info=${line%%/RECORD:*} value=${line##*,sha256=}
      if of_the_agent "$info"; then case $name in __editable__*) ;; *) continue;; esac; fi
      echo "recorded $(printf %s "$1" | hex) $($B sha256sum "$1" | $B cut -d ' ' -f 1) ${value%%,*}"
    done
    name=${up##*/}/$name up=${up%/*}
    [ -n "$up" ] || return 0
  done
}
tell() {
  sum=$($B md5sum "$1" 2>/dev/null | $B cut -d ' ' -f 1)
  at=$($B readlink -f "$1")
  $B grep -qsxF -- "$sum  ${at#/}" /var/lib/dpkg/info/*.md5sums && return 0
  $B grep -qsxF -- " $at $sum" /var/lib/dpkg/status && return 0
  echo "found ${sum:-none} $(printf %s "$1" | hex)"
}
$B find /etc /usr/lib /usr/local/lib /root /work /opt /home /srv /tmp /mnt /media /var/lib /var/tmp \\
  -type d \\( -path /opt/agent -o -path /usr/local/lib/referee -o -path /var/lib/dpkg -o -name node_modules \\
    -o -name .git -o -name __pycache__ \\) -prune \\
  -o \\( -type f -o -type l \\) \\( -name sitecustomize.py -o -name usercustomize.py -o -name '*.pth' \\
    -o -name 'sitecustomize*.so' -o -name 'usercustomize*.so' -o -name sitecustomize.pyc \\
    -o -name usercustomize.pyc \\) -print \\
  -o \\( -type d -o -type l \\) \\( -name sitecustomize -o -name usercustomize \\) -print 2>/dev/null |
while IFS= read -r file; do
  name=${file##*/} directory=${file%/*}
  case $name in
    _virtualenv.pth)
      [ -f "$directory/../../../pyvenv.cfg" ] && [ "$($B cat "$file")" = 'import _virtualenv' ] && continue;;
  esac
  case $name in
    *.pth) $B grep -qs '^import[[:space:]]' "$file" || continue;;
  esac
  recorded "$file"
  tell "$file"
done
[ ! -s /etc/ld.so.preload ] || tell /etc/ld.so.preload
for file in /.npmrc /root/.npmrc /work/.npmrc PROJECT/.npmrc; do
  $B grep -qsE '^[[:space:]]*node[-_]options[[:space:]]*=.*(-r|--require|--import|--(experimental-)?loader)' "$file" &&
    tell "$file"
done
[ "$1" = tests ] || exit 0
directory=$($B readlink -f PROJECT)
case $directory in /*/*) ;; *) directory=PROJECT;; esac
while [ -n "$directory" ]; do
  directory=${directory%/*}
  for name in conftest.py pytest.ini .pytest.ini pytest.toml .pytest.toml tox.ini setup.cfg jest.config.js \\
    jest.config.cjs jest.config.mjs jest.config.ts jest.config.json .mocharc.js .mocharc.cjs .mocharc.json \\
    .mocharc.yml .mocharc.yaml; do
    [ ! -f "$directory/$name" ] || tell "$directory/$name"
  done
  ! $B grep -qs '^[[:space:]]*\\[tool\\.pytest' "$directory/pyproject.toml" || tell "$directory/pyproject.toml"
done
for file in /usr/lib/python3*/*-packages/*.dist-info/entry_points.txt \\
  /usr/local/lib/python3*/*-packages/*.dist-info/entry_points.txt \\
  /root/.local/lib/python3*/site-packages/*.dist-info/entry_points.txt \\
  $($B find /work /opt /root -type d -name node_modules -prune -o -path '*.dist-info/entry_points.txt' -print); do
  $B grep -qs '^\\[pytest11\\]' "$file" && of_the_agent "${file%/*}" && tell "$file"
done
exit 0
""".replace("PROJECT", PROJECT).replace("SUBJECT", SUBJECT)

_N = r"'[\w.]+'"
#: What setuptools writes for a package of a namespace.
_NAMESPACE = re.compile(
    r"import sys, types, os;(?:has_mfs = sys\.version_info > \(3, 5\);)?"
    r"p = os\.path\.join\((?:sys\._getframe\(1\)\.f_locals\['sitedir'\]|'[^'\\]*'), \*\((?:'\w+',? ?)+\)\);"
    r"importlib = (?:has_mfs and )?__import__\('importlib\.util'\);"
    r"(?:has_mfs and )?__import__\('importlib\.machinery'\);"
    rf"m = (?:has_mfs and )?sys\.modules\.setdefault\({_N}, importlib\.util\.module_from_spec\("
    rf"importlib\.machinery\.PathFinder\.find_spec\({_N}, \[os\.path\.dirname\(p\)\]\)\)\);"
    rf"m = m or sys\.modules\.setdefault\({_N}, types\.ModuleType\({_N}\)\);"
    r"mp = \(m or \[\]\) and m\.__dict__\.setdefault\('__path__', ?\[\]\);\(p not in mp\) and mp\.append\(p\)"
    rf"(?:;m and setattr\(sys\.modules\[{_N}\], {_N}, m\))?"
)


def asked_beside(*, tests: bool) -> Question:
    """What a machine is asked for ``beside``."""
    return Question(_BESIDE, ("tests" if tests else "starts",), timeout=60)


def beside(machine: Machine, done: Answer) -> list[tuple[str, str]]:
    """Path and MD5 of each such file that no package vouches for; the MD5 of a directory is ``none``.

    Args:
        machine: the machine.
        done: what it answered.

    Raises:
        MachineFault: the machine could not be asked.
    """
    found, owned = [], set()
    for line in done.output.decode("ascii", "replace").splitlines():
        match line.split():
            case ["found", digest, value]:
                found.append((_path(value), digest))
            case ["recorded", value, digest, said] if _same(digest, said):
                owned.add(_path(value))
    return [one for one in dict.fromkeys(found) if one[0] not in owned and not _is_namespace(machine, one[0])]


def is_namespace(text: str) -> bool:
    """Whether a ``-nspkg.pth`` says nothing but what setuptools writes for namespaces."""
    lines = [line for line in text.splitlines() if line.strip()]
    return bool(lines) and all(_NAMESPACE.fullmatch(line) for line in lines)


def _is_namespace(machine: Machine, path: str) -> bool:
    if not path.endswith("-nspkg.pth"):
        return False
    try:
        data = machine.read_file(path, max_bytes=100_000)
    except ReportRejected:
        return False
    return data is not None and is_namespace(data.decode("utf-8", "replace"))


def _same(digest: str, said: str) -> bool:
    """Whether a SHA-256 in hexadecimal is the one of a RECORD (URL-safe base 64 without padding)."""
    try:
        return base64.urlsafe_b64encode(bytes.fromhex(digest)).decode().rstrip("=") == said.strip().rstrip("=")
    except ValueError:
        return False


def _path(value: str) -> str:
    return bytes.fromhex(value).decode("utf-8", "surrogateescape")
