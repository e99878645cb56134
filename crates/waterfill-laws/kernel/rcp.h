/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * RCP, fixed-point version.
 *
 * src/protocols/rcp/mod.rs documents the law, its equations and how the papers are read; the tags [rcp-2006:...] are the
 * same in both. This file says how the law is computed without floating point, behind the interface of law.h.
 *
 *
 * Value
 *
 *   3 bytes   -ln(R / 10^15 bit/s) in 2^-18, the code of fixed_rate_code(): 1 .. 2^23 - 1. 0 is "no router wrote", and a
 *             larger code a smaller rate, so that routers keep the maximum.
 *   2 bytes   in data only: the source's RTT, 0 not known. The upper 5 bits are an exponent e, the lower 11 a fraction m:
 *             (1 + m/2^11) 2^e us. A router's decoder is a shift; a step is 0.05 % at most, and rounding is half of it.
 *
 * A receiver copies the rate.
 *
 *
 * Scales
 *
 *   field            scale             range used here          why it fits
 *   ---------------  ----------------  -----------------------  -------------------------------
 *   R                2^-10 bit/s       60 bits                  R <= C
 *   C                bit/s             1 .. 2^50                1.1 Pbit/s; clamped
 *   mean RTT         2^-16 us          10 us .. 2^23 us         39 bits; longer RTTs count as 8.4 s
 *   T                us                10 .. 10^6               20 bits
 *   alpha            10^-3             1 .. 1000                10 bits: R at most doubles in T
 *   beta             10^-3             0 .. 65535               16 bits
 *   first_rate       10^-6             1 .. 10^6                20 bits
 *   r_min            bit/s             13 .. 2^32 - 1           the code ends at 12.7 bit/s
 *   bytes            bytes             0 .. 2^47                clamped
 *   queue            bytes             0 .. 2^38                clamped: 275 GB
 *   RTT times bytes  us bytes          64 bits of a running sum  2^41 bytes in T with the longest RTT
 *   volumes          2^-8 bytes        59 bits                  C times the mean RTT is 2^51 bytes
 *   growth in T      2^-32             0 .. 2^22 and a sign     clamped; at most 1 while T <= mean RTT
 *
 * Where a product could exceed 64 bits, a comment counts its bits.
 *
 *
 * Differences from the law in real numbers
 *
 *   - R is truncated to 2^-10 bit/s with each step and its growth to 2^-32: with the defaults that is a load of
 *     10^-8 of C at an RTT of 0.2 s.
 *   - R on the wire is at most 3.8 10^-6 above R, and e^-u is within 1.1 10^-6 (fixed.h).
 *   - Volumes are in 2^-8 bytes, alpha and beta in thousandths, T in microseconds.
 *   - A source states TCP's smoothed RTT, not the newest one; both have one mean. It is within 0.025 %.
 *   - Many idle intervals are one step by a logarithm that is within 1.7 10^-6 octaves an interval.
 */
#ifndef WATERFILL_RCP_H
#define WATERFILL_RCP_H

#include "law.h"

#define LAW WATERFILL_RCP
#define LAW_FORWARD_BYTES 5
#define LAW_ECHO_BYTES 3
#define LAW_PACED 1
#define LAW_RESTS_WITH_QUEUE 0
#define LAW_REACTION_US(p) ((p)->max_interval)

/* bit/s: the rate of code 0. */
#define RCP_RATE_SCALE_BPS 1000000000000000ull
/* Fractional bits of R and of the mean RTT. */
#define RCP_RATE_BITS 10
#define RCP_RTT_BITS 16
/* Limits of an RTT; the real law's smallest mean is 10 us too. */
#define RCP_RTT_MIN_US 10
#define RCP_RTT_MAX_US (1u << 23)
#define RCP_CAPACITY_MAX (1ull << 50)
#define RCP_BYTES_MAX (1ull << 47)
#define RCP_QUEUE_MAX (1ull << 38)
/* Largest growth in T, 2^-32: more than from R_min to C at 100 Gbit/s. */
#define RCP_GROWTH_MAX (1ull << 54)
/* Fraction's bits of an RTT on the wire. */
#define RCP_RTT_CODE_BITS 11

enum rcp_average { RCP_TRAFFIC, RCP_RELUCTANT };

