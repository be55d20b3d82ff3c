"""What is said of a target beside its rates: lane, coverage, transport, caveats, and why it may not rank (§11)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from referee.core.bakeoff import Protocol, Subset
from referee.core.cases import Suite
from referee.core.provenance import said_apart, sources_differ
from referee.core.tallies import TargetTally
from referee.scoring.bakeoff.figures import About, Coverage, Note, Tier, Transport

#: At most so many identities of a list are named, and so many cases in a sentence.
NAMED = 50
SOME = 5

#: Below this many cases a row is viability only; from ``GATE`` on it has a gate's size (§0).
VIABILITY_PLUS = 30
GATE = 200

#: What a suite's provenance must say, both with ``yes``, for its rows to be a gate: cases that nobody could have seen.
GATE_NEEDS = ("private", "rotated")

#: The end that limits a target for good (§11): what follows it is not ranked either.
BREAKER = "breaker"
#: Ends of a run that stop a target as lane-limited, in words.
STOPS = {
    BREAKER: "the circuit breaker stopped it after consecutive infrastructure errors",
    "account": "it was stopped at once: the account, its credit or its quota refused",
    "config": "it was stopped at once: the endpoint refused the request or the credential",
}

#: What a row says that does not say where it comes from.
UNKNOWN = frozenset({"", "unknown"})


@dataclass(frozen=True)
class Owed:
    """What the protocol lays down, to hold against the lists of shards.

    ``attempts``: of each part of the suite (None: the whole) how many attempts each case is to have; a registered
    subset that is not given is not there.
    """

    attempts: dict[str | None, dict[str, int]]
    subset_of: dict[str, frozenset[str | None]]


def owed(protocol: Protocol, suite: Suite, subsets: Mapping[str, Subset]) -> Owed:
    """What each target owes by the protocol."""
    planned_on: dict[str, set[str | None]] = {}
    for planned in protocol.targets:
        planned_on.setdefault(planned.target, set()).add(planned.subset)
    attempts: dict[str | None, dict[str, int]] = {
        name: dict.fromkeys(subset.cases, subset.repeats) for name, subset in subsets.items()
    }
    attempts[None] = {case.id: protocol.arm_repeats.get(case.arm, protocol.repeats) for case in suite.cases}
    return Owed(attempts, {name: frozenset(found) for name, found in planned_on.items()})


def about(tally: TargetTally) -> About:
    """The target with its lane."""
    target, surface = tally.target, tally.surface
    return About(
        target=target.name,
        model=target.model,
        lane=target.lane,
        channel=surface.channel,
        tool_channel=surface.tool_channel,
        uncontrolled=surface.uncontrolled,
        readable_as=surface.readable_as,
        latency_admissible=surface.latency_admissible,
        pins_sampling=surface.pins_sampling,
        sovereignty=target.sovereignty,
        self_host=target.self_host,
        precision=target.precision,
        quantisation=target.quantisation,
        context=target.context,
        parameters=target.parameters,
        revision=target.revision,
        cli=f"{target.cli.program} {target.cli.version}" if target.cli else None,
        metered=target.metered,
        price=target.price,
        subset=tally.subset,
        models_served=tuple(sorted(tally.models_served)),
        provenances=tuple(sorted(tally.provenances)),
        harness_versions=tuple(sorted(tally.harness_versions)),
        runs=tuple(sorted(tally.runs)),
    )


def coverage(tally: TargetTally) -> Coverage:
    """Its rows against the list that it owed."""
    missing, unexpected = sorted(tally.missing), sorted(tally.unexpected)
    return Coverage(
        expected=tally.expected,
        physical=tally.physical,
        usable=tally.usable,
        missing=len(missing),
        unexpected=len(unexpected),
        missing_named=tuple(missing[:NAMED]),
        unexpected_named=tuple(unexpected[:NAMED]),
        complete=tally.usable == tally.expected and not missing and not unexpected,
    )


def transport(tally: TargetTally, graded: int) -> Transport:
    """What happened on the way."""
    latency = tally.latency if tally.surface.latency_admissible else None
    why = None
    if not tally.surface.latency_admissible:
        why = "the lane admits no latency verdict: only own infrastructure does"
    elif latency is None:
        why = "no graded attempt"
    tokens_known = tally.input_tokens is not None and tally.output_tokens is not None
    speed, slow = tally.speed, None
    if tally.target.sovereignty == "none":
        slow = "no model"
    elif tally.surface.shape == "cli-envelope":
        slow = "an agent CLI's answer includes its own work: tokens a second cannot be measured"
    elif speed is None or not speed.output_tokens:
        slow = "the lane reports no token counts" if graded else "no graded attempt"
    spent_why = "no price is known for it" if tally.target.metered else "the lane is not metered"
    return Transport(
        graded=graded,
        infra=dict(sorted(tally.infra.items())),
        infra_share=sum(tally.infra.values()) / tally.usable if tally.usable else None,
        refused=dict(sorted(tally.refused.items())),
        flags=dict(sorted(tally.flags.items())),
        content_fallback=tally.flags.get("content_fallback", 0),
        repaired=tally.flags.get("repaired", 0),
        over_deadline=tally.over_deadline,
        latency_n=latency.n if latency else None,
        latency_p50_ms=latency.p50_ms if latency else None,
        latency_p95_ms=latency.p95_ms if latency else None,
        latency_why=why,
        input_tokens=tally.input_tokens,
        output_tokens=tally.output_tokens,
        tokens_why=None if tokens_known else "the lane reports no token counts",
        spent_usd=tally.spent_usd,
        spent_why=None if tally.spent_usd is not None else spent_why,
        cost_admissible=tally.surface.latency_admissible,
        ended=tuple(sorted(tally.ended)),
        tokens_per_second=None if slow is not None or speed is None else speed.output_tokens / speed.ms * 1000,
        tokens_per_second_n=0 if slow is not None or speed is None else speed.n,
        tokens_per_second_why=slow,
        tokens_n=tally.tokens_n,
    )


def tier(n: int, suite: Suite) -> Tier:
    """What a rate over n cases may be used for. More than 400 private, rotated cases are a gate as well."""
    if n < VIABILITY_PLUS:
        return Tier("viability", f"{n} cases: fewer than {VIABILITY_PLUS}")
    if n < GATE:
        return Tier("viability+", f"{n} cases: {VIABILITY_PLUS} or more, fewer than {GATE}")
    lacking = [need for need in GATE_NEEDS if suite.provenance.get(need) != "yes"]
    if lacking:
        return Tier(
            "viability+", f"{n} cases have the size of a gate, but the suite is not {' and not '.join(lacking)}"
        )
    return Tier("gate", f"{n} private, rotated cases: {GATE} or more")


def reasons(tally: TargetTally, protocol: Protocol, due: Owed, rows: Mapping[str, int]) -> tuple[Note, ...]:
    """Why a target may not be ranked: every reason, none where it may. ``rows`` are its usable rows, by case."""
    return (*_plan(tally, due), *_errors(tally, protocol), *_rows(tally, due, rows), *_provenance(tally))


def _plan(tally: TargetTally, due: Owed) -> list[Note]:
    name = tally.target.name
    registered = due.subset_of.get(name)
    if registered is None:
        return [Note("unregistered", f"the protocol does not name the target {name}")]
    if tally.subset not in registered:
        ran = f"the subset {tally.subset}" if tally.subset else "the whole suite"
        return [Note("unregistered-subset", f"it ran {ran}, which the protocol does not lay down for it")]
    return []


def _errors(tally: TargetTally, protocol: Protocol) -> list[Note]:
    notes = []
    failed = sum(tally.infra.values())
    if tally.usable and failed / tally.usable > protocol.guards.infra_share:
        worst = ", ".join(f"{name} x {count}" for name, count in sorted(tally.infra.items()))
        limit = f"{protocol.guards.infra_share:.0%}"
        notes.append(
            Note("infra", f"{failed} of {tally.usable} attempts failed by infrastructure, more than {limit}: {worst}")
        )
    ended, _, detail = (tally.stopped or "").partition(":")
    if ended in STOPS:
        notes.append(Note(ended, STOPS[ended] + (f" ({detail.strip()})" if detail.strip() else "")))
    elif BREAKER in tally.ended:
        # It does not become rankable by going on: its rows would be those that came through, and a few of the others.
        notes.append(Note(BREAKER, STOPS[BREAKER] + ", in a run that was gone on with later"))
    return notes


def _rows(tally: TargetTally, due: Owed, rows: Mapping[str, int]) -> list[Note]:
    notes = []
    if tally.usable == 0:
        notes.append(Note("no-rows", "it has no row"))
    elif tally.missing or tally.usable < tally.expected:
        short = max(len(tally.missing), tally.expected - tally.usable)
        notes.append(Note("missing", f"{short} of {tally.expected} expected rows are missing"))
    if tally.unexpected or tally.usable > tally.expected:
        over = max(len(tally.unexpected), tally.usable - tally.expected)
        notes.append(Note("unexpected", f"{over} rows are none of the {tally.expected} that were expected"))
    attempts = due.attempts.get(tally.subset)
    if attempts is None or tally.target.name not in due.subset_of:
        return notes
    if tally.expected != (laid_down := sum(attempts.values())):
        sentence = f"its list names {tally.expected} identities where the protocol lays down {laid_down}"
        notes.append(Note("other-list", sentence))
    elif not notes and rows != attempts:
        # The right number of the wrong cases fails too.
        other = sorted(case for case in {*rows, *attempts} if rows.get(case, 0) != attempts.get(case, 0))
        named = ", ".join(other[:SOME]) + (f" and {len(other) - SOME} more" if len(other) > SOME else "")
        sentence = f"its list is not the one that the protocol lays down: it has more or fewer attempts at {named}"
        notes.append(Note("other-list", sentence))
    return notes


def _provenance(tally: TargetTally) -> list[Note]:
    notes = []
    mixed = {
        "protocols": tally.protocols,
        "suites": tally.suites,
        "target files": tally.targets,
        "lanes": tally.surfaces,
        "served models": tally.models_served,
        "sources": tally.provenances,
    }
    for what, found in mixed.items():
        different = sorted(set(found))
        if len(different) > 1:
            apart = sources_differ(different) if what == "sources" else said_apart(different)
            sentence = f"its rows come from {len(different)} different {what} ({apart})"
            notes.append(Note("mixed-provenance", sentence))
    needed = (tally.protocols, tally.suites, tally.targets, tally.surfaces, tally.provenances)
    if tally.usable and not all(found and not UNKNOWN & set(found) for found in needed):
        notes.append(Note("unknown-provenance", "some of its rows do not say where they come from"))
    return notes


def caveats(tally: TargetTally) -> tuple[Note, ...]:
    """What may not be left out when the target's row is quoted."""
    stops = sorted({ended for ended in tally.ended if ended in STOPS} - {(tally.stopped or "").partition(":")[0]})
    said: list[tuple[bool, str, str]] = [
        (
            tally.subset is not None,
            "subset",
            f"it ran the registered subset {tally.subset}, not the whole suite: no comparison with full rows",
        ),
        (
            not tally.surface.pins_sampling,
            "sampling-not-pinned",
            "temperature and seed cannot be set on this lane: its answers vary at fixed input",
        ),
        (
            tally.surface.tool_channel == "inlined",
            "inlined-tools",
            "tool schemas were inlined in the prompt and an envelope read back: not comparable with native tool calls",
        ),
        (
            tally.over_deadline > 0,
            "over-deadline",
            f"{tally.over_deadline} attempts took longer than the deadline; they are kept as they were recorded",
        ),
        (
            len(tally.runs) > 1,
            "several-runs",
            f"its rows come from {len(tally.runs)} runs; of each slot the oldest row counts",
        ),
        (
            bool(stops),
            "stopped-before",
            f"an earlier run of it was stopped ({', '.join(stops)}); what was missing was run later",
        ),
        (
            len(tally.harness_versions) > 1,
            "several-harness-versions",
            f"its rows were made with {len(tally.harness_versions)} versions of the harness",
        ),
        (
            not tally.models_served and tally.usable > 0,
            "served-model-unsaid",
            "no answer said which model it came from",
        ),
        (
            bool(tally.models_served) and tally.target.model not in tally.models_served,
            "served-under-another-name",
            f"asked for {tally.target.model}, served as {', '.join(sorted(tally.models_served))}",
        ),
        (
            tally.flags.get("content_fallback", 0) > 0,
            "content-fallback",
            f"{tally.flags.get('content_fallback', 0)} answers held a call only as text: a defect of serving, no call",
        ),
        (
            tally.flags.get("suspect_model_output", 0) > 0,
            "suspect-model-output",
            f"{tally.flags.get('suspect_model_output', 0)} server errors may have been caused by the model's output",
        ),
        (
            bool(tally.refused),
            "refused",
            f"{sum(tally.refused.values())} attempts did not fit the endpoint (too long or moderated) and are excluded",
        ),
    ]
    return tuple(Note(code, sentence) for holds, code, sentence in said if holds)
