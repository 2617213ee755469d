/* fused.c: a sub-graph that one kernel runs; made by passes. */
#include <stdlib.h>

#include "ops/control/control.h"
#include "ops/reference.h"

static tutti_graph *body_of(const tutti_attr *attrs, int count)
{
    return tutti__attr_graph(attrs, count, "body");
}

static tutti_status fused_infer(tutti_infer *node)
{
    const tutti_graph *body = body_of(node->attrs, node->attr_count);
    TUTTI_TRY(tutti__need_parameters(node, body, "body", node->input_count, node->inputs));
    if ((int)body->results.count != node->output_count)
        return RULE_FAIL(node, TUTTI_INVALID, "has %d outputs, its body %zu results",
                         node->output_count, body->results.count);
    for (int i = 0; i < node->output_count; i++)
        node->outputs[i] = *tutti__edge_type(body->results.data[i]);
    return TUTTI_OK;
}

static tutti_status wrap(const tutti_view *view, tutti_tensor **ret)
{
    static char nothing;
    return tutti_tensor_wrap(view->dtype, view->rank, view->dims,
                             view->data ? view->data : &nothing, NULL, NULL, ret);
}

/* Parameters of the body, wrapped round the call's inputs. */
static tutti_status take_feeds(const tutti_kernel_call *call, const tutti_graph *body,
                               tutti_reference_feed *feeds, int *ret_count)
{
    for (size_t n = 0; n < body->nodes.count; n++) {
        tutti_node *node = body->nodes.data[n];
        if (node->dead || !tutti__is(node, "parameter"))
            continue;
        int64_t index = tutti__int(node, "index");
        if (index >= call->input_count)
            return RULE_FAIL(call, TUTTI_INTERNAL, "its body wants an argument %lld",
                             (long long)index);
        feeds[*ret_count].edge = (tutti_edge){node, 0};
        TUTTI_TRY(wrap(&call->inputs[index], &feeds[*ret_count].value));
        ++*ret_count;
    }
    return TUTTI_OK;
}

static tutti_status copy_result(const tutti_kernel_call *call, int index, tutti_tensor *value)
{
    tutti_tensor *contiguous;
    TUTTI_TRY(tutti_tensor_contiguous(value, &contiguous));
    tutti_view from = {tutti_tensor_data(contiguous), tutti_tensor_dtype(contiguous),
                       tutti_tensor_rank(contiguous), tutti_tensor_dims(contiguous), NULL};
    tutti_status status = tutti__call_shape(call, index, from.rank, from.dims);
    if (status == TUTTI_OK)
        tutti__view_copy(&call->outputs[index], &from);
    tutti_tensor_release(contiguous);
    return status;
}

static tutti_status fused_run(const tutti_kernel_call *call, const tutti_graph *body,
                              tutti_reference_feed *feeds, tutti_tensor **values)
{
    int feed_count = 0;
    tutti_status status = take_feeds(call, body, feeds, &feed_count);
    if (status == TUTTI_OK)
        status = tutti__reference_run(body, feed_count, feeds, call->output_count,
                                      body->results.data, values);
    for (int i = 0; status == TUTTI_OK && i < call->output_count; i++)
        status = copy_result(call, i, values[i]);
    for (int i = 0; i < call->output_count; i++)
        tutti_tensor_release(values[i]);
    for (int i = 0; i < feed_count; i++)
        tutti_tensor_release(feeds[i].value);
    return status;
}

static tutti_status fused_reference(const tutti_kernel_call *call)
{
    const tutti_graph *body = body_of(call->attrs, call->attr_count);
    tutti_reference_feed *feeds = calloc(body->nodes.count + 1, sizeof *feeds);
    tutti_tensor **values = calloc((size_t)call->output_count + 1, sizeof *values);
    tutti_status status = TUTTI_NO_MEMORY;
    if (feeds && values)
        status = fused_run(call, body, feeds, values);
    else
        tutti_fail(status, "no memory for a fused body");
    free(feeds);
    free(values);
    return status;
}

/* The sum of what its nodes cost, with the bytes of inputs and outputs only. */
static void fused_cost(const tutti_infer *node, tutti_cost *ret)
{
    const tutti_graph *body = body_of(node->attrs, node->attr_count);
    tutti__cost_move(node, ret);
    for (size_t n = 0; n < body->nodes.count; n++) {
        const tutti_node *part = body->nodes.data[n];
        tutti_type types[16];
        tutti_cost one = {0};
        if (part->dead || !part->op->cost || part->input_count > 16)
            continue;
        for (int i = 0; i < part->input_count; i++)
            types[i] = *tutti__edge_type(part->inputs[i]);
        tutti_infer rule = {.op = part->op,
                            .name = part->name,
                            .input_count = part->input_count,
                            .output_count = part->output_count,
                            .inputs = types,
                            .attrs = part->attrs,
                            .attr_count = part->attr_count,
                            .outputs = part->types};
        part->op->cost(&rule, &one);
        ret->flops += one.flops;
    }
}

static const tutti_attr_spec attrs[] = {
    {"body", TUTTI_ATTR_GRAPH, NULL},
    {"pattern", TUTTI_ATTR_STRING, ""}, /* what kernels claim it by: "elementwise", … */
    {0},
};

const tutti_op tutti_op_fused = {
    .struct_size = sizeof(tutti_op),
    .name = "fused",
    .version = 1,
    .doc = "fused(xs...): ys = body(xs), in one kernel",
    .category = "control",
    .min_inputs = 0,
    .max_inputs = -1,
    .outputs = -1,
    .attrs = attrs,
    .infer = fused_infer,
    .cost = fused_cost,
    .reference = fused_reference,
};

/* The same of a body that may fail. */
const tutti_op tutti_op_fused_checked = {
    .struct_size = sizeof(tutti_op),
    .name = "fused_checked",
    .version = 1,
    .doc =
        "fused_checked(xs...): ys = body(xs), in one kernel, where the body checks its arguments",
    .category = "control",
    .min_inputs = 0,
    .max_inputs = -1,
    .outputs = -1,
    .flags = TUTTI_OP_FALLIBLE,
    .attrs = attrs,
    .infer = fused_infer,
    .cost = fused_cost,
    .reference = fused_reference,
};
