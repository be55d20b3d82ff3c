"""``verify`` finds rows that were forged, moved, added or taken away, however well their chain was forged again."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from referee.adapters.store.answers import AnswerReader, frame, unframe
from referee.adapters.store.shard_files import bodies, scan_shard
from referee.core.bakeoff import AnswerRef
from referee.core.canonical import digest_of_bytes
from referee.core.chain import forge, genesis
from referee.errors import Finding
from tests.bakeoff.run_workspace import RunWorkspace, right
from tests.bakeoff.scripted_plays import Got
from tests.bakeoff.scripted_server import ScriptedServer, serving
from tests.bakeoff.scripted_shapes import Spoken

pytestmark = pytest.mark.slow  # whole runs, or many examples: together more than a minute

Rows = list[dict[str, Any]]


def flaky(got: Got) -> Sequence[Spoken]:
    """Right for some attempts only: each case is asked in the same words, so what differs is what came before."""
    flaky.asked += 1  # type: ignore[attr-defined]
    return right(got) if flaky.asked <= 2 else [("get_weather", {"city": "Nowhere"})]  # type: ignore[attr-defined]


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    flaky.asked = 0  # type: ignore[attr-defined]
    with serving(calls=flaky) as server:
        yield server


@pytest.fixture
def space(tmp_path: Path, server: ScriptedServer) -> RunWorkspace:
    space = RunWorkspace(tmp_path, server.url, cases=2, repeats=3, plan="[guards]\nconcurrency = 1\n")
    space.run()
    assert sum(row["passed"] for row in space.rows()) == 2
    return space


def rewrite(space: RunWorkspace, change: Callable[[Rows], Rows], *, closed: bool = True) -> None:
    """Forge the one shard again with other rows, its chain whole, its count right, and the end of the run unlogged."""
    (path,) = space.shards()
    first, *rows, last = [body for _, body in bodies(scan_shard(path))]
    rows = change(rows)
    prev, out = genesis(path.name), b""
    for seq, body in enumerate([first, *rows, {**last, "rows": len(rows)}][: None if closed else -1]):
        line, prev = forge(body, seq=seq, prev=prev)
        out += line
    path.write_bytes(out)
    if any(record.kind == "shard-sealed" for record in space.log.read_bakeoff()):
        space.unseal()


def with_first(**more: Any) -> Callable[[Rows], Rows]:
    return lambda rows: [{**rows[0], **more}, *rows[1:]]


def test_all_repeats_cannot_share_the_answer_that_passes(space: RunWorkspace) -> None:
    own = {"case_id", "k_idx", "started_at"}

    def best(rows: Rows) -> Rows:
        passed = next(row for row in rows if row["passed"])
        same = [row for row in rows if row["case_id"] == passed["case_id"]]
        return [{**passed, **{name: row[name] for name in own}} if row in same else row for row in rows]

    rewrite(space, best)
    with pytest.raises(Finding, match=r"as a row before it does|names the answer of one, case case-"):
        space.verify()


def test_a_row_cannot_point_at_the_answer_of_another_attempt(space: RunWorkspace) -> None:
    def swapped(rows: Rows) -> Rows:
        best, worst = rows[0], rows[-1]
        assert (best["passed"], worst["passed"]) == (True, False)
        taken = ("answer", "passed", "well_formed", "reason", "flags", "wrong", "latency_ms", "started_at")
        return [{**worst, **{name: best[name] for name in taken}}, *rows[1:-1], {**best, "answer": worst["answer"]}]

    rewrite(space, swapped)
    with pytest.raises(Finding, match=r"line 2: names the answer of one, case case-\d+, k = 0"):
        space.verify()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("started_at", "2001-01-01T00:00:00+00:00"),
        ("spent_usd", -5.0),
        ("spent_usd", 0.0),
        ("provenance", "endpoint=elsewhere"),
        ("model_served", "better"),
        ("output_tokens", 1),
        ("http_status", 201),
        ("latency_ms", 0.5),
        ("passed", False),
    ],
)
def test_nothing_that_a_row_says_can_be_changed_by_itself(space: RunWorkspace, name: str, value: Any) -> None:
    rewrite(space, with_first(**{name: value}))
    with pytest.raises(Finding, match=f"line 2: .*{name}"):
        space.verify()


def test_a_slot_that_is_not_owed_or_stands_twice_is_found(space: RunWorkspace) -> None:
    (path,) = space.shards()
    before = path.read_bytes()
    rewrite(space, with_first(k_idx=7))
    with pytest.raises(Finding, match=r"k = 7 is not owed"):
        space.verify()
    path.write_bytes(before)


def test_a_slot_stands_once_in_a_shard(space: RunWorkspace) -> None:
    rewrite(space, lambda rows: [*rows, rows[-1]])
    with pytest.raises(Finding, match=r"has a second row"):
        space.verify()


def test_a_shard_that_is_taken_away_is_missed_and_stays_missed_when_the_gaps_are_filled(
    space: RunWorkspace, server: ScriptedServer
) -> None:
    (path,) = space.shards()
    path.unlink()
    with pytest.raises(Finding, match=rf"{path.name} of one, announced by run b-\w+ on .* is gone"):
        space.verify()
    server.calls = right
    with pytest.raises(Finding, match="is gone"):
        space.run()
    assert all(row["passed"] for row in space.rows())


def test_rows_that_are_cut_off_a_closed_shard_are_missed(space: RunWorkspace, server: ScriptedServer) -> None:
    (path,) = space.shards()
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:3]))
    server.calls = right
    with pytest.raises(Finding, match=r"holds 2 rows, it held 6 when run b-\w+ closed it"):
        space.run()


def test_rows_that_are_exchanged_in_a_closed_shard_are_missed(space: RunWorkspace) -> None:
    (path,) = space.shards()
    (log,) = [one for one in space.records.glob("bakeoff-*.jsonl") if b'"shard-sealed"' in one.read_bytes()]
    sealed = log.read_bytes()
    rewrite(space, lambda rows: rows)
    assert space.verify().loose == []
    log.write_bytes(sealed)
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)))
    assert space.verify().rows == 6, "the same bytes hold"
    rewrite(space, lambda rows: rows[:-1])
    log.write_bytes(sealed)
    with pytest.raises(Finding, match=r"holds 5 rows, it held 6 when"):
        space.verify()


def test_rows_that_are_taken_out_of_a_shard_leave_answers_that_no_row_names(space: RunWorkspace) -> None:
    rewrite(space, lambda rows: rows[:2])
    with pytest.raises(Finding, match=r"no row names 4 of its answers: one, case-\d+, k = \d at \d+, .*were closed"):
        space.verify()


def test_a_killed_runs_answers_without_rows_are_told(space: RunWorkspace, server: ScriptedServer) -> None:
    rewrite(space, lambda rows: rows[:5], closed=False)
    (said,) = space.verify().loose
    assert "no row names 1 of its answers: one, case-000001, k = 2 at" in said
    server.calls = right
    (rewritten,) = space.shards()
    space.run()
    rewritten.write_bytes(b"".join(rewritten.read_bytes().splitlines(keepends=True)[:4]))
    with pytest.raises(Finding, match=r"holds 3 rows, it held 5 when run b-\w+ went on from it"):
        space.verify()


def test_a_shard_that_no_run_announced_is_found(space: RunWorkspace) -> None:
    (path,) = space.shards()
    other = path.with_name("results-20260101T000000Z-aaaa.jsonl")
    prev, out = genesis(other.name), b""
    for seq, (_, body) in enumerate(bodies(scan_shard(path))):
        line, prev = forge(body, seq=seq, prev=prev)
        out += line
    other.write_bytes(out)
    with pytest.raises(Finding, match=r"no run announced it, and it holds 6 rows"):
        space.verify()


def test_an_answer_that_is_changed_in_shard_and_log_alike_still_says_whose_it_is(space: RunWorkspace) -> None:
    """Forged at both ends, with digests made right: what the head says must agree with the row."""
    row = space.rows()[0]
    ref = AnswerRef.model_validate(row["answer"])
    with AnswerReader(space.root / "answers") as reader:
        asked, tries = unframe(reader.read(ref))
    assert (asked.case_id, asked.k_idx, asked.started_at) == (row["case_id"], row["k_idx"], row["started_at"])
    entry = frame(type(asked)(**{**vars(asked), "k_idx": 1}), tries)
    assert len(entry) == ref.length
    log = space.root / "answers" / ref.log
    data = log.read_bytes()
    log.write_bytes(data[: ref.offset] + entry + data[ref.offset + ref.length :])
    rewrite(space, with_first(answer=ref.model_copy(update={"digest": digest_of_bytes(entry)}).model_dump()))
    with pytest.raises(Finding, match="names the answer of one"):
        space.verify()


def test_the_log_announces_each_shard_and_seals_it(space: RunWorkspace) -> None:
    kinds = [json.loads(record.model_dump_json())["kind"] for record in space.log.read_bakeoff()]
    assert sorted(kinds) == ["market-snapshot", "protocol-frozen", "shard-announced", "shard-sealed"]


def test_what_a_row_cost_is_what_its_tokens_cost(tmp_path: Path, server: ScriptedServer) -> None:
    """Forged in row and log alike, so that only the price and the counted tokens give it away."""
    priced = {"metered": True, "credit": "ledger", "credit_usd": 100.0, "price": {"input": 1000.0, "output": 2000.0}}
    server.calls = right
    space = RunWorkspace(tmp_path / "metered", server.url, cases=1, repeats=1, one=priced)
    space.run()
    (row,) = space.rows()
    ref = AnswerRef.model_validate(row["answer"])
    assert row["spent_usd"] == pytest.approx((row["input_tokens"] * 1000 + row["output_tokens"] * 2000) / 1e6)
    with AnswerReader(space.root / "answers") as reader:
        asked, tries = unframe(reader.read(ref))
    for usd, said in ((row["spent_usd"] / 2, "its tokens cost"), (None, "and its target is metered")):
        entry = frame(type(asked)(**{**vars(asked), "spent_usd": usd}), tries)
        (space.root / "answers" / ref.log).write_bytes(entry)
        named = {"length": len(entry), "digest": digest_of_bytes(entry)}
        change = with_first(spent_usd=usd, answer=ref.model_copy(update=named).model_dump())
        rewrite(space, change)
        with pytest.raises(Finding, match=f"line 2: says spent_usd .*{said}"):
            space.verify()


def test_a_cost_by_a_published_price_is_what_was_kept_with_the_answer(tmp_path: Path, server: ScriptedServer) -> None:
    listed = {"metered": True, "credit": "ledger", "credit_usd": 100.0, "price_model": "gpt-4o-mini"}
    space = RunWorkspace(tmp_path / "listed", server.url, cases=1, repeats=1, one=listed)
    space.run()
    assert space.rows()[0]["spent_usd"] > 0
    rewrite(space, with_first(spent_usd=space.rows()[0]["spent_usd"] / 2))
    with pytest.raises(Finding, match="line 2: says spent_usd"):
        space.verify()


def test_no_two_rows_name_the_same_bytes_of_a_log(space: RunWorkspace) -> None:
    refs = [AnswerRef.model_validate(row["answer"]) for row in space.rows()]
    named = [(ref.offset, ref.length) for ref in refs]
    with AnswerReader(space.root / "answers") as reader:
        (log,) = reader.logs()
        assert list(reader.unnamed(log, iter(named))) == []
        for wrong in ([named[0], named[0]], [named[0], (named[1][0] - 1, 9)], [(named[-1][0], named[-1][1] + 1)]):
            with pytest.raises(Finding, match=r"is named by more than one row, or ends beyond it"):
                list(reader.unnamed(log, iter(wrong)))


def test_rows_of_another_version_that_differ_name_it(space: RunWorkspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("referee.__version__", "9.9.9")
    space.verify()  # another version alone is nothing
    forge_verdict = with_first(reason="passed: by a rule of before")
    rewrite(space, forge_verdict)
    with pytest.raises(Finding, match=r"reason is not what its answer gives; version .* graded it, this is 9\.9\.9"):
        space.verify()
