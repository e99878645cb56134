"""Compare the laws on a link whose rate changes in steps and that fails for two seconds.

Two flows share one link of 20 Mbit/s with an RTT of 40 ms and a buffer of one bandwidth-delay
product. At 30 s the rate falls to 10 Mbit/s, at 60 s it is 20 again, at 90 s it rises to 40, and
from 120 to 122 s the link is down. Every backend runs the same scenario; a run on linux takes its
150 s.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from validation.study import Option, Options, Study, StudyRun, failed_checks, on_linux
from validation.tables import markdown
from waterfill.network.maxmin import intervals, lives_of
from waterfill.network.protocols import load, targets
from waterfill.runs import backends
from waterfill.runs.result import Result
from waterfill.scenario.loading import from_toml

BACKENDS = ("sim", "fluid", "linux")
TCPS = ("newreno", "cubic", "vegas", "bbr")
SAMPLE_S = 0.1
MEAN_S = 0.5
REACHED = 0.95
END_S = 150.0
DOWN_S = (120.0, 122.0)
"""Start and end of the link's outage, in seconds."""

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
    """Samples of a run: total rate (bit/s), largest queue (bytes) and drops."""

    rate: Sequence[float]
    queue: Sequence[float]
    drops: Sequence[float]

    def between(self, from_s: float, to_s: float) -> Course:
        """Return the samples of a time span."""
        first, last = round(from_s / SAMPLE_S), round(to_s / SAMPLE_S)
        return Course(self.rate[first:last], self.queue[first:last], self.drops[first:last])


@dataclass(frozen=True)
class Response:
    """Response to one change of the link. `recovered_s` is None if the rate did not recover within
    the phase.
    """

    recovered_s: float | None
    lost_s: float
    queue_ms: float
    drops: int


@dataclass(frozen=True)
class Outcome:
    """Results of one law on one backend: samples, a response to each change, and failed checks.

    `left_s` is when the first flow on linux left its law for the kernel's; None if none did.
    """

    course: Course
    responses: list[Response]
    failed: list[str]
    left_s: float | None = None


def course(result: Result) -> Course:
    """Return the samples of a run, one per `SAMPLE_S`."""
    count = round(END_S / SAMPLE_S)
    rate, queue, drops = ([0.0] * count for _ in range(3))
    flows, links = result.flows.to_pydict(), result.links.to_pydict()
    for time_s, bps in zip(flows["time_s"], flows["rate_bps"], strict=True):
        rate[round(time_s / SAMPLE_S) - 1] += bps or 0.0
    rows = zip(*(links[k] for k in ("time_s", "link", "queue_max_bytes", "drops")), strict=True)
    for time_s, name, most, dropped in rows:
        if name == "l":
            index = round(time_s / SAMPLE_S) - 1
            queue[index], drops[index] = most, dropped
    return Course(rate, queue, drops)


def response(phase: Course, share_bps: float, rate_bps: float) -> Response:
    """Return the response in the samples after a change, given the new fair share and link rate."""
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
    """Return (time, both flows' exact total share in bit/s) for every change of the link."""
    network = result.network
    found = intervals(network, targets(network.params), lives_of(network), (0.0, END_S))
    return [(i.from_s, 2 * share.rate_bps) for i in found if (share := i.shares[0]) is not None]


def left_s(result: Result) -> float | None:
    """Return the time (s) at which the first flow fell back to the kernel's TCP, or None."""
    checks = [check for check in result.summary.get("checks", []) if check["name"] == "law"]
    times = [flow["left_s"] for check in checks for flow in check["found"]]
    return min((time_s for time_s in times if time_s is not None), default=None)


class EventCase(NamedTuple):
    """A law with the backend that runs it."""

    protocol: str
    on: str


def cases(options: Options, backend: Sequence[str] = ("sim", "fluid")) -> list[EventCase]:
    """Return a case for each chosen law on each backend that supports it."""
    return [
        EventCase(protocol, on)
        for protocol in options.protocols or laws()
        for on in backend
        if protocol in (able := backends.known(on)) and on in able[protocol].backends
    ]


def laws() -> list[str]:
    """Return every explicit law of the simulator, and four TCPs."""
    explicit = [p.name for p in load().values() if p.kind == "explicit" and "sim" in p.backends]
    return [*explicit, *TCPS]


def runs(case: EventCase) -> dict[str, StudyRun]:
    """Return the run of a law on a backend."""
    scenario = from_toml(f'protocol = "{case.protocol}"{SCENARIO}', "link-events")
    return {"": StudyRun(scenario, case.on)}


