/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * TCP MaxNet of 2006, fixed-point version.
 *
 * src/protocols/maxnet2006/mod.rs documents the law, its equations and how the thesis is read; the tags
 * [tcp-maxnet-2006:...] are the same in both. This file says how the law is computed without floating point. It needs
 * only integer types and calls no library. The simulator runs it (`arithmetic = "kernel"`).
 *
 *
 * States of a source
 *
 *                start rate                   QuickStart's window            new price every ACK,
 *   ASKING  ------------------>  QUICKSTART  ------------------->  PRICED    window every dt
 *      |       (first ACK)           |  ^     passes the price's      ^
 *      |                             +--+     window                  |
 *      |              x rateinc per RTT                               |
 *      +--------------------------------------------------------------+
 *              a price and no start rate, or no router answered
 *
 * A router calls maxnet2006_tick() every dt with the bytes that arrived, and maxnet2006_mark() for the field of every
 * packet.
 *
 *
 * Scales
 *
 * alpha, eta and rateinc are in thousandths, T and RTTs are in whole milliseconds (section 4.1), and prices on the wire
 * are in 2^-18 s (section 3.3). Three quantities are finer here than in the thesis:
 *
 *   - A price, its average and xi have 16 more fractional bits in memory (2^-34). A router's price moves by
 *     (y/C - mu) dt: 1 ms at 1 % above the target is 2.6 units of 2^-18, and losing up to one unit each millisecond
 *     would move the target by 0.4 %. An average over 28 ms with a price every 12 us takes 1/2333 of a difference: in
 *     2^-18 it would ignore a difference below 0.9 % of a second, which is 9 % of the rate.
 *   - A fraction in [0, 1], such as the step of xi, is in 2^-32.
 *   - `rtt_unit` is the unit in microseconds that an RTT is rounded to (to the nearest; at least one unit). The thesis
 *     has 1000. The window is that RTT times the rate, so the rounding error is a flow's gain or loss against others:
 *     4 % at 10.4 ms, and every RTT below a millisecond counts as one millisecond. A smaller unit avoids it.
 *
 *   field            scale             range used here          why it fits
 *   ---------------  ----------------  -----------------------  -------------------------------
 *   price on wire    2^-18 s           23 bits: 0 .. 32 s       section 3.3
 *   price, average   2^-34 s           39 bits                  23 + 16
 *   xi               2^-34             61 bits and a sign       alpha q / tau is 60 at tau = 1 us
 *   alpha            10^-3             1 .. 1571 (pi/2)
 *   eta              10^-3             1 .. 65535
 *   rateinc          10^-3             1000 .. 16000
 *   T                ms                1 .. 100000
 *   base RTT         us                1 .. 2^24 (16.8 s)       longer ones are clamped
 *   dt of a router   us                1 .. 10^6
 *   mu, mu + eps     10^-6             1 .. 2 10^6
 *   rates            bit/s             1 .. 2^57                x_max 10^15 times a weight of 100
 *   bytes per tick   bytes             0 .. 2^40                1 ms at 8 Pbit/s
 *   max_wnd          packets           1 .. 2^26                of at most 2^14 bytes
 *   time             us                64 bits
 *
 * Where a product could exceed 64 bits, a comment counts its bits. All divisions are of unsigned numbers (BPF has no
 * signed division); signed quantities are handled by sign and magnitude.
 *
 *
 * The exponential
 *
 * fixed.h interpolates it: a rate is within 1.1 10^-6 of the true value, plus the truncation to whole bit/s. (Section
 * 4.3 has 64,000 entries over the whole range of u without interpolation: steps of 2^-11, an error of 2.4 10^-4.)
 */
#ifndef WATERFILL_MAXNET2006_H
#define WATERFILL_MAXNET2006_H

#include "law.h"

#define LAW WATERFILL_MAXNET2006
#define LAW_FORWARD_BYTES 3
#define LAW_ECHO_BYTES 3
#define LAW_PACED 1
#define LAW_RESTS_WITH_QUEUE 1 /* the price does not count the queue, so one that stands is only drained by mu < 1 */
#define LAW_REACTION_US(p) (4 * ((p)->dt > 1000 ? (p)->dt : 1000))

