/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * MaxNet on a host: what a TCP adds to the law of maxnet.h, as pure arithmetic.
 *
 * The kernel's BPF program (waterfill-linux/bpf/host_law.h) and the simulator (`arithmetic = "kernel-host"`) compile
 * these lines. docs/explanation/kernel-programs.md gives the reasons at length.
 *
 *   addition          function                   why
 *   ----------------  -------------------------  --------------------------------------------------------------------
 *   smallest tau      maxnet_host_tau()          a price is up to dt_p = 1 ms old, so no control loop is faster
 *   pairs             maxnet_host_tau()          with less than a packet per RTT the next echo comes with the next
 *                                                packet, or with the one after that: tau is twice the time of two
 *                                                packets, in steps of two
 *   xi restart        maxnet_host_echo()         a rate that fell too far would need minutes at the longer tau: after
 *                                                such a step the next price is applied as if it were the first
 *   slowest packet    maxnet_host_min_rate()     one per 200 ms, or the source would learn too late that a price fell
 *   whole packets     maxnet_host_set_limit()    the window is rounded up, with a margin for three super-packets, so
 *                                                that pacing sets the rate and the window does not
 *   ACK clock         maxnet_host_set_limit()    where pacing needs too many timers and the window is large, ACKs are
 *                                                the clock, without the margin
 *   pacing boost      maxnet_host_update_boost() makes up for late timers
 *   restart           maxnet_host_time_out()     after a time-out one packet, doubled per RTT up to the law's window
 *   slow start        maxnet_host_control()      until a router answers
 *   receiver's tau    maxnet_host_receive()      at least the sender's smallest tau
 *
 * Only the BPF program has what depends on a real TCP or path: the fallback where no price arrives, the decrease while
 * SACK leaves no space for an echo, and the smaller window after silence.
 *
 * Ranges are those of maxnet.h. TCP's counters wrap at 2^32.
 */
#ifndef WATERFILL_MAXNET_HOST_H
#define WATERFILL_MAXNET_HOST_H

#include "maxnet.h"

/* Limits of the RTT that the law gets. Half a second is the time of two packets at 48 kbit/s. */
#define MAXNET_HOST_TAU_MIN_US 1000
#define MAXNET_HOST_TAU_MAX_US 500000
/* At the slowest rate. With fewer packets, the source would learn too late that the price has fallen. */
#define MAXNET_HOST_MAX_PACKET_INTERVAL_US 200000
/* TCP sizes its send buffer as an int: 2 windows, with up to 2.9 times of overhead. */
#define MAXNET_HOST_WINDOW_MAX_BYTES (256u << 20)
/* Largest super-packet. */
#define MAXNET_HOST_BURST_MAX_BYTES 65536
/* Bursts that would be more frequent are clocked by ACKs: 14000 timers per second took a seventh of a VM's CPU. */
#define MAXNET_HOST_MIN_TIMER_INTERVAL_US 100
/* Windows of this many bursts can be clocked by ACKs: the margin of three bursts is then below 2.4 %. */
#define MAXNET_HOST_ACK_CLOCK_MIN_BURSTS 128
/* Limits of the pacing boost, 2^-10. TCP itself makes up for half a burst. */
#define MAXNET_HOST_BOOST_ONE 1024
#define MAXNET_HOST_BOOST_MAX (8 * MAXNET_HOST_BOOST_ONE)
/* Packets and time for one measurement of the rate: a burst more or less, of 43 packets of 1500 bytes, is 4 %. */
#define MAXNET_HOST_BOOST_PACKETS 1024
#define MAXNET_HOST_BOOST_INTERVAL_US 1000

/* The sending side of one connection beyond the law's state; initialise with zeros and maxnet_host_init(). */
struct maxnet_host {
	__u64 boost_rate;      /* when the boost was last updated: the law's rate, bit/s, */
	__u64 boost_since_us;  /* the time, */
	__u32 boost_delivered; /* and the packets delivered since the connection began */
	__u32 pacing_boost;    /* 2^-10: pacing rate over the law's rate, which makes up for late timers */
	__u32 restart_window;  /* packets: upper limit of the window while restarting; 0: not restarting */
	__u32 reserved;
};

