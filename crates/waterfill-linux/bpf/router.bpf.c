/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * MaxNet's router at a device's egress: it runs for every packet before the device's queue, counts it as load, and
 * raises the forward value of its option (intf.h). The law is maxnet.h's; here are packets and time.
 *
 * Time. A link's price moves once every dt_p, on a grid that began when the link was set up. Nothing runs when no
 * packet comes: the first packet past an interval's end ends it (and all empty ones since, in one step) before it
 * is counted itself, so that what a packet is told never depends on when somebody looked. Time is
 * bpf_ktime_get_ns(): the coarse clock costs less, but moves with the timer tick, 4 ms on many kernels, and dt_p
 * is 1 ms.
 *
 * Processors. Many may send at once. What arrives is added atomically, and an interval's sum is taken by an
 * exchange, so that each byte counts once. The price is moved by whoever takes `busy`, a lock that nobody waits
 * for: who finds it taken goes on with the price as it was. Nothing under it can fail or sleep, so it always comes
 * free. Packets read one word of the law, price_code, which is written whole. Start rates with promises change the
 * law's state: they take `busy` too and try for a microsecond; without it two of them may be promised the same,
 * which T_0 mends.
 *
 * The queue that the law wants is the device's. It is read at the end of an interval from the root qdisc, where
 * there is a number to read: not where the queue is kept by processor (pfifo_fast), in many (mq), in the device
 * (offloaded), or nowhere (noqueue), and not before Linux 6.2. There a virtual queue stands in: what would wait if
 * the link ran at exactly C. Qdiscs count frames, headers of Ethernet included: those are taken off and `overhead`
 * is added for each packet that waits, a super-packet counting as one. Where the qdisc has a size table, its
 * figures are taken as they are.
 *
 * Volume is the IP length and `overhead` for every segment. A super-packet (GSO) counts as the segments that will
 * be sent: wire_len has their headers, gso_segs their number. VLAN tags are the link's, like Ethernet's header:
 * part of `overhead`.
 *
 * What is marked: TCP over IPv4 (with options; first fragments) and IPv6 (behind hop-by-hop, routing, destination
 * options, first fragments), behind at most two VLAN tags. Everything else is load and goes on as it came: tunnels
 * of all kinds, what AH protects, later fragments, options of a wrong length, and segments whose options TCP-AO or
 * MD5 signs. Only the value's three bytes and TCP's checksum are ever written, and only if the value changes.
 */
#include "kernel.h"
#include "intf.h"
#include "maxnet.h"
#include "router.h"

char _license[] SEC("license") = "Dual BSD/GPL";

/* What a packet that is none of ours, and every other, answers: the next program, or the queue. */
#define GO_ON -1 /* TCX_NEXT, and TC_ACT_UNSPEC */

#define PROTOCOL_IPV4 0x0800
#define PROTOCOL_IPV6 0x86dd
#define PROTOCOL_VLAN 0x8100
#define PROTOCOL_QINQ 0x88a8

#define VLAN_TAGS 2
#define EXTENSION_HEADERS 8
#define TCP_BYTES 20
#define TCP_OPTIONS 40
#define TCP_CHECKSUM 16 /* where it is in TCP's header */
#define TCP_SYN 0x02

/* Tries for `busy` by a start rate. */
#define TRIES 64

#define NO_QUEUE (~0ull)

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, WATERFILL_LINKS);
	__type(key, __u32); /* ifindex */
	__type(value, struct waterfill_link);
} links SEC(".maps");

/* ------------------------------------------------------------------ time and load */

static __always_inline void count(struct waterfill_link *link, enum waterfill_count what)
{
	__sync_fetch_and_add(&link->counts[what], 1);
}

static __always_inline int take(struct waterfill_link *link)
{
	return __sync_val_compare_and_swap(&link->busy, 0, 1) == 0;
}

static __always_inline void give(struct waterfill_link *link)
{
	__sync_lock_test_and_set(&link->busy, 0);
}

