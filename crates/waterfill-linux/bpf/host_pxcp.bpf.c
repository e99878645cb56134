/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* P-XCP on a host. */
#include "kernel_tcp.h"
#include "pxcp.h"

#define LAW_CONGESTION_NAME "bpf_pxcp"
#include "host.inc.h"
