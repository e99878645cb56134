"""Keys of a scenario whose behaviour a backend lacks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from waterfill.errors import shown
from waterfill.scenario import traces
from waterfill.scenario.document import SECTIONS, Application, Scenario
from waterfill.scenario.switch import Switch

# Keys whose behaviour a backend lacks, with the values that it does run.
UNSUPPORTED: Mapping[str, Mapping[str, tuple[object, ...]]] = {
    "fluid": {
        "ecmp": ("pair",),
        "series.step": (),
        "switch": (),
        "nic": ("queue",),
        "link.loss": (0.0,),
        "link.loss_reverse": (0.0,),
        "link.queue": ("droptail",),
        "link.queue_params": (),
        "link.mark_at": (),
        "link.mark_to": (),
        "link.loss_model": (),
        "link.reorder": (),
        "link.duplicate": (0.0,),
        "link.shaper": (),
        "link.policer": (),
        "link.fault": (),
        "link.ack_aggregation": (),
        "link.ack_thinning": (),
        "collective.kind": (),
        "flow.after": (),
        "flow.continues": (),
        "flow.route": (),
        "flow.application": (),
        "flow.fault": (),
        "flow.ecn": (False,),
        "flow.ecn_feedback": (),
        "traffic.ecn_feedback": (),
        "flow.ecn_codepoint": (),
        "traffic.ecn_codepoint": (),
        "handshake": (True,),
        "flow.handshake": (True,),
        "traffic.handshake": (True,),
        "flow.recovery": (),
        "traffic.recovery": (),
        "flow.ack_frequency": (),
        "traffic.ack_frequency": (),
        "flow.window_validation": (),
        "traffic.window_validation": (),
        "flow.pacing_quantum": (1,),
        "traffic.pacing_quantum": (1,),
        "flow.access_rate": (),
        "traffic.access_rate": (),
        "rttvar_min": (),
        "traffic.kind": ("cbr",),
        "traffic.arrival_rate": (),
        "traffic.load": (),
        "traffic.at": (),
        "traffic.every": (),
        "traffic.pattern": (),
        "traffic.sizes": (),
    },
    "linux": {
        "ecmp": ("pair",),
        "series.links": (),
        "series.step": (),
        "switch": (),
        "nic": ("queue",),
        "link.queue": ("droptail", "cohabit"),
        "link.mark_at": (),
        "link.mark_to": (),
        "flow.ecn_feedback": (),
        "traffic.ecn_feedback": (),
        "flow.ecn_codepoint": (),
        "traffic.ecn_codepoint": (),
        "handshake": (True,),
        "flow.handshake": (True,),
        "traffic.handshake": (True,),
        "flow.recovery": (),
        "traffic.recovery": (),
        "flow.ack_frequency": (),
        "traffic.ack_frequency": (),
        "flow.window_validation": (),
        "traffic.window_validation": (),
        "flow.pacing_quantum": (1,),
        "traffic.pacing_quantum": (1,),
        "flow.access_rate": (),
        "traffic.access_rate": (),
        "traffic.count": (1,),
        "link.shaper": (),
        "link.policer": (),
        "link.ack_thinning": (),
        "collective.kind": (),
        "flow.after": (),
        "flow.continues": (),
        "flow.route": (),
        "flow.application": (),
        "flow.fault": (),
        "flow.claimed_rtt": (),
        "flow.demand_trace": (),
        "profile": ("wan",),
        "syn_rto": (1.0,),
        "rttvar_min": (),
        "traffic.kind": ("cbr",),
        "traffic.arrival_rate": (),
        "traffic.load": (),
        "traffic.at": (),
        "traffic.every": (),
        "traffic.pattern": (),
        "traffic.sizes": (),
    },
}


def unsupported(scenario: Scenario, backend: str) -> Iterator[tuple[str, str]]:
    """Yield (key, message) for every value that the backend does not support."""
    for path, runs in UNSUPPORTED.get(backend, {}).items():
        section, _, name = path.rpartition(".")
        found = getattr(scenario, section) if section else scenario
        tables: Any = found if section in SECTIONS else [found]
        for index, table in enumerate(tables):
            value = getattr(table, name, None)
            if value is None or value in runs:
                continue
            key = f"{scenario.key(section, index)}.{name}" if section in SECTIONS else path
            if isinstance(value, Application):
                yield key, f'kind = "{value.kind}" is not supported by the {backend} backend'
                continue
            if isinstance(value, Switch):
                yield key, f"not supported by the {backend} backend; remove [{key}]"
                continue
            if isinstance(value, (list, traces.Trace)):
                got = len(value.points if isinstance(value, traces.Trace) else value)
                yield key, f"not supported by the {backend} backend, got {got}"
                continue
            if name == "kind" and section == "traffic" and table.starts_flows:
                yield key, f"{shown(value)} is not supported by the {backend} backend; use [[flow]]"
                continue
            wanted = f"; use {' or '.join(map(shown, runs))}" if runs else ""
            yield (
                key,
                f"{shown(value)} is not supported by the {backend} backend{wanted}",
            )
