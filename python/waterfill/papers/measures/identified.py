"""Measures that read a law's parameters off the sampled signals of a run.

Each solves the paper's equation for one parameter, with the printed values of the others. So a law
that runs with another gain has another value, even where the rates are the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from waterfill.analysis.series import Series, capacity_bps, named
from waterfill.papers.measures.signals import sampled

if TYPE_CHECKING:
    from waterfill.runs.result import Result


class _Signals(NamedTuple):
    """Samples of a MaxNet source: time (s), price q (s), ξ and rate x (bit/s); base RTT τ (s)."""

    time_s: Series
    price_s: Series
    xi: Series
    rate_bps: Series
    rtt_s: float


def _signals(result: Result, flow: str, start_s: float, stop_s: float) -> _Signals | None:
    """Return a source's samples in a time window, or None if it has none with a price."""
    law = named(result.network.flows, flow).protocol
    rtt_s = named(result.network.flows, flow).base_rtt_s
    price, xi, window = (
        sampled(result, "flows", flow, column, start_s, stop_s)
        for column in (f"{law}_price", f"{law}_xi", "window_bytes")
    )
    if not len(price[0]) or not len(price[0]) == len(xi[0]) == len(window[0]):
        return None
    return _Signals(price[0], price[1], xi[1], 8 * window[1] / rtt_s, rtt_s)


def maxnet_alpha(
    result: Result, *, flow: str, start_s: float, stop_s: float, x_max_bps: float
) -> float | None:
    """`[maxnet-2007:eq6a]` Return α, from x = x_max·exp(ξ − αq/τ): the median over the samples."""
    one = _signals(result, flow, start_s, stop_s)
    if one is None:
        return None
    return float(np.median((one.xi - np.log(one.rate_bps / x_max_bps)) * one.rtt_s / one.price_s))


def maxnet_t(
    result: Result, *, flow: str, start_s: float, stop_s: float, alpha: float
) -> float | None:
    """`[maxnet-2007:eq10]` Return T (s), from the equilibrium ξ* = αq/τ − q/T: the median over the
    samples.
    """
    one = _signals(result, flow, start_s, stop_s)
    if one is None:
        return None
    return float(np.median(1 / (alpha / one.rtt_s - one.xi / one.price_s)))


def maxnet_eta(
    result: Result, *, flow: str, start_s: float, stop_s: float, alpha: float, t_s: float
) -> float | None:
    """`[maxnet-2007:eq10]` Return αη, from the rate αηT/τ² at which ξ approaches ξ*, by least
    squares over the steps between samples.

    Tcp-maxnet-2006's eq. 9 has η alone, without the factor α.
    """
    one = _signals(result, flow, start_s, stop_s)
    if one is None or len(one.time_s) < 3:
        return None
    away = (alpha / one.rtt_s - 1 / t_s) * one.price_s - one.xi
    speed = _speed(one.time_s, away, np.diff(one.xi))
    return None if speed is None else speed * one.rtt_s**2 / t_s


def price_roughness(
    result: Result, *, flow: str, link: str, start_s: float, stop_s: float
) -> float | None:
    """`[maxnet-2007:VI]` Return the standard deviation of a price's steps between samples at a
    source ÷ that at a link. An average over one RTT makes it less than 1.
    """
    column = f"{named(result.network.flows, flow).protocol}_price"
    _, source = sampled(result, "flows", flow, column, start_s, stop_s)
    _, router = sampled(result, "links", link, column, start_s, stop_s)
    if len(source) < 3 or len(router) < 3 or not np.diff(router).std():
        return None
    return float(np.diff(source).std() / np.diff(router).std())


# --- gains of a router, from the samples of its link ----------------------------------------------


def xcp_gamma(
    result: Result, *, link: str, protocol: str, start_s: float, stop_s: float
) -> float | None:
    """`[xcp-2002:eq4]` Return γ, from h = max(0, γ·y·d − |φ|): the median over the samples in which
    the router shuffles at least 2 % of its capacity.
    """
    one = _router(result, link, protocol, start_s, stop_s)
    if one is None:
        return None
    c_bps = capacity_bps(result, link)
    shuffles = one["shuffled"] > 0.02 * c_bps
    if not shuffles.any():
        return None
    input_bps = one["input"] * c_bps
    return float(np.median(((one["shuffled"] + abs(one["spare"])) / input_bps)[shuffles]))


