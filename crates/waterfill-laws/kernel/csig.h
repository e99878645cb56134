/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * CSIG (Congestion Signaling): the tag between a frame's addresses and its EtherType, how a signal's value becomes a
 * code, and the compare-and-replace of a hop. Kernel programs, the host and the simulator compile the same lines.
 *
 * Source: SAI 1.18, doc/CSIG/SAI-CSIG-Spec.md (opencomputeproject/SAI, 9c8a6046), figure 2 (its drawing is captioned
 * 1-2 and 1-3), sections 3.0 to 3.2. Bytes are in network order:
 *
 *              16 bits      then, from the highest bit on
 *   compact    TPID         t 3 | r 1 | s 5 | lm 6 | d 1
 *   wide       TPID         lm 15 | d 1 | t 4 | s 20 | r 8
 *
 *   t   type of the signal       s   its code      lm  locator metadata: who wrote last      r   reserved, 0
 *   d   do not update: a switch has trimmed the packet
 *
 * The drawing prints no widths. They are its boxes' widths in bits; they add up to 32 and 64, and agree with the text
 * where it gives numbers: 32 and 1,048,576 bands. t is 3 bits in the compact tag and 4 in the wide one. The older
 * draft-ravi-ippm-csig has no d bit.
 *
 * Values and bands. A value is an unsigned integer in a unit of the caller's choice. The compact tag has up to 32 bands
 * with configured limits. The wide tag has 2^20 bands of one width. Its base and its width are powers of two (section
 * 3.2), or the base is 0. A code stands for the middle of its band, because that halves the largest error.
 */
#ifndef WATERFILL_CSIG_H
#define WATERFILL_CSIG_H

/* The includer provides __u8, __u16, __u32 and __u64. */
#ifndef CSIG_INLINE
#define CSIG_INLINE static inline __attribute__((always_inline))
#endif

#define CSIG_COMPACT_BYTES 4
#define CSIG_WIDE_BYTES 8
#define CSIG_COMPACT_BITS 5
#define CSIG_WIDE_BITS 20
#define CSIG_BANDS 32
#define CSIG_COMPACT_LOCATORS 64
#define CSIG_WIDE_LOCATORS 32768

/* Types of a tag's signal (section 3.0, and our own CSIG_PRICE, which has no assigned type). */
enum csig_type {
	CSIG_ABW = 0,	/* available bandwidth; the smallest on the path */
	CSIG_ABWC = 1,	/* the same over the capacity; the smallest */
	CSIG_DELAY = 2, /* of a hop; the largest */
	CSIG_NQD = 3,	/* queue over the port's speed; the largest */
	CSIG_PRICE = 7, /* MaxNet's price; the largest */
};

enum csig_format {
	CSIG_COMPACT = 1,
	CSIG_WIDE = 2,
};

struct csig_tag {
	__u32 signal; /* enum csig_type */
	__u32 code;
	__u32 locator;
	__u32 trimmed; /* d */
};

/* Mapping from values to codes. */
struct csig_bands {
	__u64 lower[CSIG_BANDS]; /* compact: each band's smallest value, rising; unused ones repeat the end */
	__u64 end;		 /* compact: the last band's largest value */
	__u64 base;		 /* wide: 0 or a power of two */
	__u32 count;		 /* compact: bands, 1 to 32 */
	__u32 step_log;		 /* wide: log2 of a band's width */
};

/* ------------------------------------------------------------------ the tag's bytes */

/* The compact tag's two bytes behind the TPID, as a number. Fields that do not fit are cut. */
CSIG_INLINE __u32 csig_compact_pack(const struct csig_tag *tag)
{
	return (tag->signal & 7) << 13 | (tag->code & 31) << 7 | (tag->locator & 63) << 1 | (tag->trimmed & 1);
}

CSIG_INLINE void csig_compact_unpack(__u32 word, struct csig_tag *tag)
{
	tag->signal = word >> 13 & 7;
	tag->code = word >> 7 & 31;
	tag->locator = word >> 1 & 63;
	tag->trimmed = word & 1;
}

/* The wide tag's six bytes behind the TPID, as a number. */
CSIG_INLINE __u64 csig_wide_pack(const struct csig_tag *tag)
{
	return (__u64)(tag->locator & 0x7fff) << 33 | (__u64)(tag->trimmed & 1) << 32 | (__u64)(tag->signal & 15) << 28 |
	       (__u64)(tag->code & 0xfffff) << 8;
}

