/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * JetMax, fixed-point version, behind the interface of law.h.
 *
 * src/protocols/jetmax/mod.rs documents the law, its equations and how it is read; the tags [paper:...] are the same in
 * both. This file says how the law is computed without floating point.
 *
 *
 * On the wire
 *
 *   data       rate x (3 bytes), share s (3), target g (3), weight (1), hops R_T, R_S and R_N (2)
 *   ACKs       x, s, g, R_S and R_N: 11 bytes
 *
 * The share stands for the loss p = 1 - s w/x. Routers of a path see one x and one weight w, so the largest loss is the
 * smallest share, and no router divides by x for it. The interval delta is w times the packet's bytes over x, and so is
 * not on the wire. Rates are codes of float.h, in bit/s; smaller rates have smaller codes, 0 is none. Hops have 5 bits
 * each, so the 31st router and those behind it share a number. With timestamps both values fit: 28 bytes.
 *
 *
 * Scales
 *
 *   field            scale             range                why it fits
 *   ---------------  ----------------  -------------------  -----------------------------------------------------------
 *   rates            bit/s             1 .. 2^50            clamped; a code is within 2^-20 of the rate
 *   weight           (16 + m) 2^(e-8)  1/16 .. 3968         a byte: the exponent e in the upper half, m in the lower;
 *                                                           within 2^-5 of the weight, 1 to 31 exact
 *   gamma, tau, ...  2^-32             0 .. 2               10^-6 in parameters
 *   delta, its sum   2^-40 s           2^24 s               the sum is Delta times the flows: 2^22 flows at 4 s
 *   flows N          2^-20             2^-20 .. 2^23        a code of delta's mantissa is within 2^-19 of it
 *   bytes of packet                    20 bits              super-packets have up to 2^19; clamped
 *   Delta            us                1 .. 2^22 (4 s)      clamped
 *   times            us                64 bits
 *
 *
 * Differences from the law in real numbers
 *
 *   - Targets and shares on the wire are within 2^-20 of the router's. A weight is one of those above, at both ends.
 *   - The RTT is TCP's smoothed one.
 *   - A source that no router has answered keeps the host's first window, and starts with the first router's answer.
 *     In real numbers it spreads that window over the time in which a router would have counted it.
 *   - 31 routers of a path have numbers of their own, not 255.
 */
#ifndef WATERFILL_JETMAX_H
#define WATERFILL_JETMAX_H

#include "float.h"
#include "law.h"

#define LAW WATERFILL_JETMAX
#define LAW_FORWARD_BYTES 12
#define LAW_ECHO_BYTES 11
#define LAW_PACED 1
#define LAW_RATE_ONLY 1
#define LAW_RESTS_WITH_QUEUE 0
#define LAW_REACTION_US(p) ((p)->interval)

/* Largest rate, bit/s. */
#define JETMAX_RATE_MAX (1ull << 50)
#define JETMAX_BYTES_MAX ((1u << 20) - 1)
#define JETMAX_INTERVAL_MAX_US (1u << 22)
#define JETMAX_FLOWS_MAX (1ull << 43)
/* The weight 1. */
#define JETMAX_WEIGHT_ONE 0x40
/* The last router's number. */
#define JETMAX_HOPS_MAX 31
/* For how many times the time until it is counted a flow watches a router that has less for it. */
#define JETMAX_PATIENCE 4

struct law_params {
	__u64 x_min;	/* bit/s */
	__u32 gamma;	/* 10^-6 */
	__u32 tau;	/* 10^-6 */
	__u32 interval; /* us */
	__u32 epsilon;	/* 10^-6 */
	__u32 urgent;	/* 10^-6 */
	__u32 weight;	/* 10^-3; 0: 1 */
};

struct law_sums {
	__u64 bytes;	  /* of all packets */
	__u64 own;	  /* of packets of this router's own flows */
	__u64 membership; /* their delta, 2^-40 s */
};

