/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A link: the law's state, the time at which its interval ends, and its lock.
 *
 * Maps. Packets find their link at the index `ifindex modulo the number of links`, or at another slot that the map of
 * devices names. That map is for user space.
 *
 * Time. A link's signal changes once per interval. The first packet after an interval's end closes that interval, and
 * all empty ones since in one step, before the packet itself is counted. A timer tells packets to read the clock; while
 * none is armed, each packet does. It is armed by the packet that closes an interval, so idle links have none.
 *
 * CPUs. Each CPU counts for itself. The CPU that gets the lock changes the law's state; others use it as it is. Code
 * under the lock cannot fail or sleep. Requests that only read do not take it: they may be preempted.
 */
#ifndef WATERFILL_LINK_H
#define WATERFILL_LINK_H

#include "router_steps.h"

/* Attempts to take the lock for a SYN. */
#define LOCK_ATTEMPTS 64
/* Shorter intervals have no timer: it would interrupt more often than packets come. */
#define MIN_TIMER_US 100
/* A CPU's every so many packets read the clock in any case, because timers may be late. */
#define CLOCK_PACKETS 64

/* A timer that a request started is given up after so long. */
#define SHOW_AGAIN_NS 10000000ull

#define CLOCK_MONOTONIC 1

struct waterfill_link {
	/* For packets. The law changes once per interval, the rest when user space sets it. */
	struct law_link law;
	__u32 ifindex;	      /* 0: unused */
	__u32 read_clock;     /* 1: the interval may have ended */
	__s32 overhead_bytes; /* of a packet on the link, beyond its IP length */
	__u32 header_bytes;   /* before the IP header: 14, or 0 where the device has none */
	/* Used once per interval. */
	__u64 interval_end __attribute__((aligned(64))); /* ns */
	__u32 interval; /* us: of the interval that ends then */
	__u32 locked;	/* 1: a CPU is changing the law's state */
	__u64 shown;	/* ns: since when user space waits for the end of past intervals; 0: it does not */
	__u32 target;	/* 10^-6 of the capacity; 0: the law's own */
	__u32 reserved;
	struct meter meter;
	struct bpf_timer timer;
};

/* User space reads the attachment from the start of the value. */
_Static_assert(__builtin_offsetof(struct waterfill_device, attachment) == 0, "the attachment is not first");
_Static_assert(sizeof(struct law_params) <= 8 * WATERFILL_PARAMS, "the law has too many parameters");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, WATERFILL_MAX_LINKS);
	__type(key, __u32); /* ifindex */
	__type(value, struct waterfill_device);
} links SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE); /* aligns values to cache lines */
	__uint(max_entries, WATERFILL_MAX_LINKS);
	__type(key, __u32); /* slot */
	__type(value, struct waterfill_link);
} slots SEC(".maps");

/* Whether the device has a link of this law. */
static __always_inline int has_link(const struct waterfill_device *device)
{
	return device->attachment.layout && device->law == LAW;
}

/* Finds a device's link and its slot. */
static __always_inline struct waterfill_link *find_link(__u32 ifindex, __u32 *slot)
{
	const struct waterfill_device *device;
	struct waterfill_link *link;

	*slot = ifindex % WATERFILL_MAX_LINKS;
	link = bpf_map_lookup_elem(&slots, slot);
	if (link && link->ifindex == ifindex)
		return link;
	device = bpf_map_lookup_elem(&links, &ifindex);
	if (!device || !has_link(device))
		return 0;
	*slot = device->slot;
	link = bpf_map_lookup_elem(&slots, slot);
	return link && link->ifindex == ifindex ? link : 0;
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
		step_idle(&link->law, waiting, (queue - drain * (waiting + 1) / 2) >> 16, link->ifindex);
	step_idle(&link->law, n - waiting, 0, link->ifindex);
	link->meter.queue = drain_queue(queue, drain, n);
}

/* Arms the timer for the interval's end; where there is none, packets read the clock. */
static __always_inline void arm_timer(struct waterfill_link *link, __u64 now)
{
	link->read_clock = 0;
	if (link->interval < MIN_TIMER_US || now >= link->interval_end ||
	    bpf_timer_start(&link->timer, link->interval_end - now, 0))
		link->read_clock = 1;
}

