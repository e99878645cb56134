"""Compare the windows of the smallest RTT after a path became longer or shorter.

One flow has a link of 50 Mbit/s and an RTT of 40 ms, with a buffer of one bandwidth-delay product.
At 15 s the delay changes once, by a factor of 0.2 to 5, or from then on every 15 s between twice
the delay and the first, as at handovers. The share kept is the flow's rate over its exact max-min
share, in the last 60 s of 105 s. Every backend runs the same scenario; a run on linux takes its
105 s, so there the window is the default one, unless `--windows` names others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from validation.link_events import left_s
from validation.study import Option, Options, Study, StudyRun, failed_checks, on_linux
from validation.tables import markdown
from waterfill.network.protocols import load
from waterfill.runs import backends
from waterfill.runs.result import Result
from waterfill.scenario.loading import from_dict

BACKENDS = ("sim", "fluid", "linux")
DELAY_MS = 20.0
END_S, MEASURED_S, PERIOD_S = 105, 45, 15
FACTORS = (0.2, 0.5, 2.0, 5.0)
HANDOVERS = "handovers"
FAILED = "†"
WINDOWS = ("2 s", "5 s", "10 s", "30 s", "unlimited")
LINUX_WINDOWS = ("10 s",)


class StepCase(NamedTuple):
    """A law on a backend with a window, on a path that changes by a factor or at handovers."""

    protocol: str
    on: str
    window: str
    change: str


@dataclass(frozen=True)
class Kept:
    """Share kept in a run. On linux also the time (s) at which the flow left its law, or None, and
    the failed checks.
    """

    share: float
    left_s: float | None = None
    failed: list[str] = field(default_factory=list)


def laws() -> list[str]:
    """Return the laws whose rate is limited by a smallest RTT below the path's."""
    return [p.name for p in load().values() if p.base_rtt is not None and p.base_rtt.limits_rate]


def cases(options: Options, backend: Sequence[str] = ("sim", "fluid")) -> list[StepCase]:
    """Return a case for each law, backend that supports it, window and change."""
    changes = [*(f"{factor:g}" for factor in FACTORS), HANDOVERS]
    return [
        StepCase(protocol, on, window, change)
        for protocol in options.protocols or laws()
        for on in backend
        if protocol in (able := backends.known(on)) and on in able[protocol].backends
        for window in options.windows or (LINUX_WINDOWS if on == "linux" else WINDOWS)
        for change in changes
    ]


def events(change: str) -> list[dict[str, str]]:
    """Return the changes of the link's delay."""
    if change != HANDOVERS:
        return [{"at": f"{PERIOD_S} s", "delay": f"{DELAY_MS * float(change):g} ms"}]
    times = range(PERIOD_S, END_S, PERIOD_S)
    return [
        {"at": f"{at} s", "delay": f"{DELAY_MS * (1 if i % 2 else 2):g} ms"}
        for i, at in enumerate(times)
    ]


def runs(case: StepCase) -> dict[str, StudyRun]:
    """Return the run of a case."""
    link = {"name": "l", "from": "a", "to": "b", "rate": "50 Mbit/s", "delay": f"{DELAY_MS:g} ms"}
    document = {
        "name": "path steps",
        "protocol": case.protocol,
        "duration": f"{END_S} s",
        "measure": [f"{MEASURED_S} s", f"{END_S} s"],
        "base_rtt_window": case.window,
        "link": [{**link, "event": events(case.change)}],
        "flow": [{"name": "f", "from": "a", "to": "b"}],
    }
    return {"": StudyRun(from_dict(document, "path-steps"), case.on)}


def measure(_: StepCase, results: Mapping[str, Result]) -> Kept:
    """Return the share that the flow keeps."""
    result = results[""]
    flow = result.summary["flows"][0]
    share = float(flow["rate_bps"]) / float(flow["max_min_bps"])
    return Kept(share, left_s(result), failed_checks(result))


def shown(kept: Kept) -> str:
    """Return a share as text, with a mark of failed checks and the time at which the flow left its
    law.
    """
    mark = FAILED if kept.failed else ""
    left = "" if kept.left_s is None else f" (left at {kept.left_s:.0f} s)"
    return f"{kept.share:.2f}{mark}{left}"


