/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * AECP, fixed-point version.
 *
 * src/protocols/aecp/mod.rs documents the law, its equations and how the paper is read; the tags [aecp-2010:...] are the
 * same in both. This file says how the law is computed without floating point, behind the interface of law.h.
 *
 * The law is linear in the logarithms of its rates: eq. 49 adds beta T_2 (1 - used/C) to ln r, and eq. 46 moves ln x
 * towards ln r. So both are kept as places on the header's own scale, and no step needs an exponential. A rate is
 * computed where TCP asks for it, and a logarithm where the ceiling changes, once per T_2.
 *
 *
 * Value
 *
 * 0xffff less the factor's code of Fig. 4, in 24 bits: 0 is "no router wrote" and a larger value a smaller rate, so that
 * routers keep the maximum. A value above 0xffff counts as 0xffff, the smallest rate.
 *
 *
 * Scales
 *
 *   field            scale             range used here          why it fits
 *   ---------------  ----------------  -----------------------  -------------------------------
 *   place            2^-32 octaves     0 .. 65534 2^22          38 bits: 1/4 to 2^61.998 packets/s
 *   code             2^-10 octaves     0 .. 65534               16 bits; a place is 2^22 times a code
 *   alpha            10^-3 1/s         1 .. 10^6                20 bits
 *   beta             10^-3 1/s         1 .. 10^6                20 bits
 *   beta T_2 log2 e  2^-32             0 .. 1                   params' check: beta T_2 <= 0.69
 *   T, T_2           us                T_2 <= T                 30 and 20 bits: 1000 s, and 1 ms to 1 s
 *   q_0              10^-3 packets     0 .. 2^32 - 1            32 bits
 *   x_0              10^-3 packets/s   250 .. 2^32 - 1          32 bits
 *   C                bit/s             1 .. 2^50                1.1 Pbit/s; clamped
 *   bytes, queue     bytes             0 .. 2^47                clamped
 *   volumes          2^-8 bytes        57 bits                  C T_2 / 8 is 2^47 bytes, and so is a queue
 *   packet, router   2^-8 bytes        2^8 .. 2^24              1 to 65536 bytes; clamped
 *   packet, source   bytes             1 .. 65535               clamped
 *   dt               us                0 .. 2^30                clamped
 *
 * Where a product could exceed 64 bits, a comment counts its bits.
 *
 *
 * Differences from the law in real numbers
 *
 *   - A place is truncated to 2^-32 octaves with each step: r is off by 1.6 10^-10 a step, which is a load of
 *     1.6 10^-9 of C at beta T_2 = 0.1.
 *   - The ceiling's logarithm is within 1.7 10^-6, and a rate within 1.2 10^-6 of its place's (fixed.h).
 *   - Volumes are in 2^-8 bytes and so is a packet: 2.6 10^-6 of a packet of 1500 bytes.
 *   - Parameters have steps of a thousandth, times of a microsecond.
 *   - tau is TCP's smoothed RTT. The law takes the RTT of the acknowledgement; both have one mean.
 *   - A residue of `rounding = "carried"` is the CPU's. A super-packet has one code and so takes one residue: the mean
 *     over values is r, whatever their packets.
 *   - A rate is a whole number of bit/s, at least 1, and 2^57 bit/s at most.
 */
#ifndef WATERFILL_AECP_H
#define WATERFILL_AECP_H

#include "law.h"

#define LAW WATERFILL_AECP
#define LAW_FORWARD_BYTES 3
#define LAW_ECHO_BYTES 3
#define LAW_PACED 1
#define LAW_RESTS_WITH_QUEUE 1 /* q_0 packets */
/* Routers rest at a load of C + (q_0 - queue)/T, and a buffer shorter than q_0 loses the excess. */
#define LAW_RESTS_LOSING(p) ((p)->t ? (p)->q_0 * 1000ull / (p)->t : 0)
#define LAW_REACTION_US(p) ((p)->t_2)

