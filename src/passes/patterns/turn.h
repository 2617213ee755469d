/* turn.h: the transpose between [batch, steps, heads, size] and [batch, heads, steps, size]. */
#ifndef TUTTI_PASSES_PATTERNS_TURN_H
#define TUTTI_PASSES_PATTERNS_TURN_H

#include <string.h>

#include "passes/pattern.h"

static inline bool tutti__is_turn(const tutti_node *node)
{
    static const int64_t turn[] = {0, 2, 1, 3};
    const int64_t *order;
    return tutti__is(node, "transpose") &&
           tutti_attr_ints(node->attrs, node->attr_count, "order", &order) == 4 &&
           memcmp(order, turn, sizeof turn) == 0;
}

#endif
