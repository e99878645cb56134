/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The way back to the law. A connection that fell back asks again after a second, and after twice as long each time it
 * fails, up to 64 s: one data segment per RTT carries a request. Three answers with a price bring it back, unless the
 * price's rate is below half of what it has: then flows that do not follow prices would starve it. If prices ceased to
 * arrive, all flows of the path fell back together, and it is they who hold the price up: they come back in any case.
 */
#ifndef WATERFILL_PROBATION_H
#define WATERFILL_PROBATION_H

#include "control.inc.h"

/* Answers with a price that bring a connection back, and requests in which they must arrive. */
#define PROBATION_HEARD 3
#define PROBATION_REQUESTS 8

/* Whether the connection asks again: each data segment has space for a request. */
static __always_inline bool probation_is_due(const struct tcp_sock *tp, const struct host_connection *c)
{
	return c->probation.retry_us && c->flags & HOST_NEGOTIATED && tp->tcp_mstamp >= c->probation.retry_us;
}

/* Whether the next data segment carries a request. */
static __always_inline bool probation_requests(const struct tcp_sock *tp, const struct host_connection *c)
{
	__u32 rtt = tp->srtt_us >> 3;

	/* An answer may take longer than the smoothed RTT. */
	return probation_is_due(tp, c) &&
	       tp->tcp_mstamp - c->probation.asked_us >= (c->flags & HOST_ASKED ? 2 * rtt : rtt);
}

/* Ends the attempt without a return. */
static __always_inline void probation_fail(const struct tcp_sock *tp, struct host_connection *c)
{
	c->flags &= ~(HOST_PROBATION | HOST_ASKED | HOST_ECHO_PENDING);
	__builtin_memset(&c->limit, 0, sizeof(c->limit));
	host_plan_return(tp, c);
}

/* A segment with a request is being sent. */
static __always_inline void probation_ask(const struct tcp_sock *tp, struct host_connection *c)
{
	struct host_probation *b = &c->probation;

	if (!(c->flags & HOST_PROBATION)) {
		c->flags |= HOST_PROBATION;
		b->since_us = tp->tcp_mstamp;
		b->delivered = tp->delivered;
		b->requests = 0;
		b->heard = 0;
	}
	if (b->requests >= PROBATION_REQUESTS) {
		probation_fail(tp, c);
		return;
	}
	c->flags |= HOST_ASKED;
	b->asked_us = tp->tcp_mstamp;
	b->requests++;
}

/* Returns to the law. Its window starts with what an RTT delivers now, and doubles per RTT. */
static __always_inline void probation_return(struct bpf_sock_ops *ops, const struct host_params *p,
					     const struct tcp_sock *tp, struct host_connection *c, __u32 window)
{
	/* Begun now, as a return sets the law's state anew. */
	struct event_draft event = event_begin(HOST_EVENT_RETURN, c->reason, tp, c);
	struct host_counters *all = host_counters();
	__u32 reason = c->reason;

	c->probation.window = window > 2 ? window : 2;
	c->probation.returned_us = tp->tcp_mstamp;
	if (c->flags & HOST_RENO) { /* where the kernel refuses another choice, it never left */
		c->flags &= ~HOST_RENO;
		c->flags |= HOST_LAW_ACTIVE;
		c->reason = HOST_NO_REASON;
	} else if (bpf_setsockopt(ops, SOL_TCP, TCP_CONGESTION, (void *)p->name, sizeof(p->name))) {
		event_end(&event, false);
		probation_fail(tp, c);
		return;
	}
	event_end(&event, true);
	c->flags &= ~(HOST_PROBATION | HOST_ASKED);
	c->probation.retry_us = 0;
	barrier_var(reason);
	if (all && reason < HOST_REASONS)
		__sync_fetch_and_add(&all->returns[reason], 1);
}

/* An echo has arrived. */
static __always_inline void probation_echo(struct bpf_sock_ops *ops, const struct host_params *p,
					   const struct tcp_sock *tp, struct host_connection *c)
{
	struct host_probation *b = &c->probation;
	__u32 packet = host_packet_bytes(tp);
	__u32 delivered = tp->delivered - b->delivered;
	__u64 us = tp->tcp_mstamp - b->since_us;
	struct law_tcp tcp;
	bool together;

	/* Acknowledgements within the RTT repeat the answer to the request before. */
	if (!(c->flags & HOST_ASKED) || tp->tcp_mstamp - b->asked_us < tp->srtt_us >> 3)
		return;
	c->flags &= ~HOST_ASKED;
	if (!law_heard(c->echo)) {
		probation_fail(tp, c);
		return;
	}
	if (++b->heard < PROBATION_HEARD || !us)
		return;
	__builtin_memset(&c->source, 0, sizeof(c->source));
	law_source_init(host_law_params(p), &c->source, packet, (__u64)tp->snd_cwnd * packet);
	host_read_tcp(tp, c, false, &tcp);
	law_ack(host_law_params(p), &c->source, &tcp, 1, c->echo);
	law_limit(&c->source, &tcp, &c->limit);
	together = c->reason == HOST_NO_ECHO && c->flags & HOST_WAS_PRICED;
	if (!together && 2 * c->limit.rate < (__u64)delivered * packet * 8000000 / us)
		probation_fail(tp, c);
	else
		probation_return(ops, p, tp, c, (__u64)delivered * (tp->srtt_us >> 3) / us);
}

#endif
