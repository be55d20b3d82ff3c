"""Templates of simple calls and of tool selection: one call, its near neighbours in the same toolset."""

from __future__ import annotations

from decimal import Decimal

from referee.benchmarks.bakeoff.templates import wording as w
from referee.benchmarks.bakeoff.templates.drafts import Draft, Template, call, eq
from referee.benchmarks.bakeoff.templates.draw import Draw
from referee.benchmarks.bakeoff.templates.wording import Language

#: Rooms: value, German with article in the dative and the accusative, English.
ROOMS = (
    ("living_room", "im Wohnzimmer", "das Wohnzimmer", "the living room"),
    ("bedroom", "im Schlafzimmer", "das Schlafzimmer", "the bedroom"),
    ("kitchen", "in der Küche", "die Küche", "the kitchen"),
    ("study", "im Arbeitszimmer", "das Arbeitszimmer", "the study"),
)
SITES = (
    ("nord", "Lager Nord", "north warehouse"),
    ("sued", "Lager Süd", "south warehouse"),
    ("hafen", "Lager Hafen", "harbour warehouse"),
)
ENVIRONMENTS = ("dev", "staging", "production")


def thermostat(draw: Draw, language: Language) -> Draft:
    """A room and half degrees."""
    room, place, _, english = draw.pick(ROOMS)
    degrees = Decimal(draw.between(32, 47)) / 2
    said = w.written_number(degrees, language, 1)
    asks = (
        (
            f"Stell die Heizung {place} auf {said} Grad.",
            f"Ich hätte es {place} gern {said} Grad warm, stell das bitte ein.",
        )
        if language == "de"
        else (
            f"Set the heating in {english} to {said} degrees.",
            f"I would like {english} at {said} degrees, please set it.",
        )
    )
    lacking = (
        (f"Mach es bitte {said} Grad warm.", "room")
        if language == "de"
        else (f"Make it {said} degrees warm, please.", "room")
    )
    expected = call("set_thermostat", room=eq(room), celsius=w.plain_number(degrees))
    return Draft("home", draw.pick(asks), (expected,), lacking=(lacking,))


def card_limit(draw: Draw, language: Language) -> Draft:
    """The last digits of a card and a whole amount."""
    digits, limit = draw.digits(4), draw.between(8, 90) * 50
    said = w.written_number(limit, language)
    if language == "de":
        ask = draw.pick(
            (
                f"Setze das Tageslimit der Karte mit den Endziffern {digits} auf {said} Euro.",
                f"Meine Karte, die auf {digits} endet, soll ein Tageslimit von {said} Euro bekommen.",
            )
        )
        lacking = (
            (f"Setze das Tageslimit meiner Karte auf {said} Euro.", "last_four"),
            (f"Ändere bitte das Tageslimit der Karte mit den Endziffern {digits}.", "daily_limit"),
        )
    else:
        ask = draw.pick(
            (
                f"Set the daily limit of the card ending in {digits} to {said} euros.",
                f"My card that ends in {digits} should get a daily limit of {said} euros.",
            )
        )
        lacking = (
            (f"Set the daily limit of my card to {said} euros.", "last_four"),
            (f"Change the daily limit of the card ending in {digits}, please.", "daily_limit"),
        )
    return Draft("banking", ask, (call("set_card_limit", last_four=eq(digits), daily_limit=limit),), lacking=lacking)


def flight_status(draw: Draw, language: Language) -> Draft:
    """A flight number and a date."""
    number = f"{draw.pick(('QX', 'ZV', 'YB', 'WK'))}{draw.between(100, 9899)}"
    day, city = draw.day(), draw.pick(w.CITIES)
    said = w.written_date(day, language, draw)
    if language == "de":
        ask = draw.pick(
            (f"Ist der Flug {number} am {said} pünktlich?", f"Sieh bitte nach, ob {number} am {said} pünktlich ist.")
        )
        lacking = ((f"Ist mein Flug nach {city} am {said} pünktlich?", "flight_number"),)
    else:
        ask = draw.pick(
            (f"Is flight {number} on {said} on time?", f"Please check whether {number} on {said} is on time.")
        )
        lacking = ((f"Is my flight to {city} on {said} on time?", "flight_number"),)
    expected = call("get_flight_status", flight_number=eq(number), date=eq(day.isoformat()))
    return Draft("travel", ask, (expected,), lacking=lacking)


