/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Additions of a TCP to any law, as pure arithmetic: from a rate and a window in bytes to the limits of TCP.
 *
 * The kernel's BPF programs (waterfill-linux/bpf/control.inc.h) and the simulator (`arithmetic = "kernel-host"`)
 * compile these lines. docs/explanation/kernel-programs.md gives the reasons at length.
 *
 *   addition          function                why
 *   ----------------  ----------------------  -----------------------------------------------------------------------
 *   slowest packet    host_min_rate()         one per 200 ms, or the source would learn too late that it may send less
 *   whole packets     host_set_send()         the window is rounded up, with a margin for three super-packets, so
 *                                             that pacing sets the rate and the window does not
 *   ACK clock         host_set_send()         where pacing needs too many timers and the window is large, ACKs are
 *                                             the clock, without the margin
 *   pacing boost      host_update_boost()     makes up for late timers
 *   restart           host_time_out()         after a time-out one packet, doubled per RTT up to the law's window
 *   slow start        host_control()          until a router answers
 *   silent recovery   host_silent_round()     SACK blocks can leave no space for an echo, and the last one grows old
 *   fewer calls       host_is_due()           each costs time, and a law that follows an RTT needs few of them
 *
 * A law that is not paced (LAW_PACED 0) gets its window in whole packets and nothing else: its own time-out and start
 * are part of the law.
 *
 * Three additions depend on a real TCP or path, so only the BPF program has them: the fallback where no router answers,
 * the decrease while SACK leaves no space for an echo, and the smaller window after silence.
 *
 * TCP's counters wrap at 2^32.
 */
#ifndef WATERFILL_HOST_H
#define WATERFILL_HOST_H

/* Included by a law's header after it defines LAW_PACED. */
#include "law.h"

#ifndef LAW_RATE_ONLY
#define LAW_RATE_ONLY 0
#endif
#ifndef LAW_RESTS_LOSING
#define LAW_RESTS_LOSING(p) 0
#endif

/* At the slowest rate. With fewer packets, the source would learn too late that it may send less. */
#define HOST_MAX_PACKET_INTERVAL_US 200000
/* TCP's own largest window (RFC 7323): 300 Gbit/s at 28 ms. */
#define HOST_WINDOW_MAX_BYTES (1u << 30)
/* The law is called at most this often, or 16 times per RTT: a source cannot use more. */
#define HOST_MIN_CALL_INTERVAL_US 50
#define HOST_CALLS_PER_RTT 16
/* Largest super-packet. */
#define HOST_BURST_MAX_BYTES 65536
/* Bursts that would be more frequent are clocked by ACKs: 14000 timers per second took a seventh of a VM's CPU. */
#define HOST_MIN_TIMER_INTERVAL_US 100
/* Windows of this many bursts can be clocked by ACKs: the margin of three bursts is then below 2.4 %. */
#define HOST_ACK_CLOCK_MIN_BURSTS 128
/* Limits of the pacing boost, 2^-10. TCP itself makes up for half a burst. */
#define HOST_BOOST_ONE 1024
#define HOST_BOOST_MAX (8 * HOST_BOOST_ONE)
/* Packets and time for one measurement of the rate: a burst more or less, of 43 packets of 1500 bytes, is 4 %. */
#define HOST_BOOST_PACKETS 1024
#define HOST_BOOST_INTERVAL_US 1000
/* Packets per RTT in a recovery without echoes: more RTTs than one may have. */
#define HOST_SILENT_WINDOW_MAX 1024

/* The sending side of one connection beyond the law's state; initialise with zeros and host_init(). */
struct host_pace {
	__u64 called_us;       /* when the law was called last */
	__u64 boost_rate;      /* when the boost was last updated: the law's rate, bit/s, */
	__u64 boost_since_us;  /* the time, */
	__u32 boost_delivered; /* and the packets delivered since the connection began */
	__u32 pacing_boost;    /* 2^-10: pacing rate over the law's rate, which makes up for late timers */
	__u32 restart_window;  /* packets: upper limit of the window while restarting; 0: not restarting */
	__u32 silent_window;   /* packets: at least this many per RTT in a recovery without echoes */
};

