/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * VCP, fixed-point version.
 *
 * src/protocols/vcp/mod.rs documents the law, its equations and how the paper is read; the tags [vcp-2005:...] are the
 * same in both. This file says how the law is computed without floating point, behind the interface of law.h.
 *
 * A router ticks every t_q to sample the queue, and measures its load with the tick that ends t_rho. A source's window
 * is a number of packets. Several acknowledgements together have the same effect as one by one. MI adds to the window
 * in proportion to them, and AI's w + n alpha/w is taken at the mean of the windows between.
 *
 *
 * Value
 *
 * The code of the two ECN bits in 3 bytes: 1 low, 2 high, 3 overload. 0 is "no router wrote", and routers keep the
 * maximum. A value above 3 counts as 3. A receiver copies it.
 *
 *
 * Scales
 *
 *   field            scale             range used here          why it fits
 *   ---------------  ----------------  -----------------------  -------------------------------
 *   window           2^-32 packets     1 .. 2^29 packets        61 bits; clamped
 *   load factor      2^-24             0 .. 2^32                clamped
 *   t_rho, t_q       us                100 .. 10^7              24 bits; t_rho is 1 to 2^16 times t_q
 *   t_d              us                1000 .. 10^7             24 bits
 *   RTT              2^-3 us           1 .. 2^27                16.8 s; clamped
 *   kappa_q          10^-3             0 .. 65535               16 bits
 *   gamma, weight    10^-6             1 .. 10^6                20 bits
 *   xi, beta         10^-6             1 .. 10^6                20 bits
 *   alpha            10^-3 packets     1 .. 2^20                clamped: 1049 packets
 *   alpha_rate       2^-32 packets     42 bits                  1024 packets per RTT; clamped
 *   C                bit/s             1 .. 2^50                1.1 Pbit/s; clamped
 *   bytes, queue     bytes             0 .. 2^50, 2^46          clamped
 *   volumes          2^-8 bytes        60 bits                  gamma C t_rho is 2^51 bytes
 *   acknowledged     packets           0 .. 2^20                clamped
 *
 * Where a product could exceed 64 bits, a comment counts its bits.
 *
 *
 * Differences from the law in real numbers
 *
 *   - xi_s is within 4 10^-5 of itself, and within 10^-6 where xi and RTT/t_rho are small (fixed.h).
 *   - A window is truncated to 2^-32 packets with each step, the persistent queue to 2^-8 bytes.
 *   - The RTT is TCP's smoothed one, in 2^-3 us; the law smooths the samples of acknowledgements, as TCP does.
 *   - Parameters have steps of a thousandth or a millionth, times of a microsecond.
 *   - t_rho is a whole number of t_q.
 *   - An acknowledgement without an echo does not move the window.
 *   - A window that the application does not fill does not grow.
 *   - A router writes before the queue, as a kernel does; the law writes behind it.
 */
#ifndef WATERFILL_VCP_H
#define WATERFILL_VCP_H

#include "law.h"

#define LAW WATERFILL_VCP
#define LAW_FORWARD_BYTES 3
#define LAW_ECHO_BYTES 3
#define LAW_PACED 0
#define LAW_RESTS_WITH_QUEUE 0
#define LAW_REACTION_US(p) ((p)->t_rho)

#define VCP_PACKET_BITS 32
#define VCP_PACKET (1ull << VCP_PACKET_BITS)
#define VCP_WINDOW_MAX (1ull << 61)
#define VCP_WINDOW_BYTES_MAX (1ull << 40)
#define VCP_CAPACITY_MAX (1ull << 50)
#define VCP_BYTES_MAX (1ull << 50)
#define VCP_QUEUE_MAX (1ull << 46)
#define VCP_VOLUME_MAX (1ull << 60)
#define VCP_ACKED_MAX (1u << 20)
#define VCP_ALPHA_MAX (1u << 20)
#define VCP_ALPHA_RATE_MAX (1ull << 42)
#define VCP_RTT_MAX (1u << 27)
#define VCP_SAMPLES_MAX (1u << 16)
/* The RTTs between which AI's rate is quadratic, 2^-3 us. */
#define VCP_AI_RTT_SHORT (8ull * 20000)
#define VCP_AI_RTT_LONG (8ull * 500000)

enum vcp_load { VCP_NONE, VCP_LOW, VCP_HIGH, VCP_OVER };
enum vcp_freeze { VCP_FREEZE_ALWAYS, VCP_FREEZE_OVERLOAD };

