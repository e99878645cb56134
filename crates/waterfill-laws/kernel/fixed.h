/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Fixed-point arithmetic for the laws' fixed-point versions, which run where there is no floating point.
 *
 * It uses integer types only: no signed division, no 128-bit integers, no call that is not inlined, and loops of
 * fixed length. A number is an integer times the power of two that its comment gives. Where a product could exceed
 * 64 bits, a comment counts its bits.
 *
 *   scale   used for
 *   ------  -----------------------------------------------------------------------------------
 *   2^-18   a price or a logarithm of a rate on the wire: 23 bits, so 0 .. 32 (maxnet-2007 section V)
 *   2^-32   a fraction in [0, 1]
 *   2^-34   prices in seconds, and exponents, in memory
 *   2^-62   a fine fraction in [0, 1]
 *
 * The exponential
 *
 * e^-u = 2^-k 2^-f, where k + f = u log2 e. 2^-f is interpolated in a table of 257 entries. The chord lies above the
 * curve by at most (ln 2 / 256)^2 / 8 = 9.2 10^-7 of the value, and rounding adds less than 10^-7 for u up to 44. So a
 * result is within 1.1 10^-6 of the true value, plus the truncation to an integer. It never rises with u. The logarithm
 * of a rate is found by bisection of the same function, so that decoding a code gives the rate that was encoded.
 *
 * The logarithm to base two is found in the same way: its power of two is at most n and within 2^-24 of an octave
 * below n, so the result is within 1.7 10^-6 of the true logarithm (1.1 10^-6 / ln 2, and 2^-24). x^a is
 * 2^(a log2 x). Where 1 is added or subtracted (e^-u, 1 + f), series keep the digits of a small argument.
 */
#ifndef WATERFILL_FIXED_H
#define WATERFILL_FIXED_H

/* The includer provides __u32, __s64 and __u64: vmlinux.h in a kernel program, the shim on a host. */

/* Declaration of functions; an includer may define it, for example as `static __always_inline`. */
#ifndef FIXED_INLINE
#define FIXED_INLINE static inline
#endif

/* Fractional bits on the wire, and additional fractional bits in memory. */
#define FIXED_CODE_BITS 18
#define FIXED_EXTRA_BITS 16
/* The 24-bit field of both MaxNets: a flag (1 = start rate) and 23 bits of value. */
#define FIXED_FLAG (1u << 23)
#define FIXED_CODE_MAX ((1u << 23) - 1)
/* One, as a fraction and as a fine fraction. */
#define FIXED_ONE (1ull << 32)
#define FIXED_FINE_ONE (1ull << 62)
/* The largest exponent: 2^62 e^-44 is 0; and the exponent of two stays below 64. */
#define FIXED_EXP_MAX (44ull << 34)

