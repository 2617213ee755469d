/* fill.c: a constant of one value. */
#include <math.h>

#include "ops/elementwise/elementwise.h"
#include "ops/shape/rule.h"

static tutti_status fill_infer(tutti_infer *node)
{
    const int64_t *dims;
    int rank = RULE_INTS(node, "dims", &dims);
    int64_t dtype = RULE_INT(node, "dtype");
    TUTTI_TRY(tutti__fill_dtype(node, dtype));
    for (int i = 0; i < rank; i++)
        if (dims[i] < 0)
            return RULE_FAIL(node, TUTTI_INVALID, "dimension %d is %lld, needs 0 or more", i,
                             (long long)dims[i]);
    TUTTI_TRY(tutti__fill_rule(node, (tutti_dtype)dtype, "value"));
    return tutti__shape_output(node, 0, (tutti_dtype)dtype, rank, dims);
}

static tutti_status fill_reference(const tutti_kernel_call *call)
{
    tutti__fill_view(&call->outputs[0], RULE_FLOAT(call, "value"));
    return TUTTI_OK;
}

static int fill_split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    tutti_cuts cuts = {.capacity = capacity, .ret = ret};
    for (int i = 0; i < node->outputs[0].rank; i++) {
        tutti_split *way = tutti__cut(&cuts);
        way->outputs[0] = (int8_t)i;
        way->attr = "dims";
        way->attr_index = i;
    }
    return cuts.count;
}

tutti_status tutti__fill_dtype(const tutti_infer *node, int64_t dtype)
{
    if (dtype == TUTTI_STRING)
        return RULE_FAIL(node, TUTTI_INVALID,
                         "makes numbers and bools, not strings; give these as a tensor");
    return tutti_dtype_size((tutti_dtype)dtype) > 0
               ? TUTTI_OK
               : RULE_FAIL(node, TUTTI_INVALID, "dtype %lld is no type of numbers or bools",
                           (long long)dtype);
}

/* 2^63 is the double that the largest i64 becomes. */
tutti_status tutti__fill_check(tutti_dtype dtype, double value)
{
    if (!tutti_dtype_is_int(dtype) ||
        (value == trunc(value) && tutti__integer_fits(value, dtype)) ||
        (dtype == TUTTI_I64 && value == 0x1p63))
        return TUTTI_OK;
    return tutti_fail(TUTTI_INVALID, "%s has no number %g; give one that it has or another type",
                      tutti_dtype_name(dtype), value);
}

tutti_status tutti__fill_rule(const tutti_infer *node, tutti_dtype dtype, const char *attr)
{
    tutti_status status = tutti__fill_check(dtype, RULE_FLOAT(node, attr));
    return status == TUTTI_OK ? status : RULE_FAIL(node, status, "%s", tutti_error_message());
}

extern const tutti_op tutti_op_fill;
tutti_sym(tutti_fill)(tutti_graph *graph, tutti_dtype dtype, double value, int rank,
                      const int64_t *dims)
{
    tutti_attr given[] = {TUTTI_INTS("dims", rank, dims), TUTTI_FLOAT("value", value),
                          TUTTI_INT("dtype", dtype)};
    return tutti__build(graph, &tutti_op_fill, NULL, 0, NULL, TUTTI_COUNT(given), given);
}

static const tutti_attr_spec attrs[] = {
    {"dims", TUTTI_ATTR_INTS, "[]"},
    {"value", TUTTI_ATTR_FLOAT, "0"},
    {"dtype", TUTTI_ATTR_INT, "f32"},
    {NULL},
};
static const char *const samples[] = {
    "| dims=[2,3] value=1.5", "| value=-2", "| dims=[4] value=7 dtype=i32", "| dims=[3,0]", NULL,
};

const tutti_op tutti_op_fill = {
    .struct_size = sizeof(tutti_op),
    .name = "fill",
    .version = 1,
    .doc = "fill(; dims, value, dtype): y = value, in the shape dims",
    .category = "shape",
    .min_inputs = 0,
    .max_inputs = 0,
    .outputs = 1,
    .flags = TUTTI_OP_NO_GRADIENT,
    .attrs = attrs,
    .infer = fill_infer,
    .cost = tutti__cost_move,
    .split = fill_split,
    .reference = fill_reference,
    .samples = samples,
};
