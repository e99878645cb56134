"""The playground without its widgets: what is chosen now, and the HTML of what it gives."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from typing import Any

from waterfill.errors import InputError
from waterfill.scenario.document import Scenario
from waterfill.studio import chart, equations, nyquist, panels, shipped, topology
from waterfill.studio.answer import Answer, answer
from waterfill.studio.chart import Chart
from waterfill.studio.controls import Choice, Slider, of_flow, of_link, of_protocol
from waterfill.studio.settings import BACKENDS, DRAWN, Settings, from_query, known, to_query

# Answers kept: a pinned run, and steps back and forth in a tour.
_KEPT = 16


SHOW = {"charts": "Charts", "animation": "Animated view", "tours": "Guided tours"}
"""The studio's pages, and what they are called."""

OWN = "as in the scenario"


@dataclass
class Session:
    """One visitor's choices: the run now, the run pinned beside it, and their answers."""

    settings: Settings = field(default_factory=Settings)
    pinned: Settings | None = None
    link: str = ""
    flow: str = ""
    show: str = "charts"
    whole: bool = False
    moment: float = 1.0
    _answers: OrderedDict[tuple[Settings, bool], Answer] = field(default_factory=OrderedDict)
    _shown: dict[str, Any] = field(default_factory=dict)
    _clicks: dict[str, int] = field(default_factory=dict)

    # --- what is chosen

    def choose(self, settings: Settings) -> None:
        """Make these settings the current ones; the whole run has to be asked for again."""
        self.settings = settings
        self.whole = False

    def scenario(self) -> Scenario:
        """Return the current scenario, with the selected link and flow set to ones that it has."""
        found = self.settings.load()
        links = [link.name for link in found.link]
        flows = [flow.name for flow in found.flow]
        self.link = self.link if self.link in links else links[0]
        self.flow = self.flow if self.flow in flows else (flows[0] if flows else "")
        return found

    def selects(self) -> list[Choice]:
        """Return what is chosen from lists: the page, and a run's scenario, protocol, backend."""
        show = Choice("show", "Show", list(SHOW.values()), SHOW[self.show])
        if self.show == "tours":
            return [show]
        scenarios = [*shipped.names(), DRAWN]
        names = [OWN, *known()]
        return [
            show,
            Choice("scenario", "Scenario", scenarios, self.settings.scenario),
            Choice("protocol", "Protocol", names, self.settings.protocol or OWN),
            Choice("on", "Answered by", list(BACKENDS), self.settings.on),
        ]

    def select(self, chosen: Mapping[str, str]) -> None:
        """Take over what was chosen from the lists."""
        named = {text: key for key, text in SHOW.items()}
        self.show = named[chosen["show"]]
        if chosen.get("scenario", self.settings.scenario) != self.settings.scenario:
            self.choose(self.settings.with_scenario(chosen["scenario"]))
        protocol = chosen.get("protocol", self.settings.protocol or OWN)
        wanted = None if protocol == OWN else protocol
        on = chosen.get("on", self.settings.on)
        if (wanted, on) != (self.settings.protocol, self.settings.on):
            self.choose(replace(self.settings, protocol=wanted, on=on))

    def controls(self) -> list[Slider | Choice]:
        """Return the sliders of the current scenario; none where it is wrong, or in a tour."""
        self._shown = {}
        if self.show == "tours":
            return []
        try:
            scenario = self.scenario()
        except InputError:
            return []
        protocol = protocol_of(scenario)
        found: list[Slider | Choice] = []
        if len(scenario.link) > 1:
            found.append(Choice("link", "Link", [x.name for x in scenario.link], self.link))
        found += of_link(scenario, self.link)
        if len(scenario.flow) > 1:
            names = [x.name for x in scenario.flow]
            found.append(Choice("flow", "Group of flows", names, self.flow))
        if self.flow:
            found += of_flow(scenario, self.flow)
        found += of_protocol(scenario, protocol)
        self._shown = {one.key: _shown_first(one) for one in found}
        return found

    def move(self, shown: Mapping[str, Any], controls: Sequence[Slider | Choice]) -> bool:
        """Take over the positions of the controls; return whether other sliders are needed."""
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

    def actions(self) -> dict[str, str]:
        """Return the buttons of the page: their keys and labels."""
        if self.show != "charts":
            return {}
        return {
            "pin": "Pin as A" if self.pinned is None else "Let A go",
            "whole": "Run all of it",
            "reset": "Reset",
        }

    def act(self, clicks: Mapping[str, int]) -> None:
        """Do what the button that was clicked stands for; `clicks` counts each button's."""
        for name, count in clicks.items():
            if count > 0:
                getattr(self, f"_{name}")()

    def _pin(self) -> None:
        self.pinned = self.settings if self.pinned is None else None

    def _whole(self) -> None:
        self.whole = True

    def _reset(self) -> None:
        self.choose(Settings(self.settings.scenario).with_scenario(self.settings.scenario))

    # --- what it gives

    def answer(self, settings: Settings | None = None) -> Answer:
        """Return the answer for the current settings, or for others; computed once for each."""
        wanted = self.settings if settings is None else settings
        key = (wanted, self.whole and settings is None)
        if key not in self._answers:
            self._answers[key] = answer(wanted, whole=key[1])
            while len(self._answers) > _KEPT:
                self._answers.popitem(last=False)
        return self._answers[key]

    def query(self) -> str:
        """Return the query of the link that restores this state."""
        show = "" if self.show == "charts" else f"show={self.show}&"
        return show + to_query(self.settings, self.pinned)


