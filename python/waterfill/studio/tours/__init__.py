"""Guided tours, written as one TOML file each in this folder.

A tour has a title, its place in the list and steps. A step has a title, a text, the run that it
shows (`scenario`, `protocol`, `set`, `on`), what of it (`show`), what to look at, and a question
with its answer. `{name}` in a text stands for a number of `[step.numbers.name]`, which tests
measure in the step's run. `given` lists the quantities that are not of the run: defaults of the
law, and what the text itself computes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from waterfill.contract.record import Record
from waterfill.scenario.loading import read_toml
from waterfill.studio.numbers import Number
from waterfill.studio.settings import Settings

_FIELD = re.compile(r"\{(\w+)\}")

SHOWN = ("network", "filling", "rates", "queues", "signal", "nyquist", "equation", "table")
"""Views of a step's run that the step can show, in the order of the page."""


@dataclass(frozen=True)
class Step:
    """One step of a tour. The texts contain the numbers that `numbers` holds by name.

    `link` is the one that the equation's values are of, the busiest if empty.
    """

    title: str
    text: str
    look: str
    question: str
    answer: str
    settings: Settings
    show: tuple[str, ...]
    numbers: Mapping[str, Number]
    level: int = 0
    link: str = ""


@dataclass(frozen=True)
class Tour:
    """A tour: its name, its title, its duration in minutes, and its steps."""

    name: str
    title: str
    minutes: int
    steps: tuple[Step, ...]


class _StepFile(Record):
    """The entry of one step in a tour's file."""

    title: str
    scenario: str
    protocol: str | None = None
    set: dict[str, Any] | None = None
    on: str = "auto"
    text: str = ""
    look: str = ""
    question: str = ""
    answer: str = ""
    show: Sequence[str] = ("rates",)
    numbers: dict[str, dict[str, Any]] | None = None
    level: int = 0
    link: str = ""


class _TourFile(Record):
    """The content of a tour's file."""

    title: str
    minutes: int
    place: int
    step: list[_StepFile]


@cache
def load() -> dict[str, Tour]:
    """Return all tours by name, in the order of the list."""
    found = []
    for file in resources.files(__name__).iterdir():
        if file.name.endswith(".toml"):
            document = _TourFile.read(read_toml(file.read_text(encoding="utf-8")))
            steps = tuple(_step(entry) for entry in document.step)
            name = file.name.removesuffix(".toml")
            found.append((document.place, Tour(name, document.title, document.minutes, steps)))
    return {tour.name: tour for _, tour in sorted(found, key=lambda pair: pair[0])}


def _step(entry: _StepFile) -> Step:
    numbers = {name: _number(given) for name, given in (entry.numbers or {}).items()}

    def text(raw: str) -> str:
        joined = " ".join(raw.replace("\n\n", "\x00").split())
        filled = _FIELD.sub(lambda match: numbers[match[1]].text(), joined)
        return filled.replace("\x00", "\n").replace(" \n ", "\n")

    sets = tuple((key, str(value)) for key, value in (entry.set or {}).items())
    return Step(
        title=entry.title,
        text=text(entry.text),
        look=text(entry.look),
        question=text(entry.question),
        answer=text(entry.answer),
        settings=Settings(entry.scenario, entry.protocol, sets, entry.on),
        show=tuple(entry.show),
        numbers=numbers,
        level=entry.level,
        link=entry.link,
    )


def _number(given: Mapping[str, Any]) -> Number:
    window = given.get("window")
    return Number(**{**given, "window": None if window is None else (window[0], window[1])})