/* Closes all intervals that have ended, unless another CPU does. Without `skb` the queue is not read but computed. */
static __always_inline void end_intervals(struct waterfill_link *link, __u32 slot, struct __sk_buff *skb, __u64 now)
{
	struct meter *meter = &link->meter;
	struct waterfill_device *device;
	__u64 bytes, late, idle, seen = NO_QUEUE;
	__u32 ifindex = link->ifindex;
	struct law_sums sums;

	if (!try_lock(link))
		return;
	if (now < link->interval_end) /* another CPU has closed it */
		goto done;
	device = bpf_map_lookup_elem(&links, &ifindex);
	if (!device) { /* user space has removed it */
		link->ifindex = 0;
		goto done;
	}
	late = now - link->interval_end;
	take_arrivals(meter, slot, &sums);
	if (skb && !meter->virtual_only)
		seen = read_qdisc_backlog(skb, link->overhead_bytes - (__s32)link->header_bytes);
	bytes = sums.bytes < WATERFILL_QUEUE_MAX ? sums.bytes : WATERFILL_QUEUE_MAX;
	meter->queue = drain_queue(meter->queue + (bytes << 16), drained(meter, link->interval), 1);
	if (meter->queue > WATERFILL_QUEUE_MAX << 16)
		meter->queue = WATERFILL_QUEUE_MAX << 16;
	/* The queue at the end of the first interval is the measured one only if that end is now. */
	if (seen != NO_QUEUE && late < link->interval * 1000ull)
		meter->queue = seen << 16;
	step_tick(&link->law, &sums, meter->queue >> 16, ifindex);
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
	device->attachment.price = first_signal(link);
	arm_timer(link, now);
done:
	link->shown = 0;
	unlock(link);
}

/* The interval has ended. Only packets can read the queue, so the next one closes it, unless user space waits. */
static int on_timer(void *map __attribute__((unused)), __u32 *slot, struct waterfill_link *link)
{
	__u64 now = bpf_ktime_get_ns();

	link->read_clock = 1;
	if (link->shown && link->ifindex && now >= link->interval_end)
		end_intervals(link, *slot, 0, now);
	return 0;
}

/* Lets the law write a value. Returns whether it changed. */
static __always_inline int mark_value(struct waterfill_link *link, struct router_cpu *cpu,
				      const struct law_packet *packet, __u8 *value)
{
	int changed, locked = 0;
	int i;

	if (!packet->syn)
		return step_mark(link->ifindex, &link->law, &cpu->law, packet, value);
	cpu->counts[WATERFILL_COUNT_START_RATE]++;
	/* Without the lock, the next SYN may be given the same capacity. */
	for (i = 0; i < LOCK_ATTEMPTS && law_syn_needs_lock(&link->law) && !locked; i++)
		locked = try_lock(link);
	changed = step_mark(link->ifindex, &link->law, &cpu->law, packet, value);
	if (locked)
		unlock(link);
	return changed;
}

/* ------------------------------------------------------------------ requests of user space */

/* Finds a slot for a device's new link; -1: all are in use. A global function, as add_sums(). */
__noinline int find_slot(__u32 ifindex)
{
	__u32 i;

	for (i = 0; i < WATERFILL_MAX_LINKS; i++) {
		const struct waterfill_device *owner;
		const struct waterfill_link *link;
		__u32 slot = (ifindex + i) % WATERFILL_MAX_LINKS, owner_index;

		link = bpf_map_lookup_elem(&slots, &slot);
		if (!link)
			break;
		owner_index = link->ifindex;
		if (!owner_index || owner_index == ifindex)
			return slot;
		owner = bpf_map_lookup_elem(&links, &owner_index);
		if (!owner || !has_link(owner) || owner->slot != slot)
			return slot;
	}
	return -1;
}

static __always_inline struct waterfill_link *new_link(__u32 ifindex, __u32 *slot)
{
	struct waterfill_link *link;
	int found = find_slot(ifindex);

	if (found < 0)
		return 0;
	*slot = found;
	link = bpf_map_lookup_elem(&slots, slot);
	if (!link)
		return 0;
	link->ifindex = 0;
	clear_counters(*slot);
	__builtin_memset(&link->law, 0, sizeof(link->law));
	__builtin_memset(&link->meter, 0, sizeof(link->meter));
	link->shown = 0;
	return link;
}

