/* sgd_update_rows.c: gradient descent where the gradient is rows at indices; other rows and their
 * momentum rest. */
#include "ops/update/rule.h"

static const tutti_attr_spec attrs[] = {
    {"momentum", TUTTI_ATTR_FLOAT, "0"},
    {"nesterov", TUTTI_ATTR_INT, "false"},
    {"torch_form", TUTTI_ATTR_INT, "false"},
    TUTTI_UPDATE_ATTRS,
    {NULL},
};

static const char *const samples[] = {
    "&f32[4,3] i64[3]{=2,0,2} f32[3,3] f32[]{0.1:0.2}",
    "&f64[5] i32[2,2]{=1,4,4,4} f64[2,2] f32[]{0.1:0.2}",
    "&bf16[3,2] i64[0] bf16[0,2] f32[]{0.1:0.2}",
    "&f32[4,5] &f32[4,5] i64[3]{=2,0,2} f32[3,5] f32[]{0.1:0.2} bool[]{=1} | momentum=0.9",
    "&f32[4,3] i64[3]{=2,0,2} f32[3,3] f32[]{0.1:0.2} bool[]{=0}",
    NULL,
};

extern const tutti_op tutti_op_sgd_update_rows;

tutti_sym(tutti_sgd_update_rows)(tutti_sym variable, tutti_sym indices, tutti_sym rows,
                                 tutti_sym lr)
{
    tutti_sym inputs[] = {variable, tutti__value_of(indices), tutti__value_of(rows),
                          tutti__value_of(lr)};
    return tutti__nary(&tutti_op_sgd_update_rows, 4, inputs, 0, NULL);
}

const tutti_op tutti_op_sgd_update_rows = {
    .struct_size = sizeof(tutti_op),
    .name = "sgd_update_rows",
    .version = 1,
    .doc =
        "sgd_update_rows(v, [m,] indices, rows, lr[, apply]): sgd_update on the rows at the indices, equal ones summed first; y = v",
    .category = "update",
    .min_inputs = 4,
    .max_inputs = 7,
    .outputs = 1,
    .flags = TUTTI_UPDATE_FLAGS | TUTTI_OP_FALLIBLE,
    .attrs = attrs,
    .infer = tutti__update_infer,
    .cost = tutti__update_cost,
    .split = tutti__update_split,
    .reference = tutti__update_reference,
    .samples = samples,
};
