/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* maxnet.h for the host. */
#define LAW_NAME maxnet
#define LAW_HEADER "maxnet.h"
#define LAW_PARAMS \
	FIELD(law_params, source.x_max), FIELD(law_params, source.x_min), FIELD(law_params, source.alpha), \
		FIELD(law_params, source.eta), FIELD(law_params, source.t), FIELD(law_params, source.dt_min), FIELD(law_params, source.average), \
		FIELD(law_params, source.compensate), FIELD(law_params, source.xi_first), FIELD(law_params, source.bare), \
		FIELD(law_params, dt_p), FIELD(law_params, t_0), FIELD(law_params, promise), \
		FIELD(law_params, weight)
#include "shim.inc.c"

/* One equation each, for the tests that compare them with the law. */

__u64 waterfill_maxnet_time_for(__u64 bytes, __u64 queue, __u32 dt_p, __u32 t_0, __u64 capacity)
{
	return maxnet_time_for(maxnet_with_queue(bytes, queue, dt_p, t_0), capacity);
}

__s64 waterfill_maxnet_xi_rest(__u32 code, __u32 alpha, __u32 base_rtt, __u32 t)
{
	return maxnet_xi_rest(code, alpha, base_rtt, t);
}

__s64 waterfill_maxnet_xi_step(__u32 alpha, __u32 eta, __u32 t, __s64 xi, __u32 code, __u64 dt, __u32 base_rtt)
{
	struct maxnet_params params = { .alpha = alpha, .eta = eta, .t = t };
	struct maxnet_source source = { .xi = xi };
	__u64 fraction = maxnet_xi_fraction(maxnet_xi_speed(&params, base_rtt), dt);

	maxnet_xi_next(&source, maxnet_xi_rest(code, alpha, base_rtt, t), fraction);
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

__u32 waterfill_maxnet_host_tau(__u64 rate, __u32 tau, __u32 packet, __u32 base_rtt)
{
	struct maxnet_source source = { .rate = rate, .base_rtt = tau, .packet = packet };

	return maxnet_host_tau(&source, base_rtt);
}

/* The router alone, for the tests that compare its program in the kernel with it. */

void waterfill_maxnet_link_init(struct maxnet_link *link, __u64 capacity, __u64 x_max, __u64 x_min, __u32 t, __u32 mu,
				__u32 dt_p, __u32 t_0, __u32 promise)
{
	maxnet_link_init(link, capacity, x_max, x_min, t, mu, dt_p, t_0, promise);
}

void waterfill_maxnet_link_set(struct maxnet_link *link, __u64 capacity, __u64 x_min, __u32 mu)
{
	maxnet_link_set(link, capacity, x_min, mu);
}

void waterfill_maxnet_tick(struct maxnet_link *link, __u64 bytes, __u64 queue)
{
	maxnet_tick(link, bytes, queue);
}

__u32 waterfill_maxnet_mark(struct maxnet_link *link, __u32 field)
{
	return maxnet_mark(link, field);
}
