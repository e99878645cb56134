/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a router finds in a frame, as one number that the kernel, the host and the tests can compare. The includer has
 * included packet.h.
 */
#ifndef WATERFILL_TEST_DECODE_H
#define WATERFILL_TEST_DECODE_H

/* The number's parts, from the lowest bit on. */
#define VERDICT_FOUND 0	  /* 4 bits: enum waterfill_count, or NOT_TCP */
#define VERDICT_SYN 4	  /* 1 bit; this and the next two of frames with a value */
#define VERDICT_AT 5	  /* 6 bits: of the value, from the TCP header on */
#define VERDICT_TCP 11	  /* 16 bits: of the TCP header, from the frame's start on */
#define VERDICT_DIFFERS 27 /* 1 bit: the two ways to find it differ */

static __always_inline __u32 pack_verdict(__u32 found, const struct segment *segment)
{
	if (found != WATERFILL_COUNT_OPTION || !segment->at)
		return found << VERDICT_FOUND;
	return found << VERDICT_FOUND | segment->syn << VERDICT_SYN | segment->at << VERDICT_AT |
	       (segment->tcp & 0xffff) << VERDICT_TCP;
}

/* Decodes a frame in both ways: where it lies in memory, if it is usual, and by walk(). */
static __always_inline __u32 decode(struct __sk_buff *skb, __u32 header_bytes)
{
	struct segment usual = {}, any = {};
	__u32 found = find_usual(skb, &usual, header_bytes);
	__u32 walked = pack_verdict(walk(skb, &any, header_bytes), &any);

	if (found == UNUSUAL)
		return walked;
	return walked | (__u32)(pack_verdict(found, &usual) != walked) << VERDICT_DIFFERS;
}

#endif
