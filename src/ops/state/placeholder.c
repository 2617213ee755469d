/* placeholder.c: a value given at every run. */
#include "ops/state/state.h"

static tutti_status placeholder_infer(tutti_infer *node)
{
    return tutti__attrs_type(node, &node->outputs[0]);
}

/* Whoever runs a graph takes the value from the feeds and never comes here. */
static tutti_status placeholder_reference(const tutti_kernel_call *call)
{
    return RULE_FAIL(call, TUTTI_NOT_FOUND,
                     "has no value in this run; give it one among the feeds");
}

static const tutti_attr_spec attrs[] = {
    {"dtype", TUTTI_ATTR_INT, NULL},
    {"dims", TUTTI_ATTR_INTS, "[]"},
    {0},
};

extern const tutti_op tutti_op_placeholder;

static bool is_dtype(int64_t number)
{
    return number > TUTTI_NO_DTYPE && number < TUTTI_DTYPE_END;
}

/* Of what is no type the mistake stands where nobody looks but who says so: in dims[0] how many
 * dimensions there are too many, or in dims[1] a number that is no data type. */
tutti_type tutti_type_from_list(int count, const int64_t *dtype_and_dims)
{
    if (count - 1 > TUTTI_MAX_RANK)
        return (tutti_type){.dtype = TUTTI_NO_DTYPE, .dims = {count - 1}};
    if (count < 1 || !dtype_and_dims)
        return (tutti_type){.dtype = TUTTI_NO_DTYPE};
    if (!is_dtype(dtype_and_dims[0]))
        return (tutti_type){.dtype = TUTTI_NO_DTYPE, .dims = {0, dtype_and_dims[0]}};
    return tutti_type_make((tutti_dtype)dtype_and_dims[0], count - 1, dtype_and_dims + 1);
}

tutti_sym(tutti_placeholder_named)(tutti_graph *graph, const char *name, tutti_type type)
{
    bool wrong = type.dtype == TUTTI_NO_DTYPE && type.rank == 0 && !is_dtype(type.dims[1]);
    tutti_attr given[] = {TUTTI_INT("dtype", wrong ? type.dims[1] : type.dtype),
                          tutti__dims_attr(&type)};
    if (type.dtype == TUTTI_NO_DTYPE && type.dims[0] > TUTTI_MAX_RANK)
        return tutti__poison(graph, TUTTI_INVALID,
                             "placeholder '%s' has %lld dimensions, at most %d exist",
                             name ? name : "placeholder", (long long)type.dims[0], TUTTI_MAX_RANK);
    return tutti__build(graph, &tutti_op_placeholder, name, 0, NULL, TUTTI_COUNT(given), given);
}

tutti_sym(tutti_placeholder)(tutti_graph *graph, tutti_type type)
{
    return (tutti_placeholder_named)(graph, NULL, type);
}

const tutti_op tutti_op_placeholder = {
    .struct_size = sizeof(tutti_op),
    .name = "placeholder",
    .version = 1,
    .doc = "placeholder(dtype, dims): y = the value fed in this run",
    .category = "graph",
    .outputs = 1,
    .flags = TUTTI_OP_STATEFUL | TUTTI_OP_NO_GRADIENT,
    .attrs = attrs,
    .infer = placeholder_infer,
    .reference = placeholder_reference,
};
