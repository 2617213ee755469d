/* parameter_server.c: variables on servers of their own, workers at their own pace. */
#include "parallel/strategies/strategy.h"

const tutti_strategy_kind tutti_strategy_kind_parameter_server = {
    .name = "parameter_server",
    .doc = "variables on servers of their own, workers at their own pace",
    .devices = NULL,
    .several = true,
    .processes = false,
    .central = false,
    .servers = true,
};
