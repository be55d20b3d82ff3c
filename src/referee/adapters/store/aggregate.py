"""Counts what is in the selected shards, through DuckDB with declared columns, in bounded memory.

Each row is read once, by DuckDB; Python sees one line a case. Across shards the oldest physical row of a slot (target,
case, k) is its usable one, whatever it says (bake-off §11): what a later run wrote into a slot that was filled is
physical only. Cases, transport, tokens and latency are counted over usable rows; provenance, runs and spend over every
physical row.
"""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import compress
from pathlib import Path

import duckdb

from referee.adapters.store.shard_files import ScannedShard, scan_shard
from referee.adapters.store.tallied_targets import targets
from referee.core.tallies import CaseTally, ShardFact, TargetTally
from referee.errors import Finding

#: What DuckDB may hold in memory; beyond it, it spills into a temporary directory.
MEMORY_LIMIT = "1GB"
_AS_BITS = bytes.maketrans(b"01", b"\x00\x01")
#: What a row's columns are in SQL.
COLUMNS = {
    "kind": "VARCHAR",
    "started_at": "VARCHAR",
    "target": "VARCHAR",
    "case_id": "VARCHAR",
    "category": "VARCHAR",
    "arm": "VARCHAR",
    "language": "VARCHAR",
    "k_idx": "INTEGER",
    "passed": "BOOLEAN",
    "well_formed": "BOOLEAN",
    "blame": "VARCHAR",
    "infra_class": "VARCHAR",
    "reason": "VARCHAR",
    "flags": "VARCHAR[]",
    "wrong": "VARCHAR",
    "latency_ms": "DOUBLE",
    "model_served": "VARCHAR",
    "provenance": "VARCHAR",
    "input_tokens": "BIGINT",
    "output_tokens": "BIGINT",
    "spent_usd": "DOUBLE",
}

_LOAD = """
create temp table physical as
select body.target, body.case_id, body.k_idx, body.category, body.arm, body.language, body.passed, body.well_formed,
       body.blame, body.infra_class, case when not body.passed then body.reason end as reason, body.wrong, body.flags,
       body.latency_ms, body.model_served, body.provenance, body.input_tokens, body.output_tokens, body.spent_usd,
       epoch_us(body.started_at::timestamptz) as started, seq,
       parse_filename(filename)::shard_name as shard
from {source}
where body.kind = 'row'
"""

_USABLE = """
create temp table usable as
select physical.* from physical
semi join (
  select arg_min(rowid, {'started': started, 'shard': shard, 'seq': seq}) as oldest
  from physical group by target, case_id, k_idx
) as slots on physical.rowid = slots.oldest
"""

_SLOTS = """
create temp table slots as
select body.case_id, body.k_idx, body.model_served from {source} where body.kind = 'row'
"""
_ANSWERED_BY = "select distinct model_served from slots where model_served is not null order by 1"
_SPENT = "select sum(body.spent_usd::decimal(38, 12))::double from {source} where body.kind = 'row'"
_ALL_USABLE = "create temp view usable as select * from physical"

#: Of a case's usable rows. Outcomes are told by one bit for each k: sets of k are sums, as no slot stands twice.
_CASES = """
select target, case_id, any_value(category), any_value(arm), any_value(language),
       count(passed), count(*) filter (passed), count(*) filter (passed is not null and well_formed),
       count(*) filter (passed is null and blame is distinct from 'case'), count(*) filter (blame = 'case'),
       coalesce(sum(1::hugeint << k_idx) filter (passed is not null), 0)::varchar,
       coalesce(sum(1::hugeint << k_idx) filter (passed), 0)::varchar,
       case when count(passed) > 0 and count(passed) = count(wrong) filter (not passed) and min(wrong) = max(wrong)
            then min(wrong) end,
       count(*) filter (not passed and not well_formed and wrong is null),
       min(reason), max(reason)
from usable group by target, case_id order by target, case_id
"""
#: Only where a case's failures differ: most failures of a case are one and the same.
_REASONS = """
select target, case_id, list(reason order by k_idx) from usable where not passed
group by target, case_id having min(reason) <> max(reason)
"""


def tally(
    shards: Sequence[Path], *, scan: Callable[[Path], ScannedShard] = scan_shard
) -> tuple[list[TargetTally], list[CaseTally], list[ShardFact]]:
    """Count the selected shards.

    Args:
        shards: the files, chosen by ``shard_files.select_shards``.
        scan: checks one shard's chain.

    Raises:
        Finding: a shard's chain does not hold, its rows are not what a shard has, or it is still being written.
    """
    scanned = [scan(path) for path in shards]
    for one in scanned:
        if one.alive:
            raise Finding(f"the shard {one.name} is still being written", todo="wait for the end of its run")
    return (*count(scanned), [one.fact for one in scanned])


