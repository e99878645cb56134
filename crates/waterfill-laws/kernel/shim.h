/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A law's functions and sizes as one object per law, for the host only: src/kernel/law.rs calls laws through it. */
#ifndef WATERFILL_SHIM_H
#define WATERFILL_SHIM_H

#include <stdint.h>

typedef uint8_t __u8;
typedef uint32_t __u32;
typedef uint64_t __u64;
typedef int32_t __s32;
typedef int64_t __s64;

#include "law.h"
#include "mirror.h"

/* State is passed as words: all structures of a law consist of whole words (shim.inc.c asserts it). src/kernel/law.rs mirrors
 * this structure.
 */
struct host_pace;
struct host_send;

struct waterfill_shim {
	__u32 number;
	__u32 forward_bytes;
	__u32 echo_bytes;
	__u32 paced;
	__u32 rests_with_queue;
	/* In words. */
	__u32 params;
	__u32 link;
	__u32 sums;
	__u32 cpu;
	__u32 source;
	__u32 receiver;
	__u32 replay; /* struct replay_state */
	const struct waterfill_field *(*params_fields)(void);
	/* Router. */
	void (*link_set)(__u64 *link, const __u64 *params, __u64 capacity, __u32 target);
	__u32 (*interval)(const __u64 *link);
	void (*tick)(__u64 *link, const __u64 *sums, __u64 queue);
	void (*idle)(__u64 *link, __u64 intervals, __u64 queue);
	__u32 (*mark)(__u64 *link, __u64 *cpu, const struct law_packet *packet, __u8 *value);
	__u32 (*syn_needs_lock)(const __u64 *link);
	void (*link_read)(const __u64 *link, __u64 *signals);
	void (*link_restore)(__u64 *link, __u64 signal);
	/* Source. */
	void (*source_init)(const __u64 *params, __u64 *source, __u32 packet, __u64 window);
	void (*request)(const __u64 *params, __u8 *value);
	void (*forward)(const __u64 *params, __u64 *source, __u8 *value);
	__u32 (*heard)(const __u8 *echo);
	void (*ack)(const __u64 *params, __u64 *source, const struct law_tcp *tcp, __u32 has_echo, const __u8 *echo);
	void (*loss)(const __u64 *params, __u64 *source);
	void (*timeout)(const __u64 *params, __u64 *source);
	void (*limit)(__u64 *source, const struct law_tcp *tcp, struct law_limit *limit);
	void (*reduce)(__u64 *source, __u32 shift);
	__u64 (*evidence)(const __u64 *source);
	__u32 (*tightens)(const __u64 *source, __u64 evidence, __u64 us);
	void (*source_read)(const __u64 *source, __u64 *signals);
	/* Receiver. */
	void (*receive)(const __u64 *params, __u64 *receiver, __u64 now_us, __u32 rtt_us, const __u8 *value,
			__u32 segments);
	void (*echo)(__u64 *receiver, __u8 *echo);
	__u64 (*receiver_read)(const __u64 *receiver);
	/* Plays a record of 12 words; returns the hash, and the results of `struct replay_state` in its last six words. */
	__u64 (*replay_step)(__u64 *state, const __u64 *record);
	/* Host, while echoes arrive. */
	void (*host_control)(struct host_pace *pace, const struct law_limit *limit, const struct law_tcp *tcp,
			     struct host_send *send);
};

#endif
