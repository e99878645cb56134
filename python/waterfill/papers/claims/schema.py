"""Keys of a claims.toml: figures, runs, the short version, and claims with their tolerances."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from waterfill.errors import shown
from waterfill.papers.measures.base import Dimension
from waterfill.scenario.units import number

if TYPE_CHECKING:
    from typing_extensions import Self

Relation: TypeAlias = Literal["=", "<", ">"]
Verdict: TypeAlias = Literal["reproduced", "differs", "cannot be checked"]
VERDICTS: tuple[Verdict, ...] = ("reproduced", "differs", "cannot be checked")

# Each unit's dimension and its size in SI.
UNITS: Mapping[str, tuple[Dimension, float]] = {
    "s": ("s", 1.0),
    "ms": ("s", 1e-3),
    "bit/s": ("bit/s", 1.0),
    "Mbit/s": ("bit/s", 1e6),
    "Gbit/s": ("bit/s", 1e9),
    "Pbit/s": ("bit/s", 1e15),
    "B": ("bytes", 1.0),
    "kB": ("bytes", 1e3),
    "MB": ("bytes", 1e6),
    "%": ("ratio", 1e-2),
    "ratio": ("ratio", 1.0),
    "times": ("count", 1.0),
    "packets": ("count", 1.0),
    "bits": ("count", 1.0),
    "rad/s": ("1/s", 1.0),
    "1/s": ("1/s", 1.0),
}


def _id(value: str) -> str:
    if not value or any(not (c.isascii() and c.isalnum()) and c not in "-." for c in value):
        raise ValueError(f"must have only letters, digits, - and ., got {shown(value)}")
    return value


Id = Annotated[str, AfterValidator(_id)]
Text = Annotated[str, Field(min_length=1)]
# A parameter of a law, as "maxnet.t", or several joined by " * ".
Product = Annotated[str, Field(pattern=r"^\w+\.\w+( \* \w+\.\w+)*$")]


def _tolerance(value: float | str) -> float | str:
    try:
        if isinstance(value, str) and not value.endswith("%"):
            raise ValueError
        number(float(value.removesuffix("%")) if isinstance(value, str) else value, minimum=0)
    except ValueError:
        wanted = 'a number or a share such as "5 %" of at least zero'
        raise ValueError(f"must be {wanted}, got {shown(value)}") from None
    return value


Tolerance = Annotated[float | str, AfterValidator(_tolerance)]


class Table(BaseModel):
    """A table of a claims.toml, or of another file of its kind. Unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class Figure(Table):
    """One [[figure]]: a plot that is written to NAME.png and NAME.svg."""

    name: Id
    plot: str
    run: str | None = None
    args: dict[str, Any] = {}


class ExperimentRun(Table):
    """One [[run]]: a scenario file of the experiment's folder, with overrides, and its backend.

    Without `short` it is not in the short version.
    """

    name: Text
    scenario: Text = "scenario.toml"
    on: Literal["sim", "fluid"] = "sim"
    set: list[str] = []
    short: bool = True


class Short(Table):
    """The [short] table: overrides of the short version, and the grid points that it keeps."""

    set: list[str] = []
    grid: dict[str, list[str | int | float | bool]] = {}


class OverSeeds(Table):
    """Recorded range of a claim over single runs with different seeds, in the claim's unit."""

    runs: int = Field(ge=2)
    least: float
    most: float

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.most < self.least:
            raise ValueError(f"most must be at least {self.least:g}, got {self.most:g}")
        return self

    def spans(self, boundaries: Iterable[float]) -> bool:
        """Return True if one of these boundaries is within the range."""
        return any(self.least < boundary < self.most for boundary in boundaries)

    def contains(self, value: float) -> bool:
        """Return True if a value is within the range, including its limits."""
        return self.least <= value <= self.most


def boundaries(relation: Relation, value: float, tolerance: float) -> tuple[float, ...]:
    """Return the measured values at which the verdict changes."""
    return {
        "=": (value - tolerance, value + tolerance),
        "<": (value + tolerance,),
        ">": (value - tolerance,),
    }[relation]


class Claim(Table):
    """One [[claim]]. The package's docstring explains its keys."""

    id: Id
    source: Text
    statement: Text
    sentence: Text | None = None
    beyond: Text | None = None
    run: str | None = None
    measure: str | None = None
    args: dict[str, Any] = {}
    in_force: dict[str, Product] = {}
    short: bool = True
    short_args: dict[str, Any] = {}
    unit: str | None = None
    relation: Relation = "="
    paper_value: float | None = None
    of: str | None = None
    tolerance: Tolerance = 0.0
    over_seeds: OverSeeds | None = None
    expect: Verdict
    why: Text | None = None
    insensitive: Text | None = None

    @property
    def tolerance_in_unit(self) -> float | None:
        """Maximum accepted distance from the paper's value, in `unit`, or None if the paper gives
        no value.
        """
        if self.paper_value is None:
            return None
        if isinstance(self.tolerance, str):
            return abs(self.paper_value) * float(self.tolerance.removesuffix("%")) / 100
        return self.tolerance


class File(Table):
    """The content of a whole claims.toml."""

    title: Text
    seeds: Annotated[int, Field(ge=1)] = 1
    grid: dict[str, list[str | int | float | bool]] = {}
    run: list[ExperimentRun] = []
    short: Short = Short()
    figure: list[Figure] = []
    claim: list[Claim] = Field(min_length=1)
