/* max_pool2d_gather.c: values from where the maxima lie; the gradient of max_pool2d_backward. */
#include "ops/network/max_pool.h"

enum { X, VALUES };

static tutti_status max_pool2d_gather_infer(tutti_infer *node)
{
    tutti_windows w;
    TUTTI_TRY(tutti__need_floats(node, 0, 2));
    TUTTI_TRY(tutti__need_rank(node, X, "x", 4, "[batch,height,width,channels]"));
    TUTTI_TRY(tutti__need_like(node, VALUES, "values", &node->inputs[X]));
    TUTTI_TRY(tutti__pool_infer(node, &node->inputs[X], &w));
    node->outputs[0] = tutti__pool_type(&node->inputs[X], &w);
    return TUTTI_OK;
}

static tutti_status max_pool2d_gather_gradient(tutti_gradient_call *node)
{
    if (tutti_sym_ok(node->output_grads[0]) && node->wanted[VALUES])
        node->input_grads[VALUES] = tutti__max_pool2d_same(node, "max_pool2d_backward",
                                                           node->inputs[X], node->output_grads[0]);
    return TUTTI_OK;
}

static void max_pool2d_gather_cost(const tutti_infer *node, tutti_cost *ret)
{
    tutti__pool_cost(node, &node->outputs[0], ret);
}

typedef struct operands {
    const double *x, *values;
    double *y;
} operands;

static void max_pool2d_gather_visit(void *context, int64_t channels, int64_t out, int64_t count,
                                    const int64_t *taps)
{
    const operands *o = context;
    for (int64_t c = 0; c < channels; c++)
        o->y[out + c] = o->values[tutti__window_maximum(o->x, c, count, taps)];
}

static tutti_status max_pool2d_gather_run(const tutti_kernel_call *call,
                                          const double *const *inputs, double *const *outputs,
                                          tutti_arena *scratch)
{
    const int64_t *x = call->inputs[X].dims;
    tutti_windows w = tutti__pool_windows(call->attrs, call->attr_count, x);
    operands o = {inputs[X], inputs[VALUES], outputs[0]};
    return tutti__pool_each(&w, x, scratch, max_pool2d_gather_visit, &o);
}

static tutti_status max_pool2d_gather_reference(const tutti_kernel_call *call)
{
    return tutti__on_doubles(call, max_pool2d_gather_run);
}

static const tutti_attr_spec attrs[] = {POOL_ATTRS, {NULL, TUTTI_ATTR_NONE, NULL}};

static const char *const samples[] = {
    "f32[2,4,4,3]{-9:9} f32[2,4,4,3]",
    "f32[1,5,7,2]{-9:9} f32[1,5,7,2] | window=[3,2] strides=[2,1]",
    "f32[2,5,5,2]{-9:9} f32[2,5,5,2] | window=[3,3] strides=[2,2] padding=same",
    NULL,
};

const tutti_op tutti_op_max_pool2d_gather = {
    .struct_size = sizeof(tutti_op),
    .name = "max_pool2d_gather",
    .version = 1,
    .doc = "max_pool2d_gather(x, values): y[o] = values[i], where x[i] is the first maximum of "
           "window o",
    .category = "network",
    .min_inputs = 2,
    .max_inputs = 2,
    .outputs = 1,
    .attrs = attrs,
    .infer = max_pool2d_gather_infer,
    .gradient = max_pool2d_gather_gradient,
    .cost = max_pool2d_gather_cost,
    .split = tutti__pool_split,
    .reference = max_pool2d_gather_reference,
    .samples = samples,
};
