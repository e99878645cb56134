/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Runs one call of kernel/cohabit.h in the kernel: the map's only value has its arguments, and afterwards its results. */
#include "../kernel.h"
#include "cohabit.h"

enum { ADVANCE, DECIDE };

struct call {
	__u32 what;
	__u32 segments;
	__u32 markable;
	__u32 random;
	__u64 now;
	__u64 bytes;
	__u64 result;
	struct cohabit_params params;
	struct cohabit_sums total;
	struct cohabit_link link;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct call);
} calls SEC(".maps");

SEC("tc")
int waterfill_call(struct __sk_buff *skb)
{
	__u32 key = 0;
	struct call *call = bpf_map_lookup_elem(&calls, &key);

	(void)skb;
	if (!call)
		return 0;
	if (call->what == ADVANCE)
		call->result = cohabit_advance(&call->params, &call->link, &call->total, call->now);
	else
		call->result = cohabit_decide(&call->params, &call->link, call->now, call->bytes, call->segments,
					      call->markable, call->random);
	return 0;
}

char _license[] SEC("license") = "Dual BSD/GPL";
