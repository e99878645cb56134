"""Verdicts as texts: a limit's numbers, boundaries, cells by their values, the cells that fail."""

from __future__ import annotations

import re
from typing import Any

from waterfill.evaluation.verdict import (
    Boundary,
    Calibration,
    CellVerdict,
    CriterionVerdict,
    LimitVerdict,
    Sensitivity,
)

# Words for the last part of a key; others are the part itself.
_WORDS = {
    "ack_aggregation": "ACK aggregation", "count": "flows", "delay": "one-way delay", "ecn": "ECN",
    "reorder.delay": "reordering delay", "rtt": "RTT",
}  # fmt: skip
_TOO = " (misses it too)"
_NUMBER = re.compile(r"\d+\.\d+")


def value(number: float | None) -> str:
    """Return a value with four digits; None is "never", since it was not reached."""
    return "never" if number is None else f"{number:.4g}"


def unit(limit: LimitVerdict) -> str:
    """Return a limit's unit after a space, or an empty text for a ratio."""
    return "" if limit.unit == "ratio" else f" {limit.unit}"


def measured(limit: LimitVerdict) -> str:
    """Return a limit's name and value, with half of the interval if there is one."""
    half = ""
    if limit.interval is not None and limit.interval[1] > limit.interval[0]:
        half = f" ± {(limit.interval[1] - limit.interval[0]) / 2:.2g}"
    suffix = "" if limit.value is None else unit(limit)
    return f"{limit.id.replace('-', ' ')} {value(limit.value)}{half}{suffix}"


def bound(limit: LimitVerdict) -> str:
    """Return the value that a limit allows, such as "< 48 ms"."""
    slack = f" ± {limit.tolerance:.3g}" if limit.tolerance else ""
    return f"{limit.relation} {value(limit.limit)}{slack}{unit(limit)}"


def axis(key: str) -> str:
    """Return a short name of an axis, such as "buffer" for "link.l.buffer".

    A key of a flow or source that is not the law's has its name too: "RTT of long".
    """
    keys = [part.strip().split(".", 2) for part in key.split(",")]
    if any(len(parts) < 3 for parts in keys):
        return key
    section, owner, last = keys[0]
    word = _WORDS.get(last, last.replace("_", " "))
    if section == "link" or owner == "law" or len(keys) > 1:
        return word
    return f"{word} of {owner}"


def setting(key: str, value: Any) -> str:
    """Return a value of an axis with the axis's name, such as "buffer 1 bdp"."""
    word = axis(key)
    if word.startswith("flows"):
        return f"{value} {word}" if value != 1 else f"1 {word.replace('flows', 'flow')}"
    return f"next to {value}" if key == "rival" else f"{word} {value}"


def titled(one: CellVerdict) -> str:
    """Return a cell's values with the names of their axes, or the cell's name if it has none."""
    return ", ".join(setting(key, value) for key, value in one.values_.items()) or one.name


def others(limit: LimitVerdict) -> str:
    """Return the value with each other law in the law's place, and which of them miss the limit
    too.
    """
    missed = limit.verdict == "not met"
    return ", ".join(
        f"{name} {value(number)}{_TOO if missed and limit.is_missed_by(number) else ''}"
        for name, number in limit.others.items()
    )


def deciding(one: CriterionVerdict) -> str:
    """Return the number that decides a criterion, with its limit and its cell."""
    if one.deciding is None:
        return "no value"
    cell, limit = one.deciding
    at = f"{titled(cell)}: " if len(one.cells) > 1 else ""
    compared = [f"limit {bound(limit).removesuffix(unit(limit))}"]
    compared += [others(limit)] if others(limit) else []
    return f"{at}{measured(limit)} ({'; '.join(compared)})"


def boundaries(one: CriterionVerdict) -> list[str]:
    """Return a line for each place where a criterion's verdict changes along a numeric axis."""
    return [_boundary(boundary) for boundary in one.boundaries]


def _boundary(one: Boundary) -> str:
    where = ", ".join(setting(key, value) for key, value in one.where.items())
    low, high = (_NUMBER.sub(_short, f"{end}", count=1) for end in (one.low, one.high))
    text = f"{axis(one.axis)}: {one.below} up to {low}, {one.above} from {high}"
    return f"{text} ({where})" if where else text


def _short(found: re.Match[str]) -> str:
    """Return a fraction with four digits: a boundary is known to 10 %."""
    return f"{float(found[0]):.4g}"


def failing(one: CriterionVerdict, most: int = 4) -> str:
    """Return the grid's cells that fail by their values, of many the first ones."""
    names = [titled(cell) for cell in one.cells if cell.verdict == "fails" and not cell.added]
    left = len(names) - most
    return "; ".join(names[:most]) + (f"; and {left} more" if left > 0 else "")


def parameter(one: Sensitivity) -> str:
    """Return a changed parameter, such as "beta 0.7 → 0.56"."""
    unit = {"rate": " bit/s", "time": " s", "volume": " B", "packets": " packets"}.get(one.unit, "")
    return f"{one.parameter} {one.default:.4g} → {one.value:.4g}{unit}"


def sensitive(one: Sensitivity) -> list[str]:
    """Return a line for each verdict that a parameter changes, or why there is none."""
    if one.refused is not None:
        return [f"not possible: {one.refused}"]
    lines = [
        f"{change.section} {change.title}: {change.before} → {change.after}"
        if change.before != change.after
        else f"{change.section} {change.title}: {change.after}, other in {', '.join(change.cells)}"
        for change in one.changes
    ]
    return lines or ["none"]


def agreement(one: Calibration) -> str:
    """Return whether a calibration agrees with its formula, with the difference allowed."""
    word = "yes" if one.met else "NO"
    return f"{word}, {one.measured / one.expected - 1:+.1%} of ± {one.tolerance:.0%}".replace(
        "%", " %"
    )
