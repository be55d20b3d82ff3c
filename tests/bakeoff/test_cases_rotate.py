"""Rotating suites: the same from version and seed, fresh each cycle, sound whatever the seed, and silent about it."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from referee.adapters.suites import bundled_suite, suite_bytes
from referee.benchmarks.bakeoff.templates import FEWEST, MOST, kinds, rotate
from referee.benchmarks.bakeoff.templates.draw import Draw
from referee.benchmarks.bakeoff.templates.hard import HARD
from referee.benchmarks.bakeoff.templates.rotate import _LACKING, _TEMPLATES
from referee.benchmarks.bakeoff.templates.several import SEVERAL
from referee.benchmarks.bakeoff.templates.simple import SELECTION, SIMPLE
from referee.benchmarks.bakeoff.templates.wording import german_iban, in_fours, written_number
from referee.core.answers import GivenCall
from referee.core.cases import CATEGORIES, Case, Message, Suite
from referee.errors import UsageError
from referee.scoring.lint import lint
from referee.scoring.toolcalls import grade_calls

pytestmark = pytest.mark.slow  # together more than a few seconds

SEED = hashlib.sha256(b"a seed for the tests").digest()
PINNED = "ebec059a8a2d1f471bb46e9829f13027ed932bb51a1354753d6bd7d69365b273"
MODEL = bundled_suite("s1")
ALL = {**SIMPLE, **SELECTION, **SEVERAL, **HARD}


def made(seed: bytes = SEED, *, cycle: str = "2027-01", count: int = FEWEST) -> Suite:
    prompts: dict[Any, str] = {language: MODEL.prompts[f"assistant-{language}"] for language in ("de", "en")}
    return rotate(seed, cycle=cycle, count=count, toolsets=MODEL.toolsets, prompts=prompts)


SUITE = made()


def requests(suite: Suite) -> set[str]:
    return {"\n".join(message.content for message in case.messages) for case in suite.cases}


def test_the_same_seed_gives_the_same_bytes_for_ever() -> None:
    assert suite_bytes(made()) == suite_bytes(SUITE)
    # The pinned digest: another one means that a seed gives other cases, and TEMPLATE_VERSION has to count up.
    assert hashlib.sha256(suite_bytes(SUITE)).hexdigest() == PINNED


def test_another_seed_cycle_or_count_gives_other_cases() -> None:
    for other in (made(SEED[::-1]), made(cycle="2027-02"), made(count=FEWEST + 10)):
        # Requests without parameters (a question, a short thanks) may well come again; most may not.
        assert len(requests(other) & requests(SUITE)) < FEWEST // 10
        assert other.provenance["seed_digest"] != SUITE.provenance["seed_digest"]


def test_the_seed_stands_nowhere_in_the_file() -> None:
    data = suite_bytes(SUITE)
    for form in (SEED, SEED.hex().encode(), SEED[::-1].hex().encode(), str(int.from_bytes(SEED, "big")).encode()):
        assert form not in data
        assert form.upper() not in data
    # Not a plain digest either, which a table of likely seeds would find.
    assert hashlib.sha256(SEED).hexdigest().encode() not in data
    assert re.fullmatch(r"[0-9a-f]{64}", SUITE.provenance["seed_digest"])


@pytest.mark.parametrize("count", [FEWEST, 250, MOST])
def test_every_category_has_as_many_cases_half_of_them_german(count: int) -> None:
    suite = made(count=count)
    assert len(suite.cases) == count
    assert Counter((case.category, case.language) for case in suite.cases) == {
        (category, language): count // 10 for category in CATEGORIES for language in ("de", "en")
    }
    assert suite.grading == 2


def test_no_request_comes_twice_and_every_kind_comes_in_both_languages() -> None:
    suite = made(count=MOST)
    assert len(requests(suite)) == MOST
    seen = {(case.category, case.source["template"].partition("/")[0], case.language) for case in suite.cases}
    wanted = {
        (category, kind, language) for category, names in kinds().items() for kind in names for language in ("de", "en")
    }
    assert seen == wanted
    assert sum(len(names) for category, names in kinds().items() if category != "abstain") >= 12


DATES = (r"\d\d\.\d\d\.\d{4}", r"[a-z] \d{1,2}, \d{4}", r"\d{1,2}\.? [A-Z][a-zä]+ \d{4}")


def test_a_request_writes_all_its_dates_in_one_way() -> None:
    for language in ("de", "en"):
        for number in range(60):
            ask = SEVERAL["journey"](Draw(SEED, f"{number}"), language).ask
            worded = [len(re.findall(form, ask)) for form in DATES]
            assert sorted(worded)[:2] == [0, 0], ask


def test_a_kind_words_its_requests_in_more_than_one_way() -> None:
    for name, template in {**SIMPLE, **SELECTION}.items():
        for language in ("de", "en"):
            worded = {re.sub(r"\d+", "0", template(Draw(SEED, f"{n}"), language).ask) for n in range(40)}
            assert len(worded) > 1, (name, language)


def test_tool_selection_offers_the_tools_of_another_domain_too() -> None:
    for case in SUITE.cases:
        names = [tool.name for tool in SUITE.tools(case)]
        assert len(names) == len(set(names))
        assert len(names) >= 3
        if case.category == "tool-selection":
            assert len(names) >= 6


def test_a_trap_lacks_the_tool_or_the_argument_that_it_says() -> None:
    for case in made(count=MOST).cases:
        kind, _, template = case.source["template"].partition("/")
        if kind == "no-suitable-tool" and template in ALL:
            wanted = {call.name for call in ALL[template](Draw(SEED, "x"), "en").calls}
            assert not wanted & {tool.name for tool in SUITE.toolsets.get(case.toolset, MODEL.toolsets[case.toolset])}
        if kind == "missing-required-argument":
            argument = case.source["why"].partition(" ")[0]
            wanted = {call.name for call in ALL[template](Draw(SEED, "x"), "en").calls}
            (tool,) = [tool for tool in MODEL.toolsets[case.toolset] if tool.name in wanted]
            assert argument in tool.parameters["required"]


@pytest.mark.parametrize("language", ["de", "en"])
def test_a_request_that_lacks_an_argument_does_not_give_its_value_after_all(language: Any) -> None:
    for name in _LACKING:
        for number in range(20):
            draft = ALL[name](Draw(SEED, f"{name}/{number}"), language)
            assert draft.lacking, name
            for ask, argument in draft.lacking:
                (call,) = draft.calls
                if argument in {"room", "target_format"}:  # an enum: the request may only not name it
                    assert call.arguments[argument]["eq"] not in ask.replace(" ", "_").rpartition(".")[0]
                    continue
                derived = (f"{path}: {how}" for path, how in draft.derived.items() if path != argument)
                whole = Case(
                    id="x",
                    category="hard-args",
                    language=language,
                    messages=(Message(role="user", content=ask),),
                    toolset=draft.toolset,
                    expected_call=call,
                    policy=draft.policy,
                    source={"derived": "\n".join(derived)},
                )
                suite = SUITE.model_copy(update={"cases": (whole,), "toolsets": MODEL.toolsets, "prompts": {}})
                found = [one.sentence for one in lint(suite) if f"`{argument}" in one.sentence]
                assert found, (ask, argument)


@settings(max_examples=8, deadline=None)
@given(st.binary(min_size=32, max_size=64), st.sampled_from(["1", "2027-01", "q.4_x"]))
def test_the_linter_has_nothing_against_any_seed(seed: bytes, cycle: str) -> None:
    assert lint(made(seed, cycle=cycle)) == ()


def test_an_answer_passes_on_its_own_case_and_on_no_other_of_its_kind() -> None:
    checked = 0
    for case in SUITE.cases:
        tools = SUITE.tools(case)
        answer = [GivenCall(call.name, plain(call.arguments)) for call in case.golds]
        assert grade_calls(case, tools, answer, grading=2).passed
        others = [one for one in SUITE.cases if one.source["template"] == case.source["template"] and one is not case]
        for other in others[:5]:
            if other.golds and plain([call.arguments for call in other.golds]) != plain(
                [call.arguments for call in case.golds]
            ):
                assert not grade_calls(other, SUITE.tools(other), answer, grading=2).passed
                checked += 1
    assert checked > FEWEST


def plain(gold: Any) -> Any:
    if isinstance(gold, dict):
        return plain(gold["eq"]) if set(gold) == {"eq"} else {name: plain(value) for name, value in gold.items()}
    return [plain(one) for one in gold] if isinstance(gold, list | tuple) else gold


@pytest.mark.parametrize(
    ("over", "said"),
    [
        ({"seed": b"x" * 31}, "the seed has 31 bytes"),
        ({"count": 190}, "190 is no size"),
        ({"count": 405}, "405 is no size"),
        ({"count": 410}, "410 is no size"),
        ({"cycle": ""}, "no name of a cycle"),
        ({"cycle": "a/b"}, "no name of a cycle"),
    ],
)
def test_what_cannot_be_a_gate_is_refused(over: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        made(**over)


def test_draws_are_even_and_labels_part_them() -> None:
    draw = Draw(SEED, "even")
    counts = Counter(draw.below(10) for _ in range(20_000))
    assert set(counts) == set(range(10))
    assert max(counts.values()) - min(counts.values()) < 300
    assert [Draw(SEED, "a").below(2**40) for _ in range(2)] == [Draw(SEED, "a").below(2**40)] * 2
    assert Draw(SEED, "a").below(2**40) != Draw(SEED, "b").below(2**40)
    assert sorted(draw.some(range(9), 9)) == list(range(9))
    assert {draw.between(3, 5) for _ in range(99)} == {3, 4, 5}


def test_values_are_written_as_each_language_writes_them() -> None:
    assert written_number(Decimal("1249.9"), "de", 2) == "1.249,90"
    assert written_number(Decimal("1249.9"), "en", 2) == "1,249.90"
    assert written_number(1200, "de") == "1.200"
    for number in range(50):
        iban = german_iban(Draw(SEED, f"{number}"))
        assert len(iban) == 22
        assert int("".join(str(int(one, 36)) for one in iban[4:] + iban[:4])) % 97 == 1
        assert in_fours(iban).replace(" ", "") == iban


def test_every_template_draws_something_else_for_another_label() -> None:
    for templates in _TEMPLATES.values():
        for name, template in templates.items():
            for language in ("de", "en"):
                asks = {template(Draw(SEED, f"{number}"), language).ask for number in range(20)}
                assert len(asks) > 10, name
