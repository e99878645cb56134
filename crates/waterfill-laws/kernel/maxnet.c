/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* maxnet.h and host.h for the simulator, which calls them, and for tests, which compare them with the law. */
#include <stdint.h>

typedef uint8_t __u8;
typedef uint32_t __u32;
typedef uint64_t __u64;
typedef int64_t __s64;

#include "maxnet.h"
#include "mirror.h"

/* src/protocols/maxnet/fixed_point.rs mirrors these structs and asserts the same sizes. */
_Static_assert(sizeof(struct maxnet_params) == 40, "params");
_Static_assert(sizeof(struct maxnet_source) == 96, "source: at most the 104 bytes of icsk_ca_priv");
_Static_assert(sizeof(struct maxnet_receiver) == 32, "receiver");
_Static_assert(sizeof(struct maxnet_link) == 104, "link");
_Static_assert(sizeof(struct host_pace) == 40, "host_pace");
_Static_assert(sizeof(struct law_tcp) == 64, "law_tcp");
_Static_assert(sizeof(struct host_send) == 16, "host_send");
_Static_assert(sizeof(struct law_source) == sizeof(struct maxnet_source), "law_source has nothing else");

void waterfill_maxnet_params_default(struct maxnet_params *params)
{
	maxnet_params_default(params);
}

void waterfill_maxnet_link_init(struct maxnet_link *link, __u64 capacity, __u64 x_max, __u32 t, __u32 mu, __u32 dt_p,
				__u32 t_0, __u32 promise)
{
	maxnet_link_init(link, capacity, x_max, t, mu, dt_p, t_0, promise);
}

void waterfill_maxnet_link_set(struct maxnet_link *link, __u64 capacity, __u32 mu)
{
	maxnet_link_set(link, capacity, mu);
}

void waterfill_maxnet_tick(struct maxnet_link *link, __u64 bytes, __u64 queue)
{
	maxnet_tick(link, bytes, queue);
}

void waterfill_maxnet_idle(struct maxnet_link *link, __u64 intervals, __u64 queue)
{
	maxnet_idle(link, intervals, queue);
}

__u32 waterfill_maxnet_mark(struct maxnet_link *link, __u32 field)
{
	return maxnet_mark(link, field);
}

__u32 waterfill_maxnet_mark_price(const struct maxnet_link *link, __u32 field)
{
	return maxnet_mark_price(link, field);
}

void waterfill_maxnet_receive(const struct maxnet_params *params, struct maxnet_receiver *receiver, __u64 now,
			      __u32 rtt, __u32 field)
{
	maxnet_receive(params, receiver, now, rtt, field);
}

__u32 waterfill_maxnet_echo(const struct maxnet_receiver *receiver)
{
	return maxnet_echo(receiver);
}

void waterfill_maxnet_source_init(const struct maxnet_params *params, struct maxnet_source *source, __u32 packet,
				  __u64 window, __u32 weight)
{
	maxnet_source_init(params, source, packet, window, weight);
}

void waterfill_maxnet_ack(const struct maxnet_params *params, struct maxnet_source *source, __u64 now, __u32 base_rtt,
			  __u32 field)
{
	maxnet_ack(params, source, now, base_rtt, field);
}

void waterfill_maxnet_base_rtt(const struct maxnet_params *params, struct maxnet_source *source, __u32 base_rtt)
{
	maxnet_base_rtt(params, source, base_rtt);
}

__u64 waterfill_maxnet_pacing(const struct maxnet_source *source)
{
	return maxnet_pacing(source);
}

/* What a host adds, in the order of the BPF program's acknowledgements. */

void waterfill_maxnet_host_init(struct host_pace *pace)
{
	host_init(pace);
}

/* Returns whether the law was called: else the next acknowledgement has this one's packets too. */
__u32 waterfill_maxnet_host_ack(const struct maxnet_params *params, struct maxnet_source *source,
			       struct host_pace *pace, const struct law_tcp *tcp, __u32 field, struct host_send *send)
{
	struct law_limit limit = { 0 };

	if (!host_is_due(pace, tcp, source->rate))
		return 0;
	maxnet_host_echo(params, source, tcp->now_us, tcp->base_rtt_us, 1, field);
	law_limit((struct law_source *)source, tcp, &limit);
	host_control(pace, &limit, tcp, 1, send);
	return 1;
}

void waterfill_maxnet_host_time_out(struct host_pace *pace)
{
	host_time_out(pace);
}

void waterfill_maxnet_host_receive(const struct maxnet_params *params, struct maxnet_receiver *receiver, __u64 now,
				   __u32 rtt, __u32 field)
{
	maxnet_host_receive(params, receiver, now, rtt, field);
}

__u32 waterfill_maxnet_host_tau(const struct maxnet_source *source, __u32 base_rtt)
{
	return maxnet_host_tau(source, base_rtt);
}

/* One equation each, for tests. */

__u64 waterfill_maxnet_exp(__u64 scale, __u64 u)
{
	return fixed_exp(scale, u);
}

__u64 waterfill_maxnet_time_for(__u64 bytes, __u64 queue, __u32 dt_p, __u32 t_0, __u64 capacity)
{
	return maxnet_time_for(maxnet_with_queue(bytes, queue, dt_p, t_0), capacity);
}

