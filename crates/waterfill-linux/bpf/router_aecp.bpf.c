/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* AECP's router. */
#include <linux/types.h>
#include "aecp.h"
#include "router.inc.h"
