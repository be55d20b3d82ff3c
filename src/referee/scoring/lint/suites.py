"""The rules over a whole suite, and over a registered part of it. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from referee.core.bakeoff import Subset
from referee.core.cases import CATEGORIES, Case, Suite
from referee.scoring.lint.golds import gold_objections, schema_objection
from referee.scoring.lint.grounds import ungrounded
from referee.scoring.lint.objections import Objection
from referee.scoring.lint.prompts import prompt_objections

#: The two languages in which our suites ask (bake-off §8), in equal parts.
_BOTH = ("de", "en")

#: Provenance key of a suite that was taken over from a public one: its languages are as they are.
IMPORTED = "imported"

#: Provenance key of an imported suite whose golds need not be fixed by their requests; it says so on every page.
UNGROUNDED = "ungrounded"


@dataclass(frozen=True, slots=True)
class Refusal:
    """A case that was left out, and every objection to it."""

    case: Case
    objections: tuple[Objection, ...]


def lint(suite: Suite) -> tuple[Objection, ...]:
    """Every objection to a suite, in order of its cases; those that a case declares are marked as known.

    A suite that was imported is not asked for equal parts of languages. One that declares it in its provenance
    (``ungrounded``) is not asked either that every checked value be fixed by the request.
    """
    found: list[Objection] = []
    doubled = [name for name, times in Counter(case.id for case in suite.cases).items() if times > 1]
    found += (Objection(name, "doubled-id", f"the id {name} stands more than once") for name in doubled)
    for name, tools in suite.toolsets.items():
        found += (objection for tool in tools if (objection := schema_objection(name, tool)) is not None)
        twice = [tool for tool, times in Counter(tool.name for tool in tools).items() if times > 1]
        found += (Objection(name, "doubled-tool", f"the toolset {name} has the tool {tool} twice") for tool in twice)
    broken = {objection.case for objection in found if objection.rule == "broken-schema"}
    headline = {case.toolset for case in suite.cases if _headline(suite, case)}
    for case in suite.cases:
        if case.toolset not in broken:
            found += objections_to(case, suite)
        if "trap" in case.source and case.toolset not in headline:
            sentence = f"the trap {case.id} offers the toolset {case.toolset}, which no case of the headline offers"
            found.append(Objection(case.id, "toolset-of-trap", sentence))
    if IMPORTED not in suite.provenance:
        found += _languages(suite)
    return tuple(found)


def objections_to(case: Case, suite: Suite) -> tuple[Objection, ...]:
    """Every objection to one case."""
    names = (
        (case.toolset, suite.toolsets, "toolset"),
        (case.arm, suite.arm_of, "arm"),
        (case.prompt, suite.prompts, "prompt"),
    )
    for name, known, kind in names:
        if name is not None and name not in known:
            sentence = f"{case.id} names the {kind} {name}, which the suite does not have"
            return (Objection(case.id, "unknown-name", sentence),)
    prompt = None if case.prompt is None else suite.prompts[case.prompt]
    tools = suite.tools(case)
    found = [*_category(case), *_twin(case, suite), *prompt_objections(case, prompt)]
    try:
        faulty = list(gold_objections(case, tools, suite.grading))
        found += faulty
        # A gold that is wrong in itself is named once; where it comes from matters when it can be right.
        if not faulty and not {IMPORTED, UNGROUNDED} <= suite.provenance.keys():
            found += ungrounded(case, tools, prompt)
    except RecursionError:
        found.append(Objection(case.id, "too-deep", f"the gold or a schema of {case.id} is nested too deeply"))
    if case.known_objection is None:
        return tuple(found)
    arm = suite.arm_of[case.arm]
    marked = [replace(objection, known=True) for objection in found]
    if arm.headline or arm.ranked:
        sentence = f"{case.id} declares a known objection and stands in the arm {arm.name}, which is ranked"
        marked.append(Objection(case.id, "known-objection-ranked", sentence))
    return tuple(marked)


def without_refused(suite: Suite) -> tuple[Suite | None, tuple[Refusal, ...]]:
    """The suite without the cases that the linter refuses, and these; None where no case is left.

    Objections to what is no case (a toolset, an arm) refuse every case that depends on it.
    """
    by_case: dict[str, list[Objection]] = {}
    for objection in lint(suite):
        if not objection.known:
            by_case.setdefault(objection.case, []).append(objection)
    kept: list[Case] = []
    refused: list[Refusal] = []
    for case in suite.cases:
        against = [*by_case.get(case.id, ()), *by_case.get(case.toolset, ())]
        if against:
            refused.append(Refusal(case, tuple(against)))
        else:
            kept.append(case)
    if not kept:
        return None, tuple(refused)
    used = {case.toolset for case in kept}
    prompts = {case.prompt for case in kept}
    rest = suite.model_copy(
        update={
            "cases": tuple(kept),
            "toolsets": {name: tools for name, tools in suite.toolsets.items() if name in used},
            "prompts": {name: text for name, text in suite.prompts.items() if name in prompts},
        }
    )
    return rest, tuple(refused)


def lint_subset(subset: Subset, suite: Suite) -> tuple[Objection, ...]:
    """Every objection to a registered subset: cases that the suite has, each once, balanced over its categories."""
    found: list[Objection] = []
    for name, times in Counter(subset.cases).items():
        if name not in suite.by_id:
            found.append(
                Objection(
                    subset.name, "unknown-case", f"the subset {subset.name} names {name}, which the suite does not have"
                )
            )
        elif times > 1:
            found.append(Objection(subset.name, "doubled-case", f"the subset {subset.name} names {name} {times} times"))
    if not found:
        chosen = [suite.by_id[name] for name in subset.cases]
        found += _balance(subset.name, [case for case in chosen if _headline(suite, case)], suite)
    return tuple(found)


def _headline(suite: Suite, case: Case) -> bool:
    arm = suite.arm_of.get(case.arm)
    return arm is not None and arm.headline


def _category(case: Case) -> Iterator[Objection]:
    count = len(case.golds)
    if (case.category == "abstain") != case.abstains:
        what = "expects a call" if count else "expects no call"
        yield Objection(case.id, "category-against-oracle", f"{case.id} is of the category {case.category} and {what}")
    elif case.category == "multi-call-ordering" and count < 2:  # noqa: PLR2004 — an order needs two
        yield Objection(
            case.id, "category-against-oracle", f"{case.id} is of the category {case.category} and expects one call"
        )
    elif case.category == "simple-call" and count > 1:
        yield Objection(
            case.id,
            "category-against-oracle",
            f"{case.id} is of the category {case.category} and expects {count} calls",
        )


def _twin(case: Case, suite: Suite) -> Iterator[Objection]:
    """A twin differs in arm and prompt alone."""
    if case.twin is None:
        return
    other = suite.by_id.get(case.twin)
    if other is None:
        yield Objection(case.id, "twin", f"{case.id} names the twin {case.twin}, which the suite does not have")
        return
    shared = ("category", "language", "messages", "toolset", "expected_call", "expected_calls", "policy")
    if differs := [name for name in shared if getattr(case, name) != getattr(other, name)]:
        yield Objection(case.id, "twin", f"{case.id} differs from its twin {other.id} in {', '.join(differs)}")


def _languages(suite: Suite) -> Iterator[Objection]:
    """German and English in equal parts, as far as an odd number allows; an arm in one language makes no such claim."""
    for arm in suite.arms:
        counts = Counter(case.language for case in suite.cases if case.arm == arm.name)
        german, english = (counts[language] for language in _BOTH)
        if german and english and abs(german - english) > 1:
            sentence = f"the arm {arm.name} has {german} German and {english} English cases, not equal parts"
            yield Objection(arm.name, "languages", sentence)


def _balance(name: str, cases: Sequence[Case], suite: Suite) -> Iterator[Objection]:
    """Every category of the headline, none with many more cases than another: two, or a tenth of the subset."""
    there = {case.category for case in suite.cases if _headline(suite, case)}
    counts = Counter(case.category for case in cases)
    if not cases:
        yield Objection(name, "balance", f"the subset {name} has no case of the headline")
        return
    least, most = min(counts[one] for one in there), max(counts[one] for one in there)
    if not least or most - least > max(2, len(cases) // 10):
        said = ", ".join(f"{one} {counts[one]}" for one in CATEGORIES if one in there)
        yield Objection(name, "balance", f"the subset {name} is not balanced over the categories: {said}")
