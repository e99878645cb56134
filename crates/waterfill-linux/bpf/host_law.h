/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The law as TCP's congestion control: what to do about an acknowledgement, a time-out, and a path without a price.
 */
#ifndef WATERFILL_HOST_LAW_H
#define WATERFILL_HOST_LAW_H

#include "host_maps.h"

/* Shortest and longest round trip that the law is told, us: half a second is what two packets take at 48 kbit/s. */
#define TAU_MIN_US 1000
#define TAU_MAX_US 500000
/* Slowest rate: a packet in so many us. Slower, it would hear too late that the price has fallen. */
#define MAX_PACKET_INTERVAL_US 200000
#define INFINITE_SSTHRESH 0x7fffffff
#define NO_RTT (~0u)
#define NO_DELAY 0x7fffffff
/* Most bytes in flight. TCP sizes its send buffer as an int of 2 windows with up to 2.9 times of overhead. */
#define WINDOW_MAX_BYTES (256u << 20)
/* Largest super-packet, bytes. */
#define BURST_MAX_BYTES 65536
/* us: bursts that would leave more often are clocked by acknowledgements. 14000 timers a second took a seventh of a virtual machine's processor. */
#define MIN_TIMER_INTERVAL_US 100
/* Packets or bursts: from here on the rounding to whole ones is below 1 %. */
#define ACK_CLOCK_MIN_BURSTS 128 /* of bursts: the margin of three is then below 2.4 % */
/* 2^-10, and how far pacing may go beyond the law's rate. TCP itself makes up for half a burst. */
#define BOOST_ONE 1024
#define BOOST_MAX (8 * BOOST_ONE)
/* Packets and us in which the rate that comes about shows: a burst more or less, of 43 packets of 1500 bytes, is 4 %. */
#define BOOST_PACKETS 1024
#define BOOST_INTERVAL_US 1000
/* RFC 6928's initial window, packets. */
#define INITIAL_WINDOW 10
/* How long places are remembered, ns. */
#define SYN_DROP_BACKOFF_NS (600ull * 1000000000)
#define NO_ECHO_BACKOFF_NS (60ull * 1000000000)
#define SOL_TCP 6
#define TCP_CONGESTION 13
#define AF_INET6 10

/* Rounds of acknowledged data without a price before the first one. One suffices if nothing is lost on the way back.
 */
#define ROUNDS_UNANSWERED 3
/* Rounds of acknowledged data without an echo. */
#define ROUNDS_WITHOUT_ECHO 4
/* The same while losses are repaired: three SACK blocks beside timestamps leave no room for an echo. */
#define ROUNDS_WITHOUT_ECHO_IN_RECOVERY 128
/* From when on the rate falls meanwhile, by a 16th each round. */
#define ROUNDS_BEFORE_DECREASE 8
/*
 * How much evidence says that the bottleneck gives no price, and what a round adds to it: 16 rounds with a queue,
 * which harms little and may pass, 8 with one as long as the path or with losses, 3 in which a tenth is lost.
 */
#define EVIDENCE_MAX 16
#define EVIDENCE_QUEUE 1
#define EVIDENCE_LOSS 2
#define EVIDENCE_HEAVY_LOSS 6
/* A shorter queue, us, may be a host's own delay. */
#define QUEUE_MIN_US 3000

static __always_inline struct tcp_sock *tcp_sk(struct sock *sk)
{
	return (struct tcp_sock *)sk;
}

static __always_inline struct host_connection *host_connection_of(void *sk)
{
	return bpf_sk_storage_get(&connections, sk, 0, 0);
}

static __always_inline bool host_is_ipv4(const struct sock_common *s)
{
	/* An IPv6 socket may speak IPv4: ::ffff:a.b.c.d. */
	return s->skc_family != AF_INET6 ||
	       (!s->skc_v6_daddr.in6_u.u6_addr32[0] && !s->skc_v6_daddr.in6_u.u6_addr32[1] &&
		s->skc_v6_daddr.in6_u.u6_addr32[2] == bpf_htonl(0xffff));
}

