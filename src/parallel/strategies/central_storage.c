/* central_storage.c: a replica on each device of this process, variables on one of them. */
#include "parallel/strategies/strategy.h"

const tutti_strategy_kind tutti_strategy_kind_central_storage = {
    .name = "central_storage",
    .doc = "a replica on each device of this process, variables on one of them",
    .devices = "cpu:*",
    .several = true,
    .processes = false,
    .central = true,
};
