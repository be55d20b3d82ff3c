"""Neutral branding: nothing public tells which agent made a run; what it did is untouched; it can be revealed later."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from referee.adapters.agents.harnesses.harness import load_harness
from referee.core.branding import Masker, Rules
from referee.core.canonical import digest_of
from referee.core.records import AgentRef, ListenerFacts
from referee.core.sessions.reading import read
from referee.errors import Finding
from referee.publish import pages
from referee.publish.brands import brand_of
from referee.publish.facts import Facts, agents_of
from referee.publish.mapping import Mapping, keep_mapping, read_mapping
from referee.runner.seal import NAMES
from referee.runner.verify_public import verify_public
from referee.runner.verify_site import verify_site
from tests.branded_workspace import AGENT, MODEL, PROGRAMS, RECORDINGS, Branded
from tests.publish_workspace import TRIES, Written


def agent(harness: str | None, **more: Any) -> AgentRef:
    facts = {
        "name": f"{AGENT}-{harness}",
        "version": "1",
        "digest": "agent:sha256:00",
        "harness": harness,
        "model": MODEL,
    }
    return AgentRef.model_validate(facts | more)


def masked(harness: str, raw: bytes) -> tuple[bytes, Masker]:
    masker = Masker(brand_of(agent(harness)).rules)
    return b"".join(masker.masked([raw])), masker


@pytest.mark.parametrize("harness", PROGRAMS)
def test_a_real_recording_is_masked_at_the_same_length_and_its_commands_are_untouched(harness: str) -> None:
    raw = (RECORDINGS / f"{harness}.raw").read_bytes()
    served, masker = masked(harness, raw)
    assert len(served) == len(raw)
    assert read(harness, [served]) == read(harness, [raw])
    assert read(harness, [raw]).steps
    for word in brand_of(agent(harness)).words:
        assert word.encode().lower() not in served.lower()
    changed = {at for at, (old, new) in enumerate(zip(raw, served, strict=True)) if old != new}
    logged = {at for mask in masker.masks for at in range(mask.at, mask.at + mask.bytes)}
    assert changed <= logged, "every changed byte is in the log"


@pytest.mark.parametrize("harness", PROGRAMS)
def test_masking_does_not_depend_on_how_the_bytes_come(harness: str) -> None:
    raw = (RECORDINGS / f"{harness}.raw").read_bytes()
    whole, log = masked(harness, raw)
    masker = Masker(brand_of(agent(harness)).rules)
    pieces = b"".join(masker.masked(raw[at : at + 5] for at in range(0, len(raw), 5)))
    assert (pieces, masker.masks) == (whole, log.masks)


def test_names_that_occur_naturally_are_not_censored() -> None:
    banner = b"\x1b[1mAider v0.86.2\x1b[0m\r\nModel: openai/scripted-1\r\n"
    natural = (
        b'{"type": "command", "command": "pip install aider-chat openai && cat ~/.aider.conf.yml # scripted-1"}\r\n'
        b"Collecting openai==2.0\r\n"
        b'{"type": "result", "returncode": 0}\r\n'
        + b"filler\r\n" * 60
        + b"Model: the project prints this, and scripted-1\r\n"
    )
    served, masker = masked("aider", banner + natural)
    assert served.startswith(b"\x1b[1m***** *******\x1b[0m\r\n****** *****************\r\n"), served[:80]
    assert served.endswith(natural)
    assert [(mask.rule, mask.number) for mask in masker.masks] == [("banner", 1), ("banner", 3)]


def test_a_field_in_an_event_is_masked_and_the_same_words_in_a_command_are_not() -> None:
    call = b'{"command":"echo \\"model\\":\\"scripted-1\\""}'
    event = b'{"type":"assistant","message":{"model":"scripted-1","content":[' + call + b"]}}\n"
    served, masker = masked("claude-code", event)
    assert served == event.replace(b'"model":"scripted-1"', b'"model":"**********"')
    assert [mask.rule for mask in masker.masks] == ["field"]


@given(
    st.lists(st.sampled_from([b"Aider v1", b"\x1b[31mModel: m\x1b[0m", b"\n", b"\r\n", b"x", b"\xff", b"\x1b", b" "]))
)
def test_any_bytes_keep_their_length_and_their_lines(parts: list[bytes]) -> None:
    raw = b"".join(parts)
    served, _ = masked("aider", raw)
    assert len(served) == len(raw)
    assert [at for at, byte in enumerate(served) if byte in b"\r\n\x1b"] == [
        at for at, byte in enumerate(raw) if byte in b"\r\n\x1b"
    ]


@pytest.fixture
def branded(tmp_path: Path) -> Branded:
    """One run of each program; the site is built with a mapping."""
    made = Branded(tmp_path)
    for number, harness in enumerate(PROGRAMS):
        made.write(harness, run=f"r-{number}", at=f"2026-11-30T12:5{number}:00.000Z")
    build(made)
    return made


def build(made: Branded) -> Mapping:
    mapping = keep_mapping(made.root / "names.json", agents_of(made.records.read()))
    pages.build(made.facts(mapping), made.root / "site")
    return mapping


def words_of_all() -> set[str]:
    words = {AGENT, MODEL, "names.json", "d7" * 32, "3f2a" * 16}
    for harness in PROGRAMS:
        words |= {harness, load_harness(harness).program, *load_harness(harness).words}
    return words


def files_of(site: Path) -> list[Path]:
    """Every file that the site's runs and pages are made of; not the style sheets and the player that ship with it."""
    return [path for path in site.rglob("*") if path.is_file() and "assets" not in path.relative_to(site).parts]


