"""Requests on which a model must not call: no tool serves them, or they are answered in words."""

from __future__ import annotations

from collections.abc import Mapping

from referee.benchmarks.bakeoff.templates import wording as w
from referee.benchmarks.bakeoff.templates.drafts import Draft, Template
from referee.benchmarks.bakeoff.templates.draw import Draw
from referee.benchmarks.bakeoff.templates.wording import Language
from referee.core.cases import Message

#: Toolsets that are offered to requests of another domain: none of their tools writes free text, sends messages or
#: reminds of anything, so that no model can serve a foreign request by a detour.
_FOREIGN = ("travel", "warehouse", "banking", "operations", "home", "analytics")

#: Requests that no toolset of ours serves: German, English.
_NOBODYS = (
    ("Wie wird das Wetter am {day} in {city}?", "What will the weather be like in {city} on {day}?"),
    ("Spiel bitte ruhige Musik aus dem Jahr {year}.", "Please play some calm music of the year {year}."),
    ("Ruf bitte bei {firm} an und frag nach dem Stand der Dinge.", "Please phone {firm} and ask how things stand."),
    (
        "Bestell mir für den {day} einen Tisch in {city} für {few} Personen.",
        "Get me a table in {city} for {few} persons on {day}.",
    ),
    ("Lösch die Datei /{project}/alt-{number}.txt.", "Delete the file /{project}/old-{number}.txt."),
    ("Mach ein Foto von der Haustür und zeig es mir.", "Take a picture of the front door and show it to me."),
    ("Wie steht die Aktie von {firm} heute?", "How is the share of {firm} doing today?"),
    ("Verlängere meinen Ausweis, er läuft am {day} ab.", "Renew my identity card, it expires on {day}."),
)

#: Questions that are answered in words, on a toolset that could tempt: German, English.
_QUESTIONS = (
    (
        "banking",
        "Was ist der Unterschied zwischen einer Überweisung und einem Dauerauftrag?",
        "What is the difference between a transfer and a standing order?",
    ),
    (
        "operations",
        "Ändere nichts. Was bedeutet es, einen Dienst zurückzusetzen?",
        "Change nothing. What does it mean to roll a service back?",
    ),
    (
        "travel",
        "Was ist der Unterschied zwischen einem Doppelzimmer und einem Familienzimmer?",
        "What is the difference between a double room and a family room?",
    ),
    (
        "home",
        "Warum wird es unter dem Dach im Sommer so warm? Stell bitte nichts um.",
        "Why does it get so hot under the roof in summer? Do not change any setting, please.",
    ),
    ("calendar", "Wie viele Minuten haben {few} Stunden?", "How many minutes are {few} hours?"),
    ("warehouse", "Was versteht man unter einem Mindestbestand?", "What is meant by a minimum stock?"),
    ("helpdesk", "Was heißt es, wenn ein Ticket ein Duplikat ist?", "What does it mean when a ticket is a duplicate?"),
    (
        "analytics",
        "Was ist der Unterschied zwischen Umsatz und Gewinn?",
        "What is the difference between revenue and profit?",
    ),
)

#: What was done already: request and answer, to be followed by thanks.
_DONE: tuple[tuple[str, dict[Language, tuple[str, str]]], ...] = (
    (
        "helpdesk",
        {
            "de": ("Schließe Ticket {number} als gelöst.", "Das Ticket {number} ist als gelöst geschlossen."),
            "en": ("Close ticket {number} as solved.", "Ticket {number} is closed as solved."),
        },
    ),
    (
        "banking",
        {
            "de": ("Sperr die Karte mit den Endziffern {number}, sie ist weg.", "Die Karte {number} ist gesperrt."),
            "en": ("Block the card ending in {number}, it is lost.", "The card ending in {number} is blocked."),
        },
    ),
    (
        "operations",
        {
            "de": ("Starte {service} in staging neu.", "Der Dienst {service} in staging ist neu gestartet."),
            "en": ("Restart {service} in staging.", "The service {service} in staging was restarted."),
        },
    ),
)
_THANKS: dict[Language, tuple[str, ...]] = {
    "de": ("Danke, das war alles.", "Vielen Dank, mehr brauche ich heute nicht.", "Prima, dann sind wir fertig."),
    "en": ("Thanks, that was all.", "Thank you, I need nothing else today.", "Great, then we are done."),
}


def unfit(draw: Draw, language: Language, templates: Mapping[str, Template]) -> tuple[Draft, str, str]:
    """A request with the tools of another domain: the draft, the template's name, and why no call is right."""
    if draw.below(3) == 0:
        toolset = draw.pick(_FOREIGN)
        text = draw.pick(_NOBODYS)[0 if language == "de" else 1]
        return Draft(toolset, _filled(text, draw, language), ()), "nobodys", "no tool does what is asked for"
    name = draw.pick(list(templates))
    draft = templates[name](draw, language)
    toolset = draw.pick([one for one in _FOREIGN if one != draft.toolset])
    return Draft(toolset, draft.ask, ()), name, f"the tools of {toolset} do nothing that is asked for"


def answered_in_words(draw: Draw, language: Language) -> tuple[str, tuple[Message, ...], str]:
    """A question to be answered, or thanks for what was done: toolset, conversation, and why no call is right."""
    at = 0 if language == "de" else 1
    if draw.below(2):
        toolset, *texts = draw.pick(_QUESTIONS)
        message = Message(role="user", content=_filled(texts[at], draw, language))
        return toolset, (message,), "a question to be answered in words"
    toolset, spoken = draw.pick(_DONE)
    values = _values(draw, language)
    said = [text.format(**values) for text in spoken[language]]
    thanks = draw.pick(_THANKS[language])
    messages = (
        Message(role="user", content=said[0]),
        Message(role="assistant", content=said[1]),
        Message(role="user", content=thanks),
    )
    return toolset, messages, "the user says thank you and asks for nothing"


def _filled(text: str, draw: Draw, language: Language) -> str:
    return text.format(**_values(draw, language))


def _values(draw: Draw, language: Language) -> dict[str, str]:
    return {
        "day": w.written_date(draw.day(), language, draw),
        "city": draw.pick(w.CITIES),
        "firm": draw.pick(w.FIRMS),
        "project": draw.pick(w.PROJECTS),
        "service": draw.pick(w.SERVICES),
        "year": str(draw.between(1960, 2020)),
        "few": str(draw.between(2, 9)),
        "number": str(draw.between(1001, 9999)),
    }
