/* layer_norm_backward(x, scale, grad): the gradients of layer_norm's three inputs. With
 * xhat = (x - mean) r, r = 1 / sqrt(variance + epsilon), h = scale * grad:
 * dx = r (h - mean(h) - xhat mean(h xhat)), dscale = sum(grad xhat), doffset = sum(grad). */
#include "ops/network/norm.h"

static tutti_status layer_norm_backward_infer(tutti_infer *node)
{
    TUTTI_TRY(tutti__norm_infer(node, 1, 1, &node->outputs[1]));
    TUTTI_TRY(tutti__need_like(node, 2, "grad", &node->inputs[0]));
    node->outputs[2] = node->outputs[1];
    return tutti_infer_same(node);
}

static tutti_status layer_norm_backward_gradient(tutti_gradient_call *node)
{
    return tutti__norm_second_gradient(node, true);
}

/* An element: 4 for the moments, 2 for xhat, 1 for h, 3 for its means, 5 for dx, 3 for the sums. */
static void layer_norm_backward_cost(const tutti_infer *node, tutti_cost *ret)
{
    tutti__cost_flops(node, 18 * tutti__elements(&node->inputs[0]), ret);
}

static int layer_norm_backward_split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    return tutti__split_rows(node, 1u << 0 | 1u << 2, 1u << 0, capacity, ret);
}

static void run_row(int64_t columns, double epsilon, const double *x, const double *scale,
                    const double *grad, double *const ret[3])
{
    double mean, variance, sum = 0, sum_xhat = 0;
    tutti__row_moments(columns, x, &mean, &variance);
    double r = 1 / sqrt(variance + epsilon);
    for (int64_t c = 0; c < columns; c++) {
        double xhat = (x[c] - mean) * r;
        sum += scale[c] * grad[c];
        sum_xhat += scale[c] * grad[c] * xhat;
        ret[1][c] += grad[c] * xhat;
        ret[2][c] += grad[c];
    }
    sum /= (double)columns;
    sum_xhat /= (double)columns;
    for (int64_t c = 0; c < columns; c++)
        ret[0][c] = r * (scale[c] * grad[c] - sum - (x[c] - mean) * r * sum_xhat);
}

static tutti_status layer_norm_backward_run(const tutti_kernel_call *call,
                                            const double *const *inputs, double *const *outputs,
                                            tutti_arena *scratch)
{
    int64_t rows, columns;
    double epsilon = CALL_FLOAT(call, "epsilon");
    tutti__norm_matrix(&call->inputs[0], &rows, &columns);
    for (int64_t row = 0; row < rows; row++)
        run_row(columns, epsilon, inputs[0] + row * columns, inputs[1], inputs[2] + row * columns,
                (double *[]){outputs[0] + row * columns, outputs[1], outputs[2]});
    return TUTTI_OK;
}

static tutti_status layer_norm_backward_reference(const tutti_kernel_call *call)
{
    return tutti__on_doubles(call, layer_norm_backward_run);
}

static const tutti_attr_spec attrs[] = {{"epsilon", TUTTI_ATTR_FLOAT, "0.001"},
                                        {NULL, TUTTI_ATTR_NONE, NULL}};

static const char *const samples[] = {
    "f32[3,5]{-2:2} f32[5] f32[3,5]",
    "f32[2,3,4]{-2:2} f32[4] f32[2,3,4] | epsilon=0.1",
    "f64[5,6]{-2:2} f64[6] f64[5,6]",
    NULL,
};

const tutti_op tutti_op_layer_norm_backward = {
    .struct_size = sizeof(tutti_op),
    .name = "layer_norm_backward",
    .version = 1,
    .doc = "layer_norm_backward(x, scale, grad): dx = r (h - mean(h) - xhat mean(h xhat)), "
           "dscale = sum(grad xhat), doffset = sum(grad); xhat = (x - mean) r, "
           "r = 1 / sqrt(variance + epsilon), h = scale grad",
    .category = "network",
    .min_inputs = 3,
    .max_inputs = 3,
    .outputs = 3,
    .attrs = attrs,
    .infer = layer_norm_backward_infer,
    .gradient = layer_norm_backward_gradient,
    .cost = layer_norm_backward_cost,
    .split = layer_norm_backward_split,
    .reference = layer_norm_backward_reference,
    .samples = samples,
};
