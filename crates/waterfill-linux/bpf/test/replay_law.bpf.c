/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Replays recorded calls of a law in the kernel and compares the hash of all state with the recorded one, one record per
 * run. kernel/replay.h makes the calls; waterfill-laws/examples/law_record.rs records them. The build script compiles this
 * file for each law, whose header is LAW_HEADER.
 */
#include "../kernel.h"
#include LAW_HEADER
#include "replay.h"

#define RECORDS 100000

struct replay {
	__u64 at;    /* the next record */
	__u64 wrong; /* records with another hash */
	__u64 first; /* the first of them, counted from 1 */
	struct replay_state state;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct replay);
} replays SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, RECORDS);
	__type(key, __u32);
	__type(value, struct replay_record);
} records SEC(".maps");

SEC("tc")
int waterfill_replay(struct __sk_buff *skb __attribute__((unused)))
{
	struct replay_record *record;
	struct replay *r;
	__u32 key = 0;

	r = bpf_map_lookup_elem(&replays, &key);
	if (!r)
		return 0;
	key = (__u32)r->at;
	record = bpf_map_lookup_elem(&records, &key);
	if (!record)
		return 0;
	r->at++;
	if (replay_step(&r->state, record) != record->hash) {
		if (!r->wrong)
			r->first = r->at;
		r->wrong++;
	}
	return 0;
}

char _license[] SEC("license") = "Dual BSD/GPL";
