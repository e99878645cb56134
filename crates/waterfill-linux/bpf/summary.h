/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a connection does, in one word, and the sums over all connections that the metrics show. */
#ifndef WATERFILL_SUMMARY_H
#define WATERFILL_SUMMARY_H

#include "conn.h"

/* TCP's state of that name (include/net/tcp_states.h). */
#define HOST_TCP_ESTABLISHED 1

/* Returns what a connection does. `rate` and `steady` are the law's limit, `state` is TCP's. */
static __always_inline enum host_mode host_mode(__u32 flags, __u32 reason, __u32 state, __u32 restart_window,
						__u64 rate, __u32 steady)
{
	if (!(flags & HOST_LAW_SELECTED))
		return flags & HOST_NEGOTIATED ? HOST_MODE_RECEIVING : HOST_MODE_NONE;
	if (!(flags & HOST_LAW_ACTIVE)) {
		/* TCP ends the law of every connection that closes, and a program may have selected another one. */
		if (reason != HOST_NO_REASON)
			return HOST_MODE_FALLEN_BACK;
		return state == HOST_TCP_ESTABLISHED ? HOST_MODE_RECEIVING : HOST_MODE_CLOSING;
	}
	if (restart_window)
		return HOST_MODE_RESTARTING;
	if (rate && !steady)
		return HOST_MODE_RISING;
	return steady && flags & HOST_WAS_PRICED ? HOST_MODE_PRICED : HOST_MODE_ASKING;
}

/* Adds a connection that has a mode. `random` is any number, as the n-th signal replaces one of the samples with a
 * probability of HOST_SAMPLES / n.
 */
static __always_inline void host_summarize(struct host_summary *s, const struct host_record *r, __u32 random)
{
	__u32 mode = r->mode, reason = r->reason, at;
	__u64 signal = r->signals[0];

	barrier_var(mode); /* the verifier must see the checks of what is used */
	barrier_var(reason);
	if (mode < HOST_MODES) {
		s->flows[mode]++;
		s->rate[mode] += r->rate;
	}
	if (mode == HOST_MODE_FALLEN_BACK && reason < HOST_REASONS)
		s->fallen_back[reason]++;
	if (!signal)
		return;
	if (!s->signals || signal < s->signal_min)
		s->signal_min = signal;
	if (signal > s->signal_max)
		s->signal_max = signal;
	at = s->signals++;
	if (at >= HOST_SAMPLES)
		at = (__u64)random * s->signals >> 32;
	barrier_var(at);
	if (at < HOST_SAMPLES)
		s->samples[at] = signal;
}

#endif
