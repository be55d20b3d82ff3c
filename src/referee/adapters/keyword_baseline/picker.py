"""Picks tools by words and types: no model, no chance, no learning. The floor under every board.

A tool fits when the question shares words with its name, or enough with its description; of those that fit, the one
with the rarest shared words is called, if every required argument is found in the text. Else nothing is called.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from referee.adapters.keyword_baseline.arguments import Filler
from referee.adapters.keyword_baseline.values import find_values
from referee.adapters.keyword_baseline.words import concepts_of, concepts_of_name

#: Counts up with every change of what is picked; stands in the bundled target as its revision.
VERSION = "1"

_NAME_WEIGHT = 3.0
_PARAMETER_WEIGHT = 0.5
#: A question that shares no word with a tool's name must share so many with its description.
_ENOUGH_WORDS = 2
_STEP = re.compile(
    r"(?i)(?:[,;.]?\s*\b(?:and\s+then|then|afterwards|after\s+that|subsequently|finally|next|und\s+dann|dann|danach|"
    r"anschlie(?:ß|ss)end|zum\s+schluss|zuletzt|schlie(?:ß|ss)lich)\b[,:]?\s*)|(?:(?:^|\s)(?:\d{1,2}[.)]|[-*•])\s+)|\n+"
)


@dataclass(frozen=True)
class Offered:
    """One tool as the picker sees it."""

    name: str
    schema: Mapping[str, Any]
    named: frozenset[str]
    described: frozenset[str]
    parameters: frozenset[str]

    @property
    def about(self) -> set[str]:
        """What the tool is about, its parameters left out."""
        return set(self.named | self.described)


@dataclass(frozen=True)
class Picked:
    """One call."""

    name: str
    arguments: dict[str, Any]


def offer(name: str, description: str, schema: Mapping[str, Any]) -> Offered:
    """A tool's words."""
    properties = schema.get("properties")
    properties = properties if isinstance(properties, dict) else {}
    parameters: set[str] = set()
    for key, inner in properties.items():
        parameters.update(concepts_of_name(str(key)))
        for choice in _choices(inner):
            parameters.update(concepts_of(str(choice)))
    return Offered(
        name, schema, frozenset(concepts_of_name(name)), frozenset(concepts_of(description)), frozenset(parameters)
    )


def pick(question: str, tools: Sequence[Offered], *, required: bool = False) -> list[Picked]:
    """The calls that a question asks for, in order; none when no tool fits.

    Args:
        question: what the user said last.
        tools: what is offered.
        required: a call must be made, the likeliest if none fits.
    """
    if not tools or not question.strip():
        return []
    weights = _weights(tools)
    steps = [step for step in _STEP.split(question) if step and step.strip()]
    if len(steps) > 1:
        made = [call for call in (_one(step, tools, weights) for step in steps) if call is not None]
        if len(made) > 1:
            return made
    call = _one(question, tools, weights)
    if call is None and required:
        call = _likeliest(question, tools, weights)
    return [] if call is None else [call]


def _weights(tools: Sequence[Offered]) -> dict[str, float]:
    """A word that many tools share says little about which one is meant."""
    shared = Counter(word for tool in tools for word in tool.named | tool.described | tool.parameters)
    return {word: math.log(1 + len(tools) / count) for word, count in shared.items()}


def _score(said: set[str], tool: Offered, weights: Mapping[str, float]) -> tuple[float, bool]:
    """How much a question shares with a tool, and whether that is enough to call it."""
    by_name = said & tool.named
    by_description = said & tool.described - by_name
    by_parameter = said & tool.parameters - by_name - by_description
    score = (
        _NAME_WEIGHT * sum(weights[word] for word in sorted(by_name))
        + sum(weights[word] for word in sorted(by_description))
        + _PARAMETER_WEIGHT * sum(weights[word] for word in sorted(by_parameter))
    )
    return score, bool(by_name) or len(by_description) >= _ENOUGH_WORDS


def _ranked(question: str, tools: Sequence[Offered], weights: Mapping[str, float]) -> list[tuple[float, bool, Offered]]:
    said = concepts_of(question)
    scored = [(*_score(said, tool, weights), tool) for tool in tools]
    return sorted(scored, key=lambda item: -item[0])  # stable: of equals the first offered


def _one(question: str, tools: Sequence[Offered], weights: Mapping[str, float]) -> Picked | None:
    """The best tool that fits and whose required arguments are all there; a worse one is no way out."""
    best = next((tool for _, enough, tool in _ranked(question, tools, weights) if enough), None)
    if best is None:
        return None
    arguments, missing = _filled(question, best)
    return None if missing else Picked(best.name, arguments)


def _likeliest(question: str, tools: Sequence[Offered], weights: Mapping[str, float]) -> Picked:
    ranked = [tool for _, _, tool in _ranked(question, tools, weights)]
    for tool in ranked:
        arguments, missing = _filled(question, tool)
        if not missing:
            return Picked(tool.name, arguments)
    return Picked(ranked[0].name, _filled(question, ranked[0])[0])


def _filled(question: str, tool: Offered) -> tuple[dict[str, Any], list[str]]:
    return Filler(question, find_values(question), tool.about).fill(tool.schema)


def _choices(schema: object) -> list[object]:
    """The values that a parameter's schema lists; none where it lists none, or is no schema."""
    listed = schema.get("enum") if isinstance(schema, dict) else None
    return listed if isinstance(listed, list) else []
