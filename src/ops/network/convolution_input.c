/* convolution_input.c: the rules of conv2d_backward_input and conv3d_backward_input; see window.h.
 */
#include "ops/network/window.h"

#include "base/container.h"

/* Inputs kernel, grad, and where the attribute "size" does not say x's sizes, x. */
enum { KERNEL, GRAD, LIKE };

#define LOWEST (-((int64_t)1 << 31))

/* The sizes of x; where the attribute has -n, n more than follow from the gradient's. */
static tutti_status infer_size(const tutti_infer *node, int axes, int64_t *ret_size)
{
    int64_t natural[TUTTI_WINDOW_AXES], more[TUTTI_WINDOW_AXES] = {0};
    TUTTI_TRY(tutti__size_infer(node, axes, LOWEST, LIKE, 1, ret_size));
    if (node->input_count > LIKE)
        return TUTTI_OK;
    for (int axis = 0; axis < axes; axis++)
        more[axis] = ret_size[axis] > 0 ? 0 : -ret_size[axis];
    TUTTI_TRY(tutti__windows_natural(node, axes, node->inputs[GRAD].dims + 1,
                                     node->inputs[KERNEL].dims, more, natural));
    for (int axis = 0; axis < axes; axis++)
        ret_size[axis] = ret_size[axis] > 0 ? ret_size[axis] : natural[axis];
    return TUTTI_OK;
}

static tutti_status check_operands(const tutti_infer *node, int axes)
{
    const char *layout =
        axes == 2 ? "[batch,height,width,filters]" : "[batch,depth,height,width,filters]";
    int64_t groups = RULE_INT(node, "groups"), filters = node->inputs[KERNEL].dims[axes + 1];
    TUTTI_TRY(tutti__need_floats(node, 0, 2));
    TUTTI_TRY(tutti__need_rank(node, KERNEL, "kernel", axes + 2,
                               axes == 2 ? "[height,width,channels,filters]"
                                         : "[depth,height,width,channels,filters]"));
    TUTTI_TRY(tutti__need_rank(node, GRAD, "grad", axes + 2, layout));
    if (node->input_count > LIKE)
        TUTTI_TRY(tutti__need_rank(node, LIKE, "x", axes + 2, layout));
    if (groups < 1 || (filters != TUTTI_ANY && filters % groups != 0))
        return RULE_FAIL(node, TUTTI_INVALID, "%lld filters do not divide into %lld groups",
                         (long long)filters, (long long)groups);
    return tutti__need_dim(node, GRAD, "grad", axes + 1, filters, "filters of the kernel");
}

tutti_status tutti__conv_input_infer(tutti_infer *node, int axes)
{
    tutti_windows w;
    int64_t dims[TUTTI_WINDOW_AXES + 2], *size = dims + 1;
    TUTTI_TRY(check_operands(node, axes));
    int64_t cin = node->inputs[KERNEL].dims[axes];
    if (cin != TUTTI_ANY && !tutti__mul_size(cin, RULE_INT(node, "groups"), &cin))
        return RULE_FAIL(node, TUTTI_TOO_LARGE, "channels times groups overflow 64 bits");
    TUTTI_TRY(infer_size(node, axes, size));
    TUTTI_TRY(tutti__windows_infer(node, axes, size, node->inputs[KERNEL].dims, &w));
    for (int axis = 0; axis < axes; axis++)
        TUTTI_TRY(tutti__need_dim(node, GRAD, "grad", axis + 1, w.out[axis],
                                  "of the output of a convolution over x"));
    dims[0] = node->inputs[GRAD].dims[0];
    dims[axes + 1] = cin;
    node->outputs[0] = tutti_type_make(node->inputs[GRAD].dtype, axes + 2, dims);
    return TUTTI_OK;
}

/* Linear in kernel and grad: with u the gradient of the output,
 * d grad = conv(u, kernel), d kernel = conv_backward_kernel(u, grad). */
tutti_status tutti__conv_input_gradient(tutti_gradient_call *node)
{
    tutti_sym kernel = node->inputs[KERNEL], grad = node->inputs[GRAD], u = node->output_grads[0];
    if (!tutti_sym_ok(u))
        return TUTTI_OK;
    if (node->wanted[KERNEL])
        node->input_grads[KERNEL] = tutti__conv_kernel_same(node, u, grad, kernel);
    if (node->wanted[GRAD])
        node->input_grads[GRAD] = tutti__conv_same(node, u, kernel);
    return TUTTI_OK;
}

void tutti__conv_input_cost(const tutti_infer *node, tutti_cost *ret)
{
    tutti__cost_flops(node, tutti__convolution_flops(&node->inputs[KERNEL], &node->inputs[GRAD]),
                      ret);
}

int tutti__conv_input_split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    tutti_ways ways = {0, capacity, ret};
    int64_t groups = RULE_INT(node, "groups");
    int last = node->inputs[KERNEL].rank - 1;
    tutti__way_add(&ways, SLOTS(TUTTI_WHOLE, 0, 0), SLOTS(0));
    if (groups == 1) {
        tutti__way_add(&ways, SLOTS(last - 1, TUTTI_WHOLE, last), SLOTS(last));
        tutti__way_add(&ways, SLOTS(last, last, TUTTI_WHOLE), SLOTS(TUTTI_PARTIAL_SUM));
    } else if (node->inputs[KERNEL].dims[last - 1] == 1 &&
               groups == node->inputs[KERNEL].dims[last]) {
        tutti__way_add(&ways, SLOTS(last, last, last), SLOTS(last));
        if (ways.count <= capacity)
            ret[ways.count - 1].attr = "groups";
    }
    return ways.count;
}

typedef struct operands {
    const double *kernel, *grad;
    double *x_grad;
} operands;

static void convolution_input_visit(const tutti_convolution *c, void *context, int64_t x,
                                    int64_t kernel, int64_t y)
{
    const operands *o = context;
    int64_t filters = c->groups * c->cout;
    for (int64_t g = 0; g < c->groups; g++)
        for (int64_t i = 0; i < c->cin; i++)
            o->x_grad[x + g * c->cin + i] += tutti__dot(
                c->cout, o->kernel + kernel + i * filters + g * c->cout, o->grad + y + g * c->cout);
}

static tutti_status convolution_input_run(const tutti_kernel_call *call,
                                          const double *const *inputs, double *const *outputs,
                                          tutti_arena *scratch)
{
    tutti_convolution c = tutti__convolution(call->attrs, call->attr_count, call->outputs[0].dims,
                                             call->inputs[KERNEL].dims, call->inputs[GRAD].dims);
    operands o = {inputs[KERNEL], inputs[GRAD], outputs[0]};
    tutti__convolution_each(&c, convolution_input_visit, &o);
    return TUTTI_OK;
}

tutti_status tutti__conv_input_reference(const tutti_kernel_call *call)
{
    return tutti__on_doubles(call, convolution_input_run);
}
