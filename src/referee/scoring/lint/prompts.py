"""Prompt against oracle: instructions under which an obedient model fails by construction. Pure.

The first generation's shared prompt demanded exactly one call where several were expected (bake-off §8); this is the
check that would have found it. It reads German and English instructions sentence by sentence, casefolded (ß is ss); a
sentence that states a condition (``if``, ``wenn`` …) leaves the model a way out and contradicts nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from referee.core.cases import CONFOUNDED_ARM, Case
from referee.scoring.lint.objections import Objection

_TOOL = r"(?:tools?|functions?|calls?|entry|entries|tool[- ]calls?|function[- ]calls?|actions?)"
_WERKZEUG = r"(?:werkzeuge?s?|tools?|funktion(?:en)?|aufrufe?|\w*aufrufe?|eintrag|einträge|aktion(?:en)?)"


#: The narrow sense: a request may well speak of an entry or a call that is none of a tool.
_TOOLS = r"(?:tools?|functions?|(?:tool|function)[- ]calls?)"
_WERKZEUGE = r"(?:werkzeuge?s?|tools?|funktion(?:en)?|(?:werkzeug|funktions|tool)-?aufrufe?n?)"
_EIN = r"ein(?:e[nmrs]?)?"
_ONE = r"(?:one|1|a single)"
#: Not "one or more", "one for each of them": several may follow.
_ALONE = (
    r"(?! (?:or|oder|per|pro|je|nach)\b| (?:for|at|in|after|before|für|bei|zu) (?:each|every|any|a time|jede[mnrs]?)\b)"
)
#: Not "no tool may be called twice".
_AT_ALL = r"(?! (?:to|twice|again|more than|zweimal|erneut|mehr als)\b)"
_CALL = r"(?:call|use|make|emit|invoke|choose|pick|select|give|return)"
_REPLY = r"(?:answer|reply|respond)"
_AUFRUFEN = r"(?:aufrufen|nutzen|verwenden|benutzen)"
_RUFE = r"(?:rufe?|nutze|verwende|benutze)"

_EXACTLY_ONE = re.compile(
    rf"\bexactly (?:one|1|a single) {_TOOL}\b"
    rf"|\b(?:one|1|a single) {_TOOL} for (?:each|every) (?:request|question|message)\b"
    rf"|\bgenau {_EIN} (?:einzige[nrs]? )?{_WERKZEUG}\b"
)
_AT_MOST_ONE = re.compile(
    rf"\b(?:only|just|at most|no more than|never more than) (?:one|1|a single) {_TOOL}\b"
    rf"|\b(?:one|1|a single) {_TOOL} (?:only|at a time|per (?:answer|reply|turn|message|request))\b"
    rf"|\b(?:call|use|make|emit) a single {_TOOL}\b"
    rf"|\b(?:never|not|don't|cannot) (?:ever )?(?:{_CALL} )?more than {_ONE} {_TOOL}\b"
    rf"|\b(?:limit|restrict|confine) (?:yourself|your (?:{_REPLY}|response|output)) to (?:just |only )?{_ONE} {_TOOL}\b"
    rf"|\b{_CALL} (?:just |only )?(?:{_ONE}|the (?:one|single)) (?:best |right |suitable )?{_TOOLS}\b{_ALONE}"
    rf"|\b(?:choose|pick|select) (?:an?|the) (?:\w+ ){{0,2}}{_TOOLS}\b.{{0,60}}\band (?:call|use|invoke) it\b"
    rf"|\b(?:{_REPLY}|response|output) (?:\w+ )?(?:contains?|has|have|holds?|consists? of) (?:just |only )?{_ONE}"
    rf" {_TOOL}\b{_ALONE}"
    rf"|\b(?:nur|höchstens|maximal|lediglich|(?:nie|niemals|nicht|keinesfalls) mehr als) {_EIN} (?:einzige[nrs]? )?"
    rf"{_WERKZEUG}\b"
    rf"|\b{_EIN} einzige[nmrs]? {_WERKZEUG}\b"
    rf"|\b(?:wähle?|suche?|nimm) (?:genau |nur )?(?:{_EIN}|das eine|die eine) (?:\w+ )?{_WERKZEUGE}\b{_ALONE}"
    rf"|\b{_EIN} {_WERKZEUG} (?:pro|je) (?:antwort|nachricht|bitte|anfrage|runde)\b"
)
_MUST_CALL = re.compile(
    rf"\b(?:always|must) (?:call|use|make|emit) (?:an?|some|the|(?:at least |exactly )?one)\b.{{0,40}}\b{_TOOLS}\b"
    rf"|\b(?:call|use|invoke) (?:a|one|at least one) {_TOOLS} (?:for|in|with) (?:each|every|any|all)\b"
    rf"|\bfor (?:each|every) \w+,? (?:you )?(?:must )?(?:call|use|invoke) (?:a|one|at least one|exactly one) {_TOOLS}\b"
    rf"|\b(?:each|every|any|all) \w+ (?:must|should|has to|have to|is to|are to) be (?:answered|handled|met|solved)"
    rf" (?:with|by|through) (?:\w+ ){{0,3}}{_TOOLS}\b"
    rf"|\b{_REPLY}(?: to)? (?:each|every|any|all) \w+ (?:with|by|through) (?:\w+ ){{0,3}}{_TOOLS}\b"
    rf"|\b{_REPLY} (?:only|solely|exclusively) (?:with|by|through|in) (?:\w+ ){{0,3}}{_TOOLS}\b"
    rf"|\bonly {_REPLY} (?:with|by|through|in) (?:\w+ ){{0,3}}{_TOOLS}\b"
    r"|\bnever (?:answer|reply|respond) (?:in|with) (?:plain )?(?:text|words)\b"
    rf"|\b{_RUFE} (?:immer|stets|in jedem fall|(?:zu|bei) jeder \w+|für jede \w+)\b.{{0,40}}\b{_WERKZEUGE}\b"
    rf"|\b(?:immer|stets) (?:mindestens )?{_EIN} {_WERKZEUGE}\b"
    rf"|\b(?:musst|müssen|muss|sollst) (?:immer |stets |zwingend |mindestens |genau ){{0,2}}{_EIN} (?:der )?"
    rf"{_WERKZEUGE} {_AUFRUFEN}\b"
    rf"|\bantworte (?:nur|ausschliesslich|immer|stets) (?:mit|durch) (?:{_EIN} )?{_WERKZEUGE}\b"
    r"|\bantworte (?:nie|niemals) (?:in|mit) (?:worten|text)\b"
)
_NEVER_CALL = re.compile(
    rf"\b(?:never|do not|don't|must not) (?:call|use|invoke|make|emit) (?:a |an |any |the )?{_TOOLS}\b(?!,)"
    rf"|\bwithout (?:calling|using) (?:a |any )?{_TOOLS}\b"
    rf"|\b{_REPLY}(?: \w+){{0,3}} without (?:a |any |the )?{_TOOLS}\b"
    rf"|\bno {_TOOLS} (?:are|is|may be|must be|can be) (?:allowed|permitted|called|used|made|invoked)\b{_AT_ALL}"
    rf"|\b{_TOOLS} (?:are|is) (?:not (?:allowed|permitted)|forbidden|prohibited)\b{_AT_ALL}"
    rf"|(?<!musst )(?<!müssen )(?<!brauchst )\bk{_EIN} {_WERKZEUGE}"
    rf" (?:{_AUFRUFEN}|aufgerufen|genutzt|verwendet|benutzt)\b"
    rf"|\b{_WERKZEUGE} (?:sind|ist) (?:nicht erlaubt|verboten|untersagt)\b"
    rf"|\b{_RUFE} (?:nie|niemals|k{_EIN}) (?:{_EIN} )?{_WERKZEUGE}\b"
    rf"|\bohne {_WERKZEUGE}\b"
)
_ANY_ORDER = re.compile(
    r"\b(?:in (?:any|whatever) order|the order does not matter|in beliebiger reihenfolge|die reihenfolge ist egal)\b"
)
_CONDITION = re.compile(
    r"\b(?:if|when|whenever|where|wherever|unless|until|once|in case"
    r"|wenn|falls|sofern|sobald|solange|ausser|es sei denn|dann|bis)\b"
)
#: A word of every rule above: most requests have none and are passed over.
_WORTH_A_LOOK = re.compile(
    r"tool|function|call|entr|action|werkzeug|funktion|aufruf|eintr|aktion|order|reihenfolge|answer|reply|respond|antwort",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"[.!?;]+(?=\s|$)|\n+")


def contradictions(text: str, case: Case) -> tuple[str, ...]:
    """What in an instruction contradicts the case's oracle: one phrase each, quoting the sentence.

    Args:
        text: a system prompt, a request, or the fixed template that is put around both.
        case: whose oracle is held against it.
    """
    return _found(text, len(case.golds), case.policy.call_order == "strict")


def prompt_objections(case: Case, prompt: str | None) -> Iterator[Objection]:
    """What in the case's system prompt or in its requests contradicts its oracle."""
    spoken = [message.content for message in case.messages if message.role == "user"]
    for origin, text in [("its prompt", prompt or ""), *(("its request", said) for said in spoken)]:
        for phrase in contradictions(text, case):
            yield Objection(case.id, "prompt-against-oracle", f"{origin} contradicts the oracle of {case.id}: {phrase}")
    policy, count = case.policy, len(case.golds)
    if case.arm == CONFOUNDED_ARM and count != 1 and case.known_objection is None:
        # The template around it is part of what an agent CLI is told.
        sentence = f"agent CLIs are told in the arm {case.arm} to emit exactly one entry, and {case.id} expects {count}"
        yield Objection(case.id, "prompt-against-oracle", sentence)
    if policy.exactly_one and count > 1:
        sentence = f"the policy of {case.id} allows exactly one call, and its oracle expects {count}"
        yield Objection(case.id, "policy-against-oracle", sentence)


@lru_cache(maxsize=256)  # a suite has few prompts and many cases
def _found(text: str, expected: int, ordered: bool) -> tuple[str, ...]:
    if _WORTH_A_LOOK.search(text) is None:
        return ()
    return tuple(dict.fromkeys(_contradictions(text, expected, ordered=ordered)))


def _contradictions(text: str, expected: int, *, ordered: bool) -> Iterator[str]:
    for sentence in _SENTENCE.split(text):
        plain = " ".join(sentence.casefold().split())
        said = " ".join(sentence.split())
        said = said if len(said) <= 120 else f"{said[:117]}…"  # noqa: PLR2004 — a quotation, not a page
        one = _EXACTLY_ONE.search(plain)
        if expected > 1 and (one or _AT_MOST_ONE.search(plain)):
            yield f"“{said}” where {expected} calls are expected"
        if _CONDITION.search(plain):
            continue
        if not expected and (one or _MUST_CALL.search(plain)):
            yield f"“{said}” where no call is expected"
        if expected and _NEVER_CALL.search(plain):
            yield f"“{said}” where {'a call is' if expected == 1 else f'{expected} calls are'} expected"
        if expected > 1 and ordered and _ANY_ORDER.search(plain):
            yield f"“{said}” where the order is checked"
