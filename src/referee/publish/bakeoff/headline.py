"""The first sections of a report: what it stands on, what may not be left out, the boards, and what they can tell."""

from __future__ import annotations

from collections.abc import Iterator

from referee.core.records import ProtocolFrozen
from referee.publish.bakeoff import figures
from referee.publish.bakeoff.blocks import (
    Bar,
    Block,
    Cell,
    Facts,
    Heading,
    Items,
    Notice,
    Para,
    Plot,
    Row,
    Section,
    cells,
    table,
)
from referee.publish.bakeoff.loud import counted, left, scope, with_all, without
from referee.publish.bakeoff.who import Names, every_about, label, target
from referee.publish.words import count, moment
from referee.scoring.bakeoff.figures import Note
from referee.scoring.bakeoff.summary import Board, BoardPair, Power, Standing, Summary

TIERS = {
    "viability": "fewer than 30 cases: whether a target can do it at all",
    "viability+": "30 cases or more, not of gate quality: an indication, no gate",
    "gate": "200 to 400 private, rotated cases: may decide a choice",
}

_ANOTHER_FREEZE = (
    "Rows of this report were made under another freeze than the newest, which it shows: their verdicts are on the "
    "cases as they were then. See the decisions that amend the protocol."
)


def head(summary: Summary) -> str:
    """The report's header in words: physical rows, and usable ones of the capability arm and of additions (§11)."""
    totals = summary.totals
    capability, additions = figures.count(totals.capability_rows), figures.count(totals.additions_rows)
    return (
        f"{figures.count(totals.physical_rows)} physical rows in {count(len(summary.shards), 'shard')}; of the usable "
        f"ones {capability} stand in the capability arm, {additions} in additions, never pooled. "
        f"{count(len(summary.decisions), 'decision')} logged, {summary.amending} of which amend the protocol."
    )


def ground(summary: Summary, freezes: tuple[ProtocolFrozen, ...]) -> Section:
    """What the report stands on: the plan, and the rows, kept apart by arm (§11)."""
    plan, totals = summary.plan, summary.totals
    frozen = freezes[-1] if freezes else None
    repeats = [f"{plan.repeats} for each case", *(f"{k} in {arm}" for arm, k in sorted(plan.arm_repeats.items()))]
    pairs = (
        ("protocol", Cell(plan.protocol, code=True)),
        ("frozen", Cell(f"{moment(frozen.at)} UTC by {frozen.by}" if frozen else "not frozen")),
        ("protocol digest", Cell(frozen.digest if frozen else figures.NONE, code=True)),
        ("digests on the rows", Cell(", ".join(plan.protocol_digests) or figures.NONE, code=True)),
        ("decisions", Cell(f"{len(summary.decisions)}, {summary.amending} of which amend the protocol")),
        ("suite", Cell(f"{plan.suite} {plan.suite_version}, grading {plan.grading}")),
        ("suite digest", Cell(", ".join(plan.suite_digests) or figures.NONE, code=True)),
        ("repeats", Cell(", ".join(repeats))),
        ("shards", Cell(figures.count(len(summary.shards)))),
        ("planned and not run", Cell(", ".join(plan.not_run) or figures.NONE)),
    )
    rows = [
        cells("physical rows", figures.count(totals.physical_rows), "every line of the named shards"),
        cells("of these superseded", figures.count(totals.superseded), "an older row fills the same slot"),
        cells("usable rows", figures.count(totals.usable_rows), "the oldest of each (target, case, repeat)"),
        cells("capability arm", figures.count(totals.capability_rows), "usable rows of headline arms"),
        cells("additions arm", figures.count(totals.additions_rows), "usable rows of all other arms, never pooled"),
        cells("unknown cases", figures.count(totals.unknown), "usable rows of cases that the suite does not hold"),
        cells("graded", figures.count(totals.graded), "usable rows with a verdict"),
        cells("infrastructure", figures.count(sum(totals.infra.values())), figures.counts(totals.infra)),
        cells("refused by the endpoint", figures.count(sum(totals.refused.values())), figures.counts(totals.refused)),
    ]
    return Section(
        "ground",
        "What this report stands on",
        (
            *((Notice((_ANOTHER_FREEZE,)),) if frozen and set(plan.protocol_digests) - {frozen.digest} else ()),
            Facts(pairs),
            *((Items("Rules registered beside the protocol:", plan.rules),) if plan.rules else ()),
            table("Rows: physical, and usable by arm", ("what", "rows>", "meaning"), rows),
        ),
        "adapters.store.aggregate (rows), runner.bakeoff.freeze (protocol), scoring.bakeoff.assemble (arms)",
    )


