/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A SCONE network element at a device's egress (scone.h): lowers the rate signal of SCONE packets in UDP to the link's
 * advice. A program of its own, behind the law's router, whose map of links has the law's present signal.
 *
 * Modified: the signal's 7 bits and UDP's checksum, and only to a lower signal. A checksum of 0 (none) stays 0, and a
 * new one of 0 is written as 0xffff. Where the device completes the checksum, it is left alone.
 *
 * Other packets cost the comparison of 5 bytes, without a map. So the link header's length is the program's, not the
 * device's: one program for devices with Ethernet's header and one for devices without.
 *
 * Super-packets (UDP_SEGMENT) are many datagrams behind one header; each may start with a SCONE packet. Where packets
 * were merged as they came (GRO's list), each has a checksum of its own, so only the first is looked at.
 */
#include "kernel.h"
#include "router.h"
#include "headers.h"
#include "scone_state.h"

char _license[] SEC("license") = "Dual BSD/GPL";

#define CONTINUE -1 /* TCX_NEXT */
#define ETHERNET 14
#define UDP_BYTES 8
#define UDP_CHECKSUM 6 /* its offset in the UDP header */

/* The router's map, of any law. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, WATERFILL_MAX_LINKS);
	__type(key, __u32); /* ifindex */
	__type(value, struct waterfill_device);
} links SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, SCONE_MAX_LINKS);
	__type(key, __u32); /* ifindex */
	__type(value, struct scone_link);
} scone_links SEC(".maps");

struct scone_key {
	__u32 ifindex;
	__u32 ports;
	__u64 addresses[4];
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, SCONE_MAX_FLOWS);
	__type(key, struct scone_key);
	__type(value, struct scone_flow);
} scone_flows SEC(".maps");

/* A packet with UDP payload, and the place of a datagram in it. */
struct place {
	__u32 udp;    /* offset of the UDP header from the packet's first byte */
	__u32 ip;     /* of the IP header */
	__u32 is_v6;
	__u32 at;     /* of the datagram's payload */
	__u32 length; /* of that payload */
	__u32 segments, segment_bytes;
	__u32 end;  /* of all payload */
	__u32 is_cut; /* 1: a super-packet, whose checksums are computed when it is cut */
};

/* Whether the signal of this packet's flow may be replaced now (scone_may_write). */
static __always_inline int may_write(struct __sk_buff *skb, const struct place *place, __u32 code)
{
	struct scone_flow new = {}, *flow;
	struct scone_key key = { .ifindex = skb->ifindex };
	__u64 now = bpf_ktime_get_ns();

	if (bpf_skb_load_bytes(skb, place->udp, &key.ports, 4))
		return 0;
	if (place->is_v6 ? bpf_skb_load_bytes(skb, place->ip + 8, key.addresses, 32)
			 : bpf_skb_load_bytes(skb, place->ip + 12, key.addresses, 8))
		return 0;
	flow = bpf_map_lookup_elem(&scone_flows, &key);
	if (flow)
		return scone_may_write(flow, now, code);
	scone_may_write(&new, now, code);
	/* Without memory for the flow nothing would limit the writes. */
	return !bpf_map_update_elem(&scone_flows, &key, &new, BPF_ANY);
}

/* Lowers the signal of the datagram at `place->at`. A global function, as parse_options() (packet.h): the verifier
 * follows it once, and not for each segment.
 */
__noinline int lower(struct __sk_buff *skb, struct place *place)
{
	__u32 ifindex = skb->ifindex, code, own;
	__u8 head[5], changed[2], destination, source;
	const struct waterfill_device *device;
	struct scone_link *link;

	if (!place || place->length < sizeof(head) || bpf_skb_load_bytes(skb, place->at, head, sizeof(head)))
		return 0;
	if (!scone_is_packet(head))
		return 0;
	link = bpf_map_lookup_elem(&scone_links, &ifindex);
	device = bpf_map_lookup_elem(&links, &ifindex);
	if (!link || !device)
		return 0;
	if (place->length < SCONE_HEAD_BYTES || bpf_skb_load_bytes(skb, place->at + sizeof(head), &destination, 1) ||
	    bpf_skb_load_bytes(skb, place->at + SCONE_HEAD_BYTES + destination, &source, 1) ||
	    !scone_fits(destination, source, place->length)) {
		__sync_fetch_and_add(&link->malformed, 1);
		return 0;
	}
	__sync_fetch_and_add(&link->seen, 1);
	code = scone_read(head);
	own = scone_advise(&link->advice, device->attachment.price);
	if (own >= code)
		return 0;
	if (!may_write(skb, place, own)) {
		__sync_fetch_and_add(&link->held, 1);
		return 0;
	}
	changed[0] = head[0];
	changed[1] = head[1];
	scone_write(changed, own);
	/* Both calls may run out of memory; if the first succeeds, so does the second. */
	if (bpf_skb_store_bytes(skb, place->at, changed, sizeof(changed), 0)) {
		__sync_fetch_and_add(&link->no_memory, 1);
		return 0;
	}
	if (!place->is_cut)
		bpf_l4_csum_replace(skb, place->udp + UDP_CHECKSUM, *(__u16 *)head, *(__u16 *)changed,
				    BPF_F_MARK_MANGLED_0 | 2);
	__sync_fetch_and_add(&link->lowered, 1);
	return 0;
}

