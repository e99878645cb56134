/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What csig.bpf.c shares with user space (src/daemon/roles/csig): a device's configuration, and what it did there. */
#ifndef WATERFILL_CSIG_STATE_H
#define WATERFILL_CSIG_STATE_H

#include <linux/types.h>

#include "csig.h"

#define CSIG_MAX_DEVICES 1024
/* Incremented when the value of a map changes: a newer daemon takes over maps of its own layout only. */
enum csig_layout { CSIG_LAYOUT = 1 };

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
	__u32 layout;	 /* CSIG_LAYOUT */
	__u64 namespace; /* the device's network namespace, by inode */
	char device[16];
	struct csig_bands compact, wide;
};

/* Frames, a super-packet as one. */
struct csig_counts {
	__u64 pushed;	/* left with a tag that was pushed here: that of their arrival, or a new one */
	__u64 compared; /* of all that left with a tag: there was a code of this hop to compare */
	__u64 replaced; /* of those: this hop's code was the more congested */
	__u64 popped;	/* came with a tag, which was taken off and remembered */
	__u64 stripped; /* at the edge: had a tag, which was taken off for good */
	__u64 stored;	/* a tag's price was written into MaxNet's option */
	__u64 too_long; /* left without a tag, as the device's MTU has no space for it */
	__u64 other;	/* left without a tag: neither IPv4 nor IPv6, or a VLAN's */
	__u64 failed;	/* the kernel refused to change the frame; one with a tag was dropped at the edge */
};

/* Request and answer of waterfill_csig_read: what this hop would write into a tag now. */
struct csig_reading {
	__u32 ifindex;
	__u32 found; /* 0: no router of MaxNet runs at the device */
	__u32 code;
	__u32 reserved;
	__u64 value; /* in the signal's unit */
};

_Static_assert(sizeof(struct csig_reading) == 24, "csig_reading has padding");
_Static_assert(sizeof(struct csig_bands) == 8 * (CSIG_BANDS + 2) + 8, "csig_bands has padding");
_Static_assert(sizeof(struct csig_device) == 8 * 4 + 8 + 16 + 2 * sizeof(struct csig_bands), "csig_device has padding");

#endif
