/* pull_rows.c: rows of a variable, from the parameter servers that hold them. */
#include "ops/comm/comm.h"

static tutti_status pull_rows_infer(tutti_infer *node)
{
    tutti_type whole, *y = &node->outputs[0];
    const tutti_type *indices = &node->inputs[0];
    if (RULE_STRING(node, "variable")[0] == '\0')
        return RULE_FAIL(node, TUTTI_INVALID, "needs the name of a variable");
    TUTTI_TRY(tutti__attrs_type(node, &whole));
    if (!tutti_dtype_is_int(indices->dtype) || whole.rank < 1 ||
        indices->rank + whole.rank - 1 > TUTTI_MAX_RANK)
        return RULE_FAIL(node, TUTTI_INVALID, "needs integer indices of the rows of a variable");
    *y = (tutti_type){.dtype = whole.dtype, .rank = indices->rank + whole.rank - 1};
    for (int d = 0; d < y->rank; d++)
        y->dims[d] = d < indices->rank ? indices->dims[d] : whole.dims[d - indices->rank + 1];
    return TUTTI_OK;
}

/* The runner reaches the servers and never comes here. */
static tutti_status pull_rows_reference(const tutti_kernel_call *call)
{
    return RULE_FAIL(call, TUTTI_UNSUPPORTED, "runs only under a strategy with parameter servers");
}

static const tutti_attr_spec attrs[] = {
    {"variable", TUTTI_ATTR_STRING, NULL}, {"number", TUTTI_ATTR_INT, "0"}, /* among those of the
                                                                               run */
    {"dtype", TUTTI_ATTR_INT, NULL},       {"dims", TUTTI_ATTR_INTS, "[]"}, {0},
};

const tutti_op tutti_op_pull_rows = {
    .struct_size = sizeof(tutti_op),
    .name = "pull_rows",
    .version = 1,
    .doc = "pull_rows(indices): y = the rows that the parameter servers have of the variable",
    .category = "communication",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .flags = TUTTI_OP_STATEFUL | TUTTI_OP_BLOCKING | TUTTI_OP_HOST,
    .attrs = attrs,
    .infer = pull_rows_infer,
    .cost = tutti__cost_comm,
    .reference = pull_rows_reference,
};
