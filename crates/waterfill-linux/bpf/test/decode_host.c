/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The decoders of a law's TCP option, compiled for the host: what a router finds in a frame and writes into it, and what a
 * host reads from a TCP header. A build script compiles this file for each law: LAW_HEADER is its header, and DECODE(name)
 * its functions' names.
 */
#include "host_skb.h"
#include LAW_HEADER
#include "../wire.h"
#include "../router.h"
#define parse_options DECODE(parse_options) /* a global function, of which every law has its own */
#include "../packet.h"
#include "../host_option.h"
#include "decode.h"

static struct __sk_buff skb_of(__u8 *frame, __u32 length, __u32 linear)
{
	struct __sk_buff skb = { .bytes = frame, .length = length };

	if (linear > length)
		linear = length;
	skb.data = (unsigned long)frame;
	skb.data_end = skb.data + linear;
	if (length >= 14)
		memcpy(&skb.protocol, frame + 12, 2);
	return skb;
}

/* Decodes a frame behind an Ethernet header, of which the first `linear` bytes are in one piece (decode.h). */
__u32 DECODE(frame)(__u8 *frame, __u32 length, __u32 linear)
{
	struct __sk_buff skb = skb_of(frame, length, linear);

	return decode(&skb, 14);
}

/* Replaces the value of a frame as the router does; 1 if there is one, and then `old` is what was there. */
__u32 DECODE(write)(__u8 *frame, __u32 length, const __u8 *value, __u8 *old)
{
	struct __sk_buff skb = skb_of(frame, length, length);
	struct segment segment = {};
	__u32 found = find_usual(&skb, &segment, 14);

	if (found == UNUSUAL)
		found = walk(&skb, &segment, 14);
	if (found != WATERFILL_COUNT_OPTION || !segment.at)
		return 0;
	memcpy(old, segment.value, LAW_FORWARD_BYTES);
	return !write_value(&skb, &segment, value);
}

/*
 * Finds an option as the kernel's bpf_load_hdr_opt() does, by kind and, of an experiment, identifier. Copies what fits of
 * it. Returns its length; below 0: -42 (ENOMSG) if there is none, -28 (ENOSPC) if it does not fit, -22 (EINVAL) if a length is wrong.
 */
static int search(const __u8 *options, __u32 length, __u8 kind, __u8 *to, __u32 space)
{
	__u32 at = 0, size;

	while (at < length) {
		if (!options[at])
			return -42;
		if (options[at] == 1) {
			at++;
			continue;
		}
		if (at + 1 >= length || options[at + 1] < 2 || at + options[at + 1] > length)
			return -22;
		size = options[at + 1];
		if (options[at] == kind &&
		    (kind != WATERFILL_KIND_EXPERIMENT ||
		     (size >= 4 && options[at + 2] == WATERFILL_EXID >> 8 && options[at + 3] == (WATERFILL_EXID & 0xff)))) {
			memcpy(to, options + at, size < space ? size : space);
			return size <= space ? (int)size : -28;
		}
		at += size;
	}
	return -42;
}

/* Reads a host's option of this kind from a TCP header's options; `raw` is what bpf_load_hdr_opt() gives, `length` what
 * it returns. Returns which values follow.
 */
__u32 DECODE(option)(const __u8 *options, __u32 bytes, __u32 kind, __u8 *raw, __s32 *length, __u8 *forward, __u8 *echo)
{
	struct host_option option;

	memset(raw, 0, OPTION_MAX_BYTES);
	*length = search(options, bytes, (__u8)kind, raw, OPTION_BOTH_BYTES);
	host_parse_option(kind, raw, *length, &option);
	memcpy(forward, option.forward, sizeof(option.forward));
	memcpy(echo, option.echo, sizeof(option.echo));
	return option.type;
}
