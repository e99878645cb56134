"""Conversion of a run's samples to the results that every backend returns.

Counters are read near, not at, the sample times and the window's boundaries. Their values there are
interpolated, so that a rate is bytes over exactly its time.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from waterfill.contract.elements import Cohabit
from waterfill.contract.network import Network
from waterfill.contract.summary import (
    CoreFlow,
    CoreSummary,
    EngineSummary,
    LinkSummary,
    Rtts,
    Spread,
    TrafficSummary,
)
from waterfill.network import protocols
from waterfill.network.maxmin import rate_steps
from waterfill.runs.result import Columns, Which, last_end_s
from waterfill.testbed import cohabit
from waterfill.testbed.answer import Answer, LawSample, ModuleState
from waterfill.testbed.plan import ETHERNET_BYTES
from waterfill.testbed.sampling import TCP_FIELDS

Array = NDArray[np.float64]
Signals = Mapping[str, Mapping[str, Mapping[str, str]]]
"""Names of the laws' signals, by law, by `links` or `flows`, and by key of the daemon's status."""
_UNLIMITED = 2**63  # a pacing rate from here on means no pacing


class Outcome:
    """The results of one run, in the form in which the simulator's core returns them."""

    def __init__(
        self,
        raw: Answer,
        resolved: Network,
        wall_s: float,
        signals: Signals | None = None,
        measures_flows: bool = False,
    ) -> None:
        """Convert the process tree's answer `raw`, for the scenario's network `resolved`.

        `signals` are the loaded laws' (`daemon.columns`). With `measures_flows` the window ends
        with the last flow.
        """
        self._raw, self._resolved = raw, resolved
        self._signals = signals or {}
        coarse, fine = raw.samples.coarse, raw.samples.fine
        self._time_s = np.asarray(coarse.time_s, dtype=np.float64)
        self._fine_s = np.asarray(fine.time_s, dtype=np.float64)
        end_s = raw.interrupted_at_s
        self._end_s = resolved.duration_s if end_s is None else end_s
        self._window = [min(edge, self._end_s) for edge in resolved.measure_s]
        step_s = resolved.sample_s
        count = max(1, math.ceil(self._end_s / step_s - 1e-9))
        self._grid = np.minimum(np.arange(count + 1) * step_s, self._end_s)
        self._streams = [_Stream(self, i) for i in range(len(raw.plan.streams))]
        if measures_flows:
            ends = [(s.entry.stop_s, s.completed_s) for s in self._streams if s.entry.kind != "cbr"]
            self._window[1] = min(self._window[1], last_end_s(ends))
        self._queues = {s.direction: i for i, s in enumerate(raw.plan.shapers)}
        self._losses: dict[int, str] = {
            h.direction: h.name for h in raw.plan.holds if h.direction is not None
        }
        self._laws = raw.samples.laws or []
        self.flows = [s for s in self._streams if s.entry.kind != "cbr"]
        self.traffic = [s for s in self._streams if s.entry.kind == "cbr"]
        links = [self._link(i) for i in range(len(resolved.links))]
        hops = sum(rows[-1][1] for rows in coarse.queues if rows)
        self.core = CoreSummary(
            flows=[s.flow() for s in self.flows],
            links=links,
            traffic=[s.cbr() for s in self.traffic],
            engine=EngineSummary(packet_hops=hops, wall_s=wall_s),
        )

    @property
    def window(self) -> tuple[float, float]:
        """Time window of the summary (s)."""
        return (self._window[0], self._window[1])

    def series(self, which: Which) -> Columns:
        """Return the columns of one table, in the form that `result.to_table` takes."""
        if which == "flows":
            parts = [(i, s.rows()) for i, s in enumerate(self.flows)]
            return _interleaved(self._grid[1:], "flow", parts)
        if which == "traffic":
            rates = [(i, {"rate_bps": s.rates()}) for i, s in enumerate(self.traffic)]
            return _interleaved(self._grid[1:], "traffic", rates)
        links = [(i, self._link_rows(i)) for i in range(len(self._resolved.links))]
        return _interleaved(self._grid[1:], "link", links)

    # --- links

    def _counter(self, direction: int, column: int) -> Array:
        rows = self._raw.samples.coarse.queues[self._queues[direction]]
        return np.asarray([row[column] for row in rows], dtype=np.float64)

    def _drops(self, direction: int) -> Array:
        return self._counter(direction, 2) + self._module(direction, "dropped")

    def _module(self, direction: int, counter: str) -> Array:
        """Return a counter of a link's cohabitation module at the sample times, or 0 without a
        module.
        """
        states = [(s.time_s, _module_of(s, direction)) for s in self._laws]
        rows = [(at_s, state[counter]) for at_s, state in states if state]
        if not rows:
            return np.zeros(len(self._time_s))
        at_s, values = np.asarray(rows, dtype=np.float64).T
        return np.asarray(np.interp(self._time_s, at_s, values, left=0.0), dtype=np.float64)

    def _lost(self, direction: int) -> Array:
        name = self._losses.get(direction)
        rows = self._raw.samples.coarse.lost.get(name, []) if name else []
        return np.asarray(rows, dtype=np.float64) if rows else np.zeros(len(self._time_s))

    def _waiting(self, direction: int) -> tuple[Array, Array]:
        """Return waiting bytes and packets at the fine samples, excluding the packet in service."""
        rows = self._raw.samples.fine.backlog[self._queues[direction]]
        size, packets = np.asarray(rows, dtype=np.float64).reshape(-1, 2).T
        mean = np.divide(size, packets, out=np.zeros_like(size), where=packets > 0)
        return np.maximum(size - mean, 0.0), np.maximum(packets - 1, 0.0)

    def between(self, values: Array, from_s: float, to_s: float) -> float:
        """Return the increase of a counter between two times."""
        a, b = np.interp([from_s, to_s], self._time_s, values)
        return float(b - a)

    def _possible_bits(self, direction: int, times_s: Sequence[float] | Array) -> Array:
        """Return a link's capacity (bits) between consecutive times: the integral of the link's
        rate.
        """
        spec = self._resolved.links[direction]
        if not spec.changes:
            return np.asarray(spec.rate_bps * np.diff(times_s), dtype=np.float64)
        steps = rate_steps(spec)
        ends_s = [*(at_s for at_s, _ in steps), max(times_s[-1], steps[-1][0])]
        bits = np.cumsum([0.0, *(r * d for (_, r), d in zip(steps, np.diff(ends_s), strict=True))])
        return np.diff(np.interp(times_s, ends_s, bits))

    def _link(self, direction: int) -> LinkSummary:
        start_s, stop_s = self._window
        span_s = max(stop_s - start_s, 1e-9)
        size, packets = self._waiting(direction)
        inside = (self._fine_s >= start_s) & (self._fine_s <= stop_s)
        bits = 8 * self.between(self._counter(direction, 0), start_s, stop_s)
        return LinkSummary(
            name=self._resolved.links[direction].name,
            utilization=float(
                _share(bits, self._possible_bits(direction, [start_s, start_s + span_s]))[0]
            ),
            queue_bytes=_distribution(self._fine_s[inside], size[inside]),
            queue_packets=_distribution(self._fine_s[inside], packets[inside]),
            drops=round(self.between(self._drops(direction), start_s, stop_s)),
            marks=round(self.between(self._module(direction, "marked"), start_s, stop_s)),
            lost=round(self.between(self._lost(direction), start_s, stop_s)),
        )

    def _link_rows(self, direction: int) -> dict[str, Array]:
        spans_s = np.diff(self._grid)
        grown = {
            name: np.diff(np.interp(self._grid, self._time_s, values))
            for name, values in (
                ("bytes", self._counter(direction, 0)),
                ("drops", self._drops(direction)),
                ("marks", self._module(direction, "marked")),
                ("lost", self._lost(direction)),
            )
        }
        size, _ = self._waiting(direction)
        mean, peak = np.zeros(len(spans_s)), np.zeros(len(spans_s))
        place = np.searchsorted(self._grid, self._fine_s, side="left") - 1
        for i in range(len(spans_s)):
            mine = size[place == i]
            if len(mine):
                mean[i], peak[i] = mine.mean(), mine.max()
        return {
            "utilization": _share(8 * grown["bytes"], self._possible_bits(direction, self._grid)),
            "queue_bytes": mean,
            "queue_max_bytes": peak,
            "drops": np.round(grown["drops"]),
            "marks": np.round(grown["marks"]),
            "lost": np.round(grown["lost"]),
            **self._capacity_column(direction),
            **self.law_columns("links", direction),
            **self._module_columns(direction),
        }

    def _capacity_column(self, direction: int) -> dict[str, Array]:
        """Return the mean capacity (bit/s) of each interval, or an empty dict if no link of the run
        changes.
        """
        if not any(link.changes for link in self._resolved.links):
            return {}
        possible_bits = self._possible_bits(direction, self._grid)
        return {"capacity_bps": possible_bits / np.diff(self._grid)}

    def _module_columns(self, direction: int) -> dict[str, Array]:
        """Return the cohabitation module's columns, or an empty dict if no link of the run has a
        module.
        """
        if not any(isinstance(link.queue, Cohabit) for link in self._resolved.links):
            return {}
        columns = {name: np.full(len(self._grid) - 1, np.nan) for name in cohabit.COLUMNS}
        for sample in self._laws:
            at = int(np.searchsorted(self._grid, sample.time_s, side="left")) - 1
            state = _module_of(sample, direction)
            if state and 0 <= at < len(self._grid) - 1:
                for name, field in cohabit.COLUMNS.items():
                    columns[name][at] = state[field]
        return columns

    def law_columns(self, which: Literal["flows", "links"], index: int) -> dict[str, Array]:
        """Return the signals of the loaded laws as columns, by the registry's names.

        A sample of the grid has the last value of its interval; NaN without one, for a flow of
        another law or without a router's signal, and for a link before its first interval.
        """
        found = {}
        times = [s.time_s for s in self._laws]
        place = np.searchsorted(self._grid, times, side="left") - 1
        for law, signals in self._signals.items():
            for field, signal in signals[which].items():
                column = np.full(len(self._grid) - 1, np.nan)
                for at, sample in zip(place, self._laws, strict=True):
                    state = sample[which].get(str(index), {})
                    state = state if which == "flows" else state.get(law, {})
                    if state.get("law") == law and 0 <= at < len(column) and _shows(state, signals):
                        column[at] = state[field]
                found[protocols.column(law, signal)] = column
        return found


