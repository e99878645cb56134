/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A link: the law's state, the time at which its interval ends, and its lock.
 *
 * Time. A link's signal changes once per interval. The first packet after an interval's end closes that interval, and
 * all empty ones since in one step, before the packet itself is counted.
 *
 * CPUs. Arrivals are added atomically. The CPU that gets the lock changes the law's state; others use it as it is. Code
 * under the lock cannot fail or sleep.
 */
#ifndef WATERFILL_LINK_H
#define WATERFILL_LINK_H

/* Attempts to take the lock for a SYN. */
#define LOCK_ATTEMPTS 64

struct waterfill_link {
	struct waterfill_attachment attachment;
	__u64 interval_end; /* ns */
	__u32 interval;	    /* us: of the interval that ends then */
	__u32 locked;	    /* 1: a CPU is changing the law's state */
	__u32 target;	    /* 10^-6 of the capacity; 0: the law's own */
	__u32 reserved;
	struct meter meter;
	struct law_link law;
	struct law_cpu cpu; /* of all CPUs */
	__u64 counts[WATERFILL_COUNTS];
};

/* User space reads the attachment from the start of the value. */
_Static_assert(__builtin_offsetof(struct waterfill_link, attachment) == 0, "the attachment is not first");
_Static_assert(sizeof(struct law_params) <= 8 * WATERFILL_PARAMS, "the law has too many parameters");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, WATERFILL_MAX_LINKS);
	__type(key, __u32); /* ifindex */
	__type(value, struct waterfill_link);
} links SEC(".maps");

static __always_inline void count(struct waterfill_link *link, enum waterfill_count what)
{
	__sync_fetch_and_add(&link->counts[what], 1);
}

static __always_inline int try_lock(struct waterfill_link *link)
{
	return __sync_val_compare_and_swap(&link->locked, 0, 1) == 0;
}

static __always_inline void unlock(struct waterfill_link *link)
{
	__sync_lock_test_and_set(&link->locked, 0);
}

static __always_inline __u64 first_signal(const struct waterfill_link *link)
{
	__u64 signals[LAW_SIGNALS];

	law_link_read(&link->law, signals);
	return signals[0];
}

static __always_inline __u32 law_interval_us(const struct waterfill_link *link)
{
	__u32 us = law_interval(&link->law);

	return us ? us : 1;
}

/* Closes n intervals without arrivals while the queue drains. Laws take a queue's mean over many intervals, so those
 * that end with a queue are one step, and the rest are one step without.
 */
static __always_inline void end_idle_intervals(struct waterfill_link *link, __u64 n)
{
	__u64 queue = link->meter.queue, drain = drained(&link->meter, link->interval);
	__u64 waiting = queue / drain; /* intervals that end with a queue */

	if (waiting > n)
		waiting = n;
	if (waiting)
		law_idle(&link->law, waiting, (queue - drain * (waiting + 1) / 2) >> 16);
	law_idle(&link->law, n - waiting, 0);
	link->meter.queue = drain_queue(queue, drain, n);
}

/* Closes all intervals that have ended, unless another CPU does. Without `skb` the queue is not read but computed. */
static __always_inline void end_intervals(struct waterfill_link *link, struct __sk_buff *skb, __u64 now)
{
	struct meter *meter = &link->meter;
	__u64 bytes, late, idle, seen = NO_QUEUE;
	struct law_sums sums;

	if (!try_lock(link))
		return;
	if (now < link->interval_end) /* another CPU has closed it */
		goto done;
	late = now - link->interval_end;
	take_arrivals(meter, &link->cpu, &sums);
	if (skb && !meter->virtual_only)
		seen = read_qdisc_backlog(skb, meter);
	bytes = sums.bytes < WATERFILL_QUEUE_MAX ? sums.bytes : WATERFILL_QUEUE_MAX;
	meter->queue = drain_queue(meter->queue + (bytes << 16), drained(meter, link->interval), 1);
	if (meter->queue > WATERFILL_QUEUE_MAX << 16)
		meter->queue = WATERFILL_QUEUE_MAX << 16;
	/* The queue at the end of the first interval is the measured one only if that end is now. */
	if (seen != NO_QUEUE && late < link->interval * 1000ull)
		meter->queue = seen << 16;
	law_tick(&link->law, &sums, meter->queue >> 16);
	/* The law may have changed its interval. */
	link->interval = law_interval_us(link);
	idle = late / (link->interval * 1000ull);
	link->interval_end += idle * link->interval * 1000;
	if (idle) {
		end_idle_intervals(link, idle);
		link->interval = law_interval_us(link);
	}
	link->interval_end += link->interval * 1000ull;
	if (seen != NO_QUEUE) {
		meter->queue = seen << 16;
		meter->backlog = seen;
	}
	if (skb)
		meter->queue_measured = seen != NO_QUEUE;
	link->attachment.price = first_signal(link);
done:
	unlock(link);
}

