/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The TCP option: requested on the SYN, answered on the SYN-ACK, then on packets with data or with an answer.
 */
#ifndef WATERFILL_OPTION_INC_H
#define WATERFILL_OPTION_INC_H

#include "maps.h"
#include "guard.h"
#include "control.inc.h"
#include "probation.h"
#include "host_option.h"

#define TCP_SYNCNT 7
#define ENOSPC 28
#define TCP_FLAG_FIN 0x01
#define TCP_FLAG_SYN 0x02
#define TCP_FLAG_RST 0x04
#define TCP_FLAG_ACK 0x10

/* Bytes that the kernel's own options leave in a SYN and a SYN-ACK. */
#define OPTION_SYN_BYTES 20

/* A connection is bidirectional after this many data packets in each direction. */
#define BIDIRECTIONAL_PACKETS 16
/* How long a request is answered: longer than any ACK is delayed. */
#define REQUEST_LIFETIME_US 1000000
/* Echoes in a row for data in flight that TCP did not hand to the law. */
#define ECHOES_MISSED 32

/* ------------------------------------------------------------------ on the wire */

/* Returns the length of an option. The papers' form has one length, for both values. */
static __always_inline __u32 host_option_length(const struct host_params *p, __u32 type)
{
	if (!type)
		return 0;
	if (OPTION_HAS_PAPER_FORM && p->kind == WATERFILL_KIND_PAPER)
		return WATERFILL_OPTION_BYTES;
	if (type == WATERFILL_BOTH)
		return OPTION_BOTH_BYTES;
	return type == WATERFILL_ECHO ? OPTION_ECHO_BYTES : OPTION_FORWARD_BYTES;
}

/* Reads the packet's option, or with BPF_LOAD_HDR_OPT_TCP_SYN that of the SYN being answered. */
static __always_inline void host_read_option(struct bpf_sock_ops *ops, const struct host_params *p, __u64 flags,
					     struct host_option *option)
{
	__u8 b[OPTION_BOTH_BYTES] = {};
	int length;

	b[0] = p->kind;
	if (p->kind == WATERFILL_KIND_EXPERIMENT) {
		b[1] = 4; /* search for kind, length and ExID */
		b[2] = WATERFILL_EXID >> 8;
		b[3] = WATERFILL_EXID & 0xff;
	}
	length = bpf_load_hdr_opt(ops, b, sizeof(b), flags);
	host_parse_option(p->kind, b, length, option);
}

static __always_inline int host_write_option(struct bpf_sock_ops *ops, const struct host_params *p,
					     const struct host_option *option)
{
	__u8 b[OPTION_BOTH_BYTES] = {};

	b[0] = p->kind;
	b[1] = host_option_length(p, option->type);
	if (OPTION_HAS_PAPER_FORM && p->kind == WATERFILL_KIND_PAPER) {
		__builtin_memcpy(b + 2, option->echo, LAW_ECHO_BYTES);
		__builtin_memcpy(b + 5, option->forward, LAW_FORWARD_BYTES);
		return bpf_store_hdr_opt(ops, b, WATERFILL_OPTION_BYTES, 0);
	}
	b[2] = WATERFILL_EXID >> 8;
	b[3] = WATERFILL_EXID & 0xff;
	b[4] = WATERFILL_TYPE(LAW, option->type);
	if (option->type == WATERFILL_ECHO) {
		__builtin_memcpy(b + OPTION_HEADER_BYTES, option->echo, LAW_ECHO_BYTES);
		return bpf_store_hdr_opt(ops, b, OPTION_ECHO_BYTES, 0);
	}
	__builtin_memcpy(b + OPTION_HEADER_BYTES, option->forward, LAW_FORWARD_BYTES);
	if (option->type == WATERFILL_FORWARD)
		return bpf_store_hdr_opt(ops, b, OPTION_FORWARD_BYTES, 0);
	__builtin_memcpy(b + OPTION_HEADER_BYTES + LAW_FORWARD_BYTES, option->echo, LAW_ECHO_BYTES);
	return bpf_store_hdr_opt(ops, b, OPTION_BOTH_BYTES, 0);
}

/* ------------------------------------------------------------------ which option to send */

