/* average_pool2d_backward.c: the gradient of average_pool2d's input. */
#include "ops/network/window.h"

/* Inputs grad and, where the attribute "size" does not say the height and width, x. */
enum { GRAD, LIKE };

static tutti_status average_pool2d_backward_infer(tutti_infer *node)
{
    tutti_windows w;
    int64_t size[2];
    TUTTI_TRY(tutti__need_floats(node, 0, 1));
    TUTTI_TRY(tutti__need_rank(node, GRAD, "grad", 4, "[batch,height,width,channels]"));
    if (node->input_count > LIKE)
        TUTTI_TRY(tutti__need_rank(node, LIKE, "x", 4, "[batch,height,width,channels]"));
    TUTTI_TRY(tutti__size_infer(node, 2, 0, LIKE, 1, size));
    int64_t dims[] = {node->inputs[GRAD].dims[0], size[0], size[1], node->inputs[GRAD].dims[3]};
    tutti_type x = tutti_type_make(node->inputs[GRAD].dtype, 4, dims);
    TUTTI_TRY(tutti__pool_infer(node, &x, &w));
    tutti_type pooled = tutti__pool_type(&x, &w);
    TUTTI_TRY(tutti__need_like(node, GRAD, "grad", &pooled));
    node->outputs[0] = x;
    return TUTTI_OK;
}

static tutti_status average_pool2d_backward_gradient(tutti_gradient_call *node)
{
    if (!tutti_sym_ok(node->output_grads[0]) || !node->wanted[GRAD])
        return TUTTI_OK;
    tutti_attr attrs[] = {SAME_POOL(node)};
    node->input_grads[GRAD] = tutti_apply_op(node->graph, "average_pool2d", 1, node->output_grads,
                                             (int)TUTTI_COUNT(attrs), attrs);
    return TUTTI_OK;
}

static void average_pool2d_backward_cost(const tutti_infer *node, tutti_cost *ret)
{
    tutti__pool_cost(node, &node->inputs[GRAD], ret);
}

typedef struct operands {
    const double *grad;
    double *x_grad;
} operands;

static void average_pool2d_backward_visit(void *context, int64_t channels, int64_t out,
                                          int64_t count, const int64_t *taps)
{
    const operands *o = context;
    for (int64_t i = 0; i < count; i++)
        for (int64_t c = 0; c < channels; c++)
            o->x_grad[taps[i] + c] += o->grad[out + c] / (double)count;
}

static tutti_status average_pool2d_backward_run(const tutti_kernel_call *call,
                                                const double *const *inputs, double *const *outputs,
                                                tutti_arena *scratch)
{
    const int64_t *x = call->outputs[0].dims;
    tutti_windows w = tutti__pool_windows(call->attrs, call->attr_count, x);
    operands o = {inputs[GRAD], outputs[0]};
    return tutti__pool_each(&w, x, scratch, average_pool2d_backward_visit, &o);
}

static tutti_status average_pool2d_backward_reference(const tutti_kernel_call *call)
{
    return tutti__on_doubles(call, average_pool2d_backward_run);
}

static const tutti_attr_spec attrs[] = {
    POOL_ATTRS, {"size", TUTTI_ATTR_INTS, "[0,0]"}, {NULL, TUTTI_ATTR_NONE, NULL}};

static const char *const samples[] = {
    "f32[2,2,2,3] | size=[4,4]",
    "f32[1,2,6,2] | window=[3,2] strides=[2,1] size=[5,7]",
    "f32[2,3,3,2] f32[2,5,5,2] | window=[3,3] strides=[2,2] padding=same",
    "f32[1,5,2,3] | window=[3,3] strides=[1,2] padding=explicit pads=[1,2,0,1] size=[4,5]",
    NULL,
};

const tutti_op tutti_op_average_pool2d_backward = {
    .struct_size = sizeof(tutti_op),
    .name = "average_pool2d_backward",
    .version = 1,
    .doc =
        "average_pool2d_backward(grad[, x]): dx[i] = sum of grad[o] / count(o) over the windows o "
        "that hold i; x's height and width are `size` or those of x",
    .category = "network",
    .min_inputs = 1,
    .max_inputs = 2,
    .outputs = 1,
    .attrs = attrs,
    .infer = average_pool2d_backward_infer,
    .gradient = average_pool2d_backward_gradient,
    .cost = average_pool2d_backward_cost,
    .split = tutti__pool_split,
    .reference = average_pool2d_backward_reference,
    .samples = samples,
};
