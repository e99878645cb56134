"""Compare all laws of the daemon with the simulator and the fluid model.

Each law runs alone on two bottlenecks: one long flow and two short ones on each link. It must give
every flow the simulator's mean rate within 5 %, in real numbers and with the kernel's integers. So
must XCP and iXCP on ixcp-2007's Fig. 1, and the thesis's MaxNet in its Fig. 10 to 13, all at lower
rates. A run on linux that failed its checks is marked in the table, and repeated by the next call.

DIR/<case>.png and .svg have the rates over time in kernel, simulator and fluid model; DIR/laws.png
has those of all laws, DIR/fig1.png and DIR/thesis.png those of the papers' figures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from validation import study
from validation.study import Study, StudyRun, failed_checks
from validation.tables import markdown
from validation.testbed import maxnet_plots
from validation.testbed.maxnet_cells import Panel
from waterfill.analysis.draw import save
from waterfill.runs.result import Document, Result
from waterfill.scenario.document import Scenario
from waterfill.scenario.loading import from_dict
from waterfill.testbed import daemon

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WITHIN = 0.05
"""Largest allowed relative deviation of a flow's mean rate from the simulator's."""

# Where a law runs: the backend, and whether with the kernel's integers.
PLACES: Mapping[str, tuple[str, bool]] = {
    "sim": ("sim", False),
    "sim-kernel": ("sim", True),
    "fluid": ("fluid", False),
    "linux": ("linux", False),
}
_TITLES = {"sim": "simulator", "sim-kernel": "its integers", "fluid": "fluid", "linux": "kernel"}


@dataclass(frozen=True, eq=False)
class LawCase:
    """One law in one scenario, which is in equilibrium during the measurement window."""

    name: str
    law: str
    title: str
    document: Mapping[str, Any]
    settle_s: float
    measure_s: float
    group: str = ""
    """Name of the figure that compares this case with others, or empty for none."""

    def scenario(self, place: str) -> Scenario:
        """Return the case's scenario for one entry of `PLACES`."""
        _, integers = PLACES[place]
        params = {"arithmetic": integers_of(self.law)} if integers else {}
        end_s = self.settle_s + self.measure_s
        return from_dict(
            {
                "name": self.title,
                "protocol": self.law,
                "duration": f"{end_s:g} s",
                "measure": [f"{self.settle_s:g} s", f"{end_s:g} s"],
                "sample": "100 ms",
                "params": {self.law: params} if params else {},
                **self.document,
            }
        )

    @property
    def panel(self) -> Panel:
        """Figure panel with the rates of all flows over time, averaged over intervals of 0.5 s."""
        flows = self.scenario("sim").flow
        names = [f"{f.name}[{i}]" if f.count > 1 else f.name for f in flows for i in range(f.count)]
        return Panel("rate (Mbit/s)", "flows", names, "rate_bps", 1e6, 0.5)


_TWO_BOTTLENECKS: Mapping[str, Any] = {
    "link": [
        {"name": "wide", "from": "r1", "to": "r2", "rate": "100 Mbit/s", "delay": "5 ms",
         "buffer": "400 packets"},
        {"name": "narrow", "from": "r2", "to": "r3", "rate": "50 Mbit/s", "delay": "5 ms",
         "buffer": "400 packets"},
    ],
    "flow": [
        {"name": "long", "path": ["wide", "narrow"], "rtt": "60 ms"},
        {"name": "wide-20", "path": ["wide"], "rtt": "20 ms", "start": "1 s"},
        {"name": "wide-40", "path": ["wide"], "rtt": "40 ms", "start": "2 s"},
        {"name": "narrow-20", "path": ["narrow"], "rtt": "20 ms", "start": "3 s"},
        {"name": "narrow-50", "path": ["narrow"], "rtt": "50 ms", "start": "4 s"},
    ],
}  # fmt: skip
# How long a law takes to settle, where it is not 15 s.
_SETTLE_S = {"aecp": 30.0, "vcp": 30.0}