def _shown_first(one: Slider | Choice) -> Any:
    return one.steps[one.start].shown if isinstance(one, Slider) else one.start


def begin(query: Mapping[str, str | Sequence[str]]) -> tuple[Session, str]:
    """Return the session of a page that was opened with this query, and what is wrong with it."""
    try:
        settings, pinned = from_query(query)
    except InputError as problem:
        return Session(), str(problem)
    show = query.get("show", "charts")
    session = Session(
        settings, pinned, show=show if isinstance(show, str) and show in SHOW else "charts"
    )
    return session, ""


def head(wrong: str) -> str:
    """Return the page's title, with what was wrong with its query."""
    box = f'<div class="wf-error" role="alert">{escape(wrong)}</div>' if wrong else ""
    return (
        '<div class="wf-head"><h1>Waterfill studio</h1><p class="wf-note">Explicit congestion '
        f"control at the touch of a slider.</p></div>{box}"
    )


def sliders(session: Session, widgets: Mapping[str, str]) -> str:
    """Return the controls as HTML: those of the equation first, the rest behind a summary."""
    if not widgets:
        return ""
    protocol = next((k.split(".")[1] for k in widgets if k.startswith("params.")), "")
    main = {f"params.{protocol}.{name}" for name in equations.main_params(protocol)}
    first = [w for k, w in widgets.items() if not k.startswith("params.")]
    law = [w for k, w in widgets.items() if k in main]
    rest = [w for k, w in widgets.items() if k.startswith("params.") and k not in main]
    parts = [f'<div class="wf-controls">{"".join(first)}</div>']
    if law:
        parts.append(f'<h2>{escape(protocol)}</h2><div class="wf-controls">{"".join(law)}</div>')
    if rest:
        parts.append(
            f"<details><summary>{'More' if law else 'Its'} parameters of {escape(protocol)}"
            f'</summary><div class="wf-controls">{"".join(rest)}</div></details>'
        )
    return "".join(parts)


def protocol_of(scenario: Scenario) -> str:
    """Return the protocol whose parameters are shown: the scenario's, else its first flow's."""
    named = [flow.protocol or scenario.protocol for flow in scenario.flow]
    return scenario.protocol or next(name for name in named if name is not None)


def error(problem: InputError) -> str:
    """Return what is wrong with the settings as a box."""
    return f'<div class="wf-error" role="alert">{escape(str(problem))}</div>'


def results(session: Session) -> str:
    """Return charts, margins and tables of the current run, beside those of the pinned one."""
    try:
        now = session.answer()
        beside = None if session.pinned is None else session.answer(session.pinned)
    except InputError as problem:
        return _results(session, error(problem))
    return _results(session, _single(session, now) if beside is None else _pair(beside, now))


def _results(session: Session, html: str) -> str:
    return f'<div id="wf-results" data-query="{escape(session.query())}">{html}</div>'


