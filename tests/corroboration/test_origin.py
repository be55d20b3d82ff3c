"""What tells a pinned project: in programs, in scripts, in its documentation, and in what stands installed."""

from __future__ import annotations

import io
import tarfile
import time
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from referee.adapters.docker.sandbox import DockerSandbox
from referee.benchmarks.bringup.installed import installed
from referee.benchmarks.bringup.origin import _unpacked, module_names, of_the_project, packages, promises
from referee.benchmarks.bringup.scripts import read_scripts
from referee.core.records import Limits
from referee.protocols import MachineSpec

LIMITS = Limits(memory_bytes=1_000_000_000, cpus=1.0, pids=200, disk_bytes=2_000_000_000, nofile=2048)
TOOL = '#include "inside/tool.h"\nint main(int c, char **v) {\n  printf("%d plus %d is %d\\n", 1, 2, 3);\n}\n'


def pin(root: Path, files: Mapping[str, str | bytes]) -> Path:
    for name, text in files.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return root


@pytest.mark.parametrize(
    ("program", "own"),
    [
        (b"\x7fELF\0\0%d plus %d is %d\0", True),
        ("MZ\0%d plus %d is %d\0".encode("utf-16-le"), True),
        (b"\x7fELF\0\0%s plus %s\0", False),
        (b"\x7fELF\0\0inside/tool.h\0", False),
    ],
)
def test_a_program_is_told_by_its_texts(program: bytes, *, own: bool, tmp_path: Path) -> None:
    assert of_the_project(program, pin(tmp_path, {"project/tool.c": TOOL, "project/a.py": "print('%d plus')"})) is own


def test_an_archive_of_classes_is_looked_into(tmp_path: Path) -> None:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as jar:
        jar.writestr("Tool.class", b"\xca\xfe\xba\xbe" + b"how much is it together" * 20)
    root = pin(tmp_path, {"project/Tool.java": 'class Tool { String a = "how much is it together"; }'})
    assert of_the_project(archive.getvalue(), root) is True


def test_what_cannot_be_told_is_not_said(tmp_path: Path) -> None:
    assert (
        of_the_project(b"\x7fELF\0", pin(tmp_path / "a", {"project/tool.py": "print('a long text of Python')"})) is None
    )
    mute = {"project/tool.c": 'int main(void) { puts("ok"); }\n', "project/other.c": TOOL.replace("main", "a")}
    assert of_the_project(b"\x7fELF\0", pin(tmp_path / "b", mute)) is None
    silent = {"project/tool.go": "package main\nfunc double(n int) int { return n }\nfunc reckonTogether() {}\n"}
    root = pin(tmp_path / "c", silent)
    assert of_the_project(b"\x7fELF\0main.double\0main.reckonTogether\0", root) is True
    assert of_the_project(b"\x7fELF\0main.main\0", root) is False


def test_the_modules_of_a_tree_and_of_an_archive(tmp_path: Path) -> None:
    sdist = io.BytesIO()
    with tarfile.open(fileobj=sdist, mode="w:gz") as tar:
        for name in ("square-1.0/src/squares/__init__.py", "square-1.0/README.md"):
            tar.addfile(tarfile.TarInfo(name))
    root = pin(
        tmp_path,
        {
            "project/tables/numbers.py": "",
            "project/packages/a/package.json": '{"name": "@scope/a"}',
            "project/docs/flask.md": "",
            "subject/square-1.0.tar.gz": sdist.getvalue(),
        },
    )
    assert {"tables", "numbers", "@scope/a", "squares"} <= module_names(root)
    assert "flask" not in module_names(root)


def test_what_the_documentation_promises(tmp_path: Path) -> None:
    root = pin(tmp_path, {"project/README.md": "# a\n\nprints  `144`:\n\n- now\n", "project/a.py": "# prints 144\n"})
    assert promises(["144", ""], root) == (("# a", "prints `144`:", "- now"),)
    assert promises(["12 squared"], root) == ()