/* Longest RTT. */
#define MAXNET2006_RTT_MAX_US (1u << 24)
/* The largest rate: 144 times 10^15 bit/s. */
#define MAXNET2006_RATE_MAX_BPS (1ull << 57)

/* Parameters that all connections share. */
struct maxnet2006_params {
	__u64 x_max;       /* bit/s */
	__u64 x_min;       /* bit/s */
	__u32 alpha;       /* 10^-3 */
	__u32 eta;         /* 10^-3 */
	__u32 t;           /* ms */
	__u32 dt;          /* us: minimum time between two updates of the window */
	__u32 rtt_unit;    /* us */
	__u32 rateinc;     /* 10^-3 */
	__u32 mindeltaq;   /* 2^-18 s per second, the thesis's tcp_maxnet_dpdt_threshold */
	__u32 wnd_update_freq; /* ACKs */
	__u32 max_wnd;     /* packets */
	__u32 average;     /* 1: average prices over an RTT */
	__u32 compensate;  /* 1: eq. 12 */
	__u32 weight;      /* 10^-3 of this connection, at most 10^6; 0: 1 */
};

enum maxnet2006_mode {
	MAXNET2006_ASKING,
	MAXNET2006_QUICKSTART,
	MAXNET2006_PRICED,
};

/* One connection. The caller zeroes it, then sets demand_max, packet and window. */
struct maxnet2006_source {
	__u64 demand_max;  /* bit/s: x_max times the connection's weight */
	__u64 window;      /* bytes: a result */
	__u64 rate;        /* bit/s: the window's, for pacing */
	__u64 start_rate;  /* bit/s: QSrate */
	__u64 average;     /* 2^-34 s: q */
	__s64 xi;          /* 2^-34 */
	__u64 price_at;    /* us: time of the last price */
	__u64 updated;     /* us: time of the last step 3 */
	__u64 raised;      /* us: time of the last step 4 */
	__u32 last_price;  /* 2^-18 s: lastq */
	__u32 base_rtt;    /* us, a multiple of rtt_unit */
	__u32 packet;      /* bytes: the minimum window */
	__u32 acks;        /* since the last step 3 */
	__u32 mode;        /* enum maxnet2006_mode */
	__u32 has_price;
	__u32 price_max;   /* 2^-18 s: the highest price that the source applies */
	__u32 reserved;
};

/* One direction of a link. */
struct maxnet2006_link {
	__u64 capacity;     /* bit/s */
	__u64 x_max;        /* bit/s */
	__u64 start_share;  /* bit/s: (mu + epsilon) C */
	__u64 start_min;    /* bit/s: QSminrate */
	__u64 price;        /* 2^-34 s */
	__u64 price_min;    /* 2^-34 s */
	__u64 price_max;    /* 2^-34 s */
	__u64 target_time;  /* 2^-34 s: mu dt */
	__u64 arrival_rate; /* bit/s: y/dt of the last full interval */
	__u32 dt;           /* us */
	__u32 reserved;
};

/* ------------------------------------------------------------------ router */

/* Returns how long `bytes` take at `capacity`, in 2^-34 s; at most 2^20 s plus a fraction of a second. */
static inline __u64 maxnet2006_time_for(__u64 bytes, __u64 capacity)
{
	__u64 bits = (bytes < 1ull << 40 ? bytes : 1ull << 40) * 8;

	if (bits / capacity > 1u << 20)
		bits = (capacity << 20) + bits % capacity;
	return fixed_divide(bits, capacity, 34);
}

/* Returns the nearest price from p_min to p_max. [tcp-maxnet-2006:eq11, 3.3] */
static inline __u64 maxnet2006_price_clip(const struct maxnet2006_link *link, __u64 price)
{
	if (price < link->price_min)
		return link->price_min;
	return price < link->price_max ? price : link->price_max;
}

/* Returns p + y/C - mu dt, from p_min to p_max. [tcp-maxnet-2006:eq7] */
static inline __u64 maxnet2006_price_next(const struct maxnet2006_link *link, __u64 bytes)
{
	__u64 price = link->price + maxnet2006_time_for(bytes, link->capacity);

	return maxnet2006_price_clip(link, price > link->target_time ? price - link->target_time : 0);
}

