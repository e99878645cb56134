/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a link carries: its arrivals, and its queue.
 *
 * Queue. The root qdisc's backlog, where that is one number; not with per-CPU queues (pfifo_fast), several queues (mq),
 * offloaded or absent queues (noqueue), or before Linux 6.2. There a virtual queue replaces it: what would wait if the
 * link ran at exactly C.
 *
 * Volume. A packet's IP length plus `overhead_bytes`, per segment. A super-packet (GSO) counts as the segments that
 * will be sent: wire_len includes their headers, gso_segs is their number. VLAN tags belong to the link, like
 * Ethernet's header, and are part of `overhead_bytes`.
 */
#ifndef WATERFILL_METER_H
#define WATERFILL_METER_H

#define NO_QUEUE (~0ull)

struct meter {
	/* Used for every packet. */
	__u64 counted;	      /* in this interval: packets + 2^32 segments */
	__s32 overhead_bytes; /* of a packet on the link, beyond its IP length */
	__u32 header_bytes;   /* before the IP header: 14, or 0 where the device has none */
	/* Used once per interval. */
	__u64 capacity; /* bit/s */
	__u64 queue;	/* 2^-16 bytes: measured or virtual */
	__u64 backlog;	/* bytes: the qdisc's queue when it was last read */
	__u64 packets, segments, bytes;
	__u32 virtual_only; /* 1: the qdisc's queue is not read */
	__u32 queue_measured;
};

static __always_inline void count_arrival(struct meter *meter, struct law_cpu *cpu, __u64 bytes, __u32 segments)
{
	__sync_fetch_and_add(&cpu->sums.bytes, bytes);
	/* Packets in the lower half, segments in the upper; in an interval of up to 1 s neither overflows. */
	__sync_fetch_and_add(&meter->counted, (__u64)segments << 32 | 1);
}

/* Returns what arrived since the last call, counted by any CPU. */
static __always_inline void take_arrivals(struct meter *meter, struct law_cpu *cpu, struct law_sums *sums)
{
	__u64 *from = (__u64 *)&cpu->sums, *to = (__u64 *)sums;
	__u64 counted;
	__u32 i;

	for (i = 0; i < sizeof(*sums) / sizeof(*to); i++)
		to[i] = __sync_lock_test_and_set(&from[i], 0);
	counted = __sync_lock_test_and_set(&meter->counted, 0);
	meter->bytes += sums->bytes;
	meter->packets += (__u32)counted;
	meter->segments += counted >> 32;
}

/* Returns the bytes that wait in the device's root qdisc, or NO_QUEUE. */
static __always_inline __u64 read_qdisc_backlog(struct __sk_buff *skb, const struct meter *meter)
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
		bytes += (__s64)qdisc->q.qlen * (meter->overhead_bytes - (__s32)meter->header_bytes);
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