def line(case: StepCase, kept: Kept) -> str:
    """Return a line of progress."""
    failed = f"; failed: {', '.join(kept.failed)}" if kept.failed else ""
    return f"{case.protocol} {case.on} {case.window} {case.change}: {shown(kept)}{failed}"


def table(found: Mapping[StepCase, Kept]) -> str:
    """Return the shares kept, with a column for each window, and the number of failed checks."""
    keys = dict.fromkeys((case.protocol, case.on, case.change) for case in found)

    def cell(protocol: str, on: str, window: str, change: str) -> str:
        kept = found.get(StepCase(protocol, on, window, change))
        return "—" if kept is None else shown(kept)

    rows = [
        [f"`{law}`", on, change if change == HANDOVERS else f"× {change}",
         *(cell(law, on, window, change) for window in WINDOWS)]
        for law, on, change in keys
    ]  # fmt: skip
    text = markdown("|".join(("law", "on", "delay", *WINDOWS)), rows)
    failed = Counter(name for kept in found.values() for name in kept.failed)
    if not failed:
        return text
    counts = ", ".join(f"{name} in {number}" for name, number in failed.most_common())
    runs = sum(bool(kept.failed) for kept in found.values())
    several = "runs" if runs > 1 else "run"
    return (
        f"{text.rstrip()}\n\n{FAILED} Checks of the testbed failed in {runs} {several}: {counts}."
    )


# A shorter delay costs nothing with any window, so it is not drawn.
DRAWN = {"2": "delay × 2", "5": "delay × 5", HANDOVERS: "handovers"}
COLOURS = {"2": "#0072B2", "5": "#D55E00", HANDOVERS: "#009E73"}
STYLES: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "sim": ("simulator", {"linestyle": "-", "linewidth": 1.0}),
    "fluid": ("fluid", {"linestyle": ":", "linewidth": 2.4}),
    "linux": ("kernel", {"linestyle": "", "marker": "x", "markersize": 6}),
}


def draw(found: Mapping[StepCase, Kept], stem: Path) -> None:
    """Draw the share kept against the window, with a panel per law and a line per change."""
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    from waterfill.analysis.draw import save

    names: Sequence[str] = list(dict.fromkeys(case.protocol for case in found))
    figure = Figure(figsize=(2.1 * len(names) + 1.0, 3.2), layout="constrained")
    axes = figure.subplots(1, len(names), sharey=True, squeeze=False)[0]
    for axis, name in zip(axes, names, strict=True):
        for change, colour in COLOURS.items():
            for on, (_, style) in STYLES.items():
                shares = {
                    place: 100 * found[case].share
                    for place, window in enumerate(WINDOWS)
                    if (case := StepCase(name, on, window, change)) in found
                }
                axis.plot(list(shares), list(shares.values()), color=colour, **style)
        axis.set_title(name, fontsize="medium", loc="left")
        axis.set_xticks(range(len(WINDOWS)), [w.replace("unlimited", "∞") for w in WINDOWS])
        axis.set_xlim(-0.3, len(WINDOWS) - 0.7)
        axis.set_ylim(0, 105)
        axis.grid(alpha=0.3)
    lines = [Line2D([], [], color=COLOURS[c], label=label) for c, label in DRAWN.items()]
    shown = [on for on in STYLES if any(case.on == on for case in found)]
    lines += [Line2D([], [], color="#444444", label=STYLES[on][0], **STYLES[on][1]) for on in shown]
    figure.legend(handles=lines, loc="outside upper center", ncols=len(lines), frameon=False)
    figure.supxlabel("window of the smallest RTT (∞: unlimited)", fontsize="medium")
    figure.supylabel("share kept (%)", fontsize="medium")
    save(figure, stem)


STUDY = Study(
    shows="the share that is kept after a path became longer, by the window of the smallest RTT",
    minutes=1,
    options=(
        Option("protocols", (), "default: every law that it limits", laws),
        Option("--windows", (), "default: all, on linux 10 s", WINDOWS),
    ),
    quick={"protocols": ("maxnet",)},
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
    minutes=30,
    needs=(on_linux(),),
    cases=lambda options: cases(options, BACKENDS),
)
