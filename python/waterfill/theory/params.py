"""Typed access to a protocol's parameters, which the registry publishes as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from waterfill.contract.network import ParamValue

Values: TypeAlias = "Mapping[str, ParamValue | None]"
"""Parameters of one protocol by name, in SI units; None for one that is not set."""


def number(values: Values, name: str) -> float:
    """Return a parameter that is a number; raise TypeError if it is not one."""
    value = values[name]
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{name} must be a number, got {value!r}")
    return value


def given(values: Values) -> dict[str, ParamValue]:
    """Return the parameters that are set, as the core takes them."""
    return {name: value for name, value in values.items() if value is not None}
