"""Widgets of the documentation site: the packet simulator, in WebAssembly, behind a few sliders.

A comment `<!-- widget: NAME -->` in a page becomes a widget. It contains the charts of the default
run as pictures, and the resolved network as JSON; the scripts in docs/assets/widget run it again
when a slider moves. Scenarios, steps of sliders and the look of charts are the studio's.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from html import escape
from pathlib import PurePosixPath
from typing import Any

from validation.targets import builds, packing
from waterfill.analysis.charts import Chart
from waterfill.analysis.run_charts import SCREEN, RunCharts
from waterfill.contract.network import Network
from waterfill.network import protocols, resolve
from waterfill.network.graph import Graph
from waterfill.runs import backends
from waterfill.runs.result import Result
from waterfill.scenario import loading
from waterfill.scenario.document import Scenario
from waterfill.scenario.units import RATE, TIME
from waterfill.studio import chart, controls, shipped
from waterfill.studio.controls import Slider, Step

SCRIPTS = ("network", "charts", "draw", "widget", "playground")
"""The scripts of a page with a widget, in the order in which they load."""

FOLDER = "assets/widget"
"""Where the site has these scripts, the engine and the stylesheet."""

_COMMENT = re.compile(r"<!-- widget: (?P<name>[a-z0-9-]+) -->")
_LAW_PAGE = re.compile(r"^reference/protocols/(?P<law>\w+)\.html$")
# Sliders stay where a run takes a fraction of a second.
_FACTORS = {"rate": (0.1, 2.0), "delay": (0.1, 10.0), "rtt": (0.0, 5.0)}
_MAX = {"count": 60, "loss": 1.0}  # flows, percent


@dataclass(frozen=True)
class Widget:
    """A scenario of the studio with changed keys, the laws to choose from, and sliders.

    `sliders` has each slider's key and label. `charts` are of "rates", "queues" and "signal"; the
    widget shows them in this order.
    """

    title: str
    scenario: str
    laws: Sequence[str]
    sliders: Mapping[str, str]
    charts: Sequence[str] = ("rates",)
    sets: Sequence[str] = ()

    def load(self, law: str, more: Sequence[str] = ()) -> Scenario:
        """Return the checked scenario under a law, with further assignments."""
        sets = [f"protocol={law}", *self.sets, *more]
        return loading.from_toml(shipped.text(self.scenario), f"{self.scenario}.toml", sets)


_PRICE, _CHARTS = ["rates", "signal"], ["rates", "queues"]
_DUMBBELL = {
    "link.bottleneck.rate": "Rate of the link",
    "flow.near.count": "Flows of near (20 ms)",
    "flow.far.count": "Flows of far, from 10 s",
    "flow.far.rtt": "RTT of far",
}
WIDGETS = {
    "price": Widget(
        "A price, and the rates that follow it", "one-link", ["maxnet"],
        {"link.link.rate": "Rate of the link", "flow.others.count": "Flows that start at 10 s"},
        _PRICE,
    ),
    "max-min": Widget(
        "Max-min shares in grey, and the rates of a protocol", "parking-lot",
        ["maxnet", "xcp", "rcp", "cubic"],
        {f"link.link{i}.rate": f"Rate of link {i}" for i in (1, 2, 3)},
        _CHARTS,
    ),
    "two-speeds": Widget(
        "Two RTTs, and a step at 20 s", "dumbbell",
        ["maxnet"],
        {"flow.near.rtt": "RTT of near", "flow.far.rtt": "RTT of far"},
        _PRICE, ["flow.near.count=1", "flow.far.count=1"],
    ),
    "rcp-two-regimes": Widget(
        "One far flow and many near ones", "far-and-near", ["rcp", "xcp", "maxnet"],
        {"flow.near.count": "Near flows", "params.rcp.beta": "RCP's β, the weight of the queue"},
        _CHARTS,
    ),
    "xcp-starves": Widget(
        "A short flow next to long ones", "two-bottlenecks", ["xcp", "ixcp", "maxnet"],
        {"flow.long.count": "Long flows", "link.first.rate": "Rate of the first link",
         "link.second.rate": "Rate of the second link"},
        _CHARTS,
    ),
    "long-fat-pipe": Widget(
        "One flow on a long fat pipe", "long-fat-pipe", ["reno", "cubic", "bbr", "maxnet"],
        {"link.pipe.rate": "Rate", "link.pipe.delay": "Delay, one way",
         "link.pipe.loss": "Random loss"},
        _CHARTS,
    ),
    "start": Widget(
        "Flows that start at 4 s on a full link", "one-link",
        ["maxnet", "rcp", "xcp", "cubic", "reno"],
        {"link.link.rate": "Rate of the link", "link.link.delay": "Delay, one way",
         "flow.others.count": "Flows that start"},
        _CHARTS,
        ["duration=12 s", "measure=['8 s', '12 s']", "sample=200 ms", "flow.others.start=4 s",
         "flow.others.count=3"],
    ),
}  # fmt: skip


class WidgetError(Exception):
    """Error for an unknown widget, or one that the scripts cannot change as Python would."""


@cache
def engine() -> str:
    """Return the engine's module, compressed, in base64; an empty text if this host cannot build
    it.

    The variable WATERFILL_SITE_PROFILE chooses another profile of Cargo than `page`. Raises
    RunError if the build fails.
    """
    profile = os.environ.get("WATERFILL_SITE_PROFILE", "page")
    target = replace(builds.TARGETS["wasm32"], profile=profile, runner=())
    if target.lacks() is not None:
        return ""
    target.build()
    return packing.packed(target.module.read_bytes())


# --- what a widget's script reads ---------------------------------------------------------------


def document(widget: Widget) -> dict[str, Any]:
    """Return what a page's scripts need to run a widget's scenario, as plain data.

    Raises WidgetError for a scenario with parts that the scripts do not resolve.
    """
    known = protocols.load()
    scenario = widget.load(widget.laws[0])
    networks = {law: resolve.to_core(widget.load(law), known) for law in widget.laws}
    first = networks[widget.laws[0]]
    _check(widget, scenario, networks.values())
    used = {name for network in networks.values() for name in network.protocols}
    signals = protocols.signals().items()
    back = [direction.back for direction in Graph(scenario).directions]
    links = [direction.link for direction in Graph(scenario).directions]
    bdp = [link.buffer.amount if link.buffer.unit == "bdp" else None for link in links]
    return {
        "title": widget.title,
        "network": first.to_dict(),
        "given": {
            "links": [{"bdp": b, "back": i} for b, i in zip(bdp, back, strict=True)],
            "rtt_s": [flow.rtt for flow in scenario.flow],
        },
        "laws": {law: {"flows": _differences(first, one)} for law, one in networks.items()},
        "targets": {name: protocols.targets(first.params)[name] for name in sorted(used)},
        "signals": {column: one._asdict() for column, one in signals if one.law in used},
        "sliders": [_slider(widget, scenario, key) for key in widget.sliders],
        "charts": list(widget.charts),
    }


def _check(widget: Widget, scenario: Scenario, networks: Iterable[Network]) -> None:
    for network in networks:
        wrong = [
            *(f.name for f in network.flows if f.start_jitter_s or f.pad_jitter_s or f.routes),
            *(f.name for f in network.flows if f.demands or f.limit_bps < math.inf),
            *(x.name for x in network.links if x.changes or x.queue.kind != "droptail"),
            *(t.name for t in network.traffic if t.periods is not None or t.flows is not None),
        ]
        if wrong or network.sample_s != scenario.sample:
            raise WidgetError(f"{widget.title}: no script resolves {', '.join(wrong) or 'sample'}")


def _differences(first: Network, other: Network) -> list[dict[str, Any]]:
    """Return each flow's fields that another law changes; raise WidgetError if more changes."""
    one, two = first.to_dict(), other.to_dict()
    flows = [
        {key: value for key, value in theirs.items() if mine[key] != value}
        for mine, theirs in zip(one.pop("flows"), two.pop("flows"), strict=True)
    ]
    if one != two:
        raise WidgetError(f"{first.name}: laws differ in more than their flows")
    return flows