/* Returns (mu + epsilon) C - y/dt, at least QSminrate. [tcp-maxnet-2006:3.1.2] */
static inline __u64 maxnet2006_start_rate(const struct maxnet2006_link *link)
{
	if (link->start_share < link->arrival_rate + link->start_min)
		return link->start_min;
	return link->start_share - link->arrival_rate;
}

/* Initialises a link. mu and mu + epsilon in 10^-6; T in ms; QSminrate = C/start_min_divisor; dt in us. */
static inline void maxnet2006_link_init(struct maxnet2006_link *link, __u64 capacity, __u64 x_max, __u64 x_min,
					__u32 t, __u32 mu, __u32 start_share, __u32 start_min_divisor, __u32 dt)
{
	link->capacity = capacity;
	link->x_max = x_max;
	link->start_share = fixed_scale(capacity, start_share, 1000000); /* 31 + 21; 20 + 21 bits */
	link->start_min = capacity / start_min_divisor;
	link->price_max = fixed_price(x_min, x_max, t);
	link->price_min = fixed_price(capacity, x_max, t); /* [tcp-maxnet-2006:eq11] */
	if (link->price_min > link->price_max)
		link->price_min = link->price_max; /* a link that became slower than x_min has only one price */
	link->price = link->price_min;
	/* 10^-12 s is 2^34/10^12 = 2^22/5^12 units of 2^-34 s; 20 + 20 + 22 bits. */
	link->target_time = (((__u64)mu * dt) << 22) / 244140625;
	link->arrival_rate = 0;
	link->dt = dt;
	link->reserved = 0;
}

/* Ends an interval dt in which `bytes` arrived. */
static inline void maxnet2006_tick(struct maxnet2006_link *link, __u64 bytes)
{
	if (bytes > 1ull << 40)
		bytes = 1ull << 40;
	link->arrival_rate = bytes * 8000000 / link->dt; /* 41 + 23 bits: 2^40 8 10^6 < 2^63 */
	link->price = maxnet2006_price_next(link, bytes);
}

/* Returns the field that a packet leaves with: prices rise along a path and start rates fall, so both codes rise. */
static inline __u32 maxnet2006_mark(const struct maxnet2006_link *link, __u32 field)
{
	__u32 flag = field & FIXED_FLAG;
	__u32 code = field & FIXED_CODE_MAX;
	__u32 own = flag ? fixed_rate_code(maxnet2006_start_rate(link), link->x_max)
			 : fixed_price_code(link->price);

	return flag | (own > code ? own : code);
}

/* ------------------------------------------------------------------ source */

/* Returns an RTT rounded to whole units, in us. */
static inline __u32 maxnet2006_base_rtt(__u64 rtt, __u32 unit)
{
	__u64 units;

	if (rtt > MAXNET2006_RTT_MAX_US)
		rtt = MAXNET2006_RTT_MAX_US;
	units = (rtt + unit / 2) / unit;
	if (units > MAXNET2006_RTT_MAX_US / unit)
		units = MAXNET2006_RTT_MAX_US / unit;
	return units ? (__u32)units * unit : unit;
}

/* Returns alpha q / tau in 2^-34. */
static inline __u64 maxnet2006_gain(__u64 q, __u32 alpha, __u32 base_rtt)
{
	return (q * alpha * 1000 + base_rtt / 2) / base_rtt; /* 39 + 11 + 10 bits; 10^-3 and us make 1000 */
}

/* Returns xi* = alpha q / tau - q / T. [tcp-maxnet-2006:eq10] */
static inline __s64 maxnet2006_xi_rest(__u64 q, __u32 alpha, __u32 base_rtt, __u32 t)
{
	return (__s64)maxnet2006_gain(q, alpha, base_rtt) - (__s64)((q * 1000 + t / 2) / t);
}

/* Returns eta dt T / tau^2 as a fraction, at most 1: beyond, eq. 9 would carry xi past xi*, where it is stopped. */
static inline __u64 maxnet2006_xi_fraction(__u64 dt, __u32 base_rtt, __u32 eta, __u32 t)
{
	__u64 square = (__u64)base_rtt * base_rtt; /* at most 48 bits */
	__u64 steps;

	if (dt > 1u << 30)
		dt = 1u << 30;
	steps = dt * eta * t; /* us times 10^-3 times ms is us^2; 30 + 16 + 17 bits */
	if (steps >= square)
		return FIXED_ONE;
	/* Two divisions of 16 more bits each: 48 + 16, then 24 + 16 + 16 bits. */
	return (((steps << 16) / base_rtt) << 16) / base_rtt;
}

