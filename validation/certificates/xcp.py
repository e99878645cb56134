"""Equations of XCP, iXCP and P-XCP: ixcp-2007 eq. 1–3, §3 and §5; Katabi 2002 (`d`, `x`, `cwnd`).

The draft-falk-xcp-spec has `cp`, `cn` and `residue`. Rates are bit/s, so φ/d and h/d.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from validation.certificates.log import Step, Value
from validation.certificates.receivers import header
from validation.certificates.replay import (
    SYNS_LOST,
    Check,
    Expected,
    LawChecker,
    Packed,
    Params,
    PartChecker,
)
from validation.certificates.rounding import (
    OneOf,
    Real,
    Whole,
    below,
    largest,
    single,
    smallest,
    within,
)
from validation.certificates.units import (
    from_seconds,
    given,
    number,
    picoseconds,
    seconds,
    usable,
    whole,
)

_TCP, _VERSION = 6, 2 << 4
_FALK, _KATABI, _TOTAL = 1, 14, 15
_ASK_KATABI = struct.unpack(">f", bytes.fromhex("7f7fffff"))[0]
_ASK_FALK = 2**31 - 1
_TICKS = 1 << 28
_FEEDBACK_MAX = 1e30
_WINDOW_MAX = 1e15
_QUEUE_INTERVAL_MIN = 2 * 10**9  # 2 ms
_SYN = 0
_LOSS, _TIMEOUT = 0, 1
_ACCESS = 0
_NO_LIMIT = sys.float_info.max


@dataclass(frozen=True)
class Family:
    """Variant of XCP: the differences between XCP, iXCP and P-XCP."""

    named: bool = False
    """True for iXCP, where packets name their bottleneck."""
    scaled: bool = False
    """True for P-XCP, where spare bandwidth is scaled up."""

    def data_form(self, falk: bool) -> str:
        """Return the `struct` format of a data packet's header, which in iXCP includes two
        bottleneck names.
        """
        return (">4BIIi4x" if falk else ">4Bfff4x") + ("II4x" if self.named else "4x")

    def echo_form(self, echo: int) -> str:
        """Return the `struct` format of an acknowledgement's header."""
        return (">4B12xi" if echo == _FALK else ">4B12xf") + ("I" if self.named else "4x")

    def frame(self, kind: int, data: bool) -> tuple[int, int, int, int]:
        """Return the four bytes of the first word of a header."""
        length = (28 if data else 24) if self.named else 20
        return _TCP, length, _VERSION | kind, 0


@dataclass(frozen=True)
class Congestion:
    """XCP's congestion header of a data packet."""

    family: Family
    falk: bool
    rtt_field: float
    second: float
    feedback_field: float
    names: tuple[int, ...]

    @staticmethod
    def read(family: Family, data: Value) -> Congestion:
        """Decode the congestion header of a data packet."""
        packed = header(data)
        falk = packed[2] & 15 == _FALK
        _, _, _, _, rtt, second, feedback, *names = struct.unpack(family.data_form(falk), packed)
        return Congestion(family, falk, rtt, second, feedback, tuple(names))

    def written(
        self, rtt: object, second: object, feedback: object, names: tuple[object, ...]
    ) -> Packed:
        """Return the expected header with the given fields."""
        frame = self.family.frame(_FALK if self.falk else _KATABI, True)
        return Packed(self.family.data_form(self.falk), *frame, rtt, second, feedback, *names)

    def rtt(self) -> Fraction | None:
        """Return the stated RTT in seconds, or None if it is unknown."""
        scale = _TICKS if self.falk else 1
        return Fraction(self.rtt_field) / scale if self.rtt_field > 0 else None

    def x(self, volume: float, packets: float) -> Real:
        """Return X = rtt s/cwnd, summed over the packets (`x`)."""
        if self.falk:
            return packets * Real(Fraction(self.second) / _TICKS)
        if self.second <= 0:
            return Real(0)
        return Real(self.rtt_field) * (Real(volume) / self.second)

    def feedback(self, rtt: Fraction) -> Real | None:
        """Return the change of throughput allocated so far, or None before the first router."""
        if self.falk:
            return (
                Real(8 * Fraction(self.feedback_field)) if self.feedback_field < _ASK_FALK else None
            )
        if self.feedback_field >= _ASK_KATABI:
            return None
        return Real(self.feedback_field).exact_times(8) / rtt

    def feedback_of(self, change: Real, rtt: Fraction) -> object:
        """Return the feedback field for a change of throughput."""
        per_second = change.exact_times(Fraction(1, 8))
        if self.falk:
            return rounded(per_second, _ASK_FALK - 1)
        return single(within(per_second * rtt, -_FEEDBACK_MAX, _FEEDBACK_MAX))


