/* assign.c: v = x. */
#include "ops/state/assign.h"

static tutti_status assign_reference(const tutti_kernel_call *call)
{
    return tutti__assign(call, TUTTI_COMBINE_SET);
}

static const tutti_attr_spec attrs[] = {
    {"initializer", TUTTI_ATTR_INT, "0"}, /* 1: part of tutti_initialize_variables */
    {0},
};

static const char *const samples[] = {
    "&f32[2,3] f32[2,3]", "&i64[] i64[]", "&bool[5] bool[5]", "&f32[0,4] f32[0,4]", NULL,
};

extern const tutti_op tutti_op_assign;

tutti_sym(tutti_assign)(tutti_sym variable, tutti_sym value)
{
    return tutti__binary(&tutti_op_assign, variable, tutti__value_of(value));
}

const tutti_op tutti_op_assign = {
    .struct_size = sizeof(tutti_op),
    .name = "assign",
    .version = 1,
    .doc = "assign(v, x): v = x; y = x",
    .category = "state",
    .min_inputs = 2,
    .max_inputs = 2,
    .outputs = 1,
    .flags = TUTTI_OP_UPDATES | TUTTI_OP_OVERWRITES | TUTTI_OP_TAKES_HANDLE | TUTTI_OP_STATEFUL,
    .attrs = attrs,
    .infer = tutti__infer_assign,
    .cost = tutti__cost_move,
    .split = tutti__split_assign,
    .reference = assign_reference,
    .samples = samples,
};