def _share(bits: Array | float, possible_bits: Array) -> Array:
    """Return the fraction of possible bits that were used, or zero if none were possible."""
    none = np.zeros_like(possible_bits)
    return np.divide(bits, possible_bits, out=none, where=possible_bits > 0)


def _module_of(sample: LawSample, direction: int) -> ModuleState | None:
    """Return the state of a link's cohabitation module, or None if no router of the link runs
    one.
    """
    states = sample.links.get(str(direction), {}).values()
    return next((state.cohabit for state in states if state.cohabit), None)


def _shows(state: Mapping[str, Any], signals: Mapping[str, Mapping[str, str]]) -> bool:
    """Return True if a connection has received a signal, or a link has completed an interval."""
    if "signal" in state:
        return bool(state["signal"])
    return any(state[field] for field in signals["links"])


class _Stream:
    """Results of one stream."""

    def __init__(self, outcome: Outcome, index: int) -> None:
        self._of, self._index = outcome, index
        raw = outcome._raw
        self.entry = raw.plan.streams[index]
        self._totals = raw.samples.totals[index]
        rows = raw.samples.coarse.streams[index]
        received = np.asarray(rows.received, dtype=np.float64).reshape(-1, 3)
        self._at_s = received[:, 0]
        self._bytes = received[:, 1] - ETHERNET_BYTES * received[:, 2]
        self._tcp = rows.tcp
        fine = raw.samples.fine.rtt_us[index]
        self._rtt_s = np.asarray([math.nan if r is None else r * 1e-6 for r in fine])
        transfer = raw.transfers[index]
        self.completed_s = None if transfer is None else self.entry.start_s + transfer[0]
        self._payload_at_s, self._payload = self._payloads(rows.payload)

    def _payloads(self, samples: Sequence[int | None]) -> tuple[Array, Array]:
        points = [(self.entry.start_s, 0.0)]
        end_s = math.inf if self.completed_s is None else self.completed_s
        for at_s, value in zip(self._at_s, samples, strict=True):
            if value is not None and points[-1][0] < at_s < end_s:
                points.append((float(at_s), max(points[-1][1], float(value))))
        if self.completed_s is not None:
            points.append((self.completed_s, float(self.entry.size_bytes or 0)))
        times, values = zip(*points, strict=True)
        return np.asarray(times), np.asarray(values)

    def _active(self) -> list[float] | None:
        ends = [self._of._window[1], self.entry.stop_s, self.completed_s]
        start_s = max(self._of._window[0], self.entry.start_s)
        stop_s = min(end for end in ends if end is not None)
        return [start_s, stop_s] if start_s < stop_s else None

    def _rate(self, active: Sequence[float] | None) -> float | None:
        if active is None:
            return None
        a, b = np.interp(active, self._at_s, self._bytes)
        return float(8 * (b - a) / (active[1] - active[0]))

    def flow(self) -> CoreFlow:
        """Return the flow's entry in the summary."""
        entry, active = self.entry, self._active()
        goodput = None
        if active is not None:
            a, b = np.interp(active, self._payload_at_s, self._payload)
            goodput = float(8 * (b - a) / (active[1] - active[0]))
        tcp = self._totals.tcp
        sent = 0 if tcp is None else tcp.data_segs_out
        if self.completed_s is not None and tcp is not None:
            # The socket was closed before its last sample.
            least = math.ceil((entry.size_bytes or 0) / max(1, tcp.mss_bytes))
            sent = max(sent, least + self._totals.retransmissions)
        return CoreFlow(
            name=entry.name, group=entry.group, index=entry.index, protocol=entry.protocol,
            start_s=entry.start_s, stop_s=entry.stop_s, active_s=active,
            rate_bps=self._rate(active), goodput_bps=goodput, rtt_ms=self._rtts(active),
            packets_sent=sent, retransmissions=self._totals.retransmissions,
            timeouts=self._totals.timeouts, completed_s=self.completed_s,
        )  # fmt: skip

    def cbr(self) -> TrafficSummary:
        """Return a traffic source's entry in the summary."""
        return TrafficSummary(
            name=self.entry.name, kind="cbr", rate_bps=self._rate(self._active()),
            packets_sent=self._totals.udp_sent, packets_received=self._totals.udp_received,
        )  # fmt: skip

    def _rtts(self, active: Sequence[float] | None) -> Rtts:
        found = Rtts(base=self.entry.base_rtt_s * 1e3, mean=None, p50=None, p99=None)
        if active is None:
            return found
        times = self._of._fine_s
        inside = (times >= active[0]) & (times <= active[1]) & np.isfinite(self._rtt_s)
        values = self._rtt_s[inside] * 1e3
        if len(values):
            p50, p99 = np.quantile(values, [0.5, 0.99])
            found = Rtts(base=found.base, mean=float(values.mean()), p50=float(p50), p99=float(p99))
        return found

    def rates(self) -> Array:
        """Return the rate received in each sample (bit/s). NaN outside the stream's lifetime."""
        grid = self._of._grid
        rates = np.asarray(8 * np.diff(np.interp(grid, self._at_s, self._bytes)) / np.diff(grid))
        end_s = self.entry.stop_s if self.completed_s is None else self.completed_s
        rates[(grid[1:] <= self.entry.start_s) | (grid[:-1] >= end_s)] = np.nan
        return rates

    def rows(self) -> dict[str, Array]:
        """Return the flow's columns of the time series."""
        grid, packet = self._of._grid[1:], self._of._resolved.packet_bytes
        place = np.clip(np.searchsorted(self._at_s, grid + 1e-3) - 1, 0, None)
        columns = {name: np.full(len(grid), np.nan) for name in TCP_FIELDS}
        for row, at in enumerate(place):
            sample = self._tcp[at] if at < len(self._tcp) else None
            if sample is not None:
                for name, value in zip(TCP_FIELDS, sample, strict=True):
                    columns[name][row] = value
        pacing = columns["pacing_bytes_per_s"]
        pacing[pacing >= _UNLIMITED] = np.nan
        return {
            "rate_bps": self.rates(),
            "window_bytes": columns["cwnd_packets"] * packet,
            "pacing_bps": pacing * 8,
            "rtt_s": columns["rtt_us"] * 1e-6,
            "in_flight_bytes": columns["unacked_packets"] * packet,
            "retransmissions": columns["total_retrans"],
            "delivered_bytes": columns["bytes_acked"],
            **self._of.law_columns("flows", self._index),
        }


