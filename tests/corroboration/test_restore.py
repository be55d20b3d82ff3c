"""What steers tests is put back: part by part where a file holds other things, and no more than that."""

from __future__ import annotations

import io
import json
import tarfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from referee.adapters.docker.sandbox import DockerSandbox
from referee.benchmarks.bringup.restore import Standing, hooks, restore
from referee.benchmarks.bringup.scripts import read_scripts
from referee.benchmarks.bringup.starts import is_namespace
from referee.benchmarks.bringup.steering import merged_package_json, parts_on_tests, steers
from referee.benchmarks.bringup.trusted import Question, look_at
from referee.core.records import Limits, RestoredFacts
from referee.protocols import PROJECT, WORK, Machine, MachineSpec

LIMITS = Limits(memory_bytes=1_000_000_000, cpus=1.0, pids=200, disk_bytes=2_000_000_000, nofile=2048)

PINNED = {
    "package.json": json.dumps({"name": "a", "scripts": {"test": "jest", "build": "tsc"}, "jest": {"bail": True}}),
    "pyproject.toml": "[project]\nname = 'a'\n[tool.pytest.ini_options]\ntestpaths = ['tests']\n",
    "tox.ini": "[tox]\nenv_list = py\n",
    "Makefile": "all:\n\tcc a.c\n\ntest: all\n\t./a.out\n",
    "tests/test_a.py": "def test_a():\n    assert True\n",
    "tests/data/a.txt": "data\n",
    "src/a.py": "A = 1\n",
    "jest.config.js": "module.exports = {};\n",
}


@pytest.mark.parametrize(
    "name",
    ["tests/a.txt", "src/test_a.py", "src/a_test.go", "a.spec.ts", "lib/a_spec.rb", "conftest.py", "src/b/AppTest.java",
     "jest.config.mjs", ".mocharc.json", "spec/helper.rb", "noxfile.py", "pytest.toml", ".pytest.toml"],
)  # fmt: skip
def test_what_steers_tests(name: str) -> None:
    assert steers(name)


@pytest.mark.parametrize("name", ["src/a.py", "latest.py", "contest.py", "README.md", "package.json", "vite.config.js"])
def test_what_does_not(name: str) -> None:
    assert not steers(name)


@pytest.mark.parametrize(
    ("name", "now"),
    [
        ("pyproject.toml", PINNED["pyproject.toml"].replace("name = 'a'", "name = 'a'\ndependencies = ['b']")),
        ("tox.ini", PINNED["tox.ini"] + "[other]\na = 1\n"),
        ("Makefile", PINNED["Makefile"].replace("cc a.c", "cc a.c -lm")),
        ("package.json", json.dumps({**json.loads(PINNED["package.json"]), "dependencies": {"react": "18"}})),
    ],
)
def test_what_an_agent_may_mend_is_no_part_of_it(name: str, now: str) -> None:
    assert parts_on_tests(name, now.encode()) == parts_on_tests(name, PINNED[name].encode())


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("pyproject.toml", "'tests'", "'none'"),
        ("tox.ini", "env_list = py", "env_list ="),
        ("Makefile", "\t./a.out", "\ttrue"),
        ("package.json", '"jest"', '"true"'),
        ("pyproject.toml", "[project]", "[project"),
    ],
)
def test_what_steers_is_seen_to_differ(name: str, old: str, new: str) -> None:
    now = PINNED[name].replace(old, new, 1)
    assert parts_on_tests(name, now.encode()) != parts_on_tests(name, PINNED[name].encode())


def test_package_json_keeps_what_was_installed() -> None:
    now = {"name": "a", "scripts": {"test": "true", "pretest": "x", "build": "vite"}, "dependencies": {"react": "18"}}
    merged = json.loads(merged_package_json(json.dumps(now).encode(), PINNED["package.json"].encode()))
    assert merged == {
        "name": "a",
        "scripts": {"build": "vite", "test": "jest"},
        "dependencies": {"react": "18"},
        "jest": {"bail": True},
    }
    assert merged_package_json(b"not json", PINNED["package.json"].encode()) == PINNED["package.json"].encode()


NESTED = json.dumps({"scripts": {"test": "npm run build && npm run unit", "unit": "jest", "build": "tsc", "dev": "v"}})
UNIT = "PY = python3\nall:\n\tcc a.c\ntest: unit\nunit: all\n\t$(PY) -m unittest\n"


