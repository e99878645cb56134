"""Means over seeds with 95 % intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple


class Estimate(NamedTuple):
    """A mean over seeds, half of its 95 % interval (Student's t), and the number of seeds.

    `half` is None with fewer than two seeds.
    """

    mean: float
    half: float | None
    seeds: int

    def spans(self, value: float) -> bool:
        """Return True if a value is inside the interval, which is then no evidence for a side."""
        return bool(self.half) and abs(self.mean - value) <= (self.half or 0.0)


def estimate(numbers: Sequence[float]) -> Estimate:
    """Return the mean of independent numbers with half of its 95 % interval."""
    count = len(numbers)
    mean = math.fsum(numbers) / count
    if count < 2:
        return Estimate(mean, None, count)
    from scipy.special import stdtrit

    variance = math.fsum((number - mean) * (number - mean) for number in numbers) / (count - 1)
    return Estimate(mean, float(stdtrit(count - 1, 0.975)) * math.sqrt(variance / count), count)
