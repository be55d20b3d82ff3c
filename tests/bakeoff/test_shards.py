"""Shards: exclusive, chained, chosen by base name, counted through DuckDB with the oldest row of each slot."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from referee.adapters.store.aggregate import count, tally
from referee.adapters.store.answers import AnswerLog, AnswerReader, Asked, KeptAnswer, frame, unframe
from referee.adapters.store.shard_files import bodies, scan_shard, select_shards
from referee.adapters.store.shards import Commits
from referee.core.bakeoff import AnswerRef, ShardClosed, ShardOpened, Surface, Target
from referee.core.chain import read_chain
from referee.core.redaction import Redactor
from referee.core.tallies import SpeedTally
from referee.errors import CouldNotVerify, Finding, NothingMatched, RefereeError, UsageError
from referee.publish.bakeoff.attempts import open_attempts

pytestmark = pytest.mark.slow  # together more than a few seconds

D = "x:sha256:" + "a" * 64
SURFACE = Surface(
    channel="local",
    shape="openai-chat",
    tool_channel="native",
    uncontrolled=(),
    readable_as="r",
    latency_admissible=False,
    pins_sampling=True,
)
IDENTITIES = tuple((f"c{case}", k) for case in range(4) for k in range(2))


ROW: dict[str, Any] = {
    "kind": "row",
    "started_at": "2026-11-30T10:00:01.000000+00:00",
    "target_digest": D,
    "lane": "openai-chat",
    "surface_digest": D,
    "sovereignty": "eu-origin",
    "protocol_digest": D,
    "suite_digest": D,
    "subset": None,
    "expected": 8,
    "identities_digest": D,
    "category": "simple-call",
    "arm": "suite",
    "language": "de",
    "passed": True,
    "well_formed": True,
    "blame": None,
    "infra_class": None,
    "reason": "matches",
    "flags": [],
    "wrong": None,
    "http_status": 200,
    "tries": 1,
    "latency_ms": 5.0,
    "model_served": "m",
    "provenance": "p",
    "input_tokens": 10,
    "output_tokens": 2,
    "spent_usd": 0.5,
    "harness_version": "0",
}


def opened(target: str = "one", **more: Any) -> ShardOpened:
    said = {
        "run": "b-1",
        "at": "2026-11-30T10:00:00.000000+00:00",
        "protocol": "p",
        "protocol_digest": D,
        "suite": "s",
        "suite_digest": D,
        "grading": 2,
        "target": Target(name=target, model="m", lane="openai-chat", channel="local", sovereignty="eu-origin"),
        "target_digest": D,
        "surface": SURFACE,
        "surface_digest": D,
        "subset": None,
        "identities": IDENTITIES,
        "identities_digest": D,
        "harness_version": "0",
        "environment": {"deadline_seconds": 10.0},
    }
    return ShardOpened.model_validate({**said, **more})


def row(first: ShardOpened, case: str = "c0", k: int = 0, **more: Any) -> dict[str, Any]:
    owed = len(first.identities)
    facts = {"run": first.run, "target": first.target.name, "expected": owed, "case_id": case, "k_idx": k}
    return {**ROW, **facts, **more}


def write(root: Path, first: ShardOpened, rows: list[dict[str, Any]], *, ended: str | None = "complete") -> Path:
    """A shard by the real writer."""
    commits = Commits(root / "records", root / "answers", Redactor({}), lambda: None)
    shard = commits.open_shard(first)
    for body in rows:
        commits.put(shard, dict(body), b"said")
    commits.flush()
    if ended is not None:
        done = {"run": first.run, "at": "2026-11-30T11:00:00.000000+00:00", "rows": len(rows), "ended": ended}
        commits.close_shard(shard, ShardClosed.model_validate({**done, "detail": ""}))
    commits.close()
    return root / "records" / shard.name


def test_a_shard_is_chained_from_its_name_to_its_last_line(tmp_path: Path) -> None:
    first = opened()
    path = write(tmp_path, first, [row(first, f"c{case}") for case in range(4)])
    links, tail = read_chain(path.read_bytes(), file_name=path.name)
    assert [link.body["kind"] for link in links] == ["shard-opened", *["row"] * 4, "shard-closed"]
    assert tail == b""
    found = scan_shard(path)
    assert (found.fact.rows, found.fact.torn_bytes, found.alive, found.opened) == (4, 0, False, first)
    assert found.fact.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert [body["kind"] for _, body in bodies(found)] == [link.body["kind"] for link in links]


def test_two_writers_never_share_a_file(tmp_path: Path) -> None:
    first = opened()
    paths = {write(tmp_path, first, []) for _ in range(5)}
    assert len(paths) == 5
    assert len(list((tmp_path / "answers").iterdir())) == 5


def test_a_writer_holds_its_files_as_long_as_it_lives(tmp_path: Path) -> None:
    commits = Commits(tmp_path / "records", tmp_path / "answers", Redactor({}), lambda: None)
    shard = commits.open_shard(opened())
    path = tmp_path / "records" / shard.name
    for file in (path, next((tmp_path / "answers").iterdir())):
        with file.open("rb") as held, pytest.raises(BlockingIOError):
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    assert scan_shard(path).alive
    with pytest.raises(Finding, match="is still being written"):
        tally([path])
    commits.close()
    assert not scan_shard(path).alive


def test_answers_are_there_before_the_rows_that_name_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []
    sync = os.fdatasync

    def told(descriptor: int) -> None:
        order.append(Path(f"/proc/self/fd/{descriptor}").readlink().name.partition("-")[0])
        sync(descriptor)

    first = opened()
    monkeypatch.setattr(os, "fdatasync", told)
    write(tmp_path, first, [row(first)])
    assert order == ["results", "answers", "results", "results"]


def test_rows_are_announced_only_when_they_are_durable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commits = Commits(tmp_path / "records", tmp_path / "answers", Redactor({}), lambda: None)
    first = opened()
    shard = commits.open_shard(first)
    seen: list[int] = []
    sync = os.fdatasync

    def told(descriptor: int) -> None:
        seen.append(shard.durable)
        sync(descriptor)

    monkeypatch.setattr(os, "fdatasync", told)
    commits.put(shard, row(first), b"said")
    commits.flush()
    assert set(seen) == {0}
    assert shard.durable == 1
    commits.close()


def test_after_a_write_error_nothing_follows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[bool] = []
    commits = Commits(tmp_path / "records", tmp_path / "answers", Redactor({}), lambda: heard.append(True))
    first = opened()
    shard = commits.open_shard(first)
    commits.put(shard, row(first), b"said")
    commits.flush()
    size = (tmp_path / "records" / shard.name).stat().st_size

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr(os, "fdatasync", full)
        commits.put(shard, row(first, "c1"), b"said")
        with pytest.raises(CouldNotVerify, match="No space left on device"):
            commits.flush()
    commits.put(shard, row(first, "c2"), b"said")
    with pytest.raises(CouldNotVerify, match="No space left on device"):
        commits.flush()
    commits.close()
    assert heard == [True]
    assert (tmp_path / "records" / shard.name).stat().st_size == size


def test_the_last_look_before_writing_finds_a_credential(tmp_path: Path) -> None:
    commits = Commits(tmp_path / "records", tmp_path / "answers", Redactor({"K": "sk-very-secret-value"}), lambda: None)
    first = opened(environment={"note": "sk-very-secret-value"})
    shard = commits.open_shard(first)
    commits.put(shard, row(opened(), reason="got sk-very-secret-value"), b"")
    commits.flush()
    commits.close()
    data = (tmp_path / "records" / shard.name).read_bytes()
    assert b"secret-value" not in data
    assert data.count(b"[redacted:K]") == 2
    assert read_chain(data, file_name=shard.name)[1] == b""


@pytest.mark.parametrize(
    ("names", "said", "kind"),
    [
        ([], "no shard is named", UsageError),
        (["records/results-a.jsonl"], "bears a path", UsageError),
        (["../results-a.jsonl"], "bears a path", UsageError),
        (["/results-a.jsonl"], "bears a path", UsageError),
        (["results-..\\a.jsonl"], "bears a path", UsageError),
        (["attempts-a.jsonl"], "is no name of a shard", UsageError),
        (["results-a.jsonl\n"], "is no name of a shard", UsageError),
        (["results-.jsonl"], "is no name of a shard", UsageError),
        (["results-nowhere.jsonl"], "there is no shard results-nowhere.jsonl", NothingMatched),
        (["results-here.jsonl", "results-here.jsonl"], "is named twice", UsageError),
        (["results-link.jsonl"], "there is no shard results-link.jsonl", NothingMatched),
    ],
)
def test_names_that_are_no_base_names_fail_closed(
    tmp_path: Path, names: list[str], said: str, kind: type[RefereeError]
) -> None:
    (tmp_path / "results-here.jsonl").write_bytes(b"")
    (tmp_path / "results-link.jsonl").symlink_to(tmp_path / "results-here.jsonl")
    with pytest.raises(kind, match=said.replace(".", r"\.")):
        select_shards(tmp_path, names)


BREAKS: dict[str, tuple[Callable[[list[bytes]], list[bytes]], str]] = {
    "changed": (lambda lines: [*lines[:2], lines[2].replace(b"true", b"null", 1), *lines[3:]], "line 4: does not"),
    "taken out": (lambda lines: [*lines[:2], *lines[3:]], "line 3: says it is number 3"),
    "doubled": (lambda lines: [*lines[:3], lines[2], *lines[3:]], "line 4: says it is number 2"),
    "swapped": (lambda lines: [lines[0], lines[2], lines[1], *lines[3:]], "line 2: says it is number 2"),
    "no JSON": (lambda lines: [*lines[:2], b"{half\n", *lines[3:]], "line 3: not JSON"),
    "no record": (lambda lines: [*lines[:2], b"[]\n", *lines[3:]], "line 3: is no record line"),
    "without its first line": (lambda lines: lines[1:], "line 1: says it is number 1"),
    "empty": (lambda lines: [], "has no whole line"),
    "torn in its first line": (lambda lines: [lines[0][:40]], "has no whole line"),
}


@pytest.mark.parametrize("name", BREAKS)
def test_a_shard_that_does_not_hold_is_named_by_its_line(tmp_path: Path, name: str) -> None:
    first = opened()
    path = write(tmp_path, first, [row(first, f"c{case}") for case in range(4)])
    change, said = BREAKS[name]
    path.write_bytes(b"".join(change(path.read_bytes().splitlines(keepends=True))))
    with pytest.raises(Finding, match=said):
        tally([path])


def test_a_shard_under_another_name_does_not_hold(tmp_path: Path) -> None:
    first = opened()
    path = write(tmp_path, first, [row(first)])
    other = path.rename(path.with_name("results-other.jsonl"))
    with pytest.raises(Finding, match="line 1: does not continue") as found:
        tally([other])
    assert found.value.todo.endswith("put the file back from a copy")


def test_rows_that_say_otherwise_than_their_first_line_are_no_rows_of_the_shard(tmp_path: Path) -> None:
    first = opened()
    path = write(tmp_path, first, [row(first), row(first, "c1", protocol_digest="other:sha256:" + "b" * 64)])
    with pytest.raises(Finding, match="line 3: is no row that says of run, target and lists what the first line says"):
        tally([path])


def test_the_oldest_row_of_a_slot_counts_whatever_it_says(tmp_path: Path) -> None:
    first, second = opened(), opened(run="b-2", at="2026-11-30T12:00:00.000000+00:00")
    late = "2026-11-30T12:00:01.000000+00:00"
    infra = {"passed": None, "well_formed": None, "blame": "infra", "infra_class": "timeout", "latency_ms": 20_000.0}
    old = write(tmp_path, first, [row(first, "c0", 0, **infra), row(first, "c1", 0)], ended="breaker")
    new = write(
        tmp_path, second, [row(second, "c0", 0, started_at=late), row(second, "c0", 1, started_at=late, passed=False)]
    )
    for order in ([old, new], [new, old]):
        (target,), cases, facts = tally(order)
        assert (target.physical, target.usable, target.expected) == (4, 3, 8)
        assert target.infra == {"timeout": 1}
        assert target.missing == (("c1", 1), ("c2", 0), ("c2", 1), ("c3", 0), ("c3", 1))
        assert (target.runs, target.ended, target.stopped) == (("b-1", "b-2"), ("breaker", "complete"), None)
        assert target.spent_usd == 2.0
        assert target.input_tokens == 30
        assert target.over_deadline == 1
        assert target.latency is not None
        assert target.latency.n == 2
        assert {case.case: (case.valid, case.passes, case.infra, case.outcomes) for case in cases} == {
            "c0": (1, 0, 1, (0,)),
            "c1": (1, 1, 0, (1,)),
        }
        assert [fact.name for fact in facts] == [path.name for path in order]


def test_of_rows_that_began_at_the_same_moment_the_first_by_name_counts_wherever_the_shards_lie(tmp_path: Path) -> None:
    """As on the pages of cases: the order follows the shards' base names, not the directory."""
    first = opened()
    for place in range(12):
        root = tmp_path / f"d{place}"
        paths = [write(root, first, [row(first, passed=passed)]) for passed in (True, False)]
        (target,), (case,), _ = tally(paths)
        assert (target.physical, target.usable) == (2, 1)
        oldest = min(paths, key=lambda path: path.name)
        assert case.passes == [True, False][paths.index(oldest)]
        with open_attempts([scan_shard(path) for path in paths], root) as (found, _):
            ((_, attempts, _),) = found
            assert [one.passed for one in attempts if one.counts] == [bool(case.passes)]


