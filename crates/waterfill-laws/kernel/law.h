/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The interface between a law and what runs it: the kernel programs (waterfill-linux/bpf) and the simulator.
 *
 * One header per law (maxnet.h, xcp.h, ...) implements it, with the names below. It computes with integers, calls no
 * helper and keeps no state of its own. A compilation unit includes exactly one law, and is then a router or a host
 * that runs it. Structures are zeroed before the first call. Functions are FIXED_INLINE.
 *
 *
 * What a law defines
 *
 *   LAW                   its number, enum waterfill_law
 *   LAW_FORWARD_BYTES     value that data carry and routers write: 3 .. 15
 *   LAW_ECHO_BYTES        value that acknowledgements carry back: 3 .. 15
 *   LAW_PACED             1: the rate is paced; 0: the window alone limits the source
 *   LAW_RATE_ONLY         1, of a paced law: its window never limits the rate; 0 if not defined, or no window
 *   LAW_RESTS_WITH_QUEUE  1: a queue stands in equilibrium, so a queue does not mean that a router is missing
 *   LAW_RESTS_LOSING(params)
 *                         packets/s that are lost in equilibrium where the buffer is shorter than the law's queue, so
 *                         this loss does not mean that a router is missing; 0 if not defined
 *   LAW_REACTION_US(params)
 *                         how long routers need to answer a change, us, where that is longer than an RTT; else 0
 *   struct law_params     parameters, 32 or 64 bits each without padding, in the order of LAW_PARAMS in LAW.c
 *   struct law_link       one link direction; changed under the link's lock, read without
 *   struct law_sums       what arrived, all __u64, the first `bytes`: of all packets, counted by the caller
 *   struct law_cpu        one CPU's part of a link: its running sums first (`struct law_sums sums`, which only grow
 *                         and wrap at 2^64), then what the law keeps by CPU, such as residues
 *   struct law_source, struct law_receiver
 *                         the two ends of a connection
 *
 * Router
 *
 *   void  law_link_set(link, params, capacity, target)
 *             Sets up a zeroed link, or changes a running one and keeps its signal. The capacity is in bit/s, the target
 *             in 10^-6. A daemon without --target passes 0, which is the law's own target; the simulator never does.
 *   __u32 law_interval(link)
 *             Time until the next tick, us.
 *   void  law_tick(link, sums, queue)
 *             Ends an interval. `sums` are its arrivals, over all CPUs; `queue` waits now, bytes.
 *   void  law_idle(link, intervals, queue)
 *             Ends many intervals of the present length without arrivals, in bounded time. `queue` is their mean. The
 *             result may differ from that of as many ticks; the law's header states by how much.
 *   int   law_mark(link, cpu, packet, value)
 *             Counts a packet that carries this law's value, and writes the value; 1 if it changed.
 *   int   law_syn_needs_lock(link)
 *             Whether law_mark() of a SYN changes the link, and so should have its lock.
 *   void  law_link_read(link, signals)
 *             For status: LAW_SIGNALS numbers that daemon/kernel/law.rs names. The first survives an upgrade:
 *   void  law_link_restore(link, signal)
 *             Starts a new link with an old one's first signal.
 *
 * Source
 *
 *   void  law_source_init(params, source, packet, window)
 *             A connection with these sizes of packets and first window, in bytes.
 *   void  law_request(params, value)
 *             The value of a SYN.
 *   void  law_forward(params, source, value)
 *             The value of a data packet.
 *   int   law_heard(echo)
 *             Returns 1 if a router on the path wrote the value.
 *   void  law_ack(params, source, tcp, has_echo, echo)
 *             Takes acknowledgements, those since the last call together.
 *   void  law_loss(params, source), law_timeout(params, source)
 *             The start of a recovery; the retransmission timer. LAW_IGNORES_LOSS defines both for a law that
 *             does nothing then.
 *   void  law_limit(source, tcp, limit)
 *             What the law allows now.
 *   void  law_reduce(source, shift)
 *             Reduces rate and window by 2^-shift of themselves: echoes have been missing for long.
 *   __u64 law_evidence(source), int law_tightens(source, evidence, us)
 *             A mark of the path's signal, and whether it has tightened since that mark, `us` ago, as a router on an
 *             overloaded link makes it. At an overload of 0.5 % it must return 1 within a few LAW_REACTION_US, because
 *             the host takes 0 for a bottleneck without a router. A signal at its limit cannot tighten and returns 0.
 *   void  law_source_read(source, signals)
 *             For status, as law_link_read(); the first is the path's signal, 0 before the first.
 *
 * Receiver
 *
 *   void  law_receive(params, receiver, now_us, rtt_us, value, segments)
 *             Takes the value of a packet, or of `segments` that were merged. An RTT of 0 is not known.
 *   void  law_echo(receiver, echo)
 *             The value to send back. It may be lost or not sent, so it must not matter whether it was.
 *   __u64 law_receiver_read(receiver)
 *             For status: the signal that it echoes, 0: none.
 *
 * Values on the wire are big-endian. All zeros: no router wrote the value, or no host received one.
 */