/* Returns xi + eta dt / tau^2 ((T alpha / tau - 1) q - T xi); the last factor is T (xi* - xi). [tcp-maxnet-2006:eq9] */
static inline __s64 maxnet2006_xi_next(__s64 xi, __s64 rest, __u64 fraction)
{
	if (rest >= xi)
		return xi + (__s64)fixed_part((__u64)(rest - xi), fraction);
	return xi - (__s64)fixed_part((__u64)(xi - rest), fraction);
}

/* Returns xi + q alpha (1 / tau_new - 1 / tau_old). [tcp-maxnet-2006:eq12] */
static inline __s64 maxnet2006_compensated(__s64 xi, __u64 q, __u32 alpha, __u32 rtt_new, __u32 rtt_old)
{
	const __s64 xi_max = 1ll << 61; /* only an RTT that falls and rises again and again gets there */

	xi += (__s64)maxnet2006_gain(q, alpha, rtt_new) - (__s64)maxnet2006_gain(q, alpha, rtt_old);
	if (xi > xi_max)
		return xi_max;
	return xi < -xi_max ? -xi_max : xi;
}

/* Returns x_max e^(xi - alpha q / tau), not above x_max; `scale` is x_max times the weight. [tcp-maxnet-2006:eq8] */
static inline __u64 maxnet2006_rate(__u64 scale, __s64 xi, __u64 gain)
{
	__s64 u = (__s64)gain - xi;

	return fixed_exp(scale, u > 0 ? (__u64)u : 0);
}

/* Returns baseRTT x in bytes. */
static inline __u64 maxnet2006_window(__u64 rate, __u32 base_rtt)
{
	return fixed_scale(rate, base_rtt, 1000000) / 8; /* 2^57/10^6 is 38 bits, + 24; 20 + 24 */
}

/* Returns the average moved towards a price by dt/tau of the difference, at most by all of it. [tcp-maxnet-2006:4.5] */
static inline __u64 maxnet2006_averaged(__u64 average, __u64 price, __u64 dt, __u32 base_rtt)
{
	return fixed_towards(average, price, fixed_fraction(dt, base_rtt));
}

/* Returns whether the price rises more slowly than mindeltaq over an RTT. [tcp-maxnet-2006:fig5.4] */
static inline __u32 maxnet2006_rises_slowly(__u32 price, __u32 last, __u32 base_rtt, __u32 mindeltaq)
{
	if (price == 0 || price < last)
		return 1;
	return (__u64)(price - last) * 1000000 < (__u64)mindeltaq * base_rtt; /* 23 + 20; 32 + 25 bits */
}

/* Returns QSrate times rateinc. [tcp-maxnet-2006:fig5.4] */
static inline __u64 maxnet2006_raised(__u64 start_rate, __u32 rateinc)
{
	__u64 raised = fixed_scale(start_rate, rateinc, 1000); /* 48 + 14; 10 + 14 bits */

	return raised < MAXNET2006_RATE_MAX_BPS ? raised : MAXNET2006_RATE_MAX_BPS;
}

static inline __u64 maxnet2006_window_max(const struct maxnet2006_params *p, const struct maxnet2006_source *s)
{
	return (__u64)p->max_wnd * s->packet;
}

static inline void maxnet2006_set_window(const struct maxnet2006_params *p, struct maxnet2006_source *s, __u64 rate)
{
	__u64 window = maxnet2006_window(rate, s->base_rtt);
	__u64 bound = window;

	/* With less, the source would learn too late that the price has fallen. */
	if (bound < s->packet)
		bound = s->packet;
	if (bound > maxnet2006_window_max(p, s))
		bound = maxnet2006_window_max(p, s);
	s->window = bound;
	s->rate = bound == window ? rate : fixed_scale(bound, 8000000, s->base_rtt); /* 41 + 23; 24 + 23 bits */
}