def rounded(value: Real, most: int = _ASK_FALK) -> OneOf:
    """Return the nearest 32-bit integer, with halves rounded away from zero."""
    sign = -1 if value.value < 0 else 1
    low, high = Whole(-value if sign < 0 else value).bounds()
    return OneOf(*(max(min(sign * n, most), -(2**31)) for n in range(low, high + 1)))


class Router(PartChecker):
    """Equations of an XCP, iXCP or P-XCP router."""

    def __init__(self, family: Family, params: Params) -> None:
        self.family = family
        self.params = params
        self.alpha, self.beta, self.gamma = (
            number(params[name]) for name in ("alpha", "beta", "gamma")
        )
        self.shortest, self.longest = (
            picoseconds(params["min_interval"]),
            picoseconds(params["max_interval"]),
        )
        self.first = picoseconds(params["first_interval"])
        self.residues = bool(params["residues"])
        self.paired = family.named and params["shuffle"] == "paired"
        self.counts_all = family.named or params["counts"] == "all"
        self.lowered = ("left_x", "lowered_x") if family.scaled else ()
        self.sums = ("volume", "x", "local_volume", "local_x", "sum_rtt_x", *self.lowered)
        self.results = ("spare", "shuffled", "gain_all", "gain_local", "loss_all", "loss_local")
        self.rest = ("residue_gain", "residue_loss", "queue", "queue_min")

    def _is_local(self, step: Step, packet: Congestion) -> bool:
        return not self.family.named or packet.names[0] == step.before["id"]

    def _poll(self, step: Step) -> dict[str, object]:
        times = whole(step.after["next_control"]), whole(step.after["next_queue"])
        return {"poll_at": min(times)}

    def _new(self, step: Step) -> Expected:
        zeros = dict.fromkeys((*self.sums, *self.results, *self.rest), 0.0)
        times = dict.fromkeys(("interval", "next_control", "next_queue"), self.first)
        # The last of 2³² links has the name of the one before it: 0 is the access.
        named = {"id": min(whole(step.inputs["id"]) + 1, 2**32 - 1)} if self.family.named else {}
        return Expected(
            {**zeros, **times, **named, "capacity": usable(step)}, {"poll_at": self.first}
        )

    def _on_arrival(self, step: Step) -> Expected:
        before, inputs = step.before, step.inputs
        outputs = {name: inputs[name] for name in ("has_header", "header")}
        if not inputs["has_header"] and not self.counts_all:
            return Expected({}, outputs)
        volume = number(inputs["volume"])
        after: dict[str, object] = {"volume": Real(number(before["volume"])) + volume}
        if inputs["has_header"]:
            packet = Congestion.read(self.family, inputs["header"])
            local = self._is_local(step, packet)
            if local:
                after["local_volume"] = Real(number(before["local_volume"])) + volume
            rtt = packet.rtt()
            if rtt is not None:
                x = packet.x(volume, number(inputs["packets"]))
                after["x"] = x + number(before["x"])
                if local:
                    after["local_x"] = x + number(before["local_x"])
                bounded = smallest(rtt, seconds(self.longest))
                after["sum_rtt_x"] = bounded * x + number(before["sum_rtt_x"])
        return Expected(after, outputs)

    def _on_departure(self, step: Step) -> Expected:
        before, inputs = step.before, step.inputs
        after: dict[str, object] = {
            "queue_min": min(number(before["queue_min"]), number(inputs["queue"]))
        }
        outputs: dict[str, object] = {name: inputs[name] for name in ("has_header", "header")}
        if inputs["has_header"]:
            packet = Congestion.read(self.family, inputs["header"])
            rtt = packet.rtt()
            if rtt is not None:
                changed, written = self._fed_back(step, packet, rtt)
                after |= changed
                outputs["header"] = written
        return Expected(after, outputs)

    def _fed_back(
        self, step: Step, packet: Congestion, rtt: Fraction
    ) -> tuple[dict[str, object], object]:
        """Return the state and header after feedback: the packet's gains minus its losses, within
        the residues (`residue`).
        """
        b = {
            name: number(value)
            for name, value in step.before.items()
            if name in (*self.results, *self.rest, *self.sums)
        }
        volume = number(step.inputs["volume"])
        x = packet.x(volume, number(step.inputs["packets"]))
        local = int(self._is_local(step, packet))
        due = (Real(b["gain_all"]) + local * Real(b["gain_local"])) * x
        loss_due = (Real(b["loss_all"]) + local * Real(b["loss_local"])) * volume
        gain, loss = smallest(due, b["residue_gain"]), smallest(loss_due, b["residue_loss"])
        if local and self.paired:
            # ixcp-2007 §2.1: bandwidth is given and taken simultaneously.
            part = smallest(left(gain, due), left(loss, loss_due))
            gain = smallest(gain, (b["gain_all"] + part * b["gain_local"]) * x)
            loss = smallest(loss, (b["loss_all"] + part * b["loss_local"]) * volume)
        own = gain - loss
        given = packet.feedback(rtt)
        lower = True if given is None else below(own, given)
        if lower is None:
            lower = step.outputs["header"] != step.inputs["header"]
        written: object = step.inputs["header"]
        counted = self.lowered if lower else self.lowered[:1]
        after: dict[str, object] = {name: x + b[name] for name in counted}
        if lower:
            names: tuple[object, ...] = packet.names
            if self.family.named:
                full = b["spare"] <= 0 or self.params["claim"] == "least-feedback"
                names = (packet.names[0], step.before["id"] if full else _ACCESS)
            field = packet.feedback_of(own, rtt)
            written = packet.written(packet.rtt_field, packet.second, field, names)
        elif given is not None:
            # An earlier router gave less: the difference counts as a loss allocated here.
            loss = smallest(loss + (own - given), b["residue_loss"])
            gain = given + loss
        after["residue_gain"] = largest(b["residue_gain"] - gain, 0)
        after["residue_loss"] = largest(b["residue_loss"] - loss, 0)
        return after, written

    def _on_timer(self, step: Step) -> Expected:
        before = step.before
        after: dict[str, object] = {"capacity": usable(step)}
        if whole(before["next_queue"]) <= step.time:
            after["queue"] = before["queue_min"]
            after["queue_min"] = step.inputs["queue"]
            waiting = Real(number(step.inputs["queue"])).exact_times(8)
            draining = from_seconds(waiting / number(step.after["capacity"])).bounds()
            spans = (
                max(whole(before["interval"]) - ps, 0) // 2
                for ps in range(draining[0], draining[1] + 1)
            )
            after["next_queue"] = OneOf(*(step.time + max(s, _QUEUE_INTERVAL_MIN) for s in spans))
        if whole(before["next_control"]) <= step.time:
            after |= self._control(step)
            after["next_control"] = step.time + whole(step.after["interval"])
        return Expected(after, self._poll(step))

    def _control(self, step: Step) -> dict[str, object]:
        b = {name: number(value) for name, value in step.before.items() if name in self.sums}
        after: dict[str, object] = dict.fromkeys(
            (*self.sums, *self.results, "residue_gain", "residue_loss"), 0.0
        )
        if b["x"] <= 0 or b["volume"] <= 0:
            return {**after, "interval": self.first}
        lasted, a = seconds(whole(step.before["interval"])), step.after
        load = Real(b["volume"]).exact_times(8) / lasted
        local = Real(b["local_volume"]).exact_times(8) / lasted
        # `d`: Σ(rtt X)/ΣX.
        low, high = from_seconds(Real(b["sum_rtt_x"]) / b["x"]).bounds()
        after["interval"] = OneOf(
            *{min(max(ps, self.shortest), self.longest) for ps in range(low, high + 1)}
        )
        d, queue = seconds(whole(a["interval"])), Real(number(a["queue"])).exact_times(8)
        # eq. 1: φ/d = α (c − y) − β b/d; eq. 2, 3: h/d = max{0, γ y − |φ/d|}, y of local packets.
        after["spare"] = self.alpha * (number(a["capacity"]) - load) - self.beta * (queue / d)
        spare = number(a["spare"])
        after["shuffled"] = largest(self.gamma * local - abs(spare), 0)
        shuffled = Real(number(a["shuffled"]))
        gain, loss = Real(max(spare, 0.0)), Real(max(-spare, 0.0))
        if self.family.scaled:
            # ixcp-2007 §5: N/N_b, both at least one flow.
            n_b = largest(b["lowered_x"], lasted)
            gain = gain * largest(b["left_x"] / n_b, 1)
        # `cp`, `cn`.
        after |= {
            "gain_all": gain / b["x"],
            "gain_local": over(shuffled, b["local_x"]),
            "loss_all": loss / b["volume"],
            "loss_local": over(shuffled, b["local_volume"]),
            "residue_gain": shuffled + gain if self.residues else _NO_LIMIT,
            "residue_loss": shuffled + loss if self.residues else _NO_LIMIT,
        }
        return after


