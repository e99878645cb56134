/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* RCP on a host. */
#include "kernel_tcp.h"
#include "rcp.h"

#define LAW_CONGESTION_NAME "bpf_rcp"
#include "host.inc.h"
