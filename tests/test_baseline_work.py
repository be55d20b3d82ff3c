"""baseline's bench: commands, deadlines, honesty of the draft report."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from referee.adapters.agents.baseline import debian, drive, mission, terminal, workshop
from referee.adapters.agents.baseline.ecosystems import plans
from referee.adapters.agents.baseline.report import Draft
from referee.core.report import parse_report


def make_shop(tmp_path: Path, **subject: object) -> workshop.Workshop:
    (tmp_path / "project").mkdir(exist_ok=True)
    value = {
        "subject": {"name": "x", "kind": "repository", **subject},
        "project": str(tmp_path / "project"),
        "report": str(tmp_path / "report.json"),
        "seconds": 600,
        "deadline": time.time() + 600,
    }
    (tmp_path / "mission.json").write_text(json.dumps(value))
    return workshop.Workshop(mission.read_mission(tmp_path / "mission.json"), Draft())


def test_an_untouched_draft_claims_nothing_and_is_a_valid_report(tmp_path: Path) -> None:
    Draft().write(tmp_path / "report.json")
    report = parse_report((tmp_path / "report.json").read_bytes())
    assert (report.installed, report.started, report.test_depth) == (False, False, "tier3_none")
    assert report.final_state.startswith("could not verify")


def test_depth_is_never_claimed_without_start_and_command(tmp_path: Path) -> None:
    draft = Draft(installed=True, started=False, depth="tier1_real", command="x", returned="y")
    assert draft.as_dict()["test_depth"] == "tier3_none"
    draft.started = True
    assert draft.as_dict()["test_depth"] == "tier1_real"
    draft.met("k", "w" * 5000).fixed = True
    draft.write(tmp_path / "r.json")
    assert parse_report((tmp_path / "r.json").read_bytes()).fixed == 1


def test_a_command_is_shown_streamed_and_judged(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    result = terminal.run("echo out; echo err >&2; exit 3", cwd=tmp_path, env=os.environ, timeout=20)
    assert (result.code, result.output) == (3, "out\nerr\n")
    shown = capfdbinary.readouterr().out
    assert shown.startswith(b"$ echo out")
    assert b"err" in shown


def test_a_command_beyond_its_time_is_ended_with_its_children(tmp_path: Path) -> None:
    line = "sh -c 'sleep 300 & echo $! > child; wait'"
    result = terminal.run(line, cwd=tmp_path, env=os.environ, timeout=2)
    assert result.code is None
    child = int((tmp_path / "child").read_text())
    for _ in range(50):
        if not _alive(child):
            break
        time.sleep(0.1)
    assert not _alive(child)


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.slow
def test_a_question_is_seen_only_on_an_open_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal, "PROMPT_SILENCE", 1.0)
    asked = terminal.run("printf 'Project name: '; sleep 60", cwd=tmp_path, env=os.environ, timeout=20)
    assert asked.waiting
    busy = terminal.run("echo 'Installing build dependencies:'; sleep 3", cwd=tmp_path, env=os.environ, timeout=20)
    assert (busy.waiting, busy.code) == (False, 0)


def test_a_server_is_recognised_by_a_port_of_its_own(tmp_path: Path) -> None:
    line = "python3 -m http.server 0 --bind 127.0.0.1"
    result = terminal.run(line, cwd=tmp_path, env=os.environ, timeout=30, serving=True)
    assert result.ports


def test_an_error_counts_as_fixed_only_when_the_command_got_past_it(tmp_path: Path) -> None:
    shop = make_shop(tmp_path)
    (shop.project / ".env.example").write_text("A=1\n")
    assert shop.work("test -f .env || { echo 'missing .env file'; exit 1; }").ok
    assert [(error.fixed, error.how) for error in shop.draft.errors] == [(True, "copied .env.example to .env")]
    assert not shop.work("test -f other.env || { echo 'missing .env file'; exit 1; }").ok
    assert [error.fixed for error in shop.draft.errors] == [True, False]


def test_a_named_option_and_a_documented_variant_are_used(tmp_path: Path) -> None:
    shop = make_shop(tmp_path)
    ask = shop.project / "ask.sh"
    ask.write_text('#!/bin/sh\n[ "$1" = --yes ] || { echo "no answer; use --yes to take every default"; exit 1; }\n')
    ask.chmod(0o755)
    assert shop.work("./ask.sh").ok
    (shop.project / "Makefile").write_text("JOBS ?= 8\nall:\n\ttest $(JOBS) = 1\n")
    shop.variants = ["make", "make JOBS=1"]
    assert shop.work("make").ok
    assert all(error.fixed for error in shop.draft.errors)


def test_what_nothing_can_help_is_a_reason_and_no_fix(tmp_path: Path) -> None:
    shop = make_shop(tmp_path)
    assert not shop.work("echo 'SOME_API_KEY environment variable is required'; exit 1").ok
    assert list(shop.stops.values()) == ["it needs an API key of a paid or foreign service"]
    assert not any(error.fixed for error in shop.draft.errors)


def test_every_ecosystem_looks_at_any_tree_without_failing(tmp_path: Path) -> None:
    shop = make_shop(tmp_path)
    assert plans(shop) == []
    for name in ("package.json", "pyproject.toml", "Cargo.toml", "go.mod", "pom.xml", "composer.json", "Dockerfile"):
        (shop.project / name).write_text("not what it seems {")
    assert all(0 < plan.confidence <= 100 for plan in plans(shop))


@pytest.mark.slow
def test_a_small_project_is_brought_up_and_its_proof_holds(tmp_path: Path) -> None:
    shop = make_shop(tmp_path)
    (shop.project / "README.md").write_text("# t\n\n## Run\n\n```sh\nsh greet.sh Ada\n```\n")
    (shop.project / "greet.sh").write_text('echo "hello, $1"\n')
    shop = make_shop(tmp_path)
    drive.bring_up(shop)
    assert shop.draft.depth == "tier1_real"
    assert "hello, Ada" in shop.draft.returned
    again = terminal.run(shop.draft.command, cwd=tmp_path, env=os.environ, timeout=60)
    assert again.ok
    assert set(shop.draft.returned.splitlines()) <= set(again.output.splitlines())
    (shop.project / "greet.sh").write_text("exit 1\n")
    assert not terminal.run(shop.draft.command, cwd=tmp_path, env=os.environ, timeout=60).ok


@pytest.mark.parametrize(("must", "met"), [(False, []), (True, ["the command nox is not installed"])])
def test_a_tool_of_developers_is_brought_and_is_an_error_only_where_an_install_needs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, must: bool, met: list[str]
) -> None:
    shop = make_shop(tmp_path)
    shop.paths.append(str(tmp_path))

    def bring(_shop: workshop.Workshop, package: str) -> bool:
        (tmp_path / package).write_text("#!/bin/sh\necho 3 sessions passed\n")
        (tmp_path / package).chmod(0o755)
        return True

    monkeypatch.setattr(debian, "install", bring)
    monkeypatch.setattr(debian, "packages_with_program", lambda _shop, name: [name])
    assert shop.work("nox", must=must).output == "3 sessions passed\n"
    assert [(error.what, error.fixed) for error in shop.draft.errors] == [(what, True) for what in met]
    assert shop.work("fortune-of-the-day", must=False).ok
    assert shop.draft.errors[-1].what == "the command fortune-of-the-day is not installed"
