/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The law as a TCP congestion control: ACKs, time-outs, and what TCP may send. */
#ifndef WATERFILL_CONTROL_INC_H
#define WATERFILL_CONTROL_INC_H

#include "maps.h"
#include "guard.h"
#include "host_steps.h"

/* Returns the packets in flight, as tcp_packets_in_flight() does. */
static __always_inline __u32 host_in_flight(const struct tcp_sock *tp)
{
	return tp->packets_out - (tp->sacked_out + tp->lost_out) + tp->retrans_out;
}

/* Collects what TCP knows of a connection, as the law wants it. */
static __always_inline void host_read_tcp(const struct tcp_sock *tp, const struct host_connection *c, bool recovering,
					  struct law_tcp *tcp)
{
	const struct sock *sk = &tp->inet_conn.icsk_inet.sk;

	tcp->now_us = tp->tcp_mstamp;
	tcp->srtt_us = tp->srtt_us;
	tcp->base_rtt_us = host_base_rtt(tp);
	tcp->delivered = tp->delivered;
	tcp->acked = tp->delivered - c->delivered;
	/* TCP has taken off what this acknowledgement delivers. */
	tcp->in_flight = host_in_flight(tp) + tcp->acked;
	tcp->packet = host_packet_bytes(tp);
	tcp->payload = host_payload_bytes(tp, c);
	tcp->max_segments = sk->sk_gso_max_segs;
	tcp->recovering = recovering;
	tcp->app_limited = !!tp->app_limited;
	tcp->window_limited = BPF_CORE_READ_BITFIELD(tp, is_cwnd_limited);
	tcp->unlimited = sk->sk_max_pacing_rate == ~0ul;
	tcp->reserved = 0;
}

/* Initialises the law, which applies an echo of the handshake at once. */
static __always_inline void host_init_source(const struct host_params *p, const struct tcp_sock *tp,
					     struct host_connection *c)
{
	__u32 packet = host_packet_bytes(tp);
	struct law_tcp tcp;

	__builtin_memset(&c->source, 0, sizeof(c->source));
	__builtin_memset(&c->limit, 0, sizeof(c->limit));
	law_source_init(host_law_params(p), &c->source, packet, (__u64)tp->snd_cwnd * packet);
	__builtin_memset(&c->round, 0, sizeof(c->round));
	c->round.start_us = tp->tcp_mstamp;
	c->round.rtt = NO_RTT;
	c->round.forward_delay_ms = NO_DELAY;
	c->round.delivered = tp->delivered;
	c->round.lost = tp->lost;
	c->delivered = tp->delivered;
	c->last_ack_us = tp->tcp_mstamp;
	c->echoes = 0;
	host_init(&c->pace);
	c->reason = HOST_NO_REASON;
	c->flags |= HOST_LAW_STARTED;
	HOST_COUNT(started);
	if (c->flags & HOST_ECHO_PENDING) {
		c->flags &= ~HOST_ECHO_PENDING;
		host_read_tcp(tp, c, false, &tcp);
		step_ack(host_law_params(p), &c->source, &tcp, 1, c->echo);
		law_limit(&c->source, &tcp, &c->limit);
	}
}

/* Gives TCP the law's window and pacing rate. */
static __always_inline void host_apply(struct tcp_sock *tp, struct host_connection *c,
					     const struct host_send *send)
{
	struct sock *sk = &tp->inet_conn.icsk_inet.sk;
	__u32 window = send->window;
	__u64 rate = send->rate;

	if (rate > sk->sk_max_pacing_rate)
		rate = sk->sk_max_pacing_rate;
	sk->sk_pacing_rate = rate;
	if (send->ack_clocked && c->flags & HOST_PACED && sk->sk_pacing_status == SK_PACING_NEEDED) {
		sk->sk_pacing_status = SK_PACING_NONE;
		c->flags &= ~HOST_PACED;
	} else if (!send->ack_clocked && sk->sk_pacing_status == SK_PACING_NONE) {
		sk->sk_pacing_status = SK_PACING_NEEDED;
		c->flags |= HOST_PACED;
	}

	if (window > tp->snd_cwnd_clamp)
		window = tp->snd_cwnd_clamp;
	tp->snd_cwnd = window ? window : 1;
	/* The fallback then continues from here in congestion avoidance. */
	tp->snd_ssthresh = window > 2 ? window : 2;
}

/* Returns the least time of a round: in a shorter one a router could not have answered. */
static __always_inline __u32 host_round_us(const struct host_params *p __attribute__((unused)),
					  const struct tcp_sock *tp)
{
	__u32 rtt = tp->srtt_us >> 3;
	__u32 reaction = LAW_REACTION_US(host_law_params(p));

	return rtt > reaction ? rtt : reaction;
}

