/* fully_sharded.c: ZeRO: variables, gradients and optimizer slots in blocks on the ranks that share
 * a batch. */
#include "parallel/strategies/strategy.h"

const tutti_strategy_kind tutti_strategy_kind_fully_sharded = {
    .name = "fully_sharded",
    .doc = "replicas that store variables, gradients and slots in blocks, one block each (ZeRO)",
    .several = true,
    .processes = true,
    .sharded = true,
    .axis = "shard",
};
