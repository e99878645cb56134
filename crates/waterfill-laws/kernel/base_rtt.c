/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* base_rtt.h for the host, where a test compares it with src/base_rtt.rs. */
#include <stdint.h>

typedef uint32_t __u32;
typedef int64_t __s64;
typedef uint64_t __u64;

#include "base_rtt.h"

__u64 waterfill_base_rtt_size(void)
{
	return sizeof(struct base_rtt);
}

__u32 waterfill_base_rtt_add(struct base_rtt *b, __u64 window_us, __u64 now_us, __u32 rtt_us)
{
	return base_rtt_add(b, window_us, now_us, rtt_us);
}
