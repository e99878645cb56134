"""Compare Waterfill's TCPs with ns-3's on the same dumbbell networks.

bench/ns3/README.md lists the settings; docs/validation/ns3.md the results, and where ns-3 differs.

A flow alone is judged at equal loss: 350 losses are 5 % off the nominal share as often as not, and
a throughput that goes with loss^-b follows them. Both the ratio as measured and that are printed.
ns-3's output is kept in target/ns3, as nothing of Waterfill changes it.
"""

from __future__ import annotations

import hashlib
import json
import math
import subprocess
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import fmean, stdev
from typing import Any

from validation.study import ROOT, Need, Option, Options, Study, StudyRun, only
from validation.tables import markdown
from waterfill.errors import RunError
from waterfill.runs.files import write_text
from waterfill.runs.result import Result
from waterfill.scenario.loading import from_dict

DRIVERS = ROOT / "target" / "ns3"

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


@dataclass(frozen=True)
class Ns3Cell:
    """A dumbbell scenario: `count` flows at each of `rtts_s`, a drop-tail queue and random data
    loss.
    """

    law: str
    rtts_s: tuple[float, ...]
    count: int
    rate_bps: float
    loss: float
    packets: float  # through the bottleneck in the measured time, if the flows do as expected

    @property
    def name(self) -> str:
        """Name of the scenario in words: its law and network."""
        rtts = " and ".join(f"{rtt_s * 1e3:g}" for rtt_s in self.rtts_s)
        flows = "one flow" if self.is_alone else f"{self.count} flows each"
        return f"{self.law}: {flows}, {rtts} ms, loss {self.loss:g}"

    @property
    def is_alone(self) -> bool:
        """True if the scenario has only one flow."""
        return len(self.rtts_s) * self.count == 1

    @property
    def buffer_packets(self) -> int:
        """Buffer size in packets: one bandwidth-delay product of the longest RTT."""
        return round(self.rate_bps * max(self.rtts_s) / 8 / PACKET_BYTES)

    @property
    def measure_s(self) -> tuple[float, float]:
        """Start and end of the measurement window (s), which begins after about twenty losses per
        flow.
        """
        offered = sum(
            self.count * expected_window(self.law, self.loss, rtt_s) / rtt_s
            for rtt_s in self.rtts_s
        )
        packets_per_s = min(offered, self.rate_bps / 8 / PACKET_BYTES)
        start_s = 20 * self.count * len(self.rtts_s) / self.loss / packets_per_s
        return round(start_s, 3), round(start_s + self.packets / packets_per_s, 3)


def expected_window(law: str, loss: float, rtt_s: float) -> float:
    """Return the expected mean window (packets) of a single flow, which determines
    the run length.
    """
    if law == "cubic":
        return 1.054 * math.pow(rtt_s / loss, 0.75)  # RFC 9438 §5.1, C = 0.4, β = 0.7
    return math.sqrt(1.5 / loss)  # Mathis


def cells(laws: Iterable[str], losses: int) -> list[Ns3Cell]:
    """Return the scenarios of each law: single flows at every RTT and loss rate, then four flows on
    a full link.

    `losses` are the random losses that a flow is to have in its measured time; on a full link at
    the highest rate of loss, below it the queue sees to them.
    """
    result: list[Ns3Cell] = []
    for law in laws:
        for rtt_s in RTTS_S:
            result += [Ns3Cell(law, (rtt_s,), 1, ALONE_BPS, p, losses / p) for p in LOSSES]
        shared = 4 * losses / max(LOSSES)
        result += [Ns3Cell(law, SHARED_RTTS_S, 2, SHARED_BPS, p, shared) for p in LOSSES]
    return result


# --- what is measured -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Side:
    """Measurements from one of the two simulators."""

    packets_per_s: list[list[float]]
    """Packets per second delivered in order, with one row per sample and one column per RTT."""
    lost: int
    """Data packets lost at random."""
    dropped: int
    """Data packets that the full queue dropped."""
    packets: float
    """Data packets sent through the bottleneck, including lost packets."""

    @property
    def losses(self) -> int:
        """Data packets lost at random or dropped by the queue."""
        return self.lost + self.dropped


@dataclass(frozen=True)
class Estimate:
    """A mean and its standard error."""

    mean: float
    error: float

    @classmethod
    def of(cls, samples: Sequence[float]) -> Estimate:
        """Return the mean and standard error of independent samples."""
        return cls(fmean(samples), stdev(samples) / math.sqrt(len(samples)))

    @property
    def relative_error(self) -> float:
        """Standard error relative to the mean."""
        return self.error / self.mean if self.mean else math.inf


