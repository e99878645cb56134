/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Super-packets, which leave as several segments. */
#ifndef WATERFILL_GSO_H
#define WATERFILL_GSO_H

/* Bytes of Ethernet's, IPv4's and TCP's headers, with timestamps. */
#define GSO_HEADER_BYTES 66

/* Returns the number of segments of a packet. A guest's super-packet (tap, vhost) comes without it. Its headers are assumed:
 * with longer ones the count may be one too high, where the last segment is full.
 */
static __always_inline __u32 packet_segments(const struct __sk_buff *skb)
{
	__u32 segments = skb->gso_segs, bytes = skb->gso_size, length = skb->len;

	if (segments)
		return segments;
	if (!bytes || length <= GSO_HEADER_BYTES)
		return 1;
	return (length - GSO_HEADER_BYTES + bytes - 1) / bytes;
}

#endif