/* Calls the law with this acknowledgement, and with its echo, if there is one. */
static __always_inline void host_call_law(const struct host_params *p, struct host_connection *c,
					  const struct law_tcp *tcp)
{
	bool has_echo = c->flags & HOST_ECHO_PENDING;

	c->flags &= ~HOST_ECHO_PENDING;
	if (has_echo && law_heard(c->echo))
		c->round.rounds_without_echo = 0;
	if (!tcp->recovering) {
		c->flags &= ~HOST_RECOVERING;
	} else if (!(c->flags & HOST_RECOVERING)) {
		c->flags |= HOST_RECOVERING;
		law_loss(host_law_params(p), &c->source);
	}
	step_ack(host_law_params(p), &c->source, tcp, has_echo, c->echo);
	law_limit(&c->source, tcp, &c->limit);
	if (c->limit.heard && !(c->flags & HOST_WAS_PRICED)) {
		c->flags |= HOST_WAS_PRICED;
		HOST_COUNT(priced);
	}
}

static __always_inline void host_on_ack(const struct host_params *p, struct tcp_sock *tp, struct host_connection *c)
{
	__u32 state = BPF_CORE_READ_BITFIELD(&tp->inet_conn, icsk_ca_state);
	bool recovering = state >= TCP_CA_Recovery;
	__u32 rtt = tp->rack.rtt_us;
	__u32 reason = HOST_NO_REASON;
	struct host_send send = {};
	struct law_tcp tcp;

	c->last_ack_us = tp->tcp_mstamp;
	if (rtt && rtt < c->round.rtt)
		c->round.rtt = rtt;
	host_sample_forward_delay(tp, &c->round); /* of the same acknowledgements as the RTT */
	tcp.now_us = tp->tcp_mstamp;
	tcp.base_rtt_us = host_base_rtt(tp);
	if (!host_is_due(&c->pace, &tcp, c->limit.rate))
		return; /* the next call has this acknowledgement's packets, and an echo waits */
	host_read_tcp(tp, c, recovering, &tcp);
	c->delivered = tp->delivered;
	host_call_law(p, c, &tcp);

	if (tp->delivered != c->round.delivered && tp->tcp_mstamp - c->round.start_us >= host_round_us(p, tp)) {
		reason = host_end_round(tp, c, recovering);
		law_limit(&c->source, &tcp, &c->limit);
	}
	if (!reason && !c->limit.rate && recovering)
		reason = HOST_HEAVY_LOSS;
	if (reason) {
		host_fall_back(p, tp, c, reason);
		return;
	}

	send.window = tp->snd_cwnd;
	host_control(&c->pace, &c->limit, &tcp, c->round.rounds_without_echo < 2, &send);
	if (send.rate)
		host_apply(tp, c, &send);
	else
		tp->snd_cwnd = send.window;
}

/* ------------------------------------------------------------------ TCP's callbacks */

/* BPF_PROG() has a context argument that some programs do not use. */
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wunused-parameter"

SEC("struct_ops")
void BPF_PROG(waterfill_law_init, struct sock *sk)
{
	const struct host_params *p = host_parameters();
	struct host_connection *c = host_connection_of(sk);
	struct host_send send = {};
	struct law_tcp tcp;

	if (!p)
		return;
	if (!c) { /* in another cgroup or namespace, or older than the programs */
		host_fall_back_outside(p, sk);
		return;
	}
	c->flags &= ~HOST_RENO;
	c->flags |= HOST_LAW_ACTIVE | HOST_LAW_SELECTED | HOST_INIT_RAN;
	if (!(c->flags & HOST_ESTABLISHED))
		return;
	if (!(c->flags & HOST_NEGOTIATED)) {
		host_fall_back(p, tcp_sk(sk), c, c->reason ?: HOST_PEER_UNSUPPORTED);
		return;
	}
	host_init_source(p, tcp_sk(sk), c);
	host_read_tcp(tcp_sk(sk), c, false, &tcp);
	host_set_send(&c->pace, &c->limit, &tcp, &send);
	if (send.rate)
		host_apply(tcp_sk(sk), c, &send);
}

SEC("struct_ops")
void BPF_PROG(waterfill_law_release, struct sock *sk)
{
	struct host_connection *c = host_connection_of(sk);

	if (!c)
		return;
	if (c->flags & HOST_PACED && sk->sk_max_pacing_rate == ~0ul && sk->sk_pacing_status == SK_PACING_NEEDED)
		sk->sk_pacing_status = SK_PACING_NONE;
	c->flags &= ~(HOST_LAW_ACTIVE | HOST_LAW_STARTED | HOST_PACED | HOST_INIT_RAN);
}

