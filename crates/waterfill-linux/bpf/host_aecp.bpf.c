/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* AECP on a host. */
#include "kernel_tcp.h"
#include "aecp.h"

#define LAW_CONGESTION_NAME "bpf_aecp"
#include "host.inc.h"
