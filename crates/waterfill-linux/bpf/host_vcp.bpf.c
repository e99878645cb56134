/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* VCP on a host. */
#include "kernel_tcp.h"
#include "vcp.h"

#define LAW_CONGESTION_NAME "bpf_vcp"
#include "host.inc.h"
