/* rewrite.c: one node of the job on one replica: in which way it is cut. */
#include "parallel/spmd/rewrite.h"

#include <string.h>

enum { MOST_WAYS = 64 };

tutti_status tutti__spmd_no_memory(void)
{
    return tutti_fail(TUTTI_NO_MEMORY, "no memory to spread a job");
}

int tutti__spmd_ways(const tutti_node *node, int capacity, tutti_split *ret)
{
    tutti_type types[TUTTI_SPLIT_SLOTS];
    if (!node->op->split || node->input_count > TUTTI_SPLIT_SLOTS ||
        node->output_count > TUTTI_SPLIT_SLOTS)
        return 0;
    tutti_infer rule = tutti__node_rule(node, types);
    int count = node->op->split(&rule, capacity, ret);
    return count < capacity ? count : capacity;
}

/* ---- what a node becomes ---- */

static tutti_status rewrite_begin(tutti_spmd_rewrite *rewrite, tutti_node *node,
                                  tutti_rewritten **ret)
{
    tutti_rewritten *mark = tutti__arena_take(rewrite->scratch, sizeof *mark);
    if (!mark)
        return tutti__spmd_no_memory();
    *mark = (tutti_rewritten){0};
    mark->outputs =
        tutti__arena_array(rewrite->scratch, (size_t)node->output_count + 1, sizeof *mark->outputs);
    if (!mark->outputs)
        return tutti__spmd_no_memory();
    memset(mark->outputs, 0, ((size_t)node->output_count + 1) * sizeof *mark->outputs);
    node->scratch = mark;
    *ret = mark;
    return TUTTI_OK;
}

void tutti__spmd_made(tutti_rewritten *mark, int output, tutti_placement placement)
{
    mark->outputs[output] = (tutti_value_placements){.count = 1, .placements = {placement}};
}

static bool has_input(const tutti_node *node, tutti_placement_kind kind)
{
    for (int i = 0; i < node->input_count; i++)
        if (tutti__placement_made(node->inputs[i])->kind == kind)
            return true;
    return false;
}

tutti_status tutti__spmd_whole(tutti_spmd_rewrite *rewrite, tutti_node *node, tutti_rewritten *mark)
{
    tutti_edge *inputs =
        tutti__arena_array(rewrite->scratch, (size_t)node->input_count + 1, sizeof *inputs);
    if (!inputs)
        return tutti__spmd_no_memory();
    for (int i = 0; i < node->input_count; i++)
        TUTTI_TRY(tutti__placement_as(rewrite, node->inputs[i], TUTTI_PLACEMENT_REPLICATED, 0,
                                      &inputs[i]));
    TUTTI_TRY(tutti__spmd_copy(rewrite, node, inputs, NULL, &mark->node));
    tutti__spmd_keep_whole(rewrite, node, mark->node);
    for (int i = 0; i < node->output_count; i++)
        tutti__spmd_made(
            mark, i, (tutti_placement){TUTTI_PLACEMENT_REPLICATED, 0, {mark->node, (uint32_t)i}});
    return TUTTI_OK;
}

static double bytes_of(const tutti_type *type)
{
    int64_t count = tutti_type_count(type);
    return count < 0 ? 1e18 : (double)count * (double)tutti_dtype_size(type->dtype);
}

/* Bytes that replicas exchange so that input i is as a way wants it; axis -1: whole. */
static double turning(const tutti_spmd_rewrite *rewrite, const tutti_node *node, int i, int axis)
{
    const tutti_placement *placement = tutti__placement_made(node->inputs[i]);
    const tutti_type *type = tutti__edge_type(node->inputs[i]);
    if (axis >= 0 && !tutti__placement_divides(rewrite, type->dims[axis]))
        return -1;
    if (placement->kind == TUTTI_PLACEMENT_PARTIAL)
        return 2 * bytes_of(type);
    if (placement->kind == TUTTI_PLACEMENT_SHARDED)
        return axis == placement->dim ? 0 : 1 + bytes_of(type);
    return axis < 0 ? 0 : 1e-3;
}

/* What a way costs in bytes; negative: it does not fit the batch, or bits would depend on the cut
 * in deterministic mode. */
