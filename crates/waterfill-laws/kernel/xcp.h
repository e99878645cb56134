/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * XCP, P-XCP and iXCP, fixed-point version, behind the interface of law.h.
 *
 * src/protocols/xcp, pxcp.rs and ixcp document the laws, their equations and how the papers are read; the tags
 * [paper:...] are the same in both. This file says how the laws are computed without floating point. It is XCP;
 * pxcp.h and ixcp.h define XCP_SCALED or XCP_LOCAL and include it.
 *
 *
 * On the wire
 *
 *   data       RTT (3 bytes), time per byte (3), feedback (5); iXCP: bottleneck (2), next bottleneck (2)
 *   ACKs       heard (1 bit) and total (47 bits); iXCP: next bottleneck (2 bytes)
 *
 * The time per byte is rtt/cwnd, so X is a product with the packet's bytes at any router and for any packet. The feedback
 * is draft-falk's change of throughput, of each segment. It is linear: a code in 40 bits is read and written without
 * a search for its exponent, and no rounding depends on its size. 2^39 is zero, and 0 is "no router wrote". With
 * timestamps both values fit: 21 and 27 of 28 bytes. A packet without an RTT gets the feedback zero, which changes
 * nothing and shows that a router is there.
 *
 * A receiver returns the sum of all feedback since the connection's start (XCP-r), so a lost, merged or unsent echo
 * loses nothing. A sum in 2^-8 bytes modulo 2^47 is read as a change of up to 2^38 bytes (275 GB) between two echoes: the
 * window of 137 Gbit/s at an RTT of 16 s, or of 1 Tbit/s at 2 s, gained or lost as a whole.
 *
 *
 * Scales
 *
 * RTT and time per byte are codes of float.h, within 2^-20 of the number. The RTT is in 2^-24 s and at most 16 s, the
 * time per byte in 2^-52 s and at most 1/4 s (32 bit/s). Whole units of 2^-52 s are 3 10^-5 of the time per byte at 1
 * Tbit/s and 3 % at 1 Pbit/s.
 *
 *   field            scale             range                   why it fits
 *   ---------------  ----------------  ----------------------  ------------------------------------------------------
 *   alpha, beta,     2^-32             0 .. 1                  10^-6 in parameters
 *   gamma
 *   rates            2^-16 byte/s      63 bits, or a sign      C is clamped to 2^46 byte/s (563 Tbit/s)
 *   residues         2^-16 byte/s      0 .. 2^62               clamped, as C
 *   feedback         2^-8 byte/s       2^31 (17 Gbit/s)        40 bits and per segment; larger changes take several
 *   factors          24 bits, 2^-s     any                     by the larger of numerator and denominator
 *   X, sum of X      2^-40 s           2^24 s                  a sum is d times the flows: 2^24 flows at d = 1 s
 *   sum of rtt X     2^-42 s^2         2^22 s^2                4 10^6 flows of 1 s at d = 1 s; rtt is clamped to
 *                                                              max_interval (4 s), X to 2 s
 *   total            2^-16 bytes       64 bits, wraps
 *   window           2^-8 bytes        a packet .. 2^44 bytes  clamped
 *   bytes of packet                    20 bits                 super-packets have up to 2^19; clamped
 *   segments                           14 bits                 2^39 2^8 2^14 of feedback; clamped
 *   intervals        us                1 .. 2^22               clamped but for min_interval: daemon and simulator allow 4 s
 *   weight           10^-3             1 .. 10^6               clamped; a time per byte before it to 1 s
 *   queue            bytes             0 .. 2^40               clamped
 *
 * Sums that headers of false contents make too large wrap and give one interval of wrong feedback, which the residues
 * bound; false headers can do that anyway.
 *
 * Factors C_p and C_n are within 2^-22 below their values. Feedback is truncated to its code, and each CPU carries what it
 * truncated to the next packet. So what a CPU gives in an interval is the sum of what it owes, to one code.
 *
 *
 * Differences from the law in real numbers
 *
 *   - A router counts and writes in one call, at the packet's arrival (law.h).
 *   - The residues of an interval are split among CPUs: gains by their part of the last interval's sum of X, and losses
 *     by their part of its bytes. In iXCP the shuffled rate is split by the sums of local packets. A CPU takes its part
 *     with its first packet of an interval, which `epoch` shows, so packets change no shared word. Its sums count since
 *     it last took a part. A CPU without a packet for some intervals has the part of an older one, and a new CPU none.
 *   - The persistent queue is the smallest at ticks, every 1 to 2 ms, not at each departure. A queue that empties only
 *     between ticks is seen too long: in the simulator, mean rates and queues of Fig. 1 of ixcp-2007 agree (Validation
 *     of src/protocols/xcp). The measurement ends at the tick nearest to its time.
 *   - d is a whole number of microseconds, of RTTs in 2^-20 s.
 *   - The first window is the host's own unless the parameter says otherwise.
 *   - iXCP's links have names of 16 bits: of two links on a flow's path, one in 65,535 share theirs. Then they share
 *     their local flows too, and act as XCP does for flows of the other link.
 */
