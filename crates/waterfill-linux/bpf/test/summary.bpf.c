/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The mode of a connection, and sums over connections, for given numbers instead of sockets. */
#include "../kernel_tcp.h"
#include "maxnet.h"
#include "../summary.h"

/* What the test asks. */
struct question {
	__u32 flags, reason, state, restart_window;
	__u64 rate;
	__u32 steady;
	__u32 mode; /* the answer */
	__u32 records;
	__u32 answered; /* records that were added */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct host_summary);
} sums SEC(".maps");

SEC("syscall")
int mode_of(struct question *q)
{
	q->mode = host_mode(q->flags, q->reason, q->state, q->restart_window, q->rate, q->steady);
	return 0;
}

static int add(__u32 n, void *context)
{
	struct question *q = context;
	struct host_record record = { .rate = q->rate, .signals = { n + 1 }, .reason = q->reason, .mode = q->mode };
	__u32 zero = 0;
	struct host_summary *s = bpf_map_lookup_elem(&sums, &zero);

	if (!s)
		return 1;
	host_summarize(s, &record, bpf_get_prandom_u32());
	q->answered++;
	return 0;
}

/* Adds `records` connections of this mode, reason and rate; the n-th has the signal n. */
SEC("syscall")
int add_up(struct question *q)
{
	struct question own = *q;

	bpf_loop(own.records, add, &own, 0);
	q->answered = own.answered;
	return 0;
}

char _license[] SEC("license") = "Dual BSD/GPL";
