/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * SCONE: throughput advice that a network element writes into QUIC packets (draft-ietf-scone-protocol, of August 2026).
 *
 * This file has the codec, the fair rate of a link's law, and the rule by which an element limits how often it writes.
 * It uses integers only and calls no library. The kernel's program (waterfill-linux/bpf/scone.bpf.c) and the host
 * include it; src/scone.rs has the same in real numbers, and tests compare the two for every code.
 *
 *
 * On the wire
 *
 * A SCONE packet is the first packet of a datagram, and another QUIC packet follows it:
 *
 *     1 | reserved (1) | signal's bits 6..1 (6) | version (32) | length, destination ID | length, source ID
 *
 * The version is 0x6f7dc0fd with the signal's bit 0 as its first bit. So the signal is in the datagram's first two
 * bytes, which are one word of UDP's checksum. Signal n stands for 100 kbit/s 10^(n/20), from 0 to 126; 127 is "unknown".
 * An element replaces a signal only by a lower one.
 *
 * The TCP form (draft-eddy-tcpm-scone-01, expired) has no option kind yet, so it is not written. It prints another rate
 * (docs/validation/errata.md).
 *
 *
 * Rounding
 *
 * scone_code() rounds a rate to the nearest signal, so that advice is within half a step (10^(1/40), 5.9 %) of it.
 * Rounding down would cost up to 10.9 %. Rates below the range get 0, and rates above it 127: what the scale cannot
 * express as a limit is no advice.
 */
#ifndef WATERFILL_SCONE_H
#define WATERFILL_SCONE_H

/* The includer provides __u8, __u32 and __u64: linux/types.h in a kernel program, the shim on a host. */
#include "fixed.h"

#define SCONE_VERSION 0x6f7dc0fdu
#define SCONE_VERSION_MASK 0x7fffffffu
/* No advice: what endpoints send. */
#define SCONE_UNKNOWN 127u
/* Bytes up to the destination ID's length, inclusive. */
#define SCONE_HEAD_BYTES 6
/* Monitoring period: what endpoints advised once, they may forget after it. */
#define SCONE_PERIOD_NS 67000000000ull
/* Writes per flow and period in any case, and the time after which one more is due. */
#define SCONE_FIRST_WRITES 4
#define SCONE_WRITE_AGAIN_NS 8000000000ull

/* ------------------------------------------------------------------ rates */

