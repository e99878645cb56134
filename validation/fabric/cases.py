"""Runs of the study of fabrics, and the results kept from each run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from waterfill.analysis import transfers
from waterfill.runs import backends
from waterfill.runs.result import Result
from waterfill.scenario.document import Scenario
from waterfill.scenario.loading import from_dict


class FabricLaw(NamedTuple):
    """A law of the study: its protocol, its parameters, and its first window if not the default."""

    protocol: str
    params: Mapping[str, Any] = {}
    initial_window: int | None = None


_TAG = {"carriage": "csig", "code_bits": 20}
LAWS: Mapping[str, FabricLaw] = {
    "maxnet": FabricLaw("maxnet", _TAG),
    "maxnet-1": FabricLaw("maxnet", _TAG, initial_window=1),
    "hpcc": FabricLaw("hpcc"),
    "powertcp": FabricLaw("powertcp"),
    "dcqcn": FabricLaw("dcqcn"),
    "dctcp": FabricLaw("dctcp"),
    "swift": FabricLaw("swift"),
    "rcp": FabricLaw("rcp"),
    "xcp": FabricLaw("xcp"),
}
"""Laws by name. MaxNet's prices are in CSIG tags of 20 bits. `maxnet-1` sends one packet before the
first price arrives, `maxnet` ten.
"""

RATES_GBPS = (100, 400)
SEEDS = 5
LOADS = (0.3, 0.6, 0.8)
SIZES = ("web-search", "hadoop")
SMALL_BYTES = 100e3
"""Largest flow that counts as small, as in papers on data centers."""
DELAY = "1 us"
SWITCH = {"buffer": "32 MB", "pfc": True}
"""Shared buffer of each switch, which pauses its inputs instead of dropping packets."""
BACKGROUND = 0.3
"""Load of web-search flows under an incast."""
INCASTS: Mapping[str, tuple[int, str]] = {"64:1": (64, "100 kB"), "255:1": (255, "20 kB")}
"""Number and size of the flows of each incast."""

# Times are multiples of these. The faster fabric has as many packets in a shorter time.
_UNIT_US = {100: 1000, 400: 250}
_COUNT_FROM, _STOP, _END, _INCASTS = 0.5, 1.5, 5.0, (0.5, 1.5)


class FabricCase(NamedTuple):
    """One run: the links' rate, sizes of flows or an incast, the load, the law and the seed."""

    rate_gbps: int
    work: str
    load: float
    law: str
    seed: int

    @property
    def name(self) -> str:
        """Name of the run in messages, such as `400G web-search 60% hpcc 1`."""
        return f"{self.rate_gbps}G {self.work} {self.load:.0%} {self.law} {self.seed}"

    @property
    def cell(self) -> tuple[int, str, float]:
        """The run's rate, work and load, without law and seed."""
        return self[:3]


class FabricRow(NamedTuple):
    """Results of a run. Times that are unfinished at the end count as lower bounds."""

    flows: int
    unfinished: int
    p50: float | None
    """Percentiles of slowdowns of the flows that start in the counted time."""
    p95: float | None
    p99: float | None
    small_p99: float | None
    queue_bytes: float
    """Largest queue of a switch's port."""
    paused_us: float
    """Time for which pauses kept a link from sending, sum of all links."""
    drops: int
    incast_us: float | None
    """Mean time until the last flow of an incast is complete."""
    incast_ideal_us: float | None
    """Time of the incast's bytes on the receiver's link."""
    wall_s: float


def cases(laws: Iterable[str], rates: Iterable[int], seeds: int) -> list[FabricCase]:
    """Return all cases, ordered by seed first."""
    works = [*product(SIZES, LOADS), *((name, BACKGROUND) for name in INCASTS)]
    grid = product(range(1, seeds + 1), rates, works, laws)
    return [FabricCase(rate, *work, law, seed) for seed, rate, work, law in grid]


