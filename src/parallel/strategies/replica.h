/* replica.h: what the replicas of a strategy tell each other before they exchange tensors. */
#ifndef TUTTI_PARALLEL_STRATEGIES_REPLICA_H
#define TUTTI_PARALLEL_STRATEGIES_REPLICA_H

#include "parallel/strategies/strategy.h"

typedef enum tutti_replica_act {
    TUTTI_ACT_REDUCE = 1,
    TUTTI_ACT_GATHER, /* tensors may differ in dimension 0 */
    TUTTI_ACT_BROADCAST,
    TUTTI_ACT_END, /* of the replica's code: well, or not */
    TUTTI_ACT_FAIL,
} tutti_replica_act;

/* Every replica says what it is about to do, and with which tensor; `detail` is the reduction. All
 * of them get the same answer: fine, or what does not fit together. Once the code of one has
 * failed, that is the answer for all others until theirs ends. `ret_rows` [replicas], or NULL: the
 * size of each one's dimension 0. */
tutti_status tutti__replica_agree(const tutti_replica *replica, tutti_replica_act act,
                                  int64_t detail, const tutti_tensor *value, int64_t *ret_rows);
/* The last thing a replica says: how its code went. Returns what there is to be heard of the
 * others, TUTTI_OK where `own` is the first failure. */
tutti_status tutti__replica_end(const tutti_replica *replica, tutti_error *own);

#endif
