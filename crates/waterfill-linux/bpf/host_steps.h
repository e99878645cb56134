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
	struct host_step *step = log_steps ? begin_host_step(STEP_ACK, params) : 0;

	if (step) {
		step->tcp = *tcp;
		step->has_echo = has_echo;
		__builtin_memcpy(step->value, echo, LAW_ECHO_BYTES);
		step->before.source = *source;
	}
	law_ack(params, source, tcp, has_echo, echo);
	if (step) {
		step->after.source = *source;
		bpf_ringbuf_submit(step, 0);
	}
}

/* When data arrived, the base RTT (0: not known), and the number of segments. */
struct received_data {
	__u64 now_us;
	__u32 rtt_us, segments;
};

/* Calls law_receive(), which is inlined here, its only call: a BPF function has at most five arguments, and Linux 7.3
 * counts those in its type information, used or not.
 */
static __noinline int receive(const struct law_params *params, struct law_receiver *receiver,
			      const struct received_data *data, const __u8 *value)
{
	law_receive(params, receiver, data->now_us, data->rtt_us, value, data->segments);
	return 0;
}

static __always_inline void step_receive(const struct law_params *params, struct law_receiver *receiver,
					 const struct received_data *data, const __u8 *value)
{
	struct host_step *step = log_steps ? begin_host_step(STEP_RECEIVE, params) : 0;

	if (step) {
		step->now_us = data->now_us;
		step->rtt_us = data->rtt_us;
		step->segments = data->segments;
		__builtin_memcpy(step->value, value, LAW_FORWARD_BYTES);
		step->before.receiver = *receiver;
	}
	receive(params, receiver, data, value);
	if (step) {
		step->after.receiver = *receiver;
		bpf_ringbuf_submit(step, 0);
	}
}

#endif