/* 2^31 2^(-i/256), to the nearest. */
static const __u32 fixed_exp2[257] = {
	0x80000000, 0x7fa765ad, 0x7f4f08ae, 0x7ef6e8da, 0x7e9f0606, 0x7e476009, 0x7deff6b6, 0x7d98c9e6,
	0x7d41d96e, 0x7ceb2523, 0x7c94acde, 0x7c3e7073, 0x7be86fba, 0x7b92aa88, 0x7b3d20b6, 0x7ae7d21a,
	0x7a92be8b, 0x7a3de5df, 0x79e947ef, 0x7994e492, 0x7940bb9e, 0x78ecccec, 0x78991854, 0x78459dac,
	0x77f25cce, 0x779f5590, 0x774c87cc, 0x76f9f359, 0x76a7980f, 0x765575c8, 0x76038c5b, 0x75b1dba2,
	0x75606374, 0x750f23ab, 0x74be1c20, 0x746d4cac, 0x741cb528, 0x73cc556d, 0x737c2d55, 0x732c3cba,
	0x72dc8374, 0x728d015d, 0x723db650, 0x71eea226, 0x719fc4b9, 0x71511de4, 0x7102ad80, 0x70b47368,
	0x70666f76, 0x7018a185, 0x6fcb096f, 0x6f7da710, 0x6f307a41, 0x6ee382de, 0x6e96c0c3, 0x6e4a33c9,
	0x6dfddbcc, 0x6db1b8a8, 0x6d65ca38, 0x6d1a1057, 0x6cce8ae1, 0x6c8339b2, 0x6c381ca6, 0x6bed3399,
	0x6ba27e65, 0x6b57fce9, 0x6b0daeff, 0x6ac39485, 0x6a79ad56, 0x6a2ff94f, 0x69e6784d, 0x699d2a2c,
	0x69540ec9, 0x690b2601, 0x68c26fb1, 0x6879ebb6, 0x683199ed, 0x67e97a34, 0x67a18c68, 0x6759d065,
	0x6712460b, 0x66caed35, 0x6683c5c3, 0x663ccf92, 0x65f60a7f, 0x65af766a, 0x6569132f, 0x6522e0ad,
	0x64dcdec3, 0x64970d4f, 0x64516c2e, 0x640bfb41, 0x63c6ba64, 0x6381a978, 0x633cc85b, 0x62f816eb,
	0x62b39509, 0x626f4292, 0x622b1f66, 0x61e72b65, 0x61a3666d, 0x615fd05e, 0x611c6919, 0x60d9307b,
	0x60962665, 0x60534ab7, 0x60109d51, 0x5fce1e12, 0x5f8bccdb, 0x5f49a98c, 0x5f07b405, 0x5ec5ec26,
	0x5e8451d0, 0x5e42e4e3, 0x5e01a53f, 0x5dc092c7, 0x5d7fad59, 0x5d3ef4d7, 0x5cfe6923, 0x5cbe0a1c,
	0x5c7dd7a4, 0x5c3dd19c, 0x5bfdf7e5, 0x5bbe4a61, 0x5b7ec8f2, 0x5b3f7377, 0x5b0049d4, 0x5ac14bea,
	0x5a82799a, 0x5a43d2c6, 0x5a055751, 0x59c7071c, 0x5988e209, 0x594ae7fb, 0x590d18d3, 0x58cf7474,
	0x5891fac1, 0x5854ab9b, 0x581786e6, 0x57da8c83, 0x579dbc57, 0x57611642, 0x57249a29, 0x56e847ef,
	0x56ac1f75, 0x567020a0, 0x56344b52, 0x55f89f70, 0x55bd1cdb, 0x5581c378, 0x55469329, 0x550b8bd4,
	0x54d0ad5a, 0x5495f7a1, 0x545b6a8b, 0x542105fd, 0x53e6c9da, 0x53acb607, 0x5372ca68, 0x533906e0,
	0x52ff6b55, 0x52c5f7aa, 0x528cabc3, 0x52538786, 0x521a8ad7, 0x51e1b59a, 0x51a907b4, 0x5170810b,
	0x51382182, 0x50ffe8fe, 0x50c7d765, 0x508fec9c, 0x50582888, 0x50208b0e, 0x4fe91413, 0x4fb1c37c,
	0x4f7a9930, 0x4f439514, 0x4f0cb70c, 0x4ed5ff00, 0x4e9f6cd4, 0x4e69006e, 0x4e32b9b4, 0x4dfc988c,
	0x4dc69cdd, 0x4d90c68b, 0x4d5b157e, 0x4d25899c, 0x4cf022ca, 0x4cbae0ef, 0x4c85c3f1, 0x4c50cbb8,
	0x4c1bf829, 0x4be7492b, 0x4bb2bea5, 0x4b7e587e, 0x4b4a169c, 0x4b15f8e6, 0x4ae1ff43, 0x4aae299b,
	0x4a7a77d4, 0x4a46e9d6, 0x4a137f88, 0x49e038d0, 0x49ad1598, 0x497a15c4, 0x4947393f, 0x49147fee,
	0x48e1e9ba, 0x48af768a, 0x487d2646, 0x484af8d6, 0x4818ee22, 0x47e70611, 0x47b5408c, 0x47839d7b,
	0x47521cc6, 0x4720be55, 0x46ef8210, 0x46be67e0, 0x468d6fae, 0x465c9961, 0x462be4e2, 0x45fb521a,
	0x45cae0f2, 0x459a9152, 0x456a6323, 0x453a564d, 0x450a6abb, 0x44daa054, 0x44aaf702, 0x447b6ead,
	0x444c0740, 0x441cc0a3, 0x43ed9ac0, 0x43be957f, 0x438fb0cb, 0x4360ec8d, 0x433248ae, 0x4303c518,
	0x42d561b4, 0x42a71e6c, 0x4278fb2b, 0x424af7da, 0x421d1462, 0x41ef50ae, 0x41c1aca7, 0x41942839,
	0x4166c34c, 0x41397dcc, 0x410c57a2, 0x40df50b8, 0x40b268fa, 0x4085a051, 0x4058f6a8, 0x402c6be9,
	0x40000000,
};

/*
 * Returns 1 if a >= b, otherwise 0; both less than 2^63. There is no branch, and the asm keeps the compiler from making
 * one: the BPF verifier would follow both sides in every iteration of a loop. Callers multiply by the result, because
 * the verifier treats a mask like a branch.
 */
