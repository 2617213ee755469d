/* dispatcher.h: the coordinator's side of closures as a state machine: which closures there are,
 * which worker has which, and what came of them. Views, frames and ticks in, frames out.
 *
 * Invariants
 * 1. A closure has a number from 1 and reserves `keys` keys of pushes, first_key and on: equal on
 *    every retry, on any worker, and when a coordinator that was killed schedules it again. So what
 *    it pushes is applied once, however often it ran.
 * 2. It has one outcome: the first that came, which the journal has before anybody sees it.
 * 3. A worker has one closure at a time. When it is gone the closure waits again, before others.
 * 4. Closures under way lie within one window of keys behind what servers know to be finished: they
 *    remember no more.
 *
 * One thread at a time. */
#ifndef TUTTI_SERVICE_COORDINATOR_DISPATCHER_H
#define TUTTI_SERVICE_COORDINATOR_DISPATCHER_H

#include "service/coordinator/journal.h"
#include "service/store/shard.h"
#include "service/store/transport.h"

typedef enum tutti_closure_state {
    TUTTI_CLOSURE_WAITS,
    TUTTI_CLOSURE_RUNS,
    TUTTI_CLOSURE_DONE,
} tutti_closure_state;

typedef struct tutti_closure_entry {
    uint64_t number, first_key, keys;
    char function[TUTTI_STORE_WORD];
    uint8_t *arguments; /* from malloc, freed when it is done */
    size_t argument_bytes;
    tutti_closure_state state;
    uint32_t node, incarnation; /* that has it */
    int attempts;               /* workers that were lost with it */
    int64_t sent_ns, retry_ns;
    bool held; /* a future refers to it */
    tutti_closure_outcome outcome;
} tutti_closure_entry;

typedef struct tutti_dispatcher_options {
    uint32_t node, incarnation;
    tutti_store_transport transport;
    int64_t retry_ns;       /* 0: 100 ms, doubled up to 2 s */
    int attempts;           /* workers that a closure may be lost with; 0: 10 */
    tutti_journal *journal; /* (optional) the caller's */
    bool works;             /* the coordinator's own node runs closures, too */
} tutti_dispatcher_options;

typedef struct tutti_dispatcher {
    tutti_dispatcher_options options;
    tutti_store_view view;
    TUTTI_VEC(tutti_closure_entry *) entries; /* by number; entries.data[0] is number `first` */
    uint64_t first, next, next_key;
    uint64_t below, below_key; /* all closures before are done, and their keys */
    uint64_t finished_key;     /* the same, as all servers know it */
    size_t open;               /* closures that are not done */
    uint64_t retried;
    tutti_error failure; /* of the first closure that failed, until join has said so */
} tutti_dispatcher;

tutti_status tutti__dispatcher_init(tutti_dispatcher *dispatcher,
                                    const tutti_dispatcher_options *options);
void tutti__dispatcher_free(tutti_dispatcher *dispatcher);

/* One more closure; the arguments are copied. Where the journal has its outcome it is done at once;
 * INVALID when the journal has another closure under its number. */
tutti_status tutti__dispatcher_schedule(tutti_dispatcher *dispatcher, const char *function,
                                        const void *arguments, size_t size, uint64_t keys,
                                        uint64_t *ret_number, int64_t now_ns);
/* The closure, or NULL when it was forgotten (done, and no future refers to it). */
tutti_closure_entry *tutti__dispatcher_find(const tutti_dispatcher *dispatcher, uint64_t number);
void tutti__dispatcher_release(tutti_dispatcher *dispatcher, uint64_t number);
/* Closures that no worker has are failed: what join does after a failure. */
void tutti__dispatcher_cancel(tutti_dispatcher *dispatcher);

tutti_status tutti__dispatcher_view(tutti_dispatcher *dispatcher, const tutti_store_view *view,
                                    int64_t now_ns);
/* A RAN; others are ignored. A failure is the journal's. */
tutti_status tutti__dispatcher_receive(tutti_dispatcher *dispatcher,
                                       const tutti_store_message *message, int64_t now_ns);
/* Every server knows that keys below this one never come again. */
void tutti__dispatcher_finished(tutti_dispatcher *dispatcher, uint64_t key, int64_t now_ns);
tutti_status tutti__dispatcher_tick(tutti_dispatcher *dispatcher, int64_t now_ns);

#endif
