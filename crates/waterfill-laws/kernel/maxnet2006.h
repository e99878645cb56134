/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * TCP MaxNet of 2006 in integers: the twin of src/protocols/maxnet2006.rs.
 *
 * The law, its equations and its readings are told there; the tags [tcp-maxnet-2006:...] are the
 * same in both. This file says how the law is computed where there is no floating point. It needs
 * nothing but integer types, calls nothing, and is what the simulator runs (`arithmetic = "kernel"`).
 *
 *
 * What a source does
 *
 *                start rate                   QuickStart's window            new price every ACK,
 *   ASKING  ------------------>  QUICKSTART  ------------------->  PRICED    window every dt
 *      |       (first ACK)           |  ^     passes the price's      ^
 *      |                             +--+     window                  |
 *      |              x rateinc a round trip                          |
 *      +--------------------------------------------------------------+
 *              a price and no start rate, or no router answered
 *
 * What a router does: maxnet2006_tick() every dt with the bytes that arrived, and maxnet2006_mark()
 * for the field of every packet.
 *
 *
 * Scales
 *
 * alpha, eta, T and rateinc are times 1000 and a round trip is in whole milliseconds, as section
 * 4.1 has them; prices on the wire are in 2^-18 s (section 3.3). Three things are finer than there:
 *
 *   - A price, its average and xi carry 16 more fractional bits in memory (2^-34). A router's price
 *     moves by (y/C - mu) dt: 1 ms at 1 % above the target is 2.6 units of 2^-18, and losing up to
 *     one unit each millisecond would move the target by 0.4 %. An average over 28 ms that is fed
 *     every 12 us takes 1/2333 of a difference: in 2^-18 it would not see one below 0.9 % of a
 *     second, 9 % of the rate.
 *   - A fraction in [0, 1], such as the step of xi, is in 2^-32.
 *   - `rtt_unit` says in microseconds what a round trip is rounded to (to the nearest; at least one
 *     unit). 1000 is the thesis's. The window is that round trip times the rate, so what is rounded
 *     off is a flow's gain or loss against others: 4 % at 10.4 ms, and every round trip below a
 *     millisecond counts as one. A smaller unit mends it.
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
 *   base RTT         us                1 .. 2^24 (16.8 s)       longer ones count as that
 *   dt of a router   us                1 .. 10^6
 *   mu, mu + eps     10^-6             1 .. 2 10^6
 *   rates            bit/s             1 .. 2^57                x_max 10^15 times a weight of 100
 *   bytes a tick     bytes             0 .. 2^40                1 ms at 8 Pbit/s
 *   max_wnd          packets           1 .. 2^26                of at most 2^14 bytes
 *   time             us                64 bits
 *
 * Every product below that could pass 64 bits has its bits counted beside it. All divisions are of
 * unsigned numbers (BPF has no signed one); signed quantities go by sign and magnitude.
 *
 *
 * The exponential
 *
 * e^-u = 2^-k 2^-f, where k + f = u log2 e. 2^-f comes from a table of 257 entries, interpolated
 * between two of them (section 4.3 has 64,000 entries over the whole range of u and none between:
 * steps of 2^-11, an error of 2.4 10^-4). Error: the chord lies above the curve by at most (ln 2 /
 * 256)^2 / 8 = 9.2 10^-7 of the value; rounding adds less than 10^-7 for u up to 44. So a rate is within
 * 1.1 10^-6 of its own, and the bit/s lost when it is cut to a whole number. A test walks over the
 * range of codes. The logarithm of a start rate is found by bisection in the same function, so that
 * what a router encodes is what a source decodes.
 */
#ifndef WATERFILL_MAXNET2006_H
#define WATERFILL_MAXNET2006_H

/* The includer provides __u32, __s64 and __u64: vmlinux.h in a kernel program, the shim on a host. */

