/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* JetMax on a host. */
#include "kernel_tcp.h"
#include "jetmax.h"

#define LAW_CONGESTION_NAME "bpf_jetmax"
#include "host.inc.h"