#ifndef WATERFILL_XCP_H
#define WATERFILL_XCP_H

#include "float.h"
#include "law.h"

/* 1: P-XCP. */
#ifndef XCP_SCALED
#define XCP_SCALED 0
#endif
/* 1: iXCP. */
#ifndef XCP_LOCAL
#define XCP_LOCAL 0
#endif

#if XCP_LOCAL
#define LAW WATERFILL_IXCP
#define LAW_FORWARD_BYTES 15
#define LAW_ECHO_BYTES 8
#else
#define LAW (XCP_SCALED ? WATERFILL_PXCP : WATERFILL_XCP)
#define LAW_FORWARD_BYTES 11
#define LAW_ECHO_BYTES 6
#endif
#define LAW_PACED 0
#define LAW_RESTS_WITH_QUEUE 0
#define LAW_REACTION_US(p) ((p)->first_interval)

/* Longest RTT, 2^-24 s. */
#define XCP_RTT_MAX ((1ull << 28) - 1)
/* Zero feedback, and the largest. */
#define XCP_FEEDBACK_ZERO (1ull << 39)
#define XCP_FEEDBACK_MAX (XCP_FEEDBACK_ZERO - 1)
/* A flag for a received feedback, and the total's bits. */
#define XCP_HEARD (1ull << 47)
#define XCP_TOTAL_MASK (XCP_HEARD - 1)
/* Largest rate, 2^-16 byte/s. */
#define XCP_RATE_MAX (1ull << 62)
/* Largest window, 2^-8 bytes. */
#define XCP_WINDOW_MAX (1ull << 52)
#define XCP_QUEUE_MAX (1ull << 40)
/* Longest time per byte before its weight, 2^-52 s; a packet's code ends at 2^50. */
#define XCP_TIME_MAX (1ull << 52)
#define XCP_BYTES_MAX ((1u << 20) - 1)
#define XCP_SEGMENTS_MAX (1u << 14)
#define XCP_X_MAX (1ull << 41)
#define XCP_INTERVAL_MAX_US (1u << 22)
/* Ticks sample the queue this often: an interval's 32nd part within these bounds. */
#define XCP_SAMPLE_MIN_US 1000
#define XCP_SAMPLE_MAX_US 2000
/* Makes a factor of X in 2^-40 s one of X in 2^-52 s. */
#define XCP_FACTOR_OF_TIME (12ull << 32)
/* The minimum time over which the smallest queue is measured (2 ms in the authors' simulator). */
#define XCP_QUEUE_INTERVAL_MIN_US 2000

struct law_params {
	__u32 alpha;	      /* 10^-6 */
	__u32 beta;	      /* 10^-6 */
	__u32 gamma;	      /* 10^-6 */
	__u32 min_interval;   /* us */
	__u32 max_interval;   /* us */
	__u32 first_interval; /* us */
	__u32 first_window;   /* 10^-3 packets; 0: the host's */
	__u32 halve_on_loss;
	__u32 weight;	 /* 10^-3 of this connection; 0: 1 */
	__u32 count_own; /* 1: packets of other protocols are not load */
#if XCP_LOCAL
	__u32 link; /* this link's name: 1 .. 65535 */
	__u32 claim_least;   /* 1: claim = "least-feedback" */
	__u32 shuffle_draft; /* 1: shuffle = "draft" */
	__u32 reserved;
#endif
};

struct law_sums {
	__u64 bytes;  /* of all packets */
	__u64 volume; /* of packets with this law's value */
	__u64 x;      /* 2^-40 s */
	__u64 rtt_x;  /* 2^-42 s^2 */
#if XCP_SCALED
	__u64 lowered_x; /* of packets whose feedback this router lowered */
#endif
#if XCP_LOCAL
	__u64 local_volume; /* of packets that name this link */
	__u64 local_x;
#endif
};

/* Bytes of the packets that take part in shuffling. */
#if XCP_LOCAL
#define XCP_LOCAL_VOLUME(sums) ((sums)->local_volume)
#else
#define XCP_LOCAL_VOLUME(sums) ((sums)->volume)
#endif

struct law_cpu {
	struct law_sums sums;
	__u64 seen_x; /* when it took its part of the residues */
	__u64 seen_volume;
#if XCP_LOCAL
	__u64 seen_local_x;
	__u64 seen_local_volume;
#endif
	__u64 gain_left; /* 2^-16 byte/s */
	__u64 loss_left;
	__s64 carry; /* 2^-16 byte/s that were due and not written */
	__u64 epoch;
};