def _slider(widget: Widget, scenario: Scenario, key: str) -> dict[str, Any]:
    """Return a slider's label and steps, each with its text and its number (SI)."""
    slider = _of_key(scenario, key)
    steps = list(_within(slider, key.rpartition(".")[2]))
    return {
        "key": key,
        "label": widget.sliders[key],
        "steps": [[step.value, _number(widget, key, step), _text(key, step)] for step in steps],
        "start": steps.index(slider.steps[slider.start]),
    }


def _of_key(scenario: Scenario, key: str) -> Slider:
    kind, name, field = key.split(".")
    if kind == "params":
        found = controls.of_protocol(scenario, name)
        return next(one for one in found if one.key == key and isinstance(one, Slider))
    if field == "rtt":
        flow = next(flow for flow in scenario.flow if flow.name == name)
        own_ms = 1e3 * next(
            f.base_rtt_s - 2 * f.pad_s
            for f in resolve.to_core(scenario, protocols.load()).flows
            if f.name == name
        )
        times = [x * 10**e for e in range(0, 4) for x in (1, 1.5, 2, 3, 4, 5, 6, 8)]
        times = [time for time in times if time >= own_ms]
        return controls.slider(key, "RTT (ms)", times, "ms", 1e3 * (flow.rtt or 0.0))
    of = {"link": controls.of_link, "flow": controls.of_flow}[kind]
    return next(one for one in of(scenario, name) if one.key == key)


