/* size.c: the number of elements as a value. */
#include "ops/shape/rule.h"

static tutti_status size_infer(tutti_infer *node)
{
    uint32_t mask;
    TUTTI_TRY(tutti__shape_axes(node, "axes", node->inputs[0].rank, &mask));
    return tutti__shape_output(node, 0, TUTTI_I64, 0, NULL);
}

static tutti_status size_reference(const tutti_kernel_call *call)
{
    const tutti_view *x = &call->inputs[0];
    uint32_t mask = tutti__axes_mask(x->rank, call->attrs, call->attr_count, "axes");
    int64_t dims[TUTTI_MAX_RANK];
    for (int i = 0; i < x->rank; i++)
        dims[i] = mask >> i & 1 ? x->dims[i] : 1;
    tutti_view_set_int(&call->outputs[0], 0, tutti__dims_product(x->rank, dims));
    return TUTTI_OK;
}

/* Only the type of the input is looked at, and it costs nothing to read. */
static void size_cost(const tutti_infer *node, tutti_cost *ret)
{
    TUTTI_UNUSED(node);
    *ret = (tutti_cost){.bytes_written = 8};
}

extern const tutti_op tutti_op_size;
tutti_sym(tutti_size)(tutti_sym x, int count, const int64_t *axes)
{
    return TUTTI_NARY(&tutti_op_size, ((tutti_sym[]){x}), TUTTI_INTS("axes", count, axes));
}

static const tutti_attr_spec attrs[] = {
    {"axes", TUTTI_ATTR_INTS, "[]"},
    {NULL},
};
static const char *const samples[] = {
    "f32[2,3]", "i32[]", "f32[2,3,4] | axes=[0,-1]", "bool[0,4,1]", NULL,
};

const tutti_op tutti_op_size = {
    .struct_size = sizeof(tutti_op),
    .name = "size",
    .version = 1,
    .doc =
        "size(x; axes): y = product of the sizes of the named axes of x, of all without names, as i64",
    .category = "shape",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .flags = TUTTI_OP_NO_GRADIENT,
    .attrs = attrs,
    .infer = size_infer,
    .cost = size_cost,
    .reference = size_reference,
    .samples = samples,
};
