"""Fixed-point functions in integer arithmetic, as the text of kernel/fixed.h specifies them.

e⁻ᵘ = 2⁻ᵏ 2⁻ᶠ with k + f = u log₂ e, where 2⁻ᶠ is interpolated in a table of 257 entries,
2³¹ 2^(−i/256) to the nearest. log₂ e has 30 fractional bits and its product with u 24; results are
rounded down.
"""

from __future__ import annotations

from decimal import Context, Decimal
from functools import lru_cache

_CONTEXT = Context(prec=40)
_TWO = Decimal(2)

CODE_BITS = 18
CODE_MAX = (1 << 23) - 1
FLAG = 1 << 23
EXP_MAX = 44 << 34
FINE_ONE = 1 << 62
ONE = 1 << 32

_LOG2_E = int(
    _CONTEXT.multiply(_CONTEXT.divide(Decimal(1), _CONTEXT.ln(_TWO)), Decimal(1 << 30))
    + Decimal("0.5")
)


@lru_cache(maxsize=1)
def table() -> tuple[int, ...]:
    """Return 2³¹ · 2^(−i/256), rounded to the nearest integer, for i from 0 to 256."""
    steps = (_CONTEXT.power(_TWO, Decimal(31) - Decimal(i) / Decimal(256)) for i in range(257))
    return tuple(int(value + Decimal("0.5")) for value in steps)


def exp2_down(scale: int, y: int) -> int:
    """Return scale · 2⁻ʸ for y in units of 2⁻²⁴."""
    whole, i, between = y >> 24, y >> 16 & 255, y & 65535
    entries = table()
    chord = entries[i] - ((entries[i] - entries[i + 1]) * between >> 16)
    return scale * chord >> 31 + whole


def exp_down(scale: int, u: int) -> int:
    """Return scale · e⁻ᵘ for u in units of 2⁻³⁴, capped at `EXP_MAX`."""
    return exp2_down(scale, (min(u, EXP_MAX) >> 8) * _LOG2_E >> 32)


def rate_code(rate: int, scale: int) -> int:
    """Return −ln(rate/scale) in units of 2⁻¹⁸: the largest code whose rate is not below `rate`."""
    low, high = 0, CODE_MAX
    while low < high:
        middle = (low + high + 1) // 2
        if exp_down(scale, middle << 16) >= rate:
            low = middle
        else:
            high = middle - 1
    return low


def log2(n: int) -> int:
    """Return log₂ n in units of 2⁻²⁴: the largest value whose power of two is at most n, for n up
    to 2⁶¹.
    """
    up = 61 - (n - 1).bit_length()
    low, high = 0, 1 << 24  # the smallest octaves below 2⁶¹
    while low < high:
        middle = (low + high) // 2
        if exp2_down(1 << 61, middle) <= n << up:
            high = middle
        else:
            low = middle + 1
    return (61 - up << 24) - low


def price_code(price: int) -> int:
    """Return the code nearest to a price in units of 2⁻³⁴ s."""
    return min((price + (1 << 15)) >> 16, CODE_MAX)


def part(a: int, f: int) -> int:
    """Return the product a · f, rounded down, for a fraction f in units of 2⁻³²."""
    return a * f >> 32


def power(f: int, n: int) -> int:
    """Return fⁿ for a fraction f by repeated squaring, with each product rounded down."""
    found = ONE
    while n:
        if n & 1:
            found = part(found, f)
        f, n = part(f, f), n >> 1
    return found


def log_one_plus(f: int) -> int:
    """Return ln(1 + f) in units of 2⁻³⁴ from four terms of a series in z = f/(2 + f). The series is
    2 (z + z³/3 + z⁵/5 + z⁷/7).

    2 + f is cut to 2⁻³⁰ before it divides; each term is rounded down.
    """
    z = (f << 30) // (2 * ONE + f >> 2)
    square = part(z, z)
    inner = part(square, ONE // 3 + part(square, ONE // 5 + square // 7))
    return z + part(z, inner) << 3


def one_less_exp(u: int) -> int:
    """Return 1 − e⁻ᵘ in units of 2⁻³² for u in units of 2⁻³⁴. Below 1/16, four terms of the series
    are used.
    """
    if u >= 1 << 30:
        return ONE - exp_down(ONE, u)
    f = u >> 2
    rest = ONE - f // 4
    rest = ONE - part(f, rest) // 3
    rest = ONE - part(f, rest) // 2
    return part(f, rest)


def exp_less_one(u: int) -> int:
    """Return eᵘ − 1 in units of 2⁻³² for u in units of 2⁻³⁴. Below 1/16, four terms of the series
    are used.
    """
    if u >= 1 << 30:
        e = (u >> 8) * _LOG2_E >> 32
        return exp2_down(1 << 61, (61 - 32 << 24) - e) - ONE
    f = u >> 2
    more = ONE + f // 4
    more = ONE + part(f, more) // 3
    more = ONE + part(f, more) // 2
    return part(f, more)