FIXED_INLINE __u64 fixed_at_least(__u64 a, __u64 b)
{
	__u64 at_least = ((a - b) >> 63) ^ 1;

	__asm__("" : "+r"(at_least));
	return at_least;
}

/* Returns a f for a fraction f <= 1. */
FIXED_INLINE __u64 fixed_part(__u64 a, __u64 f)
{
	return (a >> 32) * f + (((a & 0xffffffff) * f) >> 32); /* each < 2^64, as f <= 2^32, and the sum is at most a */
}

/* Returns a f for a fine fraction f <= 1, and 32 more fractional bits in `low`; a < 2^62. */
FIXED_INLINE __u64 fixed_fine_part(__u64 a, __u64 f, __u32 *low)
{
	__u64 ah = a >> 32, al = a & 0xffffffff;
	__u64 fh = f >> 32, fl = f & 0xffffffff;
	__u64 middle = ah * fl + al * fh + ((al * fl) >> 32); /* 30 + 32; 32 + 31 bits; 32: less than 2^64 */

	*low = (__u32)(middle << 2);
	return ((ah * fh) << 2) + (middle >> 30); /* 30 + 31 + 2 bits, and the sum is at most a */
}

/* Returns a n / d without overflow of a n. The caller ensures that the quotient fits and that (a % d) n < 2^64. */
FIXED_INLINE __u64 fixed_scale(__u64 a, __u64 n, __u64 d)
{
	return a / d * n + a % d * n / d;
}

/* Returns n 2^bits / d by long division, for n 2^bits >= 2^64; d <= 2^62, and (n / d + 1) 2^bits must fit. */
FIXED_INLINE __u64 fixed_divide(__u64 n, __u64 d, __u32 bits)
{
	__u64 quotient = n / d;
	__u64 remainder = n % d;
	__u32 i;

	for (i = 0; i < bits; i++) {
		__u64 bit;

		remainder <<= 1;
		bit = fixed_at_least(remainder, d);
		remainder -= d * bit;
		quotient = (quotient << 1) + bit;
	}
	return quotient;
}

/* Returns n / d as a fraction, at most 1; below 1, n < 2^32 as d is. */
FIXED_INLINE __u64 fixed_fraction(__u64 n, __u32 d)
{
	return n < d ? (n << 32) / d : FIXED_ONE;
}

/* Returns `from` moved towards `to` by a fraction of the distance. */
FIXED_INLINE __u64 fixed_towards(__u64 from, __u64 to, __u64 fraction)
{
	if (to >= from)
		return from + fixed_part(to - from, fraction);
	return from - fixed_part(from - to, fraction);
}

/* Returns scale 2^-y, y in 2^-24 and below 64; scale < 2^62. */
FIXED_INLINE __u64 fixed_exp2_down(__u64 scale, __u64 y)
{
	__u32 i = (y >> 16) & 0xff;
	__u32 between = y & 0xffff;
	__u64 m = fixed_exp2[i];
	__u64 product;

	m -= ((m - fixed_exp2[i + 1]) * between) >> 16;
	product = (((scale >> 32) * m) << 1) + (((scale & 0xffffffff) * m) >> 31); /* 30 + 32 + 1 bits; 32 + 32 */
	return product >> (y >> 24);
}

/* Returns 2^e in 2^-bits, e in 2^-24, rounded down; bits + e below 61. */
FIXED_INLINE __u64 fixed_exp2_up(__u64 e, __u32 bits)
{
	return fixed_exp2_down(1ull << 61, ((61ull - bits) << 24) - e);
}

/* Returns scale e^-u, u in 2^-34 and at most FIXED_EXP_MAX; scale < 2^62. */
FIXED_INLINE __u64 fixed_exp_within(__u64 scale, __u64 u)
{
	return fixed_exp2_down(scale, ((u >> 8) * 1549082005) >> 32); /* log2 e in 2^-30: 32 + 31 bits; y in 2^-24 */
}

/* Returns scale e^-u for any u in 2^-34; scale < 2^62. */
FIXED_INLINE __u64 fixed_exp(__u64 scale, __u64 u)
{
	return fixed_exp_within(scale, u < FIXED_EXP_MAX ? u : FIXED_EXP_MAX);
}

/* Returns 1 - e^-u as a fraction, u in 2^-34: within 2 10^-5 of itself, and within 3 10^-7 of it below u = 1/16. */
FIXED_INLINE __u64 fixed_one_less_exp(__u64 u)
{
	__u64 f = u >> 2; /* 2^-32 */
	__u64 rest;

	if (u >= 1ull << 30)
		return FIXED_ONE - fixed_exp(FIXED_ONE, u);
	/* u (1 - u/2 (1 - u/3 (1 - u/4))); the next term is u^4/120. */
	rest = FIXED_ONE - f / 4;
	rest = FIXED_ONE - fixed_part(f, rest) / 3;
	rest = FIXED_ONE - fixed_part(f, rest) / 2;
	return fixed_part(f, rest);
}

