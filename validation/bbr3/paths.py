"""A path with one BBRv3 flow, and the flow's states over time.

The bottleneck is followed by a wire that is ten times as fast. A second wire next to it loses or
reorders packets, and the flow's route leads over it for some intervals. The application writes
as much as the flow can send, or less from some time on.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from waterfill.runs import backends
from waterfill.runs.result import Result
from waterfill.scenario.document import Scenario
from waterfill.scenario.loading import from_dict

STARTUP, DRAIN, DOWN, CRUISE, REFILL, UP, PROBE_RTT = range(7)
NAMES = ("Startup", "Drain", "DOWN", "CRUISE", "REFILL", "UP", "ProbeRTT")
PROTOCOL = "bbr3"
# Samples per RTT: a state that lasts one round is seen.
_SAMPLES = 10


class Path(NamedTuple):
    """A path of one RTT and rate. Packets are of 1500 B; at 10 Gbit/s of 9000 B."""

    rtt_s: float
    rate_bps: float

    @property
    def packet_bytes(self) -> int:
        """Size of a packet (bytes)."""
        return 9000 if self.rate_bps >= 1e10 else 1500

    @property
    def packet_s(self) -> float:
        """Time that the bottleneck takes for a packet (s)."""
        return 8 * self.packet_bytes / self.rate_bps

    @property
    def bdp_packets(self) -> float:
        """Bandwidth-delay product (packets)."""
        return self.rtt_s / self.packet_s

    @property
    def round_s(self) -> float:
        """Time of a round with little queue (s): the RTT, or the transmission of a full window."""
        return max(self.rtt_s + 2 * self.packet_s, 6 * self.packet_s)

    @property
    def opened_s(self) -> float:
        """Time at which the SYN's answer arrives (s)."""
        return self.rtt_s + 2 * 1.1 * 320 / self.rate_bps

    def duration_s(self, cycles: float) -> float:
        """Return a time (s) that covers Startup, Drain and this number of cycles of ProbeBW."""
        startup = self.round_s * (1.6 * math.log2(max(self.bdp_packets, 1)) + 12)
        return startup + cycles * min(3 + 8 * self.round_s, 75 * self.round_s)


class Span(NamedTuple):
    """Samples `first` to before `end` in one state, from `from_s` to `to_s`."""

    first: int
    end: int
    from_s: float
    to_s: float


class Timeline:
    """Samples of the flow. Bandwidths are in bit/s, volumes in packets."""

    def __init__(self, path: Path, result: Result) -> None:
        table = result.flows
        self.path, self.result = path, result
        self.s = self._column(table, "time_s")
        self.state = self._own(table, "state").astype(int)
        bits = 8 * path.packet_bytes
        self.bw = bits * self._own(table, "bw")
        self.max_bw = bits * self._own(table, "max_bw")
        self.bw_shortterm = bits * self._own(table, "bw_shortterm")
        self.round_count = self._own(table, "round_count")
        self.min_rtt = self._own(table, "min_rtt")
        self.inflight_longterm = self._own(table, "inflight_longterm")
        self.inflight_shortterm = self._own(table, "inflight_shortterm")
        self.extra_acked = self._own(table, "extra_acked")
        self.pacing_gain = self._own(table, "pacing_gain")
        self.cwnd = self._own(table, "cwnd")
        self.rate_bps = self._column(table, "rate_bps")
        self.pacing_bps = self._column(table, "pacing_bps")
        self.in_flight = self._column(table, "in_flight_bytes") / path.packet_bytes
        bottleneck = result.links.filter(pc.equal(result.links["link"], "l"))
        self._drops_s = self._column(bottleneck, "time_s")
        self._drops = self._column(bottleneck, "drops")

    @staticmethod
    def _column(table: Any, name: str) -> NDArray[Any]:
        if name not in table.column_names:
            return np.full(table.num_rows, np.nan)
        return np.asarray(table[name].to_numpy(zero_copy_only=False), dtype=float)

    @classmethod
    def _own(cls, table: Any, signal: str) -> NDArray[Any]:
        return cls._column(table, f"{PROTOCOL}_{signal}")

    def at(self, time_s: float) -> int:
        """Return the first sample at or after a time."""
        return min(int(np.searchsorted(self.s, time_s)), len(self.s) - 1)

    def spans(self, after_s: float = 0.0) -> list[Span]:
        """Return the states that begin after a time, in order."""
        edges = [0, *(np.flatnonzero(np.diff(self.state)) + 1), len(self.state)]
        found = []
        for first, end in pairwise(edges):
            to_s = float(self.s[end]) if end < len(self.s) else math.inf
            if first == 0 or self.s[first] >= after_s:
                found.append(Span(int(first), int(end), float(self.s[first]), to_s))
        return [span for span in found if span.from_s >= after_s]

    def states(self, after_s: float = 0.0) -> list[tuple[int, Span]]:
        """Return the states that begin after a time, with their spans."""
        return [(int(self.state[span.first]), span) for span in self.spans(after_s)]

    def first(self, state: int, after_s: float = 0.0) -> Span | None:
        """Return the first span of a state that begins after a time."""
        return next((span for found, span in self.states(after_s) if found == state), None)

    def after(self, span: Span) -> int | None:
        """Return the state that follows a span."""
        return int(self.state[span.end]) if span.end < len(self.state) else None

    def rounds(self, span: Span) -> float:
        """Return the number of rounds that begin in a span, at the resolution of samples."""
        last = min(span.end, len(self.s) - 1)
        return float(self.round_count[last] - self.round_count[span.first])

    def drops(self, from_s: float, to_s: float = math.inf) -> float:
        """Return the number of packets that the bottleneck drops between two times."""
        between = (self._drops_s > from_s) & (self._drops_s <= to_s)
        return float(self._drops[between].sum())

    def sent_packets(self, time_s: float) -> float:
        """Return the number of packets sent by a time, without losses."""
        steps = np.diff(self.s, prepend=0.0)
        received = np.cumsum(np.nan_to_num(self.rate_bps) * steps) / (8 * self.path.packet_bytes)
        half = self.at(time_s - self.path.rtt_s / 2)
        return float(received[half] + self.in_flight[self.at(time_s)])