/* Lets the law write a value. Returns whether it changed. */
static __always_inline int mark_value(struct waterfill_link *link, const struct law_packet *packet, __u8 *value)
{
	int changed, locked = 0;
	int i;

	if (!packet->syn)
		return law_mark(&link->law, &link->cpu, packet, value);
	count(link, WATERFILL_COUNT_START_RATE);
	/* Without the lock, the next SYN may be given the same capacity. */
	for (i = 0; i < LOCK_ATTEMPTS && law_syn_needs_lock(&link->law) && !locked; i++)
		locked = try_lock(link);
	changed = law_mark(&link->law, &link->cpu, packet, value);
	if (locked)
		unlock(link);
	return changed;
}

/* ------------------------------------------------------------------ requests of user space */

static __always_inline void set(struct waterfill_link *link, const struct waterfill_request *request, __u64 now)
{
	struct meter *meter = &link->meter;
	__u64 capacity = request->rate, price = request->attachment.price;
	__u32 interval = link->interval;
	struct law_params params;

	/* Context fields must be loaded by themselves, not through a selected pointer. */
	barrier_var(price);
	barrier_var(capacity);
	__builtin_memcpy(&params, request->params, sizeof(params));
	law_link_set(&link->law, &params, capacity, request->target);
	if (!link->attachment.layout)
		law_link_restore(&link->law, price);
	link->interval = law_interval_us(link);
	if (!link->attachment.layout || link->interval != interval) {
		link->interval_end = now + link->interval * 1000ull;
		meter->queue = 0;
	}
	link->attachment.price = first_signal(link);
	link->attachment.namespace = request->attachment.namespace;
	link->attachment.created = request->attachment.created;
	__builtin_memcpy(link->attachment.device, request->attachment.device, sizeof(link->attachment.device));
	meter->capacity = capacity ? capacity : 1;
	meter->overhead_bytes = request->overhead_bytes;
	meter->header_bytes = request->header_bytes;
	meter->virtual_only = request->virtual_only;
	if (meter->virtual_only)
		meter->queue_measured = 0;
	link->target = request->target;
	/* Last, because packets check it first. */
	__sync_lock_test_and_set(&link->attachment.layout, WATERFILL_LAYOUT);
}

static __always_inline void answer(const struct waterfill_link *link, struct waterfill_request *request)
{
	const struct meter *meter = &link->meter;
	__u64 signals[LAW_SIGNALS];
	int i;

	law_link_read(&link->law, signals);
	request->attachment = link->attachment;
	request->rate = meter->capacity;
	request->target = link->target;
	for (i = 0; i < LAW_SIGNALS; i++)
		request->signals[i] = signals[i];
	request->queue = meter->queue_measured ? meter->backlog : meter->queue >> 16;
	request->queue_measured = meter->queue_measured;
	request->packets = meter->packets + (__u32)meter->counted;
	request->segments = meter->segments + (meter->counted >> 32);
	request->bytes = meter->bytes + link->cpu.sums.bytes;
	request->interval = link->interval;
	for (i = 0; i < WATERFILL_COUNTS; i++)
		request->counts[i] = link->counts[i];
}

/* Executes a request of user space: BPF_PROG_TEST_RUN on this program, with the request as its context. */
SEC("syscall")
int waterfill_ask(struct waterfill_request *request)
{
	__u32 key = request->ifindex;
	struct waterfill_link *link = bpf_map_lookup_elem(&links, &key);
	__u64 now = request->now ? request->now : bpf_ktime_get_ns();
	/* SHOW cannot read the queue: it leaves an interval that has just ended to the next packet. */
	__u64 grace = request->command == WATERFILL_SHOW && link ? link->interval * 1000ull : 0;

	if (!link)
		return WATERFILL_NO_LINK;
	if (link->attachment.layout && now >= link->interval_end + grace)
		end_intervals(link, 0, now);
	if (request->command == WATERFILL_SET) {
		if (!try_lock(link))
			return WATERFILL_BUSY;
		set(link, request, now);
		unlock(link);
	} else if (request->command == WATERFILL_ARRIVE) {
		count_arrival(&link->meter, &link->cpu, request->arriving_bytes, 1);
	}
	answer(link, request);
	return WATERFILL_OK;
}

#endif