struct law_params {
	__u32 alpha;	    /* 10^-3 */
	__u32 beta;	    /* 10^-3 */
	__u32 first_rate;   /* 10^-6 of C */
	__u32 max_interval; /* us */
	__u32 first_rtt;    /* us */
	__u32 r_min;	    /* bit/s */
	__u32 average;	    /* enum rcp_average */
	__u32 reserved;
};

struct law_link {
	__u64 rate;	    /* 2^-10 bit/s */
	__u64 mean_rtt;	    /* 2^-16 us */
	__u64 capacity;	    /* bit/s */
	__u64 arrival_rate; /* bit/s of the last T */
	__u32 code;	    /* the value that packets get */
	__u32 interval;	    /* us: T, until the next tick */
	__u32 measured;	    /* 1: the mean RTT is more than a guess */
	__u32 alpha;	    /* 10^-3 */
	__u32 beta;	    /* 10^-3 */
	__u32 max_interval; /* us */
	__u32 rate_min;	    /* bit/s */
	__u32 average;	    /* enum rcp_average */
};

struct law_sums {
	__u64 bytes;
	__u64 timed_bytes; /* of packets with an RTT */
	__u64 rtt_bytes;   /* us times bytes */
};

struct law_cpu {
	struct law_sums sums;
};

struct law_source {
	__u64 rate;	/* bit/s; 0: no router has answered yet */
	__u32 code;	/* the value last received */
	__u32 rtt_code; /* the RTT to state */
	__u32 packet;	/* bytes */
	__u32 reduced;	/* 1: the rate is less than the code's, until the next echo */
};

struct law_receiver {
	__u32 code;
	__u32 reserved;
};

/* Returns the code of an RTT in us, rounded to nearest; 0 if it is not known. The smallest code stands for 2 us. */
FIXED_INLINE __u32 rcp_rtt_code(__u32 rtt_us)
{
	__u64 rtt = rtt_us < RCP_RTT_MAX_US ? rtt_us : RCP_RTT_MAX_US;
	__u64 rest;
	__u32 exponent = 0;
	__u32 step;

	if (!rtt)
		return 0;
	if (rtt < 2)
		rtt = 2;
	rest = rtt;
	for (step = 16; step; step >>= 1) {
		__u64 larger = fixed_at_least(rest, 1ull << step);

		rest >>= step * larger;
		exponent += step * (__u32)larger;
	}
	/* From 2^11 to 2^12; at the upper end it carries into the exponent. */
	rest = (((rtt << (RCP_RTT_CODE_BITS + 1)) >> exponent) + 1) >> 1;
	return (exponent << RCP_RTT_CODE_BITS) + (__u32)rest - (1u << RCP_RTT_CODE_BITS);
}

/* Returns the RTT of a code in us. */
FIXED_INLINE __u64 rcp_rtt(__u32 code)
{
	__u64 one = 1u << RCP_RTT_CODE_BITS;
	__u64 rtt = ((one + (code & (one - 1))) << (code >> RCP_RTT_CODE_BITS & 31)) >> RCP_RTT_CODE_BITS;

	return rtt < RCP_RTT_MAX_US ? rtt : RCP_RTT_MAX_US;
}

/* ------------------------------------------------------------------ router */

/* Sets R within [R_min, C], and its code. */
FIXED_INLINE void rcp_set_rate(struct law_link *link, __u64 rate)
{
	__u64 max = link->capacity << RCP_RATE_BITS;
	__u64 min = (__u64)link->rate_min << RCP_RATE_BITS;

	rate = rate < max ? rate : max;
	link->rate = rate > min ? rate : min;
	link->code = fixed_rate_code(link->rate >> RCP_RATE_BITS, RCP_RATE_SCALE_BPS);
	if (!link->code)
		link->code = 1;
}

/* Sets T: the mean RTT, or less. */
FIXED_INLINE void rcp_set_interval(struct law_link *link)
{
	__u64 interval = link->mean_rtt >> RCP_RTT_BITS;

	link->interval = interval < link->max_interval ? (__u32)interval : link->max_interval;
}

