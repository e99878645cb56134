"""Construction of a layout with traffic from a format or a rule and its options."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from waterfill.errors import InputError, nearest, shown
from waterfill.formats import (
    cellular,
    clos,
    effects,
    graph,
    hpcc,
    htsim,
    repetita,
    rocketfuel,
    rules,
    sndlib,
    table,
    traffic,
)
from waterfill.formats.layout import FlowPlan, Layout, SourcePlan
from waterfill.scenario import distributions
from waterfill.scenario.units import RATE, TIME, VOLUME, percent

Demands = dict[tuple[str, str], float]
# Pairs of a large graph are drawn: all pairs of 100 nodes would be 9900 flows.
GRAVITY_PAIRS = 100
GRAVITY_LOAD = 1.5
ARRIVING_LOAD = 0.5
# Gravity multiplies rates, and larger ones overflow.
MAX_RATE_BPS = 1e18
# RTTs of a fabric are far below the default time-out of 1 s (RFC 6298), and its flows last less.
# The testbed sets whole milliseconds (`ip route … rto_min`).
FABRIC_RTT_S = 1e-3
MIN_TIMEOUT_S = 1e-3
# A flow takes about 2 kB here and more in a run.
MAX_PLANS = 200_000
# Nodes that a note lists.
_MAX_NAMED = 12
# Gravity weighs every pair before it draws, and a run draws a route for each pair of a pattern.
MAX_WEIGHED = 4_000_000


@dataclass(frozen=True)
class Options:
    """Options for choices that the formats leave open, or None for options that were not given."""

    rate_bps: float | None = None
    """Default rate (bit/s), for links whose rate is unknown: 1 Gbit/s."""
    delay_s: float | None = None
    """Default one-way delay (s), for links whose length is unknown: 1 ms."""
    unit_bps: float | None = None
    """Unit (bit/s) of capacities and demands in files of SNDlib (default: 1 Mbit/s) and Repetita
    (1 kbit/s), and of rates without a unit in a trace.
    """
    oversubscription: float | None = None
    """Capacity of a fabric's switch to its hosts ÷ to the switches above it: 1."""
    delay_unit_s: float | None = None
    """Unit (s) of delays in a file of Repetita; default: 1 µs."""
    bin_s: float | None = None
    """Time over which a trace's delivery opportunities are counted; default: 100 ms."""
    shift: bool | None = None
    """True to shift a trace's times so that its first entry is at time 0."""
    pattern: str | None = None
    """Traffic pattern, one of `effects.PATTERNS`. With None, the format or the rule decides on the
    traffic.
    """
    flows: Path | None = None
    """File of flows to use instead of a pattern, for `Format.read_flows`."""
    origin_s: float | None = None
    """Time in that file (s) at which the run begins: 0."""
    pairs: int | None = None
    """Number of pairs in gravity traffic, or of senders in an incast."""
    load: float | None = None
    """Load after scaling. None selects 1.5 for gravity, 0.5 for random arrivals, and no scaling for
    other traffic.
    """
    sizes: str | None = None
    """Size distribution of flows that arrive at random, or its file, or None if no flows arrive at
    random.
    """
    count: int | None = None
    """Number of flows per pair: 1."""
    size_bytes: int | None = None
    duration_s: float | None = None
    seed: int = 1
    profile: str | None = None
    link_defaults: Mapping[str, str] = field(default_factory=dict)
    """Values of keys of all links, as written."""

    def given(self) -> dict[str, object]:
        """Return the options that were given, by their name on the command line."""
        rate, delay, volume = RATE.format, TIME.format, VOLUME.format
        texts = {
            "--rate": self.rate_bps and rate(self.rate_bps),
            "--delay": self.delay_s if self.delay_s is None else delay(self.delay_s),
            "--oversubscription": self.oversubscription,
            "--unit": self.unit_bps and rate(self.unit_bps),
            "--delay-unit": self.delay_unit_s and delay(self.delay_unit_s),
            "--bin": self.bin_s and TIME.format(self.bin_s), "--shift": self.shift or None,
            "--traffic": self.pattern, "--flows": self.flows, "--sizes": self.sizes,
            "--origin": self.origin_s and TIME.format(self.origin_s),
            "--pairs": self.pairs, "--load": self.load, "--count": self.count,
            "--size": self.size_bytes if self.size_bytes is None else volume(self.size_bytes),
        }  # fmt: skip
        return {name: value for name, value in texts.items() if value is not None}