/* A full packet in bytes, from IP's header on: what the law and the routers count. */
static __always_inline __u32 host_packet_bytes(const struct tcp_sock *tp)
{
	__u32 ip = host_is_ipv4(&tp->inet_conn.icsk_inet.sk.__sk_common) ? 20 : 40;

	return ip + tp->inet_conn.icsk_ext_hdr_len + tp->tcp_header_len + tp->mss_cache;
}

/* The payload of it, in bytes. */
static __always_inline __u32 host_payload_bytes(const struct tcp_sock *tp, const struct host_connection *c)
{
	__u32 mss = tp->mss_cache;

	return mss > c->reserved_bytes + 1 ? mss - c->reserved_bytes : 1;
}

/* TCP's smallest sample, us; 0: there is none */
static __always_inline __u32 host_base_rtt(const struct tcp_sock *tp)
{
	__u32 rtt = tp->rtt_min.s[0].v;

	return rtt == NO_RTT ? 0 : rtt;
}

/* The slowest rate, bit/s, in packets of so many bytes. */
static __always_inline __u64 host_min_rate(__u32 packet)
{
	return (__u64)packet * 8000000 / MAX_PACKET_INTERVAL_US;
}

/*
 * The round trip of the law's loop, us; 0: not known.
 *
 * That is the path's, as long as a price is as old as that when it comes back. On a short path it is older: routers
 * make a new one every dt_p, a millisecond; and if less than a packet goes in a round trip, the next answer is as
 * far away as the next packet, or the one after that, as a receiver may wait for two. With a tau smaller than its
 * loop's the law would be unstable, with a larger one it is slower, no more, and D(q) does not depend on it. The
 * step doubles and halves, so that it rests; eq. 12 keeps the rate when tau shrinks.
 *
 * When it grows the rate has fallen, and after a step of the price, true or forged, by far more than the price asks
 * for: alpha/tau is 660 a second at 1 ms, where 1/T is 2.5. The law mends that in a few tau of the path; but with
 * packets so rare it would take tau^2 / (alpha eta T) of the new tau, a minute at 1 s. So the next price is obeyed as
 * if it were the first, and the rate is D(q) again. So too from below the slowest rate, where what is sent does not
 * follow the law (host_on_ack()).
 */
static __always_inline __u32 host_loop_rtt(const struct tcp_sock *tp, const struct host_connection *c)
{
	__u32 rtt = host_base_rtt(tp);
	__u32 tau = c->source.base_rtt;
	__u64 pair;

	if (!rtt)
		return 0;
	if (rtt < TAU_MIN_US)
		rtt = TAU_MIN_US;
	if (!c->source.rate || tau <= rtt)
		tau = rtt;
	if (!c->source.rate)
		return tau;
	pair = 2ull * c->source.packet * 8000000 / c->source.rate; /* us */
	if (pair > TAU_MAX_US)
		pair = TAU_MAX_US;
	if (tau < pair || tau > 4 * pair)
		return 2 * pair > rtt ? 2 * pair : rtt;
	return tau;
}

static __always_inline void host_get_destination(struct host_destination *destination, const struct tcp_sock *tp, __u64 netns)
{
	const struct sock_common *s = &tp->inet_conn.icsk_inet.sk.__sk_common;

	destination->netns = netns;
	if (s->skc_family == AF_INET6) {
		destination->address[0] = s->skc_v6_daddr.in6_u.u6_addr32[0];
		destination->address[1] = s->skc_v6_daddr.in6_u.u6_addr32[1];
		destination->address[2] = s->skc_v6_daddr.in6_u.u6_addr32[2];
		destination->address[3] = s->skc_v6_daddr.in6_u.u6_addr32[3];
		return;
	}
	destination->address[0] = 0;
	destination->address[1] = 0;
	destination->address[2] = bpf_htonl(0xffff);
	destination->address[3] = s->skc_daddr;
}

