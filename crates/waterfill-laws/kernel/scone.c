/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* scone.h for the host: src/scone.rs calls it. */
#include <stdint.h>

typedef uint8_t __u8;
typedef uint32_t __u32;
typedef uint64_t __u64;
typedef int64_t __s64;

#include "scone.h"
#include "mirror.h"

__u64 waterfill_scone_rate(__u32 code)
{
	return scone_rate(code);
}

__u32 waterfill_scone_code(__u64 rate)
{
	return scone_code(rate);
}

__u64 waterfill_scone_fair_rate(const struct scone_advice *advice, __u64 signal)
{
	return scone_fair_rate(advice, signal);
}

__u32 waterfill_scone_advise(const struct scone_advice *advice, __u64 signal)
{
	return scone_advise(advice, signal);
}

__u32 waterfill_scone_is_packet(const __u8 head[5])
{
	return (__u32)scone_is_packet(head);
}

__u32 waterfill_scone_read(const __u8 head[5])
{
	return scone_read(head);
}

void waterfill_scone_write(__u8 head[5], __u32 code)
{
	scone_write(head, code);
}

__u32 waterfill_scone_fits(__u32 destination, __u32 source, __u32 length)
{
	return (__u32)scone_fits(destination, source, length);
}

__u32 waterfill_scone_may_write(struct scone_flow *flow, __u64 now, __u32 code)
{
	return (__u32)scone_may_write(flow, now, code);
}

const struct waterfill_field *waterfill_scone_advice_fields(void)
{
	static const struct waterfill_field fields[] = {
		FIELD(scone_advice, x_max),
		FIELD(scone_advice, t),
		FIELD(scone_advice, rule),
		FIELD(scone_advice, shift),
		FIELD(scone_advice, reserved),
		END_OF_FIELDS,
	};

	return fields;
}

const struct waterfill_field *waterfill_scone_flow_fields(void)
{
	static const struct waterfill_field fields[] = {
		FIELD(scone_flow, start),
		FIELD(scone_flow, last),
		FIELD(scone_flow, writes),
		FIELD(scone_flow, lowest),
		END_OF_FIELDS,
	};

	return fields;
}
