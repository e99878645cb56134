"""The table of constants that have a time or a rate in them, with a rule for each in a fabric.

A rule gives the constant from the network: the largest base RTT, the fastest link and the packet
size. `profile = "datacenter"` applies the rules where the scenario sets nothing, and limits say
which values do not fit. All rules scale with the network: with all times a thousand times as long
and all rates a thousandth, a run is the same (docs/validation/dilation.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from waterfill.contract.network import Network, ParamValue
from waterfill.scenario.units import RATE, TIME, VOLUME


class Scale(NamedTuple):
    """Dimensions of a fabric: its largest base RTT (s), its fastest link (bit/s), a full packet
    (bits), and the most links that data crosses.
    """

    rtt_s: float
    rate_bps: float
    packet_bits: float
    links: int = 0


class Amount(NamedTuple):
    """A factor times a unit of `_UNITS`, such as 25 RTTs."""

    factor: float
    unit: str

    def of(self, scale: Scale) -> float:
        """Return the value in SI units, rounded to three digits."""
        return float(f"{self.factor * _UNITS[self.unit](scale):.3g}")

    def __str__(self) -> str:
        """Return the rule as text."""
        return f"{float(f'{self.factor:.3g}'):.6g} {self.unit}"


_UNITS: Mapping[str, Callable[[Scale], float]] = {
    "RTT": lambda scale: scale.rtt_s,
    "RTT of a full packet": lambda scale: (
        scale.rtt_s + scale.links * scale.packet_bits / scale.rate_bps
    ),
    "per RTT": lambda scale: 1 / scale.rtt_s,
    "packet times": lambda scale: scale.packet_bits / scale.rate_bps,
    "packets per RTT": lambda scale: scale.packet_bits / scale.rtt_s,
    "link rates": lambda scale: scale.rate_bps,
    "packets of a bdp": lambda scale: scale.rate_bps * scale.rtt_s / scale.packet_bits,
    # Volumes of a link, whose own rate is in the scale.
    "bdp": lambda scale: scale.rate_bps * scale.rtt_s / 8,
}


class Constant(NamedTuple):
    """One constant: its rule, the reason for the rule, and the limits outside of which a value does
    not fit a fabric.
    """

    name: str
    rule: Amount | float | bool
    ground: str
    least: Amount | None = None
    most: Amount | None = None
    carriage: str = ""
    """Value of the law's `carriage` in which it has an effect, if not in all."""

    def value(self, scale: Scale) -> ParamValue:
        """Return the rule's value in SI units."""
        return self.rule.of(scale) if isinstance(self.rule, Amount) else self.rule

    @property
    def text(self) -> str:
        """The rule as text."""
        if isinstance(self.rule, bool):
            return str(self.rule).lower()
        return str(self.rule) if isinstance(self.rule, Amount) else f"{self.rule:g}"

    def exceeded(self, value: float, scale: Scale) -> str | None:
        """Return the limit that a value exceeds, as text, or None."""
        if self.most is not None and value > 1.001 * self.most.of(scale):
            return f"above {self.most}"
        if self.least is not None and value < 0.999 * self.least.of(scale):
            return f"below {self.least}"
        return None


def rtts(factor: float) -> Amount:
    """Return a time in RTTs."""
    return Amount(factor, "RTT")


def per_rtt(factor: float) -> Amount:
    """Return a speed per RTT."""
    return Amount(factor, "per RTT")


def packets(factor: float) -> Amount:
    """Return a rate in packets per RTT."""
    return Amount(factor, "packets per RTT")


def of_link(factor: float) -> Amount:
    """Return a rate as a multiple of the fastest link's."""
    return Amount(factor, "link rates")


# A router or a host that waits longer than this is slower than the flows on its path.
_TEN = rtts(10)
_SLOW = rtts(1000)

HOSTS: Mapping[str, Constant] = {
    one.name: one
    for one in (
        Constant("sample", rtts(1), "shows the queue of an incast; at most a twentieth of the run"),
        Constant("rto_min", rtts(25), "the time that a full buffer takes to drain"),
        Constant("syn_rto", rtts(25), "as rto_min: a lost SYN must not outlast the run"),
        Constant("link.buffer", Amount(25, "bdp"), "4 MB per port at 100 Gbit/s and 12 us"),
        Constant(
            "link.mark_at", Amount(2 / 3, "bdp"),
            "100 kB at 100 Gbit/s and 12 us; DCTCP needs at least 1/7 bdp",
        ),
    )
}  # fmt: skip
"""Constants of hosts and links, by key."""