def test_nothing_in_the_site_tells_which_agent_made_a_run(branded: Branded) -> None:
    site = branded.root / "site"
    files = files_of(site)
    assert len(files) > 50
    for word in words_of_all():
        pattern = re.compile(re.escape(word.encode()), re.IGNORECASE)
        told = [
            str(path) for path in files if pattern.search(path.read_bytes()) or pattern.search(str(path.name).encode())
        ]
        assert told == [], f"{word} is told"
    page = (site / "runs" / "r-0.html").read_text()
    assert "Agent A" in page
    assert "python3 square.py 12" in page, "what the agent did stands there in full"


def test_no_digest_in_the_site_lets_someone_try_what_the_agent_may_be(branded: Branded) -> None:
    """A plain digest of something that can be guessed tells it to whoever guesses right."""
    everything = b"".join(path.read_bytes() for path in files_of(branded.root / "site"))
    for record in branded.records.read():
        lock = getattr(record, "lock", None)
        if lock is not None:
            assert lock.agent.digest.encode() not in everything
        for ref in getattr(record, "evidence", ()):
            hidden = {"lock.json", "facts.json", "session.raw", "session.cast", "transcript.txt", "exchanges.jsonl"}
            served = branded.root / "site" / "evidence" / ref.digest[7:9] / f"{ref.digest[7:]}.bin"
            if ref.name in hidden and not served.exists():
                assert ref.digest[7:].encode() not in everything, ref.name


def test_a_run_without_a_machine_quotes_no_manifest_that_could_be_guessed(tmp_path: Path) -> None:
    """All files of a run found dead but the lock are served: its manifest's plain digest would confirm a guess."""
    made = Branded(tmp_path)
    made.write("codex", run="r-0", at="2026-11-30T12:50:00.000Z")
    found = made.write_found_dead("codex", run="r-1", at="2026-11-30T12:51:00.000Z")
    mapping = build(made)
    everything = b"".join(path.read_bytes() for path in files_of(tmp_path / "site"))
    assert found.evidence_digest.rpartition(":")[2].encode() not in everything
    (named,) = mapping.agents
    document = json.loads((tmp_path / "site" / "runs" / "r-1" / "run.json").read_bytes())
    assert document["evidence"] == document["end"]["evidence_digest"] == named.sealed(found.evidence_digest)
    assert verify_public(tmp_path / "site", mapping).runs == 2
    assert verify_site(made.facts(mapping), tmp_path / "site").files > 0


