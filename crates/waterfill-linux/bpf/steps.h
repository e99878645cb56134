/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Logs the steps of a law for `waterfill verify`: a record in a ring buffer for each call, with its inputs, the state
 * before and after it, and what it wrote. The daemon turns it on before it loads the programs (`--log-steps`). Otherwise
 * the verifier knows that `log_steps` is 0 and removes all of this.
 *
 * A call that finds the buffer full is not logged, and counted. docs/validation/certificates.md describes the records;
 * python/waterfill/verify/kernel.py reads them.
 */
#ifndef WATERFILL_STEPS_H
#define WATERFILL_STEPS_H

/* Of a program that has no log. */
#ifdef WATERFILL_NO_STEPS
#define step_mark(ifindex, link, cpu, packet, value) law_mark(link, cpu, packet, value)
#define step_tick(ifindex, link, sums, queue) law_tick(link, sums, queue)
#define step_idle(ifindex, link, intervals, queue) law_idle(link, intervals, queue)
#else

enum step_call { STEP_MARK, STEP_TICK, STEP_IDLE, STEP_ACK, STEP_RECEIVE };

const volatile __u32 log_steps SEC(".rodata.steps") = 0;

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 16); /* the daemon sets a larger size */
} steps SEC(".maps");

/* Steps that found no space. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} steps_lost SEC(".maps");

/* Words are of 64 bits. */
struct step_head {
	__u64 time; /* ns */
	__u8 call;  /* enum step_call */
	__u8 state_words, cpu_words, sums_words;
	__u32 entity; /* the device's index; 0: a host */
};

static __always_inline void *reserve_step(__u64 bytes)
{
	__u32 zero = 0;
	__u64 *lost;
	void *step = bpf_ringbuf_reserve(&steps, bytes, 0);

	if (!step) {
		lost = bpf_map_lookup_elem(&steps_lost, &zero);
		if (lost)
			__sync_fetch_and_add(lost, 1);
	}
	return step;
}

/* A router's call. */
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

static __always_inline void step_tick(__u32 ifindex, struct law_link *link, const struct law_sums *sums, __u64 queue)
{
	struct router_step *step;

	if (!log_steps) {
		law_tick(link, sums, queue);
		return;
	}
	step = begin_router_step(STEP_TICK, ifindex, link, 0);
	if (!step) {
		law_tick(link, sums, queue);
		return;
	}
	step->queue = queue;
	step->sums = *sums;
	law_tick(link, sums, queue);
	end_router_step(step, link, 0);
}

static __always_inline void step_idle(__u32 ifindex, struct law_link *link, __u64 intervals, __u64 queue)
{
	struct router_step *step;

	if (!log_steps) {
		law_idle(link, intervals, queue);
		return;
	}
	step = begin_router_step(STEP_IDLE, ifindex, link, 0);
	if (!step) {
		law_idle(link, intervals, queue);
		return;
	}
	step->queue = queue;
	step->intervals = intervals;
	law_idle(link, intervals, queue);
	end_router_step(step, link, 0);
}

/* A host's call. */
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

#endif /* WATERFILL_NO_STEPS */
#endif
