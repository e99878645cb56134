/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* MaxNet of 2007 behind the interface of law.h. The law is in maxnet.h. */
#ifndef WATERFILL_MAXNET_LAW_H
#define WATERFILL_MAXNET_LAW_H

#include "law.h"

#define LAW WATERFILL_MAXNET
#define LAW_FORWARD_BYTES 3
#define LAW_ECHO_BYTES 3
#define LAW_PACED 1
#define LAW_RESTS_WITH_QUEUE 0
#define LAW_REACTION_US(p) 0

#include "maxnet.h"
#include "maxnet_host.h"

/* The law's own target, 10^-6. (maxnet-2007 section VII.A) */
#define MAXNET_MU 900000

struct law_params {
	struct maxnet_params source;
	__u32 dt_p;    /* us */
	__u32 t_0;     /* us */
	__u32 promise; /* 1: promised start rates are remembered for T_0 */
	__u32 reserved;
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

/* ------------------------------------------------------------------ router */

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
		maxnet_link_set(law, capacity, target);
		return;
	}
	maxnet_link_init(law, capacity, p->source.x_max, p->source.t, target, p->dt_p, p->t_0, p->promise);
	if (law->price < price && price <= MAXNET_PRICE_MAX)
		law->price = price;
	law->price_code = fixed_price_code(law->price);
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

/* Whether marking a SYN changes the link: the first one of an interval does. */
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
	if (link->maxnet.price < price && price <= MAXNET_PRICE_MAX)
		link->maxnet.price = price;
	link->maxnet.price_code = fixed_price_code(link->maxnet.price);
}

/* ------------------------------------------------------------------ source */

struct law_source {
	struct maxnet_source maxnet;
};

FIXED_INLINE void law_source_init(const struct law_params *p, struct law_source *s, __u32 packet, __u64 window)
{
	maxnet_source_init(&p->source, &s->maxnet, packet, window, 1000);
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

/* ------------------------------------------------------------------ receiver */

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
