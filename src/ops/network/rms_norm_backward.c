/* rms_norm_backward(x, scale, grad): the gradients of rms_norm's two inputs. With xhat = x r,
 * r = 1 / sqrt(mean(x^2) + epsilon), h = scale * grad:
 * dx = r (h - xhat mean(h xhat)), dscale = sum(grad xhat). */
#include "ops/network/norm.h"

static tutti_status rms_norm_backward_infer(tutti_infer *node)
{
    TUTTI_TRY(tutti__norm_infer(node, 1, 1, &node->outputs[1]));
    TUTTI_TRY(tutti__need_like(node, 2, "grad", &node->inputs[0]));
    return tutti_infer_same(node);
}

static tutti_status rms_norm_backward_gradient(tutti_gradient_call *node)
{
    return tutti__norm_second_gradient(node, false);
}

/* An element: 2 for r, 1 for xhat, 1 for h, 2 for its mean, 3 for dx, 2 for the sum. */
static void rms_norm_backward_cost(const tutti_infer *node, tutti_cost *ret)
{
    tutti__cost_flops(node, 11 * tutti__elements(&node->inputs[0]), ret);
}

static int rms_norm_backward_split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    return tutti__split_rows(node, 1u << 0 | 1u << 2, 1u << 0, capacity, ret);
}

static tutti_status rms_norm_backward_run(const tutti_kernel_call *call,
                                          const double *const *inputs, double *const *outputs,
                                          tutti_arena *scratch)
{
    int64_t rows, columns;
    double epsilon = CALL_FLOAT(call, "epsilon");
    tutti__norm_matrix(&call->inputs[0], &rows, &columns);
    for (int64_t row = 0; row < rows; row++) {
        const double *x = inputs[0] + row * columns, *scale = inputs[1];
        const double *grad = inputs[2] + row * columns;
        double r = 1 / sqrt(tutti__dot(columns, x, x) / (double)columns + epsilon), sum = 0;
        for (int64_t c = 0; c < columns; c++) {
            sum += scale[c] * grad[c] * x[c] * r;
            outputs[1][c] += grad[c] * x[c] * r;
        }
        sum /= (double)columns;
        for (int64_t c = 0; c < columns; c++)
            outputs[0][row * columns + c] = r * (scale[c] * grad[c] - x[c] * r * sum);
    }
    return TUTTI_OK;
}

static tutti_status rms_norm_backward_reference(const tutti_kernel_call *call)
{
    return tutti__on_doubles(call, rms_norm_backward_run);
}

static const tutti_attr_spec attrs[] = {{"epsilon", TUTTI_ATTR_FLOAT, "1e-6"},
                                        {NULL, TUTTI_ATTR_NONE, NULL}};

static const char *const samples[] = {
    "f32[3,5]{-2:2} f32[5] f32[3,5]",
    "f32[2,3,4]{-2:2} f32[4] f32[2,3,4] | epsilon=0.1",
    "f64[5,6]{-2:2} f64[6] f64[5,6]",
    NULL,
};

const tutti_op tutti_op_rms_norm_backward = {
    .struct_size = sizeof(tutti_op),
    .name = "rms_norm_backward",
    .version = 1,
    .doc = "rms_norm_backward(x, scale, grad): dx = r (h - xhat mean(h xhat)), "
           "dscale = sum(grad xhat); xhat = x r, r = 1 / sqrt(mean(x^2) + epsilon), h = scale grad",
    .category = "network",
    .min_inputs = 3,
    .max_inputs = 3,
    .outputs = 2,
    .attrs = attrs,
    .infer = rms_norm_backward_infer,
    .gradient = rms_norm_backward_gradient,
    .cost = rms_norm_backward_cost,
    .split = rms_norm_backward_split,
    .reference = rms_norm_backward_reference,
    .samples = samples,
};
