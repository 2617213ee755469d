/* one_device.c: everything on one device: the baseline that all others equal. */
#include "parallel/strategies/strategy.h"

const tutti_strategy_kind tutti_strategy_kind_one_device = {
    .name = "one_device",
    .doc = "everything on one device: the baseline that all others equal",
    .several = false,
    .processes = false,
    .central = false,
};
