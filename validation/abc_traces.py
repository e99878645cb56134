"""Compare ABC with CUBIC, CUBIC behind CoDel and the explicit laws on cellular traces.

A trace is a file as mahimahi reads it: a line for each packet of 1500 bytes that the link could
send, with its time in milliseconds. DIR holds public ones; mahimahi and the authors of ABC publish
eight of U.S. cellular networks. Without DIR the traces are made here by a rule (`made`), and the
paper's figures are not judged.

The network is that of the authors' script: one flow for the length of the run, 100 ms of RTT, the
trace's link with a buffer of 250 packets one way and 12 Mbit/s the other, CoDel with a target of
50 ms and an interval of 100 ms (and beside it with RFC 8289's 5 ms). The trace becomes a rate in
bins of 20 ms, the time over which ABC's router measures; so every law sees the capacity averaged
over it. Utilization is what arrived over what the link could have sent. The delay is that of the
95th percentile of the RTT, less the RTT without queues, over samples of 10 ms, each as often as
packets arrived in it.

The paper's abstract gives one figure, 50 % more throughput than CUBIC with CoDel, and not CoDel's
parameters: it is compared with both. A verdict is printed; it does not change the exit code.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox
from numpy.typing import NDArray

from validation.study import Option, Options, Study, StudyRun
from validation.tables import markdown
from waterfill.errors import InputError
from waterfill.runs.result import Result
from waterfill.scenario import traces
from waterfill.scenario.distributions import PartError
from waterfill.scenario.loading import from_dict

RTT_S = 0.1
SAMPLE_S = 0.01
MADE = 8


class Scheme(NamedTuple):
    """A congestion-control scheme: a protocol and the queue of the traced link, under a printed
    name.
    """

    name: str
    protocol: str
    queue: Mapping[str, Any]


def _codel(target: str) -> dict[str, Any]:
    return {"queue": "codel", "queue_params": {"target": target, "interval": "100 ms"}}


ABC, CODEL, CODEL_RFC = "abc", "cubic, CoDel 50 ms", "cubic, CoDel 5 ms"
SCHEMES = (
    Scheme(ABC, "abc", {}),
    Scheme(CODEL, "cubic", _codel("50 ms")),
    Scheme(CODEL_RFC, "cubic", _codel("5 ms")),
    Scheme("cubic", "cubic", {}),
    Scheme("bbr", "bbr", {}),
    Scheme("vegas", "vegas", {}),
    *(Scheme(name, name, {}) for name in ("maxnet", "xcp", "ixcp", "aecp", "rcp", "jetmax", "vcp")),
)


class Trace(NamedTuple):
    """Capacity of a link over time, under a printed name."""

    name: str
    rates: traces.Trace

    def mean_bps(self, seconds: float) -> float:
        """Return the trace's mean rate over its first `seconds`."""
        changes = [*self.rates.until(seconds), (seconds, 0.0)]
        bits = (rate * (to - at) for (at, rate), (to, _) in itertools.pairwise(changes))
        return math.fsum(bits) / seconds


@dataclass(frozen=True, eq=False)
class TraceCase:
    """One trace under one scheme. `judged` is true if the trace is a public one."""

    trace: Trace
    scheme: Scheme
    seconds: float
    judged: bool

    @property
    def name(self) -> str:
        """Name of the case in messages."""
        return f"{self.trace.name}, {self.scheme.name}"


class Outcome(NamedTuple):
    """Results of one run: utilization, throughput and the 95th percentile of the queueing delay."""

    trace: str
    scheme: str
    utilization: float
    throughput_bps: float
    delay_p95_s: float


# --- traces -------------------------------------------------------------------------------------


def read(path: Path, bin_s: float) -> Trace:
    """Read a trace from a mahimahi file. Raises InputError for any other file."""
    try:
        return Trace(path.name, traces.Trace(traces.read(path, bin_s)))
    except PartError as error:
        raise InputError("command line", "traces", str(error)) from None


def made(seed: int, seconds: float, bin_s: float) -> Trace:
    """Return a synthetic trace: Poisson packets at a randomly walking rate, with outages.

    The rates follow Sprout (Winstein, Sivaraman, Balakrishnan 2013): in ticks of
    20 ms the rate does a Brownian walk of 200 packets/s per √s within 0 and 1000 packets/s. When it
    gets to zero it rests there, for an exponential time of mean 1 s.
    """
    draw = random.Random(seed)
    tick_s, rate, now_s = 0.02, draw.uniform(0, 1000), 0.0
    times_ms: list[int] = []
    while now_s < seconds:
        rate += 200 * math.sqrt(tick_s) * draw.gauss(0, 1)
        if rate <= 0:
            rate = 0.0
            now_s += draw.expovariate(1.0)
            continue
        rate = min(rate, 2000 - rate)  # reflected at 1000
        at_s = now_s + draw.expovariate(rate)
        while at_s < now_s + tick_s:
            times_ms.append(math.ceil(1e3 * at_s))
            at_s += draw.expovariate(rate)
        now_s += tick_s
    return Trace(f"made-{seed}", traces.Trace(traces.opportunities(times_ms, bin_s)))


