"""Traces of link rates and delays over time, as scenarios write them: `rate_trace = "cell.csv"`.

A trace is a list of points (time, rate). Each rate holds until the next point. The time of the last
point is the trace's length: there it starts over, or keeps the last rate with `repeat = false`.

A file has one of two formats. A table has a time and a rate per line, separated by a comma or, if
both are plain numbers, by white space. A number without a unit (`0.5 s, 3 Mbit/s`) has the one that
the header names (`time_ms,rate_mbps`), or `unit` for rates, else it is in seconds or, after a comma
and if one is at least 1000, in bit/s. A list
of delivery opportunities has one whole number per line: the millisecond at which a packet of 1500
bytes may leave. They are counted over `bin`, and its rate is their volume over that time. `#`
starts a comment; a first line of words is a header. With `shift`, times count from the first one.

A `delay_trace` is a table of times and delays. A delay needs a unit: its own, the header's
(`time_s,delay_ms`) or `unit`.
"""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

from waterfill.errors import nearest, shown
from waterfill.scenario.distributions import PartError, lines_of
from waterfill.scenario.units import MAX_TIME_S, RATE, SPAN, TIME, digits, rate_unit

Points: TypeAlias = tuple[tuple[float, float], ...]

OPPORTUNITY_BITS = 12_000
"""Volume of one delivery opportunity (bits), equal to 1500 bytes."""

DEFAULT_BIN_S = 0.1
MAX_POINTS = 10**6
_MAX_FILE_BYTES = 1 << 26
_RATE = RATE.or_zero()
_DELAY = replace(TIME, name="a delay", at_most=MAX_TIME_S)
_SLOWEST_BPS = 1000.0
_KEYS = ("file", "points", "repeat", "bin", "unit", "shift")
# Units of time in headers; other words say nothing of a unit.
_TIME_UNITS: Mapping[str, float] = {
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1.0),
    **dict.fromkeys(("ms", "msec", "msecs", "millisecond", "milliseconds"), 1e-3),
    **dict.fromkeys(("us", "µs", "μs", "usec", "usecs", "microsecond", "microseconds"), 1e-6),
    **dict.fromkeys(("ns", "nsec", "nsecs", "nanosecond", "nanoseconds"), 1e-9),
    **dict.fromkeys(("min", "mins", "minute", "minutes"), 60.0),
    **dict.fromkeys(("h", "hour", "hours"), 3600.0),
}
# Words of a header whose column has times or delays.
_TIMES = ("time", "timestamp", "delay", "latency", "rtt")
# Words of a rate's header that look like a unit, but do not say which.
_UNCLEAR = re.compile(r"(?i)([kmgtp]i?)?(b|bytes?|bits?)(/s|ps|/sec)?|p(ac)?kts?|packets?|pps")


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


class DelayTrace(Trace):
    """A delay trace: points (s, s) from time 0 on. The time of the last point is the length."""

    def written(self) -> dict[str, Any]:
        """Return the trace in scenario syntax. `parse_delays` accepts the result."""
        points = [[TIME.format(at), TIME.format(delay)] for at, delay in self.points]
        return {"points": points, "repeat": self.repeat}


def parse_delays(value: object, folder: Path | None = None) -> DelayTrace:
    """Parse a delay trace: a table, or a file name relative to `folder`. Raises PartError."""
    if isinstance(value, DelayTrace):
        return value
    given = _given(value, tuple(key for key in _KEYS if key != "bin"), "delays.csv")
    repeat, shift = (_flag(given, key, default) for key, default in _FLAGS)
    if "points" in given:
        points = _points(given["points"], TIME, '["0.5 s", "30 ms"]')
        return DelayTrace(_checked("points", points), repeat)
    path = _path(given["file"], folder)
    unit_s = _parse("unit", SPAN, given["unit"]) if "unit" in given else None
    points = _delays(path, unit_s)
    return DelayTrace(_checked("file", _shifted(points) if shift else points), repeat)


def _delays(path: Path, unit_s: float | None) -> Points:
    """Return the points of a file of times and delays."""
    lines = lines_of(path, _MAX_FILE_BYTES)
    if not lines:
        raise PartError("file", f"{path} has no times and delays")
    separator = "," if "," in lines[0][1] else None
    time_s: float | None = None
    named_s: float | None = None
    if lines[0][1][0] not in "0123456789.+-":
        index, written = lines.pop(0)
        found = [
            [_TIME_UNITS[word.lower()] for word in _words(cell) if word.lower() in _TIME_UNITS]
            for cell in (*written.split(separator, 1), "")[:2]
        ]
        time_s, named_s = (units[-1] if units else None for units in found)
        if named_s is not None and unit_s is not None:
            why = f"line {index} of {path} names a unit: {shown(written)}"
            raise PartError("unit", f"{why}; remove it here")
    delay_s, points = named_s or unit_s, []
    for index, written in lines:
        where = f"line {index} of {path}"
        try:
            time, delay = (cell.strip() for cell in written.split(separator, 1))
            plain = delay[-1:].isdigit() or delay.endswith(".")
            points.append(
                (_number(TIME, time, time_s or 1.0), _number(_DELAY, delay, delay_s or 1.0))
            )
        except ValueError:
            problem = 'must be TIME, DELAY such as "0.5 s, 30 ms"'
            raise PartError("file", f"{where}: {problem}, got {shown(written)}") from None
        if plain and delay_s is None:
            why = f'the delays of {path} have no unit; write unit = "1 ms", or "1 s"'
            raise PartError("unit", why)
    return tuple(points)


