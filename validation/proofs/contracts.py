"""Contracts of the shared functions of `fixed.h` and `float.h`: requirements and guarantees.

A law's proof uses these at each call and proves what they require. `theorems()` proves each
function's body: from what it requires, no operation leaves its type, and the result is as ensured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import z3

from validation.proofs.c_source import U32, U64, Node, unit
from validation.proofs.integers import Integers, Number
from validation.proofs.machine import Call, Machine, Pointer

ONE = 1 << 32
FINE_ONE = 1 << 62
EXP_MAX = 44 << 34
PRODUCT_MAX = 1 << 62  # of float_product()
UP_SCALE = 1 << 61  # of fixed_exp2_up() and fixed_log2()
Proof = Callable[[], Integers]


def _domain(machine: Machine) -> Integers:
    domain = machine.domain
    assert isinstance(domain, Integers)
    return domain


def _need(machine: Machine, node: Node, number: Number, high: int, low: int = 0) -> Number:
    """Require an argument to be in a range, and return it with its interval."""
    domain = _domain(machine)
    now = domain.interval(number)
    claim = z3.And(low <= number.term, number.term <= high)
    domain.require(
        f"an argument in [{low}, {high}]",
        now.low >= low and now.high <= high,
        claim,
        [number],
        node,
    )
    return now


def _at_least(machine: Machine, arguments: list[Any], node: Node) -> Any:
    a, b = arguments
    for number in arguments:
        _need(machine, node, number, (1 << 63) - 1)
    return _domain(machine).number(machine.domain.compare(">=", a, b, U64))


def _part(machine: Machine, arguments: list[Any], node: Node) -> Any:
    a, f = arguments
    x = _need(machine, node, a, U64.most)
    y = _need(machine, node, f, ONE)
    if x.constant is not None and y.constant is not None:
        return _domain(machine).constant(x.constant * y.constant >> 32, U64)
    number = _domain(machine)._fresh("part", x.low * y.low >> 32, x.high * y.high >> 32, (a, f), [])
    if number.constant is None:
        number.facts.append(number.term <= a.term)
        number.facts.append(z3.Implies(f.term == ONE, number.term == a.term))
        if y.constant is not None or x.constant is not None:
            number.facts.append(number.term * ONE <= a.term * f.term)
            number.facts.append(a.term * f.term < (number.term + 1) * ONE)
    return number


def _fine_part(machine: Machine, arguments: list[Any], node: Node) -> Any:
    a, f, pointer = arguments
    domain = _domain(machine)
    x = _need(machine, node, a, (1 << 62) - 1)
    _need(machine, node, f, FINE_ONE)
    low = domain._fresh("low", 0, U32.most, (), [])
    number = domain._fresh("fine", 0, max(1, x.high), (a, f, low), [])
    number.facts.append(number.term * ONE + low.term <= a.term * ONE)
    machine.store(pointer.place, low)
    return number


def _scale(machine: Machine, arguments: list[Any], node: Node) -> Any:
    a, n, d = arguments
    domain = _domain(machine)
    x, y = domain.interval(a), domain.interval(n)
    z = _need(machine, node, d, U64.most, 1)
    rest_high = min(x.high, z.high - 1)
    inner = z3.BoolVal(False)
    if z.constant is not None:
        inner = (a.term % z.constant) * n.term <= U64.most
    domain.require(
        "its remainder times n fits", rest_high * y.high <= U64.most, inner, [a, n, d], node
    )
    high = x.high * y.high // max(1, z.low)
    fits = high <= U64.most
    if x.constant is not None and y.constant is not None and z.constant is not None:
        return domain.constant(x.constant * y.constant // z.constant, U64)
    claim = a.term * n.term < (1 << 64) * d.term
    domain.require("its result fits", fits, claim, [a, n, d], node)
    number = domain._fresh("scaled", x.low * y.low // z.high, min(high, U64.most), (a, n, d), [])
    if number.constant is None:
        number.facts.append(number.term * d.term <= a.term * n.term)
        number.facts.append(a.term * n.term < (number.term + 1) * d.term)
        # r d <= a n <= c a d
        number.facts += [
            z3.Implies(n.term <= c * d.term, number.term <= c * a.term) for c in range(1, 4)
        ]
    return number


def _divide(machine: Machine, arguments: list[Any], node: Node) -> Any:
    n, d, bits = arguments
    domain = _domain(machine)
    width = domain.concrete(bits)
    assert width is not None
    x = domain.interval(n)
    z = _need(machine, node, d, 1 << 62, 1)
    high = (x.high << width) // max(1, z.low)
    # It must fit with a bit more than the quotient: (n / d + 1) 2^bits <= 2^64.
    claim = (
        (n.term / d.term + 1) * (1 << width) <= 1 << 64
        if z.constant is not None
        else (n.term * (1 << width) <= ((1 << 64) - (1 << width)) * d.term)
    )
    easy = (x.high // max(1, z.low) + 1) << width <= 1 << 64
    domain.require("its result fits", easy, claim, [n, d], node)
    number = domain._fresh("divided", (x.low << width) // z.high, min(high, U64.most), (n, d), [])
    if number.constant is None:
        number.facts.append(number.term * d.term <= n.term * (1 << width))
        number.facts.append(n.term * (1 << width) < (number.term + 1) * d.term)
        # r d <= 2^bits n <= 2^bits c d
        number.facts += [
            z3.Implies(n.term <= c * d.term, number.term <= c << width) for c in (1, 16)
        ]
    return number


def _towards(machine: Machine, arguments: list[Any], node: Node) -> Any:
    a, b, f = arguments
    domain = _domain(machine)
    x = _need(machine, node, a, (1 << 63) - 1)
    y = _need(machine, node, b, (1 << 63) - 1)
    _need(machine, node, f, ONE)
    number = domain._fresh("towards", min(x.low, y.low), max(x.high, y.high), (a, b), [])
    if number.constant is None:
        number.facts.append(
            z3.Or(
                z3.And(a.term <= number.term, number.term <= b.term),
                z3.And(b.term <= number.term, number.term <= a.term),
            )
        )
    return number


def _at_most(machine: Machine, high: int, above: Number, parents: tuple[Any, ...]) -> Number:
    number = _domain(machine)._fresh("below", 0, high, parents, [])
    if number.constant is None:
        number.facts.append(number.term <= above.term)
    return number


def _exp2_down(machine: Machine, arguments: list[Any], node: Node) -> Any:
    scale, y = arguments
    x = _need(machine, node, scale, (1 << 62) - 1)
    z = _need(machine, node, y, (64 << 24) - 1)
    number = _at_most(machine, x.high >> (z.low >> 24), scale, (scale, y))
    if x.constant == UP_SCALE:
        low = x.constant >> ((z.high + (1 << 24) - 1) >> 24)
        number = _domain(machine)._fresh("below", low, x.high >> (z.low >> 24), (scale, y), [])
    if number.constant is None and x.constant == UP_SCALE:
        number.facts.append(z3.Implies(y.term >= 1 << 24, number.term <= UP_SCALE >> 1))
    return number


def _exp_within(machine: Machine, arguments: list[Any], node: Node) -> Any:
    scale, u = arguments
    x = _need(machine, node, scale, (1 << 62) - 1)
    _need(machine, node, u, EXP_MAX)
    return _at_most(machine, x.high, scale, (scale, u))


def _exp(machine: Machine, arguments: list[Any], node: Node) -> Any:
    scale, u = arguments
    x = _need(machine, node, scale, (1 << 62) - 1)
    return _at_most(machine, x.high, scale, (scale, u))


def _power(machine: Machine, arguments: list[Any], node: Node) -> Any:
    f, n = arguments
    _need(machine, node, f, ONE)
    return _domain(machine)._fresh("power", 0, ONE, (f, n), [])


def _rate_code(machine: Machine, arguments: list[Any], node: Node) -> Any:
    rate, scale = arguments
    _need(machine, node, rate, (1 << 63) - 1)
    _need(machine, node, scale, (1 << 62) - 1)
    return _domain(machine)._fresh("code", 0, (1 << 23) - 1, (rate, scale), [])


def _log2(machine: Machine, arguments: list[Any], node: Node) -> Any:
    (n,) = arguments
    x = _need(machine, node, n, 1 << 61, 1)
    low, high = max(1, x.low).bit_length() - 1, (max(1, x.high) - 1).bit_length()
    number = _domain(machine)._fresh("log2", low << 24, high << 24, (n,), [])
    if number.constant is None:
        for octave in range(low, high + 1):
            number.facts += [
                z3.Implies(n.term <= 1 << octave, number.term <= octave << 24),
                z3.Implies(n.term >= 1 << octave, number.term >= octave << 24),
            ]
    return number


def _bits(machine: Machine, arguments: list[Any], node: Node) -> Any:
    (v,) = arguments
    domain = _domain(machine)
    x = domain.interval(v)
    low, high = x.low.bit_length(), x.high.bit_length()
    number = domain._fresh("bits", low, high, (v,), [])
    if number.constant is None:
        cases = []
        for width in range(low, high + 1):
            least = 1 << (width - 1) if width else 0
            cases.append(z3.And(number.term == width, least <= v.term, v.term < (1 << width)))
        number.facts.append(z3.Or(*cases))
    return number


def _code(machine: Machine, arguments: list[Any], node: Node) -> Any:
    return _domain(machine)._fresh("code", 0, (1 << 24) - 1, (arguments[0],), [])


# A factor is 2^32 e + m; this is its e, for what multiplies by it.
FACTOR_MANTISSA = (1 << 24) - 1
FACTOR_EXPONENTS = (24, 151)


def factor(domain: Integers, low: int = 0, high: int = FACTOR_EXPONENTS[1]) -> Number:
    """Return any factor of float.h: 0, or a 24-bit mantissa with an exponent from
    `low` to `high`.
    """
    number = domain._fresh("factor", 0, (high << 32) + FACTOR_MANTISSA, (), [])
    exponent, mantissa = z3.Int(f"e!{domain._count}"), z3.Int(f"m!{domain._count}")
    number.facts += [
        number.term == (1 << 32) * exponent + mantissa,
        low <= exponent,
        exponent <= high,
        mantissa >= 0,
        mantissa <= FACTOR_MANTISSA,
    ]
    return number


def _factor(machine: Machine, arguments: list[Any], node: Node) -> Any:
    return factor(_domain(machine))


def is_factor(number: Number, high: int) -> Any:
    """Return the formula that a number is a factor with an exponent of at most `high`."""
    return z3.And(
        number.term >= 0, number.term % ONE <= FACTOR_MANTISSA, number.term < (high + 1) * ONE
    )


def _product(machine: Machine, arguments: list[Any], node: Node) -> Any:
    p, up, by = arguments
    domain = _domain(machine)
    _need(machine, node, p, (1 << 40) - 1)
    _need(machine, node, up, (1 << 30) - 1)
    domain.require("a factor", False, is_factor(by, 200), [by], node)
    return domain._fresh("product", 0, PRODUCT_MAX, (p, up, by), [])


def _fraction(machine: Machine, arguments: list[Any], node: Node) -> Any:
    n, d = arguments
    number = _domain(machine)._fresh("fraction", 0, ONE, (n, d), [])
    most = _domain(machine).interval(d).high
    whole = z3.And(n.term >= d.term, number.term == ONE)
    number.facts.append(z3.Or(whole, (number.term + 3) * most >= n.term * ONE))
    return number


CONTRACTS: dict[str, Call] = {
    "fixed_at_least": _at_least,
    "fixed_part": _part,
    "fixed_fine_part": _fine_part,
    "fixed_scale": _scale,
    "fixed_divide": _divide,
    "fixed_towards": _towards,
    "fixed_exp2_down": _exp2_down,
    "fixed_exp_within": _exp_within,
    "fixed_exp": _exp,
    "fixed_power": _power,
    "fixed_rate_code": _rate_code,
    "fixed_log2": _log2,
    "float_bits": _bits,
    "float_code": _code,
    "float_factor": _factor,
    "float_product": _product,
    "float_fraction": _fraction,
}


def without(name: str) -> dict[str, Call]:
    """Return the contracts that the proof of a function may use: all but the function's own."""
    return {key: call for key, call in CONTRACTS.items() if key != name}