/* A new law: it asks. What the handshake brought it hears at once. */
static __always_inline void host_init_source(const struct host_params *p, const struct tcp_sock *tp,
				       struct host_connection *c)
{
	__u32 packet = host_packet_bytes(tp);

	maxnet_source_init(&p->law, &c->source, packet, (__u64)tp->snd_cwnd * packet, 1000);
	__builtin_memset(&c->round, 0, sizeof(c->round));
	c->round.start_us = tp->tcp_mstamp;
	c->round.rtt = NO_RTT;
	c->round.forward_delay_ms = NO_DELAY;
	c->round.delivered = tp->delivered;
	c->round.lost = tp->lost;
	c->delivered = tp->delivered;
	c->last_ack_us = tp->tcp_mstamp;
	c->restart_window = 0;
	c->echoes = 0;
	c->pacing_boost = BOOST_ONE;
	c->reason = HOST_NO_REASON;
	c->flags |= HOST_LAW_STARTED;
	if (c->flags & HOST_ECHO_PENDING) {
		c->flags &= ~HOST_ECHO_PENDING;
		maxnet_ack(&p->law, &c->source, tp->tcp_mstamp, host_loop_rtt(tp, c), c->echo_field);
	}
}

/*
 * A timer that comes late is rate lost, as TCP makes up for half a burst at most. On a virtual machine of 2026 with two
 * busy processors 18 % of 1 Gbit/s were lost in packets of 9000 bytes, and 44 % of 10 Gbit/s in bursts of 64 kB. So what
 * is delivered is held against the law's rate, and pacing goes so much faster that they agree: within 3 %, the
 * noise of bursts. Where the application holds the rate down it goes back to the law's, and where the window does, or
 * losses are being repaired, it goes no faster. Not so where the margin is small beside the window (ACK_CLOCK_MIN_BURSTS): there the
 * window holds the rate, at most 2.4 % above the law's, which the price then takes back, and pacing, a quarter faster,
 * only spreads the packets; going faster still, one flow of two on busy processors took from the other. The law's rate is the smaller of then and now: one that rises is not yet delivered.
 */
static __always_inline void host_update_pacing_boost(const struct tcp_sock *tp, struct host_connection *c, bool usual)
{
	__u64 took = tp->tcp_mstamp - c->boost_since_us;
	__u32 packets = tp->delivered - c->boost_delivered;
	__u64 meant = c->boost_rate < c->source.rate ? c->boost_rate : c->source.rate;
	__u64 got, share;

	if (usual && (packets < BOOST_PACKETS || took < BOOST_INTERVAL_US || took < tp->srtt_us >> 2)) /* two round trips */
		return;
	if (usual && tp->app_limited) {
		c->pacing_boost -= (c->pacing_boost - BOOST_ONE) / 4;
	} else if (usual && meant) {
		got = (__u64)packets * c->source.packet * 8000000 / took; /* 29 + 23 bits, as both ends' windows bound it */
		if (got < meant - meant / 32 && !BPF_CORE_READ_BITFIELD(tp, is_cwnd_limited)) {
			share = (meant - got) * BOOST_ONE / (got + 1);
			share = share < BOOST_ONE ? share : BOOST_ONE;
			c->pacing_boost += c->pacing_boost * share / (2 * BOOST_ONE);
		} else if (got > meant) {
			share = (got - meant) * BOOST_ONE / got;
			c->pacing_boost -= c->pacing_boost * share / (2 * BOOST_ONE);
		}
		c->pacing_boost = c->pacing_boost < BOOST_MAX ? c->pacing_boost : BOOST_MAX;
		c->pacing_boost = c->pacing_boost > BOOST_ONE ? c->pacing_boost : BOOST_ONE;
	}
	c->boost_since_us = tp->tcp_mstamp;
	c->boost_rate = c->source.rate;
	c->boost_delivered = tp->delivered;
}