__s64 waterfill_maxnet_xi_rest(__u32 code, __u32 alpha, __u32 base_rtt, __u32 t)
{
	return maxnet_xi_rest(code, alpha, base_rtt, t);
}

__s64 waterfill_maxnet_xi_step(const struct maxnet_params *params, __s64 xi, __u32 code, __u64 dt, __u32 base_rtt)
{
	struct maxnet_source source = { .xi = xi };
	__u64 fraction = maxnet_xi_fraction(maxnet_xi_speed(params, base_rtt), dt);

	maxnet_xi_next(&source, maxnet_xi_rest(code, params->alpha, base_rtt, params->t), fraction);
	return source.xi;
}

__s64 waterfill_maxnet_compensated(__s64 xi, __u32 code, __u32 alpha, __u32 rtt_new, __u32 rtt_old)
{
	return maxnet_compensated(xi, code, alpha, rtt_new, rtt_old);
}

__u64 waterfill_maxnet_rate(__u64 scale, __s64 xi, __u32 code, __u32 alpha, __u32 base_rtt)
{
	return maxnet_rate(scale, xi, maxnet_gain(code, alpha, base_rtt));
}

__u64 waterfill_maxnet_window(__u64 rate, __u32 base_rtt)
{
	return maxnet_window(rate, base_rtt);
}

__u64 waterfill_maxnet_start_rise(__u64 delta, __u64 dt, __u32 base_rtt)
{
	return maxnet_start_rise(delta, dt, base_rtt);
}

/* The fields of the structs, in their order. */

const struct waterfill_field *waterfill_maxnet_params_fields(void)
{
	static const struct waterfill_field fields[] = {
		FIELD(maxnet_params, x_max),
		FIELD(maxnet_params, alpha),
		FIELD(maxnet_params, eta),
		FIELD(maxnet_params, t),
		FIELD(maxnet_params, dt_min),
		FIELD(maxnet_params, average),
		FIELD(maxnet_params, compensate),
		FIELD(maxnet_params, xi_first),
		FIELD(maxnet_params, reserved),
		END_OF_FIELDS,
	};

	return fields;
}

const struct waterfill_field *waterfill_maxnet_source_fields(void)
{
	static const struct waterfill_field fields[] = {
		FIELD(maxnet_source, window),
		FIELD(maxnet_source, rate),
		FIELD(maxnet_source, demand_max),
		FIELD(maxnet_source, start_rate),
		FIELD(maxnet_source, start_initial),
		FIELD(maxnet_source, xi),
		FIELD(maxnet_source, xi_speed),
		FIELD(maxnet_source, updated),
		FIELD(maxnet_source, raised),
		FIELD(maxnet_source, xi_low),
		FIELD(maxnet_source, price),
		FIELD(maxnet_source, base_rtt),
		FIELD(maxnet_source, packet),
		FIELD(maxnet_source, mode),
		FIELD(maxnet_source, has_price),
		END_OF_FIELDS,
	};

	return fields;
}

const struct waterfill_field *waterfill_maxnet_receiver_fields(void)
{
	static const struct waterfill_field fields[] = {
		FIELD(maxnet_receiver, average),
		FIELD(maxnet_receiver, last),
		FIELD(maxnet_receiver, rtt),
		FIELD(maxnet_receiver, start),
		FIELD(maxnet_receiver, has_price),
		FIELD(maxnet_receiver, reserved),
		END_OF_FIELDS,
	};

	return fields;
}

const struct waterfill_field *waterfill_maxnet_link_fields(void)
{
	static const struct waterfill_field fields[] = {
		FIELD(maxnet_link, capacity),
		FIELD(maxnet_link, x_max),
		FIELD(maxnet_link, start_share),
		FIELD(maxnet_link, price),
		FIELD(maxnet_link, price_min),
		FIELD(maxnet_link, target_time),
		FIELD(maxnet_link, arrival_rate),
		FIELD(maxnet_link, promised),
		FIELD(maxnet_link, promised_age),
		FIELD(maxnet_link, aging),
		FIELD(maxnet_link, price_code),
		FIELD(maxnet_link, t),
		FIELD(maxnet_link, mu),
		FIELD(maxnet_link, dt_p),
		FIELD(maxnet_link, t_0),
		FIELD(maxnet_link, promise),
		END_OF_FIELDS,
	};

	return fields;
}

const struct waterfill_field *waterfill_host_pace_fields(void)
{
	static const struct waterfill_field fields[] = {
		FIELD(host_pace, called_us),
		FIELD(host_pace, boost_rate),
		FIELD(host_pace, boost_since_us),
		FIELD(host_pace, boost_delivered),
		FIELD(host_pace, pacing_boost),
		FIELD(host_pace, restart_window),
		FIELD(host_pace, reserved),
		END_OF_FIELDS,
	};

	return fields;
}

const struct waterfill_field *waterfill_host_send_fields(void)
{
	static const struct waterfill_field fields[] = {
		FIELD(host_send, rate),
		FIELD(host_send, window),
		FIELD(host_send, ack_clocked),
		END_OF_FIELDS,
	};

	return fields;
}
