/* C interface of a transport endpoint without I/O, for `waterfill run --endpoint FLOW=LIBRARY.so`.
 *
 * A library exports the functions below, of which wf_set is optional. Each connection has two endpoints, a client and a server, which share nothing
 * but the datagrams between them. All times are nanoseconds since the start of the run. The same calls with the same arguments
 * must give the same results: use neither clocks nor random numbers, except those drawn from `seed`.
 *
 * After every call of an endpoint, Waterfill calls wf_poll_transmit until it returns 0, then wf_next_timer. When that time has
 * come, it calls wf_poll_transmit again: timers are handled there. Calls come from one thread at a time. The library runs in
 * Waterfill's process with all its rights: load only code that you trust.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#ifndef WATERFILL_ENDPOINT_H
#define WATERFILL_ENDPOINT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WF_ENDPOINT_VERSION 1u
/* Maximum size of a datagram's payload, in bytes. A link carries 28 bytes of headers in addition. */
#define WF_MAX_PAYLOAD 8972u
/* wf_next_timer: no timer. */
#define WF_NEVER UINT64_MAX
/* wf_write: a source without end. */
#define WF_ENDLESS UINT64_MAX

enum wf_side { WF_CLIENT = 0, WF_SERVER = 1 };
/* ECN codepoints of the IP header. */
enum wf_ecn { WF_NOT_ECT = 0, WF_ECT1 = 1, WF_ECT0 = 2, WF_CE = 3 };

struct wf_endpoint; /* defined by the library */

/* Returns WF_ENDPOINT_VERSION. */
uint32_t wf_endpoint_version(void);
/* Returns the name of the endpoint for tables, such as "mystack-cubic". The text lives as long as the library. */
const char *wf_endpoint_name(void);
/* Creates an endpoint; NULL if it cannot. `side` is a wf_side, `seed` differs between endpoints and repeats between runs. */
struct wf_endpoint *wf_create(int side, uint64_t seed);
/* Frees an endpoint. */
void wf_destroy(struct wf_endpoint *endpoint);
/* Sets an option of `--endpoint FLOW=LIBRARY.so:key=value`, before wf_start. Returns NULL, or one sentence that says what is
 * wrong, which lives until the next call. A library without this function has no options. */
const char *wf_set(struct wf_endpoint *endpoint, const char *key, const char *value);
/* Starts an endpoint. */
void wf_start(struct wf_endpoint *endpoint, uint64_t now);
/* The application has `bytes` more for the peer, or WF_ENDLESS. Called for the client only. */
void wf_write(struct wf_endpoint *endpoint, uint64_t now, uint64_t bytes);
/* Returns the number of the application's bytes that have arrived in order since the last call. */
uint64_t wf_read(struct wf_endpoint *endpoint, uint64_t now);
/* Writes a datagram that may leave now to `payload`, a buffer of WF_MAX_PAYLOAD bytes, and its codepoint to `ecn`.
 * Returns its size, or 0 if none may leave. */
size_t wf_poll_transmit(struct wf_endpoint *endpoint, uint64_t now, uint8_t *payload, uint8_t *ecn);
/* Handles a datagram that has arrived with this codepoint. */
void wf_handle(struct wf_endpoint *endpoint, uint64_t now, const uint8_t *payload, size_t size, uint8_t ecn);
/* Returns the time of the next timer, or WF_NEVER. */
uint64_t wf_next_timer(const struct wf_endpoint *endpoint);

#ifdef __cplusplus
}
#endif

#endif
