/* elementwise.c: what the element-wise operators share; see elementwise.h. Also the builders that
 * are not operators of their own: tutti__scalar_like, tutti_mul, tutti_add. */
#include "ops/elementwise/elementwise.h"
#include "ops/build.h"

#include <math.h>

tutti_status tutti__infer_float(tutti_infer *node)
{
    char text[TUTTI_TYPE_TEXT];
    if (!tutti_dtype_is_float(node->inputs[0].dtype))
        return RULE_FAIL(node, TUTTI_INVALID,
                         "input is %s, needs floats; convert it with tutti_cast(x, TUTTI_F32)",
                         tutti_type_text(&node->inputs[0], text));
    return tutti_infer_same(node);
}

tutti_status tutti__infer_float_test(tutti_infer *node)
{
    TUTTI_TRY(tutti__infer_float(node));
    node->outputs[0].dtype = TUTTI_BOOL;
    return TUTTI_OK;
}

static tutti_status need_number(const tutti_infer *node)
{
    char text[TUTTI_TYPE_TEXT];
    for (int i = 0; i < node->input_count; i++) {
        tutti_dtype dtype = node->inputs[i].dtype;
        if (!tutti_dtype_is_float(dtype) && !tutti_dtype_is_int(dtype))
            return RULE_FAIL(node, TUTTI_INVALID, "input %d is %s, needs floats or integers%s", i,
                             tutti_type_text(&node->inputs[i], text),
                             dtype == TUTTI_BOOL ? "; convert it with tutti_cast, or use "
                                                   "tutti_logical_and and its kin"
                                                 : "");
    }
    return TUTTI_OK;
}

tutti_status tutti__infer_number(tutti_infer *node)
{
    TUTTI_TRY(need_number(node));
    return tutti_infer_same(node);
}

tutti_status tutti__infer_numbers(tutti_infer *node)
{
    TUTTI_TRY(need_number(node));
    return tutti_infer_broadcast(node);
}

tutti_status tutti__infer_bools(tutti_infer *node)
{
    char text[TUTTI_TYPE_TEXT];
    for (int i = 0; i < node->input_count; i++)
        if (node->inputs[i].dtype != TUTTI_BOOL)
            return RULE_FAIL(
                node, TUTTI_INVALID,
                "input %d is %s, needs bools; compare it (tutti_not_equal) or convert it "
                "with tutti_cast(x, TUTTI_BOOL)",
                i, tutti_type_text(&node->inputs[i], text));
    return tutti_infer_broadcast(node);
}

void tutti__cost_transcendental(const tutti_infer *node, tutti_cost *ret)
{
    tutti__cost_elementwise(node, ret);
    ret->flops *= 16;
}

void tutti__gradient_give(tutti_gradient_call *node, int index, tutti_sym grad)
{
    if (node->wanted[index])
        node->input_grads[index] = tutti_unbroadcast(grad, node->inputs[index]);
}

bool tutti__integer_fits(double value, tutti_dtype dtype)
{
    switch (dtype) {
    case TUTTI_I8:
        return value >= INT8_MIN && value <= INT8_MAX;
    case TUTTI_U8:
        return value >= 0 && value <= UINT8_MAX;
    case TUTTI_I32:
        return value >= INT32_MIN && value <= INT32_MAX;
    case TUTTI_I64:
        return value >= -9223372036854775808.0 && value < 9223372036854775808.0;
    case TUTTI_BOOL:
        return value == 0 || value == 1;
    default:
        return false;
    }
}

tutti_sym tutti__scalar_like(tutti_sym x, double value)
{
    if (!tutti__usable("scalar_like", x))
        return TUTTI_POISON;
    tutti_graph *graph = tutti_sym_graph(x);
    tutti_dtype dtype = tutti_sym_type(x).dtype;
    tutti_tensor *tensor = NULL;
    if (!tutti_dtype_is_float(dtype) &&
        (value != floor(value) || !tutti__integer_fits(value, dtype)))
        return tutti__poison(graph, TUTTI_INVALID,
                             "the number %g cannot be a constant of type %s; convert the other "
                             "operand with tutti_cast(x, TUTTI_F32)",
                             value, tutti_dtype_name(dtype));
    if (tutti_tensor_create(dtype, 0, NULL, &tensor) != TUTTI_OK)
        return tutti__poison(graph, TUTTI_NO_MEMORY, "no memory for a constant");
    if (tutti_dtype_is_float(dtype))
        tutti_tensor_set(tensor, 0, value);
    else
        tutti_tensor_set_int(tensor, 0, (int64_t)value);
    tutti_sym constant =
        tutti_apply_op(graph, "constant", 0, NULL, 1, &TUTTI_TENSOR_ATTR("value", tensor));
    tutti_tensor_release(tensor);
    return constant;
}

tutti_sym tutti_binary_(tutti_binary_fn_ *op, tutti_sym a, tutti_sym b)
{
    return op(a, b);
}

/* A number of the user's beside `x`. As a double, integers from 2^53 on may have been rounded. */
static tutti_sym number_beside(tutti_sym x, double value)
{
    if (tutti_sym_ok(x) && tutti_sym_type(x).dtype == TUTTI_I64 && fabs(value) >= 0x1p53 &&
        tutti__integer_fits(value, TUTTI_I64))
        return tutti__poison(tutti_sym_graph(x), TUTTI_INVALID,
                             "the number %.0f has come as a double, which is not exact from 2^53 "
                             "on; give it as tutti_ints(graph, number)",
                             value);
    return tutti__scalar_like(x, value);
}

tutti_sym tutti_binary_left_(tutti_binary_fn_ *op, double a, tutti_sym b)
{
    return op(number_beside(b, a), b);
}

tutti_sym tutti_binary_right_(tutti_binary_fn_ *op, tutti_sym a, double b)
{
    return op(a, number_beside(a, b));
}

tutti_sym tutti_where_left_(tutti_sym condition, double a, tutti_sym b)
{
    return (tutti_where)(condition, number_beside(b, a), b);
}

tutti_sym tutti_where_right_(tutti_sym condition, tutti_sym a, double b)
{
    return (tutti_where)(condition, a, number_beside(a, b));
}
