"""The sections beside the headline: lanes, parts of the suite, other arms, targets that are not ranked, failures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from referee.core.cases import CATEGORIES
from referee.publish import words
from referee.publish.bakeoff import figures
from referee.publish.bakeoff.blocks import Block, Cell, Heading, Items, Para, Row, Section, cells, several, table
from referee.publish.bakeoff.loud import counted, with_all, without
from referee.publish.bakeoff.who import Names, every_about, label, target
from referee.scoring.bakeoff.figures import About, Coverage, Failures, Rate, Transport
from referee.scoring.bakeoff.summary import ArmRow, ArmTable, Compared, LaneLimited, Scope, Standing, Summary


def lanes(summary: Summary) -> Section:
    """Each target's lane and what it leaves uncontrolled (§4, §5)."""
    rows = [
        cells(
            target(about),
            Cell(figures.say(figures.TOOL_CHANNELS, about.tool_channel)),
            several(about.uncontrolled) if about.uncontrolled else "nothing that is known",
            Cell(about.readable_as, below=None if about.pins_sampling else "temperature and seed cannot be pinned"),
            _pins(about),
            ", ".join(about.models_served) or "the server does not say",
            Cell(figures.say(figures.SOVEREIGNTY, about.sovereignty), below=f"self-hosting {_self_host(about)}"),
        )
        for about in every_about(summary)
    ]
    heads = ("target", "tool channel", "not controlled", "may be read as", "pinned", "model as served", "sovereignty")
    blocks: tuple[Block, ...] = (
        (table("A row measures model plus lane, never a model alone", heads, rows),)
        if rows
        else (Para("No target has a row in the named shards."),)
    )
    return Section(
        "lanes", "Lanes and what they leave uncontrolled", blocks, "adapters.lanes.surfaces, scoring.bakeoff.lanes"
    )


def _pins(about: About) -> str:
    pins = (
        ("revision", about.revision),
        ("precision", about.precision),
        ("quantisation", about.quantisation),
        ("context", None if about.context is None else figures.count(about.context)),
        ("parameters", about.parameters),
        ("CLI", about.cli),
    )
    return ", ".join(f"{name} {value}" for name, value in pins if value is not None) or "the model's name only"


def _self_host(about: About) -> str:
    return figures.say(figures.SELF_HOST, about.self_host)


def parts(summary: Summary) -> Section:
    """The headline by category and by language."""
    blocks: list[Block] = []
    for caption, chosen in (
        ("By category", [(row.about, row.by_category) for row in summary.breakdowns]),
        ("By language of the case", [(row.about, row.by_language) for row in summary.breakdowns]),
    ):
        there = {name for _, rates in chosen for name in rates}
        names = [*(name for name in CATEGORIES if name in there), *sorted(there - set(CATEGORIES))]
        if not names:
            continue
        heads = ("target", *(f"{name}>" for name in names))
        blocks.append(table(caption, heads, [_parts(about, rates, names) for about, rates in chosen]))
    if not blocks:
        blocks.append(Para("No target is ranked, so there is nothing to break down."))
    less = " Only cases that rank: the headline has the rates with all." * any(map(without, summary.boards))
    note = f"Small n: each figure stands with its interval and its number of cases.{less}"
    blocks.append(Para(note, note=True))
    return Section("categories", "Categories and languages", tuple(blocks), "scoring.bakeoff.assemble")


def _parts(about: About, rates: dict[str, Rate], names: Sequence[str]) -> Row:
    return cells(target(about), *(_counted(rates.get(name)) for name in names))


def _counted(rate: Rate | None) -> Cell:
    return Cell(figures.NONE) if rate is None else Cell(figures.rate(rate), below=f"n = {rate.n}")