#ifndef WATERFILL_LAW_H
#define WATERFILL_LAW_H

/* The includer provides __u8, __u32, __s64 and __u64: linux/types.h in a kernel program, the shim on a host. */
#include "fixed.h"

/* On the wire, so a number is never used again: the type byte of an option is 4 times the law's number plus what
 * follows (waterfill-linux/bpf/wire.h).
 */
enum waterfill_law {
	WATERFILL_MAXNET = 0,
	WATERFILL_MAXNET2006 = 1,
	WATERFILL_AECP = 2,
	WATERFILL_RCP = 3,
	WATERFILL_VCP = 4,
	WATERFILL_XCP = 5,
	WATERFILL_PXCP = 6,
	WATERFILL_IXCP = 7,
	WATERFILL_JETMAX = 8,
};

/* Longest value of any law. */
#define LAW_VALUE_MAX 15
/* Most words of struct law_params. */
#define LAW_PARAMS_MAX 32
/* Numbers that a law shows. */
#define LAW_SIGNALS 4

/* A packet as a router's law sees it; a super-packet (GSO) is several. */
struct law_packet {
	__u64 bytes; /* on the link, of all segments */
	__u32 segments;
	__u32 syn; /* 1: a SYN */
};

/* TCP's state of a connection when it calls the law. */
struct law_tcp {
	__u64 now_us;
	__u32 srtt_us;	      /* smoothed RTT, times 8; 0: not known */
	__u32 base_rtt_us;    /* smallest RTT; 0: not known */
	__u32 delivered;      /* packets since the connection began */
	__u32 acked;	      /* packets since the law's last call */
	__u32 in_flight;      /* packets, before this acknowledgement */
	__u32 packet;	      /* bytes of a full packet from the IP header on, as routers count them */
	__u32 payload;	      /* bytes of it that pacing counts */
	__u32 max_segments;   /* packets of a super-packet; 1 if the device has no TSO */
	__u32 recovering;     /* 1: recovery from a loss */
	__u32 app_limited;    /* 1: the application limits the rate */
	__u32 window_limited; /* 1: the window limits the rate */
	__u32 unlimited;      /* 1: the application sets no limit of the pacing rate */
	__u32 reserved;
};

/* Limits that a law sets for a source. */
struct law_limit {
	__u64 rate;   /* bit/s, also of a law that is not paced: window over RTT; 0: no router has answered yet */
	__u64 window; /* bytes; 0: the rate alone limits */
	__u32 packet; /* bytes, as above */
	__u32 steady; /* 1: past its start, so rates can be compared */
	__u32 heard;  /* 1: a router's value has been applied, not only a start rate */
	__u32 reserved;
};

/* Defines law_loss() and law_timeout() of a law that does nothing then, after its structures. */
#define LAW_IGNORES_LOSS                                                                   \
	FIXED_INLINE void law_loss(const struct law_params *p __attribute__((unused)),     \
				   struct law_source *s __attribute__((unused)))           \
	{                                                                                  \
	}                                                                                  \
	FIXED_INLINE void law_timeout(const struct law_params *p __attribute__((unused)),  \
				      struct law_source *s __attribute__((unused)))        \
	{                                                                                  \
	}

/* Values as the numbers that laws compare. */

FIXED_INLINE __u32 law_read_u24(const __u8 *b)
{
	return (__u32)b[0] << 16 | (__u32)b[1] << 8 | b[2];
}

FIXED_INLINE void law_write_u24(__u8 *b, __u32 value)
{
	b[0] = (__u8)(value >> 16);
	b[1] = (__u8)(value >> 8);
	b[2] = (__u8)value;
}

FIXED_INLINE __u32 law_read_u16(const __u8 *b)
{
	return (__u32)b[0] << 8 | b[1];
}

FIXED_INLINE void law_write_u16(__u8 *b, __u32 value)
{
	b[0] = (__u8)(value >> 8);
	b[1] = (__u8)value;
}

#endif
