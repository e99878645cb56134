/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The option on the wire, as the host writes and reads it and the router finds and changes it.
 *
 * By default it is an experimental option in the manner of RFC 6994:
 *
 *     kind 253 | length | ExID (2 bytes, network order) | type | value (3 bytes) [ | value (3 bytes) | 0 ]
 *
 * with one value in 8 bytes, or two in 12. A value is the 24-bit field of maxnet-2007 section V: a flag (1 = start
 * rate) and 23 bits. The forward value is what routers raise; the echo is the receiver's answer, which no router touches.
 *
 * On request it is the papers' own (Fig. 4, thesis Fig. 6), kind 42, length 8, echo (3 bytes), forward value (3 bytes);
 * IANA has reserved that kind, so it is for closed networks only.
 */
#ifndef WATERFILL_INTF_H
#define WATERFILL_INTF_H

#define WATERFILL_KIND_EXPERIMENT 253
#define WATERFILL_KIND_PAPER 42
#define WATERFILL_EXID 0x5746
#define WATERFILL_OPTION_BYTES 8
#define WATERFILL_OPTION_BOTH_BYTES 12

/* The type byte: which values follow. */
enum waterfill_option_type {
	WATERFILL_FORWARD = 1, /* one value, for routers to raise: on data, and on a SYN (a start rate) */
	WATERFILL_ECHO = 2,    /* one value, the answer: on acknowledgements */
	WATERFILL_BOTH = 3,    /* forward, then echo: 12 bytes */
};

#endif
