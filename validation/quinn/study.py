"""Compare quinn-proto as an endpoint with Waterfill's laws over QUIC's recovery, on the same links.

The study builds `crates/waterfill-quinn`, runs each cell twice with the library and compares the
logs of datagrams, then compares goodput with the same law on Waterfill's hosts. It also runs our
laws as quinn's controllers. Cells with random loss have several seeds.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import waterfill
from validation.study import ROOT, Option, Options, Report, Study, only, tool
from validation.tables import markdown
from waterfill.analysis import seeds
from waterfill.runs.endpoints import Endpoints, Library
from waterfill.runs.qlog import Qlog

CRATE = ROOT / "crates" / "waterfill-quinn"
LIBRARY = ROOT / "target" / "quinn" / "release" / "libwaterfill_quinn.so"
FLOW = "f"
# A datagram fills a packet of 1500 bytes, and flow control limits nothing.
SAME = {"mtu": "1472", "initial_window": "14720", "receive_window": "100000000"}
# quinn's CUBIC has neither HyStart nor RFC 9438's growth as Reno's above the last window.
LAWS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "cubic": ("cubic", {"params.cubic.hystart": "off", "params.cubic.catch_up": False}),
    "newreno": ("sack", {}),
}
REVERSE = {"cubic": "waterfill-cubic", "newreno": "waterfill-reno"}
SEEDS = 10
"""Number of seeds of a cell with random loss."""


@dataclass(frozen=True)
class Cell:
    """A path: rate (bit/s), RTT (s), buffer, and further keys of the link."""

    name: str
    rate: str
    delay: str
    buffer: str
    more: Mapping[str, Any]
    ecn: bool = False

    @property
    def seeds(self) -> range:
        """Seeds of its runs: one where nothing is random."""
        return range(1, 1 + (SEEDS if "loss" in self.more else 1))

    def scenario(self, law: str, duration: str, seed: int = 1) -> dict[str, Any]:
        """Return the scenario of one flow on this path."""
        link = {
            "name": "l", "from": "a", "to": "b", "rate": self.rate, "delay": self.delay,
            "buffer": self.buffer, **self.more,
        }  # fmt: skip
        flow = {
            "name": FLOW, "path": ["l"], "protocol": law, "recovery": "quic", "pacing": True,
        }  # fmt: skip
        if self.ecn:
            flow["ecn"] = True
        return {
            "name": self.name, "seed": seed, "duration": duration, "link": [link], "flow": [flow],
        }  # fmt: skip


CELLS = [
    Cell("0.25-bdp", "50 Mbit/s", "20 ms", "0.25 bdp", {}),
    Cell("0.5-bdp", "50 Mbit/s", "20 ms", "0.5 bdp", {}),
    Cell("1-bdp", "50 Mbit/s", "20 ms", "1 bdp", {}),
    Cell("4-bdp", "50 Mbit/s", "20 ms", "4 bdp", {}),
    Cell("slow", "5 Mbit/s", "10 ms", "1 bdp", {}),
    Cell("long", "50 Mbit/s", "100 ms", "1 bdp", {}),
    Cell("satellite", "10 Mbit/s", "300 ms", "1 bdp", {}),
    Cell("loss-0.01", "50 Mbit/s", "20 ms", "1 bdp", {"loss": 0.0001}),
    Cell("loss-0.1", "50 Mbit/s", "20 ms", "1 bdp", {"loss": 0.001}),
    Cell("loss-1", "50 Mbit/s", "20 ms", "1 bdp", {"loss": 0.01}),
]


@dataclass(frozen=True)
class Row:
    """Goodputs (Mbit/s) and packets lost in 1000 of one cell, as means over its seeds.

    `difference` is, for each seed, quinn's goodput − our law's, as a share of the mean of our
    law's. `reverse` is that of our law in quinn − quinn's, as a share of the mean of quinn's.
    """

    cell: str
    law: str
    quinn_mbps: float
    ours_mbps: float
    reverse_mbps: float
    quinn_lost: float
    ours_lost: float
    difference: list[float]
    reverse: list[float]
    datagrams: str


def build() -> None:
    """Build the library, in the crate's directory because its configuration is there."""
    command = ["cargo", "build", "--release", "--locked", "--quiet"]
    subprocess.run(command, cwd=CRATE, check=True)


def endpoints(**options: str) -> Endpoints:
    """Return quinn as the flow's endpoints, with these options."""
    return Endpoints({FLOW: Library(LIBRARY, tuple((SAME | options).items()))})


def _goodput(result: Any) -> tuple[float, float]:
    flow = result.summary.flows[0]
    return (flow.goodput_bps or 0) / 1e6, 1000 * flow.retransmissions / flow.packets_sent


