/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * MaxNet's router program, at a device's egress. It runs for every packet before the device's queue, counts the packet
 * as load, and raises the forward value of its option (wire.h). The law is in maxnet.h; this file handles packets and
 * time.
 *
 * Time. A link's price changes once every dt_p. The first packet after an interval's end closes that interval, and all
 * empty ones since in one step, before the packet itself is counted.
 *
 * CPUs. Arrivals are added atomically. The CPU that gets the lock changes the price; others use the price as it is.
 * Code under the lock cannot fail or sleep. Packets read one word of the law, price_code, which is written whole.
 *
 * Queue. The root qdisc's backlog, where that is one number; not with per-CPU queues (pfifo_fast), several queues (mq),
 * offloaded or absent queues (noqueue), or before Linux 6.2. There a virtual queue replaces it: what would wait if the
 * link ran at exactly C.
 *
 * Volume. A packet's IP length plus `overhead_bytes`, per segment. A super-packet (GSO) counts as the segments that
 * will be sent: wire_len includes their headers, gso_segs is their number. VLAN tags belong to the link, like
 * Ethernet's header, and are part of `overhead_bytes`.
 *
 * Marked packets: TCP over IPv4 (with IP options; first fragments) and over IPv6 (after hop-by-hop, routing and
 * destination options; first fragments), after up to two VLAN tags. Everything else counts as load and is not
 * modified: tunnels, AH, later fragments, options of a wrong length, and segments that TCP-AO or MD5 signs. Only the
 * value's three bytes and TCP's checksum are ever written, and only if the value changes.
 *
 * docs/explanation/kernel-programs.md gives the reasons.
 */
#include "kernel.h"
#include "wire.h"
#include "maxnet.h"
#include "router.h"

char _license[] SEC("license") = "Dual BSD/GPL";

/* The verdict on every packet: go on to the next program, or to the queue. */
#define CONTINUE -1 /* TCX_NEXT, and TC_ACT_UNSPEC */

#define PROTOCOL_IPV4 0x0800
#define PROTOCOL_IPV6 0x86dd
#define PROTOCOL_VLAN 0x8100
#define PROTOCOL_QINQ 0x88a8

#define VLAN_TAGS 2
#define EXTENSION_HEADERS 8
#define TCP_BYTES 20
#define TCP_OPTIONS 40
#define TCP_CHECKSUM 16 /* its offset in the TCP header */
#define TCP_SYN 0x02

/* Attempts to take the lock for a start rate. */
#define LOCK_ATTEMPTS 64

#define NO_QUEUE (~0ull)

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, WATERFILL_MAX_LINKS);
	__type(key, __u32); /* ifindex */
	__type(value, struct waterfill_link);
} links SEC(".maps");

/* ------------------------------------------------------------------ time and load */

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

/* Returns the bytes that wait in the device's root qdisc, or NO_QUEUE. */
static __always_inline __u64 read_qdisc_backlog(struct __sk_buff *skb, const struct waterfill_link *link)
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
		bytes += (__s64)qdisc->q.qlen * (link->overhead_bytes - (__s32)link->header_bytes);
	return bytes > 0 ? bytes : 0;
}

/* Returns what is left of `queue` (2^-16 bytes) after n intervals without arrivals. */
static __always_inline __u64 drain_queue(const struct waterfill_link *link, __u64 queue, __u64 n)
{
	return n < queue / link->drain_per_interval ? queue - n * link->drain_per_interval : 0;
}

/* Closes n intervals without arrivals while the queue drains. The price is linear in the queue, so the intervals that
 * end with a queue are one step with their mean queue; the rest are one step without.
 */
static __always_inline void end_idle_intervals(struct waterfill_link *link, __u64 n)
{
	__u64 waiting = link->queue / link->drain_per_interval; /* intervals that end with a queue */

	if (waiting > n)
		waiting = n;
	if (waiting)
		maxnet_idle(&link->law, waiting, (link->queue - link->drain_per_interval * (waiting + 1) / 2) >> 16);
	maxnet_idle(&link->law, n - waiting, 0);
	link->queue = drain_queue(link, link->queue, n);
}

