"""Guided tours: one TOML file each in this folder, from which one component makes all steps.

A tour has a title, its place in the list and steps. A step has a title, a text, the run that it
shows (`scenario`, `protocol`, `set`, `on`), what of it (`show`), what to look at, and a question
with its answer. `{name}` in a text stands for a number of `[step.numbers.name]`, which tests
measure in the step's run. `given` lists the quantities that are not of the run: defaults of the
law, and what the text itself computes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

from waterfill.scenario.loading import read_toml
from waterfill.studio.numbers import Number
from waterfill.studio.settings import Settings

_FIELD = re.compile(r"\{(\w+)\}")

SHOWN = ("network", "filling", "rates", "queues", "signal", "nyquist", "equation", "table")
"""Parts of its run that a step can show, in the order of the page."""


@dataclass(frozen=True)
class Step:
    """One step of a tour; texts have their numbers in place, `numbers` are by name.

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
    """A tour: its name, its title, how long it takes, and its steps."""

    name: str
    title: str
    minutes: int
    steps: tuple[Step, ...]


@cache
def load() -> dict[str, Tour]:
    """Return all tours by name, in their order."""
    found = []
    for file in resources.files(__name__).iterdir():
        if file.name.endswith(".toml"):
            document = read_toml(file.read_text(encoding="utf-8"))
            steps = tuple(_step(entry) for entry in document["step"])
            name = file.name.removesuffix(".toml")
            tour = Tour(name, document["title"], document["minutes"], steps)
            found.append((document["place"], tour))
    return {tour.name: tour for _, tour in sorted(found, key=lambda pair: pair[0])}


def _step(entry: Mapping[str, object]) -> Step:
    numbers = {name: _number(given) for name, given in _table(entry, "numbers").items()}

    def text(key: str) -> str:
        raw = " ".join(str(entry.get(key, "")).replace("\n\n", "\x00").split())
        filled = _FIELD.sub(lambda match: numbers[match[1]].text(), raw)
        return filled.replace("\x00", "\n").replace(" \n ", "\n")

    sets = tuple((key, str(value)) for key, value in _table(entry, "set").items())
    protocol = entry.get("protocol")
    settings = Settings(
        str(entry["scenario"]),
        None if protocol is None else str(protocol),
        sets,
        str(entry.get("on", "auto")),
    )
    show = entry.get("show", ["rates"])
    assert isinstance(show, list)
    return Step(
        title=str(entry["title"]),
        text=text("text"),
        look=text("look"),
        question=text("question"),
        answer=text("answer"),
        settings=settings,
        show=tuple(map(str, show)),
        numbers=numbers,
        level=int(str(entry.get("level", 0))),
        link=str(entry.get("link", "")),
    )


def _table(entry: Mapping[str, object], key: str) -> Mapping[str, object]:
    found = entry.get(key, {})
    assert isinstance(found, dict)
    return found


def _number(given: object) -> Number:
    assert isinstance(given, dict)
    window = given.get("window")
    return Number(**{**given, "window": None if window is None else (window[0], window[1])})