/*
 * Window and pacing rate from the law's.
 *
 * The law's window is rate times base round trip, and the rate is what pacing sends at. Where pacing rules, the window does
 * not need to hold the rate down, only to bound what can stand in a queue when nothing else does; it must be large
 * enough not to get in the way: whole packets, and three super-packets more, one that TCP is still filling, one
 * that waits in the device, one that the receiver is still putting together before it acknowledges. At 2 Mbit/s and
 * 28 ms that is 4.7 packets rounded up to 5, and 3; at 1 Gbit/s, with super-packets, 2334 and 129.
 *
 * Pacing costs a timer for each of TCP's bursts. Where the device takes no super-packets that is one for each packet, every
 * 12 us at 1 Gbit/s. So once a flow is past its start, where bursts would leave more often than
 * every MIN_TIMER_INTERVAL_US and the window is large enough for whole bursts to be fine steps (ACK_CLOCK_MIN_BURSTS),
 * acknowledgements are the clock, as in the papers' own hosts: the window is the law's, without a margin, and nothing is paced.
 */
static __always_inline void host_set_window_and_pacing(struct tcp_sock *tp, struct host_connection *c)
{
	struct sock *sk = &tp->inet_conn.icsk_inet.sk;
	__u32 payload = host_payload_bytes(tp, c);
	__u32 packet = host_packet_bytes(tp);
	__u64 rate, burst, window;
	int large, ruled;

	c->source.packet = packet;
	rate = c->source.rate;
	if (!rate)
		return;
	if (rate < host_min_rate(packet))
		rate = host_min_rate(packet);
	/* TCP paces bytes of payload. */
	rate = fixed_scale(rate / 8, payload, packet); /* 54 bits */
	window = c->source.window < WINDOW_MAX_BYTES ? c->source.window : WINDOW_MAX_BYTES;
	window = (window + packet - 1) / packet;
	burst = rate >> 10; /* TCP makes super-packets of about a millisecond */
	if (burst > BURST_MAX_BYTES)
		burst = BURST_MAX_BYTES;
	burst = burst / payload;
	if (burst > sk->sk_gso_max_segs)
		burst = sk->sk_gso_max_segs;
	if (!burst)
		burst = 1;
	large = window >= ACK_CLOCK_MIN_BURSTS * burst;
	ruled = large && c->source.mode == MAXNET_PRICED && sk->sk_max_pacing_rate == ~0ul &&
		burst * payload * (1000000 / MIN_TIMER_INTERVAL_US) < rate; /* 16 + 15 bits */
	if (!ruled) {
		if (large)
			rate += rate / 4;
		else
			rate = rate * c->pacing_boost / BOOST_ONE; /* 47 + 13 bits */
		window += 3 * burst;
	}
	if (rate > sk->sk_max_pacing_rate)
		rate = sk->sk_max_pacing_rate;
	sk->sk_pacing_rate = rate;
	if (ruled && c->flags & HOST_PACED && sk->sk_pacing_status == SK_PACING_NEEDED) {
		sk->sk_pacing_status = SK_PACING_NONE;
		c->flags &= ~HOST_PACED;
	} else if (!ruled && sk->sk_pacing_status == SK_PACING_NONE) {
		sk->sk_pacing_status = SK_PACING_NEEDED;
		c->flags |= HOST_PACED;
	}

	if (c->restart_window) {
		if (window <= c->restart_window)
			c->restart_window = 0;
		else
			window = c->restart_window;
	}
	if (window > tp->snd_cwnd_clamp)
		window = tp->snd_cwnd_clamp;
	tp->snd_cwnd = window ? window : 1;
	/* So that whoever follows starts from here by congestion avoidance. */
	tp->snd_ssthresh = window > 2 ? window : 2;
}

/* TCP's congestion control becomes one of the kernel's own. Runs release(), but not while in init(). */
static __always_inline bool host_use_kernel_law(void *sk, const struct host_params *p)
{
	char reno[] = "reno";

	return !bpf_setsockopt(sk, SOL_TCP, TCP_CONGESTION, (void *)p->fallback, sizeof(p->fallback)) ||
	       !bpf_setsockopt(sk, SOL_TCP, TCP_CONGESTION, reno, sizeof(reno));
}

