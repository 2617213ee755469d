/* is_initialized.c: whether a variable has a value yet. */
#include "ops/state/state.h"

static tutti_status is_initialized_infer(tutti_infer *node)
{
    TUTTI_TRY(tutti__need_variable(node, 0));
    node->outputs[0] = tutti_type_make(TUTTI_BOOL, 0, NULL);
    return TUTTI_OK;
}

/* The view of a variable that was never assigned has no data. */
static tutti_status is_initialized_reference(const tutti_kernel_call *call)
{
    tutti_view_set_int(&call->outputs[0], 0, call->inputs[0].data != NULL);
    return TUTTI_OK;
}

static const char *const samples[] = {
    "&f32[2,3]",
    "&i64[]",
    NULL,
};

extern const tutti_op tutti_op_is_initialized;

tutti_sym(tutti_is_initialized)(tutti_sym variable)
{
    return tutti__unary(&tutti_op_is_initialized, variable);
}

const tutti_op tutti_op_is_initialized = {
    .struct_size = sizeof(tutti_op),
    .name = "is_initialized",
    .version = 1,
    .doc = "is_initialized(v): y = true once v was assigned",
    .category = "state",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .flags = TUTTI_OP_TAKES_HANDLE | TUTTI_OP_STATEFUL | TUTTI_OP_HOST | TUTTI_OP_NO_GRADIENT,
    .infer = is_initialized_infer,
    .reference = is_initialized_reference,
    .samples = samples,
};
