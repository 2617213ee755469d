/* scatter_sub.c: v[indices[i]] -= rows[i]. */
#include "ops/state/assign.h"

static tutti_status scatter_sub_reference(const tutti_kernel_call *call)
{
    return tutti__scatter(call, TUTTI_COMBINE_SUB);
}

static const char *const samples[] = {
    "&f32[4,3] i64[3]{=2,0,2} f32[3,3]",
    "&i64[5] i32[]{=4} i64[]",
    "&f64[3,2] i64[0] f64[0,2]",
    NULL,
};

extern const tutti_op tutti_op_scatter_sub;

tutti_sym(tutti_scatter_sub)(tutti_sym variable, tutti_sym indices, tutti_sym rows)
{
    return tutti__nary(&tutti_op_scatter_sub, 3,
                       (tutti_sym[]){variable, tutti__value_of(indices), tutti__value_of(rows)}, 0,
                       NULL);
}

const tutti_op tutti_op_scatter_sub = {
    .struct_size = sizeof(tutti_op),
    .name = "scatter_sub",
    .version = 1,
    .doc = "scatter_sub(v, indices, rows): v[indices[i]] -= rows[i]; y = v",
    .category = "state",
    .min_inputs = 3,
    .max_inputs = 3,
    .outputs = 1,
    .flags = TUTTI_OP_UPDATES | TUTTI_OP_TAKES_HANDLE | TUTTI_OP_STATEFUL | TUTTI_OP_FALLIBLE,
    .infer = tutti__infer_scatter_numbers,
    .cost = tutti__cost_elementwise,
    .split = tutti__split_scatter,
    .reference = scatter_sub_reference,
    .samples = samples,
};
