/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* maxnet2006.h for the host: the functions that the simulator calls, and those that tests compare with the law. */
#include <stdint.h>

typedef uint8_t __u8;
typedef uint32_t __u32;
typedef uint64_t __u64;
typedef int64_t __s64;

#include "maxnet2006.h"
#include "mirror.h"

/* src/protocols/maxnet2006/fixed_point.rs mirrors these structs and asserts the same sizes. */
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

/* The fields of the structs, in their order. */

const struct waterfill_field *waterfill_maxnet2006_params_fields(void)
{
	static const struct waterfill_field fields[] = {
		FIELD(maxnet2006_params, x_max),
		FIELD(maxnet2006_params, alpha),
		FIELD(maxnet2006_params, eta),
		FIELD(maxnet2006_params, t),
		FIELD(maxnet2006_params, dt),
		FIELD(maxnet2006_params, rtt_unit),
		FIELD(maxnet2006_params, rateinc),
		FIELD(maxnet2006_params, mindeltaq),
		FIELD(maxnet2006_params, wnd_update_freq),
		FIELD(maxnet2006_params, max_wnd),
		FIELD(maxnet2006_params, average),
		FIELD(maxnet2006_params, compensate),
		FIELD(maxnet2006_params, reserved),
		END_OF_FIELDS,
	};

	return fields;
}

const struct waterfill_field *waterfill_maxnet2006_source_fields(void)
{
	static const struct waterfill_field fields[] = {
		FIELD(maxnet2006_source, demand_max),
		FIELD(maxnet2006_source, window),
		FIELD(maxnet2006_source, rate),
		FIELD(maxnet2006_source, start_rate),
		FIELD(maxnet2006_source, average),
		FIELD(maxnet2006_source, xi),
		FIELD(maxnet2006_source, price_at),
		FIELD(maxnet2006_source, updated),
		FIELD(maxnet2006_source, raised),
		FIELD(maxnet2006_source, last_price),
		FIELD(maxnet2006_source, base_rtt),
		FIELD(maxnet2006_source, packet),
		FIELD(maxnet2006_source, acks),
		FIELD(maxnet2006_source, mode),
		FIELD(maxnet2006_source, has_price),
		END_OF_FIELDS,
	};

	return fields;
}

const struct waterfill_field *waterfill_maxnet2006_link_fields(void)
{
	static const struct waterfill_field fields[] = {
		FIELD(maxnet2006_link, capacity),
		FIELD(maxnet2006_link, x_max),
		FIELD(maxnet2006_link, start_share),
		FIELD(maxnet2006_link, start_min),
		FIELD(maxnet2006_link, price),
		FIELD(maxnet2006_link, price_min),
		FIELD(maxnet2006_link, target_time),
		FIELD(maxnet2006_link, arrival_rate),
		FIELD(maxnet2006_link, dt),
		FIELD(maxnet2006_link, reserved),
		END_OF_FIELDS,
	};

	return fields;
}
