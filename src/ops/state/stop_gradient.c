/* stop_gradient.c: y = x, of which x's gradient knows nothing. */
#include "ops/state/state.h"

static const char *const samples[] = {
    "f32[2,3]",
    "f64[]",
    "i32[4]",
    NULL,
};

extern const tutti_op tutti_op_stop_gradient;

tutti_sym(tutti_stop_gradient)(tutti_sym x)
{
    return tutti__unary(&tutti_op_stop_gradient, x);
}

const tutti_op tutti_op_stop_gradient = {
    .struct_size = sizeof(tutti_op),
    .name = "stop_gradient",
    .version = 1,
    .doc = "stop_gradient(x): y = x, dy/dx = 0",
    .category = "graph",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .flags = TUTTI_OP_VIEW | TUTTI_OP_NO_GRADIENT | TUTTI_OP_LINEAR,
    .infer = tutti_infer_same,
    .cost = tutti__cost_move,
    .split = tutti__split_first,
    .reference = tutti__reference_copy,
    .samples = samples,
};
