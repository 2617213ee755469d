/* scatter_update.c: v[indices[i]] = rows[i]. */
#include "ops/state/assign.h"

static tutti_status scatter_update_reference(const tutti_kernel_call *call)
{
    return tutti__scatter(call, TUTTI_COMBINE_SET);
}

static const char *const samples[] = {
    "&f32[4,3] i64[2]{=2,0} f32[2,3]",
    "&i32[5] i32[]{=3} i32[]",
    "&f32[3,2,4] i64[2,2]{=1,0,1,2} f32[2,2,2,4]",
    NULL,
};

extern const tutti_op tutti_op_scatter_update;

tutti_sym(tutti_scatter_update)(tutti_sym variable, tutti_sym indices, tutti_sym rows)
{
    return tutti__nary(&tutti_op_scatter_update, 3,
                       (tutti_sym[]){variable, tutti__value_of(indices), tutti__value_of(rows)}, 0,
                       NULL);
}

const tutti_op tutti_op_scatter_update = {
    .struct_size = sizeof(tutti_op),
    .name = "scatter_update",
    .version = 1,
    .doc = "scatter_update(v, indices, rows): v[indices[i]] = rows[i]; y = v",
    .category = "state",
    .min_inputs = 3,
    .max_inputs = 3,
    .outputs = 1,
    .flags = TUTTI_OP_UPDATES | TUTTI_OP_TAKES_HANDLE | TUTTI_OP_STATEFUL | TUTTI_OP_FALLIBLE,
    .infer = tutti__infer_scatter,
    .cost = tutti__cost_move,
    .split = tutti__split_scatter,
    .reference = scatter_update_reference,
    .samples = samples,
};
