/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A router's calls of its law, which are logged where steps.h says. */
#ifndef WATERFILL_ROUTER_STEPS_H
#define WATERFILL_ROUTER_STEPS_H

/* Of a program that has no log. */
#ifdef WATERFILL_NO_STEPS
#define step_mark(ifindex, link, cpu, packet, value) law_mark(link, cpu, packet, value)
#define step_tick(link, sums, queue, ifindex) law_tick(link, sums, queue)
#define step_idle(link, intervals, queue, ifindex) law_idle(link, intervals, queue)
#else

#include "steps.h"

struct router_step {
	struct step_head head;
	__u64 queue, intervals; /* of a tick, and of idle intervals */
	struct law_packet packet; /* of a mark, as the values: as it came, and as it left */
	__u8 value[LAW_VALUE_MAX + 1], written[LAW_VALUE_MAX + 1];
	struct law_sums sums;
	struct law_link before, after;
	struct law_cpu cpu_before, cpu_after;
};

static __always_inline struct router_step *begin_router_step(__u32 call, __u32 ifindex, const struct law_link *link,
							     const struct law_cpu *cpu)
{
	struct router_step *step = reserve_step(sizeof(*step));

	if (!step)
		return 0;
	__builtin_memset(step, 0, sizeof(*step));
	step->head.time = bpf_ktime_get_ns();
	step->head.call = call;
	step->head.state_words = sizeof(*link) / 8;
	step->head.cpu_words = sizeof(*cpu) / 8;
	step->head.sums_words = sizeof(struct law_sums) / 8;
	step->head.entity = ifindex;
	step->before = *link;
	if (cpu)
		step->cpu_before = *cpu;
	return step;
}

static __always_inline void end_router_step(struct router_step *step, const struct law_link *link,
					    const struct law_cpu *cpu)
{
	step->after = *link;
	if (cpu)
		step->cpu_after = *cpu;
	bpf_ringbuf_submit(step, 0);
}

static __always_inline int step_mark(__u32 ifindex, struct law_link *link, struct law_cpu *cpu,
				     const struct law_packet *packet, __u8 *value)
{
	struct router_step *step;
	int changed;

	if (!log_steps)
		return law_mark(link, cpu, packet, value);
	step = begin_router_step(STEP_MARK, ifindex, link, cpu);
	if (!step)
		return law_mark(link, cpu, packet, value);
	step->packet = *packet;
	__builtin_memcpy(step->value, value, LAW_FORWARD_BYTES);
	changed = law_mark(link, cpu, packet, value);
	__builtin_memcpy(step->written, value, LAW_FORWARD_BYTES);
	end_router_step(step, link, cpu);
	return changed;
}

/* The calls at an interval's end are global functions: the verifier follows each once, not for every place that calls
 * it. RCP's program would exceed its million instructions otherwise.
 */
__noinline int step_tick(struct law_link *link, const struct law_sums *sums, __u64 queue, __u32 ifindex)
{
	struct router_step *step = 0;

	if (!link || !sums)
		return 0;
	if (log_steps)
		step = begin_router_step(STEP_TICK, ifindex, link, 0);
	if (step) {
		step->queue = queue;
		step->sums = *sums;
	}
	law_tick(link, sums, queue);
	if (step)
		end_router_step(step, link, 0);
	return 0;
}

__noinline int step_idle(struct law_link *link, __u64 intervals, __u64 queue, __u32 ifindex)
{
	struct router_step *step = 0;

	if (!link)
		return 0;
	if (log_steps)
		step = begin_router_step(STEP_IDLE, ifindex, link, 0);
	if (step) {
		step->queue = queue;
		step->intervals = intervals;
	}
	law_idle(link, intervals, queue);
	if (step)
		end_router_step(step, link, 0);
	return 0;
}

#endif /* WATERFILL_NO_STEPS */
#endif
