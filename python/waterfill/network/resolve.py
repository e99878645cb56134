"""Resolution of a scenario to the network that the core runs.

Routes are those of `graph`. Errors in routes and protocols are `InputError`s.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from waterfill.contract.network import (
    AckFrequencySpec,
    ArrivalSpec,
    BufferSpec,
    DemandSpec,
    FlowSpec,
    LinkSpec,
    Network,
    ParamValue,
    PeriodSpec,
    RouteChangeSpec,
    RouteSpec,
    SeriesSpec,
    SwitchingSpec,
    TrafficSpec,
)
from waterfill.contract.summary import Decimation
from waterfill.errors import InputError, nearest, shown
from waterfill.network import links
from waterfill.network.buffers import Nodes
from waterfill.network.graph import Graph, Route
from waterfill.network.protocols import (
    ProtocolInfo,
    Protocols,
    close_to,
    with_defaults,
    with_header_sizes,
)
from waterfill.scenario.bulk import uncollected
from waterfill.scenario.distributions import Distribution
from waterfill.scenario.document import (
    AckFrequency,
    Application,
    Flow,
    FlowFault,
    Link,
    LinkFault,
    PacingTime,
    Scenario,
    Traffic,
)
from waterfill.scenario.links import NOMINAL_RTT_S
from waterfill.scenario.sampling import chosen
from waterfill.scenario.units import MAX_COUNT, RATE, TIME, VOLUME, WINDOW
from waterfill.scenario.unsupported import unsupported

if TYPE_CHECKING:
    from waterfill.contract.elements import (
        ApplicationSpec,
        Constant,
        DistributionSpec,
        Exponential,
        Pareto,
        QueueSpec,
    )

TCP_IP_HEADER_BYTES = 40

# Default sizes of web-like flows: Katabi, Handley and Rohrs (SIGCOMM 2002) draw transfers from a
# Pareto distribution with this mean, in packets, and this shape.
WEB_PACKETS = 30
WEB_SHAPE = 1.35
# RFC 6928.
_WINDOW_PACKETS = 10
LINE_RATE = frozenset({"hpcc", "powertcp", "theta_powertcp", "dcqcn", "swift"})
"""Laws whose papers start a flow at the rate of its host's link (W_init = B·T)."""
# Faults of headers and receivers that do not change a law's signals: of laws whose signals are
# records of links. No fault falsifies SCONE's advice, or the header of a law in Python.
_TELEMETRY = frozenset({"strip", "corrupt", "lie"})
_LIE = frozenset({"lie"})
_UNCHANGED = {"hpcc": _TELEMETRY, "powertcp": _TELEMETRY, "scone": _LIE}
# Default shape of on and off periods, from the documentation of ns-2's Pareto on/off source.
PERIOD_SHAPE = 1.5


NUMBER_BYTES = 8
# Columns of the core's series without the laws' signals (crates/waterfill-network/src/series.rs).
_OF_FLOWS, _OF_LINKS, _OF_TRAFFIC = 7, 8, 4
_CAPACITY, _COHABIT = 1, 6
# The fluid model lists flows of a group one by one in networks of up to this many flows.
_MAX_EXPANDED = 10_000