struct law_cpu {
	struct law_sums sums;
};

struct law_link {
	__u64 goal;	    /* gamma C, bit/s */
	__u64 target;	    /* g, bit/s; 0 before it ever had a flow */
	__u64 unresponsive; /* W, bit/s */
	__u64 flows;	    /* N, 2^-20 */
	__u64 join;	    /* 1/(N + 1), a factor */
	__u64 overloaded;   /* gamma C/W, a fraction, where N = 0 and W > gamma C; otherwise 0 */
	__u32 target_code;  /* 0 before it ever had a flow */
	__u32 share_code;   /* of the target, or without one of the goal */
	__u32 interval;	    /* us */
	__u32 reserved;
};

struct law_source {
	__u64 rate;   /* x, bit/s; 0 before a router has answered */
	__u64 window; /* before that, bytes */
	__u64 target; /* w g as last applied; 0: none */
	__u64 offer;  /* the smaller of the last target and share, times w */
	__u64 x_min;
	__u64 doubted_since; /* us; 0: not in doubt */
	__u64 joined;	     /* us */
	__u32 counted_after; /* us */
	__u32 packet;	     /* bytes */
	__u32 bottleneck;    /* R_S */
	__u32 weight;	     /* as on the wire */
};

struct law_receiver {
	__u32 rate; /* codes */
	__u32 share;
	__u32 target;
	__u32 hops; /* R_S and R_N */
};

/* ------------------------------------------------------------------ numbers */

/* Returns a code's rate. */
FIXED_INLINE __u64 jetmax_rate(__u32 code)
{
	return (__u64)float_mantissa(code) << float_exponent(code);
}

/* Returns the byte of a weight in 10^-3, rounded to the nearest. */
FIXED_INLINE __u32 jetmax_weight(__u32 weight)
{
	__u64 v = ((__u64)(weight ? weight : 1000) << 8) / 1000; /* 2^-8 */
	__u32 bits, shift;

	if (v < 16)
		v = 16;
	if (v > 3968 << 8)
		v = 3968 << 8;
	bits = float_bits(v);
	shift = bits - 5; /* 5 bits remain, the first of them set */
	v = shift ? ((v >> (shift - 1)) + 1) >> 1 : v;
	return (shift << 4) + (__u32)v - 16; /* a fraction that is rounded up to 32 carries into the exponent */
}

/* Returns a rate times a weight on the wire; saturates at the largest rate. */
FIXED_INLINE __u64 jetmax_weighted(__u64 rate, __u32 weight)
{
	__u64 product = rate * (16 + (weight & 15)); /* 51 + 5 bits; 2^-8 times the exponent's power */
	__u32 up = weight >> 4 & 15;

	product = up < 8 ? product >> (8 - up) : product << (up - 8); /* 56 + 7 bits */
	return product < JETMAX_RATE_MAX ? product : JETMAX_RATE_MAX;
}

/* Returns what 2^-32 f of a number is, f < 2. */
FIXED_INLINE __u64 jetmax_part(__u64 a, __u64 f)
{
	return f > FIXED_ONE ? a + fixed_part(a, f - FIXED_ONE) : fixed_part(a, f);
}

/* Returns a parameter in 10^-6 as a fraction. */
FIXED_INLINE __u64 jetmax_fraction(__u32 millionths)
{
	return ((__u64)millionths << 32) / 1000000;
}

/* ------------------------------------------------------------------ router */

/* gamma C, more than nothing. */
FIXED_INLINE __u64 jetmax_goal(__u64 capacity, __u32 gamma /* 10^-6 */)
{
	__u64 goal;

	if (capacity > JETMAX_RATE_MAX)
		capacity = JETMAX_RATE_MAX;
	goal = fixed_scale(capacity, gamma, 1000000); /* 31 + 20 bits; 20 + 20 */
	return goal ? goal : 1;
}

