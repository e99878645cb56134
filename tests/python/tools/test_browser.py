"""Tests that the support for browser tests detects errors."""

import http.server
import threading

import pytest

import browser

GOOD = """<!doctype html><html lang=en><title>t</title><meta name=viewport
content="width=device-width, initial-scale=1"><main><h1>Heading</h1><p>Text.</p></main></html>"""


@pytest.fixture
def page(tmp_path):
    def write(html):
        path = tmp_path / "page.html"
        path.write_text(html, encoding="utf-8")
        return path

    return write


@pytest.mark.parametrize("width", browser.SIZES)
def test_a_good_page_has_no_problem(chromium, page, width):
    with browser.shown(chromium, page(GOOD), width=width) as shown:
        assert shown.problems == []
        assert shown.violations() == []
        assert shown.overflow_px() == 0
        assert shown.page.evaluate("innerWidth") == width


def test_errors_warnings_and_requests_are_kept(chromium, page):
    script = (
        "console.warn('w'); console.error('e'); setTimeout(() => { throw new Error('thrown') });"
        "var asked = fetch('https://example.org/').catch(() => 0);"
    )
    with browser.shown(chromium, page(f"{GOOD}<script>{script}</script>")) as shown:
        shown.page.evaluate("asked")
        found = " ".join(shown.problems)
    for part in ("warning: w", "error: e", "request: https://example.org/", "uncaught: thrown"):
        assert part in found


def test_violations_and_overflow_are_seen(chromium, page):
    bad = "<img src='data:,'><div style='width:2000px'>wide</div>"
    with browser.shown(chromium, page(GOOD.replace("<p>", f"{bad}<p>"))) as shown:
        assert any("image-alt" in line for line in shown.violations())
        assert not any("image-alt" in line for line in shown.violations("img"))
        assert shown.overflow_px() > 700


def test_the_scheme_reaches_the_page_and_this_host_may_answer(chromium, tmp_path):
    (tmp_path / "index.html").write_text(GOOD, encoding="utf-8")

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *arguments):
            super().__init__(*arguments, directory=str(tmp_path))

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            url = f"http://127.0.0.1:{server.server_port}/index.html"
            with browser.shown(chromium, url, scheme="dark") as shown:
                assert shown.page.title() == "t"
                assert shown.page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
        finally:
            server.shutdown()
            thread.join()


def test_the_difference_of_images(chromium, page, tmp_path):
    golden = tmp_path / "golden.png"
    with browser.shown(chromium, page(GOOD), width=300, height=200) as shown:
        before = shown.page.screenshot()
        golden.write_bytes(before)
        assert browser.difference(before, golden) == 0
        shown.page.evaluate("document.body.style.background = '#004488'")
        assert browser.difference(shown.page.screenshot(), golden) > 0.9
        shown.page.set_viewport_size({"width": 301, "height": 200})
        assert browser.difference(shown.page.screenshot(), golden) == 1
