/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The TCP option on the wire, as hosts write and read it and routers find and change it.
 *
 * By default it is an experimental option as of RFC 6994:
 *
 *     kind 253 | length | ExID (2 bytes, network order) | type | value (3 bytes) [ | value (3 bytes) | 0 ]
 *
 * with one value in 8 bytes, or two in 12. A value is the 24-bit field of maxnet-2007 section V: a flag (1 = start
 * rate) and 23 bits. Routers raise the forward value; no router changes the echo, which is the receiver's answer.
 *
 * On request it is the papers' own (Fig. 4, thesis Fig. 6): kind 42, length 8, echo (3 bytes), forward value (3
 * bytes). IANA has reserved that kind, so it is for closed networks only.
 */
#ifndef WATERFILL_WIRE_H
#define WATERFILL_WIRE_H

enum waterfill_option_kind {
	WATERFILL_KIND_EXPERIMENT = 253, /* RFC 6994, with an ExID */
	WATERFILL_KIND_PAPER = 42,	 /* the papers' own */
};

#define WATERFILL_EXID 0x5746
#define WATERFILL_OPTION_BYTES 8
#define WATERFILL_OPTION_BOTH_BYTES 12

/* The type byte: the law's number (kernel/law.h), and which values follow. */
#define WATERFILL_TYPE(law, values) ((law) << 2 | (values))

enum waterfill_option_type {
	WATERFILL_FORWARD = 1, /* one value, which routers raise: on data, and on a SYN (a start rate) */
	WATERFILL_ECHO = 2,    /* one value, the answer: on ACKs */
	WATERFILL_BOTH = 3,    /* forward, then echo: 12 bytes */
};

#endif
