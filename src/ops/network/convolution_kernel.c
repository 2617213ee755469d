/* convolution_kernel.c: the rules of conv2d_backward_kernel and conv3d_backward_kernel; see
 * window.h. */
#include "ops/network/window.h"

/* Inputs x, grad, and where the attribute "size" does not say the kernel's sizes, the kernel. */
enum { X, GRAD, LIKE };

static tutti_status check_operands(const tutti_infer *node, int axes)
{
    int64_t groups = RULE_INT(node, "groups"), cin = node->inputs[X].dims[axes + 1],
            cout = node->inputs[GRAD].dims[axes + 1];
    TUTTI_TRY(tutti__need_floats(node, 0, 2));
    TUTTI_TRY(tutti__need_rank(node, X, "x", axes + 2,
                               axes == 2 ? "[batch,height,width,channels]"
                                         : "[batch,depth,height,width,channels]"));
    TUTTI_TRY(tutti__need_rank(node, GRAD, "grad", axes + 2,
                               axes == 2 ? "[batch,height,width,filters]"
                                         : "[batch,depth,height,width,filters]"));
    if (node->input_count > LIKE)
        TUTTI_TRY(tutti__need_rank(node, LIKE, "kernel", axes + 2,
                                   axes == 2 ? "[height,width,channels,filters]"
                                             : "[depth,height,width,channels,filters]"));
    if (groups < 1 || (cin != TUTTI_ANY && cin % groups != 0) ||
        (cout != TUTTI_ANY && cout % groups != 0))
        return RULE_FAIL(node, TUTTI_INVALID,
                         "%lld channels and %lld filters do not divide into %lld groups",
                         (long long)cin, (long long)cout, (long long)groups);
    return tutti__need_dim(node, GRAD, "grad", 0, node->inputs[X].dims[0], "batch of x");
}

tutti_status tutti__conv_kernel_infer(tutti_infer *node, int axes)
{
    const tutti_type *x = &node->inputs[X], *grad = &node->inputs[GRAD];
    tutti_windows w;
    int64_t dims[TUTTI_WINDOW_AXES + 2];
    TUTTI_TRY(check_operands(node, axes));
    TUTTI_TRY(tutti__size_infer(node, axes, 0, LIKE, 0, dims));
    TUTTI_TRY(tutti__windows_infer(node, axes, x->dims + 1, dims, &w));
    for (int axis = 0; axis < axes; axis++)
        TUTTI_TRY(tutti__need_dim(node, GRAD, "grad", axis + 1, w.out[axis],
                                  "of the output of a convolution over x"));
    int64_t cin = x->dims[axes + 1];
    dims[axes] = cin == TUTTI_ANY ? cin : cin / RULE_INT(node, "groups");
    dims[axes + 1] = grad->dims[axes + 1];
    node->outputs[0] = tutti_type_make(x->dtype, axes + 2, dims);
    return TUTTI_OK;
}

/* Linear in x and grad: with v the gradient of the output, which has the kernel's shape,
 * d x = conv_backward_input(v, grad), d grad = conv(x, v). */
tutti_status tutti__conv_kernel_gradient(tutti_gradient_call *node)
{
    tutti_sym x = node->inputs[X], grad = node->inputs[GRAD], v = node->output_grads[0];
    if (!tutti_sym_ok(v))
        return TUTTI_OK;
    if (node->wanted[X])
        node->input_grads[X] = tutti__conv_input_same(node, v, grad, x);
    if (node->wanted[GRAD])
        node->input_grads[GRAD] = tutti__conv_same(node, x, v);
    return TUTTI_OK;
}

void tutti__conv_kernel_cost(const tutti_infer *node, tutti_cost *ret)
{
    tutti__cost_flops(node, tutti__convolution_flops(&node->outputs[0], &node->inputs[GRAD]), ret);
}

int tutti__conv_kernel_split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    tutti_ways ways = {0, capacity, ret};
    int64_t groups = RULE_INT(node, "groups");
    int last = node->inputs[X].rank - 1;
    tutti__way_add(&ways, SLOTS(0, 0, TUTTI_WHOLE), SLOTS(TUTTI_PARTIAL_SUM));
    if (groups == 1) {
        tutti__way_add(&ways, SLOTS(last, TUTTI_WHOLE, last - 1), SLOTS(last - 1));
        tutti__way_add(&ways, SLOTS(TUTTI_WHOLE, last, last), SLOTS(last));
    } else if (groups == node->inputs[X].dims[last] && groups == node->inputs[GRAD].dims[last]) {
        tutti__way_add(&ways, SLOTS(last, last, last), SLOTS(last));
        if (ways.count <= capacity)
            ret[ways.count - 1].attr = "groups";
    }
    return ways.count;
}

typedef struct operands {
    const double *x, *grad;
    double *kernel_grad;
} operands;

static void convolution_kernel_visit(const tutti_convolution *c, void *context, int64_t x,
                                     int64_t kernel, int64_t y)
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

static tutti_status convolution_kernel_run(const tutti_kernel_call *call,
                                           const double *const *inputs, double *const *outputs,
                                           tutti_arena *scratch)
{
    tutti_convolution c = tutti__convolution(call->attrs, call->attr_count, call->inputs[X].dims,
                                             call->outputs[0].dims, call->inputs[GRAD].dims);
    operands o = {inputs[X], inputs[GRAD], outputs[0]};
    tutti__convolution_each(&c, convolution_kernel_visit, &o);
    return TUTTI_OK;
}

tutti_status tutti__conv_kernel_reference(const tutti_kernel_call *call)
{
    return tutti__on_doubles(call, convolution_kernel_run);
}
