/* conv2d_backward_input.c: the gradient of conv2d's input; also known as transposed convolution. */
#include "ops/network/window.h"

/* Inputs kernel, grad, and where the attribute "size" does not say the height and width, x. */
enum { KERNEL, GRAD, LIKE };

static tutti_status infer(tutti_infer *node)
{
    const tutti_type *kernel = &node->inputs[KERNEL], *grad = &node->inputs[GRAD];
    tutti_windows w;
    int64_t size[2], groups = RULE_INT(node, "groups"), cin = kernel->dims[2];
    TUTTI_TRY(tutti__need_floats(node, 0, 2));
    TUTTI_TRY(tutti__need_rank(node, KERNEL, "kernel", 4, "[height,width,channels,filters]"));
    TUTTI_TRY(tutti__need_rank(node, GRAD, "grad", 4, "[batch,height,width,filters]"));
    if (node->input_count > LIKE)
        TUTTI_TRY(tutti__need_rank(node, LIKE, "x", 4, "[batch,height,width,channels]"));
    if (groups < 1 || (kernel->dims[3] != TUTTI_ANY && kernel->dims[3] % groups != 0))
        return RULE_FAIL(node, TUTTI_INVALID, "%lld filters do not divide into %lld groups",
                         (long long)kernel->dims[3], (long long)groups);
    if (cin != TUTTI_ANY && !tutti__mul_size(cin, groups, &cin))
        return RULE_FAIL(node, TUTTI_TOO_LARGE, "channels times groups overflow 64 bits");
    TUTTI_TRY(tutti__need_dim(node, GRAD, "grad", 3, kernel->dims[3], "filters of the kernel"));
    TUTTI_TRY(tutti__size_infer(node, LIKE, 1, size));
    TUTTI_TRY(tutti__windows_infer(node, size, kernel->dims, &w));
    TUTTI_TRY(tutti__need_dim(node, GRAD, "grad", 1, w.out[0], "height of conv2d's output"));
    TUTTI_TRY(tutti__need_dim(node, GRAD, "grad", 2, w.out[1], "width of conv2d's output"));
    int64_t dims[] = {grad->dims[0], size[0], size[1], cin};
    node->outputs[0] = tutti_type_make(grad->dtype, 4, dims);
    return TUTTI_OK;
}

/* Linear in kernel and grad: with u the gradient of the output,
 * d grad = conv2d(u, kernel), d kernel = conv2d_backward_kernel(u, grad). */
static tutti_status gradient(tutti_gradient *node)
{
    tutti_sym kernel = node->inputs[KERNEL], grad = node->inputs[GRAD], u = node->output_grads[0];
    if (!tutti_sym_ok(u))
        return TUTTI_OK;
    if (node->wanted[KERNEL])
        node->input_grads[KERNEL] = tutti__conv2d_kernel_same(node, u, grad, kernel);
    if (node->wanted[GRAD])
        node->input_grads[GRAD] = tutti__conv2d_same(node, u, kernel);
    return TUTTI_OK;
}

static void cost(const tutti_infer *node, tutti_cost *ret)
{
    tutti__cost_flops(node, tutti__convolution_flops(&node->inputs[KERNEL], &node->inputs[GRAD]),
                      ret);
}

static int split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    tutti_ways ways = {0, capacity, ret};
    int64_t groups = RULE_INT(node, "groups");
    tutti__way_add(&ways, SLOTS(TUTTI_WHOLE, 0, 0), SLOTS(0));
    if (groups == 1) {
        tutti__way_add(&ways, SLOTS(2, TUTTI_WHOLE, 3), SLOTS(3));
        tutti__way_add(&ways, SLOTS(3, 3, TUTTI_WHOLE), SLOTS(TUTTI_PARTIAL_SUM));
    } else if (node->inputs[KERNEL].dims[2] == 1 && groups == node->inputs[KERNEL].dims[3]) {
        tutti__way_add(&ways, SLOTS(3, 3, 3), SLOTS(3));
        if (ways.count <= capacity)
            ret[ways.count - 1].attr = "groups";
    }
    return ways.count;
}

typedef struct operands {
    const double *kernel, *grad;
    double *x_grad;
} operands;

static void visit(const tutti_convolution *c, void *context, int64_t x, int64_t kernel, int64_t y)
{
    const operands *o = context;
    int64_t filters = c->groups * c->cout;
    for (int64_t g = 0; g < c->groups; g++)
        for (int64_t i = 0; i < c->cin; i++)
            o->x_grad[x + g * c->cin + i] += tutti__dot(
                c->cout, o->kernel + kernel + i * filters + g * c->cout, o->grad + y + g * c->cout);
}

static tutti_status run(const tutti_call *call, const double *const *inputs, double *const *outputs,
                        tutti_arena *scratch)
{
    tutti_convolution c = tutti__convolution(call->attrs, call->attr_count, call->outputs[0].dims,
                                             call->inputs[KERNEL].dims, call->inputs[GRAD].dims);
    operands o = {inputs[KERNEL], inputs[GRAD], outputs[0]};
    tutti__convolution_walk(&c, visit, &o);
    return TUTTI_OK;
}

static tutti_status reference(const tutti_call *call)
{
    return tutti__on_doubles(call, run);
}

static const tutti_attr_spec attrs[] = {
    CONVOLUTION_ATTRS, {"size", TUTTI_ATTR_INTS, "[0,0]"}, {NULL, TUTTI_ATTR_NONE, NULL}};

static const char *const samples[] = {
    "f32[3,2,2,3] f32[2,3,3,3] | size=[5,4]",
    "f32[3,3,2,2] f32[1,3,3,2] f32[1,6,5,2] | strides=[2,2] padding=same",
    "f32[2,3,1,2] f32[1,5,2,2] | dilations=[2,2] size=[7,6]",
    "f32[2,2,2,6] f32[2,3,2,6] | groups=2 strides=[1,2] size=[4,5]",
    "f32[3,3,1,3] f32[1,4,4,3] | groups=3 padding=same size=[4,4]",
    "f32[3,2,2,2] f32[1,2,6,2] | padding=explicit pads=[2,1,0,3] strides=[2,1] size=[3,4]",
    NULL,
};

const tutti_op tutti_op_conv2d_backward_input = {
    .struct_size = sizeof(tutti_op),
    .name = "conv2d_backward_input",
    .version = 1,
    .doc = "conv2d_backward_input(kernel, grad[, x]): dx, where dL/dy = grad and "
           "y = conv2d(x, kernel); x's height and width are `size` or those of x",
    .category = "network",
    .min_inputs = 2,
    .max_inputs = 3,
    .outputs = 1,
    .attrs = attrs,
    .infer = infer,
    .gradient = gradient,
    .cost = cost,
    .split = split,
    .reference = reference,
    .samples = samples,
};
