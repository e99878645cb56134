"""Waterfill's TCPs side by side with ns-3's, on the same dumbbells: `make validate STUDY=ns3`.

Builds dumbbell.cc beside this file, runs it and Waterfill's simulator cell by cell and prints
both. README.md lists the settings; docs/validation/ns3.md the results, and where ns-3 differs.

A flow alone is judged at equal loss: 350 losses are 5 % off the nominal share as often as not, and
a throughput that goes with loss^-b follows them. Both the ratio as measured and that are printed.

Exit codes: 0 every judged figure is within 10 %, 1 one is not or has too few losses, 2 ns-3 is
missing or the input is wrong (one line), 130 interrupted.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

HERE = Path(__file__).resolve().parent
OUT = HERE.parent.parent / "target" / "ns3"

TOLERANCE = 0.10
MIN_LOSSES = 300  # on either side, for a cell to be judged
SEEDS = 16  # of Waterfill, each as long as ns-3's one run
BATCHES = 10  # of ns-3's run, for its standard error

PACKET_BYTES = 1500
PAYLOAD_BYTES = PACKET_BYTES - 40  # Waterfill's; in ns-3 12 bytes of timestamps go off, too
ACK_BYTES = 52  # as ns-3's, selective blocks aside
LOSSES = (1e-3, 3e-4)
# Long enough that CUBIC's mean window is 20 packets and more at every loss: below, ns-3's, which
# counts in whole packets, is its rounding.
RTTS_S = (0.05, 0.2)
# Not 200 ms: the two would differ by 250 packet times exactly. The order of events would decide
# which of two packets is dropped at the full queue, not a law (docs/validation/ns3.md).
SHARED_RTTS_S = (0.05, 0.2002)
DELAY_S = 0.001  # of the bottleneck, one way; the rest of the RTT is at the access
ALONE_BPS = 1e9  # only random loss and the RTT limit a flow
SHARED_BPS = 20e6  # four flows fill it

# ns-3 settings that correspond to a law of Waterfill. Its NewReno is by default what Waterfill
# calls sack: NewReno's window over selective acknowledgements.
NS3 = {
    "sack": {"law": "newreno", "sack": "true", "recovery": "prr"},
    "cubic": {"law": "cubic", "sack": "true", "recovery": "prr"},
    "newreno": {"law": "newreno", "sack": "false", "recovery": "classic"},
}
# Throughput of a flow alone goes with loss^-this: Mathis; RFC 9438 §5.1.
EXPONENT = {"sack": 0.5, "newreno": 0.5, "cubic": 0.75}
# Waterfill's parameter for the Reno-friendly region of CUBIC, which ns-3 has from 3.41 on.
RENO_FRIENDLY = "reno_friendly"

Document = dict[str, Any]


class Refused(Exception):
    """Input or installation that is not sufficient: one line."""


@dataclass(frozen=True)
class Ns3Cell:
    """One dumbbell: `count` flows at each of `rtts_s`, drop-tail, random loss of data."""

    law: str
    rtts_s: tuple[float, ...]
    count: int
    rate_bps: float
    loss: float
    packets: float  # through the bottleneck in the measured time, if the flows do as expected

    @property
    def title(self) -> str:
        rtts = " and ".join(f"{rtt_s * 1e3:g}" for rtt_s in self.rtts_s)
        flows = "one flow" if self.is_alone else f"{self.count} flows each"
        return f"{flows}, {rtts} ms, loss {self.loss:g}"

    @property
    def is_alone(self) -> bool:
        return len(self.rtts_s) * self.count == 1

    @property
    def buffer_packets(self) -> int:
        """One bandwidth-delay product of the longest RTT."""
        return round(self.rate_bps * max(self.rtts_s) / 8 / PACKET_BYTES)

    @property
    def measure_s(self) -> tuple[float, float]:
        """Return the times to measure between; twenty losses per flow are left out as the start."""
        offered = sum(
            self.count * expected_window(self.law, self.loss, rtt_s) / rtt_s
            for rtt_s in self.rtts_s
        )
        packets_per_s = min(offered, self.rate_bps / 8 / PACKET_BYTES)
        start_s = 20 * self.count * len(self.rtts_s) / self.loss / packets_per_s
        return round(start_s, 3), round(start_s + self.packets / packets_per_s, 3)


def expected_window(law: str, loss: float, rtt_s: float) -> float:
    """The mean window of a flow alone, in packets: how long to run follows from it, no more."""
    if law == "cubic":
        return 1.054 * math.pow(rtt_s / loss, 0.75)  # RFC 9438 §5.1, C = 0.4, β = 0.7
    return math.sqrt(1.5 / loss)  # Mathis


def cells(laws: Iterable[str], losses: int, loss_rates: Sequence[float] = LOSSES) -> list[Ns3Cell]:
    """Return the cells of each law: one flow at every RTT and loss rate, then four on a full link.

    `losses` are the random losses that a flow is to have in its measured time; on a full link at
    the highest rate of loss, below it the queue sees to them.
    """
    result: list[Ns3Cell] = []
    for law in laws:
        for rtt_s in RTTS_S:
            result += [Ns3Cell(law, (rtt_s,), 1, ALONE_BPS, p, losses / p) for p in loss_rates]
        shared = 4 * losses / max(LOSSES)
        result += [Ns3Cell(law, SHARED_RTTS_S, 2, SHARED_BPS, p, shared) for p in loss_rates]
    return result


# --- what is measured -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Side:
    """Measurement of one simulator."""

    packets_per_s: list[list[float]]
    """Packets delivered in order: one row per sample, one column per RTT."""
    lost: int
    """Data packets lost at random."""
    dropped: int
    """Data packets that the full queue dropped."""
    packets: float
    """Data packets through the bottleneck, the lost ones included."""

    @property
    def losses(self) -> int:
        return self.lost + self.dropped


@dataclass(frozen=True)
class Estimate:
    """A mean and its standard error."""

    mean: float
    error: float

    @classmethod
    def of(cls, samples: Sequence[float]) -> Estimate:
        return cls(fmean(samples), stdev(samples) / math.sqrt(len(samples)))

    @property
    def relative_error(self) -> float:
        return self.error / self.mean if self.mean else math.inf

    def document(self) -> Document:
        return {"mean": self.mean, "standard_error": self.error}


@dataclass(frozen=True)
class Figure:
    """One figure of one cell on both sides."""

    name: str
    unit: str
    ns3: Estimate
    ours: Estimate
    loss_factor: float = 1.0
    """Factor on the ratio if both sides lost the same share of packets."""

    @property
    def ratio_at_equal_loss(self) -> float:
        """The figure that is judged: few losses in a cell are never the nominal share exactly."""
        return self.ratio * self.loss_factor

    @property
    def ratio(self) -> float:
        return self.ours.mean / self.ns3.mean if self.ns3.mean else math.inf

    @property
    def ratio_error(self) -> float:
        return self.ratio * math.hypot(self.ours.relative_error, self.ns3.relative_error)


@dataclass(frozen=True)
class Pair:
    """One cell on both sides."""

    law: str
    cell: Ns3Cell
    ns3: Side
    ours: Side
    judged: bool = True

    def figures(self) -> list[Figure]:
        """Throughput, and on a shared link the shares of flows with each RTT."""

        def throughput(side: Side) -> Estimate:
            return Estimate.of([sum(row) for row in side.packets_per_s])

        def share(side: Side, column: int) -> Estimate:
            return Estimate.of([row[column] / sum(row) for row in side.packets_per_s])

        result = [
            Figure(
                "throughput",
                "packets/s",
                throughput(self.ns3),
                throughput(self.ours),
                self.loss_factor,
            )
        ]
        if not self.cell.is_alone:
            result += [
                Figure(f"share of {rtt_s * 1e3:g} ms", "", share(self.ns3, i), share(self.ours, i))
                for i, rtt_s in enumerate(self.cell.rtts_s)
            ]
        return result

    @property
    def loss_factor(self) -> float:
        """One on a shared link, where the queue and not the random loss has the last word."""
        if not self.cell.is_alone or not self.ns3.lost or not self.ours.lost:
            return 1.0
        ratio = (self.ours.lost / self.ours.packets) / (self.ns3.lost / self.ns3.packets)
        return math.pow(ratio, EXPONENT[self.cell.law])

    def verdict(self, figure: Figure) -> str:
        """`within`, `off`, `few losses`, or `shown` for unjudged figures."""
        if not self.judged:
            return "shown"
        if min(self.ns3.losses, self.ours.losses) < MIN_LOSSES:
            return "few losses"
        return "within" if abs(figure.ratio_at_equal_loss - 1) <= TOLERANCE else "off"

    def line(self, figure: Figure) -> str:
        digits = 1 if figure.unit else 3
        return (
            f"{self.law:16} {self.cell.title:42} {figure.name:17}"
            f" {figure.ns3.mean:8.{digits}f} ± {figure.ns3.relative_error:5.1%}"
            f" {figure.ours.mean:8.{digits}f} ± {figure.ours.relative_error:5.1%}"
            f" {figure.ratio:6.3f} ± {figure.ratio_error:.3f} {figure.ratio_at_equal_loss:8.3f}"
            f"  {self.verdict(figure):10}"
            f" {self.ns3.losses:6} {self.ours.losses:6}"
        )

    def document(self, figure: Figure) -> Document:
        return {
            "law": self.law,
            "dumbbell": self.cell.title,
            "figure": figure.name,
            "unit": figure.unit or None,
            "ns3": {**figure.ns3.document(), "losses": self.ns3.losses},
            "waterfill": {**figure.ours.document(), "losses": self.ours.losses},
            "ratio": figure.ratio,
            "ratio_standard_error": figure.ratio_error,
            "ratio_at_equal_loss": figure.ratio_at_equal_loss,
            "verdict": self.verdict(figure),
        }


HEADER = (
    f"{'':116} at equal\n"
    f"{'law':16} {'dumbbell':42} {'figure':17} {'ns-3':>8} {'':7} {'waterfill':>9} {'':6}"
    f" {'ratio':>6} {'':7} {'loss':>8}  {'verdict':10} {'losses of each':>13}"
)


def by_rtt(cell: Ns3Cell, flows: Sequence[float]) -> list[float]:
    """Sums over the flows of each RTT; flows of one RTT are adjacent."""
    n = cell.count
    return [math.fsum(flows[i * n : (i + 1) * n]) for i in range(len(cell.rtts_s))]


# --- ns-3 -----------------------------------------------------------------------------------------


def build() -> Path:
    """The path of dumbbell, made if it has to be. Raises Refused with what is missing."""
    compiler = os.environ.get("CXX", "c++")
    probe = [compiler, "-std=c++17", "-E", "-x", "c++", "-", "-o", os.devnull]
    try:
        found = run(probe, "#include <ns3/internet-module.h>\n")
    except FileNotFoundError:
        raise Refused(f"needs a C++ compiler, {compiler}: install g++ (Debian's name)") from None
    if found.returncode != 0:
        raise Refused("needs ns-3's headers and libraries: install libns3-dev (Debian's name)")
    made = run(["make", "-s", "-C", str(HERE), f"OUT={OUT}", f"CXX={compiler}"])
    if made.returncode != 0:
        sys.stderr.write(made.stderr)
        raise Refused("this ns-3 does not build bench/ns3/dumbbell.cc (messages above)")
    return OUT / "dumbbell"


def arguments(cell: Ns3Cell) -> list[str]:
    """Arguments of dumbbell."""
    start_s, end_s = cell.measure_s
    values = {
        **NS3[cell.law],
        "rtt": ",".join(f"{rtt_s:g}" for rtt_s in cell.rtts_s for _ in range(cell.count)),
        "rate": f"{cell.rate_bps:.0f}",
        "delay": f"{DELAY_S:g}",
        "buffer": str(cell.buffer_packets),
        "loss": f"{cell.loss:g}",
        "from": f"{start_s:.3f}",
        "duration": f"{end_s:.3f}",
        "batches": str(BATCHES),
    }
    return [f"--{key}={value}" for key, value in values.items()]


def ns3_document(program: Path, cell: Ns3Cell) -> Document:
    """Output of dumbbell for a cell; kept in target/ns3, as nothing of Waterfill changes it."""
    command = [str(program), *arguments(cell)]
    key = hashlib.sha256(program.read_bytes() + "\n".join(command[1:]).encode()).hexdigest()
    kept = OUT / f"{key[:24]}.json"
    if not kept.exists():
        done = run(command)
        if done.returncode != 0:
            raise Refused(f"{' '.join(command)} failed: {done.stderr.strip() or 'no message'}")
        partial = kept.with_suffix(".partial")
        partial.write_text(done.stdout)
        partial.replace(kept)
    document: Document = json.loads(kept.read_text())
    if document["packet_bytes"] != PACKET_BYTES:
        raise Refused(f"ns-3 sent packets of {document['packet_bytes']} B, not {PACKET_BYTES} B")
    return document


def ns3_side(cell: Ns3Cell, document: Document) -> Side:
    """The figures of that document."""
    flows = [flow["packets_per_s"] for flow in document["flows"]]
    samples = [by_rtt(cell, sample) for sample in zip(*flows, strict=True)]
    return Side(samples, document["lost"], document["dropped"], document["packets"])


def run(command: Sequence[str], text: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, input=text, text=True, capture_output=True, check=False)


# --- Waterfill ------------------------------------------------------------------------------------


def scenario(cell: Ns3Cell, params: Mapping[str, Any]) -> Document:
    """The cell as a scenario of Waterfill, with every option that ns-3 is given written out."""
    start_s, end_s = cell.measure_s
    link = {
        "name": "bottleneck",
        "from": "router",
        "to": "sink",
        "rate": f"{cell.rate_bps} bit/s",
        "delay": f"{DELAY_S} s",
        "buffer": f"{cell.buffer_packets} packets",
        "queue": "droptail",
        "loss": cell.loss,
    }
    flows = [
        {
            "name": f"rtt{i}",
            "path": ["bottleneck"],
            "count": cell.count,
            "rtt": f"{rtt_s} s",
            "initial_window": 10,
            "delayed_ack": False,
            "pacing": False,
            "ecn": False,
        }
        for i, rtt_s in enumerate(cell.rtts_s)
    ]
    return {
        "name": f"{cell.law}: {cell.title}",
        "duration": f"{end_s} s",
        "measure": [f"{start_s} s", f"{end_s} s"],
        "sample": f"{end_s / 100} s",
        "protocol": cell.law,
        "packet_size": f"{PACKET_BYTES} B",
        "ack_size": f"{ACK_BYTES} B",
        "rto_min": "1 s",
        "link": [link],
        "flow": flows,
        "params": {cell.law: dict(params)} if params else {},
    }


def our_side(cell: Ns3Cell, params: Mapping[str, Any]) -> Side:
    """Waterfill's figures, a sample for each seed."""
    import waterfill

    samples, lost, dropped, packets = [], 0, 0, 0.0
    start_s, end_s = cell.measure_s
    for seed in range(1, SEEDS + 1):
        summary = waterfill.run(scenario(cell, params), seed=seed).summary
        rates = [flow["goodput_bps"] / 8 / PAYLOAD_BYTES for flow in summary["flows"]]
        samples.append(by_rtt(cell, rates))
        link = summary["links"][0]
        lost += link["lost"]
        dropped += link["drops"]
        received_bps = sum(flow["rate_bps"] for flow in summary["flows"])
        packets += received_bps * (end_s - start_s) / 8 / PACKET_BYTES + link["lost"]
    return Side(samples, lost, dropped, packets)


