"""Traces of link rates over time, as scenarios write them: `rate_trace = "cell.csv"`.

A trace is a list of points (time, rate). Each rate holds until the next point. The time of the last
point is the trace's length: there it starts over, or keeps the last rate with `repeat = false`.

A file has one of two formats. A CSV has a time and a rate per line, with units (`0.5 s, 3 Mbit/s`)
or as plain seconds and bit/s. A list of delivery opportunities has one whole number per line: the
millisecond at which a packet of 1500 bytes may leave. They are counted over `bin`, and its rate is
their volume over that time. `#` starts a comment; a first line of words is a header.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from waterfill.errors import nearest, shown
from waterfill.scenario.distributions import PartError, lines_of
from waterfill.scenario.units import MAX_TIME_S, RATE, SPAN, TIME, digits

Points: TypeAlias = tuple[tuple[float, float], ...]

OPPORTUNITY_BITS = 12_000
"""Volume of one delivery opportunity (bits), equal to 1500 bytes."""

DEFAULT_BIN_S = 0.1
MAX_POINTS = 10**6
_MAX_FILE_BYTES = 1 << 26
_RATE = RATE.or_zero()
_KEYS = ("file", "points", "repeat", "bin")


@dataclass(frozen=True)
class Trace:
    """A rate trace: points (s, bit/s) from time 0 on. The time of the last point is the length."""

    points: Points
    repeat: bool = True

    @property
    def length_s(self) -> float:
        """The time (s) after which the trace starts over, or keeps its last rate."""
        return self.points[-1][0]

    @property
    def mean_bps(self) -> float:
        """The mean rate (bit/s) over the trace's length."""
        bits = (rate * (to - at) for (at, rate), (to, _) in itertools.pairwise(self.points))
        return math.fsum(bits) / self.length_s

    def until(self, end_s: float) -> Iterator[tuple[float, float]]:
        """Yield (time, rate) for each rate change before `end_s`, from time 0 on."""
        rate_before = None
        for round_ in itertools.count():
            for at_s, rate in self.points[:-1] if self.repeat else self.points:
                time_s = round_ * self.length_s + at_s
                if time_s >= end_s:
                    return
                if rate != rate_before:
                    yield time_s, rate
                rate_before = rate
            if not self.repeat:
                return

    def written(self) -> dict[str, Any]:
        """Return the trace in scenario syntax, with points instead of a file. `parse` accepts the
        result.
        """
        points = [[TIME.format(at), _RATE.format(rate)] for at, rate in self.points]
        return {"points": points, "repeat": self.repeat}


def parse(value: object, folder: Path | None = None) -> Trace:
    """Parse a rate trace: a table, or a file name relative to `folder` (default: the current
    directory).

    Raises PartError.
    """
    if isinstance(value, Trace):
        return value
    given: Mapping[str, Any]
    if isinstance(value, str):
        given = {"file": value}
    elif isinstance(value, Mapping):
        given = value
    else:
        example = '"cell.csv", or a table such as {file = "cell.csv", repeat = false}'
        raise PartError("", f"must be a file such as {example}, got {shown(value)}")
    for key in given:
        if key not in _KEYS:
            raise PartError(str(key), f"unknown key{nearest(key, _KEYS)}")
    repeat = given.get("repeat", True)
    if not isinstance(repeat, bool):
        raise PartError("repeat", f"must be true or false, got {shown(repeat)}")
    if ("file" in given) == ("points" in given):
        got = "both" if "file" in given else "neither"
        raise PartError("", f"needs either file or points, got {got}")
    if "points" in given:
        if "bin" in given:
            raise PartError("bin", "not allowed with points")
        return Trace(_checked("points", _points(given["points"])), repeat)
    bin_s = _parse("bin", SPAN, given["bin"]) if "bin" in given else None
    return Trace(_checked("file", read(_path(given["file"], folder), bin_s)), repeat)


def read(path: Path, bin_s: float | None = None) -> Points:
    """Read a trace file: CSV, or delivery opportunities, which are averaged over `bin_s` (default:
    100 ms).

    Raises PartError for a file that cannot be read, and names the line that is wrong.
    """
    lines = lines_of(path, _MAX_FILE_BYTES)
    if not lines:
        raise PartError("file", f"{path} has no times and rates")
    if "," in lines[0][1]:
        if bin_s is not None:
            raise PartError("bin", f"not allowed with a CSV file, got {path}")
        return _csv(lines, path)
    return opportunities(_milliseconds(lines, path), DEFAULT_BIN_S if bin_s is None else bin_s)