/* Bytes that wait in the device's root qdisc, or NO_QUEUE. */
static __always_inline __u64 qdisc_queue(struct __sk_buff *skb, const struct waterfill_link *link)
{
	struct Qdisc *qdisc;
	struct sk_buff *buffer;
	__s64 bytes;

	if (!bpf_ksym_exists(bpf_cast_to_kern_ctx))
		return NO_QUEUE;
	buffer = bpf_cast_to_kern_ctx(skb);
	qdisc = buffer->dev->qdisc;
	/* One that keeps its figures elsewhere has none here. */
	if (qdisc->flags & (TCQ_F_BUILTIN | TCQ_F_MQROOT | TCQ_F_CPUSTATS | TCQ_F_OFFLOADED))
		return NO_QUEUE;
	bytes = qdisc->qstats.backlog;
	/* Where a size table says what a packet weighs, it weighs that. */
	if (!qdisc->stab)
		bytes += (__s64)qdisc->q.qlen * (link->overhead - (__s32)link->header);
	return bytes > 0 ? bytes : 0;
}

/* What waits after n intervals at whose beginning `queue` waited, in 2^-16 bytes, if nothing comes. */
static __always_inline __u64 drained(const struct waterfill_link *link, __u64 queue, __u64 n)
{
	return n < queue / link->drain ? queue - n * link->drain : 0;
}

/* n intervals in which nothing came, of a queue that drains meanwhile: the first ones with what waits at their
 * ends in the mean, as the price is linear in it, the others with nothing.
 */
static __always_inline void pass_idle(struct waterfill_link *link, __u64 n)
{
	__u64 waiting = link->queue / link->drain; /* so many ends see a queue */

	if (waiting > n)
		waiting = n;
	if (waiting)
		maxnet_idle(&link->law, waiting, (link->queue - link->drain * (waiting + 1) / 2) >> 16);
	maxnet_idle(&link->law, n - waiting, 0);
	link->queue = drained(link, link->queue, n);
}

/* Ends all intervals that have ended, if nobody else does. `skb` says whose queue to read; none: as it is thought
 * to be.
 */
static __always_inline void advance(struct waterfill_link *link, struct __sk_buff *skb, __u64 now)
{
	__u64 bytes, counted, idle, seen = NO_QUEUE;

	if (!take(link))
		return;
	if (now < link->tick_at) /* somebody else did */
		goto done;
	idle = (now - link->tick_at) / link->interval;
	bytes = __sync_lock_test_and_set(&link->arrived, 0);
	counted = __sync_lock_test_and_set(&link->counted, 0);
	link->bytes += bytes;
	link->packets += (__u32)counted;
	link->segments += counted >> 32;

	if (skb && !link->virtual_only)
		seen = qdisc_queue(skb, link);
	/* What waited at the end of the first interval is known if that is now; else it is reckoned. */
	if (bytes > WATERFILL_QUEUE_MAX)
		bytes = WATERFILL_QUEUE_MAX;
	link->queue = drained(link, link->queue + (bytes << 16), 1);
	if (link->queue > WATERFILL_QUEUE_MAX << 16)
		link->queue = WATERFILL_QUEUE_MAX << 16;
	if (seen != NO_QUEUE && !idle)
		link->queue = seen << 16;
	maxnet_tick(&link->law, bytes, link->queue >> 16);
	if (idle)
		pass_idle(link, idle);
	if (seen != NO_QUEUE) {
		link->queue = seen << 16;
		link->read = seen;
	}
	if (skb)
		link->queue_is_real = seen != NO_QUEUE;
	link->place.price = link->law.price;
	link->tick_at += (idle + 1) * link->interval;
done:
	give(link);
}

static __always_inline void arrive(struct waterfill_link *link, __u64 bytes, __u32 segments)
{
	__sync_fetch_and_add(&link->arrived, bytes);
	/* Packets below, segments above; in an interval of at most 1 s neither overflows. */
	__sync_fetch_and_add(&link->counted, (__u64)segments << 32 | 1);
}

/* ------------------------------------------------------------------ where TCP is in a packet */

struct place {
	__u32 at;       /* where the header is, from the packet's first byte */
	__u32 end;      /* where the IP packet ends; 0 where it does not say (larger than 64 kB) */
	__u32 protocol; /* EtherType */
};

/* From a device's first byte to the IP header. */
static __always_inline int find_network(struct __sk_buff *skb, const struct waterfill_link *link, struct place *place)
{
	struct {
		__be16 id, protocol;
	} tag;
	__be16 protocol = (__be16)skb->protocol;
	int i;

	place->at = link->header;
	if (link->header && bpf_skb_load_bytes(skb, link->header - 2, &protocol, 2))
		return -1;
	place->protocol = bpf_ntohs(protocol);
	for (i = 0; i < VLAN_TAGS; i++) {
		if (place->protocol != PROTOCOL_VLAN && place->protocol != PROTOCOL_QINQ)
			break;
		if (bpf_skb_load_bytes(skb, place->at, &tag, sizeof(tag)))
			return -1;
		place->protocol = bpf_ntohs(tag.protocol);
		place->at += sizeof(tag);
	}
	return 0;
}

