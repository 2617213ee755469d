/* views.h: which process leads which slot, in a job whose servers come and go. The server of the
 * lowest rank decides, anew for each view of the members: it hears from every server what that has,
 * then gives all of them the same view, of the members' number. A pure state machine.
 *
 * Invariants
 * 1. A slot goes on with a process that led it in the latest view that any server knows, or that
 *    has all of it under that view; else it is lost, and stays so.
 * 2. The first view waits until all are there that the job's description names, or for a while.
 * 3. Whoever decides next has heard the latest view from those that acted upon it. */
#ifndef TUTTI_SERVICE_STORE_VIEWS_H
#define TUTTI_SERVICE_STORE_VIEWS_H

#include "service/store/transport.h"

/* Views and states as bytes. */
tutti_status tutti__store_view_write(const tutti_store_view *view, tutti_text *out);
/* Reads one from hostile bytes; to be freed. */
tutti_status tutti__store_view_read(const uint8_t *data, size_t size, tutti_store_view *ret_view);

/* What a server says when the members have changed. */
typedef struct tutti_store_state_of {
    uint32_t node, incarnation;
    uint64_t members;      /* the number of the members' view that it answers */
    tutti_store_view view; /* the latest that it knows; number 0: none */
    const bool *complete;  /* [slot]: it could lead it */
} tutti_store_state_of;

typedef struct tutti_store_decider_options {
    size_t slots;            /* as many as the job has servers */
    size_t servers, workers; /* that the first view waits for */
    bool replicas;
} tutti_store_decider_options;

typedef struct tutti_store_decider tutti_store_decider;

tutti_status tutti__store_decider_create(const tutti_store_decider_options *options,
                                         tutti_store_decider **ret_decider);
void tutti__store_decider_free(tutti_store_decider *decider); /* NULL is fine */
/* The members have changed: what was heard is forgotten. Processes are copied. */
tutti_status tutti__store_decider_members(tutti_store_decider *decider, uint64_t number,
                                          size_t server_count, const tutti_store_process *servers,
                                          size_t worker_count, const tutti_store_process *workers);
/* A server has spoken; copied. */
tutti_status tutti__store_decider_hear(tutti_store_decider *decider,
                                       const tutti_store_state_of *state);
/* Whether there is a view to be given to all: once for each view of the members. `patient` false:
 * the first one waits no longer. *ret_view is the decider's, until it is called again. */
bool tutti__store_decider_decide(tutti_store_decider *decider, bool patient,
                                 const tutti_store_view **ret_view);

#endif
