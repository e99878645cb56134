"""The points of a sweep: one scenario each, with a key that is a hash of its content.

A point's key is a hash of the scenario's text, the files it names, its overrides, the backend and
the code, so that the same point has the same key in every session. A design is the product of
axes: protocols × grid keys × drawn samples × seeds, in that order, the seed fastest.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Protocol, runtime_checkable

from waterfill.contract.summary import LawSummary
from waterfill.errors import InputError
from waterfill.runs import backends, cache, effective, law_files
from waterfill.runs.laws import PythonLaw, summaries, used
from waterfill.scenario.document import NO_DEFAULT_FLOW, Scenario
from waterfill.scenario.loading import from_toml, load, read_toml
from waterfill.sweeps.axes import Axis, Range, Value, assignment, axis

MAX_POINTS = 10_000_000
_FILE_NAME = re.compile(r"[^\n\"']{1,200}\.[A-Za-z]\w{0,7}")


@dataclass(frozen=True)
class Point:
    """One run of a sweep: its key, its `--set` overrides, and its values in the dataset."""

    key: str
    sets: tuple[str, ...]
    values: Mapping[str, Value]


@runtime_checkable
class Written(Protocol):
    """A scenario written in Python: `waterfill.Scenario`, which this package cannot import."""

    @property
    def source(self) -> str:
        """The file that the scenario was read from, or `<scenario>`."""
        ...

    def to_toml(self) -> str:
        """Return the scenario as TOML text; raise InputError if the scenario is invalid."""
        ...


def _check_type(scenario: object) -> None:
    if not isinstance(scenario, (str, os.PathLike, Written)):
        message = "must be the path of a scenario file or a waterfill.Scenario"
        raise InputError("sweep", "scenario", f"{message}, got a {type(scenario).__name__}")


@dataclass(frozen=True)
class Base:
    """The base scenario of a sweep: its text, its file, the overrides of all points, the backend
    and the laws in Python.

    `title` is the name of a scenario written in Python, empty for a file's. `installed` are laws of
    installed packages that the sweep may use. `jitter` adds random starts and RTTs to each point.
    """

    text: str
    source: str
    sets: tuple[str, ...]
    on: str
    title: str = ""
    laws: Mapping[str, PythonLaw] = field(default_factory=dict)
    installed: Mapping[str, PythonLaw] = field(default_factory=dict)
    jitter: bool = False

    @classmethod
    def read(
        cls, scenario: Written | str | os.PathLike[str], sets: Iterable[str], on: str,
        laws: Mapping[str, PythonLaw] | None = None,
    ) -> Base:  # fmt: skip
        """Read the base scenario; raise InputError if the file is invalid or the backend does not
        support sweeps.
        """
        _check_type(scenario)
        backends.check(on)
        if backends.backend(on).measures_host:
            raise InputError("command line", "on", f"must be sim or fluid, got {on}")
        if isinstance(scenario, Written):
            text = scenario.to_toml()
            title = read_toml(text)["name"]
            return cls(text, scenario.source, tuple(sets), on, title, laws or {})
        source = os.fspath(scenario)
        try:
            text = Path(source).read_text(encoding="utf-8-sig")
        except (OSError, ValueError):
            load(source)  # words the error
            raise
        return cls(text, str(Path(source).absolute()), tuple(sets), on, laws=laws or {})

    @property
    def name(self) -> str:
        """Name for the sweep's folder: the scenario's title, or its file name without suffix."""
        return self.title.replace("/", "-") or Path(self.source).stem

    @property
    def place(self) -> str:
        """Absolute path of the scenario file. Files named in the scenario are relative to its
        folder.
        """
        return str(Path(self.source).absolute())

    def identity(self) -> str:
        """Return a hash of the points' common input: text, named files, overrides, backend and
        code.
        """
        digest = hashlib.sha256()
        parts = [self.text, self.on, cache.version(), *self.sets]
        if self.jitter:
            parts.append("jitter")
        if self.laws or self.installed:
            parts.append(law_files.identity({**self.installed, **self.laws}))
        digest.update(json.dumps(parts).encode())
        folder = Path(self.source).parent
        for name in sorted(set(_FILE_NAME.findall(self.text.replace('"', "\n")))):
            path = folder / name.strip()
            if path.is_file() and str(path) != self.source:
                digest.update(name.encode() + b"\0" + path.read_bytes())
        return digest.hexdigest()[:32]

    def scenario(self, sets: Sequence[str] = ()) -> Scenario:
        """Return the checked scenario of a point; raise InputError if the scenario is invalid."""
        every = [*self.sets, *sets]
        if self.title:
            scenario = from_toml(self.text, self.source, every)
        else:
            scenario = load(self.source, every)
        backends.prepare(scenario, self.on, used(self.laws, scenario))
        return scenario

    def summaries(self) -> dict[str, LawSummary]:
        """Return the descriptions of the laws in Python."""
        return summaries({**self.installed, **self.laws})


@dataclass(frozen=True)
class Design:
    """Points of a sweep: axes, ranges to draw `samples` points from, and the drawing method.

    A source of points for the engine. `identity` is the hash of all that they have in common.
    `latin` draws a Latin hypercube. The draws depend on `draw_seed` and nothing else; independent
    draws of more samples begin with those of fewer. `span` is the range that a search covers, in
    addition to the axes.
    """

    grid: tuple[Axis, ...] = ()
    ranges: tuple[Range, ...] = ()
    samples: int = 0
    latin: bool = False
    draw_seed: int = 1
    protocols: tuple[str, ...] = ()
    seeds: tuple[int, ...] = ()
    span: Range | None = None
    identity: str = ""
    drawn: tuple[Axis, ...] = field(default=(), compare=False)
    follows: ClassVar[bool] = False

    def __post_init__(self) -> None:
        keys = [*(a.key for a in self.fixed()), *(r.key for r in self.ranges)]
        keys += ["seed"] if self.seeds else []
        keys += [self.span.key] if self.span is not None else []
        twice = {key for key in keys if keys.count(key) > 1}
        if twice:
            raise InputError("command line", min(twice), "two axes have this key; keep one")
        if self.ranges and self.samples < 1:
            raise InputError("command line", self.ranges[0].key, "needs --random N or --latin N")
        if self.samples and not self.ranges:
            why = "no range to draw from; add KEY=LOW..HIGH"
            raise InputError("command line", "latin" if self.latin else "random", why)
        if self.draw_seed < 0:
            why = f"must not be negative, got {self.draw_seed}"
            raise InputError("command line", "draw-seed", why)
        if self.count > MAX_POINTS:
            why = f"must be at most {MAX_POINTS} points, got {self.count}"
            raise InputError("command line", "", why)
        object.__setattr__(self, "drawn", tuple(self._draw()))

    def check(self, base: Base) -> Scenario:
        """Check the first point, and the values of each axis in combination with it. Of many
        numbers only both ends are checked.

        So a wrong key or value is found before anything has run; what only a combination of values
        makes wrong is found in its run. Returns the first point's scenario. Raises InputError.
        """
        axes = self.axes()
        first = {one.key: assignment(one.key, one.values[0]) for one in axes}
        scenario = base.scenario([*first.values()])
        if self.protocols and not scenario.uses_default:
            raise scenario.error("flow", NO_DEFAULT_FLOW)
        for one in axes:
            if any(key.partition("=")[0].strip() == one.key for key in base.sets):
                why = "set to one value and to several"
                raise InputError("command line", one.key, why, "remove one of the two")
        tried = [
            base.scenario([*{**first, one.key: assignment(one.key, value)}.values()])
            for one in axes
            for value in _ends(one)
        ]
        every = [scenario, *tried]
        if base.laws and not any(used(base.laws, one) for one in every):
            which = " or ".join(base.laws)
            raise InputError("sweep", "laws", f"no flow uses the law {which}; see protocols")
        backends.refuse_idle([(one, base.on) for one in every], base.laws)
        effective.warn_of_misfits(every, base.on, base.summaries())
        return scenario

    def fixed(self) -> list[Axis]:
        """Return the axes with fixed values: the protocols and the grid."""
        names = [axis("protocol", self.protocols)] if self.protocols else []
        return [*names, *self.grid]

    def axes(self) -> list[Axis]:
        """Return all axes except the seed: fixed axes, drawn axes, and the ends of a searched
        range.
        """
        searched = [] if self.span is None else [self.span.axis([self.span.low, self.span.high])]
        return [*self.held(), *searched]

    def held(self) -> list[Axis]:
        """Return the axes that a search does not move: fixed and drawn axes."""
        return [*self.fixed(), *self.drawn]

    @property
    def count(self) -> int:
        """Number of points in the design."""
        number = max(1, self.samples) * max(1, len(self.seeds))
        for one in self.fixed():
            number *= len(one.values)
        return number

    def rows(self) -> Iterator[list[tuple[Axis, int]]]:
        """Yield each combination of values as (axis, index of the value), without seeds."""
        fixed = self.fixed()
        for chosen in itertools.product(*(range(len(one.values)) for one in fixed)):
            head = list(zip(fixed, chosen, strict=True))
            if not self.samples:
                yield head
            for i in range(self.samples):
                yield [*head, *((one, i) for one in self.drawn)]

    def first(self) -> Iterator[Point]:
        """Yield the points of the design in order."""
        for chosen in self.rows():
            for seed in self.seeds or (None,):
                yield self.point(chosen, seed)

    def after(self, point: Point, row: Mapping[str, Any]) -> Iterable[Point]:
        """Return no points, because a row of a fixed design leads to none."""
        return ()

    def point(self, chosen: Iterable[tuple[Axis, int]], seed: int | None) -> Point:
        """Return the point with these axis values and this seed."""
        pairs = list(chosen)
        sets = [assignment(one.key, one.values[i]) for one, i in pairs]
        values: dict[str, Value] = {one.key: one.numbers[i] for one, i in pairs}
        if seed is not None:
            sets.append(f"seed={seed}")
            values["seed"] = seed
        return Point(key_of(self.identity, sets), tuple(sets), values)

    def _draw(self) -> Iterator[Axis]:
        if not self.samples:
            return
        import numpy as np

        random = np.random.default_rng(self.draw_seed)
        shape = (self.samples, len(self.ranges))
        shares = random.random(shape)
        if self.latin:
            strata = [random.permutation(self.samples) for _ in self.ranges]
            shares = (np.array(strata).T + shares) / self.samples
        for one, column in zip(self.ranges, shares.T, strict=True):
            numbers = [one.at(float(share)) for share in column]
            texts = [one.value(number) for number in numbers]
            # Not `axis`, which would drop a value that was drawn twice.
            known = one.axis(numbers)
            place = {value: i for i, value in enumerate(known.values)}
            si = tuple(known.numbers[place[text]] for text in texts)
            yield Axis(one.key, tuple(texts), si, known.kind, known.unit)


def key_of(identity: str, sets: Iterable[str]) -> str:
    """Return the key of a point with these overrides, whose order does not matter."""
    text = json.dumps([identity, *sorted(sets)])
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _ends(one: Axis) -> list[Value]:
    """Return the values of an axis to check: all of them, or both ends of more than 20 numbers."""
    if len(one.values) <= 20 or one.kind == "string":
        return list(one.values)
    order = sorted(range(len(one.values)), key=lambda i: one.numbers[i])
    return [one.values[order[0]], one.values[order[-1]]]
