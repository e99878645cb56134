/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Evidence that the path's bottleneck writes no price: a queue that does not drain, or heavy loss, while the price does
 * not rise. A longer path looks like such a queue, and a probe tells them apart. "Price" stands for any law's signal.
 * docs/explanation/kernel-programs.md gives the reasons.
 *
 * It is pure arithmetic, as the laws are: the kernel's host programs call it, and tests do.
 */
#ifndef WATERFILL_EVIDENCE_H
#define WATERFILL_EVIDENCE_H

/* The includer provides __u32, __s32, __s64 and __u64; FIXED_INLINE is from fixed.h. */
#include "fixed.h"

#define EVIDENCE_NO_RTT (~0u)
#define EVIDENCE_NO_DELAY 0x7fffffff
/* Weight of a round with a queue, with losses or with heavy losses, and the weight that suffices. */
#define EVIDENCE_MAX 16
#define EVIDENCE_QUEUE 1
#define EVIDENCE_LOSS 2
#define EVIDENCE_HEAVY_LOSS 6
/* Shortest round. Its smallest RTT is free of a scheduler's delay of some milliseconds. */
#define EVIDENCE_ROUND_US 25000
/* TCP's smallest variance term of its retransmission timer. Two time-outs without an acknowledgement are an outage. */
#define EVIDENCE_RTO_MIN_US 200000
/* Rounds of a probe: one for the packets in flight, two for those that follow. */
#define EVIDENCE_PROBE_ROUNDS 3
/* Longer paths are accepted at this interval: satellites hand over every 15 s. */
#define EVIDENCE_PATHS_US 10000000ull

/* What the host does next. */
enum evidence_verdict {
	EVIDENCE_NONE,
	EVIDENCE_OF_QUEUE, /* falls back: the queue does not drain while the price does not rise */
	EVIDENCE_OF_LOSS,  /* falls back: heavy loss while the price does not rise */
	EVIDENCE_PROBE,	   /* sends a smaller window for a round, which drains a queue of its own */
	EVIDENCE_PATH,	   /* counts a longer path */
};

/* TCP's state of a connection at an acknowledgement. */
struct evidence_input {
	__u64 now_us;
	__u64 last_ack_us;    /* time of the acknowledgement before */
	__u64 signal;	      /* law_evidence() */
	__u32 srtt_us;	      /* smoothed RTT, times 8 */
	__u32 rtt_us;	      /* RTT sample; 0: none */
	__u32 base_rtt_us;    /* smallest RTT */
	__u32 margin_us;      /* a shorter queue may be the host's own delay */
	__u32 delivered;      /* packets since the connection began */
	__u32 lost;	      /* packets since the connection began */
	__s32 forward_ms;     /* forward delay by two clocks, so only its changes have a meaning */
	__u32 has_forward;    /* 1: there are timestamps */
	__u32 timed_out;      /* 1: the retransmission timer declared the latest losses */
	__u32 queue_rests;    /* LAW_RESTS_WITH_QUEUE */
	__u32 has_echo;	      /* 1: an echo has arrived in this RTT */
	__u32 tightens;	      /* law_tightens() since `signal` and `since_us` of the evidence */
	__u32 rests_losing;   /* LAW_RESTS_LOSING */
	__u32 reserved;
};

/* Evidence of one connection; initialise with zeros and evidence_restart(). */
struct evidence {
	/* The present round, of one or more RTTs: */
	__u64 start_us;
	__u32 delivered;  /* packets since the connection began, at its start */
	__u32 lost;	  /* packets since the connection began, at its start */
	__u32 rtt;	  /* us: smallest sample in it */
	__s32 forward_ms; /* smallest excess over `base_forward_ms` in it */
	__u32 ack_gap_us; /* longest time between two acknowledgements */
	/* Evidence of earlier rounds: */
	__u32 weight;	   /* 0: none. When it began: */
	__u64 since_us;
	__u64 signal;
	__u32 first_rtt;   /* us */
	__u32 loss_rounds; /* rounds of heavy loss since then */
	/* Whether the path became longer: */
	__u64 path_us;	    /* when that was found last; 0: never */
	__u32 path_rtt;	    /* us: the longer path's RTT until the base RTT has followed; 0: not longer */
	__u32 probe_rounds; /* rounds left of a probe */
	__u32 probed_rtt;   /* us: before it, */
	__u32 drained_rtt;  /* and the smallest since then */
	__u32 base_forward_ms; /* without a queue */
	__u32 forward_known;
};