static double price(const tutti_spmd_rewrite *rewrite, const tutti_node *node,
                    const tutti_split *way)
{
    double sum = 0;
    for (int i = 0; i < node->input_count; i++) {
        double bytes = turning(rewrite, node, i, way->inputs[i]);
        if (bytes < 0)
            return -1;
        sum += bytes;
    }
    for (int i = 0; i < node->output_count; i++) {
        int axis = way->outputs[i];
        if (axis >= 0 && !tutti__placement_divides(rewrite, node->types[i].dims[axis]))
            return -1;
        if (axis == TUTTI_PARTIAL_PROD && rewrite->spmd->shards > 0 &&
            tutti_dtype_is_float(node->types[i].dtype))
            return -1; /* products round in the order in which they are made: one makes it all */
        if (axis < TUTTI_WHOLE)
            sum += 1e-2 + 1e-9 * bytes_of(&node->types[i]);
    }
    if (way->attr) {
        const tutti_attr *attr = tutti_attr_find(node->attrs, node->attr_count, way->attr);
        int64_t size =
            attr->kind == TUTTI_ATTR_INT ? attr->value.i : attr->value.ints[way->attr_index];
        if (size >= 0 && !tutti__placement_divides(rewrite, size))
            return -1;
    }
    return sum;
}

/* The cheapest way; false: whole is as good. Whole means that every replica does all the work, so
 * that what it would gather counts four times. */
static bool rewrite_choose(const tutti_spmd_rewrite *rewrite, const tutti_node *node,
                           tutti_split *ret, double *ret_price)
{
    tutti_split ways[MOST_WAYS];
    int count = tutti__spmd_ways(node, MOST_WAYS, ways), best = -1;
    double least = 0;
    for (int i = 0; i < node->input_count; i++)
        least += turning(rewrite, node, i, TUTTI_WHOLE) *
                 (tutti__placement_made(node->inputs[i])->kind == TUTTI_PLACEMENT_SHARDED ? 4 : 1);
    for (int w = 0; w < count; w++) {
        double bytes = price(rewrite, node, &ways[w]);
        if (bytes >= 0 && bytes < least) {
            best = w;
            least = bytes;
        }
    }
    *ret_price = least;
    if (best >= 0)
        *ret = ways[best];
    return best >= 0;
}

static const char *combination(int axis)
{
    return axis == TUTTI_PARTIAL_MAX    ? "max"
           : axis == TUTTI_PARTIAL_MIN  ? "min"
           : axis == TUTTI_PARTIAL_PROD ? "prod"
                                        : "sum";
}

static tutti_status copy_cut(tutti_spmd_rewrite *rewrite, tutti_node *node, const tutti_split *way,
                             tutti_rewritten *mark)
{
    tutti_edge inputs[TUTTI_SPLIT_SLOTS];
    for (int i = 0; i < node->input_count; i++) {
        int axis = way->inputs[i];
        TUTTI_TRY(tutti__placement_as(
            rewrite, node->inputs[i],
            axis < 0 ? TUTTI_PLACEMENT_REPLICATED : TUTTI_PLACEMENT_SHARDED, axis, &inputs[i]));
    }
    TUTTI_TRY(tutti__spmd_copy(rewrite, node, inputs, way, &mark->node));
    for (int i = 0; i < node->output_count; i++) {
        int axis = way->outputs[i];
        tutti_placement placement = {.edge = {mark->node, (uint32_t)i}};
        placement.kind = axis >= 0                   ? TUTTI_PLACEMENT_SHARDED
                         : axis == TUTTI_PARTIAL_SUM ? TUTTI_PLACEMENT_PARTIAL
                                                     : TUTTI_PLACEMENT_REPLICATED;
        placement.dim = axis >= 0 ? axis : 0;
        if (axis < TUTTI_PARTIAL_SUM)
            TUTTI_TRY(tutti__placement_reduce(rewrite, node, combination(axis), placement.edge,
                                              &placement.edge));
        tutti__spmd_made(mark, i, placement);
    }
    return TUTTI_OK;
}

/* ---- expansion ---- */

static tutti_status walk_from(tutti_spmd_rewrite *rewrite, size_t first)
{
    for (size_t n = first; n < rewrite->from->nodes.count; n++)
        TUTTI_TRY(tutti__spmd_node(rewrite, rewrite->from->nodes.data[n]));
    return TUTTI_OK;
}

