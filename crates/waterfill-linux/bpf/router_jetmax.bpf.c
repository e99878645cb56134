/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* JetMax's router. */
#include <linux/types.h>
#include "jetmax.h"
#include "router.inc.h"