@dataclass(frozen=True)
class _Filled(Options):
    """Options with their defaults filled in."""

    rate_bps: float = 1e9
    delay_s: float = 1e-3
    oversubscription: float = 1.0
    unit_bps: float = 1e6
    count: int = 1
    given_unit_bps: float | None = None
    """The unit of the command line, None without one: a file may name its own."""


def _filled(options: Options) -> _Filled:
    given = {name: value for name, value in vars(options).items() if value is not None}
    return _Filled(**given, given_unit_bps=options.unit_bps)


def _gml(source: str, options: _Filled) -> tuple[Layout, Demands]:
    return graph.gml(Path(source), _defaults(options)), {}


def _graphml(source: str, options: _Filled) -> tuple[Layout, Demands]:
    return graph.graphml(Path(source), _defaults(options)), {}


def _topohub(source: str, options: _Filled) -> tuple[Layout, Demands]:
    layout, demands = graph.topohub(source, _defaults(options))
    return layout, {pair: value * options.unit_bps for pair, value in demands.items()}


def _sndlib(source: str, options: _Filled) -> tuple[Layout, Demands]:
    return sndlib.read(Path(source), _defaults(options), options.given_unit_bps)


def _hpcc(source: str, options: _Filled) -> tuple[Layout, Demands]:
    return hpcc.topology(Path(source)), {}


def _repetita(source: str, options: _Filled) -> tuple[Layout, Demands]:
    unit_s = options.delay_unit_s or repetita.DELAY_UNIT_S
    layout = repetita.topology(Path(source), options.given_unit_bps or repetita.UNIT_BPS, unit_s)
    return layout, {}


def _rocketfuel(source: str, options: _Filled) -> tuple[Layout, Demands]:
    return rocketfuel.topology(Path(source), options.rate_bps, options.delay_s), {}


def _clos(source: str, options: _Filled) -> tuple[Layout, Demands]:
    return clos.topology(Path(source)), {}


def _htsim(source: str, options: _Filled) -> tuple[Layout, Demands]:
    nodes, connections, unused = htsim.read(Path(source))
    k = 2
    while k**3 // 4 < nodes:
        k += 2
    if k > 64:
        raise InputError(source, "", f"more than 65536 nodes, got {nodes}")
    layout = rules.fat_tree(k, options.rate_bps, options.delay_s)
    layout.name = Path(source).stem
    layout.notes.insert(0, f"The matrix has {nodes} nodes, the fat-tree {len(layout.hosts)} hosts.")
    layout.notes += _matrix_notes(connections, unused)
    layout.flows = _planned(layout, source, connections, options)
    return layout, {}


def _matrix_notes(connections: Sequence[table.TableRow], unused: Sequence[str]) -> Iterator[str]:
    if unused:
        yield f"Not used of the connections: {', '.join(unused)}."
    if endless := sum(row.size_bytes is None for row in connections):
        yield f"{endless} connections of size 0 have no end."
    if waiting := sum(bool(row.after) for row in connections):
        yield f"{waiting} connections start when others have completed (triggers)."
    if any(row.acknowledged for row in connections):
        yield (
            "A send_done_trigger waits for the last acknowledgement: `start` adds the propagation "
            "delay of its way back, without queues."
        )


def _csv_flows(path: Path, layout: Layout, _options: _Filled) -> list[table.TableRow]:
    return table.read(path, layout)


