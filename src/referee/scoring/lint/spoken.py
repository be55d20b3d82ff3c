"""Words for months and small numbers, as German and English requests write them. Pure."""

from __future__ import annotations

_GERMAN_MONTHS = (
    *("januar", "februar", "märz", "april", "mai", "juni"),
    *("juli", "august", "september", "oktober", "november", "dezember"),
)
_ENGLISH_MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_GERMAN_NUMBERS = (
    *("null", "ein", "zwei", "drei", "vier", "fünf", "sechs"),
    *("sieben", "acht", "neun", "zehn", "elf", "zwölf"),
)
_ENGLISH_NUMBERS = (
    *("zero", "one", "two", "three", "four", "five", "six"),
    *("seven", "eight", "nine", "ten", "eleven", "twelve"),
)

#: Month by its name in lower case, short forms too.
MONTHS: dict[str, int] = {
    name: number
    for names in (_GERMAN_MONTHS, _ENGLISH_MONTHS, tuple(name[:3] for name in _ENGLISH_MONTHS))
    for number, name in enumerate(names, 1)
} | {"mrz": 3, "okt": 10, "dez": 12, "sept": 9}

#: Number by its word in lower case.
NUMBERS: dict[str, int] = (
    {word: number for words in (_GERMAN_NUMBERS, _ENGLISH_NUMBERS) for number, word in enumerate(words)}
    | dict.fromkeys(("eins", "eine", "einen", "einem", "einer", "eines", "once", "einmal"), 1)
    | dict.fromkeys(("twice", "zweimal"), 2)
)
