/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the host's programs know: of everything (parameters), of a connection, of a place to which options do not
 * get through; and how a connection is told to the daemon. `host.bpf.c` says what happens to it.
 */
#ifndef WATERFILL_HOST_H
#define WATERFILL_HOST_H

#include <stdbool.h>

#include "kernel_tcp.h"
#include "intf.h"
#include "maxnet.h"

#define CONGESTION_NAME_BYTES 16 /* the kernel's TCP_CA_NAME_MAX */

/* What is the same for all connections. The daemon may change it at any time. */
struct host_params {
	struct maxnet_params law;
	__u32 kind; /* WATERFILL_KIND_... */
	__u32 reserved;
	char fallback[CONGESTION_NAME_BYTES]; /* of the kernel's laws, the one for paths without a price */
};

/* What has happened on a connection. */
enum host_flag {
	HOST_ASKED = 1 << 0,	   /* a SYN has carried the option */
	HOST_NEGOTIATED = 1 << 1,  /* the peer has answered it, or asked itself */
	HOST_ESTABLISHED = 1 << 2, /* the handshake is over */
	HOST_LAW = 1 << 3,	   /* TCP runs our law here, from its init() to its release() */
	HOST_STARTED = 1 << 4,	   /* the law has its state: after both of the above */
	HOST_PACED = 1 << 5,	   /* pacing is on because the law asked for it */
	HOST_ECHO = 1 << 6,	   /* an echo has come and the law has not seen it yet */
	HOST_TURN = 1 << 7,	   /* whose turn it is where forward value and echo share 8 bytes */
	HOST_WAS_PRICED = 1 << 8,  /* at least one price was obeyed */
	HOST_WANTED = 1 << 9,	   /* TCP has run our law here at some time */
};

/* Why a connection uses the fallback. The daemon has the words. */
enum host_reason {
	HOST_NO_REASON,
	HOST_NO_PEER,	     /* the peer did not answer the option */
	HOST_EATEN,	     /* the SYN with the option got no answer, the one without did */
	HOST_REMEMBERED,     /* not asked, as options did not get through to this place before */
	HOST_NO_ROUTER,	     /* the peer answers, but no router wrote */
	HOST_SILENT,	     /* echoes have stopped */
	HOST_STANDING_QUEUE, /* a queue stands while the price does not rise */
	HOST_HEAVY_LOSS,     /* much is lost while the price does not rise */
};

/* A round trip by the clock, in which something was delivered: by sequence numbers, one would last as long as a
 * repair does.
 */
struct host_round {
	__u64 began;	 /* us */
	__u32 rtt;	 /* us: the least in it; ~0 before the first sample */
	__u32 delivered; /* packets, ever, at its start */
	__u32 lost;	 /* packets, ever, at its start */
	__u32 silent;	 /* rounds since an echo came */
	__u32 suspicion; /* that the bottleneck gives no price; 0: none, since when: */
	__u64 since;	 /* us */
	__u32 since_rtt; /* us */
	__u32 since_price; /* 2^-18 s */
	__u32 since_loss; /* rounds of heavy loss */
	__u32 count;
	__u32 there_least; /* ms: the delay there, on the peer's clock less ours, when no queue stood last */
	__s32 there;	   /* ms: how much more it was at least in this round; NO_DELAY: not known */
	__u32 there_known;
};

/* A connection. Kept with its socket. */
struct host_connection {
	struct maxnet_source source;
	struct maxnet_receiver receiver;
	__u64 asked;	 /* us: when the peer's forward value last came; 0: never */
	__u64 heard;	 /* us: when an acknowledgement last came */
	__u64 netns;	 /* cookie of its network namespace */
	struct host_round round;
	__u32 flags;	 /* enum host_flag */
	__u32 reason;	 /* enum host_reason */
	__u32 echo;	 /* the field that came last */
	__u32 cap;	 /* packets: at most so many in flight while restarting; 0: not restarting */
	__u32 delivered; /* packets, ever, at the last acknowledgement */
	__u32 reserved;	 /* bytes of option that the present segment size leaves room for */
	__u32 plan;	 /* the option that the packet at hand gets: enum waterfill_option_type, or 0 */
	__u32 echoes;	 /* that came, ever */
	__u32 timeouts;
	__u32 syn_tries; /* how often a SYN is sent again, if that is our choice */
	__u32 boost;	 /* 2^-10: pacing over the law's rate, for timers that come late */
	__u32 paced_delivered; /* packets, ever, when the rate that comes about was last held against the law's, */
	__u64 paced_rate;      /* bit/s: the law's then, */
	__u64 paced_since;     /* us: and when that was */
};

/* A connection as the daemon reads it: fields in order, without gaps. Addresses are IPv6's, or IPv4's mapped. */
struct host_record {
	__u8 local[16];
	__u8 remote[16];
	__u64 rate;   /* bit/s */
	__u64 window; /* bytes */
	__s64 xi;     /* 2^-34 */
	__u64 received_average; /* 2^-58 s: what this end echoes */
	__u32 price;  /* 2^-18 s */
	__u32 mode;   /* enum maxnet_mode */
	__u32 flags;
	__u32 reason;
	__u32 cap;
	__u32 rtt;      /* us */
	__u32 base_rtt; /* us */
	__u32 packets_in_flight_max; /* snd_cwnd */
	__u32 echoes;
	__u32 timeouts;
	__u32 state; /* TCP's */
	__u16 local_port;
	__u16 remote_port;
};

/* Where options did not get through. */
struct host_place {
	__u64 netns;
	__be32 address[4]; /* IPv6's, or IPv4's mapped */
};

struct host_memory {
	__u64 until; /* ns: not asked before */
	__u32 failures;
	__u32 reserved;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct host_params);
} parameters SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct host_connection);
} connections SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct host_place);
	__type(value, struct host_memory);
} places SEC(".maps");

/* Network namespaces that take part, by their cookies, where `filter_netns` says so. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, __u64);
	__type(value, __u8);
} namespaces SEC(".maps");

const volatile bool filter_netns = false;

static __always_inline const struct host_params *host_parameters(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&parameters, &zero);
}

#endif