def _hpcc_flows(path: Path, layout: Layout, _options: _Filled) -> list[table.TableRow]:
    return hpcc.flows(path, layout)


def _repetita_flows(path: Path, layout: Layout, options: _Filled) -> list[table.TableRow]:
    return repetita.flows(path, layout, options.given_unit_bps or repetita.UNIT_BPS)


def _clos_flows(path: Path, layout: Layout, _options: _Filled) -> list[table.TableRow]:
    nodes, connections, unused = htsim.read(path)
    if nodes > len(layout.hosts):
        why = f"must have at most {len(layout.hosts)} nodes, those of the topology, got {nodes}"
        raise InputError(str(path), "", why)
    layout.notes += _matrix_notes(connections, unused)
    return connections


def _trace(source: str, options: _Filled) -> tuple[Layout, Demands]:
    keys: dict[str, object] = {}
    if options.given_unit_bps is not None:
        keys["unit"] = RATE.format(options.given_unit_bps)
    if options.bin_s is not None:
        keys["bin"] = TIME.format(options.bin_s)
    if options.shift:
        keys["shift"] = True
    return cellular.read(Path(source), options.delay_s, options.count, keys), {}


@dataclass(frozen=True)
class Format:
    """An import format, with its title and its reader."""

    title: str
    read: Callable[[str, _Filled], tuple[Layout, Demands]]
    options: Sequence[str] = ()
    """Options that take effect on the links, or with `flows` on the traffic too."""
    flows: bool = False
    """True if the files have flows of their own."""
    read_flows: Callable[[Path, Layout, _Filled], list[table.TableRow]] = _csv_flows
    """Reader of `--flows`."""


_GRAPH = ("--rate", "--delay")
_FABRIC = (*_GRAPH, "--oversubscription")
FORMATS: Mapping[str, Format] = {
    "gml": Format("GML file (Topology Zoo)", _gml, _GRAPH),
    "graphml": Format("GraphML file (Topology Zoo)", _graphml, _GRAPH),
    "topohub": Format("name in the package topohub, as topozoo/Abilene or sndlib/polska", _topohub,
                      ("--rate", "--unit")),
    "sndlib": Format("SNDlib network with demands, native or XML", _sndlib,
                     (*_GRAPH, "--unit")),
    "hpcc": Format("topology file of HPCC's or PowerTCP's simulator, or ns-3-alibabacloud", _hpcc,
                   read_flows=_hpcc_flows),
    "htsim": Format("htsim connection matrix (.cm), on a fat-tree", _htsim,
                    ("--rate", "--delay", "--count"), flows=True),
    "htsim-topo": Format("htsim topology (.topo); --flows: a connection matrix (.cm)", _clos,
                         read_flows=_clos_flows),
    "repetita": Format("Repetita topology (.graph); --flows: demands (.demands)", _repetita,
                       ("--unit", "--delay-unit"), read_flows=_repetita_flows),
    "rocketfuel": Format("Rocketfuel links (latencies.intra, weights.intra) or map (.cch)",
                         _rocketfuel, _GRAPH),
    "trace": Format("mahimahi's delivery opportunities, or a table of rates, as one link", _trace,
                    ("--delay", "--count", "--unit", "--bin", "--shift"), flows=True),
}  # fmt: skip


@dataclass(frozen=True)
class Rule:
    """A rule that builds a network, with the names of its size arguments."""

    title: str
    sizes: tuple[str, ...]
    make: Callable[[Sequence[int], _Filled], Layout]
    options: Sequence[str] = _GRAPH
    """Options that take effect on the links."""


