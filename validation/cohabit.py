"""Explicit protocols and TCPs on one bottleneck, with and without protection.

A cell is an explicit protocol, a TCP, an RTT and a number of flows of each. Its link has
100 Mbit/s and a buffer of one bandwidth-delay product. Explicit flows start at 0 s, TCP flows from
5 s on, 0.1 s apart. Each cell runs in four modes: without the cohabit queue, with the paper's
controller, with the improved one, and with a separate queue per class.

A cell is judged from 20 s after the last start:

- the explicit class's rate over its fair share (its flows' `max_min_bps`): smallest mean of 20 s;
- the link's utilization: smallest mean of 20 s;
- the TCP class's rate over the rate of the same flows alone on a link of rate BW_TCP, which is
  target × rate less the explicit class's fair share, with the same RTT and buffer in bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from validation.study import Option, Options, Study, StudyRun, only
from waterfill.analysis import series
from waterfill.analysis.series import Series
from waterfill.network import protocols
from waterfill.runs.result import Document, Result
from waterfill.scenario.document import Scenario
from waterfill.scenario.loading import from_dict

EXPLICIT = ("maxnet", "xcp", "ixcp", "aecp", "rcp", "jetmax")
TCPS = (
    "reno", "newreno", "sack", "cubic", "bic", "highspeed", "scalable", "htcp", "westwood",
    "vegas", "fast", "dctcp", "bbr",
)  # fmt: skip
RTTS_MS = (20, 100)
COUNTS = ((10, 1), (10, 3), (10, 10), (3, 10))
MODES: Mapping[str, Mapping[str, Any] | None] = {
    "without": None,
    "paper": {"controller": "paper"},
    "improved": {"controller": "improved"},
    "separate": {"separate": True},
}

RATE_BPS = 100e6
TCP_START_S = 5.0
STAGGER_S = 0.1
SETTLE_S = 20.0
WINDOW_S = 20.0
SAMPLE_S = 0.5

# The requirements. A link counts as at its target within 1 %: a law alone gets no nearer.
MIN_EXPLICIT = 0.9
MIN_TCP = 0.75
MIN_UTILIZATION = 0.95
AT_TARGET = 0.99


@dataclass(frozen=True)
class CohabitCell:
    """One scenario of the study: an explicit protocol and a TCP, an RTT, and numbers of flows."""

    explicit: str
    tcp: str
    rtt_ms: int
    explicit_flows: int
    tcp_flows: int

    @property
    def name(self) -> str:
        """Name of the scenario in messages, such as `xcp × reno, 20 ms, 10+3`."""
        counts = f"{self.explicit_flows}+{self.tcp_flows}"
        return f"{self.explicit} × {self.tcp}, {self.rtt_ms} ms, {counts}"

    @property
    def last_start_s(self) -> float:
        """Time at which the last flow starts, in seconds."""
        return TCP_START_S + (self.tcp_flows - 1) * STAGGER_S

    def duration_s(self, short: bool) -> float:
        """Return the length of a run: the settling time and two windows, or little more than one if
        `short`.
        """
        return self.last_start_s + SETTLE_S + (WINDOW_S + 4.0 if short else 2 * WINDOW_S)


@dataclass(frozen=True)
class Verdict:
    """Measurements of a scenario in one protection mode, with the verdict."""

    explicit_share: float
    """Smallest 20 s mean of the explicit flows' rate, relative to their fair share."""
    utilization: float
    """Smallest 20 s mean of the link's utilization."""
    tcp_share: float
    """Mean rate of the TCP flows, relative to their mean rate without explicit flows."""
    drop_rate: float
    """Fraction of the TCP packets in the window that the link dropped."""
    good: bool


def cells(short: bool = False) -> list[CohabitCell]:
    """Return the grid of 624 scenarios, or with `short` 24 that cover every protocol, RTT and
    number of flows.
    """
    if not short:
        grid = product(EXPLICIT, TCPS, RTTS_MS, COUNTS)
        return [CohabitCell(e, t, rtt, n, m) for e, t, rtt, (n, m) in grid]
    chosen = []
    for i, explicit in enumerate(EXPLICIT):
        for j, (n, m) in enumerate(COUNTS):
            tcp = TCPS[(len(COUNTS) * i + j) % len(TCPS)]
            chosen.append(CohabitCell(explicit, tcp, RTTS_MS[(i + j) % 2], n, m))
    return chosen