/* Takes a start rate. [tcp-maxnet-2006:fig5.1] */
static inline void maxnet2006_start(const struct maxnet2006_params *p, struct maxnet2006_source *s, __u32 code,
				    __u32 base_rtt)
{
	if (s->mode != MAXNET2006_ASKING)
		return;
	if (!code) { /* no router on the path */
		s->mode = MAXNET2006_PRICED;
		return;
	}
	s->start_rate = fixed_exp(p->x_max, (__u64)code << FIXED_EXTRA_BITS);
	s->mode = MAXNET2006_QUICKSTART;
	s->base_rtt = base_rtt;
	maxnet2006_set_window(p, s, s->start_rate);
}

/* Takes the first price. [tcp-maxnet-2006:fig5.2] */
static inline void maxnet2006_first_price(const struct maxnet2006_params *p, struct maxnet2006_source *s, __u32 code,
					  __u64 now, __u32 base_rtt)
{
	s->has_price = 1;
	s->base_rtt = base_rtt;
	s->average = (__u64)code << FIXED_EXTRA_BITS;
	s->xi = maxnet2006_xi_rest(s->average, p->alpha, base_rtt, p->t);
	s->last_price = code;
	s->price_at = now;
	s->raised = now;
	if (s->mode == MAXNET2006_ASKING)
		s->mode = MAXNET2006_PRICED;
}

/* Takes one more price; returns whether steps 3 and 4 are due. */
static inline int maxnet2006_next_price(const struct maxnet2006_params *p, struct maxnet2006_source *s, __u32 code,
					__u64 now, __u32 base_rtt)
{
	__u64 price = (__u64)code << FIXED_EXTRA_BITS;
	__u64 dt;

	if (base_rtt != s->base_rtt) {
		if (p->compensate)
			s->xi = maxnet2006_compensated(s->xi, s->average, p->alpha, base_rtt, s->base_rtt);
		s->base_rtt = base_rtt;
	}
	s->average = p->average ? maxnet2006_averaged(s->average, price, now - s->price_at, base_rtt) : price;
	s->price_at = now;
	s->acks++;
	dt = now - s->updated;
	if (s->acks < p->wnd_update_freq || dt < p->dt)
		return 0;
	s->xi = maxnet2006_xi_next(s->xi, maxnet2006_xi_rest(s->average, p->alpha, base_rtt, p->t),
				   maxnet2006_xi_fraction(dt, base_rtt, p->eta, p->t));
	return 1;
}

/* Does steps 3 and 4, after xi is updated. */
static inline void maxnet2006_update_window(const struct maxnet2006_params *p, struct maxnet2006_source *s, __u64 now)
{
	__u64 rate = maxnet2006_rate(s->demand_max, s->xi, maxnet2006_gain(s->average, p->alpha, s->base_rtt));
	__u32 price = fixed_price_code(s->average);

	s->updated = now;
	s->acks = 0;
	if (s->mode != MAXNET2006_QUICKSTART) {
		maxnet2006_set_window(p, s, rate);
		return;
	}
	maxnet2006_set_window(p, s, s->start_rate);
	if (s->start_rate > rate) {
		s->mode = MAXNET2006_PRICED; /* from the next update on */
		return;
	}
	if (now - s->raised < s->base_rtt)
		return;
	s->raised = now;
	/* Not while max_wnd limits the window. */
	if (maxnet2006_window(s->start_rate, s->base_rtt) <= maxnet2006_window_max(p, s)) {
		if (maxnet2006_rises_slowly(price, s->last_price, s->base_rtt, p->mindeltaq))
			s->start_rate = maxnet2006_raised(s->start_rate, p->rateinc);
		s->last_price = price;
	}
}

/* Takes an acknowledgement with this field in its echo. */
static inline void maxnet2006_ack(const struct maxnet2006_params *p, struct maxnet2006_source *s, __u64 now,
				  __u64 base_rtt, __u32 field)
{
	__u32 code = field & FIXED_CODE_MAX;
	__u32 rtt = maxnet2006_base_rtt(base_rtt, p->rtt_unit);

	if (field & FIXED_FLAG) {
		maxnet2006_start(p, s, code, rtt);
		return;
	}
	if (!code) /* no router on the path, or no price yet */
		return;
	if (code > s->price_max) /* xi follows xi*(q), so p_max bounds it as well */
		code = s->price_max;
	if (s->has_price) {
		if (!maxnet2006_next_price(p, s, code, now, rtt))
			return;
	} else {
		maxnet2006_first_price(p, s, code, now, rtt);
	}
	maxnet2006_update_window(p, s, now);
}