/* Value of the smallest rate, and the largest factor's code. */
#define AECP_VALUE_MAX 0xffffu
#define AECP_CODE_MAX 0xfffeu
/* Places of a code, and half of them. */
#define AECP_CODE_BITS 22
#define AECP_CODE_HALF (1ull << (AECP_CODE_BITS - 1))
#define AECP_PLACE_MAX ((__u64)AECP_CODE_MAX << AECP_CODE_BITS)
/* A packet until data have been seen: an Ethernet frame's, 2^-8 bytes. */
#define AECP_FIRST_PACKET (1500u << 8)
#define AECP_PACKET_MAX (1u << 24)
#define AECP_CAPACITY_MAX (1ull << 50)
#define AECP_BYTES_MAX (1ull << 47)
#define AECP_DT_MAX_US (1ull << 30)
#define AECP_RATE_MAX_BPS (1ull << 57)
/* Largest |1 - used/C| that is not the whole scale, 2^-32. */
#define AECP_RATIO_MAX (1ull << 52)
/* log2 e in 2^-30. */
#define AECP_LOG2_E 1549082005ull

enum aecp_r_0 { AECP_FIRST_SOURCE_RATE, AECP_FIRST_CAPACITY };
enum aecp_form { AECP_PRINTED, AECP_EXACT };
enum aecp_step { AECP_ROUND_TRIP, AECP_ACKNOWLEDGEMENT };
enum aecp_ceiling { AECP_EMPTY_QUEUE, AECP_CAPACITY };
enum aecp_rounding { AECP_CARRIED, AECP_NEAREST };

struct law_params {
	__u32 alpha;	/* 10^-3 1/s */
	__u32 beta;	/* 10^-3 1/s */
	__u32 t;	/* us */
	__u32 t_2;	/* us */
	__u32 q_0;	/* 10^-3 packets */
	__u32 x_0;	/* 10^-3 packets/s */
	__u32 r_0;	/* enum aecp_r_0 */
	__u32 form;	/* enum aecp_form */
	__u32 step;	/* enum aecp_step */
	__u32 ceiling;	/* enum aecp_ceiling */
	__u32 rounding; /* enum aecp_rounding */
	__u32 reserved;
};

struct law_link {
	__u64 place;	    /* of r, 2^-32 octaves */
	__u64 place_max;    /* of the ceiling */
	__u64 capacity;	    /* bit/s */
	__u64 volume;	    /* 2^-8 bytes: C T_2 */
	__u64 gain;	    /* 2^-32 octaves: beta T_2 log2 e */
	__u64 arrival_rate; /* bit/s of the last T_2 */
	__u32 packet;	    /* 2^-8 bytes */
	__u32 q_0;	    /* 10^-3 packets */
	__u32 t;	    /* us */
	__u32 t_2;	    /* us */
	__u32 ceiling;	    /* enum aecp_ceiling */
	__u32 rounding;	    /* enum aecp_rounding */
};

struct law_sums {
	__u64 bytes;
	__u64 data_bytes; /* of own data */
	__u64 data_segments;
};

struct law_cpu {
	struct law_sums sums;
	__u64 residue; /* 2^-32 octaves modulo a code: what the codes written so far have left of r */
};

struct law_source {
	__u64 place;	/* of x, 2^-32 octaves */
	__u64 updated;	/* us: when x was last updated */
	__u32 value;	/* the value last received */
	__u32 packet;	/* bytes */
	__u32 started;	/* 1: a factor has been received, and `updated` is set */
	__u32 reserved;
};

struct law_receiver {
	__u32 value;
	__u32 reserved;
};

/* Returns the place of `rate` in 2^-16 packets/s. [aecp-2010:fig4] */
FIXED_INLINE __u64 aecp_place(__u64 rate)
{
	__u64 log;

	if (rate < 1u << 14) /* 1/4 */
		return 0;
	log = fixed_log2(rate < 1ull << 61 ? rate : 1ull << 61) - (14ull << 24); /* log2(rate / SLOWEST), as 2^-2 is 2^14 */
	log <<= 8;
	return log < AECP_PLACE_MAX ? log : AECP_PLACE_MAX;
}

/* ------------------------------------------------------------------ router */

/* Returns C in 2^-16 packets/s. */
FIXED_INLINE __u64 aecp_packets_per_second(const struct law_link *link)
{
	return fixed_divide(link->capacity << 13, link->packet, 8); /* 50 + 13 bits; 2^(16 - 3) and a packet's 2^-8 */
}

/* Returns the equilibrium load without a queue, C + q_0/T, in 2^-16 packets/s. [aecp-2010:eq2] */
FIXED_INLINE __u64 aecp_resting_load(const struct law_link *link)
{
	return aecp_packets_per_second(link) + (((__u64)link->q_0 * 1000) << 16) / link->t; /* 63; 32 + 10 + 16 bits */
}

