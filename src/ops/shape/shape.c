/* shape.c: the dimensions of a tensor as a value. */
#include "ops/shape/rule.h"

static tutti_status shape_infer(tutti_infer *node)
{
    return tutti__shape_output(node, 0, TUTTI_I64, 1, (int64_t[]){node->inputs[0].rank});
}

static tutti_status shape_reference(const tutti_kernel_call *call)
{
    for (int i = 0; i < call->inputs[0].rank; i++)
        tutti_view_set_int(&call->outputs[0], i, call->inputs[0].dims[i]);
    return TUTTI_OK;
}

/* Only the type of the input is looked at, and it costs nothing to read. */
static void shape_cost(const tutti_infer *node, tutti_cost *ret)
{
    *ret = (tutti_cost){.bytes_written = 8.0 * node->inputs[0].rank};
}

extern const tutti_op tutti_op_shape;
tutti_sym(tutti_shape)(tutti_sym x)
{
    return tutti__unary(&tutti_op_shape, x);
}

static const char *const samples[] = {
    "f32[2,3]",
    "i32[]",
    "bool[0,4,1]",
    NULL,
};

const tutti_op tutti_op_shape = {
    .struct_size = sizeof(tutti_op),
    .name = "shape",
    .version = 1,
    .doc = "shape(x): y[i] = size of axis i of x, as i64[rank]",
    .category = "shape",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .flags = TUTTI_OP_NO_GRADIENT,
    .infer = shape_infer,
    .cost = shape_cost,
    .reference = shape_reference,
    .samples = samples,
};