/* ------------------------------------------------------------------ the interface of law.h */

/* The law's own target, 10^-6. (tcp-maxnet-2006 section 4.2) */
#define MAXNET2006_MU 940000

struct law_params {
	struct maxnet2006_params source;
	__u32 epsilon;	      /* 10^-6 */
	__u32 qs_min_divisor; /* QSminrate is C over this */
	__u32 dt;	      /* us */
	__u32 quickstart;     /* 1: a connection asks for a start rate */
};

struct law_link {
	struct maxnet2006_link maxnet;
	__u32 price_code;
	__u32 start_code; /* of the present start rate */
};

struct law_sums {
	__u64 bytes;
};

struct law_cpu {
	struct law_sums sums;
};

struct law_source {
	struct maxnet2006_source maxnet;
};

struct law_receiver {
	__u32 field;
	__u32 reserved;
};

/* Codes are searched for once per interval, not per packet. */
FIXED_INLINE void maxnet2006_encode(struct law_link *link)
{
	link->price_code = fixed_price_code(link->maxnet.price);
	link->start_code = fixed_rate_code(maxnet2006_start_rate(&link->maxnet), link->maxnet.x_max);
}

FIXED_INLINE void law_link_set(struct law_link *link, const struct law_params *p, __u64 capacity, __u32 target)
{
	__u64 price = link->maxnet.price;
	__u32 mu = target ? target : MAXNET2006_MU;
	__u32 dt = p->dt ? p->dt : 1;

	if (!capacity)
		capacity = 1;
	if (capacity > MAXNET2006_RATE_MAX_BPS)
		capacity = MAXNET2006_RATE_MAX_BPS;
	maxnet2006_link_init(&link->maxnet, capacity, p->source.x_max, p->source.x_min, p->source.t, mu,
			     mu + p->epsilon, p->qs_min_divisor ? p->qs_min_divisor : 1,
			     dt < 1000000 ? dt : 1000000);
	link->maxnet.price = maxnet2006_price_clip(&link->maxnet, price);
	maxnet2006_encode(link);
}

FIXED_INLINE __u32 law_interval(const struct law_link *link)
{
	return link->maxnet.dt;
}

FIXED_INLINE void law_tick(struct law_link *link, const struct law_sums *sums,
			   __u64 queue __attribute__((unused)))
{
	maxnet2006_tick(&link->maxnet, sums->bytes);
	maxnet2006_encode(link);
}

/* Without arrivals the price falls by mu dt in each interval, to p_min. */
FIXED_INLINE void law_idle(struct law_link *link, __u64 intervals, __u64 queue __attribute__((unused)))
{
	struct maxnet2006_link *law = &link->maxnet;
	__u64 headroom = law->price - law->price_min;

	if (!intervals)
		return;
	law->arrival_rate = 0;
	if (!law->target_time || intervals <= headroom / law->target_time)
		law->price -= intervals * law->target_time;
	else
		law->price = law->price_min;
	maxnet2006_encode(link);
}

FIXED_INLINE int law_syn_needs_lock(const struct law_link *link __attribute__((unused)))
{
	return 0;
}

/* As maxnet2006_mark(), with the codes of this interval. */
FIXED_INLINE int law_mark(struct law_link *link, struct law_cpu *cpu __attribute__((unused)),
			  const struct law_packet *packet __attribute__((unused)), __u8 *value)
{
	__u32 field = law_read_u24(value);
	__u32 flag = field & FIXED_FLAG;
	__u32 own = flag | (flag ? link->start_code : link->price_code);

	if (own <= field)
		return 0;
	law_write_u24(value, own);
	return 1;
}

FIXED_INLINE void law_link_read(const struct law_link *link, __u64 signals[LAW_SIGNALS])
{
	signals[0] = link->maxnet.price;	/* 2^-34 s */
	signals[1] = link->maxnet.price_min;	/* 2^-34 s */
	signals[2] = link->maxnet.arrival_rate; /* bit/s */
	signals[3] = maxnet2006_start_rate(&link->maxnet); /* bit/s */
}

FIXED_INLINE void law_link_restore(struct law_link *link, __u64 price)
{
	if (link->maxnet.price < price)
		link->maxnet.price = maxnet2006_price_clip(&link->maxnet, price);
	maxnet2006_encode(link);
}