RULES: Mapping[str, Rule] = {
    "fat-tree": Rule("three layers of K-port switches, K³/4 hosts", ("K",),
                     lambda n, o: rules.fat_tree(n[0], o.rate_bps, o.delay_s, o.oversubscription),
                     _FABRIC),
    "leaf-spine": Rule("two layers, as much capacity up as down", ("LEAVES", "SPINES", "HOSTS"),
                       lambda n, o: rules.leaf_spine(
                           n[0], n[1], n[2], o.rate_bps, o.delay_s,
                           oversubscription=o.oversubscription),
                       _FABRIC),
    "rail-optimized": Rule("two layers, each server at every leaf", ("SERVERS", "RAILS", "SPINES"),
                           lambda n, o: rules.rail_optimized(
                               n[0], n[1], n[2], o.rate_bps, o.delay_s, o.oversubscription),
                           _FABRIC),
    "torus": Rule("a grid that closes on itself", ("ROWS", "COLUMNS"),
                  lambda n, o: rules.torus(n[0], n[1], o.rate_bps, o.delay_s)),
    "dumbbell": Rule("pairs of hosts on both sides of one link", ("PAIRS",),
                     lambda n, o: rules.dumbbell(n[0], o.rate_bps, o.delay_s)),
    "parking-lot": Rule("a chain of links", ("LINKS",),
                        lambda n, o: rules.parking_lot(n[0], o.rate_bps, o.delay_s)),
    "wan": Rule("random places in a rectangle, joined by a planar graph", ("NODES",),
                lambda n, o: rules.wan(n[0], o.rate_bps, o.seed), ("--rate",)),
}  # fmt: skip


def imported(name: str, source: str, options: Options) -> Layout:
    """Read `source`, a network in the format `name`, and add traffic; raise InputError if the
    source or an option is invalid.
    """
    if name not in FORMATS:
        raise InputError("import", name, f"unknown format{nearest(name, FORMATS)}")
    one, filled = FORMATS[name], _filled(options)
    layout, demands = one.read(source, filled)
    if not layout.links:
        raise InputError(source, "", "no links between two nodes")
    _check_numbers(source, layout, demands)
    layout.notes.insert(0, f"Imported: {name} {Path(source).name if '/' in source else source}")
    own = "demands" if demands else "gravity"
    _check_effect(name, layout, options, None if one.flows else own)
    if not one.flows:
        _add_traffic(layout, demands, own, filled, one.read_flows)
    elif not layout.flows:
        raise InputError(source, "", "the file has no flows")
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
    filled = _filled(options)
    try:
        layout = rule.make(sizes, filled)
    except ValueError as error:
        raise InputError("generate", name, str(error)) from None
    layout.notes.insert(0, f"Generated: {name} {' '.join(map(str, sizes))}")
    own = _USUAL.get(name, "permutation")
    _check_effect(name, layout, options, own)
    _add_traffic(layout, {}, own, filled, _csv_flows)
    return _finished(layout, options)


# Rules whose usual traffic is not a permutation.
_USUAL = {"wan": "gravity", "parking-lot": "all-to-all"}


def _check_effect(name: str, layout: Layout, options: Options, own: str | None) -> None:
    """Raise InputError for an option without effect; `own` is the usual traffic, None where the
    file has its flows.
    """
    given, of_format = options.given(), FORMATS.get(name)
    of_links = of_format.options if of_format is not None else RULES[name].options
    links = {option: text for option, text in given.items() if option in effects.LINKS}
    effects.check(links, of_links, f"on {name}")
    # The default is for links that lack a value.
    if of_format is not None and not of_format.flows:
        for option, default, key in (
            ("--rate", options.rate_bps, "rate_bps"), ("--delay", options.delay_s, "delay_s"),
        ):  # fmt: skip
            ways = [getattr(way, key) for link in layout.links for way in link.ways()]
            if default is not None and default not in ways:
                effects.check(links, [o for o in links if o != option], "as each link has its own")
    if own is None:
        effects.check(given, of_links, f"on {name}, whose files have their own flows")
        return
    chosen = effects.kind(given, own)
    effects.check(given, [*links, *effects.TRAFFIC[chosen]], f"with {chosen}")
    if name == "topohub" and (chosen != "--traffic demands" or options.load is not None):
        what = chosen if options.load is None else "--load, which scales the demands"
        effects.check(given, [o for o in given if o != "--unit"], f"with {what}")