@pytest.mark.parametrize(
    "why",
    [
        "the upstream mango-lab is out of reach: its address refuses the connection",
        "the run's key could not be made: the upstream mango-lab refused MANGO_LAB_KEY (401)",
        'the upstream mango-lab is not said to speak "openai-chat", naïve or not',
    ],
)
def test_why_a_key_could_not_be_made_names_no_upstream_in_public(tmp_path: Path, why: str) -> None:
    """What a workspace calls its upstream is the maker's name, more often than not; no harness knows that word."""
    made = Branded(tmp_path)
    made.write("opencode", run="r-0", at="2026-11-30T12:50:00.000Z")
    made.write_keyless("opencode", run="r-1", at="2026-11-30T12:51:00.000Z", why=why)
    mapping = build(made)
    told = [
        str(path) for path in files_of(tmp_path / "site") if re.search(rb"mango.lab", path.read_bytes(), re.IGNORECASE)
    ]
    assert told == []
    document = json.loads((tmp_path / "site" / "runs" / "r-1" / "run.json").read_bytes())
    assert document["reason"] == document["end"]["detail"] == "the run's key could not be made"
    assert verify_public(tmp_path / "site", mapping).runs == 2


def test_what_the_agent_left_is_served_as_it_is_and_copies_name_their_originals(branded: Branded) -> None:
    document = json.loads((branded.root / "site" / "runs" / "r-0" / "run.json").read_bytes())
    ended = next(record for record in branded.records.read() if record.run == "r-0" and record.kind == "attempt-ended")
    refs = {ref.name: ref.digest for ref in ended.evidence}
    files = {file["name"]: file for file in document["files"]}
    for name in ("report.json", "rerun.txt", "session.timing"):
        assert (files[name]["digest"], files[name]["original"]) == (refs[name], None)
    mapping = read_mapping(branded.root / "names.json")
    named = mapping.agents[0]
    assert named.label == "Agent A"
    for name in ("session.raw", "lock.json", "facts.json", "exchanges.jsonl"):
        assert files[name]["digest"] != refs[name]
        assert files[name]["original"] == named.sealed(refs[name]), "it can be checked when the mapping is revealed"
    assert json.loads(_served(branded, files["exchanges.jsonl"])) == {"cost_usd": 0.1, "latency_ms": 12.5}
    assert document["masked"] == json.loads(_served(branded, files["masked.json"]))["masks"] != []
    assert document["evidence"] == ended.evidence_digest


def _served(made: Branded, file: dict[str, Any]) -> bytes:
    digits = file["digest"].removeprefix("sha256:")
    data: bytes = (made.root / "site" / "evidence" / digits[:2] / f"{digits}.bin").read_bytes()
    return data


#: What the harness writes itself and what is derived; all else of a run's evidence is what was done, left and printed.
OURS = {"session.raw", "session.cast", "transcript.txt", "exchanges.jsonl", "harness.jsonl", "lock.json", "facts.json"}


def test_names_that_a_project_prints_are_served_in_full_and_the_site_verifies(tmp_path: Path) -> None:
    made = Branded(tmp_path)
    left = {name: "Google, Gemini and gemini-cli answered 144\n" for name in NAMES if name not in {*OURS, *_MADE}}
    server = ListenerFacts(
        port=8080, address="127.0.0.1", pid=9, executable="/usr/bin/google", cwd="/work/project/gemini",
        argv=("google", "--upstream=gemini", "--beside=/opt/agent/bin/gemini-cli"),
    )  # fmt: skip
    made.write("gemini-cli", run="r-0", at="2026-11-30T12:50:00.000Z", left=left, servers=(server,))
    mapping = build(made)
    document = json.loads((tmp_path / "site" / "runs" / "r-0" / "run.json").read_bytes())
    files = {file["name"]: file for file in document["files"]}
    assert {"control.txt", "challenge-4.txt", "scripts.json", "replay.txt"} <= set(left)
    for name, text in left.items():
        assert (_served(made, files[name]).decode(), files[name]["original"]) == (text, None), name
    own, beside = document["end"]["observed"]["listening"]
    assert own["executable"] == "/opt/agent/bin/Agent A"
    assert beside == {
        **server.model_dump(mode="json"),
        "argv": ["google", "--upstream=gemini", "--beside=/opt/agent/bin/Agent A"],
    }
    assert verify_site(made.facts(mapping), tmp_path / "site").files > 0
    assert verify_public(tmp_path / "site").runs == 1


