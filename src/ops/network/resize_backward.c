/* resize_backward.c: the gradient of resize's input. */
#include "ops/network/resize.h"

/* Inputs grad and, where the attribute "dims" does not say x's shape, x. Of dims only those of the
 * resized axes count. */
enum { GRAD, LIKE };

static tutti_status resize_backward_infer(tutti_infer *node)
{
    const tutti_type *grad = &node->inputs[GRAD];
    const int64_t *dims;
    tutti_resizing r;
    int count = tutti_attr_ints(node->attrs, node->attr_count, "dims", &dims);
    TUTTI_TRY(tutti__need_floats(node, GRAD, 1));
    if (node->input_count > LIKE) {
        TUTTI_TRY(tutti__need_rank(node, LIKE, "x", grad->rank, "as grad"));
        dims = node->inputs[LIKE].dims;
    } else if (count != grad->rank) {
        return RULE_FAIL(node, TUTTI_INVALID, "dims has %d numbers, needs %d, those of x", count,
                         grad->rank);
    }
    tutti_type x = *grad, resized;
    int axes[TUTTI_MAX_RANK];
    int axis_count = tutti__resize_axes(node->attrs, node->attr_count, grad->rank, axes);
    for (int i = 0; i < axis_count; i++) {
        if (dims[axes[i]] < 0 && dims[axes[i]] != TUTTI_ANY)
            return RULE_FAIL(node, TUTTI_INVALID, "dims has %lld", (long long)dims[axes[i]]);
        x.dims[axes[i]] = dims[axes[i]];
    }
    TUTTI_TRY(tutti__resize_infer(node, &x, &r));
    resized = x;
    for (int i = 0; i < r.count; i++)
        resized.dims[r.axes[i].axis] = r.axes[i].out;
    TUTTI_TRY(tutti__need_like(node, GRAD, "grad", &resized));
    node->outputs[0] = x;
    return TUTTI_OK;
}

static tutti_status resize_backward_gradient(tutti_gradient_call *node)
{
    if (!tutti_sym_ok(node->output_grads[0]) || !node->wanted[GRAD])
        return TUTTI_OK;
    tutti_attr attrs[] = {SAME_RESIZE(node)};
    node->input_grads[GRAD] = tutti_apply_op(node->graph, "resize", 1, node->output_grads,
                                             (int)TUTTI_COUNT(attrs), attrs);
    return TUTTI_OK;
}

static tutti_status resize_backward_run(const tutti_kernel_call *call, const double *const *inputs,
                                        double *const *outputs, tutti_arena *scratch)
{
    const tutti_view *x = &call->outputs[0], *grad = &call->inputs[GRAD];
    tutti_resizing r = tutti__resize_of(call->attrs, call->attr_count, x->rank, x->dims);
    return tutti__resize_doubles(call, &r, grad->dims, true, inputs[GRAD], outputs[0], scratch);
}

static tutti_status resize_backward_reference(const tutti_kernel_call *call)
{
    return tutti__on_doubles(call, resize_backward_run);
}

static const tutti_attr_spec attrs[] = {
    RESIZE_ATTRS, {"dims", TUTTI_ATTR_INTS, "[]"}, {NULL, TUTTI_ATTR_NONE, NULL}};

static const char *const samples[] = {
    "f32[2,6,7,3] | sizes=[6,7] dims=[2,3,4,3]",
    "f32[2,6,6,2] f32[2,3,4,2] | scales=[2,1.5] mode=linear",
    "f32[1,3,2,2] | sizes=[3,2] mode=linear coordinates=align_corners dims=[-1,5,6,-1]",
    "f32[1,7,5,2] | sizes=[7,5] mode=cubic dims=[1,4,3,2]",
    "f32[1,3,2] | sizes=[3] coordinates=tf_crop_and_resize roi=[0.4,1.2] dims=[1,4,2]",
    NULL,
};

const tutti_op tutti_op_resize_backward = {
    .struct_size = sizeof(tutti_op),
    .name = "resize_backward",
    .version = 1,
    .doc = "resize_backward(grad[, x]): dx[i] = sum over o of weight(i - c(o)) grad[o] along each "
           "axis, where y = resize(x); x's shape is `dims` or that of x",
    .category = "network",
    .min_inputs = 1,
    .max_inputs = 2,
    .outputs = 1,
    .attrs = attrs,
    .infer = resize_backward_infer,
    .gradient = resize_backward_gradient,
    .cost = tutti__resize_cost,
    .split = tutti__resize_split,
    .reference = resize_backward_reference,
    .samples = samples,
};
