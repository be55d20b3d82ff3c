"""Suite s1: its shape, its balance, that it is built from its sources to the byte, and that its gold can be trusted."""

from __future__ import annotations

import hashlib
import re
import sqlite3
from collections import Counter
from pathlib import Path

import pytest

from referee.adapters.suites import bundled_subsets, bundled_suite, suite_bytes
from referee.adapters.suites.files import BUNDLED
from referee.adapters.suites.sources import build_suite, sources_digest
from referee.benchmarks.bakeoff.asking import ask_of
from referee.core.bakeoff import Sampling, Surface
from referee.core.canonical import canonical_bytes
from referee.core.cases import CATEGORIES, Case
from referee.errors import ConfigError, DigestMismatch, Finding, NothingMatched, RefereeError, UsageError
from referee.scoring.lint import contradictions, lint, lint_subset
from referee.scoring.toolcalls import grade_calls
from tests.bakeoff.suites import chinook

S1 = bundled_suite("s1")
INLINED = Surface(
    channel="agent-cli",
    shape="cli-envelope",
    tool_channel="inlined",
    uncontrolled=(),
    readable_as="",
    latency_admissible=False,
    pins_sampling=False,
)


def of(arm: str, group: str | None = None) -> list[Case]:
    return [case for case in S1.cases if case.arm == arm and group in {None, case.source["group"]}]


def test_the_arms_have_the_sizes_that_were_laid_down() -> None:
    assert S1.grading == 1
    root = Counter(case.category for case in of("suite", "root"))
    assert root == dict.fromkeys(CATEGORIES, 7)
    sizes = {arm.name: (len(of(arm.name)), arm.headline, arm.ranked) for arm in S1.arms}
    assert sizes == {
        "suite": (45, True, True),
        "ordering-v2": (5, False, True),
        "ordering-v1": (5, False, False),
        "abstain-traps": (14, False, True),
    }
    assert len(of("suite", "chinook")) == 10
    traps = Counter(case.source["trap"] for case in of("abstain-traps"))
    assert traps == {"missing-required-argument": 10, "no-suitable-tool": 4}
    assert all(case.abstains for case in of("abstain-traps"))


@pytest.mark.parametrize(
    ("arm", "group"), [("suite", "root"), ("suite", "chinook"), ("ordering-v2", None), ("abstain-traps", None)]
)
def test_half_of_each_arm_is_german_as_far_as_an_odd_number_allows(arm: str, group: str | None) -> None:
    counts = Counter(case.language for case in of(arm, group))
    assert set(counts) == {"de", "en"}
    assert abs(counts["de"] - counts["en"]) <= 1
    for category in CATEGORIES:
        inside = Counter(case.language for case in of(arm, group) if case.category == category)
        assert abs(inside["de"] - inside["en"]) <= 1


def test_the_traps_offer_tools_of_the_headline_byte_for_byte() -> None:
    headline = {canonical_bytes([tool.model_dump() for tool in S1.tools(case)]) for case in of("suite")}
    for case in of("abstain-traps"):
        assert canonical_bytes([tool.model_dump() for tool in S1.tools(case)]) in headline


def test_the_first_version_differs_from_its_twin_in_arm_and_prompt_alone() -> None:
    for case in of("ordering-v1"):
        twin = S1.by_id[case.twin or ""]
        assert twin.arm == "ordering-v2"
        same = case.model_copy(
            update={"id": twin.id, "arm": twin.arm, "prompt": twin.prompt, "twin": None, "known_objection": None}
        )
        assert same == twin
        assert case.prompt != twin.prompt


def test_the_linter_objects_to_the_confounded_arm_alone_and_each_time() -> None:
    objections = lint(S1)
    assert {objection.case for objection in objections} == {case.id for case in of("ordering-v1")}
    assert {objection.rule for objection in objections} == {"prompt-against-oracle"}
    assert all(objection.known for objection in objections)


