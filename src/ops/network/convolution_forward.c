/* convolution_forward.c: the rules of conv2d and conv3d; see window.h. */
#include "ops/network/window.h"

static tutti_status check_channels(const tutti_infer *node, int axes)
{
    const tutti_type *x = &node->inputs[0], *kernel = &node->inputs[1];
    int64_t groups = RULE_INT(node, "groups"), cin = x->dims[axes + 1],
            cout = kernel->dims[axes + 1];
    if (groups < 1)
        return RULE_FAIL(node, TUTTI_INVALID, "groups is %lld, needs at least 1",
                         (long long)groups);
    if ((cin != TUTTI_ANY && cin % groups != 0) || (cout != TUTTI_ANY && cout % groups != 0))
        return RULE_FAIL(node, TUTTI_INVALID,
                         "%lld input and %lld output channels do not divide into %lld groups",
                         (long long)cin, (long long)cout, (long long)groups);
    return tutti__need_dim(node, 1, "kernel", axes, cin == TUTTI_ANY ? cin : cin / groups,
                           "channels of x / groups");
}

tutti_status tutti__conv_infer(tutti_infer *node, int axes)
{
    const tutti_type *x = &node->inputs[0], *kernel = &node->inputs[1];
    int64_t dims[TUTTI_WINDOW_AXES + 2];
    tutti_windows w;
    TUTTI_TRY(tutti__need_floats(node, 0, 2));
    TUTTI_TRY(tutti__need_rank(node, 0, "x", axes + 2,
                               axes == 2 ? "[batch,height,width,channels]"
                                         : "[batch,depth,height,width,channels]"));
    TUTTI_TRY(tutti__need_rank(node, 1, "kernel", axes + 2,
                               axes == 2 ? "[height,width,channels/groups,filters]"
                                         : "[depth,height,width,channels/groups,filters]"));
    TUTTI_TRY(check_channels(node, axes));
    TUTTI_TRY(tutti__windows_infer(node, axes, x->dims + 1, kernel->dims, &w));
    dims[0] = x->dims[0];
    memcpy(dims + 1, w.out, (size_t)axes * sizeof *dims);
    dims[axes + 1] = kernel->dims[axes + 1];
    node->outputs[0] = tutti_type_make(x->dtype, axes + 2, dims);
    return TUTTI_OK;
}

tutti_status tutti__conv_gradient(tutti_gradient_call *node)
{
    tutti_sym x = node->inputs[0], kernel = node->inputs[1], grad = node->output_grads[0];
    if (!tutti_sym_ok(grad))
        return TUTTI_OK;
    if (node->wanted[0])
        node->input_grads[0] = tutti__conv_input_same(node, kernel, grad, x);
    if (node->wanted[1])
        node->input_grads[1] = tutti__conv_kernel_same(node, x, grad, kernel);
    return TUTTI_OK;
}

void tutti__conv_cost(const tutti_infer *node, tutti_cost *ret)
{
    tutti__cost_flops(node, tutti__convolution_flops(&node->inputs[1], &node->outputs[0]), ret);
}

/* By batch; by filters; by input channels, whose sums are partial. A convolution of each channel by
 * itself (groups = channels = filters) is cut by channels, its groups with them. */
int tutti__conv_split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    tutti_ways ways = {0, capacity, ret};
    int64_t groups = RULE_INT(node, "groups");
    int last = node->inputs[0].rank - 1;
    tutti__way_add(&ways, SLOTS(0, TUTTI_WHOLE), SLOTS(0));
    if (groups == 1) {
        tutti__way_add(&ways, SLOTS(TUTTI_WHOLE, last), SLOTS(last));
        tutti__way_add(&ways, SLOTS(last, last - 1), SLOTS(TUTTI_PARTIAL_SUM));
    } else if (groups == node->inputs[0].dims[last] && groups == node->inputs[1].dims[last]) {
        tutti__way_add(&ways, SLOTS(last, last), SLOTS(last));
        if (ways.count <= capacity)
            ret[ways.count - 1].attr = "groups";
    }
    return ways.count;
}

typedef struct operands {
    const double *x, *kernel;
    double *y;
} operands;

static void convolution_forward_visit(const tutti_convolution *c, void *context, int64_t x,
                                      int64_t kernel, int64_t y)
{
    const operands *o = context;
    int64_t filters = c->groups * c->cout;
    for (int64_t g = 0; g < c->groups; g++)
        for (int64_t i = 0; i < c->cin; i++) {
            double value = o->x[x + g * c->cin + i];
            const double *taps = o->kernel + kernel + i * filters + g * c->cout;
            double *sums = o->y + y + g * c->cout;
            for (int64_t f = 0; f < c->cout; f++)
                sums[f] += value * taps[f];
        }
}

static tutti_status convolution_forward_run(const tutti_kernel_call *call,
                                            const double *const *inputs, double *const *outputs,
                                            tutti_arena *scratch)
{
    tutti_convolution c = tutti__convolution(call->attrs, call->attr_count, call->inputs[0].dims,
                                             call->inputs[1].dims, call->outputs[0].dims);
    operands o = {inputs[0], inputs[1], outputs[0]};
    tutti__convolution_each(&c, convolution_forward_visit, &o);
    return TUTTI_OK;
}

tutti_status tutti__conv_reference(const tutti_kernel_call *call)
{
    return tutti__on_doubles(call, convolution_forward_run);
}
