/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* MaxNet's router. */
#include <linux/types.h>
#include "maxnet_law.h"
#include "router.inc.h"
