/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reno (RFC 5681), for connections that must leave the law but that the kernel keeps on it: where a route has
 * `congctl lock`, no setsockopt() changes the congestion control. With cong_control() TCP leaves window and pacing to us.
 */
#ifndef WATERFILL_RENO_H
#define WATERFILL_RENO_H

#include "maps.h"

/* Pacing rates of TCP's own, in percent of window over RTT: in slow start, and later. */
#define RENO_PACING_SLOW_START 200
#define RENO_PACING 120
#define RENO_WINDOW_MIN 2

/* Whether the window limits the rate. In slow start it may be twice what is in flight. */
static __always_inline bool reno_window_limits(const struct tcp_sock *tp)
{
	if (tp->snd_cwnd < tp->snd_ssthresh)
		return tp->snd_cwnd < 2 * tp->max_packets_out;
	return BPF_CORE_READ_BITFIELD(tp, is_cwnd_limited);
}

/* Returns the window after `acked` packets. A packet per packet up to the threshold, then one per window. */
static __always_inline __u32 reno_grow(struct tcp_sock *tp, __u32 window, __u32 acked)
{
	__u32 count, grown;

	if (window < tp->snd_ssthresh) {
		grown = tp->snd_ssthresh - window;
		if (grown > acked)
			grown = acked;
		window += grown;
		acked -= grown;
	}
	count = tp->snd_cwnd_cnt + acked;
	if (acked && count >= window) {
		window += count / window;
		count %= window;
	}
	tp->snd_cwnd_cnt = count;
	return window;
}

/* Processes an acknowledgement. TCP sets the threshold at a loss (by our ssthresh()), and the window at a time-out. */
static __always_inline void reno_on_ack(struct tcp_sock *tp, struct host_connection *c)
{
	struct sock *sk = &tp->inet_conn.icsk_inet.sk;
	__u32 state = BPF_CORE_READ_BITFIELD(&tp->inet_conn, icsk_ca_state);
	__u32 acked = tp->delivered - c->delivered;
	__u32 window = tp->snd_cwnd ? tp->snd_cwnd : 1;
	__u64 rate;

	c->delivered = tp->delivered;
	if (state == CA_CWR || state == CA_RECOVERY)
		window = window < tp->snd_ssthresh ? window : tp->snd_ssthresh;
	else if (acked && reno_window_limits(tp))
		window = reno_grow(tp, window, acked);
	if (window > tp->snd_cwnd_clamp)
		window = tp->snd_cwnd_clamp;
	tp->snd_cwnd = window ? window : 1;
	if (!tp->srtt_us)
		return;
	/* As the kernel's: it also sizes super-packets. 24 + 16 + 23 bits, and srtt_us is in eighths. */
	rate = (__u64)tp->snd_cwnd * tp->mss_cache * (8000000 / 100) / tp->srtt_us *
	       (window < tp->snd_ssthresh / 2 ? RENO_PACING_SLOW_START : RENO_PACING);
	sk->sk_pacing_rate = rate < sk->sk_max_pacing_rate ? rate : sk->sk_max_pacing_rate;
}

static __always_inline __u32 reno_ssthresh(const struct tcp_sock *tp)
{
	__u32 half = tp->snd_cwnd / 2;

	return half > RENO_WINDOW_MIN ? half : RENO_WINDOW_MIN;
}

/* Takes the connection over from the law. */
static __always_inline void reno_start(struct tcp_sock *tp, struct host_connection *c)
{
	struct sock *sk = &tp->inet_conn.icsk_inet.sk;

	c->flags &= ~(HOST_LAW_ACTIVE | HOST_LAW_STARTED);
	c->flags |= HOST_RENO | HOST_LAW_SELECTED;
	c->delivered = tp->delivered;
	tp->snd_cwnd_cnt = 0;
	if (c->flags & HOST_PACED && sk->sk_pacing_status == PACING_NEEDED)
		sk->sk_pacing_status = PACING_NONE;
	c->flags &= ~HOST_PACED;
}

#endif
