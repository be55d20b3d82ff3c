"""Arguments from a text, by each parameter's type, format, enum and the words of its name."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from referee.adapters.keyword_baseline.values import Kind, Value, find_phrases
from referee.adapters.keyword_baseline.words import concept, concepts_of, concepts_of_name, fold, words_of

#: The absence of a value, where None could be one.
MISSING = object()

_FROM = re.compile(r"(?i)\b(?:from|von|ab|aus)\s+$")
_TO = re.compile(r"(?i)\b(?:to|into|nach|zu|zum|zur|in|ins|an|ans)\s+$")
_PREPOSITION = re.compile(
    r"(?i)\b(?:in|at|for|with|near|of|by|on|to|from|nach|bei|mit|von|fuer|für|an|aus|um|ueber|über)\s+$"
)
_FROM_NAMES = {"from", "source", "origin", "start", "departure", "sender", "von", "quelle", "abfahrt"}
_TO_NAMES = {"to", "target", "destination", "end", "arrival", "recipient", "receiver", "nach", "ziel", "empfaenger"}
_TEXT_NAMES = {"text", "message", "content", "body", "note", "title", "subject", "description", "reason", "query"}
_NUMBER_NAMES = {"id", "number", "code", "nr", "no", "key", "reference"}
_NEAR = 24
_LONGEST_TOKEN = 120
_NEGATION = {"not", "no", "without", "don't", "kein", "keine", "nicht", "ohne"}


class Filler:
    """Fills the arguments of one tool from one text; a value is used once.

    Args:
        text: what was asked.
        values: what it says outright.
        about: what the tool itself is about: these words are no values.
    """

    def __init__(self, text: str, values: Sequence[Value], about: set[str]) -> None:
        self._text = text
        self._values = values
        self._about = about
        self._used: set[int] = set()
        self._named: set[int] = set()

    def fill(self, schema: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
        """The arguments that were found, and the required ones that were not."""
        properties = _mapping(schema.get("properties"))
        required = {name for name in _list(schema.get("required")) if isinstance(name, str)}
        found: dict[str, Any] = {}
        # What can be told by form alone chooses first; free text takes what is left.
        for name in sorted(properties, key=lambda name: _freedom(_mapping(properties[name]), name)):
            value = self._value(name, _mapping(properties[name]), needed=name in required)
            if value is not MISSING:
                found[name] = value
        ordered = {name: found[name] for name in properties if name in found}
        return ordered, sorted(name for name in required if name not in found)

    def _value(self, name: str, schema: Mapping[str, Any], *, needed: bool) -> Any:
        choices = [schema["const"]] if "const" in schema else _list(schema.get("enum"))
        if choices:
            return choices[0] if "const" in schema else self._choice(name, choices)
        found: Any
        match _type(schema):
            case "integer" | "number":
                found = self._number(name, schema, needed=needed)
            case "boolean":
                found = self._boolean(name)
            case "array":
                found = self._array(name, _mapping(schema.get("items")), needed=needed)
            case "object":
                inner, missing = self.fill(schema)
                found = inner if inner and not missing else MISSING
            case _:
                found = self._string(name, schema, needed=needed)
        return found

    def _choice(self, name: str, choices: Sequence[Any]) -> Any:
        """A choice that the text names: by its letters and in its order, else the only one by what it means."""
        places = sorted(
            (place, choice) for choice in choices if isinstance(choice, str) for place in self._places(choice)
        )
        role = _role(name)
        if role & (_FROM_NAMES | _TO_NAMES):
            sign = _FROM if role & _FROM_NAMES else _TO
            signed = [(place, choice) for place, choice in places if sign.search(self._text[:place])]
            places = signed or places
        if places:
            place, choice = places[0]
            self._named.add(place)
            return choice
        said = concepts_of(self._text)
        meant = [
            c for c in choices if isinstance(c, str) and set(concepts_of_name(c)) and set(concepts_of_name(c)) <= said
        ]
        if len(meant) == 1:
            return meant[0]
        numbers = {value.number for value in self._values if value.kind == "number"}
        counted = [c for c in choices if isinstance(c, int | float) and not isinstance(c, bool) and c in numbers]
        return counted[0] if len(counted) == 1 else MISSING

    def _places(self, choice: str) -> list[int]:
        """Where a choice stands in the text as a word of its own, places that another parameter took left out."""
        form = re.compile(rf"(?i)(?<!\w){re.escape(choice).replace('_', '[_ -]')}(?!\w)")
        return [match.start() for match in form.finditer(self._text) if match.start() not in self._named]

    def _number(self, name: str, schema: Mapping[str, Any], *, needed: bool) -> Any:
        whole = _type(schema) == "integer"
        fitting = [v for v in self._free("number") if v.number is not None and _in_range(v.number, schema, whole=whole)]
        hinted = [value for value in fitting if self._stands_near(value, name, schema)]
        chosen = hinted or (fitting if needed else [])
        if not chosen:
            return MISSING
        self._used.add(chosen[0].start)
        return chosen[0].number

    def _boolean(self, name: str) -> Any:
        words = words_of(self._text)
        meant = set(concepts_of_name(name))
        for index, word in enumerate(words):
            if concept(word) in meant and concept(word) not in self._about:
                return not _NEGATION & set(words[max(0, index - 3) : index])
        return MISSING

    def _array(self, name: str, items: Mapping[str, Any], *, needed: bool) -> Any:
        choices = [c for c in _list(items.get("enum")) if isinstance(c, str)]
        if choices:
            first = {choice: places[0] for choice in choices if (places := self._places(choice))}
            return sorted(first, key=lambda choice: first[choice]) or MISSING
        found: list[Any] = []
        while True:
            value = self._value(name, items, needed=needed)
            if value is MISSING or value in found:
                return found or MISSING
            found.append(value)
            if _type(items) in {"boolean", "object", "array"}:
                return found

    def _string(self, name: str, schema: Mapping[str, Any], *, needed: bool) -> Any:
        kinds = _kinds(name, schema)
        if kinds:
            return self._take(
                [value for value in self._values if value.kind in kinds and value.start not in self._used]
            )
        pattern = schema.get("pattern")
        if isinstance(pattern, str):
            return self._by_pattern(pattern)
        return self._by_role(name, schema, needed=needed)

    def _by_role(self, name: str, schema: Mapping[str, Any], *, needed: bool) -> Any:
        """A string of no certain form: chosen by what its name says it is and by where values stand."""
        role = _role(name)
        candidates = self._free("quoted", "code", "name", "email")
        near = [value for value in candidates if self._stands_near(value, name, schema)]
        if role & (_FROM_NAMES | _TO_NAMES):
            sign = _FROM if role & _FROM_NAMES else _TO
            candidates = [value for value in candidates if sign.search(self._text[: value.start])]
        elif role & _NUMBER_NAMES:
            numbered = self._free("code", "number")
            candidates = near or [v for v in numbered if v.kind == "code" or self._stands_near(v, name, schema)]
        elif role & _TEXT_NAMES:
            candidates = [value for value in candidates if value.kind == "quoted"]
            if needed and not candidates:
                return self._free_text()
        elif not needed:
            candidates = near
        else:
            placed = [value for value in candidates if _PREPOSITION.search(self._text[: value.start])]
            candidates = near or placed or candidates or self._phrases()
        return self._take(candidates)

    def _by_pattern(self, pattern: str) -> Any:
        try:
            form = re.compile(pattern)
        except re.error:
            return MISSING
        tokens = [value.text for value in self._values if value.start not in self._used]
        tokens += [token.strip(".,;:!?\"'()") for token in self._text.split()]
        return next(
            (token for token in tokens if token and len(token) <= _LONGEST_TOKEN and form.search(token)), MISSING
        )

    def _free_text(self) -> Any:
        """What stands behind a colon, else behind the first preposition, to the end."""
        found = re.search(r":\s+(\S[^\n]*)", self._text)
        if found:
            return found[1].strip()
        phrases = self._phrases()
        if not phrases:
            return MISSING
        self._used.add(phrases[0].start)
        return re.split(r"[.!?\n](?:\s|$)", self._text[phrases[0].start :])[0].strip()

    def _phrases(self) -> list[Value]:
        taken = [value for value in self._values if value.start in self._used]
        return [
            phrase
            for phrase in find_phrases(self._text)
            if phrase.start not in self._used
            and not concepts_of(phrase.text) <= self._about
            and not any(phrase.start < value.end and value.start < phrase.end for value in taken)
        ]

    def _free(self, *kinds: Kind) -> list[Value]:
        """The unused values of these kinds; names that only say what the tool is about are none."""
        return [
            value
            for value in self._values
            if value.kind in kinds
            and value.start not in self._used
            and not (value.kind == "name" and concepts_of(value.text) <= self._about)
        ]

    def _take(self, candidates: Sequence[Value]) -> Any:
        if not candidates:
            return MISSING
        self._used.add(candidates[0].start)
        return candidates[0].text

    def _stands_near(self, value: Value, name: str, schema: Mapping[str, Any]) -> bool:
        """Whether a word of the parameter's name, or of its description, stands right beside the value."""
        meant = set(concepts_of_name(name)) | concepts_of(str(schema.get("description", ""))[:200])
        before = self._text[max(0, value.start - _NEAR) : value.start].rsplit(",", 1)[-1]
        after = self._text[value.end : value.end + _NEAR].split(",", 1)[0]
        beside = words_of(before)[-2:] + words_of(after)[:1]
        return any(concept(word) in meant for word in beside)


