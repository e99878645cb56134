/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A host's option as bytes, without the kernel's helpers. An includer has included the law's header and wire.h. */
#ifndef WATERFILL_HOST_OPTION_H
#define WATERFILL_HOST_OPTION_H

/* The option of a packet. */
struct host_option {
	__u32 type; /* enum waterfill_option_type; 0: none, malformed or another law's */
	__u8 forward[LAW_VALUE_MAX + 1];
	__u8 echo[LAW_VALUE_MAX + 1];
};

/* Kind, length, ExID and type come before the values. Two values end on a multiple of four bytes. */
#define OPTION_HEADER_BYTES 5
#define OPTION_FORWARD_BYTES (OPTION_HEADER_BYTES + LAW_FORWARD_BYTES)
#define OPTION_ECHO_BYTES (OPTION_HEADER_BYTES + LAW_ECHO_BYTES)
#define OPTION_BOTH_BYTES ((OPTION_HEADER_BYTES + LAW_FORWARD_BYTES + LAW_ECHO_BYTES + 3) / 4 * 4)
/* Of any law: iXCP's option with both values has 28. */
#define OPTION_MAX_BYTES 28
_Static_assert(OPTION_BOTH_BYTES <= OPTION_MAX_BYTES, "the law's option is too long");
/* The papers' form is MaxNet's alone. */
#define OPTION_HAS_PAPER_FORM (LAW == WATERFILL_MAXNET)

/* Reads an option from its kind on. `length` is the option's; `bytes` has space for both values. */
static __always_inline void host_parse_option(__u32 kind, const __u8 *bytes, int length, struct host_option *option)
{
	__builtin_memset(option, 0, sizeof(*option));
	if (OPTION_HAS_PAPER_FORM && kind == WATERFILL_KIND_PAPER) {
		if (length != WATERFILL_OPTION_BYTES)
			return;
		option->type = WATERFILL_BOTH;
		__builtin_memcpy(option->echo, bytes + 2, LAW_ECHO_BYTES);
		__builtin_memcpy(option->forward, bytes + 5, LAW_FORWARD_BYTES);
		return;
	}
	if (length == OPTION_FORWARD_BYTES && bytes[4] == WATERFILL_TYPE(LAW, WATERFILL_FORWARD)) {
		option->type = WATERFILL_FORWARD;
		__builtin_memcpy(option->forward, bytes + OPTION_HEADER_BYTES, LAW_FORWARD_BYTES);
	} else if (length == OPTION_ECHO_BYTES && bytes[4] == WATERFILL_TYPE(LAW, WATERFILL_ECHO)) {
		option->type = WATERFILL_ECHO;
		__builtin_memcpy(option->echo, bytes + OPTION_HEADER_BYTES, LAW_ECHO_BYTES);
	} else if (length == OPTION_BOTH_BYTES && bytes[4] == WATERFILL_TYPE(LAW, WATERFILL_BOTH)) {
		option->type = WATERFILL_BOTH;
		__builtin_memcpy(option->forward, bytes + OPTION_HEADER_BYTES, LAW_FORWARD_BYTES);
		__builtin_memcpy(option->echo, bytes + OPTION_HEADER_BYTES + LAW_FORWARD_BYTES, LAW_ECHO_BYTES);
	}
}

#endif