def over(change: Real, total: float) -> Real | float:
    """Return the allocation per unit of the total to which it is proportional, or 0 for a total of
    0.
    """
    return change / total if total > 0 else 0.0


def left(given: Real, due: Real) -> Real:
    """Return the fraction of a packet's due change that can still be allocated."""
    return given / due if due.value > 0 else Real(1)


class Receiver(PartChecker):
    """Equations of a receiver, which echoes feedback since the last acknowledgement or in total
    (XCP-r).
    """

    def __init__(self, family: Family, params: Params) -> None:
        self.family = family
        self.falk, self.sums = params["header"] == "falk", params["feedback_at"] == "receiver"
        self.kind = _TOTAL if self.sums else _FALK if self.falk else _KATABI

    def _new(self, _: Step) -> Expected:
        named = {"next_bottleneck": _ACCESS} if self.family.named else {}
        return Expected({**named, "fresh": 0.0, "total": 0.0})

    def _on_data(self, step: Step) -> Expected:
        if not step.inputs["has_header"]:
            return Expected()
        packet = Congestion.read(self.family, step.inputs["header"])
        after: dict[str, object] = {"next_bottleneck": packet.names[1]} if self.family.named else {}
        rtt = packet.rtt()
        if rtt is not None and packet.feedback(rtt) is not None:
            change = Real(packet.feedback_field)
            volume = change * rtt if packet.falk else change
            for name, more in (("fresh", change), ("total", volume)):
                total = number(step.before[name]) + more
                after[name] = within(total, -_FEEDBACK_MAX, _FEEDBACK_MAX)
        return Expected(after)

    def _echo(self, step: Step) -> Expected:
        total, fresh = number(step.before["total"]), number(step.before["fresh"])
        field: object = single(total if self.sums else fresh)
        if self.kind == _FALK:
            field = rounded(Real(fresh))
        names = (step.before["next_bottleneck"],) if self.family.named else ()
        packed = Packed(
            self.family.echo_form(self.kind), *self.family.frame(self.kind, False), field, *names
        )
        return Expected({"fresh": 0.0}, {"has_echo": 1, "echo": packed})


