/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* iXCP's router. */
#include <linux/types.h>
#include "ixcp.h"
#include "router.inc.h"
