/* axis_slice.c: the block that a rank has of a dimension: of n it begins at floor(i n / size). */
#include "ops/comm/comm.h"
#include "ops/shape/slice.h"

static tutti_status axis_slice_infer(tutti_infer *node)
{
    int dim;
    TUTTI_TRY(tutti__need_axis(node));
    TUTTI_TRY(tutti__need_dim_attr(node, "dim", &dim));
    int64_t n = node->inputs[0].dims[dim], size = RULE_INT(node, "size");
    node->outputs[0] = node->inputs[0];
    node->outputs[0].dims[dim] = n >= 0 && n % size == 0 ? n / size : TUTTI_ANY;
    return TUTTI_OK;
}

/* Of blocks that are all of one size. */
static tutti_status axis_slice_reference(const tutti_kernel_call *call)
{
    const tutti_view *x = &call->inputs[0], *y = &call->outputs[0];
    int64_t dim = RULE_INT(call, "dim"), from[TUTTI_MAX_RANK];
    tutti_move move = {.rank = x->rank, .size = tutti_dtype_size(x->dtype)};
    dim += dim < 0 ? x->rank : 0;
    tutti__strides_of(x->rank, x->dims, from);
    memcpy(move.from, from, sizeof from);
    tutti__strides_of(y->rank, y->dims, move.to);
    memcpy(move.dims, y->dims, (size_t)y->rank * sizeof *move.dims);
    int64_t index = tutti_view_get_int(&call->inputs[1], 0), size = RULE_INT(call, "size");
    if (index < 0 || index >= size || y->dims[dim] * size != x->dims[dim])
        return RULE_FAIL(call, TUTTI_OUT_OF_RANGE, "has no block %lld of %lld along dimension %lld",
                         (long long)index, (long long)size, (long long)dim);
    int64_t start = index * y->dims[dim] * from[dim];
    tutti__move(call, &move, tutti__element(x, start), y->data);
    return TUTTI_OK;
}

static const tutti_attr_spec attrs[] = {
    TUTTI_COMM_ATTRS,
    {"dim", TUTTI_ATTR_INT, "0"},
    {0},
};

static const char *const samples[] = {
    "f32[4,3] i32[]{=1} | axis=data size=2",
    "f32[2,6] i32[]{=2} | axis=data size=3 dim=1",
    NULL,
};

const tutti_op tutti_op_axis_slice = {
    .struct_size = sizeof(tutti_op),
    .name = "axis_slice",
    .version = 1,
    .doc = "axis_slice(x, i): y = block i of the size blocks of x along dim",
    .category = "communication",
    .min_inputs = 2,
    .max_inputs = 2,
    .outputs = 1,
    .flags = TUTTI_OP_NO_GRADIENT | TUTTI_OP_FALLIBLE,
    .attrs = attrs,
    .infer = axis_slice_infer,
    .cost = tutti__cost_comm,
    .reference = axis_slice_reference,
    .samples = samples,
};
