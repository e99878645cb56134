"""The playground of the documentation site: scenarios with a slider for each link and flow.

The comment `<!-- playground -->` in a page becomes the playground, which runs up to three laws side
by side, keeps its state in the page's address, and writes TOML and CSV.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from typing import Any

from tools import site_widgets
from tools.site_widgets import Widget
from waterfill.network import protocols
from waterfill.scenario.document import Scenario
from waterfill.studio import shipped

COMMENT = "<!-- playground -->"

SCENARIOS = (
    "dumbbell", "parking-lot", "two-hops", "one-link", "long-fat-pipe", "two-bottlenecks",
    "far-and-near", "xcp-and-tcp",
)  # fmt: skip
"""Scenarios of the studio that the playground offers; the first one is open at the start."""

_CHARTS = ("rates", "queues", "signal")
_NOTE = "This copy of the documentation has no simulator in its pages."


def widget(name: str) -> Widget:
    """Return the widget of a scenario with every law and every slider."""
    title = shipped.title(name).rstrip(".")
    scenario = Widget(title, name, ["maxnet"], {}).load("maxnet")
    return Widget(title, name, list(protocols.load()), dict(_sliders(scenario)), _CHARTS)


def _sliders(scenario: Scenario) -> Iterator[tuple[str, str]]:
    """Yield the key and label of each slider; the page groups them by link or flow."""
    for link in scenario.link:
        yield f"link.{link.name}.rate", "Rate"
        yield f"link.{link.name}.delay", "Delay, one way"
        yield f"link.{link.name}.loss", "Random loss"
    for flow in scenario.flow:
        yield f"flow.{flow.name}.count", "Flows"
        if flow.rtt is not None:
            yield f"flow.{flow.name}.rtt", "RTT"


def document(name: str) -> dict[str, Any]:
    """Return a scenario's widget as data, with the scenario as TOML."""
    found = widget(name)
    return {**site_widgets.document(found), "toml": found.load(found.laws[0]).to_toml()}


@cache
def html() -> str:
    """Return the playground as HTML."""
    data = {name: document(name) for name in SCENARIOS}
    text = json.dumps(data, allow_nan=False, separators=(",", ":")).replace("</", "<\\/")
    return (
        '<section class="wf-playground wf-card" aria-label="Playground">'
        f'<script type="application/json">{text}</script><div class="wf-controls"></div>'
        f'<p class="wf-note" role="status">{_NOTE}</p><div class="wf-results"></div></section>'
    )


def insert(page: str) -> str:
    """Return a page's HTML with the playground in place of its comment."""
    return page.replace(COMMENT, html()) if COMMENT in page else page
