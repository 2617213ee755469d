/* read.c: a variable's value. */
#include "ops/state/state.h"

static tutti_status read_infer(tutti_infer *node)
{
    TUTTI_TRY(tutti__need_variable(node, 0));
    return tutti_infer_same(node);
}

static const char *const samples[] = {
    "&f32[2,3]",
    "&i64[]",
    "&bf16[4]",
    NULL,
};

extern const tutti_op tutti_op_read;

tutti_sym(tutti_read)(tutti_sym variable)
{
    return tutti__unary(&tutti_op_read, variable);
}

const tutti_op tutti_op_read = {
    .struct_size = sizeof(tutti_op),
    .name = "read",
    .version = 1,
    .doc = "read(v): y = v",
    .category = "state",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .flags = TUTTI_OP_VIEW | TUTTI_OP_TAKES_HANDLE,
    .infer = read_infer,
    .gradient = tutti__gradient_pass,
    .cost = tutti__cost_move,
    .split = tutti__split_first,
    .reference = tutti__reference_copy,
    .samples = samples,
};