def _logged(scenario: dict[str, Any], folder: Path, **options: str) -> tuple[Any, str]:
    """Run quinn on a scenario; return the result and a hash of the log of datagrams."""
    folder.mkdir()
    result = waterfill.run(scenario, qlog=Qlog(folder), endpoints=endpoints(**options))
    return result, hashlib.sha256((folder / f"{FLOW}.sqlog").read_bytes()).hexdigest()[:12]


def repeats(scenario: dict[str, Any], law: str) -> str:
    """Run quinn twice on a scenario; return the hash of its datagrams, or both if they differ."""
    with TemporaryDirectory() as folder:
        first, second = (
            _logged(scenario, Path(folder, str(n)), controller=law)[1] for n in range(2)
        )
    return first if first == second else f"{first} and {second}"


def compare(cell: Cell, law: str, duration: str) -> Row:
    """Run a cell: quinn, our law on our hosts, and our law as quinn's controller."""
    name, params = LAWS[law]
    scenarios = [cell.scenario(name, duration, seed) for seed in cell.seeds]
    quinn, ours, reverse = np.array([
        [
            _goodput(waterfill.run(scenario, endpoints=endpoints(controller=law))),
            _goodput(waterfill.run(scenario, set=params)),
            _goodput(waterfill.run(scenario, endpoints=endpoints(controller=REVERSE[law]))),
        ]
        for scenario in scenarios
    ]).transpose(1, 2, 0)  # fmt: skip
    return Row(
        cell.name, law, quinn[0].mean(), ours[0].mean(), reverse[0].mean(),
        quinn[1].mean(), ours[1].mean(), list((quinn[0] - ours[0]) / ours[0].mean()),
        list((reverse[0] - quinn[0]) / quinn[0].mean()), repeats(scenarios[0], law),
    )  # fmt: skip


def speeds(duration: str) -> Iterator[tuple[str, float, float]]:
    """Yield packets, and packets per second of CPU time, of each kind of endpoint on one path."""
    scenario = CELLS[2].scenario("cubic", duration)
    kinds = {
        "quinn, TLS": endpoints(crypto="tls"),
        "quinn, not encrypted": endpoints(crypto="none"),
        "cubic, recovery = quic": None,
    }
    for kind, own in kinds.items():
        started = time.process_time()
        result = waterfill.run(scenario, endpoints=own)
        spent_s = time.process_time() - started
        packets = result.summary.flows[0].packets_sent
        yield kind, packets, packets / spent_s


def percent(values: list[float]) -> str:
    """Return the mean of shares in percent, with its 95 % interval where there are several."""
    found = seeds.estimate(values)
    assert found.mean is not None
    half = "" if found.interval is None else f" ± {100 * (found.interval[1] - found.mean):.1f}"
    return f"{100 * found.mean:+.1f}{half} %".replace("-", "−")


def table(rows: list[Row]) -> str:
    """Return a table with a row per cell and law."""
    return markdown(
        "cell|law|quinn, Mbit/s:|ours, Mbit/s:|difference:|lost of 1000, quinn:|ours:"
        "|our law in quinn, Mbit/s:|against quinn's:|log, both runs",
        [
            [
                row.cell,
                row.law,
                f"{row.quinn_mbps:.2f}",
                f"{row.ours_mbps:.2f}",
                percent(row.difference),
                f"{row.quinn_lost:.2f}",
                f"{row.ours_lost:.2f}",
                f"{row.reverse_mbps:.2f}",
                percent(row.reverse),
                row.datagrams,
            ]
            for row in rows
        ],
    )


def work(options: Options) -> Report:
    """Build quinn's library and compare all cells."""
    build()
    rows = [
        compare(cell, law, options.duration)
        for law in LAWS
        for cell in CELLS
        if options.only in ("*", cell.name, law)
    ]
    failed = [f"{row.cell} {row.law}: logs differ" for row in rows if " and " in row.datagrams]
    found = list(speeds(options.duration))
    fast = markdown(
        "endpoint|packets:|packets per second of CPU time:",
        [[kind, f"{packets:,}", f"{rate:,.0f}"] for kind, packets, rate in found],
    )
    load = f"Load while it ran: {os.getloadavg()[0]:.1f}."
    document = {"cells": [asdict(row) for row in rows], "speeds": found}
    return Report("\n".join((table(rows), "", fast, "", load)), document, failed)


STUDY: Study[None, None] = Study(
    shows="quinn's real code as an endpoint repeats and agrees with our laws, 10 cells",
    minutes=8,
    needs=[tool("cargo", "rustup installs it")],
    options=[Option("--duration", "60 s", "duration of each run"), only("1-bdp")],
    quick={"duration": "10 s"},
    work=work,
)