/* Gives the connection to the kernel's own law. */
static __always_inline void host_fall_back(const struct host_params *p, struct tcp_sock *tp,
					   struct host_connection *c, __u32 reason)
{
	__u32 window = tp->snd_cwnd;
	__u64 base = host_base_rtt(tp);
	__u32 lost = tp->lost - c->round.lost;
	__u32 delivered = tp->delivered - c->round.delivered;

	c->reason = reason;
	c->restart_window = 0;
	if (c->flags & HOST_WAS_PRICED) {
		if (reason == HOST_STANDING_QUEUE && c->round.rtt != NO_RTT && c->round.rtt > base)
			window = window * base / c->round.rtt; /* what fits without the queue; 32 + 24 bits */
		if (reason == HOST_HEAVY_LOSS && delivered + lost) /* what got through, and CUBIC's step */
			window = (__u64)window * delivered / (delivered + lost) * 7 / 10;
		if (window < 2)
			window = 2;
		tp->snd_cwnd = window;
		tp->snd_ssthresh = window;
	} else if (reason != HOST_HEAVY_LOSS) {
		tp->snd_ssthresh = INFINITE_SSTHRESH; /* nothing is known of the path: slow start goes on */
	}
	if (reason == HOST_NO_ECHO && !(c->flags & HOST_WAS_PRICED)) {
		struct host_backoff backoff = { .until_ns = bpf_ktime_get_ns() + NO_ECHO_BACKOFF_NS, .failures = 2 };
		struct host_destination destination = {};

		host_get_destination(&destination, tp, c->netns);
		bpf_map_update_elem(&places, &destination, &backoff, BPF_ANY);
	}
	if (host_use_kernel_law(tp, p))
		c->flags &= ~(HOST_LAW_ACTIVE | HOST_LAW_STARTED);
}

/*
 * TCP's timestamps say how long data were on their way there, on two clocks, of which only changes mean something. An
 * acknowledgement that waited for more data waits in both.
 */
static __always_inline void host_sample_forward_delay(const struct tcp_sock *tp, struct host_round *r)
{
	__s32 more;

	if (!BPF_CORE_READ_BITFIELD(tp, rx_opt.saw_tstamp))
		return;
	if (bpf_core_field_exists(tp->tcp_usec_ts) && BPF_CORE_READ_BITFIELD(tp, tcp_usec_ts))
		return; /* the peer's may still be in ms */
	more = tp->rx_opt.rcv_tsval - tp->rx_opt.rcv_tsecr - r->base_forward_delay_ms;
	if (more < r->forward_delay_ms)
		r->forward_delay_ms = more;
}

/*
 * Whether a queue of so many us stands on the way of the acknowledgements: the round trip is longer, and most of that
 * is not on the way there. No evidence, no: also if data seem to be there sooner than without a queue, as then the
 * peer's clock is not in ms. To the favour of the way there goes a tick. Clocks that drift apart are no matter, as
 * the delay without a queue is taken anew in every round without one (host_check_bottleneck()).
 */
static __always_inline bool host_queue_on_ack_path(const struct host_round *r, __u64 queue, __u64 margin)
{
	__s64 there = (__s64)r->forward_delay_ms * 1000;

	if (!r->forward_delay_known || r->forward_delay_ms == NO_DELAY)
		return false;
	return there + (__s64)margin + 1000 >= 0 && 2 * (there + 1000) < (__s64)queue;
}

