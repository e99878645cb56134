"""Compare the kernel's TCPs with the simulator's, cell by cell: `make testbed-table`.

`python -m validation.testbed.tcp_table [-o DIR] [--only GLOB] [--seconds S]`. A cell is one
scenario under one protocol, run on both backends. Each result is kept in DIR at once, so an
interrupted table continues. A run on linux that failed its checks is no result and is repeated the
next time. DIR/table.md is the table so far.

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

import argparse
import fnmatch
import json
import math
import random
import statistics
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from waterfill.errors import InputError, RunError
from waterfill.runs import backends
from waterfill.runs.files import make_directory, write_text
from waterfill.runs.progress import Bar
from waterfill.runs.result import Document, to_json
from waterfill.scenario.loading import from_dict
from waterfill.testbed import checks, kernel

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
class Cell:
    """One scenario under one protocol."""

    case: str
    rate: str
    protocol: str

    @property
    def name(self) -> str:
        """The name of its file, which `--only` matches."""
        return f"{self.case}-{self.rate}-{self.protocol}"

    def seconds(self) -> float:
        """Return the length of a run: until 100 losses are expected, at least 60 s."""
        loss = CASES[self.case].get("loss")
        if loss is None:
            return MIN_S
        packets_per_s = RATES[self.rate] / (8 * PACKET_BYTES[self.rate])
        if self.protocol != "bbr":
            # Reno's mean rate is √(3/2p) packets per RTT; CUBIC's is not lower.
            packets_per_s = min(packets_per_s, math.sqrt(1.5 / loss) / RTT_S)
        return max(MIN_S, float(math.ceil(LOSSES / float(loss) / packets_per_s)))

    def scenario(self, seconds: float | None = None, seed: int = 0) -> Document:
        """Return the scenario as a dictionary; it is measured over its last two thirds.

        With seed 0 all flows start at once, with others each at a random time in the first RTT.
        """
        change = CASES[self.case]
        length_s = self.seconds() if seconds is None else seconds
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


def cells() -> list[Cell]:
    """Return all cells, the slow rate first."""
    return [Cell(c, r, p) for r in RATES for c in CASES for p in PROTOCOLS]


def figures(run: Document) -> Document:
    """Return what is compared of a run.

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
    """Compare one run on linux with the mean of several of the simulator, all as `figures`.

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
    """Return a flow's mean window (packets) times the square root of the loss rate.

    For Reno it is √(3/2) for any RTT and loss rate [Mathis, Semke, Mahdavi, Ott 1997].
    """
    packets_per_s = sum(found["rates_bps"].values()) / (8 * packet_bytes)
    share = found["lost"] / (packets_per_s * found["measured_s"])
    return float(packets_per_s * found["rtt_s"] * math.sqrt(share))


def _spread(values: Sequence[float]) -> float:
    return statistics.stdev(values) if len(values) > 1 else 0.0


class Table:
    """Runs cells and keeps their results in a folder."""

    def __init__(self, folder: Path, seconds: float | None = None) -> None:
        self.folder, self.seconds = folder, seconds

    def kept(self, cell: Cell, backend: str) -> list[Document] | None:
        """Return the kept figures of this exact scenario; None unless they passed their checks."""
        try:
            document: Document = json.loads(self._path(cell, backend).read_text())
        except (OSError, ValueError):
            return None
        asked = cell.scenario(self.seconds)
        if backend == "linux":
            # The parameters are the kernel's own.
            asked["params"] = document["cell"]["params"]
        if document["cell"] != asked:
            return None
        if backend == "linux":
            return None if failed(document["run"]) else [figures(document["run"])]
        found: list[Document] = document.get("figures", [])
        # Results of an older version lack what only the second table needs.
        whole = CASES[cell.case].get("loss") is None or all("rtt_s" in f for f in found)
        return found if len(found) == SEEDS and whole else None

    def run(self, cell: Cell, backend: str) -> None:
        """Run a cell on a backend and keep the result."""
        cell_document = cell.scenario(self.seconds)
        document: Document = {"cell": cell_document}
        if backend == "linux":
            document["run"] = self._run(cell, cell_document, backend)
        else:
            each = (cell.scenario(self.seconds, seed) for seed in range(1, SEEDS + 1))
            document["figures"] = [figures(self._run(cell, one, backend)) for one in each]
        write_text(self._path(cell, backend), to_json(document) + "\n")

    def _run(self, cell: Cell, scenario: Document, backend: str) -> Document:
        with Bar(f"{cell.name}@{backend}") as bar:
            result = backends.run(from_dict(scenario, f"<{cell.name}>"), on=backend, progress=bar)
        if "interrupted_at_s" in result.summary:
            raise KeyboardInterrupt
        return {**result.summary}

    def _path(self, cell: Cell, backend: str) -> Path:
        return self.folder / f"{cell.name}@{backend}.json"

    def rows(self, chosen: list[Cell]) -> Iterator[str]:
        """Return the lines of the Markdown table."""
        yield ("| cell | protocol | rate sim Mbit/s | linux | difference | queueing delay sim ms "
               "| linux | retransmitted sim | linux | agree |")  # fmt: skip
        yield "|---|---|" + "--:|" * 7 + "---|"
        for cell in chosen:
            sims, linux = (self.kept(cell, backend) for backend in ("sim", "linux"))
            head = f"| {cell.case}, {cell.rate} | {cell.protocol} |"
            if sims is None or linux is None:
                yield f"{head} | | | | | | | {self._why_not(cell)} |"
                continue
            found = verdict(sims, linux[0], RATES[cell.rate])
            yield f"{head} {_cells(found)} |"

    def losses(self, chosen: list[Cell]) -> Iterator[str]:
        """Return the lines of the second table: one Reno or CUBIC flow under random loss."""
        yield ("| cell | protocol | RTT sim ms | linux | lost sim | linux "
               "| rate × RTT × √loss, sim packets | linux | difference |")  # fmt: skip
        yield "|---|---|" + "--:|" * 7
        for cell in chosen:
            if CASES[cell.case].get("loss") is None or cell.protocol == "bbr":
                continue
            sims, linux = (self.kept(cell, backend) for backend in ("sim", "linux"))
            if sims is None or linux is None:
                continue
            packet_bytes = PACKET_BYTES[cell.rate]
            each = [window_of_loss(f, packet_bytes) for f in sims]
            mean, found = statistics.fmean(each), window_of_loss(linux[0], packet_bytes)
            rtts_ms = [1e3 * statistics.fmean(f["rtt_s"] for f in side) for side in (sims, linux)]
            lost = [statistics.fmean(f["lost"] for f in side) for side in (sims, linux)]
            yield (f"| {cell.case}, {cell.rate} | {cell.protocol} | {rtts_ms[0]:.2f} "
                   f"| {rtts_ms[1]:.2f} | {lost[0]:.0f} | {lost[1]:.0f} "
                   f"| {mean:.3f} ± {_spread(each) / mean:.1%} | {found:.3f} "
                   f"| {found / mean - 1:+.1%} |")  # fmt: skip

    def _why_not(self, cell: Cell) -> str:
        try:
            document = json.loads(self._path(cell, "linux").read_text())
        except (OSError, ValueError):
            return "not run"
        bad = ", ".join(failed(document["run"]))
        return f"failed checks: {bad}" if bad else "not run"


def failed(run: Document) -> list[str]:
    """Return the names of the checks that a run failed."""
    return [check["name"] for check in run.get("checks", ()) if not check["ok"]]


def _cells(found: Document) -> str:
    def rates(side: Document) -> str:
        return " / ".join(f"{rate / 1e6:.4g}" for rate in side.values())

    delays = found["delays_s"]
    cells: list[Any] = [
        " / ".join(f"{rate / 1e6:.4g} ± {100 * found['spread'][group]:.1f} %"
                   for group, rate in found["rates_bps"].items()),
        rates(found["linux"]["rates_bps"]),
        " / ".join(f"{share:+.1%}" for share in found["rates"].values()),
        f"{delays[0] * 1e3:.2f} ± {found['delay_spread_s'] * 1e3:.2f}", f"{delays[1] * 1e3:.2f}",
        round(found["retransmissions"]), found["linux"]["retransmissions"], word(found),
    ]  # fmt: skip
    return " | ".join(map(str, cells))


def word(found: Document) -> str:
    """Return the verdict as a few words for the table."""
    apart = {name: found[f"{name}_within_spread"] for name in ("rate", "delay")
             if not found[f"{name}_ok"]}  # fmt: skip
    if not apart:
        return "yes"
    names = " and ".join(apart)
    return f"{names} within the spread" if all(apart.values()) else f"**no: {names}**"


def main() -> int:
    """Run the command; return 0 if every cell agrees or is within the spread, else 1."""
    parser = argparse.ArgumentParser(
        prog="python -m validation.testbed.tcp_table", description=__doc__
    )
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="DIR",
        default=Path("out/testbed-table"),
        help="where results are kept",
    )
    parser.add_argument(
        "--only", default="*", metavar="GLOB", help="only these cells: 'one-100M-*'"
    )
    parser.add_argument("--seconds", type=float, help="length of every cell, to try the host")
    parser.add_argument("--show", action="store_true", help="print the kept results, run nothing")
    options = parser.parse_args()
    chosen = [cell for cell in cells() if fnmatch.fnmatch(cell.name, options.only)]
    table = Table(make_directory(options.output), options.seconds)
    lacking = None if options.show else checks.missing(http=False)
    if lacking or not chosen:
        wanted = lacking or f"--only to match one of {', '.join(c.name for c in cells())}"
        print(f"testbed-table: expected {wanted}", file=sys.stderr)
        return 2
    try:
        for cell in chosen if not options.show else ():
            for backend in ("sim", "linux"):
                if table.kept(cell, backend) is None:
                    table.run(cell, backend)
            lines = [*table.rows(cells()), "", *table.losses(cells())]
            write_text(table.folder / "table.md", "\n".join(lines) + "\n")
    except KeyboardInterrupt:
        print("interrupted; the next start continues here", file=sys.stderr)
        return 130
    except (InputError, RunError) as error:
        print(error, file=sys.stderr)
        return 2 if isinstance(error, InputError) else 1
    rows = list(table.rows(chosen))
    print("\n".join([*rows, "", *table.losses(chosen)]))
    return 0 if all(row.endswith(("| yes |", "spread |")) for row in rows[2:]) else 1


if __name__ == "__main__":
    sys.exit(main())
