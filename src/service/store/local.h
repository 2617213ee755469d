/* local.h: servers and workers of one process: frames go by a queue, in order, and none is lost.
 * Threads may be workers; whoever waits carries the messages. */
#ifndef TUTTI_SERVICE_STORE_LOCAL_H
#define TUTTI_SERVICE_STORE_LOCAL_H

#include "service/store/server.h"
#include "service/store/worker.h"

typedef struct tutti_store_local_options {
    int servers, workers; /* as many slots as servers */
    int observers;        /* workers behind these, for whom nobody waits */
    bool replicas;        /* a slot's replica is with the next server */
    int64_t limit;        /* bytes of each server; 0: none */
    tutti_store_find_rule *find;
    tutti_store_order *order;       /* (optional) */
    int64_t deadline_ns;            /* of a call that waits; 0: 60 s */
    const tutti_packed_data *saved; /* (optional) [servers], of tutti__store_slot_save */
} tutti_store_local_options;

typedef struct tutti_store_local tutti_store_local;

tutti_status tutti__store_local_open(const tutti_store_local_options *options,
                                     tutti_store_local **ret_local);
void tutti__store_local_close(tutti_store_local *local); /* NULL is fine; nobody may wait in it */
tutti_store_client *tutti__store_local_client(tutti_store_local *local, int worker);
tutti_store_drive tutti__store_local_drive(tutti_store_local *local);
tutti_store_server *tutti__store_local_server(tutti_store_local *local, int server);
/* A process is gone; the others get a new view. A server's slots go on with their replicas. */
tutti_status tutti__store_local_kill_server(tutti_store_local *local, int server);
tutti_status tutti__store_local_kill_worker(tutti_store_local *local, int worker);
/* A worker that was gone is back, as another process. */
tutti_status tutti__store_local_join_worker(tutti_store_local *local, int worker);

#endif
