"""The pages in a real Chromium, from disk and from a server: they play, they fit, they ask for nothing else."""

from __future__ import annotations

import functools
import http.server
import json
import shutil
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from referee.publish import pages
from referee.publish.facts import Facts
from tests.publish_workspace import Try, Written

pytestmark = pytest.mark.browser

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)

SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")

PAGES = (
    "index.html",
    "board.html",
    "subjects/square.html",
    "subjects/hostile.html",
    "runs/r-000000000pass.html",
    "runs/r-000000hostile.html",
    "runs/r-00000overlay1.html",
    "runs/r-00000000open1.html",
)


@dataclass
class Watched:
    """A page and everything it did that a reader would not see."""

    page: Page
    said: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    written = Written(tmp_path_factory.mktemp("workspace"))
    written.write()
    return build(written)


def build(written: Written) -> Path:
    out = written.root / "site"
    pages.build(Facts(written.records.read(), written.evidence), out)
    return out


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    found = next(
        (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
    )
    with sync_playwright() as play:
        chromium = play.chromium.launch(executable_path=found, args=FLAGS)
        yield chromium
        chromium.close()


Look = Callable[..., Watched]


@pytest.fixture
def look(browser: Browser) -> Iterator[Look]:
    """Opens a page of a site at a width and in a scheme, and closes it after the test."""
    contexts: list[BrowserContext] = []

    def opened(
        url: str, *, width: int = 1280, scheme: Literal["light", "dark"] = "light", scripts: bool = True
    ) -> Watched:
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, java_script_enabled=scripts
        )
        contexts.append(context)
        watched = Watched(context.new_page())
        watched.page.on("console", lambda message: watched.said.append(message.text))
        watched.page.on("pageerror", lambda error: watched.said.append(str(error)))
        watched.page.on("request", lambda request: watched.asked.append(request.url))
        watched.page.goto(url)
        return watched

    yield opened
    for context in contexts:
        context.close()


def wait(page: Page, wanted: str) -> None:
    """Wait until an expression is true. Playwright's own waiting is refused by the policy of the page."""
    for _ in range(300):
        if page.evaluate(wanted):
            return
        page.wait_for_timeout(50)
    raise AssertionError(f"never came true: {wanted}")


def play(page: Page) -> None:
    wait(page, "window.refereePlayer !== undefined")
    page.evaluate("refereePlayer.play()")


def test_a_recording_plays_from_disk(look: Look, site: Path) -> None:
    watched = look((site / "runs/r-000000000pass.html").as_uri())
    play(watched.page)
    expect(watched.page.locator("#screen")).to_contain_text("12 squared is 144", timeout=20_000)
    assert watched.said == []
    assert watched.asked
    assert all(url.startswith("file://") for url in watched.asked)


def test_speed_and_pauses_can_be_chosen(look: Look, site: Path) -> None:
    watched = look((site / "runs/r-000000000pass.html").as_uri())
    wait(watched.page, "window.refereePlayer !== undefined")
    watched.page.evaluate("window.first = refereePlayer")
    watched.page.get_by_label("Speed").select_option("16")
    watched.page.get_by_label("shorten pauses").uncheck()
    wait(watched.page, "window.refereePlayer !== window.first")
    play(watched.page)
    expect(watched.page.locator("#screen")).to_contain_text("12 squared is 144", timeout=20_000)
    assert watched.said == []


@pytest.mark.parametrize("name", PAGES)
def test_nothing_in_a_page_runs_or_leaves_the_disk(look: Look, site: Path, name: str) -> None:
    watched = look((site / name).as_uri())
    watched.page.wait_for_load_state("networkidle")
    assert "owned" not in watched.page.title()
    assert watched.said == []
    assert all(url.startswith("file://") for url in watched.asked)


def test_a_hostile_recording_is_played_as_text(look: Look, site: Path) -> None:
    watched = look((site / "runs/r-000000hostile.html").as_uri())
    play(watched.page)
    expect(watched.page.locator("#screen")).to_contain_text("</script>", timeout=20_000)
    assert "owned" not in watched.page.title()
    assert watched.page.locator("#screen script").count() == 0
    assert watched.said == []


@pytest.mark.parametrize("name", PAGES)
def test_no_page_is_wider_than_its_window(look: Look, site: Path, name: str) -> None:
    watched = look((site / name).as_uri())
    for width in (320, 390, 768, 1280):
        watched.page.set_viewport_size({"width": width, "height": 900})
        assert watched.page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("name", ["index.html", "board.html", "subjects/square.html", "subjects/pygraphviz.html"])
def test_no_id_digest_or_name_is_cut_in_two(look: Look, site: Path, name: str) -> None:
    page = look((site / name).as_uri(), width=1200).page
    cut = "elements => elements.filter(one => one.getClientRects().length > 1).map(one => one.textContent)"
    assert page.eval_on_selector_all("table code, table .digest, table .name span, table th a", cut) == []


@pytest.mark.parametrize("name", ["subjects/square.html", "runs/r-000000000pass.html"])
def test_on_a_narrow_screen_no_time_is_cut_in_two_and_no_phase_falls_under_its_time(
    look: Look, site: Path, name: str
) -> None:
    page = look((site / name).as_uri(), width=360).page
    cut = "elements => elements.filter(one => one.getClientRects().length > 1).map(one => one.textContent)"
    assert page.locator("span.nowrap").count() > 0
    assert page.eval_on_selector_all("span.nowrap", cut) == []
    under = """elements => elements.filter(one => one.children[1].getBoundingClientRect().left
        < one.children[0].getBoundingClientRect().right).map(one => one.textContent)"""
    assert page.eval_on_selector_all("li.timed", under) == []
    assert page.locator("li.timed").count() == (2 if name.startswith("runs/") else 0)


