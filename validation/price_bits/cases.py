"""Cases of the study of price bits, with their scenarios and the measurements of a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from waterfill.analysis import series
from waterfill.network import protocols
from waterfill.runs.result import Result
from waterfill.scenario.document import Scenario
from waterfill.scenario.loading import from_dict

LAWS = ("maxnet", "maxnet2006", "rcp", "aecp")
RATE_BPS = 100e6
RTTS_MS = (20, 80, 320)
DURATION_S, MEASURE_S = 60.0, 30.0
NETWORKS = ("one link", "two equal links")
FLOWS = 4
# Fairness takes τ²/(αηT) there, 49 s, so 60 s do not show it with any code.
UNSETTLED = {("maxnet2006", 320)}


class Code(NamedTuple):
    """Encoding of a router's signal. With 0 bits it is the law's own encoding."""

    name: str
    bits: int
    decades: float = 6.4
    carried: bool = False

    @property
    def params(self) -> dict[str, Any]:
        """Law parameters that select the encoding."""
        if not self.bits:
            return {}
        found: dict[str, Any] = {"code_bits": self.bits}
        if self.decades != 6.4:
            # Around a fair share of a quarter of the link.
            half = 10 ** (self.decades / 2)
            found["code_min"] = f"{RATE_BPS / FLOWS / half:.0f} bit/s"
            found["code_max"] = f"{RATE_BPS / FLOWS * half:.0f} bit/s"
        if self.carried:
            found["code_rounding"] = "carried"
        return found


OWN = Code("own", 0)
CODES = (
    OWN,
    Code("20", 20),
    Code("7", 7),
    Code("5", 5),
    Code("5, two decades", 5, 2.0),
    Code("7, carried", 7, carried=True),
    Code("5, carried", 5, carried=True),
)


class PriceCase(NamedTuple):
    """One run: a law with one encoding, RTT and network."""

    law: str
    code: Code
    rtt_ms: int
    network: str


class PriceRow(NamedTuple):
    """Measurements of a run between 30 and 60 s.

    `rates_bps`: means of the flows of each kind: all; or those on both links, on the first, on the
    second. `unfair`: the largest relative difference of a flow from its kind's mean. `deviation`:
    standard deviation of the load that sources ask for, over its mean. `queue_ms`: mean and 99th
    percentile of the fuller link's.
    """

    case: PriceCase
    rates_bps: tuple[float, ...]
    unfair: float
    deviation: float
    queue_ms: tuple[float, float]
    drops: int

    def off(self, own: PriceRow) -> float:
        """Return the largest relative difference from the rates under the law's own encoding."""
        pairs = zip(self.rates_bps, own.rates_bps, strict=True)
        return max(abs(rate / other - 1) for rate, other in pairs)


def all_cases(laws: Iterable[str] = LAWS) -> list[PriceCase]:
    """Return all cases of the given laws, except cases that do not settle within a run."""
    return [
        PriceCase(law, code, rtt_ms, network)
        for law in laws
        for code in CODES
        for rtt_ms in RTTS_MS
        for network in NETWORKS
        if (law, rtt_ms) not in UNSETTLED
    ]


def scenario(case: PriceCase, duration_s: float = DURATION_S) -> Scenario:
    """Return a scenario with four flows on one link. With two links, two flows cross each link
    alone and two more cross both.
    """
    two = case.network == NETWORKS[1]
    names = ("first", "second") if two else ("first",)
    hops = len(names)
    links: list[dict[str, Any]] = [
        {
            "name": name, "from": f"n{i}", "to": f"n{i + 1}", "rate": f"{RATE_BPS:.0f} bit/s",
            "delay": f"{case.rtt_ms / 2 / hops!r} ms", "buffer": "3125 kB",
        }
        for i, name in enumerate(names)
    ]  # fmt: skip
    if two:
        # Short flows have the same RTT, by an access link that limits nothing.
        links += [
            {
                "name": f"{name}-access", "from": f"s{i}", "to": f"n{i}", "rate": "1 Gbit/s",
                "delay": f"{case.rtt_ms / 2 / hops!r} ms", "buffer": "3125 kB",
            }
            for i, name in enumerate(names)
        ]  # fmt: skip
    paths = [("long", list(names))] * (2 if two else FLOWS)
    if two:
        paths += [(name, [f"{name}-access", name]) for name in names for _ in range(2)]
    flows = [
        {"name": f"{name}{i}", "path": path, "start": f"{0.05 * i!r} s"}
        for i, (name, path) in enumerate(paths)
    ]
    return from_dict(
        {
            "name": f"{case.law}, {case.code.name} bits, {case.rtt_ms} ms, {case.network}",
            "protocol": case.law, "duration": f"{duration_s:g} s",
            "measure": [f"{duration_s / 2:g} s", f"{duration_s:g} s"], "packet_size": "1500 B",
            "sample": "5 ms", "link": links, "flow": flows, "params": {case.law: case.code.params},
        },
        source="price_bits",
    )  # fmt: skip


def measure(case: PriceCase, result: Result) -> PriceRow:
    """Return the measurements of a run."""
    start_s = result.summary["measure_s"][0]
    flows = result.summary["flows"]
    names = [link["name"] for link in result.summary["links"] if "access" not in link["name"]]
    on_first = [flow["name"] for flow in flows if not flow["name"].startswith("second")]
    load = np.zeros(0)
    for name in on_first:
        table = result.samples("flows", name)
        time_s = series.numbers(table, "time_s")
        window, pacing = (series.numbers(table, key) for key in ("window_bytes", "pacing_bps"))
        asked = pacing if case.law in ("rcp", "aecp") else 8 * window / (case.rtt_ms / 1e3)
        asked = asked[time_s > start_s]
        load = asked if not len(load) else load[: len(asked)] + asked[: len(load)]
    links = {link["name"]: link for link in result.summary["links"]}
    to_ms = 8e3 / RATE_BPS
    kinds: dict[str, list[float]] = {}
    for flow in flows:
        kinds.setdefault(flow["name"].rstrip("0123456789"), []).append(flow["rate_bps"] or 0.0)
    means = [float(np.mean(rates)) for rates in kinds.values()]
    unfair = [
        abs(rate / mean - 1)
        for rates, mean in zip(kinds.values(), means, strict=True)
        for rate in rates
    ]
    return PriceRow(
        case,
        tuple(means),
        max(unfair),
        float(np.std(load) / np.mean(load)),
        (
            max(links[name]["queue_bytes"]["mean"] for name in names) * to_ms,
            max(links[name]["queue_bytes"]["p99"] for name in names) * to_ms,
        ),
        sum(links[name]["drops"] for name in names),
    )


def defaults(law: str) -> Mapping[str, Any]:
    """Return a law's parameters with their defaults, in SI units."""
    return {param.name: param.default for param in protocols.load()[law].params}
