/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The log of fallbacks and returns: a ring of records in an array. BPF's own ring buffer has one reader, and drops the
 * newest record when nobody reads. Here any number of readers follow the log, also without a daemon. The oldest record is
 * overwritten, and the numbers tell a reader how many it missed.
 */
#ifndef WATERFILL_EVENTS_H
#define WATERFILL_EVENTS_H

#include "maps.h"

static __always_inline void event_address(struct host_event *e, const struct sock_common *s)
{
	__u32 *local = (__u32 *)e->local, *remote = (__u32 *)e->remote;

	e->local_port = s->skc_num;
	e->remote_port = bpf_ntohs(s->skc_dport);
	if (s->skc_family == AF_INET6) {
		local[0] = s->skc_v6_rcv_saddr.in6_u.u6_addr32[0];
		local[1] = s->skc_v6_rcv_saddr.in6_u.u6_addr32[1];
		local[2] = s->skc_v6_rcv_saddr.in6_u.u6_addr32[2];
		local[3] = s->skc_v6_rcv_saddr.in6_u.u6_addr32[3];
		remote[0] = s->skc_v6_daddr.in6_u.u6_addr32[0];
		remote[1] = s->skc_v6_daddr.in6_u.u6_addr32[1];
		remote[2] = s->skc_v6_daddr.in6_u.u6_addr32[2];
		remote[3] = s->skc_v6_daddr.in6_u.u6_addr32[3];
		return;
	}
	local[2] = remote[2] = bpf_htonl(0xffff);
	local[3] = s->skc_rcv_saddr;
	remote[3] = s->skc_daddr;
}

/* Copies what the connection has measured. */
static __always_inline void event_evidence(struct host_event *e, const struct tcp_sock *tp,
					   const struct host_connection *c)
{
	bool returns = e->kind == HOST_EVENT_RETURN;
	const struct evidence *of = &c->evidence;

	e->rate = c->limit.rate;
	law_source_read(&c->source, e->signals);
	e->base_rtt = host_base_rtt(tp, c);
	e->echoes = c->echoes;
	e->rounds = c->round.count;
	e->silent_rounds = c->round.rounds_without_echo;
	e->span = tp->tcp_mstamp - (returns ? c->probation.since_us : of->since_us ? of->since_us : of->start_us);
	e->delivered = tp->delivered - (returns ? c->probation.delivered : of->delivered);
	if (returns) {
		e->requests = c->probation.requests;
		e->heard = c->probation.heard;
		e->failures = c->probation.failures;
		return;
	}
	e->lost = tp->lost - of->lost;
	e->first_rtt = of->first_rtt;
	e->last_rtt = of->rtt;
	e->loss_rounds = of->loss_rounds;
	e->probed_rtt = of->probed_rtt;
	e->drained_rtt = of->drained_rtt;
}

/* An event that is being written. Without space it has no record, and all of this does nothing. */
struct event_draft {
	struct host_event *record;
	__u64 number;
};

/* Begins an event of a connection, which has no state (0) where the law is not loaded for it. */
static __always_inline struct event_draft event_begin(__u32 kind, __u32 reason, const struct tcp_sock *tp,
						      const struct host_connection *c)
{
	const struct sock_common *s = &tp->inet_conn.icsk_inet.sk.__sk_common;
	struct event_draft draft = {};
	__u32 zero = 0, slot;
	struct host_event *e;
	__u64 *count;

	count = bpf_map_lookup_elem(&event_count, &zero);
	if (!count)
		return draft;
	draft.number = __sync_fetch_and_add(count, 1) + 1;
	slot = draft.number % HOST_EVENTS;
	e = bpf_map_lookup_elem(&events, &slot);
	if (!e)
		return draft;
	draft.record = e;
	__sync_lock_test_and_set(&e->number, 0);
	__builtin_memset(&e->time_ns, 0, sizeof(*e) - sizeof(e->number));
	e->time_ns = bpf_ktime_get_ns();
	e->kind = kind;
	e->reason = reason;
	e->rtt = tp->srtt_us >> 3;
	e->window = tp->snd_cwnd;
	if (bpf_core_field_exists(s->skc_net.net))
		e->netns = s->skc_net.net->net_cookie;
	event_address(e, s);
	if (c)
		event_evidence(e, tp, c);
	return draft;
}

/* Ends an event. One that did not happen (0) stays as a number that readers skip. */
static __always_inline void event_end(const struct event_draft *draft, bool happened)
{
	if (!draft->record)
		return;
	if (!happened)
		draft->record->kind = HOST_EVENT_NONE;
	__sync_lock_test_and_set(&draft->record->number, draft->number);
}

/* Adds the event that a connection falls back. */
static __always_inline void event_fallback(__u32 reason, const struct tcp_sock *tp, const struct host_connection *c)
{
	struct event_draft draft = event_begin(HOST_EVENT_FALLBACK, reason, tp, c);

	event_end(&draft, true);
}

#endif
