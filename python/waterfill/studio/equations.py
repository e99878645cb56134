"""Equations of laws as MathML, with the terms that matter at a given time of a run.

Numbers come from the run's series: the load and queue of one link, by default the busiest, and the
first flow's state. A term matters if it is what moves the law then; each comes with a sentence that
has its value.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from waterfill.contract.network import ParamValue
from waterfill.errors import InputError
from waterfill.network import protocols
from waterfill.runs.result import Result
from waterfill.studio.settings import known
from waterfill.theory.params import number

# A term below this share of capacity, or of its partner, does not move anything.
_STILL = 0.005
_STILL_NOTE = '<p class="wf-note">At rest: no term moves the law at this moment.</p>'


@dataclass(frozen=True)
class Term:
    """A term's role at one moment: its key in the equation, a relevance flag, and a sentence on its
    value.
    """

    key: str
    matters: bool
    text: str


@dataclass(frozen=True)
class LawPage:
    """Description of a law: MathML equations, their parameters, and a function for the terms'
    values.

    `symbols` says what each symbol of the rows is: "q₀", or several as "α, β". `at_router` is
    False where all of it is at the sender, so that its values are of no link.
    """

    rows: Sequence[str]
    params: Sequence[str]
    symbols: Mapping[str, str]
    terms: Callable[[Moment], list[Term]]
    at_router: bool = True


class Moment:
    """State of a run at one time: values of a link and of a protocol's first flow on that link.

    Raises InputError if no flow of the protocol crosses the link.
    """

    def __init__(self, result: Result, protocol: str, time_s: float, link: str = "") -> None:
        self.result, self.protocol, self.time_s = result, protocol, time_s
        self.params: Mapping[str, ParamValue | None] = protocols.with_defaults(
            [protocol], result.network.params, known()
        )[protocol]
        links = result.network.links
        specs = [f for f in result.network.flows if f.protocol == protocol]
        crossed = {index for spec in specs for index in spec.forward}
        chosen = [index for index in crossed if link in ("", links[index].name)]
        if not chosen:
            raise InputError("equation", "link", f"no {protocol} flow crosses {link}")
        index = max(chosen, key=lambda i: result.summary.links[i].utilization or 0.0)
        self.link = links[index]
        spec = next(f for f in specs if index in f.forward)
        self.flow = next(f.name for f in result.summary.flows if f.group == spec.name)
        self.rtt_s = spec.base_rtt_s

    def param(self, name: str) -> float:
        """Return the value of a numeric parameter."""
        return number(self.params, name)

    def of_link(self, column: str, before_s: float = 0.0) -> float:
        """Return the link's value in a column at a time `before_s` earlier, or NaN without
        samples.
        """
        return self._at("links", self.link.name, column, before_s)

    def of_flow(self, column: str, before_s: float = 0.0) -> float:
        """Return the flow's value in a column at a time `before_s` earlier, or NaN without
        samples.
        """
        return self._at("flows", self.flow, column, before_s)

    def _at(self, which: str, name: str, column: str, before_s: float) -> float:
        table = self.result.samples("links" if which == "links" else "flows", name)
        if column not in table.column_names or not table.num_rows:
            return math.nan
        time_s = np.asarray(table["time_s"].to_numpy(), dtype=np.float64)
        values = np.asarray(table[column].to_numpy(), dtype=np.float64)
        place = int(np.searchsorted(time_s, self.time_s - before_s + 1e-9)) - 1
        return float(values[max(0, min(place, len(values) - 1))])

    @property
    def capacity_bps(self) -> float:
        """The link's rate (bit/s)."""
        return self.link.rate_bps

    @property
    def load_bps(self) -> float:
        """Rate at which the link transmitted in the last sample (bit/s)."""
        return self.of_link("utilization") * self.capacity_bps

    @property
    def queue_bits(self) -> float:
        """The link's queue length (bits)."""
        return 8 * self.of_link("queue_bytes")


# --- MathML -------------------------------------------------------------------------------------


def _i(name: str) -> str:
    return f"<mi>{name}</mi>"


def _o(sign: str) -> str:
    return f"<mo>{sign}</mo>"


def _n(value: str) -> str:
    return f"<mn>{value}</mn>"


def _sub(base: str, index: str) -> str:
    return f"<msub><mi>{base}</mi><mi>{index}</mi></msub>"


