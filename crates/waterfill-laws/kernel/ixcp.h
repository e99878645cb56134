/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* iXCP: XCP that shuffles only among packets that name the link. The law is in xcp.h. */
#ifndef WATERFILL_IXCP_H
#define WATERFILL_IXCP_H

#define XCP_LOCAL 1
#include "xcp.h"

#endif