# --- runs ---------------------------------------------------------------------------------------


def scenario(trace: Trace, scheme: Scheme, seconds: float) -> dict[str, Any]:
    """Return the scenario of one trace under one scheme."""
    ends = {"delay": f"{RTT_S / 2:g} s", "buffer": "250 packets", "duplex": False}
    cell = {
        "name": "cell", "from": "a", "to": "b", "rate": f"{trace.rates.mean_bps:.0f} bit/s",
        "rate_trace": trace.rates, **ends, **scheme.queue,
    }  # fmt: skip
    back = {"name": "back", "from": "b", "to": "a", "rate": "12 Mbit/s", **ends}
    return {
        "name": trace.name, "duration": f"{seconds:g} s", "protocol": scheme.protocol,
        "measure": ["0 s", f"{seconds:g} s"], "sample": f"{SAMPLE_S:g} s",
        "link": [cell, back], "flow": [{"name": "f", "from": "a", "to": "b"}],
    }  # fmt: skip


def runs(case: TraceCase) -> dict[str, StudyRun]:
    """Return the single run of a case."""
    return {"": StudyRun(from_dict(scenario(case.trace, case.scheme, case.seconds)))}


def outcome(case: TraceCase, results: Mapping[str, Result]) -> Outcome:
    """Measure the results of a run."""
    result, trace = results[""], case.trace
    rate = result.flows["rate_bps"].to_numpy()
    rtt = result.flows["rtt_s"].to_numpy()
    return Outcome(
        trace.name,
        case.scheme.name,
        float(np.nanmean(rate)) / trace.mean_bps(case.seconds),
        float(np.nanmean(rate)),
        weighted_quantile(rtt - RTT_S, rate, 0.95),
    )


def weighted_quantile(
    values: NDArray[np.float64], weights: NDArray[np.float64], share: float
) -> float:
    """Return the weighted quantile of the finite values at the fraction `share`."""
    known = np.isfinite(values) & (weights > 0)
    order = np.argsort(values[known], kind="stable")
    sums = np.cumsum(weights[known][order])
    return float(values[known][order][np.searchsorted(sums, share * sums[-1])])


# --- claims -------------------------------------------------------------------------------------


class Claim(NamedTuple):
    """A published figure and its measured value. `agrees` is None if the figure is not judged."""

    text: str
    paper: float
    tolerance: float
    measured: float
    agrees: bool | None


def mean(outcomes: Sequence[Outcome], scheme: str, field: str) -> float:
    """Return the mean of a result field over all traces of one scheme."""
    return float(np.mean([getattr(one, field) for one in outcomes if one.scheme == scheme]))


def ratio(outcomes: Sequence[Outcome], field: str, one: str, other: str) -> float:
    """Return the ratio of two schemes' means over all traces."""
    return mean(outcomes, one, field) / mean(outcomes, other, field)


def claims(outcomes: Sequence[Outcome], *, judged: bool) -> list[Claim]:
    """Return the claim of ABC's abstract about throughput on cellular paths, compared with both
    settings of CoDel.
    """
    paper, tolerance = 1.5, 0.1
    found = []
    for codel in (CODEL, CODEL_RFC):
        gain = ratio(outcomes, "utilization", ABC, codel)
        text = f"throughput of ABC over {codel} (abc-2020, abstract: 50 % higher)"
        agrees = abs(gain / paper - 1) <= tolerance if judged else None
        found.append(Claim(text, paper, tolerance, gain, agrees))
    return found


# --- the report ---------------------------------------------------------------------------------


def table(outcomes: Sequence[Outcome]) -> str:
    """Return a table of each scheme's means over all traces, absolute and relative to ABC."""
    rows = []
    for name in dict.fromkeys(one.scheme for one in outcomes):
        used, delay_s = (mean(outcomes, name, f) for f in ("utilization", "delay_p95_s"))
        relative = [ratio(outcomes, f, name, ABC) for f in ("utilization", "delay_p95_s")]
        rows.append(
            [name, f"{used:.1%}", f"{1e3 * delay_s:.0f} ms", *(f"{x:.2f}" for x in relative)]
        )
    head = "scheme|utilization:|95 % queueing delay:|utilization / ABC's:|delay / ABC's:"
    return markdown(head, rows)


