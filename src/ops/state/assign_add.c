/* assign_add.c: v += x. */
#include "ops/state/assign.h"

static tutti_status assign_add_reference(const tutti_kernel_call *call)
{
    return tutti__assign(call, TUTTI_COMBINE_ADD);
}

static const char *const samples[] = {
    "&f32[2,3] f32[2,3]", "&i64[] i64[]", "&bf16[5] bf16[5]", "&u8[4] u8[4]", NULL,
};

extern const tutti_op tutti_op_assign_add;

tutti_sym(tutti_assign_add)(tutti_sym variable, tutti_sym value)
{
    return tutti__binary(&tutti_op_assign_add, variable, tutti__value_of(value));
}

const tutti_op tutti_op_assign_add = {
    .struct_size = sizeof(tutti_op),
    .name = "assign_add",
    .version = 1,
    .doc = "assign_add(v, x): v = v + x; y = v",
    .category = "state",
    .min_inputs = 2,
    .max_inputs = 2,
    .outputs = 1,
    .flags = TUTTI_OP_UPDATES | TUTTI_OP_TAKES_HANDLE | TUTTI_OP_STATEFUL,
    .infer = tutti__infer_assign_numbers,
    .cost = tutti__cost_elementwise,
    .split = tutti__split_assign,
    .reference = assign_add_reference,
    .samples = samples,
};