def limitations(summary: Summary) -> Section:
    """The limitations that may not be left out, also where figures are used elsewhere (§13)."""
    return Section(
        "limitations",
        "Limitations that may not be left out",
        (
            Notice(limits(summary), lead="They hold wherever a figure of this report is used again:"),
            *(
                (Items("What these rows add:", tuple(note.sentence for note in summary.caveats)),)
                * bool(summary.caveats)
            ),
        ),
        "scoring.bakeoff.lanes (tiers, subsets, caveats), core.bakeoff.Surface (what a lane leaves uncontrolled)",
    )


def limits(summary: Summary) -> tuple[str, ...]:
    """The same as sentences: whoever takes figures from the JSON takes them along."""
    return tuple(_limitations(summary))


def _limitations(summary: Summary) -> Iterator[str]:
    abouts = every_about(summary)
    standings = [row for board in summary.boards for row in board.rows]
    yield "Model plus lane: a row never measures a model alone. Name the lane with every figure."
    for tier, meaning in TIERS.items():
        named = sorted(label(row.about) for row in standings if row.tier.name == tier)
        if named:
            yield f"Tier {tier} ({meaning}): {', '.join(named)}."
    if not standings:
        yield "Tier: no target is ranked, so no tier is claimed."
    subset = sorted({f"{label(one)} ({one.subset})" for one in abouts if one.subset is not None})
    if subset:
        yield f"Subset rows, not to be compared with full rows: {', '.join(subset)}."
    else:
        yield "Subset rows: none; every target was to run the whole suite."
    loose = sorted({label(one) for one in abouts if not one.pins_sampling})
    if loose:
        yield f"Unpinnable lanes: temperature and seed cannot be set for {', '.join(loose)}."
    else:
        yield "Unpinnable lanes: none; every lane takes temperature and seed, which makes no answer deterministic."
    inlined = sorted({label(one) for one in abouts if one.tool_channel == "inlined"})
    if inlined:
        yield f"No tool channel: {', '.join(inlined)} read the schemas in the prompt; not comparable with native calls."
    apart = [arm for arm in summary.totals.by_arm if not arm.headline]
    for arm in apart:
        yield f"The arm {arm.arm} is never pooled into the headline{'' if arm.ranked else ', and is unranked'}."
    yield _gold_line(summary)
    yield "Abstention is discipline, not helpfulness: whether a model keeps from calling, not whether its answer helps."
    yield "Latency includes the lane. A verdict on it is given for own infrastructure only."


def _gold_line(summary: Summary) -> str:
    """How far the gold is in doubt: each case counts once, by what became of it."""
    never = {arm.arm for arm in summary.totals.by_arm if not arm.ranked}
    objected = {one.case for one in summary.objected}
    ranking = [case for case in summary.gold if case.arm not in never and case.case not in objected]
    parts = (
        (sum(case.doubted for case in ranking), "out of the ranking until reviewed"),
        (
            sum(case.suspect and case.review == "stands" for case in ranking),
            "back in it, as a review let it stand",
        ),
        (sum(case.review == "wrong" for case in ranking), "out of it, as a review found the gold wrong"),
        (sum(case.suspect for case in summary.gold if case not in ranking), "of arms or cases that never rank"),
    )
    said = "; ".join(f"{number} {what}" for number, what in parts if number)
    shown = ". Rates are shown with and without them." if said else "none."
    return f"Gold-suspect cases: {said}{shown}"