struct law_link {
	/* Read for every packet. */
	__u64 epoch; /* of the control interval */
	__u64 gain;  /* C_p, a factor */
	__u64 loss;  /* C_n */
#if XCP_LOCAL
	__u64 local_gain; /* what local packets get in addition */
	__u64 local_loss;
	__u32 link;
	__u32 shuffle_draft;
	__u32 claims; /* 1: a packet whose feedback is lowered names this link */
	__u32 claim_least;
#endif
	__u64 rtt_max; /* 2^-24 s: max_interval */
	/* Read once an interval by each CPU. */
	__u64 gain_residue; /* 2^-16 byte/s; in iXCP without what is shuffled */
	__u64 loss_residue;
	struct law_sums last; /* of the last interval */
	/* Of the tick. */
	struct law_sums arrived; /* in this control interval */
	__u64 capacity;		 /* 2^-16 byte/s */
	__u64 queue;		 /* the persistent queue, bytes */
	__u64 queue_min;	 /* since it was measured */
	__s64 spare;		 /* phi/d, 2^-16 byte/s */
	__u64 shuffled;		 /* h/d */
	__u64 alpha, beta, gamma;
	__u32 interval; /* d, us */
	__u32 elapsed;	/* of this control interval */
	__u32 until_control;
	__u32 until_queue;
	__u32 tick; /* length of the present interval between ticks */
	__u32 min_interval;
	__u32 max_interval;
	__u32 first_interval;
	__u32 count_own;
	__u32 reserved;
};

struct law_source {
	__u64 window; /* 2^-8 bytes */
	__u64 total;  /* of the last echo, 2^-8 bytes */
	__u64 rtt;    /* smoothed, 2^-24 s; 0: not known */
	__u32 rtt_code;
	__u32 time_code;
	__u32 packet;
	__u32 weight; /* 10^-3 */
	__u32 heard;  /* 1: a router has answered */
	__u32 bottleneck;
};

struct law_receiver {
	__u64 total; /* 2^-16 bytes */
	__u32 heard; /* 1: a router wrote the last value */
	__u32 next_bottleneck;
};

/* ------------------------------------------------------------------ numbers */

FIXED_INLINE __u64 xcp_min(__u64 a, __u64 b)
{
	return a < b ? a : b;
}

/* Returns bytes per us as a rate; saturates at 2^26 bytes per us. */
FIXED_INLINE __u64 xcp_rate(__u64 bytes, __u32 us)
{
	if (bytes > (__u64)us << 26)
		bytes = (__u64)us << 26;
	return fixed_scale(bytes, 1000000ull << 16, us); /* 26 + 36 bits; 24 + 36 */
}

FIXED_INLINE __u64 xcp_read_feedback(const __u8 *b)
{
	return (__u64)law_read_u24(b) << 16 | law_read_u16(b + 3);
}

FIXED_INLINE void xcp_write_feedback(__u8 *b, __u64 feedback)
{
	law_write_u24(b, (__u32)(feedback >> 16));
	law_write_u16(b + 3, (__u32)feedback);
}

/* ------------------------------------------------------------------ router: once per interval */

/* alpha (c - y) - beta b/d. [ixcp-2007:eq1] */
FIXED_INLINE __s64 xcp_spare(const struct law_link *link, __u64 input, __u64 queue, __u32 interval)
{
	__s64 drain = (__s64)fixed_part(xcp_rate(queue, interval), link->beta);

	if (link->capacity >= input)
		return (__s64)fixed_part(link->capacity - input, link->alpha) - drain;
	return -(__s64)fixed_part(input - link->capacity, link->alpha) - drain;
}

/* max{0, gamma y - |phi/d|}, y of the local packets. [ixcp-2007:eq2] [ixcp-2007:eq3] */
FIXED_INLINE __u64 xcp_shuffled(const struct law_link *link, __u64 input, __s64 spare)
{
	__u64 change = spare < 0 ? (__u64)-spare : (__u64)spare;
	__u64 most = fixed_part(input, link->gamma);

	return most > change ? most - change : 0;
}

/* Sum of rtt X over sum of X, in us. [katabi-2002:d] */
FIXED_INLINE __u64 xcp_mean_rtt(__u64 rtt_x, __u64 x)
{
	return float_product(250000, 0, float_factor(rtt_x, x)); /* the quotient is in 2^-2 s */
}

#if XCP_SCALED
/* gain N/N_b, where N is the sum of X over the interval and N_b that over the packets lowered here; both N_b and the
 * factor are at least 1. [ixcp-2007:5]
 */
FIXED_INLINE __u64 xcp_scaled(__u64 gain, __u64 x, __u64 lowered_x, __u32 us)
{
	__u64 least = us * 1099512ull; /* 2^40 10^-6 */
	__u32 bits = float_bits(gain);
	__u32 shift = (bits - 40) * (__u32)fixed_at_least(bits, 40); /* without a branch, as in float_bits() */

	lowered_x = lowered_x > least ? lowered_x : least;
	return float_product(gain >> shift, shift, float_factor(x, x < lowered_x ? x : lowered_x));
}
#endif

FIXED_INLINE __u32 xcp_bounded(const struct law_link *link, __u64 us)
{
	if (us > link->max_interval)
		return link->max_interval;
	return us > link->min_interval ? (__u32)us : link->min_interval;
}

/* Starts a control interval. The epoch changes last, because CPUs take their parts of the residues when it does. */
FIXED_INLINE void xcp_start_interval(struct law_link *link)
{
	link->last = link->arrived;
	__builtin_memset(&link->arrived, 0, sizeof(link->arrived));
	link->elapsed = 0;
	link->until_control = link->interval;
	link->epoch++;
}