/* Whether the law is active and asks routers. */
static __always_inline bool host_requests(const struct host_connection *c)
{
	return c->flags & HOST_LAW_ACTIVE && c->flags & HOST_NEGOTIATED && !c->reason;
}

/* Whether the peer's last request is recent. A start rate is answered a few times, not for a whole second. */
static __always_inline bool host_peer_requests(const struct tcp_sock *tp, const struct host_connection *c)
{
	if (c->flags & HOST_PEER_STARTS && tp->data_segs_out > BIDIRECTIONAL_PACKETS)
		return false;
	return c->requested_us && tp->tcp_mstamp - c->requested_us < REQUEST_LIFETIME_US;
}

/* Returns the largest option that the connection's packets need space for. */
static __always_inline __u32 host_largest_option(const struct tcp_sock *tp, const struct host_connection *c)
{
	bool requests = host_requests(c) || probation_is_due(tp, c);
	bool requested = host_peer_requests(tp, c);

	if (requests && requested) {
		if (c->flags & HOST_PEER_STARTS ||
		    (tp->data_segs_in > BIDIRECTIONAL_PACKETS && tp->data_segs_out > BIDIRECTIONAL_PACKETS))
			return WATERFILL_BOTH;
		return WATERFILL_FORWARD;
	}
	if (requests)
		return WATERFILL_FORWARD;
	return requested ? WATERFILL_ECHO : 0;
}

/* Returns the option for a packet of an established connection. */
static __always_inline __u32 host_choose_option(const struct host_params *p, const struct tcp_sock *tp,
						struct host_connection *c, bool data)
{
	bool requests = data && (host_requests(c) || probation_requests(tp, c)); /* ACKs are no load */
	bool requested = host_peer_requests(tp, c);

	if (requests && requested) {
		if (c->reserved_bytes >= host_option_length(p, WATERFILL_BOTH))
			return WATERFILL_BOTH;
		c->flags ^= HOST_ECHO_TURN;
		return c->flags & HOST_ECHO_TURN ? WATERFILL_ECHO : WATERFILL_FORWARD;
	}
	if (requests)
		return WATERFILL_FORWARD;
	return requested ? WATERFILL_ECHO : 0;
}

/* ------------------------------------------------------------------ callbacks */

/* Whether the option is used with the peer. */
static __always_inline bool host_peer_enabled(struct bpf_sock_ops *ops, const struct host_params *p)
{
	struct host_prefix peer = { .bits = 128 };
	__u32 third, fourth;

	if (!p->filter_peers)
		return true;
	/* A context field must be loaded by itself, not through a selected pointer. */
	if (ops->family == AF_INET6) {
		peer.address[0] = ops->remote_ip6[0];
		peer.address[1] = ops->remote_ip6[1];
		third = ops->remote_ip6[2];
		barrier_var(third);
		fourth = ops->remote_ip6[3];
		barrier_var(fourth);
	} else {
		third = bpf_htonl(0xffff);
		fourth = ops->remote_ip4;
		barrier_var(fourth);
	}
	peer.address[2] = third;
	peer.address[3] = fourth;
	return bpf_map_lookup_elem(&peers, &peer);
}

static __always_inline bool host_namespace_enabled(struct bpf_sock_ops *ops, const struct host_params *p)
{
	__u64 cookie;

	if (!p->filter_netns)
		return true;
	cookie = bpf_get_netns_cookie(ops);
	return bpf_map_lookup_elem(&namespaces, &cookie);
}

#define HOST_CALLBACKS (BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG | BPF_SOCK_OPS_PARSE_UNKNOWN_HDR_OPT_CB_FLAG)

/* A socket has one set of flags for all programs of its cgroups, and the programs of other laws are among them. So flags
 * are only ever added: another program may need what this one no longer does.
 */
static __always_inline void host_enable_callbacks(struct bpf_sock_ops *ops, __u32 callbacks)
{
	if ((ops->bpf_sock_ops_cb_flags & callbacks) != callbacks)
		bpf_sock_ops_cb_flags_set(ops, ops->bpf_sock_ops_cb_flags | callbacks);
}

