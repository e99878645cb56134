"""Equilibria beside the packet simulator: on ixcp-2007's Fig. 4 and on random networks.

    python -m validation.equilibria [--networks N] [--protocols A,B] [--unpaced] [--json]

XCP is held against its fixed point, the others against max-min, both with acknowledgements as
load. Networks are small on purpose: a few links of some Mbit/s and packets of 250 bytes, so that
windows are tens of packets or more and a run takes a second or two. Flows are paced, as the
models have it: with `--unpaced` a window leaves in bursts that keep their place in a router's
interval for ever, and flows that are alike get different shares.
"""

from __future__ import annotations

import itertools
import math
import random
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, NamedTuple

import networkx as nx
import typer

from waterfill.network import protocols
from waterfill.network.resolve import to_core
from waterfill.runs import backends
from waterfill.scenario.document import Scenario
from waterfill.scenario.loading import from_dict
from waterfill.theory import equilibrium, subject

# What the two comparisons allow, for every flow.
FIG_4_TOLERANCE = 0.03
NETWORK_TOLERANCE = 0.05
# A sender has whole packets out, so that it may be short of its window by one: of 25, 4 %.
_LEAST_WINDOW = 25

# ixcp-2007 §4.2: max-min rates of the flows that end at links 1 to 5, in Mbit/s. Their numbers on
# the first three links are not in the text: ten each, an instance of the figure.
FIG_4_MBPS = (10, 8, 4, 3, 2)
FIG_4_FLOWS = (10, 10, 10, 20, 30)


class Flow(NamedTuple):
    """One flow: the model's rate and the simulator's, bit/s, and the link that bounds it."""

    name: str
    model_bps: float
    measured_bps: float
    bottleneck: str

    @property
    def error(self) -> float:
        """The simulator's rate over the model's, less 1."""
        return self.measured_bps / self.model_bps - 1


def fig_4(duration_s: float = 30.0) -> dict[str, Any]:
    """`[ixcp-2007:fig4]` Five links in a row: 340, 240, 160, 120 and 60 Mbit/s; flows to each."""
    links, flows = [], []
    for i, count in enumerate(FIG_4_FLOWS):
        rate = sum(m * n for m, n in zip(FIG_4_MBPS[i:], FIG_4_FLOWS[i:], strict=True))
        links.append(
            {
                "name": f"l{i + 1}", "from": f"r{i + 1}", "to": f"r{i + 2}",
                "rate": f"{rate} Mbit/s", "delay": "20 ms",
            }
        )  # fmt: skip
        path = [f"l{j + 1}" for j in range(i + 1)]
        flows.append({"name": f"to{i + 1}", "path": path, "count": count})
    return {
        "name": "ixcp-2007 Fig. 4", "duration": f"{duration_s:g} s", "protocol": "xcp",
        "packet_size": "1000 B", "measure": [f"{duration_s / 2:g} s", f"{duration_s:g} s"],
        "link": links, "flow": flows,
    }  # fmt: skip


def network(seed: int, duration_s: float = 60.0) -> dict[str, Any]:
    """A random network: five to seven routers, a tree of links and up to two more."""
    draw = random.Random(seed)
    graph = nx.random_labeled_tree(draw.randint(5, 7), seed=draw.randint(0, 2**31))
    spare = sorted(nx.non_edges(graph))
    graph.add_edges_from(draw.sample(spare, min(2, len(spare))))
    links, names = [], {}
    for i, (a, b) in enumerate(sorted(graph.edges)):
        names[a, b] = names[b, a] = f"l{i}"
        links.append(
            {
                "name": f"l{i}", "from": f"r{a}", "to": f"r{b}",
                "rate": f"{draw.uniform(10, 30):.2f} Mbit/s",
                "delay": f"{draw.uniform(8, 30):.2f} ms",
            }
        )  # fmt: skip
    flows: list[dict[str, Any]] = []
    while len(flows) < draw.randint(6, 9):
        a, b = draw.sample(sorted(graph.nodes), 2)
        route = draw.choice(sorted(nx.all_simple_paths(graph, a, b, cutoff=4)) or [[]])
        if len(route) < 2:
            continue
        path = [names[x, y] for x, y in itertools.pairwise(route)]
        entry: dict[str, Any] = {
            "name": f"f{len(flows)}", "path": path, "count": draw.randint(1, 3), "from": f"r{a}",
            "start": f"{draw.uniform(0, 1):.3f} s", "stagger": "0.1 s", "pacing": True,
        }  # fmt: skip
        flows.append(entry)
    return {
        "name": f"random network {seed}", "duration": f"{duration_s:g} s", "protocol": "xcp",
        "packet_size": "250 B", "sample": "1 s", "seed": seed,
        "measure": [f"{duration_s / 2:g} s", f"{duration_s:g} s"], "link": links, "flow": flows,
    }  # fmt: skip


