"""Compare completion times of the same flows in ns-3 and in Waterfill.

A leaf-spine of 2 leaves, 8 hosts and one spine, so that every pair of hosts has one route. Flows
arrive as a Poisson process for one second, between random hosts, with web-search sizes; both
simulators get the same list. ns-3's NewReno with SACK is Waterfill's `sack`; its CUBIC has no
Reno-friendly region.
"""

from __future__ import annotations

import hashlib
import random
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from validation.fct import cases, report
from validation.ns3 import DRIVERS, driver
from validation.study import Option, Options, Study
from validation.tables import markdown
from waterfill.analysis import transfers
from waterfill.errors import RunError
from waterfill.formats import rules
from waterfill.runs import backends
from waterfill.scenario import distributions
from waterfill.scenario.loading import from_dict
from waterfill.scenario.units import VOLUME

DRIVER = DRIVERS / "fabric"

LEAVES, HOSTS = 2, 4
STOP_S, DURATION_S = 1.0, 3.0
# Waterfill's name: ns-3's, and Waterfill's parameters.
LAWS: dict[str, tuple[str, dict[str, Any]]] = {
    "sack": ("newreno", {}),
    "cubic": ("cubic", {"cubic": {"reno_friendly": False}}),
}
Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Arrival:
    """A flow's start (s), end hosts and payload (bytes)."""

    start_s: float
    source: int
    sink: int
    size_bytes: int


def arrivals(load: float, seed: int) -> list[Arrival]:
    """Draw the flows of a run at random."""
    sizes = distributions.parse("web-search", VOLUME)
    points, shares = np.array(sizes.points).T
    chance = random.Random(f"fct/{load}/{seed}")
    count = LEAVES * HOSTS
    per_s = load * count * cases.RATE_BPS / (8 * sizes.mean)
    found = []
    at_s = chance.expovariate(per_s)
    while at_s < STOP_S:
        source, sink = chance.sample(range(count), 2)
        size = max(1, round(float(np.interp(chance.random(), shares, points))))
        found.append(Arrival(round(at_s, 9), source, sink, size))
        at_s += chance.expovariate(per_s)
    return found


def waterfill_run(law: str, flows: Sequence[Arrival]) -> tuple[Numbers, Numbers]:
    """Return the flows' completion times and ideal times (s) in the simulator."""
    made = rules.leaf_spine(LEAVES, 1, HOSTS, cases.RATE_BPS, cases.DELAY_S)
    result = backends.run(
        from_dict(
            {
                "name": f"fct {law}",
                "duration": f"{DURATION_S:g} s",
                "sample": f"{DURATION_S:g} s",
                "protocol": law,
                "params": LAWS[law][1],
                "rto_min": f"{cases.RTO_MIN_S:g} s",
                "link": [
                    {
                        "name": plan.name,
                        "from": plan.start,
                        "to": plan.end,
                        "rate": f"{plan.rate_bps:.0f} bit/s",
                        "delay": f"{plan.delay_s * 1e6:g} us",
                        "buffer": f"{cases.BUFFER_PACKETS} packets",
                    }
                    for plan in made.links
                ],
                "flow": [
                    {
                        "name": f"f{number}",
                        "from": f"h{flow.source}",
                        "to": f"h{flow.sink}",
                        "start": f"{flow.start_s:.9f} s",
                        "size": f"{flow.size_bytes} B",
                        "recovery": "rfc6675",  # ns-3 has no RACK
                    }
                    for number, flow in enumerate(flows)
                ],
            }
        )
    )
    table = result.transfers
    return transfers.values(table, "completion_s"), transfers.values(table, "ideal_s")


