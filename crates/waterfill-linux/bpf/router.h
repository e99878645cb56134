/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the router programs of all laws share with user space (src/daemon/roles/router): the start of a link's state, and the
 * request by which user space reads and changes a link.
 *
 * The start of a link's state (struct waterfill_attachment) keeps its layout between versions: from it, a newer daemon
 * takes over the law's signal, or cleans up. A law's parameters and signals are numbers here, which src/daemon names.
 */
#ifndef WATERFILL_ROUTER_H
#define WATERFILL_ROUTER_H

#include <linux/types.h>

#include "law.h"

#define WATERFILL_MAX_LINKS 1024
/* Incremented when the value of a map changes (link.h, meter.h). */
enum waterfill_layout { WATERFILL_LAYOUT = 2 };
/* CPUs whose packets are counted. */
#define WATERFILL_MAX_CPUS 1024
/* Longest queue, bytes. */
#define WATERFILL_QUEUE_MAX (1ull << 40)
/* Space for a law's parameters, in words of 64 bits. */
#define WATERFILL_PARAMS 32

/* Counters of TCP segments; other packets are counted only in the total. */
enum waterfill_count {
	WATERFILL_COUNT_OPTION,	    /* had the law's option */
	WATERFILL_COUNT_MARKED,	    /* had the law's option, and its value was changed */
	WATERFILL_COUNT_START_RATE, /* SYNs with a forward value: they ask for a start rate, where the law gives one */
	WATERFILL_COUNT_NO_OPTION,  /* no option, or another law's */
	WATERFILL_COUNT_FRAGMENT,   /* fragments other than the first */
	WATERFILL_COUNT_MALFORMED,  /* headers or options of a wrong length */
	WATERFILL_COUNT_SIGNED,	    /* had the law's option, covered by TCP-AO or MD5 */
	WATERFILL_COUNT_NO_MEMORY,  /* no memory to write */
	WATERFILL_COUNTS,
};

/* Bits: what the daemon created on the device, so that unloading can remove it. */
enum waterfill_created {
	WATERFILL_CREATED_FILTER = 1, /* the program is a filter of clsact, not attached by a link of its own */
	WATERFILL_CREATED_CLSACT = 2, /* clsact as well */
	WATERFILL_CREATED_SHAPER = 4, /* the root qdisc */
};

/* 48 bytes whose layout never changes. */
struct waterfill_attachment {
	__u64 price;	 /* the law's first signal; MaxNet: 2^-34 s */
	__u64 namespace; /* the device's network namespace, by inode */
	__u32 layout;	 /* WATERFILL_LAYOUT; 0 before the link is set */
	__u32 created;	 /* enum waterfill_created */
	__u64 reserved;
	char device[16];
};

/* Value of the map of links, by ifindex, which user space and scone.bpf.c read. */
struct waterfill_device {
	struct waterfill_attachment attachment;
	__u32 slot; /* where its link is, once the attachment has a layout */
	__u32 law;  /* whose link that is */
};

enum waterfill_command {
	WATERFILL_SET, /* configure a new link, or reconfigure one */
	WATERFILL_SHOW,
	WATERFILL_ARRIVE, /* tests only: count bytes at `now`, as if in a packet */
};

enum waterfill_result {
	WATERFILL_OK,
	WATERFILL_NO_LINK,
	WATERFILL_BUSY,
};

/* Every command fills in the answers. */
struct waterfill_request {
	enum waterfill_command command;
	__u32 ifindex;
	__u64 now;			       /* ns; 0: read the clock */
	__u64 arriving_bytes;		       /* of WATERFILL_ARRIVE */
	struct waterfill_attachment attachment; /* a new link starts with its signal, if the law allows that */
	__u64 rate;			       /* bit/s */
	__u32 target;			       /* 10^-6 of the rate; 0: the law's own */
	__u32 virtual_only;		       /* 1: the qdisc's queue is not read */
	__s32 overhead_bytes;		       /* of a packet on the link, beyond its IP length */
	__u32 header_bytes;		       /* before the IP header: 14, or 0 where the device has none */
	__u64 params[WATERFILL_PARAMS];	       /* the law's struct law_params, from the first byte on */
	/* answers */
	__u64 signals[LAW_SIGNALS]; /* of law_link_read() */
	__u64 queue;		    /* bytes: measured when last read, else virtual */
	__u64 packets, segments, bytes;
	__u32 interval; /* us: the law's present one */
	__u32 queue_measured;
	__u64 counts[WATERFILL_COUNTS];
};

/* User space passes the bytes of a request, so there is no padding. */
_Static_assert(sizeof(struct waterfill_attachment) == 48, "waterfill_attachment has padding");
_Static_assert(sizeof(struct waterfill_request) ==
		       24 + 48 + 8 + 16 + 8 * WATERFILL_PARAMS + 8 * LAW_SIGNALS + 32 + 8 + 8 * WATERFILL_COUNTS,
	       "waterfill_request has padding");

#endif
