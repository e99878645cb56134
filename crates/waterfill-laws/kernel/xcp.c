/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* xcp.h for the host. */
#define LAW_NAME xcp
#define LAW_HEADER "xcp.h"
#define LAW_PARAMS \
	FIELD(law_params, alpha), FIELD(law_params, beta), FIELD(law_params, gamma), FIELD(law_params, min_interval), \
		FIELD(law_params, max_interval), FIELD(law_params, first_interval), FIELD(law_params, first_window), \
		FIELD(law_params, halve_on_loss), FIELD(law_params, weight), FIELD(law_params, count_own)
#include "shim.inc.c"
