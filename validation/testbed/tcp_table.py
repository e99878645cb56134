"""Compare the kernel's TCPs with the simulator's in a grid of scenarios.

A cell is one scenario under one protocol, run on both backends. A run on linux that failed its
checks is no result and is repeated by the next call.

Two quantities are compared: the mean rate of each group of flows, within 10 %, and the mean
queueing delay (the mean queue over the link's rate), within 20 % or 1 ms. The simulator's value is
the mean of SEEDS runs, whose flows start within one RTT of each other and whose losses differ. A
run of a minute is a sample itself: a hundred losses determine Reno's mean rate to a few per cent,
and flows that share a full buffer keep the shares of their start for minutes. So if the kernel's
one run is outside the tolerance, the table says whether it is within the simulator's own spread
(two standard deviations).

For random losses a second table removes what does not depend on the law: it compares rate × RTT ×
the square root of the loss rate of the run.
"""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from validation import study
from validation.study import Option, Study, StudyRun, failed_checks
from validation.tables import markdown
from waterfill.runs.result import Document, Result
from waterfill.scenario.loading import from_dict
from waterfill.testbed import kernel

# The kernel's reno with SACK, as it ships, is `sack`.
PROTOCOLS = ("sack", "cubic", "bbr")
RATES = {"100M": 100e6, "1G": 1e9}
# Packets are larger at 1 Gbit/s: two CPUs with all hosts, routers and the delay line carry 60,000
# packets per second, not the 83,000 of 1500 bytes.
PACKET_BYTES = {"100M": 1500, "1G": 9000}
RATE_WITHIN = 0.10
DELAY_WITHIN, DELAY_WITHIN_S = 0.20, 1e-3
RTT_S = 0.028
MIN_S = 60.0
LOSSES = 100
SEEDS = 20
SPREADS = 2.0

# What each case changes, compared with one flow and a buffer of one bandwidth-delay product.
CASES: dict[str, Document] = {
    "one": {},
    "four": {"count": 4},
    "two-rtts": {"rtts": (RTT_S, 3 * RTT_S)},
    "loss-1e-4": {"loss": 1e-4},
    "loss-1e-3": {"loss": 1e-3},
    "shallow": {"buffer": "0.2 bdp"},
    "deep": {"buffer": "4 bdp"},
}


@dataclass(frozen=True)
class TcpTableCell:
    """One scenario under one protocol. `length_s` overrides the length of the run."""

    case: str
    rate: str
    protocol: str
    length_s: float | None = None

    @property
    def name(self) -> str:
        """Name of the scenario, which `--only` matches."""
        return f"{self.case}-{self.rate}-{self.protocol}"

    def seconds(self) -> float:
        """Return the length of a run (s): at least 60 s, and long enough for about 100 losses."""
        if self.length_s is not None:
            return self.length_s
        loss = CASES[self.case].get("loss")
        if loss is None:
            return MIN_S
        packets_per_s = RATES[self.rate] / (8 * PACKET_BYTES[self.rate])
        if self.protocol != "bbr":
            # Reno's mean rate is √(3/2p) packets per RTT; CUBIC's is not lower.
            packets_per_s = min(packets_per_s, math.sqrt(1.5 / loss) / RTT_S)
        return max(MIN_S, float(math.ceil(LOSSES / float(loss) / packets_per_s)))

    def scenario(self, seed: int = 0) -> Document:
        """Return the scenario as a dictionary. The measurement window is the last two thirds of the
        run.

        With seed 0 all flows start at once, with others each at a random time in the first RTT.
        """
        change = CASES[self.case]
        length_s = self.seconds()
        flows = [
            {"name": f"f{i}", "from": f"a{i}", "to": f"b{i}", "path": ["l"],
             "rtt": f"{rtt_s * 1e3:g} ms", "count": change.get("count", 1),
             "delayed_ack": True}
            for i, rtt_s in enumerate(change.get("rtts", (RTT_S,)))
        ]  # fmt: skip
        if seed:
            rng = random.Random(seed)
            for flow in flows:
                flow["start"] = f"{rng.uniform(0, RTT_S) * 1e3:.3f} ms"
                flow["stagger"] = f"{rng.uniform(0, RTT_S) * 1e3 / flow['count']:.3f} ms"
        params = kernel.choices(self.protocol)
        return {
            **({"seed": seed} if seed else {}),
            "params": {self.protocol: params} if params else {},
            "packet_size": f"{PACKET_BYTES[self.rate]} B",
            "name": self.name, "duration": f"{length_s:g} s", "protocol": self.protocol,
            "measure": [f"{length_s / 3:g} s", f"{length_s:g} s"],
            "link": [{"name": "l", "from": "r1", "to": "r2", "rate": f"{RATES[self.rate]:g} bit/s",
                      "delay": f"{RTT_S / 2 * 1e3:g} ms", "buffer": change.get("buffer", "1 bdp"),
                      "loss": change.get("loss", 0.0)}],
            "flow": flows,
        }  # fmt: skip


