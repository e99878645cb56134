/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* csig.h for the host: what the simulator's signal codes and the tests call. */
#include <stdint.h>

typedef uint8_t __u8;
typedef uint16_t __u16;
typedef uint32_t __u32;
typedef uint64_t __u64;

#include "csig.h"
#include "mirror.h"

__u32 waterfill_csig_write(__u32 format, __u32 tpid, const struct csig_tag *tag, __u8 bytes[CSIG_WIDE_BYTES])
{
	return csig_write(format, tpid, tag, bytes);
}

void waterfill_csig_read(__u32 format, const __u8 bytes[CSIG_WIDE_BYTES], struct csig_tag *tag)
{
	csig_read(format, bytes, tag);
}

__u32 waterfill_csig_code(__u32 format, const struct csig_bands *bands, __u64 value)
{
	return csig_code(format, bands, value);
}

__u64 waterfill_csig_value(__u32 format, const struct csig_bands *bands, __u32 code)
{
	return csig_value(format, bands, code);
}

__u32 waterfill_csig_first(__u32 format, __u32 type)
{
	return csig_first(format, type);
}

int waterfill_csig_update(struct csig_tag *tag, __u32 type, __u32 code, __u32 locator)
{
	return csig_update(tag, type, code, locator);
}

const struct waterfill_field *waterfill_csig_tag_fields(void)
{
	static const struct waterfill_field fields[] = {
		FIELD(csig_tag, signal), FIELD(csig_tag, code), FIELD(csig_tag, locator), FIELD(csig_tag, trimmed), END_OF_FIELDS
	};

	return fields;
}

const struct waterfill_field *waterfill_csig_bands_fields(void)
{
	static const struct waterfill_field fields[] = { FIELD(csig_bands, lower), FIELD(csig_bands, end),
							 FIELD(csig_bands, base),  FIELD(csig_bands, count),
							 FIELD(csig_bands, step_log), END_OF_FIELDS };

	return fields;
}
