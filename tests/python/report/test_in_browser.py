"""Pages in a headless Chromium: no errors, accessible, usable by keyboard, narrow and dark too."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

import browser
from waterfill.report import write

GOLDEN = Path(__file__).parent / "golden"


@pytest.fixture(scope="module")
def pages(
    made_run, made_many, made_comparison, made_sweep, made_map, made_claims, made_evaluation
) -> dict[str, Path]:
    folders = {"run": made_run, "many": made_many, "comparison": made_comparison,
               "sweep": made_sweep, "map": made_map, "evaluation": made_evaluation}  # fmt: skip
    written = {name: write.write(folder)[0] for name, folder in folders.items()}
    return written | {"reproduction": made_claims}


def ready(shown: browser.Shown):
    """Wait until the charts in sight are drawn; return the page."""
    shown.page.wait_for_selector("html[data-ready=yes]", state="attached")
    return shown.page


@pytest.fixture(scope="module")
def opened(chromium, pages):
    """The page of a run, one for tests that leave it as it was."""
    with browser.shown(chromium, pages["run"]) as shown:
        ready(shown)
        yield shown
        assert shown.problems == []


@pytest.mark.parametrize("name", ["run", "comparison", "sweep", "evaluation", "reproduction"])
def test_pages_load_and_are_accessible(chromium, pages, name):
    with browser.shown(chromium, pages[name], width=browser.NARROW, scheme="dark") as shown:
        page = ready(shown)
        page.evaluate(
            "for (const one of document.querySelectorAll('.criterion details')) one.open = true"
        )
        page.locator(".plot, .beside img").first.scroll_into_view_if_needed()
        page.wait_for_selector(".plot .main-svg, .beside img")
        assert shown.violations(".plot") == []
        for width, scheme in itertools.product(browser.SIZES, browser.SCHEMES):
            shown.resize(width, scheme)
            page.wait_for_selector(f"html[data-theme={scheme}]", state="attached")
            assert shown.overflow_px() == 0
        shown.resize(browser.WIDE, "light")
        page.wait_for_selector("html[data-theme=light]", state="attached")
        assert shown.violations(".plot", rules=browser.CONTRAST) == []
        assert shown.problems == []


def test_a_table_shows_on_which_side_it_goes_on(chromium, pages):
    with browser.shown(chromium, pages["evaluation"], width=browser.NARROW) as shown:
        page = ready(shown)
        scroll = page.locator("#table-verdicts .scroll")
        scroll.evaluate("(box) => box.scrollIntoView(false)")
        box = scroll.bounding_box()
        clip = {**box, "y": box["y"] + box["height"] - 8, "height": 1}
        shades = []
        for left in (0, 10_000):
            scroll.evaluate("(box, left) => { box.scrollLeft = left; }", left)
            row = browser.pixels(page.screenshot(clip=clip))[0]
            shades.append([int(row[place].sum()) for place in (1, -2)])
        (first, goes_on), (goes_on_before, last) = shades
        assert first == last
        assert goes_on < first - 60
        assert goes_on_before < last - 60


def test_ticks_of_a_logarithmic_axis_are_whole_values(chromium, made_evaluation, tmp_path):
    text = (made_evaluation / "verdicts.json").read_text()
    (tmp_path / "verdicts.json").write_text(text.replace('"5 packets"', '"2 packets"'))
    with browser.shown(chromium, write.write(tmp_path)[0]) as shown:
        page = ready(shown)
        page.locator(".plot").first.scroll_into_view_if_needed()
        page.wait_for_selector(".plot .xtick text")
        ticks = [float(tick) for tick in page.locator(".plot .xtick text").all_text_contents()]
        assert len(ticks) > 2
        assert ticks == sorted(ticks)


def test_tables_sort_and_search_by_keyboard(opened):
    page = opened.page
    page.locator("#data-flows thead button", has_text="retransmissions").focus()
    heads = page.locator("#data-flows thead th").all_text_contents()
    (place,) = (i for i, head in enumerate(heads, 1) if head.strip().startswith("retransmissions"))
    columns: list[list[float]] = []
    for order in ("ascending", "descending"):
        page.keyboard.press("Enter")
        assert page.locator(f"#data-flows th[aria-sort={order}]").count() == 1
        cells = page.locator(f"#data-flows tbody tr td:nth-child({place})").all_text_contents()
        columns.append([float(text) for text in cells])
    assert columns[0] == sorted(columns[0])
    assert columns[1] == sorted(columns[0], reverse=True)
    page.locator("input[data-for=data-flows]").focus()
    page.keyboard.type("LOCAL")
    assert page.locator("#data-flows tbody tr:visible").count() == 4
    assert page.locator("#table-flows .hits").text_content() == "4 of 9 rows"
    page.keyboard.press("Control+A")
    page.keyboard.press("Delete")
    assert page.locator("#data-flows tbody tr:visible").count() == 9


def test_the_legend_hides_series(opened):
    page = opened.page
    entry = page.locator("#chart-rates .legend button", has_text="local[1]").first
    lines = page.locator("#chart-rates .plot .scatterlayer .trace")
    before = lines.count()
    entry.focus()
    for pressed, count in (("false", before - 1), ("true", before)):
        page.keyboard.press("Space")
        assert entry.get_attribute("aria-pressed") == pressed
        assert lines.count() == count


def test_the_max_min_shares_have_one_entry_of_the_legend(opened):
    page = opened.page
    entry = page.locator("#chart-rates .legend button", has_text="max-min share")
    assert entry.all_inner_texts() == ["max-min shares"]
    lines = page.locator("#chart-rates .plot .scatterlayer .trace")
    before = lines.count()
    entry.click()
    assert lines.count() <= before - 2
    entry.click()
    assert lines.count() == before


def test_the_switch_changes_colours(opened):
    page = opened.page
    theme = page.locator("#theme")
    theme.select_option("dark")
    assert page.get_attribute("html", "data-theme") == "dark"
    theme.select_option("auto")
    assert page.get_attribute("html", "data-theme") == "light"


def test_names_run_no_script(opened):
    assert opened.page.locator("script").count() == 3
    names = opened.page.locator("#data-flows tbody th").all_text_contents()
    assert "<script>hacked()</script>" in names


def test_prints_are_light_and_whole(opened):
    page = opened.page
    page.emulate_media(color_scheme="dark")
    page.wait_for_selector("html[data-theme=dark]", state="attached")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    assert page.get_attribute("html", "data-theme") == "light"
    assert not page.locator("nav").is_visible()
    plots = page.locator("[data-chart] .plot")
    assert page.locator("[data-chart] .plot.js-plotly-plot").count() == plots.count() > 5
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.get_attribute("html", "data-theme") == "dark"


def test_a_flow_of_many_is_added_by_name(chromium, pages):
    with browser.shown(chromium, pages["many"]) as shown:
        page = ready(shown)
        page.locator("#chart-rates .pick input").focus()
        page.keyboard.type("f[17]")
        page.keyboard.press("Enter")
        assert page.locator("#chart-rates .legend button", has_text="f[17]").count() == 1
        assert shown.problems == []


def test_runs_of_a_comparison_are_tabs(chromium, pages):
    with browser.shown(chromium, pages["comparison"]) as shown:
        page = ready(shown)
        tabs = page.locator("[role=tab]")
        tabs.first.focus()
        for key, chosen in (("ArrowRight", 1), ("End", 2), ("ArrowRight", 0)):
            page.keyboard.press(key)
            assert tabs.nth(chosen).get_attribute("aria-selected") == "true"
            assert page.locator("[role=tabpanel]:visible").count() == 1
            page.locator(f"#chart-d{chosen}-rates .plot.js-plotly-plot").wait_for()
        assert shown.problems == []


def test_figures_of_a_sweep_are_chosen(chromium, pages):
    with browser.shown(chromium, pages["map"]) as shown:
        page = ready(shown)
        page.locator("select[data-panels]").select_option(label="drops")
        page.locator("#chart-f1-0 .heatmaplayer .hm").wait_for()
        assert not page.locator("#chart-f0-0").is_visible()
        assert shown.problems == []


def test_claims_are_filtered_by_keyboard(chromium, pages):
    with browser.shown(chromium, pages["reproduction"]) as shown:
        page = ready(shown)
        status = page.locator("#filters [role=status]")
        claims = page.locator("[data-verdict]:visible")
        assert status.text_content() == "3 of 3 claims shown"
        page.locator("#filters [name=verdict]").select_option("differs")
        assert status.text_content() == "1 of 3 claims shown"
        assert claims.count() == 1
        page.locator("#filters [name=verdict]").select_option("short")
        assert claims.count() == 1
        page.locator("#filters [name=verdict]").select_option("")
        page.locator("#filters [name=text]").focus()
        page.keyboard.type("BARELY")
        assert status.text_content() == "1 of 3 claims shown"
        page.keyboard.press("Enter")  # sends no form
        assert claims.count() == 1
        page.keyboard.type("x")
        assert not page.locator("[data-experiment]").is_visible()
        assert shown.problems == []


# What is looked at: of a run and of a comparison a chart, as their tops state times.
PARTS = {
    "run": "#chart-rates",
    "comparison": "#chart-d0-rates",
    "sweep": None,
    "reproduction": None,
}


@pytest.mark.parametrize("name", PARTS)
def test_pages_look_as_they_did(chromium, pages, name, tmp_path):
    """Golden images: after a wanted change, look at the new one that the failure names."""
    with browser.shown(chromium, pages[name], width=800, height=640) as shown:
        page = ready(shown)
        if PARTS[name]:
            page.locator(PARTS[name]).scroll_into_view_if_needed()
            page.locator(f"{PARTS[name]} .main-svg").first.wait_for()
        else:
            page.locator(".plot .main-svg, .beside img").first.wait_for()
        browser.assert_looks_like(shown, GOLDEN / f"{name}.png", tmp_path, PARTS[name])
