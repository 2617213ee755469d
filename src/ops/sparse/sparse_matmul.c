/* sparse_matmul.c: a sparse matrix times a dense one. */
#include "ops/sparse/sparse.h"

/* indices i64 [n,2], values [n], dense_shape i64 [2] = (rows, k), b [k,m] -> [rows,m];
 * transposed: b [rows,m] -> [k,m] */
static tutti_status sparse_matmul_infer(tutti_infer *node)
{
    char text[TUTTI_TYPE_TEXT];
    const tutti_type *values = &node->inputs[1], *b = &node->inputs[3];
    int64_t dims[TUTTI_MAX_RANK];
    bool transpose = RULE_INT(node, "transpose") != 0;
    TUTTI_TRY(tutti__need_positions(node, 0, 2));
    TUTTI_TRY(tutti__need_values(node, 1, 0));
    TUTTI_TRY(tutti__need_dense_shape(node, 2, 2, dims));
    if (b->rank != 2 || b->dtype != values->dtype)
        return RULE_FAIL(node, TUTTI_INVALID, "the dense matrix is %s, needs %s of 2 dimensions",
                         tutti_type_text(b, text), tutti_dtype_name(values->dtype));
    int64_t inner = dims[transpose ? 0 : 1];
    if (inner != TUTTI_ANY && b->dims[0] != TUTTI_ANY && inner != b->dims[0])
        return RULE_FAIL(
            node, TUTTI_INVALID, "the dense matrix is %s, but the sparse one%s has %lld columns",
            tutti_type_text(b, text), transpose ? " transposed" : "", (long long)inner);
    node->outputs[0] =
        tutti_type_make(b->dtype, 2, (int64_t[]){dims[transpose ? 1 : 0], b->dims[1]});
    return TUTTI_OK;
}

/* y[r,:] += v b[c,:] */
static void accumulate(const tutti_kernel_call *call, bool transpose, int64_t columns,
                       tutti_sums *sums)
{
    const tutti_view *at = &call->inputs[0], *values = &call->inputs[1], *b = &call->inputs[3];
    int64_t count = at->dims[0];
    for (int64_t i = 0; i < count; i++) {
        int64_t row = tutti_view_get_int(at, 2 * i + transpose);
        int64_t inner = tutti_view_get_int(at, 2 * i + !transpose);
        tutti__sums_add_products(sums, row * columns, values, i, b, inner * columns, columns);
    }
}

static tutti_status sparse_matmul_reference(const tutti_kernel_call *call)
{
    const tutti_view *b = &call->inputs[3];
    bool transpose = RULE_INT(call, "transpose") != 0;
    int64_t dims[TUTTI_MAX_RANK];
    TUTTI_TRY(tutti__dense_shape(call, &call->inputs[2], dims));
    TUTTI_TRY(tutti__check_positions(call, &call->inputs[0], dims));
    if (dims[transpose ? 0 : 1] != b->dims[0])
        return RULE_FAIL(call, TUTTI_OUT_OF_RANGE,
                         "the dense matrix has %lld rows, the sparse one asks for %lld",
                         (long long)b->dims[0], (long long)dims[transpose ? 0 : 1]);
    int64_t columns = b->dims[1], out_dims[] = {dims[transpose ? 1 : 0], columns};
    TUTTI_TRY(tutti__call_shape(call, 0, 2, out_dims));
    tutti_sums sums;
    TUTTI_TRY(tutti__sums_begin(call, &call->outputs[0], &sums));
    accumulate(call, transpose, columns, &sums);
    tutti__sums_end(&sums);
    return TUTTI_OK;
}

extern const tutti_op tutti_op_sparse_matmul;

static tutti_sym sparse_matmul_build(tutti_sym indices, tutti_sym values, tutti_sym dense_shape,
                                     tutti_sym b, bool transpose)
{
    tutti_sym inputs[] = {indices, values, dense_shape, b};
    return TUTTI_NARY(&tutti_op_sparse_matmul, inputs, TUTTI_INT("transpose", transpose));
}

/* Y = A B: dB = A^T dY; dA[r,c] = dY[r,:] . B[c,:], at A's positions only. */
static tutti_status sparse_matmul_gradient(tutti_gradient_call *node)
{
    bool transpose = RULE_INT(node, "transpose") != 0;
    tutti_sym indices = node->inputs[0], values = node->inputs[1], shape = node->inputs[2],
              b = node->inputs[3], dy = node->output_grads[0];
    if (node->wanted[1])
        node->input_grads[1] =
            tutti_sampled_matmul(indices, shape, transpose ? b : dy, transpose ? dy : b);
    if (node->wanted[3])
        node->input_grads[3] = sparse_matmul_build(indices, values, shape, dy, !transpose);
    return TUTTI_OK;
}

static void sparse_matmul_cost(const tutti_infer *node, tutti_cost *ret)
{
    const tutti_type *at = &node->inputs[0], *b = &node->inputs[3];
    double count = at->dims[0] > 0 ? (double)at->dims[0] : 1;
    tutti__cost_move(node, ret);
    ret->flops = 2 * count * (b->dims[1] > 0 ? (double)b->dims[1] : 1);
}

/* Columns of b; or the values, whose products add up. */
static int sparse_matmul_split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    if (capacity > 0)
        ret[0] =
            (tutti_split){.inputs = {TUTTI_WHOLE, TUTTI_WHOLE, TUTTI_WHOLE, 1}, .outputs = {1}};
    if (capacity > 1)
        ret[1] = (tutti_split){.inputs = {0, 0, TUTTI_WHOLE, TUTTI_WHOLE},
                               .outputs = {TUTTI_PARTIAL_SUM}};
    return 2;
}

static const tutti_attr_spec attrs[] = {
    {"transpose", TUTTI_ATTR_INT, "0"},
    {0},
};

static const char *const samples[] = {
    "i64[4,2]{=0,1,2,0,1,3,2,2} f32[4] i64[2]{=3,4} f32[4,5]",
    "i64[4,2]{=0,1,2,0,1,3,2,2} f64[4] i64[2]{=3,4} f64[3,2] | transpose=1",
    "i64[5,2]{=0,1,0,1,1,1,0,0,1,0} f32[5] i64[2]{=2,2} f32[2,3]",
    "i64[3,2]{=0,0,1,1,1,0} i32[3] i64[2]{=2,2} i32[2,2]",
    "i64[0,2] f32[0] i64[2]{=2,3} f32[3,2]",
    NULL,
};

tutti_sym tutti_sparse_matmul_with(tutti_sparse_sym a, tutti_sym b,
                                   const tutti_sparse_matmul_options *options)
{
    return sparse_matmul_build(a.indices, a.values, a.dense_shape, b,
                               options && options->transpose);
}

const tutti_op tutti_op_sparse_matmul = {
    .struct_size = sizeof(tutti_op),
    .name = "sparse_matmul",
    .version = 1,
    .doc =
        "sparse_matmul(indices, values, dense_shape, b): y[r,j] = sum over entries (r,c) of values b[c,j]",
    .category = "sparse",
    .min_inputs = 4,
    .max_inputs = 4,
    .outputs = 1,
    .flags = TUTTI_OP_FALLIBLE | TUTTI_OP_DYNAMIC,
    .attrs = attrs,
    .infer = sparse_matmul_infer,
    .gradient = sparse_matmul_gradient,
    .cost = sparse_matmul_cost,
    .split = sparse_matmul_split,
    .reference = sparse_matmul_reference,
    .samples = samples,
};
