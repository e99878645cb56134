/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * MaxNet of 2007, fixed-point version.
 *
 * src/protocols/maxnet/mod.rs documents the law, its equations and how the paper is read; the tags [maxnet-2007:...]
 * are the same in both. This file says how the law is computed without floating point. It needs only integer types and
 * calls no library. The kernel's BPF programs include it, and the simulator runs it (`arithmetic = "kernel"`).
 * host.h has what a TCP adds to any law.
 *
 *
 * A source calls maxnet_ack() for the echo of every acknowledgement.
 *
 *               start rate                              the rate has reached the price's
 *   ASKING  ------------------->  RISING (MaxStart)  ------------------------------------>  PRICED
 *      |       window: its own    |  ^                                                      |  ^
 *      |                          +--+  a price: + Delta dt / 2 tau,                        +--+  a price: xi, then
 *      |                                once dt >= tau / 16                                       the window
 *      |            a price and no start rate, or code 0: no router answered                ^
 *      +------------------------------------------------------------------------------------+
 *
 * No router wrote a field of code 0: it ends ASKING and changes nothing else. A changed base RTT changes the window
 * with the next price, or at once in maxnet_base_rtt().
 *
 * A receiver calls maxnet_receive() for the field of every data packet, and maxnet_echo() for the field of every
 * acknowledgement.
 *
 * A router calls maxnet_tick() every dt_p with the bytes that arrived and those that wait (or maxnet_idle() for many
 * intervals without arrivals), and maxnet_mark() for the field of every packet. maxnet_mark_price() is for a fast path
 * that leaves start rates to a slower one.
 *
 *
 * Scales
 *
 * alpha, eta and a connection's weight are in thousandths, mu is in millionths, T is in whole milliseconds, and other
 * times are in whole microseconds. Prices on the wire are in 2^-18 s (section V). In memory they have more fractional
 * bits, so that small steps are not lost:
 *
 *   - A router's price is in 2^-34 s. It changes by (y/C - mu) dt_p. Each time up to 2^-34 s is truncated, and mu dt_p
 *     is rounded to the same unit: together the target is off by 6 10^-8 of C at dt_p = 1 ms and by 9 10^-5 at 1 us.
 *   - A receiver's average is in 2^-58 s. It moves by dt/tau of a difference. With a packet every us and an RTT of 16 s
 *     that is 6 10^-8 of it; in 2^-34 s the average would stop 10^-3 s short, which is 0.25 % of the rate at T = 0.4 s.
 *   - xi is in 2^-34 with 32 more bits in xi_low (2^-66), and moves by a fraction in 2^-62: with an acknowledgement
 *     every us and an RTT of 16 s a step is 5.6 10^-11 of the distance.
 *
 *   field            scale             range used here          why it fits
 *   ---------------  ----------------  -----------------------  -------------------------------
 *   price on wire    2^-18 s           23 bits: 0 .. 32 s       section V
 *   router's price   2^-34 s           up to p_max, 46 bits     T ln(x_max/x_min) is 3200 s at T = 100 s
 *   average          2^-58 s           63 bits                  23 + 40
 *   xi               2^-34 and 2^-66   61 bits and a sign       alpha q / tau is 2^26 at q = 32 s, tau = 1 us
 *   alpha            10^-3             1 .. 1571 (pi/2)         11 bits
 *   eta              10^-3             1 .. 65535               16 bits
 *   T                ms                1 .. 100000              17 bits
 *   base RTT         us                1 .. 2^24 (16.8 s)       longer ones are clamped; 0 is "not known"
 *   dt               us                0 .. 2^30 (18 min)       longer ones are clamped
 *   dt_min           us                0 .. 10^6
 *   dt_p             us                1 .. 10^6                20 bits
 *   T_0              us                dt_p + 1 .. 2^32 - 1
 *   mu               10^-6             1 .. 10^6                20 bits
 *   weight           10^-3             1 .. 10^6                20 bits
 *   x_max            bit/s             32 .. 10^15              50 bits
 *   x_min            bit/s             32 .. x_max              ln(10^15/32) is below 32, the codes' range
 *   rates, C         bit/s             1 .. 2^57                x_max times a weight of 144; clamped
 *   bytes, queue     bytes             0 .. 2^40                1 ms at 8 Pbit/s; clamped
 *   window           bytes             0 .. 2^59                2^57 bit/s for 16.8 s
 *   packet           bytes             1 .. 2^32 - 1
 *   time             us                64 bits
 *
 * Where the table does not say "clamped", the caller must stay within the range. Where a product could exceed 64 bits,
 * a comment counts its bits. All divisions are of unsigned numbers (BPF has no signed division); signed quantities are
 * handled by sign and magnitude.
 *
 *
 * Differences from the law in real numbers
 *
 *   - x: the exponential is within 1.1 10^-6 of its value (fixed.h), its exponent within 2^-33, and the result is
 *     truncated to whole bit/s: 10^-5 at 100 kbit/s, up to 3 % at 32 bit/s, the slowest rate.
 *   - W is truncated to whole bytes. A base RTT is a whole number of microseconds, and the window is that number times
 *     the rate: a flow whose RTT of 10.5 us is rounded to 10 us gets 5 % less.
 *   - Time is in whole microseconds. The error of dt is below one and does not add up, as the next dt starts where this
 *     one ended.
 *   - p_min, p_max, and a start rate on the wire, are found in whole codes of ln(rate): 3.8 10^-6 of the rate. A start rate is
 *     rounded up to a code; the real law rounds to the nearest.
 *   - A rise of MaxStart is rounded up to a whole bit/s, so that MaxStart ends.
 *   - A weight is a whole number of thousandths.
 *   - `rate` may be less than a packet per RTT and is at least 1 bit/s; `window` is at least a packet. A host that
 *     paces can send at the fraction, where the real law sends at least a packet per RTT.
 *
 *
 * On a host
 *
 * Prices come with packets of a real connection. The interface of law.h adds what the law needs there:
 *
 *   addition          function                why
 *   ----------------  ----------------------  -----------------------------------------------------------------------
 *   first window      maxnet_start()          a router grants nothing after a dt_p with a burst: MaxStart then sends the
 *                                             first window (RFC 6928) per RTT, otherwise at least a packet
 *   smallest tau      maxnet_host_tau()       a price is up to dt_p = 1 ms old, so no control loop is faster
 *   pairs             maxnet_host_tau()       with less than a packet per RTT the next echo comes with the next packet,
 *                                             or with the one after that: tau is twice the time of two packets, in
 *                                             steps of two
 *   xi restart        maxnet_host_echo()      a rate that fell too far would need minutes at the longer tau: after such
 *                                             a step the next price is applied as if it were the first
 *   receiver's tau    maxnet_host_receive()   at least the sender's smallest tau
 */
