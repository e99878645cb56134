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
	tcp->base_rtt_us = host_base_rtt(tp, c);
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

/* Collects what TCP knows of a connection, as evidence. The forward delay is from TCP's timestamps. */
static __always_inline void host_read_evidence(const struct host_params *p, const struct tcp_sock *tp,
					       const struct host_connection *c, __u32 state, struct evidence_input *in)
{
	in->now_us = tp->tcp_mstamp;
	in->last_ack_us = c->last_ack_us;
	in->signal = 0;
	in->srtt_us = tp->srtt_us;
	in->rtt_us = tp->rack.rtt_us;
	in->base_rtt_us = host_base_rtt(tp, c);
	in->margin_us = p->queue_margin_us;
	in->delivered = tp->delivered;
	in->lost = tp->lost;
	in->forward_ms = tp->rx_opt.rcv_tsval - tp->rx_opt.rcv_tsecr;
	/* With a clock of our own in us, the peer's may still be in ms. */
	in->has_forward = BPF_CORE_READ_BITFIELD(tp, rx_opt.saw_tstamp) &&
			  !(bpf_core_field_exists(tp->tcp_usec_ts) && BPF_CORE_READ_BITFIELD(tp, tcp_usec_ts));
	in->timed_out = state == CA_LOSS;
	in->queue_rests = LAW_RESTS_WITH_QUEUE;
	in->has_echo = 0;
	in->tightens = 0;
	in->rests_losing = (__u32)LAW_RESTS_LOSING(host_law_params(p));
	in->reserved = 0;
}

/* Initialises the law, which applies an echo of the handshake at once. */
static __always_inline void host_init_source(const struct host_params *p, const struct tcp_sock *tp,
					     struct host_connection *c)
{
	__u32 packet = host_packet_bytes(tp);
	struct evidence_input in;
	struct law_tcp tcp;

