"""Templates of several calls in a given order: every value is known at once, and the order is said."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

from referee.benchmarks.bakeoff.templates import wording as w
from referee.benchmarks.bakeoff.templates.drafts import Draft, Template, call, eq
from referee.benchmarks.bakeoff.templates.draw import Draw
from referee.benchmarks.bakeoff.templates.simple import ROOMS, SITES
from referee.benchmarks.bakeoff.templates.wording import Language
from referee.core.cases import Call


def room(draw: Draw, language: Language) -> Draft:
    """Two or three things in one room."""
    name, german, _, english = draw.pick(ROOMS)
    degrees, brightness = Decimal(draw.between(34, 46)) / 2, draw.between(1, 19) * 5
    position, shut, closed = draw.pick((("closed", "ganz schließen", "close"), ("open", "ganz öffnen", "open")))
    said = w.written_number(degrees, language, 1)
    steps: list[tuple[str, Call]] = (
        [
            ("die Rollläden " + shut, call("move_blinds", room=eq(name), position=eq(position))),
            (f"das Licht auf {brightness} Prozent stellen", call("set_light", room=eq(name), brightness=brightness)),
            (f"die Heizung auf {said} Grad stellen", call("set_thermostat", room=eq(name), celsius=float(degrees))),
        ]
        if language == "de"
        else [
            (f"{closed} the blinds all the way", call("move_blinds", room=eq(name), position=eq(position))),
            (f"set the light to {brightness} percent", call("set_light", room=eq(name), brightness=brightness)),
            (f"set the heating to {said} degrees", call("set_thermostat", room=eq(name), celsius=float(degrees))),
        ]
    )
    chosen = draw.some(steps, draw.between(2, 3))
    texts = [text for text, _ in chosen]
    if language == "de":
        middle = f", danach {texts[1]}" if len(texts) > 2 else ""  # noqa: PLR2004 — three steps
        ask = f"Tu bitte {german} Folgendes, in dieser Reihenfolge: zuerst {texts[0]}{middle}, zum Schluss {texts[-1]}."
    else:
        middle = f", then {texts[1]}" if len(texts) > 2 else ""  # noqa: PLR2004
        ask = f"In {english}, do this in this order: first {texts[0]}{middle}, and finally {texts[-1]}."
    return Draft("home", ask, tuple(step for _, step in chosen))


def tickets(draw: Draw, language: Language) -> Draft:
    """A ticket is handed on, another is closed; in either order."""
    first, second = draw.some((draw.between(10_000, 54_000), draw.between(54_001, 99_999)), 2)
    agent = w.login(draw)
    ending, german, english = draw.pick(
        (
            ("solved", "gelöst", "solved"),
            ("duplicate", "Duplikat", "a duplicate"),
            ("withdrawn", "zurückgezogen", "withdrawn"),
        )
    )
    hand_on = call("assign_ticket", ticket_id=first, agent=eq(agent))
    close = call("close_ticket", ticket_id=second, resolution=eq(ending))
    if draw.below(2):
        ask = (
            f"Weise zuerst das Ticket {first} dem Benutzer {agent} zu. Schließe danach Ticket {second} als {german}."
            if language == "de"
            else f"First assign ticket {first} to the user {agent}. After that, close ticket {second} as {english}."
        )
        return Draft("helpdesk", ask, (hand_on, close))
    ask = (
        f"Schließe zuerst das Ticket {second} als {german} und weise dann das Ticket {first} dem Benutzer {agent} zu."
        if language == "de"
        else f"First close ticket {second} as {english}, then assign ticket {first} to the user {agent}."
    )
    return Draft("helpdesk", ask, (close, hand_on))


def folder(draw: Draw, language: Language) -> Draft:
    """A folder, a file that is moved into it, and sometimes a print of it from there."""
    project, owner, year = draw.pick(w.PROJECTS), draw.pick(w.LAST_NAMES), draw.between(2020, 2029)
    place, source = f"/{project}/{year}", f"/inbox/{owner}-{draw.between(100, 999)}.pdf"
    target, copies, duplex = f"{place}/{owner}.pdf", draw.between(2, 9), bool(draw.below(2))
    calls = [
        call("create_folder", path=eq(place)),
        call("move_file", source=eq(source), destination=eq(target)),
        call("print_document", path=eq(target), copies=copies, duplex=duplex),
    ]
    if language == "de":
        sides = "beidseitig" if duplex else "einseitig"
        texts = [
            f"Lege zuerst den Ordner {place} an.",
            f"Verschiebe dann {source} nach {target}.",
            f"Drucke zum Schluss {target} aus, {copies} Exemplare, {sides}.",
        ]
    else:
        sides = "on both sides of the paper" if duplex else "on one side of the paper only"
        texts = [
            f"First create the folder {place}.",
            f"Then move {source} to {target}.",
            f"Finally print {target}: {copies} copies, {sides}.",
        ]
    count = draw.between(2, 3)
    return Draft("office", " ".join(texts[:count]), tuple(calls[:count]))


def warehouses(draw: Draw, language: Language) -> Draft:
    """Pieces are moved, others are written off; in either order."""
    article, moved, gone = w.sku(draw), draw.between(20, 400), draw.between(2, 19)
    (one, one_de, one_en), (other, other_de, other_en) = draw.some(SITES, 2)
    reason, german, english = draw.pick((("damaged", "beschädigte", "damaged"), ("lost", "verlorene", "lost")))
    move = call("transfer_stock", sku=eq(article), quantity=moved, from_site=eq(one), to_site=eq(other))
    correct = call("correct_stock", sku=eq(article), site=eq(one), difference=-gone, reason=eq(reason))
    if language == "de":
        texts = (
            f"lagere {moved} Stück {article} vom {one_de} ins {other_de} um",
            f"buche {gone} {german} Stück {article} aus dem Bestand im {one_de} aus",
        )
        first, then = "Als Erstes: ", ". Als Zweites: "
    else:
        texts = (
            f"transfer {moved} pieces of {article} from the {one_en} to the {other_en}",
            f"write off {gone} {english} pieces of {article} in the {one_en}",
        )
        first, then = "First, ", ". After that, "
    flipped = bool(draw.below(2))
    order = (1, 0) if flipped else (0, 1)
    ask = f"{first}{texts[order[0]]}{then}{texts[order[1]]}."
    calls = (correct, move) if flipped else (move, correct)
    how = f"{gone} pieces are written off, and the schema says: negative when pieces are missing"
    derived = {f"calls[{calls.index(correct)}].difference": how}
    return Draft("warehouse", ask, calls, derived=derived)


def journey(draw: Draw, language: Language) -> Draft:
    """A car and a room for the same days; in either order."""
    city, start = draw.pick(w.CITIES), draw.day()
    end, guests = start + timedelta(days=draw.between(2, 12)), draw.between(3, 6)
    category, car_de, car_en = draw.pick(
        (
            ("small", "einen Kleinwagen", "a small car"),
            ("estate", "einen Kombi", "an estate car"),
            ("van", "einen Van", "a van"),
        )
    )
    begin, finish = w.written_date(start, language, draw), w.written_date(end, language, draw)
    car = call(
        "rent_car",
        pickup_location=city,
        pickup_date=eq(start.isoformat()),
        return_date=eq(end.isoformat()),
        category=eq(category),
    )
    hotel = call(
        "book_hotel",
        city=city,
        check_in=eq(start.isoformat()),
        check_out=eq(end.isoformat()),
        guests=guests,
        room_type=eq("family"),
    )
    if language == "de":
        texts = (
            f"miete in {city} {car_de}, Abholung am {begin}, Rückgabe am {finish}",
            f"buche in {city} ein Familienzimmer für {guests} Personen, Anreise am {begin}, Abreise am {finish}",
        )
        first, then = "Als Erstes: ", ". Als Zweites: "
    else:
        texts = (
            f"rent {car_en} in {city}, to be picked up on {begin} and returned on {finish}",
            f"book a family room in {city} for {guests} persons, arriving on {begin} and leaving on {finish}",
        )
        first, then = "First, ", ". After that, "
    flipped = bool(draw.below(2))
    order = (1, 0) if flipped else (0, 1)
    ask = f"{first}{texts[order[0]]}{then}{texts[order[1]]}."
    return Draft("travel", ask, (hotel, car) if flipped else (car, hotel))


SEVERAL: dict[str, Template] = {
    "room": room,
    "tickets": tickets,
    "folder": folder,
    "warehouses": warehouses,
    "journey": journey,
}
