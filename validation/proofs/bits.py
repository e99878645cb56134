"""Number domain with C's wrapping semantics: bit-vectors, or plain numbers if all values are known.

`run()` with plain numbers is an interpreter of the syntax tree, which `differential` compares with
compiled C.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import z3

from validation.proofs.c_source import Node, Type
from validation.proofs.machine import Machine, State

Bits = Any  # a z3 bit-vector of 64 bits, or a number


def _cut(value: int, kind: Type) -> int:
    value &= (1 << kind.width) - 1
    return value - (1 << kind.width) if kind.signed and value > kind.most else value


def _vector(value: Bits) -> Any:
    return z3.BitVecVal(value, 64) if isinstance(value, int) else value


class BitVectors:
    """Domain of 64-bit numbers, which are sign-extended if their type is signed."""

    machine: Machine | None = None

    def constant(self, value: int, kind: Type) -> Bits:
        """Return a constant of a type."""
        return _cut(value, kind)

    def _fit(self, value: Any, kind: Type) -> Any:
        if kind.width == 64:
            return value
        low = z3.Extract(kind.width - 1, 0, value)
        rest = 64 - kind.width
        return z3.SignExt(rest, low) if kind.signed else z3.ZeroExt(rest, low)

    def binary(self, op: str, a: Bits, b: Bits, kind: Type, at: Node) -> Bits:
        """Return the result of a binary operation on a and b, wrapped to the type."""
        if isinstance(a, int) and isinstance(b, int):
            return _cut(_plain(op, a, b, kind), kind)
        x, y = _vector(a), _vector(b)
        if op == ">>":
            return self._fit(x >> y if kind.signed else z3.LShR(x, y), kind)
        if op in ("/", "%"):
            return z3.UDiv(x, y) if op == "/" else z3.URem(x, y)
        found = {
            "+": lambda: x + y,
            "-": lambda: x - y,
            "*": lambda: x * y,
            "<<": lambda: x << y,
            "&": lambda: x & y,
            "|": lambda: x | y,
            "^": lambda: x ^ y,
        }[op]()
        return self._fit(found, kind)

    def compare(self, op: str, a: Bits, b: Bits, kind: Type) -> Any:
        """Return the condition that a comparison of a and b holds."""
        if isinstance(a, int) and isinstance(b, int):
            return {"<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b, "==": a == b, "!=": a != b}[
                op
            ]
        x, y = _vector(a), _vector(b)
        if op in ("==", "!="):
            return x == y if op == "==" else x != y
        if kind.signed:
            return {"<": x < y, "<=": x <= y, ">": x > y, ">=": x >= y}[op]
        unsigned = {"<": z3.ULT, "<=": z3.ULE, ">": z3.UGT, ">=": z3.UGE}
        return unsigned[op](x, y)

    def negative(self, a: Bits, kind: Type, at: Node) -> Bits:
        """Return −a."""
        return self.binary("-", 0, a, kind, at)

    def cast(self, a: Bits, source: Type, target: Type, at: Node) -> Bits:
        """Return a number cast to another type."""
        return _cut(a, target) if isinstance(a, int) else self._fit(a, target)

    def truth(self, a: Bits, kind: Type) -> Any:
        """Return the condition that a number is not 0."""
        return a != 0

    def number(self, condition: Any) -> Bits:
        """Return 1 if a condition holds, and 0 if not."""
        if isinstance(condition, bool):
            return int(condition)
        return z3.If(condition, z3.BitVecVal(1, 64), z3.BitVecVal(0, 64))

    def both(self, a: Any, b: Any) -> Any:
        """Return the conjunction of two conditions."""
        if isinstance(a, bool):
            return b if a else False
        if isinstance(b, bool):
            return a if b else False
        return z3.And(a, b)

    def invert(self, a: Any) -> Any:
        """Return the negation of a condition."""
        return not a if isinstance(a, bool) else z3.Not(a)

    def any_of(self, alternatives: list[list[Any]]) -> tuple[Any, ...]:
        """Return the conditions of a state that is reached under any of several alternatives."""
        return (z3.Or(*(z3.And(*alternative) for alternative in alternatives)),)

    def assume(self, state: State, condition: Any) -> None:
        """Add a condition to a state."""
        if not isinstance(condition, bool):
            state.guard = (*state.guard, condition)

    def join(self, conditions: list[Any], values: list[Any], states: list[State]) -> Bits:
        """Return a number that equals each value under its condition."""
        found = _vector(values[-1])
        for condition, value in zip(conditions[-2::-1], values[-2::-1], strict=True):
            found = z3.If(condition, _vector(value), found)
        return found

    def table(self, numbers: Sequence[Any], index: Bits, kind: Type, at: Node) -> Bits:
        """Return a table entry. An unknown index beyond the table gives the last entry."""
        if isinstance(index, int):
            return numbers[index]
        found = _vector(numbers[-1])
        for position in range(len(numbers) - 2, -1, -1):
            found = z3.If(index == position, _vector(numbers[position]), found)
        return found

    def concrete(self, value: Bits) -> int | None:
        """Return a number as an integer if its value is known, or None."""
        if isinstance(value, int):
            return value
        simple = z3.simplify(value)
        return int(simple.as_long()) if z3.is_bv_value(simple) else None


def _plain(op: str, a: int, b: int, kind: Type) -> int:
    if op in ("<<", ">>") and not 0 <= b < kind.width:
        raise ArithmeticError("a shift that C does not define")
    if op in ("/", "%"):
        return a // b if op == "/" else a % b
    if op == "<<":
        return a << b
    if op == ">>":
        return a >> b
    return {"+": a + b, "-": a - b, "*": a * b, "&": a & b, "|": a | b, "^": a ^ b}[op]