/* Ends a control interval without an RTT in any packet. */
FIXED_INLINE void xcp_rest(struct law_link *link)
{
	link->interval = link->first_interval;
	link->spare = 0;
	link->shuffled = 0;
	link->gain = 0;
	link->loss = 0;
#if XCP_LOCAL
	link->local_gain = 0;
	link->local_loss = 0;
	link->claims = 1;
#endif
	link->gain_residue = 0;
	link->loss_residue = 0;
	xcp_start_interval(link);
}

/* Ends a control interval. */
FIXED_INLINE void xcp_control(struct law_link *link)
{
	const struct law_sums *arrived = &link->arrived;
	__u64 bytes = link->count_own ? arrived->volume : arrived->bytes;
	__u64 local = XCP_LOCAL_VOLUME(arrived);
	__u32 lasted = link->elapsed ? link->elapsed : 1;
	__u64 negative, gain, loss;

	if (!arrived->x || !bytes) {
		xcp_rest(link);
		return;
	}
	link->interval = xcp_bounded(link, xcp_mean_rtt(arrived->rtt_x, arrived->x));
	link->spare = xcp_spare(link, xcp_rate(bytes, lasted), link->queue, link->interval);
	link->shuffled = xcp_shuffled(link, xcp_rate(local, lasted), link->spare);
	negative = (__u64)link->spare >> 63;
	__asm__("" : "+r"(negative)); /* the verifier would follow a gain of 0 through all that follows */
	gain = (__u64)link->spare * (1 - negative);
	loss = (__u64)-link->spare * negative;
#if XCP_SCALED
	gain = xcp_scaled(gain, arrived->x, arrived->lowered_x, lasted);
#endif
	/* [draft-falk:cp] [draft-falk:cn] */
#if XCP_LOCAL
	link->gain_residue = gain;
	link->loss_residue = xcp_min(loss, XCP_RATE_MAX);
	link->gain = float_factor(gain, arrived->x) + XCP_FACTOR_OF_TIME;
	link->loss = float_factor(loss, bytes);
	link->local_gain = float_factor(link->shuffled, arrived->local_x) + XCP_FACTOR_OF_TIME;
	link->local_loss = float_factor(link->shuffled, local);
	link->claims = link->claim_least || link->spare <= 0;
#else
	/* Every packet with a value takes part in shuffling, so one factor is enough. The loss is by all bytes. */
	link->gain_residue = xcp_min(gain + link->shuffled, XCP_RATE_MAX); /* up to 2^62 each */
	link->loss_residue = xcp_min(loss + link->shuffled, XCP_RATE_MAX); /* 2^63 and 2^62 */
	link->gain = float_factor(link->gain_residue, arrived->x) + XCP_FACTOR_OF_TIME;
	link->loss = float_factor(fixed_part(loss, float_fraction(local, bytes)) + link->shuffled, local);
#endif
	xcp_start_interval(link);
}

/* Measures the persistent queue: the smallest since the last measurement. */
FIXED_INLINE void xcp_measure_queue(struct law_link *link, __u64 queue)
{
	__u64 per_us = link->capacity / 1000000;
	__u64 draining = (queue << 16) / (per_us ? per_us : 1); /* 40 + 16 bits; us */
	__u64 next = draining < link->interval ? (link->interval - draining) / 2 : 0;

	link->queue = link->queue_min;
	link->queue_min = queue;
	link->until_queue = next > XCP_QUEUE_INTERVAL_MIN_US ? (__u32)next : XCP_QUEUE_INTERVAL_MIN_US;
}

FIXED_INLINE __u32 xcp_sample_interval(const struct law_link *link)
{
	__u32 us = link->interval / 32;

	if (us < XCP_SAMPLE_MIN_US)
		return XCP_SAMPLE_MIN_US;
	return us < XCP_SAMPLE_MAX_US ? us : XCP_SAMPLE_MAX_US;
}

/* Sets the time until the next tick: a sample's, or until the end of the control interval if that is about as near. */
FIXED_INLINE void xcp_set_tick(struct law_link *link)
{
	__u32 sample = xcp_sample_interval(link);

	link->tick = link->until_control < sample + sample / 2 ? link->until_control : sample;
}

/* Takes time and the queue at its end, up to the end of the control interval. */
FIXED_INLINE void xcp_advance(struct law_link *link, __u32 us, __u64 queue)
{
	queue = xcp_min(queue, XCP_QUEUE_MAX);
	link->queue_min = xcp_min(queue, link->queue_min);
	link->elapsed += us;
	link->until_control -= us;
	link->until_queue = link->until_queue > us ? link->until_queue - us : 0;
	if (link->until_queue <= xcp_sample_interval(link) / 2)
		xcp_measure_queue(link, queue);
	if (!link->until_control)
		xcp_control(link);
}

/* ------------------------------------------------------------------ router */

