/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Numbers with an exponent, for values on the wire and for quotients by which every packet is multiplied.
 *
 * A code has 24 bits: an exponent of 5 and a fraction of 19. Below 2^20 it is the number itself; above, the number is the
 * fraction with a leading one, times 2^(exponent - 1), and up to 2^50. Codes of larger numbers are larger, so they are
 * compared as they are. A code is the nearest one, within 2^-20 of the number.
 *
 * A factor is a quotient as a mantissa of 22 to 24 bits times a power of two: within 2^-22 below the quotient.
 *
 * The search for a number's size has no branch, because the BPF verifier would follow both sides of each.
 */
#ifndef WATERFILL_FLOAT_H
#define WATERFILL_FLOAT_H

#include "fixed.h"

#define FLOAT_FRACTION_BITS 19
#define FLOAT_CODE_MAX ((1u << 24) - 1)
/* The largest product. */
#define FLOAT_PRODUCT_MAX (1ull << 62)

/* Returns the number of bits of v, without a branch (fixed_at_least() says why). */
FIXED_INLINE __u32 float_bits(__u64 v)
{
	__u64 more, bits, upper = v >> 32;

	__asm__("" : "+r"(upper)); /* the compiler would branch where it knows the range */
	more = fixed_at_least(upper, 1) * 32;
	bits = more;
	v >>= more;
	more = fixed_at_least(v, 1u << 16) * 16;
	bits += more;
	v >>= more;
	more = fixed_at_least(v, 1u << 8) * 8;
	bits += more;
	v >>= more;
	more = fixed_at_least(v, 1u << 4) * 4;
	bits += more;
	v >>= more;
	more = fixed_at_least(v, 1u << 2) * 2;
	bits += more;
	v >>= more;
	more = fixed_at_least(v, 1u << 1);
	bits += more;
	v >>= more;
	return (__u32)(bits + v);
}

/* Returns the nearest 24-bit code of a number; saturates. */
FIXED_INLINE __u32 float_code(__u64 v)
{
	__u32 bits = float_bits(v);
	__u64 code = v;

	if (bits > FLOAT_FRACTION_BITS + 1) {
		__u32 shift = bits - FLOAT_FRACTION_BITS - 1;

		/* A fraction that is rounded up to 2^20 carries into the exponent. */
		code = ((v >> (shift - 1)) + 1) >> 1;
		code += (__u64)shift << FLOAT_FRACTION_BITS;
	}
	return code < FLOAT_CODE_MAX ? (__u32)code : FLOAT_CODE_MAX;
}

/* Returns a code's number without its exponent: 20 bits. */
FIXED_INLINE __u32 float_mantissa(__u32 code)
{
	__u32 fraction = code & ((1u << FLOAT_FRACTION_BITS) - 1);

	return code >> FLOAT_FRACTION_BITS ? fraction | 1u << FLOAT_FRACTION_BITS : fraction;
}

/* Returns a code's exponent: 0 .. 30. */
FIXED_INLINE __u32 float_exponent(__u32 code)
{
	__u32 exponent = code >> FLOAT_FRACTION_BITS & 31;

	return exponent ? exponent - 1 : 0;
}

/* Returns n/d, d > 0, as a factor for float_product(): a mantissa of 24 bits, and 64 + s in the upper half. */
FIXED_INLINE __u64 float_factor(__u64 n, __u64 d)
{
	__u32 n_bits = float_bits(n), d_bits = float_bits(d);
	__u64 mantissa;

	if (!n || !d)
		return 0;
	/* 64 bits over 40, the first of both set, are 2^24 .. 2^25. The whole is n/d 2^(24 + d_bits - n_bits). */
	mantissa = (n << ((64 - n_bits) & 63)) / (d << ((64 - d_bits) & 63) >> 24) >> 1;
	return (__u64)(64 + 23 + d_bits - n_bits) << 32 | mantissa;
}

/* Returns p 2^up times a factor, p < 2^40 and up < 2^30; saturates. */
FIXED_INLINE __u64 float_product(__u64 p, __u32 up, __u64 factor)
{
	__u64 mantissa = factor & 0xffffffff;
	__u64 product = p * mantissa; /* 40 + 24 bits */
	__u32 down = (__u32)(factor >> 32);
	__u64 over;

	up += 64;
	if (down < up) {
		up -= down;
		if (up < 62 && product <= FLOAT_PRODUCT_MAX >> up)
			return product << up;
		return product ? FLOAT_PRODUCT_MAX : 0; /* a factor of 0 has any exponent */
	}
	down -= up;
	/* Without branches for the verifier. */
	product = (product >> (down & 63)) * (1 - fixed_at_least(down, 64));
	over = fixed_at_least(product >> 62, 1);
	return product * (1 - over) + FLOAT_PRODUCT_MAX * over;
}

/* Returns n/d as a fraction, at most 1. */
FIXED_INLINE __u64 float_fraction(__u64 n, __u64 d)
{
	__u32 bits = float_bits(d);
	__u32 shift = bits > 32 ? bits - 32 : 0;

	if (n >= d)
		return FIXED_ONE;
	return fixed_fraction(n >> shift, (__u32)(d >> shift));
}

#endif
