/* parameter.c: an argument of a sub-graph. */
#include "ops/state/state.h"

static tutti_status parameter_infer(tutti_infer *node)
{
    if (RULE_INT(node, "index") < 0)
        return RULE_FAIL(node, TUTTI_INVALID, "attribute 'index' is %lld, needs 0 or more",
                         (long long)RULE_INT(node, "index"));
    return tutti__attrs_type(node, &node->outputs[0]);
}

/* Whoever runs the sub-graph binds its parameters and never comes here. */
static tutti_status parameter_reference(const tutti_kernel_call *call)
{
    return RULE_FAIL(call, TUTTI_NOT_FOUND,
                     "is an argument of a sub-graph and has no value outside it");
}

static const tutti_attr_spec attrs[] = {
    {"index", TUTTI_ATTR_INT, NULL},
    {"dtype", TUTTI_ATTR_INT, NULL},
    {"dims", TUTTI_ATTR_INTS, "[]"},
    {0},
};

extern const tutti_op tutti_op_parameter;

tutti_sym(tutti_parameter)(tutti_graph *graph, int index, tutti_type type)
{
    tutti_attr given[] = {TUTTI_INT("index", index), TUTTI_INT("dtype", type.dtype),
                          tutti__dims_attr(&type)};
    return tutti__build(graph, &tutti_op_parameter, NULL, 0, NULL, TUTTI_COUNT(given), given);
}

const tutti_op tutti_op_parameter = {
    .struct_size = sizeof(tutti_op),
    .name = "parameter",
    .version = 1,
    .doc = "parameter(index, dtype, dims): y = argument `index` of the sub-graph it stands in",
    .category = "graph",
    .outputs = 1,
    .flags = TUTTI_OP_STATEFUL | TUTTI_OP_NO_GRADIENT,
    .attrs = attrs,
    .infer = parameter_infer,
    .reference = parameter_reference,
};