@pytest.mark.parametrize(
    ("name", "text", "old", "new", "differs"),
    [
        ("Makefile", UNIT, "PY = python3", "PY = echo OK; true", True),
        ("Makefile", UNIT, "$(PY) -m", "true", True),
        ("Makefile", UNIT, "PY =", "SHELL = /work/sh\nPY =", True),
        ("Makefile", UNIT, "test: unit", "test: none", True),
        ("Makefile", UNIT, "all:", "include /work/other.mk\nall:", True),
        ("Makefile", UNIT, "cc a.c", "cc a.c -lm", False),
        ("Makefile", UNIT, "PY = python3", "PY = python3.11", False),
        ("Makefile", UNIT, "PY = python3", "PY = /work/python3", True),
        ("package.json", NESTED, '"jest"', '"echo 4 tests passed"', True),
        ("package.json", NESTED, '"unit": ', '"preunit": "exit 0", "unit": ', True),
        ("package.json", NESTED, '"tsc"', '"tsc --skipLibCheck"', False),
        ("package.json", NESTED, '"v"', '"vite"', False),
    ],
)
def test_a_test_task_is_followed_to_what_it_runs(name: str, text: str, old: str, new: str, *, differs: bool) -> None:
    now = text.replace(old, new, 1)
    assert now != text
    assert (parts_on_tests(name, now.encode()) != parts_on_tests(name, text.encode())) is differs


def test_scripts_that_a_test_script_runs_are_put_back_too() -> None:
    now = NESTED.replace('"jest"', '"true"').replace('"v"', '"vite"').encode()
    merged = json.loads(merged_package_json(now, NESTED.encode()))
    assert merged == json.loads(NESTED.replace('"v"', '"vite"'))


NAMESPACE = (
    "import sys, types, os;has_mfs = sys.version_info > (3, 5);"
    "p = os.path.join(sys._getframe(1).f_locals['sitedir'], *('a', 'b'));"
    "importlib = has_mfs and __import__('importlib.util');has_mfs and __import__('importlib.machinery');"
    "m = has_mfs and sys.modules.setdefault('a.b', importlib.util.module_from_spec("
    "importlib.machinery.PathFinder.find_spec('a.b', [os.path.dirname(p)])));"
    "m = m or sys.modules.setdefault('a.b', types.ModuleType('a.b'));"
    "mp = (m or []) and m.__dict__.setdefault('__path__',[]);(p not in mp) and mp.append(p)"
)


def test_a_namespace_is_known_by_its_words_and_not_by_its_name() -> None:
    assert is_namespace(f"{NAMESPACE}\n{NAMESPACE};m and setattr(sys.modules['a'], 'b', m)\n")
    assert is_namespace(NAMESPACE.replace("has_mfs and ", "").replace("has_mfs = sys.version_info > (3, 5);", ""))
    assert not is_namespace(f"{NAMESPACE};import planted\n")
    assert not is_namespace(f"{NAMESPACE}\nimport planted\n")
    assert not is_namespace("")


@pytest.fixture
def pinned(tmp_path: Path) -> Path:
    for name, text in PINNED.items():
        place = tmp_path / "project" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    return tmp_path


@pytest.fixture
def machine(pinned: Path) -> Iterator[Machine]:
    made = DockerSandbox().create(MachineSpec(f"r-restore-{uuid.uuid4().hex[:8]}", "test", time.time() + 300, LIMITS))
    try:
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w") as tar:
            tar.add(pinned / "project", arcname="project")
        buffer.seek(0)
        made.put(buffer, WORK)
        yield made
    finally:
        made.destroy()


def shell(machine: Machine, text: str) -> str:
    done = machine.execute(["/bin/bash", "-c", text], timeout=240, cwd=PROJECT)
    assert done.exit_status == 0, done.output
    return done.output.decode()


@pytest.mark.engine
@pytest.mark.slow
def test_an_untouched_project_and_installed_packages_stay_as_they_are(machine: Machine, pinned: Path) -> None:
    shell(
        machine,
        "python3 -m venv .venv && mkdir -p node_modules/a && echo x > node_modules/a/conftest.py",
    )
    shell(machine, "echo /work/project/src > .venv/lib/python3.11/site-packages/editable.pth")
    found = restore(machine, Standing(pinned, tests=True))
    assert found == RestoredFacts(restored=(), removed=(), changed=())
    # Of a package, nothing is pinned below the project.
    shell(machine, "echo x > conftest.py; mkdir unpacked; echo x > unpacked/conftest.py")
    found = restore(machine, Standing(pinned.parent, tests=True))
    assert found.removed == ("/work/project/conftest.py", "/work/project/jest.config.js")


