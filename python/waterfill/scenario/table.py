"""The base class of a scenario's tables."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Table(BaseModel):
    """Base class of a scenario's tables. Unknown keys are errors; values are never converted."""

    # `schema` reads the fields' docstrings: pydantic would parse this file at every start.
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True)
