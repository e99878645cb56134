/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The structures of law.h and of the shim, field by field, for the tests of their mirrors in src/kernel. */
#include "shim.h"
#include "float.h"
#define LAW_PACED 1
#include "host.h"

const struct waterfill_field *waterfill_law_packet_fields(void)
{
	static const struct waterfill_field fields[] = {
		FIELD(law_packet, bytes),
		FIELD(law_packet, segments),
		FIELD(law_packet, syn),
		END_OF_FIELDS,
	};

	return fields;
}

const struct waterfill_field *waterfill_law_tcp_fields(void)
{
	static const struct waterfill_field fields[] = {
		FIELD(law_tcp, now_us),
		FIELD(law_tcp, srtt_us),
		FIELD(law_tcp, base_rtt_us),
		FIELD(law_tcp, delivered),
		FIELD(law_tcp, acked),
		FIELD(law_tcp, in_flight),
		FIELD(law_tcp, packet),
		FIELD(law_tcp, payload),
		FIELD(law_tcp, max_segments),
		FIELD(law_tcp, recovering),
		FIELD(law_tcp, app_limited),
		FIELD(law_tcp, window_limited),
		FIELD(law_tcp, unlimited),
		FIELD(law_tcp, reserved),
		END_OF_FIELDS,
	};

	return fields;
}

const struct waterfill_field *waterfill_law_limit_fields(void)
{
	static const struct waterfill_field fields[] = {
		FIELD(law_limit, rate),
		FIELD(law_limit, window),
		FIELD(law_limit, packet),
		FIELD(law_limit, steady),
		FIELD(law_limit, heard),
		FIELD(law_limit, reserved),
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
		FIELD(host_pace, silent_window),
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

#define SHIM(field) FIELD(waterfill_shim, field)

const struct waterfill_field *waterfill_shim_fields(void)
{
	static const struct waterfill_field fields[] = {
		SHIM(number),	   SHIM(forward_bytes), SHIM(echo_bytes),     SHIM(paced),	  SHIM(rests_with_queue),
		SHIM(params),	   SHIM(link),		SHIM(sums),	      SHIM(cpu),	  SHIM(source),
		SHIM(receiver),	   SHIM(replay),	SHIM(params_fields),  SHIM(link_set),	  SHIM(interval),
		SHIM(tick),	   SHIM(idle),		SHIM(mark),	      SHIM(syn_needs_lock), SHIM(link_read),
		SHIM(link_restore), SHIM(source_init),	SHIM(request),	      SHIM(forward),	  SHIM(heard),
		SHIM(ack),	   SHIM(loss),		SHIM(timeout),	      SHIM(limit),	  SHIM(reduce),
		SHIM(evidence),	   SHIM(tightens),	SHIM(source_read),    SHIM(receive),	  SHIM(echo),
		SHIM(receiver_read), SHIM(replay_step), SHIM(host_control),
		END_OF_FIELDS,
	};

	return fields;
}

/* The host's functions, the same for every law. */

void waterfill_host_init(struct host_pace *pace)
{
	host_init(pace);
}

__u32 waterfill_host_is_due(struct host_pace *pace, const struct law_tcp *tcp, __u64 rate)
{
	return (__u32)host_is_due(pace, tcp, rate);
}

void waterfill_host_time_out(struct host_pace *pace)
{
	host_time_out(pace);
}

void waterfill_host_time_out_undone(struct host_pace *pace, __u32 in_flight)
{
	host_time_out_undone(pace, in_flight);
}

void waterfill_host_silent_round(struct host_pace *pace, int lossy)
{
	host_silent_round(pace, lossy);
}

/* One function each of fixed.h, for tests. */

__u64 waterfill_fixed_exp(__u64 scale, __u64 u)
{
	return fixed_exp(scale, u);
}

__u32 waterfill_fixed_rate_code(__u64 rate, __u64 x_max)
{
	return fixed_rate_code(rate, x_max);
}

__u64 waterfill_fixed_log2(__u64 n)
{
	return fixed_log2(n);
}

__u64 waterfill_fixed_exp2_up(__u64 e, __u32 bits)
{
	return fixed_exp2_up(e, bits);
}

__u64 waterfill_fixed_one_less_exp(__u64 u)
{
	return fixed_one_less_exp(u);
}

__u64 waterfill_fixed_exp_less_one(__u64 u)
{
	return fixed_exp_less_one(u);
}

__u64 waterfill_fixed_log_one_plus(__u64 f)
{
	return fixed_log_one_plus(f);
}

__u64 waterfill_fixed_power(__u64 f, __u32 n)
{
	return fixed_power(f, n);
}

__u32 waterfill_float_code(__u64 v)
{
	return float_code(v);
}

__u64 waterfill_float_number(__u32 code)
{
	return (__u64)float_mantissa(code) << float_exponent(code);
}
