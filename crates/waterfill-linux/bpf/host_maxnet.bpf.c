/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* MaxNet of 2007 on a host. */
#include "kernel_tcp.h"
#include "maxnet_law.h"

#define LAW_CONGESTION_NAME "bpf_maxnet"
#include "host.inc.h"