/* 100 kbit/s 10^(j/40) in bit/s, truncated: signals at even j, the boundaries between them at odd j. */
static const __u64 scone_half_steps[256] = {
	100000, 105925, 112201, 118850, 125892, 133352, 141253, 149623,
	158489, 167880, 177827, 188364, 199526, 211348, 223872, 237137,
	251188, 266072, 281838, 298538, 316227, 334965, 354813, 375837,
	398107, 421696, 446683, 473151, 501187, 530884, 562341, 595662,
	630957, 668343, 707945, 749894, 794328, 841395, 891250, 944060,
	1000000, 1059253, 1122018, 1188502, 1258925, 1333521, 1412537, 1496235,
	1584893, 1678804, 1778279, 1883649, 1995262, 2113489, 2238721, 2371373,
	2511886, 2660725, 2818382, 2985382, 3162277, 3349654, 3548133, 3758374,
	3981071, 4216965, 4466835, 4731512, 5011872, 5308844, 5623413, 5956621,
	6309573, 6683439, 7079457, 7498942, 7943282, 8413951, 8912509, 9440608,
	10000000, 10592537, 11220184, 11885022, 12589254, 13335214, 14125375, 14962356,
	15848931, 16788040, 17782794, 18836490, 19952623, 21134890, 22387211, 23713737,
	25118864, 26607250, 28183829, 29853826, 31622776, 33496543, 35481338, 37583740,
	39810717, 42169650, 44668359, 47315125, 50118723, 53088444, 56234132, 59566214,
	63095734, 66834391, 70794578, 74989420, 79432823, 84139514, 89125093, 94406087,
	100000000, 105925372, 112201845, 118850222, 125892541, 133352143, 141253754, 149623565,
	158489319, 167880401, 177827941, 188364908, 199526231, 211348903, 223872113, 237137370,
	251188643, 266072505, 281838293, 298538261, 316227766, 334965439, 354813389, 375837404,
	398107170, 421696503, 446683592, 473151258, 501187233, 530884444, 562341325, 595662143,
	630957344, 668343917, 707945784, 749894209, 794328234, 841395141, 891250938, 944060876,
	1000000000, 1059253725, 1122018454, 1188502227, 1258925411, 1333521432, 1412537544, 1496235656,
	1584893192, 1678804018, 1778279410, 1883649089, 1995262314, 2113489039, 2238721138ull, 2371373705ull,
	2511886431ull, 2660725059ull, 2818382931ull, 2985382618ull, 3162277660ull, 3349654391ull, 3548133892ull, 3758374042ull,
	3981071705ull, 4216965034ull, 4466835921ull, 4731512589ull, 5011872336ull, 5308844442ull, 5623413251ull, 5956621435ull,
	6309573444ull, 6683439175ull, 7079457843ull, 7498942093ull, 7943282347ull, 8413951416ull, 8912509381ull, 9440608762ull,
	10000000000ull, 10592537251ull, 11220184543ull, 11885022274ull, 12589254117ull, 13335214321ull, 14125375446ull, 14962356560ull,
	15848931924ull, 16788040181ull, 17782794100ull, 18836490894ull, 19952623149ull, 21134890398ull, 22387211385ull, 23713737056ull,
	25118864315ull, 26607250597ull, 28183829312ull, 29853826189ull, 31622776601ull, 33496543915ull, 35481338923ull, 37583740428ull,
	39810717055ull, 42169650342ull, 44668359215ull, 47315125896ull, 50118723362ull, 53088444423ull, 56234132519ull, 59566214352ull,
	63095734448ull, 66834391756ull, 70794578438ull, 74989420933ull, 79432823472ull, 84139514164ull, 89125093813ull, 94406087628ull,
	100000000000ull, 105925372517ull, 112201845430ull, 118850222743ull, 125892541179ull, 133352143216ull, 141253754462ull, 149623565609ull,
	158489319246ull, 167880401812ull, 177827941003ull, 188364908948ull, 199526231496ull, 211348903983ull, 223872113856ull, 237137370566ull,
};

/* Returns the rate of a signal, bit/s; 0 of 127. */
FIXED_INLINE __u64 scone_rate(__u32 code)
{
	return code < SCONE_UNKNOWN ? scone_half_steps[2 * code & 0xff] : 0;
}

/* Returns the signal that is nearest to a rate in bit/s, below 2^63; 127 above the range. */
FIXED_INLINE __u32 scone_code(__u64 rate)
{
	__u32 code = 0;
	__u32 bit;

	/* The largest code whose lower boundary is below the rate: no boundary is a whole number. */
	for (bit = 64; bit; bit >>= 1)
		code += bit * (__u32)fixed_at_least(rate, scone_half_steps[(2 * (code + bit) - 1) & 0xff] + 1);
	return code;
}

/* ------------------------------------------------------------------ a link's advice */

/* Rule from a law's first signal (law_link_read()) to the fair rate of its flows. */
enum scone_rule {
	SCONE_NONE,   /* the law has no fair rate */
	SCONE_DEMAND, /* a price in 2^-34 s: x_max e^(-p/T), the equilibrium rate of MaxNet's sources [maxnet-2007:eq7] */
	SCONE_RATE,   /* a rate in 2^-shift bit/s; 0: none */
};

struct scone_advice {
	__u64 x_max; /* bit/s */
	__u32 t;     /* ms */
	__u32 rule;  /* enum scone_rule */
	__u32 shift;
	__u32 reserved;
};

