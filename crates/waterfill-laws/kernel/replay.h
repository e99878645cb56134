/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Plays recorded calls of a law, for tests: compiled for the host with the shim, and as a kernel program
 * (waterfill-linux/bpf/test/replay_law.bpf.c). A record is a call with its inputs and the hash of all state and results after
 * it. The two therefore agree only if they compute the same bits. Include the law first.
 */
#ifndef WATERFILL_REPLAY_H
#define WATERFILL_REPLAY_H

#include "host.h"

#define REPLAY_CPUS 2

enum replay_call {
	REPLAY_START,	    /* zeroes everything */
	REPLAY_PARAMS,	    /* in: offset, then six words of struct law_params from there */
	REPLAY_LINK_SET,    /* in: capacity, target */
	REPLAY_COUNT,	    /* in: CPU, bytes */
	REPLAY_MARK,	    /* in: CPU, bytes, segments, syn; value */
	REPLAY_TICK,	    /* in: queue */
	REPLAY_IDLE,	    /* in: intervals, queue */
	REPLAY_RESTORE,	    /* in: signal */
	REPLAY_SOURCE_INIT, /* in: packet, window */
	REPLAY_REQUEST,
	REPLAY_FORWARD,
	REPLAY_ACK, /* in: struct law_tcp; value; has_echo is the call's bit 32 */
	REPLAY_LIMIT, /* in: struct law_tcp */
	REPLAY_LOSS,
	REPLAY_TIMEOUT,
	REPLAY_REDUCE,	 /* in: shift */
	REPLAY_TIGHTENS, /* in: evidence, us */
	REPLAY_RECEIVE,	 /* in: now, RTT, segments; value */
	REPLAY_ECHO,
	REPLAY_CONTROL, /* in: struct law_tcp; the host's additions, with the last limit */
	REPLAY_TIME_OUT, /* of the host */
};

struct replay_record {
	__u64 call;
	__u64 in[8];
	__u8 value[16];
	__u64 hash;
};

/* All words, so that a hash of them has no padding in it. */
struct replay_state {
	struct law_params params;
	struct law_link link;
	struct law_cpu cpu[REPLAY_CPUS];
	struct law_sums counted; /* of both CPUs at the last tick */
	struct law_sums sums;	 /* of the last interval */
	struct law_source source;
	struct law_receiver receiver;
	struct host_pace pace;
	struct host_send send;
	/* Results of the last call. */
	struct law_limit limit;
	__u64 result[LAW_SIGNALS];
	__u8 value[16];
};

/* Of 32-bit hosts, some align 64-bit words to 4 bytes: there the last half word is missing. */
_Static_assert(sizeof(struct law_tcp) <= 8 * sizeof(__u64), "struct law_tcp is a record's inputs");

/* Returns a hash of all words of the state. */
FIXED_INLINE __u64 replay_hash(const struct replay_state *s)
{
	const __u64 *words = (const __u64 *)s;
	__u64 hash = 0xcbf29ce484222325ull;
	__u32 i;

	for (i = 0; i < sizeof(*s) / sizeof(__u64); i++) {
		hash = (hash ^ words[i]) * 0x100000001b3ull;
		hash ^= hash >> 32;
	}
	return hash;
}

/* Sets the sums of the interval: those of all CPUs less those at the last tick. */
FIXED_INLINE void replay_sums(struct replay_state *s)
{
	__u64 *counted = (__u64 *)&s->counted;
	__u64 *sums = (__u64 *)&s->sums;
	const __u64 *first = (const __u64 *)&s->cpu[0].sums;
	const __u64 *second = (const __u64 *)&s->cpu[1].sums;
	__u32 i;

	for (i = 0; i < sizeof(struct law_sums) / sizeof(__u64); i++) {
		__u64 count = first[i] + second[i];

		sums[i] = count - counted[i];
		counted[i] = count;
	}
}

FIXED_INLINE void replay_mark(struct replay_state *s, const struct replay_record *r)
{
	struct law_packet packet = {
		.bytes = r->in[1],
		.segments = (__u32)r->in[2],
		.syn = (__u32)r->in[3],
	};
	struct law_cpu *cpu = &s->cpu[r->in[0] & (REPLAY_CPUS - 1)];

	cpu->sums.bytes += packet.bytes;
	s->result[0] = law_mark(&s->link, cpu, &packet, s->value);
}

/* A connection with these sizes of packets and first window, in bytes. */
FIXED_INLINE void replay_source_init(struct replay_state *s, __u32 packet, __u64 window)
{
	law_source_init(&s->params, &s->source, packet, window);
	host_init(&s->pace);
	s->send.window = packet ? (__u32)(window / packet) : 1;
}