/* A SYN that times out earlier has two more retries, which keep the total time. `own` are those that an earlier
 * connection of the socket left.
 */
static __always_inline void host_set_syn_retries(struct bpf_sock_ops *ops, struct host_connection *c, __u32 own)
{
	bool quick = c->flags & HOST_QUICK_SYN;
	int retries;

	if (!own && !quick)
		return;
	if (bpf_getsockopt(ops, SOL_TCP, TCP_SYNCNT, &retries, sizeof(retries)) || retries <= 0 || retries >= 126)
		return;
	if (own && retries == (int)own)
		retries -= 2;
	if (quick)
		retries += 2;
	if (!bpf_setsockopt(ops, SOL_TCP, TCP_SYNCNT, &retries, sizeof(retries)))
		c->syn_retries = quick ? retries : 0;
}

/* A socket is about to connect. */
static __always_inline void host_connect(struct bpf_sock_ops *ops)
{
	struct bpf_sock *sk = ops->sk;
	struct host_destination destination = {};
	struct host_backoff *backoff;
	struct host_connection *c;
	struct tcp_sock *tp;
	__u32 own_retries;

	if (!sk)
		return;
	tp = bpf_skc_to_tcp_sock(sk);
	c = bpf_sk_storage_get(&connections, sk, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!c)
		HOST_COUNT(no_memory);
	if (!c || !tp)
		return;
	own_retries = c->syn_retries;
	__builtin_memset(c, 0, sizeof(*c)); /* the socket may have been connected before */
	c->syn_retries = own_retries;
	c->netns = bpf_get_netns_cookie(ops);
	c->last_ack_us = bpf_ktime_get_ns() / 1000; /* the SYN's time, until the handshake is over */
	if (host_signs(tp)) {
		c->reason = HOST_SIGNED;
		return;
	}
	host_get_destination(&destination, tp, c->netns);
	backoff = bpf_map_lookup_elem(&places, &destination);
	if (backoff && bpf_ktime_get_ns() >= backoff->until_ns)
		backoff = 0; /* forgotten */
	if (backoff && (backoff->syn_failures >= FAILURES_UNTIL_SILENT ||
			backoff->echo_failures >= FAILURES_UNTIL_SILENT)) {
		c->reason = HOST_OPTION_BLOCKED;
		return;
	}
	host_enable_callbacks(ops, HOST_CALLBACKS);
	if (backoff && backoff->syn_failures)
		c->flags |= HOST_QUICK_SYN;
	host_set_syn_retries(ops, c, own_retries);
}

/* Returns the first time-out of a SYN with the option, in jiffies; 0: the kernel's. It is 300 ms where a SYN with the
 * option has been lost before, as the second connection would wait a second again. Elsewhere a long path may need it.
 */
static __always_inline __u32 host_syn_timeout(struct bpf_sock_ops *ops)
{
	struct bpf_sock *sk = ops->sk;
	struct host_connection *c;
	struct tcp_sock *tp;

	if (!ops->is_fullsock || !sk)
		return 0;
	c = bpf_sk_storage_get(&connections, sk, 0, 0);
	tp = bpf_skc_to_tcp_sock(sk);
	if (!c || !tp || c->reason || c->flags & HOST_ESTABLISHED || !(c->flags & HOST_QUICK_SYN))
		return 0;
	/* So far this is the kernel's initial second, in jiffies. */
	return tp->inet_conn.icsk_rto * 3 / 10;
}

/* Whether the SYN being answered is signed. Then so is the answer. */
static __always_inline bool host_syn_is_signed(struct bpf_sock_ops *ops)
{
	__u8 md5[18] = { 19 }, ao[4] = { 29 };
	int length = bpf_load_hdr_opt(ops, md5, sizeof(md5), BPF_LOAD_HDR_OPT_TCP_SYN);

	if (length > 0 || length == -ENOSPC)
		return true;
	length = bpf_load_hdr_opt(ops, ao, sizeof(ao), BPF_LOAD_HDR_OPT_TCP_SYN);
	return length > 0 || length == -ENOSPC; /* longer than the array */
}

