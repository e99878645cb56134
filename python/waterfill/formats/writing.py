"""Conversion of a layout to the readable text of a scenario file."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from waterfill.errors import one_line
from waterfill.formats.layout import FlowPlan, Layout, LinkPlan, SourcePlan
from waterfill.scenario.fabric import end_nodes
from waterfill.scenario.units import RATE, TIME, VOLUME


def text(layout: Layout, protocol: str, seed: int) -> str:
    """Return the text of a scenario: notes, general keys, then one block for each link, flow and
    traffic source.
    """
    return "\n".join(_lines(layout, protocol, seed)) + "\n"


def _lines(layout: Layout, protocol: str, seed: int) -> Iterator[str]:
    count = sum(flow.count for flow in layout.flows)
    flows = "flows that arrive at random" if layout.sources else f"{count} flows"
    simplex = len(layout.simplex)
    links = f"{len(layout.links) - simplex} duplex links"
    links += f", {simplex} links of one direction" if simplex else ""
    yield f"# {one_line(layout.name)}: {links}, {flows}."
    for note in layout.notes:
        yield f"# {one_line(note)}"
    yield ""
    yield f"name = {_string(layout.name)}"
    yield f"duration = {_string(TIME.format(layout.duration_s))}"
    yield f"protocol = {_string(protocol)}"
    yield f"packet_size = {_string(VOLUME.format(layout.packet_bytes))}"
    yield f"seed = {seed}"
    if layout.rto_min_s is not None:
        yield f"rto_min = {_string(TIME.format(layout.rto_min_s))}"
    if layout.profile is not None:
        yield f"profile = {_string(layout.profile)}"
    if layout.link_defaults:
        yield ""
        yield "[link_defaults]"
        yield from (f"{key} = {_string(text)}" for key, text in layout.link_defaults.items())
    for link in layout.links:
        yield from _link(link)
    for flow in layout.flows:
        yield from _flow(flow)
    for source in layout.sources:
        yield from _source(layout, source)


def _link(link: LinkPlan) -> Iterator[str]:
    yield ""
    yield "[[link]]"
    yield f"name = {_string(link.name)}"
    yield f"from = {_string(link.start)}"
    yield f"to = {_string(link.end)}"
    yield f"rate = {_string(RATE.format(link.rate_bps))}"
    yield f"delay = {_string(TIME.format(link.delay_s))}"
    if not link.duplex:
        yield "duplex = false"
    if link.rate_reverse_bps is not None:
        yield f"rate_reverse = {_string(RATE.format(link.rate_reverse_bps))}"
    if link.delay_reverse_s is not None:
        yield f"delay_reverse = {_string(TIME.format(link.delay_reverse_s))}"
    if link.loss:
        yield f"loss = {link.loss!r}"
    if link.loss_reverse:
        yield f"loss_reverse = {link.loss_reverse!r}"
    if link.rate_trace is not None:
        yield f"rate_trace = {_value(link.rate_trace)}"


def _flow(flow: FlowPlan) -> Iterator[str]:
    yield ""
    yield "[[flow]]"
    yield f"name = {_string(flow.name)}"
    yield f"from = {_string(flow.start)}"
    yield f"to = {_string(flow.end)}"
    yield f"path = [{', '.join(map(_string, flow.path))}]"
    if flow.return_path is not None:
        yield f"return_path = [{', '.join(map(_string, flow.return_path))}]"
    if flow.count != 1:
        yield f"count = {flow.count}"
    if flow.after:
        yield f"after = [{', '.join(map(_string, flow.after))}]"
    if flow.after_count is not None:
        yield f"after_count = {flow.after_count}"
    if flow.start_s:
        yield f"start = {_string(TIME.format(flow.start_s))}"
    if flow.stop_s is not None:
        yield f"stop = {_string(TIME.format(flow.stop_s))}"
    if flow.size_bytes is not None:
        yield f"size = {_string(VOLUME.format(flow.size_bytes))}"
    if flow.demand_bps is not None:
        yield f"demand = {_string(RATE.format(flow.demand_bps))}"


def _source(layout: Layout, source: SourcePlan) -> Iterator[str]:
    yield ""
    yield "[[traffic]]"
    yield 'kind = "web"'
    yield f"pattern = {_string(source.pattern)}"
    links = ((way.start, way.end) for link in layout.links for way in link.ways())
    if set(end_nodes(links)) != set(source.hosts):
        yield f"hosts = [{', '.join(map(_string, source.hosts))}]"
    if source.fan_in is not None:
        yield f"fan_in = {source.fan_in}"
    yield f'load = "{source.load * 100:g} %"'
    yield f"sizes = {_value(source.sizes)}"


def _value(value: object) -> str:
    """Return a text, a flag or a table of them as TOML; a table with only a file as its name."""
    if isinstance(value, Mapping):
        if value.keys() == {"file"}:
            return _value(value["file"])
        return "{" + ", ".join(f"{key} = {_value(one)}" for key, one in value.items()) + "}"
    return _string(value) if isinstance(value, str) else json.dumps(value)


def _string(value: str) -> str:
    # A JSON string is a TOML basic string, except for one control character.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