def charts_of(given: Answer) -> list[Chart]:
    """Return all charts of a run, the Nyquist curve last where there is a loop."""
    found = panels.all_charts(given.result)
    _, curves, rtt_s = nyquist.of_result(given.result)
    return [*found, nyquist.chart(curves, rtt_s)] if curves else found


def margins(given: Answer) -> str:
    """Return the sentences on the loop's margins, empty where there is no loop."""
    _, curves, _ = nyquist.of_result(given.result)
    sentences = nyquist.sentences(curves)
    return "".join(f'<p class="wf-note">{escape(text)}</p>' for text in sentences)


def _single(session: Session, given: Answer) -> str:
    charts = charts_of(given)
    parts = [card(chart.render(one)) for one in charts]
    loop = margins(given)
    if loop:
        parts[-1] = card(chart.render(charts[-1]) + loop)
    parts.insert(1, card(equation(session, given)))
    parts += [card(network(given)), card(panels.table(given.result))]
    return f'<p class="wf-note">{escape(given.note)}</p>' + grid(parts)


def equation(session: Session, given: Answer) -> str:
    """Return the equation of the run's first protocol at the session's moment."""
    time_s = session.moment * given.ran_s
    protocol = given.result.network.flows[0].protocol
    return f"<h3>{escape(protocol)} at {time_s:.3g} s</h3>" + equations.at(
        given.result, protocol, time_s
    )


def _pair(beside: Answer, now: Answer) -> str:
    """Return two runs in two columns, A pinned and B current, on common axes."""
    a, b = charts_of(beside), charts_of(now)
    parts = [
        f'<div class="wf-card"><h3>A, pinned: {escape(title(beside))}</h3>'
        f'<p class="wf-note">{escape(beside.note)}</p></div>',
        f'<div class="wf-card"><h3>B, now: {escape(title(now))}</h3>'
        f'<p class="wf-note">{escape(now.note)}</p></div>',
    ]
    for i in range(max(len(a), len(b))):
        pair = (a[i : i + 1], b[i : i + 1])
        if pair[0] and pair[1] and pair[0][0].title == pair[1][0].title and pair[0][0].zero:
            top = 1.06 * max(pair[0][0].y_top(), pair[1][0].y_top())
            pair = _scaled(pair[0], top), _scaled(pair[1], top)
        parts += [card("".join(chart.render(one) for one in side)) for side in pair]
    parts += [card(panels.table(beside.result)), card(panels.table(now.result))]
    return grid(parts)


def _scaled(charts: list[Chart], top: float) -> list[Chart]:
    return [replace(one, y_range=(0.0, top)) for one in charts]


def title(given: Answer) -> str:
    """Return what a run is in a few words: scenario, protocol, changed keys."""
    settings = given.settings
    used = dict.fromkeys(flow["protocol"] for flow in given.result.summary["flows"])
    changes = [f"{key} = {value}" for key, value in settings.sets]
    return ", ".join([settings.scenario, "+".join(used), *changes])


def network(given: Answer) -> str:
    """Return the drawing of the network with the links' loads in the measured window."""
    loads = {link["name"]: link["utilization"] or 0.0 for link in given.result.summary["links"]}
    return topology.draw(given.settings.load(), loads)


def card(html: str) -> str:
    """Return a box of the grid."""
    return f'<div class="wf-card">{html}</div>'


def grid(parts: list[str]) -> str:
    """Return boxes in two columns, in one on a narrow page."""
    return f'<div class="wf-grid2">{"".join(parts)}</div>'


def svg_file(session: Session) -> bytes:
    """Return the current run's charts as one SVG file."""
    given = session.answer()
    return chart.file(charts_of(given), title(given)).encode()


def toml_file(session: Session) -> bytes:
    """Return the current scenario with all changes as a TOML file."""
    return session.settings.load().to_toml().encode()


def share(session: Session) -> str:
    """Return the link that restores the state, and the command that runs the same."""
    query = session.query()
    command = escape(session.settings.command())
    return (
        f'<p class="wf-note">Link to this state: <a class="wf-a" id="wf-state" '
        f'href="?{escape(query)}">?{escape(query)}</a></p>'
        f'<p class="wf-note">The same in a terminal, once it is saved as S.toml: '
        f'<code class="wf-code">{command}</code></p>'
    )