/*
 * Whether the bottleneck gives no price.
 *
 * At a bottleneck with a price, a queue that stands or overflows means that more comes in than goes out: y >= C >
 * mu C, so its price rises by at least 1 - mu seconds a second, until y < mu C; and from then on the queue falls by
 * at least 1 - mu seconds a second. A queue that does not fall while the price does not rise is somewhere else. No
 * single round shows it: the price takes a round trip to get here and another one to be averaged, and both are
 * noisy. Hence several rounds with a queue or with heavy loss, and both slopes from their first to their last. A
 * slope counts from 1/128 on, so targets up to 0.99 are understood. Random loss of 1 % is never reason enough, as 2
 * % are asked for; nor is MaxStart's own queue, which goes with a price that rises and then falls; nor a queue that
 * acknowledgements wait in, where there are timestamps.
 *
 * What this takes for a bottleneck without a price, and is none: a router whose price is rising below that of another
 * one on the path, as when a link fills that had nothing to do. Only the highest price is heard, so its rise is not.
 */
static __always_inline __u32 host_check_bottleneck(const struct tcp_sock *tp, struct host_connection *c, bool heard)
{
	struct host_round *r = &c->round;
	__u64 now = tp->tcp_mstamp;
	__u64 base = host_base_rtt(tp);
	__u64 lost = tp->lost - r->lost;
	__u64 sent = lost + tp->delivered - r->delivered;
	__u64 rtt = r->rtt == NO_RTT ? 0 : r->rtt;
	__u64 margin = base / 4 > QUEUE_MIN_US ? base / 4 : QUEUE_MIN_US;
	bool queued = rtt > base + margin;
	bool standing = queued && !host_queue_on_ack_path(r, rtt - base, margin);
	bool heavy = lost >= 4 && lost * 50 >= sent;
	__u32 weight = EVIDENCE_QUEUE;
	__u64 slope;

	if (!queued && r->forward_delay_ms != NO_DELAY) {
		r->base_forward_delay_ms += r->forward_delay_ms;
		r->forward_delay_known = 1;
	}
	if (!standing && !heavy) {
		if (r->evidence)
			r->evidence--;
		return HOST_NO_REASON;
	}
	if (!r->evidence) {
		r->evidence_since_us = r->start_us;
		r->evidence_rtt = rtt;
		r->evidence_price = c->source.price;
		r->evidence_loss_rounds = 0;
	}
	if (heavy || rtt > 2 * (base + margin))
		weight = EVIDENCE_LOSS;
	if (heavy && lost * 10 >= sent)
		weight = EVIDENCE_HEAVY_LOSS;
	r->evidence += weight;
	r->evidence_loss_rounds += heavy;
	if (r->evidence < EVIDENCE_MAX || !heard)
		return HOST_NO_REASON;
	slope = (now - r->evidence_since_us) / 128; /* us */
	r->evidence = 0; /* from here on anew, unless it is so */
	if (c->source.price > r->evidence_price + slope * 262144 / 1000000) /* us to 2^-18 s */
		return HOST_NO_REASON;
	if (r->evidence_loss_rounds)
		return HOST_HEAVY_LOSS;
	return rtt + slope < r->evidence_rtt ? HOST_NO_REASON : HOST_STANDING_QUEUE;
}

/*
 * The last price has grown old, as losses are being repaired and leave no room for an echo: what it stood for is no
 * longer known. Fewer packets, fewer losses, fewer SACK blocks: until an echo gets through, and is obeyed in full.
 * When many start at once, each with all of the spare capacity, this is what makes them hear how many they are.
 */
static __always_inline void host_reduce_rate(struct host_connection *c, __u64 by)
{
	c->source.rate -= by;
	if (c->source.start_rate > c->source.rate)
		c->source.start_rate = c->source.rate; /* MaxStart goes on from here */
	c->source.window = maxnet_window(c->source.rate, c->source.base_rtt);
}

