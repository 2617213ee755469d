/* cast(x, dtype): y = x as another element type. Floats to integers truncate toward zero and
 * saturate, NaN gives 0; integers to narrower ones keep the low bits; numbers to bool ask x != 0.
 */
#include "ops/elementwise/elementwise.h"

#include <math.h>

extern const tutti_op tutti_op_cast;

tutti_sym(tutti_cast)(tutti_sym x, tutti_dtype dtype)
{
    return TUTTI_NARY(&tutti_op_cast, ((tutti_sym[]){x}), TUTTI_INT("dtype", dtype));
}

static tutti_status cast_infer(tutti_infer *node)
{
    char text[TUTTI_TYPE_TEXT];
    int64_t dtype = RULE_INT(node, "dtype");
    if (dtype <= TUTTI_NO_DTYPE || dtype >= TUTTI_DTYPE_END)
        return RULE_FAIL(node, TUTTI_INVALID, "%lld is no element type; give TUTTI_F32 or its like",
                         (long long)dtype);
    if ((dtype == TUTTI_STRING) != (node->inputs[0].dtype == TUTTI_STRING))
        return RULE_FAIL(node, TUTTI_INVALID, "input is %s, wanted %s; strings do not convert",
                         tutti_type_text(&node->inputs[0], text),
                         tutti_dtype_name((tutti_dtype)dtype));
    if (dtype == TUTTI_STRING)
        return RULE_FAIL(node, TUTTI_INVALID, "input is %s already; strings need no cast",
                         tutti_type_text(&node->inputs[0], text));
    TUTTI_TRY(tutti_infer_same(node));
    node->outputs[0].dtype = (tutti_dtype)dtype;
    return TUTTI_OK;
}

/* dx = dy as x's element type. Integers and bools pass no gradient. */
static tutti_status cast_gradient(tutti_gradient_call *node)
{
    tutti_dtype from = tutti_sym_type(node->inputs[0]).dtype;
    if (tutti_dtype_is_float(from) && tutti_dtype_is_float((tutti_dtype)RULE_INT(node, "dtype")))
        node->input_grads[0] = tutti_cast(node->output_grads[0], from);
    return TUTTI_OK;
}

/* Storing the result rounds floats, saturates integers and makes 0 of NaN. */
static double cast_scalar(const double *x, const tutti_attr *attrs, int attr_count)
{
    tutti_dtype dtype = (tutti_dtype)tutti_attr_int(attrs, attr_count, "dtype");
    if (dtype == TUTTI_BOOL)
        return x[0] != 0;
    return tutti_dtype_is_int(dtype) ? trunc(x[0]) : x[0];
}

static int64_t cast_scalar_int(const int64_t *x, const tutti_attr *attrs, int attr_count)
{
    return tutti_attr_int(attrs, attr_count, "dtype") == TUTTI_BOOL ? x[0] != 0 : x[0];
}

static const tutti_attr_spec attributes[] = {{"dtype", TUTTI_ATTR_INT, NULL}, {0}};

static const char *const samples[] = {
    "f32[2,3] | dtype=f64",
    "f64[5] | dtype=f32",
    "f32[4] | dtype=bf16",
    "f16[2,2] | dtype=f32",
    "f32[6]{=-300,-1.5,0.5,1.5,300,nan} | dtype=i8",
    "f32[3]{=0,0.5,nan} | dtype=bool",
    "i64[3]{=-1,300,9007199254740993} | dtype=u8",
    "i32[2,3] | dtype=f32",
    "bool[4] | dtype=i64",
    NULL,
};

const tutti_op tutti_op_cast = {
    .struct_size = sizeof(tutti_op),
    .name = "cast",
    .version = 1,
    .doc = "cast(x, dtype): y = x as another element type",
    .category = "element-wise",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .flags = TUTTI_OP_ELEMENTWISE | TUTTI_OP_LINEAR,
    .attrs = attributes,
    .infer = cast_infer,
    .gradient = cast_gradient,
    .cost = tutti__cost_elementwise,
    .split = tutti_split_elementwise,
    .reference = tutti_reference_elementwise,
    .scalar = cast_scalar,
    .scalar_int = cast_scalar_int,
    .samples = samples,
};