struct law_params {
	__u32 t_rho;	     /* us */
	__u32 t_q;	     /* us */
	__u32 kappa_q;	     /* 10^-3 */
	__u32 gamma;	     /* 10^-6 */
	__u32 queue_weight;  /* 10^-6 */
	__u32 xi;	     /* 10^-6 */
	__u32 alpha;	     /* 10^-3 packets */
	__u32 beta;	     /* 10^-6 */
	__u32 freeze;	     /* enum vcp_freeze */
	__u32 whole_percent; /* 1: the load factor is rounded up to whole per cent */
	__u32 t_d;	     /* us */
	__u32 reserved;
};

struct law_link {
	__u64 load_factor;  /* 2^-24 */
	__u64 queue;	    /* 2^-8 bytes: the persistent queue */
	__u64 volume;	    /* 2^-8 bytes: gamma C t_rho */
	__u64 arrived;	    /* bytes since the last measurement */
	__u64 waited;	    /* bytes: sum of the queue's samples since then */
	__u64 queue_weight; /* 2^-32 */
	__u64 arrival_rate; /* bit/s of the last t_rho */
	__u32 load;	    /* enum vcp_load: the value that packets get */
	__u32 ticks;	    /* since the last measurement */
	__u32 samples;	    /* ticks of t_rho */
	__u32 t_rho;	    /* us */
	__u32 t_q;	    /* us */
	__u32 kappa_q;	    /* 10^-3 */
	__u32 whole_percent;
	__u32 reserved;
};

struct law_sums {
	__u64 bytes;
};

struct law_cpu {
	struct law_sums sums;
};

struct law_source {
	__u64 window;	    /* 2^-32 packets */
	__u64 frozen_until; /* us: nothing moves the window until then, */
	__u64 adding_until; /* and overload is answered by AI until then; 0: no MD yet */
	__u32 load;	    /* enum vcp_load: the path's */
	__u32 heard;	    /* 1: a router has answered */
	__u32 rtt;	    /* 2^-3 us */
	__u32 packet;	    /* bytes */
	__u32 decreases;    /* how many MDs */
	__u32 reserved;
};

struct law_receiver {
	__u32 load;
	__u32 reserved;
};

/* ------------------------------------------------------------------ router */

/* Returns lambda + kappa_q q in 2^-8 bytes. [vcp-2005:load-factor] */
FIXED_INLINE __u64 vcp_load_volume(const struct law_link *link)
{
	__u64 arrived = (link->arrived < VCP_BYTES_MAX ? link->arrived : VCP_BYTES_MAX) << 8;
	__u64 volume = arrived + fixed_scale(link->queue, link->kappa_q, 1000); /* 58; 54 - 9 + 16; 10 + 16 bits */

	return volume < VCP_VOLUME_MAX ? volume : VCP_VOLUME_MAX;
}

/* Sets load factor and code: levels of 80 and 100 %. [vcp-2005:code] */
FIXED_INLINE void vcp_set_load(struct law_link *link)
{
	__u64 volume = vcp_load_volume(link);
	int low = volume * 5 < link->volume * 4; /* 60 + 3; 59 + 2 bits */
	int over = volume >= link->volume;

	if (volume / link->volume < 1u << 8)
		link->load_factor = fixed_divide(volume, link->volume, 24);
	else
		link->load_factor = 1ull << 32;
	if (link->whole_percent) {
		__u64 percent = volume / link->volume < 1u << 8 ? fixed_divide(100 * (volume >> 7), link->volume, 7) + 1 :
								  25601; /* 53 + 7 bits */

		low = percent < 80;
		over = percent >= 100;
		link->load_factor = (percent << 24) / 100;
	}
	link->load = over ? VCP_OVER : low ? VCP_LOW : VCP_HIGH;
}

/* Ends t_rho: moves the persistent queue towards the mean of the samples. [vcp-2005:load-factor] */
FIXED_INLINE void vcp_measure(struct law_link *link)
{
	if (link->ticks)
		link->queue = fixed_towards(link->queue, (link->waited / link->ticks) << 8, link->queue_weight);
	link->arrival_rate = fixed_scale(link->arrived < VCP_QUEUE_MAX ? link->arrived : VCP_QUEUE_MAX, 8000000,
					 link->t_rho); /* 46 - 6 + 23; 24 + 23 bits */
	vcp_set_load(link);
	link->arrived = 0;
	link->waited = 0;
	link->ticks = 0;
}

