/* rules.c: shape rules that look into sub-graphs; see control.h. */
#include "ops/control/control.h"

tutti_graph *tutti__attr_graph(const tutti_attr *attrs, int count, const char *name)
{
    const tutti_attr *attr = tutti_attr_find(attrs, count, name);
    return attr ? attr->value.graph : NULL;
}

tutti_status tutti__need_parameters(const tutti_infer *node, const tutti_graph *graph,
                                    const char *part, int count, const tutti_type *types)
{
    char own[TUTTI_TYPE_TEXT], given[TUTTI_TYPE_TEXT];
    for (size_t n = 0; n < graph->nodes.count; n++) {
        const tutti_node *parameter = graph->nodes.data[n];
        if (parameter->dead || !tutti__is(parameter, "parameter"))
            continue;
        int64_t index = tutti__int(parameter, "index");
        if (index >= count)
            return RULE_FAIL(node, TUTTI_INVALID, "the %s wants an argument %lld, there are %d",
                             part, (long long)index, count);
        if (types[index].handle || !tutti__types_agree(&types[index], &parameter->types[0]))
            return RULE_FAIL(node, TUTTI_INVALID, "argument %lld is %s, the %s takes %s",
                             (long long)index, tutti_type_text(&types[index], given), part,
                             tutti_type_text(&parameter->types[0], own));
    }
    return TUTTI_OK;
}

/* What a sub-graph takes as argument i; NULL: it does not look at it. */
static const tutti_type *parameter_type(const tutti_graph *graph, int64_t i)
{
    for (size_t n = 0; n < graph->nodes.count; n++)
        if (!graph->nodes.data[n]->dead && tutti__is(graph->nodes.data[n], "parameter") &&
            tutti__int(graph->nodes.data[n], "index") == i)
            return &graph->nodes.data[n]->types[0];
    return NULL;
}

/* What a loop variable is after any number of rounds: dimensions that both sides know. Where the
 * step takes a dimension that it does not know, rounds may differ in it. */
static tutti_status rules_settle(const tutti_infer *node, int i, const tutti_graph *body,
                                 tutti_type *ret)
{
    char a[TUTTI_TYPE_TEXT], b[TUTTI_TYPE_TEXT];
    const tutti_type *start = &node->inputs[i], *step = tutti__edge_type(body->results.data[i]),
                     *taken = parameter_type(body, i);
    tutti_type loose = *start;
    for (int axis = 0; axis < start->rank; axis++)
        if (!taken || taken->dims[axis] == TUTTI_ANY)
            loose.dims[axis] = TUTTI_ANY;
    if (step->handle || !tutti__types_agree(&loose, step))
        return RULE_FAIL(
            node, TUTTI_INVALID,
            "loop variable %d starts as %s, but the step gives %s; a loop variable keeps "
            "its type",
            i, tutti_type_text(start, a), tutti_type_text(step, b));
    *ret = *start;
    for (int axis = 0; axis < start->rank; axis++)
        if (step->dims[axis] != start->dims[axis])
            ret->dims[axis] = TUTTI_ANY;
    return TUTTI_OK;
}

tutti_status tutti__infer_loop(tutti_infer *node)
{
    const tutti_graph *condition = tutti__attr_graph(node->attrs, node->attr_count, "cond_graph");
    const tutti_graph *body = tutti__attr_graph(node->attrs, node->attr_count, "body_graph");
    int64_t loop_count = RULE_INT(node, "loop_count");
    char text[TUTTI_TYPE_TEXT];
    if (loop_count < 1 || loop_count > node->input_count || loop_count > node->output_count)
        return RULE_FAIL(node, TUTTI_INVALID,
                         "attribute 'loop_count' is %lld; there are %d inputs and %d outputs",
                         (long long)loop_count, node->input_count, node->output_count);
    TUTTI_TRY(
        tutti__need_parameters(node, condition, "condition", node->input_count, node->inputs));
    TUTTI_TRY(tutti__need_parameters(node, body, "step", node->input_count, node->inputs));
    if (condition->results.count != 1)
        return RULE_FAIL(node, TUTTI_INVALID, "the condition has %zu results, needs 1",
                         condition->results.count);
    const tutti_type *answer = tutti__edge_type(condition->results.data[0]);
    if (answer->dtype != TUTTI_BOOL || answer->rank != 0)
        return RULE_FAIL(node, TUTTI_INVALID, "the condition gives %s, needs a bool scalar",
                         tutti_type_text(answer, text));
    if ((int64_t)body->results.count != loop_count)
        return RULE_FAIL(node, TUTTI_INVALID, "the step has %zu results for %lld loop variables",
                         body->results.count, (long long)loop_count);
    for (int i = 0; i < loop_count; i++)
        TUTTI_TRY(rules_settle(node, i, body, &node->outputs[i]));
    return TUTTI_OK;
}