/* Returns a rate within what a router ever names. */
FIXED_INLINE __u64 jetmax_within(const struct law_link *link, __u64 rate)
{
	if (rate > link->goal)
		return link->goal;
	return rate ? rate : 1;
}

/* Returns rate/n for n in 2^-20, 1 or more. The quotient must fit 63 bits. */
FIXED_INLINE __u64 jetmax_divide(__u64 rate, __u64 n)
{
	return fixed_scale(rate, 1u << 20, n); /* the remainder is below 2^44 */
}

/* (gamma C - W)/N, within what a router names. [jetmax-2006:fair-rate] */
FIXED_INLINE __u64 jetmax_fair_rate(const struct law_link *link)
{
	__u64 rest = link->goal > link->unresponsive ? link->goal - link->unresponsive : 0;

	/* Not above the goal, so a quotient that is needs no division, which could overflow. */
	if (link->flows <= float_fraction(rest, link->goal) >> 12)
		return link->goal;
	return jetmax_within(link, jetmax_divide(rest, link->flows));
}

/* Sum of delta over Delta, in 2^-20. [jetmax-2006:membership] */
FIXED_INLINE __u64 jetmax_flows(__u64 membership /* 2^-40 s */, __u32 us)
{
	__u64 flows;

	if (membership > 1ull << 62)
		membership = 1ull << 62;
	flows = fixed_scale(membership, 1000000, (__u64)us << 20); /* 42 + 20 bits; 42 + 20 */
	return flows < JETMAX_FLOWS_MAX ? flows : JETMAX_FLOWS_MAX;
}

/* Returns bytes per us in bit/s; saturates at the largest rate. [jetmax-2006:W] */
FIXED_INLINE __u64 jetmax_load(__u64 bytes, __u32 us)
{
	__u64 rate;

	if (bytes > (__u64)us << 28)
		bytes = (__u64)us << 28;
	rate = fixed_scale(bytes, 8000000, us); /* 28 + 23 bits; 22 + 23 */
	return rate < JETMAX_RATE_MAX ? rate : JETMAX_RATE_MAX;
}

/* Share of a unit of weight after a flow of this rate and weight has moved from W to N: (gamma C - W + x)/(N + w).
 * Alone against an overload it would not take all of that on itself: x gamma C/W, over w. [jetmax-2006:loss]
 */
FIXED_INLINE __u64 jetmax_share_if_joined(const struct law_link *link, __u64 rate, __u32 weight)
{
	__u64 all = link->goal + rate; /* 51 bits */
	__u64 w = jetmax_weighted(1u << 20, weight);

	if (link->overloaded)
		return jetmax_within(link, jetmax_divide(fixed_part(rate, link->overloaded), w));
	all = all > link->unresponsive ? all - link->unresponsive : 0;
	if (weight == JETMAX_WEIGHT_ONE && all < 1ull << 40)
		return jetmax_within(link, float_product(all, 0, link->join));
	return jetmax_within(link, jetmax_divide(all, link->flows + w));
}

/* Returns delta = w s/x in 2^-40 s, of a packet's bytes or of all segments'. */
FIXED_INLINE __u64 jetmax_delta(__u32 bytes, __u32 rate_code, __u32 weight)
{
	__u64 bits = (__u64)bytes * 8 * (16 + (weight & 15)); /* 20 + 3 + 5; 2^-8 times the weight's power */
	__u32 mantissa = float_mantissa(rate_code);
	__u64 delta = (bits << 34) / (mantissa ? mantissa : 1);
	__u32 down = 2 + float_exponent(rate_code); /* 34 bits of the scale, 40 less 8 of the weight: 32 */
	__u32 up = weight >> 4 & 15;

	if (down >= up)
		return delta >> (down - up);
	return delta < 1ull << 44 ? delta << (up - down) : 1ull << 57; /* up to 13 bits; 1.5 days */
}

