"""Compare every law that the daemon has with the simulator and the fluid model: `make linux-laws`.

`python -m validation.testbed.laws [-o DIR] [--only GLOB] [--show]`. Each law runs alone on two
bottlenecks: one long flow and two short ones on each link. It must give every flow the simulator's
mean rate within 5 %, in real numbers and with the kernel's integers. So must XCP and iXCP on
ixcp-2007's Fig. 1, and the thesis's MaxNet in its Fig. 10 to 13, all at lower rates. Each run is
kept in DIR/<case>@<place> at once, so an interrupted comparison continues. A run on linux that
failed its checks is marked in the table, and repeated the next time.

DIR/table.md has every case's rates, DIR/rates.json the same as JSON, DIR/<case>.png and .svg the
rates over time in kernel, simulator and fluid model, DIR/overview.png and .svg all laws',
and DIR/fig1.png and DIR/thesis.png those of the papers' figures.
"""

from __future__ import annotations

import argparse
import fnmatch
import itertools
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from waterfill.analysis import draw, series
from waterfill.errors import InputError, RunError
from waterfill.network import protocols
from waterfill.runs import backends
from waterfill.runs.files import make_directory, write_text
from waterfill.runs.progress import Bar
from waterfill.runs.result import Document, Result, to_json
from waterfill.runs.stored import StoredResult
from waterfill.scenario.document import Scenario
from waterfill.scenario.loading import from_dict
from waterfill.testbed import checks, daemon

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WITHIN = 0.05
"""How far a flow's mean rate may be from the simulator's."""

# Where a law runs: the backend, and whether with the kernel's integers.
PLACES: Mapping[str, tuple[str, bool]] = {
    "sim": ("sim", False),
    "sim-kernel": ("sim", True),
    "fluid": ("fluid", False),
    "linux": ("linux", False),
}
_TITLES = {"sim": "simulator", "sim-kernel": "its integers", "fluid": "fluid", "linux": "kernel"}


@dataclass(frozen=True, eq=False)
class Case:
    """An experiment: one law in one scenario, at rest in the measure window."""

    name: str
    law: str
    title: str
    document: Mapping[str, Any]
    settle_s: float
    measure_s: float
    group: str = ""
    """The figure that shows it beside others; empty: none."""

    def scenario(self, place: str) -> Scenario:
        """Return the scenario for a place of PLACES."""
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


def _fig1(law: str, flows: int) -> Case:
    """Return ixcp-2007's Fig. 1 at 0.4 of its rates: n long flows, one over the first link."""
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
    return Case(f"fig1-{law}-{flows}", law, title, document, 30.0, 15.0, group)