def parse(value: object, folder: Path | None = None) -> Trace:
    """Parse a rate trace: a table, or a file name relative to `folder` (default: the current
    directory).

    Raises PartError.
    """
    if isinstance(value, Trace):
        return value
    given = _given(value, _KEYS, "cell.csv")
    repeat, shift = (_flag(given, key, default) for key, default in _FLAGS)
    if "points" in given:
        points = _checked("points", _points(given["points"], _RATE, '["0.5 s", "3 Mbit/s"]'))
        if all(rate == 0 for _, rate in points[:-1]):
            raise PartError("points", _ALL_ZERO)
        return Trace(points, repeat)
    bin_s = _parse("bin", SPAN, given["bin"]) if "bin" in given else None
    unit_bps = _parse("unit", RATE, given["unit"]) if "unit" in given else None
    points = read(_path(given["file"], folder), bin_s, unit_bps)
    found = _checked("file", _shifted(points) if shift else points)
    if all(rate == 0 for _, rate in found[:-1]):
        raise PartError("file", _ALL_ZERO)
    return Trace(found, repeat)


def _given(value: object, keys: tuple[str, ...], example: str) -> Mapping[str, Any]:
    """Return the keys of a trace; raise PartError for wrong ones."""
    given: Mapping[str, Any]
    if isinstance(value, str):
        given = {"file": value}
    elif isinstance(value, Mapping):
        given = value
    else:
        wanted = f'"{example}", or a table such as {{file = "{example}", repeat = false}}'
        raise PartError("", f"must be a file such as {wanted}, got {shown(value)}")
    for key in given:
        if key not in keys:
            raise PartError(str(key), f"unknown key{nearest(key, keys)}")
    if ("file" in given) == ("points" in given):
        got = "both" if "file" in given else "neither"
        raise PartError("", f"needs either file or points, got {got}")
    if "points" in given:
        for key in ("bin", "unit", "shift"):
            if key in given:
                raise PartError(key, "not allowed with points")
    return given


def _shifted(points: Points) -> Points:
    """Return points whose times count from the first one."""
    first_s = points[0][0]
    # A float has 16 digits, of which a clock's whole seconds take ten.
    exact = min(12, 16 - len(str(int(points[-1][0]))))
    return tuple((round(at - first_s, exact), rate) for at, rate in points)


_ALL_ZERO = "all rates are zero; at least one must be above zero"
_FLAGS = (("repeat", True), ("shift", False))


def _flag(given: Mapping[str, Any], key: str, default: bool) -> bool:
    value = given.get(key, default)
    if not isinstance(value, bool):
        raise PartError(key, f"must be true or false, got {shown(value)}")
    return value


def read(path: Path, bin_s: float | None = None, unit_bps: float | None = None) -> Points:
    """Read a trace file: a table of times and rates, or delivery opportunities.

    `bin_s` is for delivery opportunities (default: 100 ms), `unit_bps` for rates without a unit
    (default: 1 bit/s). Raises PartError for a file that cannot be read, and names the line that is
    wrong.
    """
    lines = lines_of(path, _MAX_FILE_BYTES)
    if not lines:
        raise PartError("file", f"{path} has no times and rates")
    if "," in lines[0][1] or len(lines[0][1].split()) == 2:
        if bin_s is not None:
            raise PartError("bin", f"only for delivery opportunities, not a table, got {path}")
        return _table(lines, path, unit_bps)
    if unit_bps is not None:
        raise PartError("unit", f"only for a table, not delivery opportunities, got {path}")
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


def _table(lines: list[tuple[int, str]], path: Path, unit_bps: float | None) -> Points:
    """Return the points of a trace file that is a table of times and rates."""
    separator = "," if "," in lines[0][1] else None
    time_s, named_bps = 1.0, None
    if lines[0][1][0] not in "0123456789.+-":
        index, written = lines.pop(0)
        time_s, named_bps = _units(index, written, separator, path)
        if named_bps is not None and unit_bps is not None:
            why = f"line {index} of {path} names a unit: {shown(written)}"
            raise PartError("unit", f"{why}; remove it here")
    rate_bps = named_bps or unit_bps
    points, plain = [], False
    for index, written in lines:
        cells = [cell.strip() for cell in written.split(separator, 1)]
        try:
            time, rate = cells
            points.append((_number(TIME, time, time_s), _number(_RATE, rate, rate_bps or 1.0)))
            plain |= rate[-1].isdigit() or rate[-1] == "."
        except ValueError:
            problem = 'must be TIME, RATE such as "0.5 s, 3 Mbit/s"'
            message = f"line {index} of {path}: {problem}, got {shown(written)}"
            raise PartError("file", message) from None
    # Few links are slower than 1 kbit/s; numbers this small are in another unit.
    if (
        plain
        and rate_bps is None
        and (separator is None or max(rate for _, rate in points) < _SLOWEST_BPS)
    ):
        why = f"the rates of {path} have no unit"
        raise PartError("unit", f'{why}; write unit = "1 Mbit/s", or "1 bit/s" if they are in that')
    return tuple(points)


