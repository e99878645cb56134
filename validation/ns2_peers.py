"""Compare RCP, VCP and XCP with their authors' ns-2 implementations.

One flow crosses a link of 155 Mbit/s. N flows cross it and a second one of 100 Mbit/s. Each link
delays by 20 ms one way and has a buffer of one bandwidth-delay product. Packets have 1000 bytes,
starts are random within 0.1 s, and rates are means of the second half of 60 s. What the authors'
codes give is recorded in `PEERS`. Each protocol runs with the parameters of `READINGS`: as the
papers have it, and as the authors' code has it.

`PHASES` shows when in a cycle RCP's senders send: packets per millisecond around the fullest
millisecond of each cycle. Its network has a quarter of the rates and of the flows, so that
intervals between packets are the same.

The reading of the authors' code must be within `TOLERANCE` of their numbers, where chance and
buffers do not decide.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from validation.study import Option, Options, Study, StudyRun
from validation.tables import markdown
from waterfill.analysis import series
from waterfill.runs.result import Document, Result
from waterfill.scenario.document import Scenario
from waterfill.scenario.loading import from_dict

FLOWS = (4, 16, 64, 256)
SEEDS = 3
DURATION_S = 60.0
START_WINDOW_S = 0.1
PACKET_BYTES = 1000
RATES_BPS = {"first": 155e6, "second": 100e6}

# The short flow's rate in Mbit/s, by the number of long flows, 30 to 60 s. RCP with α = β = 0.4.
PEERS: Mapping[str, Mapping[int, float]] = {
    "rcp": {4: 54.9, 64: 54.2, 256: 52.7},
    "vcp": {4: 52.0, 16: 49.0, 64: 46.4, 256: 44.7},
    "xcp": {4: 43.06, 16: 30.59, 64: 26.43, 256: 24.32},
}
SOURCES: Mapping[str, str] = {
    "rcp": "Zhang's and Dukkipati's ns-2 model of RCP",
    "vcp": "Xia's ns-2 model of VCP",
    "xcp": "XCP's module of ns-2.35 (Debian 2.35+dfsg-5), TCP clock of 10 ms, means of three seeds",
}

_RCP = {"alpha": 0.4, "beta": 0.4, "average": "reluctant"}
READINGS: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "rcp": {
        "written at arrival": _RCP,
        "written at arrival, T = 1 ms": {**_RCP, "max_interval": "1 ms"},
        "authors' code": {**_RCP, "writes": "departure"},
    },
    "vcp": {
        "paper": {},
        "t_d = 100 ms": {"t_d": "100 ms"},
        "authors' code": {"t_d": "100 ms", "freeze": "overload", "whole_percent": True},
    },
    "xcp": {"authors' code": {}},
}
AUTHORS = "authors' code"

# Two programs of one law on one network; VCP's sawtooth alone moves its means by 2 %.
TOLERANCE = 0.05
# VCP has no equilibrium above `vcp_flows_at_most`: the buffer decides, and the peer's is not known.
UNDECIDED = {("vcp", 256)}

_SAMPLE_S = 1e-3
_SPREAD_MS = 10


@dataclass(frozen=True)
class PeerRow:
    """Results of one protocol, reading and number of long flows, over all seeds."""

    protocol: str
    reading: str
    flows: int
    rates_mbps: tuple[float, ...]
    """Mean rate of the short flow for each seed, in Mbit/s."""
    peer_mbps: float | None
    queues_bytes: tuple[float, float]
    """Mean queue lengths of the first and second link, in bytes."""
    drops: float
    """Packets that both links dropped in the measurement window, as a mean over the seeds."""
    overloads: tuple[float, float] | None
    """Fractions of time in which the two links report overload, or None for laws other than VCP."""

    @property
    def rate_mbps(self) -> float:
        """Mean rate of the short flow over all seeds, in Mbit/s."""
        return float(np.mean(self.rates_mbps))

    @property
    def off(self) -> float | None:
        """Relative difference from the ns-2 implementation's rate, or None if that is unknown."""
        return None if self.peer_mbps is None else self.rate_mbps / self.peer_mbps - 1.0

    @property
    def agrees(self) -> bool | None:
        """True if the authors' reading agrees within `TOLERANCE`, or None if the row
        is not judged.
        """
        if self.off is None or self.reading != AUTHORS:
            return None
        if (self.protocol, self.flows) in UNDECIDED:
            return None
        return abs(self.off) <= TOLERANCE