FIXED_INLINE void law_link_set(struct law_link *link, const struct law_params *p, __u64 capacity, __u32 target)
{
	__u64 rate = capacity < 1ull << 49 ? capacity << 13 : XCP_RATE_MAX;

	link->capacity = target ? fixed_scale(rate, target, 1000000) : rate; /* 43 + 20 bits; 20 + 20 */
	if (!link->capacity)
		link->capacity = 1;
	/* 20 + 32 bits. */
	link->alpha = ((__u64)p->alpha << 32) / 1000000;
	link->beta = ((__u64)p->beta << 32) / 1000000;
	link->gamma = ((__u64)p->gamma << 32) / 1000000;
	link->min_interval = p->min_interval ? p->min_interval : 1;
	link->max_interval = p->max_interval < XCP_INTERVAL_MAX_US ? p->max_interval : XCP_INTERVAL_MAX_US;
	if (link->max_interval < link->min_interval)
		link->max_interval = link->min_interval;
	link->first_interval = xcp_bounded(link, p->first_interval);
	link->rtt_max = ((__u64)link->max_interval << 24) / 1000000;
	link->count_own = p->count_own;
#if XCP_LOCAL
	link->link = p->link & 0xffff ? p->link & 0xffff : 1;
	link->claim_least = p->claim_least;
	link->shuffle_draft = p->shuffle_draft;
#endif
	if (!link->interval) {
		link->interval = link->first_interval;
		link->until_control = link->first_interval;
		link->until_queue = link->first_interval;
		xcp_set_tick(link);
	}
}

FIXED_INLINE __u32 law_interval(const struct law_link *link)
{
	return link->tick;
}

FIXED_INLINE void law_tick(struct law_link *link, const struct law_sums *sums, __u64 queue)
{
	struct law_sums *arrived = &link->arrived;

	arrived->bytes += sums->bytes;
	arrived->volume += sums->volume;
	arrived->x += sums->x;
	arrived->rtt_x += sums->rtt_x;
#if XCP_SCALED
	arrived->lowered_x += sums->lowered_x;
#endif
#if XCP_LOCAL
	arrived->local_volume += sums->local_volume;
	arrived->local_x += sums->local_x;
#endif
	xcp_advance(link, link->tick, queue);
	xcp_set_tick(link);
}

/* One control interval may have had arrivals. Those after it rest, and the last one may go on. */
FIXED_INLINE void law_idle(struct law_link *link, __u64 intervals, __u64 queue)
{
	__u64 us = (intervals < 1ull << 32 ? intervals : 1ull << 32) * link->tick; /* 33 + 22 bits */
	__u32 first = us < link->until_control ? (__u32)us : link->until_control;

	if (!intervals) /* its queue is of no time, and must not become the smallest */
		return;
	queue = xcp_min(queue, XCP_QUEUE_MAX);
	xcp_advance(link, first, queue);
	us -= first;
	if (us >= link->interval) {
		us -= link->interval;
		xcp_measure_queue(link, queue);
		xcp_rest(link);
		us %= link->interval; /* at least 1 us */
	}
	link->elapsed += (__u32)us;
	link->until_control -= (__u32)us;
	xcp_set_tick(link);
}

FIXED_INLINE int law_syn_needs_lock(const struct law_link *link __attribute__((unused)))
{
	return 0;
}

/* Takes this CPU's part of an interval's residues. */
FIXED_INLINE void xcp_take_residues(const struct law_link *link, struct law_cpu *cpu)
{
	__u64 x = cpu->sums.x - cpu->seen_x;
	__u64 volume = cpu->sums.volume - cpu->seen_volume;

	cpu->epoch = link->epoch;
	cpu->seen_x = cpu->sums.x;
	cpu->seen_volume = cpu->sums.volume;
	cpu->gain_left = fixed_part(link->gain_residue, float_fraction(x, link->last.x));
	cpu->loss_left = fixed_part(link->loss_residue, float_fraction(volume, link->last.volume));
#if XCP_LOCAL
	x = cpu->sums.local_x - cpu->seen_local_x;
	volume = cpu->sums.local_volume - cpu->seen_local_volume;
	cpu->seen_local_x = cpu->sums.local_x;
	cpu->seen_local_volume = cpu->sums.local_volume;
	cpu->gain_left += fixed_part(link->shuffled, float_fraction(x, link->last.local_x));
	cpu->loss_left += fixed_part(link->shuffled, float_fraction(volume, link->last.local_volume));
	cpu->gain_left = xcp_min(cpu->gain_left, XCP_RATE_MAX);
	cpu->loss_left = xcp_min(cpu->loss_left, XCP_RATE_MAX);
#endif
}

/* Gain and loss of a packet here, rates. */
struct xcp_change {
	__u64 gain;
	__u64 loss;
};

