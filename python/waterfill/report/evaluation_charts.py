"""Charts of an evaluation: a limit's value over a numeric axis, for the law and its rivals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from waterfill.analysis.charts import BLACK, BLUE, GREEN, RED, Chart, Line, Role, wide
from waterfill.evaluation.boundary import scale
from waterfill.evaluation.text import axis as title
from waterfill.evaluation.text import setting, unit
from waterfill.evaluation.verdict import CellVerdict, CriterionVerdict, LimitVerdict

_MAX_PANELS = 9
_COLOURS = (RED, GREEN)
_TOP = 1.1
"""Height of the cross of a value that was never reached, as a factor of the largest value."""

Point = tuple[float, CellVerdict, LimitVerdict]


def charts(criterion: CriterionVerdict, law: str, key: str) -> list[Chart]:
    """Return the charts of the limit that decides a criterion, over the numeric axis with the most
    values: one for each combination of the other axes, up to nine. The list is empty if the
    criterion has no numeric axis.
    """
    if criterion.deciding is None:
        return []
    wanted = criterion.deciding[1].id
    axis, numbers, name = _axis(criterion)
    if axis is None:
        return []
    every = [(key, value) for cell in criterion.cells for key, value in cell.values_.items()]
    varying = {key for key, value in every if any(key == k and value != v for k, v in every)}
    panels: dict[str, list[Point]] = {}
    for cell in criterion.cells:
        limit = next((one for one in cell.limits if one.id == wanted), None)
        if limit is not None:
            others = [
                setting(key, value)
                for key, value in cell.values_.items()
                if key != axis and key in varying
            ]
            place = numbers[cell.values_[axis]]
            panels.setdefault(", ".join(others), []).append((place, cell, limit))
    panels = {label: points for label, points in panels.items() if len(points) > 1}
    left = len(panels) - _MAX_PANELS
    return [
        _chart(f"{key}-{place}", (name, label), law, points, left if place == 0 else 0)
        for place, (label, points) in enumerate(list(panels.items())[:_MAX_PANELS])
    ]


def _axis(criterion: CriterionVerdict) -> tuple[str | None, Mapping[Any, float], str]:
    """Return the axis of the boundaries, or else the numeric axis with the most values, with the
    number of each value and the axis's label; None if no axis is numeric.
    """
    cells = criterion.cells
    axes = dict.fromkeys(axis for cell in cells for axis in cell.values_)
    best: tuple[str | None, Mapping[Any, float], str] = (None, {}, "")
    for axis in axes:
        values = list(dict.fromkeys(cell.values_[axis] for cell in cells if axis in cell.values_))
        found = scale(axis, values)
        if found is None or any(axis not in cell.values_ for cell in cells):
            continue
        span, numbers = found
        label = f"{title(axis)} ({span.unit})" if span.unit else title(axis)
        if any(one.axis == axis for one in criterion.boundaries):
            return axis, numbers, label
        if len(numbers) > len(best[1]):
            best = (axis, numbers, label)
    return best


def _chart(key: str, names: tuple[str, str], law: str, points: Sequence[Point], left: int) -> Chart:
    axis, label = names
    points = sorted(points, key=lambda point: point[0])
    x = np.array([place for place, _, _ in points])
    limits = [limit for _, _, limit in points]
    # Two cells say nothing of what lies between them.
    role: Role = "marked" if len(points) > 2 else "points"
    lines = [Line("limit", _values(limit.limit for limit in limits), BLACK, "share", x)]
    values = _values(limit.value for limit in limits)
    low, high = (
        _values(limit.value if limit.interval is None else limit.interval[end] for limit in limits)
        for end in (0, 1)
    )
    has_interval = any(limit.interval is not None for limit in limits)
    edges = (low, high) if has_interval else (None, None)
    lines.append(Line(law, values, BLUE, role, x, *edges))
    others = dict.fromkeys(name for limit in limits for name in limit.others if name != law)
    for colour, name in zip(_COLOURS, others, strict=False):
        theirs = _values(limit.others.get(name) for limit in limits)
        lines.append(Line(name, theirs, colour, role, x))
    every = [float(y) for line in lines for y in line.y if np.isfinite(y)]
    failed = [limit.verdict == "not met" for limit in limits]
    has_top = any(
        fails and limit.value is None for fails, limit in zip(failed, limits, strict=True)
    )
    if any(failed):
        crosses = np.where(np.isfinite(values), values, _TOP * max(every))
        there = np.where(failed, crosses, np.nan)
        lines.append(Line("limit not met", there, BLACK, "failed", x))
    quantity = limits[0].id.replace("-", " ")
    more = "means over the seeds, with the 95 % interval of the law" if has_interval else "one seed"
    more += "; a cross at the top was never reached" if has_top else ""
    more += f"; {left} other combinations are in the table" if left > 0 else ""
    return Chart(
        key, f"{quantity}: {label}" if label else quantity, axis, quantity + _in(limits[0]),
        lines=lines, more=more, small=bool(label), log_x=wide(place for place, _, _ in points),
        log_y=wide(every) and min(every) > 0, from_zero=True,
    )  # fmt: skip


def _in(limit: LimitVerdict) -> str:
    return f" ({unit(limit).strip()})" if unit(limit) else ""


def _values(found: Iterable[float | None]) -> np.ndarray[Any, np.dtype[np.float64]]:
    return np.array([np.nan if value is None else value for value in found], dtype=np.float64)