@uncollected()
def to_core(scenario: Scenario, protocols: Protocols, backend: str = "sim") -> Network:
    """Resolve a scenario to the network that an engine runs.

    Raises InputError for a key that the backend does not support, an unknown protocol or
    parameter, and a flow or traffic without a route.
    """
    for key, message in unsupported(scenario, backend):
        raise scenario.error(key, message)
    # Most flows of a long list name the same protocol, or none.
    checked: dict[str | None, str] = {}
    for i, flow in enumerate(scenario.flow):
        if flow.protocol not in checked:
            key = scenario.key("flow", i)
            checked[flow.protocol] = _protocol(scenario, flow, key, protocols, backend)
    names = [checked[flow.protocol] for flow in scenario.flow]
    of_traffic = {
        i: _protocol(scenario, traffic, scenario.key("traffic", i), protocols, backend)
        for i, traffic in enumerate(scenario.traffic)
        if traffic.starts_flows
    }
    _check_packet_size(scenario, [*names, *of_traffic.values()], protocols)
    _check_routers(scenario, protocols)
    _check_base_rtt_windows(scenario, "flow", dict(enumerate(names)), protocols)
    _check_base_rtt_windows(scenario, "traffic", of_traffic, protocols)
    params = set_params(scenario, protocols)
    protocols = with_header_sizes(protocols, params)
    graph = Graph(scenario)
    routes = graph.routes()
    web_routes = [route for i in of_traffic for route in _routes_of_traffic(scenario, graph, i)]
    # Of flows whose route changes: each route with its own RTT, for the links' buffers.
    changing = [i for i, flow in enumerate(scenario.flow) if flow.route is not None]
    later = {i: graph.ways(i) for i in changing}
    used = [*routes, *filter(None, web_routes), *itertools.chain.from_iterable(later.values())]
    used += graph.flows_cover()
    if scenario.profile != "wan":
        from waterfill.network import profile

        scenario, params = profile.applied(scenario, graph, used, params, backend)
        graph.take(scenario)
    traffic = [
        source
        for i in range(len(scenario.traffic))
        for source in _traffic(graph, i, protocols.get(of_traffic.get(i, "")))
    ]
    nodes = Nodes(scenario, graph.directions)
    of_links = _links(graph, used)
    switches = nodes.switches(of_links)
    laws = map(protocols.__getitem__, names)
    flows = map(_flow, scenario.flow, laws, routes, itertools.repeat(graph))
    network = Network(
        name=scenario.name,
        seed=scenario.seed,
        duration_s=scenario.duration,
        measure_s=(scenario.measure_s[0], scenario.measure_s[1]),
        sample_s=scenario.sample_s,
        packet_bytes=int(scenario.packet_size),
        ack_bytes=int(scenario.ack_size),
        rto_min_s=scenario.rto_min,
        syn_rto_s=scenario.syn_rto,
        rttvar_min_s=scenario.rttvar_min_s,
        params=params,
        links=nodes.shared(of_links, switches),
        flows=_rerouted(scenario, later, _in_order(scenario, list(flows))),
        traffic=tuple(traffic),
        switching=_switching(graph),
        switches=switches,
    )
    network = replace(network, series=_series(scenario, network.links))
    _check_codes(scenario, network, protocols)
    _check_handshakes(scenario, network)
    _check_faults(scenario, network, protocols)
    each = sample_bytes(network, protocols, backend)
    return replace(network, sample_s=_sample_s(scenario, each))


def _routes_of_traffic(scenario: Scenario, graph: Graph, i: int) -> Iterable[Route | None]:
    """Return the routes of the flows that traffic `i` starts."""
    if scenario.traffic[i].pattern is None:
        return (graph.web_route(i),)
    return itertools.chain.from_iterable(graph.pattern_routes(i))


def _switching(graph: Graph) -> SwitchingSpec | None:
    choice = graph.scenario.ecmp
    if choice is None or choice == "pair":
        return None
    gap_s = graph.scenario.flowlet_gap if choice == "flowlet" else None
    return SwitchingSpec(choice=choice, gap_s=gap_s, nodes=graph.nodes())


def _series(scenario: Scenario, links: Sequence[LinkSpec]) -> SeriesSpec | None:
    series = scenario.series
    if series is None or (series.links is None and series.step is None):
        return None
    found = chosen([link.name for link in links], series.links)
    return SeriesSpec(links=tuple(found), per_sample=scenario.samples_of_links)


def _rerouted(
    scenario: Scenario, ways: Mapping[int, Sequence[Route]], flows: tuple[FlowSpec, ...]
) -> tuple[FlowSpec, ...]:
    """Return the flows, with the later routes of those that have some."""
    if not ways:
        return flows
    found = list(flows)
    for i, (_, *later) in ways.items():
        changes = zip(scenario.flow[i].route or (), later, strict=True)
        routes = tuple(RouteChangeSpec(c.at, way.forward, way.reverse) for c, way in changes)
        found[i] = found[i]._replace(routes=routes)
    return tuple(found)


def _in_order(scenario: Scenario, flows: list[FlowSpec]) -> tuple[FlowSpec, ...]:
    """Return the flows, with the indexes of those after which each starts."""
    if any(flow.after is not None for flow in scenario.flow):
        index = {flow.name: i for i, flow in enumerate(scenario.flow)}
        for i, flow in enumerate(scenario.flow):
            if flow.after is not None:
                after = tuple(index[name] for name in flow.after)
                before = None if flow.continues is None else index[flow.continues]
                flows[i] = flows[i]._replace(
                    after=after, after_count=flow.after_count, continues=before
                )
    return tuple(flows)


