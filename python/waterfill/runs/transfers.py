"""The table of transfers: every flow with a size, with its completion time and its slowdown.

The ideal time of a flow is the least that the network allows it: the handshake if there is one,
then all its packets back to back, each stored and forwarded by every link at the link's rate, with
no other packet anywhere. Packet k leaves link i no earlier than packet k - 1 has left it and packet
k has left link i - 1; the longest chain of such waits is the time of the last packet. With n - 1
full packets and a last one that is not larger, it passes the full packets up to some link j, waits
there for the slowest link so far, and follows the last packet from j on: `ideal` takes the largest
j. A flow whose packets are sprayed shares the rates of all equal links of a hop.
The scenario's `ideal` says what both times of a slowdown contain next to the way of the data.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from waterfill.contract.network import FlowSpec, Network, RouteSpec
from waterfill.contract.summary import FlowSummary
from waterfill.network import switching
from waterfill.network.resolve import TCP_IP_HEADER_BYTES

if TYPE_CHECKING:
    import pyarrow as pa

Numbers: TypeAlias = npt.NDArray[np.float64]
Indexes: TypeAlias = npt.NDArray[np.int64]

COLUMNS = (
    "source", "index", "protocol", "from", "to", "start_s", "size_bytes", "completed_s",
    "completion_s", "ideal_s", "slowdown",
)  # fmt: skip

# The core's columns of the flows that traffic sources have started.
ARRIVED = ("traffic", "index", "route", "start_s", "size_bytes", "completed_s")


@dataclass(frozen=True)
class Transfers:
    """Flows with a size, as columns of equal length. `completed_s` is NaN for unfinished flows.

    `source` counts the entries of `sources`: groups of flows with a size, then sources of flows.
    """

    sources: Sequence[FlowSpec]
    source: Indexes
    index: Indexes
    route: Indexes
    """Index of each flow's route among the routes of its source."""
    start_s: Numbers
    size_bytes: Numbers
    completed_s: Numbers


def sources(network: Network) -> list[FlowSpec]:
    """Return the common properties of each group of flows with a size, then of each source of
    flows.
    """
    return [flow for flow in network.flows if flow.size_bytes is not None] + network.arriving


def collect(
    network: Network,
    flows: Sequence[FlowSummary],
    arrived: Mapping[str, Numbers],
    end_s: float,
) -> Transfers:
    """Return the transfers that started before `end_s`: first flows of groups, then flows of
    traffic sources.

    `flows` are the summary's; `arrived` the core's columns of flows that traffic sources started,
    in any order.
    """
    groups = [flow for flow in network.flows if flow.size_bytes is not None]
    place = {flow.name: i for i, flow in enumerate(groups)}
    mine = [f for f in flows if f.group in place and f.start_s < end_s]
    # An entry may stand for several flows: see `CoreFlow`.
    counts = [f.count for f in mine]
    source = np.repeat(np.array([place[f.group] for f in mine], dtype=np.int64), counts)
    index = np.repeat(np.array([f.index for f in mine], dtype=np.int64), counts)
    if len(index) > len(mine):
        index = index + np.concatenate([np.arange(count) for count in counts])
    start_s = np.repeat(np.array([f.start_s for f in mine], dtype=np.float64), counts)
    nan = float("nan")
    ends_s = [nan if f.completed_s is None else f.completed_s for f in mine]
    sizes = np.array([float(flow.size_bytes or 0) for flow in groups], dtype=np.float64)
    number_of = _arrivals_before(network)
    order = np.lexsort((arrived["index"], arrived["traffic"]))
    later = {name: column[order] for name, column in arrived.items()}
    which = number_of[later["traffic"].astype(np.int64)] + len(groups)
    return Transfers(
        sources(network),
        np.concatenate([source, which]),
        np.concatenate([index, later["index"].astype(np.int64)]),
        np.concatenate([np.zeros_like(index), later["route"].astype(np.int64)]),
        np.concatenate([start_s, later["start_s"]]),
        np.concatenate([sizes[source], later["size_bytes"]]),
        np.concatenate([np.repeat(np.array(ends_s, dtype=np.float64), counts),
                        later["completed_s"]]),
    )  # fmt: skip


def _arrivals_before(network: Network) -> Indexes:
    """Return, for each traffic source, the number of sources of flows that precede it."""
    starts_flows = np.array([t.flows is not None for t in network.traffic], dtype=np.int64)
    return np.cumsum(starts_flows) - starts_flows


class Ideal(NamedTuple):
    """Ideal time of each transfer (s), and the time (s, may be negative) that its slowdown adds to
    its completion time.
    """

    time_s: Numbers
    added_s: Numbers


