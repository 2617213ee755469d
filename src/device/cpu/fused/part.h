/* part.h: a fused body taken apart. */
#ifndef TUTTI_DEVICE_CPU_FUSED_PART_H
#define TUTTI_DEVICE_CPU_FUSED_PART_H

#include <string.h>

#include "graph/graph.h"
#include "program/kernel.h"

/* The body of a node of this pattern; NULL for others. */
static inline const tutti_graph *tutti__part_body(const tutti_infer *fused, const char *pattern)
{
    const tutti_attr *body = tutti_attr_find(fused->attrs, fused->attr_count, "body");
    bool same = strcmp(tutti_attr_string(fused->attrs, fused->attr_count, "pattern"), pattern) == 0;
    return same && body != NULL ? body->value.graph : NULL;
}

/* The body's only node of an operator; NULL when there is none. */
static inline const tutti_node *tutti__part_find(const tutti_graph *body, const char *op)
{
    for (size_t i = 0; i < body->nodes.count; i++)
        if (tutti__is(body->nodes.data[i], op))
            return body->nodes.data[i];
    return NULL;
}

/* Which result an output of a node is; -1: none. */
static inline int tutti__part_result(const tutti_graph *body, const tutti_node *node,
                                     uint32_t index)
{
    for (size_t i = 0; i < body->results.count; i++)
        if (body->results.data[i].node == node && body->results.data[i].index == index)
            return (int)i;
    return -1;
}

#endif