# --- the command ----------------------------------------------------------------------------------


def pairs(cell: Ns3Cell, document: Document) -> list[Pair]:
    """The cell on both sides; CUBIC like ns-3's, and if that lacks a part once more as it is."""
    ns3 = ns3_side(cell, document)
    if cell.law != "cubic" or document["reno_friendly"]:
        # Without SACK ns-3 does not recover where a full queue drops several packets of a window
        # (docs/validation/ns3.md).
        sound = cell.law != "newreno" or cell.is_alone
        return [Pair(cell.law, cell, ns3, our_side(cell, {}), judged=sound)]
    alike = our_side(cell, {RENO_FRIENDLY: False})
    shipped = Pair("cubic (RFC 9438)", cell, ns3, our_side(cell, {}), judged=False)
    return [Pair(cell.law, cell, ns3, alike), shipped]


def compare(chosen: Sequence[Ns3Cell], jobs: int, as_json: bool) -> int:
    """Runs the cells and prints both sides; the exit code."""
    program = build()
    documents: list[Document] = []
    if not as_json:
        print(HEADER, flush=True)
    with ThreadPoolExecutor(jobs) as pool:
        futures = [pool.submit(ns3_document, program, cell) for cell in chosen]
        try:
            for cell, future in zip(chosen, futures, strict=True):
                for pair in pairs(cell, future.result()):
                    for figure in pair.figures():
                        documents.append(pair.document(figure))
                        if not as_json:
                            print(pair.line(figure), flush=True)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    counts = {
        verdict: sum(document["verdict"] == verdict for document in documents)
        for verdict in ("within", "off", "few losses", "shown")
    }
    if as_json:
        print(json.dumps({"figures": documents, "counts": counts}, indent=1))
    else:
        print(", ".join(f"{verdict}: {count}" for verdict, count in counts.items()))
    return 1 if counts["off"] or counts["few losses"] else 0


def main(argv: Sequence[str] | None = None) -> int:
    """The command; its exit code."""
    parser = argparse.ArgumentParser(prog="compare.py", description=__doc__.splitlines()[0])
    parser.add_argument("--laws", default="sack,cubic", help="of sack, cubic, newreno")
    parser.add_argument(
        "--loss", type=float, choices=LOSSES, help="one of the loss rates (default: both)"
    )
    parser.add_argument("--losses", type=int, default=350, help="of a flow, to expect in ns-3")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="of ns-3 at one time")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    options = parser.parse_args(argv)
    laws = options.laws.split(",")
    for law in laws:
        if law not in NS3:
            raise Refused(f"--laws: expected some of {', '.join(NS3)}, got {law!r}")
    if options.losses < 1 or options.jobs < 1:
        raise Refused("--losses, --jobs: expected at least 1")
    rates = LOSSES if options.loss is None else (options.loss,)
    return compare(cells(laws, options.losses, rates), options.jobs, options.json)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (Refused, ValueError, OSError) as error:  # an InputError of waterfill is a ValueError
        print(f"ns3: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