def test_what_surrounds_a_case_contradicts_it_only_in_the_confounded_arm() -> None:
    for case in S1.cases:
        prompt = None if case.prompt is None else S1.prompts[case.prompt]
        ask, _ = ask_of(case, S1.tools(case), prompt, INLINED, Sampling())
        found = [phrase for _, text in ask.messages for phrase in contradictions(text, case)]
        assert bool(found) == (case.arm == "ordering-v1"), (case.id, found)


def test_no_call_at_all_passes_where_it_must_and_nowhere_else() -> None:
    for case in S1.cases:
        assert grade_calls(case, S1.tools(case), [], grading=1).passed is case.abstains


def test_the_subsets_are_registered_as_laid_down_and_balanced() -> None:
    subsets = {subset.name: subset for subset in bundled_subsets("s1")}
    for subset in subsets.values():
        assert lint_subset(subset, S1) == ()
        assert abs(Counter(S1.by_id[one].language for one in subset.cases)["de"] * 2 - len(subset.cases)) <= 1

    twenty = [S1.by_id[name] for name in subsets["s1-20"].cases]
    root = Counter(case.category for case in twenty if case.source["group"] == "root")
    assert [root[category] for category in CATEGORIES] == [3, 4, 3, 4, 4]
    assert sum(case.source["group"] == "chinook" for case in twenty) == 2
    assert set(subsets["s1-12"].cases) <= set(subsets["s1-20"].cases)
    assert subsets["s1-39"].cases == (
        *subsets["s1-20"].cases,
        *(case.id for case in S1.cases if case.arm == "ordering-v2"),
        *(case.id for case in S1.cases if case.arm == "abstain-traps"),
    )
    assert {name: subset.repeats for name, subset in subsets.items()} == {"s1-20": 2, "s1-12": 1, "s1-39": 2}


def test_the_bundled_file_names_the_sources_that_it_was_built_of() -> None:
    assert S1.provenance["sources_sha256"] == sources_digest(BUNDLED / "s1")
    assert (BUNDLED / "s1.json").read_bytes() == suite_bytes(S1)


def test_the_database_confirms_every_grounded_gold_and_the_file_is_built_to_the_byte() -> None:
    assert suite_bytes(build_suite("s1", chinook())) == (BUNDLED / "s1.json").read_bytes()


def test_each_grounded_case_prints_what_its_query_says_and_computes_its_gold_by_another() -> None:
    connection = sqlite3.connect(f"file:{chinook()}?mode=ro&immutable=1", uri=True)
    for case in of("suite", "chinook"):
        shown = connection.execute(case.source["shown_by"]).fetchall()
        for row in shown:
            assert " | ".join("NULL" if cell is None else str(cell) for cell in row) in case.messages[0].content
        assert case.source["gold_by"] != case.source["shown_by"]
        assert connection.execute(case.source["gold_by"]).fetchall()
    connection.close()


# --- the builder, on a database made here -----------------------------------------------------------------------------

HEAD = """
name = "tiny"
version = "1"
grading = 1
about = "a test"
[prompts]
plain = "Use the tools."
[[arms]]
name = "suite"
headline = true
ranked = true
about = "all"
"""
CASES = """
arm = "suite"
group = "shop"
[database]
title = "a shop"
sha256 = "{sha256}"
[prompt]
en = "plain"
[[case]]
id = "t1"
category = "simple-call"
language = "en"
toolset = "shop"
ask = "{ask}"
show = "{show}"
gold = "{gold}"
call = {{ name = "refund", arguments = {{ invoices = [{{ id = 7, total = {total} }}] }} }}
"""
TOOLS = (
    '{"shop": [{"name": "refund", "parameters": {"type": "object", "properties": {"invoices": {"type": "array", '
    '"items": {"type": "object", "properties": {"id": {"type": "integer"}, "total": {"type": "number"}}}}}}}]}'
)


