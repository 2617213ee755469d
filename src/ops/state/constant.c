/* constant.c: a tensor known when the graph is built. */
#include "ops/shape/rule.h"
#include "ops/state/state.h"

static tutti_tensor *value_of(const tutti_attr *attrs, int count)
{
    return tutti_attr_find(attrs, count, "value")->value.tensor;
}

static tutti_status constant_infer(tutti_infer *node)
{
    node->outputs[0] = *tutti_tensor_type(value_of(node->attrs, node->attr_count));
    return TUTTI_OK;
}

static tutti_status constant_reference(const tutti_kernel_call *call)
{
    tutti_tensor *contiguous;
    TUTTI_TRY(tutti_tensor_contiguous(value_of(call->attrs, call->attr_count), &contiguous));
    tutti_view from = {.data = tutti_tensor_data(contiguous),
                       .dtype = tutti_tensor_dtype(contiguous),
                       .rank = tutti_tensor_rank(contiguous),
                       .dims = tutti_tensor_dims(contiguous)};
    tutti__view_copy(&call->outputs[0], &from);
    tutti_tensor_release(contiguous);
    return TUTTI_OK;
}

static const tutti_attr_spec attrs[] = {
    {"value", TUTTI_ATTR_TENSOR, NULL},
    {0},
};

static const char *const samples[] = {
    "| value=f32[2,3]", "| value=i64[]{=7}", "| value=string[3]", "| value=bf16[0,2]", NULL,
};

extern const tutti_op tutti_op_constant;

tutti_sym(tutti_constant)(tutti_graph *graph, tutti_tensor *tensor)
{
    if (!tensor)
        return tutti__poison(graph, TUTTI_INVALID, "constant: the tensor is NULL");
    return tutti__build(graph, &tutti_op_constant, NULL, 0, NULL, 1,
                        &TUTTI_TENSOR_ATTR("value", tensor));
}

/* Builds a constant of a tensor of our own, and gives the tensor up. */
static tutti_sym constant_of_own(tutti_graph *graph, tutti_tensor *tensor)
{
    tutti_sym sym = (tutti_constant)(graph, tensor);
    tutti_tensor_release(tensor);
    return sym;
}

tutti_sym(tutti_scalar)(tutti_graph *graph, tutti_dtype dtype, double value)
{
    tutti_tensor *tensor;
    if (dtype == TUTTI_STRING)
        return tutti__poison(graph, TUTTI_INVALID,
                             "scalar: makes numbers and bools; give strings to tutti_constant");
    tutti_status status = tutti__fill_check(dtype, value);
    if (status == TUTTI_OK)
        status = tutti_tensor_create(dtype, 0, NULL, &tensor);
    if (status != TUTTI_OK)
        return tutti__poison(graph, status, "scalar: %s", tutti_error_message());
    tutti_tensor_set(tensor, 0, value);
    return constant_of_own(graph, tensor);
}

tutti_sym(tutti_ints)(tutti_graph *graph, int count, const int64_t *values)
{
    tutti_tensor *tensor;
    tutti_status status = tutti_tensor_from(TUTTI_I64, 1, (int64_t[]){count}, values, &tensor);
    if (status != TUTTI_OK)
        return tutti__poison(graph, status, "ints: %s", tutti_error_message());
    return constant_of_own(graph, tensor);
}

const tutti_op tutti_op_constant = {
    .struct_size = sizeof(tutti_op),
    .name = "constant",
    .version = 1,
    .doc = "constant(value): y = value",
    .category = "graph",
    .outputs = 1,
    .flags = TUTTI_OP_NO_GRADIENT,
    .attrs = attrs,
    .infer = constant_infer,
    .cost = tutti__cost_move,
    .reference = constant_reference,
    .samples = samples,
};
