/* batch_norm_backward(x, scale, mean, variance, grad): the gradients of batch_norm's three inputs
 * through y. With r = 1 / sqrt(variance + epsilon), xhat = (x - mean) r, means and sums over all
 * axes but the last:
 *   dx = scale r (grad - mean(grad) - xhat mean(grad xhat)),
 *   dscale = sum(grad xhat), doffset = sum(grad). */
#include "ops/network/norm.h"

enum { X, SCALE, MEAN, VARIANCE, GRAD };

static tutti_status batch_norm_backward_infer(tutti_infer *node)
{
    TUTTI_TRY(tutti__norm_infer(node, SCALE, 3, &node->outputs[1]));
    TUTTI_TRY(tutti__need_like(node, GRAD, "grad", &node->inputs[X]));
    node->outputs[2] = node->outputs[1];
    return tutti_infer_same(node);
}

/* The nodes that the second gradient shares. */
typedef struct parts {
    tutti_sym centred, r, xhat, grad, factor; /* factor = scale r */
    tutti_sym u, v, w;                        /* gradients of dx, dscale, doffset */
} parts;

static parts parts_build(const tutti_gradient_call *node)
{
    parts p = {.u = node->output_grads[0], .v = node->output_grads[1], .w = node->output_grads[2]};
    p.grad = node->inputs[GRAD];
    p.centred = tutti_sub(node->inputs[X], node->inputs[MEAN]);
    p.r = tutti_rsqrt(tutti_add(node->inputs[VARIANCE], RULE_FLOAT(node, "epsilon")));
    p.xhat = tutti_mul(p.centred, p.r);
    p.factor = tutti_mul(node->inputs[SCALE], p.r);
    return p;
}

/* Q h = h - mean(h) - xhat mean(h xhat), symmetric. */
static tutti_sym project(const parts *p, tutti_sym h)
{
    tutti_sym along = tutti_mul(p->xhat, tutti__mean_leading(tutti_mul(h, p->xhat)));
    return tutti_sub(tutti_sub(h, tutti__mean_leading(h)), along);
}

/* The gradient of xhat:
 * q = v grad - scale r (mean(u xhat) grad + mean(grad xhat) u). */
static tutti_sym xhat_gradient(const parts *p)
{
    tutti_sym q = TUTTI_NO_SYM;
    if (tutti_sym_ok(p->u)) {
        tutti_sym ux = tutti__mean_leading(tutti_mul(p->u, p->xhat));
        tutti_sym gx = tutti__mean_leading(tutti_mul(p->grad, p->xhat));
        tutti_sym both = tutti_add(tutti_mul(ux, p->grad), tutti_mul(gx, p->u));
        q = tutti_neg(tutti_mul(p->factor, both));
    }
    if (tutti_sym_ok(p->v))
        tutti__accumulate(&q, tutti_mul(p->v, p->grad));
    return q;
}

/* mean and variance count as inputs of their own here: d x = r q, d mean = -r sum(q),
 * d variance = -r^3 / 2 (scale sum(u Q grad) + sum(q (x - mean))). */
static void statistics_gradient(tutti_gradient_call *node, const parts *p, tutti_sym by_factor)
{
    tutti_sym q = xhat_gradient(p);
    if (!tutti_sym_ok(q))
        return;
    tutti_sym by_r = tutti__sum_leading(tutti_mul(q, p->centred));
    if (tutti_sym_ok(by_factor))
        tutti__accumulate(&by_r, tutti_mul(node->inputs[SCALE], by_factor));
    if (node->wanted[X])
        node->input_grads[X] = tutti_mul(q, p->r);
    if (node->wanted[MEAN])
        node->input_grads[MEAN] = tutti_neg(tutti_mul(p->r, tutti__sum_leading(q)));
    if (node->wanted[VARIANCE]) {
        tutti_sym cube = tutti_mul(tutti_square(p->r), p->r);
        node->input_grads[VARIANCE] = tutti_mul(tutti_mul(cube, by_r), -0.5);
    }
}

/* dx = scale r Q grad. d grad = scale r Q u + v xhat + w; d scale = r sum(u Q grad). */
static tutti_status batch_norm_backward_gradient(tutti_gradient_call *node)
{
    parts p = parts_build(node);
    tutti_sym by_grad = TUTTI_NO_SYM, by_factor = TUTTI_NO_SYM;
    if (tutti_sym_ok(p.u)) {
        by_grad = tutti_mul(p.factor, project(&p, p.u));
        by_factor = tutti__sum_leading(tutti_mul(p.u, project(&p, p.grad)));
        if (node->wanted[SCALE])
            node->input_grads[SCALE] = tutti_mul(p.r, by_factor);
    }
    if (tutti_sym_ok(p.v))
        tutti__accumulate(&by_grad, tutti_mul(p.v, p.xhat));
    if (tutti_sym_ok(p.w))
        tutti__accumulate(&by_grad, tutti_broadcast_like(p.w, p.grad));
    if (node->wanted[GRAD])
        node->input_grads[GRAD] = by_grad;
    statistics_gradient(node, &p, by_factor);
    return TUTTI_OK;
}