def scenario(cell: CohabitCell, mode: str, short: bool = False) -> Scenario:
    """Return the scenario of a grid cell in one protection mode of `MODES`."""
    link: Document = {
        "name": "bottleneck",
        "from": "r1",
        "to": "r2",
        "rate": f"{RATE_BPS:.0f} bit/s",
        "buffer": _buffer(cell),
    }
    params = MODES[mode]
    if params is not None:
        link |= {"queue": "cohabit", "queue_params": dict(params)}
    explicit = _flows("explicit", cell.explicit, cell.explicit_flows, cell, 0.0, 0.0)
    return _scenario(cell, link, [explicit, _tcp(cell)], short)


def alone(cell: CohabitCell, target: float, short: bool = False) -> Scenario:
    """Return the scenario of a grid cell's TCP flows alone, on a link with the rate of their fair
    share.
    """
    rate_bps = target * RATE_BPS * cell.tcp_flows / (cell.explicit_flows + cell.tcp_flows)
    link: Document = {
        "name": "bottleneck",
        "from": "r1",
        "to": "r2",
        "rate": f"{rate_bps:.0f} bit/s",
        "buffer": _buffer(cell),
    }
    return _scenario(cell, link, [_tcp(cell)], short)


def _buffer(cell: CohabitCell) -> str:
    return f"{RATE_BPS * cell.rtt_ms / 8000:.0f} B"


def _tcp(cell: CohabitCell) -> Document:
    return _flows("tcp", cell.tcp, cell.tcp_flows, cell, TCP_START_S, STAGGER_S)


def _flows(
    name: str, protocol: str, count: int, cell: CohabitCell, start_s: float, stagger_s: float
) -> Document:
    return {
        "name": name,
        "path": ["bottleneck"],
        "protocol": protocol,
        "count": count,
        "start": f"{start_s} s",
        "stagger": f"{stagger_s} s",
        "rtt": f"{cell.rtt_ms} ms",
    }


def _scenario(cell: CohabitCell, link: Document, flows: list[Document], short: bool) -> Scenario:
    duration_s = cell.duration_s(short)
    return from_dict(
        {
            "name": cell.name,
            "duration": f"{duration_s} s",
            "measure": [f"{cell.last_start_s + SETTLE_S} s", f"{duration_s} s"],
            "sample": f"{SAMPLE_S} s",
            "link": [link],
            "flow": flows,
        },
        source="cohabit",
    )


# --- judging -----------------------------------------------------------------------------------


def judge(cell: CohabitCell, result: Result, tcp_alone: Result) -> Verdict:
    """Judge the run of a grid cell. `tcp_alone` is the run of the cell's TCP flows alone."""
    start_s, stop_s = result.summary["measure_s"]
    flows = result.summary["flows"]
    fair_bps = sum(flow["max_min_bps"] or 0.0 for flow in flows if flow["group"] == "explicit")
    link = result.samples("links", "bottleneck")
    time_s, used_share = (series.numbers(link, name) for name in ("time_s", "utilization"))
    rate_bps = class_rate(result, "explicit", time_s)
    explicit = smallest_mean(time_s, rate_bps, start_s, stop_s) / fair_bps
    used = smallest_mean(time_s, used_share, start_s, stop_s)
    tcp = _class_bps(result, "tcp") / _class_bps(tcp_alone, "tcp")
    target = protocols.targets({}).get(cell.explicit, 1.0)
    good = (
        explicit >= MIN_EXPLICIT
        and used >= min(MIN_UTILIZATION, AT_TARGET * target)
        and tcp >= MIN_TCP
    )
    return Verdict(explicit, used, tcp, drop_rate(result), good)


def class_rate(result: Result, group: str, time_s: Series) -> Series:
    """Return the total rate (bit/s) of a group's flows at the given times, or 0 when no flow is
    active.
    """
    total_bps = np.zeros(len(time_s))
    for flow in result.summary["flows"]:
        if flow["group"] == group:
            rows = result.samples("flows", flow["name"])
            at_s, rate_bps = (series.numbers(rows, name) for name in ("time_s", "rate_bps"))
            # A flow has one more row, at its start, which need not be a sample time of the links.
            shared = np.isin(at_s, time_s)
            total_bps[np.searchsorted(time_s, at_s[shared])] += np.nan_to_num(rate_bps[shared])
    return total_bps