def xcp_alpha(
    result: Result, *, link: str, protocol: str, start_s: float, stop_s: float
) -> float | None:
    """`[xcp-2002:eq1]` Return α, from φ/d = α·S − β·Q/d by least squares over the samples."""
    gains = _xcp_gains(result, link, protocol, start_s, stop_s)
    return None if gains is None else gains[0]


def xcp_beta(
    result: Result, *, link: str, protocol: str, start_s: float, stop_s: float
) -> float | None:
    """`[xcp-2002:eq1]` Return β, as `xcp_alpha` does α. Q is the mean queue of a sample."""
    gains = _xcp_gains(result, link, protocol, start_s, stop_s)
    return None if gains is None else gains[1]


def _xcp_gains(
    result: Result, link: str, protocol: str, start_s: float, stop_s: float
) -> tuple[float, float] | None:
    one = _router(result, link, protocol, start_s, stop_s)
    if one is None:
        return None
    spare_bps = capacity_bps(result, link) * (1 - one["input"])
    return _fitted(one["spare"], spare_bps, -8 * one["queue_bytes"] / one["interval"])


def rcp_alpha(result: Result, *, link: str, start_s: float, stop_s: float) -> float | None:
    """`[rcp-2006:R]` Return α, from the growth (α·(C − y) − β·q/d̂)/(C·d̂) of ln R, by least squares
    over the steps between samples.
    """
    gains = _rcp_gains(result, link, start_s, stop_s)
    return None if gains is None else gains[0]


def rcp_beta(result: Result, *, link: str, start_s: float, stop_s: float) -> float | None:
    """`[rcp-2006:R]` Return β, as `rcp_alpha` does α."""
    gains = _rcp_gains(result, link, start_s, stop_s)
    return None if gains is None else gains[1]


def _rcp_gains(
    result: Result, link: str, start_s: float, stop_s: float
) -> tuple[float, float] | None:
    one = _router(result, link, "rcp", start_s, stop_s)
    if one is None:
        return None
    growth = np.diff(np.log(one["rate"])) / np.diff(one["time_s"])
    rtt_s, free = one["mean_rtt"][1:], 1 - one["input"][1:]
    queue_s = 8 * one["queue_bytes"][1:] / capacity_bps(result, link)
    return _fitted(growth, free / rtt_s, -queue_s / rtt_s**2)


def aecp_beta(
    result: Result, *, link: str, packet_bytes: float, q_0: float, start_s: float, stop_s: float
) -> float | None:
    """`[aecp-2010:eq2]` Return β (1/s), from the growth β·(1 − (Σx + (q − q₀)/T)/C) of ln r, by
    least squares over the steps between samples.
    """
    gains = _aecp_gains(result, link, packet_bytes, q_0, start_s, stop_s)
    return None if gains is None else gains[0]


def aecp_t(
    result: Result, *, link: str, packet_bytes: float, q_0: float, start_s: float, stop_s: float
) -> float | None:
    """`[aecp-2010:eq2]` Return T (s), as `aecp_beta` does β."""
    gains = _aecp_gains(result, link, packet_bytes, q_0, start_s, stop_s)
    return None if gains is None or not gains[1] else gains[0] / gains[1]


def _aecp_gains(
    result: Result, link: str, packet_bytes: float, q_0: float, start_s: float, stop_s: float
) -> tuple[float, float] | None:
    """Return β and β/T."""
    one = _router(result, link, "aecp", start_s, stop_s)
    if one is None:
        return None
    growth = np.diff(np.log(one["r"])) / np.diff(one["time_s"])
    beyond_s = (one["queue_bytes"][1:] - q_0 * packet_bytes) * 8 / capacity_bps(result, link)
    return _fitted(growth, 1 - one["input"][1:], -beyond_s)


def aecp_alpha(result: Result, *, flow: str, start_s: float, stop_s: float) -> float | None:
    """`[aecp-2010:eq3]` Return α (1/s), from ẋ = αx·(ln r − ln x), by least squares over the steps
    between samples.
    """
    time_s, factor = sampled(result, "flows", flow, "aecp_r", start_s, stop_s)
    _, rate = sampled(result, "flows", flow, "aecp_x", start_s, stop_s)
    count = min(len(factor), len(rate))
    if count < 3:
        return None
    log_x = np.log(rate[-count:])
    return _speed(time_s[-count:], np.log(factor[-count:]) - log_x, np.diff(log_x))


