/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* P-XCP's router. */
#include <linux/types.h>
#include "pxcp.h"
#include "router.inc.h"