def by_trace(outcomes: Sequence[Outcome], of: Sequence[Trace], seconds: float) -> str:
    """Return a table of each trace, with the results of ABC and of CUBIC with three queues."""
    shown = (ABC, CODEL, CODEL_RFC, "cubic")
    found = {(one.trace, one.scheme): one for one in outcomes}
    rows = []
    for trace in of:
        mine = [found[trace.name, name] for name in shown]
        cells = [f"{one.utilization:.0%}, {1e3 * one.delay_p95_s:.0f} ms" for one in mine]
        rows.append([trace.name, f"{trace.mean_bps(seconds) / 1e6:.2f} Mbit/s", *cells])
    return markdown(f"trace|mean rate:|{':|'.join(shown)}:", rows)


def draw(outcomes: Sequence[Outcome], path: Path) -> None:
    """Draw utilization against delay, as means over all traces."""
    figure = Figure(figsize=(6.4, 4.2), layout="constrained")
    axis = figure.add_subplot()
    points = {
        name: (1e3 * mean(outcomes, name, "delay_p95_s"), 100 * mean(outcomes, name, "utilization"))
        for name in dict.fromkeys(one.scheme for one in outcomes)
    }
    for name, point in points.items():
        axis.plot(*point, "o", color="#d55e00" if name == ABC else "#0072b2")
    axis.set_xscale("log")
    axis.margins(x=0.12)
    axis.set_xlabel("95th percentile of the queueing delay (ms)")
    axis.set_ylabel("utilization (%)")
    axis.grid(alpha=0.3)
    _name(figure, axis, points)
    figure.savefig(path, dpi=150)


def _name(figure: Figure, axis: Any, points: Mapping[str, tuple[float, float]]) -> None:
    """Write each point's name on the first side on which it covers neither point nor name."""
    figure.draw_without_rendering()
    taken = [Bbox.from_bounds(x - 4, y - 4, 8, 8) for x, y in
             axis.transData.transform(list(points.values()))]  # fmt: skip
    for name, point in points.items():
        for x, y in ((6, 0), (-6, 0), (0, 6), (0, -6)):
            text = axis.annotate(
                name, point, (x, y), textcoords="offset points", fontsize=9,
                ha={6: "left", 0: "center", -6: "right"}[x],
                va={6: "bottom", 0: "center", -6: "top"}[y],
            )  # fmt: skip
            box = text.get_window_extent()
            if box.count_overlaps(taken) == 0 or y == -6:
                taken.append(box)
                break
            text.remove()


def load(directory: Path | None, seconds: float, bin_s: float) -> list[Trace]:
    """Return the traces of a directory in order of their names, or synthetic traces if `directory`
    is None.
    """
    if directory is None:
        return [made(seed, seconds, bin_s) for seed in range(1, MADE + 1)]
    if not directory.is_dir():
        raise InputError(str(directory), "", "not a directory of mahimahi traces")
    files = sorted(path for path in directory.iterdir() if path.is_file())
    if not files:
        raise InputError(str(directory), "", "no mahimahi traces here")
    return [read(path, bin_s) for path in files]


def cases(options: Options) -> list[TraceCase]:
    """Return a case for every trace under every scheme."""
    of = load(options.traces, options.seconds, 1e-3 * options.bin)
    public = options.traces is not None
    return [TraceCase(trace, scheme, options.seconds, public) for trace in of for scheme in SCHEMES]


def text(found: Mapping[TraceCase, Outcome]) -> str:
    """Return both tables and the verdicts on the published figure."""
    outcomes, first = list(found.values()), next(iter(found))
    of = list({case.trace.name: case.trace for case in found}.values())
    lines = [by_trace(outcomes, of, first.seconds), "", table(outcomes), ""]
    verdict = {True: "agrees", False: "differs", None: "not judged: made traces"}
    for claim in claims(outcomes, judged=first.judged):
        lines.append(
            f"{claim.text}: {claim.measured:.2f}, paper {claim.paper:g} "
            f"± {claim.tolerance:.0%}: {verdict[claim.agrees]}"
        )
    return "\n".join(lines)


STUDY = Study(
    shows="ABC next to CUBIC, CoDel and the explicit laws on links that vary",
    minutes=2,
    options=(
        Option("--traces", None, "directory of mahimahi's traces; default: made ones", type=Path),
        Option("--seconds", 140.0, "length of a run", low=1.0),
        Option("--bin", 20.0, "length of a bin (ms)", low=1.0),
    ),
    quick={"seconds": 10.0},
    cases=cases,
    runs=runs,
    measure=outcome,
    table=text,
    figure=lambda found, stem: draw(list(found.values()), stem.with_suffix(".png")),
)