class Body:
    """Execution of one function's body over ranges of its arguments."""

    def __init__(self, name: str, *ranges: tuple[int, int]) -> None:
        self.name = name
        self.domain = Integers()
        self.machine = Machine(unit("float.h", "fixed.h"), self.domain, without(name))
        self.machine.assigned = self.domain.assigned
        self.arguments: list[Any] = [
            self.domain.variable(f"x{index}", low, high) for index, (low, high) in enumerate(ranges)
        ]

    def run(self) -> Any:
        """Execute the body and return its result."""
        return self.machine.call(self.name, list(self.arguments))

    def ensure(self, what: str, claim: Any, *roots: Any) -> None:
        """Prove a property of the result."""
        self.domain.require(f"{self.name}: {what}", False, claim, [*roots, *self.arguments], {})


def _prove_part() -> Integers:
    body = Body("fixed_part", (0, U64.most), (0, ONE))
    a, f = body.arguments
    r = body.run()
    body.ensure("2^32 r <= a f", r.term * ONE <= a.term * f.term, r)
    body.ensure("a f < 2^32 (r + 1)", a.term * f.term < (r.term + 1) * ONE, r)
    body.ensure("r <= a", z3.Implies(z3.And(r.term * ONE <= a.term * ONE), r.term <= a.term), r)
    return body.domain


