/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The maps that the host programs share. The daemon pins them, so that connections outlive it. */
#ifndef WATERFILL_MAPS_H
#define WATERFILL_MAPS_H

#include <stdbool.h>

#include "kernel_tcp.h"
#include "conn.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct host_params);
} parameters SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct host_connection);
} connections SEC(".maps");

/* Destinations to which the option did not get through. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct host_destination);
	__type(value, struct host_backoff);
} places SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct host_counters);
} counters SEC(".maps");

/* The latest fallbacks and returns (events.h), by number modulo HOST_EVENTS, */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, HOST_EVENTS);
	__type(key, __u32);
	__type(value, struct host_event);
} events SEC(".maps");

/* and the number of the last one. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} event_count SEC(".maps");

/* Cookies of the network namespaces whose connections use the option; all do unless the parameters say so. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, __u64);
	__type(value, __u8);
} namespaces SEC(".maps");

/* Networks with whose hosts connections use the option; all do unless the parameters say so. */
struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(max_entries, 4096);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct host_prefix);
	__type(value, __u8);
} peers SEC(".maps");

static __always_inline const struct host_params *host_parameters(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&parameters, &zero);
}

static __always_inline const struct law_params *host_law_params(const struct host_params *p)
{
	return (const struct law_params *)p->law;
}

static __always_inline struct host_counters *host_counters(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&counters, &zero);
}

/* Adds one to a counter of `struct host_counters`. Several CPUs may count at once. */
#define HOST_COUNT(counter)                                            \
	do {                                                           \
		struct host_counters *all = host_counters();           \
		if (all)                                               \
			__sync_fetch_and_add(&all->counter, 1);        \
	} while (0)

static __always_inline void host_count_fallback(__u32 reason)
{
	struct host_counters *all = host_counters();

	if (!all)
		return;
	barrier_var(reason); /* 6.1's verifier forgets a bound that was checked before the lookup */
	if (reason < HOST_REASONS)
		__sync_fetch_and_add(&all->fallbacks[reason], 1);
}

#endif
