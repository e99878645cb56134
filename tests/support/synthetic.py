"""Runs that no simulator made: samples written by hand, so that measures can be checked by hand."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any

from waterfill.contract.droptail import Droptail
from waterfill.contract.network import BufferSpec, FlowSpec, LinkSpec, Network
from waterfill.contract.summary import CoreSummary
from waterfill.runs.result import Columns, Result, Which, summarise

STEP_S = 0.1


def column(values: Sequence[float]) -> tuple[str, bytes]:
    return "f64", struct.pack(f"<{len(values)}d", *values)


def indexes(values: Sequence[int]) -> tuple[str, bytes]:
    return "u32", struct.pack(f"<{len(values)}I", *values)


def counts(values: Sequence[int]) -> tuple[str, bytes]:
    return "u64", struct.pack(f"<{len(values)}Q", *values)


def interleaved(series: Sequence[Sequence[float]]) -> list[float]:
    return [value for sample in zip(*series, strict=True) for value in sample]


def table(key: str, step_s: float, columns: Mapping[str, Sequence[Sequence[float]]]) -> Columns:
    """The core's layout: one row a sample and entity, in time order."""
    entities = [len(series) for series in columns.values()]
    length = len(next(iter(columns.values()))[0])
    times = [round((i + 1) * step_s, 9) for i in range(length) for _ in range(entities[0])]
    return {
        "time_s": column(times),
        key: indexes([e for _ in range(length) for e in range(entities[0])]),
        **{name: column(interleaved(series)) for name, series in columns.items()},
    }


def flow_summary(name: str, group: str, index: int, rate_bps: float | None) -> dict[str, Any]:
    """A flow's entry as the core sends it, keys in the core's order."""
    return {
        "active_s": [1.0, 2.0],
        "completed_s": None,
        "goodput_bps": rate_bps,
        "group": group,
        "index": index,
        "name": name,
        "packets_sent": 10,
        "protocol": "maxnet",
        "rate_bps": rate_bps,
        "retransmissions": 0,
        "rtt_ms": {"base": 10.0, "mean": 10.5, "p50": 10.4, "p99": None},
        "start_s": 0.0,
        "stop_s": 2.0,
        "timeouts": 0,
    }


def link_summary(name: str) -> dict[str, Any]:
    zero = {"mean": 0.0, "p99": 0.0, "max": 0.0}
    queues = {"queue_bytes": zero, "queue_packets": zero}
    return {"name": name, "utilization": 0.9, **queues, "drops": 0, "marks": 0, "lost": 0}


def link_spec(name: str) -> LinkSpec:
    return LinkSpec(
        name=name,
        rate_bps=100e6,
        delay_s=0.005,
        buffer=BufferSpec("bytes", 125_000),
        shaper=None,
        queue=Droptail(mark_at=None),
        loss=0.0,
        loss_model=None,
        reorder=None,
        duplicate=0.0,
        target=None,
        routers=None,
    )


def flow_spec(name: str, links: int, stop_s: float) -> FlowSpec:
    return FlowSpec(
        name=name,
        count=1,
        protocol="maxnet",
        forward=tuple(range(links)),
        reverse=tuple(range(links)),
        start_s=0.0,
        stagger_s=0.0,
        start_jitter_s=(),
        stop_s=stop_s,
        size_bytes=None,
        pad_s=0.0,
        pad_jitter_s=(),
        access_bps=None,
        base_rtt_s=0.01,
        weight=1.0,
        claimed_rtt_s=None,
        base_rtt_window_s=None,
        demand_bps=None,
        initial_window_packets=10,
        pacing=None,
        delayed_ack=False,
        ecn=None,
    )


def network(
    links: Sequence[str],
    flows: Sequence[FlowSpec],
    duration_s: float = 1.0,
    sample_s: float = STEP_S,
) -> Network:
    return Network(
        name="by hand",
        seed=7,
        duration_s=duration_s,
        measure_s=(0.0, duration_s),
        sample_s=sample_s,
        packet_bytes=1500,
        ack_bytes=40,
        rto_min_s=1.0,
        rttvar_min_s=0.2,
        syn_rto_s=1.0,
        params={},
        links=tuple(link_spec(name) for name in links),
        flows=tuple(flows),
        traffic=(),
    )


def result(
    flows: Mapping[str, Sequence[float]],
    links: Mapping[str, Mapping[str, Sequence[float]]],
    step_s: float = STEP_S,
    more: Mapping[str, Sequence[Sequence[float]]] | None = None,
) -> Result:
    """A run of `flows` (name → rate in bit/s at every sample) over all of `links` in a row.

    `links` gives columns by name, each with one value a sample; `more` further columns of the
    flows, a series for each flow.
    """
    names = list(links)
    first = next(iter(links.values()))
    duration_s = round(step_s * len(next(iter(first.values()))), 9)
    made = network(names, [flow_spec(f, len(names), duration_s) for f in flows], duration_s, step_s)
    core = {
        "flows": [flow_summary(name, name, 0, 1e6) for name in flows],
        "links": [link_summary(name) for name in names],
        "traffic": [],
        "engine": {"packet_hops": 1, "events": 1, "wall_s": 0.1},
    }
    tables: dict[Which, Columns] = {
        "flows": table("flow", step_s, {"rate_bps": list(flows.values())} | dict(more or {})),
        "links": table("link", step_s, {c: [links[n][c] for n in names] for c in first}),
        "traffic": {"time_s": column([]), "traffic": indexes([]), "rate_bps": column([])},
    }
    summary = summarise(
        CoreSummary.read(core),
        network=made,
        backend="sim",
        params={"maxnet": {"mu": 0.9}},
        max_min_bps=[2e6] * len(flows),
    )
    return Result(summary, network=made, scenario_toml='name = "x"\n', series=tables.__getitem__)