/* What TCP knows of a connection when an ACK arrives. */
struct maxnet_host_tcp {
	__u64 now_us;
	__u32 srtt_us;         /* smoothed RTT, times 8 */
	__u32 delivered;       /* packets since the connection began */
	__u32 packet;          /* bytes of a full packet from the IP header on, as the law and the routers count them */
	__u32 payload;         /* bytes of it that pacing counts */
	__u32 max_segments;    /* packets of a super-packet; 1 if the device has no TSO */
	__u32 recovering;      /* 1: recovery from a loss */
	__u32 app_limited;     /* 1: the application limits the rate */
	__u32 window_limited;  /* 1: the window limits the rate */
	__u32 unlimited;       /* 1: the application sets no limit of the pacing rate */
	__u32 reserved;
};

/* What TCP may send. */
struct maxnet_host_limit {
	__u64 rate;        /* bytes/s of payload: pacing; 0 before the first field of a router */
	__u32 window;      /* packets */
	__u32 ack_clocked; /* 1: not paced */
};

MAXNET_INLINE void maxnet_host_init(struct maxnet_host *h)
{
	h->restart_window = 0;
	h->pacing_boost = MAXNET_HOST_BOOST_ONE;
}

/* The retransmission timer fired. */
MAXNET_INLINE void maxnet_host_time_out(struct maxnet_host *h)
{
	h->restart_window = 1;
}

/* Returns the slowest rate, bit/s, for packets of this size. */
MAXNET_INLINE __u64 maxnet_host_min_rate(__u32 packet)
{
	return (__u64)packet * 8000000 / MAXNET_HOST_MAX_PACKET_INTERVAL_US;
}

/* Returns the RTT of the law's control loop, tau, in us; 0: not known. It is the path's RTT, or twice the time of two
 * packets if that is longer, and changes in factors of two.
 */
MAXNET_INLINE __u32 maxnet_host_tau(const struct maxnet_source *s, __u32 base_rtt_us)
{
	__u32 rtt = base_rtt_us;
	__u32 tau = s->base_rtt;
	__u64 pair;

	if (!rtt)
		return 0;
	if (rtt < MAXNET_HOST_TAU_MIN_US)
		rtt = MAXNET_HOST_TAU_MIN_US;
	if (!s->rate || tau <= rtt)
		tau = rtt;
	if (!s->rate)
		return tau;
	pair = 2ull * s->packet * 8000000 / s->rate; /* us */
	if (pair > MAXNET_HOST_TAU_MAX_US)
		pair = MAXNET_HOST_TAU_MAX_US;
	if (tau < pair || tau > 4 * pair)
		return 2 * pair > rtt ? 2 * pair : rtt;
	return tau;
}

/* Takes an acknowledgement: with an echo, or with at most a new base RTT (0: not known). */
MAXNET_INLINE void maxnet_host_echo(const struct maxnet_params *p, struct maxnet_source *s, __u64 now_us,
				    __u32 base_rtt_us, __u32 has_echo, __u32 field)
{
	__u32 tau = maxnet_host_tau(s, base_rtt_us);

	if (tau >= 2 * s->base_rtt || s->rate < maxnet_host_min_rate(s->packet))
		s->has_price = 0;
	if (has_echo)
		maxnet_ack(p, s, now_us, tau, field);
	else
		maxnet_base_rtt(p, s, tau);
}

/* Takes the field of a data packet, and an RTT sample (0: none). */
MAXNET_INLINE void maxnet_host_receive(const struct maxnet_params *p, struct maxnet_receiver *r, __u64 now_us,
				       __u32 rtt_us, __u32 field)
{
	if (rtt_us && rtt_us < MAXNET_HOST_TAU_MIN_US)
		rtt_us = MAXNET_HOST_TAU_MIN_US;
	maxnet_receive(p, r, now_us, rtt_us, field);
}

/* Updates the pacing boost from the delivered rate, to make up for late timers. `usual` is false during recovery, a
 * restart or a start, when the rates are not comparable.
 */
