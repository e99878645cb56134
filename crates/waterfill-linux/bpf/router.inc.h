/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A law's router program, at a device's egress. It runs for every packet before the device's queue, counts the packet
 * as load (meter.h), ends the law's intervals (link.h), and lets the law write the forward value of its option
 * (packet.h, wire.h). An includer has included one law's header before this one.
 *
 * Several laws may run at one device. Each counts all packets, and writes only its own options.
 *
 * Not modified: what packet.h does not find, and segments that TCP-AO or MD5 signs.
 *
 * docs/explanation/kernel-programs.md gives the reasons.
 */
#ifndef WATERFILL_ROUTER_INC_H
#define WATERFILL_ROUTER_INC_H

#include "kernel.h"
#include "wire.h"
#include "router.h"
#include "packet.h"
#include "gso.h"
#include "meter.h"
#include "link.h"

char _license[] SEC("license") = "Dual BSD/GPL";

/* The verdict on every packet: go on to the next program, or to the queue. */
#define CONTINUE -1 /* TCX_NEXT, and TC_ACT_UNSPEC */

/* Lets the law write the value of a segment. */
static __always_inline void mark(struct __sk_buff *skb, struct waterfill_link *link, struct router_cpu *cpu,
				 const struct segment *segment, __u64 volume, __u32 segments)
{
	struct law_packet packet = { .bytes = volume, .segments = segments, .syn = segment->syn };
	__u8 value[LAW_FORWARD_BYTES];

	__builtin_memcpy(value, segment->value, sizeof(value));
	if (!mark_value(link, cpu, &packet, value))
		return;
	if (write_value(skb, segment, value))
		cpu->counts[WATERFILL_COUNT_NO_MEMORY]++;
	else
		cpu->counts[WATERFILL_COUNT_MARKED]++;
}

static __always_inline int route(struct __sk_buff *skb)
{
	struct segment segment = {};
	struct waterfill_link *link;
	__u32 slot, segments, found;
	struct router_cpu *cpu;
	__s64 bytes;
	__u64 now;

	link = find_link(skb->ifindex, &slot);
	if (!link)
		return CONTINUE;
	cpu = bpf_map_lookup_elem(&cpus, &slot);
	if (!cpu)
		return CONTINUE;
	if (link->read_clock || cpu->packets % CLOCK_PACKETS == 0) {
		now = bpf_ktime_get_ns();
		if (now >= link->interval_end)
			end_intervals(link, slot, skb, now);
	}

	found = find_usual(skb, &segment, link->header_bytes);
	if (found == UNUSUAL)
		found = walk(skb, &segment, link->header_bytes);
	segments = packet_segments(skb);
	bytes = (__s64)skb->wire_len + (__s64)segments * (link->overhead_bytes - (__s64)segment.ip);
	count_arrival(cpu, bytes > 0 ? bytes : 0, segments);
	if (found < WATERFILL_COUNTS)
		cpu->counts[found]++;
	if (found == WATERFILL_COUNT_OPTION && segment.at)
		mark(skb, link, cpu, &segment, bytes > 0 ? bytes : 0, segments);
	return CONTINUE;
}

SEC("tcx/egress")
int waterfill_router(struct __sk_buff *skb)
{
	return route(skb);
}

#endif
