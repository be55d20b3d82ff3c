"""A workspace with a small suite and targets that lead to the scripted server, and a run of it in this process."""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from referee.adapters.catalog.bakeoff_protocols import LoadedProtocol, load_protocol
from referee.adapters.store.evidence import LocalEvidence
from referee.adapters.store.records import RecordFiles
from referee.adapters.store.shard_files import bodies, every_shard, scan_shard
from referee.cli.wiring import make_lane
from referee.core.cases import Arm, Call, Case, Message, Suite, Tool
from referee.protocols import Lane
from referee.runner.bakeoff.freeze import freeze
from referee.runner.bakeoff.recompute import Recomputed, recompute
from referee.runner.bakeoff.run import Desk, RunReport, Tightened, run_bakeoff
from tests.bakeoff.lane_targets import KEY
from tests.bakeoff.scripted_plays import Got
from tests.bakeoff.scripted_shapes import Spoken

TOOL = Tool(
    name="get_weather",
    description="Weather of a city.",
    parameters={
        "type": "object",
        "properties": {"city": {"type": "string", "description": "The city's name"}},
        "required": ["city"],
        "additionalProperties": False,
    },
)
_WORDS = {"de": "Wie ist das Wetter in {city}?", "en": "What is the weather in {city}?"}
_CITY = re.compile(r"City\d{6}")


def small_suite(cases: int) -> Suite:
    """So many cases of one tool, in German and English in turn; each names the city that its gold wants."""
    made = []
    for number in range(cases):
        language = ("de", "en")[number % 2]
        city = f"City{number:06d}"
        made.append(
            Case(
                id=f"case-{number:06d}",
                category="simple-call",
                language=language,
                messages=(Message(role="user", content=_WORDS[language].format(city=city)),),
                toolset="weather",
                expected_call=Call(name="get_weather", arguments={"city": {"eq": city}}),
            )
        )
    return Suite(
        name="small",
        version="1",
        grading=2,
        about="cases for tests of the runner",
        provenance={"source": "made for a test"},
        prompts={},
        toolsets={"weather": (TOOL,)},
        arms=(Arm(name="suite", headline=True, ranked=True, about="all"),),
        cases=tuple(made),
    )


def right(got: Got) -> Sequence[Spoken]:
    """The call that the question's case wants."""
    found = _CITY.search(got.question)
    return [("get_weather", {"city": found.group() if found else "?"})]


class RunWorkspace:
    """The workspace; ``targets`` are written as TOML, and the protocol is frozen at the first run."""

    def __init__(
        self, root: Path, url: str, *, cases: int = 6, repeats: int = 2, plan: str = "", **targets: Any
    ) -> None:
        self.root = root
        self.environ = {"SCRIPTED_API_KEY": KEY}
        directory = root / "protocols" / "small"
        directory.mkdir(parents=True)
        (root / "targets").mkdir()
        for name, more in (targets or {"one": {}}).items():
            self.write_target(name, url, **more)
        planned = "".join(f'[[targets]]\ntarget = "{name}"\n' for name in targets or ["one"])
        head = f'name = "small"\ntitle = "t"\nquestion = "q"\nsuite = "small"\nrepeats = {repeats}\n'
        (directory / "protocol.toml").write_text(head + planned + plan)
        (directory / "cases.json").write_text(json.dumps(small_suite(cases).document()))

    def write_target(self, name: str, url: str, **more: Any) -> None:
        said = {
            "schema": "referee.target/1",
            "model": "ok",
            "lane": "openai-chat",
            "channel": "own-infrastructure",
            "sovereignty": "eu-origin",
            "base_url": f"{url}/v1",
            "key_env": "SCRIPTED_API_KEY",
            **more,
        }
        flat = {key: value for key, value in said.items() if not isinstance(value, dict)}
        lines = [f"{key} = {json.dumps(value)}" for key, value in flat.items()]
        for key, value in said.items():
            if isinstance(value, dict):
                lines += [f"[{key}]", *(f"{inner} = {json.dumps(one)}" for inner, one in value.items())]
        (self.root / "targets" / f"{name}.toml").write_text("\n".join(lines) + "\n")

    @property
    def loaded(self) -> LoadedProtocol:
        return load_protocol(self.root / "protocols" / "small")

    @property
    def log(self) -> RecordFiles:
        return RecordFiles(self.root / "records", kind="bakeoff")

    @property
    def evidence(self) -> LocalEvidence:
        return LocalEvidence(self.root / "evidence")

    @property
    def records(self) -> Path:
        return self.root / "records"

    def freeze(self) -> None:
        freeze(self.log, self.evidence, self.loaded, by="test")

    def desk(self) -> Desk:
        def lane(target: Any) -> Lane:
            return make_lane(target, spool=self.root / "spool", environ=self.environ)

        return Desk(self.log, self.evidence, self.records, self.root / "answers", lane, self.root / "targets")

    def run(self, *names: str, **tightened: Any) -> RunReport:
        """Freeze where need be, run, and verify what stands there afterwards."""
        self.freeze()
        report = asyncio.run(run_bakeoff(self.loaded, self.desk(), names=names, tightened=Tightened(**tightened)))
        self.verify()
        return report

    def verify(self) -> Recomputed:
        return recompute(self.records, self.root / "answers", self.evidence)

    def unseal(self) -> None:
        """Take back what the last run logged at its end, as if it had been killed before."""
        (log,) = [path for path in self.records.glob("bakeoff-*.jsonl") if b'"shard-sealed"' in path.read_bytes()]
        lines = log.read_bytes().splitlines(keepends=True)
        log.write_bytes(b"".join(line for line in lines if b'"shard-sealed"' not in line))

    def shards(self) -> list[Path]:
        return every_shard(self.records) if self.records.is_dir() else []

    def rows(self) -> list[dict[str, Any]]:
        """All rows of all shards, in order of file and line; a run that was killed before its first line has none."""
        begun = [path for path in self.shards() if b"\n" in path.read_bytes()]
        return [body for path in begun for _, body in bodies(scan_shard(path)) if body["kind"] == "row"]

    def slots(self) -> Counter[tuple[str, str, int]]:
        return Counter((row["target"], row["case_id"], row["k_idx"]) for row in self.rows())
