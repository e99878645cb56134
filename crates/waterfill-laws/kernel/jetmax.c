/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* jetmax.h for the host. */
#define LAW_NAME jetmax
#define LAW_HEADER "jetmax.h"
#define LAW_PARAMS \
	FIELD(law_params, x_min), FIELD(law_params, gamma), FIELD(law_params, tau), FIELD(law_params, interval), \
		FIELD(law_params, epsilon), FIELD(law_params, urgent), FIELD(law_params, weight)
#include "shim.inc.c"