/* Chooses the option of a SYN or SYN-ACK. A SYN-ACK has no socket yet, and echoes the SYN's value. */
static __always_inline __u32 host_handshake_option(struct bpf_sock_ops *ops, const struct host_params *p,
						   struct host_option *option)
{
	struct bpf_sock *sk = ops->sk;
	struct host_connection *c;

	if (ops->skb_tcp_flags & TCP_FLAG_ACK) {
		struct received_data data = { .segments = 1 };
		struct law_receiver receiver = {};

		option->type = 0;
		if (!host_namespace_enabled(ops, p) || !host_peer_enabled(ops, p))
			return 0;
		/* Fails for a retransmitted SYN-ACK, which goes without, as the first may have been dropped. */
		host_read_option(ops, p, BPF_LOAD_HDR_OPT_TCP_SYN, option);
		if (!(option->type & WATERFILL_FORWARD) || host_syn_is_signed(ops)) {
			option->type = 0;
			return 0;
		}
		/* A wide value is not answered here: what the client learns is that its peer understands. */
		option->type = OPTION_BOTH_BYTES <= OPTION_SYN_BYTES ? WATERFILL_BOTH : WATERFILL_FORWARD;
		receive(host_law_params(p), &receiver, &data, option->forward);
		law_echo(&receiver, option->echo);
		law_request(host_law_params(p), option->forward);
		return option->type;
	}
	__builtin_memset(option, 0, sizeof(*option));
	law_request(host_law_params(p), option->forward);
	if (!ops->is_fullsock || !sk)
		return 0;
	c = bpf_sk_storage_get(&connections, sk, 0, 0);
	/* A retransmitted SYN goes without, as the first may have been dropped. */
	if (c && !c->reason && !(c->flags & HOST_OPTION_SENT))
		option->type = WATERFILL_FORWARD;
	return option->type;
}

static __always_inline void host_reserve_space(struct bpf_sock_ops *ops, const struct host_params *p)
{
	struct bpf_sock *sk = ops->sk;
	struct host_option option;
	struct host_connection *c;
	struct tcp_sock *tp;
	__u32 flags = ops->skb_tcp_flags;
	__u32 bytes, plan;

	if (ops->args[0] == BPF_WRITE_HDR_TCP_CURRENT_MSS) {
		if (!ops->is_fullsock || !sk)
			return;
		c = bpf_sk_storage_get(&connections, sk, 0, 0);
		tp = bpf_skc_to_tcp_sock(sk);
		if (!c || !tp)
			return;
		bytes = host_option_length(p, host_largest_option(tp, c));
		if (bytes && bpf_reserve_hdr_opt(ops, bytes, 0))
			bytes = 0;
		c->reserved_bytes = bytes;
		return;
	}
	if (flags & TCP_FLAG_SYN) {
		if (host_handshake_option(ops, p, &option))
			bpf_reserve_hdr_opt(ops, host_option_length(p, option.type), 0);
		return;
	}
	if (!ops->is_fullsock || !sk)
		return;
	c = bpf_sk_storage_get(&connections, sk, 0, 0);
	tp = bpf_skc_to_tcp_sock(sk);
	if (!c || !tp)
		return;
	c->option_type = 0;
	if (flags & TCP_FLAG_RST || (flags & TCP_FLAG_FIN && !ops->skb_len))
		return;
	plan = host_choose_option(p, tp, c, ops->skb_len);
	bytes = host_option_length(p, plan);
	/* The size of a data segment leaves only this space. */
	if (!bytes || (ops->skb_len && bytes > c->reserved_bytes))
		return;
	if (!bpf_reserve_hdr_opt(ops, bytes, 0))
		c->option_type = plan;
}

