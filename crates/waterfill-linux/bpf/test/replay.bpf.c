/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Replays recorded calls of kernel/maxnet.h and kernel/host.h in the kernel and compares the results with the recorded ones, bit for
 * bit, one record per run. waterfill-laws/examples/maxnet_record.rs defines the records.
 */
#include "../kernel.h"
#include "maxnet.h"

enum call { START, TICK, IDLE, SET, MARK, MARK_PRICE, RECEIVE, ACK, BASE_RTT, HOST_ACK, HOST_TIME_OUT, HOST_RECEIVE };

struct replay {
	__u64 at;    /* the next record */
	__u64 wrong; /* records with another result */
	__u64 first; /* the first of them, counted from 1 */
	struct maxnet_params params;
	struct maxnet_link link;
	struct maxnet_receiver receiver;
	struct maxnet_source source;
	/* Of the host's calls. */
	struct law_source host_source;
	struct host_pace host;
	struct maxnet_receiver host_receiver;
	struct host_send limit;
	__u64 delivered;
	__u64 acked; /* since the law was called */
};

struct record {
	__u64 call;
	__u64 in[3];
	__u64 out[4];
};

#define REPLAY_RECORD struct record
#include "records.h"

static void start(struct replay *r, const struct record *rec)
{
	__u32 flags = rec->in[2] >> 32;

	maxnet_params_default(&r->params);
	r->params.compensate = flags & 1;
	r->params.average = flags >> 1 & 1;
	r->params.xi_first = flags >> 2 & 1;
	maxnet_link_init(&r->link, rec->in[0], r->params.x_max, r->params.t, (__u32)rec->in[1], rec->in[1] >> 32,
			 (__u32)rec->in[2], flags >> 3 & 1);
	__builtin_memset(&r->receiver, 0, sizeof(r->receiver));
	maxnet_source_init(&r->params, &r->source, 1500, 15000, 1000);
	__builtin_memset(&r->host, 0, sizeof(r->host));
	__builtin_memset(&r->host_receiver, 0, sizeof(r->host_receiver));
	__builtin_memset(&r->limit, 0, sizeof(r->limit));
	r->limit.window = 10;
	r->delivered = 0;
	r->acked = 0;
	maxnet_source_init(&r->params, &r->host_source.maxnet, 1500, 15000, 1000);
	host_init(&r->host);
}

static void host_ack(struct replay *r, const struct record *rec)
{
	__u32 acked = rec->in[2] >> 24 & 0xffff;
	__u32 flags = rec->in[2] >> 40;
	struct law_limit limit = {};
	struct law_tcp tcp = {
		.now_us = rec->in[0],
		.srtt_us = (__u32)(rec->in[1] >> 32) * 8,
		.base_rtt_us = (__u32)rec->in[1],
		.packet = 1500,
		.payload = 1500,
		.max_segments = 1,
		.recovering = flags & 1,
		.app_limited = flags >> 1 & 1,
		.window_limited = flags >> 2 & 1,
		.unlimited = 1,
	};

	r->delivered += acked;
	r->acked += acked;
	tcp.delivered = (__u32)r->delivered;
	tcp.acked = (__u32)r->acked;
	if (!host_is_due(&r->host, &tcp, r->host_source.maxnet.rate))
		return;
	r->acked = 0;
	maxnet_host_echo(&r->params, &r->host_source.maxnet, tcp.now_us, tcp.base_rtt_us, 1, rec->in[2] & 0xffffff);
	law_limit(&r->host_source, &tcp, &limit);
	host_control(&r->host, &limit, &tcp, 1, &r->limit);
}

SEC("tc")
int waterfill_replay(struct __sk_buff *skb __attribute__((unused)))
{
	__u64 out[4] = {};
	struct replay *r = find_replay();
	struct record *rec;

	if (!r)
		return 0;
	rec = take_record(r);
	if (!rec)
		return 0;
	switch (rec->call) {
	case START:
		start(r, rec);
		break;
	case TICK:
		maxnet_tick(&r->link, rec->in[0], rec->in[1]);
		break;
	case IDLE:
		maxnet_idle(&r->link, rec->in[0], rec->in[1]);
		break;
	case SET:
		maxnet_link_set(&r->link, rec->in[0], (__u32)rec->in[1]);
		break;
	case MARK:
		out[0] = maxnet_mark(&r->link, (__u32)rec->in[0]);
		out[1] = r->link.promised;
		break;
	case MARK_PRICE:
		out[0] = maxnet_mark_price(&r->link, (__u32)rec->in[0]);
		break;
	case RECEIVE:
		maxnet_receive(&r->params, &r->receiver, rec->in[0], (__u32)rec->in[1], (__u32)rec->in[2]);
		out[0] = maxnet_echo(&r->receiver);
		out[1] = r->receiver.average;
		out[2] = r->receiver.rtt;
		break;
	case HOST_ACK:
		host_ack(r, rec);
		break;
	case HOST_TIME_OUT:
		host_time_out(&r->host);
		break;
	case HOST_RECEIVE:
		maxnet_host_receive(&r->params, &r->host_receiver, rec->in[0], (__u32)rec->in[1], (__u32)rec->in[2]);
		out[0] = maxnet_echo(&r->host_receiver);
		out[1] = r->host_receiver.average;
		out[2] = r->host_receiver.rtt;
		break;
	case ACK:
		maxnet_ack(&r->params, &r->source, rec->in[0], (__u32)rec->in[1], (__u32)rec->in[2]);
		break;
	default:
		maxnet_base_rtt(&r->params, &r->source, (__u32)rec->in[0]);
	}
	if (rec->call <= SET) {
		out[0] = r->link.price;
		out[1] = r->link.arrival_rate;
		out[2] = r->link.promised_age;
		out[3] = r->link.price_code;
	} else if (rec->call == HOST_ACK || rec->call == HOST_TIME_OUT) {
		out[0] = r->limit.window | (__u64)r->limit.ack_clocked << 32 | (__u64)r->host_source.maxnet.mode << 40;
		out[1] = r->limit.rate;
		out[2] = (__u64)r->host_source.maxnet.xi;
		out[3] = r->host_source.maxnet.base_rtt | (__u64)r->host.pacing_boost << 32;
	} else if (rec->call == ACK || rec->call == BASE_RTT) {
		out[0] = r->source.window;
		out[1] = r->source.rate;
		out[2] = (__u64)r->source.xi;
		out[3] = r->source.xi_low | (__u64)r->source.mode << 32;
	}
	if (out[0] != rec->out[0] || out[1] != rec->out[1] || out[2] != rec->out[2] || out[3] != rec->out[3])
		count_wrong(r);
	return 0;
}

char _license[] SEC("license") = "Dual BSD/GPL";
