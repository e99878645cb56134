/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A host's calls of its law, which are logged where steps.h says. */
#ifndef WATERFILL_HOST_STEPS_H
#define WATERFILL_HOST_STEPS_H

#include "steps.h"

struct host_step {
	struct step_head head;
	struct law_params params;
	struct law_tcp tcp; /* of an acknowledgement */
	__u64 now_us;	    /* of data, as the next two */
	__u32 rtt_us, segments;
	__u32 has_echo, reserved;
	__u8 value[LAW_VALUE_MAX + 1]; /* an echo, or what data carried */
	union {
		struct law_source source;
		struct law_receiver receiver;
	} before, after;
};

static __always_inline struct host_step *begin_host_step(__u32 call, const struct law_params *params)
{
	struct host_step *step = reserve_step(sizeof(*step));

	if (!step)
		return 0;
	__builtin_memset(step, 0, sizeof(*step));
	step->head.time = bpf_ktime_get_ns();
	step->head.call = call;
	step->head.state_words = sizeof(step->before) / 8;
	step->head.cpu_words = sizeof(*params) / 8;
	step->params = *params;
	return step;
}

static __always_inline void step_ack(const struct law_params *params, struct law_source *source,
				     const struct law_tcp *tcp, int has_echo, const __u8 *echo)
{
	struct host_step *step;

	if (!log_steps) {
		law_ack(params, source, tcp, has_echo, echo);
		return;
	}
	step = begin_host_step(STEP_ACK, params);
	if (!step) {
		law_ack(params, source, tcp, has_echo, echo);
		return;
	}
	step->tcp = *tcp;
	step->has_echo = has_echo;
	__builtin_memcpy(step->value, echo, LAW_ECHO_BYTES);
	step->before.source = *source;
	law_ack(params, source, tcp, has_echo, echo);
	step->after.source = *source;
	bpf_ringbuf_submit(step, 0);
}

static __always_inline void step_receive(const struct law_params *params, struct law_receiver *receiver, __u64 now_us,
					 __u32 rtt_us, const __u8 *value, __u32 segments)
{
	struct host_step *step;

	if (!log_steps) {
		law_receive(params, receiver, now_us, rtt_us, value, segments);
		return;
	}
	step = begin_host_step(STEP_RECEIVE, params);
	if (!step) {
		law_receive(params, receiver, now_us, rtt_us, value, segments);
		return;
	}
	step->now_us = now_us;
	step->rtt_us = rtt_us;
	step->segments = segments;
	__builtin_memcpy(step->value, value, LAW_FORWARD_BYTES);
	step->before.receiver = *receiver;
	law_receive(params, receiver, now_us, rtt_us, value, segments);
	step->after.receiver = *receiver;
	bpf_ringbuf_submit(step, 0);
}

#endif
