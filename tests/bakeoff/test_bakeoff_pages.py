"""The report in a real Chromium: nothing leaves the disk, nothing runs, it fits and can be read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from referee.cli.site import build_site
from referee.cli.wiring import open_stores
from referee.publish.bakeoff.report import write_report
from referee.runner.bakeoff.report import gather
from tests.bakeoff.report_workspace import World
from tests.test_pages_browser import CONTRAST, SCHEMES, Look, browser, look

pytestmark = pytest.mark.browser

__all__ = ["browser", "look"]

PAGES = ("bakeoff/index.html", "bakeoff/board/index.html", "bakeoff/board/cases/s1-simple-03.html")

TOPS = (
    "one => [...one.childNodes].filter(part => part.data).map(part => { const range = document.createRange(); "
    "range.selectNode(part); return range.getBoundingClientRect().top; })"
)
UNFOLD = "document.querySelectorAll('details').forEach(one => { one.open = true; })"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    world = World(tmp_path_factory.mktemp("world")).write()
    basis = gather(world.log, world.evidence, "board", [world.records / name for name in world.shards])
    stores = open_stores(world.root)
    write_report(basis, stores.workspace.site / "bakeoff" / "board")
    build_site(stores)
    return stores.workspace.site


@pytest.mark.parametrize("name", PAGES)
def test_nothing_runs_and_nothing_leaves_the_disk(look: Look, site: Path, name: str) -> None:
    watched = look((site / name).as_uri())
    watched.page.wait_for_load_state("networkidle")
    assert watched.page.locator("h1").count() == 1
    assert "owned" not in watched.page.title()
    assert watched.said == []
    assert watched.asked
    assert all(url.startswith("file://") for url in watched.asked)


@pytest.mark.parametrize("name", PAGES)
def test_no_page_is_wider_than_its_window(look: Look, site: Path, name: str) -> None:
    watched = look((site / name).as_uri())
    watched.page.evaluate(UNFOLD)
    for width in (320, 360, 768, 1280):
        watched.page.set_viewport_size({"width": width, "height": 900})
        assert watched.page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("name", PAGES)
def test_on_a_narrow_screen_every_table_fits_its_frame(look: Look, site: Path, name: str) -> None:
    page = look((site / name).as_uri(), width=360).page
    page.evaluate(UNFOLD)
    wider = "all => all.filter(one => one.scrollWidth > one.clientWidth).map(one => one.ariaLabel)"
    assert page.locator(".wide").count() > 0
    assert page.locator(".wide").evaluate_all(wider) == []


@pytest.mark.parametrize("name", PAGES)
def test_text_has_enough_contrast(look: Look, site: Path, name: str) -> None:
    watched = look((site / name).as_uri())
    watched.page.evaluate(UNFOLD)
    for scheme in SCHEMES:
        watched.page.emulate_media(color_scheme=scheme)
        assert watched.page.evaluate(CONTRAST) == []


def test_the_plot_stands_where_the_numbers_say(look: Look, site: Path) -> None:
    page = look((site / "bakeoff/board/index.html").as_uri()).page
    summary = json.loads((site / "bakeoff/board/report.json").read_bytes())["summary"]
    rows = [row for board in summary["boards"] for row in board["rows"]]
    lines = page.locator(".plot .line").all()
    drawn = [(row, rate) for row in rows for rate in (row["figures"]["rate"], row["with_flagged"])]  # cases left
    assert len(lines) == len(drawn) == 8
    for line, (row, rate) in zip(lines, drawn, strict=True):
        assert row["about"]["target"] in line.inner_text()
        track, mark, span = (line.locator(f"rect.{kind}").bounding_box() for kind in ("track", "mark", "span"))
        assert track is not None
        assert mark is not None
        assert span is not None
        middle = (mark["x"] + mark["width"] / 2 - track["x"]) / track["width"]
        assert middle == pytest.approx(rate["value"], abs=0.005)
        low, high = rate["wilson"]["low"], rate["wilson"]["high"]
        assert (span["x"] - track["x"]) / track["width"] == pytest.approx(low, abs=0.005)
        assert (span["x"] + span["width"] - track["x"]) / track["width"] == pytest.approx(high, abs=0.005)


def test_the_keyboard_reaches_every_scrolling_table(look: Look, site: Path) -> None:
    page = look((site / "bakeoff/board/index.html").as_uri(), width=600).page
    boxes = page.locator(".wide").all()
    assert len(boxes) > 15
    for box in boxes:
        assert box.get_attribute("tabindex") == "0"
        assert box.get_attribute("aria-label")
    page.get_by_role("link", name="Decision log").focus()
    page.keyboard.press("Enter")
    assert page.url.endswith("#decisions")


def test_cases_are_reached_without_scripts(look: Look, site: Path) -> None:
    page = look((site / "bakeoff/board/index.html").as_uri(), scripts=False).page
    page.locator("summary", has_text="Each leads to its attempts").click()
    page.locator("details").get_by_role("link", name="s1-simple-03").click()
    assert page.url.endswith("cases/s1-simple-03.html")
    assert page.get_by_text("argument date: expected 2026-07-24, got 24.07.2026").first.is_visible()
    page.get_by_role("link", name="Bake-off board").click()
    assert page.url.endswith("board/index.html")


def test_print_keeps_board_and_limitations(look: Look, site: Path) -> None:
    page = look((site / "bakeoff/board/index.html").as_uri()).page
    page.emulate_media(media="print")
    assert page.get_by_text("Limitations that may not be left out").last.is_visible()
    assert page.locator(".plot").first.is_visible()
    assert not page.locator("nav.contents").is_visible()


def test_on_a_narrow_screen_prose_is_read_from_the_left_and_short_values_are_compared_at_the_right(
    look: Look, site: Path
) -> None:
    watched = look((site / "bakeoff/board/cases/s1-simple-03.html").as_uri(), width=360)
    reason = watched.page.locator("td[data-label=reason]").first
    assert reason.evaluate("one => getComputedStyle(one).textAlign") == "left"
    assert reason.evaluate("one => one.getBoundingClientRect().width") > 300
    repeat = watched.page.locator("td[data-label=k]").first
    assert repeat.evaluate("one => getComputedStyle(one).textAlign") == "right"


def test_schemas_and_commands_are_folded_and_unfold_without_scripts(look: Look, site: Path) -> None:
    page = look((site / "bakeoff/board/cases/s1-simple-03.html").as_uri(), scripts=False).page
    for name, inside in (("Schemas of their arguments", '"sku"'), ("Commands that print", "referee bakeoff answer")):
        assert not page.get_by_text(inside).first.is_visible()
        page.locator("summary", has_text=name).click()
        assert page.get_by_text(inside).first.is_visible()


def test_a_digest_breaks_in_its_middle_and_a_run_stands_whole(look: Look, site: Path) -> None:
    watched = look((site / "bakeoff/board/index.html").as_uri(), width=360)
    digest = watched.page.locator("#evidence ~ .wide td[data-label='SHA-256'] code").first
    lines = digest.evaluate(
        "one => [...one.childNodes].filter(part => part.data?.length > 20).map(part => { const range = "
        "document.createRange(); range.selectNode(part); return range.getClientRects().length; })"
    )
    assert lines == [1, 1]
    digest = watched.page.locator("#ground ~ dl code", has_text="protocol:sha256:").first
    tops = digest.evaluate(TOPS)
    assert len(set(tops)) == len(tops) == 3
    watched = look((site / "bakeoff/board/cases/s1-simple-03.html").as_uri(), width=1280)
    run = watched.page.locator("td[data-label=started] .below").first
    assert run.evaluate("one => getComputedStyle(one).whiteSpace") == "nowrap"
