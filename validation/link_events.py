"""How laws follow a link whose rate steps and that fails for two seconds: a table and a figure.

Two flows share one link of 20 Mbit/s with an RTT of 40 ms and a buffer of one bandwidth-delay
product. At 30 s the rate falls to 10 Mbit/s, at 60 s it is 20 again, at 90 s it rises to 40, and
from 120 to 122 s the link is down. Run: python -m validation.link_events [-o DIR]
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import waterfill
from waterfill.network.maxmin import intervals, lives_of
from waterfill.network.protocols import load, targets
from waterfill.runs.result import Result
from waterfill.scenario.loading import from_toml

TCPS = ("newreno", "cubic", "vegas", "bbr")
SAMPLE_S = 0.1
MEAN_S = 0.5
REACHED = 0.95
END_S = 150.0
DOWN_S = (120.0, 122.0)
"""From when to when the link is down."""

PHASES = (("20 → 10", 30.0, 60.0), ("10 → 20", 60.0, 90.0), ("20 → 40", 90.0, 120.0))
OUTAGE = ("after 2 s down", DOWN_S[1], END_S)

SCENARIO = f"""
name = "link events"
duration = "{END_S:g} s"
sample = "{SAMPLE_S:g} s"
[[link]]
name = "l"
from = "a"
to = "b"
rate = "20 Mbit/s"
delay = "20 ms"
[[link.event]]
at = "30 s"
rate = "10 Mbit/s"
[[link.event]]
at = "60 s"
rate = "20 Mbit/s"
[[link.event]]
at = "90 s"
rate = "40 Mbit/s"
[[link.event]]
at = "{DOWN_S[0]:g} s"
up = false
[[link.event]]
at = "{DOWN_S[1]:g} s"
up = true
[[flow]]
name = "f"
from = "a"
to = "b"
count = 2
"""


@dataclass(frozen=True)
class Course:
    """Samples of a run: the rate of all flows (bit/s), the largest queue (bytes), drops."""

    rate: Sequence[float]
    queue: Sequence[float]
    drops: Sequence[float]

    def between(self, from_s: float, to_s: float) -> Course:
        """Return the samples of a span of time."""
        first, last = round(from_s / SAMPLE_S), round(to_s / SAMPLE_S)
        return Course(self.rate[first:last], self.queue[first:last], self.drops[first:last])


@dataclass(frozen=True)
class Response:
    """What followed one change; `recovered_s` is None where it did not happen in the phase."""

    recovered_s: float | None
    lost_s: float
    queue_ms: float
    drops: int


def course(result: Result) -> Course:
    """Return the samples of a run, one per SAMPLE_S from the first on."""
    count = round(END_S / SAMPLE_S)
    rate, queue, drops = ([0.0] * count for _ in range(3))
    flows, links = result.flows.to_pydict(), result.links.to_pydict()
    for time_s, bps in zip(flows["time_s"], flows["rate_bps"], strict=True):
        rate[round(time_s / SAMPLE_S) - 1] += bps
    rows = zip(*(links[k] for k in ("time_s", "link", "queue_max_bytes", "drops")), strict=True)
    for time_s, name, most, dropped in rows:
        if name == "l":
            index = round(time_s / SAMPLE_S) - 1
            queue[index], drops[index] = most, dropped
    return Course(rate, queue, drops)


def response(phase: Course, share_bps: float, rate_bps: float) -> Response:
    """Judge the samples after a change by the share and the rate that hold from then on."""
    width = round(MEAN_S / SAMPLE_S)
    means = [
        math.fsum(phase.rate[i : i + width]) / width for i in range(len(phase.rate) - width + 1)
    ]
    reached = next((i for i, mean in enumerate(means) if mean >= REACHED * share_bps), None)
    missing = math.fsum(max(0.0, share_bps - bps) for bps in phase.rate) * SAMPLE_S
    return Response(
        recovered_s=None if reached is None else (reached + width) * SAMPLE_S,
        lost_s=missing / share_bps,
        queue_ms=max(phase.queue) * 8e3 / rate_bps,
        drops=int(math.fsum(phase.drops)),
    )


def shares(result: Result) -> list[tuple[float, float]]:
    """Return (time, exact share of both flows in bit/s) at every change of the link."""
    network = result.network
    found = intervals(network, targets(network.params), lives_of(network), (0.0, END_S))
    return [(i.from_s, 2 * share.rate_bps) for i in found if (share := i.shares[0]) is not None]


def measure(protocol: str) -> tuple[Course, list[Response]]:
    """Run one protocol; return its course and its response to each change."""
    scenario = from_toml(f'protocol = "{protocol}"{SCENARIO}', "link-events")
    result = waterfill.run(scenario, on="sim")
    samples, share_at = course(result), dict(shares(result))
    rate_at = {30.0: 10e6, 60.0: 20e6, 90.0: 40e6, DOWN_S[1]: 40e6}
    return samples, [
        response(samples.between(from_s, to_s), share_at[from_s], rate_at[from_s])
        for _, from_s, to_s in (*PHASES, OUTAGE)
    ]


def row(protocol: str, found: Sequence[Response]) -> str:
    """Return a line of the table."""

    def seconds(value: float | None) -> str:
        return "—" if value is None else f"{value:.1f}"

    down, *others = found
    cells = [f"{down.queue_ms:.0f}", f"{down.drops}", f"{down.lost_s:.2f}"]
    for one in others:
        cells += [seconds(one.recovered_s), f"{one.lost_s:.2f}"]
    return f"| `{protocol}` | " + " | ".join(cells) + " |"


COLUMNS = (
    *("law", "20 → 10: queue ms", "drops", "lost s", "10 → 20: s", "lost s", "20 → 40: s"),
    *("lost s", "up: s", "lost s"),
)
HEAD = f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}"


def draw(courses: dict[str, Course], stem: Path) -> None:
    """Draw the rate of each law over time, one panel per law."""
    from matplotlib.figure import Figure

    from waterfill.analysis.plots import save

    columns = 4
    rows = math.ceil(len(courses) / columns)
    figure = Figure(figsize=(11, 1.7 * rows), layout="constrained")
    axes = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
    steps = [(0, 20), (30, 20), (30, 10), (60, 10), (60, 20), (90, 20), (90, 40), (120, 40),
             (120, 0), (122, 0), (122, 40), (150, 40)]  # fmt: skip
    for axis, (name, samples) in zip(axes.flat, courses.items(), strict=False):
        times = [(i + 0.5) * SAMPLE_S for i in range(len(samples.rate))]
        axis.plot(*zip(*steps, strict=True), color="0.7", linewidth=2.5)
        axis.plot(times, [bps / 1e6 for bps in samples.rate], linewidth=0.7)
        axis.set_title(name, fontsize=9)
        axis.set_xticks([0, 30, 60, 90, 120, 150])
        axis.set_ylim(0, 44)
    for axis in list(axes.flat)[len(courses) :]:
        axis.set_visible(False)
    figure.supxlabel("time (s)", fontsize=9)
    figure.supylabel("rate of both flows (Mbit/s); grey: the link's", fontsize=9)
    save(figure, stem)


def main() -> int:
    """Print the table; with -o write it and the figure."""
    parser = argparse.ArgumentParser(description="how laws follow a link that changes")
    parser.add_argument("-o", "--output", type=Path, default=Path("out/link-events"))
    parser.add_argument("protocols", nargs="*", help="default: every explicit law, and four TCPs")
    given = parser.parse_args()
    known = load()
    explicit = [p.name for p in known.values() if p.kind == "explicit" and "sim" in p.backends]
    courses, lines = {}, [HEAD]
    for protocol in given.protocols or [*explicit, *TCPS]:
        courses[protocol], found = measure(protocol)
        lines.append(row(protocol, found))
        print(lines[-1], file=sys.stderr, flush=True)
    given.output.mkdir(parents=True, exist_ok=True)
    (given.output / "table.md").write_text("\n".join(lines) + "\n")
    draw(courses, given.output / "link-events")
    print("\n".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