/* Closes all intervals that have ended, unless another CPU does. Without `skb` the queue is not read but computed. */
static __always_inline void end_intervals(struct waterfill_link *link, struct __sk_buff *skb, __u64 now)
{
	__u64 bytes, counted, idle, seen = NO_QUEUE;

	if (!try_lock(link))
		return;
	if (now < link->interval_end) /* another CPU has closed it */
		goto done;
	idle = (now - link->interval_end) / link->interval;
	bytes = __sync_lock_test_and_set(&link->arrived, 0);
	counted = __sync_lock_test_and_set(&link->counted, 0);
	link->bytes += bytes;
	link->packets += (__u32)counted;
	link->segments += counted >> 32;

	if (skb && !link->virtual_only)
		seen = read_qdisc_backlog(skb, link);
	/* The queue at the end of the first interval is the measured one only if that end is now. */
	if (bytes > WATERFILL_QUEUE_MAX)
		bytes = WATERFILL_QUEUE_MAX;
	link->queue = drain_queue(link, link->queue + (bytes << 16), 1);
	if (link->queue > WATERFILL_QUEUE_MAX << 16)
		link->queue = WATERFILL_QUEUE_MAX << 16;
	if (seen != NO_QUEUE && !idle)
		link->queue = seen << 16;
	maxnet_tick(&link->law, bytes, link->queue >> 16);
	if (idle)
		end_idle_intervals(link, idle);
	if (seen != NO_QUEUE) {
		link->queue = seen << 16;
		link->backlog = seen;
	}
	if (skb)
		link->queue_measured = seen != NO_QUEUE;
	link->attachment.price = link->law.price;
	link->interval_end += (idle + 1) * link->interval;
done:
	unlock(link);
}

static __always_inline void count_arrival(struct waterfill_link *link, __u64 bytes, __u32 segments)
{
	__sync_fetch_and_add(&link->arrived, bytes);
	/* Packets in the lower half, segments in the upper; in an interval of up to 1 s neither overflows. */
	__sync_fetch_and_add(&link->counted, (__u64)segments << 32 | 1);
}

/* ------------------------------------------------------------------ finding the TCP header */

struct tcp_position {
	__u32 at;       /* offset of the current header from the packet's first byte */
	__u32 end;      /* offset of the IP packet's end; 0 where its length field is 0 (over 64 kB) */
	__u32 protocol; /* EtherType */
};

/* Finds the IP header after the link header and VLAN tags; -1 if the packet is too short. */
static __always_inline int find_ip(struct __sk_buff *skb, const struct waterfill_link *link,
				   struct tcp_position *position)
{
	struct {
		__be16 id, protocol;
	} tag;
	__be16 protocol = (__be16)skb->protocol;
	int i;

	position->at = link->header_bytes;
	if (link->header_bytes && bpf_skb_load_bytes(skb, link->header_bytes - 2, &protocol, 2))
		return -1;
	position->protocol = bpf_ntohs(protocol);
	for (i = 0; i < VLAN_TAGS; i++) {
		if (position->protocol != PROTOCOL_VLAN && position->protocol != PROTOCOL_QINQ)
			break;
		if (bpf_skb_load_bytes(skb, position->at, &tag, sizeof(tag)))
			return -1;
		position->protocol = bpf_ntohs(tag.protocol);
		position->at += sizeof(tag);
	}
	return 0;
}

enum found {
	FOUND,
	NOT_TCP,
	FRAGMENT,
	MALFORMED,
};

static __always_inline enum found find_tcp_ipv4(struct __sk_buff *skb, struct tcp_position *position)
{
	struct {
		__u8 version, tos;
		__be16 length, id, fragment;
		__u8 ttl, protocol;
	} ip;
	__u32 header;

	if (bpf_skb_load_bytes(skb, position->at, &ip, sizeof(ip)))
		return MALFORMED;
	if (ip.protocol != 6)
		return NOT_TCP;
	header = (ip.version & 0xf) * 4;
	if (ip.version >> 4 != 4 || header < 20)
		return MALFORMED;
	if (ip.fragment & bpf_htons(0x1fff))
		return FRAGMENT;
	position->end = ip.length ? position->at + bpf_ntohs(ip.length) : 0;
	position->at += header;
	return FOUND;
}

static __always_inline enum found find_tcp_ipv6(struct __sk_buff *skb, struct tcp_position *position)
{
	struct {
		__be32 flow;
		__be16 length;
		__u8 next, hops;
	} ip;
	struct {
		__u8 next, length;
		__be16 offset;
	} header;
	__u32 bytes;
	int i;

	if (bpf_skb_load_bytes(skb, position->at, &ip, sizeof(ip)))
		return MALFORMED;
	if ((ip.flow & bpf_htonl(0xf0000000)) != bpf_htonl(0x60000000))
		return MALFORMED;
	position->at += 40;
	position->end = ip.length ? position->at + bpf_ntohs(ip.length) : 0;
	for (i = 0; i < EXTENSION_HEADERS; i++) {
		if (ip.next == 6)
			return FOUND;
		if (ip.next != 0 && ip.next != 43 && ip.next != 44 && ip.next != 60)
			return NOT_TCP;
		if (bpf_skb_load_bytes(skb, position->at, &header, sizeof(header)))
			return MALFORMED;
		bytes = header.length * 8 + 8;
		if (ip.next == 44) { /* fragment header */
			if (header.offset & bpf_htons(0xfff8))
				return FRAGMENT;
			bytes = 8;
		}
		ip.next = header.next;
		position->at += bytes;
	}
	return ip.next == 6 ? FOUND : NOT_TCP;
}

