"""Ranges of each law's structures, as the tables in its header state, and relations between fields.

A field that is not named has all values of its type. Parameters are what a daemon or a scenario may
set; links, sources and receivers are also proved to stay in their ranges.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import z3

from validation.proofs import contracts
from validation.proofs.integers import Integers, Number

Range = tuple[int, int]
Fields = dict[str, Number]
FRACTION = (0, 1 << 32)
CODE = (0, (1 << 23) - 1)
FLAGGED = (0, (1 << 24) - 1)
SWITCH = (0, 1)
TIME = (0, 1 << 52)  # us: 142 years


@dataclass
class ProofLaw:
    """Assumptions of the proofs about a law, and options for its functions."""

    header: str
    structures: dict[str, dict[str, Range]]
    # Formulas between fields of a structure, which hold before and after each function.
    relations: dict[str, Callable[[Fields], list[Any]]] = field(default_factory=dict)
    # Fields that are factors of float.h, with their largest exponents.
    factors: dict[str, int] = field(default_factory=dict)
    # Unsigned arithmetic that wraps on purpose, and bounds that z3 finds only with a hint.
    wraps: set[tuple[str, str]] = field(default_factory=set)
    cuts: dict[tuple[str, str], Range] = field(default_factory=dict)
    # Bounds of a variable that are taken for granted, as its header says.
    assumed: dict[tuple[str, str], Range] = field(default_factory=dict)
    # Ranges of arguments that are numbers, by function and name.
    arguments: dict[tuple[str, str], Range] = field(default_factory=dict)
    # Arguments of which each value from 0 to this is proved by itself.
    each: dict[tuple[str, str], int] = field(default_factory=dict)
    # Narrower ranges at a function's start, for a reason that its header gives.
    entered: dict[tuple[str, str], Range] = field(default_factory=dict)
    # Arrays of any values: how many rows and how many words an index may name.
    arrays: dict[tuple[str, ...], tuple[int, int]] = field(default_factory=dict)
    # The functions that are entered, if not those of law.h.
    entries: tuple[str, ...] = ()
    # Functions that are not entered by themselves, or whose results mean nothing.
    skip: set[str] = field(default_factory=set)


def _rcp_link(f: Fields) -> list[Any]:
    return [f["rate"].term <= f["capacity"].term * 1024, f["rate_min"].term <= f["capacity"].term]


RCP = ProofLaw(
    "rcp.h",
    {
        "law_params": {
            "alpha": (1, 1000),
            "beta": (0, 65535),
            "first_rate": (1, 1000000),
            "r_min": (13, (1 << 32) - 1),
        },
        "law_link": {
            "rate": (1 << 10, 1 << 60),
            "mean_rtt": (10 << 16, 1 << 39),
            "capacity": (1, 1 << 50),
            "code": CODE,
            "interval": (10, 1000000),
            "alpha": (0, 1000),
            "beta": (0, 65535),
            "max_interval": (10, 1000000),
            "rate_min": (1, (1 << 32) - 1),
        },
        "law_source": {"rate": (0, 10**15)},
    },
    relations={"law_link": _rcp_link},
    wraps={
        ("law_mark", "cpu->sums.timed_bytes += packet->bytes"),
        ("law_mark", "cpu->sums.rtt_bytes += rcp_rtt(rtt_code) * packet->bytes"),
    },
    arguments={("law_tightens", "evidence"): FLAGGED, ("law_tightens", "us"): TIME},
)


AECP = ProofLaw(
    "aecp.h",
    {
        "law_params": {
            "alpha": (1, 1000000),
            "beta": (1, 1000000),
            "t": (1000, 1000000000),
            "t_2": (1000, 1000000),
            "x_0": (250, (1 << 32) - 1),
        },
        "law_link": {
            "place": (0, 65534 << 22),
            "place_max": (0, 65534 << 22),
            "capacity": (1, 1 << 50),
            "volume": (1, 1 << 57),
            "gain": FRACTION,
            "packet": (1 << 8, 1 << 24),
            "t": (1000, 1 << 30),
            "t_2": (1000, 1000000),
        },
        "law_cpu": {"residue": (0, (1 << 22) - 1)},
        "law_source": {"place": (0, 65535 << 22), "value": (0, 65535), "packet": (0, 65535)},
    },
    relations={"law_link": lambda f: [f["t_2"].term <= f["t"].term]},
    wraps={
        ("law_mark", "cpu->sums.data_bytes += packet->bytes"),
        ("law_mark", "cpu->sums.data_segments += packet->segments"),
    },
    arguments={
        ("law_tightens", "evidence"): (0, 65535),
        ("law_tightens", "us"): TIME,
        ("law_reduce", "shift"): (1, (1 << 32) - 1),
    },
)


VCP = ProofLaw(
    "vcp.h",
    {
        "law_params": {
            "t_rho": (100, 10**7),
            "t_q": (100, 10**7),
            "kappa_q": (0, 65535),
            "gamma": (1, 10**6),
            "queue_weight": (1, 10**6),
            "xi": (1, 10**6),
            "beta": (1, 10**6),
            "t_d": (1000, 10**7),
        },
        "law_link": {
            "load_factor": (0, 1 << 33),
            "queue": (0, 1 << 54),
            "volume": (1, 1 << 60),
            "queue_weight": FRACTION,
            "load": (1, 3),
            "t_rho": (100, 10**7),
            "t_q": (100, 10**7),
            "samples": (1, 1 << 16),
            "ticks": (0, (1 << 16) - 1),
            "kappa_q": (0, 65535),
            "waited": (0, 1 << 62),
            "arrived": (0, 1 << 63),
        },
        "law_source": {
            "window": (1 << 32, 1 << 61),
            "frozen_until": (0, 1 << 63),
            "adding_until": (0, 1 << 63),
            "load": (0, 3),
            "rtt": (0, 1 << 27),
            "packet": (1, 65535),
        },
    },
    relations={
        "law_link": lambda f: [
            f["waited"].term <= f["ticks"].term * (1 << 46),
            f["arrived"].term <= f["ticks"].term * (1 << 47),
            f["samples"].term * f["t_q"].term <= 10**7,
            f["ticks"].term < f["samples"].term,
        ]
    },
    wraps={("law_ack", "++s->decreases")},
    cuts={("fixed_exp_less_one", "u"): (0, 3 << 34)},
    arguments={("law_tightens", "evidence"): (0, (1 << 32) - 1)},
)


def _maxnet_link(f: Fields) -> list[Any]:
    return [
        f["maxnet.price_min"].term <= f["maxnet.price"].term,
        f["maxnet.price"].term <= f["maxnet.price_max"].term,
        f["maxnet.t_0"].term > f["maxnet.dt_p"].term,
    ]


def _maxnet_source(f: Fields) -> list[Any]:
    tau, mode = f["maxnet.base_rtt"].term, f["maxnet.mode"].term
    started, initial = f["maxnet.start_rate"].term, f["maxnet.start_initial"].term
    return [
        z3.Implies(tau > 0, f["maxnet.xi_speed"].term >= 1),
        z3.Implies(f["maxnet.has_price"].term > 0, tau > 0),
        z3.Implies(mode == 1, z3.And(initial <= started, started <= 10**15)),
    ]


# Differences of clocks and of counters: TCP's wrap, and a clock that went back gives a long time.
_CLOCKS = {
    ("host_is_due", "tcp->now_us - h->called_us"),
    ("host_update_boost", "tcp->now_us - h->boost_since_us"),
    ("host_update_boost", "tcp->delivered - h->boost_delivered"),
}
# Packets delivered in two RTTs: 10^12 bytes.
_WINDOWS = {("host_update_boost", "packets"): (0, 1 << 24)}

_MAXNET_PARAMS = {
    "source.x_max": (32, 10**15),
    "source.x_min": (32, 10**15),
    "source.alpha": (1, 1571),
    "source.eta": (1, 65535),
    "source.t": (1, 100000),
    "source.dt_min": (0, 10**6),
    "source.average": SWITCH,
    "source.compensate": SWITCH,
    "source.xi_first": SWITCH,
    "source.bare": SWITCH,
    "dt_p": (1, 10**6),
    "promise": SWITCH,
    "weight": (0, 1000),  # at most 1: larger ones are not proved
}
MAXNET = ProofLaw(
    "maxnet.h",
    {
        "law_params": _MAXNET_PARAMS,
        "law_link": {
            "maxnet.capacity": (1, 1 << 57),
            "maxnet.x_max": (32, 10**15),
            "maxnet.start_share": (0, 1 << 57),
            "maxnet.price": (0, 1 << 56),
            "maxnet.price_min": (0, 1 << 56),
            "maxnet.price_max": (0, 1 << 56),
            "maxnet.target_time": (0, 1 << 34),
            "maxnet.arrival_rate": (0, 1 << 63),
            "maxnet.promised": (0, 1 << 58),
            "maxnet.promised_age": (0, 44 << 34),
            "maxnet.aging": (4, 1 << 34),
            "maxnet.price_code": CODE,
            "maxnet.t": (1, 100000),
            "maxnet.mu": (0, 10**6),
            "maxnet.dt_p": (1, 10**6),
            "maxnet.t_0": (2, (1 << 32) - 1),
            "start": FLAGGED,
        },
        "law_source": {
            "maxnet.window": (0, 1 << 59),
            "maxnet.rate": (0, 10**15),  # a weight of 1
            "maxnet.demand_max": (1, 10**15),
            "maxnet.start_rate": (0, 2 * 10**15 + 1),
            "maxnet.start_initial": (0, 10**15),
            "maxnet.xi": (-(1 << 61), 1 << 61),
            "maxnet.xi_speed": (0, 1 << 62),
            "maxnet.price": CODE,
            "maxnet.base_rtt": (0, 1 << 24),
            "maxnet.packet": (1, 1 << 16),
            "maxnet.mode": (0, 2),
            "maxnet.has_price": SWITCH,
            "maxnet.updated": TIME,
            "maxnet.raised": TIME,
        },
        "law_receiver": {
            "maxnet.average": (0, ((1 << 23) - 1) << 40),
            "maxnet.rtt": (0, 1 << 24),
            "maxnet.start": FLAGGED,
            "maxnet.has_price": SWITCH,
            "maxnet.last": TIME,
        },
        "law_limit": {"rate": (0, 10**15), "window": (0, 1 << 59), "packet": (1, 1 << 16)},
        "host_pace": {
            "pacing_boost": (1024, 8192),
            "boost_rate": (0, 10**15),
            "restart_window": (0, 1 << 31),
            "silent_window": (0, 1024),
            "called_us": TIME,
            "boost_since_us": TIME,
        },
    },
    relations={
        "law_link": _maxnet_link,
        "law_source": _maxnet_source,
        "law_tcp": lambda f: [f["payload"].term <= f["packet"].term],
    },
    wraps={
        ("maxnet_xi_next", "s->xi_low += low"),
        ("maxnet_xi_next", "s->xi_low -= low"),
        ("law_source_read", "(__u64)s->maxnet.xi"),  # with its sign
        *_CLOCKS,
    },
    assumed=_WINDOWS,
    arguments={
        ("host_time_out_undone", "in_flight"): (0, 1 << 30),
        ("law_ack", "has_echo"): SWITCH,
        ("law_source_init", "packet"): (1, 1 << 16),
        ("law_source_init", "window"): (0, 1 << 59),
        ("law_receive", "now_us"): TIME,
        ("law_tightens", "evidence"): CODE,
        ("law_tightens", "us"): TIME,
        ("law_reduce", "shift"): (0, 63),
        ("law_link_set", "target"): (0, 10**6),
    },
)


JETMAX = ProofLaw(
    "jetmax.h",
    {
        "law_params": {
            "x_min": (1, 1 << 50),
            "gamma": (1, 10**6),
            "tau": (1, 2 * 10**6 - 1),
            "interval": (1, 1 << 22),
            "epsilon": (0, 10**6),
            "urgent": (0, 10**6),
        },
        "law_link": {
            "goal": (1, 1 << 50),
            "target": (0, 1 << 50),
            "unresponsive": (0, 1 << 50),
            "flows": (0, 1 << 43),
            "overloaded": FRACTION,
            "target_code": FLAGGED,
            "share_code": FLAGGED,
            "interval": (1, 1 << 22),
        },
        "law_source": {
            "rate": (0, 1 << 50),
            "target": (0, 1 << 50),
            "offer": (0, 1 << 50),
            "x_min": (1, 1 << 50),
            "bottleneck": (0, 31),
            "weight": (0, 255),
            "packet": (0, 1 << 16),
        },
    },
    factors={"law_link.join": 151},
    wraps={
        ("law_ack", "tcp->now_us - s->joined"),
        ("law_mark", "cpu->sums.own += packet->bytes"),
        ("law_mark", "cpu->sums.membership += jetmax_delta(bytes, rate, value[9])"),
    },
    arguments={
        ("law_source_init", "packet"): (1, 1 << 16),
        ("law_tightens", "evidence"): (0, 1 << 50),
        ("law_link_set", "target"): (0, 10**6),
        ("law_ack", "has_echo"): SWITCH,
    },
)


def _maxnet2006_link(f: Fields) -> list[Any]:
    return [
        f["maxnet.price_min"].term <= f["maxnet.price"].term,
        f["maxnet.price"].term <= f["maxnet.price_max"].term,
    ]


def _maxnet2006_source(f: Fields) -> list[Any]:
    tau = f["maxnet.base_rtt"].term
    return [
        z3.Implies(f["maxnet.has_price"].term > 0, tau > 0),
        z3.Implies(f["maxnet.mode"].term == 1, tau > 0),
    ]


MAXNET2006 = ProofLaw(
    "maxnet2006.h",
    {
        "law_params": {
            "source.x_max": (32, 10**15),
            "source.x_min": (32, 10**15),
            "source.alpha": (1, 1571),
            "source.eta": (1, 65535),
            "source.t": (1, 100000),
            "source.dt": (0, 10**6),
            "source.rtt_unit": (1, 1 << 24),
            "source.rateinc": (1000, 16000),
            "source.max_wnd": (1, 1 << 26),
            "source.weight": (0, 1000),  # at most 1, as MaxNet's
            "source.average": SWITCH,
            "source.compensate": SWITCH,
            "epsilon": (0, 10**6),
            "quickstart": SWITCH,
        },
        "law_link": {
            "maxnet.capacity": (1, 1 << 57),
            "maxnet.x_max": (32, 10**15),
            "maxnet.start_share": (0, 1 << 58),
            "maxnet.start_min": (0, 1 << 57),
            "maxnet.price": (0, 1 << 56),
            "maxnet.price_min": (0, 1 << 56),
            "maxnet.price_max": (0, 1 << 56),
            "maxnet.target_time": (0, 1 << 34),
            "maxnet.arrival_rate": (0, 1 << 63),
            "maxnet.dt": (1, 10**6),
            "price_code": CODE,
            "start_code": CODE,
        },
        "law_source": {
            "maxnet.demand_max": (1, 10**15),
            "maxnet.rate": (0, 1 << 57),
            "maxnet.window": (0, 1 << 42),
            "maxnet.start_rate": (0, 1 << 57),
            "maxnet.average": (0, ((1 << 23) - 1) << 16),
            "maxnet.xi": (-(1 << 61), 1 << 61),
            "maxnet.last_price": CODE,
            "maxnet.base_rtt": (0, 1 << 24),
            "maxnet.packet": (1, 1 << 14),
            "maxnet.mode": (0, 2),
            "maxnet.has_price": SWITCH,
            "maxnet.price_at": TIME,
            "maxnet.updated": TIME,
            "maxnet.raised": TIME,
        },
        "law_tcp": {"packet": (1, 1 << 14)},
        "law_receiver": {"field": FLAGGED},
        "law_limit": {"rate": (0, 1 << 57), "window": (0, 1 << 42), "packet": (1, 1 << 14)},
    },
    relations={"law_link": _maxnet2006_link, "law_source": _maxnet2006_source},
    wraps={
        ("law_source_read", "(__u64)s->maxnet.xi"),  # with its sign
        ("maxnet2006_next_price", "now - s->price_at"),
        ("maxnet2006_next_price", "now - s->updated"),
        ("maxnet2006_update_window", "now - s->raised"),
        ("maxnet2006_next_price", "++s->acks"),
    },
    arguments={
        ("law_link_set", "target"): (0, 10**6),
        ("law_source_init", "packet"): (1, 1 << 14),
        ("law_source_init", "window"): (0, 1 << 42),
        ("law_tightens", "evidence"): (0, ((1 << 23) - 1) << 16),
        ("law_tightens", "us"): TIME,
        ("law_reduce", "shift"): (0, 63),
    },
)


def _xcp_link(f: Fields) -> list[Any]:
    until, elapsed = f["until_control"].term, f["elapsed"].term
    return [
        f["min_interval"].term <= f["max_interval"].term,
        f["tick"].term <= until,
        elapsed + until <= _XCP_INTERVAL,
    ]


_XCP_INTERVAL = 1 << 22  # us
_XCP_RATE = 1 << 62  # 2^-16 byte/s
_XCP_INPUT = (1 << 26) * 10**6 << 16  # of xcp_rate()
_XCP_FACTOR = contracts.FACTOR_EXPONENTS[1] + 12  # with XCP_FACTOR_OF_TIME


def _xcp(header: str, scaled: bool = False, local: bool = False) -> ProofLaw:
    interval = (1, _XCP_INTERVAL)
    wraps = {
        ("law_tick", f"arrived->{name} += sums->{name}")
        for name in ("bytes", "volume", "x", "rtt_x", "lowered_x", "local_volume", "local_x")
    }
    wraps |= {
        # Counts of arrivals, which only grow, and their differences.
        ("xcp_start_interval", "++link->epoch"),
        ("xcp_take_residues", "cpu->sums.x - cpu->seen_x"),
        ("xcp_take_residues", "cpu->sums.volume - cpu->seen_volume"),
        ("xcp_take_residues", "cpu->sums.local_x - cpu->seen_local_x"),
        ("xcp_take_residues", "cpu->sums.local_volume - cpu->seen_local_volume"),
        ("xcp_mark", "cpu->sums.volume += packet->bytes"),
        ("xcp_mark", "cpu->sums.x += x"),
        ("xcp_mark", "cpu->sums.rtt_x += xcp_min(x, (1 << 41)) * rtt >> 18"),
        ("xcp_mark", "cpu->sums.local_x += x"),
        ("xcp_mark", "cpu->sums.lowered_x += x"),
        ("law_mark", "cpu->sums.local_volume += packet->bytes"),
        # Numbers with a sign, as words.
        ("law_link_read", "-((__u64)-link->spare >> 13)"),
        ("xcp_control", "(__u64)link->spare"),
        ("xcp_control", "(__u64)-link->spare"),
        ("law_receiver_read", "(__s64)r->total"),
        ("law_receiver_read", "(__u64)((__s64)r->total >> 8)"),
        ("law_receiver_read", "(__u64)((__s64)r->total >> 8) + 1"),
        ("xcp_scaled", "bits - 40"),  # times 0
        ("xcp_write_feedback", "(__u32)feedback"),  # its lower bytes
        # The total, modulo 2^64 in memory and 2^47 on the wire.
        ("law_ack", "total - s->total"),
        ("law_tightens", "s->total - evidence"),
        ("law_source_read", "s->total - (1 << 47)"),
        ("law_receive", "r->total += segments * xcp_bytes(feedback - (1 << 39), rtt_code)"),
        ("law_receive", "r->total -= segments * xcp_bytes((1 << 39) - feedback, rtt_code)"),
        ("law_receive", "segments * xcp_bytes(feedback - (1 << 39), rtt_code)"),
        ("law_receive", "segments * xcp_bytes((1 << 39) - feedback, rtt_code)"),
        ("law_echo", "(__u32)total"),  # its lower bytes
    }
    return ProofLaw(
        header,
        {
            "law_params": {
                "alpha": (1, 10**6),
                "beta": (0, 10**6),
                "gamma": (0, 10**6),
                "min_interval": (0, _XCP_INTERVAL),
                "halve_on_loss": SWITCH,
                "count_own": SWITCH,
                "claim_least": SWITCH,
                "shuffle_draft": SWITCH,
            },
            "law_link": {
                "link": (1, 65535),
                "claims": SWITCH,
                "claim_least": SWITCH,
                "shuffle_draft": SWITCH,
                "rtt_max": (0, (_XCP_INTERVAL << 24) // 10**6),
                "gain_residue": (0, _XCP_RATE),
                "loss_residue": (0, _XCP_RATE),
                "capacity": (1, _XCP_RATE),
                "queue": (0, 1 << 40),
                "queue_min": (0, 1 << 40),
                "spare": (-2 * _XCP_INPUT, _XCP_RATE),
                "shuffled": (0, _XCP_RATE),
                "alpha": FRACTION,
                "beta": FRACTION,
                "gamma": FRACTION,
                "interval": interval,
                "elapsed": (0, _XCP_INTERVAL),
                "until_control": interval,
                "until_queue": (1, _XCP_INTERVAL),
                "tick": interval,
                "min_interval": interval,
                "max_interval": interval,
                "first_interval": interval,
                "count_own": SWITCH,
            },
            "law_cpu": {
                "gain_left": (0, _XCP_RATE),
                "loss_left": (0, _XCP_RATE),
                "carry": (-(1 << 22), 1 << 22),
            },
            "law_source": {
                "window": (1 << 8, 1 << 52),
                "total": (0, (1 << 47) - 1),
                "rtt": (0, (1 << 28) - 1),
                "rtt_code": FLAGGED,
                "time_code": FLAGGED,
                "packet": (1, (1 << 32) - 1),
                "weight": (1, 10**6),
                "heard": SWITCH,
                "bottleneck": (0, 65535),
            },
            "law_receiver": {"heard": SWITCH, "next_bottleneck": (0, 65535)},
        },
        relations={"law_link": _xcp_link},
        factors={
            f"law_link.{name}": _XCP_FACTOR for name in ("gain", "loss", "local_gain", "local_loss")
        },
        wraps=wraps,
        arguments={
            ("law_link_set", "target"): (0, 10**6),
            ("law_ack", "has_echo"): SWITCH,
            ("law_tightens", "evidence"): (0, (1 << 47) - 1),
            ("law_tightens", "us"): TIME,
        },
    )


_NS = (0, 1 << 62)  # 146 years
_BINS = ("filters", "[]", "bins")
COHABIT = ProofLaw(
    "cohabit.h",
    {
        "cohabit_params": {
            "capacity": (1, 10**15),
            "initial_log": (0, 21 << 34),
            "decrease_log": (0, 1 << 34),
            "increase_log": (0, 1 << 34),
            "target": (1, 10**6),
            "interval": (1000, 10**6),
            "period": (1000, 10**8),
            "controller": (0, 2),
            "weight": (1, 64000),
            "ecn": SWITCH,
            "update": (0, 3),
            "threshold": (1, 10**6),
            "aim": (1, 10**6),
            "integral": (1, 100000),
            "proportional": (0, 100000),
            "depth": (1000, 10**7),
        },
        "cohabit_link": {
            "interval_end": (0, (1 << 62) + 10**9),
            "other_rate": (0, 1 << 53),
            "log": (0, 700 << 34),
            "factor": (-(1 << 34), 1 << 34),
            "error": (-(1 << 32), 1 << 32),
            "used": (0, 16 << 32),
            "lent": FRACTION,
            "share": (0, 2 * 10**15),
            "limited_share": FRACTION,
            "flows_end": (0, (1 << 62) + 10**11),
            "flows_now": (0, 1 << 15),
            "flows_last": (0, 1 << 15),
            "active": SWITCH,
            "probability": FRACTION,
            "per_byte": (0, 1 << 44),
            "depth": (0, 10**10 << 24),
            "per_flow": (0, 1 << 31),
            "reaction": (0, 2 * 10**9),
            "excess": (0, 1 << 62),
            "drained": _NS,
            "reacted": (0, 1 << 63),
            "pressure": (0, 3 << 31),
            "next_signal": (0, 3 << 31),
            "arrived": (0, 1 << 62),
            "rates": (0, 1 << 53),
            "usable": (0, 10**15),
            "explicit_share": (0, 10**15),
        },
    },
    relations={
        "cohabit_link": lambda f: [
            f["limited"].term <= f["arrived"].term,
            f["explicit_share"].term <= f["usable"].term,
        ]
    },
    wraps={
        ("cohabit_mix", "(x ^ (x >> 30)) * 13787848793156543929"),
        ("cohabit_mix", "(x ^ (x >> 27)) * 10723151780598845931"),
        ("cohabit_is_known", "link->filter - 1"),
        ("cohabit_clear", "link->filter + 1"),
        ("cohabit_count_period", "++link->filter"),
        ("cohabit_count", "cpu->packets[class] += segments"),
        *(
            ("cohabit_add", f"total->{name} += cpu->{name}")
            for name in ("bytes[class]", "packets[class]", "dropped", "marked")
        ),
        ("cohabit_advance", "total->bytes[class] - link->before.bytes[class]"),
        ("cohabit_advance", "total->packets[class] - link->before.packets[class]"),
    },
    # Segments of an interval are fewer than 2^62.
    assumed={
        ("cohabit_limit", "link->arrived"): (0, 1 << 62),
        ("cohabit_advance", "input.packets[class]"): (0, 1 << 62),
    },
    arguments={
        ("cohabit_advance", "now"): _NS,
        ("cohabit_decide", "now"): _NS,
        ("cohabit_decide", "segments"): (0, 65535),
        ("cohabit_count", "segments"): (0, 65535),
    },
    each={
        ("cohabit_count", "class"): 2,
        ("cohabit_is_known", "class"): 1,
        ("cohabit_flow", "class"): 1,
    },
    entered={("cohabit_flow", "cohabit_link.flows_now"): (0, (1 << 15) - 1)},
    arrays={
        ("filters",): (4, 0),
        _BINS: (2, 0),
        (*_BINS, "[]"): (8, 256),
        (*_BINS, "[]", "[]"): (0, 256),
    },
    entries=(
        "cohabit_mix",
        "cohabit_is_known",
        "cohabit_flow",
        "cohabit_clear",
        "cohabit_count",
        "cohabit_add",
        "cohabit_decide",
        "cohabit_advance",
    ),
)


LAWS: dict[str, ProofLaw] = {
    "aecp": AECP,
    "cohabit": COHABIT,
    "jetmax": JETMAX,
    "maxnet": MAXNET,
    "maxnet2006": MAXNET2006,
    "rcp": RCP,
    "vcp": VCP,
    "xcp": _xcp("xcp.h"),
    "pxcp": _xcp("pxcp.h", scaled=True),
    "ixcp": _xcp("ixcp.h", local=True),
}


def setup(domain: Integers, name: str, low: int, high: int, law: ProofLaw) -> Number:
    """Return any number in a field's range, or any factor if the field holds a factor."""
    if name in law.factors:
        return contracts.factor(domain, 0, law.factors[name])
    return domain.variable(name, low, high)


__all__ = ["LAWS", "ProofLaw", "z3"]
