/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* RCP's router. */
#include <linux/types.h>
#include "rcp.h"
#include "router.inc.h"
