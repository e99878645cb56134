/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A packet in the host's memory behind the kernel's helpers that packet.h calls, so that the same source runs in a
 * sanitizer and in a fuzzer. Only the first `linear` bytes lie between `data` and `data_end`, as in the kernel.
 */
#ifndef WATERFILL_TEST_HOST_SKB_H
#define WATERFILL_TEST_HOST_SKB_H

#include <string.h>

#include <linux/types.h>

#undef __always_inline
#define __always_inline inline __attribute__((always_inline))
#define __noinline __attribute__((noinline))
#define barrier() __asm__ volatile("" ::: "memory")
#define barrier_var(variable) __asm__ volatile("" : "+r"(variable))

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define bpf_htons(x) ((__be16)__builtin_bswap16(x))
#define bpf_htonl(x) ((__be32)__builtin_bswap32(x))
#else
#define bpf_htons(x) ((__be16)(x))
#define bpf_htonl(x) ((__be32)(x))
#endif
#define bpf_ntohs(x) bpf_htons(x)
#define bpf_ntohl(x) bpf_htonl(x)

struct __sk_buff {
	__u8 *bytes;
	unsigned long data, data_end;
	__u32 length;
	__u32 protocol;
};

/* As in the kernel: what cannot be read whole is zeros, and an error. */
static inline int bpf_skb_load_bytes(const struct __sk_buff *skb, __u32 at, void *to, __u32 length)
{
	if (at > skb->length || length > skb->length - at) {
		memset(to, 0, length);
		return -14;
	}
	memcpy(to, skb->bytes + at, length);
	return 0;
}

static inline int bpf_skb_store_bytes(struct __sk_buff *skb, __u32 at, const void *from, __u32 length, __u64 flags)
{
	(void)flags;
	if (at > skb->length || length > skb->length - at)
		return -14;
	memcpy(skb->bytes + at, from, length);
	return 0;
}

/* Replaces a word of 32 bits in a sum (RFC 1624): ~(~sum + ~from + to). */
static inline int bpf_l4_csum_replace(struct __sk_buff *skb, __u32 at, __u64 from, __u64 to, __u64 flags)
{
	__u64 sum;
	__u16 word;

	(void)flags;
	if (at > 0xffff || at & 1 || bpf_skb_load_bytes(skb, at, &word, 2))
		return -14;
	sum = (__u16)~word + (__u64)(__u32)~(__u32)from + (__u32)to;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	word = (__u16)~sum;
	memcpy(skb->bytes + at, &word, 2);
	return 0;
}

#endif
