/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * When a connection leaves the law: no router answers, or the path's bottleneck is another one. And how: to the kernel's
 * own congestion control. docs/explanation/kernel-programs.md gives the reasons.
 *
 * These rules are no defence against a receiver that lies: they compare queue and losses with the price that it returns.
 */
#ifndef WATERFILL_GUARD_H
#define WATERFILL_GUARD_H

#include "maps.h"
#include "reno.h"

#define INFINITE_SSTHRESH 0x7fffffff
#define NO_RTT (~0u)
/* RFC 6928's initial window, packets. */
#define INITIAL_WINDOW 10
/* How long destinations that lose the option are remembered. */
#define SYN_DROP_BACKOFF_NS (600ull * 1000000000)
#define NO_ECHO_BACKOFF_NS (60ull * 1000000000)
/* A single failure may be chance: from this many on, within these times, no option is sent. */
#define FAILURES_UNTIL_SILENT 2
#define SOL_TCP 6
#define TCP_CONGESTION 13
#define AF_INET6 10
#define EBUSY 16
/* A connection that fell back asks again after this time, doubled with each failure up to 64 s. */
#define RETRY_US 1000000ull
#define RETRY_DOUBLINGS 6

/* Rounds of acknowledged data without a first price. One suffices if no ACK is lost. */
#define ROUNDS_UNANSWERED 3
/* Rounds of acknowledged data without an echo. */
#define ROUNDS_WITHOUT_ECHO 4
/* The same during recovery: three SACK blocks beside timestamps leave no space for an echo. */
#define ROUNDS_WITHOUT_ECHO_IN_RECOVERY 128
/* After this many of them the rate decreases by a 16th per round. */
#define ROUNDS_BEFORE_DECREASE 8

static __always_inline struct tcp_sock *tcp_sk(struct sock *sk)
{
	return (struct tcp_sock *)sk;
}

static __always_inline struct host_connection *host_connection_of(void *sk)
{
	return bpf_sk_storage_get(&connections, sk, 0, 0);
}

static __always_inline bool host_is_ipv4(const struct sock_common *s)
{
	/* An IPv6 socket may use IPv4: ::ffff:a.b.c.d. */
	return s->skc_family != AF_INET6 ||
	       (!s->skc_v6_daddr.in6_u.u6_addr32[0] && !s->skc_v6_daddr.in6_u.u6_addr32[1] &&
		s->skc_v6_daddr.in6_u.u6_addr32[2] == bpf_htonl(0xffff));
}

/* Returns the bytes of a full packet from the IP header on, as the law and the routers count them. */
static __always_inline __u32 host_packet_bytes(const struct tcp_sock *tp)
{
	__u32 ip = host_is_ipv4(&tp->inet_conn.icsk_inet.sk.__sk_common) ? 20 : 40;

	return ip + tp->inet_conn.icsk_ext_hdr_len + tp->tcp_header_len + tp->mss_cache;
}

/* Returns the payload bytes of a full packet. */
static __always_inline __u32 host_payload_bytes(const struct tcp_sock *tp, const struct host_connection *c)
{
	__u32 mss = tp->mss_cache;

	return mss > c->reserved_bytes + 1 ? mss - c->reserved_bytes : 1;
}

/* Returns the smallest RTT of the window, us; 0: not known. TCP's own window is 300 s by default. */
static __always_inline __u32 host_base_rtt(const struct tcp_sock *tp, const struct host_connection *c)
{
	__u32 base = base_rtt_get(&c->base_rtt);
	__u32 rtt = tp->rtt_min.s[0].v;

	return base ? base : rtt == NO_RTT ? 0 : rtt;
}

#include "events.h"

/* Calls base_rtt_add(). A global function, as the next two, so that the verifier follows its branches once. */
__noinline int host_add_rtt(struct base_rtt *base, __u64 window_us, __u64 now_us, __u32 rtt_us)
{
	return base ? base_rtt_add(base, window_us, now_us, rtt_us) : 0;
}

/* Calls evidence_ack(). */
__noinline int host_take_evidence(struct evidence *e, const struct evidence_input *in)
{
	if (e && in)
		evidence_ack(e, in);
	return 0;
}

