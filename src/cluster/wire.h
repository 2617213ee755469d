/* wire.h: a connected socket, bare or under TLS. */
#ifndef TUTTI_CLUSTER_WIRE_H
#define TUTTI_CLUSTER_WIRE_H

#include "cluster/tls.h"

typedef struct tutti_wire {
    int socket; /* -1: none */
    tutti_tls *tls;
} tutti_wire;

/* Takes the socket over; closes it on failure. `context` NULL: bare. */
tutti_status tutti__wire_open(int socket, tutti_tls_context *context, bool accept,
                              tutti_wire *ret_wire);
void tutti__wire_close(tutti_wire *wire); /* twice is fine */
/* Bytes, -EAGAIN or another -errno; 0 from receive: the other side ended. */
int64_t tutti__wire_send(tutti_wire *wire, const void *data, size_t size);
int64_t tutti__wire_receive(tutti_wire *wire, void *data, size_t size);
/* False during TLS's handshake, when only what comes in moves it on. */
bool tutti__wire_ready(const tutti_wire *wire);
/* In words why `error` (a negative result) came. */
const char *tutti__wire_reason(const tutti_wire *wire, int64_t error);

#endif
