/* processes_inside.h: what processes.c and processes_follow.c share. */
#ifndef TUTTI_SERVICE_STORE_PROCESSES_INSIDE_H
#define TUTTI_SERVICE_STORE_PROCESSES_INSIDE_H

#include <pthread.h>
#include <stdatomic.h>

#include "cluster/cluster.h"
#include "comm/transport/transport.h"
#include "service/store/processes.h"
#include "service/store/views.h"

#define TUTTI_STORE_MS INT64_C(1000000)
#define TUTTI_STORE_SECOND INT64_C(1000000000)
/* Tags of messages. */
enum {
    TUTTI_STORE_TAG_FRAME = 1,
    TUTTI_STORE_TAG_VIEW,
    TUTTI_STORE_TAG_STATE,
    TUTTI_STORE_TAG_ASK,
    TUTTI_STORE_TAG_REPORT,
    TUTTI_STORE_TAG_WANT,
};

typedef struct processes_letter {
    uint8_t *frame;
    size_t size;
} processes_letter;

struct tutti_store_processes {
    tutti_store_processes_options options;
    tutti_membership *members;
    tutti_transport *transport;
    bool serves;
    uint64_t own;     /* this process's incarnation */
    bool cut;         /* the others may have another view: nothing of ours counts */
    uint64_t view;    /* of the members, the latest */
    uint32_t decider; /* the server that decides views; NOBODY */
    size_t workers;   /* that are in the view */
    pthread_mutex_t lock;
    int64_t ticked_ns, wanted_ns;
    int again;                             /* a server whose connection has ended; -1: none */
    _Atomic int leaving;                   /* frames that have not left */
    TUTTI_VEC(processes_letter) to_itself; /* frames from this process to itself */
    tutti_status failed;                   /* of what a callback could not do */
    /* A server's. */
    tutti_store_server *server;
    tutti_store_decider *deciding;
    int64_t began_ns, alone_ns; /* alone: since when no worker is there; 0: some are */
    /* A worker's. */
    tutti_store_client client;
    int reports; /* that have come */
    tutti_store_staleness *staleness;
    tutti_text *lines;
};

/* ---- processes_follow.c ---- */
/* Moves what can be moved, for at most so long. */
tutti_status tutti__store_processes_step(tutti_store_processes *p, int64_t until_ns);
/* Sends again what went to a server whose connection has ended. */
void tutti__store_processes_again(tutti_store_processes *p);
/* Takes the bytes over. */
void tutti__store_processes_send(tutti_store_processes *p, uint32_t to, uint64_t tag,
                                 uint8_t *bytes, size_t size);
/* As the store's transport has it. */
void tutti__store_processes_frame(void *context, uint32_t to, uint8_t *frame, size_t size);
/* The view of the slots that this process follows; number 0: none yet. */
const tutti_store_view *tutti__store_processes_view(const tutti_store_processes *p);
/* A process that was given up, and is back, is another one: of what it had nothing counts. */
tutti_status tutti__store_processes_begin(tutti_store_processes *p, uint64_t own);
/* As the transport calls them. */
void tutti__store_processes_members(void *context, const tutti_member_view *view);
void tutti__store_processes_lost(void *context, int rank, uint64_t incarnation, bool gone,
                                 const char *why);
void tutti__store_processes_message(void *context, int rank, uint64_t incarnation, uint64_t tag,
                                    void *data, size_t size);

#endif
