/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Base RTT of a host: the minimum of the RTT samples of a time window. src/base_rtt.rs has the same filter for simulated
 * hosts and explains it; a test compares both sample by sample.
 */
#ifndef WATERFILL_BASE_RTT_H
#define WATERFILL_BASE_RTT_H

/* The includer provides __u32 and __u64; FIXED_INLINE is from fixed.h. */
#include "fixed.h"

/* RTT sample and its time. */
struct base_rtt_sample {
	__u64 at_us;
	__u32 rtt_us;
	__u32 reserved;
};

/* Filter; initialise with zeros. */
struct base_rtt {
	struct base_rtt_sample samples[3]; /* smallest of the window, smallest after it, smallest after that one */
	__u64 at_us;			   /* time of the last sample */
	__u64 eighths;			   /* base RTT, us / 8: it rises by an eighth of the time; 0: no sample yet */
};

/* Returns the base RTT, us; 0: no sample yet. */
FIXED_INLINE __u32 base_rtt_get(const struct base_rtt *b)
{
	return (__u32)(b->eighths >> 3);
}

/* Adds a sample and returns the minimum of the window. */
FIXED_INLINE __u32 base_rtt_minimum(struct base_rtt *b, __u64 window_us, const struct base_rtt_sample *sample)
{
	struct base_rtt_sample *s = b->samples;
	__u64 age;

	if (!b->eighths || sample->at_us - s[2].at_us > window_us || sample->rtt_us <= s[0].rtt_us)
		s[0] = s[1] = s[2] = *sample;
	else if (sample->rtt_us <= s[1].rtt_us)
		s[1] = s[2] = *sample;
	else if (sample->rtt_us <= s[2].rtt_us)
		s[2] = *sample;
	age = sample->at_us - s[0].at_us;
	if (age > window_us) {
		s[0] = s[1];
		s[1] = s[2];
		s[2] = *sample;
		if (sample->at_us - s[0].at_us > window_us) {
			s[0] = s[1];
			s[1] = s[2];
		}
	} else if (s[1].at_us == s[0].at_us && age > window_us / 4) {
		s[1] = s[2] = *sample;
	} else if (s[2].at_us == s[1].at_us && age > window_us / 2) {
		s[2] = *sample;
	}
	return s[0].rtt_us;
}

/* Adds a sample above 0 and returns the base RTT, us. Times do not decrease. */
FIXED_INLINE __u32 base_rtt_add(struct base_rtt *b, __u64 window_us, __u64 now_us, __u32 rtt_us)
{
	struct base_rtt_sample sample = { .at_us = now_us, .rtt_us = rtt_us };
	__u64 risen = b->eighths ? b->eighths + (now_us - b->at_us) : (__u64)rtt_us << 3;
	__u64 minimum = (__u64)base_rtt_minimum(b, window_us, &sample) << 3;

	b->eighths = risen < minimum ? risen : minimum;
	b->at_us = now_us;
	return base_rtt_get(b);
}

#endif