/* min(C_p X, gains left) and min(C_n s, losses left); X is p 2^up in 2^-52 s. [draft-falk:residue] */
FIXED_INLINE struct xcp_change xcp_change(const struct law_link *link, const struct law_cpu *cpu, __u64 p, __u32 up,
					  __u32 bytes, int local)
{
	struct xcp_change due = {
		.gain = float_product(p, up, link->gain),
		.loss = float_product(bytes, 0, link->loss),
	};
	struct xcp_change change;
#if XCP_LOCAL
	struct xcp_change all = due;
	struct xcp_change shuffled = {};

	if (local) {
		shuffled.gain = float_product(p, up, link->local_gain);
		shuffled.loss = float_product(bytes, 0, link->local_loss);
		due.gain += shuffled.gain;
		due.loss += shuffled.loss;
	}
#endif
	change.gain = xcp_min(due.gain, cpu->gain_left);
	change.loss = xcp_min(due.loss, cpu->loss_left);
#if XCP_LOCAL
	/* A packet's part in shuffling ends with whichever residue ends first. [ixcp-2007:2.1] */
	if (local && !link->shuffle_draft && (change.gain < due.gain || change.loss < due.loss)) {
		__u64 part = xcp_min(float_fraction(change.gain, due.gain), float_fraction(change.loss, due.loss));

		change.gain = xcp_min(change.gain, all.gain + fixed_part(shuffled.gain, part));
		change.loss = xcp_min(change.loss, all.loss + fixed_part(shuffled.loss, part));
	}
#else
	(void)local;
#endif
	return change;
}

/* Takes what a packet was given by an earlier router, which is less: the difference is a loss that this router has
 * allocated. [draft-falk:residue]
 */
FIXED_INLINE void xcp_count_given(struct law_cpu *cpu, const struct xcp_change *change, __s64 given)
{
	__s64 more = (__s64)change->gain - (__s64)change->loss - given;
	__u64 loss = xcp_min(change->loss + (more > 0 ? (__u64)more : 0), cpu->loss_left);
	__s64 gain = given + (__s64)loss;
	__s64 left = (__s64)cpu->gain_left - gain; /* 62 bits, and a sign */

	cpu->gain_left = left > 0 ? xcp_min((__u64)left, XCP_RATE_MAX) : 0;
	cpu->loss_left -= loss;
}

/* Counts a packet, and writes its feedback unless an earlier router gave less; `local` if it takes part in shuffling.
 * Returns whether the feedback was lowered.
 */
FIXED_INLINE int xcp_mark(const struct law_link *link, struct law_cpu *cpu, const struct law_packet *packet,
			  __u8 *value, int local)
{
	__u32 bytes = packet->bytes < XCP_BYTES_MAX ? (__u32)packet->bytes : XCP_BYTES_MAX;
	__u32 segments = packet->segments < XCP_SEGMENTS_MAX ? packet->segments : XCP_SEGMENTS_MAX;
	__u32 rtt_code = law_read_u24(value), time_code = law_read_u24(value + 3);
	__u64 given = xcp_read_feedback(value + 6);
	__u64 p = (__u64)float_mantissa(time_code) * bytes; /* 20 + 20 bits */
	__u32 up = float_exponent(time_code);
	__u64 x = up < 12 ? p >> (12 - up) : p << (up - 12); /* 40 + 18 bits */
	__u64 rtt = (__u64)float_mantissa(rtt_code) << float_exponent(rtt_code);
	struct xcp_change change;
	__u64 due, own, unit;
	__s64 net;

	cpu->sums.volume += packet->bytes;
	if (!rtt_code) {
		if (given)
			return 0;
		xcp_write_feedback(value + 6, XCP_FEEDBACK_ZERO);
		return 1;
	}
	cpu->sums.x += x;
	rtt = xcp_min(rtt, link->rtt_max) >> 4; /* 2^-20 s: 22 bits */
	cpu->sums.rtt_x += xcp_min(x, XCP_X_MAX) * rtt >> 18; /* 41 + 22 bits */
#if XCP_LOCAL
	if (local)
		cpu->sums.local_x += x;
#endif

	change = xcp_change(link, cpu, p, up, bytes, local);
	net = (__s64)change.gain - (__s64)change.loss + cpu->carry;
	due = net < 0 ? (__u64)-net : (__u64)net;
	unit = (__u64)(segments ? segments : 1) << 8; /* a code of all segments, 2^-16 byte/s */
	own = segments > 1 ? due / unit : due >> 8;
	if (own > XCP_FEEDBACK_MAX)
		own = XCP_FEEDBACK_MAX;
	own = net < 0 ? XCP_FEEDBACK_ZERO - own : XCP_FEEDBACK_ZERO + own;
	if (given && given <= own) {
		/* 39 + 22 bits and a sign. */
		xcp_count_given(cpu, &change, ((__s64)given - (__s64)XCP_FEEDBACK_ZERO) * (__s64)unit);
		return 0;
	}
	/* Less than a code is carried. What does not fit the field is not. */
	net -= ((__s64)own - (__s64)XCP_FEEDBACK_ZERO) * (__s64)unit;
	if (net > -(__s64)unit && net < (__s64)unit)
		cpu->carry = net;
	cpu->gain_left -= change.gain;
	cpu->loss_left -= change.loss;
#if XCP_SCALED
	cpu->sums.lowered_x += x;
#endif
	xcp_write_feedback(value + 6, own);
	return 1;
}

