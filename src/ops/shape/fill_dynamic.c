/* fill_dynamic.c: one value in a shape that is known only when it runs. With reshape_like and
 * broadcast_like, which look at its shape alone, it stands for shapes that were computed. */
#include "ops/shape/rule.h"
#include "tensor/type.h"

/* What is said of the shape beforehand, dims, must be so. */
static bool is_as_said(int rank, const int64_t *dims, int hints, const int64_t *hint)
{
    for (int i = 0; i < rank && i < hints; i++)
        if (hint[i] >= 0 && dims[i] >= 0 && dims[i] != hint[i])
            return false;
    return hints == 0 || hints == rank;
}

#define OTHER_SHAPE(node, rank, shape, hints, said)                                                \
    RULE_FAIL(node, TUTTI_INVALID,                                                                 \
              "the shape that it is given is %s, its dims say %s; give TUTTI_ANY where a "         \
              "dimension is not known",                                                            \
              tutti__dims_text(rank, shape, (char[TUTTI_TYPE_TEXT]){0}),                           \
              tutti__dims_text(hints, said, (char[TUTTI_TYPE_TEXT]){0}))

static tutti_status fill_dynamic_infer(tutti_infer *node)
{
    char text[TUTTI_TYPE_TEXT];
    const tutti_type *shape = &node->inputs[0];
    const int64_t *hint;
    int64_t dims[TUTTI_MAX_RANK];
    int hints = RULE_INTS(node, "dims", &hint);
    tutti_dtype dtype = (tutti_dtype)RULE_INT(node, "dtype");
    if (shape->dtype != TUTTI_I64 || shape->rank != 1 || shape->dims[0] > TUTTI_MAX_RANK)
        return RULE_FAIL(node, TUTTI_INVALID, "the shape is %s, needs i64 with one axis of 0 to %d",
                         tutti_type_text(shape, text), TUTTI_MAX_RANK);
    if (shape->dims[0] < 0 && hints == 0)
        return RULE_FAIL(node, TUTTI_INVALID, "the length of the shape must be known");
    int rank = shape->dims[0] >= 0 ? (int)shape->dims[0] : hints;
    if (hints != 0 && hints != rank)
        return RULE_FAIL(node, TUTTI_INVALID, "dims has %d entries, the shape %d", hints, rank);
    TUTTI_TRY(tutti__fill_dtype(node, RULE_INT(node, "dtype")));
    TUTTI_TRY(tutti__fill_rule(node, dtype, "value"));
    for (int i = 0; i < rank; i++) {
        dims[i] = hints > 0 && hint[i] >= 0 ? hint[i] : TUTTI_ANY;
        if (node->values && node->values[0])
            dims[i] = tutti_tensor_get_int(node->values[0], i);
        if (dims[i] < TUTTI_ANY)
            return RULE_FAIL(node, TUTTI_INVALID, "dimension %d is %lld", i, (long long)dims[i]);
    }
    if (!is_as_said(rank, dims, hints, hint))
        return OTHER_SHAPE(node, rank, dims, hints, hint);
    return tutti__shape_output(node, 0, dtype, rank, dims);
}

static tutti_status fill_dynamic_reference(const tutti_kernel_call *call)
{
    int64_t dims[TUTTI_MAX_RANK];
    const int64_t *hint;
    int rank = (int)call->inputs[0].dims[0], hints = RULE_INTS(call, "dims", &hint);
    for (int i = 0; i < rank; i++) {
        dims[i] = tutti_view_get_int(&call->inputs[0], i);
        if (dims[i] < 0)
            return RULE_FAIL(call, TUTTI_INVALID, "dimension %d is %lld", i, (long long)dims[i]);
    }
    if (!is_as_said(rank, dims, hints, hint))
        return OTHER_SHAPE(call, rank, dims, hints, hint);
    TUTTI_TRY(tutti_kernel_call_allocate(call, 0, rank, dims));
    tutti__fill_view(&call->outputs[0], RULE_FLOAT(call, "value"));
    return TUTTI_OK;
}

extern const tutti_op tutti_op_fill_dynamic;
tutti_sym(tutti_fill_dynamic)(tutti_sym shape, tutti_dtype dtype, double value, int rank,
                              const int64_t *dims)
{
    return TUTTI_NARY(&tutti_op_fill_dynamic, ((tutti_sym[]){shape}), TUTTI_INT("dtype", dtype),
                      TUTTI_FLOAT("value", value), TUTTI_INTS("dims", rank, dims));
}

static const tutti_attr_spec attrs[] = {
    {"dtype", TUTTI_ATTR_INT, "f32"},
    {"value", TUTTI_ATTR_FLOAT, "0"},
    {"dims", TUTTI_ATTR_INTS, "[]"}, /* what is known of the shape; -1 where it is not */
    {0},
};

static const char *const samples[] = {
    "i64[2]{=2,3} | value=1.5",
    "i64[3]{=1,0,2} | dtype=i32 value=7",
    "i64[0]",
    "i64[2]{=4,2} | dims=[-1,2] value=-1 dtype=f16",
    NULL,
};

const tutti_op tutti_op_fill_dynamic = {
    .struct_size = sizeof(tutti_op),
    .name = "fill_dynamic",
    .version = 1,
    .doc = "fill_dynamic(shape, dtype, value): y[...] = value, of the shape that is given as data",
    .category = "shape",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .flags = TUTTI_OP_DYNAMIC | TUTTI_OP_FALLIBLE | TUTTI_OP_NO_GRADIENT,
    .attrs = attrs,
    .infer = fill_dynamic_infer,
    .cost = tutti__cost_move,
    .reference = fill_dynamic_reference,
    .samples = samples,
};