/* Finds UDP's payload in any packet and looks at its datagrams. */
static __noinline int look(struct __sk_buff *skb, __u32 header_bytes)
{
	struct tcp_position position = {};
	struct place place = {};
	__u32 i, length;
	__be16 udp[4];

	if (find_ip(skb, header_bytes, &position))
		return CONTINUE;
	place.ip = position.at;
	place.is_v6 = position.protocol == PROTOCOL_IPV6;
	if (find_header(skb, &position, IP_UDP) != WATERFILL_COUNT_OPTION)
		return CONTINUE;
	place.udp = position.at;
	if (bpf_skb_load_bytes(skb, place.udp, udp, sizeof(udp)))
		return CONTINUE;
	length = bpf_ntohs(udp[2]);
	place.at = place.udp + UDP_BYTES;
	place.end = place.udp + length;
	/* A fragment has less than its datagram, and other packets must have what they announce. */
	if (length < UDP_BYTES || (position.end && place.end > position.end) || place.end > skb->len)
		return CONTINUE;
	place.segments = 1;
	place.segment_bytes = length - UDP_BYTES;
	/* Every packet of a list has its own checksum, which it had when it came: the kernel does not compute them again. */
	if (skb->gso_size && bpf_csum_level(skb, BPF_CSUM_LEVEL_QUERY) < 0) {
		place.segment_bytes = skb->gso_size;
		place.segments = SCONE_MAX_SEGMENTS;
		place.is_cut = 1;
	} else if (skb->gso_size && skb->gso_size < place.segment_bytes) {
		place.segment_bytes = skb->gso_size;
	}
	for (i = 0; i < SCONE_MAX_SEGMENTS; i++) {
		barrier(); /* keep the place in memory */
		if (i >= place.segments || place.at >= place.end)
			break;
		length = place.end - place.at;
		place.length = length < place.segment_bytes ? length : place.segment_bytes;
		lower(skb, &place);
		place.at += place.segment_bytes;
	}
	return CONTINUE;
}

/* Passes usual packets that have no SCONE packet: Ethernet's header or none, IP without options, one datagram. */
static __always_inline int advise(struct __sk_buff *skb, __u32 header_bytes)
{
	const __u8 *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;
	const __u8 *ip = data + header_bytes, *payload;
	__be16 protocol = (__be16)skb->protocol;

	/* TCP's header is always in the packet's first part. */
	if (ip + 20 + UDP_BYTES + 5 > end)
		return skb->len > header_bytes + 20 + UDP_BYTES + 5 ? look(skb, header_bytes) : CONTINUE;
	if (header_bytes)
		protocol = *(const __be16 *)(ip - 2);
	if (protocol == bpf_htons(PROTOCOL_IPV4)) {
		if (ip[9] != IP_UDP)
			return CONTINUE;
		if (ip[0] != 0x45)
			return look(skb, header_bytes);
		payload = ip + 20 + UDP_BYTES;
	} else if (protocol == bpf_htons(PROTOCOL_IPV6)) {
		if (ip[6] != IP_UDP)
			return ip[6] == 0 || ip[6] == 43 || ip[6] == 44 || ip[6] == 60 ? look(skb, header_bytes) : CONTINUE;
		payload = ip + 40 + UDP_BYTES;
	} else if (protocol == bpf_htons(PROTOCOL_VLAN) || protocol == bpf_htons(PROTOCOL_QINQ)) {
		return look(skb, header_bytes);
	} else {
		return CONTINUE;
	}
	if (payload + 5 > end || scone_is_packet(payload) || skb->gso_size)
		return look(skb, header_bytes);
	return CONTINUE;
}

SEC("tcx/egress")
int waterfill_scone(struct __sk_buff *skb)
{
	return advise(skb, ETHERNET);
}

/* On devices without a link header. */
SEC("tcx/egress")
int waterfill_scone_ip(struct __sk_buff *skb)
{
	return advise(skb, 0);
}
