/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* cohabit.h for the host: what tests compare with the module in real numbers. */
#include <stdint.h>

typedef uint8_t __u8;
typedef uint32_t __u32;
typedef uint64_t __u64;
typedef int64_t __s64;

#include "cohabit.h"
#include "mirror.h"

void waterfill_cohabit_start(const struct cohabit_params *params, struct cohabit_link *link, __u64 now)
{
	struct cohabit_sums total = {0};

	cohabit_start(params, link, &total, now);
}

int waterfill_cohabit_advance(const struct cohabit_params *params, struct cohabit_link *link,
			      struct cohabit_filter *filters, const struct cohabit_sums *total, __u64 now)
{
	int clear = cohabit_advance(params, link, total, now);

	if (clear)
		cohabit_clear(link, filters);
	return clear;
}

void waterfill_cohabit_count(struct cohabit_sums *sums, __u32 class, __u32 segments, __u32 data, __u64 now)
{
	cohabit_count(sums, class, segments, data, now);
}

int waterfill_cohabit_flow(struct cohabit_link *link, struct cohabit_filter *filters, __u32 class, __u64 hash)
{
	int known = cohabit_is_known(link, filters, class, hash);

	cohabit_flow(link, filters, class, hash);
	return known;
}

__u32 waterfill_cohabit_decide(const struct cohabit_params *params, struct cohabit_link *link, __u64 now, __u64 bytes,
			       __u32 segments, __u32 markable, __u32 random)
{
	return cohabit_decide(params, link, now, bytes, segments, markable, random);
}

void waterfill_cohabit_update(const struct cohabit_params *params, struct cohabit_link *link,
			      const struct cohabit_measured *measured, __u64 now)
{
	if (params->controller == COHABIT_IMPROVED)
		cohabit_improved(params, link, measured, now);
	else
		cohabit_paper(params, link, measured);
}

/* One equation each, for tests. */

__u64 waterfill_cohabit_mix(__u64 value, __u64 salt)
{
	return cohabit_mix(value, salt);
}

__u64 waterfill_cohabit_explicit_part(__u32 explicit_flows, __u32 tcp_flows, __u32 weight)
{
	return cohabit_explicit_part(explicit_flows, tcp_flows, weight);
}

/* The fields of the structs, in their order. */

const struct waterfill_field *waterfill_cohabit_params_fields(void)
{
	static const struct waterfill_field fields[] = {
		FIELD(cohabit_params, capacity),
		FIELD(cohabit_params, initial_log),
		FIELD(cohabit_params, decrease_log),
		FIELD(cohabit_params, increase_log),
		FIELD(cohabit_params, target),
		FIELD(cohabit_params, interval),
		FIELD(cohabit_params, period),
		FIELD(cohabit_params, controller),
		FIELD(cohabit_params, weight),
		FIELD(cohabit_params, ecn),
		FIELD(cohabit_params, update),
		FIELD(cohabit_params, threshold),
		FIELD(cohabit_params, aim),
		FIELD(cohabit_params, integral),
		FIELD(cohabit_params, proportional),
		FIELD(cohabit_params, depth),
		END_OF_FIELDS,
	};

	return fields;
}

const struct waterfill_field *waterfill_cohabit_sums_fields(void)
{
	static const struct waterfill_field fields[] = {
		FIELD(cohabit_sums, bytes),
		FIELD(cohabit_sums, packets),
		FIELD(cohabit_sums, seen),
		FIELD(cohabit_sums, dropped),
		FIELD(cohabit_sums, marked),
		END_OF_FIELDS,
	};

	return fields;
}

const struct waterfill_field *waterfill_cohabit_link_fields(void)
{
	static const struct waterfill_field fields[] = {
		FIELD(cohabit_link, interval_end),
		FIELD(cohabit_link, other_rate),
		FIELD(cohabit_link, log),
		FIELD(cohabit_link, factor),
		FIELD(cohabit_link, error),
		FIELD(cohabit_link, used),
		FIELD(cohabit_link, lent),
		FIELD(cohabit_link, share),
		FIELD(cohabit_link, limited_share),
		FIELD(cohabit_link, flows_end),
		FIELD(cohabit_link, flows_now),
		FIELD(cohabit_link, flows_last),
		FIELD(cohabit_link, filter),
		FIELD(cohabit_link, active),
		FIELD(cohabit_link, probability),
		FIELD(cohabit_link, per_byte),
		FIELD(cohabit_link, depth),
		FIELD(cohabit_link, per_flow),
		FIELD(cohabit_link, reaction),
		FIELD(cohabit_link, excess),
		FIELD(cohabit_link, drained),
		FIELD(cohabit_link, reacted),
		FIELD(cohabit_link, early),
		FIELD(cohabit_link, pressure),
		FIELD(cohabit_link, next_signal),
		FIELD(cohabit_link, arrived),
		FIELD(cohabit_link, limited),
		FIELD(cohabit_link, rates),
		FIELD(cohabit_link, usable),
		FIELD(cohabit_link, explicit_share),
		FIELD(cohabit_link, before),
		END_OF_FIELDS,
	};

	return fields;
}

const struct waterfill_field *waterfill_cohabit_measured_fields(void)
{
	static const struct waterfill_field fields[] = {
		FIELD(cohabit_measured, us),
		FIELD(cohabit_measured, rates),
		FIELD(cohabit_measured, packets),
		FIELD(cohabit_measured, usable),
		FIELD(cohabit_measured, explicit_part),
		FIELD(cohabit_measured, explicit_share),
		FIELD(cohabit_measured, tcp_flows),
		FIELD(cohabit_measured, both),
		FIELD(cohabit_measured, present),
		END_OF_FIELDS,
	};

	return fields;
}
