/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The host programs' data: global parameters, the state of a connection, destinations that drop the option, and the
 * record by which the daemon reads a connection. host.bpf.c describes how they are used. A law's header comes first.
 */
#ifndef WATERFILL_CONN_H
#define WATERFILL_CONN_H

#include <linux/types.h>

#include "wire.h"
#include "host.h"
#include "base_rtt.h"
#include "evidence.h"

#define CONGESTION_NAME_BYTES 16 /* the kernel's TCP_CA_NAME_MAX */

/* The same for all connections. The daemon may change it at any time. */
struct host_params {
	__u64 law[LAW_PARAMS_MAX]; /* struct law_params */
	enum waterfill_option_kind kind;
	__u32 filter_netns;		      /* 1: only connections of the network namespaces in the map */
	__u32 filter_peers;		      /* 1: only connections with peers in the map */
	__u32 queue_margin_us;		      /* a shorter queue may be the host's own delay */
	__u64 base_rtt_window_us;	      /* after which an RTT is forgotten as the smallest; 0: TCP's own minimum */
	char name[CONGESTION_NAME_BYTES];     /* the law's, in TCP's list */
	char fallback[CONGESTION_NAME_BYTES]; /* the kernel's congestion control for paths without a router */
};

/* The state of a connection, as bits. */
enum host_flag {
	HOST_OPTION_SENT = 1 << 0,  /* a SYN has carried the option */
	HOST_NEGOTIATED = 1 << 1,   /* the peer has answered the option, or sent it first */
	HOST_ESTABLISHED = 1 << 2,  /* the handshake is over */
	HOST_LAW_ACTIVE = 1 << 3,   /* TCP runs our law, from its init() to its release() */
	HOST_LAW_STARTED = 1 << 4,  /* the law's state is initialised: after both of the above */
	HOST_PACED = 1 << 5,	    /* pacing is on because the law needs it */
	HOST_ECHO_PENDING = 1 << 6, /* an echo has arrived that the law has not processed yet */
	HOST_ECHO_TURN = 1 << 7,    /* the next option is an echo, where forward value and echo share 8 bytes */
	HOST_WAS_PRICED = 1 << 8,   /* the law has applied at least one price */
	HOST_LAW_SELECTED = 1 << 9, /* TCP has run our law at some time */
	HOST_INIT_UNSEEN = 1 << 10, /* TCP has run our law without an init() before it */
	HOST_INIT_RAN = 1 << 11,    /* our law's init() has run, and no release() since then */
	HOST_PEER_STARTS = 1 << 12, /* the peer's last request was its SYN's */
	HOST_RECOVERING = 1 << 13,  /* TCP recovers from a loss that the law has heard of */
	HOST_QUICK_SYN = 1 << 14,   /* the destination has lost a SYN with the option: this one times out early */
	HOST_RENO = 1 << 15,	    /* the kernel refused the fallback: our program runs Reno */
	HOST_DEFERRED = 1 << 16,    /* until the next acknowledgement, when the fallback is tried again */
	HOST_PROBATION = 1 << 17,   /* fallen back, and asks again whether routers answer */
	HOST_ASKED = 1 << 18,	    /* a request of that has no answer yet */
};

/* Why a connection uses the fallback. The daemon has the texts. */
enum host_reason {
	HOST_NO_REASON,
	HOST_PEER_UNSUPPORTED, /* the peer did not answer the option */
	HOST_SYN_DROPPED,      /* the SYN with the option got no answer, the one without did */
	HOST_OPTION_BLOCKED,   /* option not sent: earlier connections to this destination lost it */
	HOST_NO_ROUTER,	       /* the peer answers, but no router wrote a price */
	HOST_NO_ECHO,	       /* no echo for several rounds */
	HOST_STANDING_QUEUE,   /* the queue does not drain while the price does not rise */
	HOST_HEAVY_LOSS,       /* heavy loss while the price does not rise */
	HOST_SIGNED,	       /* TCP-AO or MD5 covers options, so no router may change one */
	HOST_OUTSIDE,	       /* the law is not loaded for this connection: another cgroup, namespace or peer */
	HOST_REASONS,	       /* how many there are */
};