def arms(summary: Summary) -> Section:
    """The arms that are never pooled into the headline, and what twins of cases show (§8)."""
    blocks: list[Block] = []
    names = Names(summary)
    for arm in summary.arms:
        blocks.extend(_arm(arm, names))
    if not summary.arms:
        blocks.append(Para("The suite has no arm beside its headline."))
    for twins in summary.twins:
        rows = [
            cells(
                target(about),
                _counted(scope.a),
                _counted(scope.b),
                figures.difference(scope.test.difference),
                figures.probability(scope.test.p),
            )
            for about, scope in twins.rows
        ]
        if rows:
            blocks.append(Heading(f"Twins: {twins.arm_a} beside {twins.arm_b}"))
            heads = ("target", f"{twins.arm_a}>", f"{twins.arm_b}>", "difference>", "p>")
            blocks.append(
                table(f"{twins.pairs} pairs of cases that differ in one thing, doubted gold included", heads, rows)
            )
    return Section(
        "arms",
        "Additions: arms beside the headline",
        tuple(blocks),
        "scoring.bakeoff.standings, scoring.bakeoff.comparisons",
    )


def _arm(arm: ArmTable, names: Names) -> Iterator[Block]:
    where = "" if arm.subset is None else f", subset {arm.subset}"
    cases = "1 case" if arm.cases == 1 else f"{figures.count(arm.cases)} cases"
    yield Heading(f"{arm.arm}{where}: {cases}, {'ranked by itself' if arm.ranked else 'unranked'}")
    yield Para(arm.about_arm)
    if arm.rows:
        heads = (
            "place>",
            "tie cluster>",
            "target",
            "tier",
            "valid-pass>",
            "second interval>",
            "pass^k>",
            "format rate>",
        )
        caption = "Never pooled into the headline" + ("" if arm.ranked else "; shown, never ranked")
        yield table(caption, (*heads, "cases>", "valid attempts>"), [_arm_row(row) for row in arm.rows])
    doubled = [
        f"{label(row.about)} {counted(row.with_flagged)}; without any flagged one: {counted(row.without_flagged)}"
        for row in arm.rows
        if row.with_flagged and row.without_flagged
    ]
    if doubled:
        yield Items(
            "Some of its cases left the ranking, or a review brought them back. With all of them:", tuple(doubled)
        )
    if arm.not_shown:
        yield Para(f"Lane-limited, so without a rate here: {names.all(arm.not_shown)}.", note=True)


def _arm_row(row: ArmRow) -> Row:
    found = row.figures
    line = cells(
        figures.places(row.places),
        figures.NONE if row.cluster is None else str(row.cluster),
        target(row.about),
        row.tier.name,
        Cell(figures.rate(found.rate), below=with_all(found.rate, row.with_flagged)),
        figures.bootstrapped(found.bootstrap),
        figures.pass_hat(found.pass_hat, found.rate.n),
        figures.percent(found.format_rate),
        figures.count(found.rate.n),
        figures.count(found.rate.valid),
    )
    return Row(line.cells, aside=row.place is None)


def lane_limited(summary: Summary) -> Section:
    """The targets that are not ranked, with every reason (§11), and apart those whose cases all left the ranking."""
    if not summary.lane_limited:
        blocks: tuple[Block, ...] = (Para("None: every target that has rows is ranked."),)
    else:
        heads = ("target", "why it is not ranked", "headline cases>", "valid attempts>", "passed>")
        blocks = ()
        for caption, by_lane in (
            ("Lane-limited. Counts, and no rate: what these targets show is their lane", True),
            ("Without a case that ranks. Nothing stands against their lanes: a review may bring cases back", False),
        ):
            rows = [_limited(row) for row in summary.lane_limited if row.by_lane is by_lane]
            if rows:
                blocks = (*blocks, table(caption, heads, rows))
        noted = [f"{label(row.about)}: {n.sentence}" for row in summary.lane_limited for n in row.caveats]
        if noted:
            blocks = (*blocks, Items("Caveats:", tuple(noted)))
    return Section("lane-limited", "Not ranked", blocks, "scoring.bakeoff.lanes, scoring.bakeoff.assemble")


def _limited(row: LaneLimited) -> Row:
    line = cells(
        target(row.about),
        several([reason.sentence for reason in row.reasons]),
        figures.count(row.headline_cases),
        figures.count(row.headline_valid),
        figures.count(row.headline_passes),
    )
    return Row(line.cells, aside=True)


