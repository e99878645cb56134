/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Boxes in the path that mean no good to a new TCP option: one takes it out of every packet, one drops SYNs that carry it.
 * For tc's ingress, IPv4 and Ethernet; compiled and attached by the testbed (`maxnet_special.py`) alone.
 */
#include <linux/bpf.h>
#include <linux/pkt_cls.h>

#define SEC(name) __attribute__((section(name), used))

static long (*skb_store_bytes)(void *skb, __u32 offset, const void *from, __u32 length, __u64 flags) = (void *)9;
static long (*l4_csum_replace)(void *skb, __u32 offset, __u64 from, __u64 to, __u64 flags) = (void *)11;
static long (*skb_load_bytes)(const void *skb, __u32 offset, void *to, __u32 length) = (void *)26;

#define ETHERNET 14
#define TCP 6
#define TCP_HEADER 20
#define TCP_CHECKSUM 16
#define SYN 0x02
#define KIND_EXPERIMENT 253
#define KIND_PAPER 42
#define NOP 1
#define MAX_OPTIONS 40

/* Between the network's order of bytes and ours. */
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define ORDER(word) __builtin_bswap16(word)
#else
#define ORDER(word) (word)
#endif

struct option {
	__u32 tcp;    /* where the TCP header begins */
	__u32 offset; /* where the option begins; 0: there is none */
	__u32 length;
	__u8 flags;
};

static __attribute__((noinline)) int find(struct __sk_buff *skb, struct option *o)
{
	__u8 ip[20], tcp[TCP_HEADER], field[2];
	__u32 at, end;

	o->offset = 0;
	o->flags = 0;
	if (skb_load_bytes(skb, ETHERNET, ip, sizeof(ip)) || ip[0] >> 4 != 4 || ip[9] != TCP)
		return 0;
	o->tcp = ETHERNET + (ip[0] & 15) * 4;
	if (skb_load_bytes(skb, o->tcp, tcp, sizeof(tcp)))
		return 0;
	o->flags = tcp[13];
	at = o->tcp + TCP_HEADER;
	end = o->tcp + (tcp[12] >> 4) * 4;
	for (int i = 0; i < MAX_OPTIONS && at + 1 < end; i++) {
		if (skb_load_bytes(skb, at, field, sizeof(field)) || field[0] == 0)
			return 0;
		if (field[0] == NOP) {
			at++;
			continue;
		}
		if (field[1] < 2)
			return 0;
		if (field[0] == KIND_EXPERIMENT || field[0] == KIND_PAPER) {
			o->offset = at;
			o->length = field[1];
			return 0;
		}
		at += field[1];
	}
	return 0;
}

/* Every byte of the option becomes a NOP; words are those of the checksum, counted from the TCP header. */
SEC("tc/strip")
int strip(struct __sk_buff *skb)
{
	struct option o = {};

	find(skb, &o);
	if (!o.offset)
		return TC_ACT_OK;
	for (__u32 i = 0; i < 12 && i < o.length; i++) {
		__u32 at = o.offset + i, odd = (at - o.tcp) & 1, word = at - odd;
		__u16 before = 0, after;

		if (skb_load_bytes(skb, word, &before, sizeof(before)))
			return TC_ACT_SHOT;
		after = odd ? (ORDER(before) & 0xff00) | NOP : (ORDER(before) & 0xff) | NOP << 8;
		after = ORDER(after);
		l4_csum_replace(skb, o.tcp + TCP_CHECKSUM, before, after, sizeof(before));
		skb_store_bytes(skb, word, &after, sizeof(after), 0);
	}
	return TC_ACT_OK;
}

SEC("tc/drop_syn")
int drop_syn(struct __sk_buff *skb)
{
	struct option o = {};

	find(skb, &o);
	return o.offset && o.flags & SYN ? TC_ACT_SHOT : TC_ACT_OK;
}

char licence[] SEC("license") = "Dual BSD/GPL";