def _role(name: str) -> set[str]:
    """What a parameter is for: the words of its name, and what they stand for."""
    return set(fold(name).replace("_", " ").split()) | set(concepts_of_name(name))


def _kinds(name: str, schema: Mapping[str, Any]) -> tuple[Kind, ...]:
    """The kinds of values that a string's format, or its name, allows; empty for any."""
    form = str(schema.get("format", ""))
    words = _role(name)
    if form == "email" or "email" in words or concept("email") in words:
        return ("email",)
    if form in {"uri", "url"} or words & {"url", "uri", "link"}:
        return ("url",)
    if form == "date-time" or words & {"datetime", "timestamp"}:
        return ("datetime",)
    if form == "date" or words & {"date", "datum", concept("date"), "day", "birthday"}:
        return ("date", "datetime") if form != "date" else ("date",)
    if form == "time" or words & {"time", "uhrzeit", concept("time")}:
        return ("time",)
    return ()


def _freedom(schema: Mapping[str, Any], name: str) -> int:
    """How little a parameter's form says about its value."""
    if "enum" in schema or "const" in schema:
        return 0
    if _type(schema) in {"integer", "number", "boolean"}:
        return 1
    if _type(schema) == "string" and (_kinds(name, schema) or "pattern" in schema):
        return 1
    role = _role(name)
    if role & (_FROM_NAMES | _TO_NAMES | _NUMBER_NAMES):
        return 2
    return 4 if role & _TEXT_NAMES else 3


def _type(schema: Mapping[str, Any]) -> str:
    kind = schema.get("type", "object" if "properties" in schema else "string")
    if isinstance(kind, list):
        kind = next((one for one in kind if one != "null"), "string")
    return str(kind)


def _in_range(number: float, schema: Mapping[str, Any], *, whole: bool) -> bool:
    if whole and number != int(number):
        return False
    least, most = schema.get("minimum"), schema.get("maximum")
    return not (isinstance(least, int | float) and number < least) and not (
        isinstance(most, int | float) and number > most
    )


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> Sequence[Any]:
    return value if isinstance(value, list) else ()
