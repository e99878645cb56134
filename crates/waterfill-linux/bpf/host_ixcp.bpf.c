/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* iXCP on a host. */
#include "kernel_tcp.h"
#include "ixcp.h"

#define LAW_CONGESTION_NAME "bpf_ixcp"
#include "host.inc.h"