#: Files of evidence that every run of the workspace has with a content of its own.
_MADE = {"session.timing", "report.json", "rerun.txt"}


def test_what_commands_print_is_no_banner() -> None:
    banner = b"This is mini-swe-agent version 2.4.6.\r\n"
    event = b'{"type": "command", "command": "pip list"}\r\n'
    printed = b"mini-swe-agent 2.4.6\r\nscripted-1 by minisweagent\r\n"
    served, masker = masked("mini-swe-agent", banner + event + printed)
    assert served.endswith(event + printed)
    assert b"mini-swe-agent" not in served[: len(banner)]
    assert [mask.rule for mask in masker.masks] == ["banner"]


@pytest.mark.parametrize("name", ["command", "first-try"])
def test_an_agent_without_a_harness_has_its_recording_served_as_it_is(name: str) -> None:
    raw = f"/bin/bash: line 2: nonsuch: {name} not found\r\n{name} 12 done\r\n".encode()
    brand = brand_of(agent(None).model_copy(update={"name": name, "model": None}))
    masker = Masker(brand.rules)
    assert b"".join(masker.masked([raw])) == raw
    assert masker.masks == []
    assert brand.words == (() if name == "command" else (name,))


def test_letters_stay_when_the_site_is_built_again_and_an_earlier_run_is_found(branded: Branded) -> None:
    before = read_mapping(branded.root / "names.json")
    first = {path.relative_to(branded.root): path.read_bytes() for path in files_of(branded.root / "site")}
    build(branded)
    assert {path.relative_to(branded.root): path.read_bytes() for path in files_of(branded.root / "site")} == first
    branded.write("aider", run="r-early", at="2026-11-01T00:00:00.000Z", raw=b"Aider v0.86.2\r\nhello\r\n")
    after = build(branded)
    assert after.agents[: len(before.agents)] == before.agents
    assert after.agents[-1].label == "Agent F"
    told = json.loads((branded.root / "site" / "index.json").read_bytes())
    assert {run["run"]: run["agent"] for run in told["runs"]}["r-early"] == "Agent F"


def test_the_mapping_is_private_and_the_site_quotes_its_digest(branded: Branded) -> None:
    file = branded.root / "names.json"
    assert file.stat().st_mode & 0o777 == 0o600
    quoted = json.loads((branded.root / "site" / "index.json").read_bytes())["names"]
    assert quoted == digest_of("names", json.loads(file.read_bytes())), "anyone can compute it when it is revealed"
    assert quoted in (branded.root / "site" / "board.html").read_text()
    entry = json.loads(file.read_bytes())["agents"][0]
    assert entry["agent"]["harness"] == PROGRAMS[0]
    assert digest_of("named-agent", entry) in (branded.root / "site" / "runs" / "r-0.html").read_text()


def test_the_owner_and_a_stranger_can_verify_the_site(branded: Branded) -> None:
    mapping = read_mapping(branded.root / "names.json")
    assert verify_site(branded.facts(mapping), branded.root / "site").files > 0
    done = verify_public(branded.root / "site")
    assert (done.runs, done.recordings, done.agents) == (len(PROGRAMS), 2 * len(PROGRAMS), len(PROGRAMS))
    assert done.masks > 0
    assert verify_public(branded.root / "site", mapping).names


def _replace(path: Path, change: Callable[[bytes], bytes]) -> None:
    data = path.read_bytes()
    path.unlink()
    path.write_bytes(change(data))


def _edit(name: str, old: str, new: str) -> Callable[[Path], None]:
    return lambda site: _replace(site / name, lambda data: data.replace(old.encode(), new.encode(), 1))


