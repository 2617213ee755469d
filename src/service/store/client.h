/* client.h: a worker's side of the protocol as a state machine: requests, each answered once. What
 * gets no answer is sent again, under a new view to whoever leads the slot then. */
#ifndef TUTTI_SERVICE_STORE_CLIENT_H
#define TUTTI_SERVICE_STORE_CLIENT_H

#include "service/store/transport.h"

typedef struct tutti_store_client_options {
    uint32_t node, incarnation, contribution;
    tutti_store_transport transport;
    int64_t retry_ns; /* 0: 50 ms */
} tutti_store_client_options;

/* The answer, which lives during the call: of the type that answers the request, or REFUSED. It may
 * make new requests. */
typedef void tutti_store_done(void *context, const tutti_store_message *answer);

typedef struct tutti_store_call {
    tutti_store_message message;
    tutti_store_done *done;
    void *context;
    int64_t sent_ns;
} tutti_store_call;

/* Who else lives at this node: messages that answer no request, and views. */
typedef struct tutti_store_guest {
    void *context;
    void (*receive)(void *context, const tutti_store_message *message, int64_t now_ns);
    void (*view)(void *context, const tutti_store_view *view, int64_t now_ns);
    void (*tick)(void *context, int64_t now_ns);
} tutti_store_guest;

enum { TUTTI_STORE_GUESTS = 2 };

typedef struct tutti_store_client {
    tutti_store_client_options options;
    tutti_store_guest guests[TUTTI_STORE_GUESTS];
    int guest_count;
    tutti_store_view view;
    uint64_t requests;
    TUTTI_VEC(tutti_store_call) calls;
} tutti_store_client;

void tutti__store_client_init(tutti_store_client *client,
                              const tutti_store_client_options *options);
/* Tells the guest the present view, too; all its slots may be NULL. */
tutti_status tutti__store_client_attach(tutti_store_client *client, const tutti_store_guest *guest,
                                        int64_t now_ns);
void tutti__store_client_detach(tutti_store_client *client, const void *context);
void tutti__store_client_free(tutti_store_client *client); /* what is under way is forgotten */
/* Asks slot message->slot. What the message points to is the caller's until `done` was called. */
tutti_status tutti__store_client_call(tutti_store_client *client,
                                      const tutti_store_message *message, tutti_store_done *done,
                                      void *context, int64_t now_ns);
void tutti__store_client_receive(tutti_store_client *client, const uint8_t *frame, size_t size,
                                 int64_t now_ns);
tutti_status tutti__store_client_view(tutti_store_client *client, const tutti_store_view *view,
                                      int64_t now_ns);
void tutti__store_client_tick(tutti_store_client *client, int64_t now_ns);

/* What was sent to a node may not have come: all that it has not answered is sent again. */
void tutti__store_client_again(tutti_store_client *client, uint32_t node, int64_t now_ns);

#endif