def _distribution(time_s: Array, values: Array) -> Spread:
    """Return mean, 99th percentile and maximum of values that each hold until the next sample."""
    if not len(values):
        return Spread(mean=0.0, p99=0.0, max=0.0)
    weights = np.diff(time_s, append=time_s[-1] + (np.median(np.diff(time_s)) if len(time_s) > 1
                                                   else 1.0))  # fmt: skip
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weights[order]) >= 0.99 * weights.sum()
    return Spread(
        mean=float(np.average(values, weights=weights)),
        p99=float(values[order][int(reached.argmax())]),
        max=float(values.max()),
    )


def _interleaved(
    grid: Array, name_column: str, parts: Sequence[tuple[int, Mapping[str, Array]]]
) -> Columns:
    """Return the columns of several entities as rows in time order, interleaved at each time."""
    count = len(parts)
    columns: dict[str, tuple[str, bytes]] = {"time_s": ("f64", np.repeat(grid, count).tobytes())}
    numbers = np.tile(np.asarray([i for i, _ in parts], dtype=np.int32), len(grid))
    columns[name_column] = ("u32", numbers.astype(np.uint32).tobytes())
    for column in parts[0][1] if parts else ("rate_bps",):
        values = np.stack([part[column] for _, part in parts], axis=1) if parts else np.zeros(0)
        if column in ("drops", "marks", "lost"):
            columns[column] = ("u64", values.astype(np.uint64).tobytes())
        else:
            columns[column] = ("f64", np.ascontiguousarray(values, dtype=np.float64).tobytes())
    return columns
