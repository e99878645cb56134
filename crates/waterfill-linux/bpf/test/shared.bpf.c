/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Another program for TCP options on the same connections: it counts the packets for which it is asked for space. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

__u64 packets = 0;

SEC("sockops")
int count_packets(struct bpf_sock_ops *ops)
{
	if (ops->op == BPF_SOCK_OPS_TCP_CONNECT_CB)
		bpf_sock_ops_cb_flags_set(ops, ops->bpf_sock_ops_cb_flags | BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG);
	if (ops->op == BPF_SOCK_OPS_HDR_OPT_LEN_CB)
		__sync_fetch_and_add(&packets, 1);
	return 1;
}

char _license[] SEC("license") = "Dual BSD/GPL";