/* ------------------------------------------------------------------ the option */

/* A segment's options, and the result of parsing them. */
struct options {
	__u8 bytes[TCP_OPTIONS + WATERFILL_OPTION_BYTES]; /* 8 bytes can be read from any option's start */
	__u32 length;
	__u32 next; /* offset of the next option */
	__u32 at;   /* offset of the forward value in the TCP header; 0: none */
	__u32 value;
	__u32 has_option;
	__u32 malformed; /* a length does not fit */
	__u32 has_signature; /* TCP-AO or MD5 */
};

/* Parses the option at `at`, which is complete. */
static __always_inline void parse_option(struct options *options, __u32 at, __u32 length)
{
	const __u8 *bytes = options->bytes + at;
	__u32 kind = bytes[0];
	__u32 both;

	if (kind == 29 || kind == 19)
		options->has_signature = 1;
	if (kind == WATERFILL_KIND_EXPERIMENT) {
		if (length < 5 || bytes[2] != WATERFILL_EXID >> 8 || bytes[3] != (WATERFILL_EXID & 0xff))
			return; /* another experiment */
		both = bytes[4] == WATERFILL_BOTH;
		if (length != (both ? WATERFILL_OPTION_BOTH_BYTES : WATERFILL_OPTION_BYTES)) {
			options->malformed = 1;
			return;
		}
		options->has_option = 1;
		if (!both && bytes[4] != WATERFILL_FORWARD)
			return; /* an echo, or a type of a later version */
	} else if (kind == WATERFILL_KIND_PAPER && length == WATERFILL_OPTION_BYTES) {
		options->has_option = 1;
	} else {
		return;
	}
	if (options->at) /* of several, receivers use the first */
		return;
	options->at = TCP_BYTES + at + 5;
	options->value = (__u32)bytes[5] << 16 | (__u32)bytes[6] << 8 | bytes[7];
}

/* Parses all options, as a signature may come last. It is a global function because the verifier does not track its
 * argument's contents: inlined, the verifier would follow every sequence of option offsets.
 */
__noinline int parse_options(struct options *options)
{
	int i;

	if (!options)
		return 0;
	for (i = 0; i < TCP_OPTIONS; i++) {
		__u32 at, kind, length;

		barrier(); /* keep the results in memory */
		at = options->next;
		if (at >= options->length || at >= TCP_OPTIONS)
			break;
		kind = options->bytes[at];
		if (kind == 0)
			break;
		length = kind == 1 ? 1 : options->bytes[at + 1];
		if (length < 1 + (kind != 1) || at + length > options->length) {
			options->malformed = 1;
			break;
		}
		if (kind != 1)
			parse_option(options, at, length);
		options->next = at + length;
	}
	return 0;
}

/* Replaces the forward value. Both calls may run out of memory; if the first succeeds, so does the second. */
static __always_inline int write_field(struct __sk_buff *skb, __u32 tcp, const struct options *option, __u32 value)
{
	__u8 bytes[3] = { value >> 16, value >> 8, value };
	/* The checksum adds 16-bit words, counted from the TCP header's first byte. */
	__u32 shift = option->at & 1 ? 0 : 8;

	if (bpf_skb_store_bytes(skb, tcp + option->at, bytes, sizeof(bytes), 0))
		return -1;
	/* Not a pseudo-header field: where the device completes the checksum, this call leaves it alone. */
	return bpf_l4_csum_replace(skb, tcp + TCP_CHECKSUM, bpf_htonl(option->value << shift),
				   bpf_htonl(value << shift), 4);
}

/* Returns the field to send. Start rates are given on SYNs only, because each reserves capacity. */
static __always_inline __u32 new_field(struct waterfill_link *link, __u32 field, int syn)
{
	int locked = 0;
	int i;

	if (!(field & FIXED_FLAG) || !syn)
		return maxnet_mark_price(&link->law, field);
	count(link, WATERFILL_COUNT_START_RATE);
	for (i = 0; i < LOCK_ATTEMPTS && link->law.promise && !locked; i++)
		locked = try_lock(link);
	/* Without the lock, the next SYN may be given the same capacity. */
	field = maxnet_mark(&link->law, field);
	if (locked)
		unlock(link);
	return field;
}

