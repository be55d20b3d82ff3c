"""The rows of named shards, through DuckDB: whole lines only, in order of shard and line, memory bounded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import duckdb

from referee.adapters.store.shard_files import ScannedShard
from referee.errors import Finding

_PIECE = 1 << 20


@contextmanager
def open_rows(
    shards: Sequence[ScannedShard], columns: Sequence[tuple[str, str, str]], spool: Path
) -> Iterator[duckdb.DuckDBPyConnection]:
    """A database with the view ``rows``: the wanted columns, and ``shard`` and ``seq`` of each row.

    Args:
        shards: the selected shards, scanned before: their chains hold.
        columns: name, type, and the row's field behind it.
        spool: an own, empty directory for what does not fit into memory and for whole lines of torn shards.

    Raises:
        Finding: the rows cannot be read.
    """
    paths = [_whole(shard, spool) for shard in sorted(shards, key=lambda shard: shard.name)]
    body = ", ".join(f'"{field}" {kind}' for _, kind, field in columns)
    named = ", ".join(f'body."{field}" AS "{name}"' for name, _, field in columns)
    files = ", ".join(f"'{quoted(path)}'" for path in paths)
    longest = max((shard.longest for shard in shards), default=0) + 1024
    try:
        with duckdb.connect(":memory:") as database:
            database.execute("SET threads = 1")
            database.execute("SET preserve_insertion_order = true")
            database.execute("SET memory_limit = '512MB'")
            database.execute(f"SET temp_directory = '{quoted(spool / 'spill')}'")
            database.execute(
                f"CREATE VIEW rows AS SELECT {named}, parse_filename(filename) AS shard, seq "  # noqa: S608 — fixed words and quoted paths
                f"FROM read_json([{files}], format = 'newline_delimited', filename = true, "
                f"maximum_object_size = {max(longest, 16 * 1024**2)}, "
                f"columns = {{body: 'STRUCT(kind VARCHAR, {body})', seq: 'BIGINT'}}) WHERE body.kind = 'row'"
            )
            yield database
    except duckdb.Error as exc:
        raise Finding(f"the rows of the shards cannot be read: {str(exc).splitlines()[0]}") from exc


def quoted(path: Path) -> str:
    """A path for between single quotes."""
    return str(path).replace("'", "''")


def _whole(shard: ScannedShard, spool: Path) -> Path:
    """The shard, or a copy of its whole lines where a torn one follows or its writer still lives."""
    if not shard.fact.torn_bytes and not shard.alive:
        return shard.path
    copy = spool / shard.name
    left = shard.whole
    with shard.path.open("rb") as source, copy.open("xb") as target:
        while left and (piece := source.read(min(left, _PIECE))):
            target.write(piece)
            left -= len(piece)
    return copy
