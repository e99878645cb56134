/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Finds the TCP header of a packet and the law's option in it, and writes the option's forward value.
 *
 * Usual packets are matched where they lie in memory: find_usual(). They have an Ethernet header or none, IPv4 or IPv6
 * without options, and TCP options as Linux writes them: timestamps or not, then the law's option, which is the last.
 * Everything else is left to walk(), which copies each header and steps over all options.
 *
 * Found: TCP over IPv4 (with IP options; first fragments) and over IPv6 (after hop-by-hop, routing and destination
 * options; first fragments), after up to two VLAN tags. Not found: tunnels, AH, later fragments, and options of a
 * wrong length. Only the value and TCP's checksum are ever written.
 */
#ifndef WATERFILL_PACKET_H
#define WATERFILL_PACKET_H

#include "headers.h"

#define TCP_CHECKSUM 16 /* its offset in the TCP header */
#define TIMESTAMPS 12	/* two NOPs and the option */

/* The law's options on the wire, and the shortest. */
#define FORWARD_BYTES (WATERFILL_OPTION_HEADER_BYTES + LAW_FORWARD_BYTES)
#define ECHO_BYTES (WATERFILL_OPTION_HEADER_BYTES + LAW_ECHO_BYTES)
#define BOTH_BYTES ((FORWARD_BYTES + LAW_ECHO_BYTES + 3) / 4 * 4)
#define MIN_OPTION_BYTES (FORWARD_BYTES < ECHO_BYTES ? FORWARD_BYTES : ECHO_BYTES)

/* What a packet is, beside NOT_TCP and the reasons that are counted (enum waterfill_count). */
#define UNUSUAL (WATERFILL_COUNTS + 1)

/* What was found in a packet. */
struct segment {
	__u32 ip;  /* offset of the IP header from the packet's first byte */
	__u32 tcp; /* offset of the TCP header */
	__u32 at;  /* offset of the forward value in the TCP header; 0: none */
	__u32 syn; /* 1: a SYN */
	__u8 value[LAW_FORWARD_BYTES];
};

/* ------------------------------------------------------------------ the option */

/* A segment's options, and the result of parsing them. */
struct options {
	__u8 bytes[TCP_OPTIONS + FORWARD_BYTES]; /* so many can be read from any option's start */
	__u8 value[LAW_FORWARD_BYTES];
	__u32 length;
	__u32 next; /* offset of the next option */
	__u32 at;   /* offset of the forward value in the TCP header; 0: none */
	__u32 has_option;
	__u32 malformed; /* a length does not fit */
	__u32 has_signature; /* TCP-AO or MD5 */
};

/* Parses the option at `at`, which is complete. */
static __always_inline void parse_option(struct options *options, __u32 at, __u32 length)
{
	const __u8 *bytes = options->bytes + at;
	__u32 kind = bytes[0];
	__u32 values, i;

	if (kind == 29 || kind == 19)
		options->has_signature = 1;
	if (kind == WATERFILL_KIND_EXPERIMENT) {
		if (length < WATERFILL_OPTION_HEADER_BYTES || bytes[2] != WATERFILL_EXID >> 8 ||
		    bytes[3] != (WATERFILL_EXID & 0xff))
			return; /* another experiment */
		if (WATERFILL_TYPE_LAW(bytes[4]) != LAW)
			return; /* another law */
		values = WATERFILL_TYPE_VALUES(bytes[4]);
		if (length != (values == WATERFILL_BOTH	  ? BOTH_BYTES
			       : values == WATERFILL_ECHO ? ECHO_BYTES
							  : FORWARD_BYTES)) {
			options->malformed = 1;
			return;
		}
		options->has_option = 1;
		if (!(values & WATERFILL_FORWARD))
			return; /* an echo, or a type of a later version */
	} else if (LAW == WATERFILL_MAXNET && kind == WATERFILL_KIND_PAPER && length == WATERFILL_OPTION_BYTES) {
		options->has_option = 1;
	} else {
		return;
	}
	if (options->at) /* of several, receivers use the first */
		return;
	options->at = TCP_BYTES + at + WATERFILL_OPTION_HEADER_BYTES;
	for (i = 0; i < LAW_FORWARD_BYTES; i++)
		options->value[i] = bytes[WATERFILL_OPTION_HEADER_BYTES + i];
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
		kind = option_at(options->bytes, options->length, at, &length);
		if (kind == OPTIONS_END)
			break;
		if (kind == OPTION_MALFORMED) {
			options->malformed = 1;
			break;
		}
		if (kind != OPTION_NOP)
			parse_option(options, at, length);
		options->next = at + length;
	}
	return 0;
}