def _fig1(law: str, flows: int) -> LawCase:
    """Return ixcp-2007's Fig. 1 at 0.4 times its rates: `flows` long flows, and one over the first
    link only.
    """
    document = {
        "packet_size": "1000 B",
        "link": [
            {"name": "first", "from": "a", "to": "b", "rate": "62 Mbit/s", "delay": "20 ms",
             "buffer": "1 bdp"},
            {"name": "second", "from": "b", "to": "c", "rate": "40 Mbit/s", "delay": "20 ms",
             "buffer": "1 bdp"},
        ],
        "flow": [
            {"name": "short", "path": ["first"]},
            {"name": "long", "path": ["first", "second"], "count": flows},
        ],
    }  # fmt: skip
    title = f"{law}, {flows} long flows and a short one (ixcp-2007, Fig. 1 at 0.4 of its rates)"
    group = "fig1" if flows == 16 else ""
    return LawCase(f"fig1-{law}-{flows}", law, title, document, 30.0, 15.0, group)


def _thesis() -> list[LawCase]:
    """Return Fig. 10 to 13 of tcp-maxnet-2006 at a tenth of their rates, measured while all flows
    send.
    """
    link = {"name": "link", "from": "a", "to": "b", "rate": "100 Mbit/s", "delay": "14 ms",
            "buffer": "1 bdp"}  # fmt: skip
    first = {"name": "first", "path": ["link"]}
    joins = {"start": "13 s", "stop": "27 s"}
    traffic = {"name": "udp", "kind": "cbr", "path": ["link"], "rate": "47 Mbit/s"} | joins
    documents: Mapping[str, Mapping[str, Any]] = {
        "one flow (Fig. 10)": {"link": [link], "flow": [first]},
        "a second flow joins and leaves (Fig. 11)": {
            "link": [link], "flow": [first, {"name": "second", "path": ["link"]} | joins],
            "duration": "40 s",
        },
        "three flows, two RTTs (Fig. 12)": {
            "link": [link | {"rate": "40 Mbit/s"}],
            "flow": [{"name": "one-56", "path": ["link"], "rtt": "56 ms"},
                     {"name": "two-56", "path": ["link"], "rtt": "56 ms"},
                     {"name": "three-28", "path": ["link"], "start": "10 s"}],
        },
        "next to UDP (Fig. 13)": {
            "link": [link], "flow": [first], "traffic": [traffic], "duration": "40 s",
        },
    }  # fmt: skip
    windows = ((5.0, 15.0), (20.0, 7.0), (20.0, 10.0), (20.0, 7.0))
    return [
        LawCase(
            f"fig{10 + n}-maxnet2006",
            "maxnet2006",
            f"maxnet2006: {title}",
            document,
            *window,
            "thesis",
        )
        for n, ((title, document), window) in enumerate(
            zip(documents.items(), windows, strict=True)
        )
    ]


def integers_of(law: str) -> str:
    """Return the value of the parameter `arithmetic` that selects the kernel's integers."""
    return "kernel-host" if law == "maxnet" else "kernel"


def cases() -> list[LawCase]:
    """Return a case for each of the daemon's laws, and the papers' experiments."""
    found = [
        LawCase(
            law,
            law,
            f"{law} on two bottlenecks",
            _TWO_BOTTLENECKS,
            _SETTLE_S.get(law, 15.0),
            15.0,
            "laws",
        )
        for law in daemon.laws()
    ]
    if "maxnet2006" in daemon.laws():
        found += _thesis()
    found += [_fig1(law, n) for n in (4, 16, 63) for law in ("xcp", "ixcp") if law in daemon.laws()]
    return found


# --- runs -------------------------------------------------------------------------------------


Runs = Mapping[str, Result]


def document(case: LawCase, runs: Runs) -> Document:
    """Return every flow's mean rates (bit/s) by entry of `PLACES`, and the verdict on the kernel's
    rates.
    """
    rates = {place: group_rates(run) for place, run in runs.items()}
    flows: list[Document] = [
        {"flow": flow.name if flow.count == 1 else f"{flow.name}, mean of {flow.count}",
         "rates_bps": {place: rates[place][flow.name] for place in runs},
         "off": {place: rates["linux"][flow.name] / rates[place][flow.name] - 1
                 for place in ("sim", "sim-kernel")}}
        for flow in case.scenario("sim").flow
    ]  # fmt: skip
    return {
        "case": case.name,
        "title": case.title,
        "measure_s": [case.settle_s, case.settle_s + case.measure_s],
        "flows": flows,
        "agrees": all(abs(off) <= WITHIN for flow in flows for off in flow["off"].values()),
        "checks_failed": failed_checks(runs["linux"]),
    }


def draw(found: Mapping[LawCase, Runs], stem: Path) -> None:
    """Draw the rates of each case over time, and those of each group of cases in one figure."""
    groups: dict[str, dict[LawCase, Runs]] = {}
    for case, runs in found.items():
        figure = maxnet_plots.curves(case.title, [case.panel], runs)
        save(figure, stem.with_name(case.name))
        if case.group:
            groups.setdefault(case.group, {})[case] = runs
    for name, mine in groups.items():
        save(overview(mine), stem.with_name(name))


