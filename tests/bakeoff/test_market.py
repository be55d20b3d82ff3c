"""What the market published, read from the archived bytes; our own tokens a second beside it, and no verdict (§13)."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from referee.adapters.catalog.targets import load_target
from referee.core.bakeoff import Target
from referee.core.records import MarketSnapshot
from referee.core.tallies import SpeedTally
from referee.publish.bakeoff.blocks import Items, Table
from referee.publish.bakeoff.market import markets
from referee.runner.bakeoff.market import list_price
from referee.runner.bakeoff.report import gather
from referee.scoring.bakeoff.lanes import transport
from referee.scoring.bakeoff.market import Offer, market
from tests.bakeoff.report_workspace import MARKET, World
from tests.bakeoff.tallies import CLI, Rows


def snapshot(source: str = "openrouter-endpoints", **more: Any) -> MarketSnapshot:
    said = {"run": "r", "protocol": "p", "target": "t", "at": "2026-11-27T09:00:00+00:00", "said": None, "detail": ""}
    return MarketSnapshot.model_validate({**said, "source": source, **more})


def test_prices_are_for_a_million_tokens_and_what_is_not_published_is_none() -> None:
    fast, silent = market(snapshot(), json.dumps(MARKET).encode()).offers
    if silent.provider == "Fast":
        fast, silent = silent, fast
    assert fast == Offer("Fast", "fp8", 0.15, 0.6, 99.5, 45.2)
    assert (silent.quantisation, silent.input_usd, silent.output_usd) == (None, None, None)
    assert (silent.uptime, silent.tokens_per_second) == (None, None)


@pytest.mark.parametrize(
    ("source", "data", "why"),
    [
        ("openrouter-endpoints", None, "nothing was published"),
        ("openrouter-endpoints", b"{half", "another form"),
        ("openrouter-endpoints", b'{"data": {"endpoints": [7]}}', "another form"),
        ("openrouter-endpoints", b'{"data": {"endpoints": []}}', "no provider offered it"),
        ("elsewhere", b"{}", "what elsewhere publishes is kept and not read"),
        ("genai-prices", b"{}", "another form"),
    ],
)
def test_a_snapshot_without_an_offer_says_why(source: str, data: bytes | None, why: str) -> None:
    found = market(snapshot(source), data)
    assert found.offers == ()
    assert found.why is not None
    assert why in found.why


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["data", "endpoints", "pricing", "prompt"]), inner),
)


@pytest.mark.slow
@given(st.binary() | _JSON.map(lambda value: json.dumps(value).encode()))
def test_whatever_was_archived_nothing_is_raised(data: bytes) -> None:
    for source in ("openrouter-endpoints", "genai-prices"):
        found = market(snapshot(source), data)
        assert (found.why is None) == bool(found.offers)


def priced(channel: str, **more: Any) -> Target:
    said = {"name": "t", "model": "gpt-4o-mini", "lane": "openai-chat", "sovereignty": "us-closed"}
    return Target.model_validate({**said, "channel": channel, **more})


def test_a_list_price_is_archived_where_one_is_known() -> None:
    kept = list_price(priced("metered-api", base_url="https://api.openai.com/v1"))
    assert kept is not None
    [offer] = market(snapshot("genai-prices"), kept).offers
    assert (offer.provider, offer.uptime, offer.tokens_per_second) == ("openai", None, None)
    assert offer.input_usd is not None
    assert offer.output_usd is not None
    assert 0 < offer.input_usd < offer.output_usd
    assert json.loads(kept)["table"].startswith("genai-prices ")
    assert list_price(priced("own-infrastructure")) is None
    assert list_price(priced("metered-api", model="of-nobody", base_url="http://127.0.0.1:9/v1")) is None
    assert list_price(load_target("keyword-baseline", Path("none"))) is None


def test_our_own_tokens_a_second_are_of_graded_calls_and_never_of_an_agent_cli() -> None:
    speed = SpeedTally(n=4, output_tokens=200, ms=8000.0)
    own = transport(Rows("own").tally(speed=speed), 4)
    assert (own.tokens_per_second, own.tokens_per_second_n, own.tokens_per_second_why) == (25.0, 4, None)
    silent = transport(Rows("own").tally(), 4)
    assert (silent.tokens_per_second, silent.tokens_per_second_why) == (None, "the lane reports no token counts")
    words = Rows("words").tally(speed=speed)
    words = replace(words, target=words.target.model_copy(update={"sovereignty": "none"}))
    assert (transport(words, 4).tokens_per_second, transport(words, 4).tokens_per_second_why) == (None, "no model")
    agent = transport(Rows("agent", CLI).tally(speed=speed), 4)
    assert agent.tokens_per_second is None
    assert "agent CLI" in (agent.tokens_per_second_why or "")


def test_the_report_shows_both_side_by_side_and_says_what_is_absent(tmp_path: Path) -> None:
    world = World(tmp_path / "ws").write()
    basis = gather(world.log, world.evidence, "board", [world.records / name for name in world.shards])
    section = markets(basis.market, basis.summary)
    own, offers, archived = [block for block in section.blocks if isinstance(block, Table)]
    assert "lane included: not comparable across lanes, and no verdict" in own.caption
    row = next(row.cells for row in own.rows if row.cells[0].text == "own-strong")
    # Every attempt of the made shard has 20 tokens, and the nth takes 100 + n / 7 ms.
    rows = [100 + at / 7 for at in range(len(world.identities("own-strong")))]
    assert row[1].text == f"{20 * len(rows) / (sum(rows) / 1000):.1f}"
    assert row[2].text == str(len(rows))
    said = {tuple(cell.text for cell in row.cells) for row in offers.rows}
    fast = ("free-tier · hosted free tier", "2026-11-27 09:00:00 UTC", "Fast", "0.15 USD", "0.6 USD", "99.5 %", "45.2")
    assert fast in said
    other = next(row.cells for row in offers.rows if row.cells[2].text != "Fast")
    assert {cell.text for cell in other[3:]} == {"not published"}
    assert len(archived.rows) == 2
    lists = [item for block in section.blocks if isinstance(block, Items) for item in block.items]
    assert any(item.startswith("cli-agent · agent CLI claude 2.1.0: ") for item in lists)
    assert any("openrouter: the archived document has another form" in item for item in lists)


def test_what_nobody_publishes_is_said_once_for_all_runs_and_targets(tmp_path: Path) -> None:
    world = World(tmp_path / "ws").write()
    basis = gather(world.log, world.evidence, "board", [world.records / name for name in world.shards])
    silent = [
        market(snapshot("none", target=target, at=f"2026-11-{day}T09:00:00+00:00"), None)
        for day in range(10, 20)
        for target in ("own-strong", "weak-one")
    ]
    section = markets(silent, basis.summary)
    [said] = [block for block in section.blocks if isinstance(block, Items) and block.lead == "Nothing is shown where:"]
    assert len(said.items) == 1
    assert said.items[0].endswith("(own-strong · own infrastructure, weak-one · local)")
    assert [block.caption for block in section.blocks if isinstance(block, Table)] == [
        "Our own, lane included: not comparable across lanes, and no verdict"
    ]
