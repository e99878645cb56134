"""The base class of a scenario's tables, and the names of their entries."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict

from waterfill.errors import shown

# Names are part of key paths (flow.long.count) and take suffixes (long[0], link1:rev).
_RESERVED = frozenset('.[]:="')


class Table(BaseModel):
    """Base class of a scenario's tables. Unknown keys are errors; values are never converted."""

    # `schema` reads the fields' docstrings: pydantic would parse this file at every start.
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True)


def flow_name(value: str) -> str:
    """Return a name of a link, flow or source; raise ValueError if key paths cannot contain it."""
    if not value:
        raise ValueError("must not be empty")
    if value != value.strip():
        raise ValueError(f"must not begin or end with a space, got {shown(value)}")
    if not _RESERVED.isdisjoint(value):
        raise ValueError(f'must not contain . [ ] : = or ", got {shown(value)}')
    return value


Name = Annotated[str, AfterValidator(flow_name)]