/* The host's part of an acknowledgement, after the law's. */
FIXED_INLINE void replay_control(struct replay_state *s, const struct law_tcp *tcp)
{
	s->result[0] = (__u64)host_is_due(&s->pace, tcp, s->limit.rate);
	if (s->result[0])
		host_control(&s->pace, &s->limit, tcp, 1, &s->send);
}

/* Words of the parameters. */
FIXED_INLINE void replay_params(struct replay_state *s, const struct replay_record *r)
{
	__u32 i;

	for (i = 0; i < 6; i++) {
		__u64 word = r->in[0] + i;

		__asm__("" : "+r"(word)); /* the verifier needs the comparison with this register */
		if (word < sizeof(struct law_params) / sizeof(__u64))
			((__u64 *)&s->params)[word] = r->in[1 + i];
	}
}

/* A call of the link's. */
FIXED_INLINE void replay_link(struct replay_state *s, const struct replay_record *r)
{
	switch ((__u32)r->call) {
	case REPLAY_LINK_SET:
		law_link_set(&s->link, &s->params, r->in[0], (__u32)r->in[1]);
		s->result[0] = law_interval(&s->link);
		s->result[1] = (__u64)law_syn_needs_lock(&s->link);
		break;
	case REPLAY_COUNT:
		s->cpu[r->in[0] & (REPLAY_CPUS - 1)].sums.bytes += r->in[1];
		break;
	case REPLAY_MARK:
		replay_mark(s, r);
		break;
	case REPLAY_TICK:
		replay_sums(s);
		law_tick(&s->link, &s->sums, r->in[0]);
		s->result[0] = law_interval(&s->link);
		break;
	case REPLAY_IDLE:
		law_idle(&s->link, r->in[0], r->in[1]);
		law_link_read(&s->link, s->result);
		break;
	default: /* REPLAY_RESTORE */
		law_link_restore(&s->link, r->in[0]);
	}
}

/* Makes a record's call and returns the hash after it; the value that it writes is in the state. */
FIXED_INLINE __u64 replay_step(struct replay_state *s, const struct replay_record *r)
{
	const struct law_tcp *tcp = (const struct law_tcp *)r->in;
	__u32 i;

	for (i = 0; i < LAW_SIGNALS; i++)
		s->result[i] = 0;
	__builtin_memcpy(s->value, r->value, sizeof(s->value));
	switch ((__u32)r->call) {
	case REPLAY_START:
		__builtin_memset(s, 0, sizeof(*s));
		break;
	case REPLAY_PARAMS:
		replay_params(s, r);
		break;
	case REPLAY_LINK_SET:
	case REPLAY_COUNT:
	case REPLAY_MARK:
	case REPLAY_TICK:
	case REPLAY_IDLE:
	case REPLAY_RESTORE:
		replay_link(s, r);
		break;
	case REPLAY_SOURCE_INIT:
		replay_source_init(s, (__u32)r->in[0], r->in[1]);
		break;
	case REPLAY_REQUEST:
		law_request(&s->params, s->value);
		break;
	case REPLAY_FORWARD:
		law_forward(&s->params, &s->source, s->value);
		break;
	case REPLAY_ACK:
		law_ack(&s->params, &s->source, tcp, (int)(r->call >> 32 & 1), s->value);
		law_source_read(&s->source, s->result);
		break;
	case REPLAY_LIMIT:
		law_limit(&s->source, tcp, &s->limit);
		break;
	case REPLAY_LOSS:
		law_loss(&s->params, &s->source);
		break;
	case REPLAY_TIMEOUT:
		law_timeout(&s->params, &s->source);
		break;
	case REPLAY_REDUCE:
		law_reduce(&s->source, (__u32)r->in[0]);
		break;
	case REPLAY_TIGHTENS:
		s->result[0] = (__u64)law_tightens(&s->source, r->in[0], r->in[1]);
		s->result[1] = law_evidence(&s->source);
		break;
	case REPLAY_RECEIVE:
		s->result[0] = (__u64)law_heard(s->value);
		law_receive(&s->params, &s->receiver, r->in[0], (__u32)r->in[1], s->value, (__u32)r->in[2]);
		break;
	case REPLAY_ECHO:
		law_echo(&s->receiver, s->value);
		s->result[0] = law_receiver_read(&s->receiver);
		break;
	case REPLAY_CONTROL:
		replay_control(s, tcp);
		break;
	default: /* REPLAY_TIME_OUT */
		host_time_out(&s->pace);
	}
	return replay_hash(s);
}

#endif
