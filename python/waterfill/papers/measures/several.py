"""Measures over several runs of one experiment, which compare a measure between runs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from waterfill.analysis.series import numbers
from waterfill.papers.measures.single import SINGLE

if TYPE_CHECKING:
    from waterfill.runs.result import Result


def ratio(
    runs: Mapping[str, Result],
    *,
    measure: str,
    of: str,
    to: str,
    args: dict[str, Any],
    to_args: dict[str, Any] | None = None,
) -> float | None:
    """Return a measure of the run `of` ÷ the same measure of the run `to`."""
    function = SINGLE[measure].function
    above = function(runs[of], **args)
    below = function(runs[to], **(args if to_args is None else to_args))
    if above is None or below is None:
        return None
    return above / below if below else math.inf


def largest_of(
    runs: Mapping[str, Result], *, measure: str, of: list[str], args: dict[str, Any]
) -> float | None:
    """Return the largest value of a ratio measure over several runs."""
    values = _each(runs, measure, of, args)
    return max(values) if values else None


def smallest_of(
    runs: Mapping[str, Result], *, measure: str, of: list[str], args: dict[str, Any]
) -> float | None:
    """Return the smallest value of a ratio measure over several runs."""
    values = _each(runs, measure, of, args)
    return min(values) if values else None


def _each(
    runs: Mapping[str, Result], measure: str, of: list[str], args: dict[str, Any]
) -> list[float]:
    """Return a measure of each of several runs, or an empty list if one run cannot be measured."""
    values = [SINGLE[measure].function(runs[name], **args) for name in of]
    known = [value for value in values if value is not None]
    return known if len(known) == len(values) else []


def ratio_difference(
    runs: Mapping[str, Result], *, measure: str, of: str, to: str, args: dict[str, Any]
) -> float | None:
    """Return a ratio measure of the run `of` minus the same measure of the run `to`."""
    return _difference(runs, measure, of, to, args)


def time_difference(
    runs: Mapping[str, Result], *, measure: str, of: str, to: str, args: dict[str, Any]
) -> float | None:
    """Return a time measure (s) of the run `of` minus the same measure of the run `to`."""
    return _difference(runs, measure, of, to, args)


def count_rate_difference(
    runs: Mapping[str, Result], *, measure: str, of: str, to: str, args: dict[str, Any]
) -> float | None:
    """Return a measure in 1/s of the run `of` minus the same measure of the run `to`."""
    return _difference(runs, measure, of, to, args)


def largest_rise(
    runs: Mapping[str, Result], *, measure: str, of: list[str], args: dict[str, Any]
) -> float | None:
    """Return the largest increase of a ratio measure from one run to the next."""
    function = SINGLE[measure].function
    values = [function(runs[name], **args) for name in of]
    known = [value for value in values if value is not None]
    return float(np.diff(known).max()) if len(known) == len(values) > 1 else None


def drops_in_runs(runs: Mapping[str, Result], *, of: list[str] | None = None) -> float | None:
    """Return the number of packets that all queues dropped in these runs (default: all runs)."""
    tables = [runs[name].links for name in (of or runs)]
    return sum(float(np.nansum(numbers(table, "drops"))) for table in tables)


def _difference(
    runs: Mapping[str, Result], measure: str, of: str, to: str, args: dict[str, Any]
) -> float | None:
    function = SINGLE[measure].function
    left, right = function(runs[of], **args), function(runs[to], **args)
    return None if left is None or right is None else left - right
