"""The raw export: every attempt row of the named shards on ten columns, as CSV, JSON lines and Parquet (bake-off §13).

An export, no recomputation: ``(target, case_id, k_idx)`` is no primary key, nothing is left out and nothing is
deduplicated. The same shards give the same bytes, whatever the day, the time zone and the locale.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Sequence
from pathlib import Path

from referee.adapters.store.shard_files import ScannedShard
from referee.publish.bakeoff.rows import open_rows, quoted

#: The ten columns: name, type, and the row's field behind it.
COLUMNS = (
    ("run_id", "VARCHAR", "run"),
    ("started_at", "VARCHAR", "started_at"),
    ("target", "VARCHAR", "target"),
    ("lane", "VARCHAR", "lane"),
    ("case_id", "VARCHAR", "case_id"),
    ("category", "VARCHAR", "category"),
    ("k_idx", "INTEGER", "k_idx"),
    ("passed", "BOOLEAN", "passed"),
    ("infra_class", "VARCHAR", "infra_class"),
    ("latency_ms", "DOUBLE", "latency_ms"),
)

SUMS = "SHA256SUMS"
_FORMS = {
    "attempts.csv": "FORMAT csv, HEADER true, DELIMITER ',', QUOTE '\"', ESCAPE '\"'",
    "attempts.jsonl": "FORMAT json",
    "attempts.parquet": "FORMAT parquet, COMPRESSION zstd",
}


def export(shards: Sequence[ScannedShard], out: Path) -> list[Path]:
    """Write the three files and ``SHA256SUMS`` into the directory ``out``, replacing what an export left there.

    Args:
        shards: the selected shards, scanned before; rows stand in order of shard name and line.
        out: the directory; made where it is not there.

    Raises:
        Finding: the shards cannot be read as rows.
    """
    fresh = out / ".fresh"
    shutil.rmtree(fresh, ignore_errors=True)
    (fresh / "spool").mkdir(parents=True)
    try:
        with open_rows(shards, COLUMNS, fresh / "spool") as database:
            for name, form in _FORMS.items():
                chosen = _guarded() if name.endswith(".csv") else ", ".join(column for column, _, _ in COLUMNS)
                database.execute(
                    f"COPY (SELECT {chosen} FROM rows ORDER BY shard, seq) "  # noqa: S608 — fixed words
                    f"TO '{quoted(fresh / name)}' ({form})"
                )
        sums = "".join(f"{_sha256(fresh / name)}  {name}\n" for name in sorted(_FORMS))
        (fresh / SUMS).write_text(sums, encoding="ascii", newline="\n")
        for name in (*_FORMS, SUMS):
            (fresh / name).replace(out / name)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return [out / name for name in (*_FORMS, SUMS)]


def _guarded() -> str:
    """The columns for CSV: a text that a spreadsheet would take for a formula is kept from being one by a quote."""
    return ", ".join(
        f"CASE WHEN regexp_matches({name}, '^[=+@\\t\\r-]') THEN '''' || {name} ELSE {name} END AS {name}"
        if kind == "VARCHAR"
        else name
        for name, kind, _ in COLUMNS
    )


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