def _prove_divide(width: int) -> Integers:
    body = Body("fixed_divide", (0, U64.most), (1, 1 << 62), (width, width))
    n, d, _ = body.arguments
    domain, machine = body.domain, body.machine
    fits = z3.Int("fits")  # n / d, whose size the caller ensures
    left = z3.Int("left")
    start = [n.term == fits * d.term + left, left >= 0, left < d.term, fits >= 0]
    start.append((fits + 1) * (1 << width) <= 1 << 64)
    n.facts += start

    def cut(function: str, count: int) -> None:
        """Replace the state of the long division by its invariant after each bit."""
        if function != "fixed_divide":
            return
        quotient, remainder = machine.local("quotient"), machine.local("remainder")
        power = 1 << (count + 1)
        claims = [
            remainder.term < d.term,
            quotient.term * d.term + remainder.term == n.term * power,
            quotient.term < (fits + 1) * power,
        ]
        for claim in claims:
            body.ensure(f"after bit {count + 1}", claim, quotient, remainder)
        for name in ("quotient", "remainder"):
            high = U64.most if name == "quotient" else (1 << 62) - 1
            machine.set_local(name, domain._fresh(name, 0, high, (n, d), []))
        fresh, rest = machine.local("quotient"), machine.local("remainder")
        rest.parents, fresh.parents = (*rest.parents, fresh), (*fresh.parents, rest)
        fresh.facts.append(fresh.term < (fits + 1) * power)
        rest.facts += [rest.term < d.term, fresh.term * d.term + rest.term == n.term * power]

    machine.iterated = cut
    r = body.run()
    body.ensure("d r <= 2^bits n", r.term * d.term <= n.term * (1 << width), r)
    body.ensure("2^bits n < d (r + 1)", n.term * (1 << width) < (r.term + 1) * d.term, r)
    return domain