def scenario(
    protocol: str,
    flows: int,
    seed: int,
    params: Mapping[str, Any],
    *,
    scale: float = 1.0,
    duration_s: float = DURATION_S,
    sample_s: float = 0.1,
) -> Scenario:
    """Return the scenario with `flows` long flows. `scale` multiplies the rates of both links."""
    draw = random.Random(seed)
    links = [
        {
            "name": name, "from": start, "to": end, "delay": "20 ms", "buffer": "1 bdp",
            "rate": f"{scale * RATES_BPS[name]:.0f} bit/s",
        }
        for name, start, end in (("first", "a", "b"), ("second", "b", "c"))
    ]  # fmt: skip
    paths = [("short", ["first"])]
    paths += [(f"long{i}", ["first", "second"]) for i in range(flows)]
    entries = [
        {"name": name, "path": path, "start": f"{draw.uniform(0.0, START_WINDOW_S)!r} s"}
        for name, path in paths
    ]
    document: Document = {
        "name": f"{protocol}, {flows} long flows", "protocol": protocol, "seed": seed,
        "duration": f"{duration_s:g} s", "measure": [f"{duration_s / 2:g} s", f"{duration_s:g} s"],
        "packet_size": f"{PACKET_BYTES} B", "sample": f"{sample_s!r} s",
        "link": links, "flow": entries, "params": {protocol: dict(params)},
    }  # fmt: skip
    return from_dict(document, source="ns2_peers")


def vcp_flows_at_most(
    capacity_bps: float, rtt_s: float, t_d_s: float, beta: float = 0.875
) -> float:
    """Return the number of flows above which VCP overloads a link permanently, for α = 1 packet.

    Between two MD a window grows by α·(rtt/t_d)² at least, in the RTT of AI that follows the
    freeze; MD takes (1 − β)·w. They balance at w = α·(rtt/t_d)²/(1 − β). If n such windows per RTT
    exceed the capacity, the queue and with it the RTT grow, and the balance moves up.
    """
    window = (rtt_s / t_d_s) ** 2 / (1.0 - beta)
    return capacity_bps / (8 * PACKET_BYTES * window / rtt_s)


def measure(case: PeerCase, results: Mapping[str, Result]) -> PeerRow:
    """Return the results of a case from its runs, one per seed."""
    rates = []
    queues: list[list[float]] = []
    drops = []
    for result in results.values():
        links = {link["name"]: link for link in result.summary["links"]}
        rates.append((result.summary["flows"][0]["rate_bps"] or 0.0) / 1e6)
        queues.append([links[name]["queue_bytes"]["mean"] for name in RATES_BPS])
        drops.append(sum(links[name]["drops"] for name in RATES_BPS))
    first, second = np.mean(queues, axis=0)
    return PeerRow(
        case.protocol,
        case.reading,
        case.flows,
        tuple(rates),
        PEERS[case.protocol].get(case.flows),
        (float(first), float(second)),
        float(np.mean(drops)),
        _overloads(results.values()) if case.protocol == "vcp" else None,
    )


def _overloads(results: Iterable[Result]) -> tuple[float, float]:
    shares = []
    for result in results:
        found = []
        for name in RATES_BPS:
            table = result.samples("links", name)
            time_s, load = (series.numbers(table, key) for key in ("time_s", "vcp_load_factor"))
            found.append(float(np.mean(load[time_s > result.summary["measure_s"][0]] >= 1.0)))
        shares.append(found)
    first, second = np.mean(shares, axis=0)
    return float(first), float(second)


# --- phases ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Phases:
    """Sending times of the long flows within a cycle, for one reading of RCP."""

    reading: str
    flows: int
    cycle_ms: float
    packets_per_ms: tuple[float, ...]
    """Packets sent per millisecond, averaged over cycles, from 10 ms before to 10 ms after the
    peak.
    """

    @property
    def even(self) -> float:
        """Packets per millisecond if the sending times were spread evenly."""
        return self.flows / self.cycle_ms

    @property
    def crowd(self) -> float:
        """Fraction of the flows that send within the peak millisecond and its two neighbours."""
        return sum(self.packets_per_ms[_SPREAD_MS - 1 : _SPREAD_MS + 2]) / self.flows


def phase_scenario(reading: str, flows: int = 64) -> Scenario:
    """Return an RCP scenario with `flows` long flows, on links whose rates are scaled from 256
    flows to `flows`.
    """
    params = READINGS["rcp"][reading]
    return scenario("rcp", flows, 1, params, scale=flows / 256, sample_s=_SAMPLE_S)


def phases(reading: str, result: Result) -> Phases:
    """Find the sending times of RCP's flows in a run."""
    start_s, end_s = result.summary["measure_s"]
    flows = len(result.summary["flows"]) - 1
    in_flight = np.zeros(round((end_s - start_s) / _SAMPLE_S))
    for i in range(flows):
        table = result.samples("flows", f"long{i}")
        time_s, waiting = (series.numbers(table, key) for key in ("time_s", "in_flight_bytes"))
        in_flight += waiting[time_s > start_s + _SAMPLE_S / 2][: len(in_flight)] / PACKET_BYTES
    long_bps = sum(flow["rate_bps"] or 0.0 for flow in result.summary["flows"][1:])
    per_ms = long_bps * _SAMPLE_S / (8 * PACKET_BYTES)
    # The second link, nearly full, spreads acknowledgements evenly.
    sent = np.diff(in_flight) + per_ms
    cycle_ms = flows / per_ms
    return Phases(reading, flows, cycle_ms, tuple(_around_peaks(sent, cycle_ms)))


