/* acme.weighted_rows(x [rows, columns], weight [rows], power):
 * y[r] = weight[r] * sum over c of x[r,c]^power, total = sum over r of y[r]. */
#include "inside.h"

#include <math.h>

enum { X, WEIGHT };
enum { Y, TOTAL };

tutti_sym(acme_rows)(tutti_sym x, tutti_sym weight, int64_t power)
{
    return tutti_apply_op(tutti_sym_graph(x), "acme.weighted_rows", 2, (tutti_sym[]){x, weight}, 1,
                          &TUTTI_INT("power", power));
}

static tutti_status infer(tutti_infer *node)
{
    const tutti_type *x = &node->inputs[X], *weight = &node->inputs[WEIGHT];
    char a[TUTTI_TYPE_TEXT], b[TUTTI_TYPE_TEXT];
    int64_t power = tutti_attr_int(node->attrs, node->attr_count, "power");
    if ((x->dtype != TUTTI_F32 && x->dtype != TUTTI_F64) || weight->dtype != x->dtype)
        return ACME_FAIL(node, TUTTI_INVALID,
                         "x is %s, weight is %s; both must be f32, or both f64",
                         tutti_type_text(x, a), tutti_type_text(weight, b));
    if (x->rank != 2 || weight->rank != 1)
        return ACME_FAIL(node, TUTTI_INVALID,
                         "x is %s, weight is %s; needs x [rows, columns] and weight [rows]",
                         tutti_type_text(x, a), tutti_type_text(weight, b));
    if (x->dims[0] != TUTTI_ANY && weight->dims[0] != TUTTI_ANY && x->dims[0] != weight->dims[0])
        return ACME_FAIL(node, TUTTI_INVALID,
                         "x has %lld rows, weight has %lld; give one weight for each row",
                         (long long)x->dims[0], (long long)weight->dims[0]);
    if (power < 1 || power > 8)
        return ACME_FAIL(node, TUTTI_INVALID, "power is %lld, must be 1 to 8", (long long)power);
    int64_t rows = x->dims[0] != TUTTI_ANY ? x->dims[0] : weight->dims[0];
    node->outputs[Y] = tutti_type_make(x->dtype, 1, &rows);
    node->outputs[TOTAL] = tutti_type_make(x->dtype, 0, NULL);
    return TUTTI_OK;
}

/* What each row's value contributes: dy[r] + dtotal. */
static tutti_sym row_gradient(const tutti_gradient_call *node)
{
    tutti_sym dy = node->output_grads[Y], dtotal = node->output_grads[TOTAL];
    if (!tutti_sym_ok(dtotal))
        return dy;
    return tutti_sym_ok(dy) ? tutti_add(dy, dtotal)
                            : tutti_broadcast_like(dtotal, node->inputs[WEIGHT]);
}

static tutti_sym power_of(tutti_sym x, int64_t power)
{
    tutti_sym product = x;
    for (int64_t i = 1; i < power; i++)
        product = tutti_mul(product, x);
    return product;
}

/* g = dy + dtotal: dx[r,c] = g[r] weight[r] power x[r,c]^(power - 1), dweight[r] = g[r] sum_c
 * x[r,c]^power */
static tutti_status gradient(tutti_gradient_call *node)
{
    int64_t power = tutti_attr_int(node->attrs, node->attr_count, "power");
    tutti_sym x = node->inputs[X], weight = node->inputs[WEIGHT], g = row_gradient(node);
    if (node->wanted[X]) {
        tutti_sym scale = tutti_expand_dims(tutti_mul(tutti_mul(g, weight), (double)power), 1);
        node->input_grads[X] =
            power == 1 ? tutti_broadcast_like(scale, x) : tutti_mul(scale, power_of(x, power - 1));
    }
    if (node->wanted[WEIGHT])
        node->input_grads[WEIGHT] =
            tutti_mul(g, tutti_sum(power_of(x, power), .axes = TUTTI_AXES(1)));
    return TUTTI_OK;
}

static void cost(const tutti_infer *node, tutti_cost *ret_cost)
{
    double count = (double)tutti_type_count(&node->inputs[X]),
           rows = (double)node->inputs[WEIGHT].dims[0];
    double size = (double)tutti_dtype_size(node->inputs[X].dtype);
    *ret_cost = (tutti_cost){
        .flops = count * (double)tutti_attr_int(node->attrs, node->attr_count, "power") + 2 * rows,
        .bytes_read = (count + rows) * size,
        .bytes_written = (rows + 1) * size};
}

/* Some rows; or some columns of each, whose sums add up. */
static int split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    static const tutti_split ways[] = {
        {.inputs = {0, 0}, .outputs = {0, TUTTI_PARTIAL_SUM}},
        {.inputs = {1, TUTTI_WHOLE}, .outputs = {TUTTI_PARTIAL_SUM, TUTTI_PARTIAL_SUM}},
    };
    (void)node;
    for (int i = 0; i < 2 && i < capacity; i++)
        ret[i] = ways[i];
    return 2;
}

static void sum_row(void *context, int64_t row)
{
    const tutti_kernel_call *call = context;
    int64_t columns = call->inputs[X].dims[1],
            power = tutti_attr_int(call->attrs, call->attr_count, "power");
    double sum = 0;
    for (int64_t c = 0; c < columns; c++) {
        double x = tutti_view_get(&call->inputs[X], row * columns + c), product = x;
        for (int64_t i = 1; i < power; i++)
            product *= x;
        sum += product;
    }
    tutti_view_set(&call->outputs[Y], row, tutti_view_get(&call->inputs[WEIGHT], row) * sum);
}

static tutti_status reference(const tutti_kernel_call *call)
{
    int64_t rows = call->inputs[WEIGHT].dims[0];
    double total = 0;
    for (int64_t r = 0; r < rows; r++)
        if (isnan(tutti_view_get(&call->inputs[WEIGHT], r)))
            return ACME_FAIL(call, TUTTI_CHECK_FAILED, "weight[%lld] is not a number",
                             (long long)r);
    tutti_parallel(call, rows, sum_row, (void *)(uintptr_t)call);
    for (int64_t r = 0; r < rows; r++)
        total += tutti_view_get(&call->outputs[Y], r);
    tutti_view_set(&call->outputs[TOTAL], 0, total);
    return TUTTI_OK;
}

static const tutti_attr_spec attributes[] = {{"power", TUTTI_ATTR_INT, NULL}, {0}};

static const char *const samples[] = {
    "f32[4,3] f32[4] | power=2",
    "f64[5,6] f64[5]{0.5:2} | power=3",
    "f32[1,1] f32[1] | power=1",
    "f64[3,4]{0.5:1.5} f64[3]{=1,-2,0.5} | power=4",
    NULL,
};

const tutti_op acme_weighted_rows = {
    .struct_size = sizeof(tutti_op),
    .name = "acme.weighted_rows",
    .version = 1,
    .doc =
        "acme.weighted_rows(x, weight, power): y[r] = weight[r] sum_c x[r,c]^power; total = sum_r y[r]",
    .category = "acme",
    .min_inputs = 2,
    .max_inputs = 2,
    .outputs = 2,
    .flags = TUTTI_OP_FALLIBLE,
    .attrs = attributes,
    .infer = infer,
    .gradient = gradient,
    .cost = cost,
    .split = split,
    .reference = reference,
    .samples = samples,
};
