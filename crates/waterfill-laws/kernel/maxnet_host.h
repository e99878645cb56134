/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * MaxNet on a host: what its law needs where prices come with packets of a real connection. host.h has what any law
 * needs there.
 *
 *   addition          function                why
 *   ----------------  ----------------------  -----------------------------------------------------------------------
 *   smallest tau      maxnet_host_tau()       a price is up to dt_p = 1 ms old, so no control loop is faster
 *   pairs             maxnet_host_tau()       with less than a packet per RTT the next echo comes with the next packet,
 *                                             or with the one after that: tau is twice the time of two packets, in
 *                                             steps of two
 *   xi restart        maxnet_host_echo()      a rate that fell too far would need minutes at the longer tau: after such
 *                                             a step the next price is applied as if it were the first
 *   receiver's tau    maxnet_host_receive()   at least the sender's smallest tau
 *
 * Ranges are those of maxnet.h.
 */
#ifndef WATERFILL_MAXNET_HOST_H
#define WATERFILL_MAXNET_HOST_H

#include "maxnet.h"
#include "host.h"

/* Limits of the RTT that the law gets. Half a second is the time of two packets at 48 kbit/s. */
#define MAXNET_HOST_TAU_MIN_US 1000
#define MAXNET_HOST_TAU_MAX_US 500000

/* Returns the RTT of the law's control loop, tau, in us; 0: not known. It is the path's RTT, or twice the time of two
 * packets if that is longer, and changes in factors of two.
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
	if (!s->rate || tau <= rtt)
		tau = rtt;
	if (!s->rate)
		return tau;
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
	__u32 tau = maxnet_host_tau(s, base_rtt_us);

	if (tau >= 2 * s->base_rtt || s->rate < host_min_rate(s->packet))
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
	if (rtt_us && rtt_us < MAXNET_HOST_TAU_MIN_US)
		rtt_us = MAXNET_HOST_TAU_MIN_US;
	maxnet_receive(p, r, now_us, rtt_us, field);
}

#endif
