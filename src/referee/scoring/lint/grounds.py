"""Is every checked value fixed by what the model is told? No gold may depend on world knowledge (bake-off §8). Pure.

A text of the gold has to stand in the conversation, or in what the schema says of its argument (enum, description,
default). Numbers, dates and times are looked for in every way in which German and English write them: ``1.249,90``,
``3. Dezember 2026``, ``7:45 pm``; a percentage is also the fraction that it is. What has to be worked out beyond that
is declared: ``source["derived"]`` has one line
``PATH: how`` for each such value. Truth values are a reading of the request and are not looked for.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import cached_property
from typing import Any

from referee.core.cases import Case, Tool
from referee.scoring.lint.golds import operator
from referee.scoring.lint.objections import Objection
from referee.scoring.lint.spoken import MONTHS, NUMBERS
from referee.scoring.toolcalls.values import contains, normal

_MONTH = "|".join(sorted(MONTHS, key=len, reverse=True))
_ISO = re.compile(r"(?<!\d)(\d{4})-(\d{1,2})-(\d{1,2})(?!\d)")
_DOTS = re.compile(r"\b(\d{1,2})\.\s?(\d{1,2})\.\s?(\d{4})\b")
_SLASHES = re.compile(r"\b(\d{1,2})/(\d{1,2})/(\d{4})\b")
_DAY_MONTH = re.compile(rf"\b(\d{{1,2}})(?:\.|st|nd|rd|th)?\s+(?:of\s+)?({_MONTH})\.?,?\s+(\d{{4}})\b")
_MONTH_DAY = re.compile(rf"\b({_MONTH})\.?\s+(\d{{1,2}})(?:st|nd|rd|th)?,?\s+(\d{{4}})\b")
_TIME = re.compile(r"\b(\d{1,2})[:.](\d{2})(?::\d{2})?\s*(am|pm|a\.m\.|p\.m\.)?")
_HOUR = re.compile(r"\b(\d{1,2})\s*(uhr|o'clock|am|pm|a\.m\.|p\.m\.)(?:\s+(\d{2})\b)?")
_WORD = re.compile(r"\w+")
_NUMBER = re.compile(r"[-+\u2212]?\d(?:[\d.,'_\u00a0\u202f]*\d)?")
_PERCENT = re.compile(r"(\d(?:[\d.,]*\d)?)\s*(?:%|percent\b|per cent\b|prozent\b)")
_GROUPED = re.compile(r"(\d)[ \u00a0\u202f](?=\d{3}(?:\D|$))")
#: White space, and quotation marks of either language by their code points.
_BLANKS_AND_QUOTES = re.compile("[\\s\"'\u2018-\u201f\u00ab\u00bb]+")
_DERIVED = re.compile(r"^(?P<path>[^:\s]+): (?P<how>\S.*)$")


def ungrounded(case: Case, tools: Sequence[Tool], prompt: str | None) -> Iterator[Objection]:
    """Golds of the case that nothing it says fixes, and declared derivations that lead nowhere."""
    told = _Told([message.content for message in case.messages] + ([prompt] if prompt else []))
    derived, broken = _derivations(case)
    for line in broken:
        yield Objection(
            case.id, "derivation", f"{case.id} declares a derivation that is not written PATH: how — {line!r}"
        )
    known = {tool.name: tool for tool in tools}
    paths: set[str] = set()
    for position, call in enumerate(case.golds):
        tool = known.get(call.name)
        if tool is None:
            continue
        start = f"calls[{position}]" if case.expected_calls is not None else ""
        for path, options, schema in _members(call.arguments, start, tool.parameters):
            paths.add(path)
            if path in derived or any(_is_fixed(value, told, tool, schema) for value in options):
                continue
            stands = "stands neither in its conversation nor in the schema, and no derivation is declared"
            yield Objection(case.id, "ungrounded-gold", f"the gold of {case.id} at `{path}`, {options[0]!r}, {stands}")
    for path in derived.keys() - paths:
        sentence = f"{case.id} declares how `{path}` is derived, and its gold has nothing there"
        yield Objection(case.id, "derivation", sentence)


@dataclass(frozen=True)
class _Told:
    """All that a model is told, as texts, numbers, dates and times."""

    texts: Sequence[str]

    @cached_property
    def plain(self) -> str:
        return normal("\n".join(self.texts))

    @cached_property
    def squeezed(self) -> str:
        """Without white space and quotation marks: an IBAN in groups of four is the same IBAN."""
        return _squeezed(self.plain)

    @cached_property
    def numbers(self) -> frozenset[Decimal]:
        found = {Decimal(NUMBERS[word]) for word in set(_WORD.findall(self.plain)) & NUMBERS.keys()}
        for text in (self.plain, _GROUPED.sub(r"\1", self.plain)):
            for match in _NUMBER.finditer(text):
                found.update(_readings(match[0]))
        for match in _PERCENT.finditer(self.plain):
            found.update(reading / 100 for reading in _readings(match[1]))
        return frozenset(found)

    @cached_property
    def dates(self) -> frozenset[tuple[int, int, int]]:
        return frozenset(_dates(self.plain))

    @cached_property
    def times(self) -> frozenset[tuple[int, int]]:
        return frozenset(_times(self.plain))


def _is_fixed(value: Any, told: _Told, tool: Tool, schema: Mapping[str, Any]) -> bool:
    if value is None or isinstance(value, bool):
        return True
    if isinstance(value, int | float):
        if not math.isfinite(value):
            return False
        number = Decimal(str(value))

        def found(text: _Told) -> bool:
            return number in text.numbers or any(_near(number, other) for other in text.numbers)
    else:

        def found(text: _Told) -> bool:
            return _holds(text, value)

    return found(told) or found(_Told([tool.description, *_said_by(schema)]))


def _holds(told: _Told, value: str) -> bool:
    plain = normal(value)
    if not plain or contains(told.plain, plain) or plain in told.plain.split():
        return True
    squeezed = _squeezed(plain)
    if len(squeezed) > 3 and squeezed in told.squeezed:  # noqa: PLR2004 — shorter ones would be found in any text
        return True
    if dates := set(_dates(plain)):
        times = set(_times(plain.partition("t")[2])) if "t" in plain else set()
        return bool(dates & told.dates) and (not times or bool(times & told.times))
    times = set(_times(plain))
    if times:
        return bool(times & told.times)
    try:
        return Decimal(plain) in told.numbers
    except InvalidOperation:
        return False


def _said_by(schema: Mapping[str, Any]) -> Iterator[str]:
    for word in ("description", "enum", "default", "const", "examples"):
        said = schema.get(word)
        for one in said if isinstance(said, list) else [said]:
            if isinstance(one, str | int | float) and not isinstance(one, bool):
                yield str(one)


def _scalars(gold: Any, path: str, schema: Any) -> Iterator[tuple[str, list[Any], Mapping[str, Any]]]:
    """Every checked value: its path, the alternatives that are allowed there, and what the schema says of it."""
    schema = schema if isinstance(schema, Mapping) else {}
    said = operator(gold)
    if said is not None and said[0] == "eq":
        yield from _scalars(said[1], path, schema)
    elif said is not None:
        below = [list(_scalars(one, path, schema)) for one in said[1]]
        if plain := [one for found in below for _, options, _ in found for one in options]:
            yield path, plain, schema
    elif isinstance(gold, Mapping):
        yield from _members(gold, path, schema)
    elif isinstance(gold, list | tuple):
        for position, value in enumerate(gold):
            yield from _scalars(value, f"{path}[{position}]", schema.get("items"))
    else:
        yield path, [gold], schema


def _members(gold: Mapping[str, Any], path: str, schema: Any) -> Iterator[tuple[str, list[Any], Mapping[str, Any]]]:
    """The checked values of an object, or of the arguments themselves, which are never an operator."""
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    for name, value in gold.items():
        said = properties.get(name) if isinstance(properties, Mapping) else None
        yield from _scalars(value, f"{path}.{name}" if path else name, said)


def _derivations(case: Case) -> tuple[dict[str, str], list[str]]:
    found: dict[str, str] = {}
    broken: list[str] = []
    for line in filter(None, case.source.get("derived", "").split("\n")):
        if match := _DERIVED.match(line):
            found[match["path"]] = match["how"]
        else:
            broken.append(line)
    return found, broken


def _readings(text: str) -> Iterator[Decimal]:
    """Every number that the text may be: a separator groups, or parts the fraction."""
    bare = re.sub(r"['_\u00a0\u202f]", "", text.replace("\u2212", "-"))
    last = max(bare.rfind("."), bare.rfind(","))
    whole = re.sub(r"[.,]", "", bare)
    forms = [whole]
    if last >= 0:
        forms.append(f"{re.sub(r'[.,]', '', bare[:last])}.{bare[last + 1 :]}")
    for form in forms:
        number = Decimal(form)
        yield number
        if number < 0:  # a hyphen before a number is no sign: “12-15”
            yield -number
    parts = re.split(r"[.,]", bare)
    if len(parts) > 2:  # noqa: PLR2004 — as many separators as in a list: 1,2,3
        yield from (Decimal(part) for part in parts if part.strip("+-"))


def _dates(text: str) -> Iterator[tuple[int, int, int]]:
    for year, month, day in _ISO.findall(text):
        yield int(year), int(month), int(day)
    for day, month, year in _DOTS.findall(text):
        yield int(year), int(month), int(day)
    for first, second, year in _SLASHES.findall(text):
        yield int(year), int(first), int(second)
        yield int(year), int(second), int(first)
    for day, month, year in _DAY_MONTH.findall(text):
        yield int(year), MONTHS[month], int(day)
    for month, day, year in _MONTH_DAY.findall(text):
        yield int(year), MONTHS[month], int(day)


def _times(text: str) -> Iterator[tuple[int, int]]:
    for hour, minute, half in _TIME.findall(text):
        yield _clock(int(hour), half), int(minute)
    for hour, half, minute in _HOUR.findall(text):
        yield _clock(int(hour), half), int(minute or 0)


def _clock(hour: int, half: str) -> int:
    if half.startswith("p"):
        return hour % 12 + 12
    return hour % 12 if half.startswith("a") else hour


def _squeezed(text: str) -> str:
    return _BLANKS_AND_QUOTES.sub("", text)


def _near(one: Decimal, other: Decimal) -> bool:
    return one == other or abs(one - other) <= Decimal("1e-9") * max(abs(one), abs(other))