enum found {
	FOUND,
	NOT_TCP,
	FRAGMENT,
	MALFORMED,
};

static __always_inline enum found through_ipv4(struct __sk_buff *skb, struct place *place)
{
	struct {
		__u8 version, tos;
		__be16 length, id, fragment;
		__u8 ttl, protocol;
	} ip;
	__u32 header;

	if (bpf_skb_load_bytes(skb, place->at, &ip, sizeof(ip)))
		return MALFORMED;
	if (ip.protocol != 6)
		return NOT_TCP;
	header = (ip.version & 0xf) * 4;
	if (ip.version >> 4 != 4 || header < 20)
		return MALFORMED;
	if (ip.fragment & bpf_htons(0x1fff))
		return FRAGMENT;
	place->end = ip.length ? place->at + bpf_ntohs(ip.length) : 0;
	place->at += header;
	return FOUND;
}

static __always_inline enum found through_ipv6(struct __sk_buff *skb, struct place *place)
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

	if (bpf_skb_load_bytes(skb, place->at, &ip, sizeof(ip)))
		return MALFORMED;
	if ((ip.flow & bpf_htonl(0xf0000000)) != bpf_htonl(0x60000000))
		return MALFORMED;
	place->at += 40;
	place->end = ip.length ? place->at + bpf_ntohs(ip.length) : 0;
	for (i = 0; i < EXTENSION_HEADERS; i++) {
		if (ip.next == 6)
			return FOUND;
		if (ip.next != 0 && ip.next != 43 && ip.next != 44 && ip.next != 60)
			return NOT_TCP;
		if (bpf_skb_load_bytes(skb, place->at, &header, sizeof(header)))
			return MALFORMED;
		bytes = header.length * 8 + 8;
		if (ip.next == 44) { /* a fragment's header */
			if (header.offset & bpf_htons(0xfff8))
				return FRAGMENT;
			bytes = 8;
		}
		ip.next = header.next;
		place->at += bytes;
	}
	return ip.next == 6 ? FOUND : NOT_TCP;
}

/* ------------------------------------------------------------------ the option */

/* A segment's options, and what is found in them. */
struct options {
	__u8 bytes[TCP_OPTIONS + WATERFILL_OPTION_BYTES]; /* an option's first 8 can be read wherever it begins */
	__u32 length;
	__u32 next;   /* where the next one begins */
	__u32 at;     /* where the forward value is, from TCP's first byte; 0: there is none */
	__u32 value;
	__u32 seen;   /* one of ours is there */
	__u32 bad;    /* lengths do not fit */
	__u32 sealed; /* TCP-AO or MD5 */
};

/* The option at `at`, which is all there. */
static __always_inline void look(struct options *options, __u32 at, __u32 length)
{
	const __u8 *bytes = options->bytes + at;
	__u32 kind = bytes[0];
	__u32 both;

	if (kind == 29 || kind == 19)
		options->sealed = 1;
	if (kind == WATERFILL_KIND_EXPERIMENT) {
		if (length < 5 || bytes[2] != WATERFILL_EXID >> 8 || bytes[3] != (WATERFILL_EXID & 0xff))
			return; /* somebody else's experiment */
		both = bytes[4] == WATERFILL_BOTH;
		if (length != (both ? WATERFILL_OPTION_BOTH_BYTES : WATERFILL_OPTION_BYTES)) {
			options->bad = 1;
			return;
		}
		options->seen = 1;
		if (!both && bytes[4] != WATERFILL_FORWARD)
			return; /* an echo, or what a later version knows */
	} else if (kind == WATERFILL_KIND_PAPER && length == WATERFILL_OPTION_BYTES) {
		options->seen = 1;
	} else {
		return;
	}
	if (options->at) /* receivers take the first */
		return;
	options->at = TCP_BYTES + at + 5;
	options->value = (__u32)bytes[5] << 16 | (__u32)bytes[6] << 8 | bytes[7];
}