_CODE = (
    Constant("code_min", of_link(1e-5), "17 doublings of codes below the fastest link"),
    Constant("code_max", of_link(2), "a code must reach the fastest link"),
)
_X_MAX = Constant("x_max", of_link(1e4), "must exceed every link; only shifts prices")
_XCP = (
    Constant("min_interval", rtts(1 / 12), "a twelfth of the mean RTT that it bounds", most=_TEN),
    Constant("max_interval", rtts(100), "must not bound the mean RTT", least=rtts(2 / 3)),
    Constant("first_interval", rtts(1), "the mean RTT before one is known", most=_TEN),
    Constant("min_queue_interval", rtts(1), "sees a standing queue within an RTT", most=_TEN),
)

LAWS: Mapping[str, tuple[Constant, ...]] = {
    "maxnet": (
        _X_MAX,
        Constant("x_min", of_link(1e-3), "1,000 flows; bounds the price that an incast leaves"),
        Constant("t", rtts(2.4), "α·T is the RTT: `theory stability maxnet --tune`", most=_SLOW),
        Constant("alpha", 0.42, "`theory stability maxnet --tune` with dt_p of RTT/12"),
        Constant("eta", 0.1, "`theory stability maxnet --tune` with dt_p of RTT/12"),
        Constant("t_0", rtts(1 / 3), "a 64:1 incast queues half of what it does with an RTT"),
        Constant("dt_p", rtts(1 / 12), "a price is at most a tenth of an RTT old", most=rtts(0.25)),
        Constant("dt_min", Amount(1, "packet times"), "an update for each packet", most=rtts(1)),
        Constant("promise", True, "N flows of an incast must not all start with the whole link"),
        Constant("mu", 0.95, "costs no queue at this scale"),
        Constant(
            "price_unit",
            rtts(2e-5),
            "a step of 1e-5 in rate; 23 bits reach 70 T",
            carriage="option",
        ),
        *_CODE,
    ),
    "maxnet2006": (
        _X_MAX,
        Constant("x_min", of_link(1e-9), "bounds prices"),
        Constant("t", rtts(0.5), "the thesis' 50 ms at 100 ms", most=_SLOW),
        Constant("dt_source", rtts(1 / 100), "the thesis' 1 ms at 100 ms", most=rtts(1)),
        Constant("dt", rtts(1 / 12), "a price is at most a tenth of an RTT old", most=rtts(0.25)),
        Constant("rtt_unit", rtts(1 / 100), "the thesis' 1 ms at 100 ms", most=rtts(0.1)),
        Constant("price_unit", rtts(2e-6), "a step of 1e-5 in rate; 23 bits reach 30 T"),
        *_CODE,
    ),
    "xcp": _XCP,
    "ixcp": _XCP,
    "pxcp": _XCP,
    "aecp": (
        Constant("alpha", per_rtt(0.5), "slower than an RTT"),
        Constant("beta", per_rtt(0.2), "slower than an RTT"),
        Constant("t", rtts(2), "the average covers two RTTs", most=_SLOW),
        Constant("t_2", rtts(0.5), "the paper's 100 ms at 200 ms", most=_TEN),
        Constant("q_0", Amount(0.1, "packets of a bdp"), "a twentieth of the link's rate over t"),
        Constant("x_0", per_rtt(1), "a packet per RTT", least=per_rtt(1e-3)),
        *_CODE,
    ),
    "rcp": (
        Constant("max_interval", rtts(0.5), "two updates in an RTT"),
        Constant("first_rtt", rtts(1), "the mean RTT before one is known", most=_TEN),
        Constant("first_rate", 1 / 64, "64 flows that start together fill the link"),
        Constant("r_min", packets(0.1), "a source must still receive rates", least=packets(1e-3)),
        Constant("rtt_unit", rtts(1e-4), "does not round the RTT", most=rtts(0.1)),
        Constant("min_rtt", rtts(0.1), "below every RTT", most=rtts(1)),
        *_CODE,
    ),
    "alpha_rcp": (
        Constant("max_interval", rtts(0.5), "two updates in an RTT"),
        Constant("first_rtt", rtts(1), "the mean RTT before one is known", most=_TEN),
        Constant("first_rate", 1 / 64, "64 flows that start together fill the link"),
        Constant("r_min", packets(0.1), "a source must still receive rates", least=packets(1e-3)),
        Constant("rtt_unit", rtts(1e-4), "does not round the RTT", most=rtts(0.1)),
        Constant("min_rtt", rtts(0.1), "below every RTT", most=rtts(1)),
    ),
    "jetmax": (
        Constant("interval", rtts(2), "covers an RTT of all flows", most=_TEN),
        Constant("x_min", packets(0.1), "a packet in ten RTTs", least=packets(1e-3)),
    ),
    "mkc": (
        Constant("interval", rtts(1), "a step per two RTTs at most", most=_TEN),
        Constant("alpha", of_link(1e-3), "10 flows overload by 2 %, and are equal after 400 RTTs"),
        Constant("x_min", packets(0.1), "a packet in ten RTTs", least=packets(1e-3)),
    ),
    "vcp": (
        Constant("t_rho", rtts(2), "covers an RTT of all flows", most=_TEN),
        Constant("t_q", rtts(0.1), "the paper's twentieth of t_rho"),
        Constant("t_d", rtts(2), "as t_rho", most=_TEN),
        Constant("ai_rtt_min", rtts(0.2), "a tenth of t_d, as in the authors' code", most=rtts(1)),
        Constant("ai_rtt_max", rtts(5), "2.5 times t_d, as in the authors' code"),
    ),
    "abc": (
        Constant("delta", rtts(4 / 3), "the paper's 133 ms at 100 ms", most=_TEN),
        Constant("delay_threshold", rtts(0.5), "the paper's 50 ms at 100 ms", most=_TEN),
        Constant("window", rtts(1), "shorter windows see single bursts", least=rtts(1 / 40)),
    ),
    "hpcc": (Constant("base_rtt", rtts(1), "the paper's T: the network's base RTT"),),
    "powertcp": (Constant("base_rtt", rtts(1), "the paper's τ: the network's base RTT"),),
    "poseidon": (
        Constant("k", rtts(1 / 6), "the public code's 2 us at 12 us"),
        Constant("p", rtts(10 / 3), "the public code's 40 us at 12 us", most=_SLOW),
        Constant("m", 0.25, "the public code's"),
        Constant("max_rate", of_link(1), "the target is k at the fastest link's rate"),
        Constant("min_rate", of_link(1e-3), "1,000 flows of a link"),
    ),
    "rocc": (
        Constant("interval", rtts(10 / 3), "the paper's 40 us at 12 us (unverified)", most=_SLOW),
        Constant("q_ref", rtts(2.5), "the paper's 30 us at 12 us (unverified)"),
        Constant("q_mid", rtts(5), "twice q_ref"),
        Constant("q_max", rtts(6), "2.4 times q_ref"),
        Constant("f_min", packets(0.1), "a packet in ten RTTs", least=packets(1e-3)),
    ),
    "sperc": (
        Constant("interval", rtts(30), "longer than the RTT of a full buffer", most=_SLOW),
        Constant("r_min", packets(0.01), "no bound with 1,000 flows", least=packets(1e-3)),
    ),
    "dcqcn": (
        Constant("cnp_interval", rtts(50 / 12), "the paper's 50 us, at 12 us", most=_SLOW),
        Constant("alpha_timer", rtts(55 / 12), "the paper's 55 us, at 12 us", most=_SLOW),
        Constant("rate_timer", rtts(55 / 12), "the paper's 55 us, at 12 us", most=_SLOW),
        Constant("byte_counter", Amount(10e6 / 150e3, "bdp"), "10 MB, at 100 Gbit/s and 12 us"),
        Constant("r_ai", of_link(2e-4), "5 Mbit/s at 25 Gbit/s, as HPCC's run.py"),
        Constant("r_hai", of_link(2e-3), "50 Mbit/s at 25 Gbit/s, as HPCC's run.py"),
        Constant("r_min", of_link(1e-3), "100 Mbit/s at 100 Gbit/s"),
        Constant("base_rtt", rtts(1), "as hpcc; for its window only"),
    ),
    "swift": (
        Constant("base_target", rtts(25 / 12), "25 us, as bolt_cc_ns3, at 12 us", least=rtts(1)),
        Constant("hop_target", rtts(1 / 12), "1 us, as bolt_cc_ns3, at 12 us"),
        Constant("flow_range", rtts(100 / 12), "100 us, as bolt_cc_ns3, at 12 us"),
    ),
    "theta_powertcp": (
        Constant(
            "base_rtt",
            Amount(1, "RTT of a full packet"),
            "an RTT above τ counts as a queue, so τ has each link's transmission",
        ),
    ),
    "htcp": (Constant("delta_l", rtts(10), "the paper's 1 s at 100 ms", most=_SLOW),),
    "prague": (Constant("virtual_rtt", rtts(1), "equal shares for all RTTs", most=_SLOW),),
    "bbr": (
        Constant("rtprop_window", rtts(1000), "a thousand RTTs; 10 s is as long as the run"),
        Constant("probe_rtt", _TEN, "a hundredth of the window", most=_TEN),
    ),
    "bbr3": (
        Constant("min_rtt_window", rtts(1000), "a thousand RTTs; 10 s is as long as the run"),
        Constant("probe_rtt_interval", rtts(500), "half of the window"),
        Constant("probe_rtt_duration", _TEN, "a hundredth of the window", most=_TEN),
    ),
    "scone": (
        Constant("x_max", of_link(1e4), "as maxnet"),
        Constant("interval", rtts(200), "the draft's ratio to a long RTT"),
        Constant("period", rtts(670), "the draft's 67 s, over its 20 s"),
        Constant("t", rtts(2.4), "as maxnet", most=_SLOW),
        Constant("dt_p", rtts(1 / 12), "as maxnet", most=rtts(0.25)),
        Constant("t_0", rtts(1), "drains a queue in an RTT"),
        Constant("mu", 0.95, "as maxnet"),
    ),
}
"""Constants of laws, by protocol."""


