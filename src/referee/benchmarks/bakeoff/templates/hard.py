"""Templates of hard arguments: nested objects, lists, enums, dates, amounts, values that are worked out."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

from referee.benchmarks.bakeoff.templates import wording as w
from referee.benchmarks.bakeoff.templates.drafts import Draft, Template, call, eq
from referee.benchmarks.bakeoff.templates.draw import Draw
from referee.benchmarks.bakeoff.templates.simple import ROOMS
from referee.benchmarks.bakeoff.templates.wording import Language
from referee.core.cases import Policy

_ANY_ORDER = Policy(array_order="set")


def purchase(draw: Draw, language: Language) -> Draft:
    """An order of two to four lines, with prices to the tenth of a cent."""
    supplier, day = f"L-{draw.between(100, 999)}", draw.day()
    articles = list(dict.fromkeys(w.sku(draw) for _ in range(draw.between(2, 4))))
    quantities = [draw.between(3, 4000) for _ in articles]
    prices = [_price(draw) for _ in articles]
    when = w.written_date(day, language, draw)
    pieces, each, money = ("Stück", "zu je", "Euro") if language == "de" else ("pieces of", "at", "euros each")
    lines = [
        f"{w.written_number(quantity, language)} {pieces} {article} {each} {_said(price, language)} {money}"
        for article, quantity, price in zip(articles, quantities, prices, strict=True)
    ]
    listed = "; ".join(lines)
    if language == "de":
        ask = f"Bestell beim Lieferanten {supplier}, Lieferung spätestens am {when}: {listed}."
        lacking = (
            (f"Bestell bitte, Lieferung spätestens am {when}: {listed}.", "supplier_id"),
            (f"Bestell beim Lieferanten {supplier}: {listed}.", "deliver_by"),
        )
    else:
        ask = f"Order from the supplier {supplier}, to be delivered by {when} at the latest: {listed}."
        lacking = (
            (f"Please order, to be delivered by {when} at the latest: {listed}.", "supplier_id"),
            (f"Order from the supplier {supplier}: {listed}.", "deliver_by"),
        )
    gold = [
        {"sku": eq(article), "quantity": quantity, "unit_price": w.plain_number(price)}
        for article, quantity, price in zip(articles, quantities, prices, strict=True)
    ]
    expected = call("create_purchase_order", supplier_id=eq(supplier), deliver_by=eq(day.isoformat()), lines=gold)
    return Draft("warehouse", ask, (expected,), _ANY_ORDER, lacking=lacking)


def _price(draw: Draw) -> Decimal:
    """A price in cents, or one below a tenth of the coin, to the tenth of a cent."""
    return Decimal(draw.between(11, 99)) / 1000 if draw.below(3) == 0 else draw.cents(1, 90)


def _said(price: Decimal, language: Language) -> str:
    return w.written_number(price, language, 3 if price < Decimal("0.1") else 2)


def alert(draw: Draw, language: Language) -> Draft:
    """An alert with labels; an error rate is said in percent and given as a fraction."""
    metric, german, english = draw.pick(
        (
            ("error_rate", "die Fehlerrate", "the error rate"),
            ("cpu_percent", "die CPU-Auslastung", "CPU usage"),
            ("memory_percent", "die Speicherauslastung", "memory usage"),
        )
    )
    percent = Decimal(draw.between(2, 19)) / 2 if metric == "error_rate" else Decimal(draw.between(50, 95))
    places = 1 if metric == "error_rate" else 0
    minutes, team = draw.between(3, 45), draw.pick(w.PROJECTS)
    severity, german_severity = draw.pick((("critical", "kritisch"), ("warning", "Warnung"), ("info", "Info")))
    said = w.written_number(percent, language, places)
    ask = (
        f"Richte einen Alarm ein: Er soll auslösen, wenn {german} {minutes} Minuten lang über {said} Prozent liegt. "
        f"Team: {team}, Schwere: {german_severity}."
        if language == "de"
        else f"Set up an alert that fires when {english} stays above {said} percent for {minutes} minutes. "
        f"Team: {team}, severity: {severity}."
    )
    derived = {}
    if metric == "error_rate":
        derived["threshold"] = f"{said} percent, and the schema says: error_rate is a fraction from 0 to 1"
        percent /= 100
    expected = call(
        "create_alert",
        metric=eq(metric),
        comparison=eq("above"),
        threshold=w.plain_number(percent),
        for_minutes=minutes,
        labels={"team": eq(team), "severity": eq(severity)},
    )
    vague = (
        f"Richte einen Alarm ein: Er soll auslösen, wenn {german} {minutes} Minuten lang zu hoch ist. "
        f"Team: {team}, Schwere: {german_severity}."
        if language == "de"
        else f"Set up an alert that fires when {english} stays too high for {minutes} minutes. "
        f"Team: {team}, severity: {severity}."
    )
    return Draft("operations", ask, (expected,), derived=derived, lacking=((vague, "threshold"),))


def event(draw: Draw, language: Language) -> Draft:
    """An event whose length follows from its beginning and its end, with guests and a room."""
    title, day, start = draw.pick(w.MEETINGS[language]), draw.day(), draw.between(16, 32) * 30
    length = draw.between(2, 10) * 15
    guests = [f"{name}@example.org" for name in draw.some(w.FIRST_NAMES, draw.between(2, 3))]
    place = f"{draw.pick('ABCD')}-{draw.between(100, 499)}"
    when, begin, end = w.written_date(day, language, draw), w.clock(start), w.clock(start + length)
    if language == "de":
        invited = f"{', '.join(guests[:-1])} und {guests[-1]}"
        ask = (
            f"Trag „{title}“ in meinen Kalender ein: am {when} von {begin} bis {end} Uhr, Raum {place}. "
            f"Lade {invited} ein."
        )
        lacking = (
            (
                f"Trag „{title}“ für den {when} in meinen Kalender ein, Dauer {length} Minuten. Lade {invited} ein.",
                "start_time",
            ),
        )
    else:
        invited = f"{', '.join(guests[:-1])} and {guests[-1]}"
        ask = f'Put "{title}" into my calendar on {when}, from {begin} to {end}, in room {place}, and invite {invited}.'
        lacking = (
            (f'Put "{title}" into my calendar on {when}; it takes {length} minutes. Invite {invited}.', "start_time"),
        )
    expected = call(
        "create_event",
        title=title,
        date=eq(day.isoformat()),
        start_time=eq(begin),
        duration_minutes=length,
        attendees=[eq(guest) for guest in guests],
        location=place,
    )
    derived = {"duration_minutes": f"from {begin} to {end} are {length} minutes"}
    return Draft("calendar", ask, (expected,), _ANY_ORDER, derived, lacking)


def report(draw: Draw, language: Language) -> Draft:
    """A report over a period, grouped by one or two columns, with filters."""
    metric, german, english = draw.pick(
        (
            ("revenue", "den Umsatz", "the revenue"),
            ("orders", "die Bestellungen", "the orders"),
            ("returns", "die Retouren", "the returns"),
        )
    )
    start = draw.day()
    end = start + timedelta(days=draw.between(20, 200))
    columns = draw.some(("region", "product", "channel", "month"), draw.between(1, 2))
    names = {"region": "Region", "product": "Produkt", "channel": "Kanal", "month": "Monat"}
    product, channel = draw.pick(w.PRODUCTS[language]), draw.pick(("web", "shop", "partner"))
    first, last = w.written_date(start, language, draw), w.written_date(end, language, draw)
    if language == "de":
        grouped = " und dann nach ".join(names[column] for column in columns)
        ask = (
            f"Werte {german} vom {first} bis zum {last} aus, gruppiert nach {grouped}. "
            f"Nur der Kanal „{channel}“, und ohne das Produkt „{product}“."
        )
        lacking = ((f"Werte {german} aus, gruppiert nach {grouped}, nur für den Kanal „{channel}“.", "period"),)
    else:
        grouped = " and then by ".join(columns)
        ask = (
            f"Run a report on {english} from {first} to {last}, grouped by {grouped}. "
            f'Only the channel "{channel}", and leave out the product "{product}".'
        )
        lacking = ((f'Run a report on {english}, grouped by {grouped}, only for the channel "{channel}".', "period"),)
    expected = call(
        "run_report",
        metric=eq(metric),
        group_by=[eq(column) for column in columns],
        period={"from": eq(start.isoformat()), "to": eq(end.isoformat())},
        filters=[
            {"column": eq("channel"), "operator": eq("is"), "value": eq(channel)},
            {"column": eq("product"), "operator": eq("is_not"), "value": eq(product)},
        ],
    )
    return Draft("analytics", ask, (expected,), _ANY_ORDER, lacking=lacking)


def transfer(draw: Draw, language: Language) -> Draft:
    """A transfer on a day, the IBAN printed in groups of four."""
    firm, iban, amount, day = (
        f"{draw.pick(w.FIRMS)} {draw.pick(w.LEGAL_FORMS)}",
        w.german_iban(draw),
        draw.cents(5, 9000),
        draw.day(),
    )
    reference = f"RE {draw.between(2027, 2029)}/{draw.between(1000, 9999)}-{draw.pick('ABCDEF')}"
    money, when, printed = w.written_number(amount, language, 2), w.written_date(day, language, draw), w.in_fours(iban)
    if language == "de":
        ask = f"Überweise am {when} einmalig {money} Euro an {firm}, IBAN {printed}, Verwendungszweck „{reference}“."
        lacking = (
            (f"Überweise am {when} einmalig {money} Euro an {firm}, Verwendungszweck „{reference}“.", "iban"),
            (f"Überweise am {when} die Rechnung von {firm}, IBAN {printed}, Verwendungszweck „{reference}“.", "amount"),
        )
    else:
        ask = f'Transfer {money} euros once, on {when}, to {firm}, IBAN {printed}, with the reference "{reference}".'
        lacking = (
            (f'Transfer {money} euros once, on {when}, to {firm}, with the reference "{reference}".', "iban"),
            (f'On {when}, pay the invoice of {firm}, IBAN {printed}, with the reference "{reference}".', "amount"),
        )
    expected = call(
        "transfer_money",
        recipient=firm,
        iban=eq(iban),
        amount=w.plain_number(amount),
        reference=eq(reference),
        execute_on=eq(day.isoformat()),
    )
    return Draft("banking", ask, (expected,), lacking=lacking)


def vacuum(draw: Draw, language: Language) -> Draft:
    """Rooms in an order, as a list of enum values."""
    rooms = draw.some(ROOMS, 3)
    mode, german, english = draw.pick(
        (("quiet", "leise", "quiet"), ("normal", "normal", "normal"), ("strong", "stark", "strong"))
    )
    if language == "de":
        names = [room[2] for room in rooms]
        ask = (
            f"Der Saugroboter soll putzen, Saugstufe {german}: zuerst {names[0]}, danach {names[1]} "
            f"und zuletzt {names[2]}. Sonst nichts."
        )
    else:
        names = [room[3] for room in rooms]
        ask = (
            f"Have the robot vacuum in {english} mode: first {names[0]}, then {names[1]}, and {names[2]} last. "
            f"Nothing else."
        )
    expected = call("start_vacuum", rooms=[eq(room[0]) for room in rooms], mode=eq(mode))
    return Draft("home", ask, (expected,))


HARD: dict[str, Template] = {
    "purchase": purchase,
    "alert": alert,
    "event": event,
    "report": report,
    "transfer": transfer,
    "vacuum": vacuum,
}
