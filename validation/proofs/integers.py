"""Number domain of unbounded integers, which proves that no operation wraps or loses bits.

A number has an interval. What an operation does to intervals is itself proved by z3 (`_Lemmas`),
once for each operation and interval. Where intervals are not enough, z3 gets everything that the
numbers were made of, and the conditions under which the operation is reached. The proof of a
function is that no obligation is left over.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import z3

from validation.proofs.c_source import INT, Node, Type, show
from validation.proofs.machine import Machine, State

# For one question; on a busy host few need more than seconds.
QUERY_MS = 240_000
# For the search for a contradiction, which is found fast where there is one.
AGREE_MS = 1000


def _ask_directly(formulas: list[Any], milliseconds: int) -> Any:
    solver = z3.Solver()
    solver.set("timeout", milliseconds)
    solver.add(*formulas)
    return solver.check()


def _ask_linearly(formulas: list[Any], milliseconds: int) -> Any:
    """Ask z3 whether formulas can hold, after substituting definitions, expanding products, and
    replacing each product by a variable.
    """
    goal = z3.Goal()
    goal.add(*formulas)
    expand = z3.With("simplify", som=True, pull_cheap_ite=False)
    found = z3.Then(expand, "propagate-values", "solve-eqs", expand)(goal)
    products: dict[str, Any] = {}
    parts = [_without_products(part, products, {}) for part in found[0]]
    answer = _ask_directly(parts, milliseconds)
    return answer if answer == z3.unsat or not products else z3.unknown


def _without_products(term: Any, products: dict[str, Any], seen: dict[int, Any]) -> Any:
    key = term.get_id()
    if key in seen:
        return seen[key]
    children = [_without_products(part, products, seen) for part in term.children()]
    if z3.is_mul(term):
        constants = [part for part in children if z3.is_int_value(part)]
        factors = [part for part in children if not z3.is_int_value(part)]
        if len(factors) > 1:
            name = " * ".join(sorted(str(part) for part in factors))
            result = products.setdefault(name, z3.Int(f"({name})"))
            for constant in constants:
                result = constant * result
        else:
            result = term
    elif z3.is_app(term) and term.decl().kind() == z3.Z3_OP_POWER:
        base, exponent = children
        assert z3.is_int_value(exponent)
        name = " * ".join([str(base)] * exponent.as_long())
        result = products.setdefault(name, z3.Int(f"({name})"))
    elif children:
        result = term.decl()(*children)
    else:
        result = term
    seen[key] = result
    return result


_ATTEMPTS = ((_ask_directly, 300), (_ask_linearly, QUERY_MS), (_ask_directly, QUERY_MS))


class Number:
    """An integer: a constant or a z3 term, with its interval, known facts and origin."""

    __slots__ = ("condition", "facts", "guard", "high", "low", "parents", "shift", "term")

    def __init__(self, term: Any, low: int, high: int) -> None:
        self.term = term
        self.low = low
        self.high = high
        self.facts: list[Any] = []
        self.parents: tuple[Any, ...] = ()
        self.shift = 0  # it is a multiple of 2^shift
        self.condition: Condition | None = None
        # Where it was computed. Elsewhere its facts say nothing.
        self.guard: tuple[Condition, ...] = ()

    @property
    def constant(self) -> int | None:
        """Value of the number if it is known, or None."""
        return self.low if self.low == self.high else None


def _identity(number: Number) -> Any:
    return id(number) if number.constant is None else ("constant", number.constant)


class Condition:
    """A formula, the numbers that it uses, and the comparisons that hold if it is true or false."""

    __slots__ = ("if_false", "if_true", "parents", "term")

    def __init__(self, term: Any, parents: tuple[Number, ...]) -> None:
        self.term = term
        self.parents = parents
        self.if_true: list[tuple[str, Number, Number]] = []
        self.if_false: list[tuple[str, Number, Number]] = []


@dataclass
class Obligation:
    """One operation of the C code that must be proved, and the method of its proof."""

    where: str
    what: str
    proved: str  # "intervals", "query" or what z3 answered


_OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}
_SWAPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}


class _Lemmas:
    """Lemmas about the effects of operations on intervals, each proved once."""

    def __init__(self) -> None:
        self._proved: set[tuple[Any, ...]] = set()
        self._solver = z3.Solver()
        self._solver.set("timeout", QUERY_MS)

    def prove(self, op: str, x: Number, y: Number, low: int, high: int) -> None:
        """Prove that an operation on two intervals has a result in [low, high]."""
        key = (op, x.low, x.high, y.low, y.high, low, high)
        if key in self._proved:
            return
        a, b, r, rest = z3.Ints("a b r rest")
        facts = [x.low <= a, a <= x.high, y.low <= b, b <= y.high]
        if op == "+":
            facts.append(r == a + b)
        elif op == "-":
            facts.append(r == a - b)
        elif op == "*":
            facts.append(r == a * b)
        elif op == "/":
            facts += [b > 0, a == r * b + rest, rest >= 0, rest < b]
        else:  # the remainder
            quotient = z3.Int("quotient")
            facts += [b > 0, a == quotient * b + r, r >= 0, r < b, quotient >= 0]
        answer = self._ask(facts, z3.Or(r < low, r > high))
        if answer != z3.unsat:
            raise AssertionError(f"no lemma: {key}: {answer}")
        self._proved.add(key)

    def _ask(self, facts: list[Any], negated: Any) -> Any:
        self._solver.push()
        self._solver.add(*facts, negated)
        answer = self._solver.check()
        self._solver.pop()
        return answer


_LEMMAS = _Lemmas()


@dataclass
class Integers:
    """Domain of unbounded integers. `wraps` lists the expressions that wrap on purpose, by
    function.
    """

    wraps: set[tuple[str, str]] = field(default_factory=set)
    # Bounds of a variable of a function, proved where it is assigned.
    cuts: dict[tuple[str, str], tuple[int, int]] = field(default_factory=dict)
    # Those of which only the bounds are used afterwards.
    forgets: set[tuple[str, str]] = field(default_factory=set)
    # The same, but taken for granted.
    assumed: dict[tuple[str, str], tuple[int, int]] = field(default_factory=dict)
    obligations: list[Obligation] = field(default_factory=list)
    used_wraps: set[tuple[str, str]] = field(default_factory=set)
    used_cuts: set[tuple[str, str]] = field(default_factory=set)
    machine: Machine | None = None  # which sets it
    _count: int = 0
    _same: dict[tuple[Any, ...], tuple[tuple[Any, ...], Number, tuple[Any, ...]]] = field(
        default_factory=dict
    )

    _quotients: dict[tuple[Any, int], tuple[Any, ...]] = field(default_factory=dict)

    @property
    def _at(self) -> Machine:
        assert self.machine is not None
        return self.machine

    # ------------------------------------------------------------ numbers

    def constant(self, value: int, kind: Type) -> Number:
        """Return a constant of a type."""
        number = Number(value, value, value)
        number.shift = 64 if value == 0 else (value & -value).bit_length() - 1
        return number

    def variable(self, name: str, low: int, high: int) -> Number:
        """Return an unknown input with a range."""
        if low == high:
            return self.constant(low, INT)
        return self._fresh(name, low, high, (), [])

    def _fresh(
        self, name: str, low: int, high: int, parents: tuple[Any, ...], facts: list[Any]
    ) -> Number:
        if low == high:
            # Keep what it was made of: a constant says all.
            return self.constant(low, INT)
        self._count += 1
        number = Number(z3.Int(f"{name}!{self._count}"), low, high)
        number.parents = parents
        number.facts = facts
        number.facts.append(z3.And(low <= number.term, number.term <= high))
        state = self.machine.state if self.machine else None
        number.guard = state.guard if state is not None else ()
        return number

    def interval(self, number: Number, state: State | None = None) -> Number:
        """Return a number with its interval in a state."""
        known = (state or self._at.live).known.get(id(number))
        if known is None or number.constant is not None:
            return number
        _, low, high = known
        if low == high:
            return self.constant(low, INT)
        narrowed = Number(number.term, low, high)
        narrowed.facts, narrowed.parents = number.facts, number.parents
        narrowed.shift, narrowed.condition = number.shift, number.condition
        narrowed.guard = number.guard
        return narrowed

    # ------------------------------------------------------------ proofs

    def _cone(self, roots: Iterable[Any], depth: int) -> list[Any]:
        """Return the known facts about numbers and their operands, up to `depth` steps back.

        A number of a branch that is not the present one says something only where that was taken.
        """
        here = {id(condition) for condition in self._at.live.guard}
        seen: set[int] = set()
        facts: list[Any] = []
        level = list(roots)
        while level and depth:
            depth -= 1
            further = []
            for part in level:
                if id(part) not in seen:
                    seen.add(id(part))
                    further += part.parents
                    if not isinstance(part, Number):
                        continue
                    taken = [one for one in part.guard if id(one) not in here]
                    if taken and part.facts:
                        test = z3.And(*(one.term for one in taken))
                        facts.append(z3.Implies(test, z3.And(*part.facts)))
                        further += taken
                    else:
                        facts += part.facts
            level = further
        return facts

    def ask(self, claim: Any, roots: Iterable[Any]) -> Any:
        """Ask z3 whether a claim can be false in the current state."""
        if isinstance(claim, bool):
            return z3.unsat if claim else z3.sat
        guard = self._at.live.guard
        known = [*(condition.term for condition in guard), z3.Not(claim)]
        # Mostly little matters. What does not follow from that may follow from all.
        if _ask_directly([*self._cone([*roots, *guard], 3), *known], 300) == z3.unsat:
            return z3.unsat
        formulas = [*self._cone([*roots, *guard], 1_000_000), *known]
        answer = z3.unknown
        for attempt, milliseconds in _ATTEMPTS:
            answer = attempt(formulas, milliseconds)
            if answer != z3.unknown:
                break
        return answer

    def require(self, what: str, easy: bool, claim: Any, roots: Iterable[Any], at: Node) -> None:
        """Record an obligation. If it is not `easy`, z3 must prove the claim."""
        proved = "intervals"
        if not easy:
            answer = self.ask(claim, roots)
            proved = "query" if answer == z3.unsat else str(answer)
        self.obligations.append(
            Obligation(self._at.function, f"{show(at)}: {what}" if at else what, proved)
        )

    def agree(self, values: Iterable[Any]) -> None:
        """Record an obligation that all known facts can hold together, because a contradiction
        proves anything.
        """
        guard = self._at.live.guard
        formulas = self._cone([*values, *guard], 1_000_000)
        answer = _ask_directly([*formulas, *(condition.term for condition in guard)], AGREE_MS)
        proved = "contradiction" if answer == z3.unsat else "query"
        self.obligations.append(Obligation(self._at.function, "no contradiction", proved))

    def narrow(self, number: Number, low: int, high: int, what: str) -> Number:
        """Prove that a number is in [low, high], and return it with that interval."""
        now = self.interval(number)
        if now.low >= low and now.high <= high:
            return number
        claim = z3.And(low <= number.term, number.term <= high)
        self.require(what, False, claim, [number], {})
        low, high = max(low, now.low), min(high, now.high)
        return self._copy(number, low, high)

    def _copy(self, number: Number, low: int, high: int) -> Number:
        copy = self._fresh("cut", low, high, (number,), [])
        copy.shift, copy.condition = number.shift, number.condition
        if copy.constant is None:
            copy.facts.append(copy.term == number.term)
        return copy

    def assigned(self, name: str, node: Node, value: Any) -> Any:
        """Narrow a value on assignment to a variable that has a cut."""
        key = (self._at.function, name)
        if not isinstance(value, Number):
            return value
        if key in self.assumed:
            self.used_cuts.add(key)
            now = self.interval(value)
            low, high = self.assumed[key]
            return self._copy(value, max(low, now.low), min(high, now.high))
        if key not in self.cuts:
            return value
        self.used_cuts.add(key)
        low, high = self.cuts[key]
        value = self.narrow(value, low, high, f"{name} is in [{low}, {high}]")
        return self._fresh(name, low, high, (), []) if key in self.forgets else value

    # ------------------------------------------------------------ arithmetic

    def binary(self, op: str, a: Number, b: Number, kind: Type, at: Node) -> Number:
        """Return the result of a binary operation on a and b, after proving that it
        fits its type.
        """
        x, y = self.interval(a), self.interval(b)
        key = (op, _identity(a), _identity(b), kind)
        if key in self._same:
            guard, number, _ = self._same[key]
            if self._at.live.guard[: len(guard)] == guard:
                return number
        if x.constant is not None and y.constant is not None:
            number = self._known(op, x.constant, y.constant, kind, at)
        elif op in ("+", "-", "*"):
            number = self._linear(op, a, b, x, y, kind, at)
        elif op in ("/", "%"):
            number = self._division(op, a, b, x, y, at)
        elif op in ("<<", ">>"):
            number = self._shift(op, a, b, x, y, kind, at)
        else:
            number = self._bits(op, a, b, x, y, kind, at)
        self._same[key] = (self._at.live.guard, number, (a, b))
        return number

    def _known(self, op: str, a: int, b: int, kind: Type, at: Node) -> Number:
        if op in ("/", "%"):
            self.require("no division by 0", b > 0, b > 0, [], at)
            result = (a // b if op == "/" else a % b) if b else 0
        elif op in ("<<", ">>"):
            self.require("a shift below the width", 0 <= b < kind.width, False, [], at)
            result = a << b if op == "<<" else a >> b
        else:
            result = {"+": a + b, "-": a - b, "*": a * b, "&": a & b, "|": a | b, "^": a ^ b}[op]
        if not kind.least <= result <= kind.most:
            if self._may_wrap(at):
                result &= kind.most
            else:
                self.require("fits its type", False, False, [], at)
        return self.constant(result, kind)

    def _may_wrap(self, at: Node) -> bool:
        key = (self._at.function, show(at)) if at else ("", "")
        if key not in self.wraps:
            return False
        self.used_wraps.add(key)
        return True

    def _linear(
        self, op: str, a: Number, b: Number, x: Number, y: Number, kind: Type, at: Node
    ) -> Number:
        if op == "*" and (x.high <= 1 and x.low >= 0 and y.constant is None):
            a, b, x, y = b, a, y, x
        if op == "+":
            low, high, exact = x.low + y.low, x.high + y.high, a.term + b.term
        elif op == "-":
            low, high, exact = x.low - y.high, x.high - y.low, a.term - b.term
        else:
            ends = [p * q for p in (x.low, x.high) for q in (y.low, y.high)]
            low, high, exact = min(ends), max(ends), a.term * b.term
        if x.constant is not None:
            a = x
        if y.constant is not None:
            b = y
        fits = kind.least <= low and high <= kind.most
        if not fits and self._may_wrap(at):
            return self._modular(exact, (a, b), kind)
        _LEMMAS.prove(op, x, y, low, high)
        roots = (a, b)
        if op == "*" and y.constant is None and y.low >= 0 and y.high <= 1:
            self._count += 1
            product = z3.Int(f"product!{self._count}")
            facts = [
                z3.Or(z3.And(b.term == 0, product == 0), z3.And(b.term == 1, product == a.term))
            ]
            exact = product
        else:
            facts = []
        if not fits:
            claim = z3.And(kind.least <= exact, exact <= kind.most)
            holder = Number(0, 0, 0)
            holder.parents, holder.facts = roots, facts
            self.require("fits its type", False, claim, [holder], at)
            low, high = max(low, kind.least), min(high, kind.most)
        else:
            self.obligations.append(Obligation(self._at.function, show(at), "intervals"))
        if low > high:  # it cannot be reached, or the obligation has failed
            low = high = min(max(low, kind.least), kind.most)
        number = self._fresh("r", low, high, roots, [])
        if number.constant is None:
            number.facts += [*facts, number.term == exact]
        if op == "*":
            number.shift = min(64, x.shift + y.shift)
        else:
            number.shift = min(x.shift, y.shift)
        return number

    def _modular(self, exact: Any, parents: tuple[Any, ...], kind: Type) -> Number:
        number = self._fresh("wrapped", 0, kind.most, parents, [])
        self._count += 1
        turns = z3.Int(f"turns!{self._count}")
        number.facts.append(number.term == exact + turns * (kind.most + 1))
        return number

    def _division(self, op: str, a: Number, b: Number, x: Number, y: Number, at: Node) -> Number:
        self.require("no division by 0", y.low > 0, b.term > 0, [b], at)
        assert x.low >= 0, f"{self._at.function}: signed division: {show(at)}"
        least = max(1, y.low)
        divisor = Number(b.term, least, max(least, y.high))
        if op == "/":
            low, high = x.low // divisor.high, x.high // least
        else:
            low, high = 0, min(x.high, divisor.high - 1)
            if x.high < least:  # the number itself
                return a
        _LEMMAS.prove(op, x, divisor, low, high)
        quotient, rest, facts = self._quotient(a, b, y)
        number = self._fresh("q" if op == "/" else "m", low, high, (a, b), list(facts))
        if number.constant is None:
            number.facts.append(number.term == (quotient if op == "/" else rest))
        return number

    def _quotient(self, a: Number, b: Number, y: Number) -> tuple[Any, Any, list[Any]]:
        """Return the quotient and remainder of a division and the facts that define them."""
        key = (_identity(a), y.constant or id(b))
        guard = self._at.live.guard
        if key in self._quotients:
            found = self._quotients[key]
            if guard[: len(found[0])] == found[0]:
                return found[1], found[2], found[3]
        self._count += 1
        quotient, rest = z3.Int(f"quotient!{self._count}"), z3.Int(f"rest!{self._count}")
        divisor = b.term if y.constant is None else y.constant
        facts = [
            a.term == quotient * divisor + rest,
            rest >= 0,
            rest < divisor,
            quotient >= 0,
            quotient <= a.term,
        ]
        self._quotients[key] = (guard, quotient, rest, facts, a, b)
        return quotient, rest, facts

    def _shift(
        self, op: str, a: Number, b: Number, x: Number, y: Number, kind: Type, at: Node
    ) -> Number:
        self.require(
            "a shift below the width",
            y.low >= 0 and y.high < kind.width,
            z3.And(b.term >= 0, b.term < kind.width),
            [b],
            at,
        )
        low_shift, high_shift = max(0, y.low), min(y.high, kind.width - 1)
        if low_shift == high_shift:
            power = self.constant(1 << low_shift, INT)
            if op == "<<":
                return self._linear("*", a, power, x, power, kind, at)
            if x.low >= 0:
                return self._division("/", a, power, x, power, at)
        self._count += 1
        result = z3.Int(f"shifted!{self._count}")
        cases = []
        for shift in range(low_shift, high_shift + 1):
            if op == "<<":
                case = result == a.term * (1 << shift)
            else:
                case = z3.And(result * (1 << shift) <= a.term, a.term < (result + 1) * (1 << shift))
            cases.append(z3.And(b.term == shift, case))
        facts: list[Any] = [z3.Or(*cases)]
        if op == ">>":
            low = min(x.low >> low_shift, x.low >> high_shift)
            high = max(x.high >> low_shift, x.high >> high_shift)
            self._check(facts, a, b, x, y, result, low, high)
            facts.append(z3.Implies(z3.BoolVal(x.low >= 0), result <= a.term))
        else:
            low, high = min(0, x.low << high_shift), x.high << high_shift
            self._check(facts, a, b, x, y, result, low, high)
            if high > kind.most or low < kind.least:
                holder = Number(0, 0, 0)
                holder.parents, holder.facts = (a, b), facts
                claim = z3.And(kind.least <= result, result <= kind.most)
                self.require("no bit is lost", False, claim, [holder], at)
                low, high = max(low, kind.least), min(high, kind.most)
        number = self._fresh("s", low, high, (a, b), facts)
        if number.constant is None:
            number.facts.append(number.term == result)
        return number

    def _check(
        self,
        facts: list[Any],
        a: Number,
        b: Number,
        x: Number,
        y: Number,
        result: Any,
        low: int,
        high: int,
    ) -> None:
        solver = z3.Solver()
        solver.set("timeout", QUERY_MS)
        solver.add(*facts, x.low <= a.term, a.term <= x.high, y.low <= b.term, b.term <= y.high)
        solver.add(z3.Or(result < low, result > high))
        answer = solver.check()
        if answer != z3.unsat:
            raise AssertionError(f"no lemma of a shift: {answer}")

    def _bits(
        self, op: str, a: Number, b: Number, x: Number, y: Number, kind: Type, at: Node
    ) -> Number:
        if x.constant is not None:
            a, b, x, y = b, a, y, x
        if op == "&" and y.constant is not None and x.low >= 0:
            mask = y.constant & kind.most
            if mask == 0:
                return self.constant(0, kind)
            down = (mask & -mask).bit_length() - 1
            width = mask.bit_length() - down
            if mask == ((1 << width) - 1) << down:
                return self._field(a, x, down, width, at)
        if op == "|":
            for first, second in ((x, y), (y, x)):
                if second.high < 1 << first.shift and second.low >= 0:
                    return self._linear("+", a, b, x, y, kind, at)
        if x.low < 0 or y.low < 0:
            raise AssertionError(f"{self._at.function}: bits of {show(at)}")
        # a & b <= a, b; a, b <= a | b <= a + b.
        if op == "&":
            number = self._fresh("and", 0, min(x.high, y.high), (a, b), [])
            if number.constant is None:
                number.facts += [number.term <= a.term, number.term <= b.term]
            return number
        most = (1 << max(x.high.bit_length(), y.high.bit_length())) - 1
        if op == "^":
            return self._fresh("xor", 0, most, (a, b), [])
        number = self._fresh("or", max(x.low, y.low), min(x.high + y.high, most), (a, b), [])
        if number.constant is None:
            number.facts += [
                number.term >= a.term,
                number.term >= b.term,
                number.term <= a.term + b.term,
            ]
        return number

    def _field(self, a: Number, x: Number, down: int, width: int, at: Node) -> Number:
        """Return `width` bits of a from bit `down` on, without shifting them."""
        part, now = a, x
        if down:
            power = self.constant(1 << down, INT)
            part = now = self._division("/", a, power, x, power, at)
        if now.high >= 1 << width:
            size = self.constant(1 << width, INT)
            part = now = self._division("%", part, size, now, size, at)
        if down:
            power = self.constant(1 << down, INT)
            return self._linear("*", part, power, now, power, Type(64, False), at)
        return part

    def negative(self, a: Number, kind: Type, at: Node) -> Number:
        """Return −a, after proving that it fits its type."""
        return self.binary("-", self.constant(0, kind), a, kind, at)

    def cast(self, a: Number, source: Type, target: Type, at: Node) -> Number:
        """Return a number cast to another type, after proving that it fits. Casts to bytes and
        casts that may wrap are truncated instead.
        """
        x = self.interval(a)
        if target.least <= x.low and x.high <= target.most:
            return a
        if target.width == 8 or self._may_wrap(at):
            if x.constant is not None:
                return self.constant(x.constant & target.most, target)
            if target.signed:
                return self._fresh("cut", target.least, target.most, (a,), [])
            return self._modular(a.term, (a,), target)
        if x.constant is not None and x.constant < 0 and not target.signed:
            return self.constant(x.constant & target.most, target)
        claim = z3.And(target.least <= a.term, a.term <= target.most)
        self.require(f"fits {target.width} bits", False, claim, [a], at)
        return self._copy(a, max(x.low, target.least), min(x.high, target.most))

    # ------------------------------------------------------------ conditions

    def compare(self, op: str, a: Number, b: Number, kind: Type) -> Any:
        """Return the condition that a comparison of a and b holds, or a bool if their intervals
        decide it.
        """
        x, y = self.interval(a), self.interval(b)
        if op in (">", ">="):
            return self.compare(_SWAPPED[op], b, a, kind)
        if op == "<":
            if x.high < y.low:
                return True
            if x.low >= y.high:
                return False
        elif op == "<=":
            if x.high <= y.low:
                return True
            if x.low > y.high:
                return False
        elif x.high < y.low or y.high < x.low:
            return op == "!="
        elif x.constant is not None and x.constant == y.constant:
            return op == "=="
        if a is b:
            return op in ("<=", "==")
        term = {
            "<": lambda: a.term < b.term,
            "<=": lambda: a.term <= b.term,
            "==": lambda: a.term == b.term,
            "!=": lambda: a.term != b.term,
        }[op]()
        condition = Condition(term, (a, b))
        condition.if_true = [(op, a, b)]
        condition.if_false = [(_OPPOSITE[op], a, b)]
        return condition

    def truth(self, a: Number, kind: Type) -> Any:
        """Return the condition that a number is not 0."""
        if a.condition is not None:
            return a.condition
        return self.compare("!=", a, self.constant(0, kind), kind)

    def number(self, condition: Any) -> Number:
        """Return 1 if a condition holds, and 0 if not."""
        if isinstance(condition, bool):
            return self.constant(int(condition), INT)
        number = self._fresh("truth", 0, 1, (condition,), [])
        number.facts.append(z3.If(condition.term, number.term == 1, number.term == 0))
        number.condition = condition
        return number

    def both(self, a: Any, b: Any) -> Any:
        """Return the conjunction of two conditions."""
        if isinstance(a, bool):
            return b if a else False
        if isinstance(b, bool):
            return a if b else False
        condition = Condition(z3.And(a.term, b.term), (*a.parents, *b.parents))
        condition.if_true = a.if_true + b.if_true
        return condition

    def invert(self, a: Any) -> Any:
        """Return the negation of a condition."""
        if isinstance(a, bool):
            return not a
        condition = Condition(z3.Not(a.term), a.parents)
        condition.if_true, condition.if_false = a.if_false, a.if_true
        return condition

    def any_of(self, alternatives: list[list[Any]]) -> tuple[Any, ...]:
        """Return the conditions of a state that is reached under any of several alternatives."""
        if len(alternatives) == 2 and all(len(one) == 1 for one in alternatives):
            first, second = alternatives[0][0], alternatives[1][0]
            if first.if_true == second.if_false and first.if_false == second.if_true:
                return ()
        terms, parents = [], []
        for alternative in alternatives:
            terms.append(z3.And(*(condition.term for condition in alternative)))
            parents += [p for condition in alternative for p in condition.parents]
        return (Condition(z3.Or(*terms), tuple(parents)),)

    def assume(self, state: State, condition: Any) -> None:
        """Add a condition to a state, and narrow the intervals of its operands."""
        if isinstance(condition, bool):
            return
        state.guard = (*state.guard, condition)
        for op, a, b in condition.if_true:
            self._refine(state, op, a, b)
            self._refine(state, _SWAPPED[op], b, a)

    def _refine(self, state: State, op: str, a: Number, b: Number) -> None:
        x, y = self.interval(a, state), self.interval(b, state)
        low, high = x.low, x.high
        if op == "<":
            high = min(high, y.high - 1)
        elif op == "<=":
            high = min(high, y.high)
        elif op == ">":
            low = max(low, y.low + 1)
        elif op == ">=":
            low = max(low, y.low)
        elif op == "==":
            low, high = max(low, y.low), min(high, y.high)
        elif y.constant is not None:
            low += low == y.constant
            high -= high == y.constant
        if low <= high and (low, high) != (x.low, x.high):
            state.known[id(a)] = (a, low, high)

    def join(self, conditions: list[Any], values: list[Any], states: list[State]) -> Number:
        """Return a number that equals each value under its condition."""
        intervals = [
            self.interval(value, state) for value, state in zip(values, states, strict=True)
        ]
        low = min(number.low for number in intervals)
        high = max(number.high for number in intervals)
        if low == high:
            return self.constant(low, INT)
        number = self._fresh(
            "join", low, high, (*values, *(c for c in conditions if not isinstance(c, bool))), []
        )
        for condition, value in zip(conditions, values, strict=True):
            same = number.term == value.term
            number.facts.append(
                same if isinstance(condition, bool) else z3.Implies(condition.term, same)
            )
        number.shift = min(value.shift for value in values)
        if (low, high) == (0, 1) and all(
            value.condition is not None or value.constant is not None for value in values
        ):
            condition = Condition(number.term == 1, (number,))
            zero, one = self.constant(0, INT), self.constant(1, INT)
            condition.if_true = [("==", number, one)]
            condition.if_false = [("==", number, zero)]
            number.condition = condition
        return number

    def table(self, numbers: Sequence[Any], index: Number, kind: Type, at: Node) -> Number:
        """Return a table entry, after proving that the index is within the table."""
        x = self.interval(index)
        last = len(numbers) - 1
        self.require(
            "an index in the table",
            x.low >= 0 and x.high <= last,
            z3.And(index.term >= 0, index.term <= last),
            [index],
            at,
        )
        low, high = max(0, x.low), min(x.high, last)
        chosen = [
            n if isinstance(n, Number) else self.constant(n, kind) for n in numbers[low : high + 1]
        ]
        intervals = [self.interval(number) for number in chosen]
        number = self._fresh(
            "entry",
            min(n.low for n in intervals),
            max(n.high for n in intervals),
            (index, *(n for n in chosen if n.constant is None)),
            [],
        )
        if number.constant is None:
            number.facts.append(
                z3.Or(
                    *(
                        z3.And(index.term == low + i, number.term == n.term)
                        for i, n in enumerate(chosen)
                    )
                )
            )
        return number

    def concrete(self, value: Number) -> int | None:
        """Return a number as an integer if its value is known, or None."""
        return self.interval(value).constant