def boards(summary: Summary) -> Section:
    """The headline, one board for the whole suite and one for each subset."""
    blocks: list[Block] = []
    names = Names(summary)
    for board in summary.boards:
        blocks.extend(_board(board, names, left(board, summary)))
    if not any(board.rows for board in summary.boards):
        blocks.append(Notice(("No target is ranked: see which ones are not, and why.",)))
    blocks.append(
        Para(
            "Valid-pass is the mean over cases of passed attempts to valid ones; n counts cases. In brackets the "
            "Wilson interval of 95 %, the primary one. Targets whose intervals overlap, directly or through others, "
            "are tied and share their places: the order within a cluster is presentation, no verdict (sovereignty "
            "class, self-hosting and cost, latency where it is admissible; then valid-pass, then name). The second "
            "interval is a cluster bootstrap over cases and ranks nothing.",
            note=True,
        )
    )
    return Section(
        "board",
        "Headline",
        tuple(blocks),
        "scoring.bakeoff.standings (rates, clusters, order), scoring.bakeoff.statistics (Wilson, bootstrap, pass^k)",
    )


def _board(board: Board, names: Names, loud: str) -> Iterator[Block]:
    yield Heading(scope(board))
    if loud:
        yield Notice((loud,))
    if not board.rows:
        yield Para("No target is ranked here.")
        return
    out = without(board)
    what = f"Valid-pass without {out}, and below it with all cases; each" if out else "Valid-pass"
    yield Plot(f"{what} with its Wilson interval; the thin line is the second interval", tuple(_bars(board)))
    heads = ("place>", "tie cluster>", "target", "sovereignty", "tier", "valid-pass>", "second interval>", "pass^k>")
    yield table(
        f"Ranked by the Wilson interval of valid-pass{f', without {out}' * bool(out)}; places within a cluster are no "
        "verdict",
        (*heads, "format rate>", "cases>", "valid attempts>"),
        [_standing(row) for row in board.rows],
    )
    if any(row.with_flagged or row.without_flagged for row in board.rows):
        yield table(
            "Gold trust: the same rates with and without the flagged cases",
            ("target", "ranking>", "with all flagged>", "without any flagged>"),
            [_doubled(row) for row in board.rows],
        )
    yield Items(
        "Tie clusters:",
        tuple(
            f"cluster {cluster.number}, {figures.percent(cluster.low)} to {figures.percent(cluster.high)}: "
            f"{names.all(cluster.targets)}"
            for cluster in board.clusters
        ),
    )
    noted = (
        *(note for note in board.caveats if not loud or note.code != "gold-suspect"),
        *(Note(n.code, f"{label(row.about)}: {n.sentence}") for row in board.rows for n in row.caveats),
    )
    if noted:
        yield Items("Caveats of this board:", tuple(note.sentence for note in noted))


def _bars(board: Board) -> Iterator[Bar]:
    for row in board.rows:
        found, second = row.figures.rate, row.figures.bootstrap
        if found.value is None or found.wilson is None:
            continue
        yield Bar(
            label(row.about),
            found.value,
            found.wilson.low,
            found.wilson.high,
            None if second is None else (second.low, second.high),
            figures.rate(found),
            row.cluster,
        )
        every = row.with_flagged
        if with_all(found, every) is not None and every and every.value is not None and every.wilson:
            low, high = every.wilson.low, every.wilson.high
            name = f"{label(row.about)}, with all cases"
            yield Bar(name, every.value, low, high, None, figures.rate(every), row.cluster)


def _standing(row: Standing) -> Row:
    found = row.figures
    return cells(
        figures.places(row.places),
        str(row.cluster),
        target(row.about),
        figures.say(figures.SOVEREIGNTY, row.about.sovereignty),
        Cell(row.tier.name, below=None if row.about.subset is None else f"subset {row.about.subset}"),
        Cell(figures.rate(found.rate), below=with_all(found.rate, row.with_flagged)),
        figures.bootstrapped(found.bootstrap),
        figures.pass_hat(found.pass_hat, found.rate.n),
        figures.percent(found.format_rate),
        figures.count(found.rate.n),
        figures.count(found.rate.valid),
    )


def _doubled(row: Standing) -> Row:
    both = (row.with_flagged, row.without_flagged)
    return cells(
        target(row.about),
        figures.rate(row.figures.rate),
        *("the same" if one is None else counted(one) for one in both),
    )


