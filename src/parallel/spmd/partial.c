/* partial.c: values that are sums over the replicas: through linear operators, and in variables. */
#include <stdlib.h>

#include "parallel/spmd/rewrite.h"
#include "tutti/ops_state.h"

static int kind_of(tutti_edge edge, int axes)
{
    return tutti__spec_of(edge)->along[axes].kind;
}

/* A partial value plus a whole one of its shape. */
int tutti__spmd_whole_summand(const tutti_node *node, int axes)
{
    if (!tutti__is(node, "add") || node->input_count != 2 ||
        !tutti_type_equal(tutti__edge_type(node->inputs[0]), tutti__edge_type(node->inputs[1])))
        return -1;
    int a = kind_of(node->inputs[0], axes), b = kind_of(node->inputs[1], axes);
    return a == TUTTI_PARTIAL && b == TUTTI_REPLICATED   ? 1
           : a == TUTTI_REPLICATED && b == TUTTI_PARTIAL ? 0
                                                         : -1;
}

/* Of one addition ranks leave out one summand only. */
static bool leaves_other(const tutti_node *node, int axes)
{
    int whole = tutti__spmd_whole_summand(node, axes);
    for (int a = 0; whole >= 0 && a < axes; a++)
        if (tutti__rewritten(node)->passes[a] && tutti__spmd_whole_summand(node, a) == 1 - whole)
            return true;
    return false;
}

/* Sums of parts go through linear operators as they are, only to types that hold as much; but for
 * those that are known whole as well, of which none is to be added up again. */
bool tutti__spmd_passes_partial(const tutti_node *node, int axes)
{
    int partial = 0, numbers = 0, known = 0;
    bool first = false;
    for (int i = 0; i < node->input_count; i++) {
        tutti_edge input = node->inputs[i];
        int kind = kind_of(input, axes);
        const tutti_type *type = tutti__edge_type(input);
        if (kind == TUTTI_SPLIT || !tutti_dtype_is_float(type->dtype) ||
            !tutti_dtype_is_float(node->types[0].dtype) ||
            tutti_dtype_size(node->types[0].dtype) < tutti_dtype_size(type->dtype))
            return false;
        numbers++;
        partial += kind == TUTTI_PARTIAL;
        known +=
            kind == TUTTI_PARTIAL && (tutti__rewritten(input.node)->known[input.index] >> axes & 1);
        first = first || (i == 0 && kind == TUTTI_PARTIAL);
    }
    if (node->output_count != 1 || partial == known)
        return false;
    if (tutti__spmd_whole_summand(node, axes) >= 0)
        return !leaves_other(node, axes);
    return ((node->op->flags & TUTTI_OP_LINEAR) && partial == numbers) ||
           ((node->op->flags & TUTTI_OP_LINEAR_EACH) && partial == 1) ||
           ((node->op->flags & TUTTI_OP_LINEAR_FIRST) && partial == 1 && first);
}

/* ---- variables of which every replica has a value of its own ---- */

/* What a read puts together; 0: all replicas have the same value. */
static tutti_aggregation apart(const tutti_spmd *spmd, const tutti_node *node)
{
    if (spmd->shards > 0 || spmd->central || spmd->layout->batch < 0 ||
        !tutti__is(node, "variable") || !tutti__int(node, "on_read"))
        return TUTTI_AGGREGATE_AUTO;
    return (tutti_aggregation)tutti__int(node, "aggregation");
}

/* Reads and updates of such variables. False: the node is none. */
bool tutti__spmd_takes_partial(const tutti_spmd *spmd, const tutti_node *node)
{
    return (node->op->flags & TUTTI_OP_TAKES_HANDLE) && node->input_count > 0 &&
           apart(spmd, node->inputs[0].node) > TUTTI_AGGREGATE_NONE;
}

bool tutti__spmd_accumulates_partial(const tutti_spmd *spmd, const tutti_node *node)
{
    return node->input_count == 2 &&
           kind_of(node->inputs[1], spmd->layout->batch) == TUTTI_PARTIAL &&
           apart(spmd, node->inputs[0].node) != TUTTI_AGGREGATE_FIRST;
}

