"""Gold against its tool's schema, and as an answer: an oracle that no answer can satisfy is the suite's fault. Pure.

A gold is read as the plain values that would satisfy it: ``eq`` is unwrapped, each ``anyOf`` gives its alternatives,
and a null among them says that the argument may be left out. Of every argument the first alternative that its schema
allows is taken; the answer made of these must be valid, and must pass when it is graded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, product
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, ValidationError
from referencing import Registry
from referencing.exceptions import Unresolvable

from referee.core.answers import GivenCall
from referee.core.cases import Call, Case, Grading, Tool
from referee.scoring.lint.objections import Objection
from referee.scoring.lint.plain_schemas import plain_schema, plainly_valid
from referee.scoring.toolcalls import grade_calls

#: So many alternatives of one argument are tried; no gold written by a person comes near it.
_MOST_TRIED = 512

#: A loose gold shorter than this matches too much (or, in the second generation, hides that it compares strictly).
SHORTEST_LOOSE = 4

#: An argument that the gold allows to be left out.
_ABSENT: Any = object()


def schema_objection(name: str, tool: Tool) -> Objection | None:
    """Why the tool's parameters are no usable JSON Schema of an object, if so."""
    where = f"the tool {tool.name} of the toolset {name}"
    try:
        if not plain_schema(tool.parameters):
            Draft202012Validator.check_schema(tool.parameters)
    except SchemaError as exc:
        return Objection(name, "broken-schema", f"{where} has parameters that are no JSON Schema: {_said(exc.message)}")
    if tool.parameters.get("type") != "object":
        return Objection(name, "broken-schema", f"{where} has parameters that are not said to be an object")
    return None


def gold_objections(case: Case, tools: Sequence[Tool], grading: Grading) -> Iterator[Objection]:
    """What is wrong with the golds of one case."""
    known = {tool.name: tool for tool in tools}
    answer: list[GivenCall] = []
    found: list[Objection] = []
    for position, call in enumerate(case.golds):
        where = f"call {position + 1} of {case.id}" if len(case.golds) > 1 else case.id
        tool = known.get(call.name)
        if tool is None:
            found.append(
                Objection(case.id, "unknown-tool", f"{where} expects {call.name}, which its toolset does not offer")
            )
            continue
        arguments = _replayed(call)
        found += _against_schema(case, where, call, tool, arguments)
        found += _short_and_loose(case, where, call, tool, grading)
        answer.append(GivenCall(call.name, arguments))
    yield from found
    # A gold that its schema forbids has been named already; grading it again would only say so twice.
    if case.golds and not found and not (grade := grade_calls(case, tuple(tools), answer, grading=grading)).passed:
        sentence = f"the gold of {case.id}, given as an answer, does not pass: {grade.reason}"
        yield Objection(case.id, "unsatisfiable-gold", sentence)


def operator(gold: Any) -> tuple[str, Any] | None:
    """What a value of the oracle is an operator for: ``("eq", v)``, ``("anyOf", [...])``, or None for a plain value."""
    if isinstance(gold, Mapping) and len(gold) == 1:
        if "eq" in gold:
            return "eq", gold["eq"]
        if isinstance(gold.get("anyOf"), list | tuple):
            return "anyOf", gold["anyOf"]
    return None


def instances(gold: Any) -> Iterator[Any]:
    """The plain values that satisfy a gold, the first alternatives first."""
    if said := operator(gold):
        for alternative in [said[1]] if said[0] == "eq" else said[1]:
            yield from instances(alternative)
    elif isinstance(gold, Mapping):
        names = list(gold)
        for values in product(*(_tried(gold[name]) for name in names)):
            yield {name: value for name, value in zip(names, values, strict=True) if value is not _ABSENT}
    elif isinstance(gold, list | tuple):
        yield from (list(values) for values in product(*(_tried(one, member=False) for one in gold)))
    else:
        yield gold


def _tried(gold: Any, *, member: bool = True) -> list[Any]:
    """The alternatives for one member (null: it is left out) or element; empty where nothing satisfies it."""
    found = list(islice(instances(gold), 8))
    return [_ABSENT if value is None and member else value for value in found]


def _replayed(call: Call) -> dict[str, Any]:
    """The first answer that the gold describes, by itself; alternatives are weighed against the schema later."""
    answer: dict[str, Any] = {}
    for name, gold in call.arguments.items():
        first = next(instances(gold), _ABSENT)
        if first is not _ABSENT and first is not None:
            answer[name] = first
    return answer