def failures(summary: Summary) -> Section:
    """Where attempts failed: infrastructure, ordering, genuine others, abstention (§10)."""
    groups = tuple(figures.GROUPS)
    heads = ("failed>", *(f"{figures.GROUPS[group]}>" for group in groups), "infrastructure>", "refused>")
    by_arm = [cells(Cell(arm.arm, code=True), *_failed(arm.failures)) for arm in summary.totals.by_arm]
    by_target = [cells(target(row.about), *_failed(_failures_of(row))) for row in _every(summary)]
    flags = [
        cells(
            target(row.about),
            figures.count(row.transport.content_fallback),
            figures.count(row.transport.repaired),
            figures.counts(row.transport.flags),
        )
        for row in _every(summary)
    ]
    everything = [cells("all arms", *_failed(summary.totals.failures))]
    return Section(
        "failures",
        "Where attempts failed",
        (
            table("All targets, by arm", ("arm", *heads), [*everything, *by_arm]),
            table("Headline arms, by target", ("target", *heads), by_target),
            table("Forms counted apart", ("target", "call only in the text>", "repaired>", "all flags"), flags),
            Para(
                "A failed attempt stands in one group. Infrastructure and refusals by the endpoint are no failures of "
                "a model: they are excluded from every rate and reported here. A call that stands only in the text of "
                "a native lane is a fault of serving, and is no call there.",
                note=True,
            ),
        ),
        "scoring.answers (forms and faults), scoring.toolcalls (verdicts), scoring.bakeoff.grid (groups)",
    )


def _every(summary: Summary) -> list[Standing | LaneLimited]:
    rows: list[Standing | LaneLimited] = [row for board in summary.boards for row in board.rows]
    return [*rows, *summary.lane_limited]


def _failures_of(row: Standing | LaneLimited) -> Failures:
    return row.figures.failures if isinstance(row, Standing) else row.failures


def _failed(found: Failures) -> tuple[str, ...]:
    by_group = (figures.count(found.by_group.get(group, 0)) for group in figures.GROUPS)
    return (figures.count(found.failed), *by_group, figures.count(found.infra), figures.count(found.refused))


def coverage(summary: Summary) -> Section:
    """Rows against the identities that each target owed, and what happened on the way (§11)."""
    rows = [_covered(row.about, row.coverage, row.transport) for row in _every(summary)]
    heads = (
        "target",
        "expected>",
        "physical>",
        "usable>",
        "missing>",
        "unexpected>",
        "infrastructure>",
        "past deadline>",
    )
    named = [
        f"{label(row.about)}: {what} {', '.join(f'{case} (k = {k})' for case, k in found)}"
        for row in _every(summary)
        for what, found in (("missing", row.coverage.missing_named), ("unexpected", row.coverage.unexpected_named))
        if found
    ]
    spent = [_spent(row.about, row.transport) for row in _every(summary)]
    return Section(
        "coverage",
        "Coverage and transport",
        (
            table("All arms; the exact list of (case, repeat) counts, not the number alone", (*heads, "ended"), rows),
            *((Items("Named identities:", tuple(named)),) if named else ()),
            table(
                "Tokens and money, as the rows recorded them: no verdict", ("target", "in>", "out>", "spent>"), spent
            ),
        ),
        "runner.bakeoff.plan (identities), adapters.store.aggregate (rows), scoring.bakeoff.lanes (coverage)",
    )


def _covered(about: About, found: Coverage, way: Transport) -> Row:
    return cells(
        target(about),
        *(figures.count(n) for n in (found.expected, found.physical, found.usable, found.missing, found.unexpected)),
        Cell(figures.percent(way.infra_share), below=figures.counts(way.infra) if way.infra else None),
        figures.count(way.over_deadline),
        ", ".join(way.ended) or "not closed",
    )


def _spent(about: About, way: Transport) -> Row:
    # What only some attempts say is no sum of all of them.
    part = way.tokens_n is not None and way.tokens_n < way.graded
    of = f"of {figures.count(way.tokens_n)} of {figures.count(way.graded)} graded attempts" if part else None
    tokens = [
        Cell(way.tokens_why or figures.NONE if n is None else figures.count(n), below=None if n is None else of)
        for n in (way.input_tokens, way.output_tokens)
    ]
    spent = (way.spent_why or figures.NONE) if way.spent_usd is None else words.money(way.spent_usd)
    return cells(target(about), *tokens, spent)


