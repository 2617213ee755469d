/* simplify_arithmetic.c: rules about numbers; see simplify.h. */
#include <math.h>
#include <string.h>

#include "passes/simplify.h"

static bool is_splat(tutti_edge edge, double value)
{
    double known;
    return tutti__splat_of(edge, &known) && known == value;
}

/* Input `x` stands for the node when it has the node's type: not when the other input widens it. */
static void stand_for(const tutti_node *node, int x, tutti_edge *ret)
{
    if (tutti_type_equal(&node->types[0], tutti__edge_type(node->inputs[x])))
        *ret = node->inputs[x];
}

static void drop_neutral(const tutti_node *node, double neutral, bool either_side, tutti_edge *ret)
{
    if (is_splat(node->inputs[1], neutral))
        stand_for(node, 0, ret);
    if (ret->node == NULL && either_side && is_splat(node->inputs[0], neutral))
        stand_for(node, 1, ret);
}

tutti_status tutti__simplify_add_zero(tutti_rewrite *rewrite, tutti_node *node, tutti_edge *ret)
{
    TUTTI_UNUSED(rewrite);
    drop_neutral(node, 0, true, ret);
    return TUTTI_OK;
}

tutti_status tutti__simplify_sub_zero(tutti_rewrite *rewrite, tutti_node *node, tutti_edge *ret)
{
    TUTTI_UNUSED(rewrite);
    drop_neutral(node, 0, false, ret);
    return TUTTI_OK;
}

tutti_status tutti__simplify_mul_one(tutti_rewrite *rewrite, tutti_node *node, tutti_edge *ret)
{
    TUTTI_UNUSED(rewrite);
    drop_neutral(node, 1, true, ret);
    return TUTTI_OK;
}

/* floordiv of floats rounds, so 1 is neutral for integers only. */
tutti_status tutti__simplify_divide_by_one(tutti_rewrite *rewrite, tutti_node *node,
                                           tutti_edge *ret)
{
    TUTTI_UNUSED(rewrite);
    if (!tutti__is(node, "floordiv") || tutti_dtype_is_int(node->types[0].dtype))
        drop_neutral(node, 1, false, ret);
    return TUTTI_OK;
}

/* Not of floats: NaN * 0 and infinity * 0 are NaN. */
tutti_status tutti__simplify_mul_zero(tutti_rewrite *rewrite, tutti_node *node, tutti_edge *ret)
{
    const tutti_type *type = &node->types[0];
    tutti_attr attrs[] = {TUTTI_INTS("dims", type->rank, type->dims),
                          TUTTI_INT("dtype", type->dtype)};
    if (!tutti_dtype_is_int(type->dtype) ||
        (!is_splat(node->inputs[0], 0) && !is_splat(node->inputs[1], 0)))
        return TUTTI_OK;
    return tutti__rewrite_add(rewrite, node, "fill", 0, NULL, (int)TUTTI_COUNT(attrs), attrs, ret);
}

/* Powers of two whose reciprocal is a normal number of the type. */
static bool has_exact_reciprocal(double value, tutti_dtype dtype)
{
    int exponent, most = dtype == TUTTI_F64 ? 1022 : dtype == TUTTI_F16 ? 14 : 126;
    double mantissa = frexp(value, &exponent);
    return fabs(mantissa) == 0.5 && exponent - 1 <= most && exponent - 1 >= -most;
}

/* Both sides are the same real number, rounded once. */
tutti_status tutti__simplify_divide_by_two(tutti_rewrite *rewrite, tutti_node *node,
                                           tutti_edge *ret)
{
    double divisor;
    tutti_edge factors[2] = {node->inputs[0]};
    const tutti_type *type = &node->types[0];
    if (!tutti__splat_of(node->inputs[1], &divisor) ||
        !tutti_type_equal(type, tutti__edge_type(factors[0])) ||
        !has_exact_reciprocal(divisor, type->dtype))
        return TUTTI_OK;
    TUTTI_TRY(tutti__rewrite_scalar(rewrite, node, type->dtype, 1 / divisor, &factors[1]));
    return tutti__rewrite_add(rewrite, node, "mul", 2, factors, 0, NULL, ret);
}

tutti_status tutti__simplify_add_negated(tutti_rewrite *rewrite, tutti_node *node, tutti_edge *ret)
{
    for (int i = 1; i >= 0; i--) {
        tutti_edge y = node->inputs[i];
        if (tutti__is(y.node, "neg"))
            return tutti__rewrite_add(rewrite, node, "sub", 2,
                                      (tutti_edge[]){node->inputs[1 - i], y.node->inputs[0]}, 0,
                                      NULL, ret);
    }
    return TUTTI_OK;
}

tutti_status tutti__simplify_sub_negated(tutti_rewrite *rewrite, tutti_node *node, tutti_edge *ret)
{
    tutti_edge y = node->inputs[1];
    if (!tutti__is(y.node, "neg"))
        return TUTTI_OK;
    return tutti__rewrite_add(rewrite, node, "add", 2,
                              (tutti_edge[]){node->inputs[0], y.node->inputs[0]}, 0, NULL, ret);
}

tutti_status tutti__simplify_negated_sub(tutti_rewrite *rewrite, tutti_node *node, tutti_edge *ret)
{
    const tutti_node *sub = node->inputs[0].node;
    if (!tutti__is(sub, "sub"))
        return TUTTI_OK;
    return tutti__rewrite_add(rewrite, node, "sub", 2,
                              (tutti_edge[]){sub->inputs[1], sub->inputs[0]}, 0, NULL, ret);
}

