/* multi_worker_mirrored.c: replicas in the processes of a job, on one or many machines, variables
 * on all of them. */
#include "parallel/strategies/strategy.h"

const tutti_strategy_kind tutti_strategy_kind_multi_worker_mirrored = {
    .name = "multi_worker_mirrored",
    .doc = "replicas in the processes of a job, on one or many machines, variables on all of them",
    .several = true,
    .processes = true,
    .central = false,
};