@pytest.mark.slow
@pytest.mark.parametrize(
    "change",
    [
        _edit("runs/r-0/run.json", '"total": 100.0', '"total": 99.0'),
        _edit("runs/r-0/run.json", '"memory_bytes": 4', '"memory_bytes": 5'),
        _edit("runs/r-0/run.json", '"cpu_seconds": 1.5', '"cpu_seconds": 2.5'),
        _edit("board.json", '"passed": 1', '"passed": 2'),
        _edit("index.json", '"agent": "Agent A"', '"agent": "Agent B"'),
        lambda site: _replace(min(site.glob("evidence/*/*.bin")), lambda data: data + b"x"),
        lambda site: (
            (site / "evidence" / "00").mkdir(exist_ok=True) or (site / "evidence" / "00" / ("00" * 32 + ".bin")).touch()
        ),
    ],
)
def test_a_stranger_finds_what_was_changed_in_a_site(branded: Branded, change: Callable[[Path], object]) -> None:
    change(branded.root / "site")
    with pytest.raises(Finding):
        verify_public(branded.root / "site")


def test_another_mapping_than_the_quoted_one_is_found(branded: Branded) -> None:
    mapping = read_mapping(branded.root / "names.json")
    swapped = [one.model_dump() for one in mapping.agents]
    swapped[0]["agent"], swapped[1]["agent"] = swapped[1]["agent"], swapped[0]["agent"]
    other = Mapping.model_validate({"agents": swapped})
    with pytest.raises(Finding, match="not the one that the site quotes"):
        verify_public(branded.root / "site", other)


def test_a_rule_that_would_touch_a_command_lets_the_recording_be_withheld(tmp_path: Path) -> None:
    """An agent whose command is one word, the name of its model: its event would be altered."""
    state = {"status": "completed", "input": {"command": MODEL}, "metadata": {"exit": 0}}
    part = {"type": "tool", "tool": "bash", "callID": "1", "state": state}
    raw = json.dumps({"type": "tool_use", "sessionID": "s", "part": part}).encode() + b"\n"
    made = Branded(tmp_path)
    made.write("opencode", run="r-0", at="2026-11-30T12:50:00.000Z", raw=raw)
    build(made)
    document = json.loads((tmp_path / "site" / "runs" / "r-0" / "run.json").read_bytes())
    assert {one["name"] for one in document["withheld"]} == {"session.raw", "session.cast", "transcript.txt"}
    assert "not served" in (tmp_path / "site" / "runs" / "r-0.html").read_text()


def test_agents_that_ship_keep_their_names_and_their_raw_evidence(tmp_path: Path) -> None:
    made = Branded(tmp_path)
    planned = made.write("codex", run="r-0", at="2026-11-30T12:50:00.000Z")
    own = planned.lock.agent.model_copy(update={"name": "baseline", "harness": None, "model": None})
    assert keep_mapping(tmp_path / "n.json", [own]).agents == ()
    assert not (tmp_path / "n.json").exists()


def test_rules_without_anything_mask_nothing() -> None:
    masker = Masker(Rules())
    assert b"".join(masker.masked([b"OpenAI Codex\n", b"x"])) == b"OpenAI Codex\nx"
    assert masker.masks == []


def test_what_a_program_prints_when_it_breaks_is_masked_where_it_names_itself(tmp_path: Path) -> None:
    raw = b"\x1b[31merror\x1b[0m: ask https://code.claude.com\r\n  at /opt/agent/bin/claude:12\r\n"
    served, masker = masked("claude-code", raw)
    assert b"claude" not in served
    assert {mask.rule for mask in masker.masks} == {"name"}
    event = b'{"type":"assistant","message":{"content":[]}}\r\n'
    assert masked("claude-code", event + raw)[0] == event + raw, "behind the first event it is the session's own text"


@pytest.mark.slow
def test_a_stranger_can_verify_a_site_of_every_kind_of_run(tmp_path: Path) -> None:
    written = Written(tmp_path)
    written.write(TRIES)
    pages.build(Facts(written.records.read(), written.evidence), tmp_path / "site")
    done = verify_public(tmp_path / "site")
    assert done.runs == len(TRIES)
    assert done.scores > len(TRIES)