/* A round has ended. The reason to fall back, if there is one. */
static __always_inline __u32 host_end_round(const struct tcp_sock *tp, struct host_connection *c, bool recovering)
{
	struct host_round *r = &c->round;
	__u64 lost = tp->lost - r->lost;
	__u64 delivered = tp->delivered - r->delivered;
	__u32 reason = HOST_NO_REASON;

	r->count++;
	r->rounds_without_echo++; /* 1: an echo came in this round */
	if (!c->source.rate) {
		if (r->count >= ROUNDS_UNANSWERED)
			reason = c->echoes ? HOST_NO_ROUTER : HOST_NO_ECHO;
	} else if (r->rounds_without_echo >= (recovering ? ROUNDS_WITHOUT_ECHO_IN_RECOVERY : ROUNDS_WITHOUT_ECHO)) {
		reason = HOST_NO_ECHO;
	} else {
		/* Without an echo nobody knows whether the price rises. */
		reason = host_check_bottleneck(tp, c, r->rounds_without_echo == 1);
		if (r->rounds_without_echo > 1 && lost * 10 >= lost + delivered)
			host_reduce_rate(c, c->source.rate / 2);
		else if (r->rounds_without_echo > ROUNDS_BEFORE_DECREASE)
			host_reduce_rate(c, c->source.rate / 16);
	}
	if (reason)
		return reason;
	r->start_us = tp->tcp_mstamp;
	r->rtt = NO_RTT;
	r->forward_delay_ms = NO_DELAY;
	r->delivered = tp->delivered;
	r->lost = tp->lost;
	return HOST_NO_REASON;
}

static __always_inline void host_on_ack(const struct host_params *p, struct tcp_sock *tp,
					      struct host_connection *c)
{
	__u32 state = BPF_CORE_READ_BITFIELD(&tp->inet_conn, icsk_ca_state);
	bool recovering = state >= TCP_CA_Recovery;
	__u32 acked = tp->delivered - c->delivered;
	__u32 rtt = tp->rack.rtt_us;
	__u32 reason = HOST_NO_REASON;
	__u32 tau;

	c->delivered = tp->delivered;
	c->last_ack_us = tp->tcp_mstamp;
	tau = host_loop_rtt(tp, c);
	if (tau >= 2 * c->source.base_rtt || c->source.rate < host_min_rate(c->source.packet))
		c->source.has_price = 0;
	if (c->flags & HOST_ECHO_PENDING) {
		c->flags &= ~HOST_ECHO_PENDING;
		if (c->echo_field & FIXED_CODE_MAX)
			c->round.rounds_without_echo = 0;
		maxnet_ack(&p->law, &c->source, tp->tcp_mstamp, tau, c->echo_field);
	} else {
		maxnet_base_rtt(&p->law, &c->source, tau);
	}
	if (c->source.has_price)
		c->flags |= HOST_WAS_PRICED;

	if (rtt && rtt < c->round.rtt)
		c->round.rtt = rtt;
	host_sample_forward_delay(tp, &c->round);
	if (tp->delivered != c->round.delivered && tp->tcp_mstamp - c->round.start_us >= tp->srtt_us >> 3)
		reason = host_end_round(tp, c, recovering);
	if (!reason && !c->source.rate && recovering)
		reason = HOST_HEAVY_LOSS;
	if (reason) {
		host_fall_back(p, tp, c, reason);
		return;
	}

	if (!c->source.rate) {
		/* Nobody has answered yet. Until somebody does, or it is clear that nobody will, as any TCP starts.
		 */
		tp->snd_cwnd += acked;
		return;
	}
	host_update_pacing_boost(tp, c, !recovering && !c->restart_window && c->source.mode == MAXNET_PRICED);
	/* After a time-out: twice as much each round trip, as long as prices come. */
	if (c->restart_window && c->round.rounds_without_echo < 2)
		c->restart_window += acked;
	host_set_window_and_pacing(tp, c);
}

/* ------------------------------------------------------------------ what TCP calls */

/* BPF_PROG() names a context that not everybody uses. */
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wunused-parameter"

