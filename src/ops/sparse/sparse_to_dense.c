/* sparse_to_dense.c: the dense form of a sparse tensor. */
#include "ops/sparse/sparse.h"

/* indices i64 [n,r], values [n], dense_shape i64 [r] -> [dense_shape] */
static tutti_status sparse_to_dense_infer(tutti_infer *node)
{
    int64_t dims[TUTTI_MAX_RANK];
    TUTTI_TRY(tutti__need_dense_shape(node, 2, -1, dims));
    TUTTI_TRY(tutti__need_positions(node, 0, node->inputs[2].dims[0]));
    TUTTI_TRY(tutti__need_values(node, 1, 0));
    node->outputs[0] = tutti_type_make(node->inputs[1].dtype, (int)node->inputs[2].dims[0], dims);
    return TUTTI_OK;
}

static int64_t flat(const tutti_view *at, int64_t i, const int64_t *dims)
{
    int64_t rank = at->dims[1], index = 0;
    for (int64_t axis = 0; axis < rank; axis++)
        index = index * dims[axis] + tutti_view_get_int(at, i * rank + axis);
    return index;
}

static tutti_status sparse_to_dense_reference(const tutti_kernel_call *call)
{
    const tutti_view *at = &call->inputs[0], *values = &call->inputs[1];
    int64_t dims[TUTTI_MAX_RANK], count = at->dims[0];
    TUTTI_TRY(tutti__dense_shape(call, &call->inputs[2], dims));
    TUTTI_TRY(tutti__check_positions(call, at, dims));
    TUTTI_TRY(tutti__call_shape(call, 0, (int)tutti_view_count(&call->inputs[2]), dims));
    tutti_sums sums;
    TUTTI_TRY(tutti__sums_begin(call, &call->outputs[0], &sums));
    for (int64_t i = 0; i < count; i++)
        tutti__sums_add(&sums, flat(at, i, dims), values, i, 1);
    tutti__sums_end(&sums);
    return TUTTI_OK;
}

static tutti_status sparse_to_dense_gradient(tutti_gradient_call *node)
{
    if (node->wanted[1])
        node->input_grads[1] = tutti_gather_nd(node->output_grads[0], node->inputs[0]);
    return TUTTI_OK;
}

static int sparse_to_dense_split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    if (capacity > 0)
        ret[0] = (tutti_split){.inputs = {0, 0, TUTTI_WHOLE}, .outputs = {TUTTI_PARTIAL_SUM}};
    return 1;
}

static const char *const samples[] = {
    "i64[3,2]{=0,1,2,0,1,3} f32[3] i64[2]{=3,4}",
    "i64[4,1]{=2,0,2,4} f64[4] i64[1]{=5}",
    "i64[2,3]{=0,0,1,1,2,0} i32[2] i64[3]{=2,3,2}",
    "i64[0,2] f32[0] i64[2]{=2,2}",
    NULL,
};

extern const tutti_op tutti_op_sparse_to_dense;

tutti_sym(tutti_to_dense)(tutti_sparse_sym x)
{
    tutti_sym inputs[] = {x.indices, x.values, x.dense_shape};
    return tutti__nary(&tutti_op_sparse_to_dense, 3, inputs, 0, NULL);
}

const tutti_op tutti_op_sparse_to_dense = {
    .struct_size = sizeof(tutti_op),
    .name = "sparse_to_dense",
    .version = 1,
    .doc = "sparse_to_dense(indices, values, dense_shape): y = 0 but y[indices[i]] += values[i]",
    .category = "sparse",
    .min_inputs = 3,
    .max_inputs = 3,
    .outputs = 1,
    .flags = TUTTI_OP_FALLIBLE | TUTTI_OP_DYNAMIC,
    .infer = sparse_to_dense_infer,
    .gradient = sparse_to_dense_gradient,
    .cost = tutti__cost_move,
    .split = sparse_to_dense_split,
    .reference = sparse_to_dense_reference,
    .samples = samples,
};
