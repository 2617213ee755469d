/* average_pool2d.c: the mean of each window. */
#include "ops/network/window.h"

extern const tutti_op tutti_op_average_pool2d;

static tutti_status average_pool2d_infer(tutti_infer *node)
{
    tutti_windows w;
    TUTTI_TRY(tutti__need_floats(node, 0, 1));
    TUTTI_TRY(tutti__need_rank(node, 0, "x", 4, "[batch,height,width,channels]"));
    TUTTI_TRY(tutti__pool_infer(node, &node->inputs[0], &w));
    node->outputs[0] = tutti__pool_type(&node->inputs[0], &w);
    return TUTTI_OK;
}

/* average_pool2d_backward takes x's height and width from `size`, or from x where they are not
 * known yet. */
static tutti_status average_pool2d_gradient(tutti_gradient_call *node)
{
    if (!tutti_sym_ok(node->output_grads[0]) || !node->wanted[0])
        return TUTTI_OK;
    tutti_type x = tutti_sym_type(node->inputs[0]);
    bool known = x.dims[1] != TUTTI_ANY && x.dims[2] != TUTTI_ANY;
    tutti_sym inputs[] = {node->output_grads[0], node->inputs[0]};
    tutti_attr attrs[] = {SAME_POOL(node), TUTTI_INTS("size", 2, x.dims + 1)};
    node->input_grads[0] = tutti_apply_op(node->graph, "average_pool2d_backward", known ? 1 : 2,
                                          inputs, (int)TUTTI_COUNT(attrs) - (known ? 0 : 1), attrs);
    return TUTTI_OK;
}

static void average_pool2d_cost(const tutti_infer *node, tutti_cost *ret)
{
    tutti__pool_cost(node, &node->outputs[0], ret);
}

typedef struct operands {
    const double *x;
    double *y;
} operands;

static void average_pool2d_visit(void *context, int64_t channels, int64_t out, int64_t count,
                                 const int64_t *taps)
{
    const operands *o = context;
    for (int64_t i = 0; i < count; i++)
        for (int64_t c = 0; c < channels; c++)
            o->y[out + c] += o->x[taps[i] + c];
    for (int64_t c = 0; c < channels; c++)
        o->y[out + c] /= (double)count;
}

static tutti_status average_pool2d_run(const tutti_kernel_call *call, const double *const *inputs,
                                       double *const *outputs, tutti_arena *scratch)
{
    const int64_t *x = call->inputs[0].dims;
    tutti_windows w = tutti__pool_windows(call->attrs, call->attr_count, x);
    operands o = {inputs[0], outputs[0]};
    return tutti__pool_each(&w, x, scratch, average_pool2d_visit, &o);
}

static tutti_status average_pool2d_reference(const tutti_kernel_call *call)
{
    return tutti__on_doubles(call, average_pool2d_run);
}

tutti_sym tutti_nn_average_pool2d_with(tutti_sym x, const tutti_pool2d_options *given)
{
    return tutti__pool2d_build(&tutti_op_average_pool2d, x, given);
}

static const tutti_attr_spec attrs[] = {POOL_ATTRS, {NULL, TUTTI_ATTR_NONE, NULL}};

static const char *const samples[] = {
    "f32[2,4,4,3]",
    "f32[1,5,7,2] | window=[3,2] strides=[2,1]",
    "f32[2,5,5,2] | window=[3,3] strides=[2,2] padding=same",
    "f32[1,4,5,3] | window=[3,3] strides=[1,2] padding=explicit pads=[1,2,0,1]",
    NULL,
};

const tutti_op tutti_op_average_pool2d = {
    .struct_size = sizeof(tutti_op),
    .name = "average_pool2d",
    .version = 1,
    .doc = "average_pool2d(x): y[n,h,w,c] = mean of x[n,i,j,c] over i,j in the window at (h,w); "
           "padding does not count",
    .category = "network",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .attrs = attrs,
    .infer = average_pool2d_infer,
    .gradient = average_pool2d_gradient,
    .cost = average_pool2d_cost,
    .split = tutti__pool_split,
    .reference = average_pool2d_reference,
    .samples = samples,
};
