"""Equations of the fixed-point routers of XCP, P-XCP and iXCP, from ixcp-2007, draft-falk-xcp-spec
and kernel/xcp.h.

Their hosts are in `xcp_hosts`.

Whole numbers: rates in 2⁻¹⁶ byte/s, X in 2⁻⁴⁰ s, RTT·X in 2⁻⁴² s², α, β, γ in 2⁻³², times in µs,
feedback in 2⁻⁸ byte/s, codes of RTT and time per byte in 2⁻²⁴ and 2⁻⁵² s. Every division rounds
down; what is signed, towards zero.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from validation.certificates.fixed import codes, xcp_hosts
from validation.certificates.fixed.arithmetic import part
from validation.certificates.fixed.log import U64, Layout, layout
from validation.certificates.log import Step
from validation.certificates.receivers import header
from validation.certificates.replay import Check, Expected, LawChecker, Params, by_call

State: TypeAlias = "dict[str, Any]"

_MILLION = 1_000_000
_ZERO = 1 << 39
_FEEDBACK_MAX = _ZERO - 1
_RATE_MAX, _QUEUE_MAX, _X_MAX = 1 << 62, 1 << 40, 1 << 41
_BYTES_MAX, _SEGMENTS_MAX = (1 << 20) - 1, 1 << 14
_SAMPLE_MIN_US, _SAMPLE_MAX_US, _QUEUE_INTERVAL_MIN_US = 1000, 2000, 2000
# C_p multiplies X in 2⁻⁵² s.
_OF_TIME = 12 << 32
_FLOW_SECOND = 1_099_512  # 2⁴⁰ in a microsecond


@dataclass(frozen=True)
class Form:
    """Variant of XCP: P-XCP scales gains, and iXCP shuffles only among packets that name the link
    as their bottleneck.
    """

    scaled: bool = False
    local: bool = False

    @property
    def sums(self) -> tuple[str, ...]:
        """Names of the sums over packets."""
        more = ("lowered_x",) if self.scaled else ()
        return ("bytes", "volume", "x", "rtt_x", *more, *(_LOCAL if self.local else ()))

    @property
    def shuffled(self) -> tuple[str, str]:
        """Names of the sums of bytes and of X over the packets that take part in shuffling."""
        return _LOCAL if self.local else ("volume", "x")

    def layouts(self) -> Mapping[str, Layout]:
        """Return the layouts of the C structures, by name."""
        local = self.local
        return {
            **xcp_hosts.layouts(local),
            "sums": layout(" ".join(f"{name}_sum" for name in self.sums)),
            "cpu": (
                *layout(" ".join(f"cpu_{name}" for name in self.sums)),
                *layout("seen_x seen_volume"),
                *(layout("seen_local_x seen_local_volume") if local else ()),
                *layout("gain_left loss_left"),
                ("carry", "q"),
                ("cpu_epoch", "Q"),
            ),
            "link": (
                *layout("epoch gain loss"),
                *(
                    layout("local_gain local_loss", "link shuffle_draft claims claim_least")
                    if local
                    else ()
                ),
                *layout("rtt_max gain_residue loss_residue"),
                *layout(" ".join(f"last_{name}" for name in self.sums)),
                *layout(" ".join(f"arrived_{name}" for name in self.sums)),
                *layout("capacity queue queue_min"),
                ("spare", "q"),
                *layout(
                    "shuffled alpha beta gamma",
                    "interval elapsed until_control until_queue tick "
                    "min_interval max_interval first_interval count_own reserved",
                ),
            ),
        }


_LOCAL = ("local_volume", "local_x")


def rate(volume: int, us: int) -> int:
    """Return the rate of a volume in bytes over a time in µs, counting at most 2²⁶ bytes per
    microsecond.
    """
    return (min(volume, us << 26) * _MILLION << 16) // us


def sample_us(s: State) -> int:
    """Return the interval between queue samples in µs: d/32, limited to between 1 and 2 ms."""
    return int(min(max(s["interval"] // 32, _SAMPLE_MIN_US), _SAMPLE_MAX_US))


# ------------------------------------------------------------------ once per interval


def intervals(form: Form, s: State) -> tuple[Any, Any]:
    """Return two functions: one advances a link's time, and the other ends an interval without a
    known RTT.
    """

    def start() -> None:
        for name in form.sums:
            s[f"last_{name}"], s[f"arrived_{name}"] = s[f"arrived_{name}"], 0
        s["elapsed"], s["until_control"] = 0, s["interval"]
        s["epoch"] = s["epoch"] + 1 & U64

    def rest() -> None:
        zeros = ("spare", "shuffled", "gain", "loss", "gain_residue", "loss_residue")
        s.update(dict.fromkeys(zeros, 0), interval=s["first_interval"])
        if form.local:
            s.update(local_gain=0, local_loss=0, claims=1)
        start()

    def control() -> None:
        x, volume = s["arrived_x"], s["arrived_volume"]
        load = volume if s["count_own"] else s["arrived_bytes"]
        if not x or not load:
            rest()
            return
        lasted = max(s["elapsed"], 1)
        # katabi-2002: d is the mean RTT, of packets weighted by X; rtt X over X is in ¼ s.
        mean = codes.product(_MILLION // 4, codes.factor(s["arrived_rtt_x"], x))
        s["interval"] = min(max(mean, s["min_interval"]), s["max_interval"])
        # ixcp-2007 eq. 1: φ/d = α (c − y) − β b/d.
        off = s["capacity"] - rate(load, lasted)
        change = part(abs(off), s["alpha"])
        s["spare"] = change if off >= 0 else -change
        s["spare"] -= part(rate(s["queue"], s["interval"]), s["beta"])
        # eq. 2 and 3: h/d = max(0, γ y − |φ/d|), y of those that take part.
        local, local_x = (s[f"arrived_{name}"] for name in form.shuffled)
        s["shuffled"] = max(part(rate(local, lasted), s["gamma"]) - abs(s["spare"]), 0)
        gain, loss = max(s["spare"], 0), max(-s["spare"], 0)
        if form.scaled:
            gain = scaled(gain, x, s["arrived_lowered_x"], lasted)
        h = s["shuffled"]
        if form.local:
            s["gain"] = codes.factor(gain, x) + _OF_TIME
            s["loss"] = codes.factor(loss, load)
            s["local_gain"] = codes.factor(h, local_x) + _OF_TIME
            s["local_loss"] = codes.factor(h, local)
            s["claims"] = int(bool(s["claim_least"]) or s["spare"] <= 0)
        else:
            # draft-falk's C_p and C_n: of a loss, what falls to packets with a value.
            gain, all_loss, loss = min(gain + h, _RATE_MAX), loss, loss + h
            s["gain"] = codes.factor(gain, x) + _OF_TIME
            own = part(all_loss, codes.fraction(local, load))
            s["loss"] = codes.factor(own + h, local)
        s["gain_residue"], s["loss_residue"] = gain, min(loss, _RATE_MAX)
        start()

    def measure(queue: int) -> None:
        """Record the smallest queue since the last measurement, and schedule the next one."""
        draining = (queue << 16) // max(s["capacity"] // _MILLION, 1)
        s["queue"], s["queue_min"] = s["queue_min"], queue
        wait = max(s["interval"] - draining, 0) // 2
        s["until_queue"] = max(wait, _QUEUE_INTERVAL_MIN_US)

    def advance(us: int, queue: int) -> None:
        s["queue_min"] = min(s["queue_min"], queue)
        s["elapsed"] += us
        s["until_control"] -= us
        s["until_queue"] = max(s["until_queue"] - us, 0)
        if s["until_queue"] <= sample_us(s) // 2:
            measure(queue)
        if not s["until_control"]:
            control()

    def rest_after(queue: int) -> None:
        measure(queue)
        rest()

    return advance, rest_after


def scaled(gain: int, x: int, lowered_x: int, us: int) -> int:
    """Return the gain scaled by N/N_b, where N_b is between one flow and N (ixcp-2007 §5)."""
    few = min(max(lowered_x, us * _FLOW_SECOND), x)
    cut = max(gain.bit_length() - 40, 0)
    return min(codes.product(gain >> cut, codes.factor(x, few), cut), _RATE_MAX)


def router(form: Form) -> Check:
    """Return the equations of a router (ixcp-2007 §2.1 and §3, with the residues of
    draft-falk-xcp-spec).
    """

    def set_tick(s: State) -> State:
        """Set the next tick to the next queue sample, or to the end of interval d if that is about
        as near.
        """
        sample, left = sample_us(s), s["until_control"]
        s["tick"] = left if left < sample + sample // 2 else sample
        return s

    def tick(step: Step) -> Expected:
        s: State = dict(step.before)
        sums: State = dict(step.inputs)
        for name in form.sums:
            s[f"arrived_{name}"] = s[f"arrived_{name}"] + sums[f"{name}_sum"] & U64
        advance, _ = intervals(form, s)
        advance(s["tick"], min(sums["queue"], _QUEUE_MAX))
        return Expected(set_tick(s), {"value": bytes(16)})

    def idle(step: Step) -> Expected:
        s: State = dict(step.before)
        n, queue = int(step.inputs["intervals"] or 0), int(step.inputs["queue"] or 0)
        if not n:
            return Expected({}, {"value": bytes(16)})
        us, queue = min(n, 1 << 32) * s["tick"], min(queue, _QUEUE_MAX)
        advance, rest_after = intervals(form, s)
        # The present interval may have had arrivals; those after it rest, and the last may go on.
        first = min(us, s["until_control"])
        advance(first, queue)
        us -= first
        if us >= s["interval"]:
            us -= s["interval"]
            rest_after(queue)
            us %= s["interval"]
        s["elapsed"] += us
        s["until_control"] -= us
        return Expected(set_tick(s), {"value": bytes(16)})

    def mark(step: Step) -> Expected:
        s: State = dict(step.before)
        packet: State = dict(step.inputs)
        value = header(packet["value"])
        named = form.local and int.from_bytes(value[11:13], "big") == s["link"]
        if s["cpu_epoch"] != s["epoch"]:
            take_residues(form, s)
        if named:
            s["cpu_local_volume"] = s["cpu_local_volume"] + packet["bytes"] & U64
        feedback = marked(form, s, packet, value, named or not form.local)
        written = value
        if feedback is not None:
            written = value[:6] + feedback.to_bytes(5, "big") + value[11:]
            if form.local and any(value[:3]):
                # ixcp-2007 §3: the packet's next bottleneck.
                name = s["link"] if s["claims"] else 0
                written = written[:13] + struct.pack(">H", name) + value[15:]
        return Expected(s, {"value": written})

    return by_call(mark=mark, tick=tick, idle=idle)


# ------------------------------------------------------------------ per packet


def take_residues(form: Form, s: State) -> None:
    """Take a CPU's portion of the residues: gains in proportion to its X, losses in proportion to
    its bytes.
    """

    def share(of: int, name: str) -> int:
        mine = s[f"cpu_{name}"] - s[f"seen_{name}"] & U64
        s[f"seen_{name}"] = s[f"cpu_{name}"]
        return part(of, codes.fraction(mine, s[f"last_{name}"]))

    s["cpu_epoch"] = s["epoch"]
    s["gain_left"], s["loss_left"] = (
        share(s["gain_residue"], "x"),
        share(s["loss_residue"], "volume"),
    )
    if form.local:
        s["gain_left"] += share(s["shuffled"], "local_x")
        s["loss_left"] += share(s["shuffled"], "local_volume")
        s["gain_left"] = min(s["gain_left"], _RATE_MAX)
        s["loss_left"] = min(s["loss_left"], _RATE_MAX)


def changes(form: Form, s: State, per_byte: int, size: int, local: bool) -> tuple[int, int]:
    """Return a packet's gain min(C_p X, gains left) and loss min(C_n s, losses left)
    (draft-falk).
    """
    mantissa, exponent = codes.parts(per_byte)
    time = mantissa * size
    gain, loss = codes.product(time, s["gain"], exponent), codes.product(size, s["loss"])
    more, less = 0, 0
    if form.local and local:
        more = codes.product(time, s["local_gain"], exponent)
        less = codes.product(size, s["local_loss"])
    all_gain, all_loss = gain + more, loss + less
    left_gain, left_loss = min(all_gain, s["gain_left"]), min(all_loss, s["loss_left"])
    short = left_gain < all_gain or left_loss < all_loss
    if form.local and local and not s["shuffle_draft"] and short:
        # ixcp-2007 §2.1: a packet's part in shuffling ends with whichever residue ends first.
        paired = min(codes.fraction(left_gain, all_gain), codes.fraction(left_loss, all_loss))
        left_gain = min(left_gain, gain + part(more, paired))
        left_loss = min(left_loss, loss + part(less, paired))
    return left_gain, left_loss


def marked(form: Form, s: State, packet: State, value: bytes, local: bool) -> int | None:
    """Count a packet, and return the feedback to write, or None if the packet keeps its present
    feedback.
    """
    rtt, per_byte = (int.from_bytes(value[i : i + 3], "big") for i in (0, 3))
    given = int.from_bytes(value[6:11], "big")
    s["cpu_volume"] = s["cpu_volume"] + packet["bytes"] & U64
    if not rtt:
        return None if given else _ZERO
    size = min(packet["bytes"], _BYTES_MAX)
    # draft-falk: X = rtt s/cwnd.
    x = codes.number(per_byte) * size >> 12
    bounded_rtt = min(codes.number(rtt), s["rtt_max"]) >> 4
    s["cpu_x"] = s["cpu_x"] + x & U64
    s["cpu_rtt_x"] = s["cpu_rtt_x"] + (min(x, _X_MAX) * bounded_rtt >> 18) & U64
    if form.local and local:
        s["cpu_local_x"] = s["cpu_local_x"] + x & U64
    gain, loss = changes(form, s, per_byte, size, local)
    due = gain - loss + s["carry"]
    # A code of each segment; towards zero, and within the field.
    unit = max(min(packet["segments"], _SEGMENTS_MAX), 1) << 8
    code = min(abs(due) // unit, _FEEDBACK_MAX) * (1 if due >= 0 else -1)
    if given and given <= _ZERO + code:
        # An earlier router gave less; the difference is a loss that this one has allocated.
        less = (given - _ZERO) * unit
        loss = min(loss + max(gain - loss - less, 0), s["loss_left"])
        s["gain_left"] = min(max(s["gain_left"] - less - loss, 0), _RATE_MAX)
        s["loss_left"] -= loss
        return None
    rest = due - code * unit
    if abs(rest) < unit:
        s["carry"] = rest
    s["gain_left"] -= gain
    s["loss_left"] -= loss
    if form.scaled:
        s["cpu_lowered_x"] = s["cpu_lowered_x"] + x & U64
    return int(_ZERO + code)


def law(form: Form) -> LawChecker:
    """Return the equations of one variant of XCP."""

    def make_router(_: Params) -> Check:
        return router(form)

    def make_receiver(_: Params) -> Check:
        return xcp_hosts.receiver(form.local)

    def make_source(_: Params) -> Check:
        return xcp_hosts.source(form.local)

    return LawChecker(make_router, make_receiver, make_source)


FORMS = {"xcp": Form(), "pxcp": Form(scaled=True), "ixcp": Form(local=True)}