FIXED_INLINE void jetmax_set_codes(struct law_link *link)
{
	__u64 flows = link->flows + (1u << 20);

	link->target_code = link->target ? float_code(link->target) : 0;
	link->share_code = float_code(link->target ? link->target : link->goal);
	link->join = float_factor(1u << 20, flows);
	link->overloaded = !link->flows && link->unresponsive > link->goal ?
				   float_fraction(link->goal, link->unresponsive) :
				   0;
}

FIXED_INLINE void law_link_set(struct law_link *link, const struct law_params *p, __u64 capacity, __u32 target)
{
	link->goal = jetmax_goal(capacity, target ? target : p->gamma);
	link->interval = p->interval < JETMAX_INTERVAL_MAX_US ? p->interval : JETMAX_INTERVAL_MAX_US;
	if (!link->interval)
		link->interval = 1;
	if (link->target)
		link->target = jetmax_within(link, link->target);
	jetmax_set_codes(link);
}

FIXED_INLINE __u32 law_interval(const struct law_link *link)
{
	return link->interval;
}

/* The queue does not matter. */
FIXED_INLINE void law_tick(struct law_link *link, const struct law_sums *sums,
			   __u64 queue __attribute__((unused)))
{
	link->flows = jetmax_flows(sums->membership, link->interval);
	/* A packet between the readings of both sums may be in the second only. */
	link->unresponsive = jetmax_load(sums->bytes > sums->own ? sums->bytes - sums->own : 0, link->interval);
	if (link->flows)
		link->target = jetmax_fair_rate(link);
	jetmax_set_codes(link);
}

/* Intervals without own flows leave g as it is. */
FIXED_INLINE void law_idle(struct law_link *link, __u64 intervals, __u64 queue __attribute__((unused)))
{
	if (!intervals)
		return;
	link->flows = 0;
	link->unresponsive = 0;
	jetmax_set_codes(link);
}

FIXED_INLINE int law_syn_needs_lock(const struct law_link *link __attribute__((unused)))
{
	return 0;
}

/* Hops are R_T, R_S and R_N, 5 bits each from above. */
FIXED_INLINE int law_mark(struct law_link *link, struct law_cpu *cpu, const struct law_packet *packet, __u8 *value)
{
	__u32 rate = law_read_u24(value), share = law_read_u24(value + 3);
	__u32 bytes = packet->bytes < JETMAX_BYTES_MAX ? (__u32)packet->bytes : JETMAX_BYTES_MAX;
	__u32 hops = law_read_u16(value + 10);
	__u32 here = hops >> 10 & 31, next = hops & 31;
	__u32 own = link->share_code;

	here += here < JETMAX_HOPS_MAX;
	if ((hops >> 5 & 31) == here) {
		cpu->sums.own += packet->bytes;
		cpu->sums.membership += jetmax_delta(bytes, rate, value[9]);
		law_write_u24(value + 6, link->target_code);
	} else {
		own = float_code(jetmax_share_if_joined(link, jetmax_rate(rate), value[9]));
	}
	if (!next || own < share) { /* [jetmax-2006:loss] */
		law_write_u24(value + 3, own);
		next = here;
	}
	law_write_u16(value + 10, here << 10 | (hops & 31 << 5) | next);
	return 1;
}

/* bit/s, 2^-20, bit/s, bit/s. */
FIXED_INLINE void law_link_read(const struct law_link *link, __u64 signals[LAW_SIGNALS])
{
	signals[0] = link->target;
	signals[1] = link->flows;
	signals[2] = link->unresponsive;
	signals[3] = link->goal;
}

FIXED_INLINE void law_link_restore(struct law_link *link, __u64 target)
{
	if (!target)
		return;
	link->target = jetmax_within(link, target);
	jetmax_set_codes(link);
}

/* ------------------------------------------------------------------ source */

FIXED_INLINE void law_source_init(const struct law_params *p, struct law_source *s, __u32 packet, __u64 window)
{
	__builtin_memset(s, 0, sizeof(*s));
	s->window = window;
	s->x_min = p->x_min ? p->x_min : 1;
	s->packet = packet;
	s->weight = jetmax_weight(p->weight);
}

