"""Widgets of the site: their scripts resolve, average and draw as Python does."""

from __future__ import annotations

import json
import shutil
import subprocess
from itertools import product

import pytest

from known import ROOT
from tools import site_widgets
from tools.site_widgets import WIDGETS, Widget, WidgetError
from validation.targets.builds import TARGETS
from waterfill.network import protocols, resolve
from waterfill.runs import backends
from waterfill.studio import chart


def answers(module: str, cases: list[dict]) -> list[dict]:
    """Return what the pages' scripts make of each case, under node."""
    if shutil.which("node") is None:
        pytest.skip("needs node: apt-get install nodejs")
    documents = {case["widget"]: site_widgets.document(WIDGETS[case["widget"]]) for case in cases}
    ran = subprocess.run(
        ["node", str(ROOT / "tests" / "support" / "widgets.cjs"), module],
        input=json.dumps({"documents": documents, "cases": cases}),
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(ran.stdout)


def ends(widget: Widget) -> list[list[tuple[str, str, float]]]:
    """Return each slider's first and last step, and one between, as key, text and number."""
    sliders = site_widgets.document(widget)["sliders"]
    return [
        [(s["key"], *s["steps"][i][:2]) for i in (0, len(s["steps"]) // 2, len(s["steps"]) - 1)]
        for s in sliders
    ]


@pytest.mark.parametrize("name", WIDGETS)
def test_scripts_resolve_the_grid_of_sliders_as_python_does(name):
    widget = WIDGETS[name]
    grid = [(law, steps) for law in widget.laws for steps in product(*ends(widget))]
    cases = [
        {"widget": name, "law": law, "values": {key: number for key, _, number in steps}}
        for law, steps in grid
    ]
    for (law, steps), answer in zip(grid, answers("", cases), strict=True):
        sets = [f"{key}={text}" for key, text, _ in steps]
        network = resolve.to_core(widget.load(law, sets), protocols.load())
        assert answer == {"network": json.loads(json.dumps(network.to_dict()))}, (law, sets)


def test_scripts_draw_the_charts_that_the_studio_draws():
    target = TARGETS["wasm32"]
    if target.lacks() is not None:
        pytest.skip(f"needs {target.lacks()}")
    target.build()
    cases = []
    for name, widget in WIDGETS.items():
        key, text, number = ends(widget)[-1][0]
        case = {"widget": name, "law": widget.laws[-1], "values": {key: number}, "run": True}
        cases.append((case, f"{key}={text}"))
    found = answers(str(target.module), [case for case, _ in cases])
    for (case, changed), answer in zip(cases, found, strict=True):
        widget = WIDGETS[case["widget"]]
        result = backends.run(widget.load(case["law"], [changed]), on="sim")
        drawn = [chart.render(one) for one in site_widgets.charts(widget, result)]
        assert answer["charts"] == drawn, case


def test_an_rtt_below_that_of_the_path_is_refused():
    case = {"widget": "two-speeds", "law": "maxnet", "values": {"flow.far.rtt": 0.01}}
    (answer,) = answers("", [case])
    said = "flow far: an RTT of 10 ms is below that of its path, 20 ms"
    assert answer == {"problem": said}


def test_what_no_script_resolves_is_refused():
    widget = Widget("w", "dumbbell", ["maxnet"], {}, sets=["link.bottleneck.queue=red"])
    with pytest.raises(WidgetError, match="w: no script resolves bottleneck, bottleneck:rev"):
        site_widgets.document(widget)


def test_an_unknown_widget_is_named():
    with pytest.raises(WidgetError, match="no widget is named 'prize'; there are price, "):
        site_widgets.insert("<!-- widget: prize -->", "a.html")


def test_a_page_without_a_widget_stays():
    assert site_widgets.insert("<head></head>", "a/b.html") == "<head></head>"


def test_a_module_without_names_has_its_other_sections():
    head, code = b"\0asm\1\0\0\0", b"\x01\x02ab"
    assert site_widgets._without_names(head + b"\0\x81\0n" + code + b"\0\1n") == head + code
