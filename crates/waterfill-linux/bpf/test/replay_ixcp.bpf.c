/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Replays calls of ixcp.h. */
#include "../kernel.h"
#include "ixcp.h"
#include "replay.inc.h"
