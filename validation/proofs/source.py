"""Proofs of a bound on the excess of a MaxNet source's rate over the rate that the price allows.

The price q allows D(q) = x_max e^(-q/T) [maxnet-2007:eq7]. A source sends x_max e^(xi - alpha
q/tau) [maxnet-2007:eq6a], which is D(q) e^(xi - xi*), where xi* = alpha q/tau - q/T. So it exceeds
D(q) by the factor e^(xi - xi*) while xi is above xi*, and eq. 10 moves xi towards xi*, never past
it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import z3

from validation.proofs import contracts, ranges
from validation.proofs.c_source import U64, unit
from validation.proofs.integers import Integers
from validation.proofs.kernels import ProofRun
from validation.proofs.machine import Machine, Pointer

Theorem = tuple[str, str, Callable[[], bool]]


def _proved(domain: Integers) -> bool:
    return all(o.proved in ("intervals", "query") for o in domain.obligations)


class _Source(ProofRun):
    """A MaxNet source in any state within its ranges."""

    def __init__(self) -> None:
        super().__init__(ranges.LAWS["maxnet"], "law_ack")
        self.exponents: list[Any] = []  # of maxnet_rate(), and its results
        self.allowed: list[Any] = []
        self.before: Any = None
        self.rest: Any = None
        self.gain: Any = None

        def exponential(machine: Machine, arguments: list[Any], node: Any) -> Any:
            result = contracts.CONTRACTS["fixed_exp"](machine, arguments, node)
            if machine.frames[-1].function == "maxnet_rate":
                self.exponents.append(arguments[1])
                self.allowed.append(result)
            return result

        self.machine.calls = {**contracts.CONTRACTS, "fixed_exp": exponential}
        self._structure("law_source", "struct law_source", ("s",), "")
        self._structure("law_params", "struct law_params", ("p",), "")
        self._relate("law_source", ("s",))

    def field(self, name: str) -> Any:
        """Return the value of a field of the source."""
        return self.machine.load(("s", "maxnet", name), U64)


def _apply(first: bool) -> _Source:
    """Execute maxnet_apply_price() for any price, as the source's first price or a later one."""
    run = _Source()
    domain, machine = run.domain, run.machine
    tau = domain.variable("tau", 1, 1 << 24)
    machine.store(("s", "maxnet", "base_rtt"), tau)
    machine.store(("s", "maxnet", "has_price"), domain.constant(int(not first), U64))
    machine.store(("s", "maxnet", "xi_speed"), domain.variable("speed", 1, 1 << 62))
    machine.store(("p", "source", "xi_first"), domain.constant(1, U64))
    run.before = run.field("xi")
    code = domain.variable("code", *ranges.CODE)
    now = domain.variable("now", *ranges.TIME)
    # First, so that the source's own computation of both is this one.
    alpha, t = (machine.load(("p", "source", name), U64) for name in ("alpha", "t"))
    gain = machine.call("maxnet_gain", [code, alpha, tau])
    rest = machine.call("maxnet_xi_rest", [code, alpha, tau, t])
    machine.call(
        "maxnet_apply_price", [Pointer(("p", "source")), Pointer(("s", "maxnet")), now, code]
    )
    run.rest, run.gain = rest, gain
    return run


def _first() -> bool:
    """Prove that xi equals xi* after the first price, and that the exponent is q/T, rounded to
    2^-34.
    """
    run = _apply(True)
    xi = run.field("xi")
    run.domain.require("xi = xi*", False, xi.term == run.rest.term, [xi, run.rest], {})
    (u,) = run.exponents
    claim = u.term == run.gain.term - run.rest.term
    run.domain.require("u = q/T", False, claim, [u, run.gain, run.rest], {})
    return _proved(run.domain)


def _next() -> bool:
    """Prove that each later price moves xi towards xi*. The exponent is then alpha q/tau - xi, or 0
    if that is negative.
    """
    run = _apply(False)
    xi = run.field("xi")
    before, after, rest = run.before.term, xi.term, run.rest.term
    roots = [xi, run.before, run.rest]
    claim = z3.Or(z3.And(before <= after, after <= rest), z3.And(rest <= after, after <= before))
    run.domain.require("xi moves towards xi*", False, claim, roots, {})
    (u,) = run.exponents
    u_claim = z3.If(run.gain.term > after, u.term == run.gain.term - after, u.term == 0)
    run.domain.require("u = alpha q/tau - xi", False, u_claim, [*roots, u, run.gain], {})
    return _proved(run.domain)


def _rate() -> bool:
    """Prove that the rate is at most the allowed exponential or 1 bit/s, also during MaxStart."""
    for first in (True, False):
        run = _apply(first)
        (allowed,) = run.allowed
        rate = run.field("rate")
        claim = z3.Or(rate.term <= allowed.term, rate.term <= 1)
        run.domain.require("the rate is allowed", False, claim, [rate, allowed], {})
        if not _proved(run.domain):
            return False
    return True


def _table() -> bool:
    """Prove by exact fractions that each table entry is the integer nearest to 2^31 2^(-i/256)."""
    table = unit("fixed.h").tables["fixed_exp2"]
    for index, entry in enumerate(table):
        exact = Fraction(2) ** (31 * 256 - index)
        half = Fraction(1, 2)
        if not (entry - half) ** 256 <= exact <= (entry + half) ** 256:
            return False
    return True


def _real() -> bool:
    """Prove in real numbers that a step of eq. 10 moves the ratio x/D(q) towards 1,
    never past it.
    """
    e = z3.Function("e", z3.RealSort(), z3.RealSort())
    q, t, gain, xi, after, k = z3.Reals("q t gain xi after k")
    rest = gain - q / t
    solver = z3.Solver()
    # e is any increasing function; k = alpha eta T dt / tau^2, at most 1.
    solver.add(t > 0, q >= 0, k >= 0, k <= 1)
    solver.add(after - rest == (1 - k) * (xi - rest))
    terms = [after - gain, xi - gain, -q / t]
    solver.add(*((a <= b) == (e(a) <= e(b)) for a in terms for b in terms))
    excess = z3.And(xi > rest, z3.Or(e(after - gain) > e(xi - gain), e(after - gain) < e(-q / t)))
    solver.add(z3.Or(excess, z3.And(xi <= rest, e(after - gain) > e(-q / t))))
    return bool(solver.check() == z3.unsat)


def theorems() -> Iterator[Theorem]:
    """Yield the statement, range and proof of each theorem."""
    yield (
        "in real numbers a source that is not above D(q) stays so, and one above comes nearer",
        "any step up to xi*",
        _real,
    )
    yield "at the first price the exponent is q/T", "all states, to 2^-34", _first
    yield "later xi moves towards xi*, never past it", "all states", _next
    yield "a rate is at most demand_max e^(xi - alpha q/tau), or 1 bit/s", "all states", _rate
    yield "the table of powers of two is to the nearest", "257 entries", _table
