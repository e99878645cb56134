"""Measures packets per CPU second against other simulators: `make bench CASE=peers`.

    python bench/peers/table.py [--seconds S] [--rounds N] [--many] [--skip NAME]
                                 [--htsim DRIVER] [--json]

README.md says what each simulator is given and what differs. Simulators take turns, and CPU seconds
of the whole process count, so that a busy host slows all of them alike. What is missing is named
with the reason.

Exit codes: 0 done, 2 wrong input (one line), 130 interrupted.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from measure import ROOT, Refused, build, command, run, watched  # noqa: E402

Document = dict[str, Any]

LAWS = ("window", "sack", "cubic", "xcp")
NS3 = {"sack": "newreno", "cubic": "cubic"}
# Without these headers there is no ns-3 to build with.
NS3_HEADER = "/usr/include/ns3/internet-module.h"


class Work(NamedTuple):
    """Inputs common to all simulators."""

    law: str
    flows: int
    stagger_s: float
    rate_bps: float
    rtt_s: float
    seconds: float

    @property
    def buffer_packets(self) -> int:
        """One bandwidth-delay product."""
        return int(self.rate_bps * self.rtt_s / 8 / 1500)

    @property
    def name(self) -> str:
        """The law and the number of flows, as the bench's cases are named."""
        return f"{self.law}-{self.flows}"


class Speed(NamedTuple):
    """One run: packets through the bottleneck, CPU seconds, peak memory (bytes)."""

    packets: float
    cpu_s: float
    peak_bytes: int

    @property
    def packets_per_s(self) -> float:
        """Packets through the bottleneck per second of CPU time."""
        return self.packets / self.cpu_s


class Simulator(NamedTuple):
    """One simulator: the laws that it has, and how a run is called and its packets are read."""

    name: str
    laws: Sequence[str]
    call: Callable[[Work], list[str]]
    read: Callable[[Document], float]
    unrelated_s: Callable[[Document], float] = lambda _: 0.0
    """CPU seconds of the process that are not the run's."""


def packets(document: Document) -> float:
    """Return the packets that a driver counted."""
    return float(document["packets"])


def last_document(text: str) -> Document:
    """Return the JSON object with which a program ends; programs may print lines before it."""
    lines = text.splitlines()
    starts = [i for i, line in enumerate(lines) if line.startswith("{")]
    for i in reversed(starts):
        try:
            found, _ = json.JSONDecoder().raw_decode("\n".join(lines[i:]))
        except ValueError:
            continue
        return dict(found)
    raise Refused('a driver has to print {"packets": N}')


def options(work: Work) -> list[str]:
    """Return the options that the drivers for ns-2 and htsim share."""
    return [
        *("-law", work.law, "-flows", str(work.flows), "-stagger", f"{work.stagger_s:g}"),
        *("-rate", f"{work.rate_bps:g}", "-rtt", f"{work.rtt_s:g}"),
        *("-buffer", str(work.buffer_packets), "-seconds", f"{work.seconds:g}"),
    ]


def waterfill() -> Simulator:
    """Return this project's engine."""
    program = str(build())

    return Simulator(
        "waterfill",
        LAWS,
        lambda work: [program, work.name, "--seconds", f"{work.seconds:g}"],
        lambda document: float(document["runs"][0]["bottleneck_packets"]),
        lambda document: float(document["runs"][0]["calibration_cpu_s"]),
    )


def ns3() -> Simulator:
    """Return ns-3, its driver built; raise Refused without it."""
    if not Path(NS3_HEADER).exists():
        raise Refused("needs libns3-dev (Debian's name)")
    folder = ROOT / "target" / "ns3"
    run(["make", "--silent", "-C", str(HERE.parent / "ns3"), f"OUT={folder}"])

    def call(work: Work) -> list[str]:
        rtts = ",".join([f"{work.rtt_s:g}"] * work.flows)
        return [
            str(folder / "dumbbell"),
            *(f"--law={NS3[work.law]}", f"--rtt={rtts}", f"--rate={work.rate_bps:.0f}"),
            *(f"--buffer={work.buffer_packets}", f"--duration={work.seconds:g}"),
            *("--from=0", "--batches=1"),
        ]

    return Simulator("ns-3", tuple(NS3), call, packets)


def ns2() -> Simulator:
    """Return ns-2; raise Refused without it."""
    program = shutil.which("ns")
    if program is None:
        raise Refused("needs ns2 (Debian's name)")
    script = str(HERE / "dumbbell.tcl")
    return Simulator("ns-2", LAWS, lambda work: [program, script, *options(work)], packets)


def htsim(driver: str | None) -> Simulator:
    """Return htsim by the user's driver; raise Refused without it."""
    if not driver:
        raise Refused("needs a driver: HTSIM=PATH (bench/peers/README.md)")
    program = shutil.which(driver)
    if program is None:
        raise Refused(f"HTSIM: must be a program, got {driver}")
    return Simulator("htsim", ("window", "sack"), lambda work: [program, *options(work)], packets)


