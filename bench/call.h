/* call.h: one call of a collective operation, again and again, and its time. */
#ifndef TUTTI_BENCH_CALL_H
#define TUTTI_BENCH_CALL_H

#include "tutti/comm.h"

typedef struct tutti_bench_call {
    tutti_comm *comm;
    const char *operation, *algorithm; /* NULL: auto */
    int64_t bytes, count;              /* of the message; elements of a call */
    float *a, *b;                      /* what is given; what is got, where that is other memory */
    int socket;                        /* of tutti__bench_socket, for "socket" */
} tutti_bench_call;

/* Operations whose blocks make up the message. */
bool tutti__bench_in_blocks(const char *operation);
/* What is no collective: copy, socket, async. */
bool tutti__bench_is_other(const char *operation);
/* Bytes that links carry at least, as nccl-tests count them. */
double tutti__bench_bus_bytes(const tutti_bench_call *call);

/* Seconds of a call, once the caches have settled: the best of short rounds, until the three
 * fastest agree or some time has gone. All ranks; they get the same. */
tutti_status tutti__bench_time_call(const tutti_bench_call *call, double *ret_seconds);

#endif
