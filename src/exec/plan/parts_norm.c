/* parts_norm.c: the norm of gradients of which each device or process has a part; see parts.h.
 *
 * There is one such norm in a job that clips all gradients together. One that clips each by its own
 * norm has many, and as many meetings would take longer than whole gradients do. */
#include "exec/plan/parts.h"
#include "ops/update/rule.h"
#include "parallel/spmd/spmd.h"

static tutti_node *find_norm(const tutti_graph *graph)
{
    tutti_node *found = NULL;
    for (size_t n = 0; n < graph->nodes.count; n++) {
        tutti_node *node = graph->nodes.data[n];
        if (!tutti__is(node, "square_sum"))
            continue;
        if (found)
            return NULL;
        found = node;
    }
    return found;
}

bool tutti__parts_is_norm(const tutti_graph *graph, const tutti_node *node)
{
    return tutti__is(node, "square_sum") && find_norm(graph) == node;
}

static bool is_cut(tutti_edge sum)
{
    const tutti_attr *cut = tutti_attr_find(sum.node->attrs, sum.node->attr_count, "cut");
    for (int i = 0; tutti__is(sum.node, "all_reduce_many") && cut && i < cut->count; i++)
        if (cut->value.ints[i] == sum.index)
            return true;
    return false;
}

/* The update that takes part of an output of a sum. */
static const tutti_node *taker(const tutti_graph *graph, tutti_edge sum)
{
    for (size_t n = 0; n < graph->nodes.count; n++) {
        const tutti_node *node = graph->nodes.data[n];
        if (!(node->op->flags & TUTTI_OP_UPDATES) ||
            !tutti_attr_find(node->attrs, node->attr_count, "parts"))
            continue;
        tutti_edge gradient = tutti__parts_gradient(node);
        if (gradient.node == sum.node && gradient.index == sum.index)
            return node;
    }
    return NULL;
}

/* What `part` counts: its elements of what is cut, and the first part all of the rest. The number
 * of inputs that are cut. */
static int find_ranges(const tutti_graph *graph, const tutti_node *norm, int part, int64_t *ranges)
{
    int found = 0;
    for (int i = 0; i < norm->input_count; i++) {
        int64_t count = tutti_type_count(tutti__edge_type(norm->inputs[i]));
        tutti_edge sum = tutti__parts_root(norm->inputs[i]);
        const tutti_node *update = is_cut(sum) ? taker(graph, sum) : NULL;
        ranges[2 * i] = 0;
        ranges[2 * i + 1] = part == 0 ? count : 0;
        if (!update)
            continue;
        tutti__update_part(update->attrs, update->attr_count, count, &ranges[2 * i],
                           &ranges[2 * i + 1]);
        found++;
    }
    return found;
}

tutti_status tutti__parts_norm(tutti_graph *graph, int part, int parts)
{
    tutti_node *norm = find_norm(graph), *all;
    if (!norm)
        return TUTTI_OK;
    int64_t *ranges =
        tutti__arena_array(&graph->arena, 2 * (size_t)norm->input_count, sizeof *ranges);
    if (!ranges)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a plan");
    if (find_ranges(graph, norm, part, ranges) == 0)
        return TUTTI_OK;
    tutti_attr *attr = tutti__parts_attr(graph, norm, "ranges");
    if (!attr)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a plan");
    attr->value.ints = ranges;
    attr->count = 2 * norm->input_count;
    tutti_edge own = {norm, 0};
    tutti_attr attrs[] = {TUTTI_STR("axis", TUTTI_BATCH_AXIS), TUTTI_INT("size", parts),
                          TUTTI_STR("op", "sum"), TUTTI_STR("channel", "norm.parts")};
    TUTTI_TRY(tutti__node_add(graph, tutti_op_find("all_reduce"), "norm_of_parts", 1, &own, 4,
                              attrs, &all));
    all->device = norm->device;
    tutti__graph_replace(graph, own, (tutti_edge){all, 0});
    all->inputs[0] = own;
    return tutti__graph_sort(graph);
}