static __always_inline void host_write_packet_option(struct bpf_sock_ops *ops, const struct host_params *p)
{
	struct bpf_sock *sk = ops->sk;
	struct host_option option;
	struct host_connection *c;
	struct tcp_sock *tp;

	if (ops->skb_tcp_flags & TCP_FLAG_SYN) {
		if (!host_handshake_option(ops, p, &option))
			return;
		if (host_write_option(ops, p, &option) || ops->skb_tcp_flags & TCP_FLAG_ACK || !sk)
			return;
		c = bpf_sk_storage_get(&connections, sk, 0, 0);
		if (c)
			c->flags |= HOST_OPTION_SENT;
		return;
	}
	if (!ops->is_fullsock || !sk)
		return;
	c = bpf_sk_storage_get(&connections, sk, 0, 0);
	if (!c || !c->option_type)
		return;
	__builtin_memset(&option, 0, sizeof(option));
	option.type = c->option_type;
	law_forward(host_law_params(p), &c->source, option.forward);
	law_echo(&c->receiver, option.echo);
	host_write_option(ops, p, &option);
	if (!c->reason || !(option.type & WATERFILL_FORWARD))
		return;
	tp = bpf_skc_to_tcp_sock(sk);
	if (tp)
		probation_ask(tp, c);
}

/* Notes an echo. Each one that acknowledges data is followed by cong_control(), unless the kernel skips the program. */
static __always_inline void host_expect_control(const struct tcp_sock *tp, struct host_connection *c)
{
	if (!tp->packets_out || !host_requests(c) || c->flags & HOST_RENO)
		return;
	if (++c->echoes_unprocessed == ECHOES_MISSED)
		HOST_COUNT(control_missed);
}

/* Processes a received option, for either role of this end. */
static __always_inline void host_receive_option(const struct host_params *p, const struct tcp_sock *tp,
						struct host_connection *c, const struct host_option *option,
						__u32 segments)
{
	struct received_data data = { .now_us = tp->tcp_mstamp, .segments = segments };
	__u32 rtt = host_base_rtt(tp, c);

	if (option->type & WATERFILL_FORWARD) {
		/* Of the handshake, with the kernel clock's resolution; or estimated from data that our ACKs clock. */
		if (!rtt)
			rtt = tp->rcv_rtt_est.rtt_us >> 3;
		c->requested_us = tp->tcp_mstamp;
		data.rtt_us = rtt;
		step_receive(host_law_params(p), &c->receiver, &data, option->forward);
	}
	if (option->type & WATERFILL_ECHO) {
		__builtin_memcpy(c->echo, option->echo, LAW_ECHO_BYTES);
		c->flags |= HOST_ECHO_PENDING;
		c->echoes++;
		host_expect_control(tp, c);
	}
}

/* Whether TCP will run our law for the connection. */
static __always_inline bool host_law_selected(struct bpf_sock_ops *ops, const struct host_params *p)
{
	char name[CONGESTION_NAME_BYTES] = {};
	__u32 i;

	if (bpf_getsockopt(ops, SOL_TCP, TCP_CONGESTION, name, sizeof(name)))
		return false;
	for (i = 0; i < CONGESTION_NAME_BYTES; i++) {
		if (name[i] != p->name[i])
			return false;
		if (!name[i])
			break;
	}
	return true;
}

/* The handshake is over; `ops` has its last packet. Usually runs before the law's init(). */
static __always_inline void host_established(struct bpf_sock_ops *ops, const struct host_params *p, bool active)
{
	struct bpf_sock *sk = ops->sk;
	struct host_option option;
	struct host_connection *c;
	struct tcp_sock *tp;
	bool selected;
	int retries;

	if (!sk)
		return;
	tp = bpf_skc_to_tcp_sock(sk);
	host_read_option(ops, p, 0, &option);
	selected = host_law_selected(ops, p);
	/* A connection that neither runs the law nor answers has no state. */
	c = bpf_sk_storage_get(&connections, sk, 0,
			       !active && (option.type || selected) ? BPF_LOCAL_STORAGE_GET_F_CREATE : 0);
	if (!c && !active && (option.type || selected))
		HOST_COUNT(no_memory);
	if (!c || !tp)
		return;
	c->flags |= HOST_ESTABLISHED;
	if (!active) {
		c->netns = bpf_get_netns_cookie(ops);
		if (host_signs(tp))
			c->reason = HOST_SIGNED;
	}
	if (option.type && !c->reason) {
		c->flags |= HOST_NEGOTIATED;
		host_receive_option(p, tp, c, &option, 1);
		if (option.type & WATERFILL_FORWARD)
			c->flags |= HOST_PEER_STARTS;
		host_enable_callbacks(ops, HOST_CALLBACKS);
		/* Data ask for prices from the first packet on, also if init() does not run. */
		if (selected)
			c->flags |= HOST_LAW_ACTIVE | HOST_LAW_SELECTED;
		if (active)
			host_forget_failures(tp, c, true);
		return;
	}
	if (!c->reason)
		c->reason = HOST_PEER_UNSUPPORTED;
	if (active && c->flags & HOST_OPTION_SENT && ops->total_retrans) {
		c->reason = HOST_SYN_DROPPED;
		host_remember_failure(tp, c, true);
	}
	if (c->flags & HOST_LAW_ACTIVE && !host_use_kernel_law(ops, p)) {
		c->flags &= ~(HOST_LAW_ACTIVE | HOST_LAW_STARTED);
		event_fallback(c->reason, tp, c);
		host_count_fallback(c->reason);
	}
	if (selected)
		return;
	if (c->syn_retries) {
		retries = c->syn_retries - 2; /* as before the first SYN */
		bpf_setsockopt(ops, SOL_TCP, TCP_SYNCNT, &retries, sizeof(retries));
	}
	bpf_sk_storage_delete(&connections, sk);
}