class Source(PartChecker):
    """Equations of a source, which adds feedback to its window (`cwnd`)."""

    def __init__(self, family: Family, params: Params) -> None:
        self.family = family
        self.params = params
        self.falk, self.halves = params["header"] == "falk", bool(params["halve_on_loss"])

    def _limit(self, step: Step) -> dict[str, object]:
        return {"window": step.after["cwnd"], "pacing": None}

    def _new(self, step: Step) -> Expected:
        first = number(self.params["first_window"]) * Real(number(step.after["packet"]))
        named = {"bottleneck": _ACCESS} if self.family.named else {}
        claimed = step.inputs["claimed_rtt"]
        rtt = None if claimed is None else seconds(whole(claimed))
        kept = {**named, **given(step, "weight", "packet"), "claimed_rtt": rtt}
        return Expected({**kept, "cwnd": first, "srtt": None, "total": 0.0}, self._limit(step))

    def _stamp(self, step: Step) -> Expected:
        before, volume = step.before, number(step.inputs["volume"])
        srtt, claimed = before["srtt"], before["claimed_rtt"]
        cwnd = Real(number(before["cwnd"])) / number(before["weight"])
        rtt = None if srtt is None or step.inputs["kind"] == _SYN else Real(number(srtt))
        if rtt is not None and claimed is not None:
            # The window is stated to match, so that the rate is the true one.
            cwnd, rtt = cwnd * (number(claimed) / rtt), Real(number(claimed))
        stated = Real(0) if rtt is None else rtt
        names = (before["bottleneck"], _ACCESS) if self.family.named else ()
        empty = Congestion(self.family, self.falk, 0, 0, 0, ())
        if self.falk:
            x = stated * (volume / cwnd)
            fields = (
                self._ticks(stated, rtt is not None),
                self._ticks(x, rtt is not None),
                _ASK_FALK,
            )
            return Expected({}, {"has_header": 1, "header": empty.written(*fields, names)})
        packed = empty.written(single(stated), single(cwnd), _ASK_KATABI, names)
        return Expected({}, {"has_header": 1, "header": packed})

    def _ticks(self, value: Real, known: bool) -> OneOf:
        low, high = Whole(value.exact_times(_TICKS) + 0).bounds()
        return OneOf(*(min(max(n, int(known)), 2**32 - 1) for n in range(low, high + 1)))

    def _on_ack(self, step: Step) -> Expected:
        after: dict[str, object] = {}
        if step.inputs["has_echo"]:
            srtt, sample = step.before["srtt"], step.inputs["rtt"]
            if sample is not None:
                # RFC 6298's weight of 1/8.
                rtt = seconds(whole(sample))
                old = None if srtt is None else Real(number(srtt))
                after["srtt"] = rtt if old is None else old + (rtt - old) / 8
                srtt = step.after["srtt"]
            echo = header(step.inputs["echo"])
            kind = echo[2] & 15
            _, _, _, _, field, *names = struct.unpack(self.family.echo_form(kind), echo)
            if self.family.named and names[0] != _ACCESS:
                after["bottleneck"] = names[0]
            after |= self._fed(step, kind, field, srtt)
        return Expected(after, self._limit(step))

    def _fed(self, step: Step, kind: int, field: float, srtt: Value) -> dict[str, object]:
        """Return the window max{cwnd + feedback, s}, without gains while less than half of it is
        used (`cwnd`).
        """
        after: dict[str, object] = {}
        change = Real(field)
        if kind == _FALK:
            change = field * Real(0.0 if srtt is None else number(srtt))
        elif kind == _TOTAL:
            change -= number(step.before["total"])
            after["total"] = field
        claimed = step.before["claimed_rtt"]
        if kind != _FALK and srtt is not None and claimed is not None:
            change = change * (Real(number(srtt)) / number(claimed))
        cwnd = number(step.before["cwnd"])
        used = Real(number(step.inputs["in_flight"])) + number(step.inputs["acked"])
        full = below(used.exact_times(2), cwnd)
        if change.value <= 0 or full is not True:
            moved = smallest(largest(cwnd + change, number(step.before["packet"])), _WINDOW_MAX)
            after["cwnd"] = moved if change.value <= 0 or full is False else OneOf(moved, cwnd)
        return after

    def _on_event(self, step: Step) -> Expected:
        event, packet = step.inputs["event"], step.before["packet"]
        after: dict[str, object] = {}
        if self.halves and event == _LOSS:
            after["cwnd"] = largest(Real(number(step.before["cwnd"])) / 2, number(packet))
        elif event == SYNS_LOST or (self.halves and event == _TIMEOUT):
            after["cwnd"] = packet
        return Expected(after, self._limit(step))


def law(family: Family) -> LawChecker:
    """Return the equations of XCP, iXCP or P-XCP."""

    def bound(part: Callable[[Family, Params], Check]) -> Callable[[Params], Check]:
        return lambda params: part(family, params)

    return LawChecker(bound(Router), bound(Receiver), bound(Source))


XCP, IXCP, PXCP = law(Family()), law(Family(named=True)), law(Family(scaled=True))
