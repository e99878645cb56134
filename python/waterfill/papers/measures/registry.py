"""Measures that claims.toml can name."""

from __future__ import annotations

from collections.abc import Mapping

from waterfill.papers.measures import several
from waterfill.papers.measures.base import Measure, by_name
from waterfill.papers.measures.single import SINGLE

MEASURES: Mapping[str, Measure] = by_name(
    *SINGLE.values(),
    Measure(several.ratio, "ratio", "runs"),
    Measure(several.largest_of, "ratio", "runs"),
    Measure(several.smallest_of, "ratio", "runs"),
    Measure(several.ratio_difference, "ratio", "runs"),
    Measure(several.time_difference, "s", "runs"),
    Measure(several.count_rate_difference, "1/s", "runs"),
    Measure(several.largest_rise, "ratio", "runs"),
    Measure(several.drops_in_runs, "count", "runs"),
)
