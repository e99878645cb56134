/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The kernel's own structures, with only the fields that these programs use. Offsets come from the running kernel's
 * type information at load time (CO-RE), so one object works on every kernel that has these fields.
 */
#ifndef WATERFILL_KERNEL_H
#define WATERFILL_KERNEL_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_tracing.h>

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

/* For the router: the queue of a device. */
struct gnet_stats_queue {
	__u32 backlog;
};

struct qdisc_skb_head {
	__u32 qlen;
};

struct Qdisc {
	unsigned int flags;
	void *stab; /* a size table, if any */
	struct qdisc_skb_head q;
	struct gnet_stats_queue qstats;
};

struct net_device {
	struct Qdisc *qdisc;
};

struct sk_buff {
	struct net_device *dev;
};

#pragma clang attribute pop

/* Qdisc.flags, which are not in the type information. */
#define TCQ_F_BUILTIN 0x1
#define TCQ_F_MQROOT 0x8
#define TCQ_F_CPUSTATS 0x20
#define TCQ_F_OFFLOADED 0x200

/* Returns the kernel's structure of a packet (Linux 6.2). */
extern void *bpf_cast_to_kern_ctx(void *context) __ksym __weak;

#endif
