/* layer_norm(x, scale, offset): y = (x - mean) / sqrt(variance + epsilon) * scale + offset, row by
 * row along the last axis. */
#include "ops/network/norm.h"

extern const tutti_op tutti_op_layer_norm;

static tutti_status layer_norm_infer(tutti_infer *node)
{
    tutti_type channels;
    TUTTI_TRY(tutti__norm_infer(node, 1, 2, &channels));
    return tutti_infer_same(node);
}

static tutti_status layer_norm_gradient(tutti_gradient_call *node)
{
    if (!tutti_sym_ok(node->output_grads[0]))
        return TUTTI_OK;
    tutti_sym inputs[] = {node->inputs[0], node->inputs[1], node->output_grads[0]};
    tutti_attr attrs[] = {SAME_ATTR(node, "epsilon")};
    tutti_sym back = tutti_apply_op(node->graph, "layer_norm_backward", 3, inputs, 1, attrs);
    for (int i = 0; i < 3; i++)
        if (node->wanted[i])
            node->input_grads[i] = tutti_sym_output(back, i);
    return TUTTI_OK;
}

/* An element: 1 for the mean, 3 for the variance, 1 to normalise, 2 to scale and shift. */
static void layer_norm_cost(const tutti_infer *node, tutti_cost *ret)
{
    tutti__cost_flops(node, 7 * tutti__elements(&node->inputs[0]), ret);
}

static int layer_norm_split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    return tutti__split_rows(node, 1u << 0, 1u << 0, capacity, ret);
}

static tutti_status layer_norm_run(const tutti_kernel_call *call, const double *const *inputs,
                                   double *const *outputs, tutti_arena *scratch)
{
    int64_t rows, columns;
    double epsilon = CALL_FLOAT(call, "epsilon");
    tutti__norm_matrix(&call->inputs[0], &rows, &columns);
    for (int64_t row = 0; row < rows; row++) {
        const double *x = inputs[0] + row * columns;
        double *y = outputs[0] + row * columns, mean, variance;
        tutti__row_moments(columns, x, &mean, &variance);
        double r = 1 / sqrt(variance + epsilon);
        for (int64_t c = 0; c < columns; c++)
            y[c] = (x[c] - mean) * r * inputs[1][c] + inputs[2][c];
    }
    return TUTTI_OK;
}

static tutti_status layer_norm_reference(const tutti_kernel_call *call)
{
    return tutti__on_doubles(call, layer_norm_run);
}

tutti_sym tutti_nn_layer_norm_with(tutti_sym x, tutti_sym scale, tutti_sym offset,
                                   const tutti_normalize_options *given)
{
    tutti_sym inputs[] = {x, scale, offset};
    return TUTTI_NARY(&tutti_op_layer_norm, inputs,
                      TUTTI_FLOAT("epsilon", tutti__epsilon(given, 1e-3)));
}

static const tutti_attr_spec attrs[] = {{"epsilon", TUTTI_ATTR_FLOAT, "0.001"},
                                        {NULL, TUTTI_ATTR_NONE, NULL}};

static const char *const samples[] = {
    "f32[3,5]{-2:2} f32[5] f32[5]",
    "f32[2,3,4]{-2:2} f32[4] f32[4] | epsilon=0.1",
    "f32[7] f32[7] f32[7]",
    "f64[5,6]{-2:2} f64[6] f64[6]",
    NULL,
};

const tutti_op tutti_op_layer_norm = {
    .struct_size = sizeof(tutti_op),
    .name = "layer_norm",
    .version = 1,
    .doc =
        "layer_norm(x, scale, offset): y = (x - mean) / sqrt(variance + epsilon) * scale + offset "
        "along the last axis",
    .category = "network",
    .min_inputs = 3,
    .max_inputs = 3,
    .outputs = 1,
    .attrs = attrs,
    .infer = layer_norm_infer,
    .gradient = layer_norm_gradient,
    .cost = layer_norm_cost,
    .split = layer_norm_split,
    .reference = layer_norm_reference,
    .samples = samples,
};
