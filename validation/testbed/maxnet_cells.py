"""Data of MaxNet's testbed experiments: scenarios, measures and goals.

A cell is one scenario, run by the kernel, the simulator and, if all of it has a fluid form, the
fluid model. Laws that are compared use the same path one after the other in one run, so that the
host's other load affects all of them. A goal is one value of the kernel's run, compared with a
constant or with another run's value.

Fig. 10 to 14 are from the thesis (`tcp-maxnet-2006`, §5), with a target of 0.94 and an older law;
here the law of 2007 runs with its defaults. `two-hop` and `cross-traffic` are from `maxnet-2007`,
§VII.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from waterfill.network import protocols
from waterfill.papers.claims.loading import papers_folder
from waterfill.runs.result import Document
from waterfill.scenario.document import Scenario
from waterfill.scenario.loading import from_dict, from_toml, load
from waterfill.testbed import kernel

Backend = Literal["sim", "fluid", "linux"]
LAW = "maxnet"
TARGET = 0.94
RTT_S = 0.028
# The requirements: utilization against the target, RTT against the base RTT, rates against the
# simulator's and equal shares, and the fraction of a rate that is left under random loss.
UTILIZATION_WITHIN = 0.02
RTT_WITHIN, RTT_WITHIN_S = 0.05, 0.5e-3
RATE_WITHIN = 0.05
EQUAL_WITHIN = 0.05
RATE_LEFT_UNDER_LOSS = 0.95
LOSSES = (0.0, 0.0005, 0.001, 0.0015, 0.002, 0.0025)


@dataclass(frozen=True)
class Of:
    """A measure of a run. Times in `args` are seconds of the scenario."""

    measure: str
    args: Mapping[str, Any]
    backend: Backend = "linux"
    cell: str | None = None
    """Name of the experiment whose run is measured, or None for the goal's own experiment."""


@dataclass(frozen=True)
class Goal:
    """A measured value with its reference, which is a constant, another run's value or none.

    `near`: within the fraction `within` of it; `least`, `most`: bounds.
    """

    name: str
    what: Of
    unit: str = ""
    kind: Literal["shown", "near", "least", "most"] = "shown"
    to: float | Of | None = None
    within: float = 0.0
    scale: float = 1.0
    """Factor on the reference, such as 0.95."""


@dataclass(frozen=True)
class Panel:
    """One axis of an experiment's figure, which shows a column of some flows, links or traffic
    sources.
    """

    y_label: str
    which: Literal["flows", "links", "traffic"]
    names: Sequence[str]
    column: str
    unit: float = 1.0
    average_s: float = 0.0
    from_zero: bool = True


@dataclass(frozen=True)
class MaxnetCell:
    """A MaxNet experiment: one scenario with its goals and figure."""

    name: str
    title: str
    source: Document | str
    """A scenario, or the path of a paper's experiment that contains it."""
    sets: Sequence[str] = ()
    goals: Sequence[Goal] = ()
    panels: Sequence[Panel] = ()
    backends: Sequence[Backend] = ("sim", "fluid", "linux")
    differs: str = ""
    """Differences between this scenario and the paper's scenario."""
    times: float = 1.0
    """Factor on the scenario's times, which is below 1 for a trial."""

    def scenario(self, backend: Backend) -> Scenario:
        """Return the experiment's scenario for a backend.

        All backends pace MaxNet, as the kernel does. The simulator runs the kernel's law with what
        its host program adds. The fluid has only MaxNet's flows.
        """
        of = self._whole()
        sets = [f"flow.{f.name}.pacing=true" for f in of.flow if _protocol(of, f) == LAW]
        if backend == "linux":
            sets = []
        if backend != "fluid":
            # Linux delays acknowledgements by default.
            sets += [f"flow.{f.name}.delayed_ack=true" for f in of.flow]
        if backend == "sim":
            if any(p.name == "arithmetic" for p in protocols.load()[LAW].params):
                sets.append(f'params.{LAW}.arithmetic="kernel-host"')
            for law in sorted({str(_protocol(of, f)) for f in of.flow}):
                sets += [f"params.{law}.{name}={json.dumps(value)}"
                         for name, value in kernel.choices(law).items()]  # fmt: skip
        if self.times != 1:
            sets += self._shorter(of)
        checked = from_toml(of.to_toml(), f"<{self.name}>", sets)
        if backend == "fluid":
            fluid = [flow for flow in checked.flow if _protocol(checked, flow) == LAW]
            checked = checked.model_copy(update={"flow": fluid})
        return checked

    def _whole(self) -> Scenario:
        if isinstance(self.source, str):
            # Hosts keep the thesis's eq. 12, which the 2007 paper's experiments turn off.
            sets = [f"protocol={LAW}", f"params.{LAW}.compensate=true", *self.sets]
            return load(papers_folder() / self.source / "scenario.toml", sets)
        of = from_dict(self.source, f"<{self.name}>")
        return from_toml(of.to_toml(), f"<{self.name}>", self.sets)

    def _shorter(self, of: Scenario) -> list[str]:
        """Return overrides that scale the duration, the measurement window, and the starts and
        stops.
        """

        def text(seconds: float) -> str:
            return f"{seconds * self.times:.6g} s"

        window = ", ".join(f'"{text(edge)}"' for edge in of.measure_s)
        sets = [f'duration="{text(of.duration)}"', f"measure=[{window}]"]
        for section, entries in (("flow", of.flow), ("traffic", of.traffic)):
            for index, entry in enumerate(entries):
                key = of.key(section, index)
                sets.append(f'{key}.start="{text(entry.start)}"')
                if entry.stop is not None:
                    sets.append(f'{key}.stop="{text(entry.stop)}"')
        return sets

    def shorter(self, times: float) -> MaxnetCell:
        """Return the experiment with scaled times, for a trial run on this host."""
        return replace(self, times=times)

    def arguments(self, of: Of) -> dict[str, Any]:
        """Return the arguments of a measure, with times scaled like the experiment's."""
        found = dict(of.args)
        for key in ("start_s", "stop_s", "at_s"):
            if key in found:
                found[key] = found[key] * self.times
        return found