/* Starts a round. */
FIXED_INLINE void evidence_start_round(struct evidence *e, const struct evidence_input *in)
{
	e->start_us = in->now_us;
	e->delivered = in->delivered;
	e->lost = in->lost;
	e->rtt = EVIDENCE_NO_RTT;
	e->forward_ms = EVIDENCE_NO_DELAY;
	e->ack_gap_us = 0;
}

/* Forgets evidence, but not the path. */
FIXED_INLINE void evidence_restart(struct evidence *e, const struct evidence_input *in)
{
	e->weight = 0;
	e->probe_rounds = 0;
	evidence_start_round(e, in);
}

/* Takes an acknowledgement. The wait of a delayed ACK counts in the forward delay as it does in the RTT. */
FIXED_INLINE void evidence_ack(struct evidence *e, const struct evidence_input *in)
{
	__u64 gap = in->now_us - in->last_ack_us;
	__s32 more = (__s32)((__u32)in->forward_ms - e->base_forward_ms);

	if (gap > 2 * ((in->srtt_us >> 3) + (__u64)EVIDENCE_RTO_MIN_US))
		evidence_restart(e, in); /* after an outage or a silence */
	else if (gap > e->ack_gap_us)
		e->ack_gap_us = (__u32)gap;
	if (in->timed_out)
		e->lost = in->lost; /* an acknowledgement has not declared them */
	if (in->rtt_us && in->rtt_us < e->rtt)
		e->rtt = in->rtt_us;
	if (in->has_forward && more < e->forward_ms)
		e->forward_ms = more;
}

/* Returns whether a queue of this length (us) is on the ACK path: the forward delay has grown by less than half of it,
 * with one clock tick of tolerance. Not if it fell, because then the peer's clock is not in ms.
 */
FIXED_INLINE int evidence_on_ack_path(const struct evidence *e, __u64 queue, __u64 margin)
{
	__s64 forward = (__s64)e->forward_ms * 1000;

	if (!e->forward_known || e->forward_ms == EVIDENCE_NO_DELAY)
		return 0;
	return forward + (__s64)margin + 1000 >= 0 && 2 * (forward + 1000) < (__s64)queue;
}

/* Returns the difference between two RTTs of one path, us. */
FIXED_INLINE __u64 evidence_tolerance(__u64 rtt, __u64 margin)
{
	return rtt / 16 > margin / 2 ? rtt / 16 : margin / 2;
}

/* Returns whether a standing queue may be a longer path: it came at once and has not changed since. A second one soon
 * after the first is not accepted.
 */
FIXED_INLINE int evidence_may_be_path(const struct evidence *e, const struct evidence_input *in)
{
	__u64 change = e->rtt > e->first_rtt ? e->rtt - e->first_rtt : e->first_rtt - e->rtt;

	if (e->path_us && in->now_us - e->path_us < EVIDENCE_PATHS_US)
		return 0;
	return change <= evidence_tolerance(e->rtt, in->margin_us);
}

/* Ends a round of a probe. */
FIXED_INLINE enum evidence_verdict evidence_probe(struct evidence *e, const struct evidence_input *in)
{
	if (e->rtt < e->drained_rtt)
		e->drained_rtt = e->rtt;
	e->probe_rounds--;
	if (e->probe_rounds || e->drained_rtt == EVIDENCE_NO_RTT)
		return EVIDENCE_NONE;
	if (e->drained_rtt + evidence_tolerance(e->probed_rtt, in->margin_us) < e->probed_rtt)
		return EVIDENCE_OF_QUEUE;
	e->path_rtt = e->drained_rtt;
	e->path_us = in->now_us;
	return EVIDENCE_PATH;
}

