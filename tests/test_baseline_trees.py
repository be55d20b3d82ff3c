"""Repository trees: what their manifests declare, what their READMEs say in prose, and which plan follows which."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from referee.adapters.agents.baseline import commands, documents, drive
from referee.adapters.agents.baseline.ecosystems import look, node_package, node_tree, plans, python_tree
from referee.adapters.agents.baseline.ecosystems.plan import Plan
from referee.adapters.agents.baseline.mission import read_mission
from referee.adapters.agents.baseline.quickstart import Quickstart
from referee.adapters.agents.baseline.report import Draft
from referee.adapters.agents.baseline.workshop import Workshop

NOTHING: frozenset[str] = frozenset()


def workshop(project: Path, files: dict[str, str]) -> Workshop:
    """A shop at a tree of these files."""
    for name, text in files.items():
        path = project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    value = {"subject": {"name": "tree", "kind": "repository"}, "project": str(project), "seconds": 300}
    readme = project / "README.md"
    if readme.is_file():
        value["subject"]["readme"] = str(readme)  # type: ignore[index]
    mission = project.parent / "mission.json"
    mission.write_text(json.dumps(value), encoding="utf-8")
    return Workshop(read_mission(mission), Draft())


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


def test_a_node_tree_is_known_by_its_name_and_its_commands(project: Path) -> None:
    manifest = {"name": "@a/tool", "main": "i.js", "bin": {"tool": "./bin/t.js", "x;y": "z"}}
    lines = node_tree.links(manifest, "@a/tool")
    assert [line.split(" && ")[-1] for line in lines] == [
        "ln -sfn ../.. node_modules/@a/tool",
        "ln -sf ../../bin/t.js node_modules/.bin/tool)",
    ]
    assert node_tree.links({"name": "a; rm"}, "a; rm") == []
    (project / "bin").mkdir()
    (project / "bin/t.js").write_text("#!/bin/sh\necho up\n")
    shop = workshop(project, {})
    assert all(shop.run(line).ok for line in lines)
    assert shop.run("node_modules/.bin/tool").output.strip() == "up"
    assert (project / "node_modules/@a/tool/bin/t.js").is_file()


def test_tap_lines_are_counted_and_a_failed_one_counts_against() -> None:
    assert node_tree.passed("TAP version 13\nok 1 - a\nok 2 - b\n") == 2
    assert node_tree.passed("ok 1 - a\nnot ok 2 - b\n") is None
    assert node_tree.passed("ok 1 - a\nok 2 - b # skip no network\nnot ok 3 - c # Todo\nok 4 - d # TODO\n") == 1
    assert node_tree.passed("nothing to see") is None


def test_programs_are_found_in_each_way_of_declaring_them(project: Path) -> None:
    (project / "setup.py").write_text("setup(entry_points={'console_scripts': ['alpha = a:main', 'beta=b.c:run']})\n")
    (project / "setup.cfg").write_text("[options.entry_points]\nconsole_scripts =\n    gamma = g:main\n")
    poetry = {"tool": {"poetry": {"scripts": {"delta": "d:main"}}}, "project": {"scripts": {"eps": "e:main"}}}
    assert set(python_tree.programs_of(project, poetry)) == {"alpha", "beta", "gamma", "delta", "eps"}


def test_a_tree_that_is_run_in_place_gets_its_dependencies_and_a_setup_beside_tool_settings_is_built(
    project: Path,
) -> None:
    shop = workshop(project, {"pyproject.toml": '[project]\nname = "t"\nversion = "1"\ndependencies = ["rich>=1"]\n'})
    plan = python_tree.plan(shop)
    assert plan is not None
    assert plan.install[-1].endswith("pip install 'rich>=1'")
    shop = workshop(
        project, {"pyproject.toml": "[tool.black]\n", "setup.py": "from setuptools import setup\nsetup()\n"}
    )
    plan = python_tree.plan(shop)
    assert plan is not None
    assert plan.install[-1].endswith("pip install .")


def test_tests_bring_what_their_settings_and_their_tool_ask_for(project: Path) -> None:
    (project / "tests").mkdir()
    manifest = {
        "tool": {
            "pytest": {"ini_options": {"addopts": "--cov=x"}},
            "poetry": {"group": {"dev": {"dependencies": {"python": "*", "responses": "^0.2"}}}},
        }
    }
    line = python_tree.test_suites(project, manifest)[0].command
    assert "'responses' 'pytest-cov'" in line
    assert "'python'" not in line


def test_commands_in_prose_are_followed_where_no_block_shows_one(project: Path) -> None:
    text = "# t\n\n1. Run `npm install`\n2. Then `npm start`, on `/x`, never `npm publish`.\n"
    shop = workshop(project, {"README.md": text})
    found = Quickstart(shop, Plan("e", 60), documents.read_document(project / "README.md")).commands()
    assert [(made.line, made.purpose) for made in found] == [
        ("npm install", "install"), ("npm start", "run"), ("npm publish", "skip"),
    ]  # fmt: skip
    shop = workshop(project, {"README.md": text + "\n```sh\nnpm test\n```\n"})
    found = Quickstart(shop, Plan("e", 60), documents.read_document(project / "README.md")).commands()
    assert [made.line for made in found] == ["npm test"]


@pytest.mark.parametrize(
    ("line", "made", "purpose"),
    [("uv sync", "uv sync", "install"), ("uv run main.py", "python main.py", "run"),
     ("poetry run uvicorn a:app", "uvicorn a:app", "run"), ("npm run deploy", "npm run deploy", "skip"),
     ("cd web && npm start", "cd web && npm start", "run"), ("cd web", "cd web", "directory")],
)  # fmt: skip
def test_what_a_projects_tools_are_told(line: str, made: str, purpose: str) -> None:
    command = commands.read_command(line, 0, "", NOTHING, NOTHING)
    assert (command.line, command.purpose) == (made, purpose)


def test_routes_of_the_sources_are_asked_for(project: Path) -> None:
    workshop(project, {"src/a.js": "app.get('/v1/books', f); app.get('/b/:id', f)", "tests/b.js": "x.get('/no')"})
    assert look.routes(project, ".js") == ("/", "/v1/books")


@pytest.mark.slow
def test_the_images_description_is_tried_where_the_manifest_showed_nothing(project: Path) -> None:
    server = "import http.server as h\nh.HTTPServer(('127.0.0.1', 0), h.SimpleHTTPRequestHandler).serve_forever()\n"
    page = f"mkdir -p {project}/www && echo '<p>up</p>' > {project}/www/index.html"
    described = f'FROM debian:12\nRUN {page}\nWORKDIR {project}/www\nEXPOSE 80\nCMD ["python3", "../s.py"]\n'
    shop = workshop(project, {"Makefile": "all:\n\ttrue\n", "Dockerfile": described, "s.py": server})
    found = plans(shop)
    assert [plan.ecosystem for plan in found[:2]] in (["make", "dockerfile"], ["dockerfile", "make"])
    drive.bring_up(shop)
    assert (shop.draft.depth, "<p>up</p>" in shop.draft.returned) == ("tier1_real", True)


def test_a_file_that_the_readme_misspells_is_found_when_only_one_can_be_meant(project: Path) -> None:
    workshop(project, {"main.py": "", "data.txt": "", "run_a.py": "", "run_b.py": ""})
    assert commands.misspelt("python mian.py --x", project) == ("mian.py", "main.py")
    assert commands.misspelt("python main.py", project) is None
    assert commands.misspelt("python run_c.py", project) is None
    assert commands.misspelt("python other.py", project) is None


def test_a_packages_own_pages_follow_its_readme(project: Path) -> None:
    block = "```js\nx()\n```\n"
    root = "node_modules/tree/"
    files = {"README.md": block, "CHANGELOG.md": block, "docs/zeta.md": block, "docs/usage.md": block, "d.md": "prose"}
    files |= {"node_modules/other/usage.md": block}
    shop = workshop(project, {root + name: text for name, text in files.items()})
    names = [str(path.relative_to(project / root)) for path in node_package.pages(shop)]
    assert names == ["docs/usage.md", "docs/zeta.md"]


def test_examples_stand_in_comments_with_and_without_a_tag(project: Path) -> None:
    code = (
        "/**\n * Adds.\n * ```ts\n * add(1)\n * ```\n */\n/** Twice.\n * @example\n * twice(2)\n * @returns no\n */\n"
    )
    shop = workshop(project, {"node_modules/tree/index.d.ts": code, "verify/keep": ""})
    found, suites = node_package.from_comments(shop)
    assert found is not None
    assert suites == ()
    text = found.read_text(encoding="utf-8")
    assert "add(1)" in text
    assert "twice(2)" in text
    assert "@returns" not in text
