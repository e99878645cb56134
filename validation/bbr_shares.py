"""Compare BBR version 1's share next to CUBIC with Ware's model and the kernel, over buffers.

One flow of BBR and one of CUBIC share 10 Mbit/s with an RTT of 40 ms for 120 s; the share is that
of the last 90 s. The simulator's share is the mean of five runs, whose flows start at random times
in the first second. The model is of Ware, Mukerjee, Seshan and Sherry, "Modeling BBR's Interactions
with Loss-Based Congestion Control", IMC 2019: next to a full queue, BBR's window of two BDP limits
it, and its smallest RTT contains the queue of the others. The kernel takes its 120 s.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from validation.study import Options, Study, StudyRun, failed_checks, on_linux, only
from validation.tables import markdown
from waterfill.runs.result import Result
from waterfill.scenario.loading import from_dict

RATE_BPS, RTT_S, PACKET_BYTES = 10e6, 0.04, 1500
END_S, MEASURED_S = 120.0, 30.0
BUFFERS_BDP = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
LINUX_BUFFERS_BDP = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
SEEDS = 5
# BBR's variants: the draft of 2017, and Linux's tcp_bbr.c.
VARIANTS = {"draft": False, "linux": True}


class ShareCase(NamedTuple):
    """A buffer, a backend and a variant of BBR."""

    buffer_bdp: float
    on: str
    variant: str


@dataclass(frozen=True)
class Shares:
    """BBR's share of both rates in each run, and the failed checks of a run on linux."""

    shares: list[float]
    failed: list[str] = field(default_factory=list)

    @property
    def mean(self) -> float:
        """Mean share."""
        return statistics.fmean(self.shares)


def model(buffer_bdp: float, duration_s: float = END_S - MEASURED_S) -> float:
    """Return BBR's share by equations 9 to 11 of IMC 2019, in 0 to 1, for a buffer in BDP.

    `p = 1/2 − 1/(2X) − 4N/q` is the share of the loss-based flows for N flows of BBR and a buffer
    of q packets. ProbeRTT takes `(q/c + 0.2 + l)·d/10` of d seconds. Below one BDP p is 0.
    """
    packets_per_s = RATE_BPS / (8 * PACKET_BYTES)
    buffer_packets = buffer_bdp * RTT_S * packets_per_s
    others = max(0.0, 0.5 - 1 / (2 * buffer_bdp) - 4 / buffer_packets)
    probing_s = (buffer_packets / packets_per_s + 0.2 + RTT_S) * duration_s / 10
    return (1 - others) * (duration_s - probing_s) / duration_s


def cases(_: Options, backends: Sequence[str] = ("sim",)) -> list[ShareCase]:
    """Return a case for each buffer, backend and variant. The kernel has one variant."""
    return [
        ShareCase(buffer, on, variant)
        for buffer in BUFFERS_BDP
        for on in backends
        for variant in VARIANTS
        if on == "sim" or (variant == "linux" and buffer in LINUX_BUFFERS_BDP)
    ]


def _scenario(case: ShareCase, seed: int) -> StudyRun:
    jitter = {} if case.on == "linux" else {"start_jitter": "1 s"}
    flows = [
        {"name": name, "from": f"a-{name}", "to": f"b-{name}", "path": ["l"], "protocol": name,
         "rtt": f"{RTT_S * 1e3:g} ms", "delayed_ack": True, **jitter}
        for name in ("bbr", "cubic")
    ]  # fmt: skip
    packets = round(case.buffer_bdp * RTT_S * RATE_BPS / (8 * PACKET_BYTES))
    document = {
        "name": "shares",
        "duration": f"{END_S:g} s",
        "measure": [f"{MEASURED_S:g} s", f"{END_S:g} s"],
        "seed": seed,
        "params": {"bbr": {"linux": VARIANTS[case.variant]}},
        "link": [{"name": "l", "from": "r1", "to": "r2", "rate": f"{RATE_BPS:g} bit/s",
                  "buffer": f"{packets} packets"}],
        "flow": flows,
    }  # fmt: skip
    return StudyRun(from_dict(document, "shares"), case.on)