FIXED_INLINE int law_mark(struct law_link *link, struct law_cpu *cpu, const struct law_packet *packet, __u8 *value)
{
#if XCP_LOCAL
	int local = law_read_u16(value + 11) == link->link;
	int has_rtt = law_read_u24(value) != 0;
#else
	int local = 1;
#endif

	if (cpu->epoch != link->epoch)
		xcp_take_residues(link, cpu);
#if XCP_LOCAL
	if (local)
		cpu->sums.local_volume += packet->bytes;
#endif
	if (!xcp_mark(link, cpu, packet, value, local))
		return 0;
#if XCP_LOCAL
	if (has_rtt) /* [ixcp-2007:3] */
		law_write_u16(value + 13, link->claims ? link->link : 0);
#endif
	return 1;
}

/* us, bit/s with a sign, bit/s, bytes. */
FIXED_INLINE void law_link_read(const struct law_link *link, __u64 signals[LAW_SIGNALS])
{
	signals[0] = link->interval;
	signals[1] = link->spare < 0 ? -((__u64)-link->spare >> 13) : (__u64)link->spare >> 13;
	signals[2] = link->shuffled >> 13;
	signals[3] = link->queue;
}

/* Starts with an old link's control interval. */
FIXED_INLINE void law_link_restore(struct law_link *link, __u64 interval)
{
	if (!interval)
		return;
	link->interval = xcp_bounded(link, interval);
	link->until_control = link->interval;
	link->elapsed = 0;
	xcp_set_tick(link);
}

/* ------------------------------------------------------------------ source */

/* Sets what packets state: X per byte is weight rtt/cwnd. [draft-falk:x] */
FIXED_INLINE void xcp_state(struct law_source *s)
{
	__u64 time = xcp_min((s->rtt << 36) / s->window, XCP_TIME_MAX); /* 28 + 36 bits; 2^-52 s */

	if (s->weight != 1000)
		time = fixed_scale(time, s->weight, 1000); /* 52 and 20 bits */
	s->rtt_code = float_code(s->rtt);
	s->time_code = float_code(time);
}

/* Sets the window, at least a packet. */
FIXED_INLINE void xcp_set_window(struct law_source *s, __u64 window)
{
	__u64 least = (__u64)s->packet << 8;

	if (window > XCP_WINDOW_MAX)
		window = XCP_WINDOW_MAX;
	s->window = window > least ? window : least;
	xcp_state(s);
}

FIXED_INLINE void law_source_init(const struct law_params *p, struct law_source *s, __u32 packet, __u64 window)
{
	if (p->first_window)
		window = (__u64)packet * p->first_window / 1000;
	s->total = 0;
	s->rtt = 0;
	s->packet = packet ? packet : 1;
	s->weight = p->weight ? p->weight : 1000;
	if (s->weight > 1000000)
		s->weight = 1000000;
	s->heard = 0;
	s->bottleneck = 0;
	xcp_set_window(s, window < XCP_WINDOW_MAX >> 8 ? window << 8 : XCP_WINDOW_MAX);
}

/* States no RTT, so that routers give no feedback. */
FIXED_INLINE void law_request(const struct law_params *p __attribute__((unused)), __u8 *value)
{
	__builtin_memset(value, 0, LAW_FORWARD_BYTES);
}

FIXED_INLINE void law_forward(const struct law_params *p __attribute__((unused)), struct law_source *s, __u8 *value)
{
	law_write_u24(value, s->rtt_code);
	law_write_u24(value + 3, s->time_code);
	xcp_write_feedback(value + 6, 0);
#if XCP_LOCAL
	law_write_u16(value + 11, s->bottleneck);
	law_write_u16(value + 13, 0);
#endif
}

FIXED_INLINE int law_heard(const __u8 *echo)
{
	return echo[0] >> 7;
}

/* max{cwnd + feedback, s}. [katabi-2002:cwnd] */
FIXED_INLINE __u64 xcp_cwnd_next(const struct law_source *s, __u64 change, __u64 in_flight)
{
	if (change & XCP_HEARD >> 1) { /* a loss, modulo 2^47 */
		__u64 loss = XCP_HEARD - change;

		return s->window > loss ? s->window - loss : 0;
	}
	/* A window of which less than half is in use does not grow. */
	return 2 * in_flight >= s->window >> 8 ? s->window + change : s->window;
}

FIXED_INLINE void law_ack(const struct law_params *p __attribute__((unused)), struct law_source *s,
			  const struct law_tcp *tcp, int has_echo, const __u8 *echo)
{
	__u64 window = s->window;

	if (tcp->packet)
		s->packet = tcp->packet;
	if (tcp->srtt_us) {
		s->rtt = ((__u64)tcp->srtt_us << 21) / 1000000; /* 32 + 21 bits; from 2^-3 us */
		if (s->rtt > XCP_RTT_MAX)
			s->rtt = XCP_RTT_MAX;
		if (!s->rtt)
			s->rtt = 1;
	}
	if (has_echo && law_heard(echo)) {
		__u64 total = ((__u64)law_read_u24(echo) << 24 | law_read_u24(echo + 3)) & XCP_TOTAL_MASK;

		window = xcp_cwnd_next(s, (total - s->total) & XCP_TOTAL_MASK, (__u64)tcp->in_flight * tcp->packet);
		s->total = total;
		s->heard = 1;
#if XCP_LOCAL
		if (law_read_u16(echo + 6))
			s->bottleneck = law_read_u16(echo + 6);
#endif
	}
	xcp_set_window(s, window);
}