/* An element: 2 for xhat, 3 for the sums, 5 for dx. */
static void batch_norm_backward_cost(const tutti_infer *node, tutti_cost *ret)
{
    tutti__cost_flops(node, 10 * tutti__elements(&node->inputs[X]), ret);
}

static int batch_norm_backward_split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    tutti_ways ways = {0, capacity, ret};
    int last = node->inputs[X].rank - 1;
    tutti__way_add(&ways, SLOTS(last, 0, 0, 0, last), SLOTS(last, 0, 0));
    return ways.count;
}

/* The two sums over the rows first, then dx = scale r (grad - doffset / n - xhat dscale / n). */
static tutti_status batch_norm_backward_expand(tutti_expansion *node)
{
    tutti_type type = tutti_sym_type(node->inputs[X]);
    tutti_sym x = tutti__widened(node->inputs[X]), grad = tutti__widened(node->inputs[GRAD]);
    tutti_sym variance = tutti__widened(node->inputs[VARIANCE]);
    tutti_sym r = tutti_rsqrt(tutti_add(variance, RULE_FLOAT(node, "epsilon")));
    tutti_sym xhat = tutti_mul(tutti_sub(x, tutti__widened(node->inputs[MEAN])), r);
    tutti_sym by_scale = tutti__sum_leading(tutti_mul(grad, xhat));
    tutti_sym by_offset = tutti__sum_leading(grad);
    double inverse = (double)type.dims[type.rank - 1] / (double)tutti_type_count(&type);
    tutti_sym along = tutti_mul(xhat, tutti_mul(by_scale, inverse));
    tutti_sym rest = tutti_sub(tutti_sub(grad, tutti_mul(by_offset, inverse)), along);
    tutti_sym factor = tutti_mul(tutti__widened(node->inputs[SCALE]), r);
    node->outputs[0] = tutti__narrowed(tutti_mul(factor, rest), type.dtype);
    node->outputs[1] = tutti__narrowed(by_scale, type.dtype);
    node->outputs[2] = tutti__narrowed(by_offset, type.dtype);
    return TUTTI_OK;
}

static tutti_status batch_norm_backward_run(const tutti_kernel_call *call,
                                            const double *const *inputs, double *const *outputs,
                                            tutti_arena *scratch)
{
    int64_t rows, columns;
    double epsilon = CALL_FLOAT(call, "epsilon"), *r = NULL;
    const double *x = inputs[X], *grad = inputs[GRAD], *mean = inputs[MEAN];
    double *by_scale = outputs[1], *by_offset = outputs[2];
    tutti__norm_matrix(&call->inputs[X], &rows, &columns);
    TUTTI_TRY(tutti__scratch_doubles(scratch, columns, &r));
    for (int64_t c = 0; c < columns; c++)
        r[c] = 1 / sqrt(inputs[VARIANCE][c] + epsilon);
    for (int64_t row = 0; row < rows; row++)
        for (int64_t c = 0; c < columns; c++) {
            by_scale[c] += grad[row * columns + c] * (x[row * columns + c] - mean[c]) * r[c];
            by_offset[c] += grad[row * columns + c];
        }
    for (int64_t row = 0; row < rows; row++)
        for (int64_t c = 0; c < columns; c++) {
            double xhat = (x[row * columns + c] - mean[c]) * r[c];
            double shared = (by_offset[c] + xhat * by_scale[c]) / (double)rows;
            outputs[0][row * columns + c] =
                inputs[SCALE][c] * r[c] * (grad[row * columns + c] - shared);
        }
    return TUTTI_OK;
}

static tutti_status batch_norm_backward_reference(const tutti_kernel_call *call)
{
    return tutti__on_doubles(call, batch_norm_backward_run);
}

static const tutti_attr_spec attrs[] = {{"epsilon", TUTTI_ATTR_FLOAT, "0.001"},
                                        {NULL, TUTTI_ATTR_NONE, NULL}};

static const char *const samples[] = {
    "f32[6,3]{-2:2} f32[3] f32[3] f32[3]{0.5:2} f32[6,3]",
    "f32[2,3,2,5]{-2:2} f32[5] f32[5] f32[5]{0.5:2} f32[2,3,2,5] | epsilon=0.1",
    "f64[5,4]{-2:2} f64[4] f64[4] f64[4]{0.5:2} f64[5,4]",
    NULL,
};

const tutti_op tutti_op_batch_norm_backward = {
    .struct_size = sizeof(tutti_op),
    .name = "batch_norm_backward",
    .version = 1,
    .doc = "batch_norm_backward(x, scale, mean, variance, grad): "
           "dx = scale r (grad - mean(grad) - xhat mean(grad xhat)), dscale = sum(grad xhat), "
           "doffset = sum(grad); r = 1 / sqrt(variance + epsilon), xhat = (x - mean) r",
    .category = "network",
    .min_inputs = 5,
    .max_inputs = 5,
    .outputs = 3,
    .attrs = attrs,
    .infer = batch_norm_backward_infer,
    .gradient = batch_norm_backward_gradient,
    .cost = batch_norm_backward_cost,
    .split = batch_norm_backward_split,
    .expand = batch_norm_backward_expand,
    .reference = batch_norm_backward_reference,
    .samples = samples,
};
