/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Replays calls of aecp.h. */
#include "../kernel.h"
#include "aecp.h"
#include "replay.inc.h"
