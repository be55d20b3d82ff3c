"""Imports the single-turn Python rows of BFCL: the wheel of ``bfcl-eval`` is read as a zip, nothing of it is run.

Questions and possible answers are joined on their id. Rows in Java and JavaScript, and rows that name no gold
(``live_relevance``), are skipped and counted. What the linter refuses afterwards is not known here.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
import zlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from referee.adapters.suites.bfcl_forms import arguments_of, schema_of
from referee.core.canonical import canonical_bytes
from referee.core.cases import Arm, Call, Case, Category, Message, Policy, Suite, Tool
from referee.errors import ConfigError, DigestMismatch, NothingMatched, UsageError

#: The pinned wheel, in the words of a package's pin: Apache-2.0, 2 MB.
PIN: dict[str, object] = {
    "registry": "pypi",
    "package": "bfcl-eval",
    "version": "2026.3.23",
    "artifact": "bfcl_eval-2026.3.23-py3-none-any.whl",
    "sha256": "3bb6dfa5f0c68ad403c9ec50b00db2bb3b4cc9b38ab1ff33f48fe30d853d3a0a",
}

#: Counts up when a row would be written otherwise than before.
IMPORTER_VERSION = 1

#: The files that are imported, with the category that each becomes. Several calls are graded in any order.
_IMPORTED: dict[str, Category] = {
    "simple_python": "simple-call",
    "live_simple": "simple-call",
    "multiple": "tool-selection",
    "live_multiple": "tool-selection",
    "parallel": "multi-call-ordering",
    "parallel_multiple": "multi-call-ordering",
    "live_parallel": "multi-call-ordering",
    "live_parallel_multiple": "multi-call-ordering",
    "irrelevance": "abstain",
    "live_irrelevance": "abstain",
}
_SKIPPED = {
    "simple_java": "types of Java",
    "simple_javascript": "types of JavaScript",
    "live_relevance": "no gold: any call will do",
}
_MOST_BYTES = 64 * 1024 * 1024
_ARM = Arm(name="suite", headline=True, ranked=True, about="Single-turn rows of BFCL with their own gold.")

#: First and last code point of a script, and the language that it is taken for.
_SCRIPTS = ((0x3040, 0x30FF, "ja"), (0xAC00, 0xD7AF, "ko"), (0x4E00, 0x9FFF, "zh"), (0x0400, 0x04FF, "ru"))


@dataclass(frozen=True)
class Imported:
    """What came out of a wheel, before the linter has seen it.

    Args:
        suite: every row that could be written as a case.
        rows: rows read, by file.
        skipped: rows left out by file, with why.
        unreadable: rows that could not be written as a case, by id, with why.
    """

    suite: Suite
    rows: dict[str, int]
    skipped: dict[str, tuple[int, str]]
    unreadable: dict[str, str] = field(default_factory=dict)


def import_wheel(path: Path, *, any_version: bool = False) -> Imported:
    """Read a wheel of ``bfcl-eval``.

    Args:
        path: the wheel.
        any_version: take another wheel than the pinned one; its digest stands in the suite's provenance.

    Raises:
        NothingMatched: there is no such file.
        DigestMismatch: it is not the pinned wheel.
        UsageError: it is no such wheel.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError as exc:
        raise NothingMatched(f"there is no file {path}", todo="name the wheel of bfcl-eval, or leave it out") from exc
    except OSError as exc:
        raise ConfigError(f"{path} cannot be read: {exc.strerror}") from exc
    seen = hashlib.sha256(data).hexdigest()
    if seen != PIN["sha256"] and not any_version:
        raise DigestMismatch(
            f"{path.name} is not the pinned wheel: its SHA-256 is {seen}, not {PIN['sha256']}",
            todo=f"take {PIN['artifact']}, or pass --any-version for another one",
        )
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as wheel:
            return _Reader(wheel, seen).suite()
    except zipfile.BadZipFile as exc:
        raise UsageError(f"{path.name} is no wheel: {exc}", todo="name a wheel of bfcl-eval") from exc