FIXED_INLINE void jetmax_write(__u8 *value, __u64 rate, __u32 weight, __u32 bottleneck)
{
	__builtin_memset(value, 0, LAW_FORWARD_BYTES);
	law_write_u24(value, float_code(rate));
	value[9] = (__u8)weight;
	law_write_u16(value + 10, bottleneck << 5);
}

FIXED_INLINE void law_request(const struct law_params *p, __u8 *value)
{
	jetmax_write(value, p->x_min ? p->x_min : 1, jetmax_weight(p->weight), 0);
}

FIXED_INLINE void law_forward(const struct law_params *p __attribute__((unused)), struct law_source *s, __u8 *value)
{
	jetmax_write(value, s->rate ? s->rate : s->x_min, s->weight, s->bottleneck);
}

FIXED_INLINE int law_heard(const __u8 *echo)
{
	return (echo[10] & 31) != 0;
}

/* Returns 1 if another router's share is below the target by more than a factor, or without a target.
 * [jetmax-2006:switching]
 */
FIXED_INLINE int jetmax_is_less(__u64 proposed, __u64 target, __u32 factor /* 10^-6 */)
{
	return !target || proposed < target - fixed_part(target, jetmax_fraction(factor));
}

/* x - tau (x - g), not below 0. [jetmax-2006:source] */
FIXED_INLINE __u64 jetmax_rate_next(__u64 before, __u64 target, __u32 tau /* 10^-6 */)
{
	__u64 gain = jetmax_fraction(tau);
	__u64 less;

	if (target >= before)
		return before + jetmax_part(target - before, gain);
	less = jetmax_part(before - target, gain);
	return before > less ? before - less : 0;
}

/* No rise past what another router would have for it. [jetmax-2006:switching] */
FIXED_INLINE __u64 jetmax_capped(__u64 next, __u64 before, __u64 proposed)
{
	__u64 most = proposed > before ? proposed : before;

	return next < most ? next : most;
}

FIXED_INLINE void jetmax_join(const struct law_params *p, struct law_source *s, __u32 router, __u64 now, __u32 rtt)
{
	s->bottleneck = router;
	s->joined = now;
	/* The rest of an interval, one whole, and an RTT. */
	s->counted_after = rtt + 2 * p->interval;
	s->doubted_since = 0;
}

/* Returns 1 to join the router with less: soon if the flow sends clearly more than it would get, or after long. */
FIXED_INLINE int jetmax_leaves(const struct law_params *p, struct law_source *s, __u64 before, __u64 proposed,
			       __u64 now)
{
	__u64 patience = (__u64)s->counted_after * JETMAX_PATIENCE;

	if (!s->doubted_since || s->doubted_since > now)
		s->doubted_since = now;
	if (jetmax_is_less(proposed, before, p->urgent))
		patience = p->interval;
	return now - s->doubted_since >= patience;
}

/* Sets the rate, within what a source sends. */
FIXED_INLINE void jetmax_set_rate(struct law_source *s, __u64 rate)
{
	if (rate > JETMAX_RATE_MAX)
		rate = JETMAX_RATE_MAX;
	s->rate = rate > s->x_min ? rate : s->x_min;
}