def _check_numbers(source: str, layout: Layout, demands: Demands) -> None:
    """Raise InputError if a rate, delay or demand of the imported network is outside the range of
    scenarios.
    """
    for name, way in ((link.name, way) for link in layout.links for way in link.ways()):
        if not (math.isfinite(way.rate_bps) and math.isfinite(way.delay_s)):
            got = f"{way.rate_bps:g} bit/s and {way.delay_s:g} s"
            raise InputError(source, name, f"rate and delay must be finite, got {got}")
        if way.rate_bps > MAX_RATE_BPS:
            why = f"the rate must be at most {MAX_RATE_BPS:g} bit/s, got {way.rate_bps:g} bit/s"
            raise InputError(source, name, why)
    for (start, end), demand_bps in demands.items():
        if not math.isfinite(demand_bps):
            message = f"the demand must be finite, got {demand_bps:g} bit/s"
            raise InputError(source, f"{start} to {end}", message)


def _defaults(options: _Filled) -> graph.Defaults:
    return graph.Defaults(options.rate_bps, options.delay_s)


def _finished(layout: Layout, options: Options) -> Layout:
    if not layout.flows and not layout.sources and options.pattern != "none":
        raise InputError("import", "", "no route between any two hosts")
    last_s = max((plan.start_s or 0.0 for plan in layout.flows), default=0.0)
    if options.duration_s is not None:
        layout.duration_s = options.duration_s
        if last_s > 0.0 and last_s >= layout.duration_s:
            limit, got = TIME.format(last_s), TIME.format(layout.duration_s)
            why = f"must be above {limit}, the last start of a flow, got {got}"
            first_s = min(plan.start_s for plan in layout.flows)
            late = first_s >= layout.duration_s
            advice = f'or write --origin "{TIME.format(first_s)}"' if late else ""
            raise InputError("--duration", "", why, advice)
    elif last_s >= layout.duration_s:  # lists of HPCC begin at 2 s
        layout.duration_s += last_s
    if options.duration_s is None:
        stops = (plan.stop_s or 0.0 for plan in layout.flows)
        layout.duration_s = max([layout.duration_s, *stops])
    layout.profile, layout.link_defaults = options.profile, options.link_defaults
    if options.profile in (None, "wan"):
        _fit_timeout(layout, options.seed)
    return layout


def _fit_timeout(layout: Layout, seed: int) -> None:
    """Give a network of short RTTs a minimum retransmission time-out that fits, with a note."""
    delays_s = {link.name: max(way.delay_s for way in link.ways()) for link in layout.links}
    ways = {(plan.path, plan.return_path or plan.path) for plan in layout.flows}
    if not ways:  # no flows, or flows that arrive between any hosts
        chance = random.Random(f"rto/{seed}")
        pairs = [(part[0], host) for part in layout.parts for host in part[1:]]
        there = (layout.route(start, host, chance) or () for start, host in pairs)
        ways = {(path, path) for path in there}
    rtts_s = (sum(delays_s[name] for path in way for name in path) for way in ways)
    rtt_s = max(rtts_s, default=math.inf)
    if rtt_s > FABRIC_RTT_S:
        return
    layout.rto_min_s = max(MIN_TIMEOUT_S, float(f"{10 * rtt_s:.2g}"))
    layout.notes.append(
        f"rto_min: {TIME.format(layout.rto_min_s)}, because base RTTs are at most "
        f"{TIME.format(float(f'{rtt_s:.3g}'))}. The default of 1 s is longer than most flows."
    )


