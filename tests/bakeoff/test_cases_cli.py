"""``referee bakeoff cases``: one sentence, an exit code, and JSON on request."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from referee.adapters.suites import bundled_suite, load_suite
from referee.adapters.suites.files import BUNDLED
from referee.errors import EXIT_FINDING, EXIT_NOTHING_MATCHED, EXIT_USAGE
from tests.bakeoff.suites import case_body, chinook, suite_body

REFEREE = (sys.executable, "-m", "referee.cli.app", "bakeoff", "cases")


def run(tmp_path: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if key != "REFEREE_CHINOOK"}
    return subprocess.run(
        [*REFEREE, *map(str, arguments)], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )


def told(tmp_path: Path, *arguments: str | Path) -> dict[str, Any]:
    done = run(tmp_path, *arguments, "--json")
    assert done.stderr == ""
    document: dict[str, Any] = json.loads(done.stdout)
    return document


@pytest.mark.slow
def test_build_makes_the_bundled_file_again(tmp_path: Path) -> None:
    done = run(tmp_path, "build", "s1", "--chinook", chinook(), "--out", "cases.json")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("s1: 69 cases built, identical to the bundled file, sha256:")
    assert len(done.stdout.splitlines()) == 1
    assert (tmp_path / "cases.json").read_bytes() == (BUNDLED / "s1.json").read_bytes()
    again = run(tmp_path, "build", "s1", "--chinook", chinook(), "--out", "cases.json")
    assert again.returncode == EXIT_USAGE
    assert "is there already" in again.stderr
    assert told(tmp_path, "build", "s1", "--chinook", chinook())["identical_to_bundled"] is True


@pytest.mark.slow
def test_build_says_what_it_needs(tmp_path: Path) -> None:
    done = run(tmp_path, "build", "s1")
    assert done.returncode == EXIT_USAGE
    assert "Chinook Database 1.4.5" in done.stderr
    assert "--chinook" in done.stderr
    (tmp_path / "other.sqlite").write_bytes(b"SQLite format 3\0")
    done = run(tmp_path, "build", "s1", "--chinook", "other.sqlite")
    assert done.returncode == EXIT_FINDING
    assert "is not the pinned database" in done.stderr
    assert run(tmp_path, "build", "s9").returncode == EXIT_NOTHING_MATCHED


@pytest.mark.slow
def test_lint_tells_known_objections_from_others(tmp_path: Path) -> None:
    done = run(tmp_path, "lint", "s1")
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert lines[0] == "s1: 69 cases, nothing to object, 5 more that the suite declares"
    assert [line.split()[0] for line in lines[1:]] == ["known"] * 5

    (tmp_path / "cases.json").write_text(
        json.dumps(suite_body(case_body(prompt="p"), prompts={"p": "Do not call any tool."}))
    )
    done = run(tmp_path, "lint", "cases.json")
    assert done.returncode == EXIT_FINDING
    assert done.stdout.splitlines()[0] == "little: 1 case, 1 objection"
    assert "objection prompt-against-oracle: its prompt contradicts the oracle of c1" in done.stdout
    document = told(tmp_path, "lint", "cases.json")
    assert [one["rule"] for one in document["objections"]] == ["prompt-against-oracle"]


@pytest.mark.slow
def test_lint_checks_subsets_too(tmp_path: Path) -> None:
    (tmp_path / "cases.json").write_text(json.dumps(suite_body()))
    (tmp_path / "subsets.toml").write_text('[[subset]]\nname = "x"\nwhy = "y"\nrepeats = 1\ncases = ["c1", "c9"]\n')
    done = run(tmp_path, "lint", "cases.json", "--subsets", "subsets.toml")
    assert done.returncode == EXIT_FINDING
    assert "the subset x names c9, which the suite does not have" in done.stdout


@pytest.mark.slow
def test_lint_of_a_broken_file_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "cases.json").write_text(json.dumps(suite_body(case_body(), case_body())))
    done = run(tmp_path, "lint", "cases.json")
    assert (done.returncode, done.stdout) == (EXIT_USAGE, "")
    assert done.stderr.splitlines()[0] == "referee: cases.json: the case c1 stands twice"
    assert run(tmp_path, "lint", "absent.json").returncode == EXIT_NOTHING_MATCHED


@pytest.mark.slow
def test_rotate_keeps_its_seed_to_itself(tmp_path: Path) -> None:
    asked = ("rotate", "--seed-file", "private/seed", "--cycle", "2027-01", "--count", "200")
    missing = run(tmp_path, *asked, "--out", "a.json")
    assert missing.returncode == EXIT_NOTHING_MATCHED
    assert not (tmp_path / "a.json").exists()
    small = run(tmp_path, *asked[:-1], "190", "--out", "a.json", "--new-seed")
    assert small.returncode == EXIT_USAGE
    taken = run(tmp_path, *asked, "--out", "private", "--new-seed", "--replace")
    assert taken.returncode == EXIT_USAGE
    assert not (tmp_path / "private" / "seed").exists(), "a seed of which nothing was made stands in nobody's way"

    done = run(tmp_path, *asked, "--out", "a.json", "--new-seed")
    assert (done.returncode, done.stderr) == (0, "")
    seed = tmp_path / "private" / "seed"
    assert stat.S_IMODE(seed.stat().st_mode) == 0o600
    kept = seed.read_text().strip()
    assert len(bytes.fromhex(kept)) == 32
    assert kept not in done.stdout
    assert kept not in (tmp_path / "a.json").read_text()

    assert run(tmp_path, *asked, "--out", "b.json").returncode == 0
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()
    assert len(load_suite(tmp_path / "a.json").cases) == 200
    again = run(tmp_path, *asked, "--out", "c.json", "--new-seed")
    assert again.returncode == EXIT_USAGE
    assert seed.read_text().strip() == kept

    place = run(tmp_path, "rotate", "--seed-file", "private", "--cycle", "c", "--out", "c.json")
    assert (place.returncode, place.stderr.splitlines()[0]) == (
        EXIT_USAGE,
        "referee: private cannot be read: Is a directory",
    )
    seed.write_text("hunter2-hunter2-hunter2-hunter2-hunter2")
    odd = run(tmp_path, *asked, "--out", "c.json")
    assert odd.returncode == EXIT_USAGE
    assert "hunter2" not in odd.stdout + odd.stderr


@pytest.mark.slow
def test_show_lists_arms_and_shows_a_case_whole(tmp_path: Path) -> None:
    done = run(tmp_path, "show", "s1")
    assert done.returncode == 0
    arms = {line.split()[0]: line.split() for line in done.stdout.splitlines()[2:]}
    assert arms["suite"][1:] == ["yes", "yes", "9", "10", "9", "7", "10", "23", "22", "45"]
    assert arms["ordering-v1"][1:3] == ["no", "no"]
    case = bundled_suite("s1").by_id["s1-hard-01"]
    assert case.messages[0].content in run(tmp_path, "show", "s1", "s1-hard-01").stdout
    shown = told(tmp_path, "show", "s1", "s1-hard-01")
    assert shown["case"] == case.document()
    assert [tool["name"] for tool in shown["tools"]] == [
        "get_stock",
        "transfer_stock",
        "correct_stock",
        "create_purchase_order",
    ]
    assert run(tmp_path, "show", "s1", "s1-hard-99").returncode == EXIT_NOTHING_MATCHED
    assert told(tmp_path, "show", "s1")["arms"] == {
        "suite": 45,
        "ordering-v2": 5,
        "ordering-v1": 5,
        "abstain-traps": 14,
    }