/* Returns e^u - 1 in 2^-32, u in 2^-34 and below 8: within 4 10^-5 of itself, and within 3 10^-7 of it below u = 1/16. */
FIXED_INLINE __u64 fixed_exp_less_one(__u64 u)
{
	__u64 f = u >> 2; /* 2^-32 */
	__u64 more;

	if (u >= 1ull << 30)
		return fixed_exp2_up(((u >> 8) * 1549082005) >> 32 /* 29 + 31 bits; 2^-24 */, 32) - FIXED_ONE;
	/* u (1 + u/2 (1 + u/3 (1 + u/4))); the next term is u^4/120. */
	more = FIXED_ONE + f / 4;
	more = FIXED_ONE + ((f * more) >> 32) / 3; /* 28 + 33 bits */
	more = FIXED_ONE + ((f * more) >> 32) / 2;
	return (f * more) >> 32;
}

/* Returns ln(1 + f) in 2^-34 for a fraction f <= 1: within 2 10^-5 of itself, and within 10^-9 of it below f = 1/8. */
FIXED_INLINE __u64 fixed_log_one_plus(__u64 f)
{
	__u64 z = (f << 30) / ((2 * FIXED_ONE + f) >> 2); /* f / (2 + f) in 2^-32, at most 1/3: 63 bits; 33 */
	__u64 square = fixed_part(z, z);
	__u64 sum;

	/* 2 (z + z^3/3 + z^5/5 + z^7/7); the next term is 2 z^9/9. */
	sum = FIXED_ONE / 5 + square / 7;
	sum = FIXED_ONE / 3 + fixed_part(square, sum);
	sum = fixed_part(square, sum);
	return (z + fixed_part(z, sum)) << 3;
}

/* Returns f^n for a fraction f. */
FIXED_INLINE __u64 fixed_power(__u64 f, __u32 n)
{
	__u64 power = FIXED_ONE;
	__u32 i;

	for (i = 0; i < 32; i++) {
		/* f where n has this bit, otherwise 1: without a branch. */
		power = fixed_part(power, FIXED_ONE - (FIXED_ONE - f) * (n >> i & 1));
		f = fixed_part(f, f);
	}
	return power;
}

/* Returns -ln(rate/scale) in 2^-18: the largest code whose rate is not below `rate`; rate < 2^63. */
FIXED_INLINE __u32 fixed_rate_code(__u64 rate, __u64 scale)
{
	__u64 code = 0;
	__u32 bit;

	for (bit = 1u << 22; bit; bit >>= 1) {
		__u64 larger = code + bit; /* an exponent of 32 at most */

		code += bit * fixed_at_least(fixed_exp_within(scale, larger << FIXED_EXTRA_BITS), rate);
	}
	return (__u32)code;
}

/* Returns log2 n in 2^-24, n from 1 to 2^61: the largest whose power of two, as fixed_exp2_down() has it, is at most n. */
FIXED_INLINE __u64 fixed_log2(__u64 n)
{
	__u64 log = 61ull << 24;
	__u64 down = 0; /* log2(2^61 / n), once n is above 2^60 */
	__u64 shift, bit;

	for (shift = 32; shift; shift >>= 1) {
		__u64 small = fixed_at_least(1ull << (61 - shift), n);

		n <<= shift * small;
		log -= (shift * small) << 24;
	}
	for (bit = 1u << 24; bit; bit >>= 1)
		down += bit * fixed_at_least(fixed_exp2_down(1ull << 61, down + bit - 1), n + 1);
	return log - down;
}

/* Returns the code of a price in 2^-34 s, rounded to nearest; saturates. */
FIXED_INLINE __u32 fixed_price_code(__u64 price)
{
	__u64 code = (price + (1u << (FIXED_EXTRA_BITS - 1))) >> FIXED_EXTRA_BITS;

	return code < FIXED_CODE_MAX ? (__u32)code : FIXED_CODE_MAX;
}

/* Returns D^-1(x) = -T ln(x/x_max) in 2^-34 s, T in ms. [maxnet-2007:eq8] */
FIXED_INLINE __u64 fixed_price(__u64 rate, __u64 x_max, __u32 t)
{
	__u64 code = fixed_rate_code(rate, x_max);

	return ((code << FIXED_EXTRA_BITS) * t + 500) / 1000; /* 39 + 17 bits */
}

#endif
