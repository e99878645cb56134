"""Typed access to a protocol's parameters, which the registry publishes as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from waterfill.contract.network import ParamValue

Values: TypeAlias = "Mapping[str, ParamValue | None]"
"""Parameters of one protocol by name, in SI units. Unset parameters are None."""


def number(values: Values, name: str) -> float:
    """Return a numeric parameter; raise TypeError if its value is not a number."""
    value = values[name]
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{name} must be a number, got {value!r}")
    return value


def given(values: Values) -> dict[str, ParamValue]:
    """Return the parameters that are set, in the form that the core takes."""
    return {name: value for name, value in values.items() if value is not None}
