/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A law's router program, at a device's egress. It runs for every packet before the device's queue, counts the packet
 * as load (meter.h), ends the law's intervals (link.h), and lets the law write the forward value of its option
 * (packet.h, wire.h). An includer has included one law's header, `<law>_law.h`, before this one.
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
#include "meter.h"
#include "link.h"

char _license[] SEC("license") = "Dual BSD/GPL";

/* The verdict on every packet: go on to the next program, or to the queue. */
#define CONTINUE -1 /* TCX_NEXT, and TC_ACT_UNSPEC */

static __always_inline void mark(struct __sk_buff *skb, struct waterfill_link *link,
				 const struct tcp_position *position, __u64 volume, __u32 segments)
{
	struct {
		__be32 ports, sequence, acknowledgement;
		__u8 offset, flags;
	} tcp;
	struct law_packet packet = { .bytes = volume, .segments = segments };
	struct options options = {};
	__u8 value[LAW_FORWARD_BYTES];
	__u32 bytes;

	if (bpf_skb_load_bytes(skb, position->at, &tcp, sizeof(tcp)))
		goto malformed;
	bytes = tcp.offset >> 4;
	if (bytes < 5)
		goto malformed;
	bytes = (bytes - 5) * 4;
	if (position->end && position->at + TCP_BYTES + bytes > position->end)
		goto malformed;
	if (bytes < MIN_OPTION_BYTES) {
		count(link, WATERFILL_COUNT_NO_OPTION);
		return;
	}
	barrier_var(bytes); /* the verifier needs the bound below */
	if (bytes > TCP_OPTIONS || bpf_skb_load_bytes(skb, position->at + TCP_BYTES, options.bytes, bytes))
		goto malformed;
	options.length = bytes;
	parse_options(&options);
	if (options.malformed)
		goto malformed;
	if (!options.has_option) {
		count(link, WATERFILL_COUNT_NO_OPTION);
		return;
	}
	if (options.has_signature) {
		count(link, WATERFILL_COUNT_SIGNED);
		return;
	}
	count(link, WATERFILL_COUNT_OPTION);
	if (!options.at)
		return;
	packet.syn = !!(tcp.flags & TCP_SYN);
	__builtin_memcpy(value, options.value, sizeof(value));
	if (!mark_value(link, &packet, value))
		return;
	count(link,
	      write_value(skb, position->at, &options, value) ? WATERFILL_COUNT_NO_MEMORY : WATERFILL_COUNT_MARKED);
	return;
malformed:
	count(link, WATERFILL_COUNT_MALFORMED);
}

static __always_inline int route(struct __sk_buff *skb)
{
	__u32 key = skb->ifindex;
	struct waterfill_link *link = bpf_map_lookup_elem(&links, &key);
	struct tcp_position position = {};
	enum found found = NOT_TCP;
	__u32 segments;
	__s64 bytes;
	__u64 now;
	int has_ip;

	if (!link || !link->attachment.layout)
		return CONTINUE;
	now = bpf_ktime_get_ns();
	if (now >= link->interval_end)
		end_intervals(link, skb, now);

	segments = skb->gso_segs ? skb->gso_segs : 1;
	has_ip = !find_ip(skb, link->meter.header_bytes, &position);
	bytes = (__s64)skb->wire_len + (__s64)segments * (link->meter.overhead_bytes - (__s64)position.at);
	if (bytes < 0)
		bytes = 0;
	count_arrival(&link->meter, &link->cpu, bytes, segments);

	if (has_ip)
		found = find_tcp(skb, &position);
	if (found == FOUND)
		mark(skb, link, &position, bytes, segments);
	else if (found == FRAGMENT)
		count(link, WATERFILL_COUNT_FRAGMENT);
	else if (found == MALFORMED)
		count(link, WATERFILL_COUNT_MALFORMED);
	return CONTINUE;
}

SEC("tcx/egress")
int waterfill_router(struct __sk_buff *skb)
{
	return route(skb);
}

#endif
