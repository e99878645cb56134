/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* MaxNet of 2007 behind the interface of law.h. The law is in maxnet.h. */
#ifndef WATERFILL_MAXNET_LAW_H
#define WATERFILL_MAXNET_LAW_H

#include "law.h"
#include "maxnet.h"

#define LAW WATERFILL_MAXNET
#define LAW_FORWARD_BYTES 3
#define LAW_ECHO_BYTES 3
#define LAW_PACED 1
#define LAW_RESTS_WITH_QUEUE 0

struct law_params {
	struct maxnet_params source;
	__u32 dt_p;    /* us */
	__u32 t_0;     /* us */
	__u32 promise; /* 1: promised start rates are remembered for T_0 */
	__u32 reserved;
};

struct law_link {
	struct maxnet_link maxnet;
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
}

FIXED_INLINE void law_idle(struct law_link *link, __u64 intervals, __u64 queue)
{
	maxnet_idle(&link->maxnet, intervals, queue);
}

/* Whether marking a SYN changes the link: a granted start rate is remembered. */
FIXED_INLINE int law_syn_needs_lock(const struct law_link *link)
{
	return link->maxnet.promise != 0;
}

/* Start rates are given on SYNs only, because each reserves capacity. */
FIXED_INLINE int law_mark(struct law_link *link, struct law_cpu *cpu __attribute__((unused)),
			  const struct law_packet *packet, __u8 *value)
{
	__u32 field = law_read_u24(value);
	__u32 own;

	if (packet->syn && field & FIXED_FLAG)
		own = maxnet_mark(&link->maxnet, field);
	else
		own = maxnet_mark_price(&link->maxnet, field);
	if (own == field)
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

#endif