def separated(summary: Summary) -> Section:
    """Which pairs a paired test separates, beside the tie rule that stands (§12)."""
    blocks: list[Block] = []
    names = Names(summary)
    for board in summary.boards:
        if not board.pairs:
            continue
        name = "the whole suite" if board.subset is None else f"the subset {board.subset}"
        apart = [pair for pair in board.pairs if pair.separated]
        blocks.append(
            Para(
                f"On {name} the test separates {len(apart)} of {count(len(board.pairs), 'pair')} "
                "at a family-wise level of 5 %."
            )
        )
        for caption, chosen, fold in (
            (f"Pairs that the test separates, {name}", apart, False),
            (f"All pairs, {name}", board.pairs, True),
        ):
            if not chosen:
                continue
            rows = [_pair(pair, names) for pair in chosen]
            heads = ("a", "b", "tied", "shared cases>", "unequal>", "a less b>", "p>", "p (Holm)>", "separated")
            blocks.append(table(caption, heads, rows, fold=fold))
    if not blocks:
        blocks.append(Para("No pair: fewer than two targets are ranked on one board."))
    blocks.append(
        Para(
            "Wilcoxon's signed-rank test on per-case rates, corrected by Holm over all pairs of a board. Overlapping "
            "intervals are no test and the test is no rank: the tie rule of the protocol stands. Where all differences "
            "are exactly 0, no p-value is made up.",
            note=True,
        )
    )
    return Section("pairs", "Which pairs a paired test separates", tuple(blocks), "scoring.bakeoff.paired")


def _pair(pair: BoardPair, names: Names) -> Row:
    return cells(
        names(pair.a),
        names(pair.b),
        "yes" if pair.same_cluster else "no",
        figures.count(pair.n),
        figures.count(pair.nonzero),
        figures.difference(pair.difference),
        figures.probability(pair.p),
        figures.probability(pair.p_holm),
        "yes" if pair.separated else "no",
    )


def power(summary: Summary) -> Section:
    """What difference each board can detect (§12)."""
    blocks: list[Block] = []
    for board in summary.boards:
        if board.power is not None:
            name = "the whole suite" if board.subset is None else f"the subset {board.subset}"
            blocks.append(Facts(tuple(_power(board.power, name))))
    for arm in summary.arms:
        if arm.power is not None:
            name = f"the arm {arm.arm}" if arm.subset is None else f"the arm {arm.arm}, subset {arm.subset}"
            blocks.append(Facts(tuple(_power(arm.power, name))))
    if not blocks:
        blocks.append(Para("No board with a ranked target, so nothing to detect."))
    return Section("power", "What difference this report can detect", tuple(blocks), "scoring.bakeoff.statistics")


def _power(found: Power, name: str) -> Iterator[tuple[str, Cell]]:
    cases = f"{found.n_smallest}" if found.n_smallest == found.n_largest else f"{found.n_smallest} to {found.n_largest}"
    less = f", {figures.detectable(found.reference_mde_at_smallest)} at {found.n_smallest}"
    less = "" if found.n_smallest == found.n_largest else less
    yield "board", Cell(f"{name}, {cases} {'case' if cases == '1' else 'cases'} a target")
    yield (
        "smallest difference that is detectable",
        Cell(
            f"{figures.detectable(found.reference_mde_at_largest)} at {count(found.n_largest, 'case')}" + less,
            below=f"power {figures.percent(found.power)}, alpha {found.alpha}, variance of the paired difference "
            f"{found.reference_variance:.3f} (Miller 2024)",
        ),
    )
    if found.observed_mde_at_largest is None or found.observed_variance is None:
        yield "with the variance seen here", Cell(found.observed_why or figures.NONE)
    else:
        yield (
            "with the variance seen here",
            Cell(
                f"{figures.detectable(found.observed_mde_at_largest)} at {count(found.n_largest, 'case')}",
                below=f"variance {found.observed_variance:.3f}, mean over {count(found.observed_pairs, 'pair')}",
            ),
        )
    yield "cases needed for 3 points", Cell(figures.count(found.reference_n_for_three_points))