/* Decides by the evidence of several rounds: compares both slopes, from the first to the last. */
FIXED_INLINE enum evidence_verdict evidence_decide(struct evidence *e, const struct evidence_input *in)
{
	__u64 rtt = e->rtt == EVIDENCE_NO_RTT ? 0 : e->rtt;

	e->weight = 0; /* start again, unless the slopes confirm it */
	if (in->tightens)
		return EVIDENCE_NONE;
	if (e->loss_rounds)
		return EVIDENCE_OF_LOSS;
	if (rtt + (in->now_us - e->since_us) / 128 < e->first_rtt)
		return EVIDENCE_NONE; /* it drains */
	if (!evidence_may_be_path(e, in))
		return EVIDENCE_OF_QUEUE;
	e->probe_rounds = EVIDENCE_PROBE_ROUNDS;
	e->probed_rtt = e->rtt;
	e->drained_rtt = EVIDENCE_NO_RTT;
	return EVIDENCE_PROBE;
}

/* Counts a round. */
FIXED_INLINE enum evidence_verdict evidence_count(struct evidence *e, const struct evidence_input *in)
{
	__u64 base = in->base_rtt_us;
	__u64 margin = base / 4 > in->margin_us ? base / 4 : in->margin_us;
	__u64 rtt = e->rtt == EVIDENCE_NO_RTT ? 0 : e->rtt;
	__u32 lost = in->lost - e->lost;
	__u64 sent = (__u64)lost + (in->delivered - e->delivered);
	__u64 resting = in->rests_losing * (in->now_us - e->start_us) / 1000000; /* packets */
	int heavy = lost >= 4 && lost > resting && (__u64)lost * 50 >= sent;
	__u64 queue;

	if (e->path_rtt <= base || (rtt && rtt <= base + margin))
		e->path_rtt = 0; /* the base RTT has followed, or the path is short again */
	if (e->path_rtt)
		base = e->path_rtt;
	queue = rtt > base + margin ? rtt - base : 0;
	if (!queue && e->forward_ms != EVIDENCE_NO_DELAY) {
		e->base_forward_ms += (__u32)e->forward_ms;
		e->forward_known = 1;
	}
	if (e->probe_rounds)
		return evidence_probe(e, in);
	if (queue && !heavy && 2ull * e->ack_gap_us >= queue)
		return EVIDENCE_NONE; /* the host itself was late */
	if (in->queue_rests || (queue && evidence_on_ack_path(e, queue, margin)))
		queue = 0;
	if (!queue && !heavy) {
		e->weight -= e->weight != 0;
		return EVIDENCE_NONE;
	}
	if (!e->weight) {
		e->since_us = e->start_us;
		e->first_rtt = (__u32)rtt;
		e->signal = in->signal;
		e->loss_rounds = 0;
	}
	if (heavy && (__u64)lost * 10 >= sent)
		e->weight += EVIDENCE_HEAVY_LOSS;
	else
		e->weight += heavy || rtt > 2 * (base + margin) ? EVIDENCE_LOSS : EVIDENCE_QUEUE;
	e->loss_rounds += heavy != 0;
	return e->weight < EVIDENCE_MAX || !in->has_echo ? EVIDENCE_NONE : evidence_decide(e, in);
}

/* Ends a round if it was long enough. An RTT has ended. */
FIXED_INLINE enum evidence_verdict evidence_end_round(struct evidence *e, const struct evidence_input *in)
{
	enum evidence_verdict verdict;

	if (in->now_us - e->start_us < EVIDENCE_ROUND_US)
		return EVIDENCE_NONE;
	verdict = evidence_count(e, in);
	if (verdict != EVIDENCE_OF_QUEUE && verdict != EVIDENCE_OF_LOSS)
		evidence_start_round(e, in); /* else the host takes its figures */
	return verdict;
}

#endif
