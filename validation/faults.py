"""Measure the cost of each fault for each protocol, as one table per group of faults and a figure.

Two flows, `subject` and `other`, share a link of 20 Mbit/s with an RTT of 40 ms and a buffer of one
bandwidth-delay product. A fault acts from 15 to 20 s; where it is one of a host, it is `subject`'s.
A third flow joins for the fault of a source that ignores feedback. Each run is compared with the
run without the fault.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from validation.study import Option, Options, Study, StudyRun
from validation.tables import markdown
from waterfill.runs.result import Result
from waterfill.scenario.loading import from_toml

T = TypeVar("T")
SAMPLE_S = 0.1
MEAN_S = 1.0
RATE_BPS = 20e6
ALL_BACK, EACH_BACK = 0.9, 0.7
"""Rates that count as recovered, relative to the run without the fault: all flows together, and
each flow.
"""

EXPLICIT = (
    *("maxnet", "maxnet2006", "xcp", "ixcp", "pxcp", "aecp", "rcp", "jetmax", "vcp", "abc"),
)
TCPS = (
    *("reno", "newreno", "sack", "cubic", "bic", "highspeed", "scalable", "htcp", "westwood"),
    *("vegas", "fast", "dctcp", "bbr"),
)
MARKED = ("dctcp",)
"""TCPs that react to ECN marks, which a router can remove or forge."""

SCENARIO = """
name = "faults"
protocol = "{protocol}"
duration = "{end:g} s"
sample = "{sample:g} s"
[[link]]
name = "l"
from = "a"
to = "b"
rate = "20 Mbit/s"
delay = "20 ms"
{mark}{link}
[[flow]]
name = "subject"
from = "a"
to = "b"
demand = "40 Mbit/s"
{flow}
[[flow]]
name = "other"
from = "a"
to = "b"
demand = "40 Mbit/s"
{more}
"""
JOINER = """
[[flow]]
name = "joiner"
from = "a"
to = "b"
start = "{start:g} s"
stop = "{stop:g} s"
demand = "40 Mbit/s"
"""
CROWD = """
[[flow]]
name = "crowd"
from = "a"
to = "b"
count = 2000
start = "{start:g} s"
stop = "{stop:g} s"
"""


@dataclass(frozen=True)
class Times:
    """Times of a run in seconds: the fault's beginning and end, and the end of the run."""

    from_s: float
    until_s: float
    end_s: float


LONG = Times(15.0, 20.0, 45.0)


@dataclass(frozen=True)
class Fault:
    """A fault, given as additions to a scenario's link, subject flow and other flows.

    `on` says which protocols it concerns; `ends_s` is when it ends; `always` adds `more` to the
    run without the fault too.
    """

    name: str
    title: str
    ends_s: float
    link: str = ""
    flow: str = ""
    more: str = ""
    on: Sequence[str] = (*EXPLICIT, *TCPS)
    always: bool = False


HEADERS = (*EXPLICIT, *MARKED)


