/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The router program of one law. The build script compiles this file for each law, whose header is LAW_HEADER. */
#include <linux/types.h>
#include LAW_HEADER
#include "router.inc.h"
