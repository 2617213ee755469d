/* processes.h: servers and workers as processes of a job that is open (cluster/membership.h):
 * frames go by comm/transport, views follow the members. */
#ifndef TUTTI_SERVICE_STORE_PROCESSES_H
#define TUTTI_SERVICE_STORE_PROCESSES_H

#include "service/store/server.h"
#include "service/store/worker.h"
#include "tutti/cluster.h"

typedef struct tutti_store_processes_options {
    const tutti_cluster *cluster; /* is kept, and changed: its roster is open */
    bool replicas;
    bool coordinated;         /* rank 0 reads, and gives closures to the others */
    int64_t limit;            /* bytes of each server; 0: none */
    tutti_store_order *order; /* (optional) of a server */
    int64_t deadline_ns;      /* of a call that waits, relative */
    int64_t join_ns;          /* until all have met */
} tutti_store_processes_options;

typedef struct tutti_store_processes tutti_store_processes;

/* Meets the others; a worker returns when the servers have a view that it is in. */
tutti_status tutti__store_processes_open(const tutti_store_processes_options *options,
                                         tutti_store_processes **ret_processes);
bool tutti__store_processes_serves(const tutti_store_processes *p);
/* A server's work, until all workers have left. */
tutti_status tutti__store_processes_serve(tutti_store_processes *p);
/* A worker's. */
tutti_store_client *tutti__store_processes_client(tutti_store_processes *p);
tutti_store_drive tutti__store_processes_drive(tutti_store_processes *p);
/* Until everything that was sent has left; not between enter and leave. */
tutti_status tutti__store_processes_flush(tutti_store_processes *p);
/* What each server says of the staleness of its gradients and of its load, a line each. */
tutti_status tutti__store_processes_report(tutti_store_processes *p, tutti_store_staleness *ret,
                                           tutti_text *lines);
/* `well`: this process has come to its end, and leaves; else the others see it go. NULL is fine. */
tutti_status tutti__store_processes_close(tutti_store_processes *p, bool well);

#endif