def _add_traffic(
    layout: Layout, demands: Demands, own: str, options: _Filled,
    read_flows: Callable[[Path, Layout, _Filled], list[table.TableRow]],
) -> None:  # fmt: skip
    if options.flows is not None:
        rows = read_flows(options.flows, layout, options)
        if not rows:
            raise InputError(str(options.flows), "", "the file has no flows")
        layout.flows = _planned(layout, str(options.flows), rows, options)
        return
    pattern = options.pattern or (own if options.sizes is None else "all-to-all")
    if pattern == "none":
        return
    if pattern != "demands":
        layout.notes += _without_route(layout)
    if options.sizes is not None:
        layout.sources = _sources(layout, pattern, options)
        return
    if pattern == "demands" and not demands:
        raise InputError("--traffic", "", "the source has no demands", "choose another kind")
    load = options.load
    if pattern == "gravity":
        _check_pairs(len(layout.hosts), pattern, MAX_WEIGHED)
        weights = traffic.node_weights(layout)
        count = options.pairs or GRAVITY_PAIRS
        pairs = (pair for part in layout.parts for pair in traffic.all_to_all(part))
        drawn = traffic.gravity(weights, pairs, count, options.seed)
        demands, load = dict(drawn), load or GRAVITY_LOAD
        layout.notes.append(
            f"Traffic: gravity, {len(drawn)} pairs drawn by the product of their nodes' capacity."
        )
    elif pattern == "demands":
        layout.notes.append("Traffic: the source's demands.")
    else:
        layout.notes.append(f"Traffic: {pattern}{_WITHIN[pattern] if layout.parts[1:] else ''}.")
        demands = {}
    wanted = list(demands) if demands else _pairs(layout, pattern, options)
    plans = traffic.flows(layout, wanted, options.seed, size_bytes=options.size_bytes,
                          count=options.count, demands_bps=demands or None)  # fmt: skip
    if lost := len(wanted) - len(plans):
        layout.notes.append(f"{lost} of {len(wanted)} demands have no route and were left out.")
    if demands and load is not None:
        plans = traffic.scaled(layout, plans, load)
        layout.notes.append(
            f"Demands are scaled: the busiest link is asked for {load:g} of its rate."
        )
    layout.flows = plans


# Of a network of several parts.
_WITHIN = {
    "permutation": ", within each part", "all-to-all": ", within each part",
    "incast": ", in the largest part",
}  # fmt: skip


def _without_route(layout: Layout) -> Iterator[str]:
    """Yield a note on the pairs of hosts that have no route in both directions."""
    hosts, parts = len(layout.hosts), layout.parts
    total = hosts * (hosts - 1)
    lost = total - sum(len(part) * (len(part) - 1) for part in parts)
    if lost == 0:
        return
    alone = [host for host in layout.hosts if host not in layout.part_of]
    named = ", ".join(alone[:_MAX_NAMED]) + (" …" if len(alone) > _MAX_NAMED else "")
    why = [f"the network has {len(parts)} parts"] if len(parts) > 1 else []
    why += [f"{len(alone)} nodes reach no other and back ({named})"] if alone else []
    yield f"{lost} of {total} pairs have no route and were left out: {' and '.join(why)}."


def _sources(layout: Layout, pattern: str, options: Options) -> list[SourcePlan]:
    """Return the traffic sources of flows that arrive at random, one for each part of the network.

    An incast is in the largest part only. Raises InputError for invalid options.
    """
    assert options.sizes is not None
    sizes: str | Mapping[str, object] = options.sizes
    if Path(options.sizes).is_file():
        sizes = {"distribution": "empirical", "file": str(Path(options.sizes).resolve())}
    try:
        distributions.parse(sizes, VOLUME)
    except ValueError as error:
        text = str(error).replace(str(Path(options.sizes).resolve()), options.sizes)
        advice = "" if Path(options.sizes).is_file() else "or name a file that exists"
        raise InputError("--sizes", "", text, advice) from None
    parts = layout.parts
    if pattern == "incast" and parts:
        parts = [max(parts, key=len)]
        most = len(parts[0]) - 1
        if options.pairs is not None and options.pairs > most:
            raise InputError("--pairs", "", f"must be 1 to {most} senders, got {options.pairs}")
    if pattern != "permutation":
        _check_pairs(max(map(len, parts), default=0), pattern, MAX_WEIGHED)
    load = ARRIVING_LOAD if options.load is None else options.load
    within = _WITHIN[pattern] if layout.parts[1:] else ""
    layout.notes.append(f"Traffic: {pattern}{within}, {percent(load)} of what the hosts can send.")
    fan_in = options.pairs if pattern == "incast" else None
    return [SourcePlan(pattern, load, sizes, tuple(part), fan_in) for part in parts]


