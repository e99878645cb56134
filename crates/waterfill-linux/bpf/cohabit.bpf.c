/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Cohabitation of explicit flows and TCP at a device's egress (cohabit.h): a program in front of the laws' routers, so
 * that they neither see nor count what it drops. It drops or marks TCP packets with data; it never drops explicit
 * packets, SYNs, pure ACKs, or what is not TCP.
 *
 * Classes. A segment is explicit if its option asks routers of any of our laws (wire.h), or if its flow has sent data
 * with one that did in this counting interval or the last: hosts leave the option out where SACK blocks need its space. Other TCP is
 * TCP's. What headers.h finds no TCP header in counts as load without congestion control.
 *
 * With a queue per class it drops nothing (COHABIT_OFF). It writes the queue of a packet into skb->priority, where htb
 * reads it, and ends the chain for packets that are not explicit: the laws behind it count the explicit class only.
 *
 * CPUs. Volumes are counted per CPU. The CPU that first finds an interval over adds them, up to COHABIT_MAX_CPUS of
 * them, and takes the lock for the controller. A TCP packet with data takes it too, for the limit: the device's queue
 * has a lock of its own, which each packet takes next.
 */
#include "kernel.h"
#include "wire.h"
#include "router.h"
#include "gso.h"
#include "headers.h"
#include "cohabit_state.h"

char _license[] SEC("license") = "Dual BSD/GPL";

#define CONTINUE -1 /* TCX_NEXT */
#define PASS 0	    /* TCX_PASS: no other program */
#define DROP 2	    /* TCX_DROP */

struct cohabit_module {
	struct bpf_spin_lock lock;
	__u32 ticking; /* 1: a CPU ends an interval */
	struct cohabit_state state;
	struct cohabit_filter filters[COHABIT_FILTERS];
};

/* User space writes and reads the state behind 8 bytes. */
_Static_assert(__builtin_offsetof(struct cohabit_module, state) == 8, "the state is not where user space expects it");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, COHABIT_MAX_LINKS);
	__type(key, __u32); /* ifindex */
	__type(value, struct cohabit_module);
} cohabit_modules SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, COHABIT_MAX_LINKS);
	__type(key, __u32); /* ifindex */
	__type(value, struct cohabit_sums);
} cohabit_cpus SEC(".maps");

/* Ends the control intervals that are over, unless another CPU does. */
static __always_inline void end_intervals(struct cohabit_module *module, __u32 key, __u64 now)
{
	struct cohabit_sums total = {};
	int clear, cpu;

	if (__sync_val_compare_and_swap(&module->ticking, 0, 1))
		return;
	for (cpu = 0; cpu < COHABIT_MAX_CPUS; cpu++) {
		const struct cohabit_sums *sums = bpf_map_lookup_percpu_elem(&cohabit_cpus, &key, cpu);

		if (!sums)
			break;
		cohabit_add(&total, sums);
	}
	bpf_spin_lock(&module->lock);
	clear = cohabit_advance(&module->state.setup.params, &module->state.link, &total, now);
	bpf_spin_unlock(&module->lock);
	if (clear)
		cohabit_clear(&module->state.link, module->filters);
	__sync_lock_test_and_set(&module->ticking, 0);
}

/* ------------------------------------------------------------------ a segment's class */

struct segment {
	__u64 flow; /* hash of addresses and ports */
	__u32 has_option;
	__u32 asks; /* the option has a value for routers, so the sender's law is one of ours */
	__u32 has_data;
	__u32 markable; /* ECN-capable */
};

/* A segment's options. */
struct any_options {
	__u8 bytes[TCP_OPTIONS + WATERFILL_OPTION_HEADER_BYTES];
	__u32 length;
	__u32 next;
	__u32 found;  /* 1: one of our laws */
	__u32 values; /* enum waterfill_option_type, of all that were found */
};

/* Finds an option of any law. A global function for parse_options()'s reason (packet.h). */
__noinline int find_any_option(struct any_options *options)
{
	int i;

	if (!options)
		return 0;
	for (i = 0; i < TCP_OPTIONS; i++) {
		__u32 at, kind, length;

		barrier(); /* keep the results in memory */
		at = options->next;
		kind = option_at(options->bytes, options->length, at, &length);
		if (kind == OPTIONS_END || kind == OPTION_MALFORMED)
			break;
		if (kind == WATERFILL_KIND_EXPERIMENT && length > WATERFILL_OPTION_HEADER_BYTES &&
		    options->bytes[at + 2] == WATERFILL_EXID >> 8 &&
		    options->bytes[at + 3] == (WATERFILL_EXID & 0xff)) {
			options->found = 1;
			options->values |= WATERFILL_TYPE_VALUES(options->bytes[at + 4]);
		}
		if (kind == WATERFILL_KIND_PAPER && length == WATERFILL_OPTION_BYTES) {
			options->found = 1;
			options->values |= WATERFILL_BOTH;
		}
		options->next = at + length;
	}
	return 0;
}

