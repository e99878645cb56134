"""Construction of a layout with traffic from a format or a rule and its options."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from waterfill.errors import InputError, nearest, shown
from waterfill.formats import cellular, graph, hpcc, htsim, rules, sndlib, table, traffic
from waterfill.formats.layout import FlowPlan, Layout, SourcePlan
from waterfill.scenario import distributions
from waterfill.scenario.units import RATE, VOLUME

Demands = dict[tuple[str, str], float]
PATTERNS = ("demands", "gravity", "permutation", "all-to-all", "incast", "none")
# Pairs of a large graph are drawn: all pairs of 100 nodes would be 9900 flows.
GRAVITY_PAIRS = 100
GRAVITY_LOAD = 1.5
# Of flows that arrive at random.
ARRIVING = ("all-to-all", "permutation", "incast")
ARRIVING_LOAD = 0.5
# Gravity multiplies rates, and larger ones overflow.
MAX_RATE_BPS = 1e18
# A flow takes about 2 kB here and more in a run.
MAX_PLANS = 200_000
# Gravity weighs every pair before it draws.
MAX_WEIGHED = 4_000_000


@dataclass(frozen=True)
class Options:
    """Options for choices that the formats leave open."""

    rate_bps: float = 1e9
    """Default rate (bit/s), for links whose rate is unknown."""
    delay_s: float = 1e-3
    """Default one-way delay (s), for links whose length is unknown."""
    unit_bps: float = 1e6
    """Unit (bit/s) of capacities and demands in SNDlib files."""
    pattern: str | None = None
    """Traffic pattern, one of PATTERNS. With None, the format or the rule decides on the traffic.
    """
    flows: Path | None = None
    """File of flows to use instead of a pattern: in HPCC's format for `hpcc`, and CSV for the other
    formats.
    """
    pairs: int | None = None
    """Number of pairs in gravity traffic, or of senders in an incast."""
    load: float | None = None
    """Load after scaling. None selects 1.5 for gravity, 0.5 for random arrivals, and no scaling for
    other traffic.
    """
    sizes: str | None = None
    """Size distribution of flows that arrive at random, or None if no flows arrive at random."""
    count: int = 1
    """Number of flows per pair."""
    size_bytes: int | None = None
    duration_s: float | None = None
    seed: int = 1


def _gml(source: str, options: Options) -> tuple[Layout, Demands]:
    return graph.gml(Path(source), _defaults(options)), {}


def _graphml(source: str, options: Options) -> tuple[Layout, Demands]:
    return graph.graphml(Path(source), _defaults(options)), {}


def _topohub(source: str, options: Options) -> tuple[Layout, Demands]:
    layout, demands = graph.topohub(source, _defaults(options))
    return layout, {pair: value * options.unit_bps for pair, value in demands.items()}


def _sndlib(source: str, options: Options) -> tuple[Layout, Demands]:
    return sndlib.read(Path(source), _defaults(options), options.unit_bps)


def _hpcc(source: str, options: Options) -> tuple[Layout, Demands]:
    return hpcc.topology(Path(source)), {}


def _htsim(source: str, options: Options) -> tuple[Layout, Demands]:
    nodes, connections = htsim.read(Path(source))
    k = 2
    while k**3 // 4 < nodes:
        k += 2
    if k > 64:
        raise InputError(source, "", f"more than 65536 nodes, got {nodes}")
    layout = rules.fat_tree(k, options.rate_bps, options.delay_s)
    layout.name = Path(source).stem
    layout.notes.insert(0, f"The matrix has {nodes} nodes, the fat-tree {len(layout.hosts)} hosts.")
    pairs = [(f"h{a}", f"h{b}") for (a, b), _, _ in connections]
    plans = traffic.flows(layout, pairs, options.seed, count=options.count)
    layout.flows = [
        replace(plan, start_s=start_s, size_bytes=size)
        for plan, (_, start_s, size) in zip(plans, connections, strict=True)
    ]
    return layout, {}


def _trace(source: str, options: Options) -> tuple[Layout, Demands]:
    return cellular.read(Path(source), options.delay_s, options.count), {}


@dataclass(frozen=True)
class Format:
    """An import format, with its title and its reader."""

    title: str
    read: Callable[[str, Options], tuple[Layout, Demands]]


FORMATS: Mapping[str, Format] = {
    "gml": Format("GML file (Topology Zoo)", _gml),
    "graphml": Format("GraphML file (Topology Zoo)", _graphml),
    "topohub": Format("name in the package topohub, as topozoo/Abilene or sndlib/polska", _topohub),
    "sndlib": Format("SNDlib network with demands, native or XML", _sndlib),
    "hpcc": Format("topology file of HPCC's simulator or ns-3-alibabacloud", _hpcc),
    "htsim": Format("htsim connection matrix (.cm), on a fat-tree", _htsim),
    "trace": Format("mahimahi's delivery opportunities, or a CSV of rates, as one link", _trace),
}


@dataclass(frozen=True)
class Rule:
    """A rule that builds a network, with the names of its size arguments."""

    title: str
    sizes: tuple[str, ...]
    make: Callable[[Sequence[int], Options], Layout]


RULES: Mapping[str, Rule] = {
    "fat-tree": Rule("three layers of K-port switches, K³/4 hosts", ("K",),
                     lambda n, o: rules.fat_tree(n[0], o.rate_bps, o.delay_s)),
    "leaf-spine": Rule("two layers, as much capacity up as down", ("LEAVES", "SPINES", "HOSTS"),
                       lambda n, o: rules.leaf_spine(n[0], n[1], n[2], o.rate_bps, o.delay_s)),
    "torus": Rule("a grid that closes on itself", ("ROWS", "COLUMNS"),
                  lambda n, o: rules.torus(n[0], n[1], o.rate_bps, o.delay_s)),
    "dumbbell": Rule("pairs of hosts on both sides of one link", ("PAIRS",),
                     lambda n, o: rules.dumbbell(n[0], o.rate_bps, o.delay_s)),
    "parking-lot": Rule("a chain of links", ("LINKS",),
                        lambda n, o: rules.parking_lot(n[0], o.rate_bps, o.delay_s)),
    "wan": Rule("random places in a rectangle, joined by a planar graph", ("NODES",),
                lambda n, o: rules.wan(n[0], o.rate_bps, o.seed)),
}  # fmt: skip


def imported(name: str, source: str, options: Options) -> Layout:
    """Read `source`, a network in the format `name`, and add traffic; raise InputError if the
    source or an option is invalid.
    """
    if name not in FORMATS:
        raise InputError("import", name, f"unknown format{nearest(name, FORMATS)}")
    layout, demands = FORMATS[name].read(source, options)
    _check_numbers(source, layout, demands)
    layout.notes.insert(0, f"Imported: {name} {Path(source).name if '/' in source else source}")
    own = "demands" if demands else "gravity"
    if not layout.flows:
        _add_traffic(layout, demands, own, options, is_hpcc=name == "hpcc")
    elif options.flows is not None or options.pattern is not None:
        raise InputError("import", "", f"{name} files have their own traffic", "remove --flows")
    return _finished(layout, options)


def generated(name: str, sizes: Sequence[int], options: Options) -> Layout:
    """Build the network of the rule `name` and add traffic; raise InputError if the sizes or an
    option are invalid.
    """
    if name not in RULES:
        raise InputError("generate", name, f"unknown rule{nearest(name, RULES)}")
    rule = RULES[name]
    if len(sizes) != len(rule.sizes):
        wanted = " ".join(rule.sizes)
        got = " ".join(map(str, sizes)) or "none"
        why = f"needs {len(rule.sizes)} numbers, {wanted}; got {got}"
        if len(rule.sizes) == 1:
            why = f"needs one number, {wanted}; got {got}"
        raise InputError("generate", name, why, f"type waterfill generate {name} {wanted}")
    try:
        layout = rule.make(sizes, options)
    except ValueError as error:
        raise InputError("generate", name, str(error)) from None
    layout.notes.insert(0, f"Generated: {name} {' '.join(map(str, sizes))}")
    _add_traffic(layout, {}, _USUAL.get(name, "permutation"), options, is_hpcc=False)
    return _finished(layout, options)


# Rules whose usual traffic is not a permutation.
_USUAL = {"wan": "gravity", "parking-lot": "all-to-all"}


def _check_numbers(source: str, layout: Layout, demands: Demands) -> None:
    """Raise InputError if a rate, delay or demand of the imported network is outside the range of
    scenarios.
    """
    for link in layout.links:
        if not (math.isfinite(link.rate_bps) and math.isfinite(link.delay_s)):
            got = f"{link.rate_bps:g} bit/s and {link.delay_s:g} s"
            raise InputError(source, link.name, f"rate and delay must be finite, got {got}")
        if link.rate_bps > MAX_RATE_BPS:
            why = f"the rate must be at most {MAX_RATE_BPS:g} bit/s, got {link.rate_bps:g} bit/s"
            raise InputError(source, link.name, why)
    for (start, end), demand_bps in demands.items():
        if not math.isfinite(demand_bps):
            message = f"the demand must be finite, got {demand_bps:g} bit/s"
            raise InputError(source, f"{start} to {end}", message)


def _defaults(options: Options) -> graph.Defaults:
    return graph.Defaults(options.rate_bps, options.delay_s)


def _finished(layout: Layout, options: Options) -> Layout:
    if not layout.flows and not layout.sources and options.pattern != "none":
        raise InputError("import", "", "no route between any two hosts")
    last_s = max((plan.start_s or 0.0 for plan in layout.flows), default=0.0)
    if options.duration_s is not None:
        layout.duration_s = options.duration_s
    elif last_s >= layout.duration_s:  # lists of HPCC begin at 2 s
        layout.duration_s += last_s
    return layout


def _add_traffic(
    layout: Layout, demands: Demands, own: str, options: Options, *, is_hpcc: bool
) -> None:
    if options.flows is not None:
        layout.flows = _from_file(layout, options, is_hpcc=is_hpcc)
        return
    if options.sizes is not None:
        layout.sources = [_source(layout, options.pattern or "all-to-all", options)]
        return
    pattern = options.pattern or own
    if pattern not in PATTERNS:
        why = f"unknown kind {shown(pattern)}{nearest(pattern, PATTERNS)}"
        raise InputError("--traffic", "", why)
    if pattern == "none":
        return
    if pattern == "demands" and not demands:
        raise InputError("--traffic", "", "the source has no demands", "choose another kind")
    load = options.load
    if pattern == "gravity":
        _check_pairs(len(layout.hosts), pattern, MAX_WEIGHED)
        weights = traffic.node_weights(layout)
        count = options.pairs or GRAVITY_PAIRS
        drawn = traffic.gravity(weights, count, options.seed)
        demands, load = dict(drawn), load or GRAVITY_LOAD
        layout.notes.append(
            f"Traffic: gravity, {len(drawn)} pairs drawn by the product of their nodes' capacity."
        )
    elif pattern == "demands":
        layout.notes.append(f"Traffic: the source's demands, in units of "
                            f"{RATE.format(options.unit_bps)}.")  # fmt: skip
    else:
        layout.notes.append(f"Traffic: {pattern}.")
        demands = {}
    pairs = list(demands) if demands else _pairs(layout, pattern, options)
    plans = traffic.flows(layout, pairs, options.seed, size_bytes=options.size_bytes,
                          count=options.count, demands_bps=demands or None)  # fmt: skip
    if demands and load is not None:
        plans = traffic.scaled(layout, plans, load)
        layout.notes.append(
            f"Demands are scaled: the busiest link is asked for {load:g} of its rate."
        )
    layout.flows = plans


def _source(layout: Layout, pattern: str, options: Options) -> SourcePlan:
    """Return the traffic source of flows that arrive at random; raise InputError for invalid
    options.
    """
    assert options.sizes is not None
    if pattern not in ARRIVING:
        known = ", ".join(ARRIVING)
        raise InputError("--traffic", "", f"must be one of {known} with --sizes, got {pattern}")
    try:
        distributions.parse(options.sizes, VOLUME)
    except ValueError as error:
        raise InputError("--sizes", "", str(error)) from None
    if options.size_bytes is not None or options.count != 1:
        other = "--size" if options.size_bytes is not None else "--count"
        raise InputError(other, "", "not allowed with --sizes, whose flows arrive at random")
    most = len(layout.hosts) - 1
    if pattern == "incast" and options.pairs is not None and options.pairs > most:
        raise InputError("--pairs", "", f"must be 1 to {most} senders, got {options.pairs}")
    load = ARRIVING_LOAD if options.load is None else options.load
    layout.notes.append(f"Traffic: {pattern}, {load:.0%} of what the hosts can send.")
    return SourcePlan(pattern, load, options.sizes, options.pairs if pattern == "incast" else None)


def _pairs(layout: Layout, pattern: str, options: Options) -> list[tuple[str, str]]:
    if pattern == "permutation":
        return traffic.permutation(layout.hosts, options.seed)
    if pattern == "all-to-all":
        _check_pairs(len(layout.hosts), pattern, MAX_PLANS)
        return traffic.all_to_all(layout.hosts)
    if len(layout.hosts) < 2:
        why = f"incast needs at least 2 nodes, got {len(layout.hosts)}"
        raise InputError("--traffic", "", why)
    try:
        return traffic.incast(layout.hosts, options.pairs or len(layout.hosts) - 1, options.seed)
    except ValueError as error:
        raise InputError("--pairs", "", str(error)) from None


def _check_pairs(hosts: int, pattern: str, most: int) -> None:
    pairs = hosts * (hosts - 1)
    if pairs > most:
        why = f"more than {most} pairs for {pattern}, got {pairs} of {hosts} hosts"
        raise InputError("--traffic", "", why)


def _from_file(layout: Layout, options: Options, *, is_hpcc: bool) -> list[FlowPlan]:
    assert options.flows is not None
    if is_hpcc:
        given = hpcc.flows(options.flows, layout)
        rows = [table.TableRow(ends, start_s, size) for ends, start_s, size in given]
    else:
        rows = table.read(options.flows, layout)
    plans = traffic.flows(layout, [row.ends for row in rows], options.seed)
    if len(plans) != len(rows):
        raise InputError(str(options.flows), "", "no route for some flow", "add a link")
    return [
        replace(plan, start_s=row.start_s, size_bytes=row.size_bytes, demand_bps=row.demand_bps,
                count=row.count * options.count)
        for plan, row in zip(plans, rows, strict=True)
    ]  # fmt: skip
