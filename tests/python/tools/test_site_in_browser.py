"""The built site in a browser: no errors, no network, readable on a phone and by axe."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest

import browser
from known import ROOT
from tools import site_widgets
from validation.targets.builds import PROFILE
from waterfill.scenario import loading

FRONT, LAW, API = "index.html", "reference/protocols/maxnet.html", "reference/python.html"

CONCEPTS = "explanation/concepts.html"


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Print nothing."""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder of the site, built without a warning."""
    folder = tmp_path_factory.mktemp("site")
    ran = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1", "WATERFILL_SITE_PROFILE": PROFILE},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    return folder


@pytest.fixture(scope="module")
def address(site):
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    thread.join()
    server.server_close()


def test_no_page_names_another_host_for_its_parts(site):
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        for sign in ('src="http', "src='http", 'src="//', '<link rel="stylesheet" href="http'):
            assert sign not in text, page


@pytest.mark.parametrize("page", [FRONT, LAW, API])
@pytest.mark.parametrize("width", browser.SIZES)
@pytest.mark.parametrize("scheme", browser.SCHEMES)
def test_pages_load_without_errors(chromium, address, page, width, scheme):
    with browser.shown(chromium, address + page, width=width, scheme=scheme) as shown:
        colour = shown.page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (sum(int(part) for part in colour[4:-1].split(",")) > 3 * 128) == (scheme == "light")
        assert shown.overflow_px() == 0
        assert shown.problems == []
        # Narrow pages have the same parts; the API's are many, and dark ones are on the others.
        if width == browser.WIDE and (page, scheme) != (API, "dark"):
            assert shown.violations() == []


@pytest.mark.parametrize("width", browser.SIZES)
def test_search_finds_a_page(chromium, address, width):
    with browser.shown(chromium, address + FRONT, width=width) as shown:
        page = shown.page
        page.keyboard.press("/")  # as the theme's help says
        page.keyboard.type("claimed_rtt", delay=10)
        result = page.locator(".md-search-result__link[href*='scenario-keys']").first
        result.wait_for(state="visible")
        result.click()
        page.wait_for_url("**/reference/scenario-keys.html**")
        assert shown.problems == []


def test_pages_open_from_a_disk(chromium, site):
    with browser.shown(chromium, site / FRONT) as shown:
        shown.page.locator("a[href='tutorial/first-experiment.html']").first.click()
        assert shown.page.locator("h1").inner_text().startswith("Your first experiment")
        assert shown.page.locator(".md-search").count() == 0  # there it cannot work
        assert shown.problems == []


@pytest.fixture
def widgets(monkeypatch):
    """Skips the test on a host that cannot build the engine of the widgets."""
    monkeypatch.setenv("WATERFILL_SITE_PROFILE", PROFILE)
    if not site_widgets.engine():
        pytest.skip("this host cannot build for WebAssembly")


@pytest.mark.parametrize("scheme", browser.SCHEMES)
def test_a_slider_runs_the_simulator_in_a_page_from_a_disk(chromium, site, widgets, scheme):
    with browser.shown(chromium, site / CONCEPTS, scheme=scheme) as shown:
        widget = shown.page.locator(".wf-widget", has_text="A price")
        widget.scroll_into_view_if_needed()
        note = widget.locator(".wf-note", has_text=" ms")
        note.wait_for()
        last = widget.locator("polyline").last
        before = last.get_attribute("points")
        assert before in site_widgets.html("price")  # as the native engine's run
        widget.get_by_label("Flows that start at 10 s").focus()
        shown.page.keyboard.press("ArrowLeft")
        widget.locator("svg text", has_text="others (×8)").wait_for()
        assert last.get_attribute("points") != before
        widget.get_by_role("button").press("Enter")
        widget.locator("svg text", has_text="others (×9)").wait_for()
        assert last.get_attribute("points") == before
        assert shown.problems == []
        assert shown.violations() == []
    with browser.shown(chromium, site / CONCEPTS, width=browser.NARROW) as shown:
        assert shown.overflow_px() == 0


def test_the_playground_keeps_its_state_and_writes_files(chromium, site, widgets, tmp_path):
    link = f"{(site / 'playground.html').as_uri()}#scenario=one-link&protocols=maxnet"
    with browser.shown(chromium, link) as shown:
        page = shown.page
        page.locator(".wf-note", has_text=" ms").wait_for()
        page.get_by_label("Law 2").select_option("rcp")
        page.locator(".wf-laws h3", has_text="rcp").wait_for()
        page.get_by_role("group", name="flow others").get_by_role("slider").press("ArrowLeft")
        page.locator("svg text", has_text="others (×8)").nth(1).wait_for()
        assert page.url.endswith("protocols=maxnet%2Crcp&set=flow.others.count%3D8")
        assert page.locator("tbody td:first-child").all_inner_texts() == ["maxnet", "rcp"]
        for kind in ("TOML", "CSV"):
            with page.expect_download() as download:
                page.get_by_role("button", name=f"Download {kind}").click()
            download.value.save_as(tmp_path / kind)
        scenario = loading.from_toml((tmp_path / "TOML").read_text(encoding="utf-8"), "S.toml")
        assert [flow.count for flow in scenario.flow] == [1, 8]
        assert (tmp_path / "CSV").read_text(encoding="utf-8").count("\nrcp,") == 300 + 8 * 200
        page.goto(link.replace("maxnet", "cubic"))
        page.locator(".wf-laws h3", has_text="cubic").wait_for()
        assert page.locator(".wf-laws h3").count() == 1
        assert shown.problems == []
        assert shown.violations() == []


def test_a_run_that_takes_too_long_is_stopped(chromium, site, widgets):
    with browser.shown(chromium, site / CONCEPTS) as shown:
        script = """async () => {
            const widget = waterfill.widgets.at(-1), engine = new waterfill.Engine();
            const network = {...widget.shipped.network, duration_s: 1e6, sample_s: 1e5};
            const ask = (network) => engine.run({network, backend: "sim"}).then(
                ({run}) => run.summary.links.length, (problem) => problem.message);
            engine.limit_ms = 300;
            const stopped = await ask(network);
            engine.limit_ms = 60000;
            return [stopped, await ask(widget.shipped.network)];
        }"""
        stopped, links = shown.page.evaluate(script)
        assert stopped == "the run was stopped after 0.3 s: choose lower rates or fewer flows"
        assert links == 2
