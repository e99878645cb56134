"""Measure how long each law's flows wait after an overload by traffic that ignores the law.

Three CUBIC flows fill a link of 100 Mbit/s with an RTT of 40 ms and a buffer of 1 MB (80 ms). When
they stop, after 30 or 110 s, two flows of the law start. A run without CUBIC is the comparison. The
dead time ends when the two flows together first have half of the rate, over 1 s,
that they reach in the run without CUBIC.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from validation.study import Option, Options, Study, StudyRun
from validation.tables import markdown
from waterfill.network.protocols import load
from waterfill.runs.result import Result
from waterfill.scenario.loading import from_dict
from waterfill.theory import params

SAMPLE_S = 0.1
WIDTH = round(1.0 / SAMPLE_S)
"""Number of samples of a mean."""
AFTER_S = 120.0
"""Simulated time after the overload, in seconds."""
SETTLED_S = 10.0
"""Time at the end of a run that measures the usual rate, in seconds."""
OVERLOADS_S = (30.0, 110.0)
NO_BOUND = "x_min = 1e-300 bit/s"
VARIANTS: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "maxnet": {
        "kernel-host": {"arithmetic": "kernel-host"},
        NO_BOUND: {"x_min": "1e-300 bit/s"},
    },
    "maxnet2006": {NO_BOUND: {"x_min": "1e-300 bit/s"}},
}
"""Parameters that are also run, by law and name."""


class WindUpCase(NamedTuple):
    """A law, a variant of its parameters ("" for the default), and the overload's length."""

    protocol: str
    variant: str
    overload_s: float


@dataclass(frozen=True)
class DeadTime:
    """Time until both flows have half of their usual rate, with and without the overload (s).

    None: not within `AFTER_S`. `signals` are the link's signals at the overload's end.
    """

    after_s: float | None
    usual_s: float | None
    signals: dict[str, float]


def laws() -> list[str]:
    """Return every law of the simulator whose routers compute a signal."""
    return [p.name for p in load().values() if p.kind == "explicit" and "sim" in p.backends]


def cases(options: Options) -> list[WindUpCase]:
    """Return a case for each law, variant and length of the overload."""
    return [
        WindUpCase(protocol, variant, overload_s)
        for protocol in options.protocols or laws()
        for variant in ("", *VARIANTS.get(protocol, {}))
        for overload_s in options.overloads
    ]


def document(case: WindUpCase, overload_s: float) -> dict[str, Any]:
    """Return the scenario of a case with an overload of this length, or none (0 s)."""
    flow = {"name": "law", "from": "a", "to": "b", "count": 2, "start": f"{case.overload_s:g} s"}
    cubic = {"name": "cubic", "from": "c", "to": "d", "path": ["l"], "count": 3}
    cubic |= {"protocol": "cubic", "stop": f"{overload_s:g} s"}
    made: dict[str, Any] = {
        "name": "wind-up",
        "protocol": case.protocol,
        "duration": f"{case.overload_s + AFTER_S:g} s",
        "sample": f"{SAMPLE_S:g} s",
        "link": [
            {"name": "l", "from": "a", "to": "b", "rate": "100 Mbit/s", "delay": "20 ms",
             "buffer": "1 MB"}
        ],
        "flow": [flow | {"path": ["l"]}, *([cubic] if overload_s else [])],
    }  # fmt: skip
    if case.variant:
        made["params"] = {case.protocol: dict(VARIANTS[case.protocol][case.variant])}
    return made


def runs(case: WindUpCase) -> dict[str, StudyRun]:
    """Return the runs with and without the overload."""
    return {
        name: StudyRun(from_dict(document(case, overload_s), "wind-up"))
        for name, overload_s in (("overload", case.overload_s), ("usual", 0.0))
    }