SEC("struct_ops")
void BPF_PROG(waterfill_law_init, struct sock *sk)
{
	const struct host_params *p = host_parameters();
	struct host_connection *c = host_connection_of(sk);

	if (!p)
		return;
	if (!c) { /* not of our cgroup or namespace, or older than the programs */
		host_use_kernel_law(sk, p);
		return;
	}
	c->flags |= HOST_LAW_ACTIVE | HOST_LAW_SELECTED;
	if (!(c->flags & HOST_ESTABLISHED))
		return;
	if (!(c->flags & HOST_NEGOTIATED)) {
		host_fall_back(p, tcp_sk(sk), c, c->reason ?: HOST_PEER_UNSUPPORTED);
		return;
	}
	host_init_source(p, tcp_sk(sk), c);
	host_set_window_and_pacing(tcp_sk(sk), c);
}

SEC("struct_ops")
void BPF_PROG(waterfill_law_release, struct sock *sk)
{
	struct host_connection *c = host_connection_of(sk);

	if (!c)
		return;
	if (c->flags & HOST_PACED && sk->sk_max_pacing_rate == ~0ul && sk->sk_pacing_status == SK_PACING_NEEDED)
		sk->sk_pacing_status = SK_PACING_NONE;
	c->flags &= ~(HOST_LAW_ACTIVE | HOST_LAW_STARTED | HOST_PACED);
}

/* Kernels before 6.10 give (sk, rs), later ones (sk, ack, flag, rs): what is common to both is all that is needed. */
SEC("struct_ops")
void BPF_PROG(waterfill_law_control, struct sock *sk)
{
	const struct host_params *p = host_parameters();
	struct host_connection *c = host_connection_of(sk);

	if (!p)
		return;
	if (!c) { /* the programs were replaced by some that keep another state */
		host_use_kernel_law(sk, p);
		return;
	}
	if (!(c->flags & HOST_ESTABLISHED))
		return; /* the SYN-ACK, before init() */
	/* So says init(). Once in some hundred connections it did not stick, for a reason not found, and data asked for no price. */
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

	if (c && c->source.rate)
		return window > 2 ? window : 2; /* a loss says nothing */
	window = window * 7 / 10; /* not priced: as CUBIC, which takes over */
	return window > 2 ? window : 2;
}

SEC("struct_ops")
__u32 BPF_PROG(waterfill_law_undo, struct sock *sk)
{
	return tcp_sk(sk)->snd_cwnd;
}

SEC("struct_ops")
void BPF_PROG(waterfill_law_event, struct sock *sk, enum tcp_ca_event event)
{
	struct host_connection *c = host_connection_of(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	__u64 idle;

	if (!c || !(c->flags & HOST_LAW_STARTED))
		return;
	if (event == CA_EVENT_LOSS) {
		c->restart_window = 1;
		c->timeouts++;
	}
	if (event == CA_EVENT_TX_START && c->source.rate && tp->tcp_mstamp > c->last_ack_us) {
		/* The price is as old as the silence. */
		idle = tp->tcp_mstamp - c->last_ack_us;
		if (idle > 200000 && idle > tp->srtt_us / 2 && !c->restart_window && tp->snd_cwnd > INITIAL_WINDOW) {
			c->restart_window = INITIAL_WINDOW;
			tp->snd_cwnd = INITIAL_WINDOW;
		}
	}
}

/* At 24 Mbit/s and above, super-packets are of two packets and more by themselves; below, pairs would be bursts. */
SEC("struct_ops")
__u32 BPF_PROG(waterfill_law_segments, struct sock *sk)
{
	return 1;
}

#pragma clang diagnostic pop

SEC(".struct_ops.link")
struct tcp_congestion_ops waterfill_law = {
	.init = (void *)waterfill_law_init,
	.release = (void *)waterfill_law_release,
	.cong_control = (void *)waterfill_law_control,
	.ssthresh = (void *)waterfill_law_ssthresh,
	.undo_cwnd = (void *)waterfill_law_undo,
	.cwnd_event = (void *)waterfill_law_event,
	.min_tso_segs = (void *)waterfill_law_segments,
	.flags = TCP_CONG_NON_RESTRICTED, /* anybody may use it, in any network namespace */
	.name = "bpf_maxnet",
};

#endif