/* Returns the fair rate at a link's signal, bit/s; 0: none. */
FIXED_INLINE __u64 scone_fair_rate(const struct scone_advice *advice, __u64 signal)
{
	__u64 t = advice->t ? advice->t : 1;

	if (advice->rule == SCONE_RATE)
		return signal >> (advice->shift & 63);
	if (advice->rule != SCONE_DEMAND)
		return 0;
	/* Beyond e^-44 every rate is 0; below, the quotient times 1000 has at most 40 bits. */
	if (signal / t >= FIXED_EXP_MAX / 1000)
		return fixed_exp(advice->x_max, FIXED_EXP_MAX);
	return fixed_exp(advice->x_max, fixed_scale(signal, 1000, t));
}

/* Returns the advice at a link's signal; 127: none. */
FIXED_INLINE __u32 scone_advise(const struct scone_advice *advice, __u64 signal)
{
	__u64 rate = scone_fair_rate(advice, signal);

	if (!rate && advice->rule != SCONE_DEMAND)
		return SCONE_UNKNOWN;
	return scone_code(rate);
}

/* ------------------------------------------------------------------ packets */

/* Returns 1 if a datagram that starts with these 5 bytes starts with a SCONE packet. */
FIXED_INLINE int scone_is_packet(const __u8 *head)
{
	return head[0] & 0x80 && (head[1] & 0x7f) == SCONE_VERSION >> 24 && head[2] == (SCONE_VERSION >> 16 & 0xff) &&
	       head[3] == (SCONE_VERSION >> 8 & 0xff) && head[4] == (SCONE_VERSION & 0xff);
}

/* Returns the signal in a SCONE packet's first two bytes. */
FIXED_INLINE __u32 scone_read(const __u8 *head)
{
	return (head[0] & 0x3fu) << 1 | head[1] >> 7;
}

/* Writes a signal into a SCONE packet's first two bytes. */
FIXED_INLINE void scone_write(__u8 *head, __u32 code)
{
	head[0] = (__u8)((head[0] & 0xc0) | code >> 1);
	head[1] = (__u8)((head[1] & 0x7f) | (code & 1) << 7);
}

/* Returns 1 if a datagram has space for a SCONE packet with IDs of these lengths and a packet behind it. That packet
 * starts with a byte and the same destination ID in every version of QUIC (RFC 8999).
 */
FIXED_INLINE int scone_fits(__u32 destination, __u32 source, __u32 length)
{
	return SCONE_HEAD_BYTES + destination + 1 + source + 1 + destination <= length;
}

/* ------------------------------------------------------------------ how often an element writes */

/* One flow of datagrams, by its addresses and ports. Zeros: not seen before. */
struct scone_flow {
	__u64 start;  /* ns: of its present period */
	__u64 last;   /* ns: of the last write */
	__u32 writes; /* in this period */
	__u32 lowest; /* the lowest signal written in this period */
};

/* Returns 1 if a flow's signal may be lowered to `code` now, and then counts the write. By the draft an element
 * changes the datagrams of a flow "a few times each monitoring period", as they may not be QUIC, and more often after a
 * change. Endpoints follow the lowest signal of a period, so a change is one that is lower. At most 13 writes
 * and one per code.
 */
FIXED_INLINE int scone_may_write(struct scone_flow *flow, __u64 now, __u32 code)
{
	if (!flow->writes || now - flow->start >= SCONE_PERIOD_NS) {
		flow->start = now;
		flow->writes = 0;
		flow->lowest = SCONE_UNKNOWN;
	}
	if (flow->writes >= SCONE_FIRST_WRITES && code >= flow->lowest && now - flow->last < SCONE_WRITE_AGAIN_NS)
		return 0;
	flow->last = now;
	flow->writes++;
	if (code < flow->lowest)
		flow->lowest = code;
	return 1;
}

#endif
