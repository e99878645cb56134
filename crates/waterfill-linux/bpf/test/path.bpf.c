/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Paths for tests, one per section, at a device's egress: one writes a constant price and start rate; one drops SYNs
 * with the option; two remove the option, from all packets or from all but the handshake's; one writes random bytes
 * into it.
 */
#include <stdbool.h>

#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "../wire.h"

/* With x_max = 1 Pbit/s and T = 0.4 s: 50 Mbit/s, and a start rate of 40 Mbit/s. */
#define PRICE 1762787
#define START 4465462
#define START_RATE_FLAG (1u << 23)

#define ETHERNET 14
#define TCP 6
#define TCP_CHECKSUM 16

enum path_kind { PATH_PRICE, PATH_DROP_SYN, PATH_REMOVE, PATH_REMOVE_FROM_DATA, PATH_RANDOM };

static __always_inline int byte_at(struct __sk_buff *skb, __u32 offset)
{
	__u8 b;

	return bpf_skb_load_bytes(skb, offset, &b, 1) ? -1 : b;
}

/* Returns the offset of the TCP header; 0: not TCP. */
static __always_inline __u32 tcp_at(struct __sk_buff *skb)
{
	if (skb->protocol == bpf_htons(0x0800))
		return byte_at(skb, ETHERNET + 9) == TCP ? ETHERNET + (byte_at(skb, ETHERNET) & 15) * 4 : 0;
	if (skb->protocol == bpf_htons(0x86dd))
		return byte_at(skb, ETHERNET + 6) == TCP ? ETHERNET + 40 : 0;
	return 0;
}

/* Returns the offset of the option; 0: none. */
static __always_inline __u32 option_at(struct __sk_buff *skb, __u32 tcp)
{
	__u32 end = tcp + (byte_at(skb, tcp + 12) >> 4) * 4;
	__u32 at = tcp + 20;
	int kind, length, i;

	for (i = 0; i < 20 && at + 4 <= end; i++) {
		kind = byte_at(skb, at);
		if (kind == 1) {
			at++;
			continue;
		}
		length = byte_at(skb, at + 1);
		if (kind <= 0 || length < 2)
			return 0;
		if (kind == WATERFILL_KIND_EXPERIMENT)
			return at;
		at += length;
	}
	return 0;
}

/* Replaces the option. It starts at a multiple of four bytes, so the checksum's words are whole. */
static __always_inline void rewrite(struct __sk_buff *skb, __u32 tcp, __u32 at, __be32 *old, __be32 *new, bool both)
{
	__s64 change = both ? bpf_csum_diff(old, 12, new, 12, 0) : bpf_csum_diff(old, 8, new, 8, 0);

	bpf_l4_csum_replace(skb, tcp + TCP_CHECKSUM, 0, change, 0);
	if (both)
		bpf_skb_store_bytes(skb, at, new, 12, 0);
	else
		bpf_skb_store_bytes(skb, at, new, 8, 0);
}

static __always_inline int path(struct __sk_buff *skb, enum path_kind kind)
{
	__u32 tcp = tcp_at(skb);
	__be32 old[3] = {}, new[3];
	__u32 at, word, own;
	bool syn, both;

	if (!tcp)
		return TC_ACT_OK;
	at = option_at(skb, tcp);
	if (!at)
		return TC_ACT_OK;
	syn = byte_at(skb, tcp + 13) & 2;
	both = byte_at(skb, at + 1) == 12;
	if (both ? bpf_skb_load_bytes(skb, at, old, 12) : bpf_skb_load_bytes(skb, at, old, 8))
		return TC_ACT_OK;
	new[0] = old[0];
	new[1] = old[1];
	new[2] = old[2];
	if (kind == PATH_DROP_SYN && syn)
		return TC_ACT_SHOT;
	if (kind == PATH_REMOVE || (kind == PATH_REMOVE_FROM_DATA && !syn))
		new[0] = new[1] = new[2] = 0x01010101;
	word = bpf_ntohl(old[1]);
	own = word & START_RATE_FLAG ? START_RATE_FLAG | START : PRICE;
	if (kind == PATH_PRICE && (word >> 24) & WATERFILL_FORWARD && (word & 0xffffff) < own)
		new[1] = bpf_htonl((word & 0xff000000) | own);
	if (kind == PATH_RANDOM) {
		__u32 random = bpf_get_prandom_u32();

		/* Random values in half of the packets; sometimes a random type or length. */
		if (random & 1)
			new[1] = (old[1] & bpf_htonl(0xff000000)) | (bpf_get_prandom_u32() & bpf_htonl(0x00ffffff));
		if (both && random & 2)
			new[2] = bpf_get_prandom_u32();
		if (!(random & 0x70))
			new[1] = bpf_get_prandom_u32();
		if (!(random & 0x700))
			new[0] = (old[0] & bpf_htonl(0xff00ffff)) | (random & bpf_htonl(0x00ff0000));
	}
	rewrite(skb, tcp, at, old, new, both);
	return TC_ACT_OK;
}

SEC("price")
int path_price(struct __sk_buff *skb)
{
	return path(skb, PATH_PRICE);
}

SEC("drop_syn")
int path_drop_syn(struct __sk_buff *skb)
{
	return path(skb, PATH_DROP_SYN);
}

SEC("remove")
int path_remove(struct __sk_buff *skb)
{
	return path(skb, PATH_REMOVE);
}

SEC("remove_from_data")
int path_remove_from_data(struct __sk_buff *skb)
{
	return path(skb, PATH_REMOVE_FROM_DATA);
}

SEC("random")
int path_random(struct __sk_buff *skb)
{
	return path(skb, PATH_RANDOM);
}

char _license[] SEC("license") = "Dual BSD/GPL";
