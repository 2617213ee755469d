/* one_hot.c: rows with one element on. */
#include "ops/shape/rule.h"

static tutti_status one_hot_infer(tutti_infer *node)
{
    const tutti_type *indices = &node->inputs[0];
    int64_t dims[TUTTI_MAX_RANK + 1], depth = RULE_INT(node, "depth"),
                                      dtype = RULE_INT(node, "dtype");
    if (!tutti_dtype_is_int(indices->dtype))
        return RULE_FAIL(node, TUTTI_INVALID,
                         "indices are %s, need integers; convert them with tutti_cast",
                         tutti_dtype_name(indices->dtype));
    TUTTI_TRY(tutti__fill_dtype(node, dtype));
    TUTTI_TRY(tutti__fill_rule(node, (tutti_dtype)dtype, "on"));
    TUTTI_TRY(tutti__fill_rule(node, (tutti_dtype)dtype, "off"));
    if (depth < 0)
        return RULE_FAIL(node, TUTTI_INVALID, "depth is %lld, needs 0 or more", (long long)depth);
    memcpy(dims, indices->dims, sizeof indices->dims);
    dims[indices->rank] = depth;
    return tutti__shape_output(node, 0, (tutti_dtype)dtype, indices->rank + 1, dims);
}

static tutti_status one_hot_reference(const tutti_kernel_call *call)
{
    const tutti_view *indices = &call->inputs[0], *y = &call->outputs[0];
    int64_t count = tutti_view_count(indices), depth = RULE_INT(call, "depth");
    double on = RULE_FLOAT(call, "on");
    tutti__fill_view(y, RULE_FLOAT(call, "off"));
    for (int64_t i = 0; i < count; i++) {
        int64_t index = tutti_view_get_int(indices, i);
        if (index >= 0 && index < depth)
            tutti_view_set(y, i * depth + index, on);
    }
    return TUTTI_OK;
}

static int one_hot_split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    return tutti__split_other_axes(node, node->inputs[0].rank, capacity, ret);
}

extern const tutti_op tutti_op_one_hot;
tutti_sym tutti_one_hot_with(tutti_sym indices, int64_t depth, const tutti_one_hot_options *options)
{
    RULE_OPTIONS(tutti_one_hot_options, o, options);
    if (o.on == 0 && o.off == 0)
        o.on = 1;
    return TUTTI_NARY(&tutti_op_one_hot, ((tutti_sym[]){indices}), TUTTI_INT("depth", depth),
                      TUTTI_FLOAT("on", o.on), TUTTI_FLOAT("off", o.off),
                      TUTTI_INT("dtype", o.dtype ? o.dtype : TUTTI_F32));
}

static const tutti_attr_spec attrs[] = {
    {"depth", TUTTI_ATTR_INT, NULL},
    {"on", TUTTI_ATTR_FLOAT, "1"},
    {"off", TUTTI_ATTR_FLOAT, "0"},
    {"dtype", TUTTI_ATTR_INT, "f32"},
    {NULL},
};
static const char *const samples[] = {
    "i32[4]{0:5} | depth=5",
    "i64[2,3]{-1:4} | depth=3 on=2 off=-1 dtype=f64",
    "u8[]{0:3} | depth=3 dtype=bool",
    "i32[0] | depth=4",
    "i32[3] | depth=0",
    NULL,
};

const tutti_op tutti_op_one_hot = {
    .struct_size = sizeof(tutti_op),
    .name = "one_hot",
    .version = 1,
    .doc = "one_hot(indices; depth, on, off, dtype): y[.., j] = on if j = indices[..], else off",
    .category = "shape",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .flags = TUTTI_OP_NO_GRADIENT,
    .attrs = attrs,
    .infer = one_hot_infer,
    .cost = tutti__cost_move,
    .split = one_hot_split,
    .reference = one_hot_reference,
    .samples = samples,
};
