/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What csig.bpf.c shares with user space (src/daemon/csig.rs): a device's configuration, and what it did there. */
#ifndef WATERFILL_CSIG_STATE_H
#define WATERFILL_CSIG_STATE_H

#include <linux/types.h>

#include "csig.h"

#define CSIG_MAX_DEVICES 1024

/* What is behind a device. */
enum csig_role {
	CSIG_INSIDE = 1, /* a neighbour that reads tags: frames leave with one */
	CSIG_EDGE = 2,	 /* one that does not: no frame leaves with a tag, and tags that arrive are ignored */
	CSIG_END = 3,	 /* as inside, and this host is where the path begins or ends */
};

struct csig_device {
	__u32 role;
	__u32 format;	    /* enum csig_format: of the tags that are pushed */
	__u32 tpid_compact; /* EtherTypes */
	__u32 tpid_wide;
	__u32 signal;  /* enum csig_type */
	__u32 locator; /* what this hop writes */
	__u32 max_frame; /* bytes: a longer frame gets no tag */
	__u32 reserved;
	struct csig_bands compact, wide;
};

/* Frames, a super-packet as one. */
struct csig_counts {
	__u64 pushed;	/* left with a new tag */
	__u64 replaced; /* of all that left with a tag: this hop's code was the more congested */
	__u64 popped;	/* came with a tag, which was taken off and remembered */
	__u64 stripped; /* at the edge: had a tag, which was taken off for good */
	__u64 stored;	/* a tag's price was written into MaxNet's option */
	__u64 too_long; /* left without a tag, as the device's MTU has no space for it */
	__u64 other;	/* left without a tag: neither IPv4 nor IPv6, or a VLAN's */
	__u64 failed;	/* the kernel refused to change the frame; one with a tag was dropped at the edge */
};

_Static_assert(sizeof(struct csig_bands) == 8 * (CSIG_BANDS + 2) + 8, "csig_bands has padding");
_Static_assert(sizeof(struct csig_device) == 8 * 4 + 2 * sizeof(struct csig_bands), "csig_device has padding");

#endif