static __always_inline void mark(struct __sk_buff *skb, struct waterfill_link *link,
				 const struct tcp_position *position)
{
	struct {
		__be32 ports, sequence, acknowledgement;
		__u8 offset, flags;
	} tcp;
	struct options options = {};
	__u32 bytes, value;

	if (bpf_skb_load_bytes(skb, position->at, &tcp, sizeof(tcp)))
		goto malformed;
	bytes = tcp.offset >> 4;
	if (bytes < 5)
		goto malformed;
	bytes = (bytes - 5) * 4;
	if (position->end && position->at + TCP_BYTES + bytes > position->end)
		goto malformed;
	if (bytes < WATERFILL_OPTION_BYTES) {
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
	value = new_field(link, options.value, tcp.flags & TCP_SYN);
	if (value == options.value)
		return;
	count(link,
	      write_field(skb, position->at, &options, value) ? WATERFILL_COUNT_NO_MEMORY : WATERFILL_COUNT_MARKED);
	return;
malformed:
	count(link, WATERFILL_COUNT_MALFORMED);
}

/* ------------------------------------------------------------------ entries */

SEC("tcx/egress")
int waterfill_router(struct __sk_buff *skb)
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
	has_ip = !find_ip(skb, link, &position);
	bytes = (__s64)skb->wire_len + (__s64)segments * (link->overhead_bytes - (__s64)position.at);
	count_arrival(link, bytes > 0 ? bytes : 0, segments);

	if (has_ip && position.protocol == PROTOCOL_IPV4)
		found = find_tcp_ipv4(skb, &position);
	else if (has_ip && position.protocol == PROTOCOL_IPV6)
		found = find_tcp_ipv6(skb, &position);
	if (found == FOUND)
		mark(skb, link, &position);
	else if (found == FRAGMENT)
		count(link, WATERFILL_COUNT_FRAGMENT);
	else if (found == MALFORMED)
		count(link, WATERFILL_COUNT_MALFORMED);
	return CONTINUE;
}

static __always_inline void set(struct waterfill_link *link, const struct waterfill_request *request, __u64 now)
{
	struct maxnet_link *law = &link->law;
	__u64 price = request->attachment.price;
	__u64 rate;

	barrier_var(price); /* a context field must be loaded by itself, not through a selected pointer */
	if (link->attachment.layout)
		price = law->price;
	if (link->attachment.layout && law->x_max == request->x_max && law->t == request->t &&
	    law->dt_p == request->dt_p && law->t_0 == request->t_0) {
		law->promise = request->promise;
		maxnet_link_set(law, request->rate, request->mu);
	} else {
		/* The law cannot change these while running: restart it with the old price. */
		maxnet_link_init(law, request->rate, request->x_max, request->t, request->mu, request->dt_p,
				 request->t_0, request->promise);
		if (law->price < price && price <= MAXNET_PRICE_MAX)
			law->price = price;
		law->price_code = fixed_price_code(law->price);
		link->interval = law->dt_p * 1000ull;
		link->interval_end = now + link->interval;
		link->queue = 0;
	}
	/* 2^16/8 bytes per bit, up to 8 Tbit/s: 43 + 13 bits; 20 + 20. */
	rate = law->capacity < 1ull << 43 ? law->capacity : 1ull << 43;
	link->drain_per_interval = fixed_scale(rate << 13, law->dt_p, 1000000);
	if (!link->drain_per_interval)
		link->drain_per_interval = 1;
	link->attachment.price = law->price;
	link->attachment.namespace = request->attachment.namespace;
	link->attachment.created = request->attachment.created;
	__builtin_memcpy(link->attachment.device, request->attachment.device, sizeof(link->attachment.device));
	link->overhead_bytes = request->overhead_bytes;
	link->header_bytes = request->header_bytes;
	link->virtual_only = request->virtual_only;
	if (link->virtual_only)
		link->queue_measured = 0;
	/* Last, because packets check it first. */
	__sync_lock_test_and_set(&link->attachment.layout, WATERFILL_LAYOUT);
}

/* Executes a request of user space: BPF_PROG_TEST_RUN on this program, with the request as its context. */
SEC("syscall")
int waterfill_ask(struct waterfill_request *request)
{
	__u32 key = request->ifindex;
	struct waterfill_link *link = bpf_map_lookup_elem(&links, &key);
	__u64 now = request->now ? request->now : bpf_ktime_get_ns();
	/* SHOW cannot read the queue: it leaves an interval that has just ended to the next packet. */
	__u64 grace = request->command == WATERFILL_SHOW && link ? link->interval : 0;
	int i;

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
		count_arrival(link, request->arriving_bytes, 1);
	}
	request->attachment = link->attachment;
	request->rate = link->law.capacity;
	request->price_min = link->law.price_min;
	request->price_code = link->law.price_code;
	request->arrival_rate = link->law.arrival_rate;
	request->mu = link->law.mu;
	request->queue = link->queue_measured ? link->backlog : link->queue >> 16;
	request->queue_measured = link->queue_measured;
	request->packets = link->packets + (__u32)link->counted;
	request->segments = link->segments + (link->counted >> 32);
	request->bytes = link->bytes + link->arrived;
	for (i = 0; i < WATERFILL_COUNTS; i++)
		request->counts[i] = link->counts[i];
	return WATERFILL_OK;
}
