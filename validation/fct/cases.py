"""Runs of the study of flow completion times, and the results kept from each run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any

import numpy as np

from waterfill.analysis import transfers
from waterfill.formats import rules
from waterfill.network import protocols
from waterfill.runs import backends
from waterfill.runs.result import Result
from waterfill.scenario.document import Scenario
from waterfill.scenario.loading import from_dict

LOADS = (0.3, 0.6, 0.8)
SEEDS = (1, 2, 3)
EDGES_BYTES = (100e3, 10e6)
"""Size limits between small, middle and large flows in bytes, as in papers on data centres."""

RATE_BPS = 1e9
DELAY_S = 5e-6
BUFFER_PACKETS = 150
MARK_PACKETS = 20
"""Marking threshold in packets, as recommended for DCTCP at 1 Gbit/s."""
RTO_MIN_S = 0.01


@dataclass(frozen=True)
class Fabric:
    """A data-centre network, with the times at which counting begins, arrivals stop and the run
    ends.
    """

    name: str
    hosts: int
    count_from_s: float
    stop_s: float
    duration_s: float

    def links(self) -> list[dict[str, Any]]:
        """Return the links in the form of a scenario."""
        made = (
            rules.fat_tree(8, RATE_BPS, DELAY_S)
            if self.name == "fat-tree"
            else rules.leaf_spine(4, 4, 8, RATE_BPS, DELAY_S, uplink_bps=2 * RATE_BPS)
        )
        return [
            {
                "name": plan.name,
                "from": plan.start,
                "to": plan.end,
                "rate": f"{plan.rate_bps:.0f} bit/s",
                "delay": f"{plan.delay_s * 1e6:g} us",
                "buffer": f"{BUFFER_PACKETS} packets",
                "mark_at": f"{MARK_PACKETS} packets",
            }
            for plan in made.links
        ]


FABRICS = (
    Fabric("leaf-spine", 32, count_from_s=0.1, stop_s=0.6, duration_s=1.6),
    Fabric("fat-tree", 128, count_from_s=0.05, stop_s=0.2, duration_s=1.2),
)


@dataclass(frozen=True)
class FctCase:
    """One run: a law on a fabric at one load, with one seed."""

    fabric: Fabric
    law: str
    load: float
    seed: int

    @property
    def name(self) -> str:
        """Name of the run in files and messages, such as `leaf-spine-60-dctcp-1`."""
        return f"{self.fabric.name}-{self.load * 100:.0f}-{self.law}-{self.seed}"

    def scenario(self) -> Scenario:
        """Return the checked scenario of the run."""
        fabric = self.fabric
        document: dict[str, Any] = {
            "name": self.name,
            "duration": f"{fabric.duration_s:g} s",
            "protocol": self.law,
            "seed": self.seed,
            "sample": f"{fabric.duration_s:g} s",
            "rto_min": f"{RTO_MIN_S:g} s",
            "measure": [f"{fabric.count_from_s:g} s", f"{fabric.stop_s:g} s"],
            "link": fabric.links(),
            "traffic": [
                {
                    "name": "search",
                    "kind": "web",
                    "pattern": "all-to-all",
                    "load": self.load,
                    "sizes": "web-search",
                    "stop": f"{fabric.stop_s:g} s",
                }
            ],
        }
        return from_dict(document)


def cases(laws: Iterable[str], fabrics: Iterable[Fabric], loads: Iterable[float],
          seeds: Iterable[int]) -> list[FctCase]:  # fmt: skip
    """Return all cases, ordered by seed first."""
    grid = product(seeds, fabrics, loads, laws)
    return [FctCase(fabric, law, load, seed) for seed, fabric, load, law in grid]


# A fixed window, and advice to flows that some other law controls.
_NO_LAWS = ("window", "scone")


def laws() -> list[str]:
    """Return the simulator's laws except `window` and `scone`: explicit laws first, then TCPs."""
    known = [p for p in protocols.load().values() if "sim" in p.backends]
    known = [p for p in known if p.name not in _NO_LAWS]
    return [p.name for kind in ("explicit", "end-to-end") for p in known if p.kind == kind]


def measure(case: FctCase, result: Result) -> dict[str, Any]:
    """Return the results of a run that the tables need.

    Flows that start in the counted time are counted. An unfinished flow has at least the slowdown
    that it had at the end of the run: a mean or percentile with such flows is a lower bound.
    """
    table = result.transfers
    start_s, ideal_s = (transfers.values(table, name) for name in ("start_s", "ideal_s"))
    size, slowdown = (transfers.values(table, name) for name in ("size_bytes", "slowdown"))
    counted = start_s >= case.fabric.count_from_s
    open_ = np.isnan(slowdown)
    at_least = (case.fabric.duration_s - start_s) / ideal_s
    slowdown = np.where(open_, at_least, slowdown)
    bins: dict[str, Any] = {}
    low, high = EDGES_BYTES
    for name, inside in {
        "all": counted,
        "small": counted & (size <= low),
        "middle": counted & (size > low) & (size <= high),
        "large": counted & (size > high),
    }.items():
        bins[name] = {
            "flows": int(inside.sum()),
            "unfinished": int((inside & open_).sum()),
            "slowdown": transfers.spread(slowdown[inside]),
        }
    links = result.summary["links"]
    return {
        **asdict(case) | {"fabric": case.fabric.name},
        "bins": bins,
        "drops": sum(link["drops"] for link in links),
        "packet_hops": result.summary["engine"]["packet_hops"],
        "wall_s": result.summary["engine"]["wall_s"],
    }


def run(case: FctCase) -> dict[str, Any]:
    """Run a case and measure it."""
    return measure(case, backends.run(case.scenario()))
