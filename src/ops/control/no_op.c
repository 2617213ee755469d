/* no_op.c: a node to wait for. */
#include "ops/state/state.h"

static tutti_status no_op_infer(tutti_infer *node)
{
    return TUTTI_OK;
}
static tutti_status no_op_reference(const tutti_kernel_call *call)
{
    return TUTTI_OK;
}

static const char *const samples[] = {"", NULL};

extern const tutti_op tutti_op_no_op;

tutti_sym(tutti_no_op)(tutti_graph *graph)
{
    return tutti__build(graph, &tutti_op_no_op, NULL, 0, NULL, 0, NULL);
}

const tutti_op tutti_op_no_op = {
    .struct_size = sizeof(tutti_op),
    .name = "no_op",
    .version = 1,
    .doc = "no_op(): nothing",
    .category = "control",
    .outputs = 0,
    .flags = TUTTI_OP_STATEFUL | TUTTI_OP_NO_GRADIENT,
    .infer = no_op_infer,
    .reference = no_op_reference,
    .samples = samples,
};