def group_rates(run: Result) -> dict[str, float]:
    """Return the mean rate (bit/s) of the flows in each group."""
    groups: dict[str, list[float]] = {}
    for flow in run.summary["flows"]:
        groups.setdefault(flow["group"], []).append(flow["rate_bps"] or 0.0)
    return {name: float(np.mean(rates)) for name, rates in groups.items()}


# --- the table and the figure -------------------------------------------------------------------


def table(documents: Sequence[Document]) -> str:
    """Return all rates in Mbit/s as a Markdown table with one row per flow."""
    lines = []
    for document in documents:
        notes = [f"checks failed: {', '.join(document['checks_failed'])}"] * bool(
            document["checks_failed"]
        )
        for number, flow in enumerate(document["flows"]):
            case = ": ".join([document["case"], *notes]) if number == 0 else ""
            rates = [_mbps(flow["rates_bps"].get(place)) for place in PLACES]
            lines.append([case, flow["flow"], *rates, _off(flow["off"])])
    return markdown(f"case|flow|{':|'.join(_TITLES.values())}:|kernel, off:", lines) + "\n"


def _mbps(rate_bps: float | None) -> str:
    return "–" if rate_bps is None else f"{rate_bps / 1e6:.2f}"


def _off(off: Mapping[str, float]) -> str:
    """Return the kernel's relative deviations from the simulator, with real numbers and with
    integers.
    """
    if not off:
        return "–"
    words = ", ".join(f"{value:+.1%}" for value in off.values())
    return words if all(abs(value) <= WITHIN for value in off.values()) else f"**{words}**"


def overview(runs: Mapping[LawCase, Mapping[str, Result]]) -> Figure:
    """Draw the rates of several cases, two per row.

    Panels with different flows have a legend each; one legend of the backends is for all.
    """
    from matplotlib.figure import Figure

    rows = (len(runs) + 1) // 2
    figure = Figure(figsize=(9.0, 0.9 + 2.2 * rows), layout="constrained")
    grid = figure.subplots(rows, 2, squeeze=False)
    axes = list(grid.flat)[: len(runs)]
    for axis, (case, places) in zip(axes, runs.items(), strict=True):
        maxnet_plots.panel(axis, case.panel, places)
        axis.set_title(case.title.partition(" (ixcp")[0], fontsize="medium", loc="left")
        axis.xaxis.get_major_locator().set_params(integer=True)
    for axis in grid.flat[len(runs) :]:
        axis.set_axis_off()
    backends = [name for name in maxnet_plots.NAMES if name in next(iter(runs.values()))]
    same = len({tuple(line.get_gid() for line in axis.lines) for axis in axes}) == 1
    if not same:
        for axis in axes:
            axis.legend(handles=maxnet_plots.legend([axis], []), loc="lower left", fontsize="small")
    handles = maxnet_plots.legend(axes if same else [], backends)
    figure.legend(handles=handles, loc="outside upper center", ncols=5, frameon=False)
    figure.supxlabel("time (s)", fontsize="medium")
    figure.supylabel("rate (Mbit/s)", fontsize="medium")
    return figure


# --- the study ----------------------------------------------------------------------------------


def failed(found: Mapping[LawCase, Runs]) -> list[str]:
    """Return the cases whose rates differ from the simulator's or whose run on linux is invalid."""
    documents = [document(case, runs) for case, runs in found.items()]
    return [f"{one['case']}: {', '.join(one['checks_failed']) or 'rates differ'}"
            for one in documents if one["checks_failed"] or not one["agrees"]]  # fmt: skip


STUDY = Study(
    shows="every explicit law has the simulator's rates on the kernel, within 5 %",
    minutes=15,
    needs=(study.on_linux(), study.DAEMON),
    options=(study.only("*xcp*"),),
    quick={"only": "rcp"},
    cases=lambda _: cases(),
    runs=lambda case: {place: StudyRun(case.scenario(place), PLACES[place][0]) for place in PLACES},
    measure=lambda _, results: results,
    valid=study.passed_checks,
    table=lambda found: table([document(case, runs) for case, runs in found.items()]),
    document=lambda found: [document(case, runs) for case, runs in found.items()],
    figure=draw,
    failed=failed,
)
