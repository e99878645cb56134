/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Replays recorded calls of a law in the kernel and compares the hash of all state with the recorded one, one record per
 * run. kernel/replay.h makes the calls; waterfill-laws/examples/law_record.rs records them. The build script compiles this
 * file for each law, whose header is LAW_HEADER.
 */
#include "../kernel.h"
#include LAW_HEADER
#include "replay.h"

struct replay {
	__u64 at;    /* the next record */
	__u64 wrong; /* records with another hash */
	__u64 first; /* the first of them, counted from 1 */
	struct replay_state state;
};

#define REPLAY_RECORD struct replay_record
#include "records.h"

SEC("tc")
int waterfill_replay(struct __sk_buff *skb __attribute__((unused)))
{
	struct replay *r = find_replay();
	struct replay_record *record;

	if (!r)
		return 0;
	record = take_record(r);
	if (record && replay_step(&r->state, record) != record->hash)
		count_wrong(r);
	return 0;
}

char _license[] SEC("license") = "Dual BSD/GPL";