def _against_schema(case: Case, where: str, call: Call, tool: Tool, answer: dict[str, Any]) -> Iterator[Objection]:
    """Objections to the gold's arguments; the alternatives that the schema allows are put into ``answer``."""
    properties = tool.parameters.get("properties")
    properties = properties if isinstance(properties, Mapping) else {}
    open_ended = bool(tool.parameters.get("additionalProperties") or tool.parameters.get("patternProperties"))
    faulty = False
    for name, gold in call.arguments.items():
        if name not in properties and not open_ended:
            faulty = True
            sentence = f"{where} expects the argument `{name}`, which the schema of {call.name} does not have"
            yield Objection(case.id, "gold-not-in-schema", sentence)
            continue
        tried = list(islice(instances(gold), _MOST_TRIED))
        if not tried:
            faulty = True
            sentence = f"{where} lists no value that `{name}` may have: no answer can satisfy it"
            yield Objection(case.id, "unsatisfiable-gold", sentence)
            continue
        said = properties.get(name, {})
        first, why = _first_valid(tried, said, tool.parameters)
        if why is not None:
            faulty = True
            yield _forbidden(case, where, name, tried, said, why)
        elif first is _ABSENT:
            answer.pop(name, None)
        else:
            answer[name] = first
    if not faulty and (error := _error(answer, tool.parameters, tool.parameters)) is not None:
        sentence = f"the gold of {where} breaks the schema of {call.name}: {_said(error)}"
        yield Objection(case.id, "gold-against-schema", sentence)


def _first_valid(tried: Sequence[Any], schema: Any, root: Mapping[str, Any]) -> tuple[Any, str | None]:
    """The first value that the schema allows, else that the argument is left out, or why it allows none."""
    why: str | None = None
    for value in tried:
        error = _error(value, schema, root)
        if error is None:
            return value, None
        if value is not None:
            why = why or error
    return (_ABSENT, None) if None in tried else (_ABSENT, why or "no value is allowed")


def _forbidden(case: Case, where: str, name: str, tried: Sequence[Any], schema: Any, why: str) -> Objection:
    allowed = schema.get("enum") if isinstance(schema, Mapping) else None
    if isinstance(allowed, list) and not any(value in allowed for value in tried):
        sentence = f"{where} expects `{name}` to be {_said(repr(tried[0]))}, which its enum does not hold"
        return Objection(case.id, "gold-outside-enum", sentence)
    return Objection(case.id, "gold-against-schema", f"the gold of {where} breaks the schema at `{name}`: {_said(why)}")


def _error(value: Any, schema: Any, root: Mapping[str, Any]) -> str | None:
    """The first breach of the schema; references lead into ``root`` only, never out of the suite."""
    if plainly_valid(value, schema):
        return None
    if not isinstance(schema, Mapping | bool):
        return "the schema is no object"
    whole = dict(schema) if isinstance(schema, Mapping) else schema
    if isinstance(whole, dict) and "$defs" in root:
        whole.setdefault("$defs", root["$defs"])
    checker = Draft202012Validator(whole, registry=Registry(), format_checker=Draft202012Validator.FORMAT_CHECKER)
    try:
        first: ValidationError | None = next(checker.iter_errors(value), None)
    except Unresolvable as exc:
        return f"a reference leads nowhere: {exc}"
    return None if first is None else first.message


def _short_and_loose(case: Case, where: str, call: Call, tool: Tool, grading: Grading) -> Iterator[Objection]:
    """Second generation: a string below ``SHORTEST_LOOSE`` characters has to be written with ``eq``."""
    if grading == 1 or case.policy.strict_args:
        return
    for path, value, schema in _loose(call.arguments, "", tool.parameters):
        if len(value.strip()) < SHORTEST_LOOSE and not {"enum", "format", "pattern", "const"} & set(schema):
            sentence = (
                f"the loose gold {value!r} of {where} at `{path}` is shorter than {SHORTEST_LOOSE} characters: "
                f'write it as {{"eq": …}}'
            )
            yield Objection(case.id, "short-loose-gold", sentence)


def _loose(gold: Any, path: str, schema: Any) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    schema = schema if isinstance(schema, Mapping) else {}
    said = operator(gold) if path else None  # the arguments object itself is never an operator
    if said is not None:
        for alternative in said[1] if said[0] == "anyOf" else ():
            yield from _loose(alternative, path, schema)
    elif isinstance(gold, str):
        yield path, gold, schema
    elif isinstance(gold, Mapping):
        properties = schema.get("properties")
        for name, value in gold.items():
            below = properties.get(name) if isinstance(properties, Mapping) else None
            yield from _loose(value, f"{path}.{name}" if path else name, below)
    elif isinstance(gold, list | tuple):
        for position, value in enumerate(gold):
            yield from _loose(value, f"{path}[{position}]", schema.get("items"))


def _said(text: str) -> str:
    return text if len(text) <= 160 else f"{text[:157]}…"  # noqa: PLR2004 — a sentence, not a dump