/* Sets the mean RTT within its limits. */
FIXED_INLINE void rcp_set_mean_rtt(struct law_link *link, __u64 mean)
{
	__u64 min = (__u64)RCP_RTT_MIN_US << RCP_RTT_BITS;
	__u64 max = (__u64)RCP_RTT_MAX_US << RCP_RTT_BITS;

	mean = mean > min ? mean : min;
	link->mean_rtt = mean < max ? mean : max;
}

/* Returns a / b as a fraction, at most 1; b <= 2^60. */
FIXED_INLINE __u64 rcp_fraction(__u64 a, __u64 b)
{
	return a < b ? fixed_divide(a, b, 32) : FIXED_ONE;
}

/* Moves the mean RTT towards that of T's bytes, by T/mean. [rcp-2006:d] */
FIXED_INLINE void rcp_average_rtt(struct law_link *link, const struct law_sums *sums)
{
	__u64 sample, gain;

	if (!sums->timed_bytes)
		return;
	/* At most 2^23 us, as no RTT is longer; 16 bits more. A damaged sum is stopped by the limits. */
	sample = sums->rtt_bytes / sums->timed_bytes;
	if (sample >= RCP_RTT_MAX_US || sums->timed_bytes >> 62)
		sample = (__u64)RCP_RTT_MAX_US << RCP_RTT_BITS;
	else
		sample = fixed_divide(sums->rtt_bytes, sums->timed_bytes, RCP_RTT_BITS);
	if (!link->measured) {
		link->measured = 1;
		rcp_set_mean_rtt(link, sample);
		return;
	}
	gain = rcp_fraction((__u64)link->interval << RCP_RTT_BITS, link->mean_rtt);
	if (link->average == RCP_RELUCTANT && sample < link->mean_rtt) {
		gain = fixed_part(gain, rcp_fraction(link->rate, link->capacity << RCP_RATE_BITS));
		gain = fixed_part(gain, rcp_fraction(sample, link->mean_rtt));
	}
	rcp_set_mean_rtt(link, fixed_towards(link->mean_rtt, sample, gain));
}

/* Returns |(T/d) (alpha (C - y) - beta q/d) / C| in 2^-32, and whether it is negative. Multiplied by T, the numerator is
 * alpha (C T - arrived) - beta q T/d, and the denominator C d. T exceeds d only where d has just fallen. [rcp-2006:R]
 */
FIXED_INLINE __u64 rcp_growth(const struct law_link *link, __u64 bytes, __u64 queue, int *negative)
{
	__u64 mean = link->mean_rtt >> (RCP_RTT_BITS - 8); /* 2^-8 us: 12 to 31 bits */
	__u64 arrived = (bytes < RCP_BYTES_MAX ? bytes : RCP_BYTES_MAX) << 8;
	__u64 waiting = (queue < RCP_QUEUE_MAX ? queue : RCP_QUEUE_MAX) << 8;
	__u64 supply = fixed_scale(link->capacity, (__u64)link->interval << 8, 8000000); /* 28 + 28; 23 + 28 bits */
	__u64 off = supply > arrived ? supply - arrived : arrived - supply;
	__u64 up = fixed_scale(off, link->alpha, 1000); /* 46 + 16; 10 + 16 bits */
	__u64 down = fixed_scale(waiting, (__u64)link->interval << 8, mean); /* 46 + 28 - 11; 31 + 28 bits */
	__u64 whole = fixed_scale(link->capacity, mean, 8000000); /* 28 + 31; 23 + 31 bits */
	__u64 net;

	down = fixed_scale(down < 1ull << 56 ? down : 1ull << 56, link->beta, 1000); /* 46 + 16 bits */
	if (supply < arrived) {
		down += up; /* 62 bits each */
		up = 0;
	}
	*negative = down > up;
	net = down > up ? down - up : up - down;
	if (!whole || net / whole >= RCP_GROWTH_MAX >> 32)
		return RCP_GROWTH_MAX;
	return fixed_divide(net, whole, 32);
}

/* Sets R to R + R g, or R - R g, within its limits. */
FIXED_INLINE void rcp_grow(struct law_link *link, __u64 growth, int negative)
{
	__u64 max = link->capacity << RCP_RATE_BITS;
	__u64 whole = growth >> 32;
	__u64 change = fixed_part(link->rate, growth & 0xffffffff);

	if (negative)
		rcp_set_rate(link, whole ? 0 : link->rate - change);
	else if (link->rate > max / (whole + 1))
		rcp_set_rate(link, max);
	else
		rcp_set_rate(link, link->rate * (whole + 1) + change); /* 60 bits each */
}

