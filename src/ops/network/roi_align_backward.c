/* roi_align_backward.c: the gradients of roi_align's images and regions. */
#include "ops/network/roi_align.h"
#include "ops/pull_back.h"

static tutti_status roi_align_backward_infer(tutti_infer *node)
{
    tutti_type y;
    TUTTI_TRY(tutti__roi_infer(node, &y));
    if (node->inputs[TUTTI_ROI_GRAD].dtype != y.dtype)
        return RULE_FAIL(node, TUTTI_INVALID, "grad needs x's element type");
    TUTTI_TRY(tutti__need_like(node, TUTTI_ROI_GRAD, "grad", &y));
    node->outputs[0] = node->inputs[TUTTI_ROI_X];
    node->outputs[1] = node->inputs[TUTTI_ROI_REGIONS];
    return TUTTI_OK;
}

static tutti_status roi_align_backward_gradient(tutti_gradient_call *node)
{
    static const int of[] = {TUTTI_ROI_X, TUTTI_ROI_REGIONS};
    return tutti__backward_gradient(node, tutti__roi_align_nodes, 2, of);
}

static void roi_align_backward_cost(const tutti_infer *node, tutti_cost *ret)
{
    tutti__roi_cost(node, &node->inputs[TUTTI_ROI_GRAD], ret);
    ret->flops *= 3;
}

static int roi_align_backward_split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    tutti_ways ways = {0, capacity, ret};
    tutti__way_add(&ways, SLOTS(3, TUTTI_WHOLE, TUTTI_WHOLE, 3), SLOTS(3, TUTTI_PARTIAL_SUM));
    tutti__way_add(&ways, SLOTS(TUTTI_WHOLE, 0, 0, 0), SLOTS(TUTTI_PARTIAL_SUM, 0));
    return ways.count;
}

typedef struct operands {
    const double *x;
    double *x_grad;
    int64_t channels;
    bool largest;
} operands;

/* What one corner of a place does, for channels [first, end): to x, and along the place to the
 * region's corners (x1, y1, x2, y2). */
static void give_corner(const operands *o, const tutti_roi *roi, const tutti_roi_place *p,
                        int corner, int64_t first, int64_t end, const double *grad, double part,
                        double *region)
{
    int a = corner / 2, b = corner % 2;
    double weight = part * p->axes[0].weight[a] * p->axes[1].weight[b], value = 0;
    int64_t pixel = tutti__roi_pixel(roi, p, a, b, o->channels);
    for (int64_t c = first; c < end; c++) {
        o->x_grad[pixel + c] += weight * grad[c];
        value += o->x[pixel + c] * grad[c];
    }
    double along[2] = {part * value * p->axes[0].slope[a] * p->axes[1].weight[b],
                       part * value * p->axes[0].weight[a] * p->axes[1].slope[b]};
    for (int axis = 0; axis < 2; axis++) {
        region[1 - axis] += along[axis] * p->axes[axis].start;
        region[3 - axis] += along[axis] * p->axes[axis].end;
    }
}

/* Max: each channel gives to the first of the corners that were largest. */
static void give_largest(const operands *o, const tutti_roi *roi, const int64_t bin[2],
                         const double *grad, double *region)
{
    int64_t columns = roi->axes[1].grid, count = roi->axes[0].grid * columns;
    for (int64_t c = 0; c < o->channels; c++) {
        tutti_roi_place best_place = {.outside = true};
        int best_corner = 0;
        double best = 0;
        for (int64_t i = 0; i < 4 * count; i++) {
            tutti_roi_place p =
                tutti__roi_place(roi, bin, (int64_t[]){i / 4 / columns, i / 4 % columns});
            int a = (int)(i % 4) / 2, b = (int)(i % 2);
            double value = 0;
            if (!p.outside)
                value = p.axes[0].weight[a] * p.axes[1].weight[b] *
                        o->x[tutti__roi_pixel(roi, &p, a, b, o->channels) + c];
            if (i == 0 || value > best) {
                best = value;
                best_place = p;
                best_corner = (int)(i % 4);
            }
        }
        if (!best_place.outside)
            give_corner(o, roi, &best_place, best_corner, c, c + 1, grad, 1, region);
    }
}

static void give_bin(const operands *o, const tutti_roi *roi, const int64_t bin[2],
                     const double *grad, double *region)
{
    int64_t rows = roi->axes[0].grid, columns = roi->axes[1].grid;
    if (o->largest) {
        give_largest(o, roi, bin, grad, region);
        return;
    }
    for (int64_t i = 0; i < rows * columns; i++) {
        tutti_roi_place p = tutti__roi_place(roi, bin, (int64_t[]){i / columns, i % columns});
        for (int corner = 0; corner < 4 && !p.outside; corner++)
            give_corner(o, roi, &p, corner, 0, o->channels, grad, 1 / (double)(rows * columns),
                        region);
    }
}

static tutti_status roi_align_backward_run(const tutti_kernel_call *call,
                                           const double *const *inputs, double *const *outputs,
                                           tutti_arena *scratch)
{
    const int64_t *dims = call->inputs[TUTTI_ROI_GRAD].dims;
    const double *grad = inputs[TUTTI_ROI_GRAD];
    operands o = {inputs[TUTTI_ROI_X], outputs[0], dims[3],
                  strcmp(tutti_attr_string(call->attrs, call->attr_count, "mode"), "max") == 0};
    for (int64_t i = 0; i < dims[0]; i++) {
        tutti_roi roi;
        TUTTI_TRY(tutti__roi(call, inputs[TUTTI_ROI_REGIONS], i, &roi));
        for (int64_t bin = 0; bin < dims[1] * dims[2]; bin++, grad += dims[3])
            give_bin(&o, &roi, (int64_t[]){bin / dims[2], bin % dims[2]}, grad, outputs[1] + 4 * i);
    }
    return TUTTI_OK;
}

static tutti_status roi_align_backward_reference(const tutti_kernel_call *call)
{
    return tutti__on_doubles(call, roi_align_backward_run);
}

static const tutti_attr_spec attrs[] = {ROI_ATTRS, {NULL, TUTTI_ATTR_NONE, NULL}};

static const char *const samples[] = {
    "f32[2,5,6,3] f32[2,4]{=0.3,0.6,4.4,3.7,1.2,0.9,3.1,4.1} i64[2]{=1,0} f32[2,2,3,3] | "
    "size=[2,3] sampling_ratio=2",
    "f32[1,5,5,2] f32[1,4]{=0.35,0.4,4.3,4.6} i64[1]{=0} f32[1,2,2,2] | size=[2,2] mode=max "
    "sampling_ratio=2",
    NULL,
};

const tutti_op tutti_op_roi_align_backward = {
    .struct_size = sizeof(tutti_op),
    .name = "roi_align_backward",
    .version = 1,
    .doc = "roi_align_backward(x, regions, images, grad): dx and dregions, where dL/dy = grad and "
           "y = roi_align(x, regions, images)",
    .category = "network",
    .min_inputs = 4,
    .max_inputs = 4,
    .outputs = 2,
    .flags = TUTTI_OP_FALLIBLE,
    .attrs = attrs,
    .infer = roi_align_backward_infer,
    .gradient = roi_align_backward_gradient,
    .cost = roi_align_backward_cost,
    .split = roi_align_backward_split,
    .reference = roi_align_backward_reference,
    .samples = samples,
};
