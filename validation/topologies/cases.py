"""Networks, their traffic, and the settings in which every law runs."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from waterfill.contract.network import Network
from waterfill.formats.build import Options, imported
from waterfill.formats.writing import text
from waterfill.network import graph, maxmin, protocols, resolve
from waterfill.runs.result import Document
from waterfill.scenario.document import Scenario
from waterfill.scenario.loading import from_dict, read_toml
from waterfill.scenario.units import RATE, TIME

GROUPS = ("topozoo", "sndlib")
# Of every link, in a network of up to `PAIRS` flows; in proportion to the flows beyond, or many
# would have less than a packet per RTT.
RATE_BPS = 100e6
PAIRS = 40
LOAD = 1.5
SEED = 1
# SNDlib's networks have up to 14,311 demands: the largest are kept.
MAX_FLOWS = 100
STEP_S = 5e-3
# A fluid link that is shorter than a step may be read a step late, which lengthens RTTs that a law
# does not know of. Max-min shares do not depend on delays.
MIN_DELAY_S = STEP_S
MIN_RTT_S = 10 * STEP_S
# SNDlib's coordinates are often not degrees, and make RTTs of up to 0.9 s.
MAX_RTT_S = 0.2
# The exact shares count data only, and acknowledgements of 40 B load the reverse links by 2.7 %.
ACK_SIZE = "1 B"
# VCP's t_rho: every load factor is sampled once.
SAMPLE_S = 0.2


@dataclass(frozen=True)
class TopologyCase:
    """A scenario with its network, and each flow's exact max-min share in bit/s."""

    name: str
    law: str
    scenario: Scenario
    network: Network
    shares_bps: list[float]
    demands: int
    """Number of the network's demands, including omitted demands."""
    kept: float
    """Fraction of the demands' total volume that the flows carry."""


def names(group: str) -> list[str]:
    """Return the names of topohub's networks in a group, as GROUP/NAME."""
    spec = find_spec("topohub")
    if spec is None or spec.origin is None:
        return []
    folder = Path(spec.origin).parent / "data" / group
    return sorted(f"{group}/{path.stem}" for path in folder.glob("*.json"))


def laws() -> list[str]:
    """Return the names of the explicit laws that the fluid backend supports."""
    known = protocols.load().values()
    return [law.name for law in known if law.kind == "explicit" and "fluid" in law.backends]


def build(name: str, law: str, duration_s: float) -> TopologyCase:
    """Return a law's scenario on a network. Raises InputError for an unknown network."""
    # Rates of the Zoo's links are up to 100 Gbit/s; errors depend on ratios only.
    pairs = None if name.startswith("sndlib/") else PAIRS  # networks of SNDlib have demands
    options = Options(rate_bps=RATE_BPS, pairs=pairs, load=LOAD, seed=SEED, duration_s=duration_s)
    document = read_toml(text(imported("topohub", name, options), law, SEED))
    demands = len(document["flow"])
    kept = keep_largest(document)
    set_rates(document)
    set_delays(document)
    document.update(
        measure=[TIME.format(0.8 * duration_s), TIME.format(duration_s)],
        ack_size=ACK_SIZE, step=TIME.format(STEP_S), sample=TIME.format(SAMPLE_S),
    )  # fmt: skip
    for flow in document["flow"]:
        # As in the laws' models. A window that leaves in bursts keeps them, and routers that
        # measure over an interval see them as load.
        flow["pacing"] = True
    scenario = from_dict(document)
    network = resolve.to_core(scenario, protocols.load(), "fluid")
    return TopologyCase(name, law, scenario, network, exact(network), demands, kept)


def keep_largest(document: Document) -> float:
    """Keep the largest `MAX_FLOWS` demands and return their fraction of the total volume."""
    flows = document["flow"]
    demand = {flow["name"]: RATE.parse(flow["demand"]) for flow in flows}
    largest = set(sorted(demand, key=lambda name: -demand[name])[:MAX_FLOWS])
    document["flow"] = [flow for flow in flows if flow["name"] in largest]
    return sum(demand[name] for name in largest) / sum(demand.values())


def set_rates(document: Document) -> None:
    """Speed up the links of a network with many flows, and scale demands to `LOAD` on the busiest
    link.
    """
    rate_bps = RATE_BPS * max(1.0, len(document["flow"]) / PAIRS)
    for link in document["link"]:
        link["rate"] = RATE.format(rate_bps)
    network = resolve.to_core(from_dict(document), protocols.load(), "fluid")
    loads_bps: Counter[int] = Counter()
    for flow in network.flows:
        loads_bps.update(dict.fromkeys(flow.forward, flow.limit_bps))
    factor = LOAD * rate_bps / max(loads_bps.values())
    for flow in document["flow"]:
        flow["demand"] = RATE.format(RATE.parse(flow["demand"]) * factor)


def set_delays(document: Document) -> None:
    """Shorten long RTTs, lengthen short links, and pad short RTTs at the sources."""
    longest_s = max(graph.base_rtts(from_dict(document)).values())
    scale = min(1.0, MAX_RTT_S / longest_s)
    for link in document["link"]:
        link["delay"] = TIME.format(max(TIME.parse(link["delay"]) * scale, MIN_DELAY_S))
    rtts_s = graph.base_rtts(from_dict(document))
    for flow in document["flow"]:
        flow["rtt"] = TIME.format(max(rtts_s[flow["name"]], MIN_RTT_S))


def exact(network: Network) -> list[float]:
    """Return each flow's exact max-min share in bit/s, as a mean over the flow's lifetime."""
    targets = protocols.targets(network.params)
    lives = maxmin.lives_of(network)
    rates = maxmin.mean_rates(network, targets, lives, lives)
    return [rate or 0.0 for rate in rates]