FIXED_INLINE void law_link_set(struct law_link *link, const struct law_params *p, __u64 capacity, __u32 target)
{
	__u32 t_rho = p->t_rho < 10000000 ? p->t_rho : 10000000;
	__u32 t_q = p->t_q < 10000000 ? p->t_q : 10000000;
	__u32 weight = p->queue_weight < 1000000 ? p->queue_weight : 1000000;

	if (capacity > VCP_CAPACITY_MAX)
		capacity = VCP_CAPACITY_MAX;
	if (!target || target > 1000000)
		target = p->gamma < 1000000 ? p->gamma : 1000000;
	capacity = fixed_scale(capacity, target, 1000000); /* 31 + 20; 20 + 20 bits */
	link->t_q = t_q > 100 ? t_q : 100;
	link->samples = t_rho / link->t_q;
	if (!link->samples)
		link->samples = 1;
	if (link->samples > VCP_SAMPLES_MAX)
		link->samples = VCP_SAMPLES_MAX;
	link->t_rho = link->samples * link->t_q; /* at most 10^7 */
	link->kappa_q = p->kappa_q < 65535 ? p->kappa_q : 65535;
	link->queue_weight = ((__u64)weight << 32) / 1000000;
	link->whole_percent = p->whole_percent;
	link->volume = fixed_scale(capacity, (__u64)link->t_rho << 8, 8000000); /* 28 + 32; 23 + 32 bits */
	if (!link->volume)
		link->volume = 1;
	if (!link->load)
		link->load = VCP_LOW;
	if (link->ticks >= link->samples) { /* t_rho has become shorter than what is measured: start anew */
		link->ticks = 0;
		link->arrived = 0;
		link->waited = 0;
	}
}

FIXED_INLINE __u32 law_interval(const struct law_link *link)
{
	return link->t_q;
}

FIXED_INLINE void law_tick(struct law_link *link, const struct law_sums *sums, __u64 queue)
{
	/* Fewer than 2^16 of each before a measurement. */
	link->arrived += sums->bytes < VCP_BYTES_MAX >> 3 ? sums->bytes : VCP_BYTES_MAX >> 3;
	link->waited += queue < VCP_QUEUE_MAX ? queue : VCP_QUEUE_MAX;
	link->ticks++;
	if (link->ticks >= link->samples)
		vcp_measure(link);
}

/* The first measurement counts what had arrived before; the later ones only move the persistent queue. */
FIXED_INLINE void law_idle(struct law_link *link, __u64 intervals, __u64 queue)
{
	__u64 waits = queue < VCP_QUEUE_MAX ? queue : VCP_QUEUE_MAX;
	__u64 ticks = link->ticks + (intervals < 1ull << 40 ? intervals : 1ull << 40);
	__u64 measurements = ticks / link->samples;
	__u64 rest = ticks % link->samples;
	__u64 keeps;

	if (!measurements) {
		link->waited += (rest - link->ticks) * waits;
		link->ticks = (__u32)rest;
		return;
	}
	link->waited += (link->samples - link->ticks) * waits; /* 16 + 46 bits */
	link->ticks = link->samples;
	vcp_measure(link);
	if (measurements > 1) {
		measurements = measurements <= 0xffffffff ? measurements - 1 : 0xffffffff;
		keeps = fixed_power(FIXED_ONE - link->queue_weight, (__u32)measurements);
		link->queue = fixed_towards(link->queue, waits << 8, FIXED_ONE - keeps);
		link->arrival_rate = 0;
		vcp_set_load(link);
	}
	link->waited = rest * waits;
	link->ticks = (__u32)rest;
}

FIXED_INLINE int law_syn_needs_lock(const struct law_link *link __attribute__((unused)))
{
	return 0;
}

/* The more congested of two. [vcp-2005:code] */
FIXED_INLINE int law_mark(struct law_link *link, struct law_cpu *cpu __attribute__((unused)),
			  const struct law_packet *packet __attribute__((unused)), __u8 *value)
{
	if (law_read_u24(value) >= link->load)
		return 0;
	law_write_u24(value, link->load);
	return 1;
}

FIXED_INLINE void law_link_read(const struct law_link *link, __u64 signals[LAW_SIGNALS])
{
	signals[0] = link->load;	 /* enum vcp_load */
	signals[1] = link->load_factor;	 /* 2^-24 */
	signals[2] = link->arrival_rate; /* bit/s */
	signals[3] = link->queue;	 /* 2^-8 bytes */
}

FIXED_INLINE void law_link_restore(struct law_link *link, __u64 load)
{
	if (load >= VCP_LOW && load <= VCP_OVER)
		link->load = (__u32)load;
}

