/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* TCP's structures, with the fields that the host programs use; see kernel.h. */
#ifndef WATERFILL_KERNEL_TCP_H
#define WATERFILL_KERNEL_TCP_H

#include "kernel.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct in6_addr {
	union {
		__be32 u6_addr32[4];
	} in6_u;
};

struct net {
	__u64 net_cookie;
};

struct kernfs_node {
	__u64 id;
};

struct cgroup;

struct cgroup_subsys_state {
	struct cgroup *cgroup;
	struct cgroup_subsys_state *parent;
};

struct cgroup {
	struct cgroup_subsys_state self;
	struct kernfs_node *kn;
};

struct sock_cgroup_data {
	struct cgroup *cgroup;
};

typedef struct {
	struct net *net;
} possible_net_t;

struct sock_common {
	possible_net_t skc_net;
	__be32 skc_daddr;
	__be32 skc_rcv_saddr;
	__be16 skc_dport;
	__u16 skc_num;
	unsigned short skc_family;
	volatile unsigned char skc_state;
	struct in6_addr skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr;
};

struct sock {
	struct sock_common __sk_common;
	struct sock_cgroup_data sk_cgrp_data;
	__u32 sk_pacing_status;
	unsigned long sk_pacing_rate;     /* bytes/s of payload */
	unsigned long sk_max_pacing_rate; /* the application's limit; all ones: none */
	__u16 sk_gso_max_segs;            /* segments of a super-packet; 1 if the device has no TSO */
};

struct inet_sock {
	struct sock sk;
};

struct inet_connection_sock {
	struct inet_sock icsk_inet;
	__u32 icsk_rto; /* jiffies */
	__u8 icsk_ca_state : 5;
	__u8 icsk_ca_initialized : 1; /* from the congestion control's init() to its release() */
	__u16 icsk_ext_hdr_len; /* of IP's options or IPv6's extension headers */
	struct {
		__u16 rcv_mss; /* bytes: largest segment received of late */
	} icsk_ack;
};

struct minmax_sample {
	__u32 t;
	__u32 v;
};

struct minmax {
	struct minmax_sample s[3];
};

struct tcp_rack {
	__u32 rtt_us;
};

struct tcp_options_received {
	__u32 rcv_tsval; /* ms: the peer's clock when it sent the current packet */
	__u32 rcv_tsecr; /* ms: our clock when we sent what it acknowledges; the clocks' origins differ */
	__u16 saw_tstamp : 1;
};

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	__u16 tcp_header_len; /* with timestamps, without options that vary */
	__u32 mss_cache;
	__u32 snd_cwnd;
	__u32 snd_cwnd_clamp;
	__u32 snd_cwnd_cnt; /* packets towards the next increase */
	__u32 prior_cwnd;   /* before the last loss */
	__u32 max_packets_out; /* in flight within the last window */
	__u32 snd_ssthresh;
	__u32 delivered; /* packets since the connection began */
	__u32 lost;      /* packets since the connection began */
	__u32 packets_out; /* packets that are sent and not acknowledged, */
	__u32 sacked_out;  /* of these, those that arrived, */
	__u32 lost_out;    /* those considered lost, */
	__u32 retrans_out; /* and those sent again */
	__u16 advmss;      /* bytes: our own limit of what we receive */
	__u32 app_limited; /* not 0: the application limits the rate */
	__u8 is_cwnd_limited : 1; /* the window limited the rate within the last window */
	__u32 data_segs_in;
	__u32 data_segs_out;
	__u32 srtt_us; /* times 8 */
	__u64 tcp_mstamp; /* us: arrival of the current packet */
	struct minmax rtt_min;
	struct tcp_rack rack;
	struct tcp_options_received rx_opt;
	__u8 bpf_sock_ops_cb_flags; /* for which callbacks sockops programs run */
	void *md5sig_info; /* keys that sign segments; only where the kernel has MD5 */
	void *ao_info;     /* the same for TCP-AO (6.7) */
	__u8 tcp_usec_ts : 1; /* our clock is in us (6.7) */
	struct {
		__u32 rtt_us; /* times 8 */
	} rcv_rtt_est;
};

/* Only the names count: the running kernel's values are filled in at load time. */
enum tcp_ca_event {
	CA_EVENT_TX_START = 0, /* first packet after nothing was in flight; before Linux 7.1 */
	CA_EVENT_LOSS = 3,     /* a time-out */
};

enum tcp_ca_state {
	TCP_CA_Open = 0,
	TCP_CA_CWR = 2,
	TCP_CA_Recovery = 3,
	TCP_CA_Loss = 4,
};

enum sk_pacing {
	SK_PACING_NONE = 0,
	SK_PACING_NEEDED = 1,
};

/* Returns the running kernel's value of an enumerator, or the one above where its type information lacks the type. */
#define KERNEL_VALUE(type, name) \
	(bpf_core_enum_value_exists(enum type, name) ? (__u32)bpf_core_enum_value(enum type, name) : (__u32)(name))

#define CA_OPEN KERNEL_VALUE(tcp_ca_state, TCP_CA_Open)
#define CA_CWR KERNEL_VALUE(tcp_ca_state, TCP_CA_CWR)
#define CA_RECOVERY KERNEL_VALUE(tcp_ca_state, TCP_CA_Recovery)
#define CA_LOSS KERNEL_VALUE(tcp_ca_state, TCP_CA_Loss)
#define PACING_NONE KERNEL_VALUE(sk_pacing, SK_PACING_NONE)
#define PACING_NEEDED KERNEL_VALUE(sk_pacing, SK_PACING_NEEDED)

struct tcp_congestion_ops {
	__u32 (*ssthresh)(struct sock *sk);
	void (*set_state)(struct sock *sk, __u8 new_state);
	void (*cwnd_event)(struct sock *sk, enum tcp_ca_event event);
	__u32 (*min_tso_segs)(struct sock *sk);
	void (*cong_control)(struct sock *sk);
	__u32 (*undo_cwnd)(struct sock *sk);
	void (*cwnd_event_tx_start)(struct sock *sk);
	char name[16];
	__u32 flags;
	void (*init)(struct sock *sk);
	void (*release)(struct sock *sk);
};

struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
	__u64 session_id;
	__u64 seq_num;
};

struct bpf_iter__tcp {
	struct bpf_iter_meta *meta;
	struct sock_common *sk_common;
};

struct bpf_iter__bpf_sk_storage_map {
	struct bpf_iter_meta *meta;
	struct bpf_map *map;
	struct sock *sk;
	void *value;
};

#pragma clang attribute pop

#endif
