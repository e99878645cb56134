"""Run each case in ns-3 and in Waterfill, and table and judge the differences."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from validation.fabric_ns3 import cases, peer
from validation.fabric_ns3.cases import FabricCase
from validation.fabric_ns3.peer import Numbers
from validation.fabric_ns3.sides import AS_BUILT, FIFO, NS3, OURS, PAPER, measure
from validation.fct.report import interval
from validation.study import Option, Options, Study, only
from validation.tables import markdown

# Largest relative differences. A queue may also differ by one packet.
COMPLETION, QUEUE, SLOWDOWN = 0.03, 0.05, 0.10

# Classes of flows by size (bytes), and the percentiles of their slowdowns.
CLASSES = {
    "all": (0.0, np.inf),
    "below 100 kB": (0.0, 1e5),
    "100 kB to 1 MB": (1e5, 1e6),
    "above 1 MB": (1e6, np.inf),
}
PERCENTILES = (50, 95, 99)


def _last_us(case: FabricCase, row: Mapping[str, Any], side: str) -> float:
    """Return the time from the first start to the last completion (us)."""
    starts_s = np.array([flow.start_s for flow in case.flows])
    ends_s = starts_s + np.array(row[side]["times_s"], dtype=float)
    return float(ends_s.max() - starts_s.min()) * 1e6


def _percent(ours: float, theirs: float) -> str:
    return f"{100 * (ours / theirs - 1):+.1f}"


Found = Mapping[FabricCase, Mapping[str, Any]]


def _of(found: Found, kind: str, law: str) -> dict[FabricCase, Mapping[str, Any]]:
    return {case: row for case, row in found.items() if (case.kind, case.law) == (kind, law)}


def _incasts(found: Found) -> str:
    lines = []
    for case, row in found.items():
        if case.kind != "incast":
            continue
        more = f", payload {case.payload_bytes} B" * (case.payload_bytes != 1000)
        more += f", `max_stage` {case.max_stage}" * (case.max_stage != 5)
        last = _last_us(case, row, NS3)
        cells = [f"`{case.law}`, {case.number} ns{more}", f"{last:.0f}"]
        cells += [_percent(_last_us(case, row, side), last) for side in (OURS, PAPER)]
        cells += [f"{row[NS3]['queue']:,}", f"{row[OURS]['queue']:,.0f}"]
        as_built = row.get(AS_BUILT)
        if as_built is None:
            lines.append([*cells, "–", "–"])
        else:
            lines.append([*cells, _percent(_last_us(case, row, AS_BUILT), last),
                          f"{as_built['queue']:,}"])  # fmt: skip
    head = ("law, starts|ns-3: last us:|`ns3` %:|`paper` %:|ns-3: queue B:|`ns3`: queue B:|"
            "as built %:|as built: queue B:")  # fmt: skip
    return markdown(head, lines)


def _join_times_ms(found: Found, law: str, side: str) -> Numbers:
    """Return the completion times of flows that join: a row for each start."""
    rows = _of(found, "joins", law).values()
    return 1e3 * np.array([row[side]["times_s"] for row in rows], dtype=float)


def _joins(found: Found) -> str:
    lines = []
    for law in dict.fromkeys(case.law for case in found if case.kind == "joins"):
        for side in (NS3, OURS, PAPER):
            times_ms = _join_times_ms(found, law, side)
            lines.append([f"`{law}`, {side}", *(interval(list(flow)) for flow in times_ms.T)])
    return markdown("law, side|first flow: ms:|second:|third:|fourth:", lines)


def _slowdowns(found: Found, law: str, side: str) -> tuple[Numbers, Numbers]:
    """Return the slowdowns of completed flows of all seeds, and the flows' sizes (bytes)."""
    values, sizes = [], []
    for case, row in _of(found, "web-search", law).items():
        values += list(np.array(row[side]["times_s"], dtype=float) / row[OURS]["ideal_s"])
        sizes += [flow.packets * case.payload_bytes for flow in case.flows]
    slowdown = np.array(values)
    done = ~np.isnan(slowdown)
    return slowdown[done], np.array(sizes, dtype=float)[done]


def _spread(found: Found, law: str, side: str) -> Iterator[tuple[str, Numbers]]:
    slowdown, sizes = _slowdowns(found, law, side)
    for name, (low, high) in CLASSES.items():
        mine = slowdown[(sizes >= low) & (sizes < high)]
        if len(mine):
            yield name, np.percentile(mine, PERCENTILES)