def opportunities(times_ms: list[int], bin_s: float) -> Points:
    """Return the rates of delivery opportunities (ms, in order), averaged over bins of `bin_s`.

    An opportunity at t ms stands for the millisecond before t. The last one's time is the length.
    Raises PartError for more than `MAX_POINTS` bins.
    """
    length_s = times_ms[-1] / 1e3
    if length_s / bin_s >= MAX_POINTS:
        got = f"{TIME.format(length_s)} in bins of {TIME.format(bin_s)}"
        raise PartError("bin", f"{got} are more than {MAX_POINTS} points; use longer bins")
    bins = max(1, math.ceil(length_s / bin_s - 1e-9))
    counts = Counter(min(bins - 1, int((max(t, 1) - 1) / 1e3 / bin_s + 1e-9)) for t in times_ms)
    points = []
    for i in range(bins):
        from_s, to_s = i * bin_s, min((i + 1) * bin_s, length_s)
        points.append((round(from_s, 12), counts[i] * OPPORTUNITY_BITS / (to_s - from_s)))
    return (*points, (length_s, points[-1][1]))


def _milliseconds(lines: list[tuple[int, str]], path: Path) -> list[int]:
    times: list[int] = []
    for index, written in lines:
        time_ms = digits(written)
        if time_ms is None:
            problem = "must be TIME, RATE or a whole number of milliseconds"
            raise PartError("file", f"line {index} of {path}: {problem}, got {shown(written)}")
        times.append(time_ms)
        if len(times) > 1 and times[-1] < times[-2]:
            got = f"got {times[-1]} ms after {times[-2]} ms"
            raise PartError("file", f"line {index} of {path}: times must not decrease, {got}")
    if times[-1] > 1e3 * MAX_TIME_S:
        limit, got = TIME.format(MAX_TIME_S), f"got {times[-1]} ms in {path}"
        raise PartError("file", f"the last time must be at most {limit}, {got}")
    if times[-1] == 0:
        raise PartError("file", f"the last time must be above 0 ms, got 0 in {path}")
    return times


def _csv(lines: list[tuple[int, str]], path: Path) -> Points:
    header = lines[0][1][0].isalpha()
    points = []
    for index, written in lines[header:]:
        time, comma, rate = (part.strip() for part in written.partition(","))
        try:
            if not comma:
                raise ValueError
            points.append((_number(TIME, time), _number(_RATE, rate)))
        except ValueError:
            problem = 'must be TIME, RATE such as "0.5 s, 3 Mbit/s"'
            message = f"line {index} of {path}: {problem}, got {shown(written)}"
            raise PartError("file", message) from None
    return tuple(points)


def _number(quantity: Any, text: str) -> float:
    """Parse a text with a unit, or a plain number in SI units."""
    try:
        value = float(text)
    except ValueError:
        return float(quantity.parse(text))
    if not (math.isfinite(value) and 0 <= value <= quantity.at_most):
        raise ValueError(text)
    return value


def _points(value: object) -> Points:
    if not isinstance(value, list):
        raise PartError("points", f"must be a list of points, got {shown(value)}")
    points = []
    for point in value:
        if not isinstance(point, (list, tuple)) or len(point) != 2:
            example = '["0.5 s", "3 Mbit/s"]'
            raise PartError("points", f"must be points such as {example}, got {shown(point)}")
        points.append((_parse("points", TIME, point[0]), _parse("points", _RATE, point[1])))
    return tuple(points)


def _checked(part: str, points: Points) -> Points:
    if not 2 <= len(points) <= MAX_POINTS:
        raise PartError(part, f"needs 2 to {MAX_POINTS} points, got {len(points)}")
    if points[0][0] != 0:
        got = TIME.format(points[0][0])
        raise PartError(part, f"the first time must be 0 s, got {got}")
    for (before, _), (after, _) in itertools.pairwise(points):
        if after <= before:
            got = f"got {TIME.format(after)} after {TIME.format(before)}"
            raise PartError(part, f"times must increase, {got}")
    if all(rate == 0 for _, rate in points[:-1]):
        raise PartError(part, "all rates are zero; at least one must be above zero")
    return points


def _path(name: object, folder: Path | None) -> Path:
    if not isinstance(name, str) or not name:
        raise PartError("file", f"must be a file name, got {shown(name)}")
    return (folder or Path()) / name


def _parse(part: str, quantity: Any, value: object) -> float:
    try:
        return float(quantity.parse(value))
    except ValueError as error:
        raise PartError(part, str(error)) from None


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of the input of `parse`."""
    text = [
        {"type": "string", "pattern": q.ecma_pattern, "examples": [q.example]} for q in (TIME, RATE)
    ]
    point = {"type": "array", "prefixItems": text, "minItems": 2, "maxItems": 2}
    table = {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "file": {"type": "string"},
            "points": {"type": "array", "items": point, "minItems": 2},
            "repeat": {"type": "boolean", "default": True},
            "bin": {"type": "string", "pattern": SPAN.ecma_pattern, "default": "100 ms"},
        },
    }
    return {"anyOf": [{"type": "string", "examples": ["cell.csv"]}, table]}