#ifndef WATERFILL_MAXNET_H
#define WATERFILL_MAXNET_H

#include "law.h"

#define LAW WATERFILL_MAXNET
#define LAW_FORWARD_BYTES 3
#define LAW_ECHO_BYTES 3
#define LAW_PACED 1
#define LAW_RESTS_WITH_QUEUE 0
#define LAW_REACTION_US(p) (4 * ((p)->dt_p > MAXNET_HOST_TAU_MIN_US ? (p)->dt_p : MAXNET_HOST_TAU_MIN_US))

#include "host.h"

/* Declaration of functions; an includer may define it. maxnet_link_init() has too many arguments for a BPF function
 * that is not inlined, so it is always inlined.
 */
#ifndef MAXNET_INLINE
#define MAXNET_INLINE static inline __attribute__((always_inline))
#endif

/* Longest base RTT, and longest dt. */
#define MAXNET_RTT_MAX_US (1u << 24)
#define MAXNET_DT_MAX_US (1u << 30)
/* The largest rate: 144 times 10^15 bit/s. */
#define MAXNET_RATE_MAX_BPS (1ull << 57)
/* The most bytes of an interval, or of a queue. */
#define MAXNET_BYTES_MAX (1ull << 40)
/* The largest rise of a price in an interval, in 2^-34 s. */
#define MAXNET_TIME_MAX (1ull << 58)
/* The largest |xi|; only an RTT that falls and rises again and again gets there. */
#define MAXNET_XI_MAX (1ll << 61)
/* Fractional bits of a receiver's average beyond those on the wire. */
#define MAXNET_AVERAGE_BITS 40
/* Number of MaxStart's rises in an RTT. */
#define MAXNET_STEPS_PER_RTT 16

/* Parameters that all connections share. */
struct maxnet_params {
	__u64 x_max;      /* bit/s */
	__u64 x_min;      /* bit/s */
	__u32 alpha;      /* 10^-3 */
	__u32 eta;        /* 10^-3 */
	__u32 t;          /* ms */
	__u32 dt_min;     /* us: minimum time between two updates of xi and the window */
	__u32 average;    /* 1: the receiver averages prices over an RTT */
	__u32 compensate; /* 1: xi is corrected when the base RTT changes */
	__u32 xi_first;   /* 1: xi is updated before the rate, as Fig. 2 prints it */
	__u32 bare;       /* 1: without what hosts add below; 0 in kernels */
};

enum maxnet_mode {
	MAXNET_ASKING,
	MAXNET_RISING,
	MAXNET_PRICED,
};

/* The sending side of one connection, initialised by maxnet_source_init(). */
struct maxnet_source {
	__u64 window;        /* bytes: a result */
	__u64 rate;          /* bit/s: a result, for pacing; 0 before the first field of a router */
	__u64 demand_max;    /* bit/s: x_max times the connection's weight */
	__u64 start_rate;    /* bit/s: MaxStart's */
	__u64 start_initial; /* bit/s: the start rate that the path granted */
	__s64 xi;            /* 2^-34 */
	__u64 xi_speed;      /* 2^-62 per us: alpha eta T / tau^2 */
	__u64 updated;       /* us: time of the last update by a price */
	__u64 raised;        /* us: time of MaxStart's last rise */
	__u32 xi_low;     /* 2^-66: xi's lower bits */
	__u32 price;         /* 2^-18 s: q of the last update */
	__u32 base_rtt;      /* us; 0 before one is known */
	__u32 packet;        /* bytes: the minimum window */
	__u32 mode;          /* enum maxnet_mode */
	__u32 has_price;
	__u32 price_max;     /* 2^-18 s: the highest price that the source applies */
	__u32 rising_window; /* bytes: on a host, MaxStart sends at least this much per RTT, up to the price's rate */
};

/* The receiving side of one connection; initialise with zeros. */
struct maxnet_receiver {
	__u64 average;   /* 2^-58 s */
	__u64 last;      /* us: time of the last price */
	__u32 rtt;       /* us: smallest sample; 0 before the first */
	__u32 start;     /* the last field, flag included, if it was a start rate; otherwise 0 */
	__u32 has_price;
	__u32 reserved;
};