/* By other operators of the job's graph, which are walked at once. */
static tutti_status rewrite_expand(tutti_spmd_rewrite *rewrite, tutti_node *node,
                                   tutti_rewritten *mark)
{
    tutti_sym inputs[TUTTI_SPLIT_SLOTS], outputs[TUTTI_SPLIT_SLOTS] = {{0}};
    size_t first = rewrite->from->nodes.count;
    for (int i = 0; i < node->input_count; i++)
        inputs[i] = tutti__sym(node->inputs[i].node, node->inputs[i].index);
    tutti_expansion expansion = {.graph = rewrite->from,
                                 .name = node->name,
                                 .input_count = node->input_count,
                                 .output_count = node->output_count,
                                 .inputs = inputs,
                                 .attrs = node->attrs,
                                 .attr_count = node->attr_count,
                                 .outputs = outputs};
    TUTTI_TRY(node->op->expand(&expansion));
    TUTTI_TRY(tutti_graph_check(rewrite->from));
    for (size_t n = first; n < rewrite->from->nodes.count; n++) {
        tutti__node_mark_like(rewrite->from->nodes.data[n], node);
        rewrite->from->nodes.data[n]->origin = node->origin;
        rewrite->from->nodes.data[n]->file = node->file;
        rewrite->from->nodes.data[n]->line = node->line;
    }
    TUTTI_TRY(walk_from(rewrite, first));
    for (int i = 0; i < node->output_count; i++) {
        tutti_edge edge = tutti__edge(outputs[i]);
        tutti__spmd_made(mark, i, *tutti__placement_made(edge));
        mark->node = mark->outputs[i].placements[0].edge.node;
    }
    return TUTTI_OK;
}

static bool may_expand(const tutti_node *node)
{
    return node->op->expand && node->input_count <= TUTTI_SPLIT_SLOTS &&
           node->output_count <= TUTTI_SPLIT_SLOTS;
}

/* Of rows whose number depends on data nobody knows whose they are: every replica has all. */
static bool depends_on_data(const tutti_node *node)
{
    for (int i = 0; i < node->input_count; i++)
        if (tutti__type_by_data(tutti__edge_type(node->inputs[i])))
            return true;
    for (int i = 0; i < node->output_count; i++)
        if (tutti__type_by_data(&node->types[i]))
            return true;
    return false;
}

tutti_status tutti__spmd_node(tutti_spmd_rewrite *rewrite, tutti_node *node)
{
    tutti_rewritten *mark;
    tutti_split way;
    double bytes;
    tutti_status status;
    const tutti_rewritten *first =
        node->scratch; /* of the first replica's walk, while this is another */
    TUTTI_TRY(rewrite_begin(rewrite, node, &mark));
    mark->first = first ? (first->first ? first->first : first) : NULL;
    if (tutti__is(node, "parameter"))
        return tutti__spmd_take_parameter(rewrite, node, mark);
    if (tutti__spmd_is_group(node))
        return tutti__spmd_take_group(rewrite, node, mark);
    if (tutti__is(node, "print") && rewrite->replica > 0)
        return tutti__spmd_take_print(rewrite, node, mark);
    if (tutti__spmd_is_queue(node))
        return tutti__spmd_take_queue(rewrite, node, mark);
    TUTTI_TRY(tutti__spmd_check_read(rewrite, node));
    if (rewrite->spmd->central && tutti__spmd_take_central(rewrite, node, mark, &status))
        return status;
    if (tutti__spmd_takes_partial(rewrite, node))
        return tutti__spmd_copy_accumulated(rewrite, node, mark);
    if (tutti__spmd_passes_partial(node))
        return tutti__spmd_copy_partial(rewrite, node, mark);
    if (tutti__spmd_makes_dense(rewrite, node))
        return tutti__spmd_copy_dense(rewrite, node, mark);
    if (!has_input(node, TUTTI_PLACEMENT_SHARDED) || (node->op->flags & TUTTI_OP_TAKES_HANDLE) ||
        depends_on_data(node))
        return tutti__spmd_whole(rewrite, node, mark);
    bool cuts = rewrite_choose(rewrite, node, &way, &bytes);
    if (may_expand(node) && (!cuts || bytes >= 1))
        return rewrite_expand(rewrite, node, mark);
    if (cuts && rewrite->spmd->shards > 0 && tutti__spmd_is_deterministic_sum(node, &way))
        return tutti__spmd_copy_deterministic_sum(rewrite, node, &way, mark);
    return cuts ? copy_cut(rewrite, node, &way, mark) : tutti__spmd_whole(rewrite, node, mark);
}
