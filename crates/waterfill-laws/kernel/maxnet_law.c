/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* maxnet.h for the host. */
#define LAW_NAME maxnet
#define LAW_HEADER "maxnet.h"
#define LAW_PARAMS \
	FIELD(law_params, source.x_max), FIELD(law_params, source.alpha), FIELD(law_params, source.eta), \
		FIELD(law_params, source.t), FIELD(law_params, source.dt_min), FIELD(law_params, source.average), \
		FIELD(law_params, source.compensate), FIELD(law_params, source.xi_first), FIELD(law_params, source.reserved), \
		FIELD(law_params, dt_p), FIELD(law_params, t_0), FIELD(law_params, promise), \
		FIELD(law_params, reserved)
#include "shim.inc.c"
