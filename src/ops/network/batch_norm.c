/* batch_norm(x, scale, offset): y = (x - mean) / sqrt(variance + epsilon) * scale + offset; mean
 * and population variance over all axes but the last are outputs 1 and 2. */
#include "ops/network/norm.h"

extern const tutti_op tutti_op_batch_norm;

static tutti_status batch_norm_infer(tutti_infer *node)
{
    TUTTI_TRY(tutti__norm_infer(node, 1, 2, &node->outputs[1]));
    node->outputs[2] = node->outputs[1];
    return tutti_infer_same(node);
}

/* 1 / rows, of x's element type; in f64 until the last, because a count may exceed f16. */
static tutti_sym inverse_rows(tutti_sym x, tutti_sym mean)
{
    tutti_sym channels = tutti_cast(tutti_size(mean), TUTTI_F64);
    tutti_sym elements = tutti_cast(tutti_size(x), TUTTI_F64);
    return tutti_cast(tutti_div(channels, elements), tutti_sym_type(x).dtype);
}

/* What the gradients of mean and variance add to x's: dmean / rows + 2 (x - mean) dvariance / rows.
 */
static tutti_sym moments_gradient(const tutti_gradient_call *node)
{
    tutti_sym x = node->inputs[0], mean = node->outputs[1], sum = TUTTI_NO_SYM;
    tutti_sym by_mean = node->output_grads[1], by_variance = node->output_grads[2];
    tutti_sym inverse = inverse_rows(x, mean);
    if (tutti_sym_ok(by_variance)) {
        tutti_sym factor = tutti_mul(tutti_mul(by_variance, inverse), 2);
        sum = tutti_mul(tutti_sub(x, mean), factor);
    }
    if (tutti_sym_ok(by_mean))
        tutti__accumulate(&sum, tutti_broadcast_like(tutti_mul(by_mean, inverse), x));
    return sum;
}

static tutti_status batch_norm_gradient(tutti_gradient_call *node)
{
    if (tutti_sym_ok(node->output_grads[0])) {
        tutti_sym inputs[] = {node->inputs[0], node->inputs[1], node->outputs[1], node->outputs[2],
                              node->output_grads[0]};
        tutti_attr attrs[] = {SAME_ATTR(node, "epsilon")};
        tutti_sym back = tutti_apply_op(node->graph, "batch_norm_backward", 5, inputs, 1, attrs);
        for (int i = 0; i < 3; i++)
            if (node->wanted[i])
                node->input_grads[i] = tutti_sym_output(back, i);
    }
    bool moments = tutti_sym_ok(node->output_grads[1]) || tutti_sym_ok(node->output_grads[2]);
    if (moments && node->wanted[0])
        tutti__accumulate(&node->input_grads[0], moments_gradient(node));
    return TUTTI_OK;
}

/* An element: 1 for the mean, 3 for the variance, 1 to normalise, 2 to scale and shift. */
static void batch_norm_cost(const tutti_infer *node, tutti_cost *ret)
{
    tutti__cost_flops(node, 7 * tutti__elements(&node->inputs[0]), ret);
}

static int batch_norm_split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    tutti_ways ways = {0, capacity, ret};
    int last = node->inputs[0].rank - 1;
    tutti__way_add(&ways, SLOTS(last, 0, 0), SLOTS(last, 0, 0));
    return ways.count;
}

/* In f32 where x has 16 bits, as the kernels do. Moments by sums over the rows:
 * mean = sum(x) / n, variance = sum((x - mean)^2) / n. */