/* Finds any TCP segment and option. Returns what it is. */
static __noinline __u32 walk(struct __sk_buff *skb, struct segment *segment, __u32 header_bytes)
{
	struct {
		__be32 ports, sequence, acknowledgement;
		__u8 offset, flags;
		__be16 window, checksum, urgent;
	} tcp; /* all of it: a header that is cut off is malformed */
	struct tcp_position position = {};
	struct options options = {};
	__u32 bytes, found;
	int too_short;

	too_short = find_ip(skb, header_bytes, &position);
	segment->ip = position.at;
	if (too_short)
		return NOT_TCP;
	found = find_tcp(skb, &position);
	if (found != WATERFILL_COUNT_OPTION)
		return found;
	if (bpf_skb_load_bytes(skb, position.at, &tcp, sizeof(tcp)))
		return WATERFILL_COUNT_MALFORMED;
	bytes = tcp.offset >> 4;
	if (bytes < 5)
		return WATERFILL_COUNT_MALFORMED;
	bytes = (bytes - 5) * 4;
	if (position.end && position.at + TCP_BYTES + bytes > position.end)
		return WATERFILL_COUNT_MALFORMED;
	/* The verifier needs both bounds. Linux 7.x keeps the lower one only if the upper one comes first. */
	barrier_var(bytes);
	if (bytes > TCP_OPTIONS)
		return WATERFILL_COUNT_MALFORMED;
	if (bytes < MIN_OPTION_BYTES)
		return WATERFILL_COUNT_NO_OPTION;
	if (bpf_skb_load_bytes(skb, position.at + TCP_BYTES, options.bytes, bytes))
		return WATERFILL_COUNT_MALFORMED;
	options.length = bytes;
	parse_options(&options);
	if (options.malformed)
		return WATERFILL_COUNT_MALFORMED;
	if (!options.has_option)
		return WATERFILL_COUNT_NO_OPTION;
	if (options.has_signature)
		return WATERFILL_COUNT_SIGNED;
	segment->tcp = position.at;
	segment->at = options.at;
	segment->syn = !!(tcp.flags & TCP_SYN);
	__builtin_memcpy(segment->value, options.value, sizeof(segment->value));
	return WATERFILL_COUNT_OPTION;
}

/* ------------------------------------------------------------------ usual packets */

#define WORD(a, b, c, d) bpf_htonl((__u32)(a) << 24 | (b) << 16 | (c) << 8 | (d))

static __always_inline __u32 word_at(const __u8 *bytes)
{
	return *(const __u32 *)bytes;
}

/* Whether an option of the law with these values is the last, with NOPs up to a multiple of 4 bytes. */
static __always_inline int is_last_option(const __u8 *option, __u32 bytes, __u32 length, __u32 values)
{
	__u32 i, padded = (length + 3) / 4 * 4;

	if (bytes != padded || option[4] != WATERFILL_TYPE(LAW, values) ||
	    word_at(option) != WORD(WATERFILL_KIND_EXPERIMENT, length, WATERFILL_EXID >> 8, WATERFILL_EXID & 0xff))
		return 0;
	for (i = length; i < padded; i++)
		if (option[i] != 1)
			return 0;
	return 1;
}

