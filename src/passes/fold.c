/* fold.c: nodes whose inputs are all constants are computed once, here, by their reference kernels.
 */
#include "ops/reference.h"
#include "passes/rewrite.h"

/* A constant takes memory as long as its program lives. Beyond FREE_BYTES a result must not be much
 * larger than what it is computed from (a broadcast is cheaper to repeat than to keep). */
enum { MAX_BYTES = 1 << 20, FREE_BYTES = 4096, MAX_GROWTH = 4, MAX_INPUTS = 16 };

static bool is_foldable(const tutti_node *node)
{
    const uint32_t never = TUTTI_OP_STATEFUL | TUTTI_OP_UPDATES | TUTTI_OP_BLOCKING |
                           TUTTI_OP_DYNAMIC | TUTTI_OP_RANDOM | TUTTI_OP_COLLECTIVE |
                           TUTTI_OP_CONTROL | TUTTI_OP_HANDLE | TUTTI_OP_TAKES_HANDLE;
    int64_t in = 0, out = 0;
    if ((node->op->flags & never) || node->output_count < 1 || node->input_count > MAX_INPUTS ||
        tutti__is(node, "constant"))
        return false;
    for (int i = 0; i < node->input_count; i++) {
        if (tutti__constant_of(node->inputs[i]) == NULL)
            return false;
        in += tutti__known_bytes(tutti__edge_type(node->inputs[i]));
    }
    for (int i = 0; i < node->output_count; i++) {
        if (!tutti_type_is_static(&node->types[i]))
            return false;
        out += tutti__known_bytes(&node->types[i]);
    }
    return out <= FREE_BYTES || (out <= MAX_BYTES && out / MAX_GROWTH <= in);
}

static tutti_status replace_by_constants(tutti_rewrite *rewrite, tutti_node *node,
                                         tutti_tensor *const *values)
{
    for (int i = 0; i < node->output_count; i++) {
        tutti_edge constant;
        TUTTI_TRY(tutti__rewrite_constant(rewrite, node, values[i], &constant));
        TUTTI_TRY(tutti__rewrite_replace(rewrite, node, (uint32_t)i, constant));
    }
    return TUTTI_OK;
}

/* A node that fails is left: it will fail, with its own message, when it runs. */
static tutti_status compute(tutti_rewrite *rewrite, tutti_node *node)
{
    tutti_tensor *inputs[MAX_INPUTS], *few[16], **outputs = few;
    if (node->output_count > 16)
        return TUTTI_OK;
    for (int i = 0; i < node->input_count; i++)
        inputs[i] = tutti__constant_of(node->inputs[i]);
    if (tutti__reference_node(node, inputs, outputs) != TUTTI_OK)
        return TUTTI_OK;
    tutti_status status = replace_by_constants(rewrite, node, outputs);
    for (int i = 0; i < node->output_count; i++)
        tutti_tensor_release(outputs[i]);
    return status;
}

/* Elements along the named axes, along all without names. */
static int64_t size_along(const tutti_node *node, const tutti_type *type)
{
    const int64_t *axes;
    int count = tutti_attr_ints(node->attrs, node->attr_count, "axes", &axes);
    int64_t size = 1;
    for (int i = 0; i < count; i++)
        size *= type->dims[axes[i] < 0 ? axes[i] + type->rank : axes[i]];
    return count > 0 ? size : tutti_type_count(type);
}

/* Shapes are known, whatever the values are. */
static tutti_status know_shape(tutti_rewrite *rewrite, tutti_node *node)
{
    const tutti_type *type = tutti__edge_type(node->inputs[0]), *own = &node->types[0];
    tutti_tensor *value;
    if (!tutti_type_is_static(type) || tutti__rewrite_waits(node->inputs[0].node))
        return TUTTI_OK;
    TUTTI_TRY(tutti_tensor_create(own->dtype, own->rank, own->dims, &value));
    bool shape = tutti__is(node, "shape");
    for (int i = 0; shape && i < type->rank; i++)
        tutti_tensor_set_int(value, i, type->dims[i]);
    if (!shape)
        tutti_tensor_set_int(value, 0, size_along(node, type));
    tutti_status status = replace_by_constants(rewrite, node, &value);
    tutti_tensor_release(value);
    return status;
}

static tutti_status rule(tutti_rewrite *rewrite, tutti_node *node, tutti_edge *ret)
{
    TUTTI_UNUSED(ret);
    if (tutti__is(node, "shape") || tutti__is(node, "size"))
        return know_shape(rewrite, node);
    return is_foldable(node) ? compute(rewrite, node) : TUTTI_OK;
}

static tutti_status fold_run(tutti_graph *graph, const tutti_pass_context *context,
                             int *ret_changes)
{
    return tutti__rewrite_nodes(graph, context, rule, ret_changes);
}

const tutti_pass tutti_pass_fold = {
    .name = "fold",
    .doc = "nodes whose inputs are all constants become constants",
    .stage = TUTTI_PASS_JOB,
    .order = 10,
    .run = fold_run,
};