FIXED_INLINE void law_loss(const struct law_params *p, struct law_source *s)
{
	if (p->halve_on_loss)
		xcp_set_window(s, s->window / 2);
}

FIXED_INLINE void law_timeout(const struct law_params *p, struct law_source *s)
{
	if (p->halve_on_loss)
		xcp_set_window(s, 0);
}

/* Returns window over RTT in bit/s; 0: not known. */
FIXED_INLINE __u64 xcp_sending_rate(const struct law_source *s)
{
	/* 2^27 makes 8 bits and 2^-24 s of it; the window has 44 bits. */
	return s->rtt ? fixed_scale(s->window >> 8, 1ull << 27, s->rtt < 1ull << 8 ? 1ull << 8 : s->rtt) : 0;
}

FIXED_INLINE void law_limit(struct law_source *s, const struct law_tcp *tcp __attribute__((unused)),
			    struct law_limit *limit)
{
	limit->rate = s->heard ? xcp_sending_rate(s) : 0;
	limit->window = s->window >> 8;
	limit->packet = s->packet;
	limit->steady = s->heard;
	limit->heard = s->heard;
}

FIXED_INLINE void law_reduce(struct law_source *s, __u32 shift)
{
	xcp_set_window(s, s->window - (s->window >> (shift & 63)));
}

/* The total. */
FIXED_INLINE __u64 law_evidence(const struct law_source *s)
{
	return s->total;
}

/* On a link with a queue of a fourth of an RTT, feedback takes 5 % of the window in an RTT (beta/4). An eighth of that
 * is tightening.
 */
FIXED_INLINE int law_tightens(const struct law_source *s, __u64 evidence, __u64 us)
{
	__u64 change = (s->total - evidence) & XCP_TOTAL_MASK;
	__u64 rtt = s->rtt * 15625 >> 18; /* us: 10^6 2^-24 */
	__u64 expected;

	if (!rtt)
		rtt = 1;
	if (us > rtt << 10)
		us = rtt << 10;
	expected = fixed_scale(s->window >> 7, us, rtt); /* 45 bits and 10; 24 + 34 */
	return change & XCP_HEARD >> 1 && XCP_HEARD - change > expected;
}

/* Bytes (0: no router has answered), us, 2^-8 bytes with a sign, and a name. */
FIXED_INLINE void law_source_read(const struct law_source *s, __u64 signals[LAW_SIGNALS])
{
	signals[0] = s->heard ? s->window >> 8 : 0;
	signals[1] = s->rtt * 15625 >> 18;
	signals[2] = s->total & XCP_HEARD >> 1 ? s->total - XCP_HEARD : s->total;
	signals[3] = s->bottleneck;
}

/* ------------------------------------------------------------------ receiver */

/* Returns the change of the window for a change of throughput, at this RTT; 2^-16 bytes, rounded to the nearest. */
FIXED_INLINE __u64 xcp_bytes(__u64 change, __u32 rtt_code)
{
	__u32 up = float_exponent(rtt_code);
	__u64 product = change * float_mantissa(rtt_code); /* 39 + 20 bits; 2^-32 bytes */

	/* An RTT of 16 s makes 39 + 28 bits of it, less 16. */
	if (up >= 16)
		return product << (up - 16 < 4 ? up - 16 : 4);
	return ((product >> (15 - up)) + 1) >> 1;
}

FIXED_INLINE void law_receive(const struct law_params *p __attribute__((unused)), struct law_receiver *r,
			      __u64 now_us __attribute__((unused)), __u32 rtt_us __attribute__((unused)),
			      const __u8 *value, __u32 segments)
{
	__u64 feedback = xcp_read_feedback(value + 6);
	__u32 rtt_code = law_read_u24(value);

	r->heard = feedback != 0;
#if XCP_LOCAL
	r->next_bottleneck = law_read_u16(value + 13);
#endif
	if (!feedback)
		return;
	if (feedback >= XCP_FEEDBACK_ZERO)
		r->total += segments * xcp_bytes(feedback - XCP_FEEDBACK_ZERO, rtt_code);
	else
		r->total -= segments * xcp_bytes(XCP_FEEDBACK_ZERO - feedback, rtt_code);
}

FIXED_INLINE void law_echo(struct law_receiver *r, __u8 *echo)
{
	__u64 total = r->heard ? XCP_HEARD | (r->total >> 8 & XCP_TOTAL_MASK) : 0;

	law_write_u24(echo, (__u32)(total >> 24));
	law_write_u24(echo + 3, (__u32)total);
#if XCP_LOCAL
	law_write_u16(echo + 6, r->heard ? r->next_bottleneck : 0);
#endif
}

/* 2^-8 bytes with a sign, plus one, so that 0 stays "none"; a sum of -2^-8 bytes reads so too. */
FIXED_INLINE __u64 law_receiver_read(const struct law_receiver *r)
{
	return r->heard ? (__u64)((__s64)r->total >> 8) + 1 : 0;
}

#endif