def test_what_is_counted_of_a_case(tmp_path: Path) -> None:
    first = opened(identities=tuple((f"c{case}", k) for case in range(4) for k in range(3)))
    same, other = "wrong:sha256:" + "1" * 64, "wrong:sha256:" + "2" * 64
    bad = {"passed": False, "reason": "argument `date`: expected 2026-07-24, got 24.07.2026"}
    refused = {"passed": None, "well_formed": None, "blame": "case", "infra_class": "context_length"}
    rows = [
        *(row(first, "c0", k, **bad, wrong=same, flags=["repaired"]) for k in range(3)),
        row(first, "c1", 2, **{**bad, "reason": "third"}, wrong=other),
        row(first, "c1", 0, **{**bad, "reason": "first"}, wrong=same, flags=["repaired", "duplicate-call"]),
        row(first, "c1", 1),
        row(first, "c2", 0, passed=False, well_formed=False, reason="cut off"),
        row(first, "c2", 1, **refused),
        row(first, "c9", 0),
    ]
    (target,), cases, _ = tally([write(tmp_path, first, rows)])
    by_case = {case.case: case for case in cases}
    assert by_case["c0"].wrong == same
    assert by_case["c0"].reasons == (bad["reason"],) * 3
    assert by_case["c0"].outcomes == (0, 0, 0)
    assert (by_case["c1"].wrong, by_case["c1"].reasons, by_case["c1"].outcomes) == (None, ("first", "third"), (0, 1, 0))
    assert (by_case["c2"].broken, by_case["c2"].refused, by_case["c2"].valid, by_case["c2"].well_formed) == (1, 1, 1, 0)
    assert target.unexpected == (("c9", 0),)
    assert target.flags == {"repaired": 4, "duplicate-call": 1}
    assert target.refused == {"context_length": 1}