/* One direction of a link, initialised by maxnet_link_init(). */
struct maxnet_link {
	__u64 capacity;     /* bit/s */
	__u64 x_max;        /* bit/s */
	__u64 start_share;  /* bit/s: (mu + (1 - mu)/4) C */
	__u64 price;        /* 2^-34 s */
	__u64 price_min;    /* 2^-34 s */
	__u64 price_max;    /* 2^-34 s */
	__u64 target_time;  /* 2^-34 s: mu dt_p */
	__u64 arrival_rate; /* bit/s: y of the last full interval */
	__u64 promised;     /* bit/s: start rates promised, as they were `promised_age` ago */
	__u64 promised_age; /* 2^-34 T_0 */
	__u64 aging;        /* 2^-34: dt_p / T_0 */
	__u32 price_code;   /* 2^-18 s: the price that packets get */
	__u32 t;            /* ms */
	__u32 mu;           /* 10^-6 */
	__u32 dt_p;         /* us */
	__u32 t_0;          /* us */
	__u32 promise;      /* 1: promised start rates are remembered for T_0 */
};

/* Returns the time since `then`: 0 if that is later, and at most MAXNET_DT_MAX_US. */
MAXNET_INLINE __u64 maxnet_since(__u64 then, __u64 now)
{
	__u64 dt = now > then ? now - then : 0;

	return dt < MAXNET_DT_MAX_US ? dt : MAXNET_DT_MAX_US;
}

/* ------------------------------------------------------------------ router */

/* Returns y_dt + Q dt_p / T_0 in 2^-16 bytes: the queue counts as if it had been sent again. [maxnet-2007:fig3] */
MAXNET_INLINE __u64 maxnet_with_queue(__u64 bytes, __u64 queue_bytes, __u32 dt_p, __u32 t_0)
{
	__u64 arrived = bytes < MAXNET_BYTES_MAX ? bytes : MAXNET_BYTES_MAX;
	__u64 queue = queue_bytes < MAXNET_BYTES_MAX ? queue_bytes : MAXNET_BYTES_MAX;

	return (arrived << 16) + fixed_scale(queue << 16, dt_p, t_0); /* both 56 bits, as dt_p < T_0; 32 + 20 */
}

/* Returns how long a volume in 2^-16 bytes takes at `capacity`, in 2^-34 s. */
MAXNET_INLINE __u64 maxnet_time_for(__u64 volume, __u64 capacity)
{
	if (volume / capacity >= MAXNET_TIME_MAX >> 21)
		return MAXNET_TIME_MAX;
	return fixed_divide(volume, capacity, 21); /* 8 bits and 2^(34 - 16) */
}

/* Returns p after n steps of p + y/C - mu dt_p, from p_min to p_max; y/C is `time`. [maxnet-2007:eq3, V, VI] */
MAXNET_INLINE __u64 maxnet_price_next(const struct maxnet_link *link, __u64 time, __u64 n)
{
	__u64 headroom, step;

	if (time > link->target_time) {
		headroom = link->price_max - link->price;
		step = time - link->target_time;
		return n > headroom / step ? link->price_max : link->price + n * step;
	}
	if (time < link->target_time) {
		headroom = link->price - link->price_min;
		step = link->target_time - time;
		return n > headroom / step ? link->price_min : link->price - n * step;
	}
	return link->price;
}

/* Sets the price, or its limit if the price is out of range. */
MAXNET_INLINE void maxnet_set_price(struct maxnet_link *link, __u64 price)
{
	if (price < link->price_min)
		price = link->price_min;
	link->price = price < link->price_max ? price : link->price_max;
	link->price_code = fixed_price_code(link->price);
}

/* Updates the price for n intervals, each with `bytes` arrived and `queue_bytes` waiting. [maxnet-2007:fig3] */
MAXNET_INLINE void maxnet_intervals(struct maxnet_link *link, __u64 n, __u64 bytes, __u64 queue_bytes)
{
	__u64 volume = maxnet_with_queue(bytes, queue_bytes, link->dt_p, link->t_0);
	__u64 headroom = FIXED_EXP_MAX - link->promised_age;

	link->price = maxnet_price_next(link, maxnet_time_for(volume, link->capacity), n);
	link->price_code = fixed_price_code(link->price);
	link->promised_age = n > headroom / link->aging ? FIXED_EXP_MAX : link->promised_age + n * link->aging;
}

/* Ends an interval in which `bytes` arrived, with `queue_bytes` waiting now. */
MAXNET_INLINE void maxnet_tick(struct maxnet_link *link, __u64 bytes, __u64 queue_bytes)
{
	__u64 arrived = bytes < MAXNET_BYTES_MAX ? bytes : MAXNET_BYTES_MAX;

	link->arrival_rate = arrived * 8000000 / link->dt_p; /* 41 + 23 bits: 2^40 8 10^6 < 2^63 */
	maxnet_intervals(link, 1, arrived, queue_bytes);
}

/* Ends `intervals` intervals without arrivals: the same as that many ticks with 0 bytes and this queue. */
MAXNET_INLINE void maxnet_idle(struct maxnet_link *link, __u64 intervals, __u64 queue_bytes)
{
	if (!intervals)
		return;
	link->arrival_rate = 0;
	maxnet_intervals(link, intervals, 0, queue_bytes);
}

