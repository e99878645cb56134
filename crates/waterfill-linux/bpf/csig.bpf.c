/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * CSIG's tags at the devices of a domain (csig.h): pushed, compared and replaced, taken off.
 *
 * Linux routes IP packets only, so a tag is taken off before routing and pushed again at the device where the packet
 * leaves. In between it waits in `saved`, at the index that skb->tc_index has; forwarding keeps that field. A frame
 * that a bridge forwards keeps its tag, which is changed in place.
 *
 *   device   frames that arrive                       frames that leave
 *   ------   --------------------------------------   ----------------------------------------------------------
 *   inside   tag taken off, remembered                tag of arrival or a new one, after compare-and-replace
 *   edge     tag taken off, forgotten                 no tag; the price of the tag is written into MaxNet's option
 *   end      tag taken off, price into the option     as inside
 *
 * A new tag starts with the price in MaxNet's option, so that a path's price passes a domain: in the tag, whatever
 * becomes of the option there. So the edge does not compare: it replaces the option's price.
 *
 * Push. bpf_skb_change_head() moves the start of the link header and leaves the network header where it is. So the
 * kernel segments super-packets behind the tag, and each segment has it; bpf_skb_adjust_room() would leave the network
 * header at the tag.
 *
 * Pop. No helper shortens a frame of another protocol than IP. But a tag of 4 bytes in front of an EtherType looks like
 * a VLAN tag. With 0x8100 in place of its TPID, and two VLAN tags pushed to tell the kernel of it, three calls of
 * bpf_skb_vlan_pop() take off all three, and the kernel finds the EtherType behind. The wide tag is two such tags.
 *
 * The link's price is read from the maps of MaxNet's router program, which must run at the device.
 */
#include <linux/types.h>

#include "maxnet.h"
#include "kernel.h"
#include "wire.h"
#include "router.h"
#include "packet.h"
#include "meter.h"
#define WATERFILL_NO_STEPS
#include "link.h"
#include "csig_state.h"

char _license[] SEC("license") = "Dual BSD/GPL";

#define CONTINUE -1 /* TCX_NEXT */
#define DROP 2	    /* TCX_DROP */

#define ADDRESSES 12 /* bytes of a frame before the EtherType, or a tag */
#define ETHERNET 14

/* Tags that wait for their packet: so many of each of so many CPUs. */
#define SAVED_CPUS 64
#define SAVED_PER_CPU 1023
#define SAVED (1 + SAVED_CPUS * SAVED_PER_CPU)
_Static_assert(SAVED <= 65536, "an index is skb->tc_index, 16 bits");

struct saved_tag {
	struct csig_tag tag;
	__u32 format;
	__u32 ifindex; /* where the packet arrived; 0: unused */
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, CSIG_MAX_DEVICES);
	__type(key, __u32); /* ifindex */
	__type(value, struct csig_device);
} csig_devices SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, CSIG_MAX_DEVICES);
	__type(key, __u32); /* ifindex */
	__type(value, struct csig_counts);
} csig_counters SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SAVED);
	__type(key, __u32);
	__type(value, struct saved_tag);
} csig_saved SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} csig_next SEC(".maps");

/* ------------------------------------------------------------------ a frame's tag */

struct found_tag {
	struct csig_tag tag;
	__u32 format; /* 0: the frame has none */
};

/* Reads a frame's tag. */
static __always_inline void find_tag(struct __sk_buff *skb, const struct csig_device *device, struct found_tag *found)
{
	__u8 bytes[CSIG_WIDE_BYTES];
	__be16 type;

	found->format = 0;
	if (bpf_skb_load_bytes(skb, ADDRESSES, &type, 2))
		return;
	/* Behind each of them is an EtherType at least. */
	if (bpf_ntohs(type) == device->tpid_compact) {
		if (bpf_skb_load_bytes(skb, ADDRESSES, bytes, CSIG_COMPACT_BYTES))
			return;
		found->format = CSIG_COMPACT;
	} else if (bpf_ntohs(type) == device->tpid_wide) {
		if (bpf_skb_load_bytes(skb, ADDRESSES, bytes, CSIG_WIDE_BYTES))
			return;
		found->format = CSIG_WIDE;
	} else {
		return;
	}
	csig_read(found->format, bytes, &found->tag);
}

