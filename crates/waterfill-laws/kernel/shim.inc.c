/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Compiles one law for the host. A law's unit, kernel/<law>.c, defines these and includes this file:
 *
 *   LAW_NAME      the law, as in <law>.h
 *   LAW_HEADER    "<law>.h"
 *   LAW_PARAMS    FIELD(law_params, <field>), for all fields in their order
 *
 * It exports one object, waterfill_law_<law>.
 */
#include "shim.h"

/* State is hashed and copied as words, so it has no padding. */
#pragma GCC diagnostic push
#pragma GCC diagnostic error "-Wpadded"
#include LAW_HEADER
#pragma GCC diagnostic pop

#include "replay.h"

#define SHIM_WORDS(type) (sizeof(type) / sizeof(__u64))
#define SHIM_WHOLE(type) _Static_assert(sizeof(type) % sizeof(__u64) == 0, #type " is whole words without padding")
#define SHIM_JOIN2(a, b) a##b
#define SHIM_JOIN(a, b) SHIM_JOIN2(a, b)

SHIM_WHOLE(struct law_params);
SHIM_WHOLE(struct law_link);
SHIM_WHOLE(struct law_sums);
SHIM_WHOLE(struct law_cpu);
SHIM_WHOLE(struct law_source);
SHIM_WHOLE(struct law_receiver);
SHIM_WHOLE(struct replay_record);
_Static_assert(LAW_FORWARD_BYTES >= 3 && LAW_FORWARD_BYTES <= LAW_VALUE_MAX, "a value of 3 to 15 bytes");
_Static_assert(LAW_ECHO_BYTES >= 3 && LAW_ECHO_BYTES <= LAW_VALUE_MAX, "an echo of 3 to 15 bytes");
_Static_assert(sizeof(struct law_params) <= LAW_PARAMS_MAX * sizeof(__u64), "parameters");
_Static_assert(offsetof(struct law_cpu, sums) == 0, "sums come first");
_Static_assert(offsetof(struct law_sums, bytes) == 0, "bytes come first");

static const struct waterfill_field *shim_params_fields(void)
{
	static const struct waterfill_field fields[] = { LAW_PARAMS, END_OF_FIELDS };

	return fields;
}

static void shim_link_set(__u64 *link, const __u64 *params, __u64 capacity, __u32 target)
{
	law_link_set((struct law_link *)link, (const struct law_params *)params, capacity, target);
}

static __u32 shim_interval(const __u64 *link)
{
	return law_interval((const struct law_link *)link);
}

static void shim_tick(__u64 *link, const __u64 *sums, __u64 queue)
{
	law_tick((struct law_link *)link, (const struct law_sums *)sums, queue);
}

static void shim_idle(__u64 *link, __u64 intervals, __u64 queue)
{
	law_idle((struct law_link *)link, intervals, queue);
}

static __u32 shim_mark(__u64 *link, __u64 *cpu, const struct law_packet *packet, __u8 *value)
{
	return (__u32)law_mark((struct law_link *)link, (struct law_cpu *)cpu, packet, value);
}

static __u32 shim_syn_needs_lock(const __u64 *link)
{
	return (__u32)law_syn_needs_lock((const struct law_link *)link);
}

static void shim_link_read(const __u64 *link, __u64 *signals)
{
	law_link_read((const struct law_link *)link, signals);
}

static void shim_link_restore(__u64 *link, __u64 signal)
{
	law_link_restore((struct law_link *)link, signal);
}

static void shim_source_init(const __u64 *params, __u64 *source, __u32 packet, __u64 window)
{
	law_source_init((const struct law_params *)params, (struct law_source *)source, packet, window);
}

static void shim_request(const __u64 *params, __u8 *value)
{
	law_request((const struct law_params *)params, value);
}

static void shim_forward(const __u64 *params, __u64 *source, __u8 *value)
{
	law_forward((const struct law_params *)params, (struct law_source *)source, value);
}