def test_the_flow_picture_is_whole_at_every_width(look: Look, site: Path) -> None:
    for width, file in ((390, "flow-narrow.svg"), (1200, "flow.svg")):
        flow = look((site / "index.html").as_uri(), width=width).page.locator("img.flow")
        assert str(flow.evaluate("image => image.currentSrc")).endswith(f"/{file}")
        box = flow.bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width
        assert box["width"] > 250


@pytest.mark.parametrize("name", PAGES)
def test_text_has_enough_contrast(look: Look, site: Path, name: str) -> None:
    watched = look((site / name).as_uri())
    for scheme in SCHEMES:
        watched.page.emulate_media(color_scheme=scheme)
        assert watched.page.evaluate(CONTRAST) == []


def test_the_measure_of_contrast_finds_what_is_too_faint(look: Look, site: Path) -> None:
    watched = look((site / "index.html").as_uri())
    watched.page.evaluate("document.querySelector('h1').style.color = '#ddd'")
    assert [faint[1] for faint in watched.page.evaluate(CONTRAST)] == ["Can an agent make it run?"]


def test_the_keyboard_reaches_content_first_and_every_scrolling_table(look: Look, site: Path) -> None:
    watched = look((site / "index.html").as_uri(), width=600)
    watched.page.keyboard.press("Tab")
    assert watched.page.evaluate("document.activeElement.textContent") == "Skip to the content"
    watched.page.keyboard.press("Enter")
    assert watched.page.url.endswith("#main")
    for box in watched.page.locator(".wide").all():
        assert box.get_attribute("tabindex") == "0"
        assert box.get_attribute("aria-label")


def test_a_long_recording_is_played_in_parts(look: Look, tmp_path: Path) -> None:
    lines = [b'{"version": 2, "width": 80, "height": 24}\n']
    lines += [json.dumps([n / 100, "o", f"line {n} {'x' * 60}\r\n"]).encode() + b"\n" for n in range(30_000)]
    written = Written(tmp_path)
    written.write((Try("r-1", "square", cast=b"".join(lines)),))
    site = build(written)
    watched = look((site / "runs/r-1.html").as_uri())
    expect(watched.page.get_by_label("Part")).to_have_count(1)
    # The first part is long too: without waiting for another player, the first one would be the one that is wound on.
    wait(watched.page, "window.refereePlayer !== undefined")
    watched.page.evaluate("window.first = refereePlayer")
    watched.page.get_by_label("Part").select_option("2")
    wait(watched.page, "refereePlayer !== window.first && refereePlayer.getDuration() > 50")
    watched.page.evaluate("refereePlayer.seek('99%')")
    expect(watched.page.locator("#screen")).to_contain_text("line 29", timeout=20_000)
    assert watched.said == []


def test_without_scripts_the_log_and_the_evidence_remain(look: Look, site: Path) -> None:
    page = look((site / "runs/r-000000000pass.html").as_uri(), scripts=False).page
    expect(page.locator("#screen")).to_contain_text("The player needs JavaScript")
    page.get_by_text("Log of the session as text").click()
    expect(page.locator("details pre").first).to_contain_text("Successfully installed square-1.2.0")


def test_a_recording_plays_from_a_server(look: Look, site: Path) -> None:
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(site)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        watched = look(f"http://127.0.0.1:{server.server_port}/runs/r-000000000pass.html")
        play(watched.page)
        expect(watched.page.locator("#screen")).to_contain_text("12 squared is 144", timeout=20_000)
        assert watched.said == []
        with watched.page.expect_download() as caught:
            watched.page.get_by_role("link", name="report.json").click()
        assert caught.value.suggested_filename == "report.json"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_print_keeps_every_figure(look: Look, site: Path) -> None:
    watched = look((site / "runs/r-000000000pass.html").as_uri())
    watched.page.emulate_media(media="print")
    expect(watched.page.locator("#screen")).to_be_hidden()
    expect(watched.page.locator(".total")).to_be_visible()
    expect(watched.page.get_by_text("93.33").first).to_be_visible()


#: Each text whose contrast with what lies behind it is under WCAG's 4.5 (3 for large text), outside the player.
CONTRAST = """() => {
  const channel = value => { const c = value / 255; return c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; };
  const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  const colour = text => text.match(/[\\d.]+/g).map(Number);
  const behind = element => {
    for (let one = element; one; one = one.parentElement) {
      const found = colour(getComputedStyle(one).backgroundColor);
      if (found.length === 3 || found[3] === 1) return found;
    }
    return [255, 255, 255];
  };
  const poor = [];
  for (const element of document.querySelectorAll("body *:not(#screen):not(#screen *)")) {
    const own = [...element.childNodes].some(node => node.nodeType === 3 && node.textContent.trim());
    if (!own || !element.checkVisibility()) continue;
    const style = getComputedStyle(element);
    const [a, b] = [light(colour(style.color)), light(behind(element))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    const big = parseFloat(style.fontSize) >= 24;
    if (ratio < (big ? 3 : 4.5)) poor.push([element.className, element.textContent.slice(0, 40), ratio]);
  }
  return poor;
}"""