static __always_inline __u32 tag_bytes(__u32 format)
{
	return format == CSIG_COMPACT ? CSIG_COMPACT_BYTES : CSIG_WIDE_BYTES;
}

/* Takes a tag off. Returns 0, or the frame may have been changed and must not be used. */
static __always_inline int pop(struct __sk_buff *skb, __u32 format)
{
	__be16 vlan = bpf_htons(PROTOCOL_VLAN);

	/* A checksum of the whole frame does not cover the first, but the second. */
	if (bpf_skb_store_bytes(skb, ADDRESSES, &vlan, 2, 0))
		return -1;
	if (format == CSIG_WIDE && bpf_skb_store_bytes(skb, ADDRESSES + 4, &vlan, 2, BPF_F_RECOMPUTE_CSUM))
		return -1;
	if (bpf_skb_vlan_push(skb, vlan, 1) || bpf_skb_vlan_push(skb, vlan, 1))
		return -1;
	if (bpf_skb_vlan_pop(skb) || bpf_skb_vlan_pop(skb) || bpf_skb_vlan_pop(skb))
		return -1;
	return format == CSIG_WIDE ? (int)bpf_skb_vlan_pop(skb) : 0;
}

/* Pushes a tag in front of the EtherType. */
static __always_inline int push(struct __sk_buff *skb, const struct csig_device *device, __u32 format,
				const struct csig_tag *tag)
{
	__u8 addresses[ADDRESSES], bytes[CSIG_WIDE_BYTES];

	if (bpf_skb_load_bytes(skb, 0, addresses, sizeof(addresses)))
		return -1;
	if (format == CSIG_COMPACT) {
		if (bpf_skb_change_head(skb, CSIG_COMPACT_BYTES, 0))
			return -1;
		csig_write(CSIG_COMPACT, device->tpid_compact, tag, bytes);
		if (bpf_skb_store_bytes(skb, ADDRESSES, bytes, CSIG_COMPACT_BYTES, 0))
			return -1;
	} else {
		if (bpf_skb_change_head(skb, CSIG_WIDE_BYTES, 0))
			return -1;
		csig_write(CSIG_WIDE, device->tpid_wide, tag, bytes);
		if (bpf_skb_store_bytes(skb, ADDRESSES, bytes, CSIG_WIDE_BYTES, 0))
			return -1;
	}
	return bpf_skb_store_bytes(skb, 0, addresses, sizeof(addresses), 0);
}

/* ------------------------------------------------------------------ this hop's code */

static __always_inline const struct csig_bands *bands_of(const struct csig_device *device, __u32 format)
{
	return format == CSIG_COMPACT ? &device->compact : &device->wide;
}

/* Reads the link's signal; 0 if no router program of MaxNet runs at the device. Units: src/daemon/roles/csig/setup.rs.
 *
 * Not find_link(): the slot of a router that was taken off the device keeps its state until another link needs it.
 */
static __always_inline int read_signal(__u32 ifindex, __u32 signal, __u64 *value)
{
	const struct waterfill_device *owner = bpf_map_lookup_elem(&links, &ifindex);
	const struct waterfill_link *link;
	__u64 capacity, load, queue;
	__u32 slot;

	if (!owner || !has_link(owner))
		return 0;
	slot = owner->slot;
	link = bpf_map_lookup_elem(&slots, &slot);
	if (!link || link->ifindex != ifindex)
		return 0;
	if (signal == CSIG_PRICE) {
		*value = link->law.maxnet.price_code; /* 2^-18 s */
		return 1;
	}
	capacity = link->meter.capacity ? link->meter.capacity : 1;
	load = link->law.maxnet.arrival_rate;
	if (signal == CSIG_ABW || signal == CSIG_ABWC) {
		load = load < capacity ? capacity - load : 0;
		if (signal == CSIG_ABWC)
			load = load / (capacity / 1000000 + 1); /* 10^-6 */
		*value = load; /* bit/s */
		return 1;
	}
	queue = link->meter.queue_measured ? link->meter.backlog : link->meter.queue >> 16;
	if (queue > WATERFILL_QUEUE_MAX)
		queue = WATERFILL_QUEUE_MAX;
	*value = queue * 8000000 / (capacity / 1000 + 1); /* ns: 63 bits */
	return 1;
}