/* Sets another rate, target or x_min on a running link; its price moves only into its new range. mu in 10^-6. */
MAXNET_INLINE void maxnet_link_set(struct maxnet_link *link, __u64 capacity_bps, __u64 x_min, __u32 mu)
{
	link->capacity = capacity_bps ? capacity_bps : 1;
	if (link->capacity > MAXNET_RATE_MAX_BPS)
		link->capacity = MAXNET_RATE_MAX_BPS;
	link->mu = mu < 1000000 ? mu : 1000000;
	/* mu + (1 - mu)/4 is (3 mu + 1)/4: 36 + 22; 22 + 22 bits. [maxnet-2007:IV.B] */
	link->start_share = fixed_scale(link->capacity, 3ull * link->mu + 1000000, 4000000);
	/* 10^-12 s is 2^34/10^12 = 2^22/5^12 units of 2^-34 s; 20 + 20 + 22 bits. */
	link->target_time = ((((__u64)link->mu * link->dt_p) << 22) + 122070312) / 244140625;
	link->price_max = fixed_price(x_min, link->x_max, link->t);
	link->price_min = fixed_price(link->capacity, link->x_max, link->t);
	if (link->price_min > link->price_max)
		link->price_min = link->price_max; /* a link that became slower than x_min has only one price */
	maxnet_set_price(link, link->price);
}

static inline __attribute__((always_inline)) void
maxnet_link_init(struct maxnet_link *link, __u64 capacity_bps, __u64 x_max, __u64 x_min, __u32 t_ms, __u32 mu /* 10^-6 */,
		 __u32 dt_p_us, __u32 t_0_us, __u32 promise)
{
	link->x_max = x_max;
	link->t = t_ms;
	link->dt_p = dt_p_us ? dt_p_us : 1;
	if (link->dt_p > 1000000)
		link->dt_p = 1000000;
	link->t_0 = t_0_us > link->dt_p ? t_0_us : link->dt_p + 1;
	link->promise = promise;
	link->aging = ((__u64)link->dt_p << 34) / link->t_0; /* 20 + 34 bits; at least 4 */
	link->promised = 0;
	link->promised_age = 0;
	link->arrival_rate = 0;
	link->price = 0;
	maxnet_link_set(link, capacity_bps, x_min, mu); /* sets the price to p_min */
}

/* Returns what is left of the promised rates: a promise decays over T_0, by when it arrives as load. */
MAXNET_INLINE __u64 maxnet_promised(const struct maxnet_link *link)
{
	return fixed_exp(link->promised, link->promised_age);
}

/* Returns (mu + (1 - mu)/4) C - y less the promised rates, not below 0. [maxnet-2007:IV.B] */
MAXNET_INLINE __u64 maxnet_spare_capacity(const struct maxnet_link *link)
{
	__u64 taken = link->arrival_rate + maxnet_promised(link); /* 63 + 58 bits */

	return taken < link->start_share ? link->start_share - taken : 0;
}

/* Returns the field that a packet leaves with: the higher code of a price, any other field unchanged.
 * [maxnet-2007:eq2, fig3]
 */
MAXNET_INLINE __u32 maxnet_mark_price(const struct maxnet_link *link, __u32 field)
{
	/* A start rate's flag is larger than any price. */
	return field > link->price_code ? field : link->price_code;
}

/* Returns the field that a packet leaves with: prices rise along a path and start rates fall, so both codes rise. */
MAXNET_INLINE __u32 maxnet_mark(struct maxnet_link *link, __u32 field)
{
	__u64 spare;
	__u32 own;

	if (!(field & FIXED_FLAG))
		return maxnet_mark_price(link, field);
	spare = maxnet_spare_capacity(link);
	if (link->promise) {
		link->promised = maxnet_promised(link) + spare;
		link->promised_age = 0;
	}
	own = FIXED_FLAG | fixed_rate_code(spare, link->x_max);
	return field > own ? field : own;
}

/* ------------------------------------------------------------------ receiver */

/* Takes the field of a data packet, and an RTT sample (0: none). [maxnet-2007:VI] */
MAXNET_INLINE void maxnet_receive(const struct maxnet_params *p, struct maxnet_receiver *r, __u64 now_us,
				  __u32 rtt_us, __u32 field)
{
	__u64 price = (__u64)(field & FIXED_CODE_MAX) << MAXNET_AVERAGE_BITS;

	if (rtt_us > MAXNET_RTT_MAX_US)
		rtt_us = MAXNET_RTT_MAX_US;
	if (rtt_us && (!r->rtt || rtt_us < r->rtt))
		r->rtt = rtt_us;
	if (field & FIXED_FLAG) {
		r->start = field;
		return;
	}
	r->start = 0;
	if (!price) { /* no router on the path any more: no price is better than an old one */
		r->has_price = 0;
		return;
	}
	/* Towards the price by dt/tau, at most by all of the difference. */
	if (r->has_price && p->average && r->rtt)
		r->average = fixed_towards(r->average, price, fixed_fraction(maxnet_since(r->last, now_us), r->rtt));
	else
		r->average = price;
	r->has_price = 1;
	r->last = now_us;
}

/* Returns the field of an acknowledgement. */
MAXNET_INLINE __u32 maxnet_echo(const struct maxnet_receiver *r)
{
	__u64 code = (r->average + (1ull << (MAXNET_AVERAGE_BITS - 1))) >> MAXNET_AVERAGE_BITS;

	if (r->start)
		return r->start;
	return r->has_price ? (__u32)code : 0; /* an average of codes does not exceed the largest */
}