def convert(draw: Draw, language: Language) -> Draft:
    """A path and a format."""
    source, target = draw.some(("pdf", "docx", "odt", "txt"), 2)
    path = f"/{draw.pick(w.PROJECTS)}/{draw.pick(w.LAST_NAMES)}_{draw.between(10, 99)}.{source}"
    asks = (
        (f"Wandle {path} bitte in {target} um.", f"Ich brauche die Datei {path} zusätzlich im Format {target}.")
        if language == "de"
        else (f"Convert {path} to {target}, please.", f"I need the file {path} in the format {target} as well.")
    )
    lacking = (
        (f"Wandle {path} bitte in ein anderes Format um.", "target_format")
        if language == "de"
        else (f"Convert {path} to another format, please.", "target_format")
    )
    expected = call("convert_document", path=eq(path), target_format=eq(target))
    return Draft("office", draw.pick(asks), (expected,), lacking=(lacking,))


def stock(draw: Draw, language: Language) -> Draft:
    """An article and a warehouse."""
    article, (site, german, english) = w.sku(draw), draw.pick(SITES)
    asks = (
        (f"Wie viele Stück {article} liegen im {german}?", f"Sag mir den Bestand von {article} im {german}.")
        if language == "de"
        else (
            f"How many pieces of {article} are in the {english}?",
            f"Tell me the stock of {article} in the {english}.",
        )
    )
    lacking = (
        (f"Wie hoch ist der Bestand im {german}?", "sku")
        if language == "de"
        else (f"How many pieces are in the {english}?", "sku")
    )
    return Draft("warehouse", draw.pick(asks), (call("get_stock", sku=eq(article), site=eq(site)),), lacking=(lacking,))


def standing_order(draw: Draw, language: Language) -> Draft:
    """Money again and again, where money once is the neighbour."""
    firm, iban, amount, day = draw.pick(w.FIRMS), w.german_iban(draw), draw.cents(40, 2400), draw.day()
    interval, german, english = draw.pick(
        (
            ("monthly", "jeden Monat", "every month"),
            ("quarterly", "jedes Quartal", "every quarter"),
            ("yearly", "jedes Jahr", "every year"),
        )
    )
    money, first = w.written_number(amount, language, 2), w.written_date(day, language, draw)
    if language == "de":
        ask = draw.pick(
            (
                f"Ab dem {first} sollen {german} {money} Euro an {firm} gehen, IBAN {iban}.",
                f"Überweise {german} {money} Euro an {firm} (IBAN {iban}), zum ersten Mal am {first}.",
            )
        )
        lacking = (
            (f"Ab dem {first} sollen {german} {money} Euro an {firm} gehen.", "iban"),
            (f"Überweise {german} einen festen Betrag an {firm} (IBAN {iban}), zum ersten Mal am {first}.", "amount"),
        )
    else:
        ask = draw.pick(
            (
                f"From {first} on, {money} euros are to go to {firm} {english}, IBAN {iban}.",
                f"Pay {money} euros {english} to {firm} (IBAN {iban}), for the first time on {first}.",
            )
        )
        lacking = (
            (f"From {first} on, {money} euros are to go to {firm} {english}.", "iban"),
            (f"Pay a fixed amount {english} to {firm} (IBAN {iban}), for the first time on {first}.", "amount"),
        )
    expected = call(
        "create_standing_order",
        recipient=firm,
        iban=eq(iban),
        amount=w.plain_number(amount),
        interval=eq(interval),
        first_on=eq(day.isoformat()),
    )
    return Draft("banking", ask, (expected,), lacking=lacking)


def reminder(draw: Draw, language: Language) -> Draft:
    """A note at a moment, where an event in the calendar is the neighbour."""
    subject, day, minute = draw.pick(w.SUBJECTS[language]), draw.day(), draw.between(28, 80) * 15
    when, at = w.written_date(day, language, draw), w.clock(minute)
    ask = (
        draw.pick(
            (
                f"Erinnere mich am {when} um {at} Uhr an: {subject}. Es soll keine Zeit im Kalender belegen.",
                f"Ich will am {when} um {at} Uhr nur kurz an „{subject}“ erinnert werden, ohne Eintrag im Kalender.",
            )
        )
        if language == "de"
        else draw.pick(
            (
                f"Remind me on {when} at {at} of: {subject}. It must not block any time in my calendar.",
                f'On {when} at {at} I only want a short reminder of "{subject}", nothing that blocks my calendar.',
            )
        )
    )
    lacking = (
        (f"Erinnere mich am {when} an: {subject}. Es soll keine Zeit im Kalender belegen.", "time")
        if language == "de"
        else (f"Remind me on {when} of: {subject}. It must not block any time in my calendar.", "time")
    )
    expected = call("set_reminder", note=subject, date=eq(day.isoformat()), time=eq(at))
    return Draft("calendar", ask, (expected,), lacking=(lacking,))