def write(path: Path, packets: float, then: Sequence[tuple[float, float]]) -> dict[str, Any]:
    """Return a demand: this many packets at once, then rates (bit/s) from given times (s) on."""
    until_s = path.opened_s + 10 * path.rtt_s + 0.1
    until_s = min([until_s, *((path.opened_s + at_s) / 2 for at_s, _ in then[:1])])
    first_bps = packets * 8 * path.packet_bytes / (until_s - path.opened_s)
    points = [(0.0, first_bps), (until_s, 0.0), *then]
    return {"points": [[f"{at!r} s", f"{bps!r} bit/s"] for at, bps in points], "repeat": False}


def scenario(
    path: Path,
    duration_s: float,
    *,
    buffer_bdp: float = 4.0,
    buffer_packets: float = 100.0,
    via_wire: Sequence[tuple[float, float]] = (),
    wire: dict[str, Any] | None = None,
    flow: dict[str, Any] | None = None,
    link: dict[str, Any] | None = None,
    probe_rtt_interval_s: float = 1000.0,
    sample_s: float | None = None,
) -> Scenario:
    """Return the scenario. `via_wire` are the intervals (s) in which the flow takes `wire`.

    The draft's 5 s between two ProbeRTTs are eight rounds at 600 ms: other states would rarely end
    by their own conditions. So ProbeRTT is left to the cases that are about it.
    """
    buffer = max(buffer_bdp * path.bdp_packets, buffer_packets)
    rate, fast = f"{path.rate_bps!r} bit/s", f"{10 * path.rate_bps!r} bit/s"
    routes = []
    for from_s, to_s in via_wire:
        routes += [{"at": f"{from_s!r} s", "path": ["l", "x"]}]
        routes += [{"at": f"{to_s!r} s", "path": ["l", "w"]}]
    sample_s = sample_s or min(path.round_s / _SAMPLES, duration_s / 200)
    document = {
        "name": "bbr3",
        "protocol": PROTOCOL,
        "duration": f"{duration_s!r} s",
        "measure": [f"{2 * duration_s / 3!r} s", f"{duration_s!r} s"],
        "packet_size": f"{path.packet_bytes} B",
        "sample": f"{sample_s!r} s",
        "params": {PROTOCOL: {"probe_rtt_interval": f"{probe_rtt_interval_s!r} s"}},
        "link": [
            {"name": "l", "from": "a", "to": "m", "rate": rate, "delay": f"{path.rtt_s / 2!r} s",
             "buffer": f"{math.ceil(buffer)} packets", **(link or {})},
            {"name": "w", "from": "m", "to": "b", "rate": fast, "buffer": "1000 packets"},
            {"name": "x", "from": "m", "to": "b", "rate": fast, "buffer": "1000 packets",
             **(wire or {})},
        ],
        "flow": [
            {"name": "f", "from": "a", "to": "b", "path": ["l", "w"],
             **({"route": routes} if routes else {}), **(flow or {})},
        ],
    }  # fmt: skip
    return from_dict(document, "bbr3")


def run(path: Path, duration_s: float, **options: Any) -> Timeline:
    """Run a scenario; see `scenario` for the options."""
    return Timeline(path, backends.run(scenario(path, duration_s, **options)))


@lru_cache(maxsize=4)
def plain(path: Path, cycles: float = 3.0, buffer_bdp: float = 4.0) -> Timeline:
    """Return the run in which nothing happens. Other runs equal it until their event."""
    return run(path, path.duration_s(cycles), buffer_bdp=buffer_bdp)