def runs(case: ShareCase) -> dict[str, StudyRun]:
    """Return the runs of a case: five on the simulator, one on the kernel."""
    count = 1 if case.on == "linux" else SEEDS
    return {str(seed): _scenario(case, seed) for seed in range(1, count + 1)}


def measure(_: ShareCase, results: Mapping[str, Result]) -> Shares:
    """Return BBR's shares."""
    shares, failed = [], []
    for result in results.values():
        bbr, cubic = (float(flow["rate_bps"]) for flow in result.summary["flows"])
        shares.append(bbr / (bbr + cubic))
        failed += failed_checks(result)
    return Shares(shares, failed)


def shown(found: Shares | None) -> str:
    """Return the mean share and its range as text."""
    if found is None:
        return "—"
    low, high = min(found.shares), max(found.shares)
    spread = f" ({low:.2f} to {high:.2f})" if len(found.shares) > 1 else ""
    failed = f"; failed: {', '.join(found.failed)}" if found.failed else ""
    return f"{found.mean:.2f}{spread}{failed}"


def line(case: ShareCase, found: Shares) -> str:
    """Return a line of progress."""
    return f"{case.buffer_bdp:g} bdp {case.on} {case.variant}: {shown(found)}"


def table(found: Mapping[ShareCase, Shares]) -> str:
    """Return the shares: a row per buffer."""
    columns = [("sim", "draft"), ("sim", "linux"), ("linux", "linux")]
    rows = [
        [f"{buffer:g}", f"{model(buffer):.2f}",
         *(shown(found.get(ShareCase(buffer, *column))) for column in columns)]
        for buffer in dict.fromkeys(case.buffer_bdp for case in found)
    ]  # fmt: skip
    return markdown("buffer (bdp):|model:|`bbr`, draft|`bbr`, Linux's variant|kernel", rows)


def draw(found: Mapping[ShareCase, Shares], stem: Path) -> None:
    """Draw the shares over the buffer."""
    from matplotlib.figure import Figure

    from waterfill.analysis.draw import save

    figure = Figure(figsize=(4.4, 3), layout="constrained")
    axis = figure.subplots()
    axis.plot(BUFFERS_BDP, [model(buffer) for buffer in BUFFERS_BDP], "k--", label="model of 2019")
    for on, variant, style in (
        ("sim", "draft", "o-"),
        ("sim", "linux", "s-"),
        ("linux", "linux", "x"),
    ):
        points = [(b, found.get(ShareCase(b, on, variant))) for b in BUFFERS_BDP]
        kept = [(b, one.mean) for b, one in points if one is not None]
        if kept:
            label = "kernel" if on == "linux" else f"simulator, {variant}"
            axis.plot(*zip(*kept, strict=True), style, label=label, linewidth=0.9)
    axis.set_xscale("log", base=2)
    axis.set_xticks(BUFFERS_BDP, [f"{buffer:g}" for buffer in BUFFERS_BDP])
    axis.set_ylim(0, 1.05)
    axis.set_xlabel("buffer (bdp)")
    axis.set_ylabel("share of BBR next to one CUBIC")
    axis.legend(fontsize=8)
    save(figure, stem)


STUDY = Study(
    shows="the share of BBR version 1 next to CUBIC over buffers, against the model of IMC 2019",
    minutes=2,
    options=(only("32*"),),
    cases=cases,
    runs=runs,
    measure=measure,
    line=line,
    table=table,
    figure=draw,
)
ON_LINUX = replace(
    STUDY,
    shows="the same on the kernel, next to the simulator",
    minutes=14,
    needs=(on_linux(),),
    cases=lambda options: cases(options, ("sim", "linux")),
)