def latency(summary: Summary) -> Section:
    """Latency, only where the lane admits a verdict (§13)."""
    rows = _every(summary)
    shown = [
        cells(
            target(row.about),
            figures.milliseconds(row.transport.latency_p50_ms),
            figures.milliseconds(row.transport.latency_p95_ms),
            figures.count(row.transport.latency_n),
        )
        for row in rows
        if row.transport.latency_p50_ms is not None
    ]
    silent = [
        f"{label(row.about)}: {row.transport.latency_why or 'no reason recorded'}"
        for row in rows
        if row.transport.latency_p50_ms is None
    ]
    heads = ("target", "median>", "95th percentile>", "graded attempts>")
    blocks: list[Block] = []
    if shown:
        blocks.append(table("Own infrastructure; the lane's hop is included", heads, shown))
    else:
        blocks.append(Para("No target's lane admits a verdict on latency."))
    if silent:
        blocks.append(Items("No latency is shown for:", tuple(silent)))
    return Section("latency", "Latency", tuple(blocks), "core.bakeoff.Surface, adapters.store.tallied_targets")


def comparisons(summary: Summary) -> Section:
    """The comparisons that were registered before the run; matched lanes show a lane's effect (§12, §13)."""
    blocks: list[Block] = []
    for one in summary.comparisons:
        blocks.extend(compared(one))
    if not blocks:
        blocks.append(Para("No comparison was registered."))
    return Section(
        "comparisons",
        "Registered comparisons and matched lanes",
        tuple(blocks),
        "scoring.bakeoff.comparisons, scoring.bakeoff.paired",
    )


def compared(one: Compared) -> Iterator[Block]:
    """One comparison, on each of its scopes."""
    plan = one.registered
    a = plan.a if one.about_a is None else label(one.about_a)
    b = plan.b if one.about_b is None else label(one.about_b)
    yield Heading(f"{a} beside {b}" + (": one model, two lanes" if plan.matched_lanes else ""))
    yield Para(plan.why)
    if plan.registered_after_one_side_was_public:
        yield Para("It was registered after the figures of one side were public.")
    if one.why_absent is not None:
        yield Para(one.why_absent)
    if one.scopes:
        rows = [
            cells(
                Cell(scope.scope, below="headline" if scope.headline else "never pooled"),
                _counted(scope.a),
                _counted(scope.b),
                figures.difference(scope.test.difference),
                figures.probability(scope.test.p),
                *(
                    figures.count(n)
                    for n in (
                        *(scope.overlap.both, scope.overlap.only_a, scope.overlap.only_b),
                        *(scope.overlap.neither, scope.overlap.unsteady),
                    )
                ),
            )
            for scope in one.scopes
        ]
        heads = ("cases", f"{a}>", f"{b}>", "a less b>", "p>", "both>", "only a>", "only b>", "neither>")
        yield table("Wilcoxon's signed-rank test on per-case rates, not corrected", (*heads, "unsteady>"), rows)
        yield from _alone(one.scopes, a, b)
    said = tuple(f"{scope.scope}: {scope.test.note}" for scope in one.scopes if scope.test.note)
    if said:
        yield Items("Of the test:", said)
    if one.caveats:
        yield Items("Caveats:", tuple(note.sentence for note in one.caveats))


def _alone(scopes: Sequence[Scope], a: str, b: str) -> Iterator[Block]:
    """The cases at which the two part, by name: one passed every valid attempt, the other none."""
    lines = [
        f"{scope.scope}, only {side}: {', '.join(named)}"
        + (f" and {figures.count(many - len(named))} more" if many > len(named) else "")
        for scope in scopes
        for side, many, named in (
            (a, scope.overlap.only_a, scope.overlap.only_a_named),
            (b, scope.overlap.only_b, scope.overlap.only_b_named),
        )
        if many
    ]
    if lines:
        yield Items("Cases of which one side passed every valid attempt and the other none:", tuple(lines))