def _prove_fine_part() -> Integers:
    body = Body("fixed_fine_part", (0, (1 << 62) - 1), (0, FINE_ONE))
    body.machine.store(("low",), body.domain.constant(0, U32))
    for expression in ("middle << 2", "(__u32)(middle << 2)"):  # its lower bits
        body.domain.wraps.add(("fixed_fine_part", expression))
    a, f = body.arguments
    body.arguments.append(Pointer(("low",)))
    r = body.run()
    low = body.machine.load(("low",), U32)
    body.arguments.pop()
    # a (2^62 - f) is not negative: a product that z3 need not find itself.
    a.facts.append(a.term * (FINE_ONE - f.term) >= 0)
    body.ensure("2^32 r + low <= 2^32 a", r.term * ONE + low.term <= a.term * ONE, r, low)
    return body.domain


def _prove_scale() -> Integers:
    domain = Integers()
    machine = Machine(unit("fixed.h"), domain, without("fixed_scale"))
    a, n, d = (domain.variable(name, low, U64.most) for name, low in (("a", 0), ("n", 0), ("d", 1)))
    quotient, rest, defined = domain._quotient(a, d, d)
    a.facts += [
        *defined,
        rest * n.term <= U64.most,
        a.term * n.term < (1 << 64) * d.term,
        quotient * n.term * d.term <= a.term * n.term,
        # Both are non-negative, and d is at least 1.
        rest * n.term >= 0,
        z3.Implies(quotient * n.term >= 1 << 64, quotient * n.term * d.term >= (1 << 64) * d.term),
    ]
    d.facts += a.facts[1:]
    d.parents = (a, n)
    n.parents = (d,)
    r = machine.call("fixed_scale", [a, n, d])
    domain.require("d r <= a n", False, r.term * d.term <= a.term * n.term, [r], {})
    domain.require("a n < d (r + 1)", False, a.term * n.term < (r.term + 1) * d.term, [r], {})
    return domain


