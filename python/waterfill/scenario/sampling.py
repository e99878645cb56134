"""The key `series`: the size of the time series, and the links that have one."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any

from pydantic import Field, GetCoreSchemaHandler, GetJsonSchemaHandler, model_serializer
from pydantic_core import CoreSchema, core_schema

from waterfill.scenario.table import Table
from waterfill.scenario.units import SPAN, VOLUME

BUDGET = replace(VOLUME, example="1 GB", zero=False, whole=True)


class SeriesKeys(Table):
    """The table of `series`."""

    links: Annotated[list[str], Field(min_length=1)] | None = None
    """Names of the links with time series, in which * stands for any text, such as "h0-*"; default:
    all. A name chooses both directions, NAME:rev the reverse one. The summary has all links."""
    step: Annotated[float, replace(SPAN, example="1 us")] | None = None
    """Sampling interval of these links (s), of which `sample` is a multiple; default: `sample`."""
    size: Annotated[float, BUDGET] | None = None
    """Maximum size of the time series (bytes). A run whose series would be larger takes samples at
    a multiple of the interval, and says so; default: 1 GB."""

    @model_serializer
    def _written(self) -> dict[str, Any] | str:
        """Return the keys that are set, or the size alone."""
        found: dict[str, Any] = {}
        if self.links is not None:
            found["links"] = self.links
        if self.step is not None:
            found["step"] = SPAN.format(self.step)
        if self.size is not None:
            size = BUDGET.format(self.size)
            if not found:
                return size
            found["size"] = size
        return found


class SizeOrTable:
    """Annotation of a `SeriesKeys` that a file may write as a text, its size."""

    quantity = BUDGET

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        """Accept a table, and parse anything else as the size."""

        def read(value: object) -> object:
            if isinstance(value, (dict, SeriesKeys)):
                return value
            return SeriesKeys.model_construct(size=BUDGET.parse(value))

        return core_schema.no_info_before_validator_function(read, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """Describe both forms."""
        text = {"type": "string", "pattern": BUDGET.ecma_pattern, "examples": [BUDGET.example]}
        return {"anyOf": [text, handler(schema)]}


def chosen(names: Sequence[str], patterns: Sequence[str] | None) -> list[int]:
    """Return the indexes of the link directions that fit one of the patterns; None fits all."""
    if patterns is None:
        return list(range(len(names)))
    whole = [pattern.replace("[", "[[]") for pattern in patterns]
    return [
        index
        for index, name in enumerate(names)
        if any(
            fnmatch.fnmatchcase(one, pattern)
            for one in {name, name.removesuffix(":rev")}
            for pattern in whole
        )
    ]
