/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A law on a host: TCP congestion control by what routers write. The build script compiles this file for each law, whose
 * header is LAW_HEADER and whose name in TCP's list is LAW_CONGESTION_NAME.
 *
 * Two programs share a connection's state, which is stored with its socket (conn.h). One is TCP's congestion control
 * (control.inc.h): on ACKs and time-outs it sets window and pacing rate by the law (law.h). The other is attached to a
 * cgroup (option.inc.h) and reads and writes the option of wire.h. TCP parses options before it processes the ACK,
 * so the law gets an echo with the ACK that carried it.
 *
 *
 * The option, packet by packet. Lengths and what is asked are MaxNet's; law.h says what a law's values are.
 *
 *   SYN       --->  requests a start rate: the spare capacity of the forward path
 *   SYN-ACK   <---  the answer, and a request for the reverse path: 12 bytes. Where both do not fit, the request alone
 *   ACK       --->  the answer to that
 *   data      --->  requests a price; every router on the path raises it to its own
 *   ACK       <---  the price, averaged over an RTT by the receiver of the data
 *
 * Every connection of the cgroup (with --peers: to these networks) sends requests on its SYN, whatever its congestion
 * control: a client that only downloads must tell the server that it answers. An end answers for a second after the
 * last request. An end that both requests and answers has 12 bytes for both, after a few packets in each direction;
 * until then they take turns in 8. Space is reserved when TCP computes the segment size, so no packet exceeds the path's MTU.
 * SACK blocks have precedence: three of them beside timestamps leave no space, and such an ACK has no option.
 *
 * A SYN-ACK has no socket yet, and is made from the SYN alone. A retransmitted SYN or SYN-ACK has no option, in case a
 * middlebox dropped the first one.
 *
 *
 * The states of a source
 *
 *             no answer to the SYN's option
 *   asking -----------------------------------------------------------------------------+
 *     |  |       three RTTs of data without a price, or a loss meanwhile                |
 *     |  +------------------------------------------------------------------------------+
 *     |  a start rate: sets window and pacing at once                                   |
 *     v          (a price without a start rate leads to "priced")                       v
 *   rising ------- the price's rate is reached -----> priced ----------------------> fallen back
 *     |            (MaxStart)                          |  ^     no echo arrives, or the  (final)
 *     |                                                |  |     bottleneck writes
 *     +---- a time-out, or no data sent ---------------+  |     no price
 *           for longer than a price is valid           v  |
 *                                                  restarting: 1 packet (after silence 10), doubled per RTT
 *                                                  in which an echo arrives, up to the law's window
 *
 * A connection in "asking" starts like any TCP, in slow start from the usual window, so a path without routers costs
 * nothing; a loss then is congestion. On a priced path it is not: retransmission is TCP's, window and pacing stay the
 * law's. Falling back sets TCP_CONGESTION to what the daemon configures, or to Reno if that is missing. The connection
 * still answers requests.
 *
 * docs/explanation/kernel-programs.md gives the reasons; docs/explanation/maxnet-on-linux.md says what a receiver
 * or router that lies can do: nothing here detects that a returned price is too low.
 *
 *
 * Kernels
 *
 *   6.1    the oldest supported. Before, a recursion guard skipped a struct_ops program that interrupted itself on a CPU, so
 *          that TCP used an undefined answer (64696c40d03c removed the guard)
 *   6.4    struct_ops are links, which can be pinned; before, the daemon registers the law without and pins its map
 *   6.10   cong_control() has other arguments; only the common first one is used, the socket
 *   6.12   servers that listened before the programs were loaded answer the option, too (listeners.inc.h)
 *   7.1    cwnd_event() no longer has the first packet after a silence: cwnd_event_tx_start() has
 */
#include "kernel_tcp.h"
#include LAW_HEADER
#include "wire.h"
#include "maps.h"
#include "guard.h"
#include "summary.h"
#include "control.inc.h"
#include "option.inc.h"
#include "listeners.inc.h"

