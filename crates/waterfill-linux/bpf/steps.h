/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Logs the steps of a law for its certificate: a record in a ring buffer for each call, with its inputs, the state
 * before and after it, and what it wrote. The daemon turns it on before it loads the programs (`--log-steps`). Otherwise
 * the verifier knows that `log_steps` is 0 and removes all of this.
 *
 * A call that finds the buffer full is not logged, and counted. The records are in router_steps.h and host_steps.h;
 * validation/certificates/fixed/log.py reads them.
 */
#ifndef WATERFILL_STEPS_H
#define WATERFILL_STEPS_H

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

#endif
