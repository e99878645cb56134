"""Check of values read from JSON against the shape of a record, up to the first problem."""

from __future__ import annotations

import math
import sys
import types
from collections.abc import Mapping
from functools import cache
from typing import Any, Literal, Union, get_args, get_origin

from waterfill.contract.record import Record, hints
from waterfill.errors import shown

_WORDS = {str: "text", int: "a whole number", float: "a number", bool: "true or false"}
_MISSING = object()
_LARGEST = sys.float_info.max


def wrong(value: Any, shape: Any, key: str = "") -> tuple[str, str] | None:
    """Return the first key whose value does not fit the shape, and the problem; None if all values
    fit.
    """
    if shape is Any:
        return None
    if isinstance(shape, type) and issubclass(shape, Record):
        return _wrong_table(value, shape, key)
    origin, arguments = get_origin(shape), get_args(shape)
    if origin in (Union, types.UnionType):
        return _wrong_of_several(value, arguments, key)
    if origin is Literal:
        known = f"one of {', '.join(arguments)}"
        return None if value in arguments else _must_be(key, known, value)
    if origin is list:
        if not isinstance(value, list):
            return _must_be(key, "a list", value)
        items = (wrong(item, arguments[0], f"{key}[{i}]") for i, item in enumerate(value))
        return next((one for one in items if one is not None), None)
    if origin is not None and issubclass(origin, Mapping):
        if not isinstance(value, dict):
            return _must_be(key, "an object", value)
        entries = (wrong(item, arguments[1], _join(key, name)) for name, item in value.items())
        return next((one for one in entries if one is not None), None)
    if shape is type(None):
        return None if value is None else _must_be(key, "null", value)
    fits = isinstance(value, (int, float) if shape is float else shape)
    if not fits or (isinstance(value, bool) and shape is not bool):
        return _must_be(key, _WORDS[shape], value)
    if shape is float and not math.isfinite(_as_float(value)):
        return _must_be(key, "a finite number", value)
    return None


def _must_be(key: str, wanted: str, value: object) -> tuple[str, str]:
    return key, f"must be {wanted}, got {shown(value)}"


def _wrong_table(value: Any, shape: Any, key: str) -> tuple[str, str] | None:
    if not isinstance(value, dict):
        return _must_be(key, "an object", value)
    for name, hint, plain in _fields(shape):
        item = value.get(name, _MISSING)
        kind = type(item)
        # Nearly all of a long document passes here.
        if kind in plain and (kind is not float or -_LARGEST <= item <= _LARGEST):
            continue
        if item is not _MISSING:
            found = wrong(item, hint, _join(key, name))
            if found is not None:
                return found
        elif name in shape.__required_keys__:
            return _join(key, name), "missing"
    return None


def _wrong_of_several(value: Any, shapes: tuple[Any, ...], key: str) -> tuple[str, str] | None:
    if value is None and type(None) in shapes:
        return None
    first = None
    for shape in shapes:
        if shape is not type(None):
            found = wrong(value, shape, key)
            if found is None:
                return None
            first = first or found
    return first


def _as_float(value: float) -> float:
    try:
        return float(value)
    except OverflowError:  # a whole number of JSON has any length
        return math.inf


def _join(key: str, name: str) -> str:
    return f"{key}.{name}" if key else name


@cache
def _fields(shape: Any) -> list[tuple[str, Any, frozenset[type]]]:
    """Return the keys of a record, each with its type and the classes that need no check."""
    return [(name, hint, _plain(hint)) for name, hint in hints(shape).items()]


def _plain(hint: Any) -> frozenset[type]:
    if get_origin(hint) in (Union, types.UnionType):
        return frozenset().union(*map(_plain, get_args(hint)))
    return frozenset([hint]) if hint in (str, int, float, bool, type(None)) else frozenset()
