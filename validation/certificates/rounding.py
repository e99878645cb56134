"""Exact numbers with a bound on the error of the same computation in double precision.

A `Real` is the exact value of an expression and a bound of the error that the same expression has
when every operation is rounded: ε = 2⁻⁵³ of the result for + − · ÷, 2 ε for exp, ln and powers (one
unit in the last place, which libm keeps), and what earlier errors become. The bound is the usual
running error analysis (Higham, *Accuracy and Stability of Numerical Algorithms*, §3.3).
"""

from __future__ import annotations

import struct
from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias

Number: TypeAlias = "Real | Fraction | float | int"

UNIT = 2.0**-53
"""Largest relative error ε of one rounded operation in double precision."""

# The law may compute in another order than the equation is written here: as much again.
_ORDER = 2.0
# The bounds themselves are computed in double precision.
_UP = 1.0 + 2.0**-40
_DIGITS = Context(prec=45)
_SINGLE_MAX = float.fromhex("0x1.fffffep+127")


class Real:
    """An exact value with a bound on the error of its rounded computation."""

    __slots__ = ("error", "value")

    def __init__(self, value: Fraction | float | int, error: float = 0.0) -> None:
        self.value = value if isinstance(value, Fraction) else Fraction(value)
        self.error = error

    def __repr__(self) -> str:
        return f"{float(self.value)!r} ± {_ORDER * self.error:.3g}"

    def __add__(self, other: Number) -> Real:
        b = real(other)
        return _rounded(self.value + b.value, self.error + b.error)

    __radd__ = __add__

    def __neg__(self) -> Real:
        return Real(-self.value, self.error)

    def __sub__(self, other: Number) -> Real:
        b = real(other)
        return _rounded(self.value - b.value, self.error + b.error)

    def __rsub__(self, other: Number) -> Real:
        return real(other) - self

    def __mul__(self, other: Number) -> Real:
        b = real(other)
        error = 0.0
        if self.error or b.error:
            x, y = size(self.value), size(b.value)
            error = x * b.error + y * self.error + self.error * b.error
        return _rounded(self.value * b.value, error)

    __rmul__ = __mul__

    def __truediv__(self, other: Number) -> Real:
        b = real(other)
        error = 0.0
        if self.error or b.error:
            x, y = size(self.value), size(b.value)
            if y <= b.error:
                raise ZeroDivisionError("the divisor may be zero")
            error = (x * b.error + y * self.error) / (y * (y - b.error))
        return _rounded(self.value / b.value, error)

    def __rtruediv__(self, other: Number) -> Real:
        return real(other) / self

    def exact_times(self, factor: Fraction | int) -> Real:
        """Return the number times a power of two, a product without rounding error."""
        return Real(self.value * factor, self.error * float(factor))

    def accepts(self, logged: float) -> bool:
        """Return True if a logged number may be the rounded result of this computation."""
        if logged - logged != 0.0:  # NaN or infinite
            return False
        return size(Fraction(logged) - self.value) <= _ORDER * self.error * _UP

    def low(self) -> Fraction:
        """Return the smallest possible result of the rounded computation."""
        return self.value - Fraction(_ORDER * self.error * _UP)

    def high(self) -> Fraction:
        """Return the largest possible result of the rounded computation."""
        return self.value + Fraction(_ORDER * self.error * _UP)


def size(value: Fraction) -> float:
    """Return a value's magnitude, in double precision."""
    return abs(value.numerator / value.denominator)


def real(number: Number) -> Real:
    """Convert a number to a `Real`, treating a double as exact."""
    return number if isinstance(number, Real) else Real(number)


def _rounded(value: Fraction, error: float) -> Real:
    return Real(value, (error + UNIT * size(value)) * _UP)


def below(a: Number, b: Number) -> bool | None:
    """Return True if a < b, False if not, or None if rounding decides."""
    x, y = real(a), real(b)
    if x.high() < y.low():
        return True
    if x.low() >= y.high():
        return False
    return None


def largest(a: Number, b: Number) -> Real:
    """Return max(a, b) with its error bound."""
    return -smallest(-real(a), -real(b))


def smallest(a: Number, b: Number) -> Real:
    """Return min(a, b) with its error bound."""
    x, y = real(a), real(b)
    less = below(x, y)
    if less is None:
        return Real(min(x.value, y.value), max(x.error, y.error))
    return x if less else y


def within(x: Number, low: Number, high: Number) -> Real:
    """Return x clamped to the range from `low` to `high`."""
    return smallest(largest(x, low), high)


