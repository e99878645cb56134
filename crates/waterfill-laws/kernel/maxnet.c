/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* maxnet.h for the host: the functions a simulator calls, and those its tests hold against the law. */
#include <stdint.h>

typedef uint32_t __u32;
typedef uint64_t __u64;
typedef int64_t __s64;

#include "maxnet.h"

/* src/protocols/maxnet/kernel.rs mirrors these; it asserts the same sizes. */
_Static_assert(sizeof(struct maxnet_params) == 40, "params");
_Static_assert(sizeof(struct maxnet_source) == 96, "source: at most the 104 bytes of icsk_ca_priv");
_Static_assert(sizeof(struct maxnet_receiver) == 32, "receiver");
_Static_assert(sizeof(struct maxnet_link) == 104, "link");

void waterfill_maxnet_params_default(struct maxnet_params *params)
{
	maxnet_params_default(params);
}

void waterfill_maxnet_link_init(struct maxnet_link *link, __u64 capacity, __u64 x_max, __u32 t, __u32 mu, __u32 dt_p,
				__u32 t_0, __u32 promise)
{
	maxnet_link_init(link, capacity, x_max, t, mu, dt_p, t_0, promise);
}

void waterfill_maxnet_link_set(struct maxnet_link *link, __u64 capacity, __u32 mu)
{
	maxnet_link_set(link, capacity, mu);
}

void waterfill_maxnet_tick(struct maxnet_link *link, __u64 bytes, __u64 queue)
{
	maxnet_tick(link, bytes, queue);
}

void waterfill_maxnet_idle(struct maxnet_link *link, __u64 intervals, __u64 queue)
{
	maxnet_idle(link, intervals, queue);
}

__u32 waterfill_maxnet_mark(struct maxnet_link *link, __u32 field)
{
	return maxnet_mark(link, field);
}

__u32 waterfill_maxnet_mark_price(const struct maxnet_link *link, __u32 field)
{
	return maxnet_mark_price(link, field);
}

void waterfill_maxnet_receive(const struct maxnet_params *params, struct maxnet_receiver *receiver, __u64 now,
			      __u32 rtt, __u32 field)
{
	maxnet_receive(params, receiver, now, rtt, field);
}

__u32 waterfill_maxnet_echo(const struct maxnet_receiver *receiver)
{
	return maxnet_echo(receiver);
}

void waterfill_maxnet_source_init(const struct maxnet_params *params, struct maxnet_source *source, __u32 packet,
				  __u64 window, __u32 weight)
{
	maxnet_source_init(params, source, packet, window, weight);
}

void waterfill_maxnet_ack(const struct maxnet_params *params, struct maxnet_source *source, __u64 now, __u32 base_rtt,
			  __u32 field)
{
	maxnet_ack(params, source, now, base_rtt, field);
}

void waterfill_maxnet_base_rtt(const struct maxnet_params *params, struct maxnet_source *source, __u32 base_rtt)
{
	maxnet_base_rtt(params, source, base_rtt);
}

__u64 waterfill_maxnet_pacing(const struct maxnet_source *source)
{
	return maxnet_pacing(source);
}

/* One equation each, for tests. */

__u64 waterfill_maxnet_exp(__u64 scale, __u64 u)
{
	return fixed_exp(scale, u);
}

__u64 waterfill_maxnet_time_for(__u64 bytes, __u64 queue, __u32 dt_p, __u32 t_0, __u64 capacity)
{
	return maxnet_time_for(maxnet_with_queue(bytes, queue, dt_p, t_0), capacity);
}

__s64 waterfill_maxnet_xi_rest(__u32 code, __u32 alpha, __u32 base_rtt, __u32 t)
{
	return maxnet_xi_rest(code, alpha, base_rtt, t);
}

__s64 waterfill_maxnet_xi_step(const struct maxnet_params *params, __s64 xi, __u32 code, __u64 dt, __u32 base_rtt)
{
	struct maxnet_source source = { .xi = xi };
	__u64 fraction = maxnet_xi_fraction(maxnet_xi_speed(params, base_rtt), dt);

	maxnet_xi_next(&source, maxnet_xi_rest(code, params->alpha, base_rtt, params->t), fraction);
	return source.xi;
}

__s64 waterfill_maxnet_compensated(__s64 xi, __u32 code, __u32 alpha, __u32 rtt_new, __u32 rtt_old)
{
	return maxnet_compensated(xi, code, alpha, rtt_new, rtt_old);
}

__u64 waterfill_maxnet_rate(__u64 scale, __s64 xi, __u32 code, __u32 alpha, __u32 base_rtt)
{
	return maxnet_rate(scale, xi, maxnet_gain(code, alpha, base_rtt));
}

__u64 waterfill_maxnet_window(__u64 rate, __u32 base_rtt)
{
	return maxnet_window(rate, base_rtt);
}

__u64 waterfill_maxnet_start_rise(__u64 delta, __u64 dt, __u32 base_rtt)
{
	return maxnet_start_rise(delta, dt, base_rtt);
}