def scenario(case: FabricCase) -> Scenario:
    """Return the checked scenario of a run."""
    unit_us = _UNIT_US[case.rate_gbps]
    law = LAWS[case.law]
    document: dict[str, Any] = {
        "name": case.name,
        "profile": "datacenter",
        "protocol": law.protocol,
        "seed": case.seed,
        "duration": f"{_END * unit_us:g} us",
        "sample": f"{_END * unit_us / 20:g} us",
        "measure": ["0 s", f"{_END * unit_us:g} us"],
        "handshake": False,
        "ideal": "one-way",
        "ecmp": "hash",
        "switch": SWITCH,
        "fabric": {**_shape(case.work), "host_rate": f"{case.rate_gbps} Gbit/s", "delay": DELAY},
        "traffic": list(_traffic(case, unit_us)),
    }
    if law.params:
        document["params"] = {law.protocol: dict(law.params)}
    if law.initial_window:
        for source in document["traffic"]:
            source["initial_window"] = f"{law.initial_window} packets"
    return from_dict(document)


def _shape(work: str) -> dict[str, Any]:
    if INCASTS.get(work, (0, ""))[0] < 128:
        return {"kind": "fat-tree", "k": 8}
    return {"kind": "leaf-spine", "leaves": 16, "spines": 16, "hosts": 16}


def _traffic(case: FabricCase, unit_us: float) -> Iterator[dict[str, Any]]:
    incast = INCASTS.get(case.work)
    yield {
        "name": "background",
        "kind": "web",
        "pattern": "all-to-all",
        "load": case.load,
        "sizes": "web-search" if incast else case.work,
        "stop": f"{(_STOP + (1 if incast else 0)) * unit_us:g} us",
    }
    if incast:
        yield {
            "name": "incast",
            "kind": "web",
            "pattern": "incast",
            "fan_in": incast[0],
            "to": "h0",
            "sizes": incast[1],
            "at": [f"{at * unit_us:g} us" for at in _INCASTS],
        }


def run(case: FabricCase) -> FabricRow:
    """Run a case and measure it."""
    return measure(case, backends.run(scenario(case)))


def measure(case: FabricCase, result: Result) -> FabricRow:
    """Return the results of a run that the tables need.

    An unfinished flow has at least the slowdown that it had at the end of the run.
    """
    unit_s = _UNIT_US[case.rate_gbps] / 1e6
    table = result.transfers
    source = np.asarray(table["source"].to_pylist())
    columns = ("start_s", "ideal_s", "size_bytes", "slowdown")
    start_s, ideal_s, size, slowdown = (transfers.values(table, name) for name in columns)
    counted = (source == "background") & (start_s >= _COUNT_FROM * unit_s)
    unfinished = counted & np.isnan(slowdown)
    slowdown = np.where(np.isnan(slowdown), (_END * unit_s - start_s) / ideal_s, slowdown)
    everything = transfers.spread(slowdown[counted])
    small = transfers.spread(slowdown[counted & (size <= SMALL_BYTES)])
    links = result.summary["links"]
    ports = [link["queue_bytes"]["max"] for link in links if not _of_host(link["name"])]
    found = [one for one in transfers.incasts(table, result.network) if one.source == "incast"]
    took_s = [one.completion_s or _END * unit_s - one.start_s for one in found]
    number, each = INCASTS.get(case.work, (0, "0 kB"))
    bits = 8e3 * number * float(each.removesuffix(" kB"))
    return FabricRow(
        flows=int(counted.sum()),
        unfinished=int(unfinished.sum()),
        p50=everything.p50,
        p95=everything.p95,
        p99=everything.p99,
        small_p99=small.p99,
        queue_bytes=max(ports),
        paused_us=1e6 * sum(link["paused_s"] or 0.0 for link in links),
        drops=sum(link["drops"] for link in links),
        incast_us=1e6 * float(np.mean(took_s)) if took_s else None,
        incast_ideal_us=bits / case.rate_gbps / 1e3 if number else None,
        wall_s=result.summary["engine"]["wall_s"],
    )


def _of_host(link: str) -> bool:
    """Return True for the link that leaves a host."""
    return link.startswith("h") and not link.endswith(":rev")
