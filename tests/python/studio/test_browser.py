"""The studio in a headless Chromium: it loads, sliders answer, tours complete by keyboard alone.

STUDIO_CHECK=1 (`make validate STUDY=studio`) walks all tours and measures every built-in scenario.
"""

from __future__ import annotations

import os
import signal
import statistics
import urllib.error
import urllib.request
from pathlib import Path

import pytest

import browser
import studio_page
from waterfill.studio import shipped, tours

pytest.importorskip("marimo", reason="the studio needs marimo: pip install waterfill[studio]")

GOLDEN = Path(__file__).parent / "golden"
ALL = os.environ.get("STUDIO_CHECK") == "1"
PAGES = {
    "charts": "scenario=parking-lot",
    "animation": "show=animation&scenario=two-hops",
    "tours": "show=tours&tour=water-filling&step=1",
    "pinned": "scenario=dumbbell&protocol=xcp&pin=scenario%3Ddumbbell",
    "drawn": "scenario=drawn",
}


@pytest.fixture(scope="module")
def studio(chromium, tmp_path_factory):
    with studio_page.served(tmp_path_factory.mktemp("home")) as server:
        yield server


def to_tours(page):
    """Show the tours by keyboard, from anywhere on the page."""
    studio_page.tab_to(page, "Show", key="Shift+Tab")
    page.keyboard.type("Guided")
    page.wait_for_selector('#wf-results[data-show="tours"]')


def walk(page, name):
    """Complete a tour by keyboard alone, from the list before; wait for each step's title.

    The page shows the number of a step before the server's answer replaces the title.
    """
    tour = tours.load()[name]
    studio_page.tab_to(page, "Tour")
    page.keyboard.type(tour.title)
    page.wait_for_selector(f"text={tour.title} · step 1 of {len(tour.steps)}")
    studio_page.tab_to(page, "Next")
    for place, step in enumerate(tour.steps):
        page.wait_for_selector(f"text=step {place + 1} of {len(tour.steps)}")
        page.locator("#wf-results h2", has_text=step.title).wait_for()
        page.keyboard.press("Enter")
    page.wait_for_selector("#wf-complete")


def test_only_this_host_with_the_token_is_answered(studio):
    host = studio.url.partition("/?")[0]
    with urllib.request.urlopen(host) as found:
        page = found.read().decode()
        assert found.headers["content-security-policy"].startswith("default-src 'self'")
    assert "/auth/login" in found.url
    assert "Waterfill studio" not in page
    other = urllib.request.Request(host, headers={"Host": "studio.example.org"})
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(other)
    assert refused.value.code == 400
    refused.value.close()
    assert host.startswith("http://127.0.0.1:")


def check(shown, scheme):
    assert studio_page.problems(shown) == []
    assert shown.violations() == []
    assert shown.overflow_px() == 0
    assert shown.page.evaluate("document.body.dataset.theme") == scheme


if ALL:

    @pytest.mark.parametrize("scheme", browser.SCHEMES)
    @pytest.mark.parametrize("width", browser.SIZES)
    @pytest.mark.parametrize("name", list(PAGES))
    def test_a_page_has_no_error_no_violation_and_fits(chromium, studio, name, width, scheme):
        url = studio.at(PAGES[name])
        with browser.shown(chromium, url, width=width, scheme=scheme) as shown:
            shown.page.wait_for_selector("#wf-results svg, #wf-results iframe")
            check(shown, scheme)

    def test_every_tour_completes_by_keyboard(chromium, studio):
        with browser.shown(chromium, studio.at("scenario=dumbbell")) as shown:
            studio_page.ready(shown.page)
            for name in tours.load():
                to_tours(shown.page)
                walk(shown.page, name)
                assert studio_page.problems(shown) == []

    def test_how_long_an_answer_takes(chromium, studio, capsys):
        with browser.shown(chromium, studio.at("scenario=dumbbell")) as shown:
            page = shown.page
            studio_page.ready(page)
            for name in shipped.names():
                page.get_by_label("Scenario", exact=True).select_option(name)
                page.wait_for_selector(f'#wf-results[data-query^="scenario={name}"]')
                for protocol in ("maxnet", "xcp", "rcp", "aecp", "cubic"):
                    page.get_by_label("Protocol", exact=True).select_option(protocol)
                    query = f"scenario={name}&protocol={protocol}"
                    page.wait_for_selector(f'#wf-results[data-query^="{query}"]')
                    # The sliders follow, and begin where the scenario is again.
                    page.get_by_role("button", name="Reset sliders").click()
                    page.wait_for_selector(f'#wf-results[data-query="{query}"]')
                    page.wait_for_selector(f'[data-cell-name="sliders"] h2:text-is("{protocol}")')
                    page.wait_for_timeout(500)
                    studio_page.tab_to(page, "Rate (Mbit/s)")
                    took = [studio_page.answer_ms(page) for _ in range(5)]
                    note = page.inner_text("#wf-results .wf-note >> nth=0")
                    with capsys.disabled():
                        print(_row(name, protocol, took, note))
            assert studio_page.problems(shown) == []


def _row(name, protocol, took, note):
    spread = f"({min(took):.0f} to {max(took):.0f})"
    return f"{name:16} {protocol:7} {statistics.median(took):5.0f} ms {spread:14} {note}"


def test_the_studio_looks_as_it_did(chromium, studio, tmp_path):
    """Golden image: after a wanted change, look at the new one that the failure names."""
    query = "scenario=two-hops&protocol=maxnet"
    with browser.shown(chromium, studio.at(query), width=1000, height=700) as shown:
        shown.page.wait_for_selector("#wf-results polyline", state="attached")
        browser.assert_looks_like(
            shown, GOLDEN / "charts.png", tmp_path, "#wf-results svg >> nth=0"
        )


def test_a_visit_with_sliders_and_a_tour_by_keyboard_until_ctrl_c(chromium, studio, capsys):
    # One page for all of it: loading it takes seconds. The last test, since it ends the studio.
    with browser.shown(chromium, studio.at("scenario=dumbbell")) as shown:
        page = shown.page
        page.wait_for_selector("#wf-results polyline", state="attached")
        before = page.get_attribute("#wf-results polyline >> nth=0", "points")
        studio_page.tab_to(page, "Rate (Mbit/s)")
        took = [studio_page.answer_ms(page) for _ in range(5)]
        assert page.get_attribute("#wf-results polyline >> nth=0", "points") != before
        page.wait_for_selector('#wf-state[href*="set=link.bottleneck.rate"]')
        check(shown, "light")
        to_tours(page)
        tour = next(iter(tours.load().values()))
        walk(page, tour.name)
        page.set_viewport_size({"width": browser.NARROW, "height": 900})
        page.emulate_media(color_scheme="dark")
        page.wait_for_selector("body.dark")
        check(shown, "dark")
        studio.process.send_signal(signal.SIGINT)
        assert studio.process.wait(20) == 130
    with capsys.disabled():
        print(f"\nslider to curve, median of 5: {statistics.median(took):.0f} ms", end=" ")
