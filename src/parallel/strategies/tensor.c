/* tensor.c: tensor parallelism: every layer's neurons are divided among the ranks of one axis. */
#include "parallel/strategies/strategy.h"

const tutti_strategy_kind tutti_strategy_kind_tensor = {
    .name = "tensor",
    .doc = "the neurons of each layer divided among devices, variables with them",
    .several = true,
    .processes = true,
    .axis = "model",
    .rules = "hidden:model; heads:model; channels:model",
};
