/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* maxnet2006.h for the host: the functions a simulator calls, and those its tests hold against the law. */
#include <stdint.h>

typedef uint32_t __u32;
typedef uint64_t __u64;
typedef int64_t __s64;

#include "maxnet2006.h"

/* src/protocols/maxnet2006/kernel.rs mirrors these; it asserts the same sizes. */
_Static_assert(sizeof(struct maxnet2006_params) == 56, "params");
_Static_assert(sizeof(struct maxnet2006_source) == 96, "source: at most the 104 bytes of icsk_ca_priv");
_Static_assert(sizeof(struct maxnet2006_link) == 72, "link");

void waterfill_maxnet2006_link_init(struct maxnet2006_link *link, __u64 capacity, __u64 x_max, __u32 t, __u32 mu,
				    __u32 start_share, __u32 start_min_divisor, __u32 dt)
{
	maxnet2006_link_init(link, capacity, x_max, t, mu, start_share, start_min_divisor, dt);
}

void waterfill_maxnet2006_tick(struct maxnet2006_link *link, __u64 bytes)
{
	maxnet2006_tick(link, bytes);
}

__u32 waterfill_maxnet2006_mark(const struct maxnet2006_link *link, __u32 field)
{
	return maxnet2006_mark(link, field);
}

void waterfill_maxnet2006_ack(const struct maxnet2006_params *params, struct maxnet2006_source *source, __u64 now,
			      __u64 base_rtt, __u32 field)
{
	maxnet2006_ack(params, source, now, base_rtt, field);
}

/* One equation each, for tests. */

__u64 waterfill_maxnet2006_exp(__u64 scale, __u64 u)
{
	return fixed_exp(scale, u);
}

__u32 waterfill_maxnet2006_rate_code(__u64 rate, __u64 x_max)
{
	return fixed_rate_code(rate, x_max);
}

__u32 waterfill_maxnet2006_base_rtt(__u64 rtt, __u32 unit)
{
	return maxnet2006_base_rtt(rtt, unit);
}

__s64 waterfill_maxnet2006_xi_rest(__u64 q, __u32 alpha, __u32 base_rtt, __u32 t)
{
	return maxnet2006_xi_rest(q, alpha, base_rtt, t);
}

__s64 waterfill_maxnet2006_xi_step(__s64 xi, __u64 q, __u64 dt, __u32 base_rtt, __u32 alpha, __u32 eta, __u32 t)
{
	return maxnet2006_xi_next(xi, maxnet2006_xi_rest(q, alpha, base_rtt, t),
				  maxnet2006_xi_fraction(dt, base_rtt, eta, t));
}

__s64 waterfill_maxnet2006_compensated(__s64 xi, __u64 q, __u32 alpha, __u32 rtt_new, __u32 rtt_old)
{
	return maxnet2006_compensated(xi, q, alpha, rtt_new, rtt_old);
}

__u64 waterfill_maxnet2006_rate(__u64 scale, __s64 xi, __u64 q, __u32 alpha, __u32 base_rtt)
{
	return maxnet2006_rate(scale, xi, maxnet2006_gain(q, alpha, base_rtt));
}

__u64 waterfill_maxnet2006_window(__u64 rate, __u32 base_rtt)
{
	return maxnet2006_window(rate, base_rtt);
}

__u64 waterfill_maxnet2006_averaged(__u64 average, __u64 price, __u64 dt, __u32 base_rtt)
{
	return maxnet2006_averaged(average, price, dt, base_rtt);
}

__u32 waterfill_maxnet2006_rises_slowly(__u32 price, __u32 last, __u32 base_rtt, __u32 mindeltaq)
{
	return maxnet2006_rises_slowly(price, last, base_rtt, mindeltaq);
}
