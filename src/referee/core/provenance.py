"""Where rows come from, as text on each of them: how it is written, and in what two of them differ (bake-off §11)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

_BETWEEN = "; "
#: So much of a value and so many values are quoted in a sentence.
_SHOWN, _NAMED = 48, 4


def write_source(first: str, model: str, pins: Mapping[str, str]) -> str:
    """``endpoint=…; model=…; context=…``: ``first`` is the endpoint or the program, the pins follow by name."""
    facts = [first, f"model={model}", *(f"{name}={value}" for name, value in sorted(pins.items()))]
    return _BETWEEN.join(facts)


def sources_differ(sources: Iterable[str]) -> str:
    """In what sources differ, each fact with its values: ``context: 8192 and 32768; revision: not said and abc``."""
    read = [_facts(one) for one in dict.fromkeys(sources)]
    names = dict.fromkeys(name for facts in read for name in facts)
    found = []
    for name in names:
        values = list(dict.fromkeys(facts.get(name, "") for facts in read))
        if len(values) > 1:
            found.append(f"{name}: {said_apart(values)}")
    return _BETWEEN.join(found)


def said_apart(values: Iterable[str]) -> str:
    """Values side by side, the first few, each cut to a bounded length."""
    every = list(values)
    shown = [one if len(one) <= _SHOWN else f"{one[:_SHOWN]}…" for one in every[:_NAMED]]
    more = [f"{len(every) - _NAMED} more"] if len(every) > _NAMED else []
    return " and ".join([*(one or "not said" for one in shown), *more])


def _facts(source: str) -> dict[str, str]:
    facts: dict[str, str] = {}
    last = "source"
    for piece in source.split(_BETWEEN):
        name, mark, value = piece.partition("=")
        if mark:
            facts[name], last = value, name
        else:  # the rest of a value
            facts[last] = f"{facts.get(last, '')}{_BETWEEN}{piece}".removeprefix(_BETWEEN)
    return facts
