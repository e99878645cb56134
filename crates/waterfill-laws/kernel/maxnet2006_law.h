/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* TCP MaxNet of 2006, the thesis's own Linux protocol, behind the interface of law.h. The law is in maxnet2006.h. */
#ifndef WATERFILL_MAXNET2006_LAW_H
#define WATERFILL_MAXNET2006_LAW_H

#include "law.h"
#include "maxnet2006.h"

#define LAW WATERFILL_MAXNET2006
#define LAW_FORWARD_BYTES 3
#define LAW_ECHO_BYTES 3
#define LAW_PACED 1
#define LAW_RESTS_WITH_QUEUE 1 /* the price does not count the queue, so one that stands is only drained by mu < 1 */
#define LAW_REACTION_US(p) 0

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

/* ------------------------------------------------------------------ router */

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
	maxnet2006_link_init(&link->maxnet, capacity, p->source.x_max, p->source.t, mu, mu + p->epsilon,
			     p->qs_min_divisor ? p->qs_min_divisor : 1, dt < 1000000 ? dt : 1000000);
	if (link->maxnet.price < price)
		link->maxnet.price = price;
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
	if (link->maxnet.price < price && price <= MAXNET2006_PRICE_MAX)
		link->maxnet.price = price;
	maxnet2006_encode(link);
}

/* ------------------------------------------------------------------ source */

FIXED_INLINE void law_source_init(const struct law_params *p, struct law_source *s, __u32 packet, __u64 window)
{
	s->maxnet.demand_max = p->source.x_max;
	s->maxnet.packet = packet;
	s->maxnet.window = window;
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

/* ------------------------------------------------------------------ receiver */

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