def _speed(time_s: Series, away: Series, moved: Series) -> float | None:
    """Return the speed k (1/s) at which a state approaches its target, which is `away` from it: the
    distance shrinks by exp(−k·step) in each step. None if it does not shrink.
    """
    shrunk = float((away[:-1] - moved) @ away[:-1] / (away[:-1] @ away[:-1]))
    return -np.log(shrunk) / float(np.diff(time_s).mean()) if 0 < shrunk < 1 else None


def _fitted(values: Series, first: Series, second: Series) -> tuple[float, float]:
    """Return the coefficients of two columns that fit the values best."""
    found, *_ = np.linalg.lstsq(np.stack([first, second], axis=1), values, rcond=None)
    return float(found[0]), float(found[1])


_LINK = ("utilization", "queue_bytes")
_SIGNALS = {"rcp": ("rate", "mean_rtt"), "aecp": ("r",)}


def _router(
    result: Result, link: str, protocol: str, start_s: float, stop_s: float
) -> dict[str, Series] | None:
    """Return the samples of a link and its router in a time window, from the first on that has all
    signals; None if there are less than three.

    `input` is the load that arrives ÷ the capacity: the utilization and the growth of the queue.
    """
    signals = _SIGNALS.get(protocol, ("spare", "shuffled", "interval"))
    columns = {name: name for name in _LINK} | {name: f"{protocol}_{name}" for name in signals}
    read = {
        name: sampled(result, "links", link, column, start_s, stop_s)
        for name, column in columns.items()
    }
    count = min(len(values) for _, values in read.values())
    if count < 3:
        return None
    found = {name: values[-count:] for name, (_, values) in read.items()}
    time_s = read["utilization"][0][-count:]
    growth_bps = 8 * np.gradient(found["queue_bytes"], time_s)
    load = found["utilization"] + growth_bps / capacity_bps(result, link)
    return {"time_s": time_s, "input": load, **found}


# --- windows: TCP and VCP -------------------------------------------------------------------------

# A smaller window than this fraction of the sample before is a reduction; a larger one up to the
# other fraction is additive increase.
_CUT, _GROWN = 0.9, 1.2


def window_cut(result: Result, *, flow: str, start_s: float, stop_s: float) -> float | None:
    """`[rfc5681:eq4]` Return the factor of a flow's window reductions: the median over the
    reductions between two samples, so a step must be short next to the time between two of them.
    """
    _, window = sampled(result, "flows", flow, "window_bytes", start_s, stop_s)
    ratio = window[1:] / window[:-1]
    return float(np.median(ratio[ratio < _CUT])) if (ratio < _CUT).any() else None


def window_growth(
    result: Result, *, flow: str, packet_bytes: float, start_s: float, stop_s: float
) -> float | None:
    """`[rfc5681:eq3]` Return the growth of a flow's window in packets per RTT: the median over the
    steps between samples in which it grows by less than 20 %.
    """
    time_s, window = sampled(result, "flows", flow, "window_bytes", start_s, stop_s)
    _, rtt_s = sampled(result, "flows", flow, "rtt_s", start_s, stop_s)
    count = min(len(window), len(rtt_s))
    time_s, window, rtt_s = time_s[-count:], window[-count:], rtt_s[-count:]
    ratio = window[1:] / window[:-1]
    grows = (ratio > 1) & (ratio < _GROWN)
    if not grows.any():
        return None
    growth = np.diff(window) / packet_bytes * rtt_s[1:] / np.diff(time_s)
    return float(np.median(growth[grows]))


def vcp_gamma(result: Result, *, link: str, start_s: float, stop_s: float) -> float | None:
    """`[vcp-2005:load-factor]` Return VCP's target γ, from ρ = λ/(γ·C·t_ρ): the median over the
    samples with a load above 20 % and a queue below 5 kB.
    """
    columns = ("utilization", "vcp_load_factor", "queue_bytes")
    read = [sampled(result, "links", link, column, start_s, stop_s)[1] for column in columns]
    count = min(map(len, read))
    load, factor, queue = (values[-count:] for values in read)
    clear = (load > 0.2) & (queue < 5000)
    return float(np.median((load / factor)[clear])) if clear.any() else None
