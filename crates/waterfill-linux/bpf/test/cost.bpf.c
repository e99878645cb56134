/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * MaxNet's router for measurements of its cost (examples/router_cost.rs): the program itself, one that does nothing,
 * and two that reset the value first, without and with the router, because repetitions reuse the changed packet.
 */
#include <linux/types.h>
#include "maxnet.h"
#include "../router.inc.h"

/* The value in the option behind Ethernet's, IPv4's and TCP's headers and the timestamps. */
#define VALUE_AT (14 + 20 + 20 + 12 + 5)

static __always_inline void reset(struct __sk_buff *skb)
{
	__u8 zeros[3] = {};

	bpf_skb_store_bytes(skb, VALUE_AT, zeros, sizeof(zeros), 0);
}

SEC("tcx/egress")
int cost_empty(struct __sk_buff *skb __attribute__((unused)))
{
	return CONTINUE;
}

SEC("tcx/egress")
int cost_reset(struct __sk_buff *skb)
{
	reset(skb);
	return CONTINUE;
}

SEC("tcx/egress")
int cost_reset_and_mark(struct __sk_buff *skb)
{
	reset(skb);
	return route(skb);
}