class Single:
    """A number rounded to single precision. Near a boundary, either neighbour is acceptable."""

    __slots__ = ("number",)

    def __init__(self, number: Number) -> None:
        self.number = real(number)

    def __repr__(self) -> str:
        return f"single {self.number!r}"

    def bounds(self) -> tuple[float, float]:
        """Return the smallest and largest acceptable values."""
        return _single(self.number.low()), _single(self.number.high())

    def accepts(self, logged: float) -> bool:
        """Return True if a logged number is an acceptable result of the rounding."""
        low, high = self.bounds()
        return low <= logged <= high


def single(x: Number) -> Single:
    """Return x rounded to single precision."""
    return Single(x)


def _single(value: Fraction) -> float:
    # The largest finite one, where a law saturates.
    bounded = max(min(value.numerator / value.denominator, _SINGLE_MAX), -_SINGLE_MAX)
    found: float = struct.unpack("f", struct.pack("f", bounded))[0]
    return found


def _decimal(value: Fraction) -> Decimal:
    return _DIGITS.divide(Decimal(value.numerator), Decimal(value.denominator))


@lru_cache(maxsize=4096)
def _exp(value: Fraction) -> Fraction:
    return Fraction(_DIGITS.exp(_decimal(value)))


@lru_cache(maxsize=4096)
def _ln(value: Fraction) -> Fraction:
    return Fraction(_DIGITS.ln(_decimal(value)))


def exp(x: Number) -> Real:
    """Return eˣ with its error bound."""
    r = real(x)
    value = _exp(r.value)
    magnitude = size(value)
    return Real(value, (magnitude * (r.error * (1.0 + r.error)) + 2 * UNIT * magnitude) * _UP)


def ln(x: Number) -> Real:
    """Return ln x. Raises ValueError if x may not be positive."""
    r = real(x)
    low = size(r.value) - r.error
    if r.value <= 0 or low <= 0.0:
        raise ValueError("a logarithm of what may not be positive")
    value = _ln(r.value)
    return Real(value, (r.error / low + 2 * UNIT * size(value)) * _UP)


def power(x: Number, y: Number) -> Real:
    """Return xʸ with its error bound, for x > 0."""
    a, b = real(x), real(y)
    log = _ln(a.value)
    value = _exp(log * b.value)
    magnitude = size(value)
    slope = size(b.value) * a.error / (size(a.value) - a.error) + size(log) * b.error
    return Real(value, (magnitude * slope * (1.0 + slope) + 2 * UNIT * magnitude) * _UP)


def log2(x: Number) -> Real:
    """Return log₂ x with its error bound."""
    r = real(x)
    value = _ln(r.value) / _ln(Fraction(2))
    low = size(r.value) - r.error
    return Real(value, (1.4427 * r.error / low + 2 * UNIT * size(value)) * _UP)


def exp2(x: Number) -> Real:
    """Return 2ˣ with its error bound."""
    r = real(x)
    value = _exp(r.value * _ln(Fraction(2)))
    magnitude = size(value)
    return Real(value, (magnitude * r.error * (1.0 + r.error) + 2 * UNIT * magnitude) * _UP)


def expm1(x: Number) -> Real:
    """Return eˣ − 1 with its error bound."""
    r = real(x)
    value = _exp(r.value) - 1
    return Real(value, ((1.0 + size(value)) * r.error + 2 * UNIT * size(value)) * _UP)


class Whole:
    """A whole number rounded from a real one. Near a boundary, either neighbour is acceptable."""

    __slots__ = ("number", "offset")

    def __init__(self, number: Number, offset: Fraction | int = Fraction(1, 2)) -> None:
        """Create the value floor(number + offset): an offset of 1/2 rounds to the nearest, and 0
        rounds down.
        """
        self.number, self.offset = real(number), Fraction(offset)

    def __repr__(self) -> str:
        low, high = self.bounds()
        return str(low) if low == high else f"{low} or {high}"

    def bounds(self) -> tuple[int, int]:
        """Return the smallest and largest acceptable values."""
        return floor(self.number.low() + self.offset), floor(self.number.high() + self.offset)

    def accepts(self, logged: int | None) -> bool:
        """Return True if a logged number is an acceptable result of the rounding."""
        low, high = self.bounds()
        return logged is not None and low <= logged <= high


def floor(value: Fraction) -> int:
    """Return the largest integer that is not above a fraction."""
    return value.numerator // value.denominator


class OneOf:
    """Alternative results, any of which is acceptable because rounding decides between them."""

    __slots__ = ("choices",)

    def __init__(self, *choices: object) -> None:
        self.choices = choices

    def __repr__(self) -> str:
        return " or ".join(map(repr, self.choices))