static __always_inline void compare_and_replace(struct csig_tag *tag, const struct csig_device *device, __u32 format,
						__u32 ifindex, struct csig_counts *counts)
{
	__u64 value;

	if (!read_signal(ifindex, device->signal, &value))
		return;
	counts->compared++;
	counts->replaced += csig_update(tag, device->signal, csig_code(format, bands_of(device, format), value),
					device->locator);
}

/* ------------------------------------------------------------------ MaxNet's option */

/* Finds MaxNet's option with a price, in a frame without a tag. */
static __always_inline int find_price(struct __sk_buff *skb, struct segment *segment)
{
	__u32 found = find_usual(skb, segment, ETHERNET);

	if (found == UNUSUAL)
		found = walk(skb, segment, ETHERNET);
	return found == WATERFILL_COUNT_OPTION && segment->at && !segment->syn &&
	       !(law_read_u24(segment->value) & FIXED_FLAG);
}

/* Writes a tag's price into the option, if a hop has written one. */
static __always_inline void store_price(struct __sk_buff *skb, const struct csig_device *device,
					const struct found_tag *found, struct csig_counts *counts)
{
	struct segment segment = {};
	__u8 value[LAW_FORWARD_BYTES];
	__u64 price;

	if (found->tag.signal != CSIG_PRICE || device->signal != CSIG_PRICE)
		return;
	if (!found->tag.code && !found->tag.locator) /* as it was pushed */
		return;
	if (!find_price(skb, &segment))
		return;
	price = csig_value(found->format, bands_of(device, found->format), found->tag.code);
	law_write_u24(value, price < FIXED_CODE_MAX ? (__u32)price : FIXED_CODE_MAX);
	if (write_value(skb, &segment, value))
		counts->failed++;
	else
		counts->stored++;
}

/* ------------------------------------------------------------------ remembering */

/* Remembers a tag, and its place in skb->tc_index. */
static __always_inline void save(struct __sk_buff *skb, const struct found_tag *found)
{
	struct saved_tag *saved;
	__u32 zero = 0, *next, at;

	next = bpf_map_lookup_elem(&csig_next, &zero);
	if (!next)
		return;
	*next = *next + 1 < SAVED_PER_CPU ? *next + 1 : 0;
	at = 1 + bpf_get_smp_processor_id() % SAVED_CPUS * SAVED_PER_CPU + *next;
	saved = bpf_map_lookup_elem(&csig_saved, &at);
	if (!saved)
		return;
	saved->tag = found->tag;
	saved->format = found->format;
	saved->ifindex = skb->ifindex;
	skb->tc_index = at;
}

/* Returns the tag with which a packet arrived. Others may use skb->tc_index as well, so the device must agree. */
static __always_inline void recall(struct __sk_buff *skb, struct found_tag *found)
{
	const struct saved_tag *saved;
	__u32 at = skb->tc_index;

	found->format = 0;
	if (!at)
		return;
	saved = bpf_map_lookup_elem(&csig_saved, &at);
	if (!saved || !saved->ifindex || saved->ifindex != skb->ingress_ifindex)
		return;
	found->tag = saved->tag;
	found->format = saved->format;
	skb->tc_index = 0;
}

/* ------------------------------------------------------------------ programs */

SEC("tcx/ingress")
int waterfill_csig_in(struct __sk_buff *skb)
{
	__u32 key = skb->ifindex;
	const struct csig_device *device = bpf_map_lookup_elem(&csig_devices, &key);
	struct csig_counts *counts;
	struct found_tag found = {};

	if (!device)
		return CONTINUE;
	counts = bpf_map_lookup_elem(&csig_counters, &key);
	if (!counts)
		return CONTINUE;
	find_tag(skb, device, &found);
	if (!found.format)
		return CONTINUE;
	if (skb->vlan_present) {
		counts->other++;
		return CONTINUE;
	}
	if (pop(skb, found.format)) {
		counts->failed++;
		return DROP;
	}
	if (device->role == CSIG_EDGE) {
		counts->stripped++;
		return CONTINUE;
	}
	counts->popped++;
	if (device->role == CSIG_END)
		store_price(skb, device, &found, counts);
	save(skb, &found);
	return CONTINUE;
}