def _units(line: int, header: str, separator: str | None, path: Path) -> tuple[float, float | None]:
    """Return the units that a header names, of times (s) and of rates (bit/s, or None)."""
    time, rate = (*header.split(separator, 1), "")[:2]
    times = [_TIME_UNITS[word] for word in map(str.lower, _words(time)) if word in _TIME_UNITS]
    other = [word for word in _words(rate) if word.lower() in _TIMES]
    if other:
        problem = "the second column must have rates, but its header names times"
        raise PartError("file", f"line {line} of {path}: {problem}, got {shown(rate.strip())}")
    found = None
    for word in _words(rate):
        ending = re.search(r"((?:[kKmMgGtT]i?)?[bB]ps)$", word)
        unit = word if ending is None else ending[1]
        unit_bps = rate_unit(unit)
        if unit_bps is None and _UNCLEAR.fullmatch(unit):
            problem = f"the unit of rates is not clear, got {shown(word)}"
            advice = 'write rates with units, such as "3 Mbit/s"'
            raise PartError("file", f"line {line} of {path}: {problem}; {advice}")
        found = found or unit_bps
    return (times[-1] if times else 1.0), found


def _words(cell: str) -> list[str]:
    return [word for word in re.split(r"[\s_()\[\]:.\"-]+", cell) if word]


def _number(quantity: Any, text: str, unit: float) -> float:
    """Parse a text with a unit, or a plain number in multiples of `unit`."""
    try:
        value = float(text) * unit
    except ValueError:
        return float(quantity.parse(text))
    # Times of a clock are large; `_checked` limits them after a shift.
    if not (
        math.isfinite(value) and 0 <= value <= (math.inf if quantity is TIME else quantity.at_most)
    ):
        raise ValueError(text)
    return value


def _points(value: object, quantity: Any, example: str) -> Points:
    if not isinstance(value, list):
        raise PartError("points", f"must be a list of points, got {shown(value)}")
    points = []
    for point in value:
        if not isinstance(point, (list, tuple)) or len(point) != 2:
            raise PartError("points", f"must be points such as {example}, got {shown(point)}")
        points.append((_parse("points", TIME, point[0]), _parse("points", quantity, point[1])))
    return tuple(points)


def _checked(part: str, points: Points) -> Points:
    if not 2 <= len(points) <= MAX_POINTS:
        raise PartError(part, f"needs 2 to {MAX_POINTS} points, got {len(points)}")
    if points[0][0] != 0:
        got = TIME.format(points[0][0])
        hint = "; write shift = true to count from it" if part == "file" else ""
        raise PartError(part, f"the first time must be 0 s, got {got}{hint}")
    for (before, _), (after, _) in itertools.pairwise(points):
        if after <= before:
            got = f"got {TIME.format(after)} after {TIME.format(before)}"
            raise PartError(part, f"times must increase, {got}")
    if points[-1][0] > MAX_TIME_S:
        limit, got = TIME.format(MAX_TIME_S), TIME.format(points[-1][0])
        raise PartError(part, f"the last time must be at most {limit}, got {got}")
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


def json_schema(*, delays: bool = False) -> dict[str, Any]:
    """Return the JSON Schema of the input of `parse`, or of `parse_delays`."""
    unit, example = (TIME, "1 ms") if delays else (RATE, "1 Mbit/s")
    text = [
        {"type": "string", "pattern": q.ecma_pattern, "examples": [q.example]} for q in (TIME, unit)
    ]
    point = {"type": "array", "prefixItems": text, "minItems": 2, "maxItems": 2}
    properties: dict[str, Any] = {
        "file": {"type": "string"},
        "points": {"type": "array", "items": point, "minItems": 2},
        "repeat": {"type": "boolean", "default": True},
        "bin": {"type": "string", "pattern": SPAN.ecma_pattern, "default": "100 ms"},
        "unit": {"type": "string", "pattern": unit.ecma_pattern, "examples": [example]},
        "shift": {"type": "boolean", "default": False},
    }
    if delays:
        del properties["bin"]
    table = {
        "type": "object",
        "additionalProperties": False,
        "properties": properties,
    }
    file = "delays.csv" if delays else "cell.csv"
    return {"anyOf": [{"type": "string", "examples": [file]}, table]}