/* Limits of TCP. */
struct host_send {
	__u64 rate;        /* bytes/s of payload: pacing; 0 before the first field of a router */
	__u32 window;      /* packets */
	__u32 ack_clocked; /* 1: not paced */
};

FIXED_INLINE void host_init(struct host_pace *h)
{
	h->restart_window = 0;
	h->silent_window = 0;
	h->pacing_boost = HOST_BOOST_ONE;
}

/* The retransmission timer fired. */
FIXED_INLINE void host_time_out(struct host_pace *h)
{
	h->restart_window = 1;
	h->silent_window = 0;
}

/* TCP takes a time-out back, and with it all losses. A window of the packets that it counts as in flight could send nothing
 * that shows that they are lost; only the timer would, many seconds later.
 */
FIXED_INLINE void host_time_out_undone(struct host_pace *h, __u32 in_flight)
{
	if (h->restart_window && h->restart_window < in_flight + 2)
		h->restart_window = in_flight + 2;
}

/* Ends an RTT of recovery without an echo. The last one may be from the height of an overload, and at its rate the repair
 * of many losses takes longer than the overload. So the source sends at least as Reno would from one packet on.
 */
FIXED_INLINE void host_silent_round(struct host_pace *h, int lossy)
{
	if (lossy)
		h->silent_window /= 2;
	else if (h->silent_window < HOST_SILENT_WINDOW_MAX)
		h->silent_window++;
}

/* Returns whether to call the law with this acknowledgement, or to keep it for the next call. Before the first field of a
 * router (`rate` 0) every acknowledgement counts, as slow start needs.
 */
FIXED_INLINE int host_is_due(struct host_pace *h, const struct law_tcp *tcp, __u64 rate)
{
	__u64 least = tcp->base_rtt_us / HOST_CALLS_PER_RTT;

	if (least < HOST_MIN_CALL_INTERVAL_US)
		least = HOST_MIN_CALL_INTERVAL_US;
	if (rate && tcp->now_us - h->called_us < least)
		return 0;
	h->called_us = tcp->now_us;
	return 1;
}

/* Returns the slowest rate, bit/s, for packets of this size. */
FIXED_INLINE __u64 host_min_rate(__u32 packet)
{
	return (__u64)packet * 8000000 / HOST_MAX_PACKET_INTERVAL_US;
}

/* Updates the pacing boost from the delivered rate, to make up for late timers. `usual` is false during recovery, a
 * restart or a start, when the rates are not comparable.
 */
FIXED_INLINE void host_update_boost(struct host_pace *h, const struct law_limit *law, const struct law_tcp *tcp,
				    int usual)
{
	__u64 took = tcp->now_us - h->boost_since_us;
	__u32 packets = tcp->delivered - h->boost_delivered;
	__u64 meant = h->boost_rate < law->rate ? h->boost_rate : law->rate;
	__u64 got, share;

	if (usual && (packets < HOST_BOOST_PACKETS || took < HOST_BOOST_INTERVAL_US ||
		      took < tcp->srtt_us >> 2)) /* two RTTs */
		return;
	if (usual && tcp->app_limited) {
		h->pacing_boost -= (h->pacing_boost - HOST_BOOST_ONE) / 4;
	} else if (usual && meant) {
		/* 29 + 23 bits, as both ends' windows bound it */
		got = (__u64)packets * law->packet * 8000000 / took;
		if (got < meant - meant / 32 && !tcp->window_limited) {
			share = (meant - got) * HOST_BOOST_ONE / (got + 1);
			share = share < HOST_BOOST_ONE ? share : HOST_BOOST_ONE;
			h->pacing_boost += h->pacing_boost * share / (2 * HOST_BOOST_ONE);
		} else if (got > meant) {
			share = (got - meant) * HOST_BOOST_ONE / got;
			h->pacing_boost -= h->pacing_boost * share / (2 * HOST_BOOST_ONE);
		}
		h->pacing_boost = h->pacing_boost < HOST_BOOST_MAX ? h->pacing_boost : HOST_BOOST_MAX;
		h->pacing_boost = h->pacing_boost > HOST_BOOST_ONE ? h->pacing_boost : HOST_BOOST_ONE;
	}
	h->boost_since_us = tcp->now_us;
	h->boost_rate = law->rate;
	h->boost_delivered = tcp->delivered;
}