/* Notes a run of cong_control() without an init() before it. */
static __always_inline void host_init_unseen(const struct tcp_sock *tp, struct host_connection *c)
{
	c->controls_without_init++;
	if (c->flags & HOST_INIT_UNSEEN)
		return;
	c->flags |= HOST_INIT_UNSEEN;
	HOST_COUNT(control_without_init);
	if (BPF_CORE_READ_BITFIELD(&tp->inet_conn, icsk_ca_initialized))
		HOST_COUNT(init_unrecorded);
}

/* Kernels before 6.10 pass (sk, rs), later ones (sk, ack, flag, rs): only the common first argument is used. */
SEC("struct_ops")
void BPF_PROG(waterfill_law_control, struct sock *sk)
{
	const struct host_params *p = host_parameters();
	struct host_connection *c = host_connection_of(sk);

	if (!p)
		return;
	if (!c) { /* the programs were replaced by a version with another state */
		host_fall_back_outside(p, sk);
		return;
	}
	if (c->flags & HOST_RENO) {
		reno_on_ack(tcp_sk(sk), c);
		return;
	}
	if (!(c->flags & HOST_ESTABLISHED))
		return; /* the SYN-ACK, before init() */
	/* Kernels exist that now and then do not run init(): docs/validation/maxnet-on-linux.md. */
	if (!(c->flags & HOST_INIT_RAN))
		host_init_unseen(tcp_sk(sk), c);
	c->flags |= HOST_LAW_ACTIVE | HOST_LAW_SELECTED;
	if (!(c->flags & HOST_LAW_STARTED))
		host_init_source(p, tcp_sk(sk), c);
	host_on_ack(p, tcp_sk(sk), c);
}

SEC("struct_ops")
__u32 BPF_PROG(waterfill_law_ssthresh, struct sock *sk)
{
	struct host_connection *c = host_connection_of(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	__u32 window = tp->snd_cwnd;

	if (c && c->flags & HOST_RENO)
		return reno_ssthresh(tp);
	if (c && c->limit.rate)
		return window > 2 ? window : 2; /* loss is not congestion */
	window = window * 7 / 10; /* without a price: as CUBIC */
	return window > 2 ? window : 2;
}

SEC("struct_ops")
__u32 BPF_PROG(waterfill_law_undo, struct sock *sk)
{
	struct host_connection *c = host_connection_of(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	if (c && c->flags & HOST_RENO && tp->prior_cwnd > tp->snd_cwnd)
		return tp->prior_cwnd;
	return tp->snd_cwnd;
}

SEC("struct_ops")
void BPF_PROG(waterfill_law_event, struct sock *sk, enum tcp_ca_event event)
{
	const struct host_params *p = host_parameters();
	struct host_connection *c = host_connection_of(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	__u64 idle;

	if (!c || !(c->flags & HOST_LAW_STARTED))
		return;
	if (event == CA_EVENT_LOSS) {
		host_time_out(&c->pace);
		if (p)
			law_timeout(host_law_params(p), &c->source);
		c->timeouts++;
	}
	if (event == CA_EVENT_TX_START && c->limit.rate && tp->tcp_mstamp > c->last_ack_us) {
		/* The price is as old as the silence. */
		idle = tp->tcp_mstamp - c->last_ack_us;
		if (idle > 200000 && idle > tp->srtt_us / 2 && !c->pace.restart_window &&
		    tp->snd_cwnd > INITIAL_WINDOW) {
			c->pace.restart_window = INITIAL_WINDOW;
			tp->snd_cwnd = INITIAL_WINDOW;
		}
	}
}

#pragma clang diagnostic pop

/* Without min_tso_segs(): where a kernel skips the program, TCP takes 0 for the answer and sends a segment without data,
 * which is never acknowledged (docs/validation/soak.md). So below 24 Mbit/s of 1500 bytes TCP sends pairs of packets.
 */
SEC(".struct_ops.link")
struct tcp_congestion_ops waterfill_law = {
	.init = (void *)waterfill_law_init,
	.release = (void *)waterfill_law_release,
	.cong_control = (void *)waterfill_law_control,
	.ssthresh = (void *)waterfill_law_ssthresh,
	.undo_cwnd = (void *)waterfill_law_undo,
	.cwnd_event = (void *)waterfill_law_event,
	.name = LAW_CONGESTION_NAME,
};

/* The daemon writes its own values there. */
_Static_assert(__builtin_offsetof(struct tcp_congestion_ops, name) == 48, "the name is elsewhere");
_Static_assert(__builtin_offsetof(struct tcp_congestion_ops, flags) == 64, "the flags are elsewhere");

#endif
