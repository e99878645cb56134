/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The structures and constants that the daemon shares with the kernel programs. This object is never loaded: build.rs
 * turns its type information into Rust types, so each is defined once and its fields are found by name.
 */
#include <linux/types.h>

#include "wire.h"
#include "maxnet.h"
#include "conn.h"
#include "router.h"
#include "cohabit_state.h"
#include "csig_state.h"
#include "scone_state.h"

struct waterfill_interface {
	struct law_params law; /* MaxNet's, for tests */
	struct host_params params;
	struct host_prefix prefix;
	struct host_record record;
	struct host_counters counters;
	struct host_summary summary;
	struct host_listener listener;
	struct host_event event;
	enum host_events events;
	enum host_event_kind event_kind;
	enum host_mode mode;
	enum host_samples samples;
	struct waterfill_attachment attachment;
	struct waterfill_request request;
	struct cohabit_state cohabit;
	struct csig_device csig;
	struct csig_counts csig_counts;
	struct csig_reading csig_reading;
	enum csig_layout csig_layout;
	enum csig_role csig_role;
	enum csig_type csig_type;
	enum csig_format csig_format;
	struct scone_link scone;
	enum scone_rule rule;
	enum cohabit_controller controller;
	enum cohabit_update update;
	enum waterfill_option_kind kind;
	enum waterfill_layout layout;
	enum waterfill_created made;
	enum waterfill_count count;
	enum waterfill_command what;
	enum waterfill_result answer;
} waterfill_interface;