@dataclass(frozen=True)
class Figure:
    """One quantity of a dumbbell scenario, measured in both simulators."""

    law: str
    name: str
    unit: str
    ns3: Estimate
    ours: Estimate
    losses: tuple[int, int]
    """Numbers of lost packets in ns-3 and in Waterfill."""
    loss_factor: float
    """Factor that corrects the ratio for different loss rates in the two simulators."""
    judged: bool

    @property
    def ratio_at_equal_loss(self) -> float:
        """Ratio corrected for different loss rates, which decides the verdict."""
        return self.ratio * self.loss_factor

    @property
    def ratio(self) -> float:
        """Ratio of Waterfill's mean to ns-3's mean."""
        return self.ours.mean / self.ns3.mean if self.ns3.mean else math.inf

    @property
    def ratio_error(self) -> float:
        """Standard error of the ratio."""
        return self.ratio * math.hypot(self.ours.relative_error, self.ns3.relative_error)

    @property
    def verdict(self) -> str:
        """Verdict: `within`, `off`, `few losses`, or `shown` for unjudged quantities."""
        if not self.judged:
            return "shown"
        if min(self.losses) < MIN_LOSSES:
            return "few losses"
        return "within" if abs(self.ratio_at_equal_loss - 1) <= TOLERANCE else "off"


def figures(
    cell: Ns3Cell, ns3: Side, ours: Side, law: str = "", *, judged: bool = True
) -> list[Figure]:
    """Return the throughput comparison and, on a shared link, the shares of flows with each RTT."""

    def figure(name: str, unit: str, part: Callable[[Sequence[float]], float]) -> Figure:
        theirs, mine = (Estimate.of(list(map(part, s.packets_per_s))) for s in (ns3, ours))
        losses = (ns3.losses, ours.losses)
        factor = loss_factor(cell, ns3, ours)
        return Figure(law or cell.law, name, unit, theirs, mine, losses, factor, judged)

    result = [figure("throughput", "packets/s", math.fsum)]
    if not cell.is_alone:
        for i, rtt_s in enumerate(cell.rtts_s):
            share = partial(lambda i, row: row[i] / sum(row), i)
            result.append(figure(f"share of {rtt_s * 1e3:g} ms", "", share))
    return result


def loss_factor(cell: Ns3Cell, ns3: Side, ours: Side) -> float:
    """Return the correction factor for different loss rates. The factor is 1 without random losses,
    and on a shared link, where queue drops dominate.
    """
    if not cell.is_alone or not ns3.lost or not ours.lost:
        return 1.0
    ratio = (ours.lost / ours.packets) / (ns3.lost / ns3.packets)
    return math.pow(ratio, EXPONENT[cell.law])


def by_rtt(cell: Ns3Cell, flows: Sequence[float]) -> list[float]:
    """Return the total over the flows of each RTT. Flows with the same RTT must be adjacent."""
    n = cell.count
    return [math.fsum(flows[i * n : (i + 1) * n]) for i in range(len(cell.rtts_s))]


# --- ns-3 -----------------------------------------------------------------------------------------


def driver(name: str) -> Need:
    """Return the need for ns-3, met if a program of bench/ns3 can be built."""

    def lacks() -> str | None:
        make = ["make", "-s", "-C", str(ROOT / "bench" / "ns3"), f"OUT={DRIVERS}"]
        built = subprocess.run([*make, str(DRIVERS / name)], capture_output=True, check=False)
        return None if built.returncode == 0 else "ns-3: apt-get install g++ libns3-dev"

    return Need("ns-3", lacks)


def arguments(cell: Ns3Cell) -> list[str]:
    """Return the command-line arguments of the ns-3 program that runs a dumbbell scenario."""
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


def ns3_document(cell: Ns3Cell) -> Document:
    """Return the output of the ns-3 program for a dumbbell scenario, from the cache if possible."""
    program = DRIVERS / "dumbbell"
    given = arguments(cell)
    key = hashlib.sha256(program.read_bytes() + "\n".join(given).encode()).hexdigest()
    kept = DRIVERS / f"{key[:24]}.json"
    if not kept.exists():
        done = subprocess.run([program, *given], text=True, capture_output=True, check=False)
        if done.returncode != 0:
            raise RunError(f"dumbbell {' '.join(given)}: {done.stderr.strip() or 'no message'}")
        write_text(kept, done.stdout)
    document: Document = json.loads(kept.read_text())
    if document["packet_bytes"] != PACKET_BYTES:
        raise RunError(f"ns-3 sent packets of {document['packet_bytes']} B, not {PACKET_BYTES} B")
    return document


def ns3_side(cell: Ns3Cell, document: Document) -> Side:
    """Return ns-3's measurements from its output document."""
    flows = [flow["packets_per_s"] for flow in document["flows"]]
    samples = [by_rtt(cell, sample) for sample in zip(*flows, strict=True)]
    return Side(samples, document["lost"], document["dropped"], document["packets"])


# --- Waterfill ------------------------------------------------------------------------------------