/* Returns the segments of a received packet, which GRO may have merged from several with the same option. */
static __always_inline __u32 host_segments(struct bpf_sock_ops *ops, const struct tcp_sock *tp)
{
	__u32 bytes = ops->skb_len; /* from the TCP header on, of at most 60 bytes */
	__u32 mss = tp->inet_conn.icsk_ack.rcv_mss;

	if (bytes <= tp->advmss + 60u || !mss)
		return 1;
	return (bytes - tp->tcp_header_len + mss - 1) / mss;
}

static __always_inline void host_parse_packet_option(struct bpf_sock_ops *ops, const struct host_params *p)
{
	struct bpf_sock *sk = ops->sk;
	struct host_option option;
	struct host_connection *c;
	struct tcp_sock *tp;

	if (!sk)
		return;
	tp = bpf_skc_to_tcp_sock(sk);
	c = bpf_sk_storage_get(&connections, sk, 0, 0);
	if (!c || !tp || !(c->flags & HOST_NEGOTIATED))
		return;
	host_read_option(ops, p, 0, &option);
	if (!option.type)
		return;
	if (option.type & WATERFILL_FORWARD)
		c->flags &= ~HOST_PEER_STARTS;
	host_receive_option(p, tp, c, &option, host_segments(ops, tp));
	if (c->flags & HOST_PROBATION && option.type & WATERFILL_ECHO)
		probation_echo(ops, p, tp, c);
}

SEC("sockops")
int waterfill_options(struct bpf_sock_ops *ops)
{
	const struct host_params *p = host_parameters();
	__u32 timeout;

	if (!p)
		return 1;
	switch (ops->op) {
	case BPF_SOCK_OPS_TCP_CONNECT_CB:
		if (host_namespace_enabled(ops, p) && host_peer_enabled(ops, p))
			host_connect(ops);
		else if (ops->sk) /* it may have been connected to another host before */
			bpf_sk_storage_delete(&connections, ops->sk);
		break;
	case BPF_SOCK_OPS_TCP_LISTEN_CB:
		if (host_namespace_enabled(ops, p))
			host_enable_callbacks(ops, BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG);
		break;
	case BPF_SOCK_OPS_TIMEOUT_INIT:
		timeout = host_syn_timeout(ops);
		if (timeout)
			ops->reply = timeout;
		break;
	case BPF_SOCK_OPS_HDR_OPT_LEN_CB:
		host_reserve_space(ops, p);
		break;
	case BPF_SOCK_OPS_WRITE_HDR_OPT_CB:
		host_write_packet_option(ops, p);
		break;
	case BPF_SOCK_OPS_PARSE_HDR_OPT_CB:
		host_parse_packet_option(ops, p);
		break;
	case BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB:
		host_established(ops, p, true);
		break;
	case BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB:
		if (host_namespace_enabled(ops, p) && host_peer_enabled(ops, p))
			host_established(ops, p, false);
		break;
	}
	return 1;
}

_Static_assert(OPTION_FORWARD_BYTES <= OPTION_SYN_BYTES, "the value does not fit in a SYN");

#endif