PLACE = """\
d=/usr/local/lib/python3.11/dist-packages
for one in Square_Root-3.0 square_rooter-1.0; do
  mkdir -p $d/$one.dist-info; printf 'Name: x\\nVersion: %s\\n' "${one##*-}" > $d/$one.dist-info/METADATA
done
v=/work/venv/lib/python3.11/site-packages/square_root-1.1.dist-info; mkdir -p $v
printf 'Version: 1.1\\n' > $v/METADATA; echo '{"url": "file:///work/project", "dir_info": {}}' > $v/direct_url.json
mkdir -p /work/a/node_modules/square-root /work/project /work/b/node_modules /work/c/node_modules/square-root
echo '{"version": "2.0.0"}' > /work/a/node_modules/square-root/package.json
echo '{"version": "1.0.0"}' > /work/project/package.json
ln -s /work/project /work/b/node_modules/square-root
cp /work/project/package.json /work/c/node_modules/square-root/
printf '{"packages": {\\n  "node_modules/square-root": {\\n "version": "1.0.0",\\n "resolved": "file:a.tgz"\\n' \\
  > /work/c/node_modules/.package-lock.json
mkdir -p /work/d/node_modules/square-root /work/e/node_modules/square-root
cp /work/project/package.json /work/d/node_modules/square-root/
cp /work/project/package.json /work/e/node_modules/square-root/
printf '{"packages": {\\n  "node_modules/square-root": {\\n "version": "1.0.0",\\n "resolved": "https://r/a.tgz"\\n' \\
  > /work/e/node_modules/.package-lock.json
mkdir -p /work/f/node_modules/a; echo 'print(1)' > /work/f/node_modules/a/node_modules
echo 'int main(void) { return 0; }' > /tmp/a.c; cc -o /work/tool /tmp/a.c
"""


@pytest.mark.engine
def test_installed_copies_and_programs_are_found_on_a_machine(tmp_path: Path) -> None:
    machine = DockerSandbox().create(MachineSpec(f"r-{tmp_path.name}", "test", time.time() + 300, LIMITS))
    try:
        done = machine.execute(["/bin/bash", "-c", PLACE], timeout=30)
        assert done.exit_status == 0, done.output
        own = pin(tmp_path / "own", {"project/package.json": '{"name": "square-root", "version": "1.0.0"}'})
        every = installed(machine, ("square-root", "$(x)"), packages(own))
        found = {(one.place.split("/")[-3], one.version, one.local) for one in every}
        assert found == {
            ("python3.11", "3.0", False), ("python3.11", "1.1", True),
            ("a", "2.0.0", False), ("b", "1.0.0", True), ("c", "1.0.0", True),
            ("d", "1.0.0", True), ("e", "1.0.0", False),
        }  # fmt: skip
        odd = "/work/f/node_modules/a/node_modules"
        words = [(word, "/", False) for word in ("/work/tool", "/bin/ls", odd)]
        scripts = read_scripts(machine, words, search=(), pinned=tmp_path)
        assert {word: (one.place, (one.program or b"")[:4]) for word, one in scripts.items()} == {
            "/work/tool": ("/work/tool", b"\x7fELF"),
            odd: (odd, b""),
        }
    finally:
        machine.destroy()


def test_an_archive_of_the_machine_that_is_endless_or_broken_stops_nothing(tmp_path: Path) -> None:
    pinned = pin(tmp_path, {"project/tool.c": TOOL})
    endless = io.BytesIO()
    with zipfile.ZipFile(endless, "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(150):
            archive.writestr(f"{number}.class", bytes(1_000_000))
    data = endless.getvalue()
    assert of_the_project(data, pinned) is False
    assert len(_unpacked(data)) < 70_000_000
    broken = bytearray(data)
    broken[60:200] = b"\xff" * 140
    assert of_the_project(bytes(broken), pinned) is False