def _frac(top: str, bottom: str) -> str:
    return f"<mfrac><mrow>{top}</mrow><mrow>{bottom}</mrow></mfrac>"


def _hat(name: str) -> str:
    return f"<mover><mi>{name}</mi><mo>^</mo></mover>"


def _dot(name: str) -> str:
    return f"<mover><mi>{name}</mi><mo>˙</mo></mover>"


def _group(*parts: str) -> str:
    return _o("(") + "".join(parts) + _o(")")


def _term(key: str, *parts: str) -> str:
    return f'<mrow class="wf-term" data-term="{key}">{"".join(parts)}</mrow>'


def html(law: LawPage, terms: Sequence[Term]) -> str:
    """Return the equations as HTML with important terms highlighted, a list of all terms, and a
    legend.
    """
    rows = []
    for row in law.rows:
        for term in terms:
            if term.matters:
                plain = f'class="wf-term" data-term="{term.key}"'
                row = row.replace(plain, plain.replace("wf-term", "wf-term wf-now"))
        rows.append(f'<div><math displaystyle="true">{row}</math></div>')
    still = "" if any(term.matters for term in terms) else _STILL_NOTE
    items = "".join(
        f"<li{' class=wf-now' if term.matters else ''}>{escape(term.text)}</li>" for term in terms
    )
    equation = f'<div class="wf-equation">{"".join(rows)}</div>'
    return f'{equation}{still}<ul class="wf-terms">{items}</ul>{legend(law.symbols)}'


def legend(symbols: Mapping[str, str]) -> str:
    """Return an HTML list of symbols and their meanings."""
    entries = "".join(
        f"<div><dt>{escape(symbol)}</dt><dd>{escape(meaning)}</dd></div>"
        for symbol, meaning in symbols.items()
    )
    return f'<dl class="wf-symbols">{entries}</dl>'


# --- XCP ----------------------------------------------------------------------------------------


def _xcp_terms(now: Moment) -> list[Term]:
    spare_bps = now.param("alpha") * (now.capacity_bps - now.load_bps)
    interval_s = now.of_link(f"{now.protocol}_interval")
    wait_s = interval_s if interval_s > 0 else now.rtt_s
    queue_bps = now.param("beta") * now.queue_bits / wait_s
    phi_bps = spare_bps - queue_bps
    # Of iXCP the router knows y₀, the load of the flows that name another bottleneck.
    shuffled_bps = now.of_link(f"{now.protocol}_shuffled")
    big = _STILL * now.capacity_bps
    return [
        Term("spare", abs(spare_bps) > max(big, queue_bps),
             f"α(c − y), unused capacity: {_mbit(spare_bps)}"),
        Term("queue", queue_bps > max(big, abs(spare_bps)),
             f"βb/d, the queue: {_mbit(-queue_bps)}"),
        Term("shuffle", shuffled_bps > abs(phi_bps),
             f"h/d, taken from all and given back to all: {_mbit(shuffled_bps)}"),
    ]  # fmt: skip


def _xcp(loads: str, more: Mapping[str, str]) -> LawPage:
    symbols = {
        "φ": "feedback of an interval to all flows (bits)",
        "d": "mean RTT, the length of an interval",
        "c": "capacity",
        "y": "load, the rate of arrivals",
        **more,
        "b": "persistent queue",
        "h": "traffic shuffled between flows in an interval",
        "α, β, γ": "gains for unused capacity and queue, share that is shuffled",
    }
    return LawPage(
        rows=(
            _frac(_i("φ"), _i("d")) + _o("=")
            + _term("spare", _i("α"), _group(_i("c"), _o("−"), _i("y")))
            + _o("−") + _term("queue", _i("β"), _frac(_i("b"), _i("d"))),
            _frac(_i("h"), _i("d")) + _o("=")
            + _term("shuffle", _i("max"), _group(_n("0"), _o(","), _i("γ"), loads, _o("−"),
                    _o("|"), _i("φ"), _o("|"), _o("/"), _i("d"))),
        ),
        params=("alpha", "beta", "gamma"),
        symbols=symbols,
        terms=_xcp_terms,
    )  # fmt: skip


# --- RCP, AECP ----------------------------------------------------------------------------------


