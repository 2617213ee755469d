/* simplify.c: algebraic simplification by a table of rules; see simplify.h for what a rule may do.
 */
#include "passes/simplify.h"

#include <string.h>

static const struct {
    const char *op; /* "*view", "*elementwise": every operator with that flag */
    tutti_rewrite_rule *rule;
} rules[] = {
    {"*view", tutti__simplify_view},
    {"*elementwise", tutti__simplify_broadcast_operand},
    {"abs", tutti__simplify_idempotent},
    {"add", tutti__simplify_add_zero},
    {"add", tutti__simplify_add_negated},
    {"all", tutti__simplify_reduce_nothing},
    {"any", tutti__simplify_reduce_nothing},
    {"argmax", tutti__simplify_position},
    {"argmin", tutti__simplify_position},
    {"broadcast_to", tutti__simplify_broadcast},
    {"cast", tutti__simplify_cast},
    {"ceil", tutti__simplify_idempotent},
    {"concat", tutti__simplify_whole},
    {"div", tutti__simplify_divide_by_one},
    {"div", tutti__simplify_divide_by_two},
    {"floor", tutti__simplify_idempotent},
    {"floordiv", tutti__simplify_divide_by_one},
    {"logical_and", tutti__simplify_same_operands},
    {"logical_not", tutti__simplify_involution},
    {"logical_or", tutti__simplify_same_operands},
    {"matmul", tutti__simplify_matmul},
    {"max", tutti__simplify_reduce_nothing},
    {"max", tutti__simplify_reduce_view},
    {"maximum", tutti__simplify_same_operands},
    {"mean", tutti__simplify_reduce_nothing},
    {"mean", tutti__simplify_reduce_view},
    {"min", tutti__simplify_reduce_nothing},
    {"min", tutti__simplify_reduce_view},
    {"minimum", tutti__simplify_same_operands},
    {"mul", tutti__simplify_mul_one},
    {"mul", tutti__simplify_mul_zero},
    {"neg", tutti__simplify_involution},
    {"neg", tutti__simplify_negated_sub},
    {"pad", tutti__simplify_whole},
    {"pow", tutti__simplify_divide_by_one},
    {"prod", tutti__simplify_reduce_nothing},
    {"relu", tutti__simplify_idempotent},
    {"relu6", tutti__simplify_idempotent},
    {"roll", tutti__simplify_whole},
    {"round", tutti__simplify_idempotent},
    {"slice", tutti__simplify_whole},
    {"split", tutti__simplify_whole},
    {"stack", tutti__simplify_whole},
    {"sub", tutti__simplify_sub_zero},
    {"sub", tutti__simplify_sub_negated},
    {"sum", tutti__simplify_reduce_nothing},
    {"sum", tutti__simplify_reduce_view},
    {"tile", tutti__simplify_whole},
    {"transpose", tutti__simplify_transpose},
    {"where", tutti__simplify_where},
};

static bool is_for(const char *op, const tutti_node *node)
{
    if (op[0] != '*')
        return strcmp(op, node->op->name) == 0;
    return (node->op->flags & (strcmp(op, "*view") == 0 ? TUTTI_OP_VIEW : TUTTI_OP_ELEMENTWISE)) !=
           0;
}

static bool types_are_known(const tutti_node *node)
{
    for (int i = 0; i < node->input_count; i++) {
        const tutti_type *type = tutti__edge_type(node->inputs[i]);
        if (type->handle || !tutti_type_is_static(type))
            return false;
    }
    return node->output_count >= 1 && tutti_type_is_static(&node->types[0]);
}

static tutti_status rule(tutti_rewrite *rewrite, tutti_node *node, tutti_edge *ret)
{
    if (!types_are_known(node))
        return TUTTI_OK;
    for (size_t i = 0; ret->node == NULL && i < TUTTI_COUNT(rules); i++)
        if (is_for(rules[i].op, node))
            TUTTI_TRY(rules[i].rule(rewrite, node, ret));
    return TUTTI_OK;
}

static tutti_status simplify_run(tutti_graph *graph, const tutti_pass_context *context,
                                 int *ret_changes)
{
    return tutti__rewrite_nodes(graph, context, rule, ret_changes);
}

const tutti_pass tutti_pass_simplify = {
    .name = "simplify",
    .doc = "algebraic rules that are exact: x * 1, double transposes, views of views, …",
    .stage = TUTTI_PASS_JOB,
    .order = 20,
    .run = simplify_run,
};
