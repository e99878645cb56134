"""Keys of a suite.toml and of a criterion's file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from pydantic import Field, model_validator

from waterfill.papers.claims.schema import Claim, Id, Relation, Table, Text, Tolerance

if TYPE_CHECKING:
    from typing_extensions import Self

MAX_SEEDS = 10
"""Number of seeds after which a cell is judged in any case."""

Value: TypeAlias = "str | int | float | bool"
GridValues: TypeAlias = "dict[str, list[str | int | float | bool]]"
SubjectKind: TypeAlias = Literal["law", "queue"]
Other: TypeAlias = Literal["reference", "rival"]

_SIGNS = {"<": "below", ">": "above", "=": "equal to"}
_OTHERS = {"reference": "the reference's", "rival": "the rival's own"}


class SuiteFile(Table):
    """The content of a suite.toml.

    `subject` says what the suite evaluates: a law, or a link's queue discipline. `against` are the
    laws or queues to compare with, of which the first is the reference. `seeds` is the number of
    seeds that each cell has at least.
    """

    name: Id
    version: Text
    title: Text
    subject: SubjectKind = "law"
    against: list[Text] = Field(min_length=1)
    seeds: Annotated[int, Field(ge=1, le=MAX_SEEDS)] = 3


class Quick(Table):
    """The [quick] table: overrides and grid points of `--quick`. With `skip` the criterion is left
    out.
    """

    set: list[str] = Field(default_factory=list)
    grid: GridValues = Field(default_factory=dict)
    skip: bool = False


class Limit(Table):
    """One [[limit]]: a measure of the law's run and the value that it must not cross.

    With `of`, `limit` is a factor of the same measure on another run of the cell: in "reference"
    the reference law is in the law's place, in "rival" the cell's rival is. `where` restricts the
    limit to cells with these values of the grid. With `about = "law"` it is on the law's own use of
    the path, also where the criterion is on harm to others.
    """

    id: Id
    measure: Text
    args: dict[str, Any] = Field(default_factory=dict)
    unit: Text
    relation: Relation = "<"
    limit: float
    of: Other | None = None
    tolerance: Tolerance = 0.0
    source: Text
    statement: Text | None = None
    where: GridValues = Field(default_factory=dict)
    about: Literal["law"] | None = None

    def claim(self) -> Claim:
        """Return the limit as a claim about the run `law`."""
        return Claim(
            id=self.id,
            source=self.source,
            statement=self.statement or self.text(),
            run="law",
            measure=self.measure,
            args=self.args,
            unit=self.unit,
            relation=self.relation,
            paper_value=self.limit,
            of=self.of,
            tolerance=self.tolerance,
            expect="reproduced",
        )

    def text(self) -> str:
        """Return the limit as a text such as "queueing delay below 48 ms"."""
        unit = "" if self.unit == "ratio" else f" {self.unit}"
        value = f"{self.limit:g}{unit}"
        if self.of is not None:
            value = f"{self.limit:g} × {_OTHERS[self.of]}"
        if self.tolerance:
            slack = f"{self.tolerance}" if isinstance(self.tolerance, str) else None
            value += f" ± {slack or f'{self.tolerance:g}{unit}'}"
        return f"{self.id.replace('-', ' ')} {_SIGNS[self.relation]} {value}"


class CriterionFile(Table):
    """The content of a criterion's file: a scenario with limits, or why there is none."""

    title: Text
    section: Text
    question: Text
    scenario: Text | None = None
    set: list[str] = Field(default_factory=list)
    grid: GridValues = Field(default_factory=dict)
    quick: Quick = Quick()
    limit: list[Limit] = Field(default_factory=list)
    not_evaluated: Text | None = None

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.not_evaluated is not None:
            if self.limit or self.scenario is not None:
                raise ValueError("has limits or a scenario, got not_evaluated too; remove one")
        elif self.scenario is None or not self.limit:
            raise ValueError("needs a scenario and a [[limit]], or not_evaluated = REASON")
        for axis, values in (*self.grid.items(), *self.quick.grid.items()):
            if not values or len(set(map(str, values))) < len(values):
                raise ValueError(f"needs different values of {axis} in its grid, got {values}")
        return self