def _protocol(of: Scenario, flow: Any) -> str | None:
    return flow.protocol or of.protocol


# --- goals ------------------------------------------------------------------------------------


def _window(start_s: float, stop_s: float) -> dict[str, float]:
    return {"start_s": start_s, "stop_s": stop_s}


def like_sim(flow: str, start_s: float, stop_s: float, which: str = "") -> Goal:
    """Return the goal that a flow has the same mean rate as in the simulator."""
    args = {"flow": flow} | _window(start_s, stop_s)
    name = f"rate of {which or flow}, {start_s:g}–{stop_s:g} s, against the simulator's"
    return Goal(name, Of("rate_over", args), "Mbit/s", "near",
                Of("rate_over", args, "sim"), RATE_WITHIN)  # fmt: skip


def _column(which: str, name: str, column: str, start_s: float, stop_s: float) -> dict[str, Any]:
    return {"which": which, "name": name, "column": column} | _window(start_s, stop_s)


def mean_rtt(flow: str, start_s: float, stop_s: float, base_s: float | None = RTT_S) -> Goal:
    """Return the goal that a flow's mean RTT is near its base RTT. Without `base_s` the RTT is only
    shown.
    """
    what = Of("price_mean", _column("flows", flow, "rtt_s", start_s, stop_s))
    if base_s is None:
        return Goal(f"RTT of {flow}", what, "ms")
    within = max(RTT_WITHIN, RTT_WITHIN_S / base_s)
    return Goal(f"RTT of {flow}, against its base", what, "ms", "near", base_s, within)


# --- scenarios --------------------------------------------------------------------------------


def _in_turn(laws: Mapping[str, str], each_s: float, gap_s: float) -> tuple[list[Document], float]:
    """Return one flow per law, one after another on the same path, and the end of the last flow."""
    flows, start_s = [], 0.0
    for name, protocol in laws.items():
        flows.append(
            {"name": name, "from": f"from-{name}", "to": f"to-{name}", "path": ["backbone"],
             "protocol": protocol, "start": f"{start_s:g} s", "stop": f"{start_s + each_s:g} s"}
        )  # fmt: skip
        start_s += each_s + gap_s
    return flows, start_s - gap_s


def _backbone(rate: str, **more: Any) -> Document:
    return {"name": "backbone", "from": "r1", "to": "r2", "rate": rate, "delay": "14 ms",
            "buffer": "1 bdp"} | more  # fmt: skip


def _params(mu: float) -> Document:
    return {LAW: {"mu": mu}}