FIXED_INLINE void law_link_set(struct law_link *link, const struct law_params *p, __u64 capacity, __u32 target)
{
	int fresh = !link->interval;

	if (capacity > RCP_CAPACITY_MAX)
		capacity = RCP_CAPACITY_MAX;
	if (target && target < 1000000)
		capacity = fixed_scale(capacity, target, 1000000); /* 31 + 20; 20 + 20 bits */
	link->capacity = capacity ? capacity : 1;
	link->alpha = p->alpha < 1000 ? p->alpha : 1000;
	link->beta = p->beta < 65535 ? p->beta : 65535;
	link->max_interval = p->max_interval < 1000000 ? p->max_interval : 1000000;
	if (link->max_interval < RCP_RTT_MIN_US)
		link->max_interval = RCP_RTT_MIN_US;
	link->rate_min = p->r_min < link->capacity ? p->r_min : (__u32)link->capacity;
	link->average = p->average;
	if (fresh) {
		rcp_set_mean_rtt(link, (__u64)p->first_rtt << RCP_RTT_BITS);
		link->rate = fixed_scale(link->capacity << RCP_RATE_BITS, p->first_rate, 1000000); /* 41 + 20 bits */
		rcp_set_interval(link);
	}
	rcp_set_rate(link, link->rate);
}

FIXED_INLINE __u32 law_interval(const struct law_link *link)
{
	return link->interval;
}

FIXED_INLINE void law_tick(struct law_link *link, const struct law_sums *sums, __u64 queue)
{
	__u64 arrived = sums->bytes < RCP_BYTES_MAX ? sums->bytes : RCP_BYTES_MAX;
	__u64 growth;
	int negative;

	rcp_average_rtt(link, sums);
	growth = rcp_growth(link, arrived, queue, &negative);
	rcp_grow(link, growth, negative);
	/* 40 + 23; 20 + 23 bits. */
	link->arrival_rate = fixed_scale(arrived < 1ull << 40 ? arrived : 1ull << 40, 8000000, link->interval);
	rcp_set_interval(link);
}

/* R (1 + g)^n is 2^(n log2(1 + g)) of R. */
FIXED_INLINE void law_idle(struct law_link *link, __u64 intervals, __u64 queue)
{
	__u64 max = link->capacity << RCP_RATE_BITS;
	__u64 n = intervals < 1u << 30 ? intervals : 1u << 30;
	__u64 growth, octaves, whole, rate;
	int negative;

	if (!n)
		return;
	link->arrival_rate = 0;
	growth = rcp_growth(link, 0, queue, &negative);
	if (negative && growth >= FIXED_ONE) {
		rcp_set_rate(link, 0);
		return;
	}
	octaves = fixed_log2(negative ? FIXED_ONE - growth : FIXED_ONE + growth); /* 2^-24, and 32 octaves */
	if (negative) {
		octaves = n * ((32ull << 24) - octaves); /* 30 + 29 bits */
		rcp_set_rate(link, octaves < 60ull << 24 ? fixed_exp2_down(link->rate, octaves) : 0);
		return;
	}
	octaves = n * (octaves - (32ull << 24)); /* 30 + 29 bits */
	if (octaves >= 60ull << 24) {
		rcp_set_rate(link, max);
		return;
	}
	whole = (octaves >> 24) + 1;
	rate = fixed_exp2_down(link->rate, (whole << 24) - octaves);
	rcp_set_rate(link, rate < max >> whole ? rate << whole : max);
}

FIXED_INLINE int law_syn_needs_lock(const struct law_link *link __attribute__((unused)))
{
	return 0;
}

/* The smallest rate of the path is the largest code. [rcp-2006:path] */
FIXED_INLINE int law_mark(struct law_link *link, struct law_cpu *cpu, const struct law_packet *packet, __u8 *value)
{
	__u32 rtt_code = law_read_u16(value + 3);
	__u32 own = link->code;

	if (rtt_code) {
		cpu->sums.timed_bytes += packet->bytes;
		cpu->sums.rtt_bytes += rcp_rtt(rtt_code) * packet->bytes;
	}
	if (law_read_u24(value) >= own)
		return 0;
	law_write_u24(value, own);
	return 1;
}