tutti_status tutti__simplify_involution(tutti_rewrite *rewrite, tutti_node *node, tutti_edge *ret)
{
    TUTTI_UNUSED(rewrite);
    const tutti_node *inner = node->inputs[0].node;
    if (inner->op == node->op)
        *ret = inner->inputs[0];
    return TUTTI_OK;
}

tutti_status tutti__simplify_idempotent(tutti_rewrite *rewrite, tutti_node *node, tutti_edge *ret)
{
    TUTTI_UNUSED(rewrite);
    if (node->inputs[0].node->op == node->op)
        *ret = node->inputs[0];
    return TUTTI_OK;
}

tutti_status tutti__simplify_same_operands(tutti_rewrite *rewrite, tutti_node *node,
                                           tutti_edge *ret)
{
    TUTTI_UNUSED(rewrite);
    if (node->inputs[0].node == node->inputs[1].node &&
        node->inputs[0].index == node->inputs[1].index)
        *ret = node->inputs[0];
    return TUTTI_OK;
}

/* Whether every value of `narrow` is one of `wide`. */
static bool holds_all_of(tutti_dtype wide, tutti_dtype narrow)
{
    switch (wide) {
    case TUTTI_F64:
        return narrow != TUTTI_I64 && narrow != TUTTI_STRING;
    case TUTTI_F32:
        return narrow == TUTTI_F16 || narrow == TUTTI_BF16 || narrow == TUTTI_I8 ||
               narrow == TUTTI_U8 || narrow == TUTTI_BOOL;
    case TUTTI_I64:
        return tutti_dtype_is_int(narrow) || narrow == TUTTI_BOOL;
    case TUTTI_I32:
        return narrow == TUTTI_I8 || narrow == TUTTI_U8 || narrow == TUTTI_BOOL;
    default:
        return narrow == TUTTI_BOOL;
    }
}

tutti_status tutti__simplify_cast(tutti_rewrite *rewrite, tutti_node *node, tutti_edge *ret)
{
    TUTTI_UNUSED(rewrite);
    tutti_edge x = node->inputs[0];
    stand_for(node, 0, ret);
    if (ret->node != NULL || !tutti__is(x.node, "cast"))
        return TUTTI_OK;
    tutti_edge source = x.node->inputs[0];
    if (tutti_type_equal(&node->types[0], tutti__edge_type(source)) &&
        holds_all_of(tutti__edge_type(x)->dtype, node->types[0].dtype))
        *ret = source;
    return TUTTI_OK;
}

tutti_status tutti__simplify_position(tutti_rewrite *rewrite, tutti_node *node, tutti_edge *ret)
{
    tutti_node *cast = node->inputs[0].node;
    if (!tutti__is(cast, "cast"))
        return TUTTI_OK;
    tutti_edge x = cast->inputs[0];
    tutti_dtype narrow = tutti__edge_type(x)->dtype, wide = cast->types[0].dtype;
    if (!tutti_dtype_is_float(narrow) || !tutti_dtype_is_float(wide) || !holds_all_of(wide, narrow))
        return TUTTI_OK;
    return tutti__rewrite_add(rewrite, node, node->op->name, 1, &x, node->attr_count, node->attrs,
                              ret);
}

tutti_status tutti__simplify_where(tutti_rewrite *rewrite, tutti_node *node, tutti_edge *ret)
{
    TUTTI_UNUSED(rewrite);
    double condition;
    if (tutti__splat_of(node->inputs[0], &condition))
        stand_for(node, condition != 0 ? 1 : 2, ret);
    return TUTTI_OK;
}

/* Puts another operand in, if the node's type stays what it is. */
static bool try_operand(tutti_node *node, int i, tutti_edge operand)
{
    tutti_edge before = node->inputs[i];
    tutti_type type;
    node->inputs[i] = operand;
    if (tutti__node_infer(node, NULL, &type) == TUTTI_OK &&
        tutti_type_equal(&type, &node->types[0]))
        return true;
    node->inputs[i] = before;
    return false;
}

/* Whether an input besides `except` has the output's dimensions, so that `except` may be smaller.
 */
static bool others_span(const tutti_node *node, int except)
{
    for (int i = 0; i < node->input_count; i++)
        if (i != except && tutti__same_dims(tutti__edge_type(node->inputs[i]), &node->types[0]))
            return true;
    return false;
}

tutti_status tutti__simplify_broadcast_operand(tutti_rewrite *rewrite, tutti_node *node,
                                               tutti_edge *ret)
{
    TUTTI_UNUSED(ret);
    for (int i = 0; i < node->input_count && node->output_count == 1; i++) {
        const tutti_node *input = node->inputs[i].node;
        if (!others_span(node, i) || input->control_count > 0)
            continue;
        tutti_edge operand = {0};
        if (tutti__is(input, "broadcast_to"))
            operand = input->inputs[0];
        else if (tutti__is(input, "fill") && input->types[0].rank > 0)
            TUTTI_TRY(tutti__rewrite_scalar(rewrite, input, input->types[0].dtype,
                                            tutti__float(input, "value"), &operand));
        if (operand.node != NULL && try_operand(node, i, operand))
            rewrite->changes++;
    }
    return TUTTI_OK;
}
