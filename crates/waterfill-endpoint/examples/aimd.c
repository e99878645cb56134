/* A client that sends by additive increase and multiplicative decrease, and a server that acknowledges each datagram.
 * Build: cc -shared -fPIC -O2 -I crates/waterfill-endpoint/include -o aimd.so crates/waterfill-endpoint/examples/aimd.c
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#include <stdlib.h>
#include <string.h>

#include "waterfill_endpoint.h"

enum { PAYLOAD = 1200, ACK = 8, WINDOW = 1 << 14 }; /* datagrams of data and of acknowledgements; most in flight */
#define TIMEOUT 1000000000ull                       /* 1 s without an acknowledgement: all is lost */

struct wf_endpoint {
    int side;
    uint64_t offered;  /* client: datagrams that the application has; server: datagrams that wait for an answer */
    uint64_t next;     /* client: next new datagram; server: next one expected, all below have arrived */
    uint64_t una;      /* client: all below have arrived; server: those below have been read */
    uint64_t resend;   /* client: datagram to send again, or WF_NEVER */
    uint64_t recover;  /* client: datagrams below were sent before the last reduction */
    uint64_t newest;   /* server: datagram that the next acknowledgement answers */
    uint64_t deadline; /* client: time of the timeout */
    unsigned duplicates;
    double window;     /* client: in datagrams */
    uint8_t arrived[WINDOW]; /* server: datagrams beyond `next` */
};

uint32_t wf_endpoint_version(void) { return WF_ENDPOINT_VERSION; }
const char *wf_endpoint_name(void) { return "aimd"; }
void wf_destroy(struct wf_endpoint *e) { free(e); }
void wf_start(struct wf_endpoint *e, uint64_t now) { (void)e, (void)now; }

struct wf_endpoint *wf_create(int side, uint64_t seed) {
    struct wf_endpoint *e = calloc(1, sizeof *e);
    (void)seed; /* nothing here is random */
    if (e) {
        e->side = side;
        e->window = 10;
        e->resend = e->deadline = WF_NEVER;
    }
    return e;
}

void wf_write(struct wf_endpoint *e, uint64_t now, uint64_t bytes) {
    (void)now;
    e->offered = bytes == WF_ENDLESS ? WF_NEVER : e->offered + (bytes + PAYLOAD - 1) / PAYLOAD;
}

uint64_t wf_read(struct wf_endpoint *e, uint64_t now) {
    uint64_t bytes = e->side == WF_SERVER ? (e->next - e->una) * PAYLOAD : 0;
    (void)now;
    if (e->side == WF_SERVER) e->una = e->next;
    return bytes;
}

/* The window halves, once per round trip. */
static void reduce(struct wf_endpoint *e, double window) {
    if (e->una >= e->recover) {
        e->window = window < 2 ? 2 : window;
        e->recover = e->next;
    }
}

size_t wf_poll_transmit(struct wf_endpoint *e, uint64_t now, uint8_t *payload, uint8_t *ecn) {
    uint64_t number;
    *ecn = WF_NOT_ECT;
    if (e->side == WF_SERVER) { /* an acknowledgement of each datagram: the next one expected */
        if (e->offered == 0) return 0;
        e->offered--;
        memcpy(payload, &e->next, ACK);
        return ACK;
    }
    if (now >= e->deadline) {
        e->recover = 0;
        reduce(e, 2);
        e->resend = e->una;
        e->deadline = WF_NEVER;
    }
    if (e->resend != WF_NEVER) {
        number = e->resend;
        e->resend = WF_NEVER;
    } else if (e->next < e->offered && e->next - e->una < (uint64_t)e->window && e->next - e->una < WINDOW) {
        number = e->next++;
    } else {
        return 0;
    }
    if (e->deadline == WF_NEVER) e->deadline = now + TIMEOUT;
    memset(payload, 0, PAYLOAD);
    memcpy(payload, &number, sizeof number);
    return PAYLOAD;
}

void wf_handle(struct wf_endpoint *e, uint64_t now, const uint8_t *payload, size_t size, uint8_t ecn) {
    uint64_t number;
    (void)ecn;
    if (size < ACK) return;
    memcpy(&number, payload, sizeof number);
    if (e->side == WF_SERVER) {
        e->offered++;
        if (number >= e->next && number - e->next < WINDOW) e->arrived[number % WINDOW] = 1;
        for (; e->arrived[e->next % WINDOW]; e->next++) e->arrived[e->next % WINDOW] = 0;
    } else if (number > e->una && number <= e->next) {
        if (number < e->recover) e->resend = number; /* a further loss of the same window */
        else e->window += (double)(number - e->una) / e->window;
        e->una = number;
        e->duplicates = 0;
        e->deadline = e->una < e->next ? now + TIMEOUT : WF_NEVER;
    } else if (number == e->una && ++e->duplicates == 3 && e->una >= e->recover) {
        e->resend = e->una;
        reduce(e, e->window / 2);
    }
}

uint64_t wf_next_timer(const struct wf_endpoint *e) { return e->deadline; }
