/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* TCP MaxNet of 2006 on a host. */
#include "kernel_tcp.h"
#include "maxnet2006_law.h"

#define LAW_CONGESTION_NAME "bpf_maxnet2006"
#include "host.inc.h"
