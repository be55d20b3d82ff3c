"""Frozen before the first row; a change is named to the line; only a logged decision renews the freeze."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from referee.adapters.catalog.bakeoff_protocols import LoadedProtocol, load_protocol
from referee.adapters.store.evidence import LocalEvidence
from referee.adapters.store.records import RecordFiles
from referee.cli.bakeoff_init import write_protocol
from referee.core.records import DecisionLogged, ProtocolFrozen
from referee.errors import ConfigError, DigestMismatch, Finding, NothingMatched, RefereeError, UsageError
from referee.runner.bakeoff.changes import Change, changes
from referee.runner.bakeoff.decide import decide, decisions_of
from referee.runner.bakeoff.freeze import (
    digest_of_plan,
    freeze,
    freezes_of,
    frozen_protocol,
    require_frozen,
)

pytestmark = pytest.mark.slow  # together more than a few seconds


class Bench:
    """A workspace with one protocol on suite s1."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.directory = root / "protocols" / "demo"
        write_protocol(self.directory, "demo", suite="s1", targets=["keyword-baseline"])
        self.evidence = LocalEvidence(root / "evidence")

    @property
    def log(self) -> RecordFiles:
        return RecordFiles(self.root / "records", kind="bakeoff")

    @property
    def loaded(self) -> LoadedProtocol:
        return load_protocol(self.directory)

    def freeze(self, decision: int | None = None) -> ProtocolFrozen:
        return freeze(self.log, self.evidence, self.loaded, by="me", decision=decision)

    def require(self) -> ProtocolFrozen:
        return require_frozen(self.log, self.evidence, self.loaded)

    def edit(self, name: str, old: str, new: str) -> None:
        file = self.directory / name
        text = file.read_text("utf-8")
        assert old in text
        file.write_text(text.replace(old, new, 1), "utf-8")

    def decide(
        self, *, amends: bool = True, on: date | None = None, text: str = "One repeat is enough"
    ) -> DecisionLogged:
        return decide(self.log, "demo", text, reason="time", by="me", amends=amends, decided_on=on)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_a_run_refuses_a_protocol_that_is_not_frozen(bench: Bench) -> None:
    with pytest.raises(Finding, match="is not frozen") as caught:
        bench.require()
    assert "referee bakeoff freeze demo" in caught.value.todo


def test_a_frozen_protocol_is_accepted_and_its_bytes_are_kept(bench: Bench) -> None:
    record = bench.freeze()
    assert bench.require() == record
    assert record.digest == digest_of_plan(bench.loaded)
    kept = {ref.name: bench.evidence.read(ref.digest) for ref in record.files}
    assert kept["protocol.toml"] == (bench.directory / "protocol.toml").read_bytes()
    assert set(kept) == {
        *("protocol.toml", "cases.json", "subsets.toml"),
        *("targets/keyword-baseline.toml", "harness.json"),
    }
    assert json.loads(kept["harness.json"])["grading"] == 1


def test_freezing_again_without_a_change_appends_nothing(bench: Bench) -> None:
    first = bench.freeze()
    assert bench.freeze() == first
    assert len(freezes_of(bench.log.read_bakeoff(), "demo")) == 1


@pytest.mark.parametrize(
    ("name", "old", "new", "said"),
    [
        (
            "protocol.toml",
            "repeats = 3\n",
            "repeats = 1\n",
            "protocol.toml, line 11: was `repeats = 3`, is `repeats = 1`",
        ),
        ("protocol.toml", "seed = 42\n", "", "taken out `seed = 42`"),
        ("protocol.toml", "seed = 42\n", "seed = 42\n# x\n", "added `# x`"),
        (
            "subsets.toml",
            "# [[subset]]",
            "# [[subset]] ",
            "subsets.toml, line 2: was `# [[subset]]`, is `# [[subset]] `",
        ),
    ],
)
def test_a_changed_line_is_named(bench: Bench, name: str, old: str, new: str, said: str) -> None:
    bench.freeze()
    bench.edit(name, old, new)
    with pytest.raises(Finding) as caught:
        bench.require()
    assert said in caught.value.message
    with pytest.raises(Finding) as caught:
        bench.freeze()
    assert said in caught.value.message
    assert "--decision" in caught.value.todo