def measure(_: EventCase, results: Mapping[str, Result]) -> Outcome:
    """Measure the responses of a run to each change of the link."""
    result = results[""]
    samples, share_at = course(result), dict(shares(result))
    rate_at = {30.0: 10e6, 60.0: 20e6, 90.0: 40e6, DOWN_S[1]: 40e6}
    responses = [
        response(samples.between(from_s, to_s), share_at[from_s], rate_at[from_s])
        for _, from_s, to_s in (*PHASES, OUTAGE)
    ]
    return Outcome(samples, responses, failed_checks(result), left_s(result))


def row(case: EventCase, run: Outcome) -> list[str]:
    """Return the cells of a case's table row."""

    def seconds(value: float | None) -> str:
        return "—" if value is None else f"{value:.1f}"

    down, *others = run.responses
    cells = [f"{down.queue_ms:.0f}", f"{down.drops}", f"{down.lost_s:.2f}"]
    for one in others:
        cells += [seconds(one.recovered_s), f"{one.lost_s:.2f}"]
    left = "" if run.left_s is None else f" (left at {run.left_s:.0f} s)"
    return [f"`{case.protocol}`", f"{case.on}{left}", *cells]


HEAD = "law|on|20 → 10: queue ms|drops|lost s|10 → 20: s|lost s|20 → 40: s|lost s|up: s|lost s"


def table(found: Mapping[EventCase, Outcome]) -> str:
    """Return the table of all cases."""
    return markdown(HEAD, (row(case, run) for case, run in found.items()))


def line(case: EventCase, run: Outcome) -> str:
    """Return a line of progress: the table row and any failed checks."""
    return " | ".join(row(case, run)) + (f"; failed: {', '.join(run.failed)}" if run.failed else "")


# As in the figures of the testbed: the kernel wide and pale, the simulator thin, the fluid dotted.
STYLES: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "linux": ("kernel", {"color": "#009E73", "linewidth": 2.6, "alpha": 0.45}),
    "sim": ("simulator", {"color": "#0072B2", "linewidth": 1.0}),
    "fluid": ("fluid", {"color": "#D55E00", "linewidth": 1.2, "linestyle": ":"}),
}
LINK: Mapping[str, Any] = {"color": "0.8", "linewidth": 5.0}


def draw(found: Mapping[EventCase, Outcome], stem: Path) -> None:
    """Draw the rates over time, with one panel per law and one line per backend."""
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    from waterfill.analysis.draw import save

    runs: dict[str, dict[str, Outcome]] = {}
    for case, run in found.items():
        runs.setdefault(case.protocol, {})[case.on] = run
    columns = 3
    rows = math.ceil(len(runs) / columns)
    figure = Figure(figsize=(9.5, 1.8 * rows + 0.9), layout="constrained")
    axes = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
    steps = [(0, 20), (30, 20), (30, 10), (60, 10), (60, 20), (90, 20), (90, 40), (120, 40),
             (120, 0), (122, 0), (122, 40), (150, 40)]  # fmt: skip
    width = round(MEAN_S / SAMPLE_S)
    for axis, (name, of_law) in zip(axes.flat, runs.items(), strict=False):
        axis.plot(*zip(*steps, strict=True), **LINK)
        for on, (_, style) in STYLES.items():
            if on in of_law:
                rate = of_law[on].course.rate
                starts = range(0, len(rate) - width + 1, width)
                times = [(start + width / 2) * SAMPLE_S for start in starts]
                means = [math.fsum(rate[start : start + width]) / width / 1e6 for start in starts]
                axis.plot(times, means, **style)
        axis.set_title(name, fontsize="medium", loc="left")
        axis.set_xticks([0, 30, 60, 90, 120, 150])
        axis.set_ylim(0, 44)
    for axis in list(axes.flat)[len(runs) :]:
        axis.set_visible(False)
    for column, axis in enumerate(axes[-2] if rows > 1 else ()):
        axis.tick_params(labelbottom=(rows - 1) * columns + column >= len(runs))
    lines = [Line2D([], [], label="rate of the link", **LINK)]
    lines += [Line2D([], [], label=label, **style) for on, (label, style) in STYLES.items()
              if any(on in of_law for of_law in runs.values())]  # fmt: skip
    figure.legend(handles=lines, loc="outside upper center", ncols=len(lines), frameon=False)
    figure.supxlabel("time (s)", fontsize="medium")
    figure.supylabel("rate of both flows (Mbit/s)", fontsize="medium")
    save(figure, stem)


OPTIONS = (Option("protocols", (), "default: every explicit law, and four TCPs", laws),)
STUDY = Study(
    shows="laws on a link whose rate steps and that fails, in packets and as a fluid",
    minutes=0.5,
    options=OPTIONS,
    quick={"protocols": ("xcp", "cubic")},
    cases=cases,
    runs=runs,
    measure=measure,
    line=line,
    table=table,
    figure=draw,
)
ON_LINUX = replace(
    STUDY,
    shows="the same on the kernel, next to the simulator and the fluid model",
    minutes=35,
    needs=(on_linux(),),
    cases=lambda options: cases(options, BACKENDS),
)
