/* string_to_number.c: numbers in decimal text, white space around them apart. */
#include "io/number.h"
#include "ops/text/strings.h"

static tutti_status string_to_number_infer(tutti_infer *node)
{
    tutti_dtype dtype = (tutti_dtype)RULE_INT(node, "dtype");
    if (!tutti_dtype_is_float(dtype) && !tutti_dtype_is_int(dtype))
        return RULE_FAIL(node, TUTTI_INVALID, "makes %s of strings, knows floats and integers",
                         tutti_dtype_name(dtype));
    return tutti__infer_of_strings(node, dtype);
}

static tutti_string trim(tutti_string x)
{
    while (x.size > 0 && tutti__is_space(x.data[x.size - 1]))
        x.size--;
    while (x.size > 0 && tutti__is_space(x.data[0]))
        x.data++, x.size--;
    return x;
}

/* Whether the integer is a value of the type. */
static bool string_to_number_fits(const tutti_view *y, int64_t i, int64_t value)
{
    tutti_view_set_int(y, i, value);
    return tutti_view_get_int(y, i) == value;
}

static tutti_status string_to_number_reference(const tutti_kernel_call *call)
{
    const tutti_string *x = call->inputs[0].data;
    const tutti_view *y = &call->outputs[0];
    int64_t count = tutti_view_count(y), whole;
    bool ints = tutti_dtype_is_int(y->dtype);
    for (int64_t i = 0; i < count; i++) {
        tutti_string text = trim(x[i]);
        double value;
        bool good = ints ? tutti__integer_parse(text.data, (size_t)text.size, &whole) &&
                               string_to_number_fits(y, i, whole)
                         : tutti__number_parse(text.data, (size_t)text.size, &value);
        if (!good)
            return RULE_FAIL(call, TUTTI_INVALID, "element %lld is '%.*s', which is no %s",
                             (long long)i, (int)(x[i].size < 80 ? x[i].size : 80), x[i].data,
                             tutti_dtype_name(y->dtype));
        if (!ints)
            tutti_view_set(y, i, value);
    }
    return TUTTI_OK;
}

extern const tutti_op tutti_op_string_to_number;
tutti_sym(tutti_string_to_number)(tutti_sym x, tutti_dtype dtype)
{
    return TUTTI_NARY(&tutti_op_string_to_number, ((tutti_sym[]){x}), TUTTI_INT("dtype", dtype));
}

static const tutti_attr_spec attrs[] = {
    {"dtype", TUTTI_ATTR_INT, "f32"},
    {NULL},
};

static const char *const samples[] = {
    "string[3]{=1,-2.5,1e3}",
    "string[2,2]{=1,2,-3,4} | dtype=i64",
    "string[0] | dtype=f64",
    "string[2]{=0.5,7} | dtype=bf16",
    NULL,
};

const tutti_op tutti_op_string_to_number = {
    .struct_size = sizeof(tutti_op),
    .name = "string_to_number",
    .version = 1,
    .doc = "string_to_number(x; dtype): y = the number that x says in decimal",
    .category = "text",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .flags = TUTTI_TEXT_FLAGS | TUTTI_OP_FALLIBLE,
    .attrs = attrs,
    .infer = string_to_number_infer,
    .cost = tutti__cost_move,
    .split = tutti__split_strings,
    .reference = string_to_number_reference,
    .samples = samples,
};