FIXED_INLINE void aecp_set_place(struct law_link *link, __u64 place)
{
	link->place = place < link->place_max ? place : link->place_max;
}

FIXED_INLINE void aecp_set_ceiling(struct law_link *link)
{
	link->place_max = aecp_place(link->ceiling == AECP_CAPACITY ? aecp_packets_per_second(link) :
								      aecp_resting_load(link));
}

/* Adds n times beta T_2 (1 - used/C) to ln r, where used is the load of `bytes` in T_2 and (queue - q_0)/T.
 * [aecp-2010:eq49, eq2]
 */
FIXED_INLINE void aecp_intervals(struct law_link *link, __u64 n, __u64 bytes, __u64 queue)
{
	__u64 arrived = (bytes < AECP_BYTES_MAX ? bytes : AECP_BYTES_MAX) << 8;
	__u64 waiting = (queue < AECP_BYTES_MAX ? queue : AECP_BYTES_MAX) << 8;
	__u64 allowed = (__u64)link->q_0 * link->packet / 1000; /* 32 + 24 bits; 2^-8 bytes: q_0 */
	/* Volumes of T_2: a queue over T counts T_2/T of itself. Both at most 56 bits; 30 + 20. */
	__u64 used = arrived + fixed_scale(waiting, link->t_2, link->t);
	__u64 supply = link->volume + fixed_scale(allowed, link->t_2, link->t);
	__u64 off = supply > used ? supply - used : used - supply;
	__u64 ratio = AECP_RATIO_MAX;
	__u64 step;

	if (off / link->volume < AECP_RATIO_MAX >> 32)
		ratio = fixed_divide(off, link->volume, 32); /* 20 + 32 bits */
	step = fixed_part(ratio, link->gain);
	if (step && supply > used)
		link->place = n > AECP_PLACE_MAX / step ? AECP_PLACE_MAX : link->place + n * step;
	else if (step)
		link->place = n > link->place / step ? 0 : link->place - n * step;
	aecp_set_place(link, link->place);
}

/* Keeps r, unless the link is new. A target below 1 leaves no queue. */
FIXED_INLINE void law_link_set(struct law_link *link, const struct law_params *p, __u64 capacity, __u32 target)
{
	int fresh = !link->t_2;
	__u64 growth;

	if (capacity > AECP_CAPACITY_MAX)
		capacity = AECP_CAPACITY_MAX;
	if (target && target < 1000000)
		capacity = fixed_scale(capacity, target, 1000000); /* 31 + 20; 20 + 20 bits */
	link->capacity = capacity ? capacity : 1;
	link->q_0 = target && target < 1000000 ? 0 : p->q_0;
	link->t_2 = p->t_2 > 1000 ? p->t_2 : 1000;
	if (link->t_2 > 1000000)
		link->t_2 = 1000000;
	link->t = p->t > link->t_2 ? p->t : link->t_2;
	link->ceiling = p->ceiling;
	link->rounding = p->rounding;
	link->volume = fixed_scale(link->capacity, (__u64)link->t_2 << 8, 8000000); /* 28 + 28; 23 + 28 bits */
	if (!link->volume)
		link->volume = 1;
	growth = (__u64)p->beta * link->t_2; /* 10^-9: 20 + 20 bits */
	/* log2 e in 2^-30, and two bits more; its remainder has 28 bits, and 30. */
	link->gain = fixed_scale(AECP_LOG2_E << 2, growth < 1000000000 ? growth : 1000000000, 1000000000);
	if (link->gain > FIXED_ONE)
		link->gain = FIXED_ONE;
	if (fresh) {
		link->packet = AECP_FIRST_PACKET;
		link->place = p->r_0 == AECP_FIRST_CAPACITY ? aecp_place(aecp_packets_per_second(link)) :
							      aecp_place(((__u64)p->x_0 << 16) / 1000);
	}
	aecp_set_ceiling(link);
	aecp_set_place(link, link->place);
}

FIXED_INLINE __u32 law_interval(const struct law_link *link)
{
	return link->t_2;
}