/* Calls evidence_end_round(). */
__noinline int host_end_evidence(struct evidence *e, const struct evidence_input *in)
{
	return e && in ? evidence_end_round(e, in) : EVIDENCE_NONE;
}

/* Adds an RTT sample to the window. */
static __always_inline void host_sample_rtt(const struct host_params *p, const struct tcp_sock *tp,
					    struct host_connection *c, __u32 rtt)
{
	if (!p->base_rtt_window_us)
		c->base_rtt.eighths = 0;
	else if (rtt && rtt != NO_RTT)
		host_add_rtt(&c->base_rtt, p->base_rtt_window_us, tp->tcp_mstamp, rtt);
}

/* Whether the socket has keys to sign segments. */
static __always_inline bool host_signs(const struct tcp_sock *tp)
{
	if (bpf_core_field_exists(tp->md5sig_info) && tp->md5sig_info)
		return true;
	return bpf_core_field_exists(tp->ao_info) && tp->ao_info;
}

static __always_inline void host_get_destination(struct host_destination *destination, const struct tcp_sock *tp,
						 __u64 netns)
{
	const struct sock_common *s = &tp->inet_conn.icsk_inet.sk.__sk_common;

	destination->netns = netns;
	if (s->skc_family == AF_INET6) {
		destination->address[0] = s->skc_v6_daddr.in6_u.u6_addr32[0];
		destination->address[1] = s->skc_v6_daddr.in6_u.u6_addr32[1];
		destination->address[2] = s->skc_v6_daddr.in6_u.u6_addr32[2];
		destination->address[3] = s->skc_v6_daddr.in6_u.u6_addr32[3];
		return;
	}
	destination->address[0] = 0;
	destination->address[1] = 0;
	destination->address[2] = bpf_htonl(0xffff);
	destination->address[3] = s->skc_daddr;
}

/* Remembers that the destination lost the option of a SYN, or of data. */
static __always_inline void host_remember_failure(const struct tcp_sock *tp, const struct host_connection *c, bool syn)
{
	struct host_destination destination = {};
	struct host_backoff backoff = {};
	struct host_backoff *before;
	__u64 now = bpf_ktime_get_ns();
	__u64 until = now + (syn ? SYN_DROP_BACKOFF_NS : NO_ECHO_BACKOFF_NS);

	host_get_destination(&destination, tp, c->netns);
	before = bpf_map_lookup_elem(&places, &destination);
	if (before && now < before->until_ns)
		backoff = *before;
	/* The first SYN that passed proves that the path works: an outage may have lost all that were sent before. */
	if (syn && backoff.syn_failures && c->last_ack_us * 1000 + SYN_DROP_BACKOFF_NS < backoff.until_ns)
		return;
	backoff.syn_failures += syn;
	backoff.echo_failures += !syn;
	if (backoff.until_ns < until)
		backoff.until_ns = until;
	bpf_map_update_elem(&places, &destination, &backoff, BPF_ANY);
}

/* Forgets the failures of one kind after a success. */
static __always_inline void host_forget_failures(const struct tcp_sock *tp, const struct host_connection *c, bool syn)
{
	struct host_destination destination = {};
	struct host_backoff *before;

	host_get_destination(&destination, tp, c->netns);
	before = bpf_map_lookup_elem(&places, &destination);
	if (!before)
		return;
	if (syn)
		before->syn_failures = 0;
	else
		before->echo_failures = 0;
	if (!before->syn_failures && !before->echo_failures)
		bpf_map_delete_elem(&places, &destination);
}

/* Switches the connection to the kernel's congestion control. That runs release(), except during init(). Returns 0 or
 * the kernel's error.
 */
static __always_inline int host_use_kernel_law(void *sk, const struct host_params *p)
{
	char reno[] = "reno";

	if (!bpf_setsockopt(sk, SOL_TCP, TCP_CONGESTION, (void *)p->fallback, sizeof(p->fallback)))
		return 0;
	return bpf_setsockopt(sk, SOL_TCP, TCP_CONGESTION, reno, sizeof(reno));
}

