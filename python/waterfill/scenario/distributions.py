"""Distributions of sizes and durations, as scenarios write them.

`"30 kB"` is a constant; a table names a distribution (`{distribution = "pareto", mean = "45 kB",
shape = 1.2, max = "10 MB"}`), or gives a measured one: values with their probabilities, points of
its cumulative distribution, or a file of such points. Sizes have names of published ones too
(`"web-search"`; see `workloads`). Numbers are in SI units here.

A file has one point per line, a value and a probability, separated by a comma or white space. Those
that are published have plain bytes, percent (`10000 15`, to 100) and a first point (0, 0): sizes
begin at one byte then.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

from waterfill.errors import nearest, shown
from waterfill.scenario.units import VOLUME, Quantity, number
from waterfill.scenario.workloads import WORKLOADS

DistributionKind: TypeAlias = Literal["constant", "exponential", "pareto", "empirical"]
Points: TypeAlias = tuple[tuple[float, float], ...]

_KEYS: Mapping[str, tuple[str, ...]] = {
    "constant": ("mean",),
    "exponential": ("mean",),
    "pareto": ("mean", "shape", "max"),
    "empirical": ("values", "probabilities", "points", "file"),
}
_MAX_FILE_BYTES = 1 << 24
# Probabilities written with a few digits do not add up to exactly 1.
_SUM_TOLERANCE = 1e-6


class PartError(ValueError):
    """An error in one key of a table inside a scenario. `part` is that key, or empty."""

    def __init__(self, part: str, message: str) -> None:
        self.part = part
        super().__init__(message)

    def __reduce__(self) -> tuple[type[PartError], tuple[str, str]]:
        return type(self), (self.part, str(self))


@dataclass(frozen=True)
class Distribution:
    """A distribution in SI units with a `mean`. An empirical distribution also has `points`.

    Points are (value, probability of not exceeding it), joined by straight lines; two points of
    one value give that value a probability of its own. With a `max`, a Pareto distribution is
    conditioned on not exceeding it, and `mean` is the mean of the conditioned one.
    """

    kind: DistributionKind
    mean: float
    shape: float | None = None
    max: float | None = None
    points: Points = ()
    name: str | None = None
    """Name of the entry of WORKLOADS that the points come from, if any."""

    def written(self, quantity: Quantity) -> str | dict[str, Any]:
        """Return the distribution in scenario syntax, which `parse` reads back."""
        if self.kind == "constant":
            return quantity.format(self.mean)
        if self.name is not None:
            if self.points == WORKLOADS[self.name].points:
                return self.name
            return {"distribution": self.name, "mean": quantity.format(self.mean)}
        document: dict[str, Any] = {"distribution": self.kind}
        if self.kind == "empirical":
            return document | {"points": [[quantity.format(x), p] for x, p in self.points]}
        document["mean"] = quantity.format(self.mean)
        if self.shape is not None:
            document["shape"] = self.shape
        if self.max is not None:
            document["max"] = quantity.format(self.max)
        return document


def parse(value: object, quantity: Quantity, folder: Path | None = None) -> Distribution:
    """Parse the distribution of a quantity. A `file` is relative to `folder` (default: the current
    directory).

    Raises PartError.
    """
    if isinstance(value, Distribution):
        return value
    names = WORKLOADS if quantity.units == VOLUME.units else {}
    if isinstance(value, str):
        if value in names:
            return _named(value, {}, quantity)
        return Distribution("constant", _constant(value, quantity, names))
    if isinstance(value, list):
        return _empirical(_points("", value, quantity))
    if not isinstance(value, Mapping):
        raise PartError(
            "", f"must be {quantity.expectation}, or a table of a distribution, got {shown(value)}"
        )
    kind = value.get("distribution")
    keys = {**_KEYS, **dict.fromkeys(names, ("mean",))}
    if not isinstance(kind, str) or kind not in keys:
        got = "nothing" if kind is None else shown(kind)
        known = ", ".join(f'"{name}"' for name in keys)
        raise PartError("distribution", f"must be one of {known}, got {got}")
    for key in value:
        if key not in ("distribution", *keys[kind]):
            known = nearest(key, keys[kind])
            raise PartError(str(key), f'unknown key of distribution = "{kind}"{known}')
    if kind in names:
        return _named(kind, value, quantity)
    if kind == "empirical":
        return _measured(value, quantity, folder)
    mean = _quantity("mean", value.get("mean"), quantity)
    if kind == "constant":
        return Distribution("constant", mean)
    if kind == "exponential":
        return Distribution("exponential", mean)
    return _pareto(mean, value, quantity)


def _constant(value: str, quantity: Quantity, names: Iterable[str]) -> float:
    """Parse a constant. The error for a text without digits lists the known distributions."""
    try:
        return quantity.parse(value)
    except ValueError as error:
        known = sorted(names)
        if any(c.isdigit() for c in value) or not known:
            raise PartError("", str(error)) from None
        message = f"must be {quantity.expectation}, or one of {', '.join(known)}, got "
        raise PartError("", message + shown(value)) from None


def _named(name: str, value: Mapping[str, object], quantity: Quantity) -> Distribution:
    """Return a published distribution, scaled to the mean if one is given."""
    found = _empirical(WORKLOADS[name].points)
    if "mean" in value:
        mean = _quantity("mean", value["mean"], quantity)
        points = tuple((x * mean / found.mean, share) for x, share in found.points)
        return Distribution("empirical", mean, points=points, name=name)
    return replace(found, name=name)


def _pareto(mean: float, value: Mapping[str, object], quantity: Quantity) -> Distribution:
    largest = None
    if "max" in value:
        largest = _quantity("max", value["max"], quantity)
        if largest <= mean:
            above = quantity.format(mean)
            raise PartError("max", f"must be above the mean of {above}, got {shown(value['max'])}")
    if "shape" not in value:
        raise PartError("shape", "missing; write a number such as 1.35")
    try:
        # The mean is finite: without a bound only for shapes above 1.
        shape = number(value["shape"], above=1 if largest is None else 0)
    except ValueError as error:
        hint = "" if largest is not None else ", or a max"
        raise PartError("shape", f"{error}{hint}") from None
    return Distribution("pareto", mean, shape, largest)


def _measured(value: Mapping[str, object], quantity: Quantity, folder: Path | None) -> Distribution:
    given = [key for key in ("values", "points", "file") if key in value]
    if len(given) != 1:
        got = " and ".join(given) or "none"
        raise PartError("", f"needs exactly one of values, points and file, got {got}")
    if given[0] != "values" and "probabilities" in value:
        raise PartError("probabilities", f"only allowed with values, got {given[0]}")
    if given[0] == "values":
        return _empirical(_steps(value["values"], value.get("probabilities"), quantity))
    if given[0] == "points":
        return _empirical(_points("points", value["points"], quantity))
    points = _file(value["file"], folder, quantity)
    try:
        return _empirical(_points("file", points, quantity))
    except PartError as error:
        raise PartError("file", f"{value['file']}: {error}") from None


def _steps(values: object, probabilities: object, quantity: Quantity) -> Points:
    """Return the points of a discrete distribution with these values and probabilities."""
    if not isinstance(values, list) or not values:
        raise PartError("values", f"must be a list of {_plural(quantity)}, got {shown(values)}")
    count = len(values)
    if not isinstance(probabilities, list) or len(probabilities) != count:
        got = "nothing" if probabilities is None else shown(probabilities)
        raise PartError("probabilities", f"must be a list of {count} numbers, got {got}")
    numbers = [_probability("probabilities", p) for p in probabilities]
    if abs(math.fsum(numbers) - 1) > _SUM_TOLERANCE:
        got = f"{math.fsum(numbers):g}"
        raise PartError("probabilities", f"must add up to 1, got a sum of {got}")
    read = [_quantity("values", x, quantity) for x in values]
    pairs = sorted(pair for pair in zip(read, numbers, strict=True) if pair[1] > 0)
    total = math.fsum(numbers)
    shares = [math.fsum(p for _, p in pairs[: i + 1]) / total for i in range(len(pairs) - 1)]
    edges = itertools.pairwise([0.0, *shares, 1.0])
    return tuple((x, share) for (x, _), edge in zip(pairs, edges, strict=True) for share in edge)


def _points(part: str, points: object, quantity: Quantity) -> Points:
    """Parse and check the points of a cumulative distribution."""
    if not isinstance(points, list) or not points:
        raise PartError(part, f'no points; write points such as ["{quantity.example}", 0.5]')
    result: list[tuple[float, float]] = []
    for point in points:
        if not isinstance(point, (list, tuple)) or len(point) != 2:
            raise PartError(
                part, f'must be points such as ["{quantity.example}", 0.5], got {shown(point)}'
            )
        result.append((_quantity(part, point[0], quantity), _probability(part, point[1])))
    for before, after in itertools.pairwise(result):
        if after[0] < before[0] or after[1] < before[1]:
            at = f"{quantity.format(after[0])} at {after[1]:g}"
            raise PartError(part, f"values and probabilities must not decrease, got {at}")
    if result[-1][1] != 1:
        raise PartError(part, f"the last probability must be 1, got {result[-1][1]:g}")
    return tuple(result)


def _file(name: object, folder: Path | None, quantity: Quantity) -> list[object]:
    """Read the points of a distribution from a file of lines `value, probability`."""
    if not isinstance(name, str) or not name:
        raise PartError("file", f"must be a file name, got {shown(name)}")
    path = (folder or Path()) / name
    found: list[tuple[str, float]] = []
    unit = min(quantity.units, key=lambda name: (quantity.units[name] != 1, len(name)))
    for index, written in lines_of(path, _MAX_FILE_BYTES):
        cells = written.rsplit("," if "," in written else None, 1)
        try:
            value, share = cells
            found.append((value.strip(), float(share)))
        except ValueError:
            problem = f"must be VALUE, PROBABILITY, got {shown(written)}"
            raise PartError("file", f"line {index} of {path}: {problem}") from None
    # A number without a unit among others may be of any unit.
    plain = bool(found) and all(_is_number(value) for value, _ in found)
    percent = bool(found) and found[-1][1] == 100
    points: list[object] = []
    for size, p in found:
        # A size of 0 that no flow has: the smallest is one byte.
        number = "1" if plain and float(size) == 0 and p == 0 else size
        points.append((f"{number} {unit}" if plain else size, p / 100 if percent else p))
    return points


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def lines_of(path: Path, max_bytes: int) -> list[tuple[int, str]]:
    """Return the non-empty lines of a file with their numbers, without comments.

    Raises PartError for a file that cannot be read, or is larger.
    """
    try:
        with path.open("rb") as file:
            data = file.read(max_bytes + 1)
        text = data.decode("utf-8-sig")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not UTF-8 text"
        raise PartError("file", f"cannot read {path}: {reason}") from None
    if len(data) > max_bytes:
        raise PartError("file", f"{path} has more than {max_bytes} bytes")
    return [
        (index, written)
        for index, line in enumerate(text.splitlines(), start=1)
        if (written := line.partition("#")[0].strip())
    ]


def _empirical(points: Points) -> Distribution:
    first_value, first_share = points[0]
    mean = first_value * first_share + math.fsum(
        (a + b) / 2 * (q - p) for (a, p), (b, q) in itertools.pairwise(points)
    )
    return Distribution("empirical", mean, points=points)


def _quantity(part: str, value: object, quantity: Quantity) -> float:
    if value is None:
        raise PartError(part, f"missing; write {quantity.expectation}")
    return _read(part, quantity.parse, value)


def _probability(part: str, value: object) -> float:
    return _read(part, lambda v: number(v, minimum=0, maximum=1), value)


def _read(part: str, parse_one: Callable[[object], float], value: object) -> float:
    try:
        return parse_one(value)
    except ValueError as error:
        raise PartError(part, str(error)) from None


def _plural(quantity: Quantity) -> str:
    return f'{quantity.name.partition(" ")[2]}s such as "{quantity.example}"'


def json_schema(quantity: Quantity) -> dict[str, Any]:
    """Return the JSON Schema of the input of `parse`."""
    names = list(WORKLOADS) if quantity.units == VOLUME.units else []
    text = {"type": "string", "pattern": quantity.ecma_pattern, "examples": [quantity.example]}
    points = {
        "type": "array",
        "items": {"type": "array", "prefixItems": [text, {"type": "number"}], "minItems": 2},
        "minItems": 1,
    }
    table: dict[str, Any] = {
        "type": "object",
        "required": ["distribution"],
        "additionalProperties": False,
        "properties": {
            "distribution": {"enum": [*_KEYS, *names]},
            "mean": text,
            "shape": {"type": "number", "exclusiveMinimum": 0},
            "max": text,
            "values": {"type": "array", "items": text},
            "probabilities": {"type": "array", "items": {"type": "number"}},
            "points": points,
            "file": {"type": "string"},
        },
    }
    named = [{"enum": names}] if names else []
    return {"anyOf": [text, *named, points, table]}
