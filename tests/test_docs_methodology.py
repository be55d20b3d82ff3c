"""Every figure of the published methodology is the one that the program uses."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import get_args

import pytest

from referee.adapters.catalog.workspace import Budgets, Recording
from referee.adapters.store.evidence import LocalEvidence
from referee.benchmarks.bringup.challenge import OUTPUT_NAMES
from referee.benchmarks.bringup.control import OUTPUT_NAME as CONTROL_NAME
from referee.benchmarks.bringup.scripts import MOST_BYTES as MOST_SCRIPT_BYTES
from referee.core.budgets import HEAVY_BYTES, PUBLISHED_SECONDS
from referee.core.canonical import digest_of
from referee.core.chain import forge, genesis
from referee.core.records import AttemptEnded, AttemptFound, AttemptPlanned, Correction, Replayed
from referee.core.report import MAX_REPORT_BYTES, Report
from referee.core.scripts import SCRIPTS_NAME
from referee.core.spending import CAP_USD
from referee.runner.attempt import RERUN_SECONDS
from referee.runner.seal import NAMES
from referee.runner.verify import MANIFEST_SCHEMA
from referee.scoring.audit import SENTENCES
from referee.scoring.beside import SENTENCES as BESIDE
from referee.scoring.boards import UNSTABLE_ABOVE
from referee.scoring.bringup import (
    DEPTH_POINTS,
    EDITIONS,
    FIXES_POINTS,
    INSTALLED_POINTS,
    STARTED_POINTS,
    Outcome,
    Status,
)
from referee.scoring.challenges import MOST as MOST_CHALLENGES
from referee.scoring.command_parts import MOST_SCRIPTS
from referee.scoring.corroboration import KEPT_OUTPUT_BYTES
from referee.scoring.likeness import CUT_MINIMUM, EXCERPT_MINIMUM, MOST_EXCERPTS
from referee.scoring.shell_grammar import MAX_BYTES
from referee.scoring.verdicts import STANDARD_ATTEMPTS, Verdict

DOCS = Path(__file__).parents[1] / "docs"
TEXT = (DOCS / "methodology.md").read_text(encoding="utf-8")
RECORDS = (DOCS / "records.md").read_text(encoding="utf-8")
FLAT = " ".join(TEXT.split())


def section(number: int) -> str:
    found = re.search(rf"^## {number}\. .*?(?=^## |\Z)", TEXT, re.MULTILINE | re.DOTALL)
    assert found is not None, f"section {number} is missing"
    return found[0]


def rows(text: str, head: str) -> list[list[str]]:
    """The body of the table whose header row begins with ``head``."""
    lines = [line.strip() for line in text.splitlines()]
    at = next(index for index, line in enumerate(lines) if line.startswith(f"| {head} |"))
    table: list[list[str]] = []
    for line in lines[at + 2 :]:
        if not line.startswith("|"):
            break
        table.append([cell.strip() for cell in line.strip("|").split(" | ")])
    return table


@pytest.mark.parametrize("number", range(1, 15))
def test_every_section_is_there(number: int) -> None:
    assert len(section(number).split()) > 20


def test_the_budgets_are_the_configured_ones() -> None:
    written = {row[0]: row[1] for row in rows(section(4), "tier")}
    assert written == {tier: f"{seconds // 60} min" for tier, seconds in PUBLISHED_SECONDS.items()}
    assert Budgets().seconds() == PUBLISHED_SECONDS
    assert f"larger than {HEAVY_BYTES // 10**6} MB" in section(4)


def test_the_points_are_the_scorers() -> None:
    assert rows(section(6), "row") == [
        ["installed", str(INSTALLED_POINTS)],
        ["started, or tests passed", str(STARTED_POINTS)],
        ["error fixing", f"{FIXES_POINTS} \u00d7 fixed / encountered"],
        ["verification depth", ", ".join(f"{points} `{depth}`" for depth, points in DEPTH_POINTS.items())],
    ]
    assert f"has {INSTALLED_POINTS + STARTED_POINTS + FIXES_POINTS} points and is a `fail`" in FLAT
    for outcome in get_args(Outcome):
        assert f"`{outcome}`" in section(6)


def test_the_report_is_the_schema() -> None:
    written = [row[0].strip("`") for row in rows(section(5), "field")]
    assert [*written, "errors_encountered", "errors_fixed"] == list(Report.model_fields)
    assert f"at most {MAX_REPORT_BYTES} bytes" in section(5)


def test_the_flags_are_the_audits() -> None:
    assert [row[0].strip("`") for row in rows(section(5), "flag")] == list(SENTENCES)
    assert f"longer than {MAX_BYTES} bytes" in section(5)
    assert f"up to {MOST_SCRIPTS} words that may name one, of each file the first {MOST_SCRIPT_BYTES} bytes" in FLAT


def test_what_is_observed_beside_the_re_run_is_written() -> None:
    beside = section(5).split("*Beside the re-run.*", 1)[1]
    assert [row[0].strip("`") for row in rows(beside, "flag")] == list(BESIDE)
    assert f"Up to {MOST_CHALLENGES} times" in FLAT
    assert len(OUTPUT_NAMES) == MOST_CHALLENGES
    assert {*OUTPUT_NAMES, CONTROL_NAME, SCRIPTS_NAME} <= set(NAMES)


def test_the_rules_of_comparison_carry_the_programs_numbers() -> None:
    for sentence in (
        f"at least {EXCERPT_MINIMUM} characters",
        f"if {CUT_MINIMUM} characters are left",
        f"More than {MOST_EXCERPTS} such excerpts",
        f"An output of {KEPT_OUTPUT_BYTES} bytes",
        f"at most {RERUN_SECONDS:.0f} s",
    ):
        assert sentence in FLAT
    for status in get_args(Status):
        assert f"- *{status.replace('_', ' ')}*:" in section(5)


def test_the_caps_of_a_recording_are_the_configured_ones() -> None:
    assert f"at most {Recording().max_bytes} bytes and {Recording().max_events} events" in FLAT


def test_spread_verdict_and_editions() -> None:
    assert f"above {UNSTABLE_ABOVE}; exactly {UNSTABLE_ABOVE} is stable" in FLAT
    assert f"after {STANDARD_ATTEMPTS} complete attempts of the standard agent" in FLAT
    for verdict in Verdict:
        assert f"**{verdict.value.replace('_', ' ')}**" in section(9)
    assert [row[0] for row in rows(section(14), "edition")] == [str(edition) for edition in EDITIONS]


def test_the_records_page_names_every_kind_and_file() -> None:
    made = (AttemptPlanned, AttemptEnded, AttemptFound, Replayed, Correction)
    kinds = {cls.model_fields["kind"].default for cls in made}
    assert {row[0].strip("`") for row in rows(RECORDS, "`kind`")} == kinds
    for name in NAMES:
        assert f"`{name}`" in RECORDS
    assert MANIFEST_SCHEMA in RECORDS


def test_the_program_on_the_records_page_checks_a_chain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = re.search(r"```python\n(.*?)```", RECORDS, re.DOTALL)
    assert found is not None
    name = "attempts-x.jsonl"
    first, digest = forge({"kind": "correction", "note": "ü\n\u2028", "n": 0.1}, seq=0, prev=genesis(name))
    second, _ = forge({"kind": "correction", "n": 2.0}, seq=1, prev=digest)
    file = tmp_path / "records" / name
    file.parent.mkdir()
    file.write_bytes(first + second + b'{"torn":')
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    exec(found[1], names)
    assert callable(names["digest"])
    assert names["digest"]("record", {"a": "ü"}) == digest_of("record", {"a": "ü"})
    file.write_bytes(first.replace(b"0.1", b"0.2") + second)
    with pytest.raises(AssertionError, match="line 2"):
        exec(found[1], {})


def test_the_shell_line_on_the_records_page_names_a_changed_blob(tmp_path: Path) -> None:
    found = re.search(r"```sh\n(.*?)```", RECORDS, re.DOTALL)
    assert found is not None
    store = LocalEvidence(tmp_path / "evidence")
    store.keep("x", b"true bytes")
    changed = store.path(store.keep("y", b"other bytes").digest)
    for expected in ("", f"changed: evidence/{changed.parent.name}/{changed.name}\n"):
        done = subprocess.run(["bash", "-c", found[1]], cwd=tmp_path, capture_output=True, text=True, check=True)
        assert done.stdout == expected
        changed.chmod(0o644)
        changed.write_bytes(b"changed")


def test_no_section_says_that_no_agent_needs_a_key() -> None:
    assert "none is issued" not in FLAT
    assert f"a spending cap of {CAP_USD:g} USD" in section(4)
