/* attention_backward(q, k, v, y, logsumexp, grads...[, mask]): the gradients of q, k and v.
 * With p = exp(min(s - l, 0)), ds = p (dy v^T - sum(dy y) + dl):
 *   dq = scale ds k, dk = scale ds^T q, dv = p^T dy. */
#include "ops/network/attention.h"
#include "ops/network/softmax.h"

static tutti_status attention_backward_infer(tutti_infer *node)
{
    TUTTI_TRY(tutti__attention_backward_infer(node));
    for (int i = 0; i < 3; i++)
        node->outputs[i] = node->inputs[i];
    return TUTTI_OK;
}

static tutti_status attention_backward_gradient(tutti_gradient_call *node)
{
    return tutti__attention_second_gradient(node, node->output_grads[0], node->output_grads[1],
                                            node->output_grads[2], TUTTI_NO_SYM);
}

/* A pair: scores and dq, dk over the features, dp and dv over the values. */
static void attention_backward_cost(const tutti_infer *node, tutti_cost *ret)
{
    double features = (double)node->inputs[0].dims[3], values = (double)node->inputs[2].dims[3];
    tutti__cost_flops(
        node, tutti__attention_pairs(node) * (6 * features + 4 * values + 4 + EXP_FLOPS), ret);
}

/* By batch, by heads; where every query sees every key also by queries, whose parts of dk and dv
 * are partial sums. */
static int attention_backward_split(const tutti_infer *node, int capacity, tutti_split *ret)
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
        if (slots.mask >= 0)
            inputs[slots.mask] = mask;
        int dk = axis == 2 ? TUTTI_PARTIAL_SUM : axis;
        tutti__attention_way(&ways, axis, 8, inputs, SLOTS(axis, dk, dk));
    }
    return ways.count;
}

typedef struct operands {
    const double *q, *k, *y_grad; /* y_grad may be NULL */
    double *by_q, *by_k, *by_v;
} operands;

static void attention_backward_visit(const tutti_attention *a, void *context,
                                     const tutti_pair *pair)
{
    const operands *o = context;
    int64_t query = pair->row * a->features, key = pair->column * a->features;
    double ds = a->scale * pair->ds;
    for (int64_t c = 0; c < a->features; c++) {
        o->by_q[query + c] += ds * o->k[key + c];
        o->by_k[key + c] += ds * o->q[query + c];
    }
    for (int64_t c = 0; c < a->values && o->y_grad != NULL; c++)
        o->by_v[pair->column * a->values + c] += pair->p * o->y_grad[pair->row * a->values + c];
}

static tutti_status attention_backward_run(const tutti_kernel_call *call,
                                           const double *const *inputs, double *const *outputs,
                                           tutti_arena *scratch)
{
    tutti_attention_slots slots =
        tutti__attention_slots(CALL_INT(call, "grads"), call->input_count);
    tutti_attention a = tutti__attention(call, slots.mask);
    operands o = {.q = inputs[ATTENTION_Q],
                  .k = inputs[ATTENTION_K],
                  .y_grad = slots.y_grad < 0 ? NULL : inputs[slots.y_grad],
                  .by_q = outputs[0],
                  .by_k = outputs[1],
                  .by_v = outputs[2]};
    tutti__attention_pairs_each(&a, inputs, &slots, attention_backward_visit, &o);
    return TUTTI_OK;
}

static tutti_status attention_backward_reference(const tutti_kernel_call *call)
{
    return tutti__on_doubles(call, attention_backward_run);
}

static const tutti_attr_spec attrs[] = {
    ATTENTION_ATTRS, {"grads", TUTTI_ATTR_INT, "1"}, {NULL, TUTTI_ATTR_NONE, NULL}};

static const char *const samples[] = {
    "f32[2,3,4,3] f32[2,3,5,3] f32[2,3,5,2] f32[2,3,4,2] f32[2,3,4]{5:6} f32[2,3,4,2]",
    "f32[1,3,5,4] f32[1,3,5,4] f32[1,3,5,4] f32[1,3,5,4] f32[1,3,5]{5:6} f32[1,3,5,4] f32[1,3,5] "
    "| causal=true grads=3",
    "f32[2,2,3,2] f32[2,2,4,2] f32[2,2,4,3] f32[2,2,3,3] f32[2,2,3]{5:6} f32[2,2,3,3] f32[3,4] "
    "| scale=0.7",
    "f32[3,1,3,2] f32[3,1,4,2] f32[3,1,4,1] f32[3,1,3,1] f32[3,1,3]{5:6} f32[3,1,3] f32[3,1,1,4] "
    "| causal=true first_query=1 grads=2",
    NULL,
};

const tutti_op tutti_op_attention_backward = {
    .struct_size = sizeof(tutti_op),
    .name = "attention_backward",
    .version = 1,
    .doc = "attention_backward(q, k, v, y, l, output gradients by the bits of `grads`[, mask]): "
           "dq = scale ds k, dk = scale ds^T q, dv = p^T dy; p = exp(min(s - l, 0)), "
           "ds = p (dy v^T - sum(dy y) + dl)",
    .category = "network",
    .min_inputs = 6,
    .max_inputs = 8,
    .outputs = 3,
    .attrs = attrs,
    .infer = attention_backward_infer,
    .gradient = attention_backward_gradient,
    .cost = attention_backward_cost,
    .split = attention_backward_split,
    .reference = attention_backward_reference,
    .samples = samples,
};