def test_a_changed_case_is_named_by_its_line(bench: Bench) -> None:
    bench.freeze()
    cases = bench.directory / "cases.json"
    lines = cases.read_text("utf-8").split("\n")
    at = next(number for number, line in enumerate(lines) if '"content":' in line)
    lines[at] = lines[at].replace('"content": "', '"content": "Please, ')
    cases.write_text("\n".join(lines), "utf-8")
    with pytest.raises(Finding) as caught:
        bench.require()
    assert f"cases.json, line {at + 1}: was" in caught.value.message
    assert "Please," in caught.value.message


def test_a_target_of_the_workspace_is_frozen_with_the_protocol(bench: Bench) -> None:
    own = bench.root / "targets" / "mine.toml"
    own.parent.mkdir()
    own.write_text(
        'schema = "referee.target/1"\nmodel = "tiny"\nlane = "openai-chat"\nchannel = "local"\n'
        'sovereignty = "eu-origin"\nbase_url = "http://127.0.0.1:9/v1"\nquantisation = "Q4_K_M"\n'
    )
    bench.edit("protocol.toml", 'target = "keyword-baseline"', 'target = "mine"')
    bench.freeze()
    own.write_text(own.read_text().replace("Q4_K_M", "Q8_0"))
    with pytest.raises(Finding, match=r"targets/mine.toml, line 7: was `quantisation = \"Q4_K_M\"`"):
        bench.require()


def test_a_file_that_was_taken_away_is_named(bench: Bench) -> None:
    bench.freeze()
    (bench.directory / "subsets.toml").unlink()
    with pytest.raises(Finding, match=r"subsets\.toml was taken away"):
        bench.require()


def test_only_a_logged_decision_that_amends_renews_the_freeze(bench: Bench) -> None:
    bench.freeze()
    bench.edit("protocol.toml", "repeats = 3", "repeats = 1")
    with pytest.raises(NothingMatched, match="has no entry 1"):
        bench.freeze(1)
    assert bench.decide(amends=False).number == 1
    with pytest.raises(UsageError, match="does not amend"):
        bench.freeze(1)
    assert bench.decide().number == 2
    renewed = bench.freeze(2)
    assert renewed.decision == 2
    assert bench.require() == renewed
    bench.edit("protocol.toml", "repeats = 1", "repeats = 2")
    with pytest.raises(UsageError, match="was followed by a freeze under decision 2"):
        bench.freeze(2)
    assert [one.decision for one in freezes_of(bench.log.read_bakeoff(), "demo")] == [None, 2]


def test_a_freeze_without_a_change_carries_out_no_decision(bench: Bench) -> None:
    first = bench.freeze()
    with pytest.raises(NothingMatched, match="has no entry 5"):
        bench.freeze(5)
    bench.decide(amends=False)
    with pytest.raises(UsageError, match="does not amend"):
        bench.freeze(1)
    bench.decide()
    with pytest.raises(UsageError, match="decision 2 has nothing to carry out"):
        bench.freeze(2)
    assert freezes_of(bench.log.read_bakeoff(), "demo") == [first]
    bench.edit("protocol.toml", "repeats = 3", "repeats = 1")
    renewed = bench.freeze(2)
    assert bench.freeze(2) == bench.freeze() == renewed


def test_a_decision_before_the_first_freeze_cannot_amend(bench: Bench) -> None:
    with pytest.raises(UsageError, match="nothing to amend"):
        bench.decide()
    assert bench.decide(amends=False).number == 1
    with pytest.raises(UsageError, match="was never frozen"):
        bench.freeze(1)


def test_a_late_decision_says_so_and_a_future_one_is_refused(bench: Bench) -> None:
    today = datetime.now(UTC).date()
    assert bench.decide(amends=False, on=today - timedelta(days=2)).late
    assert not bench.decide(amends=False).late
    with pytest.raises(UsageError, match="still to come"):
        bench.decide(amends=False, on=today + timedelta(days=2))
    with pytest.raises(UsageError, match="needs a text") as caught:
        bench.decide(amends=False, text=" ")
    assert "--reason" not in caught.value.todo
    with pytest.raises(UsageError, match="needs its reason") as caught:
        decide(bench.log, "demo", "what", reason=" ", by="me")
    assert "--reason" in caught.value.todo