/* Counts of all connections since the maps were created. */
struct host_counters {
	__u64 started;		    /* connections that our law began to control */
	__u64 priced;		    /* of these, those that got a price */
	__u64 control_without_init; /* connections for which cong_control() ran without an init() before it */
	__u64 init_unrecorded;	    /* of these, those for which the kernel had run an init() */
	__u64 without_state;	    /* init() or cong_control() ran for a socket without our state */
	__u64 no_memory;	    /* the kernel had no memory for our state */
	__u64 fallback_refused;	    /* the kernel kept our law, which runs Reno since */
	__u64 longer_paths;	    /* times that what looked like a queue was a longer path */
	__u64 control_missed;	    /* times that echoes arrived and cong_control() did not run */
	__u64 fallbacks[HOST_REASONS];
	__u64 returns[HOST_REASONS]; /* to the law, by the reason of the fallback */
};

/* One RTT by the clock in which something was delivered. By sequence numbers, it would last as long as a recovery. */
struct host_round {
	__u64 start_us;
	__u32 delivered;	   /* packets since the connection began, at its start */
	__u32 lost;		   /* packets since the connection began, at its start */
	__u32 rounds_without_echo; /* rounds since an echo arrived */
	__u32 count;
};

/* A fallen-back connection's way back to the law (probation.h). */
struct host_probation {
	__u64 retry_us;	   /* when it asks again; 0: never */
	__u64 since_us;	   /* when it began to ask, */
	__u64 asked_us;	   /* and when it did last */
	__u64 returned_us; /* when it came back last; 0: never */
	__u32 delivered;   /* packets since the connection began, at `since_us` */
	__u32 requests;
	__u32 heard;	   /* answers with a price */
	__u32 failures;	   /* fallbacks and failed attempts, which double the time to the next one */
	__u32 window;	   /* packets: of a connection that comes back */
	__u32 reserved;
};

/* A connection, stored with its socket. */
struct host_connection {
	struct law_source source;
	struct law_receiver receiver;
	struct law_limit limit; /* what the law allowed last */
	struct host_pace pace;
	__u64 requested_us; /* when the peer's last forward value arrived; 0: never */
	__u64 last_ack_us;
	__u64 netns; /* cookie of its network namespace */
	struct host_round round;
	struct evidence evidence;
	struct host_probation probation;
	struct base_rtt base_rtt;
	__u32 flags;	      /* enum host_flag */
	__u32 reason;	      /* enum host_reason */
	__u8 echo[LAW_VALUE_MAX + 1]; /* the latest */
	__u32 delivered;      /* packets since the connection began, at the last ACK */
	__u32 reserved_bytes; /* option space that the present segment size leaves */
	__u32 option_type;    /* of the packet being built: enum waterfill_option_type, or 0 */
	__u32 echoes;	      /* received since the law started */
	__u32 timeouts;
	__u32 syn_retries;	     /* TCP_SYNCNT as we set it; 0: not set */
	__u32 controls_without_init; /* runs of cong_control() without an init() before them */
	__u32 echoes_unprocessed;    /* received since cong_control() ran */
	__u32 reserved;
};

/* A connection as the daemon reads it, without padding. Addresses are IPv6, or IPv4-mapped. */
struct host_record {
	__u8 local[16];
	__u8 remote[16];
	__u64 rate;	    /* bit/s; like the next two, 0 before the law has started */
	__u64 window;	    /* bytes */
	__u64 signals[LAW_SIGNALS]; /* law_source_read() */
	__u64 echoed;	    /* law_receiver_read() */
	__u32 steady;	    /* as in struct law_limit */
	enum host_flag flags;
	enum host_reason reason;
	__u32 restart_window; /* packets */
	__u32 rtt;	      /* us */
	__u32 base_rtt;	      /* us */
	__u32 window_packets; /* TCP's snd_cwnd */
	__u32 echoes;
	__u32 timeouts;
	__u32 state;	      /* TCP's */
	__u32 ca_initialized; /* TCP's icsk_ca_initialized */
	__u32 controls_without_init;
	__u16 local_port;
	__u16 remote_port;
	__u32 mode; /* enum host_mode */
};

/* What a connection does. The daemon has the names. */
enum host_mode {
	HOST_MODE_NONE, /* neither end uses the law */
	HOST_MODE_ASKING,
	HOST_MODE_RISING,
	HOST_MODE_PRICED,
	HOST_MODE_RESTARTING,
	HOST_MODE_RECEIVING,
	HOST_MODE_CLOSING,
	HOST_MODE_FALLEN_BACK,
	HOST_MODES, /* how many there are */
};