def _around_peaks(sent: np.ndarray[Any, Any], cycle_ms: float) -> list[float]:
    """Return the mean packet counts per millisecond around the largest count of each cycle."""
    width = round(cycle_ms)
    edges = np.arange(width, len(sent) - 2 * width, cycle_ms).astype(int)
    peaks = [start + int(np.argmax(sent[start : start + width])) for start in edges]
    around = [sent[peak - _SPREAD_MS : peak + _SPREAD_MS + 1] for peak in peaks]
    return [float(value) for value in np.mean(around, axis=0)]


# --- output ------------------------------------------------------------------------------------


def table(found: Sequence[PeerRow]) -> str:
    """Return the results as a Markdown table, with one row per case."""
    rows: list[list[object]] = []
    for row in found:
        least, most = min(row.rates_mbps), max(row.rates_mbps)
        peer = "–" if row.peer_mbps is None else f"{row.peer_mbps:.1f}"
        off = "–" if row.off is None else f"{row.off:+.1%}"
        queue = " + ".join(f"{value / 1e3:.1f}" for value in row.queues_bytes)
        over = "–"
        if row.overloads is not None:
            over = " + ".join(f"{value:.0%}" for value in row.overloads)
        rates = f"{row.rate_mbps:.2f}", f"{least:.2f} to {most:.2f}"
        more = peer, off, queue, f"{row.drops:.0f}", over
        rows.append([row.protocol, row.reading, row.flows, *rates, *more])
    head = "law|parameters|n:|short flow, Mbit/s:|seeds:|peer:|off:|queue, kB:|drops:|overload:"
    return markdown(head, rows)


def phase_table(found: Sequence[Phases]) -> str:
    """Return a Markdown table of packets per millisecond around the peak."""
    rows = [
        [f"{offset:+d}", *(f"{each.packets_per_ms[index]:.1f}" for each in found)]
        for index, offset in enumerate(range(-_SPREAD_MS, _SPREAD_MS + 1))
    ]
    rows.append(["evenly", *(f"{each.even:.1f}" for each in found)])
    rows.append(["within 3 ms", *(f"{each.crowd:.0%}" for each in found)])
    return markdown(f"ms:|{':|'.join(each.reading for each in found)}:", rows)


class PeerCase(NamedTuple):
    """One protocol, reading and number of long flows, with the number of seeds and
    the run length.
    """

    protocol: str
    reading: str
    flows: int
    seeds: int
    duration_s: float


def cases(options: Options) -> list[PeerCase]:
    """Return a case for each reading of the chosen protocols and each number of flows."""
    return [
        PeerCase(protocol, reading, flows, options.seeds, options.duration)
        for protocol in options.protocols
        for reading in READINGS[protocol]
        for flows in options.flows
    ]


def runs(case: PeerCase) -> dict[str, StudyRun]:
    """Return one run per seed."""
    params = READINGS[case.protocol][case.reading]
    return {
        str(seed): StudyRun(
            scenario(case.protocol, case.flows, seed, params, duration_s=case.duration_s)
        )
        for seed in range(1, case.seeds + 1)
    }


def failed(found: Mapping[PeerCase, PeerRow]) -> list[str]:
    """Return the rows that differ too much from the ns-2 implementation, among runs of the default
    length.
    """
    return [
        f"{row.protocol}, {row.flows} flows: {row.off:+.1%} off"
        for case, row in found.items()
        # The peers' numbers are of 60 s.
        if row.agrees is False and case.duration_s == DURATION_S
    ]


STUDY = Study(
    shows="RCP, VCP and XCP give the rates of their authors' ns-2 code on two links",
    minutes=2,
    options=(
        Option("protocols", tuple(PEERS), "default: all", tuple(PEERS)),
        Option("--flows", FLOWS, "numbers of long flows", low=1),
        Option("--seeds", SEEDS, "use seeds 1 to this one", low=1),
        Option("--duration", DURATION_S, "length of a run (s)", low=1.0),
    ),
    quick={"flows": (4,), "seeds": 1},
    cases=cases,
    runs=runs,
    measure=measure,
    table=lambda found: table(list(found.values())),
    failed=failed,
)
PHASES = Study(
    shows="the time in a cycle at which RCP's senders send",
    minutes=1,
    cases=lambda _: list(READINGS["rcp"]),
    runs=lambda reading: {"": StudyRun(phase_scenario(reading))},
    measure=lambda reading, results: phases(reading, results[""]),
    table=lambda found: phase_table(list(found.values())),
)
