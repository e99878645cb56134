"""Runs of a case: in ns-3, and in Waterfill with the law read as there and as in its paper."""

from __future__ import annotations

from typing import Any

from validation.fabric_ns3 import peer
from validation.fabric_ns3.cases import FabricCase
from waterfill.analysis import transfers
from waterfill.runs import backends
from waterfill.scenario.loading import from_dict

# What runs, next to ns-3 with cleared memory: Waterfill with the reading of that code, which is
# judged; the same with hosts that are first in, first out; the paper's law; ns-3 as it is built.
NS3, OURS, FIFO, PAPER, AS_BUILT = "ns-3", "ns3", "ns3, hosts in order", "paper", "ns-3 as built"


def _simulate(case: FabricCase, reading: str, *, fair_hosts: bool) -> dict[str, Any]:
    result = backends.run(from_dict(case.document(reading, fair_hosts=fair_hosts)))
    ideal_s = transfers.values(result.transfers, "ideal_s")
    times_s = transfers.values(result.transfers, "slowdown") * ideal_s
    last = f"n{case.hosts - 1}-n{case.hosts}:rev"
    queues = [
        link["queue_bytes"]["max"] for link in result.summary["links"] if link["name"] == last
    ]
    drops = sum(link["drops"] for link in result.summary["links"])
    return {"times_s": times_s.tolist(), "queue": max(queues, default=0), "drops": drops,
            "ideal_s": ideal_s.tolist()}  # fmt: skip


def _peer(case: FabricCase, *, cleared: bool) -> dict[str, Any]:
    times_s, queue = peer.run(case, cleared=cleared)
    return {"times_s": times_s.tolist(), "queue": queue}


def measure(case: FabricCase) -> dict[str, Any]:
    """Return what each side measured: completion times (s) and the longest queue (bytes)."""
    web = case.kind == "web-search"
    found = {
        NS3: _peer(case, cleared=True),
        OURS: _simulate(case, "ns3", fair_hosts=web),
        PAPER: _simulate(case, "paper", fair_hosts=web),
    }
    if web:
        found[FIFO] = _simulate(case, "ns3", fair_hosts=False)
    if case.law == "powertcp":
        found[AS_BUILT] = _peer(case, cleared=False)
    return found
