"""A report at its edges: one case, equal targets, the wrong cases, parts of the suite, rows of another freeze."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from referee.adapters.catalog.bakeoff_protocols import load_protocol
from referee.core.bakeoff import Comparison, Planned, Protocol, Subset
from referee.core.cases import Case, Suite
from referee.publish.bakeoff import beside, figures, headline
from referee.publish.bakeoff.attempts import case_document, open_attempts
from referee.publish.bakeoff.blocks import Block, Facts, Heading, Items, Notice, Para, Section, Table
from referee.publish.bakeoff.market import markets
from referee.publish.bakeoff.report import document, report_document
from referee.runner.bakeoff.decide import decide
from referee.runner.bakeoff.freeze import freeze
from referee.runner.bakeoff.report import gather
from referee.scoring.bakeoff import Summary, summarise
from tests.bakeoff.boards_by_hand import FIVE, row_of, summary_of, why_limited
from tests.bakeoff.report_reading import run
from tests.bakeoff.report_workspace import Verdict, World
from tests.bakeoff.tallies import ORDERING_V1, TRAPS, Rows, case, protocol, review, suite

TWO = FIVE[:2]


# --- coverage: the list that the protocol lays down ------------------------------------------------------------------


def wrong_cases(rows: Rows, cases: Sequence[str], k: int) -> Rows:
    """The same number of rows, of which the first case has those of the second as well."""
    for one in FIVE:
        if one.id in cases:
            rows.add(one, [1] * (2 * k if one.id == cases[0] else 0 if one.id == cases[1] else k))
    return rows


def test_the_right_number_of_the_wrong_cases_is_not_ranked() -> None:
    rows = wrong_cases(Rows("t"), "abcde", 3)
    summary = summary_of([rows])
    assert why_limited(summary, "t") == {"other-list"}
    [limited] = summary.lane_limited
    assert limited.reasons[0].sentence.endswith("more or fewer attempts at a, b")
    assert row_of(summary_of([Rows("t").fill(FIVE, [1, 1, 1])]), "t").place == 1


def test_a_list_of_a_subset_is_held_against_the_registered_one() -> None:
    subset = Subset(name="quick", why="to be quick", cases=("a", "b", "c"), repeats=2)
    plan = protocol([Planned(target="t", subset="quick")])

    def of(rows: Rows) -> Summary:
        cases, tallies = suite(FIVE), [rows.tally()]
        return summarise(plan, cases, tallies, rows.cases, [], [], [], subsets={"quick": subset})

    whole = of(Rows("t", subset="quick").fill(FIVE[:3], [1, 0]))
    assert row_of(whole, "t").place == 1
    assert why_limited(of(Rows("t", subset="quick").fill(FIVE[:2], [1, 0])), "t") == {"other-list"}
    assert why_limited(of(wrong_cases(Rows("t", subset="quick"), "abc", 2)), "t") == {"other-list"}
    assert why_limited(of(Rows("t", subset="quick").fill(FIVE[1:4], [1, 0])), "t") == {"other-list"}


def test_who_ran_another_arm_alone_is_not_called_lane_limited() -> None:
    traps = [case(f"t{i}", "abstain", arm="traps") for i in range(2)]
    field = [Rows("whole").fill([*FIVE, *traps], [1, 1, 1]), Rows("part", subset="traps").fill(traps, [1, 1])]
    broken = Rows("broken").fill(traps, [1, 1, 1])
    for one in FIVE:
        broken.add(one, [], infra=3)
    told = {"broken": {"infra": {"timeout": 1}}}  # of all rows no more than half
    beside_whole = [Comparison(a="whole", b=name, why="x") for name in ("broken", "part")]
    plan = protocol(["whole", Planned(target="part", subset="traps"), "broken"], comparisons=tuple(beside_whole))
    summary = summary_of([*field, broken], suite([*FIVE, *traps], TRAPS), plan, told=told)
    for found, code in zip(summary.comparisons, ("lane-limited", "not-ranked"), strict=True):
        assert code in {note.code for note in found.caveats}, "a comparison says no other than the table"
    said = {row.about.target: (row.by_lane, [note.sentence for note in row.reasons]) for row in summary.lane_limited}
    assert said == {
        "broken": (True, ["it has no valid attempt at a case of the headline"]),
        "part": (False, ["it ran no case of the headline"]),
    }


# --- figures ---------------------------------------------------------------------------------------------------------


def test_the_headline_has_as_many_k_as_its_own_arm_has_repeats() -> None:
    plan = protocol(["t"], repeats=3, arm_repeats={"suite": 5})
    found = row_of(summary_of([Rows("t").fill(FIVE, [1, 1, 1, 1, 0])], plan=plan), "t").figures.pass_hat
    assert [one.k for one in found] == [1, 2, 3, 4, 5]
    assert [one.value for one in found] == pytest.approx([0.8, 0.6, 0.4, 0.2, 0.0])


def test_pass_hat_says_over_how_many_cases_it_is() -> None:
    rows = Rows("t").add(FIVE[0], [1, 1, 1])
    for one in FIVE[1:]:
        rows.add(one, [1], infra=2)
    found = row_of(summary_of([rows], told={"t": {"infra": {}}}), "t").figures
    assert figures.pass_hat(found.pass_hat, found.rate.n) == "k = 3: 100 % (1 of 5 cases)"
    whole = row_of(summary_of([Rows("t").fill(FIVE, [1, 1, 1])]), "t").figures
    assert figures.pass_hat(whole.pass_hat, whole.rate.n) == "k = 3: 100 %"


@pytest.mark.parametrize(
    ("share", "shown"),
    [
        (1.0, "100 %"),
        (0.0, "0 %"),
        (0.9999999999999999, "100 %"),
        (6.9e-18, "0 %"),
        (11999 / 12000, "> 99.9 %"),
        (1 / 12000, "< 0.1 %"),
        (0.9994, "99.9 %"),
        (0.001, "0.1 %"),
    ],
)
def test_a_rate_is_never_rounded_to_all_or_nothing(share: float, shown: str) -> None:
    assert figures.percent(share) == shown


@pytest.mark.parametrize(
    ("share", "shown"), [(0.1501, "15.1 points"), (0.15, "15 points"), (1.0, "100 points"), (2.8, "no difference")]
)
def test_what_can_be_detected_is_never_rounded_down(share: float, shown: str) -> None:
    assert figures.detectable(share) == shown


@pytest.mark.parametrize("b", [[1, 1, 1], [0, 0, 0]])
def test_from_differences_that_do_not_vary_nothing_follows_for_smaller_ones(b: list[int]) -> None:
    summary = summary_of([Rows("a").fill(FIVE, [1, 1, 1]), Rows("b").fill(FIVE, b)])
    power = summary.boards[0].power
    assert power is not None
    assert (power.observed_variance, power.observed_mde_at_smallest, power.observed_mde_at_largest) == (None,) * 3
    assert power.observed_why is not None
    assert power.observed_why in texts(headline.power(summary))


def test_a_difference_above_100_points_is_none() -> None:
    field = [Rows("a").fill(TWO, {"a": [1], "b": [0]}), Rows("b").fill(TWO, {"a": [0], "b": [1]})]
    shown = texts(headline.power(summary_of(field, suite(TWO), protocol(["a", "b"], repeats=1))))
    assert "no difference at 2 cases" in shown
    assert not any(text.startswith("280") for text in shown)


def test_an_arm_that_ranks_says_what_it_can_detect() -> None:
    cases, field = arms()
    summary = summary_of([*field[:2]], cases)
    [table] = summary.arms
    assert table.power is not None
    assert (table.power.n_smallest, table.power.n_largest, table.power.observed_pairs) == (4, 4, 1)
    assert table.power.reference_mde_at_smallest == pytest.approx(2.8015852 * (1 / 36) ** 0.5)
    shown = texts(headline.power(summary))
    assert "the arm traps, 4 cases a target" in shown
    unranked = suite([*FIVE, case("v", arm="ordering-v1")], ORDERING_V1)
    [table] = summary_of([Rows("t").fill([*FIVE, case("v", arm="ordering-v1")], [1] * 3)], unranked).arms
    assert table.power is None


def test_tokens_that_only_some_attempts_say_are_no_sum_of_all(tmp_path: Path) -> None:
    told = {"t": {"input_tokens": 50, "output_tokens": 10, "tokens_n": 4}}
    field = Rows("t").fill(FIVE, [1, 1, 1])
    for many, below in ((4, "of 4 of 15 graded attempts"), (15, None)):
        told["t"]["tokens_n"] = many
        tables = [block for block in beside.coverage(summary_of([field], told=told)).blocks if isinstance(block, Table)]
        assert [(one.text, one.below) for one in tables[-1].rows[0].cells[1:3]] == [("50", below), ("10", below)]
    world = World(tmp_path)
    shard = world.shard("weak-one", lambda _case, k: replace(Verdict(), passed=None if k else True))
    basis = gather(world.log, world.evidence, "board", [world.records / shard])
    [row] = basis.summary.lane_limited
    assert row.transport.tokens_n == row.transport.graded == 69


def test_cost_within_a_cluster_is_of_all_attempts_that_were_paid() -> None:
    twice = Rows("twice", metered=True).fill(FIVE, [1, 1, 1])
    once = Rows("once", metered=True).fill(FIVE, [1, 1, 1])
    told = {"twice": {"physical": 30, "spent_usd": 0.3}, "once": {"spent_usd": 0.225}}  # 1 and 1.5 cents an attempt
    [board] = summary_of([twice, once], told=told).boards
    assert [row.about.target for row in board.rows] == ["twice", "once"]


# --- what stands beside a figure -------------------------------------------------------------------------------------


def test_a_row_of_a_subset_is_marked_wherever_it_stands_beside_full_rows() -> None:
    field = [Rows("whole").fill(FIVE, [1, 1, 1]), Rows("part", subset="quick").fill(TWO, [1, 1])]
    summary = summary_of(field)
    for section in (
        beside.parts(summary),
        beside.failures(summary),
        beside.coverage(summary),
        headline.boards(summary),
    ):
        cells = [one for block in section.blocks if isinstance(block, Table) for row in block.rows for one in row.cells]
        marked = {one.text: (one.below or "") for one in cells if one.code and one.text in {"whole", "part"}}
        assert marked["part"].endswith("; subset quick")
        assert "subset" not in marked["whole"]


def arms() -> tuple[Suite, list[Rows]]:
    traps = [case(f"t{i}", "abstain", arm="traps") for i in range(4)]
    good = Rows("good").fill([*FIVE, *traps], [1, 1, 1])
    bad = [
        Rows(name).fill(FIVE, [1, 1, 1]).fill(traps[1:], [1, 0, 0]).add(traps[0], [0] * 3, wrong="w") for name in "xy"
    ]
    away = Rows("away").fill(FIVE, [1, 1, 1])
    for one in traps:
        away.add(one, [], infra=3)
    return suite([*FIVE, *traps], TRAPS), [good, *bad, away]


def test_an_arm_shows_both_rates_its_attempts_and_who_is_lane_limited() -> None:
    cases, field = arms()
    told = {"away": {"stopped": "breaker"}}
    for reviews in ((), [review("t0", stands=True)]):
        section = beside.arms(summary_of(field, cases, told=told, reviews=reviews))
        table = next(block for block in section.blocks if isinstance(block, Table))
        assert table.heads[-2:] == ("cases>", "valid attempts>")
        assert {row.cells[2].text: row.cells[-1].text for row in table.rows}["good"] == ("12" if reviews else "9")
        [both] = [text for text in texts(section) if text.startswith("x · own infrastructure ")]
        assert both.startswith("x · own infrastructure 25 % [")
        assert ", n = 4; without any flagged one: 33.3 % [" in both
        assert both.endswith(", n = 3")
        assert "Lane-limited, so without a rate here: away · own infrastructure." in texts(section)


def test_twins_say_on_how_many_cases_they_are_compared() -> None:
    extra = [case(f"v1-{i}", "multi-call-ordering", arm="ordering-v1", twin="abc"[i]) for i in range(2)]
    rows = Rows("t").fill(FIVE, [1, 1, 1]).add(extra[0], [0, 0, 0]).add(extra[1], [], infra=3)
    section = beside.arms(summary_of([rows], suite([*FIVE, *extra], ORDERING_V1)))
    [table] = [block for block in section.blocks if isinstance(block, Table) and "pairs of cases" in block.caption]
    assert table.caption.startswith("2 pairs")
    assert [(one.text, one.below) for one in table.rows[0].cells[1:3]] == [
        ("100 % [20.7, 100]", "n = 1"),
        ("0 % [0, 79.3]", "n = 1"),
    ]


# --- comparisons -----------------------------------------------------------------------------------------------------


def compared_plan() -> Protocol:
    return protocol(["a", "b"], comparisons=(Comparison(a="a", b="b", why="are they alike"),))


def test_a_target_whose_cases_are_all_in_doubt_is_not_called_lane_limited() -> None:
    field = [Rows(name).fill(FIVE, [0, 0, 0]) for name in "ab"]
    for rows in field:
        rows.cases[:] = [one._replace(wrong="w") for one in rows.cases]
    [found] = summary_of(field, plan=compared_plan()).comparisons
    assert (
        found.why_absent
        == "every case with a valid attempt on both sides left the ranking: its gold is suspect or wrong"
    )
    assert {note.code for note in found.caveats} == {"not-ranked", "gold-suspect"}
    assert not any("lane-limited" in note.sentence for note in found.caveats)


def test_a_comparison_names_the_cases_that_one_side_alone_has() -> None:
    a = Rows("a").fill(FIVE[:3], [1, 1, 1]).fill(FIVE[3:], [0, 0, 0])
    b = Rows("b").add(FIVE[0], [1, 1, 1]).add(FIVE[1], [0, 0, 0]).add(FIVE[2], [1, 0, 0])
    b.add(FIVE[3], [0, 0, 0]).add(FIVE[4], [1, 1, 1])
    section = beside.comparisons(summary_of([a, b], plan=compared_plan()))
    assert {"headline, only a · own infrastructure: b", "headline, only b · own infrastructure: e"} < set(
        texts(section)
    )
    table = next(block for block in section.blocks if isinstance(block, Table))
    assert [one.below for one in table.rows[0].cells[1:3]] == ["n = 5", "n = 5"]


# --- rows of another freeze ------------------------------------------------------------------------------------------


def test_rows_of_an_earlier_freeze_are_told_apart(tmp_path: Path) -> None:
    world = World(tmp_path)
    name = world.shard("own-strong", lambda _case, _k: Verdict())
    shards = [world.records / name]
    whole = document(gather(world.log, world.evidence, "board", shards), [], 0)
    [ground] = [section for section in whole.sections if section.id == "ground"]
    assert not any(isinstance(block, Notice) for block in ground.blocks)
    plan = tmp_path / "protocols" / "board" / "protocol.toml"
    plan.write_text(plan.read_text() + "\n# amended\n")
    number = decide(world.log, "board", "Say more", reason="x", by="me", amends=True).number
    freeze(world.log, world.evidence, load_protocol(plan.parent), by="me", decision=number)
    again = document(gather(world.log, world.evidence, "board", shards), [], 0)
    [ground] = [section for section in again.sections if section.id == "ground"]
    assert any("another freeze than the newest" in text for text in texts(ground))


def test_a_report_holds_a_shard_of_a_subset_against_the_registered_list(tmp_path: Path) -> None:
    """The first case of the subset has the attempts of the second as well: as many rows as are owed, and all passed."""
    world = World(tmp_path)
    (first, _), *_ = slots = list(world.identities("cli-agent"))
    second = next(case for case, _ in slots if case != first)
    wrong = [(first, k + 2) if case == second else (case, k) for case, k in slots]

    def ranked() -> int:
        basis = gather(world.log, world.evidence, "board", [world.records / world.shard("cli-agent", _passed)])
        return sum(len(board.rows) for board in basis.summary.boards)

    assert ranked() == 1
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(world, "identities", lambda _target: wrong)
        assert ranked() == 0


def _passed(_case: Case, _k: int) -> Verdict:
    return Verdict()


# --- pages and commands ----------------------------------------------------------------------------------------------


def test_a_page_that_leaves_failed_rows_out_does_not_call_them_passed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(tmp_path)
    world.shard("weak-one", lambda _case, _k: replace(Verdict(), passed=False))
    monkeypatch.setattr("referee.publish.bakeoff.attempts.MOST_ATTEMPTS", 2)
    basis = gather(world.log, world.evidence, "board", [world.records / name for name in world.shards])
    with open_attempts(basis.shards, tmp_path) as (cases, _):
        name, rows, total = next(cases)
    page = case_document(basis.suite.by_id[name], basis.suite, rows, total, {})
    said = [text for section in page.sections for text in texts(section)]
    assert "1 row more without a line here; failed ones come first. The raw export has every row." in said


def test_a_snapshot_without_a_word_of_its_own_has_one(tmp_path: Path) -> None:
    world = World(tmp_path).write()
    basis = gather(world.log, world.evidence, "board", [world.records / name for name in world.shards])
    tables = [block for block in markets(basis.market, basis.summary).blocks if isinstance(block, Table)]
    assert next(row.cells[3].text for row in tables[-1].rows) == "as published"
    assert all(one.text for table in tables for row in table.rows for one in row.cells)


def test_the_limitations_stand_in_the_json_too(tmp_path: Path) -> None:
    world = World(tmp_path).write()
    basis = gather(world.log, world.evidence, "board", [world.records / name for name in world.shards])
    said = report_document(basis)["limitations"]
    assert said == texts(headline.limitations(basis.summary))[: len(said)]
    assert any(line.startswith("Unpinnable lanes: ") for line in said)


@pytest.mark.slow
def test_pairs_says_in_the_terminal_who_is_compared_and_at_which_cases_they_part(tmp_path: Path) -> None:
    world = World(tmp_path).write()
    (tmp_path / "referee.toml").write_text("")
    said = run("pairs", "board", "own-strong", "weak-one", "--all", root=tmp_path).stdout
    assert "own-strong · own infrastructure beside weak-one · local" in said
    assert "Cases of which one side passed every valid attempt and the other none:" in said
    assert "headline, only own-strong · own infrastructure: s1-" in said
    board = run("report", "board", "--all", root=world.root).stdout
    assert "subset s1-20" in board


def texts(section: Section) -> list[str]:
    """Every text of a section outside of tables."""
    return [text for block in section.blocks for text in _texts(block)]


def _texts(block: Block) -> list[str]:
    match block:
        case Items() | Notice():
            return list(block.items)
        case Facts():
            return [value.text for _, value in block.pairs]
        case Para() | Heading():
            return [block.text]
    return []
