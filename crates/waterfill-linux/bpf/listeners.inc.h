/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sockets that listened before the option's program was attached. It sets a socket's callbacks when that begins to listen, so
 * these have none: their SYN-ACKs have no option, and their clients use the fallback. From Linux 6.12 on an iterator may set
 * the callbacks; on older kernels the server has to be restarted.
 */
#ifndef WATERFILL_LISTENERS_INC_H
#define WATERFILL_LISTENERS_INC_H

#include "maps.h"

#define TCP_LISTEN 10
#define TCP_BPF_SOCK_OPS_CB_FLAGS 1008
/* Cgroups may be nested without a limit; deeper ones are taken for others. */
#define CGROUP_DEPTH_MAX 32

/* The cgroup to which the option's program is attached, by its kernfs number. The daemon writes it before loading. */
const volatile __u64 listener_cgroup SEC(".rodata.scope") = 0;

static __always_inline bool host_in_cgroup(const struct sock *sk)
{
	const struct cgroup *cgroup = sk->sk_cgrp_data.cgroup;
	const struct cgroup_subsys_state *parent;
	int depth;

	for (depth = 0; depth < CGROUP_DEPTH_MAX && cgroup; depth++) {
		if (cgroup->kn->id == listener_cgroup)
			return true;
		parent = cgroup->self.parent;
		if (!parent)
			return false;
		cgroup = parent->cgroup;
	}
	return false;
}

/* Returns the socket if it listens, and the option's program should run for it but does not. */
static __always_inline struct tcp_sock *host_silent_listener(struct sock_common *socket, struct host_listener *listener)
{
	const struct host_params *p = host_parameters();
	struct tcp_sock *tp;
	__u64 netns;

	if (!p || !socket || socket->skc_state != TCP_LISTEN)
		return 0;
	tp = bpf_skc_to_tcp_sock(socket);
	if (!tp || tp->bpf_sock_ops_cb_flags & BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG)
		return 0;
	if (p->filter_netns && bpf_core_field_exists(socket->skc_net.net)) {
		netns = socket->skc_net.net->net_cookie;
		if (!bpf_map_lookup_elem(&namespaces, &netns))
			return 0;
	}
	if (!host_in_cgroup(&tp->inet_conn.icsk_inet.sk))
		return 0;
	__builtin_memset(listener, 0, sizeof(*listener));
	if (socket->skc_family == AF_INET6) {
		bpf_probe_read_kernel(listener->address, 16, &socket->skc_v6_rcv_saddr);
	} else {
		listener->address[10] = listener->address[11] = 0xff;
		*(__u32 *)(listener->address + 12) = socket->skc_rcv_saddr;
	}
	listener->port = socket->skc_num;
	return tp;
}

/* Lists them (struct host_listener), in the network namespace of the reader. */
SEC("iter/tcp")
int waterfill_listeners(struct bpf_iter__tcp *ctx)
{
	struct host_listener listener;

	if (host_silent_listener(ctx->sk_common, &listener))
		bpf_seq_write(ctx->meta->seq, &listener, sizeof(listener));
	return 0;
}

/* Sets their callbacks, and lists them with the result. */
SEC("iter/tcp")
int waterfill_enable_listeners(struct bpf_iter__tcp *ctx)
{
	struct host_listener listener;
	struct tcp_sock *tp = host_silent_listener(ctx->sk_common, &listener);
	int flags;

	if (!tp)
		return 0;
	flags = tp->bpf_sock_ops_cb_flags | BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG;
	listener.enabled = !bpf_setsockopt(tp, SOL_TCP, TCP_BPF_SOCK_OPS_CB_FLAGS, &flags, sizeof(flags));
	bpf_seq_write(ctx->meta->seq, &listener, sizeof(listener));
	return 0;
}

#endif