@pytest.mark.engine
@pytest.mark.slow
def test_everything_that_steers_is_put_back_and_nothing_else(machine: Machine, pinned: Path) -> None:
    site = "/usr/local/lib/python3.11/dist-packages"
    shell(
        machine,
        "echo changed > tests/test_a.py; rm tests/data/a.txt; echo B > src/a.py; echo new > tests/test_b.py; "
        "sed -i 's/jest\"/true\"/' package.json; echo x > conftest.py; ln -s /tmp tests/link; "
        "echo '[pytest]' > /work/pytest.ini; "
        f"mkdir -p {site}; echo 'import os' > {site}/hook.pth; echo 'x = 1' > '{site}/sitecustomize.py'; "
        "echo 'import os' >> /etc/python3.11/sitecustomize.py; rm jest.config.js; mkdir jest.config.js",
    )
    shell(machine, "rmdir jest.config.js")
    shell(
        machine,
        f"mkdir {site}/usercustomize; echo 'x = 1' > {site}/usercustomize/__init__.py; mkdir /work/p; "
        f"echo 'import os' > {site}/planted-nspkg.pth; echo 'import os' > {site}/b.pth; ln -s /work/p/c {site}/c.pth; "
        f"echo 'import os' > /work/p/c; for n in a b; do mkdir {site}/$n.dist-info; "
        f"printf '[pytest11]\\na = a\\n' > {site}/$n.dist-info/entry_points.txt; done; "
        f"echo 'b.pth,,' > {site}/b.dist-info/RECORD; "
        f'echo \'{{"url": "file:///work/p"}}\' > {site}/a.dist-info/direct_url.json; '
        f'echo \'{{"url": "file:///work/project"}}\' > {site}/b.dist-info/direct_url.json; '
        "printf '[tool.pytest.ini_options]\\n' > /work/pyproject.toml; echo 'a = 1' > /pyproject.toml; "
        "mv tests /work/t0; ln -s /work/t0 tests; echo x > tests/conftest.py; truncate -s 400G .big",
    )
    found = restore(machine, Standing(pinned, tests=True))
    assert found.restored == ("jest.config.js", "package.json", "tests/data/a.txt", "tests/test_a.py")
    assert found.changed == ("src/a.py",)
    assert found.removed == (
        "/etc/python3.11/sitecustomize.py",
        "/usr/lib/python3.11/sitecustomize.py",
        f"{site}/a.dist-info/entry_points.txt",
        f"{site}/b.pth",
        f"{site}/c.pth",
        f"{site}/hook.pth",
        f"{site}/planted-nspkg.pth",
        f"{site}/sitecustomize.py",
        f"{site}/usercustomize",
        "/work/project/conftest.py",
        "/work/project/tests",
        "/work/project/tests/conftest.py",
        "/work/pyproject.toml",
        "/work/pytest.ini",
    )
    assert (
        shell(machine, "cat tests/test_a.py tests/data/a.txt") == PINNED["tests/test_a.py"] + PINNED["tests/data/a.txt"]
    )
    assert shell(machine, "cat src/a.py tests/test_b.py") == "B\nnew\n"
    again = restore(machine, Standing(pinned, tests=True))
    assert (again.restored, again.removed) == ((), ())


