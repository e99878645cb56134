"""The animated view: an HTML document that replays a run on a drawing of its network.

It is driven by the run's series: dots move along a flow's route as often as its rate says, queues
and prices are those of the moment. It has no network access and ends with the run. Space pauses,
the arrow keys step.
"""

from __future__ import annotations

import json
from importlib import resources
from typing import Any

import numpy as np

from waterfill.analysis import series
from waterfill.analysis.series import Series, intervals
from waterfill.network import protocols, resolve
from waterfill.runs.result import finite
from waterfill.studio import topology
from waterfill.studio.answer import Answer
from waterfill.studio.settings import known

FRAMES = 160
"""Number of frames of a replay, which takes twenty seconds at eight frames per second."""

MAX_LINKS, MAX_FLOWS = 12, 24
"""Maximum numbers of links and flows in the drawing."""

_PACKETS_PER_DOT = (1, 2, 5)
# Dots that leave the sources in a second of the replay, all flows together.
_DOTS_PER_S = 24.0


def fits(given: Answer) -> str:
    """Return the reason why a run is too large for the animated view, or an empty text."""
    links, flows = len(given.settings.load().link), len(given.result.summary.flows)
    if links <= MAX_LINKS and flows <= MAX_FLOWS:
        return ""
    return (
        f"The animated view is for networks of up to {MAX_LINKS} links and {MAX_FLOWS} flows; "
        f"this one has {links} and {flows}."
    )


def document(given: Answer) -> str:
    """Return the replay of a run as one HTML document."""
    text = (resources.files("waterfill.studio") / "animation.html").read_text(encoding="utf-8")
    data = json.dumps(finite(replay(given)), ensure_ascii=False, allow_nan=False)
    # Inside a script element only this sequence could end it.
    return text.replace('"REPLAY"', data.replace("</", "<\\/"))


def replay(given: Answer) -> dict[str, Any]:
    """Return the data of a replay: node positions, links, flows, and values per frame."""
    result, scenario = given.result, given.settings.load()
    network = resolve.to_core(scenario, known())
    places = topology.layout(topology.ends(scenario))
    ways = topology.directions(scenario, network)
    frame_s = given.ran_s / FRAMES
    packet_bits = 8.0 * result.network.packet_bytes
    links = []
    for index, link in enumerate(result.network.links):
        if index not in ways or not any(index in flow.forward for flow in result.network.flows):
            continue
        queue = _frames(result, "links", link.name, "queue_max_bytes", frame_s, np.maximum)
        load = _frames(result, "links", link.name, "utilization", frame_s)
        links.append(
            {
                "name": link.name,
                "from": ways[index][0],
                "to": ways[index][1],
                "rate_mbps": link.rate_bps / 1e6,
                "delay_ms": 1e3 * link.delay_s,
                "load": _rounded(100 * load, 1),
                "queue": _rounded(queue / result.network.packet_bytes, 0),
                **_signal(given, link.name, frame_s),
            }
        )
    groups: list[dict[str, Any]] = []
    most = 1.0
    for spec in result.network.flows:
        names = [f.name for f in result.summary.flows if f.group == spec.name]
        rates = [_frames(result, "flows", name, "rate_bps", frame_s) for name in names]
        total = np.sum(rates, axis=0) if rates else np.zeros(FRAMES)
        path = [[*ways[index], result.network.links[index].name] for index in spec.forward
                if index in ways]  # fmt: skip
        packets_per_s = _rounded(total / packet_bits, 1)
        most = max(most, *packets_per_s) if groups else max(packets_per_s)
        groups.append(
            {
                "name": spec.name,
                "count": len(names),
                "path": path,
                "packets_per_s": packets_per_s,
                "rate_mbps": _rounded(total / 1e6 / max(1, len(names)), 3),
            }
        )
    return {
        "title": scenario.name,
        "width": topology.WIDTH,
        "height": topology.HEIGHT,
        "places": places,
        "links": links,
        "flows": groups,
        "frame_s": frame_s,
        "frames": FRAMES,
        "per_dot": _per_dot(most * len(groups)),
    }


def _signal(given: Answer, link: str, frame_s: float) -> dict[str, Any]:
    """Return a link's signal per frame with its name and unit, or an empty dict if the first flow's
    law records none.
    """
    protocol = given.result.network.flows[0].protocol
    for column, (law, name, unit) in protocols.signals().items():
        if law != protocol or column not in given.result.links.column_names:
            continue
        recorded = series.samples(given.result, "links", link, column)[1]
        # A TCP's signals are of its senders: the column is there, without a value for a link.
        if np.isfinite(recorded).any():
            values = _frames(given.result, "links", link, column, frame_s)
            size, text = {"bit/s": (1e6, "Mbit/s"), "1": (1.0, "")}.get(unit, (1.0, unit))
            return {
                "signal": name,
                "unit": text,
                "value": _rounded(values / size, 3),
            }
    return {}


def _frames(
    result: Any, which: str, name: str, column: str, frame_s: float, combine: np.ufunc = np.add
) -> Series:
    """Return a column's value at each frame of the replay, or zero before the first sample."""
    table = result.samples(which, name)
    values = series.numbers(table, column)
    found = np.zeros(FRAMES)
    if len(values) and np.isfinite(values).any():
        time_s, means = intervals(series.numbers(table, "time_s"), values, frame_s, combine)
        wanted = (np.arange(FRAMES) + 0.5) * frame_s
        place = np.searchsorted(time_s, wanted + 1e-9) - 1
        found = np.where(place >= 0, means[np.maximum(place, 0)], 0.0)
        if which == "flows":  # after its last sample a flow has ended
            found = np.where(wanted > time_s[-1] + 1.5 * frame_s, 0.0, found)
    return np.asarray(found, dtype=np.float64)


def _per_dot(packets_per_s: float) -> int:
    """Return the number of packets per dot, 1, 2 or 5 × 10^n, so that few dots are drawn."""
    wanted = max(1.0, packets_per_s / _DOTS_PER_S)
    power = 1
    while True:
        for step in _PACKETS_PER_DOT:
            if step * power >= wanted:
                return step * power
        power *= 10


def _rounded(values: Series, digits: int) -> list[float]:
    return [float(v) for v in np.round(values, digits)]
