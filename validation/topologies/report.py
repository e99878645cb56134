"""Tables that compare each law with max-min, summarize the exceptions, and list every exception."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from statistics import median

from validation.tables import markdown
from validation.topologies.reasons import REASONS, WITHIN, Reason
from validation.topologies.running import Record

Explained = tuple[Record, Sequence[Reason]]
# Of a reason: what its number is.
EVIDENCE = {
    "rtt": "distance from the prediction",
    "fixed point": "distance from the fixed point",
    "residues": "distance from the fixed point beyond the residues' effect",
    "overload": "distance from the prediction, less the counting error",
    "not settled": "drift, its own or the network's",
    "swings": "standard deviation over mean",
    "start": "change with other starts",
    "unexplained": "drift",
}


def summary(rows: Iterable[Explained]) -> str:
    """Return a table with a row per law: networks, flows within 2 %, the worst flow, and
    exceptions.
    """
    lines: list[list[object]] = []
    for law, mine in by_law(rows).items():
        errors = {record.network: abs(record.errors) for record, _ in mine}
        worst, _ = max(mine, key=lambda row: float(max(abs(row[0].errors))))
        flow = worst.names[int(errors[worst.network].argmax())]
        good = sum(bool((each <= WITHIN).all()) for each in errors.values())
        within = sum(int((each <= WITHIN).sum()) for each in errors.values())
        of = sum(map(len, errors.values()))
        most = f"{errors[worst.network].max():.1%} ({worst.network}, {flow})"
        lines.append([law, len(mine), good, f"{within} of {of}", most, counted(mine)])
    head = "law|networks:|all flows within 2 %:|flows within 2 %:|worst flow|exceptions"
    return markdown(head, lines)


def evidence(rows: Iterable[Explained]) -> str:
    """Return a table with a row per law and reason: number of flows, and median and largest
    evidence.
    """
    lines: list[list[object]] = []
    for law, mine in by_law(rows).items():
        for name in REASONS:
            found = [(r.network, x) for r, reasons in mine for x in reasons if x.reason == name]
            if found:
                numbers = [x.evidence for _, x in found]
                most = f"{max(abs(x.error) for _, x in found):.1%}"
                networks = len({network for network, _ in found})
                shown = f"{median(numbers):.2%}", f"{max(numbers):.2%}"
                lines.append([law, name, len(found), networks, most, EVIDENCE[name], *shown])
    head = "law|reason|flows:|networks:|largest error:|evidence|median:|largest:"
    return markdown(head, lines)


def exceptions(rows: Iterable[Explained]) -> str:
    """Return every exception as a row of CSV."""
    lines = ["law,network,ended_s,flow,error,reason,evidence"]
    lines += [
        f'{record.law},{record.network},{record.ended_s:g},"{x.flow}",{x.error:.4f},{x.reason},{x.evidence:.5f}'
        for record, reasons in rows for x in reasons
    ]  # fmt: skip
    return "\n".join(lines)


def by_law(rows: Iterable[Explained]) -> Mapping[str, list[Explained]]:
    """Return the rows grouped by law, in order."""
    found: defaultdict[str, list[Explained]] = defaultdict(list)
    for row in rows:
        found[row[0].law].append(row)
    return found


def counted(rows: Iterable[Explained]) -> str:
    """Return the reasons with the number of exceptions of each."""
    counts = Counter(x.reason for _, reasons in rows for x in reasons)
    return ", ".join(f"{name} {counts[name]}" for name in REASONS if counts[name]) or "none"