/* Whether a frame, or each segment of a super-packet, has space for a tag. */
static __always_inline int fits(struct __sk_buff *skb, const struct csig_device *device, __u32 bytes)
{
	__u32 length = skb->len, segments = skb->gso_segs;

	/* wire_len counts the headers of all segments, len once. */
	if (skb->gso_size && segments > 1 && skb->wire_len > length)
		length = skb->gso_size + (skb->wire_len - length) / (segments - 1);
	return length + bytes <= device->max_frame;
}

SEC("tcx/egress")
int waterfill_csig_out(struct __sk_buff *skb)
{
	__u32 key = skb->ifindex;
	const struct csig_device *device = bpf_map_lookup_elem(&csig_devices, &key);
	__u8 bytes[CSIG_WIDE_BYTES];
	struct segment segment = {};
	struct csig_counts *counts;
	struct found_tag found = {};

	if (!device)
		return CONTINUE;
	counts = bpf_map_lookup_elem(&csig_counters, &key);
	if (!counts)
		return CONTINUE;
	find_tag(skb, device, &found);
	if (found.format && skb->vlan_present) {
		counts->other++;
		return device->role == CSIG_EDGE ? DROP : CONTINUE;
	}
	if (found.format && device->role == CSIG_EDGE) {
		if (pop(skb, found.format)) {
			counts->failed++;
			return DROP;
		}
		counts->stripped++;
		store_price(skb, device, &found, counts);
		return CONTINUE;
	}
	if (found.format) { /* bridged */
		compare_and_replace(&found.tag, device, found.format, key, counts);
		if (found.format == CSIG_COMPACT) {
			csig_write(CSIG_COMPACT, device->tpid_compact, &found.tag, bytes);
			bpf_skb_store_bytes(skb, ADDRESSES, bytes, CSIG_COMPACT_BYTES, 0);
		} else {
			csig_write(CSIG_WIDE, device->tpid_wide, &found.tag, bytes);
			bpf_skb_store_bytes(skb, ADDRESSES, bytes, CSIG_WIDE_BYTES, 0);
		}
		return CONTINUE;
	}
	recall(skb, &found);
	if (device->role == CSIG_EDGE) {
		if (found.format)
			store_price(skb, device, &found, counts);
		return CONTINUE;
	}
	if (skb->protocol != bpf_htons(PROTOCOL_IPV4) && skb->protocol != bpf_htons(PROTOCOL_IPV6)) {
		counts->other++;
		return CONTINUE;
	}
	if (!found.format) {
		found.format = device->format;
		found.tag.signal = device->signal;
		found.tag.code = csig_first(found.format, device->signal);
		found.tag.locator = 0;
		found.tag.trimmed = 0;
		if (device->signal == CSIG_PRICE && find_price(skb, &segment) && law_read_u24(segment.value))
			found.tag.code = csig_code(found.format, bands_of(device, found.format),
						   law_read_u24(segment.value));
	}
	if (!fits(skb, device, tag_bytes(found.format))) {
		counts->too_long++;
		return CONTINUE;
	}
	compare_and_replace(&found.tag, device, found.format, key, counts);
	if (push(skb, device, found.format, &found.tag)) {
		counts->failed++;
		return DROP;
	}
	counts->pushed++;
	return CONTINUE;
}

/* Answers user space: BPF_PROG_TEST_RUN on this program, with the reading as its context. */
SEC("syscall")
int waterfill_csig_read(struct csig_reading *reading)
{
	__u32 key = reading->ifindex;
	const struct csig_device *device = bpf_map_lookup_elem(&csig_devices, &key);
	__u64 value;

	if (!device || !read_signal(key, device->signal, &value))
		return 0;
	reading->value = value;
	reading->code = csig_code(device->format, bands_of(device, device->format), value);
	reading->found = 1;
	return 0;
}