def _prove_towards() -> Integers:
    body = Body("fixed_towards", (0, (1 << 63) - 1), (0, (1 << 63) - 1), (0, ONE))
    a, b, _ = body.arguments
    r = body.run()
    claim = z3.Or(
        z3.And(a.term <= r.term, r.term <= b.term), z3.And(b.term <= r.term, r.term <= a.term)
    )
    body.ensure("between both", claim, r)
    return body.domain


def _prove_exp2_down() -> Integers:
    body = Body("fixed_exp2_down", (0, (1 << 62) - 1), (0, (64 << 24) - 1))
    scale, _y = body.arguments
    r = body.run()
    body.ensure("r <= scale", r.term <= scale.term, r)
    return body.domain


def _prove_power() -> Integers:
    body = Body("fixed_power", (0, ONE), (0, U32.most))
    r = body.run()
    body.ensure("r <= 1", r.term <= ONE, r)
    return body.domain


def _simple(name: str, high: int, *ranges: tuple[int, int]) -> Proof:
    def prove() -> Integers:
        body = Body(name, *ranges)
        r = body.run()
        body.ensure(f"r <= {high}", z3.And(r.term >= 0, r.term <= high), r)
        return body.domain

    return prove


def _below_scale(name: str, high: int) -> Proof:
    def prove() -> Integers:
        body = Body(name, (0, (1 << 62) - 1), (0, high))
        r = body.run()
        body.ensure("r <= scale", r.term <= body.arguments[0].term, r)
        return body.domain

    return prove


def _prove_exp2_steps() -> Integers:
    """Prove for each octave that fixed_exp2_down() of 2^61 stays within that octave."""
    body = Body("fixed_exp2_down", (UP_SCALE, UP_SCALE), (0, (64 << 24) - 1))
    domain, y = body.domain, body.arguments[1]
    # The table's values are in an octave, and so is what they scale; no more of them matters.
    domain.cuts[("fixed_exp2_down", "m")] = (1 << 30, 1 << 31)
    domain.cuts[("fixed_exp2_down", "product")] = (UP_SCALE >> 1, UP_SCALE)
    domain.forgets.add(("fixed_exp2_down", "product"))
    r = body.run()
    for octave in range(64):
        low, high = UP_SCALE >> (octave + 1), UP_SCALE >> octave
        here = z3.And(octave << 24 <= y.term, y.term < (octave + 1) << 24)
        body.ensure(f"octave {octave}", z3.Implies(here, z3.And(low <= r.term, r.term <= high)), r)
    return domain