static __always_inline void set(struct waterfill_device *device, struct waterfill_link *link,
				const struct waterfill_request *request, __u64 now)
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
	if (!has_link(device))
		law_link_restore(&link->law, price);
	link->interval = law_interval_us(link);
	if (!has_link(device) || link->interval != interval) {
		link->interval_end = now + link->interval * 1000ull;
		meter->queue = 0;
		link->read_clock = 1;
	}
	device->attachment.price = first_signal(link);
	device->attachment.namespace = request->attachment.namespace;
	device->attachment.created = request->attachment.created;
	__builtin_memcpy(device->attachment.device, request->attachment.device, sizeof(device->attachment.device));
	meter->capacity = capacity ? capacity : 1;
	meter->virtual_only = request->virtual_only;
	if (meter->virtual_only)
		meter->queue_measured = 0;
	link->overhead_bytes = request->overhead_bytes;
	link->header_bytes = request->header_bytes;
	link->target = request->target;
	/* An error means that there is one. */
	bpf_timer_init(&link->timer, &slots, CLOCK_MONOTONIC);
	bpf_timer_set_callback(&link->timer, on_timer);
}

static __always_inline void answer(const struct waterfill_device *device, const struct waterfill_link *link, __u32 slot,
				   struct waterfill_request *request)
{
	const struct meter *meter = &link->meter;
	struct router_cpu total = {};
	__u64 signals[LAW_SIGNALS];
	__u32 i;

	add_counters(&total, slot);
	law_link_read(&link->law, signals);
	request->attachment = device->attachment;
	request->rate = meter->capacity;
	request->target = link->target;
	for (i = 0; i < LAW_SIGNALS; i++)
		request->signals[i] = signals[i];
	request->queue = meter->queue_measured ? meter->backlog : meter->queue >> 16;
	request->queue_measured = meter->queue_measured;
	request->packets = total.packets;
	request->segments = total.segments;
	request->bytes = total.law.sums.bytes;
	request->interval = link->interval;
	for (i = 0; i < WATERFILL_COUNTS; i++)
		request->counts[i] = total.counts[i];
}

/* Closes past intervals for a request. Returns whether user space must ask again, once the timer has closed them: a
 * request that is preempted under the lock would keep the signal as it is.
 */
static __always_inline int end_for_request(struct waterfill_link *link, __u32 slot,
					   const struct waterfill_request *request, __u64 now)
{
	/* The queue cannot be read here, so an interval that has just ended is left to the next packet. */
	__u64 grace = request->command == WATERFILL_SHOW ? link->interval * 1000ull : 0;

	if (now < link->interval_end + grace)
		return 0;
	if (request->command == WATERFILL_SHOW && !request->now) {
		/* Starting it again would delay it. */
		if (link->shown && now < link->shown + SHOW_AGAIN_NS)
			return 1;
		link->shown = now;
		if (!bpf_timer_start(&link->timer, 0, 0))
			return 1;
	}
	end_intervals(link, slot, 0, now);
	return 0;
}

/* Executes a request of user space: BPF_PROG_TEST_RUN on this program, with the request as its context. */
SEC("syscall")
int waterfill_ask(struct waterfill_request *request)
{
	__u32 key = request->ifindex;
	struct waterfill_device *device = bpf_map_lookup_elem(&links, &key);
	__u64 now = request->now ? request->now : bpf_ktime_get_ns();
	struct waterfill_link *link;
	struct router_cpu *cpu;
	__u32 slot;

	if (!device)
		return WATERFILL_NO_LINK;
	link = find_link(key, &slot);
	if (link && end_for_request(link, slot, request, now))
		return WATERFILL_BUSY;
	if (request->command == WATERFILL_SET) {
		if (!link || !has_link(device))
			link = new_link(key, &slot);
		if (!link)
			return WATERFILL_NO_LINK;
		if (!try_lock(link))
			return WATERFILL_BUSY;
		set(device, link, request, now);
		unlock(link);
		device->slot = slot;
		device->law = LAW;
		/* Last, because packets and requests check them first. */
		__sync_lock_test_and_set(&device->attachment.layout, WATERFILL_LAYOUT);
		__sync_lock_test_and_set(&link->ifindex, key);
	}
	if (!link || !has_link(device)) {
		request->attachment = device->attachment;
		request->attachment.layout = 0;
		return WATERFILL_OK;
	}
	if (request->command == WATERFILL_ARRIVE) {
		cpu = bpf_map_lookup_elem(&cpus, &slot);
		if (cpu)
			count_arrival(cpu, request->arriving_bytes, 1);
	}
	answer(device, link, slot, request);
	return WATERFILL_OK;
}

#endif