def cells(length_s: float | None = None) -> list[TcpTableCell]:
    """Return all scenarios of the grid, with the slow rate first."""
    return [TcpTableCell(c, r, p, length_s) for r in RATES for c in CASES for p in PROTOCOLS]


def figures(run: Mapping[str, Any]) -> Document:
    """Return the quantities of a run that are compared with other runs.

    That is mean rates by group (bit/s), the link's mean queue (bytes), the first flow's mean RTT
    (s), and how many packets were lost at random in which time (s).
    """
    groups: dict[str, list[float]] = {}
    for flow in run["flows"]:
        groups.setdefault(flow["group"], []).append(flow["rate_bps"] or 0.0)
    link = run["links"][0]
    return {
        "rates_bps": {name: statistics.fmean(rates) for name, rates in groups.items()},
        "queue_bytes": link["queue_bytes"]["mean"],
        "utilization": link["utilization"],
        "rtt_s": run["flows"][0]["rtt_ms"]["mean"] / 1e3,
        "lost": link["lost"],
        "measured_s": run["measure_s"][1] - run["measure_s"][0],
        "retransmissions": sum(flow["retransmissions"] for flow in run["flows"]),
    }


def verdict(sims: Sequence[Document], linux: Document, rate_bps: float) -> Document:
    """Compare a run on linux with the mean of several simulator runs, all given as `figures`.

    Differences of rates are relative to the simulator's mean; delays are in s.
    """
    delays_s = [8 * f["queue_bytes"] / rate_bps for f in sims]
    delay_s, found_s = statistics.fmean(delays_s), 8 * linux["queue_bytes"] / rate_bps
    means, rates, within = {}, {}, True
    for group in sims[0]["rates_bps"]:
        each = [f["rates_bps"][group] for f in sims]
        means[group] = statistics.fmean(each)
        if means[group] > 0:
            rates[group] = linux["rates_bps"][group] / means[group] - 1
        if abs(rates.get(group, math.inf)) > RATE_WITHIN:
            within &= abs(linux["rates_bps"][group] - means[group]) <= SPREADS * _spread(each)
    apart_s = abs(found_s - delay_s)
    return {
        "linux": linux, "rates_bps": means, "rates": rates, "delays_s": [delay_s, found_s],
        "retransmissions": statistics.fmean(f["retransmissions"] for f in sims),
        "spread": {g: _spread([f["rates_bps"][g] for f in sims]) / max(means[g], 1) for g in means},
        "delay_spread_s": _spread(delays_s),
        "rate_ok": len(rates) == len(means) and all(abs(r) <= RATE_WITHIN for r in rates.values()),
        "rate_within_spread": within,
        "delay_ok": apart_s <= max(DELAY_WITHIN_S, DELAY_WITHIN * delay_s),
        "delay_within_spread": apart_s <= SPREADS * _spread(delays_s),
    }  # fmt: skip


def window_of_loss(found: Document, packet_bytes: int) -> float:
    """Return a flow's mean window (packets) times the square root of its loss rate.

    For Reno it is √(3/2) for any RTT and loss rate [Mathis, Semke, Mahdavi, Ott 1997].
    """
    packets_per_s = sum(found["rates_bps"].values()) / (8 * packet_bytes)
    share = found["lost"] / (packets_per_s * found["measured_s"])
    return float(packets_per_s * found["rtt_s"] * math.sqrt(share))


def _spread(values: Sequence[float]) -> float:
    return statistics.stdev(values) if len(values) > 1 else 0.0


def _cells(found: Document) -> list[object]:
    def rates(side: Document) -> str:
        return " / ".join(f"{rate / 1e6:.4g}" for rate in side.values())

    delays = found["delays_s"]
    return [
        " / ".join(f"{rate / 1e6:.4g} ± {100 * found['spread'][group]:.1f} %"
                   for group, rate in found["rates_bps"].items()),
        rates(found["linux"]["rates_bps"]),
        " / ".join(f"{share:+.1%}" for share in found["rates"].values()),
        f"{delays[0] * 1e3:.2f} ± {found['delay_spread_s'] * 1e3:.2f}", f"{delays[1] * 1e3:.2f}",
        round(found["retransmissions"]), found["linux"]["retransmissions"], word(found),
    ]  # fmt: skip