def _rcp_terms(now: Moment) -> list[Term]:
    mean_s = now.of_link("rcp_mean_rtt")
    wait_s = mean_s if mean_s > 0 else now.rtt_s
    spare_bps = now.param("alpha") * (now.capacity_bps - now.load_bps)
    queue_bps = now.param("beta") * now.queue_bits / wait_s
    big = _STILL * now.capacity_bps
    return [
        Term("spare", abs(spare_bps) > max(big, queue_bps),
             f"α(C − y), unused capacity: {_mbit(spare_bps)}"),
        Term("queue", queue_bps > max(big, abs(spare_bps)),
             f"βq/d̂, the queue: {_mbit(-queue_bps)}"),
    ]  # fmt: skip


_RCP = LawPage(
    rows=(
        _i("R") + _o("←") + _i("R") + _group(
            _n("1"), _o("+"), _frac(_i("T"), _hat("d")), _o("·"),
            _frac(_term("spare", _i("α"), _group(_i("C"), _o("−"), _i("y"))) + _o("−")
                  + _term("queue", _i("β"), _i("q"), _o("/"), _hat("d")), _i("C"))),
    ),
    params=("alpha", "beta"),
    symbols={
        "R": "rate that the link gives to each flow",
        "T": "time between two updates of R",
        "d̂": "mean RTT of the packets",
        "C": "capacity",
        "y": "load, the rate of arrivals",
        "q": "queue",
        "α, β": "gains for spare capacity and queue",
    },
    terms=_rcp_terms,
)  # fmt: skip


def _aecp_terms(now: Moment) -> list[Term]:
    load = now.load_bps / now.capacity_bps
    packet_bits = 8.0 * now.result.network.packet_bytes
    above = now.queue_bits - now.param("q_0") * packet_bits
    queue = above / now.param("t") / now.capacity_bps
    behind = math.log(now.of_flow("aecp_r") / now.of_flow("aecp_x"))
    return [
        Term("load", abs(1 - load) > max(_STILL, abs(queue)),
             f"Σx/C, the load: {100 * load:.1f} %"),
        Term("queue", abs(queue) > max(_STILL, abs(1 - load)),
             f"(q − q₀)/TC, the queue beyond q₀: {_signed(100 * queue, 2)} %"),
        Term("source", abs(behind) > 4 * _STILL,
             f"ln r − ln x, how far {now.flow} is from its goal: {_signed(behind, 3)}"),
    ]  # fmt: skip


_AECP = LawPage(
    rows=(
        _dot("r") + _o("=") + _i("β") + _i("r") + _group(
            _n("1"), _o("−"), _term("load", _frac(_i("Σx"), _i("C"))), _o("−"),
            _term("queue", _frac(_i("q") + _o("−") + _sub("q", "0"), _i("T") + _i("C")))),
        _dot("x") + _o("=") + _i("α") + _i("x")
        + _term("source", _group(_i("ln"), _i("r"), _o("−"), _i("ln"), _i("x"))),
    ),
    params=("alpha", "beta", "t", "q_0", "t_2"),
    symbols={
        "r": "rate that the link announces; a flow takes the smallest of its path",
        "x": "rate of a flow",
        "Σx": "load, the rate of arrivals",
        "C": "capacity",
        "q, q₀": "queue, and the queue aimed at",
        "T": "time over which the queue beyond q₀ counts as load",
        "α, β": "how fast sources and links move (1/s)",
        "ẋ, ṙ": "change per second",
    },
    terms=_aecp_terms,
)  # fmt: skip


# --- MaxNet -------------------------------------------------------------------------------------