def roll_back(draw: Draw, language: Language) -> Draft:
    """An earlier release, where a restart is the neighbour."""
    service, environment = draw.pick(w.SERVICES), draw.pick(ENVIRONMENTS)
    release = f"{draw.between(1, 9)}.{draw.between(0, 30)}.{draw.between(0, 12)}"
    if language == "de":
        ask = draw.pick(
            (
                f"Der neue Stand von {service} in {environment} ist fehlerhaft. Setze ihn auf {release} zurück.",
                f"Spiel für {service} in {environment} wieder die Version {release} ein, ein Neustart reicht nicht.",
            )
        )
        lacking = ((f"Setze den Dienst {service} in {environment} auf eine ältere Version zurück.", "release"),)
    else:
        ask = draw.pick(
            (
                f"The new release of {service} in {environment} is broken. Go back to {release}.",
                f"Put release {release} of {service} back in place in {environment}; a restart is not enough.",
            )
        )
        lacking = ((f"Take the service {service} in {environment} back to an older release.", "release"),)
    expected = call("roll_back", service=eq(service), environment=eq(environment), release=eq(release))
    return Draft("operations", ask, (expected,), lacking=lacking)


def comment(draw: Draw, language: Language) -> Draft:
    """A comment, where closing the ticket is the neighbour."""
    ticket, note, visible = draw.between(10_000, 99_999), draw.pick(w.NOTES[language]), bool(draw.below(2))
    if language == "de":
        seen = "für den Kunden sichtbar" if visible else "für den Kunden nicht sichtbar"
        ask = f"Vermerke im Ticket {ticket}, {seen}: „{note}“. Das Ticket bleibt offen."
        lacking = ((f"Vermerke im Ticket, {seen}: „{note}“.", "ticket_id"),)
    else:
        seen = "visible to the customer" if visible else "not visible to the customer"
        ask = f'Add a comment to ticket {ticket}, {seen}: "{note}". The ticket stays open.'
        lacking = ((f'Add a comment to the ticket, {seen}: "{note}".', "ticket_id"),)
    expected = call("add_comment", ticket_id=ticket, text=note, visible_to_customer=visible)
    return Draft("helpdesk", ask, (expected,), lacking=lacking)


def move_event(draw: Draw, language: Language) -> Draft:
    """Another time for an event, where a new one and cancelling are the neighbours."""
    event, day, minute = f"EV-{draw.between(1000, 9999)}", draw.day(), draw.between(16, 36) * 30
    when, at = w.written_date(day, language, draw), w.clock(minute)
    meeting = draw.pick(w.MEETINGS[language])
    if language == "de":
        ask = draw.pick(
            (
                f"Verschiebe {event} auf den {when}, {at} Uhr.",
                f"{event} soll nicht ausfallen, sondern am {when} um {at} Uhr stattfinden.",
            )
        )
        lacking = ((f"Verschiebe den Termin „{meeting}“ auf den {when}, {at} Uhr.", "event_id"),)
    else:
        ask = draw.pick(
            (f"Move {event} to {when}, {at}.", f"{event} shall not be cancelled but take place on {when} at {at}.")
        )
        lacking = ((f'Move the event "{meeting}" to {when}, {at}.', "event_id"),)
    expected = call("move_event", event_id=eq(event), date=eq(day.isoformat()), start_time=eq(at))
    return Draft("calendar", ask, (expected,), lacking=lacking)


SIMPLE: dict[str, Template] = {
    "thermostat": thermostat,
    "card-limit": card_limit,
    "flight-status": flight_status,
    "convert": convert,
    "stock": stock,
}
SELECTION: dict[str, Template] = {
    "standing-order": standing_order,
    "reminder": reminder,
    "roll-back": roll_back,
    "comment": comment,
    "move-event": move_event,
}
