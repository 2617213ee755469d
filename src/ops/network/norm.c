/* norm.c: what batch_norm, layer_norm and rms_norm share; see norm.h. */
#include "ops/network/norm.h"

tutti_status tutti__norm_infer(const tutti_infer *node, int first, int count,
                               tutti_type *ret_channels)
{
    char text[TUTTI_TYPE_TEXT];
    const tutti_type *x = &node->inputs[0];
    TUTTI_TRY(tutti__need_floats(node, 0, node->input_count));
    tutti_status status = tutti__epsilon_check(RULE_FLOAT(node, "epsilon"));
    if (status != TUTTI_OK)
        return RULE_FAIL(node, status, "%s", tutti_error_message());
    if (x->rank == 0)
        return RULE_FAIL(node, TUTTI_INVALID, "x is the scalar %s, needs a last axis of channels",
                         tutti_type_text(x, text));
    int64_t channels = x->dims[x->rank - 1];
    for (int i = first; i < first + count; i++) {
        char what[24];
        snprintf(what, sizeof what, "input %d", i);
        TUTTI_TRY(tutti__need_rank(node, i, what, 1, "[channels]"));
        TUTTI_TRY(tutti__need_dim(node, i, what, 0, channels, "channels of x"));
        channels = tutti__known(channels, node->inputs[i].dims[0]);
    }
    *ret_channels = tutti_type_make(x->dtype, 1, &channels);
    return TUTTI_OK;
}

void tutti__norm_matrix(const tutti_view *x, int64_t *ret_rows, int64_t *ret_columns)
{
    int64_t rows = 1;
    for (int axis = 0; axis < x->rank - 1; axis++)
        rows *= x->dims[axis];
    *ret_rows = rows;
    *ret_columns = x->dims[x->rank - 1];
}

void tutti__row_moments(int64_t count, const double *x, double *ret_mean, double *ret_variance)
{
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < count; i++)
        sum += x[i];
    double mean = sum / (double)count;
    for (int64_t i = 0; i < count; i++)
        squares += (x[i] - mean) * (x[i] - mean);
    *ret_mean = mean;
    *ret_variance = squares / (double)count;
}

tutti_status tutti__epsilon_check(double epsilon)
{
    return epsilon >= 0 ? TUTTI_OK
                        : tutti_fail(TUTTI_INVALID,
                                     "epsilon is %g, needs 0 or more: the square "
                                     "root of a negative number is NaN",
                                     epsilon);
}

bool tutti__epsilon_take(tutti_sym x, const char *op, const tutti_normalize_options *given,
                         double fallback, double *ret)
{
    *ret = tutti__epsilon(given, fallback);
    if (!tutti__usable(op, x))
        return false;
    tutti_status status = tutti__epsilon_check(*ret);
    if (status != TUTTI_OK)
        tutti__poison(tutti_sym_graph(x), status, "%s: %s", op, tutti_error_message());
    return status == TUTTI_OK;
}

double tutti__epsilon(const tutti_normalize_options *given, double fallback)
{
    TAKE_OPTIONS(tutti_normalize_options, options, given);
    return options.epsilon == 0 ? fallback : options.epsilon;
}

int tutti__split_rows(const tutti_infer *node, unsigned cut_inputs, unsigned cut_outputs,
                      int capacity, tutti_split *ret)
{
    tutti_ways ways = {0, capacity, ret};
    for (int axis = 0; axis < node->inputs[0].rank - 1; axis++) {
        int inputs[TUTTI_SPLIT_SLOTS], outputs[TUTTI_SPLIT_SLOTS];
        for (int i = 0; i < node->input_count; i++)
            inputs[i] = cut_inputs >> i & 1 ? axis : TUTTI_WHOLE;
        for (int i = 0; i < node->output_count; i++)
            outputs[i] = cut_outputs >> i & 1 ? axis : TUTTI_PARTIAL_SUM;
        tutti__way_add(&ways, node->input_count, inputs, node->output_count, outputs);
    }
    return ways.count;
}

/* A row-wise norm as nodes: xhat = (x - mean(x)) r or x r, r = 1 / sqrt(mean of squares + epsilon).
 */
typedef struct norm_nodes {
    tutti_sym xhat, r;
    bool centred;
} norm_nodes;