static __u32 shim_heard(const __u8 *echo)
{
	return (__u32)law_heard(echo);
}

static void shim_ack(const __u64 *params, __u64 *source, const struct law_tcp *tcp, __u32 has_echo, const __u8 *echo)
{
	law_ack((const struct law_params *)params, (struct law_source *)source, tcp, (int)has_echo, echo);
}

static void shim_loss(const __u64 *params, __u64 *source)
{
	law_loss((const struct law_params *)params, (struct law_source *)source);
}

static void shim_timeout(const __u64 *params, __u64 *source)
{
	law_timeout((const struct law_params *)params, (struct law_source *)source);
}

static void shim_limit(__u64 *source, const struct law_tcp *tcp, struct law_limit *limit)
{
	law_limit((struct law_source *)source, tcp, limit);
}

static void shim_reduce(__u64 *source, __u32 shift)
{
	law_reduce((struct law_source *)source, shift);
}

static __u64 shim_evidence(const __u64 *source)
{
	return law_evidence((const struct law_source *)source);
}

static __u32 shim_tightens(const __u64 *source, __u64 evidence, __u64 us)
{
	return (__u32)law_tightens((const struct law_source *)source, evidence, us);
}

static void shim_source_read(const __u64 *source, __u64 *signals)
{
	law_source_read((const struct law_source *)source, signals);
}

static void shim_receive(const __u64 *params, __u64 *receiver, __u64 now_us, __u32 rtt_us, const __u8 *value,
			 __u32 segments)
{
	law_receive((const struct law_params *)params, (struct law_receiver *)receiver, now_us, rtt_us, value,
		    segments);
}

static void shim_echo(__u64 *receiver, __u8 *echo)
{
	law_echo((struct law_receiver *)receiver, echo);
}

static __u64 shim_receiver_read(const __u64 *receiver)
{
	return law_receiver_read((const struct law_receiver *)receiver);
}

static __u64 shim_replay_step(__u64 *state, const __u64 *record)
{
	return replay_step((struct replay_state *)state, (const struct replay_record *)record);
}

static void shim_host_control(struct host_pace *pace, const struct law_limit *limit, const struct law_tcp *tcp,
			      struct host_send *send)
{
	host_control(pace, limit, tcp, 1, send);
}

const struct waterfill_shim SHIM_JOIN(waterfill_law_, LAW_NAME) = {
	.number = LAW,
	.forward_bytes = LAW_FORWARD_BYTES,
	.echo_bytes = LAW_ECHO_BYTES,
	.paced = LAW_PACED,
	.rests_with_queue = LAW_RESTS_WITH_QUEUE,
	.params = SHIM_WORDS(struct law_params),
	.link = SHIM_WORDS(struct law_link),
	.sums = SHIM_WORDS(struct law_sums),
	.cpu = SHIM_WORDS(struct law_cpu),
	.source = SHIM_WORDS(struct law_source),
	.receiver = SHIM_WORDS(struct law_receiver),
	.replay = SHIM_WORDS(struct replay_state),
	.params_fields = shim_params_fields,
	.link_set = shim_link_set,
	.interval = shim_interval,
	.tick = shim_tick,
	.idle = shim_idle,
	.mark = shim_mark,
	.syn_needs_lock = shim_syn_needs_lock,
	.link_read = shim_link_read,
	.link_restore = shim_link_restore,
	.source_init = shim_source_init,
	.request = shim_request,
	.forward = shim_forward,
	.heard = shim_heard,
	.ack = shim_ack,
	.loss = shim_loss,
	.timeout = shim_timeout,
	.limit = shim_limit,
	.reduce = shim_reduce,
	.evidence = shim_evidence,
	.tightens = shim_tightens,
	.source_read = shim_source_read,
	.receive = shim_receive,
	.echo = shim_echo,
	.receiver_read = shim_receiver_read,
	.replay_step = shim_replay_step,
	.host_control = shim_host_control,
};
