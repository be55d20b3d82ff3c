"""What a text says outright: dates, times, numbers, addresses, quotations, codes and names, each with its place."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from referee.adapters.keyword_baseline.words import fold, is_common, is_german, words_of

Kind = Literal["quoted", "email", "url", "datetime", "date", "time", "number", "code", "name"]


@dataclass(frozen=True, slots=True)
class Value:
    """One value in a text: its kind, what it says, and where it stands."""

    kind: Kind
    text: str
    start: int
    end: int
    number: float | int | None = None


_MONTHS = {
    name: number
    for number, names in enumerate(
        (
            *("january januar jan", "february februar feb", "march maerz mar", "april apr", "may mai", "june juni jun"),
            *("july juli jul", "august aug", "september sept sep", "october oktober oct okt", "november nov"),
            "december dezember dec dez",
        ),
        start=1,
    )
    for name in names.split()
}
_NUMBER_WORDS = {
    name: number
    for number, names in enumerate(
        (
            *("two zwei", "three drei", "four vier", "five fuenf", "six sechs", "seven sieben", "eight acht"),
            *("nine neun", "ten zehn", "eleven elf", "twelve zwoelf"),
        ),
        start=2,
    )
    for name in names.split()
}

_QUOTED = re.compile(
    r"\"([^\"\n]{1,400})\"|[„“”]([^„“”\n]{1,400})[“”]|«([^»\n]{1,400})»|(?<!\w)'([^'\n]{1,400})'(?!\w)"
)
_EMAIL = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_URL = re.compile(r"https?://[^\s<>\"']+[^\s<>\"'.,;:!?)]")
_PATH = re.compile(r"(?<![\w/.])(?:[~.]{0,2}/[\w.-]+(?:/[\w.-]+)*|[\w-]+(?:/[\w-]+)*\.[a-z]{2,5})(?![\w/])")
_DATETIME = re.compile(r"\b(\d{4}-\d{2}-\d{2})[T ](\d{2}:\d{2}(?::\d{2})?)(Z|[+-]\d{2}:\d{2})?\b")
_ISO_DATE = re.compile(r"\b(\d{4})-(\d{2})-(\d{2})\b")
_DOTTED_DATE = re.compile(r"\b(\d{1,2})\.(\d{1,2})\.(\d{4})\b")
_DAY_MONTH = re.compile(r"\b(\d{1,2})(?:\.|st|nd|rd|th)?\s+(?:of\s+)?([A-Za-zäÄ]{3,9})\.?,?\s+(\d{4})\b")
_MONTH_DAY = re.compile(r"\b([A-Za-z]{3,9})\.?\s+(\d{1,2})(?:st|nd|rd|th)?,?\s+(\d{4})\b")
_CLOCK = re.compile(r"\b([01]?\d|2[0-3]):([0-5]\d)\b(?:\s*(?:([ap])\.?m|Uhr)\b)?", re.IGNORECASE)
_HOUR = re.compile(r"\b(\d{1,2})\s*(?:([ap])\.?m\b|(Uhr)\b)", re.IGNORECASE)
_CODE = re.compile(r"(?<![\w.])#?(?=[\w/-]*\d)(?=[\w/-]*[A-Za-z])[A-Za-z0-9][\w/-]*[A-Za-z0-9](?![\w])")
_NUMBER = re.compile(r"(?<![\w.,])[-+]?\d+(?:[.,]\d+)*(?![\w])")
_NAME = re.compile(r"\b[A-ZÄÖÜ][\w'\u2019-]*(?:\s+(?:(?:of|am|an der|de|la|del)\s+)?[A-ZÄÖÜ][\w'\u2019-]*)*")
_PREPOSITIONS = (
    "for about to in at of on from with by into near called named titled that "
    "für über nach in im ins an am auf von vom zu zum zur mit bei beim unter namens dass"
)
_PHRASE = re.compile(
    r"(?i)\b(?:{0})\s+(?:(?:the|a|an|my|der|die|das|dem|den|des|ein|eine|einen|einem|einer|meine?[nmr]?)\s+)?"
    r"(?P<words>(?:(?!\b(?:{0}|and|und|then|dann)\b)[^\W\d_][\w'\u2019-]*[ ]?)+)".format(
        "|".join(_PREPOSITIONS.split())
    )
)
_SENTENCE_BEGIN = re.compile(r"(?:^|[.!?:\n]\s*|[\"„“]\s*)$")


def find_values(text: str) -> list[Value]:
    """All values of a text in order; one that lies in another is not repeated, names excepted inside quotations."""
    taken: list[Value] = []
    for finder in (_addresses, _quotations, _dates, _times, _codes, _numbers, _names):
        for value in finder(text):
            if not any(value.start < other.end and other.start < value.end for other in taken):
                taken.append(value)
    return sorted(taken, key=lambda value: value.start)


def _addresses(text: str) -> Iterator[Value]:
    for match in _URL.finditer(text):
        yield Value("url", match[0], *match.span())
    for match in _EMAIL.finditer(text):
        yield Value("email", match[0].rstrip("."), *match.span())
    for match in _PATH.finditer(text):
        yield Value("code", match[0].rstrip("."), *match.span())


def _quotations(text: str) -> Iterator[Value]:
    for match in _QUOTED.finditer(text):
        yield Value("quoted", next(group for group in match.groups() if group is not None).strip(), *match.span())


def _dates(text: str) -> Iterator[Value]:
    for match in _DATETIME.finditer(text):
        yield Value("datetime", f"{match[1]}T{match[2]}{match[3] or ''}", *match.span())
    for pattern, order in (
        (_ISO_DATE, (1, 2, 3)),
        (_DOTTED_DATE, (3, 2, 1)),
        (_DAY_MONTH, (3, 2, 1)),
        (_MONTH_DAY, (3, 1, 2)),
    ):
        for match in pattern.finditer(text):
            year, month, day = (match[group] for group in order)
            written = _date(year, month, day)
            if written is not None:
                yield Value("date", written, *match.span())


def _date(year: str, month: str, day: str) -> str | None:
    number = int(month) if month.isdigit() else _MONTHS.get(fold(month), 0)
    try:
        return dt.date(int(year), number, int(day)).isoformat()
    except ValueError:
        return None


def _times(text: str) -> Iterator[Value]:
    for match in _CLOCK.finditer(text):
        yield Value("time", f"{_hour(int(match[1]), match[3]):02d}:{match[2]}", *match.span())
    for match in _HOUR.finditer(text):
        hour = _hour(int(match[1]), match[2])
        if hour < 24:  # noqa: PLR2004 — the hours of a day
            yield Value("time", f"{hour:02d}:00", *match.span())


def _hour(hour: int, half: str | None) -> int:
    if half is None:
        return hour
    return hour % 12 + (12 if half.lower() == "p" else 0)


def _codes(text: str) -> Iterator[Value]:
    for match in _CODE.finditer(text):
        yield Value("code", match[0].removeprefix("#"), *match.span())


def _numbers(text: str) -> Iterator[Value]:
    german = is_german(words_of(text))
    for match in _NUMBER.finditer(text):
        number = read_number(match[0], german=german)
        if number is not None:
            yield Value("number", match[0], *match.span(), number=number)
    for match in re.finditer(r"[^\W\d_]+", text):
        number = _NUMBER_WORDS.get(fold(match[0]))
        if number is not None:
            yield Value("number", match[0], *match.span(), number=number)


def read_number(written: str, *, german: bool) -> float | int | None:
    """A number as it is written in the text's language: ``1.250,5`` in German is ``1,250.5`` in English."""
    group, point = (".", ",") if german else (",", ".")
    whole, dot, fraction = written.partition(point)
    parts = whole.split(group)
    if len(parts) > 1 and (len(parts[0].lstrip("+-")) > 3 or any(len(part) != 3 for part in parts[1:])):  # noqa: PLR2004
        # No groups of thousands: then the sign that groups in this language can only be a decimal point.
        if len(parts) != 2 or dot:  # noqa: PLR2004
            return None
        return float(f"{parts[0]}.{parts[1]}")
    plain = "".join(parts)
    if not dot:
        return int(plain) if len(plain) <= 18 else None  # noqa: PLR2004 — as long as 64 bits hold it
    return float(f"{plain}.{fraction}") if fraction.isdigit() else None


def _names(text: str) -> Iterator[Value]:
    """Runs of capitalised words; a sentence's first word is none, and common words at either end are taken off."""
    for match in _NAME.finditer(text):
        words = list(re.finditer(r"[^\s]+", match[0]))
        if _SENTENCE_BEGIN.search(text[: match.start()]):
            words = words[1:]
        while words and is_common(words[0][0]):
            words = words[1:]
        while words and is_common(words[-1][0]):
            words = words[:-1]
        if words:
            start, end = match.start() + words[0].start(), match.start() + words[-1].end()
            yield Value("name", text[start:end], start, end)


def find_phrases(text: str) -> list[Value]:
    """What stands behind a preposition up to the next one, or to a sign or a number: the last resort for free text."""
    found = []
    for match in _PHRASE.finditer(text):
        words = match["words"].strip()
        if words and not all(is_common(word) for word in words_of(words)):
            found.append(
                Value("name", words, match.start("words"), match.start("words") + len(match["words"].rstrip()))
            )
    return found