/* Signals that a summary samples. Up to as many connections have a signal, it has all of them. */
enum host_samples { HOST_SAMPLES = 1024 };

/* Events that are kept. The next one overwrites the oldest. */
enum host_events { HOST_EVENTS = 4096 };

enum host_event_kind {
	HOST_EVENT_NONE, /* readers skip it */
	HOST_EVENT_FALLBACK,
	HOST_EVENT_RETURN,
};

/* A fallback or a return, with what the connection had measured; without padding. Counts are of packets, times in us. */
struct host_event {
	__u64 number;  /* from 1 on; 0: being written */
	__u64 time_ns; /* CLOCK_MONOTONIC */
	__u64 netns;   /* cookie of the network namespace */
	__u64 rate;    /* bit/s that the law allowed; 0: no value of a router yet */
	__u64 signals[LAW_SIGNALS]; /* law_source_read() */
	__u64 span;    /* since the evidence began; of a return, since the connection began to ask */
	__u32 kind;    /* enum host_event_kind */
	__u32 reason;  /* enum host_reason; of a return, that of its fallback */
	__u32 rtt;     /* smoothed */
	__u32 base_rtt;
	__u32 window;  /* packets */
	__u32 echoes;  /* since the law started */
	__u32 rounds;  /* RTTs since the law started, */
	__u32 silent_rounds; /* and since the last echo */
	/* The evidence: */
	__u32 first_rtt;  /* smallest RTT of its first round, */
	__u32 last_rtt;	  /* and of its last one; all ones: no sample */
	__u32 delivered;  /* in its last round; of a return, since the connection began to ask */
	__u32 lost;	  /* in its last round */
	__u32 loss_rounds;
	__u32 probed_rtt;  /* before the window was reduced as a probe; 0: no probe */
	__u32 drained_rtt; /* and with the reduced window */
	__u32 requests;	   /* of a return: requests, */
	__u32 heard;	   /* answers with a value, */
	__u32 failures;	   /* and fallbacks and failed attempts so far */
	__u8 local[16]; /* IPv6, or IPv4-mapped */
	__u8 remote[16];
	__u16 local_port;
	__u16 remote_port;
	__u32 reserved;
};

/* Sums over all connections, without padding. Its size does not depend on how many there are. */
struct host_summary {
	__u64 rate[HOST_MODES]; /* bit/s */
	__u32 flows[HOST_MODES];
	__u32 fallen_back[HOST_REASONS]; /* present connections that fell back, by reason */
	__u32 signals;			 /* connections that have received a signal */
	__u32 reserved;
	__u64 signal_min; /* of the raw numbers of law_source_read()'s first signal */
	__u64 signal_max;
	__u64 samples[HOST_SAMPLES]; /* a uniform random choice of them */
};

/* A socket that listens and does not answer the option. Its address is IPv6, or IPv4-mapped. */
struct host_listener {
	__u8 address[16];
	__u32 port;
	__u32 enabled; /* 1: from now on it answers */
};

/* A network of peers: the first bits of an IPv6 address, or of an IPv4-mapped one. */
struct host_prefix {
	__u32 bits;
	__be32 address[4];
};

/* The key of a destination. */
struct host_destination {
	__u64 netns;	   /* cookie of the source's network namespace */
	__be32 address[4]; /* IPv6, or IPv4-mapped */
};

/* What is remembered of a destination that lost the option. */
struct host_backoff {
	__u64 until_ns; /* after that it is forgotten */
	__u32 syn_failures;  /* SYNs with the option that got no answer */
	__u32 echo_failures; /* connections whose data got no echo */
};

_Static_assert(sizeof(struct law_params) <= sizeof(((struct host_params *)0)->law), "a law has more parameters");
_Static_assert(sizeof(struct host_record) == 2 * 16 + (3 + LAW_SIGNALS) * 8 + 12 * 4 + 2 * 2 + 4, "host_record has padding");

_Static_assert(sizeof(struct host_event) == (5 + LAW_SIGNALS) * 8 + 18 * 4 + 2 * 16 + 2 * 2 + 4, "host_event has padding");

_Static_assert(HOST_REASONS % 2 == 0 && sizeof(struct host_summary) == 12 * HOST_MODES + 4 * (HOST_REASONS + 2) +
								 8 * (2 + HOST_SAMPLES),
	       "host_summary has padding");

#endif