class _Reader:
    def __init__(self, wheel: zipfile.ZipFile, digest: str) -> None:
        self._wheel, self._digest = wheel, digest
        self._data = {Path(name).name.partition("_v")[2].partition("_")[2]: name for name in self._members("data/")}
        self._gold = {
            Path(name).name.partition("_v")[2].partition("_")[2]: name
            for name in self._members("data/possible_answer/")
        }
        self._toolsets: dict[str, tuple[Tool, ...]] = {}
        self._prompts: dict[str, str] = {}

    def _members(self, folder: str) -> list[str]:
        prefix = f"bfcl_eval/{folder}"
        return [
            name
            for name in self._wheel.namelist()
            if name.startswith(f"{prefix}BFCL_v") and "/" not in name.removeprefix(prefix) and name.endswith(".json")
        ]

    def suite(self) -> Imported:
        if missing := [name for name in _IMPORTED if f"{name}.json" not in self._data]:
            raise UsageError(f"the wheel has no file of questions for {missing[0]}", todo="name a wheel of bfcl-eval")
        cases: list[Case] = []
        rows: Counter[str] = Counter()
        unreadable: dict[str, str] = {}
        for name, category in _IMPORTED.items():
            answers = self._answers(name) if category != "abstain" else {}
            for row in self._rows(self._data[f"{name}.json"]):
                rows[name] += 1
                try:
                    cases.append(self._case(row, answers, name, category))
                except (LookupError, TypeError, ValueError, AttributeError) as exc:
                    unreadable[str(row.get("id"))] = _why(exc)
        skipped = {
            name: (len(self._rows(self._data[f"{name}.json"])), why)
            for name, why in _SKIPPED.items()
            if f"{name}.json" in self._data
        }
        if not cases:
            why = next((f": {name}: {said}" for name, said in unreadable.items()), "")
            raise UsageError(f"the wheel has no row that can be a case{why}", todo="name a wheel of bfcl-eval")
        version = next((name for name in self._wheel.namelist() if name.endswith(".dist-info/METADATA")), "")
        suite = Suite(
            name="bfcl",
            version=f"{version.partition('-')[2].partition('.dist-info')[0] or 'unknown'}-{IMPORTER_VERSION}",
            grading=2,
            about="Single-turn Python rows of the Berkeley Function Calling Leaderboard (Apache-2.0), by our rules.",
            provenance={
                "imported": "bfcl-eval, Berkeley Function Calling Leaderboard, Apache-2.0",
                "built_by": "referee bakeoff cases import-bfcl",
                "wheel_sha256": self._digest,
                "importer": str(IMPORTER_VERSION),
            },
            prompts=self._prompts,
            toolsets=self._toolsets,
            arms=(_ARM,),
            cases=tuple(cases),
        )
        return Imported(suite, dict(rows), skipped, unreadable)

    def _rows(self, member: str) -> list[dict[str, Any]]:
        if self._wheel.getinfo(member).file_size > _MOST_BYTES:
            raise UsageError(f"{member} in the wheel is larger than {_MOST_BYTES // 2**20} MiB")
        try:
            rows = [json.loads(line) for line in self._wheel.read(member).decode().splitlines() if line.strip()]
        except (ValueError, RecursionError) as exc:
            raise UsageError(f"{member} in the wheel is no JSONL: {exc}") from exc
        except (RuntimeError, EOFError, zlib.error) as exc:  # encrypted, cut, or packed in a way that is not known
            raise UsageError(f"{member} in the wheel cannot be read: {exc}") from exc
        if not all(isinstance(row, dict) for row in rows):
            raise UsageError(f"{member} in the wheel has a line that is no object")
        return rows

    def _answers(self, name: str) -> dict[str, Any]:
        member = self._gold.get(f"{name}.json")
        if member is None:
            raise UsageError(f"the wheel has no possible answers for {name}", todo="name a wheel of bfcl-eval")
        return {str(row.get("id")): row.get("ground_truth") for row in self._rows(member)}

    def _case(self, row: Mapping[str, Any], answers: Mapping[str, Any], name: str, category: Category) -> Case:
        tools = tuple(
            Tool(name=one["name"], description=one.get("description", ""), parameters=schema_of(one["parameters"]))
            for one in row["function"]
        )
        (turn,) = row["question"]
        system = "\n\n".join(message["content"] for message in turn if message["role"] == "system")
        messages = tuple(
            Message(role=message["role"], content=message["content"]) for message in turn if message["role"] != "system"
        )
        oracle: dict[str, Any] = {"expected_call": None}
        policy = Policy()
        if category != "abstain":
            schemas = {tool.name: tool.parameters for tool in tools}
            golds = tuple(
                Call(name=function, arguments=arguments_of(arguments, schemas.get(function, {})))
                for call in answers[row["id"]]
                for function, arguments in call.items()
            )
            several = category == "multi-call-ordering"
            oracle = {"expected_calls": golds} if several else {"expected_call": golds[0]}
            policy = Policy(call_order="any") if several else Policy(exactly_one=True)
        return Case(
            id=row["id"],
            category=category,
            language=_language(" ".join(message.content for message in messages)),
            prompt=self._prompt(system),
            messages=messages,
            toolset=self._toolset(tools),
            policy=policy,
            source={"group": name, "row": row["id"]},
            **oracle,
        )

    def _toolset(self, tools: tuple[Tool, ...]) -> str:
        told = canonical_bytes([tool.model_dump(mode="json") for tool in tools])
        name = f"t-{hashlib.sha256(told).hexdigest()[:12]}"
        self._toolsets[name] = tools
        return name

    def _prompt(self, text: str) -> str | None:
        if not text:
            return None
        name = f"p-{hashlib.sha256(text.encode()).hexdigest()[:12]}"
        self._prompts[name] = text
        return name


def _language(text: str) -> str:
    """The language by its script; what is written in Latin letters counts as English, as most of it is."""
    for first, last, language in _SCRIPTS:
        if any(first <= ord(one) <= last for one in text):
            return language
    return "en"


def _why(exc: Exception) -> str:
    if isinstance(exc, ValidationError):
        first = exc.errors(include_url=False, include_input=False)[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    return f"{type(exc).__name__}: {exc}"