FIXED_INLINE void law_source_init(const struct law_params *p, struct law_source *s, __u32 packet, __u64 window)
{
	__u32 weight = p->source.weight ? p->source.weight : 1000;

	s->maxnet.demand_max = fixed_scale(p->source.x_max, weight < 1000000 ? weight : 1000000, 1000); /* 40 + 20; 10 + 20 bits */
	if (s->maxnet.demand_max > MAXNET2006_RATE_MAX_BPS)
		s->maxnet.demand_max = MAXNET2006_RATE_MAX_BPS;
	if (!s->maxnet.demand_max)
		s->maxnet.demand_max = 1;
	s->maxnet.packet = packet;
	s->maxnet.window = window;
	s->maxnet.price_max = fixed_price_code(fixed_price(p->source.x_min, p->source.x_max, p->source.t));
}

FIXED_INLINE void law_request(const struct law_params *p, __u8 *value)
{
	law_write_u24(value, p->quickstart ? FIXED_FLAG : 0);
}

FIXED_INLINE void law_forward(const struct law_params *p __attribute__((unused)),
			      struct law_source *s __attribute__((unused)), __u8 *value)
{
	law_write_u24(value, 0);
}

FIXED_INLINE int law_heard(const __u8 *echo)
{
	return (law_read_u24(echo) & FIXED_CODE_MAX) != 0;
}

/* The law counts acknowledgements: those that come together are one. */
FIXED_INLINE void law_ack(const struct law_params *p, struct law_source *s, const struct law_tcp *tcp, int has_echo,
			  const __u8 *echo)
{
	if (has_echo && tcp->base_rtt_us)
		maxnet2006_ack(&p->source, &s->maxnet, tcp->now_us, tcp->base_rtt_us, law_read_u24(echo));
}

LAW_IGNORES_LOSS /* it is not congestion */

FIXED_INLINE void law_limit(struct law_source *s, const struct law_tcp *tcp, struct law_limit *limit)
{
	s->maxnet.packet = tcp->packet;
	limit->rate = s->maxnet.rate;
	limit->window = s->maxnet.window;
	limit->packet = tcp->packet;
	limit->steady = s->maxnet.mode == MAXNET2006_PRICED;
	limit->heard = s->maxnet.has_price;
}

FIXED_INLINE void law_reduce(struct law_source *s, __u32 shift)
{
	struct maxnet2006_source *law = &s->maxnet;

	law->rate -= law->rate >> shift;
	law->window -= law->window >> shift;
	if (law->window < law->packet)
		law->window = law->packet;
	if (law->start_rate > law->rate)
		law->start_rate = law->rate; /* QuickStart continues from here */
}

FIXED_INLINE __u64 law_evidence(const struct law_source *s)
{
	return s->maxnet.average;
}

/* A router whose link is overloaded raises its price by 1 - mu seconds per second at least: a 128th for mu = 0.99. */
FIXED_INLINE int law_tightens(const struct law_source *s, __u64 evidence, __u64 us)
{
	return s->maxnet.average > evidence + us / 128 * 17180; /* us to 2^-34 s: 44 + 15 bits */
}

FIXED_INLINE void law_source_read(const struct law_source *s, __u64 signals[LAW_SIGNALS])
{
	signals[0] = s->maxnet.average;	   /* 2^-34 s */
	signals[1] = (__u64)s->maxnet.xi;  /* 2^-34, signed */
	signals[2] = s->maxnet.start_rate; /* bit/s */
	signals[3] = s->maxnet.base_rtt;   /* us */
}

/* Copies the last value; the source averages prices. (tcp-maxnet-2006 section 4.5) */
FIXED_INLINE void law_receive(const struct law_params *p __attribute__((unused)), struct law_receiver *r,
			      __u64 now_us __attribute__((unused)), __u32 rtt_us __attribute__((unused)),
			      const __u8 *value, __u32 segments __attribute__((unused)))
{
	r->field = law_read_u24(value);
}

FIXED_INLINE void law_echo(struct law_receiver *r, __u8 *echo)
{
	law_write_u24(echo, r->field);
}

/* 2^-18 s */
FIXED_INLINE __u64 law_receiver_read(const struct law_receiver *r)
{
	return r->field & FIXED_FLAG ? 0 : r->field;
}

#endif