tutti_status tutti__spmd_check_variable(const tutti_node *variable, int replicas)
{
    if (replicas == 1 || !tutti__is(variable, "variable") || !tutti__int(variable, "on_read") ||
        tutti__int(variable, "aggregation") != TUTTI_AGGREGATE_NONE)
        return TUTTI_OK;
    return tutti_fail(TUTTI_INVALID,
                      "variable '%s' has a value of each replica's own, and its aggregation is "
                      "none: it cannot be read for all %d of them; look at the copies "
                      "(tutti_mirrored_get, tutti_replica_read), or make it with .aggregation = "
                      "TUTTI_AGGREGATE_SUM, _MEAN or _FIRST",
                      variable->name, replicas);
}

tutti_status tutti__spmd_check_read(const tutti_spmd *spmd, const tutti_node *node)
{
    return tutti__is(node, "read")
               ? tutti__spmd_check_variable(node->inputs[0].node, tutti__spmd_batch_ranks(spmd))
               : TUTTI_OK;
}

void tutti__spmd_keep_whole(const tutti_spmd_rewrite *rewrite, const tutti_node *node,
                            tutti_node *copy)
{
    if (tutti__is(node, "variable") && tutti__int(node, "partial") != 0 &&
        apart(rewrite->spmd, node) == TUTTI_AGGREGATE_AUTO)
        tutti__spmd_attr(copy, "partial")->value.i = 0;
}

/* Also where it is not used: all replicas make the same nodes, so that names are the same. */
static tutti_status add_fill(tutti_spmd_rewrite *rewrite, const tutti_node *node,
                             const tutti_type *type, double value, tutti_edge *ret)
{
    tutti_node *made;
    tutti_attr attrs[] = {TUTTI_INT("dtype", type->dtype),
                          TUTTI_INTS("dims", type->rank, type->dims), TUTTI_FLOAT("value", value)};
    TUTTI_TRY(tutti__spmd_add(rewrite, node, "fill", 0, NULL, 3, attrs, &made));
    *ret = (tutti_edge){made, 0};
    return TUTTI_OK;
}

static tutti_status add_scaled(tutti_spmd_rewrite *rewrite, const tutti_node *node,
                               tutti_edge value, double factor, tutti_edge *ret)
{
    tutti_type scalar = tutti_type_make(tutti__edge_type(value)->dtype, 0, NULL);
    tutti_edge both[] = {value, {0}};
    tutti_node *made;
    TUTTI_TRY(add_fill(rewrite, node, &scalar, factor, &both[1]));
    TUTTI_TRY(tutti__spmd_add(rewrite, node, "mul", 2, both, 0, NULL, &made));
    *ret = (tutti_edge){made, 0};
    return TUTTI_OK;
}

/* What the replica writes, of input 1. */
static tutti_status written(tutti_spmd_rewrite *rewrite, tutti_node *node, tutti_aggregation how,
                            tutti_edge *ret)
{
    int batch = rewrite->spmd->layout->batch;
    tutti_partition_spec spec = {0};
    if (tutti__spmd_accumulates_partial(rewrite->spmd, node)) {
        spec.along[batch].kind = TUTTI_PARTIAL;
        TUTTI_TRY(tutti__reshard(rewrite, node->inputs[1], &spec, ret));
        return how == TUTTI_AGGREGATE_SUM
                   ? TUTTI_OK
                   : add_scaled(rewrite, node, *ret, tutti__spmd_batch_ranks(rewrite->spmd), ret);
    }
    TUTTI_TRY(tutti__reshard_whole(rewrite, node->inputs[1], ret));
    if (how != TUTTI_AGGREGATE_SUM)
        return TUTTI_OK;
    /* Of a sum the first one has it; what the others made is kept: they may have met for it. */
    tutti_edge zeros;
    TUTTI_TRY(add_fill(rewrite, node, tutti__edge_type(node->inputs[1]), 0, &zeros));
    if (rewrite->rank[batch] == 0)
        return TUTTI_OK;
    if (!TUTTI_VEC_PUSH(&rewrite->to->targets, ret->node))
        return tutti__spmd_no_memory();
    *ret = zeros;
    return TUTTI_OK;
}

/* What the replica brings to a value that is read. */
static tutti_status brought(tutti_spmd_rewrite *rewrite, const tutti_node *node,
                            tutti_aggregation how, tutti_edge own, tutti_edge *ret)
{
    *ret = own;
    if (how == TUTTI_AGGREGATE_MEAN)
        return add_scaled(rewrite, node, own, 1.0 / tutti__spmd_batch_ranks(rewrite->spmd), ret);
    if (how != TUTTI_AGGREGATE_FIRST)
        return TUTTI_OK;
    tutti_edge zeros;
    TUTTI_TRY(add_fill(rewrite, node, tutti__edge_type(own), 0, &zeros));
    *ret = rewrite->rank[rewrite->spmd->layout->batch] > 0 ? zeros : own;
    return TUTTI_OK;
}

