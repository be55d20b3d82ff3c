"""The linter: one broken case for each rule, the same case whole beside it, and nothing that makes it crash."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from referee.core.bakeoff import Subset
from referee.core.cases import Case, Suite
from referee.scoring.lint import Objection, contradictions, lint, lint_subset, without_refused
from tests.bakeoff.suites import BOOK_ROOM, FREE_ROOM, case_body, suite_of


def rules(*cases: dict[str, Any], **over: Any) -> list[str]:
    return [objection.rule for objection in lint(suite_of(*cases, **over))]


def gold(asked: str = "Book the blue room on 2026-07-24.", **arguments: Any) -> dict[str, Any]:
    return case_body(
        messages=[{"role": "user", "content": asked}],
        expected_call={
            "name": "book_room",
            "arguments": {"room": {"eq": "blue"}, "date": {"eq": "2026-07-24"}} | arguments,
        },
    )


def test_a_sound_case_is_not_objected_to() -> None:
    assert rules(case_body()) == []


@pytest.mark.parametrize(
    ("case", "rule", "said"),
    [
        (gold(room={"eq": "red"}), "gold-outside-enum", "c1 expects `room` to be 'red'"),
        (gold(room={"anyOf": ["red", "pink"]}), "gold-outside-enum", "'red'"),
        (gold(persons={"eq": "many"}), "gold-against-schema", "not of type 'integer'"),
        (gold(colour={"eq": "blue"}), "gold-not-in-schema", "the argument `colour`"),
        (gold(title={"anyOf": []}), "unsatisfiable-gold", "lists no value that `title` may have"),
        (gold(date=None), "gold-against-schema", "'date' is a required property"),
        (gold(title="blue"[:3]), "short-loose-gold", "the loose gold 'blu'"),
        (gold(extras=["blue", "on"]), "short-loose-gold", "`extras[1]`"),
        (gold(title={"anyOf": ["blue room", "on"]}), "short-loose-gold", "'on'"),
        (gold(title="Lunch with Ada"), "ungrounded-gold", "at `title`, 'Lunch with Ada'"),
        (gold(persons=13), "ungrounded-gold", "at `persons`, 13"),
        (gold(date={"eq": "2026-07-25"}), "ungrounded-gold", "at `date`"),
        (case_body(expected_call={"name": "paint_room", "arguments": {}}), "unknown-tool", "expects paint_room"),
        (case_body(category="abstain"), "category-against-oracle", "expects a call"),
        (case_body(expected_call=None), "category-against-oracle", "expects no call"),
        (gold() | {"source": {"derived": "persons: six pairs"}}, "derivation", "has nothing there"),
        (gold() | {"source": {"derived": "whatever"}}, "derivation", "not written PATH: how"),
        (gold() | {"source": {"trap": "no-suitable-tool"}, "arm": "aside"}, "toolset-of-trap", "the toolset rooms"),
    ],
    ids=lambda value: value if isinstance(value, str) and "-" in value and " " not in value else "",
)
def test_each_fault_is_named_with_its_case(case: dict[str, Any], rule: str, said: str) -> None:
    arms = [{"name": name, "headline": name == "suite", "ranked": True, "about": "x"} for name in ("suite", "aside")]
    (objection,) = lint(suite_of(case, arms=arms))
    assert objection.rule == rule
    assert said in objection.sentence
    assert "c1" in objection.sentence
    assert not objection.known


def test_the_first_generation_takes_short_loose_golds() -> None:
    assert rules(gold(title="on"), grading=1) == []
    assert rules(gold(title={"eq": "on"})) == []


def test_an_alternative_that_the_schema_allows_is_enough() -> None:
    assert rules(gold(room={"anyOf": ["red", "blue"]})) == []
    assert rules(gold(persons={"anyOf": [None, 24]})) == []
    assert rules(gold(extras={"anyOf": [None, []]})) == []


def test_a_gold_that_does_not_pass_as_an_answer_is_unsatisfiable() -> None:
    several = {
        "category": "multi-call-ordering",
        "expected_call": ...,
        "policy": {"exactlyOne": True, "callOrder": "any"},
    }
    call = {"name": "free_room", "arguments": {"room": {"eq": "blue"}}}
    assert "policy-against-oracle" in rules(case_body(**several, expected_calls=[call, call]))


@pytest.mark.parametrize(
    ("asked", "value"),
    [
        ("für 1.250,50 Euro", 1250.5),
        ("for 1,250.50 euros", 1250.5),
        ("1.200 Stück", 1200),
        ("1,200 pieces", 1200),
        ("1 200 pieces", 1200),
        ("zu je 0,085 Euro", 0.085),
        ("bei -4,5 Grad", -4.5),
        ("zwei Personen", 2),
        ("seven people", 7),
        ("einem Gast", 1),
        ("3 % of it", 0.03),
        ("12,5 Prozent", 0.125),
        ("Zimmer 12-15", 15),
        ("in IBAN DE44 5001", 5001),
    ],
)
def test_numbers_are_found_however_they_are_written(asked: str, value: float) -> None:
    number = {"name": "tell", "parameters": {"type": "object", "properties": {"n": {"type": "number"}}}}

    def of(n: float) -> list[str]:
        case = case_body(
            messages=[{"role": "user", "content": f"Tell: {asked}."}],
            expected_call={"name": "tell", "arguments": {"n": n}},
        )
        return rules(case, toolsets={"rooms": [number]})

    assert of(value) == []
    assert of(value + 0.25) == ["ungrounded-gold"]


@pytest.mark.parametrize(
    ("asked", "value"),
    [
        ("am 3. Dezember 2026", "2026-12-03"),
        ("am 03.12.2026", "2026-12-03"),
        ("on December 3, 2026", "2026-12-03"),
        ("on the 3rd of December 2026", "2026-12-03"),
        ("on 3 Dec 2026", "2026-12-03"),
        ("um 7:45 pm", "19:45"),
        ("um 19.45 Uhr", "19:45"),
        ("um 19 Uhr", "19:00"),
        ("at 12 am", "00:00"),
        ("on 3 December 2026 at 19:45", "2026-12-03T19:45"),
        ("IBAN AT61 1904 3002 3457 3201", "AT611904300234573201"),
        ("Betreff „Größe M“", "Größe M"),
        ("the file /a b/c.txt", "/a b/c.txt"),
    ],
)
def test_texts_dates_and_times_are_found_however_they_are_written(asked: str, value: str) -> None:
    assert rules(gold(f"Book the blue room on 2026-07-24: {asked}.", title={"eq": value})) == []
    assert rules(gold(f"Book the blue room on 2026-07-24: {asked}.", title={"eq": value[:-1] + "9"})) == [
        "ungrounded-gold"
    ]


def test_what_the_schema_says_of_an_argument_fixes_its_value() -> None:
    said = {
        "n": {"type": "integer", "description": "Percent, 0 (off) to 100."},
        "m": {"type": "integer", "default": 44},
    }
    tool = {"name": "light", "parameters": {"type": "object", "properties": said}}
    off = case_body(expected_call={"name": "light", "arguments": {"n": 0, "m": 44}})
    assert rules(off, toolsets={"rooms": [tool]}) == []
    swapped = case_body(expected_call={"name": "light", "arguments": {"n": 44}})
    assert rules(swapped, toolsets={"rooms": [tool]}) == ["ungrounded-gold"]


def test_a_declared_derivation_fixes_the_value_at_its_path_alone() -> None:
    case = gold(persons=24, title="Two dozen guests")
    assert rules(case | {"source": {"derived": "persons: two dozen"}}) == ["ungrounded-gold"]
    assert rules(case | {"source": {"derived": "persons: two dozen\ntitle: as the user means it"}}) == []


SEVERAL = {
    "category": "multi-call-ordering",
    "expected_call": ...,
    "messages": [{"role": "user", "content": "Free the blue room, then the green one."}],
    "expected_calls": [{"name": "free_room", "arguments": {"room": {"eq": room}}} for room in ("blue", "green")],
}
ABSTAIN = {"category": "abstain", "expected_call": None}


def made(**over: Any) -> Case:
    return Case.model_validate(case_body(**over))


@pytest.mark.parametrize(
    ("prompt", "over"),
    [
        ("You have tools. Call exactly one tool for each request.", SEVERAL),
        ("Emit exactly one entry in tool_calls.", SEVERAL),
        ("Use only one function.", SEVERAL),
        ("Make one call at a time", SEVERAL),
        ("One tool per answer!", SEVERAL),
        ("Rufe genau ein Werkzeug auf.", SEVERAL),
        ("Nutze höchstens ein Werkzeug.", SEVERAL),
        ("Pro Antwort ist genau ein Aufruf erlaubt", SEVERAL),
        ("Ein Werkzeug pro Antwort.", SEVERAL),
        ("Schreibe einen einzigen Eintrag.", SEVERAL),
        ("Never call more than one tool.", SEVERAL),
        ("Do not make more than one tool call.", SEVERAL),
        ("Limit yourself to one tool call.", SEVERAL),
        ("Choose one tool.", SEVERAL),
        ("Pick the one tool that fits best and call it.", SEVERAL),
        ("Choose a suitable tool and call it.", SEVERAL),
        ("Your reply contains a single call.", SEVERAL),
        ("Nutze niemals mehr als ein Werkzeug.", SEVERAL),
        ("Wähle ein Werkzeug und rufe es auf.", SEVERAL),
        ("Make the calls in any order.", SEVERAL),
        ("Die Reihenfolge ist egal.", SEVERAL),
        ("Always call a tool.", ABSTAIN),
        ("You must use one of the tools.", ABSTAIN),
        ("For every request, call exactly one tool.", ABSTAIN),
        ("Never answer in plain text.", ABSTAIN),
        ("Respond only with tool calls.", ABSTAIN),
        ("Only answer with a tool call.", ABSTAIN),
        ("Answer every question by calling a tool.", ABSTAIN),
        ("Every request must be answered with a tool call.", ABSTAIN),
        ("Du musst ein Werkzeug aufrufen.", ABSTAIN),
        ("Antworte ausschließlich mit Werkzeugaufrufen.", ABSTAIN),
        ("Rufe immer ein Werkzeug auf.", ABSTAIN),
        ("Rufe zu jeder Bitte ein Werkzeug auf.", ABSTAIN),
        ("Antworte niemals in Worten.", ABSTAIN),
        ("Do not call any tool.", {}),
        ("Answer without using tools.", {}),
        ("Answer without tools.", {}),
        ("No tool calls are allowed.", {}),
        ("Tools are forbidden.", {}),
        ("Du darfst kein Werkzeug nutzen.", {}),
        ("Rufe kein Werkzeug auf.", {}),
        ("Antworte ohne Werkzeuge.", {}),
    ],
)
def test_a_prompt_that_contradicts_its_oracle_is_found(prompt: str, over: dict[str, Any]) -> None:
    assert contradictions(f"Du hilfst gern.\n{prompt} Thanks", made(**over))
    (objection,) = lint(suite_of(case_body(**over, prompt="p"), prompts={"p": prompt}))
    assert objection.rule == "prompt-against-oracle"
    assert "c1" in objection.sentence
    in_request = case_body(**over)
    in_request["messages"] = [*in_request["messages"], {"role": "user", "content": prompt}]
    assert rules(in_request) == ["prompt-against-oracle"]


@pytest.mark.parametrize(
    ("prompt", "over"),
    [
        ("Call exactly one tool.", {}),
        ("Rufe genau ein Werkzeug auf.", {}),
        ("Make all calls in one answer, in the order in which they are to be carried out.", SEVERAL),
        ("Reply with exactly one JSON object.", SEVERAL),
        ("Mache alle Aufrufe in einer Antwort.", SEVERAL),
        ("Always call a tool when one fits.", ABSTAIN),
        ("Rufe immer ein Werkzeug auf, wenn eines passt.", ABSTAIN),
        ("Rufe immer ein Werkzeug auf, außer keines passt.", ABSTAIN),
        ("If no tool does what is asked, do not call any tool.", {}),
        ("Passt kein Werkzeug, dann rufe kein Werkzeug auf.", {}),
        ("Do not use any tool, file or command of the program you run in.", {}),
        ("The order does not matter.", {}),
        ("Do not hesitate to call more than one tool.", SEVERAL),
        ("Call one tool or more.", SEVERAL),
        ("Choose one tool for each of the steps.", SEVERAL),
        ("Wähle ein Werkzeug für jeden Schritt.", SEVERAL),
        ("Never call a tool more than once.", SEVERAL),
        ("You may call a tool.", ABSTAIN),
        ("Du musst kein Werkzeug aufrufen.", ABSTAIN),
        ("Du musst kein Werkzeug aufrufen.", {}),
        ("No tool may be called twice.", {}),
        ("Answer without delay, and use the tools.", {}),
    ],
)
def test_a_prompt_that_leaves_the_right_way_open_is_none(prompt: str, over: dict[str, Any]) -> None:
    assert contradictions(prompt, made(**over)) == ()


def test_a_known_objection_is_reported_and_may_stand_unranked_only() -> None:
    def objections(*, ranked: bool) -> tuple[Objection, ...]:
        case = case_body(**SEVERAL, prompt="p", known_objection="kept to be seen")
        arm = {"name": "suite", "headline": ranked, "ranked": ranked, "about": "x"}
        return lint(suite_of(case, prompts={"p": "Call exactly one tool."}, arms=[arm]))

    assert [(one.rule, one.known) for one in objections(ranked=False)] == [("prompt-against-oracle", True)]
    assert [(one.rule, one.known) for one in objections(ranked=True)] == [
        ("prompt-against-oracle", True),
        ("known-objection-ranked", False),
    ]


def test_the_template_of_the_confounded_arm_is_part_of_what_is_said() -> None:
    """Agent CLIs are told there to emit one entry, whatever the suite's own prompt says."""
    arm = {"name": "ordering-v1", "headline": False, "ranked": True, "about": "x"}
    case = case_body(**SEVERAL, arm="ordering-v1")
    assert [(one.rule, one.known) for one in lint(suite_of(case, arms=[arm]))] == [("prompt-against-oracle", False)]
    assert lint(suite_of(case_body(arm="ordering-v1"), arms=[arm])) == ()


