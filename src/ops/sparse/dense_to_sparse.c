/* dense_to_sparse.c: the elements that are not zero, and where they stand. */
#include "ops/sparse/sparse.h"

/* x [d0,...] -> indices i64 [n,r], values [n], dense_shape i64 [r] */
static tutti_status dense_to_sparse_infer(tutti_infer *node)
{
    char text[TUTTI_TYPE_TEXT];
    const tutti_type *x = &node->inputs[0];
    if (!tutti_dtype_is_float(x->dtype) && !tutti_dtype_is_int(x->dtype))
        return RULE_FAIL(node, TUTTI_INVALID, "input is %s, needs numbers",
                         tutti_type_text(x, text));
    node->outputs[0] = tutti_type_make(TUTTI_I64, 2, (int64_t[]){TUTTI_ANY, x->rank});
    node->outputs[1] = tutti_type_make(x->dtype, 1, (int64_t[]){TUTTI_ANY});
    node->outputs[2] = tutti_type_make(TUTTI_I64, 1, (int64_t[]){x->rank});
    return TUTTI_OK;
}

static bool is_zero(const tutti_view *x, int64_t i)
{
    return tutti_dtype_is_float(x->dtype) ? tutti_view_get(x, i) == 0
                                          : tutti_view_get_int(x, i) == 0;
}

static void position(const tutti_view *x, int64_t index, int64_t row, const tutti_view *indices)
{
    for (int axis = x->rank - 1; axis >= 0; axis--) {
        tutti_view_set_int(indices, row * x->rank + axis, index % x->dims[axis]);
        index /= x->dims[axis];
    }
}

static tutti_status dense_to_sparse_reference(const tutti_kernel_call *call)
{
    const tutti_view *x = &call->inputs[0];
    int64_t count = tutti_view_count(x), found = 0, row = 0;
    for (int64_t i = 0; i < count; i++)
        found += !is_zero(x, i);
    TUTTI_TRY(tutti__call_shape(call, 0, 2, (int64_t[]){found, x->rank}));
    TUTTI_TRY(tutti__call_shape(call, 1, 1, (int64_t[]){found}));
    for (int64_t i = 0; i < count; i++) {
        if (is_zero(x, i))
            continue;
        position(x, i, row, &call->outputs[0]);
        size_t size = tutti_dtype_size(x->dtype);
        memcpy((char *)call->outputs[1].data + (size_t)row * size,
               (const char *)x->data + (size_t)i * size, size);
        row++;
    }
    for (int axis = 0; axis < x->rank; axis++)
        tutti_view_set_int(&call->outputs[2], axis, x->dims[axis]);
    return TUTTI_OK;
}

static tutti_status dense_to_sparse_gradient(tutti_gradient_call *node)
{
    tutti_sparse_sym grad = {node->outputs[0], node->output_grads[1], node->outputs[2]};
    if (node->wanted[0] && tutti_sym_ok(node->output_grads[1]))
        node->input_grads[0] = tutti_reshape_like(tutti_to_dense(grad), node->inputs[0]);
    return TUTTI_OK;
}

static const char *const samples[] = {
    "f32[2,3]", "i32[3,2]{=0,1,0,0,-2,3}", "i64[5]{=0,3,0,0,1}", "f64[]", "f32[0,2]", NULL,
};

extern const tutti_op tutti_op_dense_to_sparse;

tutti_sparse_sym(tutti_to_sparse)(tutti_sym x)
{
    tutti_sym node = tutti__unary(&tutti_op_dense_to_sparse, x);
    return (tutti_sparse_sym){tutti_sym_output(node, 0), tutti_sym_output(node, 1),
                              tutti_sym_output(node, 2)};
}

const tutti_op tutti_op_dense_to_sparse = {
    .struct_size = sizeof(tutti_op),
    .name = "dense_to_sparse",
    .version = 1,
    .doc = "dense_to_sparse(x): (indices, values, shape) of the elements of x that are not 0",
    .category = "sparse",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 3,
    .flags = TUTTI_OP_DYNAMIC,
    .infer = dense_to_sparse_infer,
    .gradient = dense_to_sparse_gradient,
    .cost = tutti__cost_move,
    .reference = dense_to_sparse_reference,
    .samples = samples,
};