static tutti_status batch_norm_expand(tutti_expansion *node)
{
    tutti_dtype own = tutti_sym_type(node->inputs[0]).dtype;
    tutti_sym x = tutti__widened(node->inputs[0]), mean = tutti__mean_leading(x);
    tutti_sym centred = tutti_sub(x, mean), variance = tutti__mean_leading(tutti_square(centred));
    tutti_sym r = tutti_rsqrt(tutti_add(variance, RULE_FLOAT(node, "epsilon")));
    tutti_sym factor = tutti_mul(tutti__widened(node->inputs[1]), r);
    tutti_sym y = tutti_add(tutti_mul(centred, factor), tutti__widened(node->inputs[2]));
    node->outputs[0] = tutti__narrowed(y, own);
    node->outputs[1] = tutti__narrowed(mean, own);
    node->outputs[2] = tutti__narrowed(variance, own);
    return TUTTI_OK;
}

static void moments(int64_t rows, int64_t columns, const double *x, double *mean, double *variance)
{
    for (int64_t row = 0; row < rows; row++)
        for (int64_t c = 0; c < columns; c++)
            mean[c] += x[row * columns + c];
    for (int64_t c = 0; c < columns; c++)
        mean[c] /= (double)rows;
    for (int64_t row = 0; row < rows; row++)
        for (int64_t c = 0; c < columns; c++) {
            double centred = x[row * columns + c] - mean[c];
            variance[c] += centred * centred;
        }
    for (int64_t c = 0; c < columns; c++)
        variance[c] /= (double)rows;
}

static tutti_status batch_norm_run(const tutti_kernel_call *call, const double *const *inputs,
                                   double *const *outputs, tutti_arena *scratch)
{
    int64_t rows, columns;
    double epsilon = CALL_FLOAT(call, "epsilon"), *factor = NULL;
    const double *x = inputs[0], *scale = inputs[1], *offset = inputs[2];
    tutti__norm_matrix(&call->inputs[0], &rows, &columns);
    TUTTI_TRY(tutti__scratch_doubles(scratch, columns, &factor));
    moments(rows, columns, x, outputs[1], outputs[2]);
    for (int64_t c = 0; c < columns; c++)
        factor[c] = scale[c] / sqrt(outputs[2][c] + epsilon);
    for (int64_t row = 0; row < rows; row++)
        for (int64_t c = 0; c < columns; c++)
            outputs[0][row * columns + c] =
                (x[row * columns + c] - outputs[1][c]) * factor[c] + offset[c];
    return TUTTI_OK;
}

static tutti_status batch_norm_reference(const tutti_kernel_call *call)
{
    return tutti__on_doubles(call, batch_norm_run);
}

tutti_sym tutti_nn_batch_norm_with(tutti_sym x, tutti_sym scale, tutti_sym offset,
                                   const tutti_normalize_options *given)
{
    tutti_sym inputs[] = {x, scale, offset};
    return TUTTI_NARY(&tutti_op_batch_norm, inputs,
                      TUTTI_FLOAT("epsilon", tutti__epsilon(given, 1e-3)));
}

static const tutti_attr_spec attrs[] = {{"epsilon", TUTTI_ATTR_FLOAT, "0.001"},
                                        {NULL, TUTTI_ATTR_NONE, NULL}};

static const char *const samples[] = {
    "f32[6,3]{-2:2} f32[3] f32[3]",
    "f32[2,3,2,5]{-2:2} f32[5] f32[5] | epsilon=0.1",
    "f64[5,4]{-2:2} f64[4] f64[4]",
    NULL,
};

const tutti_op tutti_op_batch_norm = {
    .struct_size = sizeof(tutti_op),
    .name = "batch_norm",
    .version = 1,
    .doc =
        "batch_norm(x, scale, offset): y = (x - mean) / sqrt(variance + epsilon) * scale + offset; "
        "outputs y, mean, variance (population), over all axes but the last",
    .category = "network",
    .min_inputs = 3,
    .max_inputs = 3,
    .outputs = 3,
    .attrs = attrs,
    .infer = batch_norm_infer,
    .gradient = batch_norm_gradient,
    .cost = batch_norm_cost,
    .split = batch_norm_split,
    .expand = batch_norm_expand,
    .reference = batch_norm_reference,
    .samples = samples,
};
