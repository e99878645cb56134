/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Lists of a struct's fields, for the tests that compare its mirror in Rust (src/mirror.rs). Host only. */
#ifndef WATERFILL_MIRROR_H
#define WATERFILL_MIRROR_H

#include <stddef.h>
#include <stdint.h>

struct waterfill_field {
	const char *name;
	uint32_t offset;
	uint32_t size;
};

#define FIELD(type, field) { #field, offsetof(struct type, field), sizeof(((struct type *)0)->field) }
#define END_OF_FIELDS { NULL, 0, 0 }

#endif
