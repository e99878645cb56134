/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* XCP on a host. */
#include "kernel_tcp.h"
#include "xcp.h"

#define LAW_CONGESTION_NAME "bpf_xcp"
#include "host.inc.h"