/* A price's fractional bits on the wire, and how many more it has in memory. */
#define MAXNET2006_PRICE_BITS 18
#define MAXNET2006_EXTRA_BITS 16
/* The 24-bit field: a flag (1 = start rate) and 23 bits of value. */
#define MAXNET2006_FLAG (1u << 23)
#define MAXNET2006_CODE_MAX ((1u << 23) - 1)
/* Longest round trip, us. */
#define MAXNET2006_RTT_MAX (1u << 24)
/* One, as a fraction. */
#define MAXNET2006_ONE (1ull << 32)
/* No rate is larger, bit/s: 144 times 10^15. */
#define MAXNET2006_RATE_MAX (1ull << 57)
/* A router's price stays below 2^26 s, far above any that fits a packet. */
#define MAXNET2006_PRICE_MAX (1ull << 60)

/* What is the same for all connections. */
struct maxnet2006_params {
	__u64 x_max;       /* bit/s */
	__u32 alpha;       /* 10^-3 */
	__u32 eta;         /* 10^-3 */
	__u32 t;           /* ms */
	__u32 dt;          /* us: least time between two updates of the window */
	__u32 rtt_unit;    /* us */
	__u32 rateinc;     /* 10^-3 */
	__u32 mindeltaq;   /* 2^-18 s a second, which is tcp_maxnet_dpdt_threshold */
	__u32 wnd_update_freq; /* ACKs */
	__u32 max_wnd;     /* packets */
	__u32 average;     /* 1: average prices over a round trip */
	__u32 compensate;  /* 1: eq. 12 */
	__u32 reserved;
};

enum maxnet2006_mode {
	MAXNET2006_ASKING,
	MAXNET2006_QUICKSTART,
	MAXNET2006_PRICED,
};

/* One connection. Zeroed, then demand_max, packet and window are the caller's to set. */
struct maxnet2006_source {
	__u64 demand_max;  /* bit/s: x_max times the connection's weight */
	__u64 window;      /* bytes: the answer */
	__u64 rate;        /* bit/s: the window's, for pacing */
	__u64 start_rate;  /* bit/s: QSrate */
	__u64 average;     /* 2^-34 s: q */
	__s64 xi;          /* 2^-34 */
	__u64 heard;       /* us: when the last price came */
	__u64 updated;     /* us: step 3 */
	__u64 raised;      /* us: step 4 */
	__u32 last_price;  /* 2^-18 s: lastq */
	__u32 base_rtt;    /* us, a multiple of rtt_unit */
	__u32 packet;      /* bytes: the least window */
	__u32 acks;        /* since step 3 */
	__u32 mode;        /* enum maxnet2006_mode */
	__u32 has_price;
};

/* One direction of a link. */
struct maxnet2006_link {
	__u64 capacity;     /* bit/s */
	__u64 x_max;        /* bit/s */
	__u64 start_share;  /* bit/s: (mu + epsilon) C */
	__u64 start_min;    /* bit/s: QSminrate */
	__u64 price;        /* 2^-34 s */
	__u64 price_min;    /* 2^-34 s */
	__u64 target_time;  /* 2^-34 s: mu dt */
	__u64 arrival_rate; /* bit/s: y/dt of the last full interval */
	__u32 dt;           /* us */
	__u32 reserved;
};

/* ------------------------------------------------------------------ arithmetic */

