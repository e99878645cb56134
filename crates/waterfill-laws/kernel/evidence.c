/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* evidence.h for the host, where src/evidence.rs tests it. */
#include <stdint.h>

typedef int32_t __s32;
typedef uint32_t __u32;
typedef int64_t __s64;
typedef uint64_t __u64;

#include "evidence.h"
#include "mirror.h"

void waterfill_evidence_restart(struct evidence *e, const struct evidence_input *in)
{
	evidence_restart(e, in);
}

void waterfill_evidence_ack(struct evidence *e, const struct evidence_input *in)
{
	evidence_ack(e, in);
}

__u32 waterfill_evidence_end_round(struct evidence *e, const struct evidence_input *in)
{
	return evidence_end_round(e, in);
}

const struct waterfill_field *waterfill_evidence_input_fields(void)
{
	static const struct waterfill_field fields[] = {
		FIELD(evidence_input, now_us),
		FIELD(evidence_input, last_ack_us),
		FIELD(evidence_input, signal),
		FIELD(evidence_input, srtt_us),
		FIELD(evidence_input, rtt_us),
		FIELD(evidence_input, base_rtt_us),
		FIELD(evidence_input, margin_us),
		FIELD(evidence_input, delivered),
		FIELD(evidence_input, lost),
		FIELD(evidence_input, forward_ms),
		FIELD(evidence_input, has_forward),
		FIELD(evidence_input, timed_out),
		FIELD(evidence_input, queue_rests),
		FIELD(evidence_input, has_echo),
		FIELD(evidence_input, tightens),
		FIELD(evidence_input, rests_losing),
		FIELD(evidence_input, reserved),
		END_OF_FIELDS,
	};

	return fields;
}

const struct waterfill_field *waterfill_evidence_fields(void)
{
	static const struct waterfill_field fields[] = {
		FIELD(evidence, start_us),
		FIELD(evidence, delivered),
		FIELD(evidence, lost),
		FIELD(evidence, rtt),
		FIELD(evidence, forward_ms),
		FIELD(evidence, ack_gap_us),
		FIELD(evidence, weight),
		FIELD(evidence, since_us),
		FIELD(evidence, signal),
		FIELD(evidence, first_rtt),
		FIELD(evidence, loss_rounds),
		FIELD(evidence, path_us),
		FIELD(evidence, path_rtt),
		FIELD(evidence, probe_rounds),
		FIELD(evidence, probed_rtt),
		FIELD(evidence, drained_rtt),
		FIELD(evidence, base_forward_ms),
		FIELD(evidence, forward_known),
		END_OF_FIELDS,
	};

	return fields;
}
