"""Floating-point wire codes, as the text of kernel/float.h specifies them.

A code has 24 bits: itself below 2²⁰, above that 19 bits after a leading one and an exponent of 5
bits. It is the nearest; a number between two is rounded up. A factor is a quotient as a mantissa
of up to 24 bits, in the lower half of a word, times 2⁻ˢ, with 64 + s in the upper half.
"""

from __future__ import annotations

from validation.certificates.fixed.arithmetic import ONE

_FRACTION_BITS = 19
_LEADING = 1 << _FRACTION_BITS
_CODE_MAX = (1 << 24) - 1
_MANTISSA_BITS = 23
PRODUCT_MAX = 1 << 62


def code(number: int) -> int:
    """Return the wire code nearest to an integer, up to the largest code."""
    exponent = max(number.bit_length() - _FRACTION_BITS - 1, 0)
    mantissa = (2 * number >> exponent) + 1 >> 1
    # A mantissa that is rounded up to the next power of two is the next exponent's smallest.
    return min((exponent << _FRACTION_BITS) + mantissa, _CODE_MAX)


def parts(of: int) -> tuple[int, int]:
    """Return the mantissa and exponent of a code."""
    exponent, fraction = divmod(of, _LEADING)
    return (fraction | _LEADING, exponent - 1) if exponent else (fraction, 0)


def number(of: int) -> int:
    """Return the integer that a code represents."""
    mantissa, exponent = parts(of)
    return mantissa << exponent


def factor(n: int, d: int) -> int:
    """Return n/d as a factor (mantissa and exponent), or 0 if n or d is 0. The mantissa is rounded
    down.
    """
    if not n or not d:
        return 0
    s = _MANTISSA_BITS + d.bit_length() - n.bit_length()
    divisor = (d << 64 - d.bit_length()) >> 24
    return (64 + s << 32) + ((n << 64 - n.bit_length()) // divisor >> 1)


def product(p: int, by: int, up: int = 0) -> int:
    """Return p · 2ᵘᵖ times a factor, rounded down and at most 2⁶²."""
    mantissa, shift = by & 0xFFFFFFFF, (by >> 32) - 64 - up
    whole = p * mantissa
    return min(whole >> shift if shift >= 0 else whole << -shift, PRODUCT_MAX)


def fraction(n: int, d: int) -> int:
    """Return n/d in units of 2⁻³², at most 1. Both numbers are first shortened so that d has at
    most 32 bits.
    """
    cut = max(d.bit_length() - 32, 0)
    return ONE if n >= d or n >> cut >= d >> cut else (n >> cut << 32) // (d >> cut)
