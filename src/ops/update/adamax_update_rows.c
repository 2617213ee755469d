/* adamax_update_rows.c: Adamax where the gradient is rows at indices; other rows and their slots
 * rest. */
#include "ops/update/rule.h"

static const tutti_attr_spec attrs[] = {
    {"beta1", TUTTI_ATTR_FLOAT, "0.9"},
    {"beta2", TUTTI_ATTR_FLOAT, "0.999"},
    {"epsilon", TUTTI_ATTR_FLOAT, "1e-7"},
    {"torch_form", TUTTI_ATTR_INT, "false"},
    TUTTI_UPDATE_ATTRS,
    {NULL},
};

static const char *const samples[] = {
    "&f32[4,3] &f32[4,3] &f32[4,3]{0.1:1} i64[3]{=2,0,2} f32[3,3] f32[]{0.1:0.2} i64[]{=1}",
    "&f64[5] &f64[5] &f64[5]{0.1:1} i32[2]{=1,4} f64[2] f32[]{0.1:0.2} i64[]{=7} bool[]{=1} | torch_form=true",
    "&f32[4,5] &f32[4,5] &f32[4,5]{0.1:1} i64[2]{=2,0} f32[2,5] f32[]{0.1:0.2} i64[]{=7} bool[]{=0}",
    NULL,
};

const tutti_op tutti_op_adamax_update_rows = {
    .struct_size = sizeof(tutti_op),
    .name = "adamax_update_rows",
    .version = 1,
    .doc =
        "adamax_update_rows(v, m, u, indices, rows, lr, t[, apply]): adamax_update on the rows at the indices, equal ones summed first; y = v",
    .category = "update",
    .min_inputs = 7,
    .max_inputs = 9,
    .outputs = 1,
    .flags = TUTTI_UPDATE_FLAGS | TUTTI_OP_FALLIBLE,
    .attrs = attrs,
    .infer = tutti__update_infer,
    .cost = tutti__update_cost,
    .split = tutti__update_split,
    .reference = tutti__update_reference,
    .samples = samples,
};