/* A sum for each reader of `waterfill_summary`, by session. What a reader leaves that was killed is replaced. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16);
	__type(key, __u64);
	__type(value, struct host_summary);
} summaries SEC(".maps");

static const struct host_summary empty_summary;

char _license[] SEC("license") = "Dual BSD/GPL";

/* Reads what a connection does, and what the law says of it. */
static __always_inline void host_read_law(const struct host_connection *c, const struct sock *sk,
					  struct host_record *record)
{
	__u32 started = HOST_LAW_ACTIVE | HOST_LAW_STARTED;

	record->mode = host_mode(c->flags, c->reason, sk->__sk_common.skc_state, c->pace.restart_window,
				 c->limit.rate, c->limit.steady);
	record->reason = c->reason;
	if ((c->flags & started) != started)
		return;
	record->rate = c->limit.rate;
	record->window = c->limit.window;
	law_source_read(&c->source, record->signals);
}

/* Lists connections, as the daemon reads them (struct host_record). */
SEC("iter/bpf_sk_storage_map")
int waterfill_flows(struct bpf_iter__bpf_sk_storage_map *ctx)
{
	struct host_connection *c = ctx->value;
	struct sock *sk = ctx->sk;
	struct host_record record = {};
	struct tcp_sock *tp;

	if (!c || !sk)
		return 0;
	tp = bpf_skc_to_tcp_sock(sk);
	if (!tp)
		return 0;
	host_read_law(c, sk, &record);
	if (record.mode == HOST_MODE_NONE)
		return 0;
	if (sk->__sk_common.skc_family == AF_INET6) {
		bpf_probe_read_kernel(record.local, 16, &sk->__sk_common.skc_v6_rcv_saddr);
		bpf_probe_read_kernel(record.remote, 16, &sk->__sk_common.skc_v6_daddr);
	} else {
		record.local[10] = record.local[11] = record.remote[10] = record.remote[11] = 0xff;
		*(__u32 *)(record.local + 12) = sk->__sk_common.skc_rcv_saddr;
		*(__u32 *)(record.remote + 12) = sk->__sk_common.skc_daddr;
	}
	record.local_port = sk->__sk_common.skc_num;
	record.remote_port = bpf_ntohs(sk->__sk_common.skc_dport);
	record.state = sk->__sk_common.skc_state;
	record.echoed = law_receiver_read(&c->receiver);
	record.steady = c->limit.steady;
	record.flags = c->flags;
	record.restart_window = c->pace.restart_window;
	record.rtt = tp->srtt_us >> 3;
	record.base_rtt = host_base_rtt(tp, c);
	record.window_packets = tp->snd_cwnd;
	record.echoes = c->echoes;
	record.timeouts = c->timeouts;
	record.ca_initialized = BPF_CORE_READ_BITFIELD(&tp->inet_conn, icsk_ca_initialized);
	record.controls_without_init = c->controls_without_init;
	bpf_seq_write(ctx->meta->seq, &record, sizeof(record));
	return 0;
}

/* Adds all connections up (struct host_summary), so that a scrape does not copy each of them to user space. The kernel
 * calls it for each connection, and at the end without one. Each reader has a sum of its own.
 */
SEC("iter/bpf_sk_storage_map")
int waterfill_summary(struct bpf_iter__bpf_sk_storage_map *ctx)
{
	struct host_connection *c = ctx->value;
	struct sock *sk = ctx->sk;
	__u64 reader = ctx->meta->session_id;
	struct host_summary *summary = bpf_map_lookup_elem(&summaries, &reader);
	struct host_record record = {};

	if (!summary) {
		/* The first call, unless a 17th reader at a time took the space: then this one reads nothing. */
		if (ctx->meta->seq_num)
			return 0;
		bpf_map_update_elem(&summaries, &reader, &empty_summary, BPF_NOEXIST);
		summary = bpf_map_lookup_elem(&summaries, &reader);
		if (!summary)
			return 0;
	}
	if (!c || !sk) {
		bpf_seq_write(ctx->meta->seq, summary, sizeof(*summary));
		bpf_map_delete_elem(&summaries, &reader);
		return 0;
	}
	if (!bpf_skc_to_tcp_sock(sk))
		return 0;
	host_read_law(c, sk, &record);
	if (record.mode != HOST_MODE_NONE)
		host_summarize(summary, &record, bpf_get_prandom_u32());
	return 0;
}
