/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* P-XCP: XCP whose routers scale spare bandwidth by all flows over those bottlenecked there. The law is in xcp.h. */
#ifndef WATERFILL_PXCP_H
#define WATERFILL_PXCP_H

#define XCP_SCALED 1
#include "xcp.h"

#endif
