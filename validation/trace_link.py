"""Compare the simulator and the running kernel on a link whose rate follows a trace.

Two flows of one law cross the shipped trace for a minute on each backend. The goals are the ratio
of the mean rates and the correlation of the rates over 1 s.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from validation.study import ROOT, Option, Study, StudyRun, on_linux
from validation.tables import markdown
from waterfill.runs.result import Result
from waterfill.scenario.loading import from_toml

PROTOCOLS = ("cubic", "sack", "newreno", "xcp", "maxnet")
FROM_S, TO_S = 5, 60
RATIO, CORRELATION = 0.05, 0.96

SCENARIO = f"""
duration = "{TO_S} s"
sample = "1 s"
measure = ["{FROM_S} s", "{TO_S} s"]
[[link]]
name = "cell"
from = "tower"
to = "phone"
rate = "15 Mbit/s"
delay = "20 ms"
buffer = "2 bdp"
rate_trace = "cellular.csv"
[[flow]]
name = "down"
from = "tower"
to = "phone"
count = 2
"""


def runs(protocol: str) -> dict[str, StudyRun]:
    """Return a protocol's runs on both backends."""
    text = f'protocol = "{protocol}"{SCENARIO}'
    scenario = from_toml(text, str(ROOT / "examples" / "trace.toml"))
    return {on: StudyRun(scenario, on) for on in ("sim", "linux")}


def rates(result: Result) -> NDArray[np.float64]:
    """Return the total rate (bit/s) of both flows in each second of the measurement window."""
    flows = result.flows.to_pydict()
    found = np.zeros(TO_S + 1)
    for time_s, bps in zip(flows["time_s"], flows["rate_bps"], strict=True):
        found[round(time_s)] += bps or 0.0
    return found[FROM_S + 1 :]


class TraceRow(NamedTuple):
    """Mean rates on both backends (bit/s), and the correlation of the rates over time."""

    sim_bps: float
    linux_bps: float
    correlation: float

    @property
    def ratio(self) -> float:
        """Ratio of the kernel's mean rate to the simulator's."""
        return self.linux_bps / self.sim_bps

    @property
    def good(self) -> bool:
        """True if both goals are met: the ratio of the mean rates and their correlation."""
        return abs(self.ratio - 1) <= RATIO and self.correlation >= CORRELATION


def measure(_: str, results: Mapping[str, Result]) -> TraceRow:
    """Compare a protocol's rates on both backends."""
    sim, linux = rates(results["sim"]), rates(results["linux"])
    return TraceRow(float(sim.mean()), float(linux.mean()), float(np.corrcoef(sim, linux)[0, 1]))


def table(found: Mapping[str, TraceRow]) -> str:
    """Return a Markdown table with a row for each protocol."""
    lines = []
    for protocol, row in found.items():
        means = (f"{bps / 1e6:.2f} Mbit/s" for bps in row[:2])
        lines.append([f"`{protocol}`", *means, f"{row.ratio:.3f}", f"{row.correlation:.4f}"])
    return markdown("protocol|mean, simulator|mean, kernel|ratio|correlation", lines)


STUDY = Study(
    shows="on a link that follows a trace the kernel has the simulator's rates",
    minutes=5,
    needs=(on_linux(),),
    options=(Option("protocols", PROTOCOLS, "default: five"),),
    quick={"protocols": ("xcp",)},
    cases=lambda options: options.protocols,
    runs=runs,
    measure=measure,
    table=table,
    failed=lambda found: [protocol for protocol, row in found.items() if not row.good],
)