def _pairs(layout: Layout, pattern: str, options: _Filled) -> list[tuple[str, str]]:
    parts = layout.parts
    if pattern == "permutation":
        return [pair for part in parts for pair in traffic.permutation(part, options.seed)]
    if pattern == "all-to-all":
        _check_pairs(len(layout.hosts), pattern, MAX_PLANS)
        return [pair for part in parts for pair in traffic.all_to_all(part)]
    largest = max(parts, key=len, default=[])
    if not largest:
        why = f"incast needs 2 hosts that reach each other, got none among {len(layout.hosts)}"
        raise InputError("--traffic", "", why)
    try:
        return traffic.incast(largest, options.pairs or len(largest) - 1, options.seed)
    except ValueError as error:
        raise InputError("--pairs", "", str(error)) from None


def _check_pairs(hosts: int, pattern: str, most: int) -> None:
    pairs = hosts * (hosts - 1)
    if pairs > most:
        why = f"more than {most} pairs for {pattern}, got {pairs} of {hosts} hosts"
        raise InputError("--traffic", "", why)


def _since(source: str, row: table.TableRow, time_s: float, options: _Filled) -> float:
    """Return a row's time (s) from `--origin` on. That of a row with `after` is a pause."""
    if not options.origin_s or row.after:
        return time_s
    if time_s < options.origin_s:
        got, origin = TIME.format(time_s), TIME.format(options.origin_s)
        why = f"the flow's time is before the --origin {origin}, got {got}"
        raise InputError(source, f"line {row.line}", why, "use an earlier --origin")
    return round(time_s - options.origin_s, 12)


def _planned(
    layout: Layout, source: str, rows: Sequence[table.TableRow], options: _Filled
) -> list[FlowPlan]:
    """Return the flows of a file's rows. Raises InputError where there is no route."""
    for row in rows:
        start, end = (layout.part_of.get(host) for host in row.ends)
        if start is None or start != end:
            between = " to ".join(map(shown, row.ends))
            why = f"no route from {between} and back"
            raise InputError(source, f"line {row.line}", why, "add a link")
    plans = traffic.flows(layout, [row.ends for row in rows], options.seed)
    names = [row.name or plan.name for plan, row in zip(plans, rows, strict=True)]
    found = [
        replace(plan, name=name, start_s=_since(source, row, row.start_s, options),
                size_bytes=row.size_bytes, demand_bps=row.demand_bps,
                stop_s=row.stop_s and _since(source, row, row.stop_s, options),
                count=row.count * options.count,
                after=tuple(names[i] for i in row.after), after_count=row.after_count)
        for plan, name, row in zip(plans, names, rows, strict=True)
    ]  # fmt: skip
    if not any(row.acknowledged for row in rows):
        return found
    ways = {(link.name, way.start): way for link in layout.links for way in link.ways()}

    def back_s(plan: FlowPlan) -> float:
        node, delay_s = plan.end, 0.0
        for name in plan.return_path or reversed(plan.path):
            delay_s += ways[name, node].delay_s
            node = ways[name, node].end
        return delay_s

    for index, row in enumerate(rows):
        if row.acknowledged:
            late_s = max(back_s(found[i]) for i in row.after)
            found[index] = replace(found[index], start_s=round(late_s, 15))
    return found