def _prove_log2() -> Integers:
    """Prove that fixed_log2() is exact at powers of two and between the neighbouring octaves
    elsewhere.
    """
    domain = Integers()
    for octave in range(62):
        for low, high in ((1 << octave, 1 << octave), ((1 << octave) + 1, (2 << octave) - 1)):
            if low > high or low > 1 << 61:
                continue
            if octave == 61 and high > 1 << 61:
                continue
            machine = Machine(unit("fixed.h"), domain, without("fixed_log2"))
            n = domain.variable("n", low, high)
            r = machine.call("fixed_log2", [n])
            last = octave + (low > 1 << octave)
            now = domain.interval(r)
            domain.require(
                f"2^{octave}: in [{octave}, {last}] octaves",
                now.low >= octave << 24 and now.high <= last << 24,
                z3.And(octave << 24 <= r.term, r.term <= last << 24),
                [r],
                {},
            )
    return domain


def _prove_fraction() -> Integers:
    body = Body("float_fraction", (0, U64.most), (0, U64.most))
    n, d = body.arguments
    r = body.run()
    body.ensure("r <= 1", z3.And(r.term >= 0, r.term <= ONE), r)
    whole = z3.And(n.term >= d.term, r.term == ONE)
    body.ensure("1 or r >= n/d - 3", z3.Or(whole, (r.term + 3) * d.term >= n.term * ONE), r)
    return body.domain


def _prove_factor() -> Integers:
    body = Body("float_factor", (0, U64.most), (0, U64.most))
    body.domain.cuts[("float_factor", "mantissa")] = (0, FACTOR_MANTISSA)
    r = body.run()
    body.ensure("a factor", is_factor(r, FACTOR_EXPONENTS[1]), r)
    return body.domain


def _prove_product() -> Integers:
    body = Body("float_product", (0, (1 << 40) - 1), (0, (1 << 30) - 1))
    body.arguments.append(factor(body.domain, 0, 200))
    body.domain.cuts[("float_product", "mantissa")] = (0, FACTOR_MANTISSA)
    r = body.run()
    body.ensure("r <= 2^62", z3.And(r.term >= 0, r.term <= PRODUCT_MAX), r)
    return body.domain


def theorems() -> Iterator[tuple[str, str, Proof]]:
    """Yield each function's name, the theorem about its body, and the proof."""
    yield "fixed_part", "any a, f <= 1: the floor of a f, at most a", _prove_part
    yield "fixed_towards", "both < 2^63, f <= 1: between both", _prove_towards
    yield "fixed_scale", "d > 0, (a % d) n and the result fit: the floor of a n / d", _prove_scale
    yield "fixed_fine_part", "a < 2^62, f <= 1: at most a, with its low bits", _prove_fine_part
    yield "fixed_exp2_down", "scale < 2^62, y < 64 octaves: at most the scale", _prove_exp2_down
    yield "fixed_exp2_down of 2^61", "within the octave", _prove_exp2_steps
    yield (
        "fixed_exp_within",
        "u <= 44: at most the scale",
        _below_scale("fixed_exp_within", EXP_MAX),
    )
    yield "fixed_exp", "any u: at most the scale", _below_scale("fixed_exp", U64.most)
    yield "fixed_power", "f <= 1: at most 1", _prove_power
    for width in sorted({7, 8, 16, 21, 24, 31, 32, 34, 62}):
        yield (
            f"fixed_divide, {width} bits",
            "0 < d <= 2^62, (n/d + 1) 2^bits <= 2^64: the floor of 2^bits n / d",
            lambda width=width: _prove_divide(width),  # type: ignore[misc]
        )
    yield (
        "fixed_rate_code",
        "rate < 2^63, scale < 2^62: 23 bits",
        _simple("fixed_rate_code", (1 << 23) - 1, (0, (1 << 63) - 1), (0, (1 << 62) - 1)),
    )
    yield "fixed_log2", "1 <= n <= 2^61: within the octaves around it", _prove_log2
    yield "float_code", "any number: 24 bits", _simple("float_code", (1 << 24) - 1, (0, U64.most))
    yield "float_fraction", "any numbers: at most 1, at least n/d - 3 2^-32", _prove_fraction
    yield "float_factor", "any numbers: an exponent of 24 to 151, 24 bits", _prove_factor
    yield "float_product", "p < 2^40, up < 2^30, a factor: at most 2^62", _prove_product
