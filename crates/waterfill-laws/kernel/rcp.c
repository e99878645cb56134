/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* rcp.h for the host. */
#define LAW_NAME rcp
#define LAW_HEADER "rcp.h"
#define LAW_PARAMS                                                                                                     \
	FIELD(law_params, alpha), FIELD(law_params, beta), FIELD(law_params, first_rate),                              \
		FIELD(law_params, max_interval), FIELD(law_params, first_rtt), FIELD(law_params, r_min),               \
		FIELD(law_params, average), FIELD(law_params, reserved)
#include "shim.inc.c"