def test_a_twin_differs_in_arm_and_prompt_alone() -> None:
    first = case_body()
    assert rules(first, case_body(id="c2", twin="c1", prompt="p"), prompts={"p": "Be brief."}) == []
    assert rules(first, gold() | {"id": "c2", "twin": "c1"}) == ["twin"]


def test_languages_stand_in_equal_parts_in_an_arm_of_both() -> None:
    english, german = (
        [case_body(id=f"e{n}") for n in range(3)],
        [case_body(id=f"d{n}", language="de") for n in range(2)],
    )
    assert rules(*english, *german) == []
    assert rules(*english, german[0]) == ["languages"]
    assert rules(*english) == []
    assert rules(*english, german[0], provenance={"imported": "somewhere"}) == []


def test_an_imported_suite_may_say_that_its_golds_are_not_fixed() -> None:
    case = gold(persons=13)
    assert rules(case, provenance={"imported": "somewhere"}) == ["ungrounded-gold"]
    assert rules(case, provenance={"ungrounded": "kept"}) == ["ungrounded-gold"]
    assert rules(case, provenance={"imported": "somewhere", "ungrounded": "kept"}) == []


def test_a_schema_that_is_none_is_named_once_and_refuses_its_cases() -> None:
    for parameters in (
        {"type": "objekt"},
        {"type": "string"},
        {"type": "object", "properties": {"a": {"minimum": "1"}}},
    ):
        broken = {"name": "broken", "parameters": parameters}
        suite = suite_of(
            case_body(), case_body(id="c2", toolset="odd"), toolsets={"rooms": [BOOK_ROOM], "odd": [broken]}
        )
        (objection,) = lint(suite)
        assert (objection.rule, objection.case) == ("broken-schema", "odd")
        kept, refused = without_refused(suite)
        assert kept is not None
        assert [case.id for case in kept.cases] == ["c1"]
        assert [refusal.case.id for refusal in refused] == ["c2"]
        assert set(kept.toolsets) == {"rooms"}