def word(found: Document) -> str:
    """Return the verdict in a few words, for the table."""
    apart = {name: found[f"{name}_within_spread"] for name in ("rate", "delay")
             if not found[f"{name}_ok"]}  # fmt: skip
    if not apart:
        return "yes"
    names = " and ".join(apart)
    return f"{names} within the spread" if all(apart.values()) else f"**no: {names}**"


# --- the study ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Sides:
    """Quantities of one scenario on both backends, and the checks that the run on linux failed."""

    sims: Sequence[Document]
    linux: Document
    failed: Sequence[str]


def runs(cell: TcpTableCell) -> dict[str, StudyRun]:
    """Return the run on linux, and the simulator's runs by seed."""
    source = f"<{cell.name}>"
    found = {str(n): StudyRun(from_dict(cell.scenario(n), source)) for n in range(1, SEEDS + 1)}
    return {**found, "linux": StudyRun(from_dict(cell.scenario(), source), "linux")}


def measure(_: TcpTableCell, results: Mapping[str, Result]) -> Sides:
    """Return the quantities of one scenario's runs on both backends, for comparison."""
    linux = results["linux"]
    sims = [figures(result.summary) for name, result in results.items() if name != "linux"]
    return Sides(sims, figures(linux.summary), failed_checks(linux))


HEAD = (
    "cell|protocol|rate sim Mbit/s:|linux:|difference:|queueing delay sim ms:|linux:"
    "|retransmitted sim:|linux:|agree"
)
LOSSES_HEAD = (
    "cell|protocol|RTT sim ms:|linux:|lost sim:|linux:|rate × RTT × √loss, sim packets:|linux:"
    "|difference:"
)


def rows(found: Mapping[TcpTableCell, Sides]) -> Iterator[list[object]]:
    """Yield the rows of the main table, one per scenario."""
    for cell, sides in found.items():
        if sides.failed:
            shown: list[object] = [*[""] * 7, f"failed checks: {', '.join(sides.failed)}"]
        else:
            shown = _cells(verdict(sides.sims, sides.linux, RATES[cell.rate]))
        yield [f"{cell.case}, {cell.rate}", cell.protocol, *shown]


def losses(found: Mapping[TcpTableCell, Sides]) -> Iterator[list[object]]:
    """Yield the rows of the loss table, each for one Reno or CUBIC flow under random loss."""
    for cell, sides in found.items():
        if CASES[cell.case].get("loss") is None or cell.protocol == "bbr" or sides.failed:
            continue
        packet_bytes = PACKET_BYTES[cell.rate]
        both = (sides.sims, [sides.linux])
        each = [window_of_loss(f, packet_bytes) for f in sides.sims]
        mean, got = statistics.fmean(each), window_of_loss(sides.linux, packet_bytes)
        rtts_ms = [1e3 * statistics.fmean(f["rtt_s"] for f in side) for side in both]
        lost = [statistics.fmean(f["lost"] for f in side) for side in both]
        yield [f"{cell.case}, {cell.rate}", cell.protocol, *(f"{rtt:.2f}" for rtt in rtts_ms),
               *(f"{n:.0f}" for n in lost), f"{mean:.3f} ± {_spread(each) / mean:.1%}",
               f"{got:.3f}", f"{got / mean - 1:+.1%}"]  # fmt: skip


def failed(found: Mapping[TcpTableCell, Sides]) -> list[str]:
    """Return the scenarios whose results neither agree nor differ by less than the spread."""
    lines = zip(found, rows(found), strict=True)
    return [c.name for c, cells in lines if not str(cells[-1]).endswith(("yes", "spread"))]


STUDY = Study(
    shows="the kernel's TCPs have the simulator's rates within 10 % and queues within 20 %",
    minutes=90,
    needs=(study.on_linux(),),
    options=(
        study.only("one-100M-*"),
        Option("--seconds", None, "length of every cell (s), to try the host", type=float),
    ),
    quick={"only": "one-100M-*", "seconds": 5.0},
    cases=lambda options: cells(options.seconds),
    runs=runs,
    measure=measure,
    valid=study.passed_checks,
    table=lambda found: "\n\n".join(
        [markdown(HEAD, rows(found)), markdown(LOSSES_HEAD, losses(found))]
    ),
    failed=failed,
)
