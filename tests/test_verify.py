"""``referee verify``: a whole workspace holds, and each thing that is changed in it is named."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

import referee
from referee.adapters.store.evidence import LocalEvidence
from referee.adapters.store.records import RecordFiles
from referee.cli.app import make_app
from referee.core.canonical import canonical_bytes, digest_of, digest_of_bytes
from referee.core.cast import cast
from referee.core.failure import Cause
from referee.core.records import (
    AttemptEnded,
    AttemptFound,
    AttemptPlanned,
    EvidenceRef,
    Lock,
    QuietFacts,
    RecordingFacts,
    RerunFacts,
)
from referee.core.timing import Header
from referee.core.transcript import transcript
from referee.errors import CouldNotVerify, Finding, NothingMatched
from referee.runner.rejudge import judge_run, rejudge_all
from referee.runner.seal import facts_bytes, lock_bytes, seal
from referee.runner.verify import verify
from referee.scoring.gather import gather
from tests.test_store_records import LOCK

COMMAND = "python /work/project/quickstart.py"
SUBJECT = b'schema = "referee.subject/1"\nname = "segno"\n'
MISSION = {"schema": "referee.mission/1", "project": "/work/project"}
RAW = b"installing\r\n2 + 3 = 5\r\n"


@dataclass
class Shop:
    """A workspace and its stores."""

    root: Path
    records: RecordFiles
    evidence: LocalEvidence

    @property
    def scores(self) -> Path:
        return self.root / "scores"

    def referee(self, *arguments: str) -> Result:
        return CliRunner().invoke(make_app(), [*arguments, "--workspace", str(self.root)])


def open_shop(root: Path) -> Shop:
    return Shop(root, RecordFiles(root / "records"), LocalEvidence(root / "evidence"))


def lock() -> Lock:
    return LOCK.model_copy(
        update={
            "subject": LOCK.subject.model_copy(
                update={"file_digest": digest_of("subject", {"schema": "referee.subject/1", "name": "segno"})}
            ),
            "mission_digest": digest_of("mission", MISSION),
        }
    )


def report(**fields: Any) -> bytes:
    value = {
        "installed": True,
        "started": True,
        "errors": [{"what": "no gcc", "fixed": True, "how": "apt"}],
        "test_depth": "tier1_real",
        "verified_how": {"command": COMMAND, "returned": "2 + 3 = 5"},
        "final_state": "It ran.",
        **fields,
    }
    return json.dumps(value).encode()


def attempt(
    shop: Shop, run: str, *, report_bytes: bytes | None = None, printed: bytes = b"2 + 3 = 5\n", **fields: Any
) -> AttemptEnded:
    """One ended attempt, with a real recording, sealed and recorded."""
    spool = shop.root / "spool" / run
    spool.mkdir(parents=True)
    timing = Header(120, 32, 1_790_000_000_000_000, "xterm").line() + b"100 o 12\n250 o 11\n300 x 0\n300 e exited\n"
    (spool / "session.raw").write_bytes(RAW)
    (spool / "session.timing").write_bytes(timing)
    (spool / "session.cast").write_bytes(b"".join(cast([RAW], [timing])))
    (spool / "transcript.txt").write_bytes(b"".join(transcript([RAW], [timing])))
    (spool / "harness.jsonl").write_bytes(b'{"phase":"agent"}\n')
    (spool / "subject.toml").write_bytes(SUBJECT)
    (spool / "mission.json").write_bytes(json.dumps({**MISSION, "deadline": 1.5}).encode())
    if report_bytes is not None:
        (spool / "report.json").write_bytes(report_bytes)
        (spool / "rerun.txt").write_bytes(printed)
    planned = AttemptPlanned(run=run, at="2026-11-30T00:00:00.000Z", lock=lock())
    shop.records.append(planned)
    (spool / "lock.json").write_bytes(lock_bytes(planned))
    rerun = RerunFacts(command=COMMAND, exit_status=0, timed_out=False, seconds=0.4, output="rerun.txt")
    values: dict[str, Any] = {
        "cause": None,
        "detail": "",
        "recording": RecordingFacts(complete=True, bytes=len(RAW), events=3, seconds=0.0003, exit_status=0),
        "quiet": QuietFacts(confirmed=True, how="the pid namespace is empty", survivors_ended=0),
        "report_rejected": None,
        "rerun": rerun if report_bytes is not None else None,
        "spent_usd": 0.0,
        "phases": {},
        "machine": {},
        "evidence": (),
        "evidence_digest": "",
        **fields,
    }
    ended = AttemptEnded(run=run, at="2026-11-30T00:01:00.000Z", **values)
    (spool / "facts.json").write_bytes(facts_bytes(ended))
    refs, digest = seal(run, spool, shop.evidence)
    shutil.rmtree(spool)
    sealed = {"evidence": refs, "evidence_digest": digest} | {
        name: fields[name] for name in ("evidence", "evidence_digest") if name in fields
    }
    ended = ended.model_copy(update=sealed)
    shop.records.append(ended)
    return ended


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    shop = open_shop(tmp_path / "w")
    attempt(shop, "r-pass", report_bytes=report())
    attempt(shop, "r-none")
    rejudge_all(shop.records, shop.evidence, shop.scores)
    shop.records.close()
    return open_shop(shop.root)


def blob(shop: Shop, run: str, name: str) -> Path:
    end = gather(shop.records.read())[run].end
    assert end is not None
    return shop.evidence.path(next(ref.digest for ref in end.evidence if ref.name == name))


def overwrite(path: Path, data: bytes) -> None:
    path.chmod(0o644)
    path.write_bytes(data)


def test_a_whole_workspace_holds(shop: Shop) -> None:
    done = verify(shop.records, shop.evidence, shop.scores)
    assert (done.runs, done.records, done.record_files, done.unjudged) == (2, 4, 1, 0)
    assert (done.scores, done.scores_compared, done.derived, done.unnamed) == (2, 2, 4, 0)
    assert done.torn == []
    out = shop.referee("verify")
    assert out.exit_code == 0
    assert "all holds" in out.output
    document = json.loads(shop.referee("verify", "r-pass", "--json").stdout)
    assert (document["schema"], document["holds"], document["runs"]) == ("referee.verify/1", True, 1)


def test_the_scores_are_what_records_and_evidence_give(shop: Shop) -> None:
    judged = judge_run("r-pass", shop.records, shop.evidence, shop.scores)
    assert (judged.outcome, judged.total, judged.valid) == ("pass_full", 100, True)
    document = json.loads((shop.scores / "r-pass.json").read_bytes())
    assert document["schema"] == "referee.score/1"
    assert document["rows"] == {"install": 30, "start": 30, "fixes": 20.0, "depth": 20}
    assert document["editions"]["1"]["total"] == document["editions"]["2"]["total"] == 100
    none = judge_run("r-none", shop.records, shop.evidence, shop.scores)
    assert (none.outcome, none.total, none.reason) == (
        "fail",
        0,
        "the agent ended without a report, which claims nothing",
    )


def test_deleted_scores_are_no_loss(shop: Shop) -> None:
    before = (shop.scores / "r-pass.json").read_bytes()
    shutil.rmtree(shop.scores)
    assert verify(shop.records, shop.evidence, shop.scores).scores_compared == 0
    rejudge_all(shop.records, shop.evidence, shop.scores)
    assert (shop.scores / "r-pass.json").read_bytes() == before


def _change_score(shop: Shop) -> None:
    path = shop.scores / "r-pass.json"
    path.write_bytes(path.read_bytes().replace(b'"total":100', b'"total":99'))


def test_a_score_of_a_run_that_another_version_made_says_so(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    _change_score(shop)
    monkeypatch.setattr(referee, "__version__", "9.9.9")
    with pytest.raises(Finding, match=rf"to version 9\.9\.9; version {LOCK.harness_version} made the run$"):
        verify(shop.records, shop.evidence, shop.scores)


def _change_record(shop: Shop) -> None:
    (file,) = (shop.root / "records").glob("*.jsonl")
    file.write_bytes(file.read_bytes().replace(b'"spent_usd":0.0', b'"spent_usd":9.0', 1))


def _drop_line(shop: Shop) -> None:
    (file,) = (shop.root / "records").glob("*.jsonl")
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[:1] + lines[2:]))


CHANGES: list[tuple[str, Callable[[Shop], object]]] = [
    ("the score in .* is not what", _change_score),
    ("line 3: does not continue", _change_record),
    ("line 2: says it is number 2", _drop_line),
    (
        "session.raw .* has changed",
        lambda shop: overwrite(blob(shop, "r-pass", "session.raw"), RAW.replace(b"5", b"6")),
    ),
    ("report.json .* has changed", lambda shop: overwrite(blob(shop, "r-pass", "report.json"), report(started=False))),
    ("rerun.txt .* has changed", lambda shop: overwrite(blob(shop, "r-pass", "rerun.txt"), b"2 + 3 = 6\n")),
    ("harness.jsonl: the evidence .* not in the store", lambda shop: blob(shop, "r-pass", "harness.jsonl").unlink()),
    ("is the score of a run that is not", lambda shop: (shop.scores / "r-other.json").write_bytes(b"{}")),
]


@pytest.mark.parametrize(("said", "change"), CHANGES, ids=[said for said, _ in CHANGES])
def test_each_change_is_named(shop: Shop, said: str, change: Callable[[Shop], object]) -> None:
    change(shop)
    with pytest.raises(Finding, match=said):
        verify(shop.records, shop.evidence, shop.scores)
    out = shop.referee("verify", "--json")
    assert out.exit_code == 1
    assert json.loads(out.stdout)["holds"] is False


def _rewritten(shop: Shop, ended: AttemptEnded, **changed: Any) -> None:
    """A forger with write access: new records and a new manifest, consistent among themselves."""
    planned = AttemptPlanned(run="r-forged", at="2026-11-30T00:00:00.000Z", lock=lock())
    forged = ended.model_copy(update={"run": "r-forged", **changed})
    refs = (
        *(ref for ref in forged.evidence if ref.name not in {"lock.json", "facts.json"}),
        shop.evidence.keep("lock.json", lock_bytes(planned)),
        shop.evidence.keep("facts.json", facts_bytes(forged)),
    )
    files = [{"bytes": ref.bytes, "digest": ref.digest, "name": ref.name} for ref in refs]
    manifest = {
        "schema": "referee.evidence/1",
        "run": "r-forged",
        "files": sorted(files, key=lambda one: str(one["name"])),
    }
    digest = shop.evidence.keep("manifest.json", canonical_bytes(manifest)).digest
    digest = str(changed.get("evidence_digest", digest))
    shop.records.append(planned)
    shop.records.append(forged.model_copy(update={"evidence": refs, "evidence_digest": digest}))


def _with(ended: AttemptEnded, ref: EvidenceRef) -> tuple[EvidenceRef, ...]:
    return tuple(ref if one.name == ref.name else one for one in ended.evidence)


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("session.cast", b'{"version": 2}\n', "session.cast is not what raw bytes and times give"),
        ("transcript.txt", b"all went well\n", "transcript.txt is not what raw bytes and times give"),
        ("subject.toml", b'schema = "referee.subject/1"\nname = "easier"\n', "subject.toml has the digest"),
        ("subject.toml", b"\xff", "subject.toml cannot be read"),
        ("mission.json", b'{"easier": true}', "mission.json has the digest"),
        ("mission.json", b"[]", "mission.json is no object"),
        ("session.raw", RAW[:-1], "session.raw has 22 bytes, its record says 23"),
    ],
)
def test_a_forged_file_with_matching_digests_is_named(tmp_path: Path, name: str, data: bytes, said: str) -> None:
    shop = open_shop(tmp_path / "w")
    ended = attempt(shop, "r-true", report_bytes=report())
    _rewritten(shop, ended, evidence=_with(ended, shop.evidence.keep(name, data)))
    with pytest.raises(Finding, match=said):
        verify(shop.records, shop.evidence, shop.scores)


def test_a_manifest_of_other_files_is_named(tmp_path: Path) -> None:
    shop = open_shop(tmp_path / "w")
    ended = attempt(shop, "r-true", report_bytes=report())
    _rewritten(shop, ended, evidence_digest=ended.evidence_digest)
    with pytest.raises(Finding, match="is not that of the record's files"):
        verify(shop.records, shop.evidence, shop.scores)


@pytest.mark.parametrize("digest", ["sha256:../../x", "sha256:" + "0" * 64])
def test_a_manifest_that_is_not_there_is_named(tmp_path: Path, digest: str) -> None:
    shop = open_shop(tmp_path / "w")
    ended = attempt(shop, "r-true", report_bytes=report())
    _rewritten(shop, ended, evidence_digest=digest)
    with pytest.raises(Finding, match="run r-forged: the evidence manifest: "):
        verify(shop.records, shop.evidence, shop.scores)


def test_a_wrong_size_in_a_record_is_named(tmp_path: Path) -> None:
    shop = open_shop(tmp_path / "w")
    ended = attempt(shop, "r-true", report_bytes=report())
    first = ended.evidence[0]
    _rewritten(shop, ended, evidence=_with(ended, first.model_copy(update={"bytes": first.bytes + 1})))
    with pytest.raises(Finding, match="has 23 bytes, its record says 24"):
        verify(shop.records, shop.evidence, shop.scores)


def test_a_run_that_ends_twice_is_named(tmp_path: Path) -> None:
    shop = open_shop(tmp_path / "w")
    shop.records.append(attempt(shop, "r-true"))
    with pytest.raises(Finding, match="r-true ends twice"):
        verify(shop.records, shop.evidence, shop.scores)


def test_a_run_that_nobody_planned_is_named(tmp_path: Path) -> None:
    shop = open_shop(tmp_path / "w")
    shop.records.append(attempt(shop, "r-true").model_copy(update={"run": "r-other"}))
    with pytest.raises(Finding, match="a run r-other that none of them planned"):
        verify(shop.records, shop.evidence, shop.scores)


def test_torn_tails_loose_blobs_and_open_runs_are_told_and_no_fault(shop: Shop) -> None:
    (file,) = (shop.root / "records").glob("*.jsonl")
    with file.open("ab") as stream:
        stream.write(b'{"body":{"kind":')
    shop.evidence.keep("left.over", b"bytes of a killed attempt")
    shop.records.append(AttemptPlanned(run="r-open", at="2026-11-30T00:00:00.000Z", lock=lock()))
    done = verify(shop.records, shop.evidence, shop.scores)
    assert (done.runs, done.unjudged, done.unnamed, len(done.torn)) == (3, 1, 1, 1)
    with pytest.raises(CouldNotVerify, match="has not ended"):
        judge_run("r-open", shop.records, shop.evidence, shop.scores)
    loose = shop.evidence.path(digest_of_bytes(b"bytes of a killed attempt"))
    overwrite(loose, b"bytes of another attempt!")
    with pytest.raises(Finding, match="which no record names, has changed"):
        verify(shop.records, shop.evidence, shop.scores)


def test_a_found_attempt_is_invalid_with_the_evidence_so_far(tmp_path: Path) -> None:
    shop = open_shop(tmp_path / "w")
    spool = tmp_path / "spool"
    spool.mkdir()
    (spool / "session.raw").write_bytes(RAW[:5])
    shop.records.append(AttemptPlanned(run="r-dead", at="2026-11-30T00:00:00.000Z", lock=lock()))
    refs, digest = seal("r-dead", spool, shop.evidence)
    shop.records.append(
        AttemptFound(
            run="r-dead",
            at="2026-11-30T01:00:00.000Z",
            cause=Cause.HARNESS_DIED,
            detail="",
            evidence=refs,
            evidence_digest=digest,
            reaped=(),
        )
    )
    judged = judge_run("r-dead", shop.records, shop.evidence, shop.scores)
    assert (judged.valid, judged.retry, judged.outcome) == (False, True, None)
    assert judged.sentence() == "invalid: the harness died during the attempt"
    assert verify(shop.records, shop.evidence, shop.scores).evidence_files == 2


@pytest.mark.parametrize(("size", "holds"), [(0, True), (40, True), (None, True), (-1, False)])
def test_a_killed_harness_may_leave_the_first_part_of_a_cast(tmp_path: Path, size: int | None, holds: bool) -> None:
    shop = open_shop(tmp_path / "w")
    timing = Header(120, 32, 1_790_000_000_000_000, "xterm").line() + b"100 o 12\n"
    whole = b"".join(cast([RAW], [timing]))
    spool = tmp_path / "spool"
    spool.mkdir()
    (spool / "session.raw").write_bytes(RAW)
    (spool / "session.timing").write_bytes(timing)
    (spool / "session.cast").write_bytes(b"{}" if size == -1 else whole[:size])
    shop.records.append(AttemptPlanned(run="r-dead", at="2026-11-30T00:00:00.000Z", lock=lock()))
    refs, digest = seal("r-dead", spool, shop.evidence)
    end = AttemptFound(
        run="r-dead",
        at="2026-11-30T01:00:00.000Z",
        cause=Cause.HARNESS_DIED,
        detail="",
        evidence=refs,
        evidence_digest=digest,
        reaped=(),
    )
    shop.records.append(end)
    shop.records.append(end.model_copy(update={"at": "2026-11-30T02:00:00.000Z"}))
    if holds:
        assert verify(shop.records, shop.evidence, shop.scores).runs == 1
    else:
        with pytest.raises(Finding, match=r"session\.cast is not what"):
            verify(shop.records, shop.evidence, shop.scores)


def test_nothing_there_matches_nothing(tmp_path: Path) -> None:
    shop = open_shop(tmp_path / "w")
    with pytest.raises(NothingMatched, match="nothing to verify"):
        verify(shop.records, shop.evidence, shop.scores)
    assert getattr(shop.referee("verify").exception, "exit_code", None) == 2, "a named workspace that is not there"
    (tmp_path / "w").mkdir(exist_ok=True)
    assert getattr(shop.referee("verify").exception, "exit_code", None) == 5


def test_an_unknown_run_matches_nothing(shop: Shop) -> None:
    with pytest.raises(NothingMatched, match="no run r-x"):
        verify(shop.records, shop.evidence, shop.scores, ["r-x"])
    with pytest.raises(NothingMatched, match="no run r-x"):
        judge_run("r-x", shop.records, shop.evidence, shop.scores)


def test_a_copy_of_the_workspace_verifies_elsewhere(shop: Shop, tmp_path: Path) -> None:
    copy = tmp_path / "elsewhere"
    shutil.copytree(shop.root, copy)
    assert verify(*_stores(copy)).runs == 2
    (copy / "records").rename(copy / "moved")
    with pytest.raises(Finding, match="of which no record speaks"):
        verify(*_stores(copy))
    (copy / "evidence").rename(copy / "moved too")
    (copy / "scores").rename(copy / "moved as well")
    with pytest.raises(NothingMatched):
        verify(*_stores(copy))


def _stores(root: Path) -> tuple[RecordFiles, LocalEvidence, Path]:
    shop = open_shop(root)
    return shop.records, shop.evidence, shop.scores