FIXED_INLINE void law_tick(struct law_link *link, const struct law_sums *sums, __u64 queue)
{
	__u64 arrived = sums->bytes < AECP_BYTES_MAX ? sums->bytes : AECP_BYTES_MAX;
	__u64 data = sums->data_bytes < AECP_BYTES_MAX ? sums->data_bytes : AECP_BYTES_MAX;

	if (data && sums->data_segments) {
		__u64 packet = (data << 8) / sums->data_segments;

		packet = packet < AECP_PACKET_MAX ? packet : AECP_PACKET_MAX;
		link->packet = packet > 1 << 8 ? (__u32)packet : 1 << 8;
		aecp_set_ceiling(link);
	}
	link->arrival_rate = fixed_scale(arrived, 8000000, link->t_2); /* 38 + 23; 20 + 23 bits */
	aecp_intervals(link, 1, arrived, queue);
}

FIXED_INLINE void law_idle(struct law_link *link, __u64 intervals, __u64 queue)
{
	if (!intervals)
		return;
	link->arrival_rate = 0;
	aecp_intervals(link, intervals, 0, queue);
}

FIXED_INLINE int law_syn_needs_lock(const struct law_link *link __attribute__((unused)))
{
	return 0;
}

/* Returns the code for the next packet: the nearest to r, or to r and the residue. */
FIXED_INLINE __u32 aecp_factor(const struct law_link *link, struct law_cpu *cpu)
{
	__u64 at = link->place + AECP_CODE_HALF;

	if (link->rounding == AECP_CARRIED) {
		/* Half a code more than the residue, which is between -1/2 and 1/2 of a code. */
		at = link->place + ((cpu->residue + AECP_CODE_HALF) & (2 * AECP_CODE_HALF - 1));
		cpu->residue = (at + AECP_CODE_HALF) & (2 * AECP_CODE_HALF - 1);
	}
	at >>= AECP_CODE_BITS;
	return at < AECP_CODE_MAX ? (__u32)at : AECP_CODE_MAX;
}

/* The smallest factor of the path is the largest value. [aecp-2010:eq4] */
FIXED_INLINE int law_mark(struct law_link *link, struct law_cpu *cpu, const struct law_packet *packet, __u8 *value)
{
	__u32 own = AECP_VALUE_MAX - aecp_factor(link, cpu);

	if (!packet->syn) {
		cpu->sums.data_bytes += packet->bytes;
		cpu->sums.data_segments += packet->segments;
	}
	if (law_read_u24(value) >= own)
		return 0;
	law_write_u24(value, own);
	return 1;
}

FIXED_INLINE void law_link_read(const struct law_link *link, __u64 signals[LAW_SIGNALS])
{
	signals[0] = link->place;	 /* 2^-32 octaves above 1/4 packet/s */
	signals[1] = link->place_max;	 /* 2^-32 octaves */
	signals[2] = link->arrival_rate; /* bit/s */
	signals[3] = link->packet;	 /* 2^-8 bytes */
}

FIXED_INLINE void law_link_restore(struct law_link *link, __u64 place)
{
	aecp_set_place(link, place);
}

/* ------------------------------------------------------------------ source */

FIXED_INLINE void law_source_init(const struct law_params *p, struct law_source *s, __u32 packet,
				  __u64 window __attribute__((unused)))
{
	s->place = aecp_place(((__u64)p->x_0 << 16) / 1000);
	s->packet = packet < 65535 ? packet : 65535;
}

/* No router has written: [aecp-2010 section 5.2]'s -1. */
FIXED_INLINE void law_request(const struct law_params *p __attribute__((unused)), __u8 *value)
{
	law_write_u24(value, 0);
}

FIXED_INLINE void law_forward(const struct law_params *p __attribute__((unused)),
			      const struct law_source *s __attribute__((unused)), __u8 *value)
{
	law_write_u24(value, 0);
}

FIXED_INLINE int law_heard(const __u8 *echo)
{
	return law_read_u24(echo) != 0;
}

/* Returns the weight of ln r in a step over `dt`: alpha T_1, at most 1, or 1 - e^(-alpha T_1). alpha dt is in 10^-9.
 * [aecp-2010:eq46, eq48, eq3]
 */
FIXED_INLINE __u64 aecp_weight(const struct law_params *p, __u64 dt)
{
	__u64 product = p->alpha * dt; /* 20 + 30 bits */

	if (p->form == AECP_EXACT)
		return fixed_one_less_exp(fixed_scale(product, 1ull << 34, 1000000000)); /* 21 + 34; 30 + 34 bits */
	return product < 1000000000 ? (product << 32) / 1000000000 : FIXED_ONE;
}

/* Moves ln x towards ln r once per RTT. The step has the time since the last one, so it does not matter how often or
 * with how many acknowledgements this is called. [aecp-2010:eq46]
 */