/* All options, as one that seals may come last. A global function, whose argument's contents the verifier does not
 * follow: else it would go through every sequence of places at which options can begin.
 */
__noinline int look_through(struct options *options)
{
	int i;

	if (!options)
		return 0;
	for (i = 0; i < TCP_OPTIONS; i++) {
		__u32 at, kind, length;

		barrier(); /* and what it has found stays in memory */
		at = options->next;
		if (at >= options->length || at >= TCP_OPTIONS)
			break;
		kind = options->bytes[at];
		if (kind == 0)
			break;
		length = kind == 1 ? 1 : options->bytes[at + 1];
		if (length < 1 + (kind != 1) || at + length > options->length) {
			options->bad = 1;
			break;
		}
		if (kind != 1)
			look(options, at, length);
		options->next = at + length;
	}
	return 0;
}

/* Another value in its place. Of two that can fail for want of memory the first makes room for both. */
static __always_inline int rewrite(struct __sk_buff *skb, __u32 tcp, const struct options *option, __u32 value)
{
	__u8 bytes[3] = { value >> 16, value >> 8, value };
	/* The sum is of 16-bit words from TCP's first byte on. */
	__u32 shift = option->at & 1 ? 0 : 8;

	if (bpf_skb_store_bytes(skb, tcp + option->at, bytes, sizeof(bytes), 0))
		return -1;
	/* Not the pseudo-header: where the device completes the sum, the field is to stay, and does. */
	return bpf_l4_csum_replace(skb, tcp + TCP_CHECKSUM, bpf_htonl(option->value << shift),
				   bpf_htonl(value << shift), 4);
}

/* A start rate is asked for on a SYN and nowhere else: a promise takes from others. */
static __always_inline __u32 marked(struct waterfill_link *link, __u32 field, int syn)
{
	int taken = 0;
	int i;

	if (!(field & FIXED_FLAG) || !syn)
		return maxnet_mark_price(&link->law, field);
	count(link, WATERFILL_STARTS);
	for (i = 0; i < TRIES && link->law.promise && !taken; i++)
		taken = take(link);
	/* Without, the next SYN may be promised the same once more. */
	field = maxnet_mark(&link->law, field);
	if (taken)
		give(link);
	return field;
}

static __always_inline void mark(struct __sk_buff *skb, struct waterfill_link *link, const struct place *place)
{
	struct {
		__be32 ports, sequence, acknowledgement;
		__u8 offset, flags;
	} tcp;
	struct options options = {};
	__u32 bytes, value;

	if (bpf_skb_load_bytes(skb, place->at, &tcp, sizeof(tcp)))
		goto malformed;
	bytes = tcp.offset >> 4;
	if (bytes < 5)
		goto malformed;
	bytes = (bytes - 5) * 4;
	if (place->end && place->at + TCP_BYTES + bytes > place->end)
		goto malformed;
	if (bytes < WATERFILL_OPTION_BYTES) {
		count(link, WATERFILL_PLAIN);
		return;
	}
	barrier_var(bytes); /* it cannot be more, which the verifier wants to see */
	if (bytes > TCP_OPTIONS || bpf_skb_load_bytes(skb, place->at + TCP_BYTES, options.bytes, bytes))
		goto malformed;
	options.length = bytes;
	look_through(&options);
	if (options.bad)
		goto malformed;
	if (!options.seen) {
		count(link, WATERFILL_PLAIN);
		return;
	}
	if (options.sealed) {
		count(link, WATERFILL_SEALED);
		return;
	}
	count(link, WATERFILL_SEEN);
	if (!options.at)
		return;
	value = marked(link, options.value, tcp.flags & TCP_SYN);
	if (value == options.value)
		return;
	count(link, rewrite(skb, place->at, &options, value) ? WATERFILL_FAILED : WATERFILL_MARKED);
	return;
malformed:
	count(link, WATERFILL_MALFORMED);
}

/* ------------------------------------------------------------------ entries */

