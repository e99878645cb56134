/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The decoders of a law's TCP option, for the test that compares them with C compiled for the host and with Rust
 * (tests/decoders.rs): the router's program, the verdict on a frame, and a host's reading of recorded options. The build
 * script compiles this file for each law, whose header is LAW_HEADER.
 */
#include <linux/types.h>
#include LAW_HEADER
#include "../router.inc.h"
#include "../host_option.h"
#include "decode.h"

struct replay {
	__u64 at;    /* the next record */
	__u64 wrong; /* records with another result */
	__u64 first; /* the first of them, counted from 1 */
};

/* What bpf_load_hdr_opt() has returned, and how a host reads it. */
struct record {
	__u32 kind;
	__s32 length;
	__u8 bytes[OPTION_MAX_BYTES];
	__u32 type; /* the results */
	__u8 forward[16];
	__u8 echo[16];
	__u32 reserved;
};

#define REPLAY_RECORD struct record
#include "records.h"

SEC("tc")
int waterfill_decode(struct __sk_buff *skb)
{
	return (int)decode(skb, 14);
}

SEC("tc")
int waterfill_replay(struct __sk_buff *skb __attribute__((unused)))
{
	struct replay *r = find_replay();
	struct host_option option;
	struct record *record;
	__u32 i, differ;

	if (!r)
		return 0;
	record = take_record(r);
	if (!record)
		return 0;
	host_parse_option(record->kind, record->bytes, record->length, &option);
	differ = option.type ^ record->type;
	for (i = 0; i < 16; i++)
		differ |= (option.forward[i] ^ record->forward[i]) | (option.echo[i] ^ record->echo[i]);
	if (differ)
		count_wrong(r);
	return 0;
}
