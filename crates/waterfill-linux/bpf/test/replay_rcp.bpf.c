/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Replays calls of rcp.h. */
#include "../kernel.h"
#include "rcp.h"
#include "replay.inc.h"