def ideal(
    transfers: Transfers,
    network: Network,
    header_bytes: Mapping[str, int],
    contents: str | None = None,
) -> Ideal:
    """Return each transfer's time on an otherwise empty network.

    `header_bytes` are those of each protocol in addition to TCP's and IP's. Rates are the links'
    `rate` (a token bucket counts with its rate), delays their propagation; loss does not count.
    `contents` is the scenario's `ideal`: None counts the handshakes of flows that have one.
    """
    entries = transfers.sources
    if not entries:
        return Ideal(np.zeros(0), np.zeros(0))
    rate_bps = np.array([link.rate_bps for link in network.links])
    delay_s = np.array([link.delay_s for link in network.links])
    bits = 8.0
    rows, at = _routes(transfers, network)
    # One row per route, one column per link; the access link first; zero where there is none.
    width = 1 + max((len(way.forward) for _, way in rows), default=0)
    per_bit = np.zeros((len(rows), width))
    shared = np.zeros((len(rows), width))
    spray = network.switching is not None and network.switching.choice == "spray"
    equal = None if network.switching is None else switching.of_network(network)
    fixed_s, opening_s, back_s = np.zeros(len(rows)), np.zeros(len(rows)), np.zeros(len(rows))
    payload, overhead = np.zeros(len(rows)), np.zeros(len(rows))
    demand_bps = np.full(len(rows), np.inf)
    for row, (entry, way) in enumerate(rows):
        forward, reverse = list(way.forward), list(way.reverse)
        ways = equal if entry.switched else None
        out, home = (_stages(ways, path) for path in (forward, reverse))
        per_bit[row, 1 : 1 + len(forward)] = [1 / rate_bps[links].max() for links in out]
        if entry.access_bps is not None:
            per_bit[row, 0] = 1 / entry.access_bps
        shared[row] = per_bit[row]
        if ways is not None and spray:
            shared[row, 1 : 1 + len(forward)] = [1 / rate_bps[links].sum() for links in out]
        one_way_s = delay_s[forward].sum() + way.pad_s
        ack_bits = bits * network.ack_bytes
        returned = sum(1 / rate_bps[links].max() for links in home)
        back_s[row] = delay_s[reverse].sum() + way.pad_s + ack_bits * returned
        if entry.handshake:
            handshake_s = ack_bits * (per_bit[row].sum() + returned)
            opening_s[row] = one_way_s + delay_s[reverse].sum() + way.pad_s + handshake_s
        fixed_s[row] = opening_s[row] + one_way_s
        overhead[row] = TCP_IP_HEADER_BYTES + header_bytes[entry.protocol]
        payload[row] = network.packet_bytes - overhead[row]
        if entry.demand_bps is not None:
            demand_bps[row] = entry.demand_bps
    size = transfers.size_bytes
    packets = np.ceil(size / payload[at])
    last_bits = bits * (size - (packets - 1) * payload[at] + overhead[at])
    full_bits = bits * network.packet_bytes
    through_s = last_bits * np.cumsum(per_bit[:, ::-1], axis=1)[at, -1]  # the last packet alone
    longest_s = _longest_s(per_bit[at], shared[at], packets, full_bits, last_bits)
    # The application writes a packet every full_bits / demand, and starts after the handshake.
    last_s = (packets - 1) * full_bits / demand_bps[at]
    pads = [entry.pad_jitter_s for entry in entries]
    own_s, shakes = np.zeros(len(at)), (opening_s > 0)[at]
    if any(pads):
        places = zip(transfers.source, transfers.index, strict=True)
        own_s = np.array([pads[source][i] if pads[source] else 0.0 for source, i in places])
    for i, source in enumerate(transfers.source):
        if entries[source].demands:
            opened_s = transfers.start_s[i] + opening_s[at[i]] + 2 * own_s[i] * shakes[i]
            volume_bits = (packets[i] - 1) * full_bits
            last_s[i] = entries[source].written_at_s(opened_s, volume_bits) - opened_s
    ways_s = np.where(shakes, 3, 1) * own_s
    written_s = last_s + through_s + ways_s
    longest_s = longest_s + ways_s
    whole_s = np.asarray(fixed_s[at] + np.maximum(longest_s, written_s))
    added_s = np.zeros(len(at))
    if contents in ("one-way", "rtt"):
        added_s -= np.where(shakes, opening_s[at] + 2 * own_s, 0.0)
    if contents == "rtt":
        added_s += back_s[at] + own_s
    return Ideal(whole_s + added_s, added_s)


