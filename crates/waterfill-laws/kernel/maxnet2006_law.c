/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* maxnet2006.h for the host. */
#define LAW_NAME maxnet2006
#define LAW_HEADER "maxnet2006.h"
#define LAW_PARAMS \
	FIELD(law_params, source.x_max), FIELD(law_params, source.alpha), FIELD(law_params, source.eta), \
		FIELD(law_params, source.t), FIELD(law_params, source.dt), FIELD(law_params, source.rtt_unit), \
		FIELD(law_params, source.rateinc), FIELD(law_params, source.mindeltaq), FIELD(law_params, source.wnd_update_freq), \
		FIELD(law_params, source.max_wnd), FIELD(law_params, source.average), FIELD(law_params, source.compensate), \
		FIELD(law_params, source.reserved), FIELD(law_params, epsilon), FIELD(law_params, qs_min_divisor), \
		FIELD(law_params, dt), FIELD(law_params, quickstart)
#include "shim.inc.c"