/* ------------------------------------------------------------------ source */

/* Returns alpha q / tau in 2^-34. */
MAXNET_INLINE __u64 maxnet_gain(__u32 code, __u32 alpha, __u32 base_rtt)
{
	/* 39 + 11 + 10 bits; 10^-3 and us make 1000. */
	return (((__u64)code << FIXED_EXTRA_BITS) * alpha * 1000 + base_rtt / 2) / base_rtt;
}

/* Returns xi* = alpha q / tau - q / T. [maxnet-2007:VI] */
MAXNET_INLINE __s64 maxnet_xi_rest(__u32 code, __u32 alpha, __u32 base_rtt, __u32 t)
{
	return (__s64)maxnet_gain(code, alpha, base_rtt) -
	       (__s64)((((__u64)code << FIXED_EXTRA_BITS) * 1000 + t / 2) / t);
}

/* Returns alpha eta T / tau^2 in 2^-62 per us, at most 1 per us. */
MAXNET_INLINE __u64 maxnet_xi_speed(const struct maxnet_params *p, __u32 base_rtt)
{
	__u64 gain = (__u64)p->alpha * p->eta * p->t; /* 10^-9 s: 11 + 16 + 17 bits */
	__u64 square = (__u64)base_rtt * base_rtt * 1000; /* 10^-9 s us: 48 + 10 bits */

	return gain < square ? fixed_divide(gain, square, 62) : FIXED_FINE_ONE;
}

/* Returns dt times that speed as a fine fraction. Beyond 1, eq. 10 would carry xi past xi*, where it is stopped. */
MAXNET_INLINE __u64 maxnet_xi_fraction(__u64 speed, __u64 dt)
{
	/* The speed is at least 16: alpha = eta = 0.001, T = 1 ms and an RTT of 16.8 s. */
	return dt > FIXED_FINE_ONE / speed ? FIXED_FINE_ONE : dt * speed;
}

/* xi + (alpha eta / tau^2) dt ((T alpha / tau - 1) q - T xi), whose last factor is T (xi* - xi). [maxnet-2007:eq10] */
MAXNET_INLINE void maxnet_xi_next(struct maxnet_source *s, __s64 rest, __u64 fraction)
{
	__u32 low;

	if (rest >= s->xi) {
		s->xi += (__s64)fixed_fine_part((__u64)(rest - s->xi), fraction, &low);
		s->xi_low += low;
		s->xi += s->xi_low < low; /* carry */
	} else {
		s->xi -= (__s64)fixed_fine_part((__u64)(s->xi - rest), fraction, &low);
		s->xi -= s->xi_low < low; /* borrow */
		s->xi_low -= low;
	}
}

/* Returns xi + q alpha (1 / tau_new - 1 / tau_old). [tcp-maxnet-2006:eq12] */
MAXNET_INLINE __s64 maxnet_compensated(__s64 xi, __u32 code, __u32 alpha, __u32 rtt_new, __u32 rtt_old)
{
	xi += (__s64)maxnet_gain(code, alpha, rtt_new) - (__s64)maxnet_gain(code, alpha, rtt_old);
	if (xi > MAXNET_XI_MAX)
		return MAXNET_XI_MAX;
	return xi < -MAXNET_XI_MAX ? -MAXNET_XI_MAX : xi;
}

/* Returns x_max e^(xi - alpha q / tau), not above x_max; `scale` is x_max times the weight. [maxnet-2007:eq6a] */
MAXNET_INLINE __u64 maxnet_rate(__u64 scale, __s64 xi, __u64 gain)
{
	__s64 u = (__s64)gain - xi;

	return fixed_exp(scale, u > 0 ? (__u64)u : 0);
}

/* Returns W = tau x, in bytes. [maxnet-2007:eq10] */
MAXNET_INLINE __u64 maxnet_window(__u64 rate, __u32 base_rtt)
{
	return fixed_scale(rate, base_rtt, 1000000) / 8; /* 2^57/10^6 is 38 bits, + 24; 20 + 24 */
}

/* Returns Delta dt / (2 tau), rounded up to whole bit/s; all of Delta after two RTTs. [maxnet-2007:IV.B] */
MAXNET_INLINE __u64 maxnet_start_rise(__u64 delta, __u64 dt, __u32 base_rtt)
{
	__u64 two = 2 * (__u64)base_rtt;

	return dt < two ? fixed_scale(delta, dt, two) + 1 : delta; /* 57 bits in all; 25 + 25 */
}

MAXNET_INLINE void maxnet_set_rate(struct maxnet_source *s, __u64 rate)
{
	__u64 window = maxnet_window(rate, s->base_rtt);

	s->rate = rate ? rate : 1;
	/* At least a packet: with less, the source would learn too late that the price has fallen. */
	s->window = window > s->packet ? window : s->packet;
}

/* Initialises a connection with its first window. `weight` in 10^-3. */
MAXNET_INLINE void maxnet_source_init(const struct maxnet_params *p, struct maxnet_source *s, __u32 packet_bytes,
				      __u64 window_bytes, __u32 weight)
{
	__u64 demand;

	if (weight > 1000000)
		weight = 1000000;
	demand = fixed_scale(p->x_max, weight, 1000); /* 40 + 20; 10 + 20 bits */
	if (demand > MAXNET_RATE_MAX_BPS)
		demand = MAXNET_RATE_MAX_BPS;
	s->window = window_bytes;
	s->rate = 0;
	s->demand_max = demand ? demand : 1;
	s->start_rate = 0;
	s->start_initial = 0;
	s->xi = 0;
	s->xi_speed = 0;
	s->updated = 0;
	s->raised = 0;
	s->xi_low = 0;
	s->price = 0;
	s->base_rtt = 0;
	s->packet = packet_bytes;
	s->mode = MAXNET_ASKING;
	s->has_price = 0;
	s->price_max = fixed_price_code(fixed_price(p->x_min, p->x_max, p->t));
	s->rising_window = p->bare ? 0 : packet_bytes;
}

