/* conv2d_backward_kernel.c: the gradient of conv2d's kernel. */
#include "ops/network/window.h"

/* Inputs x, grad, and where the attribute "size" does not say the kernel's height and width, the
 * kernel. */
enum { X, GRAD, LIKE };

static tutti_status infer(tutti_infer *node)
{
    const tutti_type *x = &node->inputs[X], *grad = &node->inputs[GRAD];
    tutti_windows w;
    int64_t size[2], groups = RULE_INT(node, "groups"), cin = x->dims[3], cout = grad->dims[3];
    TUTTI_TRY(tutti__need_floats(node, 0, 2));
    TUTTI_TRY(tutti__need_rank(node, X, "x", 4, "[batch,height,width,channels]"));
    TUTTI_TRY(tutti__need_rank(node, GRAD, "grad", 4, "[batch,height,width,filters]"));
    if (node->input_count > LIKE)
        TUTTI_TRY(tutti__need_rank(node, LIKE, "kernel", 4, "[height,width,channels,filters]"));
    if (groups < 1 || (cin != TUTTI_ANY && cin % groups != 0) ||
        (cout != TUTTI_ANY && cout % groups != 0))
        return RULE_FAIL(node, TUTTI_INVALID,
                         "%lld channels and %lld filters do not divide into %lld groups",
                         (long long)cin, (long long)cout, (long long)groups);
    TUTTI_TRY(tutti__need_dim(node, GRAD, "grad", 0, x->dims[0], "batch of x"));
    TUTTI_TRY(tutti__size_infer(node, LIKE, 0, size));
    TUTTI_TRY(tutti__windows_infer(node, x->dims + 1, size, &w));
    TUTTI_TRY(tutti__need_dim(node, GRAD, "grad", 1, w.out[0], "height of conv2d's output"));
    TUTTI_TRY(tutti__need_dim(node, GRAD, "grad", 2, w.out[1], "width of conv2d's output"));
    int64_t dims[] = {size[0], size[1], cin == TUTTI_ANY ? cin : cin / groups, cout};
    node->outputs[0] = tutti_type_make(x->dtype, 4, dims);
    return TUTTI_OK;
}

/* Linear in x and grad: with v the gradient of the output, which has the kernel's shape,
 * d x = conv2d_backward_input(v, grad), d grad = conv2d(x, v). */
static tutti_status gradient(tutti_gradient *node)
{
    tutti_sym x = node->inputs[X], grad = node->inputs[GRAD], v = node->output_grads[0];
    if (!tutti_sym_ok(v))
        return TUTTI_OK;
    if (node->wanted[X])
        node->input_grads[X] = tutti__conv2d_input_same(node, v, grad, x);
    if (node->wanted[GRAD])
        node->input_grads[GRAD] = tutti__conv2d_same(node, x, v);
    return TUTTI_OK;
}

static void cost(const tutti_infer *node, tutti_cost *ret)
{
    tutti__cost_flops(node, tutti__convolution_flops(&node->outputs[0], &node->inputs[GRAD]), ret);
}

static int split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    tutti_ways ways = {0, capacity, ret};
    int64_t groups = RULE_INT(node, "groups");
    tutti__way_add(&ways, SLOTS(0, 0, TUTTI_WHOLE), SLOTS(TUTTI_PARTIAL_SUM));
    if (groups == 1) {
        tutti__way_add(&ways, SLOTS(3, TUTTI_WHOLE, 2), SLOTS(2));
        tutti__way_add(&ways, SLOTS(TUTTI_WHOLE, 3, 3), SLOTS(3));
    } else if (groups == node->inputs[X].dims[3] && groups == node->inputs[GRAD].dims[3]) {
        tutti__way_add(&ways, SLOTS(3, 3, 3), SLOTS(3));
        if (ways.count <= capacity)
            ret[ways.count - 1].attr = "groups";
    }
    return ways.count;
}

typedef struct operands {
    const double *x, *grad;
    double *kernel_grad;
} operands;

static void visit(const tutti_convolution *c, void *context, int64_t x, int64_t kernel, int64_t y)
{
    const operands *o = context;
    int64_t filters = c->groups * c->cout;
    for (int64_t g = 0; g < c->groups; g++)
        for (int64_t i = 0; i < c->cin; i++) {
            double value = o->x[x + g * c->cin + i];
            const double *grad = o->grad + y + g * c->cout;
            double *sums = o->kernel_grad + kernel + i * filters + g * c->cout;
            for (int64_t f = 0; f < c->cout; f++)
                sums[f] += value * grad[f];
        }
}

static tutti_status run(const tutti_call *call, const double *const *inputs, double *const *outputs,
                        tutti_arena *scratch)
{
    tutti_convolution c = tutti__convolution(call->attrs, call->attr_count, call->inputs[X].dims,
                                             call->outputs[0].dims, call->inputs[GRAD].dims);
    operands o = {inputs[X], inputs[GRAD], outputs[0]};
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
    "f32[2,5,4,2] f32[2,3,3,3] | size=[3,2]",
    "f32[1,6,5,2] f32[1,3,3,2] f32[3,3,2,2] | strides=[2,2] padding=same",
    "f32[1,7,6,1] f32[1,5,2,2] | dilations=[2,2] size=[2,3]",
    "f32[2,4,5,4] f32[2,3,2,6] | groups=2 strides=[1,2] size=[2,2]",
    "f32[1,4,4,3] f32[1,4,4,3] | groups=3 padding=same size=[3,3]",
    "f32[1,3,4,2] f32[1,2,6,2] | padding=explicit pads=[2,1,0,3] strides=[2,1] size=[3,2]",
    NULL,
};

const tutti_op tutti_op_conv2d_backward_kernel = {
    .struct_size = sizeof(tutti_op),
    .name = "conv2d_backward_kernel",
    .version = 1,
    .doc = "conv2d_backward_kernel(x, grad[, kernel]): dkernel, where dL/dy = grad and "
           "y = conv2d(x, kernel); the kernel's height and width are `size` or those of kernel",
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
