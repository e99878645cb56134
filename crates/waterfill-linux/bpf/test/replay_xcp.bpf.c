/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Replays calls of xcp.h. */
#include "../kernel.h"
#include "xcp.h"
#include "replay.inc.h"
