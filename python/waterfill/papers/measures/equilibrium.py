"""Measures of a network's equilibrium: distance from its fixed point, and equality of flows."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from waterfill.analysis import series
from waterfill.network import protocols
from waterfill.papers.measures import flows

if TYPE_CHECKING:
    from waterfill.runs.result import Result


# --- computed: a short flow over the first of some links, long ones over all --------------------


def rest_utilization(*, x: float, capacity_bps: list[float], protocol: str = "xcp") -> float:
    """Return the first link's equilibrium utilization with `x` long flows and one short flow."""
    return _rest(x, capacity_bps, protocol)[1] / capacity_bps[0]


def rest_rate(*, x: float, capacity_bps: list[float], protocol: str = "xcp") -> float:
    """Return the short flow's equilibrium rate (bit/s), next to `x` long flows over all links."""
    return _rest(x, capacity_bps, protocol)[0]


def rest_share(*, x: float, capacity_bps: list[float], protocol: str = "xcp") -> float:
    """Return the short flow's equilibrium rate ÷ its max-min share, for a first link wider than the
    others.
    """
    share_bps = capacity_bps[0] - min(capacity_bps[1:])
    return _rest(x, capacity_bps, protocol)[0] / share_bps


def _rest(count: float, capacity_bps: list[float], protocol: str) -> tuple[float, float]:
    """Return the short flow's rate and the first link's input in equilibrium (bit/s)."""
    from waterfill.theory.equilibrium import FlowClass, Gains, solve

    flows = [
        FlowClass((0,), 1.0, math.inf, 1),
        FlowClass(tuple(range(len(capacity_bps))), 1.0, math.inf, round(count)),
    ]
    point = solve(capacity_bps, flows, Gains(alpha=0.4, gamma=0.1), protocol)
    return point.rates_bps[0], point.inputs_bps[0]


# --- of one run ---------------------------------------------------------------------------------


def rate_over_rest(result: Result, *, flow: str, protocol: str) -> float | None:
    """Return a flow's rate in the summary ÷ its rate at the network's fixed point."""
    from waterfill.theory.equilibrium import Gains, of_network

    entries = [entry.name for entry in result.network.flows]
    gains = Gains.of(result.summary.params[protocol])
    point = of_network(result.network, gains, protocol)
    rate_bps = flows.rate_of(result, flow=flow)
    if flow not in entries:
        raise KeyError(flow)
    return None if rate_bps is None else rate_bps / point.rates_bps[entries.index(flow)]


def group_share(result: Result, *, group: str, share_bps: float) -> float | None:
    """Return the mean rate of a group's flows in the summary ÷ their share."""
    rates = _rates(result, group)
    return None if rates is None else float(rates.mean()) / share_bps


def group_error(result: Result, *, group: str, share_bps: float) -> float | None:
    """Return the largest |rate − share| / share among a group's flows in the summary."""
    rates = _rates(result, group)
    return None if rates is None else float(np.abs(rates - share_bps).max()) / share_bps


def group_spread(result: Result, *, group: str) -> float | None:
    """Return the standard deviation ÷ mean of the rates of a group's flows in the summary."""
    rates = _rates(result, group)
    return None if rates is None else float(rates.std() / rates.mean())


def max_min_error(result: Result) -> float | None:
    """Return the largest |rate − max-min share| / share among the flows active in the summary."""
    pairs = [(flow.rate_bps, flow.max_min_bps) for flow in result.summary.flows]
    errors = [abs(rate / share - 1) for rate, share in pairs if rate is not None and share]
    return max(errors, default=None)


def least_utilization(result: Result) -> float | None:
    """Return the smallest utilization among the links that the scenario names."""
    return min(
        (float(link.utilization) for link in result.summary.links if ":rev" not in link.name),
        default=None,
    )


def rate_variation(
    result: Result, *, flow: str, start_s: float, stop_s: float, average_s: float
) -> float | None:
    """Return the standard deviation ÷ mean of a flow's rate in a window, from `average_s` means."""
    rows = result.samples("flows", flow)
    time_s, rate_bps = series.numbers(rows, "time_s"), series.numbers(rows, "rate_bps")
    _, inside = series.means(time_s, rate_bps, average_s, start_s, stop_s)
    return float(inside.std() / inside.mean()) if len(inside) and inside.mean() > 0 else None


def rest_time(
    result: Result, *, flow: str, at_s: float, stop_s: float, average_s: float, fraction: float
) -> float | None:
    """Return the time (s) from `at_s` until a rate first reaches `fraction` of its final value.

    That is its mean over the last quarter of the window; rates are means of `average_s`, at their
    ends.
    """
    rest_bps = flows.rate_over(
        result, flow=flow, start_s=stop_s - (stop_s - at_s) / 4, stop_s=stop_s
    )
    if rest_bps is None:
        return None
    rows = result.samples("flows", flow)
    time_s, rate_bps = series.numbers(rows, "time_s"), series.numbers(rows, "rate_bps")
    time_s, rate_bps = series.means(time_s, rate_bps, average_s, at_s, stop_s)
    reached = rate_bps >= fraction * rest_bps
    return float(time_s[reached.argmax()]) - at_s if reached.any() else math.inf


def queue_packets_of(result: Result, *, link: str) -> float | None:
    """Return the mean queue of a link in the summary (packets), without the packet in service."""
    for entry in result.summary.links:
        if entry.name == link:
            return float(entry.queue_packets.mean)
    raise KeyError(link)


def queue_share_of(result: Result, *, link: str, rtt_s: float) -> float | None:
    """Return the mean queue of a link in the summary ÷ (its rate × `rtt_s`)."""
    for entry in result.summary.links:
        if entry.name == link:
            mean_bytes = float(entry.queue_bytes.mean)
            return mean_bytes * 8 / (series.capacity_bps(result, link) * rtt_s)
    raise KeyError(link)


def loss_of(result: Result, *, link: str, packet_bytes: float) -> float | None:
    """Return the packets dropped at a link ÷ the packets that arrived, in the summary's window.

    What it carried counts in packets of `packet_bytes`, acknowledgements by their size.
    """
    for entry in result.summary.links:
        if entry.name == link:
            rate_bps = series.capacity_bps(result, link)
            start_s, stop_s = result.summary.measure_s
            carried = entry.utilization * rate_bps * (stop_s - start_s) / (8 * packet_bytes)
            dropped = float(entry.drops)
            return dropped / (carried + dropped) if carried + dropped > 0 else None
    raise KeyError(link)


def _rates(result: Result, group: str) -> series.Series | None:
    flows = [flow for flow in result.summary.flows if flow.group == group]
    if not flows:
        raise KeyError(group)
    rates = [flow.rate_bps for flow in flows]
    return None if None in rates else np.array(rates)


# --- what headers cost --------------------------------------------------------------------------


def header_growth(*, protocol: str, over: str, where: list[str]) -> float:
    """Return the bytes by which a protocol's "data" or "ack" headers exceed another protocol's."""
    return _header_growth(protocol, over, where)


def header_growth_share(*, protocol: str, over: str, packet_bytes: float) -> float:
    """Return the growth of a protocol's data and ack headers over another's, ÷ the packet size."""
    return _header_growth(protocol, over, ["data", "ack"]) / packet_bytes


def _header_growth(protocol: str, over: str, where: list[str]) -> float:
    known = {
        entry.name: {"data": entry.header_bytes, "ack": entry.echo_bytes}
        for entry in protocols.load().values()
    }
    return float(sum(known[protocol][way] - known[over][way] for way in where))
