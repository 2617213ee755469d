/* conv2d.c: two-dimensional convolution (cross-correlation, as networks use it). */
#include "ops/network/window.h"

extern const tutti_op tutti_op_conv2d;

static tutti_status check_channels(const tutti_infer *node)
{
    const tutti_type *x = &node->inputs[0], *kernel = &node->inputs[1];
    int64_t groups = RULE_INT(node, "groups"), cin = x->dims[3], cout = kernel->dims[3];
    if (groups < 1)
        return RULE_FAIL(node, TUTTI_INVALID, "groups is %lld, needs at least 1",
                         (long long)groups);
    if ((cin != TUTTI_ANY && cin % groups != 0) || (cout != TUTTI_ANY && cout % groups != 0))
        return RULE_FAIL(node, TUTTI_INVALID,
                         "%lld input and %lld output channels do not divide into %lld groups",
                         (long long)cin, (long long)cout, (long long)groups);
    return tutti__need_dim(node, 1, "kernel", 2, cin == TUTTI_ANY ? cin : cin / groups,
                           "channels of x / groups");
}

static tutti_status infer(tutti_infer *node)
{
    const tutti_type *x = &node->inputs[0], *kernel = &node->inputs[1];
    tutti_windows w;
    TUTTI_TRY(tutti__need_floats(node, 0, 2));
    TUTTI_TRY(tutti__need_rank(node, 0, "x", 4, "[batch,height,width,channels]"));
    TUTTI_TRY(tutti__need_rank(node, 1, "kernel", 4, "[height,width,channels/groups,filters]"));
    TUTTI_TRY(check_channels(node));
    TUTTI_TRY(tutti__windows_infer(node, x->dims + 1, kernel->dims, &w));
    int64_t dims[] = {x->dims[0], w.out[0], w.out[1], kernel->dims[3]};
    node->outputs[0] = tutti_type_make(x->dtype, 4, dims);
    return TUTTI_OK;
}

static tutti_status gradient(tutti_gradient *node)
{
    tutti_sym x = node->inputs[0], kernel = node->inputs[1], grad = node->output_grads[0];
    if (!tutti_sym_ok(grad))
        return TUTTI_OK;
    if (node->wanted[0])
        node->input_grads[0] = tutti__conv2d_input_same(node, kernel, grad, x);
    if (node->wanted[1])
        node->input_grads[1] = tutti__conv2d_kernel_same(node, x, grad, kernel);
    return TUTTI_OK;
}

static void cost(const tutti_infer *node, tutti_cost *ret)
{
    tutti__cost_flops(node, tutti__convolution_flops(&node->inputs[1], &node->outputs[0]), ret);
}

/* By batch; by filters; by input channels, whose sums are partial. A convolution of each channel by
 * itself (groups = channels = filters) is cut by channels, its groups with them. */
static int split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    tutti_ways ways = {0, capacity, ret};
    int64_t groups = RULE_INT(node, "groups");
    tutti__way_add(&ways, SLOTS(0, TUTTI_WHOLE), SLOTS(0));
    if (groups == 1) {
        tutti__way_add(&ways, SLOTS(TUTTI_WHOLE, 3), SLOTS(3));
        tutti__way_add(&ways, SLOTS(3, 2), SLOTS(TUTTI_PARTIAL_SUM));
    } else if (groups == node->inputs[0].dims[3] && groups == node->inputs[1].dims[3]) {
        tutti__way_add(&ways, SLOTS(3, 3), SLOTS(3));
        if (ways.count <= capacity)
            ret[ways.count - 1].attr = "groups";
    }
    return ways.count;
}

typedef struct operands {
    const double *x, *kernel;
    double *y;
} operands;

static void visit(const tutti_convolution *c, void *context, int64_t x, int64_t kernel, int64_t y)
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

static tutti_status run(const tutti_call *call, const double *const *inputs, double *const *outputs,
                        tutti_arena *scratch)
{
    tutti_convolution c = tutti__convolution(call->attrs, call->attr_count, call->inputs[0].dims,
                                             call->inputs[1].dims, call->outputs[0].dims);
    operands o = {inputs[0], inputs[1], outputs[0]};
    tutti__convolution_walk(&c, visit, &o);
    return TUTTI_OK;
}

static tutti_status reference(const tutti_call *call)
{
    return tutti__on_doubles(call, run);
}

tutti_sym(tutti_conv2d_of)(tutti_sym x, tutti_sym kernel, const tutti_conv2d_options *given)
{
    TAKE_OPTIONS(tutti_conv2d_options, options, given);
    int64_t any_pad = 0;
    for (int axis = 0; axis < 2; axis++) {
        options.strides[axis] += options.strides[axis] == 0;
        options.dilations[axis] += options.dilations[axis] == 0;
        any_pad |= options.pads[2 * axis] | options.pads[2 * axis + 1];
    }
    if (options.padding == NULL)
        options.padding = any_pad ? "explicit" : "valid";
    tutti_sym inputs[] = {x, kernel};
    return TUTTI_NARY(&tutti_op_conv2d, inputs, TUTTI_INTS("strides", 2, options.strides),
                      TUTTI_INTS("dilations", 2, options.dilations),
                      TUTTI_STR("padding", options.padding), TUTTI_INTS("pads", 4, options.pads),
                      TUTTI_INT("groups", options.groups == 0 ? 1 : options.groups));
}

static const tutti_attr_spec attrs[] = {CONVOLUTION_ATTRS, {NULL, TUTTI_ATTR_NONE, NULL}};

static const char *const samples[] = {
    "f32[2,5,4,2] f32[3,2,2,3]",
    "f32[1,6,5,2] f32[3,3,2,2] | strides=[2,2] padding=same",
    "f32[1,7,6,1] f32[2,3,1,2] | dilations=[2,2]",
    "f32[2,4,5,4] f32[2,2,2,6] | groups=2 strides=[1,2]",
    "f32[1,4,4,3] f32[3,3,1,3] | groups=3 padding=same",
    "f32[1,3,4,2] f32[3,2,2,2] | padding=explicit pads=[2,1,0,3] strides=[2,1]",
    "f32[2,3,3,3] f32[1,1,3,4]",
    "f64[1,5,5,1] f64[3,3,1,1] | padding=same strides=[3,2] dilations=[1,2]",
    NULL,
};

const tutti_op tutti_op_conv2d = {
    .struct_size = sizeof(tutti_op),
    .name = "conv2d",
    .version = 1,
    .doc = "conv2d(x, kernel): y[n,h,w,f] = sum over i,j,c of "
           "x[n, h*stride - pad + i*dilation, w*stride - pad + j*dilation, c] * kernel[i,j,c,f]; "
           "channels and filters in `groups` parts that do not mix",
    .category = "network",
    .min_inputs = 2,
    .max_inputs = 2,
    .outputs = 1,
    .attrs = attrs,
    .infer = infer,
    .gradient = gradient,
    .cost = cost,
    .split = split,
    .reference = reference,
    .samples = samples,
};