def smallest_mean(time_s: Series, values: Series, start_s: float, stop_s: float) -> float:
    """Return the smallest mean over an interval of `WINDOW_S` within a measurement window."""
    _, means = series.means(time_s, values, WINDOW_S, start_s, stop_s)
    return float(means.min())


def drop_rate(result: Result) -> float:
    """Return dropped packets as a fraction of all TCP packets in the measurement window, or 0 if no
    TCP packet arrived.
    """
    link = result.summary["links"][0]
    start_s, stop_s = result.summary["measure_s"]
    packet_bits = 8 * result.network.packet_bytes
    arrived = _class_bps(result, "tcp") * (stop_s - start_s) / packet_bits
    return float(link["drops"] / (link["drops"] + arrived)) if arrived else 0.0


def _class_bps(result: Result, group: str) -> float:
    return sum(
        flow["rate_bps"] or 0.0 for flow in result.summary["flows"] if flow["group"] == group
    )


# --- the study ---------------------------------------------------------------------------------


class CohabitCase(NamedTuple):
    """A grid cell with the protection modes to run. `short` shortens the runs."""

    cell: CohabitCell
    modes: Sequence[str]
    short: bool

    @property
    def name(self) -> str:
        """Name of the grid cell in messages."""
        return self.cell.name


Found = Mapping[CohabitCase, Mapping[str, Verdict]]


def cases(options: Options) -> list[CohabitCase]:
    """Return the grid's cases with the chosen protection modes."""
    return [CohabitCase(c, options.modes, options.short) for c in cells(options.short)]


def runs(case: CohabitCase) -> dict[str, StudyRun]:
    """Return the runs of a grid cell in each protection mode, and a run of its TCP flows alone."""
    cell, modes, short = case
    target = protocols.targets({}).get(cell.explicit, 1.0)
    found = {mode: StudyRun(scenario(cell, mode, short)) for mode in modes}
    return {**found, "alone": StudyRun(alone(cell, target, short))}


def measure(case: CohabitCase, results: Mapping[str, Result]) -> dict[str, Verdict]:
    """Judge a grid cell in each protection mode."""
    return {mode: judge(case.cell, results[mode], results["alone"]) for mode in case.modes}


def _line(cell: CohabitCell, verdicts: Mapping[str, Verdict]) -> str:
    parts = [f"{cell.name:36}"]
    for verdict in verdicts.values():
        numbers = (verdict.explicit_share, verdict.utilization, verdict.tcp_share)
        mark = "ok" if verdict.good else "  "
        parts.append(" ".join(f"{x:5.2f}" for x in numbers) + f" {verdict.drop_rate:6.2%} {mark}")
    return " | ".join(parts)


def table(found: Found) -> str:
    """Return one line per grid cell, followed by the number of passing cells in each protection
    mode.
    """
    modes = next(iter(found)).modes
    titles = [f"{mode} (explicit, link, tcp, lost)" for mode in modes]
    lines = [" | ".join([f"{'':36}", *titles])]
    lines += [_line(case.cell, verdicts) for case, verdicts in found.items()]
    for mode in modes:
        good = sum(verdicts[mode].good for verdicts in found.values())
        lines.append(f"{mode}: {good} of {len(found)} cells pass")
    return "\n".join(lines)


def failed(found: Found) -> list[str]:
    """Return the grid cells that fail in the improved mode or, if it was not chosen, in the last
    mode.
    """
    modes = next(iter(found)).modes
    mode = "improved" if "improved" in modes else modes[-1]
    return [f"{case.cell.name} fails" for case, got in found.items() if not got[mode].good]


STUDY = Study(
    shows="explicit flows and TCPs keep their fair shares behind the cohabitation queue, 624 cases",
    minutes=100,
    options=(
        Option("--short", False, "24 cells instead of 624, shorter runs"),
        Option("--modes", tuple(MODES), "modes of protection", tuple(MODES)),
        only("xcp × reno*"),
    ),
    quick={"short": True},
    cases=cases,
    runs=runs,
    measure=measure,
    line=lambda case, verdicts: _line(case.cell, verdicts),
    table=table,
    failed=failed,
)
