/* mirrored.c: a replica on each device of this process, variables on all of them. */
#include "parallel/strategies/strategy.h"

const tutti_strategy_kind tutti_strategy_kind_mirrored = {
    .name = "mirrored",
    .doc = "a replica on each device of this process, variables on all of them",
    .devices = "cpu:*",
    .several = true,
    .processes = false,
    .central = false,
};
