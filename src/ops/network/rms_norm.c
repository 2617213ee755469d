/* rms_norm(x, scale): y = x / sqrt(mean(x^2) + epsilon) * scale, row by row along the last axis. */
#include "ops/network/norm.h"

extern const tutti_op tutti_op_rms_norm;

static tutti_status rms_norm_infer(tutti_infer *node)
{
    tutti_type channels;
    TUTTI_TRY(tutti__norm_infer(node, 1, 1, &channels));
    return tutti_infer_same(node);
}

static tutti_status rms_norm_gradient(tutti_gradient_call *node)
{
    if (!tutti_sym_ok(node->output_grads[0]))
        return TUTTI_OK;
    tutti_sym inputs[] = {node->inputs[0], node->inputs[1], node->output_grads[0]};
    tutti_attr attrs[] = {SAME_ATTR(node, "epsilon")};
    tutti_sym back = tutti_apply_op(node->graph, "rms_norm_backward", 3, inputs, 1, attrs);
    for (int i = 0; i < 2; i++)
        if (node->wanted[i])
            node->input_grads[i] = tutti_sym_output(back, i);
    return TUTTI_OK;
}

/* An element: 2 for the mean of squares, 2 to normalise and scale. */
static void rms_norm_cost(const tutti_infer *node, tutti_cost *ret)
{
    tutti__cost_flops(node, 4 * tutti__elements(&node->inputs[0]), ret);
}

static int rms_norm_split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    return tutti__split_rows(node, 1u << 0, 1u << 0, capacity, ret);
}

static tutti_status rms_norm_run(const tutti_kernel_call *call, const double *const *inputs,
                                 double *const *outputs, tutti_arena *scratch)
{
    int64_t rows, columns;
    double epsilon = CALL_FLOAT(call, "epsilon");
    tutti__norm_matrix(&call->inputs[0], &rows, &columns);
    for (int64_t row = 0; row < rows; row++) {
        const double *x = inputs[0] + row * columns;
        double r = 1 / sqrt(tutti__dot(columns, x, x) / (double)columns + epsilon);
        for (int64_t c = 0; c < columns; c++)
            outputs[0][row * columns + c] = x[c] * r * inputs[1][c];
    }
    return TUTTI_OK;
}

static tutti_status rms_norm_reference(const tutti_kernel_call *call)
{
    return tutti__on_doubles(call, rms_norm_run);
}

tutti_sym tutti_nn_rms_norm_with(tutti_sym x, tutti_sym scale, const tutti_normalize_options *given)
{
    tutti_sym inputs[] = {x, scale};
    return TUTTI_NARY(&tutti_op_rms_norm, inputs,
                      TUTTI_FLOAT("epsilon", tutti__epsilon(given, 1e-6)));
}

static const tutti_attr_spec attrs[] = {{"epsilon", TUTTI_ATTR_FLOAT, "1e-6"},
                                        {NULL, TUTTI_ATTR_NONE, NULL}};

static const char *const samples[] = {
    "f32[3,5]{-2:2} f32[5]",
    "f32[2,3,4]{-2:2} f32[4] | epsilon=0.1",
    "f32[7] f32[7]",
    "f64[5,6]{-2:2} f64[6]",
    NULL,
};

const tutti_op tutti_op_rms_norm = {
    .struct_size = sizeof(tutti_op),
    .name = "rms_norm",
    .version = 1,
    .doc = "rms_norm(x, scale): y = x / sqrt(mean(x^2) + epsilon) * scale along the last axis",
    .category = "network",
    .min_inputs = 2,
    .max_inputs = 2,
    .outputs = 1,
    .attrs = attrs,
    .infer = rms_norm_infer,
    .gradient = rms_norm_gradient,
    .cost = rms_norm_cost,
    .split = rms_norm_split,
    .reference = rms_norm_reference,
    .samples = samples,
};
