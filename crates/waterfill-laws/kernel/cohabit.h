/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Cohabitation of explicit flows and TCP on one queue, fixed-point version.
 *
 * waterfill-sim/src/queue/cohabit documents the module, its readings of the paper and the reasons for the improved
 * controller; the tags [xcp-tcp-2008:...] are the same in both. This file says how it is computed without floating
 * point. It is no law: it decides which TCP packets of a link are dropped or marked, before the link's laws see them.
 *
 *
 * A router calls, for every packet:
 *
 *   cohabit_count()      adds it to its CPU's sums (struct cohabit_sums, which only grow and wrap at 2^64);
 *   cohabit_is_known()   whether its flow has sent data as a class, lately: packets of an explicit flow without the
 *                        law's option are explicit all the same;
 *   cohabit_flow()       counts the flow of a packet with data;
 *   cohabit_decide()     for TCP data: admit, mark or drop. It changes the link, so it needs the link's lock.
 *
 * and cohabit_advance() with the sums of all CPUs when link->interval_end has passed, under the lock. After that,
 * cohabit_clear() prepares the next filter if cohabit_advance() returned 1; it needs no lock.
 *
 *
 * Flows
 *
 * A Bloom filter per class (NRED's) has 4 levels of 4096 bins; the four bins of a flow are 12 bits each of one 64-bit
 * hash. A packet of a known flow only reads its bins, so CPUs share the filter's cache lines. A new flow sets bits by
 * atomic operations, and counts if one of them was empty. Two CPUs that see a flow's first packets at the same time
 * may both count it. There are four filters in a ring: the current period's, the last one's (for cohabit_is_known()),
 * the next one's, which is empty, and the one between. So no packet sets bits in a filter that is being cleared.
 *
 * The simulator's filter counts a flow when it opens a connection, here it counts with its first data: otherwise forged
 * SYNs would take the explicit class's share. A period ends with a control interval, up to one interval late.
 *
 *
 * The excess
 *
 * The simulator keeps the volume that the TCP class has sent beyond its share. Here it is a time: how long the share
 * takes to send it. Draining is a subtraction then, and a packet adds its bytes times `per_byte`. When the share
 * changes, the time is converted through whole bytes.
 *
 *
 * Scales
 *
 * Probabilities are stored as -ln p, so that factors are additions; packets use p itself, as a fraction in 2^-32.
 * Signed quantities are handled by sign and magnitude.
 *
 *   quantity             scale       range                  why it fits
 *   -------------------  ----------  ---------------------  ---------------------------------------------------
 *   capacity             bit/s       1 .. 10^15             per_byte is exact to 7 10^-5 up to 2^43 (8.8 Tbit/s)
 *   rates                bit/s       0 .. 2^53              of 2^40 bytes in 1 ms
 *   bytes of an interval bytes       0 .. 2^40              clamped; times 8 10^6: 2^63
 *   target, aim, gamma   10^-6       1 .. 10^6              20 bits
 *   interval             us          1000 .. 10^6
 *   period               us          interval .. 10^8
 *   weight               10^-3       1 .. 64000             16 bits; with 2^14 flows a product of 30
 *   integral             10^-3 1/s   1 .. 100000            17 bits
 *   proportional         10^-3       0 .. 100000            17 bits
 *   depth                us          1000 .. 10^7           2^-24 ns: 57 bits
 *   p                    2^-32       0 .. 1                 p = 10^-5 is 42950: exact to 2.3 10^-5
 *   -ln p                2^-34       0 .. 700               44 bits; p is 0 in 2^-32 from 22 on
 *   errors, used, lent   2^-32       -1 .. 1, 0 .. 16       33 to 36 bits; `used` is clamped to 16
 *   excess, depth        2^-24 ns    0 .. 2^62              drains; one packet adds up to 2^63
 *   per_byte             2^-24 ns    2^6 .. 2^44            8 10^9 / share; a share below 8 kbit/s counts as 8 kbit/s
 *   packet               bytes       0 .. 2^19              512 KiB, the largest super-packet without headers; clamped
 *   segments                         1 .. 65535             of a packet, as the kernel counts them; 2^62 an interval
 *   flows of a class                 0 .. 2^15              bins of a period's filter and of the last one's
 *   -ln of the paper's   2^-34       0 .. 21; factors 0 .. 1  initial p of 10^-9 or more, factors of 1/2 to 2
 *   time                 ns          0 .. 2^62
 *
 * The caller keeps within the ranges where the table does not say "clamped": waterfilld checks parameters and rates.
 *
 *
 * Differences from the module in real numbers
 *
 *   - An exponential is within 1.1 10^-6 of its value (fixed.h) and p is truncated to 2^-32.
 *   - Averages and changes of ln p are truncated to 2^-32 a step: 6 10^-8 a second at intervals of 4 ms.
 *   - The excess is rounded to a whole byte when the share changes.
 *   - The paper's factor for each packet is applied at the end of the interval, for all of its packets at once.
 *   - A super-packet (GSO) is `segments` packets for p and for the limit, and dropped or marked as a whole.
 */
#ifndef WATERFILL_COHABIT_H
#define WATERFILL_COHABIT_H

/* The includer provides __u8, __u32, __s64 and __u64: linux/types.h in a kernel program, the shim on a host. */
#include "fixed.h"

#define COHABIT_LEVELS 4
#define COHABIT_BINS 4096
#define COHABIT_LEVEL_WORDS (COHABIT_BINS / 64)
#define COHABIT_WORDS (COHABIT_LEVELS * COHABIT_LEVEL_WORDS)
#define COHABIT_FILTERS 4 /* a power of two */

/* Time for which a class counts as present after its last data, ns. */
#define COHABIT_PRESENCE_NS 2000000000ull
/* Averaging times, us: of other load, of the error whose change counts, of the link's use. */
#define COHABIT_OTHER_US 1000000
#define COHABIT_ERROR_US 500000
#define COHABIT_USE_US 5000000
/* -ln of the smallest, the initial and the largest probability of the improved controller: 10^-5, 10^-3, 1/2. */
#define COHABIT_LOG_MIN_P 197790553413ull
#define COHABIT_LOG_INITIAL_P 118674332048ull
#define COHABIT_LOG_MAX_P 11908177887ull
/* The smallest probability that is kept, of the paper's controller: e^-700. */
#define COHABIT_LOG_MAX (700ull << 34)
/* Use of the capacity below which TCP is lent more: 0.9. */
#define COHABIT_LEND_BELOW 3865470566ull
#define COHABIT_USED_MAX (16 * FIXED_ONE)
#define COHABIT_BYTES_MAX (1ull << 40)
#define COHABIT_RATE_MAX_BPS (1ull << 43)
#define COHABIT_RATE_MIN_BPS 8000
#define COHABIT_EXCESS_MAX (1ull << 62)
#define COHABIT_PACKET_MAX (1ull << 19)
/* Longest time that counts: in us for averages, in ns for draining. */
#define COHABIT_DT_MAX_US (1ull << 29)
#define COHABIT_DRAIN_MAX_NS (1ull << 38)
/* The controller acts while a class is present, so in intervals of up to 2 s and one interval. */
#define COHABIT_ACTIVE_MAX_US (1ull << 22)

enum cohabit_controller {
	COHABIT_OFF,	  /* only count */
	COHABIT_PAPER,	  /* two fixed factors */
	COHABIT_IMPROVED, /* follows the error */
};

/* Events that apply the paper's factor: the end of an interval, or each packet of all, of a class. */
enum cohabit_update {
	COHABIT_PER_INTERVAL,
	COHABIT_PER_PACKET,
	COHABIT_PER_EXPLICIT_PACKET,
	COHABIT_PER_TCP_PACKET,
};

enum cohabit_class {
	COHABIT_EXPLICIT, /* headers that routers write */
	COHABIT_TCP,	  /* losses, marks and delays */
	COHABIT_OTHER,	  /* no congestion control that this module can reach */
	COHABIT_CLASSES,
};

enum cohabit_verdict {
	COHABIT_ADMIT,
	COHABIT_MARK,
	COHABIT_DROP,
};

struct cohabit_params {
	__u64 capacity;	    /* bit/s */
	__u64 initial_log;  /* 2^-34: -ln of the paper's initial p_drop */
	__u64 decrease_log; /* 2^-34: -ln D_drop */
	__u64 increase_log; /* 2^-34: ln I_drop */
	__u32 target;	    /* 10^-6: fraction of the capacity that all may use */
	__u32 interval;	    /* us: control interval */
	__u32 period;	    /* us: counting interval of flows */
	__u32 controller;   /* enum cohabit_controller */
	__u32 weight;	    /* 10^-3: shares of an explicit flow; a TCP flow has one */
	__u32 ecn;	    /* 1: mark what may be marked instead of dropping it */
	__u32 update;	    /* enum cohabit_update */
	__u32 threshold;    /* 10^-6: gamma */
	__u32 aim;	    /* 10^-6 of the TCP class's share */
	__u32 integral;	    /* 10^-3 1/s */
	__u32 proportional; /* 10^-3 */
	__u32 depth;	    /* us: largest excess, as a time at the share */
};

/* Arrivals: of one CPU, or of all. */
struct cohabit_sums {
	__u64 bytes[COHABIT_CLASSES];   /* admitted */
	__u64 packets[COHABIT_CLASSES]; /* arrived, in segments */
	__u64 seen[COHABIT_OTHER];      /* ns: the last data of each class; 0 before the first */
	__u64 dropped, marked;	        /* TCP packets, in segments */
};

/* In rows of 32, the longest array that Rust's generated types allow. */
struct cohabit_filter {
	__u64 bins[COHABIT_OTHER][COHABIT_WORDS / 32][32];
};

/* One link direction. It starts with zeros. */
struct cohabit_link {
	/* The controller. */
	__u64 interval_end; /* ns */
	__u64 other_rate;   /* bit/s, averaged */
	__u64 log;	    /* 2^-34: -ln p */
	__s64 factor;	    /* 2^-34: change of -ln p by the paper's factor, until the next interval ends */
	__s64 error;	    /* 2^-32, averaged */
	__u64 used;	    /* 2^-32: use of the capacity, averaged */
	__u64 lent;	    /* 2^-32 of the usable capacity */
	__u64 share;	    /* bit/s: the TCP class's share and what is lent to it */
	__u64 limited_share; /* 2^-32: of the packets that the limit drops, averaged */
	__u64 flows_end;    /* ns: when the counting interval ends */
	__u32 flows_now[COHABIT_OTHER];
	__u32 flows_last[COHABIT_OTHER];
	__u32 filter;	    /* the current period's */
	__u32 active;
	/* Read by every TCP packet, changed by the controller. */
	__u64 probability; /* 2^-32; 0 while inactive */
	__u64 per_byte;	   /* 2^-24 ns: time of a byte at the share */
	__u64 depth;	   /* 2^-24 ns */
	__u64 per_flow;	   /* 2^-32: 1 / (2 flows) */
	__u64 reaction;	   /* ns: how long flows take to react to a loss by the limit */
	/* Changed by every TCP packet. */
	__u64 excess;	   /* 2^-24 ns */
	__u64 drained;	   /* ns: when the excess was current */
	__u64 reacted;	   /* ns: when the flows have reacted to the limit's last drop */
	__u64 early;	   /* 2^-24 ns: excess from which the next packet is dropped early */
	__u64 pressure;	   /* 2^-32: sum of the packets' probabilities since the last signal */
	__u64 next_signal; /* 2^-32 */
	__u64 arrived;	   /* in this interval, segments */
	__u64 limited;	   /* of them, dropped by the limit */
	/* Of the last interval: for status. */
	__u64 rates[COHABIT_CLASSES]; /* bit/s */
	__u64 usable;		      /* bit/s */
	__u64 explicit_share;	      /* bit/s: eq. 3 */
	struct cohabit_sums before;   /* at the last interval's end */
};

/* ------------------------------------------------------------------ flows */

/* Returns a bin's word in a class's filter; the bins of a level are 12 bits of the hash. */
FIXED_INLINE __u32 cohabit_word(__u64 hash, __u32 level)
{
	return level * COHABIT_LEVEL_WORDS + ((hash >> (12 * level + 6)) & (COHABIT_LEVEL_WORDS - 1));
}

FIXED_INLINE __u64 cohabit_bit(__u64 hash, __u32 level)
{
	return 1ull << ((hash >> (12 * level)) & 63);
}

/* Returns 64 bits of two words; `salt` is secret, so that nobody can choose flows that collide. */
FIXED_INLINE __u64 cohabit_mix(__u64 value, __u64 salt)
{
	__u64 x = value ^ salt;

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
	return x ^ (x >> 31);
}

/* Returns 1 if all of a flow's bins are set. */
FIXED_INLINE int cohabit_is_in(const __u64 *bins, __u64 hash)
{
	__u32 level, set = 1;

	for (level = 0; level < COHABIT_LEVELS; level++)
		set &= !!(bins[cohabit_word(hash, level)] & cohabit_bit(hash, level));
	return set;
}

/* Returns 1 if the flow has sent data as this class in this counting interval or in the last. */
FIXED_INLINE int cohabit_is_known(const struct cohabit_link *link, const struct cohabit_filter *filters, __u32 class,
				  __u64 hash)
{
	const struct cohabit_filter *now = &filters[link->filter & (COHABIT_FILTERS - 1)];
	const struct cohabit_filter *last = &filters[(link->filter - 1) & (COHABIT_FILTERS - 1)];

	return cohabit_is_in(now->bins[class][0], hash) || cohabit_is_in(last->bins[class][0], hash);
}

/* Counts the flow of a packet with data: N_act grows if one of its bins was empty. */
FIXED_INLINE void cohabit_flow(struct cohabit_link *link, struct cohabit_filter *filters, __u32 class, __u64 hash)
{
	__u64 *bins = filters[link->filter & (COHABIT_FILTERS - 1)].bins[class][0];
	__u32 level, empty = 0;

	if (cohabit_is_in(bins, hash))
		return;
	for (level = 0; level < COHABIT_LEVELS; level++) {
		__u64 bit = cohabit_bit(hash, level);

		empty |= !(__sync_fetch_and_or(&bins[cohabit_word(hash, level)], bit) & bit);
	}
	if (empty)
		__sync_fetch_and_add(&link->flows_now[class], 1);
}

/* Returns the estimated flows of a class: the last interval's count, or this one's if that is larger. */
FIXED_INLINE __u32 cohabit_flows(const struct cohabit_link *link, __u32 class)
{
	return link->flows_last[class] > link->flows_now[class] ? link->flows_last[class] : link->flows_now[class];
}

/* Starts the counting interval that `now` is in; returns whether it is a new one. */
FIXED_INLINE int cohabit_count_period(const struct cohabit_params *p, struct cohabit_link *link, __u64 now)
{
	__u64 period = p->period * 1000ull;
	__u64 late;
	__u32 class;

	if (now < link->flows_end)
		return 0;
	late = now - link->flows_end;
	for (class = 0; class < COHABIT_OTHER; class++) {
		link->flows_last[class] = late < period ? link->flows_now[class] : 0;
		link->flows_now[class] = 0;
	}
	link->flows_end = now + (period - late % period);
	link->filter++;
	return 1;
}

/* Empties the filter that the next counting interval will use. */
FIXED_INLINE void cohabit_clear(const struct cohabit_link *link, struct cohabit_filter *filters)
{
	struct cohabit_filter *next = &filters[(link->filter + 1) & (COHABIT_FILTERS - 1)];
	/* volatile: compilers would call memset, which BPF does not have. */
	volatile __u64 *explicit = (volatile __u64 *)&next->bins[COHABIT_EXPLICIT];
	volatile __u64 *tcp = (volatile __u64 *)&next->bins[COHABIT_TCP];
	__u32 word;

	for (word = 0; word < COHABIT_WORDS; word++) {
		explicit[word] = 0;
		tcp[word] = 0;
	}
}

/* ------------------------------------------------------------------ measurements */

/* Counts a packet's arrival; its bytes count where it is admitted. `data`: it carries data. */
FIXED_INLINE void cohabit_count(struct cohabit_sums *cpu, __u32 class, __u32 segments, __u32 data, __u64 now)
{
	cpu->packets[class] += segments;
	if (data && class < COHABIT_OTHER)
		cpu->seen[class] = now;
}

/* Adds one CPU's sums to the total. */
FIXED_INLINE void cohabit_add(struct cohabit_sums *total, const struct cohabit_sums *cpu)
{
	__u32 class;

	for (class = 0; class < COHABIT_CLASSES; class++) {
		total->bytes[class] += cpu->bytes[class];
		total->packets[class] += cpu->packets[class];
	}
	for (class = 0; class < COHABIT_OTHER; class++)
		if (total->seen[class] < cpu->seen[class])
			total->seen[class] = cpu->seen[class];
	total->dropped += cpu->dropped;
	total->marked += cpu->marked;
}

/* Returns 1 - e^(-us/time), the weight of new data in an average. */
FIXED_INLINE __u64 cohabit_weight(__u64 us, __u32 time_us)
{
	us = us < COHABIT_DT_MAX_US ? us : COHABIT_DT_MAX_US;
	return FIXED_ONE - fixed_exp(FIXED_ONE, (us << 34) / time_us); /* 29 + 34 bits */
}

/* Returns bit/s. */
FIXED_INLINE __u64 cohabit_rate(__u64 bytes, __u64 us)
{
	bytes = bytes < COHABIT_BYTES_MAX ? bytes : COHABIT_BYTES_MAX;
	return bytes * 8000000 / us; /* 40 + 23 bits */
}

/* Returns x/r - 1 within [-1, 1]; 0 if r is 0. x and r below 2^62. */
FIXED_INLINE __s64 cohabit_relative(__u64 x, __u64 r)
{
	__u64 difference = x >= r ? x - r : r - x;
	__u64 error;

	if (!r)
		return 0;
	error = difference >= r ? FIXED_ONE : fixed_divide(difference, r, 32);
	return x >= r ? (__s64)error : -(__s64)error;
}

/* Returns a f for a fraction f <= 1, truncated towards zero. */
FIXED_INLINE __s64 cohabit_part(__s64 a, __u64 f)
{
	return a >= 0 ? (__s64)fixed_part(a, f) : -(__s64)fixed_part(-a, f);
}

/* Returns the explicit class's part of the usable capacity, w N/(w N + M); one of the numbers is not 0.
 * [xcp-tcp-2008:eq3]
 */
FIXED_INLINE __u64 cohabit_explicit_part(__u32 explicit_flows, __u32 tcp_flows, __u32 weight)
{
	__u64 shares = (__u64)explicit_flows * weight; /* 14 + 16 bits */

	return fixed_divide(shares, shares + tcp_flows * 1000ull, 32);
}

/* ------------------------------------------------------------------ the controllers */

/* Measurements of one interval. */
struct cohabit_measured {
	__u64 us;		       /* how long it was */
	__u64 rates[COHABIT_CLASSES];  /* bit/s */
	__u64 packets[COHABIT_CLASSES];
	__u64 usable;		       /* bit/s */
	__u64 explicit_part;	       /* 2^-32 of it */
	__u64 explicit_share;	       /* bit/s */
	__u32 tcp_flows;
	__u32 both;		       /* 1: both classes sent */
	__u32 present;		       /* 1: both classes count as present */
};

/* Adds a signed number to -ln p, within [min, max]. */
FIXED_INLINE __u64 cohabit_log_next(__u64 log, __s64 change, __u64 min, __u64 max)
{
	__u64 less = change < 0 ? (__u64)-change : 0;

	log += change < 0 ? 0 : (__u64)change;
	log = less < log ? log - less : 0;
	if (log < min)
		return min;
	return log < max ? log : max;
}

/* Applies the paper's factor `times` times; its p_drop is at most 1. [xcp-tcp-2008:§4.3] */
FIXED_INLINE void cohabit_paper_apply(struct cohabit_link *link, __u64 times)
{
	__u64 size = link->factor < 0 ? -link->factor : link->factor;
	__u64 change = times > COHABIT_LOG_MAX / (size + 1) ? COHABIT_LOG_MAX : times * size;

	link->log = cohabit_log_next(link->log, link->factor < 0 ? -(__s64)change : (__s64)change, 0, COHABIT_LOG_MAX);
}

/* Ends an interval of the paper's controller. [xcp-tcp-2008:§4.3, §4.4] */
FIXED_INLINE void cohabit_paper(const struct cohabit_params *p, struct cohabit_link *link,
				const struct cohabit_measured *m)
{
	__u64 total = m->rates[COHABIT_EXPLICIT] + m->rates[COHABIT_TCP] + m->rates[COHABIT_OTHER];
	__u64 packets = m->packets[COHABIT_EXPLICIT] + m->packets[COHABIT_TCP] + m->packets[COHABIT_OTHER];

	/* The last interval's factor, for the packets of this one. */
	if (p->update == COHABIT_PER_EXPLICIT_PACKET)
		packets = m->packets[COHABIT_EXPLICIT];
	else if (p->update == COHABIT_PER_TCP_PACKET)
		packets = m->packets[COHABIT_TCP];
	if (link->active && p->update != COHABIT_PER_INTERVAL)
		cohabit_paper_apply(link, packets);

	if (total < fixed_scale(m->usable, p->threshold, 1000000)) {
		link->log = p->initial_log;
		link->active = 0;
	} else {
		link->active = m->both;
		link->factor = 0;
		if (m->rates[COHABIT_EXPLICIT] > m->explicit_share)
			link->factor = (__s64)p->decrease_log;
		else if (m->rates[COHABIT_EXPLICIT] < m->explicit_share)
			link->factor = -(__s64)p->increase_log;
		if (link->active && p->update == COHABIT_PER_INTERVAL)
			cohabit_paper_apply(link, 1);
	}
	link->probability = link->active ? fixed_exp(FIXED_ONE, link->log) : 0;
}

/* Returns what is lent to the TCP class after one more interval, as a part of the usable capacity. */
FIXED_INLINE __u64 cohabit_lent(__u64 before, __u64 used, const struct cohabit_measured *m)
{
	__u64 us = m->us < COHABIT_DT_MAX_US ? m->us : COHABIT_DT_MAX_US;
	__u64 change;

	if (used < COHABIT_LEND_BELOW) {
		change = fixed_scale(COHABIT_LEND_BELOW - used, us, 1000000); /* 12 + 29; 20 + 29 bits */
		before += change;
	} else if (m->rates[COHABIT_EXPLICIT] < m->explicit_share) {
		change = fixed_scale(2 * (used - COHABIT_LEND_BELOW), us, 1000000); /* 17 + 29; 20 + 29 bits */
		before = change < before ? before - change : 0;
	}
	return before < m->explicit_part ? before : m->explicit_part;
}

/* Changes the rate at which the excess drains, and keeps its volume, in whole bytes. */
FIXED_INLINE void cohabit_set_share(struct cohabit_link *link, __u64 share)
{
	__u64 bytes = link->per_byte ? (link->excess + link->per_byte / 2) / link->per_byte : 0;
	__u64 divisor = share < COHABIT_RATE_MIN_BPS ? COHABIT_RATE_MIN_BPS : share;

	link->share = share;
	link->per_byte = (8000000000ull << 24) / divisor; /* 33 + 24 bits */
	if (!link->per_byte)
		link->per_byte = 1;
	link->excess = bytes < COHABIT_EXCESS_MAX / link->per_byte ? bytes * link->per_byte : COHABIT_EXCESS_MAX;
}

/* Ends an interval of the improved controller. */
FIXED_INLINE void cohabit_improved(const struct cohabit_params *p, struct cohabit_link *link,
				   const struct cohabit_measured *m, __u64 now)
{
	__u64 total = m->rates[COHABIT_EXPLICIT] + m->rates[COHABIT_TCP] + m->rates[COHABIT_OTHER];
	__u64 used = COHABIT_USED_MAX;
	__u64 weight = cohabit_weight(m->us, COHABIT_ERROR_US);
	__u64 us = m->us < COHABIT_ACTIVE_MAX_US ? m->us : COHABIT_ACTIVE_MAX_US;
	__u64 limited, time;
	__u32 flows = m->tcp_flows ? m->tcp_flows : 1;
	__s64 error, before, rise, change, lead;

	if (m->usable && total / m->usable < 16)
		used = fixed_divide(total, m->usable, 32);
	link->used = fixed_towards(link->used, used, cohabit_weight(m->us, COHABIT_USE_US));
	link->lent = m->present ? cohabit_lent(link->lent, link->used, m) : 0;
	/* BW_TCP = O - BW_XCP [xcp-tcp-2008:eq4], and what is lent. */
	cohabit_set_share(link, m->usable - m->explicit_share + fixed_part(m->usable, link->lent));
	link->per_flow = FIXED_ONE / (2 * (__u64)flows);
	link->reaction = 2 * (p->interval * 1000ull) / flows;

	error = cohabit_relative(m->rates[COHABIT_TCP], fixed_scale(link->share, p->aim, 1000000));
	before = link->error;
	link->error += cohabit_part(error - before, weight);
	limited = link->arrived ? fixed_divide(link->limited, link->arrived, 32) : 0;
	link->limited_share = fixed_towards(link->limited_share, limited, weight);
	link->arrived = 0;
	link->limited = 0;
	if (!m->present) {
		link->active = 0;
		link->log = COHABIT_LOG_INITIAL_P;
		link->excess = 0;
		link->drained = now;
		link->probability = 0;
		return;
	}
	if (!link->active)
		link->probability = fixed_exp(FIXED_ONE, link->log);
	link->active = 1;
	rise = link->error - before;
	/* Below its reference the class does not depend on the limit: what was dropped was a burst. */
	if (link->error >= 0) {
		__s64 limit_error = cohabit_relative(link->limited_share, link->probability);

		error = error > limit_error ? error : limit_error;
	}
	time = (us << 32) / 1000000; /* 22 + 32 bits; 2^-32 s, so 35 */
	change = (__s64)(fixed_part(time, error < 0 ? -error : error) * p->integral / 1000 << 2); /* 35 + 17 bits */
	change = error < 0 ? -change : change;
	lead = (__s64)((__u64)(rise < 0 ? -rise : rise) * p->proportional / 1000 << 2); /* 33 + 17 bits */
	change += rise < 0 ? -lead : lead;
	link->log = cohabit_log_next(link->log, -change, COHABIT_LOG_MAX_P, COHABIT_LOG_MIN_P);
	link->probability = fixed_exp(FIXED_ONE, link->log);
}

/* Ends an interval of `us` at `at`, with these arrivals. */
FIXED_INLINE void cohabit_end_interval(const struct cohabit_params *p, struct cohabit_link *link,
				       const struct cohabit_sums *input, __u64 at, __u64 us)
{
	struct cohabit_measured m = { .us = us };
	__u32 explicit_flows = cohabit_flows(link, COHABIT_EXPLICIT);
	__u32 known, class;
	__u64 usable;

	m.tcp_flows = cohabit_flows(link, COHABIT_TCP);
	known = explicit_flows && m.tcp_flows;
	for (class = 0; class < COHABIT_CLASSES; class++) {
		m.rates[class] = cohabit_rate(input->bytes[class], us);
		m.packets[class] = input->packets[class];
		link->rates[class] = m.rates[class];
	}
	link->other_rate =
		fixed_towards(link->other_rate, m.rates[COHABIT_OTHER], cohabit_weight(us, COHABIT_OTHER_US));
	usable = fixed_scale(p->capacity, p->target, 1000000);
	m.usable = usable > link->other_rate ? usable - link->other_rate : 0;
	m.explicit_part = known ? cohabit_explicit_part(explicit_flows, m.tcp_flows, p->weight) : FIXED_ONE;
	m.explicit_share = fixed_part(m.usable, m.explicit_part);
	m.both = known && input->bytes[COHABIT_EXPLICIT] && input->bytes[COHABIT_TCP];
	m.present = known;
	for (class = 0; class < COHABIT_OTHER; class++) {
		__u64 seen = input->seen[class];

		m.present &= seen && (at < seen || at - seen < COHABIT_PRESENCE_NS);
	}
	link->usable = m.usable;
	link->explicit_share = m.explicit_share;
	if (p->controller == COHABIT_IMPROVED)
		cohabit_improved(p, link, &m, at);
	else if (p->controller == COHABIT_PAPER)
		cohabit_paper(p, link, &m);
}

/* Starts a zeroed link at `now`. */
FIXED_INLINE void cohabit_start(const struct cohabit_params *p, struct cohabit_link *link,
				const struct cohabit_sums *total, __u64 now)
{
	link->interval_end = now + p->interval * 1000ull;
	link->flows_end = now + p->period * 1000ull;
	link->log = p->controller == COHABIT_PAPER ? p->initial_log : COHABIT_LOG_INITIAL_P;
	link->used = FIXED_ONE;
	link->depth = (p->depth * 1000ull) << 24; /* 34 + 24 bits */
	link->early = link->depth / 2;
	link->next_signal = FIXED_ONE;
	link->before = *total;
}

/*
 * Ends the control intervals that are over at `now`, given the sums of all CPUs. The first has the arrivals since the
 * last call; the others had none and end as one. Returns 1 if a filter is to be cleared.
 */
FIXED_INLINE int cohabit_advance(const struct cohabit_params *p, struct cohabit_link *link,
				 const struct cohabit_sums *total, __u64 now)
{
	__u64 interval = p->interval * 1000ull;
	struct cohabit_sums input = {};
	__u64 idle, end;
	int clear;
	__u32 class, step;

	if (!link->interval_end) {
		cohabit_start(p, link, total, now);
		return 0;
	}
	if (now < link->interval_end)
		return 0;
	for (class = 0; class < COHABIT_CLASSES; class++) {
		input.bytes[class] = total->bytes[class] - link->before.bytes[class];
		input.packets[class] = total->packets[class] - link->before.packets[class];
	}
	for (class = 0; class < COHABIT_OTHER; class++)
		input.seen[class] = total->seen[class];
	link->before = *total;
	clear = cohabit_count_period(p, link, now);
	idle = (now - link->interval_end) / interval;
	end = link->interval_end;
	for (step = 0; step < 2; step++) {
		__u64 intervals = step ? idle : 1;

		if (!intervals)
			break;
		end += step ? idle * interval : 0;
		cohabit_end_interval(p, link, &input, end, intervals * p->interval);
		for (class = 0; class < COHABIT_CLASSES; class++) {
			input.bytes[class] = 0;
			input.packets[class] = 0;
		}
	}
	link->interval_end = end + interval;
	return clear;
}

/* ------------------------------------------------------------------ a packet */

/* Returns the excess at which the next packet is dropped early. With one flow it is halfway from `excess` to the depth;
 * with more it is closer, because each needs a signal.
 */
FIXED_INLINE __u64 cohabit_next_early(const struct cohabit_link *link, __u64 excess)
{
	__u64 half = link->depth / 2;
	__u64 base = excess > half ? excess : half;
	__u64 next;

	if (base >= link->depth)
		return base - fixed_part(base - link->depth, link->per_flow);
	next = excess + fixed_part(link->depth - base, link->per_flow);
	return next > half ? next : half;
}

/* Returns 1 if a packet that brings the excess to this is to be dropped early. */
FIXED_INLINE int cohabit_is_early(struct cohabit_link *link, __u64 now, __u64 excess)
{
	int reacting = now < link->reacted;
	__u64 next = cohabit_next_early(link, excess);

	/* The rise counts from the smallest excess since the reaction. */
	if (reacting || next < link->early)
		link->early = next;
	return !reacting && excess >= link->early;
}

/* Decides on TCP data by the improved controller. */
FIXED_INLINE enum cohabit_verdict cohabit_limit(const struct cohabit_params *p, struct cohabit_link *link, __u64 now,
						__u64 bytes, __u32 segments, __u32 markable, __u32 random)
{
	/* Clocks of CPUs may differ by a little. */
	__u64 elapsed = now > link->drained ? now - link->drained : 0;
	__u64 drained = (elapsed < COHABIT_DRAIN_MAX_NS ? elapsed : COHABIT_DRAIN_MAX_NS) << 24;
	__u64 excess;

	bytes = bytes < COHABIT_PACKET_MAX ? bytes : COHABIT_PACKET_MAX;
	link->excess = drained < link->excess ? link->excess - drained : 0;
	link->drained += elapsed;
	link->arrived += segments;
	excess = link->excess + bytes * link->per_byte; /* 62; 19 + 44 bits */
	if (excess >= link->depth || cohabit_is_early(link, now, excess)) {
		link->reacted = now + link->reaction;
		link->early = cohabit_next_early(link, excess);
		link->limited += segments;
		return COHABIT_DROP;
	}
	link->pressure += link->probability * segments;
	if (link->pressure < link->next_signal) {
		link->excess = excess;
		return COHABIT_ADMIT;
	}
	/* Signals are spread: from 1/2 to 3/2 of the mean distance apart. */
	link->pressure = 0;
	link->next_signal = FIXED_ONE / 2 + random;
	if (!p->ecn || !markable)
		return COHABIT_DROP;
	link->excess = excess;
	return COHABIT_MARK;
}

/*
 * Decides on a TCP packet with data, `bytes` long in `segments`. `markable`: it may be marked (ECN). `random`: 32 random
 * bits. Needs the link's lock.
 */
FIXED_INLINE enum cohabit_verdict cohabit_decide(const struct cohabit_params *p, struct cohabit_link *link, __u64 now,
						 __u64 bytes, __u32 segments, __u32 markable, __u32 random)
{
	if (!link->active)
		return COHABIT_ADMIT;
	if (p->controller == COHABIT_IMPROVED)
		return cohabit_limit(p, link, now, bytes, segments, markable, random);
	if (random >= link->probability)
		return COHABIT_ADMIT;
	return p->ecn && markable ? COHABIT_MARK : COHABIT_DROP;
}

#endif
