"""One visitor's choices, and their changes by widgets. No HTML, no marimo."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlencode

from waterfill.contract.record import Record
from waterfill.errors import InputError
from waterfill.scenario.document import Scenario
from waterfill.scenario.units import digits
from waterfill.studio import drawn, shipped, tours
from waterfill.studio.answer import Answer, answer
from waterfill.studio.controls import Choice, Slider, of_flow, of_link, of_protocol
from waterfill.studio.settings import BACKENDS, DRAWN, Settings, from_query, known, to_query
from waterfill.studio.tours import Tour

SHOW = {"charts": "Charts", "animation": "Animated view", "tours": "Guided tours"}
"""The studio's pages and their names."""

OWN = "as in the scenario"

ACTIONS = {"pin": "Pin as A, or let A go", "whole": "Run all of it", "reset": "Reset sliders"}
"""Buttons next to a run, and their labels."""


class _Chosen(Record):
    """Choices made in the lists at the top of the page."""

    show: str
    tour: str
    scenario: str
    protocol: str
    on: str


# Answers kept: a pinned run, and steps back and forth in a tour.
_KEPT = 16


@dataclass
class Session:
    """State of a visitor's page: current run, pinned run, tour step, and computed answers."""

    settings: Settings = field(default_factory=Settings)
    pinned: Settings | None = None
    show: str = "charts"
    tour: str = ""
    step: int = 0
    link: str = ""
    flow: str = ""
    whole: bool = False
    moment: float = 1.0
    _answers: OrderedDict[tuple[Settings, bool], Answer] = field(default_factory=OrderedDict)
    _shown: dict[str, Any] = field(default_factory=dict)
    _clicks: dict[str, int] = field(default_factory=dict)
    _turned: int = 0

    @classmethod
    def begin(cls, query: Mapping[str, str | Sequence[str]]) -> tuple[Session, str]:
        """Return the session of a page opened with this query, and the error in the query or an
        empty text.
        """
        try:
            settings, pinned = from_query(query)
        except InputError as problem:
            return cls(), str(problem)
        show, tour, step = (str(query.get(key, "")) for key in ("show", "tour", "step"))
        session = cls(settings, pinned, show if show in SHOW else "charts", tour)
        session.step = min(digits(step) or 0, len(session.current_tour().steps))
        return session, ""

    def choose(self, settings: Settings) -> None:
        """Select these settings, for which the visitor has to request the whole run again."""
        self.settings = settings
        self.whole = False

    def scenario(self) -> Scenario:
        """Return the current scenario. If it lacks the selected link or flow, its first one is
        selected.
        """
        found = self.settings.load()
        links = [link.name for link in found.link]
        flows = [flow.name for flow in found.flow]
        self.link = self.link if self.link in links else links[0]
        self.flow = self.flow if self.flow in flows else (flows[0] if flows else "")
        return found

    # --- lists

    def selects(self) -> list[Choice]:
        """Return the selection lists: the page, a tour, a run's scenario and its protocol."""
        titles = [tour.title for tour in tours.load().values()]
        scenarios = [*shipped.names(), DRAWN]
        chosen = self.settings.protocol
        protocol = chosen if chosen is not None and chosen in known() else OWN
        return [
            Choice("show", "Show", list(SHOW.values()), SHOW[self.show]),
            Choice("tour", "Tour", titles, self.current_tour().title),
            Choice("scenario", "Scenario", scenarios, self.settings.scenario),
            Choice("protocol", "Protocol", [OWN, *known()], protocol),
            Choice("on", "Answered by", list(BACKENDS), self.settings.on),
        ]

    def select(self, chosen: Mapping[str, str]) -> bool:
        """Apply the choices of the selection lists; return True if other sliders are needed."""
        found = _Chosen.read(chosen)
        self.show = next(key for key, text in SHOW.items() if text == found.show)
        tour = next(t.name for t in tours.load().values() if t.title == found.tour)
        if tour != self.current_tour().name:
            self.tour, self.step = tour, 0
        before = self.settings
        if found.scenario != self.settings.scenario:
            self.choose(self.settings.with_scenario(found.scenario))
        protocol = None if found.protocol == OWN else found.protocol
        if (protocol, found.on) != (self.settings.protocol, self.settings.on):
            self.choose(replace(self.settings, protocol=protocol, on=found.on))
        return self.settings != before

    # --- sliders

    def controls(self) -> list[Slider | Choice]:
        """Return the sliders of the current scenario, or an empty list if the scenario is
        invalid.
        """
        try:
            scenario = self.scenario()
        except InputError:
            return []
        found: list[Slider | Choice] = []
        if len(scenario.link) > 1:
            found.append(Choice("link", "Link", [x.name for x in scenario.link], self.link))
        found += of_link(scenario, self.link)
        if len(scenario.flow) > 1:
            names = [x.name for x in scenario.flow]
            found.append(Choice("flow", "Group of flows", names, self.flow))
        if self.flow:
            found += of_flow(scenario, self.flow)
        found += of_protocol(scenario, protocol_of(scenario))
        self._shown = {
            one.key: one.steps[one.start].shown if isinstance(one, Slider) else one.start
            for one in found
        }
        return found

    def move(self, shown: Mapping[str, Any], controls: Sequence[Slider | Choice]) -> bool:
        """Apply the positions of the controls; return True if other sliders are needed."""
        reshape = False
        for one in controls:
            value = shown[one.key]
            if value == self._shown.get(one.key):
                continue
            self._shown[one.key] = value
            if one.key in ("link", "flow"):
                setattr(self, one.key, value)
                reshape = True
            else:
                text = one.value_of(float(value)) if isinstance(one, Slider) else str(value)
                self.choose(self.settings.with_set(one.key, text))
        return reshape

    def look_at(self, percent: float) -> None:
        """Set the moment of the run (% of its duration) at which the equation is shown."""
        self.moment = percent / 100

    # --- buttons

    def _clicked(self, clicks: Mapping[str, int]) -> list[str]:
        """Return the names of buttons clicked since the last call. `clicks` counts all clicks."""
        found = [name for name, count in clicks.items() if count > self._clicks.get(name, 0)]
        self._clicks.update(clicks)
        return found

    def act(self, clicks: Mapping[str, int]) -> bool:
        """Perform the clicked buttons of `ACTIONS`; return True if other sliders are needed."""
        clicked = self._clicked(clicks)
        if "pin" in clicked:
            self.pinned = self.settings if self.pinned is None else None
        if "whole" in clicked:
            self.whole = True
        if "reset" in clicked:
            self.choose(replace(self.settings, sets=()))
        return "reset" in clicked

    # --- tours

    def current_tour(self) -> Tour:
        """Return the chosen tour, or the first tour if none is chosen."""
        found = tours.load()
        return found.get(self.tour) or next(iter(found.values()))

    def turn(self, clicks: Mapping[str, int]) -> None:
        """Turn the tour by the clicked number of steps. The step after the last one completes the
        tour.
        """
        by = clicks["next"] - clicks["back"] - self._turned
        self._turned += by
        self.step = max(0, min(len(self.current_tour().steps), self.step + by))

    # --- the drawn network

    def fields(self) -> dict[str, tuple[str, str]]:
        """Return the label and text of each field of a new form, or an empty dict for a built-in
        scenario.

        The form's buttons are new, too, and count from zero.
        """
        self._clicks.update(dict.fromkeys(drawn.CHANGES, 0))
        return {} if self.settings.drawing is None else drawn.fields(self.settings.drawing)

    def draw(self, texts: Mapping[str, str]) -> bool:
        """Apply the texts of the form's fields; return True if other sliders are needed."""
        drawing = self.settings.drawing
        if drawing is None or set(texts) != set(drawn.fields(drawing)):
            return False  # of a form that has been replaced
        return self._redrawn(drawn.with_fields(drawing, texts))

    def resize(self, clicks: Mapping[str, int]) -> bool:
        """Add or remove rows of the form by keys of `drawn.CHANGES`; return True if any row
        changed.
        """
        drawing = self.settings.drawing
        if drawing is None:
            return False
        for name in self._clicked(clicks):
            drawing = drawn.resized(drawing, name)
        return self._redrawn(drawing)

    def _redrawn(self, drawing: drawn.Drawing) -> bool:
        if drawing == self.settings.drawing:
            return False
        # A changed key of a link may be of one that is no longer there.
        sets = tuple((k, v) for k, v in self.settings.sets if k.startswith("params."))
        self.choose(replace(self.settings, drawing=drawing, sets=sets))
        return True

    # --- what it gives

    def answer(self, settings: Settings | None = None, *, whole: bool = False) -> Answer:
        """Return the answer for the current or given settings; the most recent answers are
        cached.
        """
        wanted = self.settings if settings is None else settings
        key = (wanted, whole or (self.whole and settings is None))
        if key not in self._answers:
            self._answers[key] = answer(wanted, whole=key[1])
            while len(self._answers) > _KEPT:
                self._answers.popitem(last=False)
        return self._answers[key]

    def query(self) -> str:
        """Return the URL query that restores this state."""
        if self.show == "tours":
            name = self.current_tour().name
            return urlencode({"show": self.show, "tour": name, "step": self.step})
        show = "" if self.show == "charts" else f"show={self.show}&"
        return show + to_query(self.settings, self.pinned)


def protocol_of(scenario: Scenario) -> str:
    """Return the protocol whose parameters are shown: the scenario's, or the first that a flow
    names.
    """
    named = [flow.protocol or scenario.protocol for flow in scenario.flow]
    return scenario.protocol or next(name for name in named if name is not None)