def scenario(cell: Ns3Cell, params: Mapping[str, Any]) -> Document:
    """Return Waterfill's scenario of a dumbbell, with every option spelled out that
    ns-3 receives.
    """
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
            # ns-3 has no RACK.
            "recovery": "rfc6675" if NS3[cell.law]["sack"] == "true" else "newreno",
        }
        for i, rtt_s in enumerate(cell.rtts_s)
    ]
    return {
        "name": cell.name,
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


def our_side(cell: Ns3Cell, results: Iterable[Result]) -> Side:
    """Return Waterfill's measurements, with one sample per seed."""
    samples, lost, dropped, packets = [], 0, 0, 0.0
    start_s, end_s = cell.measure_s
    for result in results:
        summary = result.summary
        rates = [flow["goodput_bps"] / 8 / PAYLOAD_BYTES for flow in summary["flows"]]
        samples.append(by_rtt(cell, rates))
        link = summary["links"][0]
        lost += link["lost"]
        dropped += link["drops"]
        received_bps = sum(flow["rate_bps"] for flow in summary["flows"])
        packets += received_bps * (end_s - start_s) / 8 / PACKET_BYTES + link["lost"]
    return Side(samples, lost, dropped, packets)


# --- the study ------------------------------------------------------------------------------------


def runs(cell: Ns3Cell) -> dict[str, StudyRun]:
    """Return Waterfill's runs as shipped, and for CUBIC also without the Reno-friendly region."""
    forms: dict[str, dict[str, Any]] = {"shipped": {}}
    if cell.law == "cubic":
        forms["alike"] = {RENO_FRIENDLY: False}
    return {
        f"{form} {seed}": StudyRun(from_dict(scenario(cell, params) | {"seed": seed}))
        for form, params in forms.items()
        for seed in range(1, SEEDS + 1)
    }


def measure(cell: Ns3Cell, results: Mapping[str, Result]) -> list[Figure]:
    """Compare both simulators on one dumbbell. CUBIC is also shown as shipped if ns-3 lacks its
    Reno-friendly region.
    """
    document = ns3_document(cell)
    ns3 = ns3_side(cell, document)

    def ours(form: str) -> Side:
        return our_side(cell, (r for name, r in results.items() if name.startswith(form)))

    if cell.law != "cubic" or document["reno_friendly"]:
        # Without SACK ns-3 does not recover where a full queue drops several packets of a window
        # (docs/validation/ns3.md).
        sound = cell.law != "newreno" or cell.is_alone
        return figures(cell, ns3, ours("shipped"), judged=sound)
    shipped = figures(cell, ns3, ours("shipped"), "cubic (RFC 9438)", judged=False)
    return [*figures(cell, ns3, ours("alike")), *shipped]


def chosen(options: Options) -> list[Ns3Cell]:
    """Return the dumbbell scenarios of the chosen laws."""
    return cells(options.laws, options.losses)


def table(found: Mapping[Ns3Cell, Sequence[Figure]]) -> str:
    """Return a table of all quantities in both simulators, and the count of each verdict."""

    def line(cell: Ns3Cell, figure: Figure) -> list[str]:
        digits = 1 if figure.unit else 3
        sides = (f"{e.mean:.{digits}f} ± {e.relative_error:.1%}" for e in (figure.ns3, figure.ours))
        return [
            f"`{figure.law}`", cell.name.partition(": ")[2], figure.name, *sides,
            f"{figure.ratio:.3f} ± {figure.ratio_error:.3f}", f"{figure.ratio_at_equal_loss:.3f}",
            figure.verdict, *map(str, figure.losses),
        ]  # fmt: skip

    head = "law|dumbbell|figure|ns-3:|Waterfill:|ratio:|at equal loss:|verdict|ns-3's losses:|ours:"
    counts = Counter(figure.verdict for row in found.values() for figure in row)
    lines = [line(cell, figure) for cell, row in found.items() for figure in row]
    verdicts = ("within", "off", "few losses", "shown")
    return f"{markdown(head, lines)}\n\n{', '.join(f'{v}: {counts[v]}' for v in verdicts)}"


def failed(found: Mapping[Ns3Cell, Sequence[Figure]]) -> list[str]:
    """Return the judged figures that are off or that have too few losses for a verdict."""
    return [
        f"{cell.name}, {figure.name}: {figure.verdict}"
        for cell, row in found.items()
        for figure in row
        if figure.verdict in ("off", "few losses")
    ]


STUDY = Study(
    shows="the simulator's TCPs agree with ns-3's within 10 %",
    minutes=15,
    needs=(driver("dumbbell"),),
    options=(
        Option("--laws", ("sack", "cubic"), f"of {', '.join(NS3)}", tuple(NS3)),
        Option("--losses", 350, "of a flow, to expect in ns-3", low=1),
        only("*loss 0.001"),
    ),
    quick={"only": "sack: one flow, 50 ms, loss 0.001"},
    cases=chosen,
    runs=runs,
    measure=measure,
    table=table,
    failed=failed,
)