static norm_nodes norm_build(tutti_sym x, double epsilon, bool centred)
{
    tutti_sym from = centred ? tutti_sub(x, tutti__mean_keeping(x, -1)) : x;
    tutti_sym square = tutti__mean_keeping(tutti_square(from), -1);
    tutti_sym r = tutti_rsqrt(tutti_add(square, epsilon));
    return (norm_nodes){tutti_mul(from, r), r, centred};
}

static tutti_sym mean_product(tutti_sym a, tutti_sym b)
{
    return tutti__mean_keeping(tutti_mul(a, b), -1);
}

/* P h = r (h - mean(h) - xhat mean(h xhat)), the transposed derivative of xhat by x; without
 * centring the term mean(h) is absent. P is symmetric. */
static tutti_sym project(const norm_nodes *n, tutti_sym h)
{
    tutti_sym rest = tutti_sub(h, tutti_mul(n->xhat, mean_product(h, n->xhat)));
    if (n->centred)
        rest = tutti_sub(rest, tutti__mean_keeping(h, -1));
    return tutti_mul(n->r, rest);
}

/* dx = P h with h = scale * grad. Its derivative by x against u:
 * P(-r (mean(u xhat) h + mean(h xhat) u))
 *   - r^2 xhat (mean(u h) - mean(u) mean(h) - mean(u xhat) mean(h xhat)). */
static tutti_sym input_term(const norm_nodes *n, tutti_sym u, tutti_sym h)
{
    tutti_sym ux = mean_product(u, n->xhat), hx = mean_product(h, n->xhat);
    tutti_sym spread = tutti_sub(mean_product(u, h), tutti_mul(ux, hx));
    if (n->centred)
        spread =
            tutti_sub(spread, tutti_mul(tutti__mean_keeping(u, -1), tutti__mean_keeping(h, -1)));
    tutti_sym inner = tutti_mul(n->r, tutti_add(tutti_mul(ux, h), tutti_mul(hx, u)));
    tutti_sym by_r = tutti_mul(tutti_mul(tutti_square(n->r), spread), n->xhat);
    return tutti_neg(tutti_add(project(n, inner), by_r));
}

static void give(tutti_gradient_call *node, int input, tutti_sym grad)
{
    if (node->wanted[input] && tutti_sym_ok(grad))
        node->input_grads[input] = tutti__narrowed(grad, tutti_sym_type(node->inputs[input]).dtype);
}

/* With u, v, w the gradients of dx = P(scale grad), dscale = sum(grad xhat), doffset = sum(grad):
 * d grad = scale P u + v xhat + w;  d scale = sum(grad P u);  d x = (above) + P(v grad). */
tutti_status tutti__norm_second_gradient(tutti_gradient_call *node, bool centred)
{
    tutti_sym scale = tutti__widened(node->inputs[1]), grad = tutti__widened(node->inputs[2]);
    tutti_sym u = tutti__widened(node->output_grads[0]), v = tutti__widened(node->output_grads[1]);
    tutti_sym w = node->output_count > 2 ? tutti__widened(node->output_grads[2]) : TUTTI_NO_SYM;
    tutti_sym by_x = TUTTI_NO_SYM, by_scale = TUTTI_NO_SYM, by_grad = TUTTI_NO_SYM;
    norm_nodes n =
        norm_build(tutti__widened(node->inputs[0]), RULE_FLOAT(node, "epsilon"), centred);
    if (tutti_sym_ok(u)) {
        tutti_sym pu = project(&n, u);
        by_grad = tutti_mul(scale, pu);
        by_scale = tutti__sum_leading(tutti_mul(grad, pu));
        by_x = input_term(&n, u, tutti_mul(scale, grad));
    }
    if (tutti_sym_ok(v)) {
        tutti__accumulate(&by_grad, tutti_mul(v, n.xhat));
        tutti__accumulate(&by_x, project(&n, tutti_mul(v, grad)));
    }
    if (tutti_sym_ok(w))
        tutti__accumulate(&by_grad, tutti_broadcast_like(w, grad));
    give(node, 0, by_x);
    give(node, 1, by_scale);
    give(node, 2, by_grad);
    return TUTTI_OK;
}
