/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Recorded calls and how far they have been replayed, in maps that tests/common/replay.rs fills and reads. An includer
 * has defined struct replay, which begins with `at`, `wrong` and `first`, and REPLAY_RECORD, the type of a record.
 */
#ifndef WATERFILL_TEST_RECORDS_H
#define WATERFILL_TEST_RECORDS_H

#define RECORDS 100000

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
	__type(value, REPLAY_RECORD);
} records SEC(".maps");

static __always_inline struct replay *find_replay(void)
{
	__u32 key = 0;

	return bpf_map_lookup_elem(&replays, &key);
}

/* Takes the next record; 0: there is none. */
static __always_inline REPLAY_RECORD *take_record(struct replay *r)
{
	__u32 key = (__u32)r->at;
	REPLAY_RECORD *record = bpf_map_lookup_elem(&records, &key);

	if (record)
		r->at++;
	return record;
}

/* Counts the last record as wrong, from 1 on. */
static __always_inline void count_wrong(struct replay *r)
{
	if (!r->wrong)
		r->first = r->at;
	r->wrong++;
}

#endif
