/* adam_update_rows.c: Adam where the gradient is rows at indices; other rows and their moments
 * rest. */
#include "ops/update/rule.h"

static const tutti_attr_spec attrs[] = {
    {"beta1", TUTTI_ATTR_FLOAT, "0.9"},
    {"beta2", TUTTI_ATTR_FLOAT, "0.999"},
    {"epsilon", TUTTI_ATTR_FLOAT, "1e-7"},
    {"amsgrad", TUTTI_ATTR_INT, "false"},
    {"torch_form", TUTTI_ATTR_INT, "false"},
    TUTTI_UPDATE_ATTRS,
    {NULL},
};

static const char *const samples[] = {
    "&f32[4,3] &f32[4,3] &f32[4,3]{0.1:1} i64[3]{=2,0,2} f32[3,3] f32[]{0.1:0.2} i64[]{=1}",
    "&f64[5] &f64[5] &f64[5]{0.1:1} i32[2]{=1,4} f64[2] f32[]{0.1:0.2} i64[]{=7} | torch_form=true",
    "&f32[4,9] &f32[4,9] &f32[4,9]{0.1:1} &f32[4,9]{0.1:1} i64[3]{=2,0,2} f32[3,9] f32[]{0.1:0.2} i64[]{=1} bool[]{=1} | amsgrad=true",
    "&f32[4,3] &f32[4,3] &f32[4,3]{0.1:1} i64[3]{=2,0,2} f32[3,3] f32[]{0.1:0.2} i64[]{=1} bool[]{=0}",
    "&f32[4,3] &f32[4,3] &f32[4,3]{0.1:1} i64[3]{=2,0,2} f32[3,3] f32[]{0.1:0.2} i64[]{=3} f32[]{0.3:0.6} | scaled=true",
    NULL,
};

extern const tutti_op tutti_op_adam_update_rows;

tutti_sym tutti_adam_update_rows_with(tutti_sym variable, tutti_sym m, tutti_sym s,
                                      tutti_sym indices, tutti_sym rows, tutti_sym lr,
                                      tutti_sym step, const tutti_adam_options *options)
{
    double epsilon = options->torch_form ? 1e-8 : 1e-7;
    tutti_sym inputs[] = {
        variable,
        m,
        s,
        tutti__value_of(indices),
        tutti__value_of(rows),
        tutti__value_of(lr),
        tutti__value_of(step),
    };
    return TUTTI_NARY(&tutti_op_adam_update_rows, inputs,
                      TUTTI_FLOAT("beta1", options->beta1 != 0 ? options->beta1 : 0.9),
                      TUTTI_FLOAT("beta2", options->beta2 != 0 ? options->beta2 : 0.999),
                      TUTTI_FLOAT("epsilon", options->epsilon != 0 ? options->epsilon : epsilon),
                      TUTTI_INT("torch_form", options->torch_form));
}

const tutti_op tutti_op_adam_update_rows = {
    .struct_size = sizeof(tutti_op),
    .name = "adam_update_rows",
    .version = 1,
    .doc =
        "adam_update_rows(v, m, s, [largest,] indices, rows, lr, t[, apply]): adam_update on the rows at the indices, equal ones summed first; y = v",
    .category = "update",
    .min_inputs = 7,
    .max_inputs = 10,
    .outputs = 1,
    .flags = TUTTI_UPDATE_FLAGS | TUTTI_OP_FALLIBLE,
    .attrs = attrs,
    .infer = tutti__update_infer,
    .cost = tutti__update_cost,
    .split = tutti__update_split,
    .reference = tutti__update_reference,
    .samples = samples,
};
