/* acme.keep_positive(x [n]): the elements that are above zero, in order. How many, the data say. */
#include "inside.h"

tutti_sym(acme_positive)(tutti_sym x)
{
    return tutti_apply_op(tutti_sym_graph(x), "acme.keep_positive", 1, &x, 0, NULL);
}

static tutti_status infer(tutti_infer *node)
{
    char text[TUTTI_TYPE_TEXT];
    if (!tutti_dtype_is_float(node->inputs[0].dtype) || node->inputs[0].rank != 1)
        return ACME_FAIL(node, TUTTI_INVALID, "x is %s, needs a vector of floats",
                         tutti_type_text(&node->inputs[0], text));
    node->outputs[0] = tutti_type_make(node->inputs[0].dtype, 1, (int64_t[]){TUTTI_ANY});
    return TUTTI_OK;
}

static tutti_status reference(const tutti_kernel_call *call)
{
    const tutti_view *x = &call->inputs[0];
    int64_t count = 0, at = 0;
    for (int64_t i = 0; i < x->dims[0]; i++)
        count += tutti_view_get(x, i) > 0;
    TUTTI_TRY(tutti_kernel_call_allocate(call, 0, 1, &count));
    for (int64_t i = 0; i < x->dims[0]; i++)
        if (tutti_view_get(x, i) > 0)
            tutti_view_set(&call->outputs[0], at++, tutti_view_get(x, i));
    return TUTTI_OK;
}

static const char *const samples[] = {"f32[8]", "f64[3]{=-1,-2,-3}", "f32[0]", NULL};

const tutti_op acme_keep_positive = {
    .struct_size = sizeof(tutti_op),
    .name = "acme.keep_positive",
    .version = 1,
    .doc = "acme.keep_positive(x): y = the elements of x that are above 0",
    .category = "acme",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .flags = TUTTI_OP_DYNAMIC | TUTTI_OP_NO_GRADIENT,
    .infer = infer,
    .reference = reference,
    .samples = samples,
};
