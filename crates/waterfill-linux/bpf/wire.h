/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The TCP option on the wire, as hosts write and read it and routers find and change it.
 *
 * By default it is an experimental option as of RFC 6994:
 *
 *     kind 253 | length | ExID (2 bytes, network order) | type | value [ | value | zeros ]
 *
 * The type byte is 4 times the law's number (waterfill-laws/kernel/law.h) plus the values that follow: the forward
 * value, the echo, or both and zeros up to a multiple of 4 bytes. The law defines the values and their lengths. Routers
 * change the forward value; no router changes the echo, which is the receiver's answer.
 *
 * MaxNet has number 0 and two values of three bytes, so its option has 8 bytes with one value and 12 with both. A value
 * is the 24-bit field of maxnet-2007 section V: a flag (1 = start rate) and 23 bits.
 *
 * On request MaxNet's option is the papers' own (Fig. 4, thesis Fig. 6): kind 42, length 8, echo (3 bytes), forward
 * value (3 bytes). IANA has reserved that kind, so it is for closed networks only.
 */
#ifndef WATERFILL_WIRE_H
#define WATERFILL_WIRE_H

enum waterfill_option_kind {
	WATERFILL_KIND_EXPERIMENT = 253, /* RFC 6994, with an ExID */
	WATERFILL_KIND_PAPER = 42,	 /* the papers' own */
};

#define WATERFILL_EXID 0x5746
/* Kind, length, ExID and type. */
#define WATERFILL_OPTION_HEADER_BYTES 5
/* MaxNet's options. */
#define WATERFILL_OPTION_BYTES 8
#define WATERFILL_OPTION_BOTH_BYTES 12

/* The type byte: the law's number times 4, and which values follow. */
enum waterfill_option_type {
	WATERFILL_FORWARD = 1, /* one value, which routers change: on data, and on a SYN */
	WATERFILL_ECHO = 2,    /* one value, the answer: on ACKs */
	WATERFILL_BOTH = 3,    /* forward, then echo */
};

#define WATERFILL_TYPE(law, values) (4 * (law) + (values))
#define WATERFILL_TYPE_LAW(type) ((type) / 4)
#define WATERFILL_TYPE_VALUES(type) ((type) % 4)

#endif