/* Plans when a connection that fell back asks again. Not if the other end would not answer. */
static __always_inline void host_plan_return(const struct tcp_sock *tp, struct host_connection *c)
{
	struct host_probation *b = &c->probation;

	b->retry_us = 0;
	if (c->reason < HOST_NO_ROUTER || c->reason > HOST_HEAVY_LOSS)
		return;
	if (b->returned_us && tp->tcp_mstamp - b->returned_us > RETRY_US << RETRY_DOUBLINGS) {
		b->returned_us = 0; /* it stayed for long */
		b->failures = 0;
	}
	b->retry_us = tp->tcp_mstamp + (RETRY_US << (b->failures < RETRY_DOUBLINGS ? b->failures : RETRY_DOUBLINGS));
	b->failures++;
}

/* Runs Reno on a connection that the kernel keeps on the law: for good, or until the next acknowledgement if another
 * program is selecting the law right now, during which the kernel answers EBUSY.
 */
static __always_inline void host_keep(struct tcp_sock *tp, struct host_connection *c, int error)
{
	reno_start(tp, c);
	if (error == -EBUSY)
		c->flags |= HOST_DEFERRED;
	else
		HOST_COUNT(fallback_refused);
}

/* Tries a deferred fallback again. Returns true if the kernel's congestion control has taken over. */
static __always_inline bool host_fall_back_again(const struct host_params *p, struct tcp_sock *tp,
						 struct host_connection *c)
{
	c->flags &= ~HOST_DEFERRED;
	if (host_use_kernel_law(tp, p)) {
		HOST_COUNT(fallback_refused);
		return false;
	}
	c->flags &= ~HOST_RENO;
	return true;
}

/* Falls back to the kernel's congestion control, with a window and threshold that fit the reason. */
static __always_inline void host_fall_back(const struct host_params *p, struct tcp_sock *tp, struct host_connection *c,
					   __u32 reason)
{
	__u32 window = tp->snd_cwnd;
	__u64 base = host_base_rtt(tp, c);
	__u32 lost = tp->lost - c->evidence.lost;
	__u32 delivered = tp->delivered - c->evidence.delivered;
	int error;

	event_fallback(reason, tp, c);
	c->reason = reason;
	c->pace.restart_window = 0;
	if (c->flags & HOST_WAS_PRICED) {
		if (reason == HOST_STANDING_QUEUE && c->evidence.rtt != NO_RTT && c->evidence.rtt > base)
			window = window * base / c->evidence.rtt; /* without the queue; 32 + 24 bits */
		if (reason == HOST_HEAVY_LOSS && delivered + lost) /* what was delivered, with CUBIC's decrease */
			window = (__u64)window * delivered / (delivered + lost) * 7 / 10;
		if (window < 2)
			window = 2;
		tp->snd_cwnd = window;
		tp->snd_ssthresh = window;
	} else if (reason != HOST_HEAVY_LOSS) {
		tp->snd_ssthresh = INFINITE_SSTHRESH; /* slow start continues, as the path is unknown */
	}
	if (reason == HOST_NO_ECHO && !(c->flags & HOST_WAS_PRICED))
		host_remember_failure(tp, c, false);
	host_count_fallback(reason);
	host_plan_return(tp, c);
	error = host_use_kernel_law(tp, p);
	if (error)
		host_keep(tp, c, error);
	else
		c->flags &= ~(HOST_LAW_ACTIVE | HOST_LAW_STARTED);
}

/* Falls back without state: the socket is in another cgroup or namespace, or older than the programs. */
static __always_inline void host_fall_back_outside(const struct host_params *p, struct sock *sk)
{
	struct host_connection *c;
	int error = host_use_kernel_law(sk, p);

	HOST_COUNT(without_state);
	event_fallback(HOST_OUTSIDE, tcp_sk(sk), 0);
	if (!error) {
		host_count_fallback(HOST_OUTSIDE);
		return;
	}
	c = bpf_sk_storage_get(&connections, sk, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!c)
		return;
	c->reason = HOST_OUTSIDE;
	c->flags = HOST_ESTABLISHED;
	host_count_fallback(HOST_OUTSIDE);
	host_keep(tcp_sk(sk), c, error);
}

#endif