def _longest_s(
    per_bit: Numbers, shared: Numbers, packets: Numbers, full_bits: float, last_bits: Numbers
) -> Numbers:
    """Return the longest chain of waits of each transfer (s): see the head of this module.

    `per_bit` and `shared` are the times of a bit (s) at each link, shape (transfers, links), the
    latter where equal links share the packets.
    """
    before = np.cumsum(per_bit, axis=1)
    slowest = np.maximum.accumulate(shared, axis=1)
    after = np.cumsum(per_bit[:, ::-1], axis=1)[:, ::-1]
    longest_s = last_bits * after[:, 0]
    for j in range(per_bit.shape[1]):
        chain_s = full_bits * (before[:, j] + (packets - 2) * slowest[:, j])
        chain_s = chain_s + last_bits * after[:, j]
        longest_s = np.where(packets > 1, np.maximum(longest_s, chain_s), longest_s)
    return longest_s


def _stages(equal: switching.EqualRoutes | None, path: Sequence[int]) -> list[list[int]]:
    """Return the links that a packet may take at each hop, of which the fastest takes least."""
    return [[link] for link in path] if equal is None else equal.stages(path)


def _routes(
    transfers: Transfers, network: Network
) -> tuple[list[tuple[FlowSpec, RouteSpec]], Indexes]:
    """Return the routes that transfers take, with their entry of `Transfers.sources`, and the index
    of each transfer's route. Where switches choose the route, it is one of the shortest.
    """
    places = 1 + int(transfers.route.max(initial=0))
    used, at = np.unique(transfers.source * places + transfers.route, return_inverse=True)
    groups = len(transfers.sources) - len(network.arriving)
    arrivals = [source.flows for source in network.traffic if source.flows is not None]
    equal = None if network.switching is None else switching.of_network(network)
    ways = [switching.ways(network, flows, equal) for flows in arrivals]
    rows: list[tuple[FlowSpec, RouteSpec]] = []
    for source, route in (divmod(int(key), places) for key in used):
        flow = transfers.sources[source]
        own = RouteSpec(
            forward=flow.forward, reverse=flow.reverse, pad_s=flow.pad_s, base_rtt_s=flow.base_rtt_s
        )
        rows.append((flow, own if source < groups else ways[source - groups](route)))
    return rows, at.reshape(-1)


def _hosts(
    transfers: Transfers, network: Network, ends: Mapping[str, tuple[str, str]]
) -> Iterator[pa.Array]:
    """Yield the sending and the receiving host of each transfer; `ends` are the nodes of links."""
    import pyarrow as pa

    rows, at = _routes(transfers, network)
    for end in (0, 1):
        links = [network.links[way.forward[-end]].name for _, way in rows]
        nodes = [ends.get(name, ("", ""))[end] for name in links]
        names = list(dict.fromkeys(nodes))
        place = {name: i for i, name in enumerate(names)}
        number = np.array([place[node] for node in nodes], dtype=np.int32)
        yield pa.DictionaryArray.from_arrays(
            number[at] if len(nodes) else np.zeros(0, np.int32), pa.array(names, pa.string())
        )


def to_table(
    transfers: Transfers, ideal: Ideal, network: Network, ends: Mapping[str, tuple[str, str]]
) -> pa.Table:
    """Return the transfers with their ideal times as a pyarrow Table of `COLUMNS`. `ends` has the
    start and end node of each link direction, by its name.
    """
    import pyarrow as pa

    entries = transfers.sources
    sender, receiver = _hosts(transfers, network, ends)
    protocols = list(dict.fromkeys(entry.protocol for entry in entries))
    kind = np.array([protocols.index(entry.protocol) for entry in entries], dtype=np.int32)
    completion_s = transfers.completed_s - transfers.start_s
    numbers: dict[str, Any] = {
        "start_s": transfers.start_s,
        "size_bytes": transfers.size_bytes.astype(np.uint64),
        "completed_s": _with_nulls(transfers.completed_s),
        "completion_s": _with_nulls(completion_s),
        "ideal_s": ideal.time_s,
        "slowdown": _with_nulls((completion_s + ideal.added_s) / ideal.time_s),
    }
    names = pa.array([entry.name for entry in entries], pa.string())
    of_protocol = kind[transfers.source] if len(entries) else np.zeros(0, np.int32)
    return pa.table(
        {
            "source": pa.DictionaryArray.from_arrays(transfers.source.astype(np.int32), names),
            "index": transfers.index.astype(np.uint64),
            "protocol": pa.DictionaryArray.from_arrays(
                of_protocol, pa.array(protocols, pa.string())
            ),
            "from": sender,
            "to": receiver,
            **numbers,
        }
    )


def _with_nulls(values: Numbers) -> pa.Array:
    import pyarrow as pa

    return pa.array(values, mask=np.isnan(values))