/* Finds a usual packet's segment and option. Returns what it is, or UNUSUAL; never MALFORMED. */
static __always_inline __u32 find_usual(struct __sk_buff *skb, struct segment *segment, __u32 header_bytes)
{
	const __u8 *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;
	__be16 protocol = (__be16)skb->protocol;
	const __u8 *ip, *tcp, *option;
	__u32 bytes, length, at;

	header_bytes &= 15; /* for the verifier */
	segment->ip = header_bytes;
	ip = data + header_bytes;
	/* The verifier needs both bounds. */
	if (data + 14 > end || ip + 20 + TCP_BYTES > end)
		return UNUSUAL;
	if (header_bytes)
		protocol = *(const __be16 *)(data + 12);
	if (protocol == bpf_htons(PROTOCOL_IPV4)) {
		if (ip[9] != 6)
			return NOT_TCP;
		if (ip[0] != 0x45)
			return UNUSUAL;
		if (*(const __be16 *)(ip + 6) & bpf_htons(0x1fff))
			return WATERFILL_COUNT_FRAGMENT;
		length = bpf_ntohs(*(const __be16 *)(ip + 2));
		at = 20;
	} else if (protocol == bpf_htons(PROTOCOL_IPV6)) {
		if (ip[0] >> 4 != 6 || ip[6] != 6)
			return UNUSUAL;
		length = bpf_ntohs(*(const __be16 *)(ip + 4));
		if (length)
			length += 40;
		at = 40;
	} else {
		return UNUSUAL;
	}
	segment->tcp = header_bytes + at;
	tcp = ip + at;
	if (tcp + TCP_BYTES > end)
		return UNUSUAL;
	bytes = tcp[12] >> 4 << 2;
	if (bytes < TCP_BYTES || (length && at + bytes > length))
		return UNUSUAL;
	bytes -= TCP_BYTES;
	if (bytes < MIN_OPTION_BYTES)
		return WATERFILL_COUNT_NO_OPTION;
	option = tcp + TCP_BYTES;
	segment->at = TCP_BYTES + WATERFILL_OPTION_HEADER_BYTES;
	if (option + TIMESTAMPS > end)
		return UNUSUAL;
	if (word_at(option) == WORD(1, 1, 8, 10)) {
		if (bytes == TIMESTAMPS)
			return WATERFILL_COUNT_NO_OPTION;
		option += TIMESTAMPS;
		bytes -= TIMESTAMPS;
		segment->at += TIMESTAMPS;
	}
	if (option + (FORWARD_BYTES + 3) / 4 * 4 > end)
		return UNUSUAL;
	if (!is_last_option(option, bytes, FORWARD_BYTES, WATERFILL_FORWARD)) {
		if (option + BOTH_BYTES > end || !is_last_option(option, bytes, BOTH_BYTES, WATERFILL_BOTH))
			return UNUSUAL;
	}
	segment->syn = !!(tcp[13] & TCP_SYN);
	__builtin_memcpy(segment->value, option + WATERFILL_OPTION_HEADER_BYTES, sizeof(segment->value));
	return WATERFILL_COUNT_OPTION;
}

/* ------------------------------------------------------------------ writing */

/* Returns the sum of a value's 16-bit words, as TCP's checksum adds them: counted from the header's first byte. */
static __always_inline __u32 sum_value(const __u8 *value, __u32 at)
{
	__u32 even = 0, odd = 0;
	int i;

	for (i = 0; i < LAW_FORWARD_BYTES; i += 2)
		even += value[i];
	for (i = 1; i < LAW_FORWARD_BYTES; i += 2)
		odd += value[i];
	return at & 1 ? (odd << 8) + even : (even << 8) + odd;
}

/* Replaces the forward value. Both calls may run out of memory; if the first succeeds, so does the second. */
static __always_inline int write_value(struct __sk_buff *skb, const struct segment *segment, const __u8 *value)
{
	if (bpf_skb_store_bytes(skb, segment->tcp + segment->at, value, LAW_FORWARD_BYTES, 0))
		return -1;
	/* Not a pseudo-header field: where the device completes the checksum, this call leaves it alone. */
	return bpf_l4_csum_replace(skb, segment->tcp + TCP_CHECKSUM, bpf_htonl(sum_value(segment->value, segment->at)),
				   bpf_htonl(sum_value(value, segment->at)), 4);
}

#endif