/* Returns the law's window, bytes; twice the rate's where the rate alone limits. */
FIXED_INLINE __u64 host_window(const struct law_limit *law, const struct law_tcp *tcp)
{
	__u64 window = law->window;

	if (!window) {
		__u32 rtt = tcp->srtt_us ? tcp->srtt_us / 8 : tcp->base_rtt_us;

		window = fixed_scale(law->rate, rtt, 4000000); /* 36 + 29; 22 + 29 bits */
	}
	return window < HOST_WINDOW_MAX_BYTES ? window : HOST_WINDOW_MAX_BYTES;
}

/* Sets window and pacing rate from the law's. Pacing sets the rate, and the window has a margin of three super-packets.
 * Where pacing would need too many timers and the window is large, ACKs are the clock, and the window has no margin.
 * Changes nothing before the first field of a router.
 */
FIXED_INLINE void host_set_send(struct host_pace *h, const struct law_limit *law, const struct law_tcp *tcp,
				struct host_send *send)
{
	__u32 payload = tcp->payload;
	__u32 packet = tcp->packet;
	__u64 rate, burst, window;
	int large, ack_clocked;

	rate = law->rate;
	if (!rate)
		return;
	window = host_window(law, tcp);
	if (LAW_PACED) {
		if (rate < host_min_rate(packet))
			rate = host_min_rate(packet);
		/* TCP paces bytes of payload. */
		rate = fixed_scale(rate / 8, payload, packet); /* 54 bits */
		window = (window + packet - 1) / packet;
		burst = rate >> 10; /* TCP makes super-packets of about a millisecond */
		if (burst > HOST_BURST_MAX_BYTES)
			burst = HOST_BURST_MAX_BYTES;
		burst = burst / payload;
		if (burst > tcp->max_segments)
			burst = tcp->max_segments;
		if (!burst)
			burst = 1;
		/* A margin of pacing needs a window that limits the rate. */
		large = !LAW_RATE_ONLY && law->window && window >= HOST_ACK_CLOCK_MIN_BURSTS * burst;
		ack_clocked = large && law->steady && tcp->unlimited &&
			      burst * payload * (1000000 / HOST_MIN_TIMER_INTERVAL_US) < rate; /* 16 + 15 bits */
		if (!ack_clocked) {
			if (large)
				rate += rate / 4;
			else
				rate = rate * h->pacing_boost / HOST_BOOST_ONE; /* 47 + 13 bits */
			window += 3 * burst;
		}
	} else {
		window /= packet;
		if (!window)
			window = 1;
		rate /= 6; /* TCP sizes super-packets by it: 4/3 of the rate, as bytes */
		ack_clocked = 1;
	}
	if (h->restart_window) {
		if (window <= h->restart_window)
			h->restart_window = 0;
		else
			window = h->restart_window;
	}
	if (window < h->silent_window)
		window = h->silent_window;
	if (LAW_PACED && h->silent_window) {
		__u32 rtt = tcp->srtt_us >= 8 ? tcp->srtt_us / 8 : 1;
		__u64 least = (__u64)h->silent_window * payload * 1000000 / rtt; /* 11 + 16 + 20 bits */

		rate = rate > least ? rate : least;
	}
	send->rate = rate;
	send->window = (__u32)window;
	send->ack_clocked = ack_clocked;
}

/* Sets what TCP may send after law_ack() and law_limit(). `has_echoes`: they still arrive. */
FIXED_INLINE void host_control(struct host_pace *h, const struct law_limit *law, const struct law_tcp *tcp,
			       int has_echoes, struct host_send *send)
{
	if (!law->rate) {
		/* No router has answered yet: slow start, until one does or it is clear that none will. */
		send->window += tcp->acked;
		return;
	}
	host_update_boost(h, law, tcp, !tcp->recovering && !h->restart_window && law->steady);
	/* After a time-out: double per RTT, as long as echoes arrive. */
	if (h->restart_window && has_echoes)
		h->restart_window += tcp->acked;
	host_set_send(h, law, tcp, send);
}

#endif