SEC("tcx/egress")
int waterfill_router(struct __sk_buff *skb)
{
	__u32 key = skb->ifindex;
	struct waterfill_link *link = bpf_map_lookup_elem(&links, &key);
	struct place place = {};
	enum found found = NOT_TCP;
	__u32 segments;
	__s64 bytes;
	__u64 now;
	int known;

	if (!link || !link->place.layout)
		return GO_ON;
	now = bpf_ktime_get_ns();
	if (now >= link->tick_at)
		advance(link, skb, now);

	segments = skb->gso_segs ? skb->gso_segs : 1;
	known = !find_network(skb, link, &place);
	bytes = (__s64)skb->wire_len + (__s64)segments * (link->overhead - (__s64)place.at);
	arrive(link, bytes > 0 ? bytes : 0, segments);

	if (known && place.protocol == PROTOCOL_IPV4)
		found = through_ipv4(skb, &place);
	else if (known && place.protocol == PROTOCOL_IPV6)
		found = through_ipv6(skb, &place);
	if (found == FOUND)
		mark(skb, link, &place);
	else if (found == FRAGMENT)
		count(link, WATERFILL_FRAGMENTS);
	else if (found == MALFORMED)
		count(link, WATERFILL_MALFORMED);
	return GO_ON;
}

static __always_inline void set(struct waterfill_link *link, const struct waterfill_request *request, __u64 now)
{
	struct maxnet_link *law = &link->law;
	__u64 price = request->place.price;
	__u64 rate;

	barrier_var(price); /* not one load from either of two places: a context's words are read where they are */
	if (link->place.layout)
		price = law->price;
	if (link->place.layout && law->x_max == request->x_max && law->t == request->t &&
	    law->dt_p == request->dt_p && law->t_0 == request->t_0) {
		law->promise = request->promise;
		maxnet_link_set(law, request->rate, request->mu);
	} else {
		/* What the law has no change for begins anew, with the price there was. */
		maxnet_link_init(law, request->rate, request->x_max, request->t, request->mu, request->dt_p,
				 request->t_0, request->promise);
		if (law->price < price && price <= MAXNET_PRICE_MAX)
			law->price = price;
		law->price_code = fixed_price_code(law->price);
		link->interval = law->dt_p * 1000ull;
		link->tick_at = now + link->interval;
		link->queue = 0;
	}
	/* 2^16/8 bytes a bit, up to 8 Tbit/s: 43 + 13 bits; 20 + 20. */
	rate = law->capacity < 1ull << 43 ? law->capacity : 1ull << 43;
	link->drain = fixed_scale(rate << 13, law->dt_p, 1000000);
	if (!link->drain)
		link->drain = 1;
	link->place.price = law->price;
	link->place.namespace = request->place.namespace;
	link->place.made = request->place.made;
	__builtin_memcpy(link->place.device, request->place.device, sizeof(link->place.device));
	link->overhead = request->overhead;
	link->header = request->header;
	link->virtual_only = request->virtual_only;
	if (link->virtual_only)
		link->queue_is_real = 0;
	/* Last: packets look at it first. */
	__sync_lock_test_and_set(&link->place.layout, WATERFILL_LAYOUT);
}

/* What user space asks: BPF_PROG_TEST_RUN on this program, with a request as its context. */
SEC("syscall")
int waterfill_ask(struct waterfill_request *request)
{
	__u32 key = request->ifindex;
	struct waterfill_link *link = bpf_map_lookup_elem(&links, &key);
	__u64 now = request->now ? request->now : bpf_ktime_get_ns();
	/* Who only looks sees the price as the next packet will find it after empty intervals. */
	__u64 grace = request->what == WATERFILL_SHOW && link ? link->interval : 0;
	int i;

	if (!link)
		return WATERFILL_NO_LINK;
	if (link->place.layout && now >= link->tick_at + grace)
		advance(link, 0, now);
	if (request->what == WATERFILL_SET) {
		if (!take(link))
			return WATERFILL_BUSY;
		set(link, request, now);
		give(link);
	} else if (request->what == WATERFILL_ARRIVE) {
		arrive(link, request->bytes_now, 1);
	}
	request->place = link->place;
	request->rate = link->law.capacity;
	request->price_min = link->law.price_min;
	request->price_code = link->law.price_code;
	request->arrival_rate = link->law.arrival_rate;
	request->mu = link->law.mu;
	request->queue = link->queue_is_real ? link->read : link->queue >> 16;
	request->queue_is_real = link->queue_is_real;
	request->packets = link->packets + (__u32)link->counted;
	request->segments = link->segments + (link->counted >> 32);
	request->bytes = link->bytes + link->arrived;
	for (i = 0; i < WATERFILL_COUNTS; i++)
		request->counts[i] = link->counts[i];
	return WATERFILL_DONE;
}