/* ------------------------------------------------------------------ source */

FIXED_INLINE void vcp_set_window(struct law_source *s, __u64 window)
{
	window = window < VCP_WINDOW_MAX ? window : VCP_WINDOW_MAX;
	s->window = window > VCP_PACKET ? window : VCP_PACKET;
}

FIXED_INLINE void law_source_init(const struct law_params *p __attribute__((unused)), struct law_source *s,
				  __u32 packet, __u64 window)
{
	__u64 most;

	s->packet = packet ? packet : 1;
	s->packet = s->packet < 65535 ? s->packet : 65535;
	most = (__u64)s->packet << 29;
	vcp_set_window(s, fixed_divide(window < most ? window : most, s->packet, VCP_PACKET_BITS)); /* 29 + 32 bits */
}

FIXED_INLINE void law_request(const struct law_params *p __attribute__((unused)), __u8 *value)
{
	law_write_u24(value, VCP_NONE);
}

FIXED_INLINE void law_forward(const struct law_params *p __attribute__((unused)),
			      const struct law_source *s __attribute__((unused)), __u8 *value)
{
	law_write_u24(value, VCP_NONE);
}

FIXED_INLINE int law_heard(const __u8 *echo)
{
	return law_read_u24(echo) != 0;
}

/* Returns (1 + xi)^(rtt/t_rho) - 1 in 2^-32, the exponent at most 2.5. [vcp-2005:MI-scaling] */
FIXED_INLINE __u64 vcp_xi_scaled(__u32 xi, __u32 rtt, __u32 t_rho)
{
	__u64 longest = 20ull * t_rho; /* 2^-3 us: 2.5 t_rho */
	__u64 log = fixed_log_one_plus(((__u64)xi << 32) / 1000000); /* 34 bits */

	/* 34 + 27; 27 + 29 bits; at most 1.8, as xi <= 1. */
	return fixed_exp_less_one(fixed_scale(log, rtt < longest ? rtt : longest, 8ull * t_rho));
}

/* Returns alpha (rtt/t_d)^2 in 2^-32 packets, linear in the RTT outside 20 to 500 ms. [vcp-2005:AI-scaling] */
FIXED_INLINE __u64 vcp_alpha_scaled(__u32 alpha, __u32 rtt, __u32 t_d)
{
	__u64 reference = 64ull * t_d * t_d; /* 2^-6 us^2: 6 + 48 bits */
	__u64 square, scaled;

	if (rtt <= VCP_AI_RTT_SHORT)
		square = rtt * VCP_AI_RTT_SHORT;
	else if (rtt <= VCP_AI_RTT_LONG)
		square = (__u64)rtt * rtt;
	else
		square = (rtt - VCP_AI_RTT_LONG) * 8 * t_d + VCP_AI_RTT_LONG * VCP_AI_RTT_LONG; /* 27 + 27 bits; 44 */
	/* At most 2^18, with t_d = 1 ms; 50 bits. */
	scaled = fixed_scale(fixed_divide(square, reference, 32), alpha < VCP_ALPHA_MAX ? alpha : VCP_ALPHA_MAX, 1000);
	return scaled < VCP_ALPHA_RATE_MAX ? scaled : VCP_ALPHA_RATE_MAX;
}

/* Adds alpha_rate/w for each of n packets, at the mean of the windows that they would have one by one. [vcp-2005:AI] */
FIXED_INLINE void vcp_add(struct law_source *s, __u64 n, __u64 alpha_rate)
{
	/* 20 + 42 bits; (n - 1) alpha_rate / 2w is at most 2^30 2^31, as w is at least a packet. */
	__u64 half = fixed_divide((n - 1) * alpha_rate, s->window, VCP_PACKET_BITS - 1);

	vcp_set_window(s, s->window + fixed_divide(n * alpha_rate, s->window + half, VCP_PACKET_BITS));
}

/* Multiplies the window by a factor in 10^-6. [vcp-2005:MD] */
FIXED_INLINE void vcp_decrease(struct law_source *s, __u32 factor)
{
	factor = factor < 1000000 ? factor : 1000000;
	vcp_set_window(s, fixed_part(s->window, ((__u64)factor << 32) / 1000000));
}

