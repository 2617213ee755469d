/* group.c: a node that is done when the nodes it waits for are. */
#include "graph/scope.h"
#include "ops/state/state.h"

static tutti_status group_infer(tutti_infer *node)
{
    return TUTTI_OK;
}
static tutti_status group_reference(const tutti_kernel_call *call)
{
    return TUTTI_OK;
}

static const char *const samples[] = {"", NULL};

extern const tutti_op tutti_op_group;

tutti_sym(tutti_group)(tutti_graph *graph, const char *name, int count, const tutti_sym *nodes)
{
    tutti__control_push(graph, "group: node", count, nodes);
    tutti_sym group = tutti__build(graph, &tutti_op_group, name, 0, NULL, 0, NULL);
    tutti_control_pop(graph);
    return group;
}

const tutti_op tutti_op_group = {
    .struct_size = sizeof(tutti_op),
    .name = "group",
    .version = 1,
    .doc = "group(): done when the nodes it waits for are done",
    .category = "control",
    .outputs = 0,
    .flags = TUTTI_OP_STATEFUL | TUTTI_OP_NO_GRADIENT,
    .infer = group_infer,
    .reference = group_reference,
    .samples = samples,
};