FIXED_INLINE void law_link_read(const struct law_link *link, __u64 signals[LAW_SIGNALS])
{
	signals[0] = link->rate;	 /* 2^-10 bit/s */
	signals[1] = link->mean_rtt;	 /* 2^-16 us */
	signals[2] = link->arrival_rate; /* bit/s */
	signals[3] = link->interval;	 /* us */
}

FIXED_INLINE void law_link_restore(struct law_link *link, __u64 rate)
{
	rcp_set_rate(link, rate);
}

/* ------------------------------------------------------------------ source */

FIXED_INLINE void law_source_init(const struct law_params *p __attribute__((unused)), struct law_source *s,
				  __u32 packet, __u64 window __attribute__((unused)))
{
	s->packet = packet;
}

/* As much as there is, and no RTT. */
FIXED_INLINE void law_request(const struct law_params *p __attribute__((unused)), __u8 *value)
{
	law_write_u24(value, 0);
	law_write_u16(value + 3, 0);
}

FIXED_INLINE void law_forward(const struct law_params *p __attribute__((unused)), const struct law_source *s,
			      __u8 *value)
{
	law_write_u24(value, 0);
	law_write_u16(value + 3, s->rtt_code);
}

FIXED_INLINE int law_heard(const __u8 *echo)
{
	return law_read_u24(echo) != 0;
}

/* Takes the path's rate and states its RTT; nothing depends on how many acknowledgements there were. */
FIXED_INLINE void law_ack(const struct law_params *p __attribute__((unused)), struct law_source *s,
			  const struct law_tcp *tcp, int has_echo, const __u8 *echo)
{
	__u32 code;

	s->rtt_code = rcp_rtt_code(tcp->srtt_us ? tcp->srtt_us >> 3 : tcp->base_rtt_us);
	if (!has_echo || !law_heard(echo))
		return;
	code = law_read_u24(echo);
	if (code == s->code && !s->reduced)
		return;
	s->code = code;
	s->reduced = 0;
	s->rate = fixed_exp(RCP_RATE_SCALE_BPS, (__u64)code << FIXED_EXTRA_BITS);
	if (!s->rate)
		s->rate = 1;
}

LAW_IGNORES_LOSS

FIXED_INLINE void law_limit(struct law_source *s, const struct law_tcp *tcp, struct law_limit *limit)
{
	if (tcp->packet)
		s->packet = tcp->packet;
	limit->rate = s->rate;
	limit->window = 0;
	limit->packet = s->packet;
	limit->steady = s->rate != 0;
	limit->heard = s->rate != 0;
}

FIXED_INLINE void law_reduce(struct law_source *s, __u32 shift)
{
	if (shift >= 63 || s->rate <= 1)
		return;
	s->rate -= s->rate >> shift;
	s->reduced = 1;
}

FIXED_INLINE __u64 law_evidence(const struct law_source *s)
{
	return s->code;
}

/* At an overload of 0.5 % with alpha = 0.4 the code grows by 524 in each mean RTT, of 1 s at most. */
FIXED_INLINE int law_tightens(const struct law_source *s, __u64 evidence, __u64 us)
{
	return s->code > evidence + (us >> 11);
}

FIXED_INLINE void law_source_read(const struct law_source *s, __u64 signals[LAW_SIGNALS])
{
	signals[0] = s->code; /* 2^-18 */
	signals[1] = s->rate; /* bit/s */
	signals[2] = s->rtt_code ? rcp_rtt(s->rtt_code) : 0; /* us */
	signals[3] = 0;
}

/* ------------------------------------------------------------------ receiver */

/* Copies the last rate. */
FIXED_INLINE void law_receive(const struct law_params *p __attribute__((unused)), struct law_receiver *r,
			      __u64 now_us __attribute__((unused)), __u32 rtt_us __attribute__((unused)),
			      const __u8 *value, __u32 segments __attribute__((unused)))
{
	r->code = law_read_u24(value);
}

FIXED_INLINE void law_echo(const struct law_receiver *r, __u8 *echo)
{
	law_write_u24(echo, r->code);
}

FIXED_INLINE __u64 law_receiver_read(const struct law_receiver *r)
{
	return r->code;
}

#endif
