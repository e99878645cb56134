/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The router's state of a link, and the request by which user space reads and changes it (src/daemon/router/).
 *
 * Only the start of a link's state (struct waterfill_attachment) keeps its layout between versions: from it, a newer
 * daemon takes over the price, or cleans up.
 */
#ifndef WATERFILL_ROUTER_H
#define WATERFILL_ROUTER_H

#include <linux/types.h>

#include "maxnet.h"

#define WATERFILL_MAX_LINKS 1024
/* Incremented when struct waterfill_link changes. */
enum waterfill_layout { WATERFILL_LAYOUT = 1 };
/* Longest queue, bytes: maxnet.h's bound. */
#define WATERFILL_QUEUE_MAX (1ull << 40)

/* Counters of TCP segments; other packets are counted only in the total. */
enum waterfill_count {
	WATERFILL_COUNT_OPTION,	    /* had our option */
	WATERFILL_COUNT_MARKED,	    /* had our option, and its value was raised */
	WATERFILL_COUNT_START_RATE, /* SYNs that asked for a start rate */
	WATERFILL_COUNT_NO_OPTION,
	WATERFILL_COUNT_FRAGMENT,  /* fragments other than the first */
	WATERFILL_COUNT_MALFORMED, /* headers or options of a wrong length */
	WATERFILL_COUNT_SIGNED,	   /* had our option, covered by TCP-AO or MD5 */
	WATERFILL_COUNT_NO_MEMORY, /* no memory to write */
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
	__u64 price;	 /* 2^-34 s */
	__u64 namespace; /* the device's network namespace, by inode */
	__u32 layout;	 /* WATERFILL_LAYOUT; 0 before the link is set */
	__u32 created;	 /* enum waterfill_created */
	__u64 reserved;
	char device[16];
};

struct waterfill_link {
	struct waterfill_attachment attachment;
	/* Used for every packet. */
	__u64 interval_end;   /* ns */
	__u64 arrived;	      /* bytes in this interval */
	__u64 counted;	      /* in this interval: packets + 2^32 segments */
	__s32 overhead_bytes; /* of a packet on the link, beyond its IP length */
	__u32 header_bytes;   /* before the IP header: 14, or 0 where the device has none */
	/* Used once per interval. */
	__u64 interval;		  /* ns: dt_p */
	__u64 queue;		  /* 2^-16 bytes: measured or virtual */
	__u64 backlog;		  /* bytes: the qdisc's queue when it was last read */
	__u64 drain_per_interval; /* 2^-16 bytes: C dt_p */
	__u64 packets, segments, bytes;
	__u32 locked;	    /* 1: a CPU is changing the law's state */
	__u32 virtual_only; /* 1: the qdisc's queue is not read */
	__u32 queue_measured;
	__u32 reserved;
	struct maxnet_link law;
	__u64 counts[WATERFILL_COUNTS];
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
	struct waterfill_attachment attachment; /* a new link starts with its price, if that is above the minimum */
	__u64 rate;			       /* bit/s */
	__u64 x_max;			       /* bit/s */
	__u32 mu;			       /* 10^-6 */
	__u32 t;			       /* ms */
	__u32 dt_p;			       /* us */
	__u32 t_0;			       /* us */
	__u32 promise;
	__u32 virtual_only;
	__s32 overhead_bytes;
	__u32 header_bytes;
	/* answers */
	__u64 price_min;    /* 2^-34 s */
	__u64 arrival_rate; /* bit/s */
	__u64 queue;	    /* bytes: measured when last read, else virtual */
	__u64 packets, segments, bytes;
	__u32 price_code; /* 2^-18 s */
	__u32 queue_measured;
	__u64 counts[WATERFILL_COUNTS];
};

/* User space passes the bytes of a request, so there is no padding. */
_Static_assert(sizeof(struct waterfill_attachment) == 48, "waterfill_attachment has padding");
_Static_assert(sizeof(struct waterfill_request) == 24 + 48 + 16 + 32 + 48 + 8 + 8 * WATERFILL_COUNTS,
	       "waterfill_request has padding");

#endif