def faults_at(times: Times) -> tuple[Fault, ...]:
    """Return every fault, timed for runs with the given times."""
    from_s, until_s = times.from_s, times.until_s
    down_s = 2.0

    def fault(section: str, kind: str, *keys: str, until: bool = True) -> str:
        lines = [f"[[{section}.fault]]", f'kind = "{kind}"', f'at = "{from_s:g} s"']
        ends = [f'until = "{until_s:g} s"'] if until else []
        return "\n".join([*lines, *ends, *keys]) + "\n"

    def event(at_s: float, key: str) -> str:
        return f'[[link.event]]\nat = "{at_s:g} s"\n{key}\n'

    def clock(section: str, step: str) -> str:
        return fault(section, "clock", f'step = "{step}"', until=False)

    def lie(value: str) -> str:
        return fault("link", "lie", f'value = "{value}"')

    joiner = JOINER.format(start=from_s + 1, stop=until_s)
    crowd = CROWD.format(start=from_s, stop=until_s)
    return (
        Fault("down", "link down for 2 s", from_s + down_s,
              link=event(from_s, "up = false") + event(from_s + down_s, "up = true")),
        Fault("half", "half the rate", until_s,
              link=event(from_s, 'rate = "10 Mbit/s"') + event(until_s, 'rate = "20 Mbit/s"')),
        Fault("crowd", "2000 flows more", until_s, more=crowd),
        Fault("restart", "router restarts", from_s,
              link=fault("link", "restart", until=False), on=EXPLICIT),
        Fault("clock-ahead", "router's clock + 1 s", from_s,
              link=clock("link", "1 s"), on=EXPLICIT),
        Fault("clock-back", "router's clock − 0.5 s", from_s + 0.5,
              link=clock("link", "-500 ms"), on=EXPLICIT),
        Fault("strip", "headers stripped", until_s, link=fault("link", "strip"), on=HEADERS),
        Fault("strip-half", "half of the headers stripped", until_s,
              link=fault("link", "strip", "share = 0.5"), on=HEADERS),
        Fault("corrupt", "1 % of headers corrupted", until_s,
              link=fault("link", "corrupt", "share = 0.01"), on=HEADERS),
        Fault("zero", "router misreports: zero", until_s, link=lie("zero"), on=HEADERS),
        Fault("max", "router misreports: max", until_s, link=lie("max"), on=HEADERS),
        Fault("random", "router misreports: random", until_s, link=lie("random"), on=HEADERS),
        Fault("receiver", "receiver misreports", until_s, flow=fault("flow", "lie")),
        Fault("ignore", "source ignores feedback", until_s, flow=fault("flow", "ignore"),
              more=joiner, always=True),
        Fault("host-ahead", "source's clock + 1 s", from_s, flow=clock("flow", "1 s")),
        Fault("host-back", "source's clock − 0.5 s", from_s + 0.5,
              flow=clock("flow", "-500 ms")),
        Fault("ack-loss", "20 % of acknowledgements lost", until_s, link="loss_reverse = 0.2\n"),
        Fault("ack-hold", "acknowledgements every 20 ms", until_s,
              link=f'ack_aggregation = {{every = "20 ms", at = "{from_s:g} s", '
                   f'until = "{until_s:g} s"}}\n'),
    )  # fmt: skip


FAULTS = faults_at(LONG)

GROUPS = (
    ("Links and load", ("down", "half", "crowd")),
    ("Routers", ("restart", "clock-ahead", "clock-back")),
    ("Headers", ("strip", "strip-half", "corrupt")),
    ("Routers that misreport", ("zero", "max", "random")),
    ("Hosts that misreport", ("receiver", "ignore")),
    ("Hosts' clocks", ("host-ahead", "host-back")),
    ("Acknowledgements", ("ack-loss", "ack-hold")),
)


@dataclass(frozen=True)
class Course:
    """Samples of a run: rates of the two flows (bit/s), largest queues (bytes) and drops."""

    subject: Sequence[float]
    other: Sequence[float]
    queue: Sequence[float]
    drops: Sequence[float]


@dataclass(frozen=True)
class Cost:
    """Cost of a fault. `recovered_s` is None if the rates did not recover before the run's end.

    Of the rates without the fault: `lost_s` is what both flows missed, in seconds of their rate;
    `other` and `subject` are shares from its begin until its end, or as long if it has none.
    """

    lost_s: float
    recovered_s: float | None
    queue_ms: float
    drops: int
    other: float
    subject: float


def scenario_text(
    protocol: str, fault: Fault | None, like: Fault | None = None, *, end_s: float = LONG.end_s
) -> str:
    """Return the scenario with a fault. Without a fault, return the reference scenario for the
    fault `like`.
    """
    more = fault.more if fault else like.more if like and like.always else ""
    return SCENARIO.format(
        protocol=protocol,
        end=end_s,
        sample=SAMPLE_S,
        mark='mark_at = "10 packets"\n' if protocol in MARKED else "",
        link=fault.link if fault else "",
        flow=fault.flow if fault else "",
        more=more,
    )


