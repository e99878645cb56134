"""Compare predicted equilibria with the packet simulator, on ixcp-2007's Fig. 4 and random
networks.

XCP is compared with its fixed point, the other protocols with max-min shares, both with
acknowledgements as load. The networks are small: a few links of some Mbit/s and packets of
250 bytes, so that windows are tens of packets or more and a run takes a second or two. Flows are
paced, as in the models. With `--unpaced` a window leaves in bursts, which keep their position in a
router's interval, and identical flows get different shares.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import networkx as nx

from validation.study import Option, Options, Study, StudyRun
from waterfill.network import protocols
from waterfill.network.resolve import to_core
from waterfill.runs.result import Result
from waterfill.scenario.document import Scenario
from waterfill.scenario.loading import from_dict
from waterfill.theory import allocation, equilibrium

# Largest relative error allowed for any flow, in the two comparisons.
FIG_4_TOLERANCE = 0.03
NETWORK_TOLERANCE = 0.05
# A sender sends whole packets, so it may be one short of its window: of 25, 4 %.
_MIN_WINDOW = 25

# ixcp-2007 §4.2: max-min rates of the flows that end at links 1 to 5, in Mbit/s. The text does not
# say how many flows end at the first three links: ten each is one instance of the figure.
FIG_4_MBPS = (10, 8, 4, 3, 2)
FIG_4_FLOWS = (10, 10, 10, 20, 30)


class Flow(NamedTuple):
    """Rates of one flow in the model and in the simulator (bit/s), and the flow's bottleneck."""

    name: str
    model_bps: float
    measured_bps: float
    bottleneck: str

    @property
    def error(self) -> float:
        """Relative error of the simulator's rate against the model's rate."""
        return self.measured_bps / self.model_bps - 1


def fig_4(duration_s: float = 30.0) -> dict[str, Any]:
    """`[ixcp-2007:fig4]` Return a scenario of five links in a row, 340 to 60 Mbit/s, with flows to
    each link's end.
    """
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
    """Return a random scenario: five to seven routers, linked by a tree and up to two
    more links.
    """
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


def compare(scenario: Scenario, result: Result) -> list[Flow]:
    """Return every flow's rates in the model and in a simulated run."""
    model, bounds = _model(scenario, str(scenario.protocol))
    return [
        Flow(flow["name"], rate, flow["rate_bps"] or 0.0, bound)
        for flow, rate, bound in zip(result.summary["flows"], model, bounds, strict=True)
    ]


def _model(scenario: Scenario, protocol: str) -> tuple[list[float], list[str]]:
    known = protocols.load()
    core = to_core(scenario, known)
    params = protocols.with_defaults([protocol], core.params, known)[protocol]
    if protocol in ("xcp", "pxcp"):
        point = equilibrium.of_network(core, equilibrium.Gains.of(params), protocol)
        rates, bounds = point.rates_bps, point.bottleneck
    else:
        found = allocation.max_min(core, protocols.targets(core.params), acknowledgements=True)
        rates, bounds = [f.rate_bps for f in found], [f.bottleneck for f in found]
    counts = [flow.count for flow in core.flows]
    names = allocation.link_names(core, bounds)
    return (
        [rate for rate, n in zip(rates, counts, strict=True) for _ in range(n)],
        [name for name, n in zip(names, counts, strict=True) for _ in range(n)],
    )


def suits(document: Mapping[str, Any], protocol: str = "xcp") -> bool:
    """Return True if a scenario has at least two bottlenecks and windows of at least `_MIN_WINDOW`
    packets.
    """
    scenario = from_dict(document, sets=[f"protocol={protocol}"])
    rates, bounds = _model(scenario, protocol)
    core = to_core(scenario, protocols.load())
    rtts = [flow.base_rtt_s for flow in core.flows for _ in range(flow.count)]
    smallest = min(rate * rtt for rate, rtt in zip(rates, rtts, strict=True))
    return len(set(bounds)) >= 2 and smallest >= _MIN_WINDOW * 8 * core.packet_bytes