def test_what_the_linter_refuses_cannot_be_frozen(bench: Bench) -> None:
    cases = json.loads((bench.directory / "cases.json").read_bytes())
    case = next(one for one in cases["cases"] if one.get("expected_call"))
    case["expected_call"]["name"] = "no_such_tool"
    (bench.directory / "cases.json").write_text(json.dumps(cases))
    with pytest.raises(Finding, match=f"the linter refuses {case['id']}"):
        bench.freeze()
    assert bench.log.read_bakeoff() == []


def test_an_unbalanced_subset_cannot_be_frozen(bench: Bench) -> None:
    one = next(case.id for case in bench.loaded.suite.cases if case.category == "simple-call")
    (bench.directory / "subsets.toml").write_text(
        f'[[subset]]\nname = "few"\nwhy = "x"\nrepeats = 1\ncases = ["{one}"]\n'
    )
    with pytest.raises(Finding, match="the linter refuses few, balance"):
        bench.freeze()


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("temperature = 0.0", "temperature = 0.7", "draws answers at temperature 0.7; this benchmark draws them at 0"),
        ("temperature = 0.0", "temperature = nan", "sampling.temperature of the protocol demo is no finite number"),
        (
            "deadline_seconds = 120.0",
            "deadline_seconds = inf",
            "guards.deadline_seconds of the protocol demo is no finite",
        ),
        ("max_tokens = 4096", "max_tokens = 4095", "allows answers of 4095 tokens; 4096 to 8192 are the control"),
        ("max_tokens = 4096", "max_tokens = 8193", "allows answers of 8193 tokens; 4096 to 8192 are the control"),
    ],
)
def test_answers_are_drawn_as_the_method_says_or_nothing_is_frozen(bench: Bench, old: str, new: str, said: str) -> None:
    bench.edit("protocol.toml", old, new)
    with pytest.raises(Finding, match=said):
        bench.freeze()
    assert bench.log.read_bakeoff() == []
    allowed = {"temperature": "0", "max_tokens": "8192", "deadline_seconds": "600.0"}
    key = new.partition(" ")[0]
    bench.edit("protocol.toml", new, f"{key} = {allowed[key]}")
    assert bench.freeze().files


def test_the_protocol_of_a_freeze_is_read_from_the_evidence(bench: Bench) -> None:
    record = bench.freeze()
    before = bench.loaded
    shutil.rmtree(bench.directory)
    assert frozen_protocol(record, bench.evidence).protocol == before.protocol
    assert frozen_protocol(record, bench.evidence).suite == before.suite
    blob = bench.evidence.path(record.files[0].digest)
    blob.chmod(0o644)
    blob.write_bytes(b"{}")
    with pytest.raises(DigestMismatch):
        frozen_protocol(record, bench.evidence)


@pytest.mark.parametrize(
    ("name", "old", "new", "said"),
    [
        ("protocol.toml", "[sampling]", "[sampling", "protocol.toml is no TOML"),
        ("protocol.toml", 'name = "demo"', 'name = "other"', "its directory is demo"),
        ("protocol.toml", "breaker = 8 ", "breaker = 9 ", "guards.breaker: Input should be less than or equal to 8"),
        ("protocol.toml", "credit_floor_usd = 3.0", "credit_floor_usd = 0.5", "guards.credit_floor_usd"),
        ("protocol.toml", 'suite = "s1"', 'suite = "s2"', "plans the suite s2"),
        ("protocol.toml", 'target = "keyword-baseline"', 'target = "gone"', "no target named 'gone'"),
        ("protocol.toml", 'target = "keyword-baseline"', 'target = "keyword-baseline"\nsubset = "x"', "not registered"),
        (
            "protocol.toml",
            '[[targets]]\ntarget = "keyword-baseline"\n',
            '[[targets]]\ntarget = "keyword-baseline"\n[[targets]]\ntarget = "keyword-baseline"\n',
            "the target keyword-baseline stands twice",
        ),
        ("protocol.toml", "repeats = 3\n", "repeats = 3\narm_repeats = { nowhere = 2 }\n", "the arm nowhere"),
        ("protocol.toml", "repeats = 3\n", "repeats = 101\n", "repeats: Input should be less than or equal to 100"),
        (
            "protocol.toml",
            "repeats = 3\n",
            "arm_repeats = { suite = 101 }\n",
            "arm_repeats.suite: Input should be less",
        ),
        (
            "protocol.toml",
            "repeats = 3\n",
            "arm_repeats = { suite = 0 }\n",
            "arm_repeats.suite: Input should be greater",
        ),
        ("cases.json", '"schema"', '"scheme"', "cases.json: scheme: Extra inputs"),
        ("cases.json", "{", "", "cases.json: not JSON"),
    ],
)
def test_a_broken_protocol_is_one_clear_sentence(bench: Bench, name: str, old: str, new: str, said: str) -> None:
    bench.edit(name, old, new)
    with pytest.raises(RefereeError) as caught:
        _ = bench.loaded
    assert said in caught.value.message
    assert "\n" not in caught.value.message
    assert caught.value.exit_code in {2, 5}


