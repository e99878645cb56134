/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the router keeps of a link, and how user space asks for it (src/daemon/router.rs).
 *
 * A link's layout is the program's own business, but for its beginning (struct waterfill_place): a later
 * version finds there what it needs to take over or to clean up, price included.
 */
#ifndef WATERFILL_ROUTER_H
#define WATERFILL_ROUTER_H

/* Most devices at once. */
#define WATERFILL_LINKS 1024
/* Counts up when struct waterfill_link changes. */
#define WATERFILL_LAYOUT 1
/* No queue is longer, bytes: maxnet.h's bound. */
#define WATERFILL_QUEUE_MAX (1ull << 40)

/* What happened to TCP segments; all other packets are the rest. */
enum waterfill_count {
	WATERFILL_SEEN,      /* had our option */
	WATERFILL_MARKED,    /* and its value was raised */
	WATERFILL_STARTS,    /* SYNs that asked for a start rate */
	WATERFILL_PLAIN,     /* TCP without our option */
	WATERFILL_FRAGMENTS, /* later fragments */
	WATERFILL_MALFORMED, /* headers or options of a wrong length */
	WATERFILL_SEALED,    /* with our option and a signature over it: TCP-AO, MD5 */
	WATERFILL_FAILED,    /* no memory to write */
	WATERFILL_COUNTS,
};

/* What was done to the device, for whoever undoes it. */
enum waterfill_made {
	WATERFILL_CLSACT = 1,      /* our program is a filter of clsact, not a link of its own */
	WATERFILL_MADE_CLSACT = 2, /* and clsact is ours too */
	WATERFILL_SHAPED = 4,      /* the root qdisc is ours */
};

/* 48 bytes that stay as they are. */
struct waterfill_place {
	__u64 price;        /* 2^-34 s */
	__u64 namespace;    /* the device's network namespace, by inode */
	__u32 layout;       /* WATERFILL_LAYOUT; 0 before the link is set */
	__u32 made;         /* enum waterfill_made */
	__u64 reserved;
	char device[16];
};

struct waterfill_link {
	struct waterfill_place place;
	/* every packet */
	__u64 tick_at;      /* ns: when the current interval ends */
	__u64 arrived;      /* bytes in it */
	__u64 counted;      /* packets in it, and 2^32 times segments */
	__s32 overhead;     /* bytes of a packet beyond its IP length */
	__u32 header;       /* bytes before the IP header: 14, or 0 where the device has none */
	/* every interval */
	__u64 interval;     /* ns: dt_p */
	__u64 queue;        /* 2^-16 bytes: what waits, read or reckoned */
	__u64 read;         /* bytes: what waited when the qdisc was last looked at */
	__u64 drain;        /* 2^-16 bytes: C dt_p */
	__u64 packets, segments, bytes;
	__u32 busy;         /* 1: somebody changes the law's state */
	__u32 virtual_only; /* 1: the qdisc's queue is not looked at */
	__u32 queue_is_real;
	__u32 reserved;
	struct maxnet_link law;
	__u64 counts[WATERFILL_COUNTS];
};

enum waterfill_what {
	WATERFILL_SET,    /* new, or other values for one that runs */
	WATERFILL_SHOW,
	WATERFILL_ARRIVE, /* tests: bytes come at `now`, as if in a packet */
};

enum waterfill_answer {
	WATERFILL_DONE,
	WATERFILL_NO_LINK,
	WATERFILL_BUSY,
};

/* All answer with what is known. */
struct waterfill_request {
	__u32 what;         /* enum waterfill_what */
	__u32 ifindex;
	__u64 now;          /* ns; 0: the clock's */
	__u64 bytes_now;    /* WATERFILL_ARRIVE: so many come */
	struct waterfill_place place; /* a new link begins with its price, if that is above the least */
	__u64 rate;         /* bit/s */
	__u64 x_max;        /* bit/s */
	__u32 mu;           /* 10^-6 */
	__u32 t;            /* ms */
	__u32 dt_p;         /* us */
	__u32 t_0;          /* us */
	__u32 promise;
	__u32 virtual_only;
	__s32 overhead;
	__u32 header;
	/* answers */
	__u64 price_min;    /* 2^-34 s */
	__u64 arrival_rate; /* bit/s */
	__u64 queue;        /* bytes: as last read, or where it cannot be, as reckoned */
	__u64 packets, segments, bytes;
	__u32 price_code;   /* 2^-18 s */
	__u32 queue_is_real;
	__u64 counts[WATERFILL_COUNTS];
};

/* Without a gap, as user space hands it over in bytes. */
_Static_assert(sizeof(struct waterfill_place) == 48, "place");
_Static_assert(sizeof(struct waterfill_request) == 24 + 48 + 16 + 32 + 48 + 8 + 8 * WATERFILL_COUNTS, "request");

#endif
