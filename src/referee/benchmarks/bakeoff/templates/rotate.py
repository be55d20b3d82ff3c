"""Makes the suite ``rotating`` of the templates and a private seed."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Mapping
from typing import Any

from referee.benchmarks.bakeoff.templates.abstain import answered_in_words, unfit
from referee.benchmarks.bakeoff.templates.drafts import Draft, Template
from referee.benchmarks.bakeoff.templates.draw import Draw
from referee.benchmarks.bakeoff.templates.hard import HARD
from referee.benchmarks.bakeoff.templates.several import SEVERAL
from referee.benchmarks.bakeoff.templates.simple import SELECTION, SIMPLE
from referee.benchmarks.bakeoff.templates.wording import Language
from referee.core.canonical import digest_of
from referee.core.cases import CATEGORIES, Arm, Case, Category, Message, Suite, Tool
from referee.errors import UsageError

#: Counts up with every change after which a seed gives other cases.
TEMPLATE_VERSION = 1

#: Size of a gate (bake-off §0).
FEWEST, MOST = 200, 400

#: A seed of so many bytes cannot be guessed from its digest.
SHORTEST_SEED = 32

#: German and English in each category, as often as each other.
_STEP = 2 * len(CATEGORIES)

_CYCLE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}")
_TRIES = 1000

_TEMPLATES: dict[Category, dict[str, Template]] = {
    "simple-call": SIMPLE,
    "tool-selection": SELECTION,
    "multi-call-ordering": SEVERAL,
    "hard-args": HARD,
}
_ALL = {name: made for templates in _TEMPLATES.values() for name, made in templates.items()}

#: Templates whose requests can lack a value that no tool of theirs looks up.
_LACKING = (
    *("thermostat", "card-limit", "flight-status", "convert", "stock"),
    *("standing-order", "reminder", "roll-back", "comment", "move-event"),
    *("purchase", "alert", "event", "report", "transfer"),
)
_DOMAINS = ("calendar", "travel", "warehouse", "helpdesk", "banking", "operations", "home", "office", "analytics")
_LANGUAGES: tuple[Language, ...] = ("de", "en")
_ARM = Arm(
    name="suite",
    headline=True,
    ranked=True,
    about="Cases made of templates and a private seed: five categories, German and English in equal parts.",
)


def kinds() -> dict[Category, tuple[str, ...]]:
    """The kinds of templates, by category; each words its requests in German and in English."""
    made: dict[Category, tuple[str, ...]] = {category: tuple(templates) for category, templates in _TEMPLATES.items()}
    return {**made, "abstain": ("missing-required-argument", "no-suitable-tool", "answered-in-words")}


def rotate(
    seed: bytes,
    *,
    cycle: str,
    count: int,
    toolsets: Mapping[str, tuple[Tool, ...]],
    prompts: Mapping[Language, str],
) -> Suite:
    """Make the suite of one cycle.

    Args:
        seed: private, at least ``SHORTEST_SEED`` bytes.
        cycle: name of the cycle, for example ``2027-01``; another cycle gives other cases.
        count: 200 to 400, in tens: as many in each category, half of them German.
        toolsets: the tools by domain.
        prompts: the system prompt by language.

    Raises:
        UsageError: the seed is too short, or the count or the cycle is not as it must be.
    """
    if len(seed) < SHORTEST_SEED:
        raise UsageError(f"the seed has {len(seed)} bytes", todo=f"use at least {SHORTEST_SEED}, drawn by chance")
    if not FEWEST <= count <= MOST or count % _STEP:
        raise UsageError(
            f"{count} is no size of a rotating suite", todo=f"name {FEWEST} to {MOST}, a multiple of {_STEP}"
        )
    if not _CYCLE.fullmatch(cycle):
        raise UsageError(f"{cycle!r} is no name of a cycle", todo="name it with letters, digits, dots and hyphens")
    label = f"referee rotating/{TEMPLATE_VERSION}/{cycle}/{count}"
    offered = dict(toolsets)
    key = hmac.digest(seed, label.encode(), hashlib.sha256)
    cases: list[Case] = []
    asked: set[str] = set()
    for number in range(count):
        category: Category = CATEGORIES[number % len(CATEGORIES)]
        turn = number // len(CATEGORIES)
        language = _LANGUAGES[turn % len(_LANGUAGES)]
        cases.append(_fresh(key, number, category, turn // len(_LANGUAGES), language, asked))
        if category == "tool-selection":
            cases[-1] = _among_more(Draw(key, f"{number}/toolset"), cases[-1], toolsets, offered)
    used = {case.toolset for case in cases}
    return Suite(
        name="rotating",
        version=f"{TEMPLATE_VERSION}-{cycle}",
        grading=2,
        about=f"{count} cases of cycle {cycle}, made of templates and a private seed, the gold of their parameters.",
        provenance={
            "built_by": "referee bakeoff cases rotate",
            "private": "yes",
            "rotated": "yes",
            "templates": str(TEMPLATE_VERSION),
            "cycle": cycle,
            "count": str(count),
            "seed_digest": seed_digest(seed, label),
            "tools": digest_of(
                "toolsets", {name: [tool.model_dump(mode="json") for tool in toolsets[name]] for name in _DOMAINS}
            ),
            "prompts": digest_of("prompts", dict(prompts)),
        },
        prompts={f"assistant-{language}": text for language, text in prompts.items()},
        toolsets={name: tools for name, tools in offered.items() if name in used},
        arms=(_ARM,),
        cases=tuple(cases),
    )


def _among_more(
    draw: Draw, case: Case, toolsets: Mapping[str, tuple[Tool, ...]], offered: dict[str, tuple[Tool, ...]]
) -> Case:
    """The case with the tools of another domain beside its own, in either order."""
    other = draw.pick([name for name in _DOMAINS if name != case.toolset])
    pair = draw.some((case.toolset, other), 2)
    name = "-and-".join(pair)
    offered[name] = tuple(tool for one in pair for tool in toolsets[one])
    return case.model_copy(update={"toolset": name})


def seed_digest(seed: bytes, label: str) -> str:
    """The digest of a seed, salted with what it was used for; a stream of cases tells nothing about it."""
    return hmac.digest(seed, f"digest of the seed\n{label}".encode(), hashlib.sha256).hex()


def _fresh(key: bytes, number: int, category: Category, turn: int, language: Language, asked: set[str]) -> Case:
    """One case whose request the suite does not have yet."""
    for attempt in range(_TRIES):
        case = _case(Draw(key, f"{number}/{attempt}"), number, category, turn, language)
        said = "\n".join(message.content for message in case.messages)
        if said not in asked:
            asked.add(said)
            return case
    raise UsageError(f"the templates of {category} are used up", todo="ask for fewer cases")


def _case(draw: Draw, number: int, category: Category, turn: int, language: Language) -> Case:
    if category == "abstain":
        return _abstaining(draw, number, turn, language)
    templates = _TEMPLATES[category]
    kind = list(templates)[turn % len(templates)]
    draft = templates[kind](draw, language)
    source = {"template": kind}
    if draft.derived:
        source["derived"] = "\n".join(f"{path}: {how}" for path, how in draft.derived.items())
    several = category == "multi-call-ordering"
    oracle: dict[str, Any] = {"expected_calls": draft.calls} if several else {"expected_call": draft.calls[0]}
    return _made(number, category, language, (Message(role="user", content=draft.ask),), draft, source, oracle)


def _abstaining(draw: Draw, number: int, turn: int, language: Language) -> Case:
    """Two of five lack an argument, two have no suitable tool, one is answered in words."""
    kind = ("missing-required-argument", "no-suitable-tool")[turn % 2] if turn % 5 != 4 else "answered-in-words"  # noqa: PLR2004
    if kind == "answered-in-words":
        toolset, messages, why = answered_in_words(draw, language)
        draft = Draft(toolset, "", ())
        return _made(
            number, "abstain", language, messages, draft, {"template": kind, "why": why}, {"expected_call": None}
        )
    if kind == "no-suitable-tool":
        draft, template, why = unfit(draw, language, _ALL)
        ask = draft.ask
    else:
        template = draw.pick(_LACKING)
        draft = _ALL[template](draw, language)
        ask, argument = draw.pick(draft.lacking)
        why = f"{argument} is required and not given, and no tool looks it up"
    source = {"template": f"{kind}/{template}", "trap": kind, "why": why}
    return _made(
        number, "abstain", language, (Message(role="user", content=ask),), draft, source, {"expected_call": None}
    )


def _made(
    number: int,
    category: Category,
    language: Language,
    messages: tuple[Message, ...],
    draft: Draft,
    source: dict[str, str],
    oracle: dict[str, Any],
) -> Case:
    return Case(
        id=f"r-{number + 1:03}-{category}-{language}",
        category=category,
        language=language,
        prompt=f"assistant-{language}",
        messages=messages,
        toolset=draft.toolset,
        policy=draft.policy,
        source=source,
        **oracle,
    )
