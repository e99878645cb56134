"""Measure whether each protocol's run is the same with all times as long and all rates as small.

An incast and two long flows share a leaf-spine of 100 Gbit/s with an RTT of 8 us, under
`profile = "datacenter"`. The dilated run has a thousandth of the rates and a thousand times the
delays, starts and duration. All figures must have the same digits, in units of the RTT. What
differs hides a constant with a time or a rate in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from validation.study import Option, Options, Study, StudyRun
from validation.tables import markdown
from waterfill.network.protocols import load
from waterfill.runs.result import Result
from waterfill.scenario.loading import from_dict

FACTOR = 1000
RATE_BPS, DELAY_S, DURATION_S = 100e9, 1e-6, 1.6e-3
RTT_S = 8 * DELAY_S
HOSTS, LEAVES, SPINES = 8, 2, 2
DIGITS = 3
"""Digits that are compared."""


CONSTANTS: Mapping[str, Mapping[str, float]] = {"cubic": {"aggressiveness": -3.0}}
"""Parameters with a dimension that the profile leaves as they are, by law: the power of the factor
with which they are multiplied in the dilated run."""


FIXED: Mapping[str, Mapping[str, Any]] = {"cubic": {"hystart": "off"}, "bbr": {"linux": False}}
"""Parameters that switch a constant off in both runs, by law."""
DIFFER: Mapping[str, str] = {
    "ixcp": "ties of links with equal feedback, which rounding decides",
    "aecp": "the header's logarithmic scale, which starts at 0.25 packets/s",
    "scone": "the advice's logarithmic scale, which starts at 100 kbit/s",
    "bbr3": "a send quantum of 1 ms and a wait of 2 to 3 s between probes",
}
"""Protocols whose digits differ, with the probable reason."""


class DilatedCase(NamedTuple):
    """A protocol."""

    protocol: str


class Figures(NamedTuple):
    """Figures of a run: completion times (RTTs), drops and the largest queue (kB)."""

    p50: str
    p99: str
    drops: int
    queue: str
    open: int


class Pair(NamedTuple):
    """Figures of the fabric and of the dilated one."""

    fabric: Figures
    dilated: Figures


def cases(options: Options) -> list[DilatedCase]:
    """Return a case for each protocol of the simulator."""
    return [DilatedCase(name) for name in options.protocols or protocols()]


def protocols() -> list[str]:
    """Return the names of all protocols of the simulator."""
    return [name for name, one in load().items() if "sim" in one.backends]


def document(protocol: str, factor: float) -> dict[str, Any]:
    """Return the scenario with all times multiplied by a factor."""

    def link(name: str, start: str, end: str) -> dict[str, Any]:
        rate, delay = f"{RATE_BPS / factor!r} bit/s", f"{DELAY_S * factor!r} s"
        return {"name": name, "from": start, "to": end, "rate": rate, "delay": delay}

    per_leaf = HOSTS // LEAVES
    links = [link(f"h{h}-l{h // per_leaf}", f"h{h}", f"l{h // per_leaf}") for h in range(HOSTS)]
    links += [
        link(f"l{leaf}-s{spine}", f"l{leaf}", f"s{spine}")
        for leaf in range(LEAVES)
        for spine in range(SPINES)
    ]

    def flow(name: str, source: int, sink: int, start_s: float, size: str) -> dict[str, Any]:
        spine, ends = source % SPINES, (source // per_leaf, sink // per_leaf)
        path = [f"h{source}-l{ends[0]}"]
        if ends[0] != ends[1]:
            path += [f"l{leaf}-s{spine}" for leaf in ends]
        path.append(f"h{sink}-l{ends[1]}")
        start = f"{start_s * factor!r} s"
        return {"name": name, "from": f"h{source}", "to": f"h{sink}", "path": path, "start": start,
                "size": size}  # fmt: skip

    flows = [flow(f"long{h}", h, h + per_leaf, 0.0, "6 MB") for h in range(2)]
    flows += [flow(f"in{i}-{h}", h, 0, at_s, "100 kB")
              for i, at_s in enumerate((2e-4, 7e-4)) for h in range(1, HOSTS)]  # fmt: skip
    params = {param.name: param.default for param in load()[protocol].params}
    constants = {
        name: float(params[name] or 0.0) * factor**power
        for name, power in CONSTANTS.get(protocol, {}).items()
    }
    return {
        "name": "dilation", "profile": "datacenter", "protocol": protocol,
        "duration": f"{DURATION_S * factor!r} s", "link": links, "flow": flows,
        "params": {protocol: {**constants, **FIXED.get(protocol, {})}},
    }  # fmt: skip


def runs(case: DilatedCase) -> dict[str, StudyRun]:
    """Return the run of the fabric and the dilated one."""
    return {
        name: StudyRun(from_dict(document(case.protocol, factor), "dilation"))
        for name, factor in (("fabric", 1.0), ("dilated", float(FACTOR)))
    }


def figures(result: Result, factor: float) -> Figures:
    """Return the figures of a run, whose times are in RTTs."""
    rtt_s = RTT_S * factor
    took = [s / rtt_s for s in result.transfers.column("completion_s").to_pylist() if s is not None]
    p50, p99 = (float(np.percentile(took, q)) if took else float("nan") for q in (50, 99))
    links = result.summary.links
    queue_bytes = max(link.queue_bytes.max or 0.0 for link in links)
    return Figures(
        f"{p50:#.{DIGITS}g}",
        f"{p99:#.{DIGITS}g}",
        sum(link.drops for link in links),
        f"{queue_bytes / 1e3:#.{DIGITS}g}",
        result.transfers.num_rows - len(took),
    )


def measure(case: DilatedCase, results: Mapping[str, Result]) -> Pair:
    """Measure both runs of a case."""
    return Pair(figures(results["fabric"], 1.0), figures(results["dilated"], FACTOR))


def row(case: DilatedCase, found: Pair) -> list[str]:
    """Return the cells of a case's table row."""
    same = found.fabric == found.dilated
    names = [*CONSTANTS.get(case.protocol, ()), *FIXED.get(case.protocol, ())]
    constants = ", ".join(f"`{name}`" for name in names)
    cells = [
        str(a) if a == b else f"{a} / {b}" for a, b in zip(found.fabric, found.dilated, strict=True)
    ]
    verdict = (
        "equal"
        if same
        else f"differ, probably by {DIFFER.get(case.protocol, 'an unknown constant')}"
    )
    return [f"`{case.protocol}`", *cells, constants or "–", verdict]


HEAD = "protocol|FCT p50:|FCT p99:|drops:|queue:|unfinished:|set by hand|digits"


def table(found: Mapping[DilatedCase, Pair]) -> str:
    """Return the table of all cases."""
    return markdown(HEAD, (row(case, one) for case, one in found.items()))


def failed(found: Mapping[DilatedCase, Pair]) -> list[str]:
    """Return the protocols whose figures differ without a known reason, or agree despite one."""
    return [
        f"{case.protocol}: {one.fabric} and {one.dilated}"
        for case, one in found.items()
        if (one.fabric != one.dilated) != (case.protocol in DIFFER)
    ]


STUDY = Study(
    shows="whether runs with all times × 1000 and all rates ÷ 1000 have the same digits",
    minutes=1,
    options=(Option("protocols", (), "default: all of the simulator", protocols),),
    quick={"protocols": ("maxnet", "dctcp")},
    cases=cases,
    runs=runs,
    measure=measure,
    line=lambda case, found: " | ".join(row(case, found)),
    table=table,
    failed=failed,
)
