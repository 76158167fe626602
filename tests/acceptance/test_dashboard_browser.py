"""The dashboard in a real Chromium."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.acceptance.browser import PATIENCE_MS, chromium, tab
from tests.acceptance.command import crawl_options, logged, rove, wait_for, write_lines
from tests.acceptance.many_domains import crawl_of_many_domains
from tests.acceptance.shown import Dashboard, address_in, dashboard
from tests.acceptance.site import Reply, site
from tests.acceptance.stopping import under_way, web_and_seeds

MANY = 100_000
HOSTILE_TITLE = (
    "</title><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
    "<b id=injected>bold</b>\u202egpj.exe"
)
ESCAPED = HOSTILE_TITLE.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
HOSTILE_SITE = {
    "evil.test/robots.txt": Reply(f"User-agent: *\nDisallow: /{HOSTILE_TITLE}\n", type="text/plain"),
    "evil.test/": Reply(f"<title>{ESCAPED}</title><a href='/%3Cscript%3Ealert(1)%3C/script%3E'>a link</a>"),
}

expect.set_options(timeout=PATIENCE_MS)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as running:
        yield running


@pytest.fixture(scope="module")
def many(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dashboard]:
    """A dashboard of a crawl that knows 100,000 domains. Without a browser, it is not made."""
    data = tmp_path_factory.mktemp("many") / "data"
    crawl_of_many_domains(data, MANY)
    with dashboard("--data-dir", data) as running:
        yield running


@pytest.fixture(scope="module")
def hostile(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dashboard]:
    """A dashboard of a crawl whose only site writes markup into everything that is shown."""
    folder = tmp_path_factory.mktemp("evil")
    seeds = write_lines(folder / "seeds.txt", "http://evil.test/")
    with site(HOSTILE_SITE) as served:
        done = rove("crawl", seeds, *crawl_options(folder / "data", delay=0.01), *served.reach)
    assert done.returncode == 0, done.stderr
    with dashboard("--data-dir", folder / "data") as running:
        yield running


def names_in(page: Page) -> list[str]:
    """Return the names in the table of domains."""
    return page.locator("table.domains tbody td:first-child").all_inner_texts()


def numbers_in(page: Page, heading: str) -> list[int]:
    """Return a column of the table of domains."""
    cells = page.locator(f"table.domains tbody td[data-heading='{heading}']").all_inner_texts()
    return [int(cell.replace(",", "")) for cell in cells if cell]


def test_it_loads_and_updates_without_a_reload_while_a_crawl_runs(browser: Browser, tmp_path: Path) -> None:
    with web_and_seeds(tmp_path) as (web, words):
        options = [*crawl_options(tmp_path / "data", delay=0.05), "--dashboard=0"]
        with logged(*words, *options) as (process, output):
            wait_for(lambda: "#token=" in output())
            shown = Dashboard(*address_in(output()))
            under_way(web)
            with tab(browser, shown.page_with_token) as opened:
                page = opened.page
                expect(page.locator("#state")).to_contain_text("running")
                expect(page.locator(".limits")).to_contain_text("What limits it: ")
                page.evaluate("window.isTheSamePage = true")
                pages = page.locator(".tile", has_text=re.compile(r"^Pages\d")).locator(".value")
                newest = page.locator("table.requests tbody tr").first
                before, first = pages.inner_text(), newest.inner_text()
                expect(pages).not_to_have_text(before)
                expect(newest).not_to_have_text(first, use_inner_text=True)
                assert page.evaluate("window.isTheSamePage")
                assert "token" not in page.url, "it must not stay in the history"

                page.get_by_role("link", name="Plots").click()
                check_hover(page)

                page.get_by_role("link", name="Control").click()
                page.get_by_role("button", name="Pause").click()
                expect(page.locator("#state")).to_contain_text("paused")
                page.get_by_role("button", name="Continue").click()
                expect(page.locator("#state")).not_to_contain_text("paused")
                process.send_signal(signal.SIGINT)
                process.wait(60)
                expect(page.locator("#trouble")).to_contain_text("does not answer")
                opened.errors.clear()  # the browser says that the connection was refused


def check_hover(page: Page) -> None:
    """Check that the values of all panels are those of the time under the pointer, or chosen with the keys."""
    panels = page.locator("figure")
    expect(panels.nth(3)).to_be_visible()
    clock, latest = page.locator(".clock"), page.locator("figure .legend b").all_inner_texts()
    box = panels.first.locator("svg").bounding_box()
    assert box is not None and len(latest) > 4
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    expect(clock).to_contain_text(re.compile(r"\d\d:\d\d:\d\d"))
    places = {cursor.get_attribute("x1") for cursor in page.locator("figure .cursor").all()}
    assert len(places) == 1 and places != {"-9"}, "the cursors of all panels are at the same time"
    page.mouse.move(0, 0)
    expect(clock).not_to_contain_text(":")
    page.locator(".plots").focus()
    page.keyboard.press("ArrowLeft")
    expect(clock).to_contain_text(":")
    page.keyboard.press("Escape")
    expect(clock).not_to_contain_text(":")


def test_it_sorts_and_searches_100_000_domains(browser: Browser, many: Dashboard) -> None:
    with tab(browser, f"{many.page}#/domains") as opened:
        page = opened.page
        expect(page.locator("#matching")).to_have_text("100,000 domains page 1")
        assert len(names_in(page)) == 50 and set(numbers_in(page, "Pending")) == {5}
        page.get_by_role("button", name="Next", exact=True).click()
        expect(page.locator("#matching")).to_have_text("100,000 domains page 2")
        page.get_by_role("button", name="Pending").click()
        expect(page.locator("#matching")).to_have_text("100,000 domains page 1")
        expect(page.locator("table.domains tbody td[data-heading='Pending']").first).to_have_text("1")
        page.get_by_role("searchbox").fill("host7777")
        expect(page.locator("#matching")).to_have_text("11 domains page 1")
        found = names_in(page)
        assert set(found) == {"host7777.test", *(f"host7777{digit}.test" for digit in range(10))}
        assert numbers_in(page, "Pending") == sorted(numbers_in(page, "Pending"))
        assert page.url.endswith("#/domains?by=pending&reverse=yes&search=host7777")
        page.get_by_label("Show").select_option("excluded")
        expect(page.locator("main")).to_contain_text("no domain matches")
        page.get_by_label("Show").select_option("")
        page.get_by_label("Sort by").select_option("overdue")
        page.get_by_role("searchbox").fill("host123.t")
        page.get_by_role("link", name="host123.test").click()
        expect(page.get_by_role("heading", name="host123.test")).to_be_visible()
        expect(page.locator("main")).to_contain_text("http://host123.test/3")


def test_a_domain_is_excluded_with_the_token_and_not_without(browser: Browser, many: Dashboard) -> None:
    with tab(browser, f"{many.page}#/domain/host5.test") as opened:
        page = opened.page
        expect(page.locator("main")).to_contain_text("need the token")
        refused = page.evaluate(
            """async () => (await fetch("/api/actions/exclude", {method: "POST", body: '{"domains": ["host5.test"]}',
            headers: {"Content-Type": "application/json"}})).status"""
        )
        assert refused == 401
        opened.errors.clear()  # the browser reports the refusal
    assert not many.get("exclusions")["exclusions"]
    with tab(browser, many.page_with_token) as opened:
        page = opened.page
        page.goto(f"{many.page}#/domain/host5.test")
        page.get_by_role("button", name="Preview").click()
        expect(page.locator(".preview")).to_contain_text("host5.test and all its subdomains")
        expect(page.locator(".preview")).to_contain_text("1 known domain")
        page.get_by_label("Reason").fill("asked by e-mail")
        page.get_by_role("button", name="Exclude").click()
        expect(page.locator(".said").first).to_contain_text("1 URL left the queue")
        expect(page.locator("main")).to_contain_text("excluded by the pattern host5.test")
        page.get_by_role("link", name="Control").click()
        row = page.locator("tr", has_text="host5.test")
        expect(row).to_contain_text("asked by e-mail")
        row.get_by_role("button", name="Include").click()
        expect(page.locator("tr", has_text="host5.test")).to_contain_text("lifted")


@pytest.mark.parametrize("view", ["", "domain/evil.test", "explain/http%3A%2F%2Fevil.test%2F%3Cb%20id%3Dinjected%3E"])
def test_hostile_text_is_shown_and_not_obeyed(browser: Browser, hostile: Dashboard, view: str) -> None:
    with tab(browser, f"{hostile.page}#/{view}") as opened:
        page = opened.page
        expect(page.locator("main")).to_contain_text("evil.test")
        if not view.startswith("explain"):
            expect(page.locator("table.requests")).to_contain_text("<script>document.title='owned'</script>")
            expect(page.locator("table.requests")).to_contain_text("\\u202egpj.exe")
        assert "owned" not in page.title()
        for element in ("#injected", "main script", "main img", "body > script"):
            assert page.locator(element).count() == 0, element


def test_a_site_whose_name_leads_to_this_machine_sees_nothing(browser: Browser, hostile: Dashboard) -> None:
    with tab(browser, hostile.page.replace("127.0.0.1", "evil.example")) as opened:
        assert "does not answer under the name evil.example" in opened.page.content()
        answers = opened.page.evaluate(
            """() => Promise.all(["/", "/api/overview", "/api/requests"].map(
            async (path) => (await fetch(path, {headers: {"X-Rove-Token": "x"}})).status))"""
        )
        assert answers == [403, 403, 403]
        opened.errors.clear()  # the browser reports the refusals


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("width", "height"), [(1280, 900), (390, 844)])
def test_every_view_fits_a_phone_and_a_desk(
    browser: Browser, hostile: Dashboard, width: int, height: int, scheme: str
) -> None:
    with tab(browser, hostile.page_with_token, width=width, height=height, scheme=scheme) as opened:
        page = opened.page
        for view in ("", "plots", "domains", "domain/evil.test", "explain/evil.test", "control"):
            page.goto(f"{hostile.page}#/{view}")
            expect(page.locator("main h2").first).to_be_visible()
            expect(page.locator("#state")).to_contain_text("not running")
            too_wide = page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth")
            assert not too_wide, f"{view or 'overview'} is wider than the screen"
        background = page.evaluate("getComputedStyle(document.body).backgroundColor")
        light = sum(map(int, re.findall(r"\d+", background)[:3])) > 384
        assert light is (scheme == "light"), background
