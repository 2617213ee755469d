/* attention(q, k, v[, mask]): y = softmax(scale q k^T + mask) v; output 1 is the logarithm of the
 * sum of exponentials. Keys are visited tile by tile with a running maximum: no row of scores is
 * ever whole in memory. */
#include "ops/network/attention.h"
#include "ops/network/softmax.h"

extern const tutti_op tutti_op_attention;

enum { MASK = 3, TILE = 64 };

static tutti_status attention_infer(tutti_infer *node)
{
    return tutti__attention_infer(node, node->input_count > MASK ? MASK : -1, node->outputs);
}

static tutti_status attention_gradient(tutti_gradient_call *node)
{
    if (!tutti_sym_ok(node->output_grads[0]) && !tutti_sym_ok(node->output_grads[1]))
        return TUTTI_OK;
    if (node->wanted[0] || node->wanted[1] || node->wanted[2]) {
        tutti_sym back = tutti__attention_backward_build(node, "attention_backward");
        for (int i = 0; i < 3; i++)
            if (node->wanted[i])
                node->input_grads[i] = tutti_sym_output(back, i);
    }
    if (node->input_count > MASK && node->wanted[MASK])
        node->input_grads[MASK] = tutti__attention_backward_build(node, "attention_backward_mask");
    return TUTTI_OK;
}

/* A pair: two products; maximum, difference, exponential, sum. */
static void attention_cost(const tutti_infer *node, tutti_cost *ret)
{
    double features = (double)node->inputs[0].dims[3], values = (double)node->inputs[2].dims[3];
    tutti__cost_flops(
        node, tutti__attention_pairs(node) * (2 * features + 2 * values + 3 + EXP_FLOPS), ret);
}

/* By batch, by heads and by queries. */
static int attention_split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    tutti_ways ways = {0, capacity, ret};
    for (int axis = 0; axis <= 2; axis++) {
        int mask = tutti__mask_axis(node, node->input_count > MASK ? MASK : -1, axis);
        int other = axis == 2 ? TUTTI_WHOLE : axis;
        if (mask != -2)
            tutti__attention_way(&ways, axis, SLOTS(axis, other, other, mask), SLOTS(axis, axis));
    }
    return ways.count;
}

/* One query in the making: y = sum / total, with exponentials taken off `highest`. */
typedef struct running {
    double highest, total, *sum;
} running;

static void add_tile(const tutti_attention *a, running *r, int64_t count, const double *scores,
                     const double *v)
{
    double highest = r->highest;
    for (int64_t j = 0; j < count; j++)
        if (!(scores[j] <= highest))
            highest = scores[j];
    if (highest == -HUGE_VAL)
        return;
    double correction = exp(r->highest - highest);
    r->total *= correction;
    for (int64_t c = 0; c < a->values; c++)
        r->sum[c] *= correction;
    for (int64_t j = 0; j < count; j++) {
        double p = exp(scores[j] - highest);
        r->total += p;
        for (int64_t c = 0; c < a->values && p != 0; c++)
            r->sum[c] += p * v[j * a->values + c];
    }
    r->highest = highest;
}

static void run_query(const tutti_attention *a, const double *const *inputs, double *const *outputs,
                      int64_t row)
{
    int64_t head = row / a->queries, query = row % a->queries, seen = tutti__keys_seen(a, query);
    const double *mask = inputs[MASK];
    if (mask != NULL)
        mask += head / a->heads * a->mask_step[0] + head % a->heads * a->mask_step[1] +
                query * a->mask_step[2];
    running r = {-HUGE_VAL, 0, outputs[0] + row * a->values};
    for (int64_t first = 0; first < seen; first += TILE) {
        int64_t count = seen - first < TILE ? seen - first : TILE;
        double scores[TILE];
        for (int64_t j = 0; j < count; j++) {
            const double *k = inputs[1] + (head * a->keys + first + j) * a->features;
            scores[j] = a->scale * tutti__dot(a->features, inputs[0] + row * a->features, k);
            if (mask != NULL)
                scores[j] += mask[(first + j) * a->mask_step[3]];
        }
        add_tile(a, &r, count, scores, inputs[2] + (head * a->keys + first) * a->values);
    }
    for (int64_t c = 0; c < a->values && r.total != 0; c++)
        r.sum[c] /= r.total;
    outputs[1][row] = r.highest + log(r.total);
}

static tutti_status attention_run(const tutti_kernel_call *call, const double *const *inputs,
                                  double *const *outputs, tutti_arena *scratch)
{
    tutti_attention a = tutti__attention(call, call->input_count > MASK ? MASK : -1);
    for (int64_t row = 0; row < a.batch * a.heads * a.queries; row++)
        run_query(&a, inputs, outputs, row);
    return TUTTI_OK;
}

static tutti_status attention_reference(const tutti_kernel_call *call)
{
    return tutti__on_doubles(call, attention_run);
}

tutti_sym tutti_nn_attention_with(tutti_sym q, tutti_sym k, tutti_sym v,
                                  const tutti_attention_options *given)
{
    TAKE_OPTIONS(tutti_attention_options, options, given);
    tutti_sym inputs[] = {q, k, v, options.mask};
    tutti_attr attrs[] = {TUTTI_INT("causal", options.causal),
                          TUTTI_INT("first_query", options.first_query),
                          TUTTI_FLOAT("scale", options.scale)};
    return tutti__nary(&tutti_op_attention, tutti_sym_ok(options.mask) ? 4 : 3, inputs,
                       (int)TUTTI_COUNT(attrs), attrs);
}

static const tutti_attr_spec attrs[] = {ATTENTION_ATTRS, {NULL, TUTTI_ATTR_NONE, NULL}};

static const char *const samples[] = {
    "f32[2,3,4,3] f32[2,3,5,3] f32[2,3,5,2]",
    "f32[1,3,5,4] f32[1,3,5,4] f32[1,3,5,4] | causal=true",
    "f32[2,2,3,2] f32[2,2,4,2] f32[2,2,4,3] f32[3,4] | scale=0.7",
    "f32[3,1,3,2] f32[3,1,4,2] f32[3,1,4,1] f32[3,1,1,4] | causal=true first_query=1",
    "f32[1,1,2,2] f32[1,1,70,2] f32[1,1,70,2]",
    "f64[1,2,4,3] f64[1,2,3,3] f64[1,2,3,2] f64[2,1,3]",
    NULL,
};

const tutti_op tutti_op_attention = {
    .struct_size = sizeof(tutti_op),
    .name = "attention",
    .version = 1,
    .doc =
        "attention(q, k, v[, mask]): y = softmax(scale q k^T + mask) v, scale = 1 / sqrt(features) "
        "when 0; causal: query i sees keys up to first_query + i; output 1 is "
        "log(sum(exp(scores)))",
    .category = "network",
    .min_inputs = 3,
    .max_inputs = 4,
    .outputs = 2,
    .attrs = attrs,
    .infer = attention_infer,
    .gradient = attention_gradient,
    .cost = attention_cost,
    .split = attention_split,
    .reference = attention_reference,
    .samples = samples,
};
