/* A client with a retransmission timeout from its own RTT samples (RFC 6298), and a server that acknowledges each datagram.
 * With -DAMBIGUOUS it also takes samples of datagrams that it has sent twice, against Karn's rule (RFC 6298 §3): an
 * acknowledgement of the first copy then looks like a short RTT of the second one.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "waterfill_endpoint.h"

enum { PAYLOAD = 1472, ACK = 16, WINDOW = 1 << 14 };
#define MARGIN 2.5e7  /* ns: the timeout is at least this much above the smoothed RTT, as by QUIC's delay of acknowledgements */
#define FIRST 1e9     /* ns: timeout before the first sample */
#define LONGEST 6e10

struct wf_endpoint {
    int side;
    uint64_t offered, next, una, resend, recover, deadline;
    unsigned duplicates;
    double window, threshold; /* client: in datagrams */
    double smoothed, variance, timeout; /* client: ns */
    uint64_t sent[WINDOW];    /* client: time of the last transmission */
    uint8_t twice[WINDOW];    /* client: sent more than once; server: arrived beyond `next` */
};

uint32_t wf_endpoint_version(void) { return WF_ENDPOINT_VERSION; }
#ifdef AMBIGUOUS
const char *wf_endpoint_name(void) { return "ambiguous-rtt"; }
#else
const char *wf_endpoint_name(void) { return "timeouts"; }
#endif
void wf_destroy(struct wf_endpoint *e) { free(e); }
void wf_start(struct wf_endpoint *e, uint64_t now) { (void)e, (void)now; }

struct wf_endpoint *wf_create(int side, uint64_t seed) {
    struct wf_endpoint *e = calloc(1, sizeof *e);
    (void)seed;
    if (e) {
        e->side = side;
        e->window = 10;
        e->threshold = INFINITY;
        e->timeout = FIRST;
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

static void sample(struct wf_endpoint *e, double rtt) {
    if (e->smoothed == 0) {
        e->smoothed = rtt;
        e->variance = rtt / 2;
    } else {
        e->variance += (fabs(e->smoothed - rtt) - e->variance) / 4;
        e->smoothed += (rtt - e->smoothed) / 8;
    }
    e->timeout = e->smoothed + fmax(4 * e->variance, MARGIN);
}

size_t wf_poll_transmit(struct wf_endpoint *e, uint64_t now, uint8_t *payload, uint8_t *ecn) {
    uint64_t number;
    *ecn = WF_NOT_ECT;
    if (e->side == WF_SERVER) { /* the next datagram expected, and how many have arrived */
        if (e->offered == 0) return 0;
        e->offered--;
        memset(payload, 0, ACK);
        memcpy(payload, &e->next, sizeof e->next);
        return ACK;
    }
    if (now >= e->deadline) {
        e->threshold = fmax(e->window / 2, 2);
        e->window = 1;
        e->recover = e->next;
        e->resend = e->una;
        e->deadline = WF_NEVER;
        e->timeout = fmin(2 * e->timeout, LONGEST);
    }
    if (e->resend != WF_NEVER) {
        number = e->resend;
        e->resend = WF_NEVER;
        e->twice[number % WINDOW] = 1;
    } else if (e->next < e->offered && e->next - e->una < (uint64_t)e->window && e->next - e->una < WINDOW) {
        number = e->next++;
        e->twice[number % WINDOW] = 0;
    } else {
        return 0;
    }
    e->sent[number % WINDOW] = now;
    if (e->deadline == WF_NEVER) e->deadline = now + (uint64_t)e->timeout;
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
        if (number >= e->next && number - e->next < WINDOW) e->twice[number % WINDOW] = 1;
        for (; e->twice[e->next % WINDOW]; e->next++) e->twice[e->next % WINDOW] = 0;
        return;
    }
    if (number > e->una && number <= e->next) {
        uint64_t newest = number - 1, first = e->una;
#ifdef AMBIGUOUS
        (void)first;
        sample(e, (double)(now - e->sent[newest % WINDOW]));
#else
        /* A datagram that waited for a repair says nothing about the path either. */
        if (!e->twice[newest % WINDOW] && !e->twice[first % WINDOW]) sample(e, (double)(now - e->sent[newest % WINDOW]));
#endif
        if (number < e->recover) e->resend = number;
        if (number >= e->recover || e->window < e->threshold)
            e->window += e->window < e->threshold ? (double)(number - e->una) : (double)(number - e->una) / e->window;
        e->una = number;
        e->duplicates = 0;
        e->deadline = e->una < e->next ? now + (uint64_t)e->timeout : WF_NEVER;
    } else if (number == e->una && e->una < e->next && ++e->duplicates == 3 && e->una >= e->recover) {
        e->resend = e->una;
        e->threshold = e->window = fmax(e->window / 2, 2);
        e->recover = e->next;
    }
}

uint64_t wf_next_timer(const struct wf_endpoint *e) { return e->deadline; }