def course(result: Result) -> Course:
    """Return the samples of a run, one per `SAMPLE_S`."""
    count = round(result.network.duration_s / SAMPLE_S)
    found = {name: [0.0] * count for name in ("subject", "other")}
    queue, drops = [0.0] * count, [0.0] * count
    flows, links = result.flows.to_pydict(), result.links.to_pydict()
    rows = zip(*(flows[k] for k in ("time_s", "flow", "rate_bps")), strict=True)
    for time_s, name, bps in rows:
        if name in found:
            found[name][round(time_s / SAMPLE_S) - 1] = bps or 0.0
    for time_s, name, most, dropped in zip(
        *(links[k] for k in ("time_s", "link", "queue_max_bytes", "drops")), strict=True
    ):
        if name == "l":
            index = round(time_s / SAMPLE_S) - 1
            queue[index], drops[index] = most, dropped
    return Course(found["subject"], found["other"], queue, drops)


def _means(values: Sequence[float]) -> list[float]:
    width = round(MEAN_S / SAMPLE_S)
    return [math.fsum(values[i : i + width]) / width for i in range(len(values) - width + 1)]


def cost(run: Course, plain: Course, fault: Fault, times: Times = LONG) -> Cost:
    """Compare a run with the reference run without the fault, and return the fault's cost."""
    first, last = round(times.from_s / SAMPLE_S), round(times.until_s / SAMPLE_S)
    ends = round(fault.ends_s / SAMPLE_S)
    width = round(MEAN_S / SAMPLE_S)
    touch = first - width + 1  # the first mean that the fault touches

    def mean(values: Sequence[float], from_: int, to: int) -> float:
        return math.fsum(values[from_:to]) / (to - from_)

    usual = [mean(one, first, len(one)) for one in (plain.subject, plain.other)]
    both = math.fsum(usual)
    missing = (
        max(0.0, both - a - b)
        for a, b in zip(_means(run.subject)[touch:], _means(run.other)[touch:], strict=True)
    )
    recovered = None
    for i, (a, b) in enumerate(zip(_means(run.subject)[ends:], _means(run.other)[ends:],
                                   strict=True)):  # fmt: skip
        each = a >= EACH_BACK * usual[0] and b >= EACH_BACK * usual[1]
        if each and a + b >= ALL_BACK * both:
            recovered = (i + width) * SAMPLE_S
            break
    during = [mean(one, first, last) for one in (plain.subject, plain.other)]
    found = [mean(one, first, last) for one in (run.subject, run.other)]
    return Cost(
        lost_s=math.fsum(missing) * SAMPLE_S / both,
        recovered_s=recovered,
        queue_ms=max(run.queue[first:]) * 8e3 / RATE_BPS,
        drops=int(math.fsum(run.drops[first:])),
        subject=found[0] / during[0],
        other=found[1] / during[1],
    )


class FaultCase(NamedTuple):
    """One fault and the protocol under which it occurs."""

    protocol: str
    fault: str


def cases(options: Options) -> list[FaultCase]:
    """Return the cases of the chosen protocols, one for each fault that concerns them."""
    return [
        FaultCase(protocol, fault.name)
        for protocol in options.protocols
        for fault in FAULTS
        if protocol in fault.on
    ]


def runs(case: FaultCase) -> dict[str, StudyRun]:
    """Return a run with the fault and a run without the fault."""
    (fault,) = (one for one in FAULTS if one.name == case.fault)
    with_fault = scenario_text(case.protocol, fault)
    plain = scenario_text(case.protocol, None, fault)
    return {
        "fault": StudyRun(from_toml(with_fault, "faults")),
        "plain": StudyRun(from_toml(plain, "faults")),
    }


def measure(case: FaultCase, results: Mapping[str, Result]) -> Cost:
    """Compare the runs with and without a fault."""
    (fault,) = (one for one in FAULTS if one.name == case.fault)
    return cost(course(results["fault"]), course(results["plain"]), fault)


def by_protocol(found: Mapping[FaultCase, T]) -> dict[str, dict[str, T]]:
    """Return the measurements by protocol and then by fault."""
    rows: dict[str, dict[str, T]] = {}
    for case, measured in found.items():
        rows.setdefault(case.protocol, {})[case.fault] = measured
    return rows