def _thesis() -> list[Case]:
    """Return Fig. 10 to 13 of the thesis at a tenth of their rates; means while all flows send."""
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
        "beside UDP (Fig. 13)": {
            "link": [link], "flow": [first], "traffic": [traffic], "duration": "40 s",
        },
    }  # fmt: skip
    windows = ((5.0, 15.0), (20.0, 7.0), (20.0, 10.0), (20.0, 7.0))
    return [
        Case(
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
    """Return the word of `arithmetic` that runs the kernel's integers."""
    choices = protocols.load()[law].param("arithmetic").choices
    return next(c for c in reversed(choices) if c.startswith("kernel"))


def cases() -> list[Case]:
    """Return an experiment for each law that the daemon has, and those of papers."""
    found = [
        Case(
            law, law, f"{law} on two bottlenecks", _TWO_BOTTLENECKS, _SETTLE_S.get(law, 15.0), 15.0
        )
        for law in daemon.laws()
    ]
    if "maxnet2006" in daemon.laws():
        found += _thesis()
    found += [_fig1(law, n) for n in (4, 16, 63) for law in ("xcp", "ixcp") if law in daemon.laws()]
    return found


# --- runs -------------------------------------------------------------------------------------


class Runs:
    """Runs cases, and keeps the runs in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def kept(self, case: Case, place: str) -> Result | None:
        """Return the kept run of this exact scenario, valid or not; None if there is none."""
        try:
            found = StoredResult(self.folder / f"{case.name}@{place}")
        except (OSError, ValueError):
            return None
        return found if found.scenario_toml == case.scenario(place).to_toml() else None

    def valid(self, case: Case, place: str) -> bool:
        """Return whether there is a run that passed its checks."""
        run = self.kept(case, place)
        return run is not None and not failed(run)

    def run(self, case: Case, place: str) -> None:
        """Run a case and keep the result, atomically."""
        with Bar(f"{case.name}@{place}") as bar:
            result = backends.run(case.scenario(place), on=PLACES[place][0], progress=bar)
        if "interrupted_at_s" in result.summary:
            raise KeyboardInterrupt
        folder = self.folder / f"{case.name}@{place}"
        part = folder.with_name(f".{folder.name}.part")
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        result.write(part)
        write_text(part / "network.json", to_json(result.network.to_dict(), indent=None))
        shutil.rmtree(folder, ignore_errors=True)
        part.rename(folder)

    def document(self, case: Case) -> Document:
        """Return every flow's mean rates by place, in bit/s, and whether the kernel's agree."""
        runs = {place: run for place in PLACES if (run := self.kept(case, place)) is not None}
        rates = {place: group_rates(run) for place, run in runs.items()}
        flows: list[Document] = [
            {"flow": flow.name if flow.count == 1 else f"{flow.name}, mean of {flow.count}",
             "rates_bps": {place: rates[place][flow.name] for place in runs},
             "off": {place: rates["linux"][flow.name] / rates[place][flow.name] - 1
                     for place in ("sim", "sim-kernel") if {place, "linux"} <= runs.keys()}}
            for flow in case.scenario("sim").flow
        ]  # fmt: skip
        agrees = all(abs(off) <= WITHIN for flow in flows for off in flow["off"].values())
        return {
            "case": case.name,
            "title": case.title,
            "measure_s": [case.settle_s, case.settle_s + case.measure_s],
            "flows": flows,
            "agrees": agrees if "linux" in runs else None,
            "checks_failed": failed(runs["linux"]) if "linux" in runs else [],
        }

    def draw(self, case: Case) -> None:
        """Draw the rates over time from the kept runs."""
        runs = {place: run for place in PLACES if (run := self.kept(case, place)) is not None}
        if "linux" in runs:
            draw.save(curves(case, runs), self.folder / case.name)

    def draw_together(self) -> None:
        """Draw the kept cases of each group in one figure."""
        groups: dict[str, dict[Case, dict[str, Result]]] = {}
        for case in cases():
            runs = {place: run for place in PLACES if (run := self.kept(case, place)) is not None}
            if "linux" in runs and case.group:
                groups.setdefault(case.group, {})[case] = runs
        for name, found in groups.items():
            draw.save(overview(found), self.folder / name)


def group_rates(run: Result) -> dict[str, float]:
    """Return the mean rate of each group's flows, in bit/s."""
    groups: dict[str, list[float]] = {}
    for flow in run.summary["flows"]:
        groups.setdefault(flow["group"], []).append(flow["rate_bps"] or 0.0)
    return {name: float(np.mean(rates)) for name, rates in groups.items()}


def failed(run: Result) -> list[str]:
    """Return the names of the checks that a run failed."""
    return [check["name"] for check in run.summary.get("checks", ()) if not check["ok"]]


# --- the table and the figure -------------------------------------------------------------------


def table(documents: Sequence[Document]) -> str:
    """Return all rates as Markdown: Mbit/s, one row for each flow."""
    lines = ["| case | flow | " + " | ".join(_TITLES[p] for p in PLACES) + " | kernel, off |",
             "|---|---|" + "--:|" * (len(PLACES) + 1)]  # fmt: skip
    for document in documents:
        notes = [f"checks failed: {', '.join(document['checks_failed'])}"] * bool(
            document["checks_failed"]
        )
        for number, flow in enumerate(document["flows"]):
            case = ": ".join([document["case"], *notes]) if number == 0 else ""
            rates = [_mbps(flow["rates_bps"].get(place)) for place in PLACES]
            lines.append(f"| {case} | {flow['flow']} | {' | '.join(rates)} | {_off(flow['off'])} |")
    return "\n".join(lines) + "\n"


def _mbps(rate_bps: float | None) -> str:
    return "–" if rate_bps is None else f"{rate_bps / 1e6:.2f}"


def _off(off: Mapping[str, float]) -> str:
    """Return how far the kernel is from the simulator, and from the simulator's integers."""
    if not off:
        return "–"
    words = ", ".join(f"{value:+.1%}" for value in off.values())
    return words if all(abs(value) <= WITHIN for value in off.values()) else f"**{words}**"


_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9")
_STYLES: Mapping[str, Mapping[str, Any]] = {
    "linux": {"linewidth": 2.6, "alpha": 0.45, "linestyle": "-"},
    "sim": {"linewidth": 1.0, "alpha": 1.0, "linestyle": "-"},
    "fluid": {"linewidth": 1.2, "alpha": 1.0, "linestyle": ":"},
}


# More lines have no legend.
_MAX_LEGEND = 15


def curves(case: Case, runs: Mapping[str, Result]) -> Figure:
    """Draw every flow's rate over time, in intervals of 0.5 s; one colour for each flow."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.6, 3.9), layout="constrained")
    axis = figure.subplots()
    _rates(axis, case, runs)
    axis.set_xlabel("time (s)")
    axis.set_ylabel("rate (Mbit/s)")
    if len(axis.get_legend_handles_labels()[0]) <= _MAX_LEGEND:
        axis.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False, fontsize="small")
    figure.suptitle(case.title, x=0.01, ha="left")
    return figure


def overview(runs: Mapping[Case, Mapping[str, Result]]) -> Figure:
    """Draw the rates of several cases, two in a row."""
    from matplotlib.figure import Figure

    rows = (len(runs) + 1) // 2
    figure = Figure(figsize=(9.0, 0.6 + 2.2 * rows), layout="constrained")
    grid = figure.subplots(rows, 2, squeeze=False)
    for axis, (case, places) in zip(grid.flat, runs.items(), strict=False):
        _rates(axis, case, places)
        axis.set_title(case.name, fontsize="medium", loc="left")
    for axis in grid.flat[len(runs) :]:
        axis.set_axis_off()
    figure.supxlabel("time (s)", fontsize="medium")
    figure.supylabel("rate (Mbit/s)", fontsize="medium")
    return figure


def _rates(axis: Any, case: Case, runs: Mapping[str, Result]) -> None:
    flows = [name for flow in case.scenario("sim").flow for name in _names(flow.name, flow.count)]
    for place, style in _STYLES.items():
        for name, colour in zip(flows, itertools.cycle(_COLOURS), strict=False):
            if place not in runs:
                continue
            rows = runs[place].samples("flows", name)
            time_s, rate = series.numbers(rows, "time_s"), series.numbers(rows, "rate_bps")
            there = np.isfinite(rate)
            time_s, rate = series.intervals(time_s[there], rate[there], 0.5)
            axis.plot(time_s, rate / 1e6, color=colour, label=f"{name}, {_TITLES[place]}", **style)
    axis.set_xlim(0, case.scenario("sim").duration)
    axis.set_ylim(bottom=0)
    axis.grid(alpha=0.3)


def _names(flow: str, count: int) -> list[str]:
    return [flow] if count == 1 else [f"{flow}[{i}]" for i in range(count)]


# --- the command line -------------------------------------------------------------------------


def missing() -> str | None:
    """Return what this host lacks to run the cases; None if nothing."""
    if not daemon.laws():
        return "the daemon waterfilld beside this Python (make build), got none"
    return checks.missing(http=False)


def main() -> int:
    """Run the command; return 0 if every law agrees, else 1."""
    parser = argparse.ArgumentParser(prog="python -m validation.testbed.laws", description=__doc__)
    parser.add_argument(
        "-o", "--output", type=Path, metavar="DIR", default=Path("out/linux-laws"),
        help="where results are kept",
    )  # fmt: skip
    parser.add_argument("--only", default="*", metavar="GLOB", help="only these cases: '*xcp*'")
    parser.add_argument("--show", action="store_true", help="print the kept results, run nothing")
    options = parser.parse_args()
    lacking = None if options.show else missing()
    chosen = [case for case in cases() if fnmatch.fnmatch(case.name, options.only)]
    if lacking or not chosen:
        wanted = lacking or f"--only to match one of {', '.join(case.name for case in cases())}"
        print(f"linux-laws: expected {wanted}", file=sys.stderr)
        return 2
    runs = Runs(make_directory(options.output))
    try:
        for case in chosen if not options.show else ():
            for place in PLACES:
                if not runs.valid(case, place):
                    runs.run(case, place)
            write(runs)
            runs.draw(case)
        runs.draw_together()
    except KeyboardInterrupt:
        print("interrupted; the next start continues here", file=sys.stderr)
        return 130
    except (InputError, RunError) as error:
        print(error, file=sys.stderr)
        return 2 if isinstance(error, InputError) else 1
    documents = [runs.document(case) for case in chosen]
    print(table(documents))
    return 0 if all(d["agrees"] and not d["checks_failed"] for d in documents) else 1


def write(runs: Runs) -> None:
    """Write the table so far."""
    documents = [d for case in cases() if (d := runs.document(case))["agrees"] is not None]
    write_text(runs.folder / "rates.json", to_json(documents) + "\n")
    write_text(runs.folder / "table.md", table(documents))


if __name__ == "__main__":
    sys.exit(main())