CSIG_INLINE void csig_wide_unpack(__u64 word, struct csig_tag *tag)
{
	tag->locator = word >> 33 & 0x7fff;
	tag->trimmed = word >> 32 & 1;
	tag->signal = word >> 28 & 15;
	tag->code = word >> 8 & 0xfffff;
}

/* Writes a tag with its TPID. Returns its length: 4 or 8. */
CSIG_INLINE __u32 csig_write(__u32 format, __u32 tpid, const struct csig_tag *tag, __u8 bytes[CSIG_WIDE_BYTES])
{
	__u64 word;

	bytes[0] = (__u8)(tpid >> 8);
	bytes[1] = (__u8)tpid;
	if (format == CSIG_COMPACT) {
		word = csig_compact_pack(tag);
		bytes[2] = (__u8)(word >> 8);
		bytes[3] = (__u8)word;
		return CSIG_COMPACT_BYTES;
	}
	word = csig_wide_pack(tag);
	bytes[2] = (__u8)(word >> 40);
	bytes[3] = (__u8)(word >> 32);
	bytes[4] = (__u8)(word >> 24);
	bytes[5] = (__u8)(word >> 16);
	bytes[6] = (__u8)(word >> 8);
	bytes[7] = (__u8)word;
	return CSIG_WIDE_BYTES;
}

/* Reads what is behind the TPID. */
CSIG_INLINE void csig_read(__u32 format, const __u8 *bytes, struct csig_tag *tag)
{
	if (format == CSIG_COMPACT)
		csig_compact_unpack((__u32)bytes[2] << 8 | bytes[3], tag);
	else
		csig_wide_unpack((__u64)bytes[2] << 40 | (__u64)bytes[3] << 32 | (__u64)bytes[4] << 24 |
					 (__u64)bytes[5] << 16 | (__u64)bytes[6] << 8 | bytes[7],
				 tag);
}

/* ------------------------------------------------------------------ values and codes */

/* Returns a value's code. Values beyond the first and last band get these. */
CSIG_INLINE __u32 csig_code(__u32 format, const struct csig_bands *bands, __u64 value)
{
	__u32 code, width;

	if (format == CSIG_COMPACT) {
		/* Bisection of 32 limits in 5 steps: the last band that begins at or below the value. */
		code = 0;
		for (width = CSIG_BANDS / 2; width; width /= 2)
			if (code + width < bands->count && value >= bands->lower[(code + width) % CSIG_BANDS])
				code += width;
		return code;
	}
	if (value < bands->base)
		return 0;
	value = (value - bands->base) >> (bands->step_log & 63);
	return value < (1u << CSIG_WIDE_BITS) ? (__u32)value : (1u << CSIG_WIDE_BITS) - 1;
}

/* Returns the middle of a code's band. */
CSIG_INLINE __u64 csig_value(__u32 format, const struct csig_bands *bands, __u32 code)
{
	__u64 lower, upper;

	if (format == CSIG_COMPACT) {
		if (code >= bands->count)
			code = bands->count - 1;
		lower = bands->lower[code % CSIG_BANDS];
		upper = code + 1 < bands->count ? bands->lower[(code + 1) % CSIG_BANDS] : bands->end;
		return upper > lower ? lower + (upper - lower) / 2 : lower;
	}
	return bands->base + ((__u64)code << (bands->step_log & 63)) + ((1ull << (bands->step_log & 63)) >> 1);
}

/* ------------------------------------------------------------------ compare and replace */

/* Returns 1 if a tag keeps the smallest value on the path. */
CSIG_INLINE int csig_is_min(__u32 type)
{
	return type == CSIG_ABW || type == CSIG_ABWC;
}

/* Returns the code of a tag that no hop has written: any hop's is at least as good. */
CSIG_INLINE __u32 csig_first(__u32 format, __u32 type)
{
	if (!csig_is_min(type))
		return 0;
	return format == CSIG_COMPACT ? CSIG_BANDS - 1 : (1u << CSIG_WIDE_BITS) - 1;
}

/* A hop: replaces the code, and with it the locator, if its own is more congested. Leaves tags of other types alone,
 * and those of trimmed packets (section 3.1's default). Returns 1 if the tag changed.
 */
CSIG_INLINE int csig_update(struct csig_tag *tag, __u32 type, __u32 code, __u32 locator)
{
	if (tag->signal != type || tag->trimmed)
		return 0;
	if (csig_is_min(type) ? code >= tag->code : code <= tag->code)
		return 0;
	tag->code = code;
	tag->locator = locator;
	return 1;
}

#endif