def cells(found: Cost | None) -> list[str]:
    """Return the table cells of one fault in a protocol's row."""
    if found is None:
        return ["", "", "", ""]
    recovered = "never" if found.recovered_s is None else f"{found.recovered_s:.1f}"
    dropped = f" ({found.drops})" if found.drops else ""
    return [
        f"{found.lost_s:.1f}",
        recovered,
        f"{found.queue_ms:.0f}{dropped}",
        f"{100 * found.other:.0f}",
    ]


def tables(found: Mapping[FaultCase, Cost]) -> str:
    """Return one table for each group of faults, with a row for each affected protocol."""
    return grouped(found, "###", GROUPS, cells)


def grouped(
    found: Mapping[FaultCase, T],
    level: str,
    groups: Sequence[tuple[str, Sequence[str]]],
    cells_of: Callable[[T | None], list[str]],
) -> str:
    """Return a heading and a table for each group of faults.

    Protocols with equal cells share a row.
    """
    rows = by_protocol(found)
    titles = {fault.name: fault.title for fault in FAULTS}
    out = []
    for heading, names in groups:
        head = [f"{titles[name]}: lost s|back s|queue ms (drops)|other %" for name in names]
        alike: dict[tuple[str, ...], list[str]] = {}
        for protocol, mine in rows.items():
            if any(name in mine for name in names):
                row = tuple(cell for name in names for cell in cells_of(mine.get(name)))
                alike.setdefault(row, []).append(f"`{protocol}`")
        shown = ([", ".join(protocols), *row] for row, protocols in alike.items())
        out += [f"{level} {heading}", "", markdown("|".join(["protocol", *head]), shown), ""]
    return "\n".join(out)


def draw(found: Mapping[FaultCase, Cost], stem: Path) -> None:
    """Draw two heat maps of protocols and faults: seconds lost, and what the other flow lost.

    In both, dark is harm.
    """
    from matplotlib.figure import Figure

    from waterfill.analysis.draw import save

    costs = by_protocol(found)
    figure = Figure(figsize=(9.5, 0.46 * len(costs) + 3.2), layout="constrained")
    upper, lower = figure.subplots(2, 1, sharex=True)
    _harm(figure, upper, costs, "both flows: seconds of their rate lost", 10.0,
          lambda cost: cost.lost_s)  # fmt: skip
    _harm(figure, lower, costs, "other flow: rate lost during the fault (%)", 100.0,
          lambda cost: 100 - 100 * cost.other)  # fmt: skip
    titles = [fault.title for fault in FAULTS]
    lower.set_xticks(range(len(titles)), titles, rotation=50, ha="right", fontsize=9)
    save(figure, stem)


def _harm(
    figure: Any, axis: Any, costs: Mapping[str, Mapping[str, Cost]], title: str, most: float,
    value: Callable[[Cost], float],
) -> None:  # fmt: skip
    """Draw the heat map of one quantity, from 0 to `most`, with its numbers and scale."""
    rows = [
        [value(of[fault.name]) if fault.name in of else math.nan for fault in FAULTS]
        for of in costs.values()
    ]
    # cividis is read alike with every kind of colour vision.
    image = axis.imshow(rows, cmap="cividis_r", vmin=0, vmax=most, aspect="auto")
    for y, row in enumerate(rows):
        for x, number in enumerate(row):
            if not math.isnan(number):
                text = f"{number:.1f}" if most == 10 and number < 10 else f"{number:.0f}"
                axis.text(x, y, text.replace("-0", "0").replace("-", "−"), ha="center",
                          va="center", fontsize=8.5,
                          color="white" if number > most / 2 else "black")  # fmt: skip
    axis.set_title(title, fontsize=11, loc="left")
    axis.set_yticks(range(len(costs)), list(costs), fontsize=9)
    figure.colorbar(image, ax=axis, extend="max" if most == 10 else "min", pad=0.01, aspect=40)


STUDY = Study(
    shows="the cost of each of 18 faults of links, routers and hosts for every protocol",
    minutes=10,
    options=(Option("protocols", (*EXPLICIT, *TCPS), "default: all", (*EXPLICIT, *TCPS)),),
    quick={"protocols": ("maxnet", "cubic")},
    cases=cases,
    runs=runs,
    measure=measure,
    table=tables,
    figure=draw,
)
