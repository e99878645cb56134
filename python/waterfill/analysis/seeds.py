"""Statistics of a comparison over several seeds: means, intervals and significance.

A figure's interval is that of Student's t at 95 %. Two protocols are compared by a paired t-test
over the seeds, since both meet the same random events; p-values of all pairs of one quantity are
corrected by Benjamini and Yekutieli (2001), so that of the differences called significant at most
5 % are expected to be chance, however the tests depend on each other.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

import numpy as np

from waterfill.analysis.documents import Difference, Estimate, Figures
from waterfill.errors import InputError

CONFIDENCE = 0.95
_UNBOUNDED = (-math.inf, math.inf)
BOUNDS: Mapping[str, tuple[float, float]] = {
    key: (0.0, 1.0) for key in ("jain_index", "jain_index_of_shares", "loss_rate")
}
"""Quantities whose values, and so whose intervals, are limited."""
# Beyond any use, and the seeds would no longer fit memory: more is a typing error.
MAX_SEEDS = 10_000


def seeds(first: int, count: int) -> list[int]:
    """Return the seeds of a comparison; raise InputError unless there are 1 to 10,000."""
    if not 1 <= count <= MAX_SEEDS:
        message = f"must be 1 to {MAX_SEEDS} seeds, got {count}"
        raise InputError("command line", "seeds", message)
    return list(range(first, first + count))


def quantities(figures: Figures) -> dict[str, float | None]:
    """Return the quantities that are compared over seeds, from a run's comparison figures. Infinity
    becomes None.
    """
    found: dict[str, float | None] = {
        "utilization": figures.utilization,
        "queue_bytes.mean": figures.queue_bytes.mean,
        "queue_bytes.p99": figures.queue_bytes.p99,
        "drops": float(figures.drops),
        "jain_index": figures.jain_index,
        "jain_index_of_shares": figures.jain_index_of_shares,
        "share_ratio.worst": figures.share_ratio.worst,
        "settling_s.worst": figures.settling_s.worst,
        "start_up_s.median": figures.start_up_s.median,
    }
    if figures.hosts:
        found |= {
            "loss_rate": figures.hosts.loss_rate,
            "resent_bytes": float(figures.hosts.resent_bytes),
            "timeouts": float(figures.hosts.timeouts),
        }
    if figures.transfers:
        slowdown = figures.transfers.slowdown
        found |= {"slowdown.p50": slowdown.p50, "slowdown.p99": slowdown.p99}
    return {
        name: None if value is None or not math.isfinite(value) else value
        for name, value in found.items()
    }


def estimate(values: Sequence[float | None], bounds: tuple[float, float] = _UNBOUNDED) -> Estimate:
    """Return a quantity's mean over the seeds and its 95 % interval (Student's t); None where
    undefined.

    The interval ends at `bounds`, between which all values lie.
    """
    known = [value for value in values if value is not None]
    if len(known) < len(values) or not known:
        return Estimate(values_=list(values), mean=None, interval=None)
    mean = math.fsum(known) / len(known)
    if len(known) < 2:
        return Estimate(values_=list(values), mean=mean, interval=None)
    from scipy.special import stdtrit  # scipy.stats would load for a second

    error = float(np.std(known, ddof=1)) / math.sqrt(len(known))
    half = float(stdtrit(len(known) - 1, (1 + CONFIDENCE) / 2)) * error
    interval = [max(mean - half, bounds[0]), min(mean + half, bounds[1])]
    return Estimate(values_=list(values), mean=mean, interval=interval)


def estimates(runs: Mapping[str, Sequence[Figures]]) -> dict[str, dict[str, Estimate]]:
    """Return {protocol: {quantity: estimate}} from {protocol: figures of each seed}."""
    found: dict[str, dict[str, Estimate]] = {}
    for name, of_seeds in runs.items():
        rows = [quantities(figures) for figures in of_seeds]
        found[name] = {
            key: estimate([row[key] for row in rows], BOUNDS.get(key, _UNBOUNDED))
            for key in rows[0]
        }
    return found


def differences(found: Mapping[str, Mapping[str, Estimate]]) -> list[Difference]:
    """Compare all pairs of protocols in each quantity that is known for all seeds. At least two
    seeds are needed.
    """
    rows: list[Difference] = []
    names = list(found)
    for quantity in next(iter(found.values()), {}):
        mine: list[Difference] = []
        for first, second in itertools.combinations(names, 2):
            one, other = found[first][quantity], found[second][quantity]
            if one.mean is None or other.mean is None or len(one.values_) < 2:
                continue
            pairs = zip(one.values_, other.values_, strict=True)
            apart = np.array([a - b for a, b in pairs if a is not None and b is not None])
            mine.append(
                Difference(
                    quantity=quantity, first=first, second=second,
                    difference=float(apart.mean()), p=_paired(apart), significant=False,
                )
            )  # fmt: skip
        rows += _corrected(mine)
    return rows


def _paired(apart: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
    """Return the p-value of a paired t-test of these differences, one per seed."""
    from scipy import stats

    spread, mean = float(apart.std(ddof=1)), float(apart.mean())
    # The same in every seed, but for rounding: chance has no part in it.
    if spread <= 1e-12 * max(abs(mean), float(np.abs(apart).max(initial=0.0))):
        return 1.0 if mean == 0 else 0.0
    return float(stats.ttest_1samp(apart, 0.0).pvalue)


def _corrected(rows: list[Difference]) -> list[Difference]:
    if not rows:
        return []
    from scipy import stats

    corrected = stats.false_discovery_control([row.p for row in rows], method="by")
    return [
        Difference.read({**row, "p": float(p), "significant": bool(p <= 1 - CONFIDENCE)})
        for row, p in zip(rows, corrected, strict=True)
    ]
