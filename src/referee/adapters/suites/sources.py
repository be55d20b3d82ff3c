"""Builds a suite from its sources: TOML files of cases, one file of tools, and a database that confirms the gold.

A source of cases is a TOML file with an arm, its prompts by language, and ``[[case]]`` tables. A grounded case has a
query whose result is printed into its request (``show``) and a second one that computes its gold by itself
(``gold``); a case whose gold the database does not confirm is refused. Arms of twins repeat another arm's cases under
other prompts, so that the two differ in nothing else.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from referee.adapters.suites.chinook import Database, at, open_database
from referee.adapters.suites.files import BUNDLED, suite_bytes
from referee.core import toml_text
from referee.core.cases import Arm, Call, Case, Category, Grading, Identifier, Message, Policy, Suite, Tool
from referee.core.suite_file import parse_suite
from referee.errors import ConfigError, Finding, NothingMatched, UsageError

_HEAD = "suite.toml"
_TOOLS = "toolsets.json"
_SUBSETS = "subsets.toml"


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class _Twins(_Part):
    of: Identifier
    arm: Identifier
    prompt: dict[str, Identifier]
    known_objection: str


class _Head(_Part):
    name: Identifier
    version: str
    grading: Grading
    about: str
    prompts: dict[Identifier, str]
    arms: tuple[Arm, ...]
    twins: tuple[_Twins, ...] = ()


class _Database(_Part):
    title: str
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class _SourceCase(_Part):
    """One case as it is written by hand. Exactly one of call, calls and abstain (why) is given."""

    id: Identifier
    category: Category
    language: str
    toolset: Identifier
    ask: str | None = None
    messages: tuple[Message, ...] = ()
    call: Call | None = None
    calls: tuple[Call, ...] | None = None
    abstain: str | None = None
    policy: Policy = Policy()
    derived: dict[str, str] = {}
    trap: Literal["missing-required-argument", "no-suitable-tool"] | None = None
    show: str | None = None
    gold: str | None = None


class _CaseFile(_Part):
    arm: Identifier
    group: str
    prompt: dict[str, Identifier]
    database: _Database | None = None
    case: tuple[_SourceCase, ...]


def build_suite(name: str, database: Path | None, *, directory: Path | None = None) -> Suite:
    """Build the suite ``name`` from its sources.

    Args:
        name: a suite that has sources.
        database: the file of the database that its grounded cases need.
        directory: where the sources stand; by default those that come with the package.

    Raises:
        NothingMatched: there are no such sources, or no such database.
        UsageError: the suite has grounded cases and no database is named.
        DigestMismatch: the database is not the pinned one.
        Finding: the database does not confirm a gold.
        ConfigError: a source breaks its schema.
    """
    place = (directory or BUNDLED) / name
    if not (place / _HEAD).is_file():
        raise NothingMatched(f"no suite named {name!r} has sources here", todo="name one that does, for example s1")
    head: _Head = _read(place / _HEAD, TypeAdapter(_Head))
    files = [(path, _read(path, TypeAdapter(_CaseFile))) for path in sorted(place.glob("*.toml")) if _of_cases(path)]
    order = {arm.name: position for position, arm in enumerate(head.arms)}
    files.sort(key=lambda pair: (order.get(pair[1].arm, len(order)), pair[1].database is not None, pair[0].name))
    cases: list[Case] = []
    provenance = {"built_by": f"referee bakeoff cases build {name}", "sources_sha256": sources_digest(place)}
    for path, content in files:
        if content.database is None:
            cases += (_case(case, content, None) for case in content.case)
            continue
        if database is None:
            raise UsageError(
                f"the suite {name} has cases grounded on a database: {content.database.title}",
                todo=f"name its SQLite file (SHA-256 {content.database.sha256}) with --chinook",
            )
        with open_database(database, content.database.sha256) as opened:
            cases += [_case(case, content, opened) for case in content.case]
        provenance |= {f"{path.stem}": content.database.title, f"{path.stem}_sha256": content.database.sha256}
    cases += (twin for twins in head.twins for twin in _twins(twins, cases))
    tools: Mapping[str, tuple[Tool, ...]] = _read(place / _TOOLS, TypeAdapter(dict[str, tuple[Tool, ...]]))
    suite = Suite(
        name=head.name,
        version=head.version,
        grading=head.grading,
        about=head.about,
        provenance=provenance,
        prompts=head.prompts,
        toolsets=dict(tools),
        arms=head.arms,
        cases=tuple(cases),
    )
    return parse_suite(suite_bytes(suite), f"the suite {name}")


def sources_digest(place: Path) -> str:
    """SHA-256 over the sources' names and contents, in order of their names; subsets are no part of a suite."""
    total = hashlib.sha256()
    for path in sorted((*place.glob("*.toml"), place / _TOOLS)):
        if path.name != _SUBSETS:
            total.update(f"{path.name}\n{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return total.hexdigest()


def _of_cases(path: Path) -> bool:
    return path.name not in {_HEAD, _SUBSETS}


def _read(path: Path, schema: TypeAdapter[Any]) -> Any:
    try:
        text = path.read_bytes().decode()
        return schema.validate_python(json.loads(text) if path.suffix == ".json" else toml_text.loads(text))
    except ValidationError as exc:
        first = exc.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise ConfigError(f"{path}: {place}: {first['msg']}") from exc
    except (tomllib.TOMLDecodeError, ValueError, OSError) as exc:
        raise ConfigError(f"{path}: {exc}") from exc


def _case(given: _SourceCase, content: _CaseFile, database: Database | None) -> Case:
    oracles = [given.call is not None, given.calls is not None, given.abstain is not None]
    if sum(oracles) != 1 or (given.ask is None) == (not given.messages):
        raise ConfigError(f"the case {given.id} needs one of call, calls, abstain, and one of ask, messages")
    if given.language not in content.prompt:
        raise ConfigError(f"the case {given.id}: the arm has no prompt in {given.language!r}")
    messages = given.messages or (Message(role="user", content=given.ask or ""),)
    source = {"group": content.group}
    if given.abstain is not None:
        source["why"] = given.abstain
    if given.trap is not None:
        source["trap"] = given.trap
    if given.derived:
        source["derived"] = "\n".join(f"{place}: {how}" for place, how in given.derived.items())
    if content.database is not None:
        messages = _grounded(given, content.database, database, messages, source)
    oracle: dict[str, Any] = {"expected_calls": given.calls} if given.calls else {"expected_call": given.call}
    return Case(
        id=given.id,
        category=given.category,
        language=given.language,
        arm=content.arm,
        prompt=content.prompt[given.language],
        messages=messages,
        toolset=given.toolset,
        policy=given.policy,
        source=source,
        **oracle,
    )


def _grounded(
    given: _SourceCase,
    pinned: _Database,
    database: Database | None,
    messages: tuple[Message, ...],
    source: dict[str, str],
) -> tuple[Message, ...]:
    """The messages with the printed result in them, once the database has confirmed the gold."""
    if database is None or given.show is None or given.gold is None:
        raise ConfigError(f"the case {given.id} is grounded: it needs the queries show and gold")
    if given.call is None and given.calls is None:
        raise ConfigError(f"the case {given.id} is grounded and expects no call: there is no gold to confirm")
    gold: Any = given.call.arguments if given.call else {"calls": [call.arguments for call in given.calls or ()]}
    for place, value in database.values(given.gold).items():
        # The gold writes calls[0].track_id; the call's arguments stand directly below calls[0].
        written = at(place, gold)
        if written != value or isinstance(written, bool):
            raise Finding(f"the database does not confirm {given.id}: {place} is {value!r} there, {written!r} here")
    source |= {"database_sha256": pinned.sha256, "shown_by": given.show, "gold_by": given.gold}
    shown = database.table(given.show)
    if not any("{result}" in message.content for message in messages):
        raise ConfigError(f"the case {given.id} does not print its result: its request has no {{result}}")
    return tuple(
        message.model_copy(update={"content": message.content.replace("{result}", shown)}) for message in messages
    )


def _twins(twins: _Twins, cases: list[Case]) -> Iterator[Case]:
    for case in [case for case in cases if case.arm == twins.of]:
        yield case.model_copy(
            update={
                "id": case.id.replace(twins.of, twins.arm),
                "arm": twins.arm,
                "prompt": twins.prompt[case.language],
                "twin": case.id,
                "known_objection": twins.known_objection,
            }
        )
