"""Words of two languages made comparable: folded, cut to their stems, and a small general dictionary between them.

The dictionary (``dictionary.txt``) holds what programs of any field are commonly about, and knows no suite.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

_UMLAUTS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss"})
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)?")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")

#: Longest endings first; a stem keeps at least four letters.
_ENDINGS = ("ations", "ation", "ungen", "ings", "ing", "ung", "ers", "est", "en", "er", "em", "es", "ed", "et", "te")
#: What a word of the dictionary may end in beyond itself.
_INFLECTIONS = ("s", "n", "e", "en", "es", "er", "em", "ern", "ed", "d", "ing")
_SHORT_ENDINGS = ("s", "e", "n", "t")
_SHORTEST_STEM = 4


@dataclass(frozen=True)
class Dictionary:
    """``dictionary.txt``: words that say nothing, words that give a language away, what a word
    stands for, and which of these are no values."""

    stop: frozenset[str]
    german: frozenset[str]
    english: frozenset[str]
    same: Mapping[str, str]
    common: frozenset[str]


@cache
def dictionary() -> Dictionary:
    """The dictionary, read once."""
    listed: dict[str, list[str]] = {"stop": [], "german": [], "english": []}
    same: dict[str, str] = {}
    common: set[str] = set()
    for line in Path(__file__).with_name("dictionary.txt").read_text(encoding="utf-8").splitlines():
        kind, *words = line.split() or ["#"]
        if kind in listed:
            listed[kind] += words
        elif kind in {"same", "value"}:
            same |= dict.fromkeys(words, stem(words[0]))
            common |= {stem(words[0])} if kind == "same" else set()
    for word, root in list(same.items()):
        same.setdefault(stem(word), root)
    return Dictionary(
        frozenset(listed["stop"]), frozenset(listed["german"]), frozenset(listed["english"]), same, frozenset(common)
    )


def fold(text: str) -> str:
    """Text as it is compared: compatibility forms, lower case, umlauts spelled out."""
    return unicodedata.normalize("NFKC", text).casefold().translate(_UMLAUTS)


def stem(word: str) -> str:
    """A folded word without its ending."""
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST_STEM:
            return word.removesuffix(ending)
    for ending in _SHORT_ENDINGS:
        if word.endswith(ending) and len(word) > _SHORTEST_STEM:
            return word.removesuffix(ending)
    return word


@lru_cache(maxsize=20_000)
def concept(word: str) -> str:
    """What a word stands for: its stem, or the stem that its group of the dictionary has in common."""
    folded = fold(word)
    same = dictionary().same
    for form in (folded, *(folded.removesuffix(ending) for ending in _INFLECTIONS if folded.endswith(ending))):
        if form in same:
            return same[form]
    return same.get(stem(folded), stem(folded))


def is_common(word: str) -> bool:
    """Whether a word names nobody and no place: a digit, a stop word, or what programs are commonly about."""
    known = dictionary()
    return word.isdigit() or fold(word) in known.stop or concept(word) in known.common


def words_of(text: str) -> list[str]:
    """The folded words of a text, in order."""
    return _WORD.findall(fold(text))


def concepts_of(text: str) -> set[str]:
    """What a text is about, stop words left out."""
    stop = dictionary().stop
    return {concept(word) for word in words_of(text) if word not in stop and not word.isdigit()}


def concepts_of_name(name: str) -> list[str]:
    """What an identifier is about: ``getWeather_forecast`` is about weather and forecast."""
    stop = dictionary().stop
    return [concept(part) for part in words_of(" ".join(_HUMP.split(name)).replace("_", " ")) if part not in stop]


def is_german(words: Iterable[str]) -> bool:
    """Whether a text is more likely German than English, by its small words."""
    listed = list(words)
    known = dictionary()
    return sum(word in known.german for word in listed) > sum(word in known.english for word in listed)
