/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A host's side of MaxNet: TCP congestion control by the price that routers write.
 *
 * Two programs share a connection's state, which is kept with its socket (host.h). One is TCP's congestion control
 * (host_law.h): called for acknowledgements and time-outs, it sets window and pacing rate by the law in maxnet.h.
 * The other sits on a cgroup (host_option.h) and reads and writes the option of wire.h. Reading comes first: TCP
 * parses a packet's options before it looks at what is acknowledged, so the law hears the echo with the
 * acknowledgement that brought it.
 *
 *
 * The option, packet by packet
 *
 *   SYN       --->  asks for a start rate: the spare capacity of the path there
 *   SYN-ACK   <---  the answer, and the same question for the path back: 12 bytes
 *   ACK       --->  the answer to that
 *   data      --->  asks for a price; every router on the path raises it to its own
 *   ACK       <---  the price, averaged over a round trip by whoever received the data
 *
 * Every connection of the cgroup asks, whatever congestion control it uses: a client that only downloads must let
 * the server know that it answers. Whoever received a question answers for a second after the last one. An end that
 * both asks and answers gives its segments 12 bytes for both, once a few packets have gone each way; until then
 * question and answer take turns in 8. Room in a segment is reserved when TCP computes its size, so none is ever
 * longer than the path's MTU. SACK blocks come first: three of them beside timestamps leave nothing, and then an
 * acknowledgement goes without.
 *
 * A SYN-ACK knows no socket yet. It repeats what the SYN says, so it needs none; the passive end learns that it was
 * understood from the packet that ends the handshake. That works for syncookies too, and with Fast Open, where that
 * packet is the SYN. A SYN or SYN-ACK that is sent again goes without the option: if a middlebox ate the first one,
 * the connection is up after 300 ms (host_syn_timeout()), and after the second such failure its place is not asked
 * for ten minutes.
 *
 *
 * A connection's life, as its sender sees it
 *
 *             no answer to the SYN's option
 *   asking -----------------------------------------------------------------------------+
 *     |  |       three round trips of data without a price, or a loss meanwhile         |
 *     |  +------------------------------------------------------------------------------+
 *     |  a start rate: window and pacing from it at once                                |
 *     v          (a price without a start rate goes straight to "priced")               v
 *   rising ------- the price's rate is reached -----> priced ----------------------> fallen back
 *     |            (MaxStart)                          |  ^     echoes have stopped,    (for good)
 *     |                                                |  |     or the bottleneck
 *     +---- a time-out, or nothing was sent -----------+  |     gives no price
 *           for longer than a price lasts              v  |
 *                                                  restarting: 1 packet (after silence 10), doubling each
 *                                                  round trip in which an echo comes, up to the law's window
 *
 * While a connection is asking it starts like any TCP, by slow start from the usual window, so that a path without
 * routers costs nothing; a loss then means what it means to TCP. Falling back is TCP_CONGESTION to the kernel's own
 * law, CUBIC or what the daemon was told, and Reno where there is none. Window and threshold are left as fits the
 * reason (host_fall_back()). The other role, to answer, goes on.
 *
 * Loss is not congestion as long as the path is priced: retransmission is TCP's (RACK, SACK), but window and pacing
 * stay the law's. What is congestion is a bottleneck without a price; host_check_bottleneck() says how it shows. If no echo
 * gets through because SACK blocks take its room, the rate halves each round in which a tenth is lost, and falls by
 * a 16th each round after eight without an echo, until one comes (host_reduce_rate()).
 *
 *
 * Pacing and window
 *
 * Rate x of the law, in bits a second of IP packets, is what TCP paces by, as bytes of payload. The window is x tau
 * and a few super-packets, for bounding what can stand in a queue; at 4.4 packets a round trip it is the pacing
 * that carries the fraction. tau is the path's, and at least the age of a price when it comes back (host_loop_rtt()).
 *
 *
 * What a lying receiver can do, and a lying router
 *
 * A receiver that echoes too low a price makes its own sender send too much: at most x_max, 256 MB in a window, and
 * no more than application, receive window and loss let through, since data must still be acknowledged. It can do
 * no more with any TCP whose losses it conceals, and like there it hurts others at its bottleneck. Where the
 * bottleneck is priced the others give way, to the last packet each; an operator who does not trust its receivers
 * must police, as with TCP. Where it is not, the standing queue or the losses end it (host_check_bottleneck()), unless the
 * price that is echoed also rises. One that echoes too high a price slows down its own transfer, to a packet every
 * 200 ms at worst, and so does a router to all that pass it; both could do so by dropping. Neither can make a
 * connection close or hang: any sequence of fields moves bounded numbers by bounded steps (maxnet.h), and the next
 * honest price is obeyed in full. Whatever is malformed counts as no option. A start rate is heard once, before the
 * first price. Nobody off the path can forge an echo without TCP's sequence numbers: options are read after TCP has
 * found the packet acceptable. A router that removes the option makes the connection fall back. Nothing of this
 * touches TCP's checks of what was received: data arrives whole or not at all.
 *
 *
 * Kernels
 *
 *   6.1    the oldest tried for; all helpers used here are there
 *   6.4    the law is a link, which can be pinned: before, the daemon registers it without, and pins the map instead
 *   6.10   cong_control() has other arguments; only the first is used, which is the socket in all of them
 */
#include "wire.h"
#include "host_maps.h"
#include "host_law.h"
#include "host_option.h"

char _license[] SEC("license") = "Dual BSD/GPL";

/* A connection as the daemon reads it. */
SEC("iter/bpf_sk_storage_map")
int waterfill_flows(struct bpf_iter__bpf_sk_storage_map *ctx)
{
	struct host_connection *c = ctx->value;
	struct sock *sk = ctx->sk;
	struct host_record record = {};
	struct tcp_sock *tp;

	if (!c || !sk)
		return 0;
	tp = bpf_skc_to_tcp_sock(sk);
	if (!tp)
		return 0;
	if (sk->__sk_common.skc_family == AF_INET6) {
		bpf_probe_read_kernel(record.local, 16, &sk->__sk_common.skc_v6_rcv_saddr);
		bpf_probe_read_kernel(record.remote, 16, &sk->__sk_common.skc_v6_daddr);
	} else {
		record.local[10] = record.local[11] = record.remote[10] = record.remote[11] = 0xff;
		*(__u32 *)(record.local + 12) = sk->__sk_common.skc_rcv_saddr;
		*(__u32 *)(record.remote + 12) = sk->__sk_common.skc_daddr;
	}
	record.local_port = sk->__sk_common.skc_num;
	record.remote_port = bpf_ntohs(sk->__sk_common.skc_dport);
	record.state = sk->__sk_common.skc_state;
	record.rate = c->source.rate;
	record.window = c->source.window;
	record.xi = c->source.xi;
	record.echoed_price = c->receiver.has_price ? c->receiver.average : 0;
	record.price = c->source.price;
	record.mode = c->source.mode;
	record.flags = c->flags;
	record.reason = c->reason;
	record.restart_window = c->restart_window;
	record.rtt = tp->srtt_us >> 3;
	record.base_rtt = host_base_rtt(tp);
	record.window_packets = tp->snd_cwnd;
	record.echoes = c->echoes;
	record.timeouts = c->timeouts;
	bpf_seq_write(ctx->meta->seq, &record, sizeof(record));
	return 0;
}
