"""How values are written in German and in English, and the names that requests are about."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Literal

from referee.benchmarks.bakeoff.templates.draw import Draw

Language = Literal["de", "en"]

_MONTHS: dict[Language, tuple[str, ...]] = {
    "de": (
        *("Januar", "Februar", "März", "April", "Mai", "Juni"),
        *("Juli", "August", "September", "Oktober", "November", "Dezember"),
    ),
    "en": (
        *("January", "February", "March", "April", "May", "June"),
        *("July", "August", "September", "October", "November", "December"),
    ),
}

FIRST_NAMES = ("anna", "bela", "carla", "deniz", "emil", "frieda", "goran", "hanna", "ivo", "jule", "karim", "lena")
LAST_NAMES = ("ahrens", "brandt", "celik", "dietz", "engel", "falk", "gruber", "horvat", "ilic", "jansen", "keller")
FIRMS = (
    "Nordwerk",
    "Halle & Sohn",
    "Kontor Weiss",
    "Atelier Brunn",
    "Ostkreuz Logistik",
    "Ferrum",
    "Lindwurm",
    "Papyrus",
)
LEGAL_FORMS = ("GmbH", "AG", "KG", "GmbH & Co. KG", "Ltd.")
CITIES = ("Porto", "Graz", "Lyon", "Oslo", "Basel", "Bologna", "Malmö", "Tallinn", "Bergen", "Dresden", "Leeds", "Cork")
STATIONS = (
    "Bremen",
    "Erfurt",
    "Kassel",
    "Ulm",
    "Jena",
    "Halle",
    "Fulda",
    "Leipzig",
    "Rostock",
    "Bonn",
    "Trier",
    "Graz",
)
PROJECTS = (
    "atlas",
    "birke",
    "corona",
    "delta",
    "eiche",
    "falke",
    "granit",
    "hydra",
    "iris",
    "kobalt",
    "lotus",
    "merkur",
)
SERVICES = (
    "payments",
    "search",
    "billing",
    "catalogue",
    "checkout",
    "mailer",
    "ledger",
    "gateway",
    "reports",
    "images",
)
SUBJECTS: dict[Language, tuple[str, ...]] = {
    "de": ("Steuerunterlagen", "Blutabnahme", "Wartungsvertrag", "Heizungsablesung", "Probenentnahme", "Reisepass"),
    "en": ("tax documents", "blood test", "maintenance contract", "meter reading", "water samples", "passport"),
}
MEETINGS: dict[Language, tuple[str, ...]] = {
    "de": ("Budgetrunde", "Quartalsplanung", "Lieferantengespräch", "Projektauftakt", "Rückschau", "Abnahme"),
    "en": ("Budget round", "Quarterly planning", "Supplier talk", "Project kick-off", "Retrospective", "Acceptance"),
}
NOTES: dict[Language, tuple[str, ...]] = {
    "de": ("Ersatzteil ist bestellt", "Rückruf ist vereinbart", "Gerät wurde getauscht", "Warten auf den Hersteller"),
    "en": ("Spare part is ordered", "A call back is arranged", "The device was replaced", "Waiting for the vendor"),
}
PRODUCTS: dict[Language, tuple[str, ...]] = {
    "de": ("Schreibtischlampe", "Wasserkocher", "Rucksack", "Geschenkkarte", "Regenjacke"),
    "en": ("Desk lamp", "Kettle", "Rucksack", "Gift card", "Rain jacket"),
}


def written_date(day: date, language: Language, draw: Draw) -> str:
    """A day in one of the language's usual forms, one a request; never one in which day and month could be swapped."""
    month = _MONTHS[language][day.month - 1]
    if language == "de":
        return draw.habit("date", (f"{day.day}. {month} {day.year}", f"{day.day:02}.{day.month:02}.{day.year}"))
    return draw.habit("date", (f"{day.day} {month} {day.year}", f"{month} {day.day}, {day.year}"))


def written_number(value: Decimal | int, language: Language, places: int = 0) -> str:
    """A number with groups of three and the language's decimal mark."""
    text = f"{value:,.{places}f}"
    return text.translate(str.maketrans(",.", ".,")) if language == "de" else text


def plain_number(value: Decimal) -> float:
    """The number as JSON has it."""
    return float(value)


def clock(minutes: int) -> str:
    """Minutes after midnight as HH:MM."""
    return f"{minutes // 60:02}:{minutes % 60:02}"


def german_iban(draw: Draw) -> str:
    """An IBAN with a correct check number, of a bank code that no bank has."""
    body = f"999{draw.digits(15)}"
    check = 98 - int(f"{body}131400") % 97  # D is 13, E is 14
    return f"DE{check:02}{body}"


def in_fours(text: str) -> str:
    """An IBAN as it is printed, in groups of four."""
    return " ".join(text[at : at + 4] for at in range(0, len(text), 4))


def login(draw: Draw) -> str:
    """A user name."""
    return f"{draw.pick(FIRST_NAMES)[0]}.{draw.pick(LAST_NAMES)}"


def sku(draw: Draw) -> str:
    """An article number."""
    letters = "ABCDEFGHKLMNPRSTUVWXZ"
    return f"{draw.pick(letters)}{draw.pick(letters)}-{draw.between(1000, 9999)}"
