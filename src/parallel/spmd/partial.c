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
        return true;
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

static tutti_status add_scaled(tutti_spmd_rewrite *rewrite, const tutti_node *node,
                               tutti_edge value, double factor, tutti_edge *ret)
{
    tutti_edge both[] = {value, {0}};
    tutti_node *made;
    tutti_attr attrs[] = {TUTTI_INT("dtype", tutti__edge_type(value)->dtype),
                          TUTTI_FLOAT("value", factor)};
    TUTTI_TRY(tutti__spmd_add(rewrite, node, "fill", 0, NULL, 2, attrs, &both[1].node));
    TUTTI_TRY(tutti__spmd_add(rewrite, node, "mul", 2, both, 0, NULL, &made));
    *ret = (tutti_edge){made, 0};
    return TUTTI_OK;
}

/* What a rank writes, of input 1. Of a sum that is whole the first one has it. */
static tutti_status written(tutti_spmd_rewrite *rewrite, tutti_node *node, tutti_aggregation how,
                            tutti_edge *ret)
{
    int batch = rewrite->spmd->layout->batch;
    tutti_partition_spec spec = {0};
    bool partial = tutti__spmd_accumulates_partial(rewrite->spmd, node);
    if (!partial && how != TUTTI_AGGREGATE_SUM)
        return tutti__reshard_whole(rewrite, node->inputs[1], ret);
    spec.along[batch].kind = TUTTI_PARTIAL;
    TUTTI_TRY(tutti__reshard(rewrite, node->inputs[1], &spec, ret));
    return how == TUTTI_AGGREGATE_SUM
               ? TUTTI_OK
               : add_scaled(rewrite, node, *ret, tutti__spmd_batch_ranks(rewrite->spmd), ret);
}

/* What a rank brings to a value that is read. */
static tutti_status brought(tutti_spmd_rewrite *rewrite, const tutti_node *node,
                            tutti_aggregation how, tutti_edge own, tutti_edge *ret)
{
    *ret = own;
    if (how == TUTTI_AGGREGATE_MEAN)
        return add_scaled(rewrite, node, own, 1.0 / tutti__spmd_batch_ranks(rewrite->spmd), ret);
    if (how != TUTTI_AGGREGATE_FIRST)
        return TUTTI_OK;
    return tutti__reshard_first_only(rewrite, node, rewrite->spmd->layout->batch, own, ret);
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
