/* identity.c: y = x. */
#include "ops/state/state.h"

static const char *const samples[] = {
    "f32[2,3]", "f32[]", "i64[5]", "string[3]", "bf16[0,4]", NULL,
};

extern const tutti_op tutti_op_identity;

tutti_sym(tutti_identity)(tutti_sym x)
{
    return tutti__unary(&tutti_op_identity, x);
}

const tutti_op tutti_op_identity = {
    .struct_size = sizeof(tutti_op),
    .name = "identity",
    .version = 1,
    .doc = "identity(x): y = x",
    .category = "graph",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .flags = TUTTI_OP_VIEW | TUTTI_OP_LINEAR,
    .infer = tutti_infer_same,
    .gradient = tutti__gradient_pass,
    .cost = tutti__cost_move,
    .split = tutti__split_first,
    .reference = tutti__reference_copy,
    .samples = samples,
};