/* Sets the base RTT; returns whether it changed. */
MAXNET_INLINE int maxnet_set_base_rtt(const struct maxnet_params *p, struct maxnet_source *s, __u32 base_rtt_us)
{
	if (base_rtt_us > MAXNET_RTT_MAX_US)
		base_rtt_us = MAXNET_RTT_MAX_US;
	if (!base_rtt_us || base_rtt_us == s->base_rtt)
		return 0;
	if (p->compensate && s->has_price)
		s->xi = maxnet_compensated(s->xi, s->price, p->alpha, base_rtt_us, s->base_rtt);
	s->base_rtt = base_rtt_us;
	s->xi_speed = maxnet_xi_speed(p, base_rtt_us);
	return 1;
}

/* Returns MaxStart's rate, or on a host `rising_window` per RTT if that is more. */
MAXNET_INLINE __u64 maxnet_rising_rate(const struct maxnet_source *s)
{
	__u64 least = (__u64)s->rising_window * 8000000 / s->base_rtt; /* 32 + 23 bits */

	if (least > s->demand_max)
		least = s->demand_max;
	return s->start_rate > least ? s->start_rate : least;
}

/* Takes a start rate. A host that is granted less than a packet per RTT sends its first window (RFC 6928) per RTT,
 * because a router grants nothing after a dt_p with a burst. [maxnet-2007:IV.B]
 */
MAXNET_INLINE void maxnet_start(const struct maxnet_params *p, struct maxnet_source *s, __u32 code)
{
	if (s->mode != MAXNET_ASKING)
		return;
	if (!code) { /* no router on the path */
		s->mode = MAXNET_PRICED;
		return;
	}
	s->start_rate = fixed_exp(p->x_max, (__u64)code << FIXED_EXTRA_BITS);
	s->start_initial = s->start_rate;
	s->mode = MAXNET_RISING;
	if (!p->bare && maxnet_window(s->start_rate, s->base_rtt) < s->packet)
		s->rising_window = s->window < 0xffffffff ? (__u32)s->window : 0xffffffff;
	maxnet_set_rate(s, maxnet_rising_rate(s));
}

/* Returns the rate to use: MaxStart's while it is below the price's. [maxnet-2007:IV.B] */
MAXNET_INLINE __u64 maxnet_start_or_price_rate(struct maxnet_source *s, __u64 price_rate, __u64 now)
{
	__u64 dt = maxnet_since(s->raised, now);
	__u64 rate;

	if (s->mode != MAXNET_RISING)
		return price_rate;
	/* Check the end first: if the price's rate is below the initial one, Delta would be negative. */
	if (s->start_rate < price_rate && dt * MAXNET_STEPS_PER_RTT >= s->base_rtt) {
		s->start_rate += maxnet_start_rise(price_rate - s->start_initial, dt, s->base_rtt);
		s->raised = now;
	}
	rate = maxnet_rising_rate(s);
	if (rate < price_rate)
		return rate;
	s->mode = MAXNET_PRICED;
	return price_rate;
}

/* Updates xi, rate and window by Fig. 2 for a price. */
MAXNET_INLINE void maxnet_apply_price(const struct maxnet_params *p, struct maxnet_source *s, __u64 now, __u32 code)
{
	__s64 rest = maxnet_xi_rest(code, p->alpha, s->base_rtt, p->t);
	__u64 gain = maxnet_gain(code, p->alpha, s->base_rtt);
	__s64 xi = s->xi;

	if (s->has_price) {
		maxnet_xi_next(s, rest, maxnet_xi_fraction(s->xi_speed, maxnet_since(s->updated, now)));
		if (p->xi_first)
			xi = s->xi;
	} else {
		xi = rest;
		s->xi = rest;
		s->has_price = 1;
		if (!s->raised)
			s->raised = now; /* MaxStart's clock starts with the first price ever, even if a host clears has_price */
		if (s->mode == MAXNET_ASKING)
			s->mode = MAXNET_PRICED;
	}
	s->price = code;
	s->updated = now;
	maxnet_set_rate(s, maxnet_start_or_price_rate(s, maxnet_rate(s->demand_max, xi, gain), now));
}

/* Takes an acknowledgement with this field in its echo. */
MAXNET_INLINE void maxnet_ack(const struct maxnet_params *p, struct maxnet_source *s, __u64 now_us, __u32 base_rtt_us,
			      __u32 field)
{
	__u32 code = field & FIXED_CODE_MAX;

	maxnet_set_base_rtt(p, s, base_rtt_us);
	if (!s->base_rtt)
		return;
	if (field & FIXED_FLAG) {
		maxnet_start(p, s, code);
		return;
	}
	if (!code) /* no router on the path, or no price yet */
		return;
	if (s->has_price && maxnet_since(s->updated, now_us) < p->dt_min)
		return;
	/* xi follows xi*(q), so p_max bounds it as well. */
	maxnet_apply_price(p, s, now_us, code < s->price_max ? code : s->price_max);
}

