/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The map of scone.bpf.c, which user space writes once and reads (src/daemon/roles/scone.rs). */
#ifndef WATERFILL_SCONE_STATE_H
#define WATERFILL_SCONE_STATE_H

#include <linux/types.h>

#include "scone.h"

#define SCONE_MAX_LINKS 64
/* Flows whose writes are counted; of more, those that were seen last. */
#define SCONE_MAX_FLOWS 65536
/* Datagrams of a super-packet that are looked at: the kernel's limit (UDP_MAX_SEGMENTS). */
#define SCONE_MAX_SEGMENTS 128

/* A device: how its law gives advice, and what became of SCONE packets. */
struct scone_link {
	struct scone_advice advice;
	__u64 seen;	 /* whole SCONE packets */
	__u64 lowered;	 /* their signal was replaced by the link's */
	__u64 held;	 /* passed with a higher signal, as their flow was written often enough */
	__u64 malformed; /* started like SCONE packets, and passed unchanged */
	__u64 no_memory; /* no memory to write */
};

_Static_assert(sizeof(struct scone_link) == 24 + 5 * 8, "scone_link has padding");

#endif
