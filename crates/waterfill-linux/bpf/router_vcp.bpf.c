/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* VCP's router. */
#include <linux/types.h>
#include "vcp.h"
#include "router.inc.h"