def rates(result: Result) -> list[float]:
    """Return the total rate of the law's flows in each sample, in bit/s."""
    flows = result.flows.to_pydict()
    count = round(result.network.duration_s / SAMPLE_S)
    total = [0.0] * count
    for name, time_s, bps in zip(flows["flow"], flows["time_s"], flows["rate_bps"], strict=True):
        if name.startswith("law"):
            total[round(time_s / SAMPLE_S) - 1] += bps or 0.0
    return total


def dead_s(total: list[float], usual_bps: float) -> float | None:
    """Return the time (s) until the mean rate of 1 s is half of the usual rate, or None."""
    means = (math.fsum(total[i : i + WIDTH]) / WIDTH for i in range(len(total) - WIDTH + 1))
    found = next((i for i, mean in enumerate(means) if mean >= usual_bps / 2), None)
    return None if found is None else found * SAMPLE_S


def signals(result: Result, protocol: str, at_s: float) -> dict[str, float]:
    """Return a law's signals of the link in the last sample up to a time (s)."""
    links = result.links.to_pydict()
    rows = enumerate(zip(links["time_s"], links["link"], strict=True))
    at = max(i for i, (time_s, link) in rows if link == "l" and time_s <= at_s + SAMPLE_S / 2)
    found = {
        name.removeprefix(f"{protocol}_"): values[at]
        for name, values in links.items()
        if name.startswith(f"{protocol}_")
    }
    return {name: value for name, value in found.items() if value is not None}


def measure(case: WindUpCase, results: Mapping[str, Result]) -> DeadTime:
    """Measure the dead time of a case."""
    first = round(case.overload_s / SAMPLE_S)
    after, usual = (rates(results[name])[first:] for name in ("overload", "usual"))
    settled = usual[-round(SETTLED_S / SAMPLE_S) :]
    usual_bps = math.fsum(settled) / len(settled)
    return DeadTime(
        dead_s(after, usual_bps),
        dead_s(usual, usual_bps),
        signals(results["overload"], case.protocol, case.overload_s),
    )


HEAD = "law|parameters|overload s|dead s|without overload s|signals at its end"


def row(case: WindUpCase, found: DeadTime) -> list[str]:
    """Return the cells of a case's table row."""
    times = [
        f"> {AFTER_S:.0f}" if s is None else f"{s:.1f}" for s in (found.after_s, found.usual_s)
    ]
    shown = ", ".join(f"{name} {value:.4g}" for name, value in found.signals.items())
    return [f"`{case.protocol}`", case.variant or "default", f"{case.overload_s:g}", *times, shown]


def table(found: Mapping[WindUpCase, DeadTime]) -> str:
    """Return the table of all cases."""
    return markdown(HEAD, (row(case, one) for case, one in found.items()))


def failed(found: Mapping[WindUpCase, DeadTime]) -> list[str]:
    """Return the cases of MaxNet's laws, with their bound, that are dead for longer than the price
    takes from p_max to p_min.
    """
    return [
        f"{case.protocol} {case.variant} after {case.overload_s:g} s: dead for {one.after_s} s"
        for case, one in found.items()
        if case.protocol in VARIANTS and case.variant != NO_BOUND
        if one.after_s is None or one.after_s > longest_s(case.protocol)
    ]


def longest_s(protocol: str) -> float:
    """Return (p_max − p_min)/μ in s for the study's link, and 1 s for the flows' start."""
    values = {param.name: param.default for param in load()[protocol].params}
    t_s, x_min_bps, mu = (params.number(values, name) for name in ("t", "x_min", "mu"))
    return t_s * math.log(100e6 / x_min_bps) / mu + 1.0


STUDY = Study(
    shows="how long each law's flows wait after an overload by CUBIC flows",
    minutes=0.5,
    options=(
        Option("protocols", (), "default: every law whose routers compute a signal", laws),
        Option("--overloads", OVERLOADS_S, "lengths of the overload in s", low=1.0),
    ),
    quick={"protocols": ("maxnet", "rcp"), "overloads": (30.0,)},
    cases=cases,
    runs=runs,
    measure=measure,
    line=lambda case, found: " | ".join(row(case, found)),
    table=table,
    failed=failed,
)
