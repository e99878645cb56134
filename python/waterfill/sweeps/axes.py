"""The axes of a sweep: a grid of values of a key, or a range to draw from or to search.

link.bottleneck.rate=10 Mbit/s,100 Mbit/s      values
link.bottleneck.rate=1..100 Mbit/s:5:log       five values, evenly by their logarithms
flow.long.count=1..64                          a range
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from waterfill import _core
from waterfill.errors import InputError, shown
from waterfill.scenario.units import FREQUENCY, PACKETS, RATE, TIME, VOLUME, Quantity

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Value: TypeAlias = "str | int | float | bool | list[Any]"
ValueKind: TypeAlias = Literal["string", "double", "bool"]

# Each with the unit that its values have in the dataset.
_QUANTITIES: tuple[tuple[Quantity, str], ...] = (
    (RATE, "bit/s"),
    (TIME, "s"),
    (VOLUME, "B"),
    (FREQUENCY, "/s"),
    (PACKETS, "packets"),
)
# Drawn and bisected numbers are rounded to this many digits, so that they read well.
_DIGITS = 6

_NUMBER = r"[+-]?\d+(?:\.\d*)?(?:[eE][+-]?\d+)?"
_RANGE = re.compile(
    rf"\s*(?P<low>{_NUMBER})\s*(?P<low_unit>[^.:,\d]*?)\s*\.\.\s*(?P<high>{_NUMBER})\s*"
    r"(?P<unit>[^.:,]*?)\s*(?::(?P<count>\d+))?(?P<log>:log)?\s*"
)


@dataclass(frozen=True)
class Axis:
    """One key of the scenario and its values, in the form that `--set` takes.

    `numbers` are the values in SI units where all are numbers or quantities of one kind, else the
    values as they are; `kind` is their type in the dataset and `unit` their unit, "" for none.
    """

    key: str
    values: tuple[Value, ...]
    numbers: tuple[Value, ...]
    kind: ValueKind
    unit: str


@dataclass(frozen=True)
class Range:
    """One key and the range of its values, in `unit`. With `log`, draws are uniform in the
    logarithm.

    `whole` rounds values to whole numbers, for keys that take no others.
    """

    key: str
    low: float
    high: float
    unit: str
    log: bool
    whole: bool = False

    def at(self, share: float) -> float:
        """Return the rounded value at a fraction of the range: 0 is `low`, 1 is `high`."""
        if self.log:
            return self._rounded(self.low * _core.pow(self.high / self.low, share))
        return self._rounded(self.low + share * (self.high - self.low))

    def middle(self, low: float, high: float) -> float:
        """Return the rounded midpoint of two values, geometric if the range is logarithmic."""
        return self._rounded(math.sqrt(low * high) if self.log else (low + high) / 2)

    def _rounded(self, number: float) -> float:
        return float(round(number)) if self.whole else rounded(number)

    def axis(self, numbers: Iterable[float]) -> Axis:
        """Return an axis with these values of the range."""
        return axis(self.key, [self.value(number) for number in numbers])

    def measured(self, *numbers: float) -> tuple[list[float], str]:
        """Return values of the range as numbers with a unit: the dataset's, or the range's own for
        a unit such as bdp, which the dataset keeps as text.
        """
        found = self.axis(numbers)
        if found.kind != "double":
            return list(numbers), self.unit
        return [float(number) for number in found.numbers], found.unit  # type: ignore[arg-type]

    def value(self, number: float) -> Value:
        """Return a number of the range in the form that `--set` takes."""
        if self.unit:
            return f"{number:.{_DIGITS}g} {self.unit}"
        return int(number) if number.is_integer() else number


@dataclass(frozen=True)
class Even:
    """Evenly spaced values of a range, including both ends."""

    span: Range
    count: int

    def axis(self) -> Axis:
        """Return the axis of these values. Whole numbers that coincide appear once."""
        return self.span.axis(self.span.at(i / (self.count - 1)) for i in range(self.count))


def rounded(number: float) -> float:
    """Return a number rounded to six significant digits."""
    return float(f"{number:.{_DIGITS}g}")


def axis(key: str, values: Sequence[Value]) -> Axis:
    """Return the axis of a key and its values. Raise InputError if there are no values."""
    if not values:
        raise InputError("command line", key, "no value given", "write KEY=V1,V2")
    unique = tuple(dict.fromkeys(_frozen(value) for value in values))
    plain = tuple(list(value) if isinstance(value, tuple) else value for value in unique)
    if all(isinstance(value, bool) for value in plain):
        return Axis(key, plain, plain, "bool", "")
    if all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in plain):
        return Axis(key, plain, tuple(float(value) for value in plain), "double", "")  # type: ignore[arg-type]
    for quantity, unit in _QUANTITIES:
        if all(isinstance(value, str) and quantity.matches(value) for value in plain):
            numbers = tuple(_parse(key, quantity, value) for value in plain)
            return Axis(key, plain, numbers, "double", unit)
    texts = tuple(value if isinstance(value, str) else shown_toml(value) for value in plain)
    return Axis(key, plain, texts, "string", "")


def _parse(key: str, quantity: Quantity, text: Any) -> float:
    try:
        return quantity.or_zero().parse(text)
    except ValueError as error:
        raise InputError("command line", key, str(error)) from None


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def grid(text: str) -> Axis | Even:
    """Read `KEY=VALUE,…` or `KEY=LOW..HIGH:N[:log]`; raise InputError for any other text."""
    key, given = _split(text, "KEY=VALUE,… or KEY=LOW..HIGH:N")
    match = _RANGE.fullmatch(given)
    if match is None:
        return axis(key, [parsed(part) for part in _parts(given)])
    if match["count"] is None:
        raise InputError("command line", key, f"must be LOW..HIGH:N, got {shown(given)}")
    count = int(match["count"])
    if not 2 <= count <= 100_000:
        raise InputError("command line", key, f"must be 2 to 100000 values, got {count}")
    return Even(_range(key, match), count)


def grid_of(given: Mapping[str, Sequence[Value] | str] | Sequence[str]) -> list[Axis | Even]:
    """Read the axes of a grid: {key: values or their text}, or texts in the format of `grid`."""
    if not isinstance(given, Mapping):
        return [grid(text) for text in given]
    return [
        grid(f"{key}={values}") if isinstance(values, str) else axis(key, list(values))
        for key, values in given.items()
    ]


def ranges_of(given: Mapping[str, tuple[float, float] | str] | Sequence[str]) -> list[Range]:
    """Read ranges: {key: (low, high) or their text}, or texts in the format of `span`."""
    if not isinstance(given, Mapping):
        return [span(text) for text in given]
    texts = {
        key: ends if isinstance(ends, str) else f"{ends[0]}..{ends[1]}"
        for key, ends in given.items()
    }
    return [span(f"{key}={text}") for key, text in texts.items()]


def span(text: str) -> Range:
    """Read `KEY=LOW..HIGH[:log]`; raise InputError for any other text."""
    key, given = _split(text, "KEY=LOW..HIGH")
    match = _RANGE.fullmatch(given)
    if match is None or match["count"] is not None:
        why = f"must be LOW..HIGH or LOW..HIGH:log, got {shown(given)}"
        raise InputError("command line", key, why)
    return _range(key, match)


def _range(key: str, match: re.Match[str]) -> Range:
    low, high, unit = float(match["low"]), float(match["high"]), match["unit"].strip()
    first = match["low_unit"].strip() or unit
    if first != unit:
        low, high, unit = _common(key, f"{match['low']} {first}", f"{match['high']} {unit}")
    if not math.isfinite(high - low):  # of infinite ends too
        got = match[0].strip()
        raise InputError("command line", key, f"must be a finite range, got {shown(got)}")
    if not low < high:
        raise InputError("command line", key, f"LOW must be below HIGH, got {match[0].strip()}")
    if match["log"] and low <= 0:
        raise InputError("command line", key, f"LOW must be above 0 with :log, got {low:g}")
    return Range(key, low, high, unit, bool(match["log"]))


def _common(key: str, low: str, high: str) -> tuple[float, float, str]:
    """Return both ends of a range in SI units, and the name of the unit."""
    for quantity, unit in _QUANTITIES:
        if quantity.matches(low) and quantity.matches(high):
            return _parse(key, quantity, low), _parse(key, quantity, high), unit
    raise InputError(
        "command line", key, f"LOW and HIGH need units of one kind, got {low} and {high}"
    )


def _split(text: str, wanted: str) -> tuple[str, str]:
    key, equals, given = text.partition("=")
    if not equals or not key.strip() or not given.strip():
        raise InputError("command line", key.strip(), f"must be {wanted}, got {shown(text)}")
    return key.strip(), given.strip()


def _parts(text: str) -> list[str]:
    """Split a text at the commas that are outside brackets and quotes."""
    parts, depth, quote, start = [], 0, "", 0
    for place, char in enumerate(text):
        if quote:
            quote = "" if char == quote else quote
        elif char in "\"'":
            quote = char
        elif char in "[{":
            depth += 1
        elif char in "]}":
            depth -= 1
        elif char == "," and depth == 0:
            parts.append(text[start:place])
            start = place + 1
    return [part.strip() for part in [*parts, text[start:]]]


def parsed(text: str) -> Value:
    """Return a value as `--set` reads it, parsed as TOML if possible, or as text."""
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):
        return text
    return value if isinstance(value, (str, bool, int, float, list)) else text


def assignment(key: str, value: Value) -> str:
    """Return `KEY=VALUE` in the form that `--set` takes. A text is quoted if necessary."""
    if isinstance(value, str):
        return f"{key}={value}" if parsed(value) == value else f"{key}={shown_toml(value)}"
    if isinstance(value, bool):
        return f"{key}={str(value).lower()}"
    return f"{key}={value!r}" if not isinstance(value, list) else f"{key}={shown_toml(value)}"


def shown_toml(value: Any) -> str:
    """Return a text or a list in TOML's notation."""
    return json.dumps(value, ensure_ascii=False)