/* Takes a new base RTT without an echo: compensates xi and sets the window. */
MAXNET_INLINE void maxnet_base_rtt(const struct maxnet_params *p, struct maxnet_source *s, __u32 base_rtt_us)
{
	__u64 rate, rising;

	if (!maxnet_set_base_rtt(p, s, base_rtt_us))
		return;
	rate = rising = maxnet_rising_rate(s);
	if (s->has_price) {
		rate = maxnet_rate(s->demand_max, s->xi, maxnet_gain(s->price, p->alpha, s->base_rtt));
		if (s->mode == MAXNET_RISING && rising < rate)
			rate = rising;
	} else if (s->mode != MAXNET_RISING) {
		return; /* the law does not set the window yet */
	}
	maxnet_set_rate(s, rate);
}

/* ------------------------------------------------------------------ on a host */

/* Limits of the RTT that the law gets. Half a second is the time of two packets at 48 kbit/s. */
#define MAXNET_HOST_TAU_MIN_US 1000
#define MAXNET_HOST_TAU_MAX_US 500000

/* Returns the RTT of the law's control loop, tau, in us; 0: not known. It is the path's RTT, or twice the time of two
 * packets if that is longer, and changes in factors of two. MaxStart sends packets in every RTT, and a longer tau would
 * lower its rate, which would lengthen tau again.
 */
MAXNET_INLINE __u32 maxnet_host_tau(const struct maxnet_source *s, __u32 base_rtt_us)
{
	__u32 rtt = base_rtt_us;
	__u32 tau = s->base_rtt;
	__u64 pair;

	if (!rtt)
		return 0;
	if (rtt < MAXNET_HOST_TAU_MIN_US)
		rtt = MAXNET_HOST_TAU_MIN_US;
	if (!s->rate || s->mode == MAXNET_RISING)
		return rtt;
	if (tau <= rtt)
		tau = rtt;
	pair = 2ull * s->packet * 8000000 / s->rate; /* us */
	if (pair > MAXNET_HOST_TAU_MAX_US)
		pair = MAXNET_HOST_TAU_MAX_US;
	if (tau < pair || tau > 4 * pair)
		return 2 * pair > rtt ? 2 * pair : rtt;
	return tau;
}

/* Takes an acknowledgement: with an echo, or with at most a new base RTT (0: not known). */
MAXNET_INLINE void maxnet_host_echo(const struct maxnet_params *p, struct maxnet_source *s, __u64 now_us,
				    __u32 base_rtt_us, __u32 has_echo, __u32 field)
{
	__u32 tau = p->bare ? base_rtt_us : maxnet_host_tau(s, base_rtt_us);

	if (!p->bare && (tau >= 2 * s->base_rtt || s->rate < host_min_rate(s->packet)))
		s->has_price = 0;
	if (has_echo)
		maxnet_ack(p, s, now_us, tau, field);
	else
		maxnet_base_rtt(p, s, tau);
}

/* Takes the field of a data packet, and an RTT sample (0: none). */
MAXNET_INLINE void maxnet_host_receive(const struct maxnet_params *p, struct maxnet_receiver *r, __u64 now_us,
				       __u32 rtt_us, __u32 field)
{
	if (!p->bare && rtt_us && rtt_us < MAXNET_HOST_TAU_MIN_US)
		rtt_us = MAXNET_HOST_TAU_MIN_US;
	maxnet_receive(p, r, now_us, rtt_us, field);
}

/* ------------------------------------------------------------------ the interface of law.h */

/* The law's own target, 10^-6. (maxnet-2007 section VII.A) */
#define MAXNET_MU 900000

struct law_params {
	struct maxnet_params source;
	__u32 dt_p;    /* us */
	__u32 t_0;     /* us */
	__u32 promise; /* 1: promised start rates are remembered for T_0 */
	__u32 weight;  /* 10^-3 of this connection; 0: 1 */
};

struct law_link {
	struct maxnet_link maxnet;
	__u32 start; /* the field with the start rate that SYNs get until the next tick; 0: not computed yet */
	__u32 reserved;
};

struct law_sums {
	__u64 bytes;
};

struct law_cpu {
	struct law_sums sums;
};

/* The law cannot change x_max, T, dt_p or T_0 while it runs: there it restarts with the old price. */
FIXED_INLINE void law_link_set(struct law_link *link, const struct law_params *p, __u64 capacity, __u32 target)
{
	struct maxnet_link *law = &link->maxnet;
	__u64 price = law->price;

	if (!target)
		target = MAXNET_MU;
	link->start = 0;
	if (law->dt_p && law->x_max == p->source.x_max && law->t == p->source.t && law->dt_p == p->dt_p &&
	    law->t_0 == p->t_0) {
		law->promise = p->promise;
		maxnet_link_set(law, capacity, p->source.x_min, target);
		return;
	}
	maxnet_link_init(law, capacity, p->source.x_max, p->source.x_min, p->source.t, target, p->dt_p, p->t_0,
			 p->promise);
	maxnet_set_price(law, price);
}

FIXED_INLINE __u32 law_interval(const struct law_link *link)
{
	return link->maxnet.dt_p;
}

FIXED_INLINE void law_tick(struct law_link *link, const struct law_sums *sums, __u64 queue)
{
	maxnet_tick(&link->maxnet, sums->bytes, queue);
	link->start = 0;
}

