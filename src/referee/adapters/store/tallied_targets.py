"""What is counted of each target over the selected shards: coverage, provenance, transport, tokens, latency."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import duckdb

from referee.adapters.store.shard_files import ScannedShard
from referee.core.tallies import LatencyTally, SpeedTally, TargetTally

#: A call that took this much longer than its deadline is counted as over it, milliseconds (bake-off §11).
DEADLINE_SLACK_MS = 1000.0

_TOTALS = """
select target, count(*), sum(input_tokens)::bigint, sum(output_tokens)::bigint,
       count(latency_ms) filter (passed is not null),
       quantile_disc(latency_ms, 0.5) filter (passed is not null),
       quantile_disc(latency_ms, 0.95) filter (passed is not null),
       count(*) filter (timed), sum(output_tokens) filter (timed)::bigint,
       sum(latency_ms::decimal(18, 3)) filter (timed)::double,
       count(*) filter (passed is not null and input_tokens is not null and output_tokens is not null)
from (select *, passed is not null and output_tokens is not null and latency_ms > 0 as timed from usable)
group by target
"""
_NO_ROWS = (0, None, None, 0, None, None, 0, None, None, 0)
#: Money and time are added as decimals: a sum of doubles depends on how threads share the rows, and a report may not.
_PHYSICAL = "select target, count(*), sum(spent_usd::decimal(38, 12))::double from physical group by target"
_EXCLUDED = """
select target, blame = 'case', coalesce(infra_class, 'unnamed'), count(*)
from usable where passed is null group by all order by all
"""
_FLAGS = (
    "select target, flag, count(*) from (select target, unnest(flags) as flag from usable) group by all order by all"
)
_SERVED = "select distinct target, model_served, provenance from physical order by all"
#: What each target owes: its list of identities (many share one), and when a call of it counts as late.
_ASKED = "create temp table asked (target varchar, list integer, late_ms double)"
_OWED = "create temp table owed (list integer, case_id varchar, k_idx integer)"
_OWE = """
insert into owed select ?, slot[1]->>'$', (slot[2]->>'$')::integer
from (select unnest(from_json(?::json, '[["JSON"]]')) as slot)
"""
_MISSING = """
select target, case_id, k_idx from asked join owed using (list)
anti join usable using (target, case_id, k_idx) order by all
"""
_UNEXPECTED = """
select target, case_id, k_idx from usable
anti join (select target, case_id, k_idx from asked join owed using (list)) as due using (target, case_id, k_idx)
order by all
"""
_LATE = "select target, count(*) from physical join asked using (target) where latency_ms > late_ms group by target"


def targets(con: duckdb.DuckDBPyConnection, scanned: Sequence[ScannedShard]) -> list[TargetTally]:
    """The targets of the shards, in order of name; the tables ``physical`` and ``usable`` are loaded."""
    by_name: dict[str, list[ScannedShard]] = defaultdict(list)
    for shard in sorted(scanned, key=lambda one: (one.opened.at, one.name)):
        by_name[shard.opened.target.name].append(shard)
    totals = {row[0]: row[1:] for row in con.execute(_TOTALS).fetchall()}
    physical = {row[0]: row[1:] for row in con.execute(_PHYSICAL).fetchall()}
    infra: dict[str, dict[str, int]] = defaultdict(dict)
    refused: dict[str, dict[str, int]] = defaultdict(dict)
    for name, by_case, what, rows in con.execute(_EXCLUDED).fetchall():
        (refused if by_case else infra)[name][what] = rows
    flags: dict[str, dict[str, int]] = defaultdict(dict)
    for name, flag, rows in con.execute(_FLAGS).fetchall():
        flags[name][flag] = rows
    served: dict[str, list[tuple[str | None, str]]] = defaultdict(list)
    for name, model, provenance in con.execute(_SERVED).fetchall():
        served[name].append((model, provenance))
    expected = _ask(con, by_name)
    missing = _slots(con, _MISSING)
    # Where each target has as many usable slots as it owes, less those missing, none of them is another's.
    even = all(totals.get(name, (0,))[0] == expected[name] - len(missing[name]) for name in by_name)
    unexpected = defaultdict(list) if even else _slots(con, _UNEXPECTED)
    late = dict(con.execute(_LATE).fetchall())
    found = []
    for name in sorted(by_name):
        shards = by_name[name]
        usable, inputs, outputs, timed, median, high, *speed, told = totals.get(name, _NO_ROWS)
        rows, spent = physical.get(name, (0, None))
        last = shards[-1]
        full = [shard for shard in shards if shard.fact.rows]
        found.append(
            TargetTally(
                target=last.opened.target,
                surface=last.opened.surface,
                subset=last.opened.subset,
                expected=expected[name],
                physical=rows,
                usable=usable,
                missing=tuple(missing[name]),
                unexpected=tuple(unexpected[name]),
                infra=infra[name],
                refused=refused[name],
                flags=flags[name],
                protocols=_all(shard.opened.protocol_digest for shard in full),
                suites=_all(shard.opened.suite_digest for shard in full),
                targets=_all(shard.opened.target_digest for shard in full),
                surfaces=_all(shard.opened.surface_digest for shard in full),
                provenances=_all(provenance for _, provenance in served[name]),
                models_served=_all(model for model, _ in served[name] if model is not None),
                harness_versions=_all(shard.opened.harness_version for shard in full),
                runs=_all(shard.opened.run for shard in shards),
                ended=tuple(shard.closed.ended if shard.closed else "unclosed" for shard in shards),
                stopped=_stopped(last),
                latency=LatencyTally(timed, median, high) if timed else None,
                input_tokens=inputs,
                output_tokens=outputs,
                spent_usd=spent,
                over_deadline=late.get(name, 0),
                speed=SpeedTally(*speed) if speed[0] else None,
                tokens_n=told,
            )
        )
    return found


def _all(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(set(values)))


def _ask(con: duckdb.DuckDBPyConnection, by_name: Mapping[str, Sequence[ScannedShard]]) -> dict[str, int]:
    """Tell DuckDB what is owed; return how many slots each target owes: those of any of its shards."""
    con.execute(_ASKED)
    con.execute(_OWED)
    lists: dict[frozenset[str], tuple[int, int]] = {}
    expected = {}
    for name, shards in by_name.items():
        by_digest = {shard.opened.identities_digest: shard.opened.identities for shard in shards}
        key = frozenset(by_digest)
        if key not in lists:
            slots = {slot for identities in by_digest.values() for slot in identities}
            lists[key] = (len(lists), len(slots))
            con.execute(_OWE, [lists[key][0], json.dumps(sorted(slots))])
        number, expected[name] = lists[key]
        con.execute("insert into asked values (?, ?, ?)", [name, number, _late_ms(shards)])
    return expected


def _slots(con: duckdb.DuckDBPyConnection, query: str) -> dict[str, list[tuple[str, int]]]:
    slots: dict[str, list[tuple[str, int]]] = defaultdict(list)
    for name, case, k in con.execute(query).fetchall():
        slots[name].append((case, k))
    return slots


def _late_ms(shards: Sequence[ScannedShard]) -> float | None:
    """From which latency on a call is later than its deadline allows; None where no shard names a deadline."""
    deadlines = [shard.opened.environment.get("deadline_seconds") for shard in shards]
    known = [float(one) for one in deadlines if isinstance(one, int | float)]
    return max(known) * 1000 + DEADLINE_SLACK_MS if known else None


def _stopped(last: ScannedShard) -> str | None:
    """How the target's last shard stopped before its end; None where it came to its end."""
    if last.closed is None:
        return "unclosed"
    return None if last.closed.ended == "complete" else last.closed.ended
