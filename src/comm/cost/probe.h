/* probe.h: pieces of work that the constants of the cost model are measured by. All ranks of the
 * group do the same one at once. */
#ifndef TUTTI_COMM_COST_PROBE_H
#define TUTTI_COMM_COST_PROBE_H

#include "comm/coll/coll.h"

typedef struct tutti_probe {
    tutti_comm *comm; /* that has the area */
    tutti_collective call;
    char *a, *b, *c;   /* of the largest size */
    int lanes;         /* that do the work at the same time, each with a part of these; 0: 1 */
    double pause;      /* late: seconds after which the receiver comes */
    double put, taken; /* seconds of the sender beside a prompt receiver, and of a late receiver,
                          known to even ranks */
} tutti_probe;
typedef tutti_status tutti_probe_work(tutti_probe *probe, size_t bytes);

/* Even ranks send to the next; the answer has 8 bytes. */
tutti_probe_work tutti__probe_one_way;
tutti_probe_work tutti__probe_of_two; /* only ranks 0 and 1 */
/* The same; the receivers add what comes in to what lies there: a += in; or into other memory: b =
 * a + in. */
tutti_probe_work tutti__probe_folded;
tutti_probe_work tutti__probe_folded_into;
/* The same; the receivers come when everything is in the link already, which must hold it. */
tutti_probe_work tutti__probe_late;
/* The same; the receivers are there. */
tutti_probe_work tutti__probe_prompt;
/* All ranks give to the next and take from the one before; the same, adding what comes in. */
tutti_probe_work tutti__probe_exchange;
tutti_probe_work tutti__probe_summed;
tutti_probe_work tutti__probe_nothing;

/* The work, or as much of it on each lane; bytes are a multiple of 4096 then. */
tutti_status tutti__probe_run(tutti_probe *probe, tutti_probe_work *work, size_t bytes);

/* Without a word to others: a += b, b = a + c, b = a. */
tutti_probe_work tutti__probe_add;
tutti_probe_work tutti__probe_add_into;
tutti_probe_work tutti__probe_copy;

/* Shared memory: a sum in place, a copy out of rank 0's memory, a sum that rank 0 makes alone, a
 * phase. */
tutti_probe_work tutti__probe_reduce_in_place;
tutti_probe_work tutti__probe_pull;
tutti_probe_work tutti__probe_collect;
tutti_probe_work tutti__probe_phases;
/* A call that has one phase, and little to give. */
tutti_probe_work tutti__probe_little;

#endif
