"""Networks and flows of the comparison, and Waterfill's scenario of each."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from waterfill.scenario import distributions
from waterfill.scenario.units import VOLUME

LAWS = ("hpcc", "powertcp")
STAGGERS_NS = (0, 130, 333, 1000, 5000)
# Of flows that join every millisecond, this much later each: one start tells little.
LATER_NS = tuple(331 * i for i in range(12))

# ns-3's data packets have 1000 B of payload and 90 B of headers: PPP 14, IP 20, UDP 8, sequence 6,
# telemetry 42. Waterfill counts 82 B of headers, so equal packets have 1008 B of payload there.
HEADER_BYTES, OUR_HEADER_BYTES, ACK_BYTES = 90, 82, 88
START_S = 1e-4

# Settings of both. RateAI is W_AI / T, and PowerTCP's β is 150 Mbit/s in its authors' code.
RATE_AI_BPS, BETA_BPS, ETA = 50e6, 150e6, 0.95


class Flow(NamedTuple):
    """Start (s), end hosts and length (packets) of a flow."""

    start_s: float
    source: int
    sink: int
    packets: int


class Wire(NamedTuple):
    """A full-duplex link between two nodes. Hosts have the lowest numbers."""

    a: int
    b: int
    rate_bps: float
    delay_ns: int


@dataclass(frozen=True)
class FabricCase:
    """A network with its flows, for one law.

    `number` is the time between the starts of an incast's flows (ns), that time less 1 ms for flows
    that join, or the seed of web search.
    """

    kind: str
    law: str
    number: int = 0
    payload_bytes: int = 1000
    max_stage: int = 5

    @property
    def name(self) -> str:
        """Name of the case in words, without defaults."""
        words = [self.law, self.kind, str(self.number)]
        words += [f"payload {self.payload_bytes}"] * (self.payload_bytes != 1000)
        return " ".join(words + [f"max_stage {self.max_stage}"] * (self.max_stage != 5))

    @cached_property
    def hosts(self) -> int:
        """Number of hosts."""
        return {"incast": 11, "joins": 5, "web-search": 32}[self.kind]

    @cached_property
    def wires(self) -> list[Wire]:
        """Links: one switch with hosts at 25 Gbit/s, or eight leaves of four hosts and a spine."""
        if self.kind != "web-search":
            return [Wire(host, self.hosts, 25e9, 4000) for host in range(self.hosts)]
        leaves = [Wire(host, 32 + host // 4, 100e9, 1000) for host in range(32)]
        return leaves + [Wire(leaf, 40, 400e9, 1000) for leaf in range(32, 40)]

    @cached_property
    def base_rtt_s(self) -> float:
        """ns-3's T: propagation on the longest path and back, and a payload on each link of it."""
        bits = 8 * self.payload_bytes
        if self.kind != "web-search":
            return 4 * 4e-6 + 2 * bits / 25e9
        return 8 * 1e-6 + 2 * bits / 100e9 + 2 * bits / 400e9

    @property
    def rate_bps(self) -> float:
        """Rate of a host."""
        return self.wires[0].rate_bps

    @cached_property
    def flows(self) -> list[Flow]:
        """Flows in the order of their starts."""
        if self.kind == "incast":
            count = 500_000 // self.payload_bytes
            return [
                Flow(round(START_S + i * self.number * 1e-9, 9), i, 10, count) for i in range(10)
            ]
        if self.kind == "joins":
            step_s = 1e-3 + self.number * 1e-9
            return [Flow(round(START_S + i * step_s, 9), i, 4, 6000) for i in range(4)]
        return self._web_search(0.6, 3e-3)

    def _web_search(self, load: float, stop_s: float) -> list[Flow]:
        sizes = distributions.parse("web-search", VOLUME)
        points, shares = np.array(sizes.points).T
        chance = random.Random(f"fabric/{load}/{self.number}")
        per_s = load * self.hosts * self.rate_bps / (8 * sizes.mean)
        found, at_s = [], START_S + chance.expovariate(per_s)
        while at_s < START_S + stop_s:
            source, sink = chance.sample(range(self.hosts), 2)
            size = float(np.interp(chance.random(), shares, points))
            packets = max(1, round(size / self.payload_bytes))
            found.append(Flow(round(at_s, 9), source, sink, packets))
            at_s += chance.expovariate(per_s)
        return found

    @property
    def end_s(self) -> float:
        """Time by which all flows have completed."""
        return {"incast": 3e-3, "joins": 12e-3, "web-search": 25e-3}[self.kind]

    def params(self, reading: str) -> dict[str, Any]:
        """Parameters of Waterfill's law that are ns-3's settings."""
        given: dict[str, Any] = {"base_rtt": f"{self.base_rtt_s} s", "reading": reading}
        if self.law == "hpcc":
            flows = self.rate_bps * (1 - ETA) / RATE_AI_BPS
            return given | {"flows": flows, "eta": ETA, "max_stage": self.max_stage}
        return given | {"flows": self.rate_bps / BETA_BPS, "gamma": 0.9}

    def document(self, reading: str, *, fair_hosts: bool) -> dict[str, Any]:
        """Return Waterfill's scenario.

        With `fair_hosts` the flows of a host take turns at its own link, as queue pairs do, and
        acknowledgements do not wait behind data. The queue neither drops nor marks.
        """
        turns = {"queue": "fq_codel", "queue_params": {"target": "1 s", "interval": "10 s"}}
        window = math.ceil(self.rate_bps * self.base_rtt_s / 8 / self.payload_bytes)
        payload = self.payload_bytes + HEADER_BYTES - OUR_HEADER_BYTES
        return {
            "name": f"{self.name}, reading {reading}",
            "duration": f"{self.end_s} s",
            "sample": "100 us",
            "profile": "datacenter",
            "protocol": self.law,
            "params": {self.law: self.params(reading)},
            "packet_size": f"{self.payload_bytes + HEADER_BYTES} B",
            "ack_size": f"{ACK_BYTES} B",
            "handshake": False,
            "ideal": "rtt",
            "link": [
                {
                    "name": f"n{wire.a}-n{wire.b}",
                    "from": f"n{wire.a}",
                    "to": f"n{wire.b}",
                    "rate": f"{wire.rate_bps} bit/s",
                    "delay": f"{wire.delay_ns} ns",
                    "buffer": "100 MB",
                    **(turns if fair_hosts and wire.a < self.hosts else {}),
                }
                for wire in self.wires
            ],
            "link_defaults": {"duplex": True},
            "flow": [
                {
                    "name": f"f{number}",
                    "from": f"n{flow.source}",
                    "to": f"n{flow.sink}",
                    "start": f"{flow.start_s:.9f} s",
                    "size": f"{flow.packets * payload} B",
                    "initial_window": window,
                }
                for number, flow in enumerate(self.flows)
            ],
        }


def cases(options: Mapping[str, Any]) -> list[FabricCase]:
    """Return the cases of all laws: incasts, flows that join, and web search with several seeds."""
    found = []
    for law in LAWS:
        found += [FabricCase("incast", law, stagger) for stagger in STAGGERS_NS]
        found += [FabricCase("incast", law, 333, payload_bytes=4000)]
        found += [FabricCase("incast", law, 333, max_stage=0)] * (law == "hpcc")
        found += [FabricCase("joins", law, later) for later in LATER_NS]
        found += [FabricCase("web-search", law, seed + 1) for seed in range(options["seeds"])]
    return found