def test_a_schema_cannot_lead_out_of_the_suite() -> None:
    away = {"type": "object", "properties": {"room": {"$ref": "http://127.0.0.1:9/schema.json"}}}
    (objection,) = lint(
        suite_of(
            case_body(expected_call={"name": "away", "arguments": {"room": "blue"}}),
            toolsets={"rooms": [{"name": "away", "parameters": away}]},
        )
    )
    assert objection.rule == "gold-against-schema"
    assert "leads nowhere" in objection.sentence


def test_what_the_linter_refuses_is_left_out_with_its_reasons() -> None:
    suite = suite_of(case_body(), gold(room={"eq": "red"}) | {"id": "c2", "prompt": "p"}, prompts={"p": "Be brief."})
    kept, refused = without_refused(suite)
    assert kept is not None
    assert [case.id for case in kept.cases] == ["c1"]
    assert kept.prompts == {}
    assert [(one.case.id, [each.rule for each in one.objections]) for one in refused] == [("c2", ["gold-outside-enum"])]
    assert lint(kept) == ()
    nothing, refused = without_refused(suite_of(gold(room={"eq": "red"})))
    assert nothing is None
    assert len(refused) == 1


def test_a_subset_is_balanced_and_names_cases_of_the_suite_once() -> None:
    cases = [case_body(id=f"c{n}") for n in range(6)] + [case_body(id=f"a{n}", **ABSTAIN) for n in range(6)]
    suite = suite_of(*cases)

    def found(*names: str) -> list[str]:
        subset = Subset(name="part", why="x", cases=names, repeats=1)
        return [objection.rule for objection in lint_subset(subset, suite)]

    assert found("c0", "c1", "a0") == []
    assert found("c0", "c1", "c2", "c3", "a0") == ["balance"]
    assert found("c0", "c1") == ["balance"]
    assert found("c0", "a0", "x1") == ["unknown-case"]
    assert found("c0", "a0", "a0") == ["doubled-case"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["eq", "anyOf", "a", "type", "properties", "items", "enum", "$ref"]), inner, max_size=3
        )
    ),
    max_leaves=12,
)


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(st.dictionaries(st.sampled_from(["eq", "anyOf", "a", "b"]), JSON, max_size=3), JSON, JSON, st.text(max_size=60))
def test_no_gold_schema_or_text_makes_the_linter_crash(arguments: Any, one: Any, derived: Any, text: str) -> None:
    parameters = {"type": "object", "properties": {"a": one, "b": {"type": "string"}}}
    body = case_body(
        messages=[{"role": "user", "content": text}],
        toolset="odd",
        expected_call={"name": "odd", "arguments": arguments},
        source={"derived": str(derived)},
    )
    suite = Suite.model_validate(
        suite_of().model_dump(by_alias=True, exclude={"cases"})
        | {"toolsets": {"rooms": [FREE_ROOM], "odd": [{"name": "odd", "parameters": parameters}]}, "cases": [body]}
    )
    for objection in lint(suite):
        assert objection.sentence
        assert objection.case in objection.sentence


def test_a_gold_nested_too_deeply_is_an_objection() -> None:
    deep: Any = "blue"
    for _ in range(5000):
        deep = [deep]
    call = {"name": "book_room", "arguments": {"room": "blue", "date": "2026-07-24", "extras": deep}}
    suite = suite_of()
    case = suite.cases[0].model_copy(update={"expected_call": suite.cases[0].golds[0].model_copy(update=call)})
    assert [one.rule for one in lint(suite.model_copy(update={"cases": (case,)}))] == ["too-deep"]