def _one_flow(rate: str, label: str, packet: str) -> MaxnetCell:
    each_s, gap_s = 20.0, 2.0
    laws = {"maxnet": LAW, "cubic": "cubic", "bbr": "bbr"}
    flows, end_s = _in_turn(laws, each_s, gap_s)
    document = {
        "name": f"One flow at {rate}", "duration": f"{end_s:g} s", "protocol": LAW,
        "measure": ["5 s", "20 s"], "sample": "40 ms", "params": _params(TARGET),
        "link": [_backbone(rate)], "flow": flows, "packet_size": packet,
    }  # fmt: skip
    mine = _window(5, each_s)
    goals = [
        Goal("utilization, against the target",
             Of("utilization_over", {"link": "backbone"} | mine), "%", "near", TARGET,
             UTILIZATION_WITHIN),
        mean_rtt("maxnet", 5, each_s),
        Goal("drops", Of("drops_over", {"link": "backbone"} | _window(0, each_s)), "", "most", 0.0),
        like_sim("maxnet", 5, each_s),
    ]  # fmt: skip
    for i, law in enumerate(list(laws)[1:], start=1):
        start_s = i * (each_s + gap_s)
        window = (start_s + 5, start_s + each_s)
        goals += [
            Goal(f"utilization under {law}",
                 Of("utilization_over", {"link": "backbone"} | _window(*window)), "%"),
            mean_rtt(law, *window, base_s=None),
            Goal(f"drops under {law}",
                 Of("drops_over", {"link": "backbone"} | _window(start_s, window[1])), ""),
        ]  # fmt: skip
    return MaxnetCell(
        name=f"fig10-{label}", title=f"Fig. 10: one flow of 28 ms at {rate}", source=document,
        goals=goals,
        panels=[
            Panel("rate (Mbit/s)", "flows", list(laws), "rate_bps", 1e6, 0.28),
            Panel("RTT (ms)", "flows", list(laws), "rtt_s", 1e-3),
            Panel("queue (MB)", "links", ["backbone"], "queue_max_bytes", 1e6),
            Panel("price (s)", "flows", [LAW], f"{LAW}_price", from_zero=False),
        ],
        differs="the law of 2007 with the thesis's target; cubic and bbr follow on the same path; "
                f"packets of {packet}",
    )  # fmt: skip


def _loss(loss: float) -> MaxnetCell:
    each_s, gap_s = 20.0, 1.0
    laws = {"maxnet": LAW, "reno": "sack", "cubic": "cubic", "bbr": "bbr"}
    flows, end_s = _in_turn(laws, each_s, gap_s)
    document = {
        "name": f"Random loss of {loss:.2%}", "duration": f"{end_s:g} s", "protocol": LAW,
        "measure": ["0 s", f"{end_s:g} s"], "params": _params(TARGET), "flow": flows,
        "link": [_backbone("1 Gbit/s", loss=loss, loss_reverse=loss)], "packet_size": _JUMBO,
    }  # fmt: skip
    goals = []
    for i, law in enumerate(laws):
        # The whole transfer counts, including its start, as in the thesis.
        start_s = i * (each_s + gap_s)
        args = {"flow": law} | _window(start_s, start_s + each_s)
        if law == LAW:
            free = Of("rate_over", args, cell=loss_name(0.0))
            goals += [
                Goal("rate of maxnet, against that without loss", Of("rate_over", args), "Mbit/s",
                     "least", free, scale=RATE_LEFT_UNDER_LOSS),
                like_sim(law, start_s, start_s + each_s),
            ]  # fmt: skip
        else:
            goals.append(Goal(f"rate of {law}", Of("rate_over", args), "Mbit/s"))
    return MaxnetCell(
        name=loss_name(loss), title=f"Fig. 14: random loss of {loss:.2%}, both ways",
        source=document, goals=goals,
        panels=[Panel("rate (Mbit/s)", "flows", list(laws), "rate_bps", 1e6, 0.28)],
        backends=("sim", "linux"),
        differs="one transfer of 20 s per law instead of five; the other laws are the running "
                "kernel's; packets of 9000 bytes",
    )  # fmt: skip


def loss_name(loss: float) -> str:
    """Return the name of the experiment with a given loss probability."""
    return f"fig14-{loss * 1e4:g}e-4"


_DYNAMIC = (("RTT (ms)", "rtt_s", 1e-3, True), ("price (s)", f"{LAW}_price", 1.0, False))


def _dynamic(names: list[str], link: str) -> list[Panel]:
    panels = [Panel("rate (Mbit/s)", "flows", names, "rate_bps", 1e6, 0.28)]
    panels += [Panel(y, "flows", names, column, unit, 0.0, zero)
               for y, column, unit, zero in _DYNAMIC]  # fmt: skip
    panels.insert(2, Panel("queue (MB)", "links", [link], "queue_max_bytes", 1e6))
    return panels


# Two CPUs do not carry hosts, routers and delay line at 41,000 packets per second and more, both
# ways. Larger packets only change the rounding of windows.
_JUMBO = "9000 B"
_LARGE = (f'packet_size="{_JUMBO}"',)
_THESIS = (f"params.{LAW}.mu={TARGET}", *_LARGE)
_DIFFERS = "the law of 2007; packets of 9000 bytes"