def scale_of(network: Network, protocol: str | None = None) -> Scale | None:
    """Return the scale of the paths of a protocol's flows, or of all, or None without an RTT."""
    rtts_s: list[float] = []
    lengths: list[int] = []
    crossed: set[int] = set()
    for flow in network.flows:
        if protocol in (None, flow.protocol):
            rtts_s.append(flow.base_rtt_s)
            lengths.append(len(flow.forward))
            crossed.update(flow.forward, flow.reverse)
    for source in network.traffic:
        if source.flows is not None and protocol in (None, source.flows.flow.protocol):
            for way in source.flows.ways:
                rtts_s.append(way.base_rtt_s)
                lengths.append(len(way.forward))
                crossed.update(way.forward, way.reverse)
    rate_bps = max((network.links[i].rate_bps for i in crossed), default=0.0)
    rtt_s = max(rtts_s, default=0.0)
    if not rtt_s > 0 < rate_bps:
        return None
    return Scale(rtt_s, rate_bps, 8.0 * network.packet_bytes, max(lengths))


def in_force(
    law: str, params: Mapping[str, ParamValue | None], scale: Scale
) -> dict[str, ParamValue]:
    """Return the values of the law's rules for the parameters that `params` does not set."""
    return {one.name: one.value(scale) for one in LAWS.get(law, ()) if params.get(one.name) is None}


def exceeded(
    law: str, params: Mapping[str, ParamValue | None], scale: Scale
) -> Iterator[tuple[Constant, str]]:
    """Yield each constant of a law whose value is outside of its limits, with the limit as text.

    `params` has the values in force, in SI units.
    """
    for one in LAWS.get(law, ()):
        value = params.get(one.name)
        if isinstance(value, (int, float)) and (limit := one.exceeded(value, scale)) is not None:
            yield one, limit


def written(unit: str, value: ParamValue) -> str:
    """Return a value as in a scenario file; `unit` is that of `ParamInfo`."""
    if isinstance(value, (bool, str)):
        return str(value).lower()
    quantity = {"time": TIME, "rate": RATE, "volume": VOLUME}.get(unit)
    return f"{value:.4g}" if quantity is None else quantity.format(float(f"{value:.4g}"))