FIXED_INLINE void law_ack(const struct law_params *p, struct law_source *s, const struct law_tcp *tcp, int has_echo,
			  const __u8 *echo)
{
	__u32 tau = tcp->srtt_us ? tcp->srtt_us >> 3 : tcp->base_rtt_us;
	__u32 value;
	__u64 dt;

	if (!has_echo || !law_heard(echo))
		return;
	value = law_read_u24(echo);
	s->value = value < AECP_VALUE_MAX ? value : AECP_VALUE_MAX;
	if (!s->started) {
		s->started = 1;
		s->updated = tcp->now_us;
	}
	dt = tcp->now_us > s->updated ? tcp->now_us - s->updated : 0;
	if (p->step == AECP_ROUND_TRIP && dt < tau)
		return;
	dt = dt < AECP_DT_MAX_US ? dt : AECP_DT_MAX_US;
	s->place = fixed_towards(s->place, (__u64)(AECP_VALUE_MAX - s->value) << AECP_CODE_BITS, aecp_weight(p, dt));
	s->updated = tcp->now_us;
}

LAW_IGNORES_LOSS

/* Returns x in bit/s. [aecp-2010:fig4] */
FIXED_INLINE __u64 aecp_rate(const struct law_source *s)
{
	__u64 octaves = s->place >> 8; /* 2^-24 */
	__u64 rate;

	if (octaves >= 43ull << 24)
		return AECP_RATE_MAX_BPS;
	/* 8 bits of a byte, 1/4 packet/s: 16 + 1 + 43 bits. */
	rate = fixed_exp2_down((__u64)s->packet << 44, (43ull << 24) - octaves);
	return rate ? rate : 1;
}

FIXED_INLINE void law_limit(struct law_source *s, const struct law_tcp *tcp, struct law_limit *limit)
{
	__u64 heard = (__u64)(AECP_VALUE_MAX - s->value) << AECP_CODE_BITS;

	if (tcp->packet)
		s->packet = tcp->packet < 65535 ? tcp->packet : 65535;
	limit->rate = s->started ? aecp_rate(s) : 0;
	limit->window = 0;
	limit->packet = s->packet;
	/* While x is a fifth or more away from r, it changes too much in an RTT. */
	limit->steady = s->started && s->place + (1ull << 30) > heard && heard + (1ull << 30) > s->place;
	limit->heard = s->started;
}

/* log2(1 - 2^-shift) by three terms of its series: within 1 % from a shift of 2 on, 0.513 for a half. */
FIXED_INLINE void law_reduce(struct law_source *s, __u32 shift)
{
	__u64 part = shift < 32 ? FIXED_ONE >> shift : 0;
	__u64 square = fixed_part(part, part);
	__u64 down = part + square / 2 + fixed_part(square, part) / 3;

	down = fixed_part(AECP_LOG2_E << 2, down);
	s->place = s->place > down ? s->place - down : 0;
}

FIXED_INLINE __u64 law_evidence(const struct law_source *s)
{
	return s->value;
}

/* At an overload of 0.5 % with beta = 1/s the value grows by 7.4 a second. A carried residue changes it by 1. */
FIXED_INLINE int law_tightens(const struct law_source *s, __u64 evidence, __u64 us)
{
	return s->value > evidence + 1 + (us >> 17);
}

FIXED_INLINE void law_source_read(const struct law_source *s, __u64 signals[LAW_SIGNALS])
{
	signals[0] = s->value;			    /* 0xffff less the factor's code */
	signals[1] = s->place;			    /* 2^-32 octaves above 1/4 packet/s */
	signals[2] = s->started ? aecp_rate(s) : 0; /* bit/s */
	signals[3] = s->updated;		    /* us */
}

/* ------------------------------------------------------------------ receiver */

/* Copies the last value. [aecp-2010 section 5.4] */
FIXED_INLINE void law_receive(const struct law_params *p __attribute__((unused)), struct law_receiver *r,
			      __u64 now_us __attribute__((unused)), __u32 rtt_us __attribute__((unused)),
			      const __u8 *value, __u32 segments __attribute__((unused)))
{
	r->value = law_read_u24(value);
}

FIXED_INLINE void law_echo(const struct law_receiver *r, __u8 *echo)
{
	law_write_u24(echo, r->value);
}

FIXED_INLINE __u64 law_receiver_read(const struct law_receiver *r)
{
	return r->value;
}

#endif