def _within(slider: Slider, field: str) -> Iterator[Step]:
    now = slider.steps[slider.start].shown
    low, high = _FACTORS.get(field, (0.0, 10.0))
    most = _MAX.get(field, high * now)
    return (step for step in slider.steps if step.shown == now or low * now <= step.shown <= most)


def _text(key: str, step: Step) -> str:
    """Return a step's value as a reader sees it."""
    return f"{step.shown:g} %" if key.endswith(".loss") else step.value


def _number(widget: Widget, key: str, step: Step) -> float | int:
    kind, name, field = key.split(".")
    if kind == "params":
        given = step.value if " " in step.value else float(step.value)
        value = protocols.load()[name].param(field).parse(given)
        if not isinstance(value, int | float):
            raise WidgetError(f"{widget.title}: {key} is no number")
        return value
    if field == "count":
        return int(step.shown)
    if field == "loss":
        return float(step.value)
    return (RATE if field == "rate" else TIME).parse(step.value)


# --- what a page shows ------------------------------------------------------------------------


def charts(widget: Widget, result: Result) -> list[Chart]:
    """Return the charts that a widget shows of a run."""
    found = RunCharts(result, SCREEN)
    of: dict[str, Callable[[], list[Chart]]] = {
        "rates": lambda: [found.rates()],
        "queues": lambda: [found.queues()],
        "signal": lambda: found.signals(first=True)[:1],
    }
    return [one for name in widget.charts for one in of[name]()]


@cache
def html(name: str) -> str:
    """Return a widget as HTML: its pictures and its data; raise WidgetError for an unknown name."""
    widget = of_name(name)
    drawn = map(chart.render, charts(widget, backends.run(widget.load(widget.laws[0]), on="sim")))
    data = json.dumps(document(widget), allow_nan=False, separators=(",", ":")).replace(
        "</", "<\\/"
    )
    note = "This copy of the documentation has no simulator in its pages: these are pictures."
    return (
        f'<section class="wf-widget wf-card" aria-label="{escape(widget.title)}">'
        f"<h3>{escape(widget.title)}</h3>"
        f'<script type="application/json">{data}</script>'
        f'<div class="wf-controls"></div><p class="wf-note" role="status">{note}</p>'
        f'<div class="wf-grid2">{"".join(drawn)}</div></section>'
    )


def of_name(name: str) -> Widget:
    """Return a widget, or the dumbbell under a law for a name such as `law-xcp`; raise WidgetError
    for an unknown name.
    """
    law = name.removeprefix("law-")
    if law != name and law in protocols.load():
        return Widget(f"Two groups of flows under {law}", "dumbbell", [law], _DUMBBELL, _CHARTS)
    if name not in WIDGETS:
        raise WidgetError(f"no widget is named {name!r}; there are {', '.join(WIDGETS)}")
    return WIDGETS[name]


def insert(page: str, path: str) -> str:
    """Return a page's HTML with its widgets, and the scripts they need. `path` is the page's
    address in the site. A law's page gets a widget of the law above its first section.
    """
    law = _LAW_PAGE.search(path)
    if law is not None and law["law"] in protocols.load():
        page = page.replace("<h2", f"<!-- widget: law-{law['law']} --><h2", 1)
    found = _COMMENT.sub(lambda match: html(match["name"]), page)
    if 'class="wf-' not in found:
        return page
    up = "../" * (len(PurePosixPath(path).parts) - 1)
    head = f'<link rel="stylesheet" href="{up}{FOLDER}/chart.css"></head>'
    scripts = "".join(f'<script defer src="{up}{FOLDER}/{s}.js"></script>' for s in SCRIPTS)
    if not engine():
        scripts = ""
    return found.replace("</head>", head, 1).replace("</body>", f"{scripts}</body>", 1)


def files() -> dict[str, str]:
    """Return the generated files of the site's widgets by path: the stylesheet and the engine."""
    # The rest of the studio's sheet is for its own page.
    style = chart.style().partition("/* marimo's page")[0]
    style = style.replace(".dark {", '[data-md-color-scheme="slate"] {')
    found = {f"{FOLDER}/chart.css": style}
    if engine():
        found[f"{FOLDER}/engine.js"] = packing.script(engine())
    return found