FIXED_INLINE void law_idle(struct law_link *link, __u64 intervals, __u64 queue)
{
	maxnet_idle(&link->maxnet, intervals, queue);
	link->start = 0;
}

/* Returns 1 if marking a SYN changes the link: the first one of an interval does. */
FIXED_INLINE int law_syn_needs_lock(const struct law_link *link)
{
	return !link->start;
}

/* Returns the field with the start rate that the link gives a SYN, as maxnet_mark(), which computes 24 exponentials: so
 * only once per interval. Nothing that it depends on changes in between, but the first SYN reserves all that is spare.
 */
FIXED_INLINE __u32 law_start_rate(struct law_link *link)
{
	__u32 own = link->start;

	if (!own) {
		own = maxnet_mark(&link->maxnet, FIXED_FLAG);
		link->start = link->maxnet.promise ? FIXED_FLAG | FIXED_CODE_MAX : own;
	}
	return own;
}

/* Start rates are given on SYNs only, because each reserves capacity. */
FIXED_INLINE int law_mark(struct law_link *link, struct law_cpu *cpu __attribute__((unused)),
			  const struct law_packet *packet, __u8 *value)
{
	__u32 field = law_read_u24(value);
	__u32 own;

	if (packet->syn && field & FIXED_FLAG)
		own = law_start_rate(link);
	else
		own = link->maxnet.price_code;
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
	signals[3] = link->maxnet.price_code;	/* 2^-18 s */
}

FIXED_INLINE void law_link_restore(struct law_link *link, __u64 price)
{
	if (link->maxnet.price < price)
		maxnet_set_price(&link->maxnet, price);
}

struct law_source {
	struct maxnet_source maxnet;
};

FIXED_INLINE void law_source_init(const struct law_params *p, struct law_source *s, __u32 packet, __u64 window)
{
	maxnet_source_init(&p->source, &s->maxnet, packet, window, p->weight ? p->weight : 1000);
}

/* A SYN asks for a start rate, */
FIXED_INLINE void law_request(const struct law_params *p __attribute__((unused)), __u8 *value)
{
	law_write_u24(value, FIXED_FLAG);
}

/* and data for a price. */
FIXED_INLINE void law_forward(const struct law_params *p __attribute__((unused)),
			      const struct law_source *s __attribute__((unused)), __u8 *value)
{
	law_write_u24(value, 0);
}

FIXED_INLINE int law_heard(const __u8 *echo)
{
	return (law_read_u24(echo) & FIXED_CODE_MAX) != 0;
}

FIXED_INLINE void law_ack(const struct law_params *p, struct law_source *s, const struct law_tcp *tcp, int has_echo,
			  const __u8 *echo)
{
	maxnet_host_echo(&p->source, &s->maxnet, tcp->now_us, tcp->base_rtt_us, has_echo, law_read_u24(echo));
}

LAW_IGNORES_LOSS /* it is not congestion */

FIXED_INLINE void law_limit(struct law_source *s, const struct law_tcp *tcp, struct law_limit *limit)
{
	s->maxnet.packet = tcp->packet;
	limit->rate = s->maxnet.rate;
	limit->window = s->maxnet.window;
	limit->packet = tcp->packet;
	limit->steady = s->maxnet.mode == MAXNET_PRICED;
	limit->heard = s->maxnet.has_price;
}

FIXED_INLINE void law_reduce(struct law_source *s, __u32 shift)
{
	struct maxnet_source *law = &s->maxnet;

	law->rate -= law->rate >> shift;
	if (law->start_rate > law->rate)
		law->start_rate = law->rate; /* MaxStart continues from here */
	if (law->start_initial > law->start_rate)
		law->start_initial = law->start_rate; /* and Delta is not negative */
	law->rising_window -= (__u32)((__u64)law->rising_window >> shift);
	law->window = maxnet_window(law->rate, law->base_rtt);
}

FIXED_INLINE __u64 law_evidence(const struct law_source *s)
{
	return s->maxnet.price;
}

/* A router whose link is overloaded raises its price by 1 - mu seconds per second at least: a 128th for mu = 0.99. */
FIXED_INLINE int law_tightens(const struct law_source *s, __u64 evidence, __u64 us)
{
	return s->maxnet.price > evidence + us / 128 * 262144 / 1000000; /* us to 2^-18 s */
}

FIXED_INLINE void law_source_read(const struct law_source *s, __u64 signals[LAW_SIGNALS])
{
	signals[0] = s->maxnet.price;	     /* 2^-18 s */
	signals[1] = (__u64)s->maxnet.xi;    /* 2^-34, signed */
	signals[2] = s->maxnet.start_rate;   /* bit/s */
	signals[3] = s->maxnet.base_rtt;     /* us: tau */
}

struct law_receiver {
	struct maxnet_receiver maxnet;
};

FIXED_INLINE void law_receive(const struct law_params *p, struct law_receiver *r, __u64 now_us, __u32 rtt_us,
			      const __u8 *value, __u32 segments __attribute__((unused)))
{
	maxnet_host_receive(&p->source, &r->maxnet, now_us, rtt_us, law_read_u24(value));
}

FIXED_INLINE void law_echo(const struct law_receiver *r, __u8 *echo)
{
	law_write_u24(echo, maxnet_echo(&r->maxnet));
}

/* 2^-58 s */
FIXED_INLINE __u64 law_receiver_read(const struct law_receiver *r)
{
	return r->maxnet.has_price ? r->maxnet.average : 0;
}

#endif
