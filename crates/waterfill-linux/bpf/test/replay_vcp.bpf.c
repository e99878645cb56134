/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Replays calls of vcp.h. */
#include "../kernel.h"
#include "vcp.h"
#include "replay.inc.h"
