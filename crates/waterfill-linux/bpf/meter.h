/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a link carries: its arrivals, and its queue.
 *
 * Queue. The root qdisc's backlog, where that is one number; not with per-CPU queues (pfifo_fast), several queues (mq),
 * offloaded or absent queues (noqueue), or before Linux 6.2. There a virtual queue replaces it: what would wait if the
 * link ran at exactly C.
 *
 * Volume. A packet's IP length plus `overhead_bytes`, per segment. A super-packet (GSO) counts as the segments that
 * will be sent: wire_len includes their headers, gso.h counts them. VLAN tags belong to the link, like
 * Ethernet's header, and are part of `overhead_bytes`.
 */
#ifndef WATERFILL_METER_H
#define WATERFILL_METER_H

#define NO_QUEUE (~0ull)

/* What one CPU has counted on a link since it was made. Only that CPU writes it, and numbers only grow. */
struct router_cpu {
	struct law_cpu law; /* its first number is the bytes of all packets */
	__u64 packets, segments;
	__u64 counts[WATERFILL_COUNTS];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, WATERFILL_MAX_LINKS);
	__type(key, __u32); /* slot */
	__type(value, struct router_cpu);
} cpus SEC(".maps");

/* Used once per interval, under the link's lock. */
struct meter {
	__u64 capacity;	      /* bit/s */
	__u64 queue;	      /* 2^-16 bytes: measured or virtual */
	__u64 backlog;	      /* bytes: the qdisc's queue when it was last read */
	struct law_sums seen; /* what all CPUs had counted at the last interval's end */
	__u32 virtual_only;   /* 1: the qdisc's queue is not read */
	__u32 queue_measured;
};

static __always_inline void count_arrival(struct router_cpu *cpu, __u64 bytes, __u32 segments)
{
	cpu->law.sums.bytes += bytes;
	cpu->packets++;
	cpu->segments += segments;
}

/* Adds what all CPUs have counted. It is a global function, as those below, so that the verifier follows its loop once. */
__noinline int add_sums(struct law_sums *total, __u32 slot)
{
	__u32 cpu, i;

	if (!total)
		return 0;
	for (cpu = 0; cpu < WATERFILL_MAX_CPUS; cpu++) {
		const struct router_cpu *of = bpf_map_lookup_percpu_elem(&cpus, &slot, cpu);

		if (!of)
			break;
		for (i = 0; i < sizeof(*total) / sizeof(__u64); i++)
			((__u64 *)total)[i] += ((const volatile __u64 *)&of->law.sums)[i];
	}
	return 0;
}

/* As add_sums(), for all that is counted. */
__noinline int add_counters(struct router_cpu *total, __u32 slot)
{
	__u32 cpu, i;

	if (!total)
		return 0;
	for (cpu = 0; cpu < WATERFILL_MAX_CPUS; cpu++) {
		const struct router_cpu *of = bpf_map_lookup_percpu_elem(&cpus, &slot, cpu);

		if (!of)
			break;
		total->law.sums.bytes += of->law.sums.bytes;
		total->packets += of->packets;
		total->segments += of->segments;
		for (i = 0; i < WATERFILL_COUNTS; i++)
			total->counts[i] += of->counts[i];
	}
	return 0;
}

__noinline int clear_counters(__u32 slot)
{
	__u32 cpu;

	for (cpu = 0; cpu < WATERFILL_MAX_CPUS; cpu++) {
		struct router_cpu *of = bpf_map_lookup_percpu_elem(&cpus, &slot, cpu);

		if (!of)
			break;
		__builtin_memset(of, 0, sizeof(*of));
	}
	return 0;
}

/* Returns what arrived at any CPU since the last call. */
static __always_inline void take_arrivals(struct meter *meter, __u32 slot, struct law_sums *sums)
{
	__u64 *seen = (__u64 *)&meter->seen, *new = (__u64 *)sums;
	struct law_sums total = {};
	__u32 i;

	add_sums(&total, slot);
	for (i = 0; i < sizeof(total) / sizeof(__u64); i++) {
		new[i] = ((__u64 *)&total)[i] - seen[i];
		seen[i] = ((__u64 *)&total)[i];
	}
}

/* Returns the bytes that wait in the device's root qdisc, or NO_QUEUE. The correction is of a frame's length. */
static __always_inline __u64 read_qdisc_backlog(struct __sk_buff *skb, __s32 correction_bytes)
{
	struct Qdisc *qdisc;
	struct sk_buff *buffer;
	__s64 bytes;

	if (!bpf_ksym_exists(bpf_cast_to_kern_ctx))
		return NO_QUEUE;
	buffer = bpf_cast_to_kern_ctx(skb);
	qdisc = buffer->dev->qdisc;
	/* These qdiscs keep their statistics elsewhere. */
	if (qdisc->flags & (TCQ_F_BUILTIN | TCQ_F_MQROOT | TCQ_F_CPUSTATS | TCQ_F_OFFLOADED))
		return NO_QUEUE;
	bytes = qdisc->qstats.backlog;
	/* A size table already gives each packet's size on the link. */
	if (!qdisc->stab)
		bytes += (__s64)qdisc->q.qlen * correction_bytes;
	return bytes > 0 ? bytes : 0;
}

/* Returns what the link carries in a time, 2^-16 bytes; at least 1. */
static __always_inline __u64 drained(const struct meter *meter, __u32 us)
{
	/* 2^16/8 bytes per bit, up to 8 Tbit/s: 43 + 13 bits; 36 + 28, and 20 + 28 (4 min). */
	__u64 rate = meter->capacity < 1ull << 43 ? meter->capacity : 1ull << 43;
	__u64 volume = fixed_scale(rate << 13, us < 1u << 28 ? us : 1u << 28, 1000000);

	return volume ? volume : 1;
}

/* Returns what is left of `queue` (2^-16 bytes) after n intervals without arrivals, of which each drains so much. */
static __always_inline __u64 drain_queue(__u64 queue, __u64 drain, __u64 n)
{
	return n < queue / drain ? queue - n * drain : 0;
}

#endif
