/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* TCP MaxNet of 2006's router. */
#include <linux/types.h>
#include "maxnet2006_law.h"
#include "router.inc.h"
