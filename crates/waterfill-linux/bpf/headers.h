/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Finds the TCP or UDP header of a packet, step by step: the IP header after VLAN tags, then the other after IP's options
 * or extension headers; and steps over TCP's options. An includer has included router.h, whose counters name what else a
 * packet may be.
 */
#ifndef WATERFILL_HEADERS_H
#define WATERFILL_HEADERS_H

#define PROTOCOL_IPV4 0x0800
#define PROTOCOL_IPV6 0x86dd
#define PROTOCOL_VLAN 0x8100
#define PROTOCOL_QINQ 0x88a8

#define VLAN_TAGS 2
#define EXTENSION_HEADERS 8
#define TCP_BYTES 20
#define TCP_OPTIONS 40
#define TCP_SYN 0x02

/* IP's numbers of the protocols that are looked for. */
#define IP_TCP 6
#define IP_UDP 17

/* What a packet is, beside the reasons that are counted (enum waterfill_count). */
#define NOT_TCP WATERFILL_COUNTS

struct tcp_position {
	__u32 at;       /* offset of the current header from the packet's first byte */
	__u32 end;      /* offset of the IP packet's end; 0 where its length field is 0 (over 64 kB) */
	__u32 protocol; /* EtherType */
};

/* Finds the IP header after the link header and VLAN tags; -1 if the packet is too short. */
static __always_inline int find_ip(struct __sk_buff *skb, __u32 header_bytes, struct tcp_position *position)
{
	struct {
		__be16 id, protocol;
	} tag;
	__be16 protocol = (__be16)skb->protocol;
	int i;

	position->at = header_bytes;
	if (header_bytes && bpf_skb_load_bytes(skb, header_bytes - 2, &protocol, 2))
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

static __always_inline __u32 find_in_ipv4(struct __sk_buff *skb, struct tcp_position *position, __u32 wanted)
{
	struct {
		__u8 version, tos;
		__be16 length, id, fragment;
		__u8 ttl, protocol;
	} ip;
	__u32 header;

	if (bpf_skb_load_bytes(skb, position->at, &ip, sizeof(ip)))
		return WATERFILL_COUNT_MALFORMED;
	if (ip.protocol != wanted)
		return NOT_TCP;
	header = (ip.version & 0xf) * 4;
	if (ip.version >> 4 != 4 || header < 20)
		return WATERFILL_COUNT_MALFORMED;
	if (ip.fragment & bpf_htons(0x1fff))
		return WATERFILL_COUNT_FRAGMENT;
	position->end = ip.length ? position->at + bpf_ntohs(ip.length) : 0;
	position->at += header;
	return WATERFILL_COUNT_OPTION;
}

static __always_inline __u32 find_in_ipv6(struct __sk_buff *skb, struct tcp_position *position, __u32 wanted)
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
		return WATERFILL_COUNT_MALFORMED;
	if ((ip.flow & bpf_htonl(0xf0000000)) != bpf_htonl(0x60000000))
		return WATERFILL_COUNT_MALFORMED;
	position->at += 40;
	position->end = ip.length ? position->at + bpf_ntohs(ip.length) : 0;
	for (i = 0; i < EXTENSION_HEADERS; i++) {
		if (ip.next == wanted)
			return WATERFILL_COUNT_OPTION;
		if (ip.next != 0 && ip.next != 43 && ip.next != 44 && ip.next != 60)
			return NOT_TCP;
		if (bpf_skb_load_bytes(skb, position->at, &header, sizeof(header)))
			return WATERFILL_COUNT_MALFORMED;
		bytes = header.length * 8 + 8;
		if (ip.next == 44) { /* fragment header */
			if (header.offset & bpf_htons(0xfff8))
				return WATERFILL_COUNT_FRAGMENT;
			bytes = 8;
		}
		ip.next = header.next;
		position->at += bytes;
	}
	return ip.next == wanted ? WATERFILL_COUNT_OPTION : NOT_TCP;
}

/* Finds the header of a protocol behind an IP header. Returns WATERFILL_COUNT_OPTION, or why there is none. */
static __always_inline __u32 find_header(struct __sk_buff *skb, struct tcp_position *position, __u32 wanted)
{
	if (position->protocol == PROTOCOL_IPV4)
		return find_in_ipv4(skb, position, wanted);
	if (position->protocol == PROTOCOL_IPV6)
		return find_in_ipv6(skb, position, wanted);
	return NOT_TCP;
}

static __always_inline __u32 find_tcp(struct __sk_buff *skb, struct tcp_position *position)
{
	return find_header(skb, position, IP_TCP);
}

/* What option_at() returns beside the option's kind. */
#define OPTIONS_END 0
#define OPTION_NOP 1
#define OPTION_MALFORMED 256 /* its length does not fit */

/* Reads the kind and length of the option at `at`, of options that end before `end`. `bytes` has one byte more. */
static __always_inline __u32 option_at(const __u8 *bytes, __u32 end, __u32 at, __u32 *length)
{
	__u32 kind;

	if (at >= end || at >= TCP_OPTIONS)
		return OPTIONS_END;
	kind = bytes[at];
	if (kind == OPTIONS_END)
		return OPTIONS_END;
	*length = kind == OPTION_NOP ? 1 : bytes[at + 1];
	if (*length < 1 + (kind != OPTION_NOP) || at + *length > end)
		return OPTION_MALFORMED;
	return kind;
}

#endif
