/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* maxnet2006.h for the host. */
#define LAW_NAME maxnet2006
#define LAW_HEADER "maxnet2006.h"
#define LAW_PARAMS \
	FIELD(law_params, source.x_max), FIELD(law_params, source.x_min), FIELD(law_params, source.alpha), \
		FIELD(law_params, source.eta), FIELD(law_params, source.t), FIELD(law_params, source.dt), FIELD(law_params, source.rtt_unit), \
		FIELD(law_params, source.rateinc), FIELD(law_params, source.mindeltaq), FIELD(law_params, source.wnd_update_freq), \
		FIELD(law_params, source.max_wnd), FIELD(law_params, source.average), FIELD(law_params, source.compensate), \
		FIELD(law_params, source.weight), FIELD(law_params, epsilon), FIELD(law_params, qs_min_divisor), \
		FIELD(law_params, dt), FIELD(law_params, quickstart)
#include "shim.inc.c"

/* One equation each, for the tests that compare them with the law. */

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