def _maxnet_terms(now: Moment) -> list[Term]:
    over = now.load_bps / now.capacity_bps - now.param("mu")
    queue = now.queue_bits / now.param("t_0") / now.capacity_bps
    before_s = max(2 * now.rtt_s, 2 * now.result.network.sample_s)
    price_s, then_s = (now.of_flow(f"{now.protocol}_price", b) for b in (0.0, before_s))
    xi, earlier = (now.of_flow(f"{now.protocol}_xi", b) for b in (0.0, before_s))
    fast = -now.param("alpha") / now.rtt_s * (price_s - then_s)
    slow = xi - earlier
    return [
        Term("load", abs(over) > max(_STILL, queue),
             f"(y − μC)/C, load above the target: {_signed(100 * over, 2)} %"),
        Term("queue", queue > max(_STILL, abs(over)),
             f"Q/T₀C, the queue counted as load: {_signed(100 * queue, 2)} %"),
        Term("fast", abs(fast) > max(_STILL, abs(slow)),
             f"αq/τ, the fast answer to the price {price_s:.3f} s: moved ln x of {now.flow} by "
             f"{_signed(fast, 3)} in {1e3 * before_s:.0f} ms"),
        Term("slow", abs(slow) > max(_STILL, abs(fast)),
             f"ξ, the slow state {xi:.2f}: moved ln x of {now.flow} by {_signed(slow, 3)}"),
    ]  # fmt: skip


_MAXNET = LawPage(
    rows=(
        _dot("p") + _o("=")
        + _term("load", _frac(_i("y") + _o("−") + _i("μ") + _i("C"), _i("C"))) + _o("+")
        + _term("queue", _frac(_i("Q"), _sub("T", "0") + _i("C"))),
        _i("x") + _o("=") + _sub("x", "max") + _o("·") + _i("exp") + _group(
            _term("slow", _i("ξ")), _o("−"),
            _term("fast", _frac(_i("α") + _i("q"), _i("τ")))),
        _dot("ξ") + _o("=") + _frac(_i("α") + _i("η"), "<msup><mi>τ</mi><mn>2</mn></msup>")
        + _group(_group(_frac(_i("T") + _i("α"), _i("τ")), _o("−"), _n("1")), _i("q"), _o("−"),
                 _i("T"), _i("ξ")),
    ),
    params=("alpha", "t", "eta", "mu", "t_0"),
    symbols={
        "ṗ": "change per second of the link's price p (s)",
        "y": "load, the rate of arrivals",
        "μ": "target utilization",
        "C": "capacity",
        "Q": "queue",
        "T₀": "time in which a standing queue is to drain",
        "x": "rate of a flow, up to xₘₐₓ",
        "q": "price that the flow receives, the highest of its path",
        "ξ": "slow state of the source",
        "τ": "RTT of the flow",
        "T": "slope of the demand function: at rest q = T ln(xₘₐₓ/x)",
        "α": "loop gain",
        "η": "zero of the compensator",
        "ξ̇": "change of ξ per second",
    },
    terms=_maxnet_terms,
)  # fmt: skip


# --- VCP, TCPs ----------------------------------------------------------------------------------


def _vcp_terms(now: Moment) -> list[Term]:
    code, load = now.of_flow("vcp_load"), now.of_link("vcp_load_factor")
    heard = f"load factor ρ = {100 * load:.0f} %"
    return [
        Term("mi", code == 1, f"multiplicative increase, below 80 % load ({heard})"),
        Term("ai", code == 2, f"additive increase, from 80 to 100 % ({heard})"),
        Term("md", code == 3, f"multiplicative decrease, once per overload ({heard})"),
    ]


_VCP = LawPage(
    rows=(
        _i("w") + _o("←") + _term("mi", _i("w"), _group(_n("1"), _o("+"), _i("ξ"))) + _o(",")
        + _term("ai", _i("w"), _o("+"), _i("α")) + _o(",") + _term("md", _i("β"), _i("w")),
    ),
    params=("xi", "alpha", "beta", "kappa_q"),
    symbols={
        "w": "window of the flow (packets)",
        "ξ": "growth below 80 % load, as a share of the window",
        "α": "growth below 100 % load (packets)",
        "β": "share of the window that is left after an overload",
    },
    terms=_vcp_terms,
)  # fmt: skip


def _reno_terms(now: Moment) -> list[Term]:
    cwnd, threshold = (now.of_flow(f"{now.protocol}_{s}") for s in ("cwnd", "ssthresh"))
    before = now.of_flow(f"{now.protocol}_cwnd", max(now.rtt_s, now.result.network.sample_s))
    lost = cwnd < 0.9 * before
    starting = not lost and not cwnd >= threshold
    rtt_s = now.of_flow("rtt_s")
    return [
        Term("start", starting, "slow start: the window doubles every RTT"),
        Term("increase", not lost and not starting,
             f"one packet more per RTT ({1e3 * rtt_s:.0f} ms): window {cwnd:.0f} packets"),
        Term("decrease", lost, "a loss: the window is cut"),
    ]  # fmt: skip