def sample_bytes(network: Network, protocols: Protocols, backend: str) -> int:
    """Return the maximum size (bytes) of one sample of all flows, links and traffic sources.

    It counts a row for each flow, also before the flow's start and after its end.
    """
    own = {flow.protocol for flow in network.flows}
    of_flows = _signals(own, protocols)
    of_links = _signals(network.protocols, protocols)
    of_links += _CAPACITY * any(link.changes for link in network.links)
    of_links += any(switch.pfc is not None for switch in network.switches)
    of_links += _COHABIT * any(link.queue.kind == "cohabit" for link in network.links)
    merged = backend == "fluid" and sum(flow.count for flow in network.flows) > _MAX_EXPANDED
    rows = sum(1 if merged and _alike(flow) else flow.count for flow in network.flows)
    of_sample = len(network.sampled_links) * (network.series.per_sample if network.series else 1)
    numbers = rows * (_OF_FLOWS + of_flows) + of_sample * (_OF_LINKS + of_links)
    return NUMBER_BYTES * (numbers + len(network.traffic) * _OF_TRAFFIC)


def _sample_s(scenario: Scenario, bytes_each: int) -> float:
    """Return the sampling interval (s): the scenario's, or its smallest multiple that keeps samples
    of `bytes_each` within the budget.

    A run has at least one sample, at its end. The interval follows from the scenario alone, so that
    a run writes the same bytes on every host.
    """
    samples = math.ceil(scenario.duration / scenario.sample_s)
    limit = max(1, scenario.series_bytes // bytes_each)
    if samples <= limit:
        return scenario.sample_s
    return round(math.ceil(samples / limit) * scenario.sample_s, 12)


def decimation(scenario: Scenario, network: Network) -> Decimation | None:
    """Return the intervals before and after decimation, or None if the series fit the budget."""
    asked_s = scenario.sample_s
    if scenario.profile != "wan":
        from waterfill.network import profile

        asked_s = profile.asked_sample_s(scenario, network)
    if network.sample_s == asked_s:
        return None
    return Decimation(
        sample_s=network.sample_s, asked_s=asked_s, budget_bytes=scenario.series_bytes
    )


def _signals(names: Collection[str], protocols: Protocols) -> int:
    return sum(len(protocols[name].signals) for name in names)


def _alike(flow: FlowSpec) -> bool:
    return not (flow.stagger_s or flow.start_jitter_s or flow.pad_jitter_s)


def set_params(scenario: Scenario, protocols: Protocols) -> dict[str, dict[str, ParamValue]]:
    """Return the parameters that the scenario sets, in SI units, by protocol."""
    result: dict[str, dict[str, ParamValue]] = {}
    for protocol, values in scenario.params.items():
        key = f"params.{protocol}"
        if protocol not in protocols:
            known = nearest(protocol, protocols)
            raise scenario.error(key, f"unknown protocol {shown(protocol)}{known}")
        result[protocol] = {}
        for name, value in values.items():
            try:
                result[protocol][name] = protocols[protocol].param(name).parse(value)
            except ValueError as error:
                raise scenario.error(f"{key}.{name}", str(error)) from None
    return result


def _protocol(
    scenario: Scenario, entry: Flow | Traffic, at: str, protocols: Protocols, backend: str
) -> str:
    own = entry.protocol
    name = own if own is not None else scenario.protocol
    assert name is not None  # from_dict refuses a flow without a protocol

    def wrong(message: str) -> InputError:
        key = "protocol" if own is None else f"{at}.protocol"
        return scenario.error(key, message)

    if name not in protocols:
        if own is None and all(word.strip() in protocols for word in name.split(",")):
            advice = f"for several: waterfill compare … --protocols {name}"
            raise wrong(f"must be one protocol, got {shown(name)}; {advice}")
        raise wrong(f"unknown protocol {shown(name)}{close_to(name, protocols)}")
    if backend not in protocols[name].backends:
        able = ", ".join(p.name for p in protocols.values() if backend in p.backends)
        raise wrong(f"{shown(name)} does not run on {backend}; choose one of {able}")
    return name


def _check_routers(scenario: Scenario, protocols: Protocols) -> None:
    for index, link in enumerate(scenario.link):
        for name in link.routers or ():
            if name not in protocols:
                key = f"{scenario.key('link', index)}.routers"
                known = nearest(name, protocols)
                raise scenario.error(key, f"unknown protocol {shown(name)}{known}")


def _check_base_rtt_windows(
    scenario: Scenario, section: str, names: Mapping[int, str], protocols: Protocols
) -> None:
    entries: Sequence[Flow | Traffic] = getattr(scenario, section)
    for i, name in names.items():
        window_s = entries[i].base_rtt_window
        if window_s is not None and protocols[name].base_rtt is None:
            got = WINDOW.format(window_s)
            why = f"because {name} does not use the smallest RTT"
            key = f"{scenario.key(section, i)}.base_rtt_window"
            raise scenario.error(key, f"not allowed, {why}, got {shown(got)}; remove it")


def idle_window(
    scenario: Scenario, network: Network, protocols: Protocols
) -> Iterator[tuple[str, str]]:
    """Yield (key, message) if the scenario's `base_rtt_window` has no effect on a run."""
    window_s = scenario.base_rtt_window
    if window_s is None or math.isinf(window_s):
        return
    if all(protocols[name].base_rtt is None for name in network.protocols):
        names = " and ".join(network.protocols)
        verb = "does" if len(network.protocols) == 1 else "do"
        why = f"no effect, because {names} {verb} not use the smallest RTT"
        yield "base_rtt_window", f"{why}, got {WINDOW.format(window_s)}"


def _check_codes(scenario: Scenario, network: Network, protocols: Protocols) -> None:
    """Raise InputError if a code of few bits (`code_bits`) cannot reach a link's rate."""
    for name, values in with_defaults(network.protocols, network.params, protocols).items():
        bits, highest_bps = values.get("code_bits"), values.get("code_max")
        coded = bits or values.get("carriage") == "csig"
        if not coded or not isinstance(highest_bps, float):
            continue
        from waterfill.network import constants

        scale = constants.scale_of(network, name)
        if scale is not None and highest_bps < scale.rate_bps:
            rate, got = RATE.format(scale.rate_bps), RATE.format(float(f"{highest_bps:.4g}"))
            why = f"must be at least the rate of the fastest link, {rate}, got {got}"
            advice = f'set code_max = "{rate}"'
            raise scenario.error(f"params.{name}.code_max", why, advice)


def _check_faults(scenario: Scenario, network: Network, protocols: Protocols) -> None:
    """Refuse faults of signals for laws whose signals they do not change."""
    flows = [*network.flows, *(t.flows.flow for t in network.traffic if t.flows is not None)]
    laws = {
        law: _UNCHANGED.get(law, _LIE if protocols[law].is_python else frozenset())
        for law in dict.fromkeys(flow.protocol for flow in flows)
    }

    def check(key: str, faults: Sequence[LinkFault | FlowFault], mine: Iterable[str]) -> None:
        for number, fault in enumerate(faults):
            law = next((law for law in mine if fault.kind in laws[law]), None)
            if law is not None:
                why = f"does not change the signals of {law}, got {shown(fault.kind)}"
                advice = "remove the fault or the law's flows"
                raise scenario.error(f"{key}.fault[{number}].kind", why, advice)

    if any(laws.values()):
        for flow, spec, index in zip(scenario.flow, network.flows, itertools.count()):
            check(scenario.key("flow", index), flow.fault or (), [spec.protocol])
        for index, link in enumerate(scenario.link):
            check(scenario.key("link", index), link.fault or (), laws)


def _check_handshakes(scenario: Scenario, network: Network) -> None:
    """Refuse what a flow without a handshake cannot have."""
    flows = [(f"flow.{flow.name}", flow) for flow in network.flows]
    flows += [(f"traffic.{t.name}", t.flows.flow) for t in network.traffic if t.flows is not None]
    for key, flow in flows:
        if flow.handshake:
            continue
        if flow.recovery == "quic":
            why = '"quic" begins with a handshake, got handshake = false'
            raise scenario.error(f"{key}.recovery", why, 'use recovery = "rack"')
        if scenario.ideal == "handshake":
            why = f'"handshake" needs flows that have one, but {key} has handshake = false'
            raise scenario.error("ideal", why, 'use ideal = "one-way" or "rtt"')


def _check_packet_size(scenario: Scenario, names: Iterable[str], protocols: Protocols) -> None:
    for name in dict.fromkeys(names):
        headers = TCP_IP_HEADER_BYTES + protocols[name].header_bytes
        if scenario.packet_size <= headers:
            raise scenario.error(
                "packet_size",
                f"must be above {headers} B, the headers of {name}, "
                f"got {VOLUME.format(scenario.packet_size)}",
            )


def _links(graph: Graph, routes: Iterable[Route]) -> tuple[LinkSpec, ...]:
    largest_s = [0.0] * len(graph.directions)
    # Flows that are alike have the same route, also as an object.
    for forward, reverse, _, base_rtt_s in {id(route): route for route in routes}.values():
        for way in (forward, reverse):
            for i in way:
                if base_rtt_s > largest_s[i]:
                    largest_s[i] = base_rtt_s
    packet_bytes = int(graph.scenario.packet_size)
    duration_s = graph.scenario.duration
    found: list[LinkSpec] = []
    for i, (link, name, _, _, back) in enumerate(graph.directions):
        if back == i - 1:
            buffer = found[back].buffer
            if link is not graph.directions[back].link:
                rtt_s = max(largest_s[i], largest_s[back]) or NOMINAL_RTT_S
                buffer = _buffer(graph.scenario, link, packet_bytes, rtt_s)
            found.append(_backwards(found[back], link, name, buffer, duration_s))
            continue
        # Both directions of a link share one largest RTT: the reverse is identical.
        rtt_s = largest_s[i] if back is None else max(largest_s[i], largest_s[back])
        rtt_s = rtt_s or NOMINAL_RTT_S
        buffer = _buffer(graph.scenario, link, packet_bytes, rtt_s)
        found.append(_link(link, buffer, packet_bytes, rtt_s, duration_s))
    return tuple(found)


def _buffer(scenario: Scenario, link: Link, packet_bytes: int, largest_rtt_s: float) -> BufferSpec:
    """Return a link's buffer size in packets if the scenario gives packets, or in bytes."""
    buffer = link.buffer
    amount = buffer.amount
    if buffer.unit == "bdp" and amount > 0:
        amount *= link.capacity / 8 * largest_rtt_s
        # Below one packet a buffer would be none at all, which nobody means by "1 bdp".
        amount = max(amount, packet_bytes)
    if amount > MAX_COUNT:
        limit, rate, rtt = VOLUME.format(MAX_COUNT), RATE.format(link.capacity), largest_rtt_s
        got = f"{shown(buffer.format())} of {rate} × {TIME.format(rtt)}"
        raise scenario.error(f"link.{link.name}.buffer", f"must be at most {limit}, got {got}")
    if buffer.unit == "packets":
        return BufferSpec("packets", int(amount))
    return BufferSpec("bytes", round(amount))


def _link(
    link: Link, buffer: BufferSpec, packet_bytes: int, largest_rtt_s: float, duration_s: float
) -> LinkSpec:
    """Return the specification of a link's forward direction."""
    rate_bps, changes = links.changes(link, True, duration_s)
    return LinkSpec(
        name=link.name,
        rate_bps=rate_bps,
        shaper=links.bucket(link, link.shaper),
        policer=links.bucket(link, link.policer),
        delay_s=link.first_delay,
        buffer=buffer,
        queue=_queue(link, largest_rtt_s),
        loss=link.loss,
        loss_model=links.loss_model(link),
        reorder=links.reorder(link, packet_bytes),
        duplicate=link.duplicate,
        target=link.target,
        routers=None if link.routers is None else tuple(link.routers),
        changes=changes,
        faults=links.faults(link, True, duration_s),
    )


def _queue(link: Link, largest_rtt_s: float) -> QueueSpec:
    if link.queue == "droptail":
        return links.droptail(link)
    from waterfill.network import queues

    return queues.resolve(link, largest_rtt_s)


def _backwards(
    forward: LinkSpec, link: Link, name: str, buffer: BufferSpec, duration_s: float
) -> LinkSpec:
    """Return the specification of a link's reverse direction, with the forward direction's
    queue.
    """
    rate_bps, changes = links.changes(link, False, duration_s)
    return LinkSpec(
        name=name,
        rate_bps=rate_bps,
        shaper=links.bucket(link, link.shaper),
        policer=links.bucket(link, link.policer),
        delay_s=link.first_delay,
        buffer=buffer,
        queue=forward.queue,
        loss=link.loss_reverse,
        loss_model=None,
        reorder=None,
        duplicate=0.0,
        target=forward.target,
        routers=forward.routers,
        changes=changes,
        faults=links.faults(link, False, duration_s),
    )


def _jitter(flow: Flow, key: str, largest_s: float, seed: int) -> tuple[float, ...]:
    """Return a random time in [0, largest_s] for each flow, derived from seed, flow and key."""
    draw = random.Random(f"{seed} {flow.name} {key}")  # independent of the core's streams
    return tuple(draw.uniform(0.0, largest_s) for _ in range(flow.count))


def _base_rtt_window_s(flow: Flow, protocol: ProtocolInfo, scenario: Scenario) -> float | None:
    """Return the time (s) after which the flow's hosts forget an RTT as the smallest, or None for
    never.
    """
    used, window_s = protocol.base_rtt, flow.base_rtt_window
    if window_s is None and used is not None:
        window_s = scenario.base_rtt_window
        if window_s is None:
            window_s = used.window_s
    return None if window_s is None or math.isinf(window_s) else window_s


def _initial_window(
    flow: Flow | Traffic, protocol: ProtocolInfo, route: Route, graph: Graph
) -> int:
    """Return a flow's initial window (packets), by default the protocol's."""
    if flow.initial_window is not None:
        return flow.initial_window
    if protocol.name not in LINE_RATE:
        return _WINDOW_PACKETS
    first_bps = flow.access_rate or graph.directions[route.forward[0]].link.capacity
    return math.ceil(first_bps * route.base_rtt_s / (8 * graph.scenario.packet_size))


def _has_handshake(scenario: Scenario, flow: Flow) -> bool:
    """Return True if a flow opens its connection with a handshake."""
    if flow.continues is not None:
        return False
    return scenario.handshake if flow.handshake is None else flow.handshake


def _flow(flow: Flow, protocol: ProtocolInfo, route: Route, graph: Graph) -> FlowSpec:
    scenario = graph.scenario
    forward, reverse, pad_s, base_rtt_s = route
    stop, size, seed = flow.stop, flow.size, scenario.seed
    start_jitter, rtt_jitter = flow.start_jitter, flow.rtt_jitter
    recovery = flow.recovery or (protocol.recovery if protocol.is_python else None)
    if recovery is None and scenario.ecmp == "spray" and scenario.switches(flow):
        recovery = "rack"
    headers_bytes = TCP_IP_HEADER_BYTES + protocol.header_bytes
    sizes = (scenario.packet_size - headers_bytes, headers_bytes)
    quantum = flow.pacing_quantum
    return FlowSpec(
        name=flow.name,
        count=flow.count,
        protocol=protocol.name,
        forward=forward,
        reverse=reverse,
        start_s=flow.start,
        stagger_s=flow.stagger,
        start_jitter_s=_jitter(flow, "start", start_jitter, seed) if start_jitter else (),
        stop_s=scenario.duration if stop is None else _stop_s(flow, scenario.duration),
        size_bytes=None if size is None else int(size),
        pad_s=pad_s,
        pad_jitter_s=_jitter(flow, "rtt", rtt_jitter / 2, seed) if rtt_jitter else (),
        access_bps=flow.access_rate,
        base_rtt_s=base_rtt_s,
        weight=flow.weight,
        demand_bps=flow.demand
        if flow.application is None
        else _offered_bps(flow.application, sizes),
        initial_window_packets=_initial_window(flow, protocol, route, graph),
        pacing=flow.pacing,
        # RFC 9000 §13.2.2 recommends it for QUIC.
        delayed_ack=recovery == "quic" if flow.delayed_ack is None else flow.delayed_ack,
        ecn=flow.ecn,
        ecn_feedback=flow.ecn_feedback,
        ecn_codepoint=flow.ecn_codepoint,
        recovery=recovery,
        window_validation=flow.window_validation,
        pacing_quantum_packets=quantum if isinstance(quantum, int) else 1,
        pacing_quantum_s=quantum.time_s if isinstance(quantum, PacingTime) else None,
        claimed_rtt_s=flow.claimed_rtt,
        base_rtt_window_s=_base_rtt_window_s(flow, protocol, scenario),
        faults=links.host_faults(flow, scenario.duration),
        demands=_demands(flow, scenario.duration),
        application=None if flow.application is None else _application(flow.application),
        ack_frequency=_ack_frequency(flow.ack_frequency),
        handshake=_has_handshake(scenario, flow),
        switched=scenario.switches(flow),
    )


def _ack_frequency(given: AckFrequency | None) -> AckFrequencySpec | None:
    if given is None:
        return None
    return AckFrequencySpec(
        threshold=given.threshold, max_delay_s=given.max_delay, reordering=given.reordering
    )


def _application(given: Application) -> ApplicationSpec:
    """Return the application of a flow. `validation` has checked the keys of its kind."""
    from waterfill.contract.elements import OnOff, RequestResponse, Ticks, Video

    if given.kind == "onoff":
        assert given.rate is not None
        assert given.on is not None
        assert given.off is not None
        on_s, off_s = _distribution(given.on), _distribution(given.off)
        return OnOff(rate_bps=given.rate, on_s=on_s, off_s=off_s)
    if given.kind == "video":
        assert given.bit_rate
        assert given.segment
        assert given.buffer
        return Video(
            bit_rate_bps=given.bit_rate,
            segment_s=given.segment,
            buffer_s=given.buffer,
            startup_segments=given.startup or 1,
        )
    assert given.sizes is not None
    sizes_bytes = _distribution(given.sizes)
    if given.kind == "ticks":
        assert given.interval is not None
        return Ticks(sizes_bytes=sizes_bytes, interval_s=given.interval)
    think_s = None if given.think is None else _distribution(given.think)
    return RequestResponse(sizes_bytes=sizes_bytes, think_s=think_s)


def _offered_bps(given: Application, sizes: tuple[float, float]) -> float | None:
    """Return the mean rate (bit/s) on the wire at which an application writes, or None if the next
    message waits for the last one. `sizes` are a full packet's payload and headers (bytes).
    """
    if given.rate is not None and given.on is not None and given.off is not None:
        return given.rate * given.on.mean / (given.on.mean + given.off.mean)
    interval_s = given.interval if given.segment is None else given.segment
    if interval_s is None:
        return None
    message_bytes = (given.bit_rate or 0.0) * interval_s / 8
    if given.sizes is not None:
        message_bytes = given.sizes.mean
    payload_bytes, headers_bytes = sizes
    packets = math.ceil(message_bytes / payload_bytes)
    return 8 * (message_bytes + packets * headers_bytes) / interval_s


def _demands(flow: Flow, duration_s: float) -> tuple[DemandSpec, ...]:
    if flow.demand_trace is None:
        return ()
    steps = flow.demand_trace.until(duration_s)
    return tuple(DemandSpec(round(at_s, 12), rate_bps) for at_s, rate_bps in steps)


def _traffic(graph: Graph, index: int, protocol: ProtocolInfo | None) -> Iterator[TrafficSpec]:
    """Yield the sources of one [[traffic]] entry: one source NAME, or `count` sources NAME[0],
    NAME[1] and so on.
    """
    scenario = graph.scenario
    traffic, key = scenario.traffic[index], scenario.key("traffic", index)
    name = scenario.traffic_name(index)
    periods = arrivals = None
    if traffic.on is not None and traffic.off is not None:
        periods = PeriodSpec(on_s=_period(traffic, traffic.on), off_s=_period(traffic, traffic.off))
    route = graph.web_route(index)
    if route is not None and protocol is not None:
        payload_bytes = scenario.packet_size - TCP_IP_HEADER_BYTES - protocol.header_bytes
        sizes = traffic.sizes or Distribution("pareto", WEB_PACKETS * payload_bytes, WEB_SHAPE)
        groups = [] if traffic.pattern is None else graph.pattern_routes(index)
        pairs = () if traffic.pattern is None else graph.pairs(index)
        fan_in = 1
        if traffic.pattern == "incast":
            fan_in = traffic.fan_in or min(map(len, pairs or groups))
        arrivals_per_s, at_s = traffic.arrival_rate, _arrival_times_s(traffic, scenario.duration)
        if at_s:
            arrivals_per_s = len(at_s) / scenario.duration  # for estimates only
        if arrivals_per_s is None:
            assert traffic.load is not None  # `validation` refuses neither
            offered_bps = traffic.load * graph.capacity_bps(index)
            arrivals_per_s = offered_bps / (8 * sizes.mean * fan_in)
        arrivals = ArrivalSpec(
            arrivals_per_s=arrivals_per_s,
            sizes_bytes=_distribution(sizes),
            flow=_web_flow(
                traffic, name, protocol, [route, *itertools.chain.from_iterable(groups)], graph
            ),
            routes=tuple(tuple(RouteSpec(**r._asdict()) for r in group) for group in groups),
            fan_in=fan_in,
            at_s=at_s,
            pairs=pairs,
        )
    source = TrafficSpec(
        name=name,
        kind=traffic.kind,
        path=graph.forward(traffic, key) if route is None else route.forward,
        rate_bps=traffic.rate,
        access_bps=None if traffic.starts_flows else traffic.access_rate,
        start_s=traffic.start,
        stop_s=_stop_s(traffic, scenario.duration),
        packet_bytes=int(scenario.packet_size),
        periods=periods,
        flows=arrivals,
        switched=route is None and scenario.switches(traffic),
    )
    if traffic.count is None or traffic.count == 1:
        yield source
    else:
        yield from (replace(source, name=f"{name}[{i}]") for i in range(traffic.count))


def _arrival_times_s(traffic: Traffic, duration_s: float) -> tuple[float, ...]:
    """Return the given times of a source's arrivals (s), or nothing for a Poisson process."""
    if traffic.every is None:
        return tuple(traffic.at or ())
    end_s, every_s = _stop_s(traffic, duration_s), traffic.every
    count = math.ceil((end_s - traffic.start) / every_s - 1e-9)
    return tuple(traffic.start + i * every_s for i in range(count))


def _period(traffic: Traffic, mean_s: float) -> Constant | Exponential | Pareto:
    from waterfill.contract.elements import Constant, Exponential, Pareto

    kind = traffic.distribution or "exponential"
    if kind == "pareto":
        return Pareto(mean=mean_s, shape=traffic.shape or PERIOD_SHAPE, max=None)
    return Constant(mean=mean_s) if kind == "constant" else Exponential(mean=mean_s)


def _distribution(given: Distribution) -> DistributionSpec:
    from waterfill.contract.elements import Constant, Empirical, Exponential, Pareto

    if given.kind == "empirical":
        return Empirical(points=given.points)
    if given.kind == "pareto":
        assert given.shape is not None  # `distributions.parse` refuses one without
        return Pareto(mean=given.mean, shape=given.shape, max=given.max)
    return Constant(mean=given.mean) if given.kind == "constant" else Exponential(mean=given.mean)


def _web_flow(
    traffic: Traffic, name: str, protocol: ProtocolInfo, routes: Sequence[Route], graph: Graph
) -> FlowSpec:
    """Return the common properties of a source's flows. Each flow has its own start, size and
    route of `routes`; the initial window is that of the largest base RTT.
    """
    farthest = max(routes, key=lambda way: way.base_rtt_s)
    like = Flow.model_construct(
        name=name,
        initial_window=_initial_window(traffic, protocol, farthest, graph),
        delayed_ack=traffic.delayed_ack,
        pacing=traffic.pacing,
        ecn=traffic.ecn,
        ecn_feedback=traffic.ecn_feedback,
        ecn_codepoint=traffic.ecn_codepoint,
        recovery=traffic.recovery,
        ack_frequency=traffic.ack_frequency,
        handshake=traffic.handshake,
        window_validation=traffic.window_validation,
        pacing_quantum=traffic.pacing_quantum,
        access_rate=traffic.access_rate,
        base_rtt_window=traffic.base_rtt_window,
        path=traffic.path,
        return_path=traffic.return_path,
    )
    return _flow(like, protocol, routes[0], graph)


def _stop_s(entry: Flow | Traffic, duration_s: float) -> float:
    return duration_s if entry.stop is None else min(entry.stop, duration_s)
