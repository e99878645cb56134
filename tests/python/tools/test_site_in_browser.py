"""The built site in a browser: no errors, no network, readable on a phone and by axe."""

from __future__ import annotations

import subprocess
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest

import browser
from known import ROOT

FRONT, LAW, API = "index.html", "reference/protocols/maxnet.html", "reference/python.html"


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
        env={"NO_MKDOCS_2_WARNING": "1", "PATH": "/usr/bin:/bin"},
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
