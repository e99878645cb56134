/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* aecp.h for the host. */
#define LAW_NAME aecp
#define LAW_HEADER "aecp.h"
#define LAW_PARAMS                                                                                                     \
	FIELD(law_params, alpha), FIELD(law_params, beta), FIELD(law_params, t), FIELD(law_params, t_2),               \
		FIELD(law_params, q_0), FIELD(law_params, x_0), FIELD(law_params, r_0), FIELD(law_params, form),       \
		FIELD(law_params, step), FIELD(law_params, ceiling), FIELD(law_params, rounding),                      \
		FIELD(law_params, reserved)
#include "shim.inc.c"
