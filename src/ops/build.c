/* build.c: short ways to write builders and rules; see build.h. */
#include "ops/build.h"

#include <stdio.h>

tutti_graph *tutti__graph_of(int count, const tutti_sym *syms)
{
    for (int i = 0; i < count && syms; i++)
        if (tutti_sym_ok(syms[i]))
            return syms[i].node->graph;
    return NULL;
}

tutti_sym tutti__poison_of(const char *op, int count, const tutti_sym *syms)
{
    for (int i = 0; i < count && syms; i++) {
        if (syms[i].node || syms[i].index)
            continue;
        tutti_status status = tutti__sym_usable(NULL, syms[i], "input", i);
        return tutti__poison(NULL, status, "%s: %s", op, tutti_error_message());
    }
    return TUTTI_POISON;
}

tutti_sym tutti__nary(const tutti_op *op, int input_count, const tutti_sym *inputs, int attr_count,
                      const tutti_attr *attrs)
{
    if (input_count <= 0)
        return tutti__poison(NULL, TUTTI_INVALID, "%s: %d inputs are given; it takes at least 1",
                             op->name, input_count);
    if (inputs == NULL)
        return tutti__poison(NULL, TUTTI_INVALID, "%s: the list of %d inputs is NULL", op->name,
                             input_count);
    tutti_graph *graph = tutti__graph_of(input_count, inputs);
    if (graph == NULL)
        return tutti__poison_of(op->name, input_count, inputs);
    if (graph->error.status != TUTTI_OK)
        return TUTTI_POISON;
    return tutti__build(graph, op, NULL, input_count, inputs, attr_count, attrs);
}

tutti_sym tutti__unary(const tutti_op *op, tutti_sym x)
{
    return tutti__nary(op, 1, &x, 0, NULL);
}

tutti_sym tutti__binary(const tutti_op *op, tutti_sym a, tutti_sym b)
{
    return tutti__nary(op, 2, (tutti_sym[]){a, b}, 0, NULL);
}

bool tutti__usable(const char *op, tutti_sym x)
{
    if (!tutti_sym_ok(x)) {
        tutti__poison_of(op, 1, &x);
        return false;
    }
    tutti_status status = tutti__sym_usable(x.node->graph, x, "x", -1);
    if (status != TUTTI_OK)
        tutti__poison(x.node->graph, status, "%s: %s", op, tutti_error_message());
    return status == TUTTI_OK;
}

tutti_status tutti__rule_fail(const char *op, const char *name, tutti_status status,
                              const char *format, ...)
{
    char message[900];
    va_list list;
    va_start(list, format);
    vsnprintf(message, sizeof message, format, list);
    va_end(list);
    if (name == NULL || name[0] == '\0')
        return tutti_fail(status, "%s: %s", op, message);
    return tutti_fail(status, "%s '%s': %s", op, name, message);
}

tutti_status tutti__rule_axis(const tutti_infer *node, int64_t axis, int rank, int *ret_axis)
{
    char text[TUTTI_TYPE_TEXT] = "no input";
    if (axis >= -rank && axis < rank) {
        *ret_axis = (int)(axis < 0 ? axis + rank : axis);
        return TUTTI_OK;
    }
    if (node->input_count > 0)
        tutti_type_text(&node->inputs[0], text);
    if (rank == 0)
        return RULE_FAIL(
            node, TUTTI_INVALID,
            "axis %lld, but input %s is a scalar and has no axes; leave the axis out or "
            "give the input one with tutti_reshape",
            (long long)axis, text);
    return RULE_FAIL(node, TUTTI_INVALID, "axis %lld is outside [%d, %d) for input %s",
                     (long long)axis, -rank, rank, text);
}
