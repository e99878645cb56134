/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The state of cohabit.bpf.c, which user space writes once and reads (src/daemon/roles/router/cohabit.rs). */
#ifndef WATERFILL_COHABIT_STATE_H
#define WATERFILL_COHABIT_STATE_H

#include <linux/types.h>

#include "cohabit.h"

#define COHABIT_MAX_LINKS 64
/* CPUs whose sums are added; packets on others are not seen. */
#define COHABIT_MAX_CPUS 512

/* How a device's packets are measured, and the module's parameters. */
struct cohabit_setup {
	__u64 salt;	      /* secret, of the flows' hash */
	__s32 overhead_bytes; /* of a packet on the link, beyond its IP length */
	__u32 header_bytes;   /* before the IP header: 14, or 0 where the device has none */
	/* Classes of the device's htb for explicit packets and for the rest, as in skb->priority; 0: one queue. */
	__u32 explicit_queue, other_queue;
	struct cohabit_params params;
};

struct cohabit_state {
	__u64 backlog; /* bytes: the device's queue when it was last read */
	__u32 measured; /* 1: the queue can be read */
	__u32 reserved;
	struct cohabit_setup setup;
	struct cohabit_link link;
};

_Static_assert(sizeof(struct cohabit_setup) == 24 + 4 * 8 + 12 * 4, "cohabit_setup has padding");

#endif
