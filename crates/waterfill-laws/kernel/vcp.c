/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* vcp.h for the host. */
#define LAW_NAME vcp
#define LAW_HEADER "vcp.h"
#define LAW_PARAMS                                                                                                     \
	FIELD(law_params, t_rho), FIELD(law_params, t_q), FIELD(law_params, kappa_q), FIELD(law_params, gamma),        \
		FIELD(law_params, queue_weight), FIELD(law_params, xi), FIELD(law_params, alpha),                      \
		FIELD(law_params, beta), FIELD(law_params, freeze), FIELD(law_params, whole_percent),                  \
		FIELD(law_params, t_d), FIELD(law_params, reserved)
#include "shim.inc.c"