tutti_status tutti__spmd_copy_accumulated(tutti_spmd_rewrite *rewrite, tutti_node *node,
                                          tutti_rewritten *mark)
{
    tutti_edge inputs[TUTTI_SPLIT_SLOTS], out;
    tutti_aggregation how = apart(rewrite->spmd, node->inputs[0].node);
    if (node->input_count > 2)
        return tutti_fail(TUTTI_UNSUPPORTED,
                          "%s '%s' updates a variable of which every replica has a value of its "
                          "own; that can assign, assign_add and assign_sub",
                          node->op->name, node->name);
    inputs[0] = tutti__placement_made(node->inputs[0]);
    if (node->input_count == 2)
        TUTTI_TRY(written(rewrite, node, how, &inputs[1]));
    TUTTI_TRY(tutti__spmd_copy(rewrite, node, inputs, NULL, &mark->node));
    for (int i = 0; i < node->output_count; i++) {
        TUTTI_TRY(brought(rewrite, node, how, (tutti_edge){mark->node, (uint32_t)i}, &out));
        tutti__spmd_made(mark, i, &mark->specs[i], out);
    }
    return TUTTI_OK;
}

enum { SEEN = 1, MEETING = 2 };

/* The collectives that a value comes from, the nearest ones: marked by id. Their number. */
static int meetings_of(const tutti_node *node, uint8_t *seen)
{
    int count = 0;
    if (seen[node->id])
        return 0;
    seen[node->id] = SEEN;
    if (node->op->flags & TUTTI_OP_COLLECTIVE) {
        seen[node->id] = MEETING;
        return 1;
    }
    for (int i = 0; i < node->input_count; i++)
        count += meetings_of(node->inputs[i].node, seen);
    /* What was left out along another axis waits by control edges. */
    const tutti_claim *claim = node->scratch;
    for (int i = 0; claim && !claim->copy && i < node->control_count; i++)
        count += meetings_of(node->controls[i], seen);
    return count;
}

/* Whether the shape of something that was marked depends on data. */
static bool by_data(const tutti_graph *graph, size_t nodes, const uint8_t *seen)
{
    for (size_t n = 0; n < nodes; n++)
        for (int i = 0; seen[n] && i < graph->nodes.data[n]->output_count; i++)
            if (tutti__type_by_data(&graph->nodes.data[n]->types[i]))
                return true;
    return false;
}

/* The partial value alone, on a replica that does not add the whole one, under a node of its own in
 * the place of the sum: buckets follow the order in which nodes were made, on all replicas in the
 * same way. Where the replicas meet for the whole one, this one meets too, whenever the sum is
 * wanted: it waits for that. Where shapes on the way to the whole one depend on data, it waits for
 * the whole one itself: programs are cut there, those of all processes alike. */
tutti_status tutti__spmd_leave_whole(tutti_spmd_rewrite *rewrite, const tutti_node *node,
                                     tutti_edge own, tutti_edge whole, tutti_node **ret)
{
    size_t nodes = rewrite->to->nodes.count;
    uint8_t *seen = calloc(nodes + 1, 1);
    if (!seen)
        return tutti__spmd_no_memory();
    int count = meetings_of(whole.node, seen), at = 0;
    if (by_data(rewrite->to, nodes, seen) && seen[whole.node->id] != MEETING) {
        seen[whole.node->id] = MEETING;
        count++;
    }
    tutti_node *wait = NULL, **controls = NULL;
    tutti_status status = tutti__spmd_add(rewrite, node, "identity", 1, &own, 0, NULL, &wait);
    if (status == TUTTI_OK && count > 0 &&
        !(controls = tutti__arena_array(&rewrite->to->arena, (size_t)count, sizeof *controls)))
        status = tutti__spmd_no_memory();
    for (size_t n = 0; controls && n < nodes; n++)
        if (seen[n] == MEETING)
            controls[at++] = rewrite->to->nodes.data[n];
    free(seen);
    TUTTI_TRY(status);
    if (controls) {
        wait->controls = controls;
        wait->control_count = count;
    }
    *ret = wait;
    return TUTTI_OK;
}