/* MI, AI or MD, as the path's load says: MD once, then nothing for t_rho, then AI in answer to overload for an RTT. */
FIXED_INLINE void law_ack(const struct law_params *p, struct law_source *s, const struct law_tcp *tcp, int has_echo,
			  const __u8 *echo)
{
	__u64 now = tcp->now_us;
	__u64 acked = tcp->acked < VCP_ACKED_MAX ? tcp->acked : VCP_ACKED_MAX;
	__u32 load;

	s->rtt = tcp->srtt_us;
	if (!s->rtt)
		s->rtt = tcp->base_rtt_us < VCP_RTT_MAX >> 3 ? 8 * tcp->base_rtt_us : VCP_RTT_MAX;
	if (s->rtt > VCP_RTT_MAX)
		s->rtt = VCP_RTT_MAX;
	if (!has_echo)
		return;
	load = law_read_u24(echo);
	s->load = load < VCP_OVER ? load : VCP_OVER;
	if (load)
		s->heard = 1;
	if (!acked)
		return;
	if (now < s->frozen_until && (s->load == VCP_OVER || p->freeze == VCP_FREEZE_ALWAYS))
		return;
	if (s->load == VCP_OVER && now >= s->adding_until) {
		vcp_decrease(s, p->beta);
		s->frozen_until = now + p->t_rho;
		s->adding_until = s->frozen_until + (s->rtt >> 3);
		s->decreases++;
		return;
	}
	if (tcp->app_limited)
		return;
	if (s->load >= VCP_HIGH)
		vcp_add(s, acked, vcp_alpha_scaled(p->alpha, s->rtt, p->t_d ? p->t_d : 1));
	else /* [vcp-2005:MI]; 20 + 35 bits */
		vcp_set_window(s, s->window + acked * vcp_xi_scaled(p->xi, s->rtt, p->t_rho ? p->t_rho : 1));
}

/* As TCP Reno. */
FIXED_INLINE void law_loss(const struct law_params *p __attribute__((unused)), struct law_source *s)
{
	vcp_set_window(s, s->window / 2);
}

FIXED_INLINE void law_timeout(const struct law_params *p __attribute__((unused)), struct law_source *s)
{
	vcp_set_window(s, VCP_PACKET);
}

FIXED_INLINE void law_limit(struct law_source *s, const struct law_tcp *tcp, struct law_limit *limit)
{
	__u64 window;

	if (tcp->packet)
		s->packet = tcp->packet < 65535 ? tcp->packet : 65535;
	window = ((s->window >> 16) * s->packet) >> 16; /* 46 + 16 bits */
	limit->window = window < VCP_WINDOW_BYTES_MAX ? window : VCP_WINDOW_BYTES_MAX;
	limit->rate = 0;
	if (s->heard && s->rtt) {
		limit->rate = fixed_scale(limit->window, 64000000, s->rtt > 800 ? s->rtt : 800); /* 31 + 26; 27 + 26 bits */
		if (!limit->rate)
			limit->rate = 1;
	}
	limit->packet = s->packet;
	limit->steady = s->decreases != 0;
	limit->heard = s->heard;
}

FIXED_INLINE void law_reduce(struct law_source *s, __u32 shift)
{
	vcp_set_window(s, shift < 63 ? s->window - (s->window >> shift) : s->window);
}

FIXED_INLINE __u64 law_evidence(const struct law_source *s)
{
	return s->decreases;
}

/* An overloaded link's code cannot grow: it says so all the time, and the window is decreased. */
FIXED_INLINE int law_tightens(const struct law_source *s, __u64 evidence, __u64 us __attribute__((unused)))
{
	return s->load == VCP_OVER || s->decreases != (__u32)evidence;
}

FIXED_INLINE void law_source_read(const struct law_source *s, __u64 signals[LAW_SIGNALS])
{
	signals[0] = s->load;	   /* enum vcp_load */
	signals[1] = s->window;	   /* 2^-32 packets */
	signals[2] = s->decreases;
	signals[3] = s->rtt;	   /* 2^-3 us */
}

/* ------------------------------------------------------------------ receiver */

/* Copies the last value. */
FIXED_INLINE void law_receive(const struct law_params *p __attribute__((unused)), struct law_receiver *r,
			      __u64 now_us __attribute__((unused)), __u32 rtt_us __attribute__((unused)),
			      const __u8 *value, __u32 segments __attribute__((unused)))
{
	r->load = law_read_u24(value);
}

FIXED_INLINE void law_echo(const struct law_receiver *r, __u8 *echo)
{
	law_write_u24(echo, r->load);
}

FIXED_INLINE __u64 law_receiver_read(const struct law_receiver *r)
{
	return r->load;
}

#endif