def _web(found: Found) -> str:
    lines = []
    for law in dict.fromkeys(case.law for case in found if case.kind == "web-search"):
        base = dict(_spread(found, law, NS3))
        sides = next(iter(_of(found, "web-search", law).values()))
        for side in (NS3, OURS, FIFO, PAPER, AS_BUILT):
            if side not in sides:
                continue
            line = [f"`{law}`, {side}"]
            for name, values in _spread(found, law, side):
                line.append(" ".join(f"{value:.2f}" for value in values))
                if side != NS3:
                    line[-1] += f" ({', '.join(map(_percent, values, base[name]))} %)"
            lines.append(line)
    return markdown("law, side|" + "|".join(CLASSES), lines)


def text(found: Found) -> str:
    """Return the three tables."""
    parts = [
        ("Incast of ten flows", _incasts(found)),
        ("Flows that join", _joins(found)),
        (f"Web search: slowdown p{', p'.join(map(str, PERCENTILES))}", _web(found)),
    ]
    return "\n\n".join(f"### {title}\n\n{table}" for title, table in parts)


def failed(found: Found) -> Sequence[str]:
    """Return the differences between ns-3 and the reading `ns3` that are above the goal."""
    lines = []
    for case, row in found.items():
        for side in row:
            left = np.isnan(np.array(row[side]["times_s"], dtype=float)).sum()
            if left or row[side].get("drops"):
                lines.append(f"{case.name}: {side}: {left} unfinished, or drops")
        last, mine = _last_us(case, row, NS3), _last_us(case, row, OURS)
        if case.kind == "incast" and abs(mine / last - 1) > COMPLETION:
            lines.append(f"{case.name}: last completion {_percent(mine, last)} %")
        if case.kind == "incast":
            queue, mine = row[NS3]["queue"], row[OURS]["queue"]
            packet = case.payload_bytes + cases.HEADER_BYTES
            if abs(mine - queue) > max(packet, QUEUE * queue):
                lines.append(f"{case.name}: queue {_percent(mine, queue)} %")
    for law in dict.fromkeys(case.law for case in found if case.kind == "joins"):
        theirs, ours = (_join_times_ms(found, law, side).mean(axis=0) for side in (NS3, OURS))
        for number, (their, our) in enumerate(zip(theirs, ours, strict=True), 1):
            if abs(our / their - 1) > COMPLETION:
                lines.append(f"{law} joins: flow {number}: {_percent(our, their)} %")
    for law in dict.fromkeys(case.law for case in found if case.kind == "web-search"):
        ours_by_class = dict(_spread(found, law, OURS))
        for name, values in _spread(found, law, NS3):
            for percentile, theirs_, ours_ in zip(
                PERCENTILES, values, ours_by_class[name], strict=True
            ):
                if abs(ours_ / theirs_ - 1) > SLOWDOWN:
                    where = f"{law} web-search, {name}, p{percentile}"
                    lines.append(f"{where}: {_percent(ours_, theirs_)} %")
    return lines


def draw(found: Found, stem: Path) -> None:
    """Draw the slowdowns by size in both simulators: medians and 95th percentiles of deciles."""
    from matplotlib.figure import Figure

    from waterfill.analysis.draw import save

    figure = Figure(figsize=(8.4, 3.4), layout="constrained")
    axes = figure.subplots(1, len(cases.LAWS), sharey=True)
    looks = {NS3: ("black", "-"), OURS: ("#0072b2", "-"), PAPER: ("#d55e00", "--")}
    for axis, law in zip(axes, cases.LAWS, strict=True):
        for side, (color, style) in looks.items():
            slowdown, sizes = _slowdowns(found, law, side)
            if len(slowdown) < 10:
                continue
            parts = np.array_split(np.argsort(sizes, kind="stable"), 10)
            middles = [np.median(sizes[part]) / 1e3 for part in parts]
            for percentile, width in ((50, 1.8), (95, 0.9)):
                values = [np.percentile(slowdown[part], percentile) for part in parts]
                label = f"{side}" if percentile == 50 else None
                axis.plot(middles, values, style, color=color, linewidth=width, label=label)
        axis.set(xscale="log", yscale="log", title=law, xlabel="size (kB), deciles")
    axes[0].set_ylabel("slowdown: median (thick), 95th percentile")
    axes[0].legend(frameon=False)
    save(figure, stem)


def chosen(options: Options) -> list[FabricCase]:
    """Return the cases."""
    return cases.cases(vars(options))


STUDY = Study(
    shows="HPCC and PowerTCP next to their authors' code in ns-3, with the same flows",
    minutes=15,
    needs=(peer.NS3_DATACENTER,),
    options=(
        Option("--seeds", 3, "use seeds 1 to this one of web search", low=1),
        only("hpcc incast *"),
    ),
    quick={"seeds": 1},
    cases=chosen,
    measure=measure,
    code=lambda: hashlib.sha256(peer.program().read_bytes()).hexdigest(),
    table=text,
    figure=draw,
    failed=failed,
)
