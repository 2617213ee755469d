/* attention_backward_mask(q, k, v, y, logsumexp, grads..., mask): the gradient of attention's mask,
 * which is that of the scores, summed over the axes along which the mask was repeated. */
#include "ops/network/attention.h"
#include "ops/network/softmax.h"

static tutti_status attention_backward_mask_infer(tutti_infer *node)
{
    tutti_attention_slots slots =
        tutti__attention_slots(RULE_INT(node, "grads"), node->input_count);
    if (slots.mask < 0)
        return RULE_FAIL(node, TUTTI_INVALID, "has no mask among its %d inputs", node->input_count);
    TUTTI_TRY(tutti__attention_backward_infer(node));
    node->outputs[0] = node->inputs[slots.mask];
    return TUTTI_OK;
}

static tutti_status attention_backward_mask_gradient(tutti_gradient_call *node)
{
    return tutti__attention_second_gradient(node, TUTTI_NO_SYM, TUTTI_NO_SYM, TUTTI_NO_SYM,
                                            node->output_grads[0]);
}

/* A pair: scores over the features, dp over the values. */
static void attention_backward_mask_cost(const tutti_infer *node, tutti_cost *ret)
{
    double features = (double)node->inputs[0].dims[3], values = (double)node->inputs[2].dims[3];
    tutti__cost_flops(
        node, tutti__attention_pairs(node) * (2 * features + 2 * values + 5 + EXP_FLOPS), ret);
}

/* Along an axis where the mask is repeated its gradient is a partial sum. */
static int attention_backward_mask_split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    tutti_ways ways = {0, capacity, ret};
    tutti_attention_slots slots =
        tutti__attention_slots(RULE_INT(node, "grads"), node->input_count);
    for (int axis = 0; axis <= 2; axis++) {
        int mask = tutti__mask_axis(node, slots.mask, axis);
        int by_key = axis == 2 ? TUTTI_WHOLE : axis;
        int inputs[] = {axis, by_key, by_key, axis, axis, axis, axis, axis};
        if (mask == -2)
            continue;
        inputs[slots.mask] = mask;
        tutti__attention_way(&ways, axis, 8, inputs,
                             SLOTS(mask == TUTTI_WHOLE ? TUTTI_PARTIAL_SUM : mask));
    }
    return ways.count;
}

static void attention_backward_mask_visit(const tutti_attention *a, void *context,
                                          const tutti_pair *pair)
{
    double *by_mask = context;
    by_mask[pair->mask] += pair->ds;
}

static tutti_status attention_backward_mask_run(const tutti_kernel_call *call,
                                                const double *const *inputs, double *const *outputs,
                                                tutti_arena *scratch)
{
    tutti_attention_slots slots =
        tutti__attention_slots(CALL_INT(call, "grads"), call->input_count);
    tutti_attention a = tutti__attention(call, slots.mask);
    tutti__attention_pairs_each(&a, inputs, &slots, attention_backward_mask_visit, outputs[0]);
    return TUTTI_OK;
}

static tutti_status attention_backward_mask_reference(const tutti_kernel_call *call)
{
    return tutti__on_doubles(call, attention_backward_mask_run);
}

static const tutti_attr_spec attrs[] = {
    ATTENTION_ATTRS, {"grads", TUTTI_ATTR_INT, "1"}, {NULL, TUTTI_ATTR_NONE, NULL}};

static const char *const samples[] = {
    "f32[2,2,3,2] f32[2,2,4,2] f32[2,2,4,3] f32[2,2,3,3] f32[2,2,3]{5:6} f32[2,2,3,3] f32[3,4] "
    "| scale=0.7",
    "f32[3,1,3,2] f32[3,1,4,2] f32[3,1,4,1] f32[3,1,3,1] f32[3,1,3]{5:6} f32[3,1,3,1] f32[3,1,3] "
    "f32[3,1,1,4] | causal=true first_query=1 grads=3",
    "f32[2,3,2,2] f32[2,3,3,2] f32[2,3,3,1] f32[2,3,2,1] f32[2,3,2]{5:6} f32[2,3,2,1] f32[2,3,2,3]",
    NULL,
};

const tutti_op tutti_op_attention_backward_mask = {
    .struct_size = sizeof(tutti_op),
    .name = "attention_backward_mask",
    .version = 1,
    .doc =
        "attention_backward_mask(q, k, v, y, l, output gradients by the bits of `grads`, mask): "
        "dmask = p (dy v^T - sum(dy y) + dl), summed where the mask was repeated; p = exp(min(s - l, 0))",
    .category = "network",
    .min_inputs = 7,
    .max_inputs = 8,
    .outputs = 1,
    .attrs = attrs,
    .infer = attention_backward_mask_infer,
    .gradient = attention_backward_mask_gradient,
    .cost = attention_backward_mask_cost,
    .split = attention_backward_mask_split,
    .reference = attention_backward_mask_reference,
    .samples = samples,
};