def test_a_doubled_case_is_refused_by_name(bench: Bench) -> None:
    cases = json.loads((bench.directory / "cases.json").read_bytes())
    cases["cases"].append(cases["cases"][0])
    (bench.directory / "cases.json").write_text(json.dumps(cases))
    with pytest.raises(ConfigError, match=f"the case {cases['cases'][0]['id']} stands twice"):
        _ = bench.loaded


def test_a_linked_file_is_not_followed(bench: Bench, tmp_path: Path) -> None:
    cases = bench.directory / "cases.json"
    cases.rename(tmp_path / "elsewhere.json")
    cases.symlink_to(tmp_path / "elsewhere.json")
    with pytest.raises(ConfigError, match=r"cases\.json of the protocol demo cannot be read"):
        _ = bench.loaded


def test_two_processes_at_once_never_take_the_same_number(bench: Bench) -> None:
    program = (
        "import sys\nfrom pathlib import Path\n"
        "from referee.adapters.store.records import RecordFiles\nfrom referee.runner.bakeoff.decide import decide\n"
        "log = RecordFiles(Path(sys.argv[1]), kind='bakeoff')\n"
        "for n in range(10):\n    decide(log, 'demo', f'{sys.argv[2]} {n}', reason='x', by='y')\n"
    )
    argv = [sys.executable, "-c", program, str(bench.root / "records")]
    started = [subprocess.Popen([*argv, str(number)]) for number in range(3)]
    assert [one.wait(timeout=120) for one in started] == [0, 0, 0]
    numbers = [one.number for one in decisions_of(bench.log.read_bakeoff(), "demo")]
    assert numbers == list(range(1, 31))


def test_changes_of_long_files_and_strange_bytes_are_told() -> None:
    long = [f"line {n}" for n in range(10_000)]
    other = [f"other {n}" if 10 < n < 9_000 else f"line {n}" for n in range(10_000)]
    found = changes({"a": "\n".join(long).encode()}, {"a": "\n".join(other).encode()})
    assert found == [Change("a", 12, "line 11", "other 11")]
    one = "x" * 5_000
    (change,) = changes({"a": f"{one}1{one}".encode()}, {"a": f"{one}2{one}".encode()})
    assert len(change.sentence) < 400
    assert "1x" in change.sentence
    assert "2x" in change.sentence
    (change,) = changes({"a": b"\xff\n"}, {"a": b"\\xff\n"})
    assert change.sentence == "a has other bytes where it is no UTF-8"
    (change,) = changes({"a": b"x\n"}, {"a": b"x\x1b]0;owned\x07\n"})
    assert "\x1b" not in change.sentence
    assert changes({"a": b"x"}, {"a": b"x\n"})[0].before == "x (no line feed at its end)"


def test_a_record_of_the_wrong_kind_is_never_written(bench: Bench) -> None:
    record = bench.freeze()
    attempts = RecordFiles(bench.root / "records")
    with pytest.raises(RefereeError, match="does not belong"):
        attempts.append(record)
    assert not list((bench.root / "records").glob("attempts-*"))
