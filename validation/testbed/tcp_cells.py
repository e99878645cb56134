"""Compare the kernel's Reno, CUBIC and BBR with the simulator's in five cells of one flow.

The quantities are those that `waterfill evaluate` judges: utilization of the link, loss rate of the
flow, and the 95th percentile of its RTT, as the base RTT + that of the link's queueing delay over
samples of 20 ms. They agree within 5 points, 1 point and 10 %. Each side has three runs, of which
the table has the medians: a busy host disturbs a run on linux, and BBR's phases are random. Runs
that failed a check are counted, not left out.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from validation import study
from validation.study import Option, Study, StudyRun, failed_checks
from validation.tables import markdown
from validation.testbed.tcp_table import PROTOCOLS
from waterfill.papers.measures.evaluation import queueing_delay
from waterfill.runs.result import Document, Result
from waterfill.scenario.loading import from_dict
from waterfill.testbed import kernel

UTILIZATION_WITHIN, LOSS_WITHIN, RTT_WITHIN = 0.05, 0.01, 0.10
RUNS = 3
LENGTH_S = 40.0
# Rate (bit/s), RTT (s) and buffer. Two CPUs carry the packets of 100 Mbit/s, and a cycle of Reno's
# window fits the measured part of a run.
CELLS = (
    (10e6, 0.04, "5 bdp"),
    (10e6, 0.1, "1 bdp"),
    (50e6, 0.02, "1 bdp"),
    (50e6, 0.04, "0.5 bdp"),
    (100e6, 0.04, "1 bdp"),
)


@dataclass(frozen=True)
class TcpCell:
    """One flow of a protocol on one link, for `length_s`."""

    rate_bps: float
    rtt_s: float
    buffer: str
    protocol: str
    length_s: float

    @property
    def path(self) -> str:
        """The link in words."""
        return f"{self.rate_bps / 1e6:g} Mbit/s, {self.rtt_s * 1e3:g} ms, {self.buffer}"

    @property
    def name(self) -> str:
        """Name of the cell, which `--only` matches."""
        rate = f"{self.rate_bps / 1e6:g}M-{self.rtt_s * 1e3:g}ms"
        return f"{rate}-{self.buffer.replace(' ', '')}-{self.protocol}"

    def scenario(self, seed: int) -> Document:
        """Return the scenario as a dictionary. The last three quarters of the run are measured."""
        params = kernel.choices(self.protocol)
        return {
            "name": self.name, "seed": seed, "duration": f"{self.length_s:g} s", "sample": "20 ms",
            "measure": [f"{self.length_s / 4:g} s", f"{self.length_s:g} s"],
            "protocol": self.protocol, "params": {self.protocol: params} if params else {},
            "link": [{"name": "l", "from": "r1", "to": "r2", "rate": f"{self.rate_bps:g} bit/s",
                      "delay": f"{self.rtt_s / 2 * 1e3:g} ms", "buffer": self.buffer}],
            "flow": [{"name": "f", "from": "a", "to": "b", "path": ["l"],
                      "rtt": f"{self.rtt_s * 1e3:g} ms", "delayed_ack": True}],
        }  # fmt: skip


@dataclass(frozen=True)
class Figures:
    """Quantities of one run: shares of the link and of packets, and the RTT (s)."""

    utilization: float
    loss: float
    rtt_s: float
    failed: Sequence[str] = ()


@dataclass(frozen=True)
class Sides:
    """The runs of one cell on both backends."""

    sim: Sequence[Figures]
    linux: Sequence[Figures]


def median(runs: Sequence[Figures]) -> Figures:
    """Return the median of each quantity."""
    return Figures(
        utilization=statistics.median(run.utilization for run in runs),
        loss=statistics.median(run.loss for run in runs),
        rtt_s=statistics.median(run.rtt_s for run in runs),
    )


def apart(sides: Sides) -> list[str]:
    """Return the quantities in which the two medians do not agree."""
    sim, linux = median(sides.sim), median(sides.linux)
    differs = {
        "utilization": abs(linux.utilization - sim.utilization) > UTILIZATION_WITHIN,
        "loss": abs(linux.loss - sim.loss) > LOSS_WITHIN,
        "RTT": abs(linux.rtt_s / sim.rtt_s - 1) > RTT_WITHIN,
    }
    return [name for name, one in differs.items() if one]


def runs(cell: TcpCell) -> dict[str, StudyRun]:
    """Return the runs of a cell by backend and seed."""
    return {
        f"{on} {seed}": StudyRun(from_dict(cell.scenario(seed), f"<{cell.name}>"), on)
        for on in ("sim", "linux")
        for seed in range(1, RUNS + 1)
    }


def measure(cell: TcpCell, results: Mapping[str, Result]) -> Sides:
    """Return the quantities of all runs of a cell."""
    found: dict[str, list[Figures]] = {"sim": [], "linux": []}
    for name, result in results.items():
        found[name.split()[0]].append(_figures(cell, result))
    return Sides(found["sim"], found["linux"])


def _figures(cell: TcpCell, result: Result) -> Figures:
    delay_s = queueing_delay(result, link="l", percentile=95)
    assert delay_s is not None
    return Figures(
        utilization=result.summary.links[0].utilization or 0.0,
        loss=result.summary.flows[0].loss_rate or 0.0,
        rtt_s=cell.rtt_s + delay_s,
        failed=failed_checks(result),
    )


HEAD = (
    "cell|protocol|utilization sim %:|linux:|loss sim %:|linux:|p95 RTT sim ms:|linux:"
    "|runs with failed checks|agree"
)


def rows(found: Mapping[TcpCell, Sides]) -> Iterator[list[object]]:
    """Yield the rows of the table, one for each cell."""
    for cell, sides in found.items():
        sim, linux = median(sides.sim), median(sides.linux)
        shown: list[object] = [cell.path, cell.protocol]
        for one in ("utilization", "loss"):
            shown += [f"{100 * getattr(side, one):.2f}" for side in (sim, linux)]
        shown += [f"{1e3 * side.rtt_s:.1f}" for side in (sim, linux)]
        differs = ", ".join(apart(sides))
        failed = [sorted({name for run in sides.linux for name in run.failed})]
        count = sum(bool(run.failed) for run in sides.linux)
        shown.append(f"{count} of {len(sides.linux)}: {', '.join(failed[0])}" if count else "0")
        yield [*shown, f"**no: {differs}**" if differs else "yes"]


def failed(found: Mapping[TcpCell, Sides]) -> list[str]:
    """Return the cells that do not agree."""
    return [f"{cell.name}: {', '.join(apart(one))}" for cell, one in found.items() if apart(one)]


STUDY = Study(
    shows="the kernel's TCPs and the simulator's agree in what `evaluate` judges",
    minutes=35,
    needs=(study.on_linux(),),
    options=(
        study.only("10M-*"),
        Option("--seconds", LENGTH_S, "length of every run (s)"),
    ),
    quick={"only": "10M-40ms-*", "seconds": 8.0},
    cases=lambda options: [TcpCell(*c, p, options.seconds) for c in CELLS for p in PROTOCOLS],
    runs=runs,
    measure=measure,
    table=lambda found: markdown(HEAD, rows(found)),
    failed=failed,
)
