"""Proofs about wire codes: they are monotone, within their step, and unchanged by decoding and
encoding.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import z3

from validation.proofs.bits import BitVectors
from validation.proofs.c_source import U64, unit
from validation.proofs.contracts import EXP_MAX, without
from validation.proofs.integers import Integers, Number
from validation.proofs.machine import Machine, Pointer

Theorem = tuple[str, str, Callable[[], bool]]
# RCP's scale, and MaxNet's default x_max.
SCALE = 10**15
QUERY_MS = 300_000


def _holds(claim: Any, *facts: Any) -> bool:
    solver = z3.Solver()
    solver.set("timeout", QUERY_MS)
    solver.add(*facts, z3.Not(claim))
    return bool(solver.check() == z3.unsat)


def _apply(header: str, name: str, *arguments: Any) -> Any:
    result = Machine(unit(header), BitVectors()).call(name, list(arguments))
    return z3.BitVecVal(result, 64) if isinstance(result, int) else result


def _word(name: str) -> Any:
    return z3.BitVec(name, 64)


# ---------------------------------------------------------------- float.h


def _float(header: str = "float.h") -> Iterator[Theorem]:
    v, w, c = _word("v"), _word("w"), _word("c")

    def decoded(code: Any) -> Any:
        return _apply(header, "float_mantissa", code) << _apply(header, "float_exponent", code)

    def code(value: Any) -> Any:
        return _apply(header, "float_code", value)

    def near() -> bool:
        value = decoded(code(v))
        off = z3.If(z3.UGT(value, v), value - v, v - value)
        # 50 bits and 20 fit a word; the largest code is (2^20 - 1) 2^30.
        return _holds(z3.ULE(off, z3.LShR(v, 20)), z3.ULE(v, ((1 << 20) - 1) << 30))

    yield (
        "float_code is monotone",
        "every number",
        lambda: _holds(z3.ULE(code(v), code(w)), z3.ULE(v, w)),
    )
    yield "float_code is within 2^-20 of the number", "up to (2^20 - 1) 2^30", near
    yield (
        "a float's code is kept by decoding and encoding",
        "all 2^24 codes",
        lambda: _holds(code(decoded(c)) == c, z3.ULT(c, 1 << 24)),
    )


# ---------------------------------------------------------------- codes of prices and rates


def _prices() -> Iterator[Theorem]:
    v, w, c = _word("v"), _word("w"), _word("c")

    def code(value: Any) -> Any:
        return _apply("fixed.h", "fixed_price_code", value)

    last = ((1 << 23) - 1) << 16
    yield (
        "fixed_price_code is monotone",
        "prices below 2^63",
        lambda: _holds(z3.ULE(code(v), code(w)), z3.ULE(v, w), z3.ULT(w, 1 << 63)),
    )
    yield (
        "fixed_price_code is within half a code, 2^-19 s",
        "prices up to the largest code's",
        lambda: _holds(
            z3.And((code(v) << 16) - v <= 1 << 15, v - (code(v) << 16) <= 1 << 15), z3.ULE(v, last)
        ),
    )
    yield (
        "a price's code is kept by decoding and encoding",
        "all 2^23 codes",
        lambda: _holds(code(c << 16) == c, z3.ULT(c, 1 << 23)),
    )


def _bisection() -> bool:
    """Prove that fixed_rate_code() ends between a code that is fast enough and the next, slower
    code, for any decoder.
    """
    domain = Integers()
    decode = z3.Function("decode", z3.IntSort(), z3.IntSort())
    rate = domain.variable("rate", 0, (1 << 63) - 1)

    def exp_within(machine: Machine, arguments: list[Any], node: Any) -> Number:
        number = domain._fresh("decoded", 0, (1 << 62) - 1, (arguments[1],), [])
        number.facts.append(number.term == decode(arguments[1].term))
        return number

    calls = {**without("fixed_rate_code"), "fixed_exp_within": exp_within}
    machine = Machine(unit("fixed.h"), domain, calls)
    top = 1 << 23

    def invariant(code: Any, bit: int) -> Any:
        return z3.And(
            z3.Or(code == 0, decode(code * 65536) >= rate.term),
            z3.Or(code + bit >= top, decode((code + bit) * 65536) < rate.term),
            code % bit == 0,
        )

    def cut(function: str, count: int) -> None:
        if function != "fixed_rate_code":
            return
        code, bit = machine.local("code"), 1 << (22 - count)
        domain.require("the invariant", False, invariant(code.term, bit), [code, rate], {})
        fresh = domain._fresh("code", 0, top - bit, (rate,), [])
        fresh.facts.append(invariant(fresh.term, bit))
        machine.set_local("code", fresh)

    machine.iterated = cut
    scale = domain.constant(SCALE, U64)
    result = machine.call("fixed_rate_code", [rate, scale])
    domain.require("the result", False, invariant(result.term, 1), [result, rate], {})
    return all(o.proved in ("intervals", "query") for o in domain.obligations)


# One step of 2^-24 octaves takes less than a 23.3 millionth of a rate; a code is 92 or 93 steps.
_STEPS = 23_300_000


class _OneEntry(Integers):
    """Domain in which tables have one entry of any value."""

    entry: Number

    def table(self, numbers: Any, index: Number, kind: Any, at: Any) -> Number:
        """Return the single entry."""
        return self.entry


def _slope() -> int | None:
    """Prove that a scaled rate rises with the table's value. Return the largest slope, or None if
    the proof fails.
    """
    most = SCALE // (1 << 31) + 2
    entry, fall = z3.Ints("entry fall")
    values, facts = [], [fall >= 0, entry <= 1 << 31, entry - fall >= 1 << 30]
    for term in (entry, entry - fall):
        domain = _OneEntry()
        domain.entry = domain.variable("entry", 1 << 30, 1 << 31)
        machine = Machine(unit("fixed.h"), domain, without("fixed_exp2_down"))
        scale, y = domain.constant(SCALE, U64), domain.variable("y", 0, 255)
        y = domain.binary("<<", y, domain.constant(16, U64), U64, {})  # between entries: 0
        value = machine.call("fixed_exp2_down", [scale, y])
        values.append(value.term)
        facts += [*domain._cone([value], 1_000_000), domain.entry.term == term]
        if not all(o.proved in ("intervals", "query") for o in domain.obligations):
            return None
        # Names of one execution do not return in the other.
        names = {part: z3.Int(f"{part}@{len(values)}") for part in _names([*facts, value.term])}
        pairs = [
            (part, new) for part, new in names.items() if "@" not in str(part) and "!" in str(part)
        ]
        facts = [z3.substitute(fact, pairs) for fact in facts]
        values = [z3.substitute(value, pairs) for value in values]
    first, second = values
    claim = z3.And(second <= first, first - second <= most * fall)
    return most if _holds(claim, *facts) else None


def _names(terms: list[Any]) -> set[Any]:
    found, stack = set(), list(terms)
    while stack:
        term = stack.pop()
        stack += term.children()
        if z3.is_const(term) and term.decl().kind() == z3.Z3_OP_UNINTERPRETED:
            found.add(term)
    return found


def _segment(index: int, slope: int) -> bool:
    """Prove that the table's value falls within a segment, and bound the fall per step. With the
    scale 2^32 the value is doubled.
    """
    table = unit("fixed.h").tables["fixed_exp2"]
    domain = Integers()
    b = domain.variable("b", 0, 65534)
    values = []
    for step in (0, 1):
        machine = Machine(unit("fixed.h"), domain, without("fixed_exp2_down"))
        start = (index << 16) + step
        y = domain._fresh("y", start, start + 65534, (b,), [])
        y.facts.append(y.term == b.term + start)
        values.append(machine.call("fixed_exp2_down", [domain.constant(1 << 32, U64), y]))
    first, second = values
    fall = (table[index] - table[index + 1]) // 65536 + 1
    claim = z3.And(second.term <= first.term, first.term - second.term <= 2 * fall)
    domain.require("the fall", False, claim, values, {})
    if not all(o.proved in ("intervals", "query") for o in domain.obligations):
        return False
    return slope * fall * _STEPS <= _exp2((index << 16) + 65535)


def _exp2(y: int) -> int:
    value = Machine(unit("fixed.h"), BitVectors()).call("fixed_exp2_down", [SCALE, y])
    assert isinstance(value, int)
    return value


def _exponential() -> bool:
    """Prove that a decoded rate never rises with its code: by z3 within segments, by evaluation
    between them.
    """
    slope = _slope()
    if slope is None or not all(_segment(index, slope) for index in range(256)):
        return False
    ends = [(octave << 24) + (index << 16) + 65535 for octave in range(64) for index in range(256)]
    if not all(
        _exp2(y + 1) <= _exp2(y) and _exp2(y) - _exp2(y + 1) <= _exp2(y) // _STEPS + 1
        for y in ends[:-1]
    ):
        return False
    u, k = z3.Int("u"), 1549082005
    steps = ((u / 256 + 256) * k) / (1 << 32) - ((u / 256) * k) / (1 << 32)
    return _holds(z3.And(steps >= 92, steps <= 93), u >= 0, u <= EXP_MAX)


def _rates() -> Iterator[Theorem]:
    yield (
        "decoding of a rate never rises with the code, and falls by 4 10^-6 and 1 bit/s at most",
        "all 2^23 codes, 10^15 bit/s",
        _exponential,
    )
    yield (
        "fixed_rate_code ends at a code whose rate is at least the rate, the next one's is not",
        "rates below 2^63",
        _bisection,
    )
    yield "so it is monotone, and keeps a code whose rate differs from the next one's", "", _order


def _order() -> bool:
    """Prove that rate codes never rise as rates rise, and that encoding a decoded rate returns its
    code.

    The code returns if its rate differs from that of the next code.
    """
    decode = z3.Function("decode", z3.IntSort(), z3.IntSort())
    top = (1 << 23) - 1

    def ends(code: Any, rate: Any) -> Any:
        return z3.And(
            code >= 0,
            code <= top,
            z3.Or(code == 0, decode(code) >= rate),
            z3.Or(code == top, decode(code + 1) < rate),
        )

    def falls(*codes: Any) -> Any:
        pairs = [(a, b) for a in codes for b in codes if a is not b]
        return z3.And(*(z3.Implies(a <= b, decode(a) >= decode(b)) for a, b in pairs))

    a, b, slow, fast, c, d = z3.Ints("a b slow fast c d")
    monotone = _holds(a >= b, ends(a, slow), ends(b, fast), slow <= fast, falls(a, b, a + 1, b + 1))
    kept = _holds(
        d == c,
        *(c >= 0, c <= top, z3.Or(c == top, decode(c + 1) < decode(c))),
        ends(d, decode(c)),
        falls(c, d, c + 1, d + 1),
    )
    return monotone and kept


# ---------------------------------------------------------------- laws


def _rtts() -> Iterator[Theorem]:
    v, w, c = _word("v"), _word("w"), _word("c")

    def code(rtt: Any) -> Any:
        return _apply("rcp.h", "rcp_rtt_code", rtt)

    def rtt(encoded: Any) -> Any:
        return _apply("rcp.h", "rcp_rtt", encoded)

    def near() -> bool:
        value = rtt(code(v))
        off = z3.If(z3.UGT(value, v), value - v, v - value)
        return _holds(z3.ULE(off << 12, v + (1 << 12)), z3.UGE(v, 2), z3.ULE(v, 1 << 23))

    yield (
        "rcp_rtt_code is monotone",
        "every RTT",
        lambda: _holds(z3.ULE(code(v), code(w)), z3.ULE(v, w), z3.ULT(w, 1 << 32)),
    )
    yield "rcp_rtt_code is within 2^-12 of the RTT and 1 us", "2 us to 2^23 us", near
    yield (
        "an RTT's code is kept by decoding and encoding",
        "exponents 11 to 22, where decoding cuts nothing",
        lambda: _holds(code(rtt(c)) == c, z3.UGE(c, 11 << 11), z3.ULT(c, 23 << 11)),
    )


def _weights() -> Iterator[Theorem]:
    v, w, c = _word("v"), _word("w"), _word("c")

    def code(weight: Any) -> Any:
        return _apply("jetmax.h", "jetmax_weight", weight)

    def value(encoded: Any) -> Any:
        return _apply("jetmax.h", "jetmax_weighted", z3.BitVecVal(1 << 20, 64), encoded)

    def near() -> bool:
        # Weights in 10^-3 against 2^-20: 10^-3 is 2^20/1000.
        exact, found = v << 20, value(code(v)) * 1000
        off = z3.If(z3.UGT(found, exact), found - exact, exact - found)
        # Half a step of the code, 2^-5, and the 2^-8 to which v is cut before.
        return _holds(
            z3.ULE(off, z3.LShR(exact, 5) + 4096 * 1000), z3.UGE(v, 63), z3.ULE(v, 3_968_000)
        )

    yield (
        "jetmax_weight is monotone",
        "weights of 1/1000 and more",
        lambda: _holds(z3.ULE(code(v), code(w)), z3.ULE(v, w), z3.UGE(v, 1), z3.ULT(w, 1 << 32)),
    )
    yield "jetmax_weight is within 2^-5 of the weight and 2^-8", "0.063 to 3968", near
    del c


def _scone() -> Iterator[Theorem]:
    v, w, c = _word("v"), _word("w"), _word("c")

    def code(rate: Any) -> Any:
        return _apply("scone.h", "scone_code", rate)

    def near() -> bool:
        """Prove that a rate is within half a step: between the boundaries around the
        decoded rate.
        """
        steps = unit("scone.h").tables["scone_half_steps"]
        ratio = Fraction(1060, 1000)  # 10^(1/40) = 1.0593, and what whole bit/s cut
        if not all(b <= ratio * a for a, b in itertools.pairwise(steps)):
            return False
        boundaries = []
        for signal in range(127):
            above = steps[2 * signal + 1]
            below = steps[2 * signal - 1] if signal else steps[0] - 1
            boundaries.append(
                z3.Implies(code(v) == signal, z3.And(z3.UGT(v, below), z3.ULE(v, above)))
            )
        return _holds(z3.And(*boundaries), z3.UGE(v, 100_000), z3.ULE(v, steps[253]))

    yield (
        "scone_code is monotone",
        "rates below 2^63",
        lambda: _holds(z3.ULE(code(v), code(w)), z3.ULE(v, w), z3.ULT(w, 1 << 63)),
    )
    yield "scone_code is within half a step, 5.9 %", "100 kbit/s to 211 Gbit/s", near
    yield (
        "a signal is kept by decoding and encoding",
        "all 127",
        lambda: _holds(code(_apply("scone.h", "scone_rate", c)) == c, z3.ULT(c, 127)),
    )


def _around(code: int) -> list[Any]:
    """Return the facts that relate ascending limits to the band of a code."""
    lower = [_word(f"lower{index}") for index in range(32)]
    end, count = _word("end"), _word("count")
    above = lower[code + 1] if code < 31 else end
    facts = [z3.ULE(limit, lower[code]) for limit in lower[:code]]
    facts += [z3.ULE(above, limit) for limit in lower[code + 2 :]]
    facts += [z3.ULT(lower[code], above), z3.ULE(above, end), z3.ULT(end, 1 << 63)]
    return [*facts, z3.UGE(count, 1), z3.ULE(count, 32)]


def _csig() -> Iterator[Theorem]:
    def bands(machine: Machine) -> list[Any]:
        """Store bands with any ascending limits and any width, and return the facts about them."""
        facts = []
        count, step, base, end = _word("count"), _word("step"), _word("base"), _word("end")
        lower = [_word(f"lower{index}") for index in range(32)]
        for index, limit in enumerate(lower):
            machine.store(("bands", "lower", index), limit)
            upper = lower[index + 1] if index < 31 else end
            facts += [z3.ULE(limit, upper), z3.ULT(limit, 1 << 63)]
            # Those in use are not empty.
            facts.append(z3.Implies(z3.ULT(index, count), z3.ULT(limit, upper)))
        for name, value in (("count", count), ("step_log", step), ("base", base), ("end", end)):
            machine.store(("bands", name), value)
        facts += [z3.UGE(count, 1), z3.ULE(count, 32), z3.ULE(step, 42), z3.ULT(end, 1 << 63)]
        facts.append(z3.ULT(base, 1 << 62))
        return facts

    def call(name: str, wide: int, argument: Any) -> tuple[Any, list[Any]]:
        machine = Machine(unit("csig.h"), BitVectors())
        facts = bands(machine)
        result = machine.call(name, [1 + wide, Pointer(("bands",)), argument])
        return (z3.BitVecVal(result, 64) if isinstance(result, int) else result), facts

    v, w, c = _word("v"), _word("w"), _word("c")
    for wide, form in ((0, "compact"), (1, "wide")):

        def monotone(wide: int = wide) -> bool:
            first, facts = call("csig_code", wide, v)
            second, _ = call("csig_code", wide, w)
            return _holds(z3.ULE(first, second), *facts, z3.ULE(v, w))

        def kept(wide: int = wide) -> bool:
            codes = [c] if wide else range(32)  # the compact ones one by one
            for code in codes:
                value, facts = call("csig_value", wide, code)
                again, _ = call("csig_code", wide, value)
                most = z3.ULT(c, 1 << 20) if wide else z3.UGT(_word("count"), code)
                if not wide:  # of rising limits, only how they are to this code's
                    facts = _around(code)
                if not _holds(again == code, *facts, most):
                    return False
            return True

        yield f"csig_code is monotone: {form} tags", "any bands", monotone
        yield f"a CSIG code is kept by decoding and encoding: {form} tags", "any bands", kept


def _aecp() -> Iterator[Theorem]:
    v, c = _word("v"), _word("c")

    def factor(place: Any, residue: Any, rounding: int) -> Any:
        machine = Machine(unit("aecp.h"), BitVectors())
        machine.store(("link", "place"), place)
        machine.store(("link", "rounding"), rounding)
        machine.store(("cpu", "residue"), residue)
        result = machine.call("aecp_factor", [Pointer(("link",)), Pointer(("cpu",))])
        return result, machine.load(("cpu", "residue"), U64)

    def near() -> bool:
        code, _ = factor(v, 0, 1)
        off = (code << 22) - v
        return _holds(z3.And(off <= 1 << 21, off >= -(1 << 21)), z3.ULE(v, 65534 << 22))

    def carried() -> bool:
        residue = _word("residue")
        code, left = factor(v, residue, 0)
        half = 1 << 21
        before = z3.If(z3.UGE(residue, half), residue - (2 * half), residue)
        after = z3.If(z3.UGE(left, half), left - (2 * half), left)
        # What a code leaves is what the next one has more.
        exact = (code << 22) + after == v + before
        ends = z3.And(z3.UGE(v, half), z3.ULE(v, 65533 << 22))
        return _holds(exact, ends, z3.ULT(residue, 2 * half))

    def kept() -> bool:
        return _holds(factor(c << 22, 0, 1)[0] == c, z3.ULE(c, 65534))

    yield "aecp_factor is within half a code", "all places", near
    yield "aecp_factor carries exactly what a code leaves", "places but the outermost", carried
    yield "a factor's code is kept by decoding and encoding", "all 65535 codes", kept


def theorems() -> Iterator[Theorem]:
    """Yield the statement, range and proof of each theorem."""
    for group in (_float, _prices, _rates, _rtts, _weights, _scone, _csig, _aecp):
        yield from group()