	__builtin_memset(&c->source, 0, sizeof(c->source));
	__builtin_memset(&c->limit, 0, sizeof(c->limit));
	law_source_init(host_law_params(p), &c->source, packet, (__u64)tp->snd_cwnd * packet);
	__builtin_memset(&c->round, 0, sizeof(c->round));
	c->round.start_us = tp->tcp_mstamp;
	c->round.delivered = tp->delivered;
	c->round.lost = tp->lost;
	__builtin_memset(&c->evidence, 0, sizeof(c->evidence));
	c->last_ack_us = tp->tcp_mstamp;
	host_read_evidence(p, tp, c, CA_OPEN, &in);
	evidence_restart(&c->evidence, &in);
	host_sample_rtt(p, tp, c, tp->rtt_min.s[0].v);
	c->delivered = tp->delivered;
	c->last_ack_us = tp->tcp_mstamp;
	c->echoes = 0;
	host_init(&c->pace);
	c->pace.restart_window = c->probation.window; /* of a connection that comes back */
	c->probation.window = 0;
	c->probation.retry_us = 0;
	c->reason = HOST_NO_REASON;
	c->flags |= HOST_LAW_STARTED;
	if (!c->probation.returned_us)
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
	if (send->ack_clocked && c->flags & HOST_PACED && sk->sk_pacing_status == PACING_NEEDED) {
		sk->sk_pacing_status = PACING_NONE;
		c->flags &= ~HOST_PACED;
	} else if (!send->ack_clocked && sk->sk_pacing_status == PACING_NONE) {
		sk->sk_pacing_status = PACING_NEEDED;
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
	if (!c->round.rounds_without_echo || !tcp->recovering)
		c->pace.silent_window = 0;
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

/* Ends a round of evidence that the bottleneck writes no price. Returns the reason to fall back, if there is one. */
static __always_inline __u32 host_check_bottleneck(const struct tcp_sock *tp, struct host_connection *c,
						   struct evidence_input *in, bool has_echo)
{
	__u32 quarter = tp->snd_cwnd / 4;

	in->has_echo = has_echo;
	in->signal = law_evidence(&c->source);
	in->tightens = law_tightens(&c->source, c->evidence.signal, in->now_us - c->evidence.since_us);
	switch (host_end_evidence(&c->evidence, in)) {
	case EVIDENCE_OF_QUEUE:
		return HOST_STANDING_QUEUE;
	case EVIDENCE_OF_LOSS:
		return HOST_HEAVY_LOSS;
	case EVIDENCE_PROBE:
		c->pace.restart_window = quarter > 2 ? quarter : 2; /* doubled per RTT */
		break;
	case EVIDENCE_PATH:
		HOST_COUNT(longer_paths);
		break;
	}
	return HOST_NO_REASON;
}

/* Ends a round. Returns the reason to fall back, if there is one. */
static __always_inline __u32 host_end_round(const struct tcp_sock *tp, struct host_connection *c, bool recovering,
					    struct evidence_input *in)
{
	struct host_round *r = &c->round;
	__u64 lost = tp->lost - r->lost;
	__u64 delivered = tp->delivered - r->delivered;
	bool lossy = lost * 10 >= lost + delivered;
	__u32 reason = HOST_NO_REASON;

	r->count++;
	if (r->count == 1 && c->echoes)
		host_forget_failures(tp, c, false);
	r->rounds_without_echo++; /* 1: an echo arrived in this round */
	if (!c->limit.rate) {
		if (r->count >= ROUNDS_UNANSWERED)
			reason = c->echoes ? HOST_NO_ROUTER : HOST_NO_ECHO;
	} else if (r->rounds_without_echo >= (recovering ? ROUNDS_WITHOUT_ECHO_IN_RECOVERY : ROUNDS_WITHOUT_ECHO)) {
		reason = HOST_NO_ECHO;
	} else {
		/* Without an echo it is unknown whether the price rises. */
		reason = host_check_bottleneck(tp, c, in, r->rounds_without_echo == 1);
		if (recovering && r->rounds_without_echo > 1)
			host_silent_round(&c->pace, lossy);
		if (r->rounds_without_echo > 1 && lossy)
			law_reduce(&c->source, 1); /* the last echo is too old: recovery leaves no space for one */
		else if (r->rounds_without_echo > ROUNDS_BEFORE_DECREASE)
			law_reduce(&c->source, 4);
	}
	if (reason)
		return reason;
	r->start_us = tp->tcp_mstamp;
	r->delivered = tp->delivered;
	r->lost = tp->lost;
	return HOST_NO_REASON;
}

/* Limits slow start, which ends with a loss. Returns the reason to fall back if much is lost before the first price. */
static __always_inline __u32 host_limit_start(struct tcp_sock *tp, struct law_tcp *tcp,
					      const struct host_connection *c)
{
	__u32 lost = tp->lost - c->evidence.lost;
	__u32 sent = lost + tp->delivered - c->evidence.delivered;

	if (lost >= 4 && lost * 50 >= sent)
		return HOST_HEAVY_LOSS;
	if (tcp->recovering && tp->snd_cwnd > tp->snd_ssthresh)
		tp->snd_cwnd = tp->snd_ssthresh;
	if (tp->snd_cwnd >= tp->snd_ssthresh)
		tcp->acked = 0; /* the window does not grow */
	return HOST_NO_REASON;
}

static __always_inline void host_on_ack(const struct host_params *p, struct tcp_sock *tp, struct host_connection *c)
{
	__u32 state = BPF_CORE_READ_BITFIELD(&tp->inet_conn, icsk_ca_state);
	bool recovering = state >= CA_RECOVERY;
	__u32 reason = HOST_NO_REASON;
	struct host_send send = {};
	struct evidence_input in;
	struct law_tcp tcp;

	host_sample_rtt(p, tp, c, tp->rack.rtt_us);
	host_read_evidence(p, tp, c, state, &in);
	host_take_evidence(&c->evidence, &in);
	c->last_ack_us = tp->tcp_mstamp;
	tcp.now_us = tp->tcp_mstamp;
	tcp.base_rtt_us = host_base_rtt(tp, c);
	if (!host_is_due(&c->pace, &tcp, c->limit.rate))
		return; /* the next call has this acknowledgement's packets, and an echo waits */
	host_read_tcp(tp, c, recovering, &tcp);
	c->delivered = tp->delivered;
	host_call_law(p, c, &tcp);

	if (tp->delivered != c->round.delivered && tp->tcp_mstamp - c->round.start_us >= host_round_us(p, tp)) {
		reason = host_end_round(tp, c, recovering, &in);
		law_limit(&c->source, &tcp, &c->limit);
	}
	if (!reason && !c->limit.rate)
		reason = host_limit_start(tp, &tcp, c);
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
	c->flags &= ~(HOST_RENO | HOST_DEFERRED);
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
	if (c->flags & HOST_PACED && sk->sk_max_pacing_rate == ~0ul && sk->sk_pacing_status == PACING_NEEDED)
		sk->sk_pacing_status = PACING_NONE;
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
	c->echoes_unprocessed = 0;
	if (c->flags & HOST_RENO) {
		if (!(c->flags & HOST_DEFERRED) || !host_fall_back_again(p, tcp_sk(sk), c))
			reno_on_ack(tcp_sk(sk), c);
		return;
	}
	if (!(c->flags & HOST_ESTABLISHED))
		return; /* the SYN-ACK, before init() */
	/* A kernel may skip init() now and then: docs/validation/maxnet-on-linux.md. No mainline kernel from 6.1 on does. */
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
	if (c)
		host_time_out_undone(&c->pace, host_in_flight(tp));
	return tp->snd_cwnd;
}

/* The first packet after nothing was in flight: the price is as old as the silence. */
static __always_inline void host_start_again(struct tcp_sock *tp, struct host_connection *c)
{
	__u64 idle;

	if (!c->limit.rate || tp->tcp_mstamp <= c->last_ack_us)
		return;
	idle = tp->tcp_mstamp - c->last_ack_us;
	if (idle > 200000 && idle > tp->srtt_us / 2 && !c->pace.restart_window && tp->snd_cwnd > INITIAL_WINDOW) {
		c->pace.restart_window = INITIAL_WINDOW;
		tp->snd_cwnd = INITIAL_WINDOW;
	}
}

SEC("struct_ops")
void BPF_PROG(waterfill_law_event, struct sock *sk, enum tcp_ca_event event)
{
	const struct host_params *p = host_parameters();
	struct host_connection *c = host_connection_of(sk);

	if (!c || !(c->flags & HOST_LAW_STARTED))
		return;
	if (event == bpf_core_enum_value(enum tcp_ca_event, CA_EVENT_LOSS)) {
		host_time_out(&c->pace);
		if (p)
			law_timeout(host_law_params(p), &c->source);
		c->timeouts++;
	}
	if (bpf_core_enum_value_exists(enum tcp_ca_event, CA_EVENT_TX_START) &&
	    event == bpf_core_enum_value(enum tcp_ca_event, CA_EVENT_TX_START))
		host_start_again(tcp_sk(sk), c);
}

/* From Linux 7.1 on, this event has an operation of its own (d1e59a469737). The daemon removes it on older kernels. */
SEC("struct_ops")
void BPF_PROG(waterfill_law_tx_start, struct sock *sk)
{
	struct host_connection *c = host_connection_of(sk);

	if (c && c->flags & HOST_LAW_STARTED)
		host_start_again(tcp_sk(sk), c);
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
	.cwnd_event_tx_start = (void *)waterfill_law_tx_start,
	.name = LAW_CONGESTION_NAME,
};

/* The daemon writes its own values there. */
_Static_assert(__builtin_offsetof(struct tcp_congestion_ops, cwnd_event_tx_start) == 48, "the operation is elsewhere");
_Static_assert(__builtin_offsetof(struct tcp_congestion_ops, name) == 56, "the name is elsewhere");
_Static_assert(__builtin_offsetof(struct tcp_congestion_ops, flags) == 72, "the flags are elsewhere");

#endif
