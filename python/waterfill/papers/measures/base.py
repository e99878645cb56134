"""Definition of a measure: its function, its dimension, and its arguments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

from pydantic import AfterValidator

from waterfill.errors import shown

Dimension: TypeAlias = Literal["s", "1/s", "bit/s", "bytes", "ratio", "count"]
Of: TypeAlias = Literal["run", "runs", "nothing"]
Window: TypeAlias = tuple[float, float]


def _percentile(value: float) -> float:
    if not 0 <= value <= 100:
        raise ValueError(f"must be from 0 to 100, got {shown(value)}")
    return value


Percentile: TypeAlias = Annotated[float, AfterValidator(_percentile)]


@dataclass(frozen=True)
class Measure:
    """One measure: its function, its value's dimension, and the kind of its first argument.

    `of` is "run" for one run, "runs" for all runs of the experiment by name, and "nothing" for a
    computation, whose arguments are all keywords.
    """

    function: Callable[..., float | None]
    dimension: Dimension
    of: Of = "run"

    @property
    def name(self) -> str:
        """Name of the measure's function, which claims.toml uses."""
        return self.function.__name__


def by_name(*measures: Measure) -> dict[str, Measure]:
    """Return the measures by name; raise ValueError if two have the same name."""
    named = {measure.name: measure for measure in measures}
    if len(named) != len(measures):
        raise ValueError("two measures have the same name")
    return named