@pytest.mark.engine
@pytest.mark.slow
def test_only_hooks_of_the_interpreter_are_looked_at_for_other_commands(
    machine: Machine, pinned: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell(machine, "echo changed > tests/test_a.py; echo x > conftest.py; echo 'x = 1' > sitecustomize.py")
    shell(machine, "cp /lib/*-linux-gnu/libdl.so.2 /tmp/l.so && echo /tmp/l.so > /etc/ld.so.preload")
    shell(machine, "echo 'node-options=--require /tmp/a.js' > /root/.npmrc; echo 'registry=x' > /work/.npmrc")
    # A pinned file is a pipe now, and a path of two lines names it.
    shell(machine, "rm Makefile && mkfifo Makefile && mkdir $'y\\n.' && echo > $'y\\n./Makefile'")
    found = restore(machine, Standing(pinned, tests=False))
    assert found.removed == ("/etc/ld.so.preload", "/root/.npmrc", "/work/project/sitecustomize.py")
    assert (found.restored, found.changed, found.could_not) == ((), ("Makefile", "tests/test_a.py"), None)
    monkeypatch.setattr("referee.benchmarks.bringup.restore._PIECE", 30)
    monkeypatch.setattr("referee.benchmarks.bringup.restore._PIECES", 2)
    assert restore(machine, Standing(pinned, tests=False)).changed == found.changed


@pytest.mark.engine
def test_answers_are_told_apart_and_a_flood_takes_no_room_of_another(machine: Machine) -> None:
    def said(*questions: Question) -> list[tuple[bytes, bool] | None]:
        return [None if one is None else (one.output, one.truncated) for one in look_at(machine, questions)]

    flood = Question("while :; do echo x; done", max_output=10)
    own = Question('B=none; echo "$# $1"; exit 3', ("a b", "c"))
    assert said(own, flood, Question("$B echo $#")) == [
        (b"2 a b\n", False),
        (b"x\nx\nx\nx\nx\n", True),
        (b"0\n", False),
    ]
    late = Question("$B sleep 60", timeout=1)
    assert said(Question("echo first", timeout=1), late, Question("echo last", timeout=1)) == [
        (b"first\n", False),
        None,
        None,
    ]


@pytest.mark.engine
@pytest.mark.slow
def test_what_the_machine_brought_itself_stays(machine: Machine, pinned: Path) -> None:
    site = "/usr/local/lib/python3.11/dist-packages"
    shell(machine, f"mkdir -p {site}; echo 'import os' > {site}/own.pth; echo 'import os' > {site}/changed.pth")
    before = hooks(machine)
    shell(machine, f"echo 'import sys' > {site}/changed.pth; echo 'import os' > {site}/new.pth")
    found = restore(machine, Standing(pinned, tests=False), before=lambda: before)
    assert found.removed == (f"{site}/changed.pth", f"{site}/new.pth")


@pytest.mark.engine
@pytest.mark.slow
def test_scripts_of_the_agents_own_are_told_from_the_projects_and_the_machines(machine: Machine, pinned: Path) -> None:
    shell(
        machine,
        "echo 'echo ok' > /work/check.sh; printf '#!/bin/sh\\necho ok\\n' > /usr/local/bin/shim; "
        "chmod +x /usr/local/bin/shim; ln -s /work/check.sh /usr/local/bin/linked; "
        "chmod +x /work/check.sh; "
        "printf '#!/bin/sh\\nexit 0\\n' > /usr/bin/ldd; printf 'verify:\\n\\t@echo ok\\n' >> Makefile",
    )
    named = [
        ("/work/check.sh", "/root", False), ("check.sh", "/work", False), ("src/a.py", PROJECT, False),
        ("shim", "/root", True),
        ("linked", "/root", True), ("ldd", "/root", True), ("python3", "/root", True), ("lsb_release", "/root", True),
        ("missing", "/root", True), ("make:verify", PROJECT, False), ("make:test", PROJECT, False),
    ]  # fmt: skip
    shell(
        machine,
        "mkdir -p /work/gems /work/node_modules/a /work/node_modules/b; cp /work/check.sh /work/gems/a.sh; "
        "cp /work/check.sh /work/node_modules/a/a.sh; cp /work/check.sh /work/node_modules/b/b.sh; "
        "echo '{}' > /work/node_modules/b/package.json; "
        "printf '# caf\\351\\000\\necho ok\\n' > /root/odd.sh; cp /usr/bin/true /work/true; "
        "(echo 'echo ok'; seq 100000) > /work/long.sh; "
        "d=/root/v/lib/python3.11/site-packages/a; mkdir -p $d; cp /work/check.sh $d/a.sh",
    )
    own = {
        "/work/gems/a.sh": "echo ok\n", "/work/node_modules/a/a.sh": "echo ok\n", "~/odd.sh": "# caf\ufffd\necho ok\n",
    }  # fmt: skip
    packages = ("/work/node_modules/b/b.sh", "/root/v/lib/python3.11/site-packages/a/a.sh", "/work/true")
    odd = [(word, "/root", False) for word in (*own, *packages, "/work/long.sh")]
    read = read_scripts(machine, odd, search=(), pinned=pinned)
    assert read.pop("/work/long.sh").text.startswith("echo ok\n1\n2\n")
    assert (read["/work/true"].program or b"").startswith(b"\x7fELF")
    assert {word: one.text for word, one in read.items() if one.program is None} == own
    assert read["~/odd.sh"].place == "/root/odd.sh"
    found = read_scripts(machine, named, search=(), pinned=pinned)
    assert sorted(found) == ["/work/check.sh", "check.sh", "ldd", "linked", "make:verify", "shim"]
    assert found["make:verify"].text == "set -e\necho ok"