/* 2^31 2^(-i/256), to the nearest. */
static const __u32 maxnet2006_exp2[257] = {
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

/* a f for a fraction f <= 1; a < 2^63. */
static inline __u64 maxnet2006_part(__u64 a, __u64 f)
{
	return (a >> 32) * f /* 31 + 33 bits */ + (((a & 0xffffffff) * f) >> 32) /* < 2^64, as f <= 2^32 */;
}

/* a n / d without the overflow of a n; the quotient must fit. (a % d) n < 2^64 is the caller's to see to. */
static inline __u64 maxnet2006_scale(__u64 a, __u64 n, __u64 d)
{
	return a / d * n + a % d * n / d;
}

/* scale e^-u, u in 2^-34; scale < 2^62. [tcp-maxnet-2006:4.3] */
static inline __u64 maxnet2006_exp(__u64 scale, __u64 u)
{
	const __u64 u_max = 44ull << 34; /* 10^15 e^-44 is 0 bit/s; and k stays below 64 */
	__u64 y, m, product;
	__u32 i, between;

	if (u > u_max)
		u = u_max;
	y = ((u >> 8) * 1549082005) >> 32; /* log2 e in 2^-30: 32 + 31 bits; y in 2^-24 */
	i = (y >> 16) & 0xff;
	between = y & 0xffff;
	m = maxnet2006_exp2[i];
	m -= ((m - maxnet2006_exp2[i + 1]) * between) >> 16;
	product = (((scale >> 32) * m) << 1) + (((scale & 0xffffffff) * m) >> 31); /* 30 + 32 + 1 bits; 32 + 32 */
	return product >> (y >> 24);
}

/* -ln(rate/x_max) in 2^-18: the largest code whose rate is not below `rate`. [tcp-maxnet-2006:3.3] */
static inline __u32 maxnet2006_rate_code(__u64 rate, __u64 x_max)
{
	__u32 code = 0;
	int bit;

	for (bit = 22; bit >= 0; bit--) {
		__u32 larger = code | (1u << bit);

		if (maxnet2006_exp(x_max, (__u64)larger << MAXNET2006_EXTRA_BITS) >= rate)
			code = larger;
	}
	return code;
}

/* The code of a price, to the nearest. */
static inline __u32 maxnet2006_price_code(__u64 price)
{
	__u64 code = (price + (1u << (MAXNET2006_EXTRA_BITS - 1))) >> MAXNET2006_EXTRA_BITS;

	return code < MAXNET2006_CODE_MAX ? (__u32)code : MAXNET2006_CODE_MAX;
}

/* ------------------------------------------------------------------ router */

/* D^-1(C) = -T ln(C/x_max), T in ms. [tcp-maxnet-2006:eq11] */
static inline __u64 maxnet2006_price_min(__u64 capacity, __u64 x_max, __u32 t)
{
	__u64 code = maxnet2006_rate_code(capacity, x_max);

	return ((code << MAXNET2006_EXTRA_BITS) * t + 500) / 1000; /* 39 + 17 bits */
}

/* How long `bytes` take at `capacity`, in 2^-34 s. */
static inline __u64 maxnet2006_time_for(__u64 bytes, __u64 capacity)
{
	__u64 bits = (bytes < 1ull << 40 ? bytes : 1ull << 40) * 8;
	__u64 time = bits / capacity;
	__u64 rest = bits % capacity;
	int i;

	if (time > 1u << 20)
		time = 1u << 20;
	/* Long division: rest 2^34 would not fit. */
	for (i = 0; i < 34; i++) {
		rest <<= 1;
		time <<= 1;
		if (rest >= capacity) {
			rest -= capacity;
			time++;
		}
	}
	return time;
}

/* p + y/C - mu dt, not below p_min. [tcp-maxnet-2006:eq7] */
static inline __u64 maxnet2006_price_next(const struct maxnet2006_link *link, __u64 bytes)
{
	__u64 price = link->price + maxnet2006_time_for(bytes, link->capacity);

	if (price > MAXNET2006_PRICE_MAX)
		price = MAXNET2006_PRICE_MAX;
	if (price < link->price_min + link->target_time)
		return link->price_min;
	return price - link->target_time;
}

/* (mu + epsilon) C - y/dt, at least QSminrate. [tcp-maxnet-2006:3.1.2] */
static inline __u64 maxnet2006_start_rate(const struct maxnet2006_link *link)
{
	if (link->start_share < link->arrival_rate + link->start_min)
		return link->start_min;
	return link->start_share - link->arrival_rate;
}

/* mu, mu + epsilon in 10^-6; T in ms; QSminrate = C/start_min_divisor; dt in us. */
static inline void maxnet2006_link_init(struct maxnet2006_link *link, __u64 capacity, __u64 x_max, __u32 t,
					__u32 mu, __u32 start_share, __u32 start_min_divisor, __u32 dt)
{
	link->capacity = capacity;
	link->x_max = x_max;
	link->start_share = maxnet2006_scale(capacity, start_share, 1000000); /* 31 + 21; 20 + 21 bits */
	link->start_min = capacity / start_min_divisor;
	link->price_min = maxnet2006_price_min(capacity, x_max, t);
	link->price = link->price_min;
	/* 10^-12 s in 2^-34 s are 2^34/10^12 = 2^22/5^12; 20 + 20 + 22 bits. */
	link->target_time = (((__u64)mu * dt) << 22) / 244140625;
	link->arrival_rate = 0;
	link->dt = dt;
	link->reserved = 0;
}

/* Every dt, with the bytes that came since. */
static inline void maxnet2006_tick(struct maxnet2006_link *link, __u64 bytes)
{
	if (bytes > 1ull << 40)
		bytes = 1ull << 40;
	link->arrival_rate = bytes * 8000000 / link->dt; /* 41 + 23 bits: 2^40 8 10^6 < 2^63 */
	link->price = maxnet2006_price_next(link, bytes);
}

/* The field that a packet goes on with: prices rise along a path, and start rates fall, so both codes rise. */
static inline __u32 maxnet2006_mark(const struct maxnet2006_link *link, __u32 field)
{
	__u32 flag = field & MAXNET2006_FLAG;
	__u32 code = field & MAXNET2006_CODE_MAX;
	__u32 own = flag ? maxnet2006_rate_code(maxnet2006_start_rate(link), link->x_max)
			 : maxnet2006_price_code(link->price);

	return flag | (own > code ? own : code);
}

/* ------------------------------------------------------------------ source */

/* A round trip in whole units, as us. */
static inline __u32 maxnet2006_base_rtt(__u64 rtt, __u32 unit)
{
	__u64 units;

	if (rtt > MAXNET2006_RTT_MAX)
		rtt = MAXNET2006_RTT_MAX;
	units = (rtt + unit / 2) / unit;
	if (units > MAXNET2006_RTT_MAX / unit)
		units = MAXNET2006_RTT_MAX / unit;
	return units ? (__u32)units * unit : unit;
}

/* alpha q / tau in 2^-34. */
static inline __u64 maxnet2006_gain(__u64 q, __u32 alpha, __u32 base_rtt)
{
	return (q * alpha * 1000 + base_rtt / 2) / base_rtt; /* 39 + 11 + 10 bits; 10^-3 and us make 1000 */
}

/* xi* = alpha q / tau - q / T. [tcp-maxnet-2006:eq10] */
static inline __s64 maxnet2006_xi_rest(__u64 q, __u32 alpha, __u32 base_rtt, __u32 t)
{
	return (__s64)maxnet2006_gain(q, alpha, base_rtt) - (__s64)((q * 1000 + t / 2) / t);
}

/* eta dt T / tau^2 as a fraction, at most 1: beyond, eq. 9 would carry xi past xi*, where it is stopped. */
static inline __u64 maxnet2006_xi_fraction(__u64 dt, __u32 base_rtt, __u32 eta, __u32 t)
{
	__u64 square = (__u64)base_rtt * base_rtt; /* at most 48 bits */
	__u64 steps;

	if (dt > 1u << 30)
		dt = 1u << 30;
	steps = dt * eta * t; /* us times 10^-3 times ms is us^2; 30 + 16 + 17 bits */
	if (steps >= square)
		return MAXNET2006_ONE;
	/* Two divisions of 16 more bits each: 48 + 16, then 24 + 16 + 16 bits. */
	return (((steps << 16) / base_rtt) << 16) / base_rtt;
}

/* xi + eta dt / tau^2 ((T alpha / tau - 1) q - T xi), whose second part is T (xi* - xi). [tcp-maxnet-2006:eq9] */
static inline __s64 maxnet2006_xi_next(__s64 xi, __s64 rest, __u64 fraction)
{
	if (rest >= xi)
		return xi + (__s64)maxnet2006_part((__u64)(rest - xi), fraction);
	return xi - (__s64)maxnet2006_part((__u64)(xi - rest), fraction);
}

/* xi + q alpha (1 / tau_new - 1 / tau_old). [tcp-maxnet-2006:eq12] */
static inline __s64 maxnet2006_compensated(__s64 xi, __u64 q, __u32 alpha, __u32 rtt_new, __u32 rtt_old)
{
	const __s64 xi_max = 1ll << 61; /* only a round trip that falls and rises again and again gets there */

	xi += (__s64)maxnet2006_gain(q, alpha, rtt_new) - (__s64)maxnet2006_gain(q, alpha, rtt_old);
	if (xi > xi_max)
		return xi_max;
	return xi < -xi_max ? -xi_max : xi;
}

/* x_max e^(xi - alpha q / tau), not above x_max; `scale` is x_max and a weight. [tcp-maxnet-2006:eq8] */
static inline __u64 maxnet2006_rate(__u64 scale, __s64 xi, __u64 gain)
{
	__s64 u = (__s64)gain - xi;

	return maxnet2006_exp(scale, u > 0 ? (__u64)u : 0);
}

/* baseRTT x in bytes. */
static inline __u64 maxnet2006_window(__u64 rate, __u32 base_rtt)
{
	return maxnet2006_scale(rate, base_rtt, 1000000) / 8; /* 2^57/10^6 is 38 bits, + 24; 20 + 24 */
}

/* The average over a round trip, moved towards a price by dt/tau, at most all the way. [tcp-maxnet-2006:4.5] */
static inline __u64 maxnet2006_averaged(__u64 average, __u64 price, __u64 dt, __u32 base_rtt)
{
	__u64 weight = dt < base_rtt ? (dt << 32) / base_rtt : MAXNET2006_ONE;

	if (price >= average)
		return average + maxnet2006_part(price - average, weight);
	return average - maxnet2006_part(average - price, weight);
}

/* Whether the price rises more slowly than mindeltaq over a round trip. [tcp-maxnet-2006:fig5.4] */
static inline __u32 maxnet2006_rises_slowly(__u32 price, __u32 last, __u32 base_rtt, __u32 mindeltaq)
{
	if (price == 0 || price < last)
		return 1;
	return (__u64)(price - last) * 1000000 < (__u64)mindeltaq * base_rtt; /* 23 + 20; 32 + 25 bits */
}

/* QSrate times rateinc. [tcp-maxnet-2006:fig5.4] */
static inline __u64 maxnet2006_raised(__u64 start_rate, __u32 rateinc)
{
	__u64 raised = maxnet2006_scale(start_rate, rateinc, 1000); /* 48 + 14; 10 + 14 bits */

	return raised < MAXNET2006_RATE_MAX ? raised : MAXNET2006_RATE_MAX;
}

static inline __u64 maxnet2006_window_max(const struct maxnet2006_params *p, const struct maxnet2006_source *s)
{
	return (__u64)p->max_wnd * s->packet;
}

static inline void maxnet2006_set_window(const struct maxnet2006_params *p, struct maxnet2006_source *s, __u64 rate)
{
	__u64 window = maxnet2006_window(rate, s->base_rtt);
	__u64 bound = window;

	/* With less it would hear too late that the price has fallen. */
	if (bound < s->packet)
		bound = s->packet;
	if (bound > maxnet2006_window_max(p, s))
		bound = maxnet2006_window_max(p, s);
	s->window = bound;
	s->rate = bound == window ? rate : maxnet2006_scale(bound, 8000000, s->base_rtt); /* 41 + 23; 24 + 23 bits */
}

/* A start rate came. [tcp-maxnet-2006:fig5.1] */
static inline void maxnet2006_start(const struct maxnet2006_params *p, struct maxnet2006_source *s, __u32 code,
				    __u32 base_rtt)
{
	if (s->mode != MAXNET2006_ASKING)
		return;
	if (!code) { /* no router on the path */
		s->mode = MAXNET2006_PRICED;
		return;
	}
	s->start_rate = maxnet2006_exp(p->x_max, (__u64)code << MAXNET2006_EXTRA_BITS);
	s->mode = MAXNET2006_QUICKSTART;
	s->base_rtt = base_rtt;
	maxnet2006_set_window(p, s, s->start_rate);
}

/* The first price. [tcp-maxnet-2006:fig5.2] */
static inline void maxnet2006_first_price(const struct maxnet2006_params *p, struct maxnet2006_source *s, __u32 code,
					  __u64 now, __u32 base_rtt)
{
	s->has_price = 1;
	s->base_rtt = base_rtt;
	s->average = (__u64)code << MAXNET2006_EXTRA_BITS;
	s->xi = maxnet2006_xi_rest(s->average, p->alpha, base_rtt, p->t);
	s->last_price = code;
	s->heard = now;
	s->raised = now;
	if (s->mode == MAXNET2006_ASKING)
		s->mode = MAXNET2006_PRICED;
}

/* One more price. Returns whether steps 3 and 4 are due. */
static inline int maxnet2006_next_price(const struct maxnet2006_params *p, struct maxnet2006_source *s, __u32 code,
					__u64 now, __u32 base_rtt)
{
	__u64 price = (__u64)code << MAXNET2006_EXTRA_BITS;
	__u64 dt;

	if (base_rtt != s->base_rtt) {
		if (p->compensate)
			s->xi = maxnet2006_compensated(s->xi, s->average, p->alpha, base_rtt, s->base_rtt);
		s->base_rtt = base_rtt;
	}
	s->average = p->average ? maxnet2006_averaged(s->average, price, now - s->heard, base_rtt) : price;
	s->heard = now;
	s->acks++;
	dt = now - s->updated;
	if (s->acks < p->wnd_update_freq || dt < p->dt)
		return 0;
	s->xi = maxnet2006_xi_next(s->xi, maxnet2006_xi_rest(s->average, p->alpha, base_rtt, p->t),
				   maxnet2006_xi_fraction(dt, base_rtt, p->eta, p->t));
	return 1;
}

/* Steps 3 and 4, after xi. */
static inline void maxnet2006_obey(const struct maxnet2006_params *p, struct maxnet2006_source *s, __u64 now)
{
	__u64 rate = maxnet2006_rate(s->demand_max, s->xi, maxnet2006_gain(s->average, p->alpha, s->base_rtt));
	__u32 price = maxnet2006_price_code(s->average);

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
	/* Not while max_wnd holds it back. */
	if (maxnet2006_window(s->start_rate, s->base_rtt) <= maxnet2006_window_max(p, s)) {
		if (maxnet2006_rises_slowly(price, s->last_price, s->base_rtt, p->mindeltaq))
			s->start_rate = maxnet2006_raised(s->start_rate, p->rateinc);
		s->last_price = price;
	}
}

/* An acknowledgement with this field in its echo. */
static inline void maxnet2006_ack(const struct maxnet2006_params *p, struct maxnet2006_source *s, __u64 now,
				  __u64 base_rtt, __u32 field)
{
	__u32 code = field & MAXNET2006_CODE_MAX;
	__u32 rtt = maxnet2006_base_rtt(base_rtt, p->rtt_unit);

	if (field & MAXNET2006_FLAG) {
		maxnet2006_start(p, s, code, rtt);
		return;
	}
	if (!code) /* no router on the path, or none has written yet */
		return;
	if (s->has_price) {
		if (!maxnet2006_next_price(p, s, code, now, rtt))
			return;
	} else {
		maxnet2006_first_price(p, s, code, now, rtt);
	}
	maxnet2006_obey(p, s, now);
}

#endif