def make(tmp_path: Path, **over: object) -> Path:
    database = tmp_path / "shop.sqlite"
    if not database.exists():
        connection = sqlite3.connect(database)
        connection.executescript(
            "CREATE TABLE Invoice (Id INTEGER, Total NUMERIC(10,2), Note TEXT);"
            "INSERT INTO Invoice VALUES (3, 1.5, NULL), (7, 12.25, 'paid twice');"
        )
        connection.close()
    values: dict[str, object] = {
        "sha256": hashlib.sha256(database.read_bytes()).hexdigest(),
        "ask": "Invoices: {result} Refund the largest one.",
        "show": "SELECT Id, Total, Note FROM Invoice ORDER BY Id",
        "gold": "SELECT Id AS 'invoices[].id', Total AS 'invoices[].total' FROM Invoice ORDER BY Total DESC LIMIT 1",
        "total": 12.25,
    }
    place = tmp_path / "tiny"
    place.mkdir(exist_ok=True)
    (place / "suite.toml").write_text(HEAD)
    (place / "toolsets.json").write_text(TOOLS)
    (place / "shop.toml").write_text(CASES.format(**(values | over)))
    return database


def test_a_grounded_case_gets_its_result_and_its_provenance(tmp_path: Path) -> None:
    database = make(tmp_path)
    suite = build_suite("tiny", database, directory=tmp_path)
    (case,) = suite.cases
    assert case.messages[0].content == (
        "Invoices: Id | Total | Note\n3 | 1.5 | NULL\n7 | 12.25 | paid twice Refund the largest one."
    )
    assert case.source["database_sha256"] == hashlib.sha256(database.read_bytes()).hexdigest()
    assert suite.provenance["shop_sha256"] == case.source["database_sha256"]
    assert suite_bytes(suite) == suite_bytes(build_suite("tiny", database, directory=tmp_path))


def test_the_builder_changes_nothing_in_the_database(tmp_path: Path) -> None:
    database = make(tmp_path, show="DELETE FROM Invoice")
    before = database.read_bytes()
    with pytest.raises(ConfigError, match="the database refuses a query"):
        build_suite("tiny", database, directory=tmp_path)
    assert database.read_bytes() == before
    assert sorted(each.name for each in tmp_path.iterdir()) == ["shop.sqlite", "tiny"]


@pytest.mark.parametrize(
    ("over", "kind", "said"),
    [
        ({"total": 12.26}, Finding, r"does not confirm t1: invoices\[0\].total is 12.25 there, 12.26 here"),
        ({"gold": "SELECT Id AS 'invoices[].number' FROM Invoice WHERE Id = 7"}, Finding, "nothing at invoices"),
        ({"gold": "SELECT Id AS 'invoices[0].id' FROM Invoice"}, Finding, "two values"),
        ({"gold": "SELECT Id AS 'invoices[].id' FROM Invoice WHERE Id = 99"}, Finding, "no row"),
        ({"gold": "SELECT Elsewhere FROM Invoice"}, ConfigError, "no such column"),
        ({"ask": "Refund the largest one."}, ConfigError, "does not print its result"),
        ({"sha256": "0" * 64}, DigestMismatch, "is not the pinned database"),
        ({"sha256": "none"}, ConfigError, "sha256"),
    ],
    ids=[
        "other-value",
        "no-such-argument",
        "two-values",
        "no-row",
        "bad-sql",
        "not-printed",
        "other-file",
        "no-digest",
    ],
)
def test_a_gold_that_the_database_does_not_confirm_is_refused(
    tmp_path: Path, over: dict[str, object], kind: type[RefereeError], said: str
) -> None:
    database = make(tmp_path, **over)
    with pytest.raises(kind, match=said):
        build_suite("tiny", database, directory=tmp_path)


def test_the_builder_says_what_is_missing(tmp_path: Path) -> None:
    make(tmp_path)
    with pytest.raises(UsageError, match="grounded on a database: a shop") as caught:
        build_suite("tiny", None, directory=tmp_path)
    assert "--chinook" in caught.value.todo
    with pytest.raises(NothingMatched, match="there is no file"):
        build_suite("tiny", tmp_path / "absent.sqlite", directory=tmp_path)
    with pytest.raises(NothingMatched, match="no suite named 'other'"):
        build_suite("other", None, directory=tmp_path)
    (tmp_path / "tiny" / "suite.toml").write_text(re.sub("ranked = true", "ranked = 'maybe'", HEAD))
    with pytest.raises(ConfigError, match="ranked"):
        build_suite("tiny", None, directory=tmp_path)