MAXNET_INLINE void maxnet_host_update_boost(struct maxnet_host *h, const struct maxnet_source *s,
					    const struct maxnet_host_tcp *tcp, int usual)
{
	__u64 took = tcp->now_us - h->boost_since_us;
	__u32 packets = tcp->delivered - h->boost_delivered;
	__u64 meant = h->boost_rate < s->rate ? h->boost_rate : s->rate;
	__u64 got, share;

	if (usual && (packets < MAXNET_HOST_BOOST_PACKETS || took < MAXNET_HOST_BOOST_INTERVAL_US ||
		      took < tcp->srtt_us >> 2)) /* two RTTs */
		return;
	if (usual && tcp->app_limited) {
		h->pacing_boost -= (h->pacing_boost - MAXNET_HOST_BOOST_ONE) / 4;
	} else if (usual && meant) {
		/* 29 + 23 bits, as both ends' windows bound it */
		got = (__u64)packets * s->packet * 8000000 / took;
		if (got < meant - meant / 32 && !tcp->window_limited) {
			share = (meant - got) * MAXNET_HOST_BOOST_ONE / (got + 1);
			share = share < MAXNET_HOST_BOOST_ONE ? share : MAXNET_HOST_BOOST_ONE;
			h->pacing_boost += h->pacing_boost * share / (2 * MAXNET_HOST_BOOST_ONE);
		} else if (got > meant) {
			share = (got - meant) * MAXNET_HOST_BOOST_ONE / got;
			h->pacing_boost -= h->pacing_boost * share / (2 * MAXNET_HOST_BOOST_ONE);
		}
		h->pacing_boost = h->pacing_boost < MAXNET_HOST_BOOST_MAX ? h->pacing_boost : MAXNET_HOST_BOOST_MAX;
		h->pacing_boost = h->pacing_boost > MAXNET_HOST_BOOST_ONE ? h->pacing_boost : MAXNET_HOST_BOOST_ONE;
	}
	h->boost_since_us = tcp->now_us;
	h->boost_rate = s->rate;
	h->boost_delivered = tcp->delivered;
}

/* Sets window and pacing rate from the law's. Pacing sets the rate, and the window has a margin of three super-packets;
 * where pacing would need too many timers and the window is large, ACKs are the clock and the window has no margin.
 * Changes nothing before the first field of a router.
 */
MAXNET_INLINE void maxnet_host_set_limit(struct maxnet_host *h, struct maxnet_source *s,
					 const struct maxnet_host_tcp *tcp, struct maxnet_host_limit *limit)
{
	__u32 payload = tcp->payload;
	__u32 packet = tcp->packet;
	__u64 rate, burst, window;
	int large, ack_clocked;

	s->packet = packet;
	rate = s->rate;
	if (!rate)
		return;
	if (rate < maxnet_host_min_rate(packet))
		rate = maxnet_host_min_rate(packet);
	/* TCP paces bytes of payload. */
	rate = fixed_scale(rate / 8, payload, packet); /* 54 bits */
	window = s->window < MAXNET_HOST_WINDOW_MAX_BYTES ? s->window : MAXNET_HOST_WINDOW_MAX_BYTES;
	window = (window + packet - 1) / packet;
	burst = rate >> 10; /* TCP makes super-packets of about a millisecond */
	if (burst > MAXNET_HOST_BURST_MAX_BYTES)
		burst = MAXNET_HOST_BURST_MAX_BYTES;
	burst = burst / payload;
	if (burst > tcp->max_segments)
		burst = tcp->max_segments;
	if (!burst)
		burst = 1;
	large = window >= MAXNET_HOST_ACK_CLOCK_MIN_BURSTS * burst;
	ack_clocked = large && s->mode == MAXNET_PRICED && tcp->unlimited &&
		      burst * payload * (1000000 / MAXNET_HOST_MIN_TIMER_INTERVAL_US) < rate; /* 16 + 15 bits */
	if (!ack_clocked) {
		if (large)
			rate += rate / 4;
		else
			rate = rate * h->pacing_boost / MAXNET_HOST_BOOST_ONE; /* 47 + 13 bits */
		window += 3 * burst;
	}
	if (h->restart_window) {
		if (window <= h->restart_window)
			h->restart_window = 0;
		else
			window = h->restart_window;
	}
	limit->rate = rate;
	limit->window = (__u32)window;
	limit->ack_clocked = ack_clocked;
}

/* Sets the limits after maxnet_host_echo(). `acked`: packets of this acknowledgement; `has_price`: prices arrive. */
MAXNET_INLINE void maxnet_host_control(struct maxnet_host *h, struct maxnet_source *s,
				       const struct maxnet_host_tcp *tcp, __u32 acked, int has_price,
				       struct maxnet_host_limit *limit)
{
	if (!s->rate) {
		/* No router has answered yet: slow start, until one does or it is clear that none will. */
		limit->window += acked;
		return;
	}
	maxnet_host_update_boost(h, s, tcp, !tcp->recovering && !h->restart_window && s->mode == MAXNET_PRICED);
	/* After a time-out: double per RTT, as long as echoes arrive. */
	if (h->restart_window && has_price)
		h->restart_window += acked;
	maxnet_host_set_limit(h, s, tcp, limit);
}

#endif
