"""Tests of the comparison of laws on the kernel: its scenarios and its table."""

from __future__ import annotations

from dataclasses import replace

import pytest

from validation.testbed import laws
from waterfill.runs import backends
from waterfill.testbed import daemon

LAWS = ("maxnet", "maxnet2006", "xcp", "ixcp")


@pytest.fixture(autouse=True)
def _listed(monkeypatch):
    found = {law: daemon.LoadableLaw(law, (), (), ()) for law in LAWS}
    monkeypatch.setattr(daemon, "laws", lambda: found)


def test_every_law_runs_on_two_bottlenecks_and_some_on_their_papers_figures():
    names = [case.name for case in laws.cases()]
    figure = [f"fig1-{law}-{n}" for n in (4, 16, 63) for law in ("xcp", "ixcp")]
    thesis = [f"fig{n}-maxnet2006" for n in (10, 11, 12, 13)]
    assert names == [*LAWS, *thesis, *figure]
    for case in laws.cases():
        for place in laws.PLACES:
            assert case.scenario(place).protocol == case.law


def test_the_simulator_runs_the_kernels_integers_in_one_place():
    case = laws.cases()[0]
    kernel = case.scenario("sim-kernel").params["maxnet"]["arithmetic"]
    assert kernel == "kernel-host"
    assert "maxnet" not in case.scenario("sim").params
    assert laws.integers_of("xcp") == "kernel"


def test_the_table_marks_flows_that_are_off_and_checks_that_failed():
    flow = {"flow": "long", "rates_bps": {"sim": 10e6, "linux": 10.7e6}, "off": {"sim": 0.07}}
    near = {"flow": "short", "rates_bps": {"sim": 10e6, "linux": 9.6e6}, "off": {"sim": -0.04}}
    document = {"case": "xcp", "flows": [flow, near], "checks_failed": ["processor"]}
    rows = laws.table([document]).splitlines()[2:]
    assert rows == [
        "| xcp: checks failed: processor | long | 10.00 | – | – | 10.70 | **+7.0%** |",
        "|  | short | 10.00 | – | – | 9.60 | -4.0% |",
    ]


def test_figures_have_every_case_group_and_flow(tmp_path):
    short = {"settle_s": 4.5, "measure_s": 0.5}
    cases = [replace(c, **short) for c in laws.cases() if c.name in ("xcp", "fig10-maxnet2006")]
    found = {c: dict.fromkeys(laws.PLACES, backends.run(c.scenario("sim"))) for c in cases}
    laws.draw(found, tmp_path / "laws")
    drawn = {path.stem for path in tmp_path.glob("*.png")}
    assert drawn == {"xcp", "fig10-maxnet2006", "laws", "thesis"}
    (axis,) = laws.maxnet_plots.curves("xcp", [cases[0].panel], found[cases[0]]).axes
    assert len({line.get_gid() for line in axis.lines}) == 5
    # Panels with other flows have a legend each; the figure's is then of the backends alone.
    kinds = ["kernel", "simulator", "fluid"]
    assert legends(laws.overview(found)) == [["long", "wide-20", "wide-40", "narrow-20",
                                              "narrow-50"], ["first"], kinds]  # fmt: skip
    only = laws.overview({cases[0]: found[cases[0]]})
    assert legends(only)[-1][-4:] == ["narrow-50", *kinds]
    titles = [axis.get_title(loc="left") for axis in laws.overview(found).axes]
    assert titles == ["xcp on two bottlenecks", "maxnet2006: one flow (Fig. 10)"]


def legends(figure):
    """Return the entries of every legend: of the panels, then of the figure."""
    found = [axis.get_legend() for axis in figure.axes] + figure.legends
    return [[text.get_text() for text in one.get_texts()] for one in found if one is not None]
