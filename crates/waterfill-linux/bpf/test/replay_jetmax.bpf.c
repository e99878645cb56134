/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Replays calls of jetmax.h. */
#include "../kernel.h"
#include "jetmax.h"
#include "replay.inc.h"