def _second_flow() -> MaxnetCell:
    names = ["red-blue", "green-blue"]
    return MaxnetCell(
        name="fig11", title="Fig. 11: a second flow from 13 s to 27 s",
        source="tcp-maxnet-2006/second-flow", sets=_THESIS,
        goals=[
            like_sim("red-blue", 8, 13), like_sim("red-blue", 20, 27),
            like_sim("green-blue", 20, 27), like_sim("red-blue", 32, 40),
            mean_rtt("red-blue", 20, 27),
            Goal("largest RTT as the second flow starts",
                 Of("rtt_max", {"flow": "red-blue"} | _window(13, 16)), "ms"),
        ],
        panels=_dynamic(names, "backbone"), differs=_DIFFERS,
    )  # fmt: skip


def _three_flows() -> MaxnetCell:
    names = ["red-yellow", "green-yellow", "blue-yellow"]
    window = _window(20, 30)
    return MaxnetCell(
        name="fig12", title="Fig. 12: three flows of 56, 56 and 28 ms from 10 s",
        source="tcp-maxnet-2006/three-flows", sets=_THESIS,
        goals=[
            Goal("largest deviation of a rate from their mean",
                 Of("unequal", {"flows": names} | window), "%", "most", EQUAL_WITHIN),
            *(like_sim(name, 20, 30) for name in names),
        ],
        panels=_dynamic(names, "bottleneck"), differs=_DIFFERS,
    )  # fmt: skip


def _udp() -> MaxnetCell:
    cell = MaxnetCell(
        name="fig13", title="Fig. 13: 470 Mbit/s of UDP from 13 s to 27 s",
        source="tcp-maxnet-2006/udp", sets=_THESIS,
        goals=[
            *(like_sim("red-blue", *window) for window in ((8, 13), (20, 27), (32, 40))),
            mean_rtt("red-blue", 20, 27),
            Goal("drops beside UDP",
                 Of("drops_over", {"link": "backbone"} | _window(20, 27)), "", "most", 0.0),
        ],
        panels=_dynamic(["red-blue"], "backbone"), differs=_DIFFERS,
    )  # fmt: skip
    return replace(
        cell, panels=[*cell.panels, Panel("UDP (Mbit/s)", "traffic", ["udp"], "rate_bps", 1e6)]
    )


_TWO_HOP = {
    "red-blue": ((15, 20), (35, 40), (55, 60), (75, 80), (95, 100), (115, 120)),
    "green-yellow": ((35, 40), (55, 60), (75, 80), (95, 100)),
    "blue-yellow": ((55, 60), (75, 80), (95, 100), (115, 120)),
    "blue-yellow-2": ((75, 80),),
}


# A quarter of the paper's 100 MB: no queue fills them, and sockets have four times a path's total.
_NIC_BUFFERS = tuple(
    f'link.{host}-nic.buffer="25 MB"' for host in ("red", "green", "blue", "yellow")
)


def _two_hop() -> MaxnetCell:
    names = list(_TWO_HOP)
    return MaxnetCell(
        name="two-hop", title="Two bottlenecks of 622 and 400 Mbit/s",
        source="maxnet-2007/two-hop", sets=[*_LARGE, *_NIC_BUFFERS],
        differs="packets of 9000 bytes, 25 MB of buffer in each host",
        goals=[like_sim(flow, *w) for flow, windows in _TWO_HOP.items() for w in windows],
        panels=[
            Panel("rate (Mbit/s)", "flows", names, "rate_bps", 1e6, 1.0),
            Panel("queue (MB)", "links", ["link1", "link2"], "queue_max_bytes", 1e6, 0.5),
            Panel("price of links (s)", "links", ["link1", "link2"], f"{LAW}_price",
                  from_zero=False),
        ],
    )  # fmt: skip


def _cross_traffic() -> MaxnetCell:
    return MaxnetCell(
        name="cross-traffic", title="400 Mbit/s of CBR from 10 s to 20 s",
        source="maxnet-2007/cross-traffic", sets=_LARGE, differs="packets of 9000 bytes",
        goals=[like_sim("maxnet", *window) for window in ((5, 10), (15, 20), (25, 30))],
        panels=[
            Panel("rate (Mbit/s)", "flows", ["maxnet"], "rate_bps", 1e6, 0.1),
            Panel("CBR (Mbit/s)", "traffic", ["cbr"], "rate_bps", 1e6, 0.1),
            Panel("queue (MB)", "links", ["link"], "queue_max_bytes", 1e6),
        ],
    )  # fmt: skip


def cells() -> list[MaxnetCell]:
    """Return all experiments that a scenario can express, short ones first."""
    return [
        _one_flow("100 Mbit/s", "100M", "1500 B"),
        _one_flow("500 Mbit/s", "500M", _JUMBO),
        _one_flow("1 Gbit/s", "1G", _JUMBO),
        _second_flow(),
        _three_flows(),
        _udp(),
        _cross_traffic(),
        *(_loss(loss) for loss in LOSSES),
        _two_hop(),
    ]  # fmt: skip
