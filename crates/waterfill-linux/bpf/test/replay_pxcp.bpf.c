/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Replays calls of pxcp.h. */
#include "../kernel.h"
#include "pxcp.h"
#include "replay.inc.h"