/* Reads what classifies a TCP segment; -1 if its header is cut off. `ip` is the IP header's offset. */
static __always_inline int read_segment(struct __sk_buff *skb, __u32 ip, const struct tcp_position *position,
					__u64 salt, struct segment *segment)
{
	struct {
		__u32 ports, sequence, acknowledgement;
		__u8 offset, flags;
	} tcp;
	struct any_options options = {};
	__u64 addresses[4] = {};
	__u32 bytes, i;
	__be16 start;

	if (bpf_skb_load_bytes(skb, position->at, &tcp, sizeof(tcp)) || bpf_skb_load_bytes(skb, ip, &start, 2))
		return -1;
	bytes = tcp.offset >> 4;
	if (bytes < 5)
		return -1;
	bytes = (bytes - 5) * 4;
	segment->has_data = !position->end || position->at + TCP_BYTES + bytes < position->end;
	/* The traffic class is the second byte of IPv4's header, and bits 4 to 11 of IPv6's. */
	segment->markable = bpf_ntohs(start) >> (position->protocol == PROTOCOL_IPV4 ? 0 : 4) & 3;

	segment->flow = cohabit_mix(tcp.ports, salt);
	if (position->protocol == PROTOCOL_IPV4) {
		if (bpf_skb_load_bytes(skb, ip + 12, addresses, 8))
			return -1;
	} else if (bpf_skb_load_bytes(skb, ip + 8, addresses, 32)) {
		return -1;
	}
	for (i = 0; i < 4; i++)
		segment->flow = cohabit_mix(addresses[i], segment->flow);

	/* The verifier needs both bounds. Linux 7.x keeps the lower one only if the upper one comes first. */
	barrier_var(bytes);
	if (bytes > TCP_OPTIONS)
		return -1;
	if (bytes < WATERFILL_OPTION_BYTES)
		return 0;
	if (bpf_skb_load_bytes(skb, position->at + TCP_BYTES, options.bytes, bytes))
		return -1;
	options.length = bytes;
	find_any_option(&options);
	segment->has_option = options.found;
	segment->asks = !!(options.values & WATERFILL_FORWARD);
	return 0;
}

SEC("tcx/egress")
int waterfill_cohabit(struct __sk_buff *skb)
{
	__u32 key = skb->ifindex;
	struct cohabit_module *module = bpf_map_lookup_elem(&cohabit_modules, &key);
	struct cohabit_sums *sums = bpf_map_lookup_elem(&cohabit_cpus, &key);
	struct cohabit_setup *setup;
	struct cohabit_link *link;
	struct tcp_position position = {};
	struct segment segment = {};
	__u32 segments, ip, class = COHABIT_OTHER;
	__s64 bytes;
	__u64 now;

	if (!module || !sums)
		return CONTINUE;
	setup = &module->state.setup;
	link = &module->state.link;
	now = bpf_ktime_get_ns();
	if (now >= link->interval_end)
		end_intervals(module, key, now);

	segments = packet_segments(skb);
	if (find_ip(skb, setup->header_bytes, &position)) {
		ip = position.at;
	} else {
		ip = position.at;
		if (find_tcp(skb, &position) == WATERFILL_COUNT_OPTION && !read_segment(skb, ip, &position, setup->salt, &segment)) {
			class = COHABIT_TCP;
			/* A TCP's data may have an echo too: its peer's law asked. */
			if (segment.has_data ? segment.asks || cohabit_is_known(link, module->filters,
										COHABIT_EXPLICIT, segment.flow)
					     : segment.has_option)
				class = COHABIT_EXPLICIT;
		}
	}
	bytes = (__s64)skb->wire_len + (__s64)segments * (setup->overhead_bytes - (__s64)ip);
	if (bytes < 0)
		bytes = 0;

	if (class == COHABIT_OTHER) {
		cohabit_count(sums, COHABIT_OTHER, segments, 0, now);
		sums->bytes[COHABIT_OTHER] += bytes;
	} else if (class == COHABIT_EXPLICIT) {
		cohabit_count(sums, COHABIT_EXPLICIT, segments, segment.has_data, now);
		/* Only the option makes a flow known, or a flow would be explicit for ever after one. */
		if (segment.has_data && segment.asks)
			cohabit_flow(link, module->filters, COHABIT_EXPLICIT, segment.flow);
		sums->bytes[COHABIT_EXPLICIT] += bytes;
	} else {
		cohabit_count(sums, COHABIT_TCP, segments, segment.has_data, now);
		if (segment.has_data) {
			__u32 random = bpf_get_prandom_u32();
			enum cohabit_verdict verdict;

			cohabit_flow(link, module->filters, COHABIT_TCP, segment.flow);
			bpf_spin_lock(&module->lock);
			verdict = cohabit_decide(&setup->params, link, now, bytes, segments, segment.markable, random);
			bpf_spin_unlock(&module->lock);
			if (verdict == COHABIT_MARK && bpf_skb_ecn_set_ce(skb)) {
				sums->marked += segments;
			} else if (verdict != COHABIT_ADMIT) {
				sums->dropped += segments;
				return DROP;
			}
		}
		sums->bytes[COHABIT_TCP] += bytes;
	}
	if (!setup->other_queue)
		return CONTINUE;
	skb->priority = class == COHABIT_EXPLICIT ? setup->explicit_queue : setup->other_queue;
	return class == COHABIT_EXPLICIT ? CONTINUE : PASS;
}
