"""Widgets of the site: their scripts resolve, average and draw as Python does."""

from __future__ import annotations

import json
import shutil
import subprocess
from itertools import product

import pytest

from known import ROOT
from tools import site_playground, site_widgets
from tools.site_widgets import WIDGETS, Widget, WidgetError
from validation.targets import packing
from validation.targets.builds import TARGETS
from waterfill.network import protocols, resolve
from waterfill.runs import backends
from waterfill.scenario import loading
from waterfill.studio import chart


def answers(module: str, cases: list[dict], documents: dict | None = None) -> list[dict]:
    """Return what the pages' scripts make of each case, under node. `documents` are those of the
    cases' widgets by default.
    """
    if shutil.which("node") is None:
        pytest.skip("needs node: apt-get install nodejs")
    names = {case["widget"] for case in cases}
    documents = documents or {name: site_widgets.document(WIDGETS[name]) for name in names}
    ran = subprocess.run(
        ["node", str(ROOT / "tests" / "support" / "widgets.cjs"), module],
        input=json.dumps({"documents": documents, "cases": cases}),
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(ran.stdout)


def ends(sliders: list[dict]) -> list[list[tuple[str, str, float]]]:
    """Return each slider's first and last step as key, text and number."""
    return [[(s["key"], *s["steps"][i][:2]) for i in (0, -1)] for s in sliders]


@pytest.mark.parametrize("name", WIDGETS)
def test_scripts_resolve_the_grid_of_sliders_as_python_does(name):
    widget = WIDGETS[name]
    grid = [
        (law, steps)
        for law in widget.laws
        for steps in product(*ends(site_widgets.document(widget)["sliders"]))
    ]
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
    for name in ("price", "max-min", "two-speeds", "start"):  # the quick ones, of every kind
        widget = WIDGETS[name]
        key, text, number = ends(site_widgets.document(widget)["sliders"])[-1][0]
        case = {"widget": name, "law": widget.laws[-1], "values": {key: number}, "run": True}
        cases.append((case, f"{key}={text}"))
    found = answers(str(target.module), [case for case, _ in cases])
    for (case, changed), answer in zip(cases, found, strict=True):
        widget = WIDGETS[case["widget"]]
        result = backends.run(widget.load(case["law"], [changed]), on="sim")
        drawn = [chart.render(one) for one in site_widgets.charts(widget, result)]
        assert answer["charts"] == drawn, case
        head, *rows = answer["csv"].splitlines()
        assert head == "law,time_s,flow,rate_bps,window_bytes,rtt_s"
        law, time_s, flow, rate_bps, *_ = rows[-1].split(",")
        last = result.flows.slice(len(rows) - 1).to_pylist()
        assert [[law, float(time_s), flow, float(rate_bps)]] == [
            [case["law"], one["time_s"], one["flow"], one["rate_bps"]] for one in last
        ]


@pytest.fixture(scope="module")
def scenarios():
    return {name: site_playground.document(name) for name in site_playground.SCENARIOS}


def test_a_downloaded_scenario_is_the_network_of_the_page(scenarios):
    cases = []
    for name, shipped in scenarios.items():
        # An RTT must not be below the delays of its path.
        left_out = ".delay" if any(shipped["given"]["rtt_s"]) else ".rtt"
        for steps in zip(*ends(shipped["sliders"]), strict=True):
            steps = [step for step in steps if not step[0].endswith(left_out)]
            texts = {key: text for key, text, _ in steps}
            values = {key: number for key, _, number in steps}
            cases.append({"widget": name, "law": "rcp", "values": values, "texts": texts})
    for case, answer in zip(cases, answers("", cases, scenarios), strict=True):
        network = resolve.to_core(loading.from_toml(answer["toml"], "S.toml"), protocols.load())
        assert answer["network"] == json.loads(json.dumps(network.to_dict())), case


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (
            "#scenario=two-hops&protocols=rcp%2Cxcp&set=flow.late.count%3D5",
            "#scenario=two-hops&protocols=rcp%2Cxcp&set=flow.late.count%3D5",
        ),
        (
            "#scenario=none&protocols=tcp%2Crcp%2Crcp&set=flow.late.count%3D5&set=x",
            "#scenario=dumbbell&protocols=rcp",
        ),
        (
            "#protocols=reno%2Crcp%2Cxcp%2Caecp&set=flow.far.count%3Dmany",
            "#scenario=dumbbell&protocols=reno%2Crcp%2Cxcp",
        ),
        ("", "#scenario=dumbbell&protocols=maxnet%2Cxcp%2Ccubic"),
    ],
)
def test_a_link_restores_the_state_and_wrong_parts_are_left_out(scenarios, given, kept):
    (answer,) = answers("", [{"widget": "dumbbell", "fragment": given}], scenarios)
    assert answer["fragment"] == kept


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


def test_a_host_without_the_tools_gets_pictures_and_no_script(monkeypatch):
    monkeypatch.setattr(site_widgets, "engine", lambda: "")
    page = site_widgets.insert("<head></head><body><!-- widget: price --></body>", "a/b.html")
    assert page.count("<svg") == 2
    assert "these are pictures" in page
    assert "<script defer" not in page
    assert list(site_widgets.files()) == ["assets/widget/chart.css"]


def test_a_module_without_names_has_its_other_sections():
    head, code = b"\0asm\1\0\0\0", b"\x01\x02ab"
    assert packing.without_names(head + b"\0\x81\0n" + code + b"\0\1n") == head + code