def test_targets_are_counted_apart_and_latency_is_by_nearest_rank(tmp_path: Path) -> None:
    one, two = opened(), opened("two")
    slots = [(f"c{case}", k) for case in range(4) for k in range(2)]
    path = write(tmp_path, one, [row(one, *slot, latency_ms=float(at + 1)) for at, slot in enumerate(slots)])
    other = write(tmp_path, two, [row(two, "c0", 0, passed=False)], ended=None)
    targets, cases, _ = tally([path, other])
    assert [target.target.name for target in targets] == ["one", "two"]
    assert targets[0].latency is not None
    assert (targets[0].latency.p50_ms, targets[0].latency.p95_ms) == (4.0, 8.0)
    assert (targets[1].stopped, targets[1].ended) == ("unclosed", ("unclosed",))
    assert len(cases) == 5


def test_speed_is_of_graded_calls_that_count_their_tokens(tmp_path: Path) -> None:
    first = opened()
    rows = [
        row(first, "c0", 0, output_tokens=30, latency_ms=1000.0),
        row(first, "c0", 1, output_tokens=20, latency_ms=250.125, passed=False),
        row(first, "c1", 0, output_tokens=None, latency_ms=9000.0),
        row(first, "c1", 1, output_tokens=99, latency_ms=9000.0, passed=None, well_formed=None, infra_class="timeout"),
    ]
    (target,), _, _ = tally([write(tmp_path, first, rows)])
    assert target.speed == SpeedTally(n=2, output_tokens=50, ms=1250.125)
    (silent,), _, _ = tally([write(tmp_path / "more", first, [row(first, output_tokens=None)])])
    assert silent.speed is None