def once(simulator: Simulator, work: Work) -> Speed:
    """Run one simulator once; raise Refused if it fails."""
    process = watched(simulator.call(work))
    if process.code != 0:
        raise Refused(f"{simulator.name} failed on {work.name} with exit code {process.code}")
    document = last_document(process.text)
    try:
        count, unrelated_s = simulator.read(document), simulator.unrelated_s(document)
    except (KeyError, TypeError, ValueError):
        raise Refused(f"{simulator.name} printed no packets for {work.name}") from None
    return Speed(count, process.cpu_s - unrelated_s, process.peak_bytes)


def measured(simulators: Sequence[Simulator], work: Work, rounds: int) -> dict[str, Speed]:
    """Run all simulators that have the law, in turn; return the run of median speed of each."""
    able = [one for one in simulators if work.law in one.laws]
    found: dict[str, list[Speed]] = {one.name: [] for one in able}
    for _ in range(rounds):
        for one in able:
            found[one.name].append(once(one, work))
    return {
        name: sorted(speeds, key=lambda speed: speed.packets_per_s)[rounds // 2]
        for name, speeds in found.items()
    }


def work_list(many: bool, seconds: float) -> list[Work]:
    """Return the rows of the table: the bench's cases, shorter."""
    few = [Work(law, 10, 0.05, 1e9, 0.05, seconds) for law in LAWS]
    few.append(Work("xcp", 256, 0.005, 1e9, 0.05, seconds))
    # Ten times the rate: a fifth of the time has twice the packets, and every flow has started.
    return few + [Work(law, 10_000, 0.001, 1e10, 0.05, 12.0) for law in ("window", "sack") if many]


def available(
    driver: str | None, skip: Sequence[str] = ()
) -> tuple[list[Simulator], dict[str, str]]:
    """Return the simulators that run here, and why the others do not."""
    simulators, missing = [waterfill()], {}
    for name, make in (("ns-3", ns3), ("ns-2", ns2), ("htsim", lambda: htsim(driver))):
        if name in skip:
            missing[name] = "--skip"
            continue
        try:
            simulators.append(make())
        except Refused as why:
            missing[name] = str(why)
    return simulators, missing


def row(work: Work, speeds: dict[str, Speed], names: Sequence[str]) -> str:
    """Return a line: for each simulator its speed, ours over its, and its memory."""
    ours = speeds["waterfill"].packets_per_s
    cells = []
    for name in names:
        if name not in speeds:
            cells.append(f"{'–':>24}")
            continue
        speed = speeds[name]
        factor = "" if name == "waterfill" else f"{ours / speed.packets_per_s:.2f} ×"
        cells.append(f"{speed.packets_per_s / 1e6:8.3f} {factor:>8} {speed.peak_bytes / 1e6:6.0f}")
    return f"{work.name:14}" + "".join(cells)


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table; return the exit code."""
    parser = argparse.ArgumentParser(prog="bench-peers", description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=5.0, help="simulated (default: 5)")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each (default: 3)")
    parser.add_argument("--many", action="store_true", help="10,000 flows, too; not in ns-3")
    parser.add_argument("--skip", action="append", default=[], choices=["ns-3", "ns-2", "htsim"])
    parser.add_argument("--htsim", metavar="DRIVER", help="a program (README.md)")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    chosen = parser.parse_args(argv)
    if chosen.rounds < 1 or not chosen.seconds > 0:
        raise Refused("--rounds, --seconds: must be above zero")
    simulators, missing = available(chosen.htsim, chosen.skip)
    names = [one.name for one in simulators]
    document: Document = {"missing": missing, "runs": []}
    if not chosen.json:
        print("Equal work: 1 Gbit/s, 50 ms, 10 flows, packets of 1500 B, a buffer of one")
        print(f"bandwidth-delay product, {chosen.seconds:g} s simulated (README.md: what differs).")
        print("M packets per CPU second through the bottleneck, ours over theirs, peak MB:")
        print(f"{'':14}" + "".join(f"{name:>24}" for name in names), flush=True)
    for work in work_list(chosen.many, chosen.seconds):
        # One run of ns-3 takes as long as hundreds of ours.
        able = [one for one in simulators if one.name != "ns-3" or work.flows < 100]
        speeds = measured(able, work, chosen.rounds)
        document["runs"].append(
            {**work._asdict(), "speeds": {name: speed._asdict() for name, speed in speeds.items()}}
        )
        if not chosen.json:
            print(row(work, speeds, names), flush=True)
    if chosen.json:
        print(json.dumps(document, indent=1))
    for name, why in missing.items():
        print(f"bench-peers: {name} left out: {why}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(command(main))