def ns3_run(law: str, flows: Sequence[Arrival]) -> Numbers:
    """Return the flows' completion times (s) in ns-3, with NaN for unfinished flows."""
    lines = "".join(f"{f.start_s:.9f} {f.source} {f.sink} {f.size_bytes}\n" for f in flows)
    command = [
        str(DRIVER), f"--law={LAWS[law][0]}", f"--leaves={LEAVES}", f"--hosts={HOSTS}",
        f"--rate={cases.RATE_BPS:.0f}", f"--delay={cases.DELAY_S:g}",
        f"--buffer={cases.BUFFER_PACKETS}", f"--min-rto={cases.RTO_MIN_S:g}",
        f"--duration={DURATION_S:g}",
    ]  # fmt: skip
    done = subprocess.run(command, input=lines, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RunError(f"ns-3: {done.stderr.strip() or f'exit {done.returncode}'}")
    ends_s = np.array([float(line) for line in done.stdout.split()])
    ends_s[ends_s < 0] = np.nan
    return np.asarray(ends_s - np.array([flow.start_s for flow in flows]))


class Ns3Case(NamedTuple):
    """One law at one load, with the seed of the flows."""

    law: str
    load: float
    seed: int


def row(case: Ns3Case) -> dict[str, Any]:
    """Run the same flows in both simulators and return the slowdowns."""
    law, load, seed = case
    flows = arrivals(load, seed)
    ours_s, ideal_s = waterfill_run(law, flows)
    theirs_s = ns3_run(law, flows)
    left_s = DURATION_S - np.array([flow.start_s for flow in flows])
    found: dict[str, Any] = {"law": law, "load": load, "seed": seed, "flows": len(flows)}
    for name, took_s in (("waterfill", ours_s), ("ns3", theirs_s)):
        # As in `cases.measure`: at least what it had at the end.
        slowdown = np.where(np.isnan(took_s), left_s, took_s) / ideal_s
        found[name] = {
            "unfinished": int(np.isnan(took_s).sum()),
            "geometric_mean": float(np.exp(np.log(slowdown).mean())),
            "above_100": float((slowdown > 100).mean()),
            **transfers.spread(slowdown),
        }
    return found


COLUMNS = (
    ("p50", "p50", 1.0),
    ("p90", "p90", 1.0),
    ("p99", "p99", 1.0),
    ("geometric_mean", "geometric mean", 1.0),
    ("above_100", "above 100, %", 0.01),
)


def table(rows: Sequence[dict[str, Any]]) -> str:
    """Return a table of both simulators for each law and load: means over the seeds with 95 %
    intervals.
    """
    lines = []
    for law, load in dict.fromkeys((r["law"], r["load"]) for r in rows):
        mine = [r for r in rows if (r["law"], r["load"]) == (law, load)]
        for side, title in (("waterfill", "Waterfill"), ("ns3", "ns-3")):
            cells = [f"`{law}`, {title}", f"{load:.0%}", str(sum(r["flows"] for r in mine))]
            for key, _, unit in COLUMNS:
                cells.append(report.interval([r[side][key] / unit for r in mine]))
            cells.append(str(sum(r[side]["unfinished"] for r in mine)))
            ratios = [r[side]["geometric_mean"] / r["ns3"]["geometric_mean"] for r in mine]
            cells.append("1" if side == "ns3" else report.interval(ratios))
            lines.append(cells)
    return markdown(f"law|load|flows|{'|'.join(t for _, t, _ in COLUMNS)}|unfinished|ratio", lines)


def chosen(options: Options) -> list[Ns3Case]:
    """Return the cases of all chosen seeds."""
    seeds = range(1, options.seeds + 1)
    return [Ns3Case(law, load, seed) for seed in seeds for load in cases.LOADS for law in LAWS]


def text(found: Mapping[Ns3Case, dict[str, Any]]) -> str:
    """Return the results as a table."""
    return table(list(found.values()))


STUDY = Study(
    shows="the same list of flows in ns-3 and in the simulator: completion times agree",
    minutes=15,
    needs=(driver("fabric"),),
    options=(Option("--seeds", 3, "use seeds 1 to this one", low=1),),
    quick={"seeds": 1},
    cases=chosen,
    measure=row,
    code=lambda: hashlib.sha256(DRIVER.read_bytes()).hexdigest(),
    table=text,
)