def test_nothing_selected_is_nothing_counted() -> None:
    assert count([]) == ([], [])


def test_a_name_with_a_quote_is_no_way_into_the_query(tmp_path: Path) -> None:
    root = tmp_path / "it's; drop"
    first = opened()
    (target,), _, _ = tally([write(root, first, [row(first)])])
    assert target.usable == 1


ASKED = Asked("b-1", "one", "c0", 1, "2026-11-30T10:00:01.000000+00:00", None)


def kept(body: bytes = b"said", **more: Any) -> KeptAnswer:
    said = {"status": 200, "headers": {"x": "y"}, "broke": None, "detail": "", "streamed": False, "latency_ms": 1.5}
    return KeptAnswer(body=body, **{**said, **more})


def test_an_entry_of_the_evidence_log_is_found_by_offset_length_and_digest(tmp_path: Path) -> None:
    log = AnswerLog(tmp_path)
    entries = [frame(ASKED, [kept(b"\n\x00\xff{}")]), frame(ASKED, [kept(b"", broke="timeout"), kept(b"x" * 70_000)])]
    refs = [AnswerRef.model_validate(log.add(entry)) for entry in entries]
    log.sync()
    log.close()
    assert (tmp_path / log.name).read_bytes() == b"".join(entries)
    with AnswerReader(tmp_path) as reader:
        assert [reader.read(ref) for ref in refs] == entries
        assert unframe(entries[1]) == (ASKED, [kept(b"", broke="timeout"), kept(b"x" * 70_000)])
        with pytest.raises(Finding, match="is not the one that its row names"):
            reader.read(refs[1].model_copy(update={"offset": 1}))
        for name in ("../answers-x.log", "answers-gone.log"):
            with pytest.raises(Finding, match="answers-"):
                reader.read(refs[0].model_copy(update={"log": name}))


@pytest.mark.parametrize(
    "entry", [b"", b"no head\n", b'{"length":5}\nab\n', b'{"length":2}\nab\n', b"[]\n", b'{"a":1}']
)
def test_an_entry_without_its_form_is_refused(entry: bytes) -> None:
    with pytest.raises(Finding):
        unframe(entry)


def test_an_entry_that_is_cut_anywhere_is_refused() -> None:
    whole = frame(ASKED, [kept(b'{"a": 1}')])
    for cut in range(1, len(whole)):
        with pytest.raises(Finding):
            unframe(whole[:cut])
    assert json.loads(unframe(whole)[1][0].body) == {"a": 1}
