/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* XCP's router. */
#include <linux/types.h>
#include "xcp.h"
#include "router.inc.h"
