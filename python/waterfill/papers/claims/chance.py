"""What chance does to a claim: its values over several seeds, and what a single run can tell.

Where a scenario is random, an experiment runs it with several seeds and a claim's value is the
mean over them. A paper, though, prints what one run gave, and no seed. Where single runs of one
and the same scenario come out on both sides of the place where the verdict changes, neither
verdict is right: a number of one run does not tell. So a claim may have on record where single
runs lie, in its unit,

    over_seeds = { runs = 15, least = 96.2, most = 97.8 }

and *cannot be checked* is the verdict when

- an edge of the tolerance is between the least and the most of them, and
- the value measured now is between them too: what has left the record is judged by its value.

The tolerance has no part in this, and chance none in the tolerance. `make seeds` measures the
records again, and fails where they are not what it finds.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, Field, model_validator

if TYPE_CHECKING:
    from typing_extensions import Self


class OverSeeds(BaseModel):
    """Where single runs lie, each with a seed of its own, in the claim's unit."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    runs: int = Field(ge=2)
    least: float
    most: float

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.most < self.least:
            raise ValueError(f"expected most to be {self.least:g} or more, got {self.most:g}")
        return self

    def parted_by(self, edges: Iterable[float]) -> bool:
        """Whether single runs lie on both sides of one of these edges."""
        return any(self.least < edge < self.most for edge in edges)

    def holds(self, value: float) -> bool:
        """Whether a value is between the least and the most."""
        return self.least <= value <= self.most


def seeds(seed: int, count: int) -> list[int]:
    """The seeds of an experiment's runs: 1 … n for seed 1, n + 1 … 2n for seed 2, and so on.

    So what two seeds give has no run in common. Those of seed 0 are at the end of the range.
    """
    return [((seed - 1) * count + 1 + place) % 2**63 for place in range(count)]


def mean(values: Sequence[float | None]) -> float | None:
    """The mean over runs; None when one of them could not be measured, else it may be infinite."""
    known = [value for value in values if value is not None]
    return statistics.fmean(known) if known and len(known) == len(values) else None