def _reno(params: Sequence[str], cut: str) -> LawPage:
    return LawPage(
        rows=(
            _i("w") + _o("←") + _term("start", _n("2"), _i("w")) + _o(",")
            + _term("increase", _i("w"), _o("+"), _n("1")) + _o(",") + _term("decrease", cut),
        ),
        params=params,
        symbols={"w": "window of the flow (packets)"},
        terms=_reno_terms,
        at_router=False,
    )  # fmt: skip


def _cubic_terms(now: Moment) -> list[Term]:
    names = ("cwnd", "w_max", "w_est")
    cwnd, highest, reno = (now.of_flow(f"cubic_{name}") for name in names)
    before = now.of_flow("cubic_cwnd", max(now.rtt_s, now.result.network.sample_s))
    lost, friendly = cwnd < 0.9 * before, reno >= 0.99 * cwnd
    growing = not lost and not friendly
    return [
        Term("cubic", growing and not math.isnan(highest),
             f"the cubic function around the last plateau: window {cwnd:.0f} packets"),
        Term("reno", friendly and not lost, "no slower than Reno's window"),
        Term("decrease", lost, "a loss: the window is cut, the plateau is where it was"),
    ]  # fmt: skip


_CUBIC = LawPage(
    rows=(
        _i("w") + _o("=")
        + _term("cubic", _i("C"), "<msup><mrow>" + _group(_i("t"), _o("−"), _i("K"))
                + "</mrow><mn>3</mn></msup>", _o("+"), _sub("w", "max")) + _o(",")
        + _term("reno", _sub("w", "Reno")) + _o(",") + _term("decrease", _i("β"), _i("w")),
    ),
    params=("aggressiveness", "beta"),
    symbols={
        "w": "window of the flow (packets)",
        "C": "aggressiveness (packets/s³)",
        "t": "time since the last loss",
        "K": "time from a loss until the window is at its plateau again",
        "wₘₐₓ": "the plateau: the window before the last loss",
        "w_Reno": "the window that Reno would have",
        "β": "share of the window that is left after a loss",
    },
    terms=_cubic_terms,
    at_router=False,
)  # fmt: skip

_HALF = _frac(_i("w"), _n("2"))

LAWS: Mapping[str, LawPage] = {
    "maxnet": _MAXNET,
    "xcp": _xcp(_i("y"), {}),
    "ixcp": _xcp(
        _group(_i("y"), _o("−"), _sub("y", "0")),
        {"y₀": "load of the flows that name another link as their bottleneck"},
    ),
    "pxcp": _xcp(_i("y"), {}),
    "rcp": _RCP,
    "aecp": _AECP,
    "vcp": _VCP,
    "reno": _reno(("increase", "decrease"), _HALF),
    "newreno": _reno((), _HALF),
    "sack": _reno((), _HALF),
    "cubic": _CUBIC,
}
"""Laws whose equation the studio shows. For any other law, it shows the summary."""


def main_params(protocol: str) -> Sequence[str]:
    """Return the names of the parameters in a protocol's equation, or an empty tuple without an
    equation.
    """
    law = LAWS.get(protocol)
    return () if law is None else law.params


def at(result: Result, protocol: str, time_s: float, link: str = "") -> str:
    """Return a protocol's equation at a time of a run, or its description, as HTML.

    Its values are of `link`, by default the busiest one, which the text names.
    """
    law = LAWS.get(protocol)
    if law is None:
        return f'<p class="wf-note">{escape(known()[protocol].summary)}.</p>'
    now = Moment(result, protocol, time_s, link)
    chosen = "" if link else ", the busiest"
    where = f"link {now.link.name}{chosen}, and flow {now.flow}" if law.at_router else now.flow
    note = f'<p class="wf-note">Values of {escape(where)}.</p>'
    return note + html(law, law.terms(now))


def _mbit(rate_bps: float) -> str:
    return f"{_signed(rate_bps / 1e6, 3)} Mbit/s"


def _signed(value: float, digits: int) -> str:
    """Return a number with its sign, or "0" if it rounds to zero."""
    rounded = round(value, digits)
    return "0" if rounded == 0 else f"{rounded:+.{digits}g}".replace("-", "−")