def count(scanned: Sequence[ScannedShard]) -> tuple[list[TargetTally], list[CaseTally]]:
    """Count shards whose chains were checked. Raises ``Finding``."""
    if not scanned:
        return [], []
    names = {one.name for one in scanned}
    with _connected() as con, _whole_lines(scanned) as paths:
        try:
            # In order of name: where rows began at the same moment, the same one is the oldest in any directory.
            con.execute(f"create type shard_name as enum ({', '.join(_quoted(name) for name in sorted(names))})")
            con.execute(_LOAD.format(source=_source(paths, max(one.longest for one in scanned))))
            _check_rows(con, scanned)
            slots = "select 1 from physical group by target, case_id, k_idx having count(*) > 1 limit 1"
            con.execute(_USABLE if con.execute(slots).fetchone() else _ALL_USABLE)
            return targets(con, scanned), _cases(con)
        except duckdb.Error as exc:
            raise Finding(f"the rows of the shards cannot be counted: {str(exc).splitlines()[0]}") from exc


def filled(shards: Sequence[ScannedShard]) -> tuple[set[tuple[str, int]], tuple[str, ...]]:
    """The slots (case, k) that have a row in these shards of one target, whatever it says; and the models served."""
    if not any(one.fact.rows for one in shards):
        return set(), ()
    with _connected() as con, _whole_lines(shards) as paths:
        source = _source(paths, max(one.longest for one in shards))
        try:
            con.execute(_SLOTS.format(source=source))
            rows = con.execute("select case_id, k_idx from slots").fetchall()
            served = con.execute(_ANSWERED_BY).fetchall()
        except duckdb.Error as exc:
            raise Finding(f"the rows of the shards cannot be read: {str(exc).splitlines()[0]}") from exc
    return set(rows), tuple(name for (name,) in served)


def spent_usd(shards: Sequence[ScannedShard]) -> float:
    """What all rows of these shards cost, US dollars. Raises ``Finding``."""
    if not any(one.fact.rows for one in shards):
        return 0.0
    with _connected() as con, _whole_lines(shards) as paths:
        source = _source(paths, max(one.longest for one in shards))
        try:
            found = con.execute(_SPENT.format(source=source)).fetchone()
        except duckdb.Error as exc:
            raise Finding(f"the rows of the shards cannot be read: {str(exc).splitlines()[0]}") from exc
    return float(found[0] or 0.0) if found else 0.0


@contextmanager
def _connected() -> Iterator[duckdb.DuckDBPyConnection]:
    with tempfile.TemporaryDirectory(prefix="referee-tally-") as spill:
        con = duckdb.connect(
            config={
                "memory_limit": MEMORY_LIMIT,
                "temp_directory": spill,
                "threads": min(4, os.cpu_count() or 1),
                "preserve_insertion_order": False,
                "autoinstall_known_extensions": False,
            }
        )
        try:
            yield con
        finally:
            con.close()


@contextmanager
def _whole_lines(scanned: Sequence[ScannedShard]) -> Iterator[list[str]]:
    """The files to read: a shard with a torn last line is read from a copy without it."""
    with tempfile.TemporaryDirectory(prefix="referee-whole-") as copies:
        paths = []
        for one in scanned:
            path = one.path
            if one.fact.torn_bytes:
                path = Path(copies) / one.name
                with one.path.open("rb") as whole, path.open("wb") as copy:
                    left = one.whole
                    while left:
                        left -= copy.write(whole.read(min(left, 1 << 20)))
            paths.append(str(path))
        yield paths


def _source(paths: Sequence[str], longest: int) -> str:
    files = ", ".join(_quoted(path) for path in paths)
    columns = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
    return (
        f"read_json([{files}], format = 'newline_delimited', records = true, filename = true, "
        f"maximum_object_size = {max(1 << 24, longest + 1)}, columns = {{body: 'STRUCT({columns})', seq: 'BIGINT'}})"
    )


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _check_rows(con: duckdb.DuckDBPyConnection, shards: Sequence[ScannedShard]) -> None:
    """DuckDB sees as many rows of each target as there are lines of it."""
    due: Counter[str] = Counter()
    for shard in shards:
        due[shard.opened.target.name] += shard.fact.rows
    seen = Counter(dict(con.execute("select target, count(*) from physical group by target").fetchall()))
    for name in sorted(due.keys() | seen.keys()):
        if due[name] != seen[name]:
            raise Finding(f"the shards of {name} have {due[name]} rows, of which {seen[name]} can be counted")


def _cases(con: duckdb.DuckDBPyConnection) -> list[CaseTally]:
    several = {(name, case): tuple(reasons) for name, case, reasons in con.execute(_REASONS).fetchall()}
    cases = []
    for row in con.execute(_CASES).fetchall():
        name, case, category, arm, language, valid, passes, formed, infra, refused, ks, good, wrong, broken, *why = row
        reasons = (why[0],) * (valid - passes) if why[0] == why[1] else several[name, case]
        outcomes = _outcomes(int(ks), int(good))
        numbers = (valid, passes, formed, infra, refused)
        cases.append(CaseTally(name, case, category, arm, language, *numbers, outcomes, wrong, reasons, broken))
    return cases


def _outcomes(ks: int, good: int) -> tuple[int, ...]:
    """1 and 0 in order of k, from the sets of k that were graded and that passed."""
    width = ks.bit_length()
    graded, passed = _bits(ks, width), _bits(good, width)
    return tuple(passed) if ks + 1 == 1 << width else tuple(compress(passed, graded))


def _bits(members: int, width: int) -> bytes:
    """A set of small numbers as one byte a number from 0 on: 1 where it is a member. Of 40,000 cases, so no loop."""
    return f"{members:0{width}b}"[::-1].encode().translate(_AS_BITS) if width else b""