def networks(count: int) -> Iterator[dict[str, Any]]:
    """Return the first `count` random networks that suit the comparison."""
    suitable = (document for document in map(network, itertools.count()) if suits(document))
    return itertools.islice(suitable, count)


def worst(flows: Sequence[Flow]) -> Flow:
    """Return the flow with the largest error."""
    return max(flows, key=lambda flow: abs(flow.error))


class EquilibriumCase(NamedTuple):
    """One network under one protocol: Fig. 4, or a numbered random network."""

    protocol: str
    number: int | None
    unpaced: bool = False

    @property
    def tolerance(self) -> float:
        """Largest relative error allowed for any flow."""
        return FIG_4_TOLERANCE if self.number is None else NETWORK_TOLERANCE

    def scenario(self) -> Scenario:
        """Return the scenario of the case."""
        document = fig_4() if self.number is None else _suitable(self.number)
        flows = document["flow"]
        if self.unpaced:
            flows = [{k: v for k, v in one.items() if k != "pacing"} for one in flows]
        return from_dict({**document, "flow": flows}, sets=[f"protocol={self.protocol}"])


class EquilibriumRow(NamedTuple):
    """Result of a case: its worst flow, mean error and allowed error."""

    name: str
    flows: int
    worst: float
    worst_flow: str
    bottleneck: str
    mean_error: float
    tolerance: float
    within: bool


@cache
def _suitable(number: int) -> dict[str, Any]:
    return next(itertools.islice(networks(number + 1), number, None))


def measure(case: EquilibriumCase, results: Mapping[str, Result]) -> EquilibriumRow:
    """Compare all flow rates of a run with the model."""
    scenario = case.scenario()
    flows = compare(scenario, results[""])
    most = worst(flows)
    return EquilibriumRow(
        name=scenario.name,
        flows=len(flows),
        worst=most.error,
        worst_flow=most.name,
        bottleneck=most.bottleneck,
        mean_error=math.fsum(abs(flow.error) for flow in flows) / len(flows),
        tolerance=case.tolerance,
        within=abs(most.error) <= case.tolerance,
    )


def cases(options: Options) -> list[EquilibriumCase]:
    """Return the cases: Fig. 4 (XCP only), and the random networks under each protocol."""
    return [
        EquilibriumCase(protocol, number, options.unpaced)
        for protocol in options.protocols
        for number in [*[None] * (protocol == "xcp"), *range(options.networks)]
    ]


def line(case: EquilibriumCase, row: EquilibriumRow) -> str:
    """Return the result of a case in words."""
    return (
        f"{case.protocol} {row.name}: largest error {100 * row.worst:+.1f} % "
        f"({row.worst_flow} at {row.bottleneck}), mean {100 * row.mean_error:.1f} %"
    )


def table(found: Mapping[EquilibriumCase, EquilibriumRow]) -> str:
    """Return the number of networks within tolerance under each protocol."""
    lines = []
    for protocol in dict.fromkeys(case.protocol for case in found):
        mine = [row for case, row in found.items() if case.protocol == protocol]
        within = sum(row.within for row in mine)
        lines.append(f"{protocol}: {within} of {len(mine)} networks within tolerance")
    return "\n".join(lines)


STUDY = Study(
    shows="XCP's fixed point and max-min shares agree with the packet simulator, flow by flow",
    minutes=6,
    options=(
        Option("--networks", 50, "number of random networks", low=0),
        Option("--protocols", ("xcp", "ixcp", "maxnet"), "protocols to compare"),
        Option("--unpaced", False, "let windows leave in bursts"),
    ),
    quick={"networks": 2},
    cases=cases,
    runs=lambda case: {"": StudyRun(case.scenario())},
    measure=measure,
    line=line,
    table=table,
)