def compare(document: Mapping[str, Any], protocol: str) -> list[Flow]:
    """Every flow's rate in the model and in the simulator."""
    scenario = from_dict(document, sets=[f"protocol={protocol}"])
    model, bounds = _model(scenario, protocol)
    result = backends.run(scenario)
    return [
        Flow(flow["name"], rate, flow["rate_bps"], bound)
        for flow, rate, bound in zip(result.summary["flows"], model, bounds, strict=True)
    ]


def _model(scenario: Scenario, protocol: str) -> tuple[list[float], list[str]]:
    known = protocols.load()
    core = to_core(scenario, known)
    params = protocols.with_defaults([protocol], core.params, known)[protocol]
    if protocol in ("xcp", "pxcp"):
        rest = equilibrium.of_network(core, params, protocol)
        rates, bounds = rest.rates_bps, rest.bottleneck
    else:
        found = subject.at_rest(core, protocols.targets(core.params), acknowledgements=True)
        rates, bounds = [f.rate_bps for f in found], [f.bottleneck for f in found]
    counts = [flow.count for flow in core.flows]
    names = subject.link_names(core, bounds)
    return (
        [rate for rate, n in zip(rates, counts, strict=True) for _ in range(n)],
        [name for name, n in zip(names, counts, strict=True) for _ in range(n)],
    )


def suits(document: Mapping[str, Any], protocol: str = "xcp") -> bool:
    """Whether the model has at least two bottlenecks, and windows of `_LEAST_WINDOW` packets."""
    scenario = from_dict(document, sets=[f"protocol={protocol}"])
    rates, bounds = _model(scenario, protocol)
    core = to_core(scenario, protocols.load())
    rtts = [flow.base_rtt_s for flow in core.flows for _ in range(flow.count)]
    least = min(rate * rtt for rate, rtt in zip(rates, rtts, strict=True))
    return len(set(bounds)) >= 2 and least >= _LEAST_WINDOW * 8 * core.packet_bytes


def networks(count: int) -> Iterator[dict[str, Any]]:
    """The first `count` random networks that suit the comparison."""
    suitable = (document for document in map(network, itertools.count()) if suits(document))
    return itertools.islice(suitable, count)


def worst(flows: Sequence[Flow]) -> Flow:
    """The flow furthest from the model."""
    return max(flows, key=lambda flow: abs(flow.error))


def main(
    count: Annotated[int, typer.Option("--networks", help="Random networks.")] = 50,
    names: Annotated[str, typer.Option("--protocols", metavar="A,B,C")] = "xcp,ixcp,maxnet",
    unpaced: Annotated[bool, typer.Option("--unpaced", help="Windows in bursts.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Hold equilibria against the packet simulator, flow by flow."""
    from waterfill.runs.result import to_json

    found: list[dict[str, Any]] = []
    for protocol in names.split(","):
        cases = [(fig_4(), FIG_4_TOLERANCE)] if protocol == "xcp" else []
        cases += [(document, NETWORK_TOLERANCE) for document in networks(count)]
        for document, tolerance in cases:
            if unpaced:
                for entry in document["flow"]:
                    entry.pop("pacing", None)
            flows = compare(document, protocol)
            most = worst(flows)
            mean = math.fsum(abs(flow.error) for flow in flows) / len(flows)
            result = {
                "protocol": protocol, "name": document["name"], "flows": len(flows),
                "worst": most.error, "worst_flow": most.name, "bottleneck": most.bottleneck,
                "mean_error": mean, "tolerance": tolerance, "within": abs(most.error) <= tolerance,
            }  # fmt: skip
            found.append(result)
            print(
                f"{protocol} {result['name']}: worst {100 * most.error:+.1f} % ({most.name} at "
                f"{most.bottleneck}), mean {100 * mean:.1f} %",
                file=sys.stderr,
            )
        mine = [result for result in found if result["protocol"] == protocol]
        good = sum(1 for result in mine if result["within"])
        print(f"{protocol}: {good} of {len(mine)} within tolerance", file=sys.stderr)
    if json:
        print(to_json({"cases": found}))


if __name__ == "__main__":
    typer.run(main)
