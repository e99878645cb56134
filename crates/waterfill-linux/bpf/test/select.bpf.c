/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Another program that selects the law for each connection of a cgroup, as some sites do. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#define SOL_TCP 6
#define TCP_CONGESTION 13

/* A test writes the law's name here. */
char name[16] = {};

SEC("sockops")
int select_law(struct bpf_sock_ops *ops)
{
	if (ops->op == BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB)
		bpf_setsockopt(ops, SOL_TCP, TCP_CONGESTION, name, sizeof(name));
	return 1;
}

char _license[] SEC("license") = "Dual BSD/GPL";