FIXED_INLINE void law_ack(const struct law_params *p, struct law_source *s, const struct law_tcp *tcp, int has_echo,
			  const __u8 *echo)
{
	__u32 rtt = tcp->srtt_us ? tcp->srtt_us / 8 : tcp->base_rtt_us;
	__u64 before, proposed, target, next;
	__u32 named, own;
	int doubts;

	if (tcp->packet)
		s->packet = tcp->packet;
	if (!has_echo || !law_heard(echo))
		return;
	own = law_read_u16(echo + 9) >> 5 & 31;
	named = echo[10] & 31;
	if (!s->rate) {
		__u64 bytes = s->window < 1ull << 40 ? s->window : 1ull << 40;

		jetmax_join(p, s, named, tcp->now_us, rtt);
		jetmax_set_rate(s, bytes * 8000000 / (s->counted_after ? s->counted_after : 1)); /* 40 + 23 bits */
		return;
	}
	if (own != s->bottleneck || tcp->now_us - s->joined < s->counted_after)
		return;
	before = jetmax_rate(law_read_u24(echo));
	proposed = jetmax_weighted(jetmax_rate(law_read_u24(echo + 3)), s->weight);
	target = jetmax_weighted(jetmax_rate(law_read_u24(echo + 6)), s->weight);
	s->offer = proposed < target ? proposed : target;
	doubts = named != own && jetmax_is_less(proposed, target, p->epsilon);
	if (!doubts) {
		s->doubted_since = 0;
	} else if (!target || jetmax_leaves(p, s, before, proposed, tcp->now_us)) {
		jetmax_join(p, s, named, tcp->now_us, rtt);
		return;
	}
	if (!target)
		return;
	next = jetmax_rate_next(before, target, p->tau);
	s->target = target;
	jetmax_set_rate(s, doubts ? jetmax_capped(next, before, proposed) : next);
}

LAW_IGNORES_LOSS /* it does not move the rate */

/* The window, two RTTs at the rate and a packet, only stops a source whose acknowledgements stay away. */
FIXED_INLINE void law_limit(struct law_source *s, const struct law_tcp *tcp, struct law_limit *limit)
{
	__u64 us = tcp->srtt_us / 4; /* two RTTs: 30 bits */

	limit->rate = s->rate;
	limit->window = s->rate && us ? fixed_scale(s->rate, us, 8000000) + s->packet : s->window; /* 28 + 30; 23 + 30 */
	limit->packet = s->packet;
	limit->steady = s->target != 0;
	limit->heard = s->target != 0;
}

FIXED_INLINE void law_reduce(struct law_source *s, __u32 shift)
{
	if (s->rate)
		jetmax_set_rate(s, s->rate - (s->rate >> (shift & 63)));
}

/* Rate that the path offers, bit/s. */
FIXED_INLINE __u64 law_evidence(const struct law_source *s)
{
	return s->offer;
}

/* An overloaded link's target falls within an interval by the overload. */
FIXED_INLINE int law_tightens(const struct law_source *s, __u64 evidence, __u64 us __attribute__((unused)))
{
	return s->offer < evidence - evidence / 64;
}

/* bit/s (0: none yet), hops, bit/s, bit/s. */
FIXED_INLINE void law_source_read(const struct law_source *s, __u64 signals[LAW_SIGNALS])
{
	signals[0] = s->target;
	signals[1] = s->bottleneck;
	signals[2] = s->rate;
	signals[3] = s->offer;
}

/* ------------------------------------------------------------------ receiver */

/* Keeps the last value. */
FIXED_INLINE void law_receive(const struct law_params *p __attribute__((unused)), struct law_receiver *r,
			      __u64 now_us __attribute__((unused)), __u32 rtt_us __attribute__((unused)),
			      const __u8 *value, __u32 segments __attribute__((unused)))
{
	r->rate = law_read_u24(value);
	r->share = law_read_u24(value + 3);
	r->target = law_read_u24(value + 6);
	r->hops = law_read_u16(value + 10) & 0x3ff;
}

FIXED_INLINE void law_echo(struct law_receiver *r, __u8 *echo)
{
	__u32 heard = r->hops & 31 ? ~0u : 0; /* all zeros if no router wrote */

	law_write_u24(echo, r->rate & heard);
	law_write_u24(echo + 3, r->share & heard);
	law_write_u24(echo + 6, r->target & heard);
	law_write_u16(echo + 9, r->hops & heard);
}

/* The share's code. */
FIXED_INLINE __u64 law_receiver_read(const struct law_receiver *r)
{
	return r->hops & 31 ? r->share : 0;
}

#endif
