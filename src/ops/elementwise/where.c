/* where(c, a, b): y = a where c, else b. c is bool; a and b have one element type, any; all three
 * broadcast. */
#include "ops/build.h"
#include "ops/elementwise/elementwise.h"

#include <string.h>

#include "ops/strided.h"

extern const tutti_op tutti_op_where;

tutti_sym(tutti_where)(tutti_sym condition, tutti_sym a, tutti_sym b)
{
    return tutti__nary(&tutti_op_where, 3, (tutti_sym[]){condition, a, b}, 0, NULL);
}

/* The broadcast of an output so far with one more input. */
static tutti_status where_join(const tutti_infer *node, const tutti_type *more, tutti_type *type)
{
    char a[TUTTI_TYPE_TEXT], b[TUTTI_TYPE_TEXT];
    int rank = 0;
    int64_t dims[TUTTI_MAX_RANK];
    if (tutti_broadcast_dims(type->rank, type->dims, more->rank, more->dims, &rank, dims) !=
        TUTTI_OK)
        return RULE_FAIL(node, TUTTI_INVALID, "shapes of %s and %s do not broadcast",
                         tutti_type_text(type, a), tutti_type_text(more, b));
    *type = tutti_type_make(type->dtype, rank, dims);
    return TUTTI_OK;
}

static tutti_status where_infer(tutti_infer *node)
{
    char a[TUTTI_TYPE_TEXT], b[TUTTI_TYPE_TEXT];
    const tutti_type *in = node->inputs;
    if (in[0].dtype != TUTTI_BOOL)
        return RULE_FAIL(node, TUTTI_INVALID,
                         "the condition is %s, needs bools; make them with a comparison or with "
                         "tutti_cast(x, TUTTI_BOOL)",
                         tutti_type_text(&in[0], a));
    if (in[1].dtype != in[2].dtype)
        return RULE_FAIL(node, TUTTI_INVALID,
                         "input 1 is %s, input 2 is %s; element types must agree: convert one of "
                         "them with tutti_cast",
                         tutti_type_text(&in[1], a), tutti_type_text(&in[2], b));
    tutti_type type = in[1];
    type.handle = false;
    TUTTI_TRY(where_join(node, &in[2], &type));
    TUTTI_TRY(where_join(node, &in[0], &type));
    node->outputs[0] = type;
    return TUTTI_OK;
}

/* da = dy where c, else 0; db = dy where not c, else 0; both summed over repeated axes. */
static tutti_status where_gradient(tutti_gradient_call *node)
{
    tutti_sym dy = node->output_grads[0], c = node->inputs[0], none = tutti__scalar_like(dy, 0);
    if (node->wanted[1])
        tutti__gradient_give(node, 1, tutti_where(c, dy, none));
    if (node->wanted[2])
        tutti__gradient_give(node, 2, tutti_where(c, none, dy));
    return TUTTI_OK;
}

/* Moves bytes, so that every element type, and every bit of a NaN, comes through. */
static tutti_status where_reference(const tutti_kernel_call *call)
{
    const tutti_view *in = call->inputs;
    char *out = call->outputs[0].data;
    size_t size = tutti_dtype_size(call->outputs[0].dtype);
    int64_t count = tutti_view_count(&call->outputs[0]);
    tutti_strided walk;
    tutti__strided_start(call, &walk);
    for (int64_t n = 0; n < count; n++, tutti__strided_next(&walk)) {
        int from = ((const uint8_t *)in[0].data)[walk.at[0]] ? 1 : 2;
        memcpy(out + (size_t)n * size, (const char *)in[from].data + (size_t)walk.at[from] * size,
               size);
    }
    return TUTTI_OK;
}

static double where_scalar(const double *x, const tutti_attr *attrs, int attr_count)
{
    return x[0] != 0 ? x[1] : x[2];
}

static int64_t where_scalar_int(const int64_t *x, const tutti_attr *attrs, int attr_count)
{
    return x[0] != 0 ? x[1] : x[2];
}

static const char *const samples[] = {
    "bool[2,3] f32[2,3] f32[2,3]",
    "bool[4,1] f32[3] f32[]",
    "bool[] f64[2] f64[2,2]",
    "bool[5]{=1,0,1,0,0} i64[5] i64[1]",
    "bool[4] f16[4] f16[4]",
    "bool[3] bool[3] bool[]",
    "bool[3]{=1,0,1} string[3]{=a,b,c} string[]{=none}",
    NULL,
};

const tutti_op tutti_op_where = {
    .struct_size = sizeof(tutti_op),
    .name = "where",
    .version = 1,
    .doc = "where(c, a, b): y = a where c is true, else b",
    .category = "element-wise",
    .min_inputs = 3,
    .max_inputs = 3,
    .outputs = 1,
    .flags = TUTTI_OP_ELEMENTWISE,
    .infer = where_infer,
    .gradient = where_gradient,
    .cost = tutti__cost_elementwise,
    .split = tutti_split_elementwise,
    .reference = where_reference,
    .scalar = where_scalar,
    .scalar_int = where_scalar_int,
    .samples = samples,
};
